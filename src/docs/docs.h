/* SPDX-License-Identifier: Apache-2.0 */
/* The knowledge base as a service: for the tools of the built-in `docs` server, for REST and for
 * commands.  It joins the vaults (files), the store (history, what sessions have read) and the
 * index (words, links).
 *
 *   a read:    worker: file, views ──> loop ──> store: revision (when new), lines read ──> done
 *   a change:  in line ──> worker: read, apply, publish ──> store: revisions ──> index ──> done
 *
 * Changes of one document run one after another, those of different documents side by side; a move
 * has its folder to itself.  Reads run beside changes, and one that a change of its document
 * overtook is made again.  One `struct docs_call` is one question or change, embedded in whoever
 * asks; it stays in place until `done`, which comes from the loop, never before the verb returns.
 * What was handed in is carried through even when the asker has lost interest.
 *
 * Who may see what is decided here: a folder that a principal may not use is one that does not
 * exist.  Loop thread, except where said. */
#ifndef HOLDFAST_DOCS_DOCS_H
#define HOLDFAST_DOCS_DOCS_H

#include "config/config.h"
#include "docs/index.h"
#include "docs/pool.h"
#include "docs/vault.h"
#include "io/worker.h"
#include "store/lanes.h"

struct docs;
struct docs_set;
struct docs_lines;

/* A configured folder, open.  Immutable, and alive as long as the set it is in. */
struct docs_folder {
    struct str name;
    enum docs_agent agent;
    int64_t history_max; /* bytes of one document's history; 0: no limit */
    struct vault *vault;
};

struct docs_start {
    struct loop *loop;
    struct lanes *lanes;
    struct str data_dir;
};
struct docs *docs_new(const struct docs_start *start) must_check;
/* The folders of this configuration: those that stayed as they were stay open.  A folder that
 * cannot be opened is left out and said in the log; it is tried again at the next reload. */
void docs_apply(struct docs *d, const struct config *config);
/* Stops what runs and waits for it; before lanes_free().  NULL is fine. */
void docs_stop(struct docs *d);
void docs_free(struct docs *d); /* after lanes_free() */

struct docs_place {
    const struct docs_folder *folder;
    struct str path; /* inside the folder */
};

struct docs_call;
/* Makes a document's new text.  Runs on a worker, possibly several times on different bytes, and up
 * to a minute after `done`, when an editor that had the file open saves late: so it refers to
 * nothing but itself.  The service frees it. */
struct docs_change {
    bool (*run)(struct docs_change *c, struct str bytes, struct arena *mem, struct str *ret,
                struct error *err);
    void (*free)(struct docs_change *c);
};

struct docs_call {
    /* In. */
    const struct principal *who;
    struct arena *mem;
    struct docs_place place;
    /* On a worker, after the file was read (docs_read()) or changed (docs_change()), or instead
     * (docs_work()): views and texts are made here, off the loop.  It may use `mem`, and see what
     * docs_visible() gives. */
    bool (*work)(struct docs_call *c, struct error *err);
    /* The session (row id) that reads or changes, and the lines (from 1) of the accepted view it
     * gets to see by that, set by `work`; from_line 0: none, and nothing is noted. */
    struct str session_id;
    int64_t from_line, to_line;
    struct str author, kind, reason; /* of a change, for the history */
    struct docs_change *change;      /* docs_change(): taken */
    /* docs_change(): where to put what the session has read of the document, for the change to look
     * at.  Asked when it is the change's turn, so that the session's earlier changes count. */
    struct docs_lines **lines;
    bool spares_others; /* docs_move(): refused when it would change other documents */
    void (*done)(struct docs_call *c);
    void *user;

    /* Out. */
    bool ok;
    struct error err;
    struct vault_file file;         /* docs_read(), before `work` */
    struct document_row document;   /* docs_read(), docs_change(): as it is now */
    struct str bytes;               /* docs_change(): what the file holds now */
    uint8_t sha256[32];             /* of bytes */
    bool changed;                   /* docs_change(): false when it already was so */
    struct revision_row *revisions; /* docs_history(), docs_revision() */
    size_t n_revisions;
    int64_t number;      /* docs_move(): links rewritten */
    struct str *linking; /* docs_move() that was refused: paths of the others it would change */
    size_t n_linking;

    /* private */
    struct docs *home;
    struct docs_set *set;
    struct list node;     /* waiting in line, reading, or waiting to read again */
    struct list run_node; /* of changes that run */
    struct pool_job job;
    struct read_job read;
    struct write_job write;
    struct loop_task task;
    struct store_op *ops; /* in mem, as many as there is room for */
    size_t n_ops, ops_room;
    struct vault_published published;
    struct str before; /* a text that was on disk before what is read, for the history */
    uint8_t before_sha256[32];
    struct str to_path, content;
    struct moving *moving;
    int64_t revision; /* asked for */
    unsigned limit, tries;
    bool is_reading, is_overtaken; /* a read under way; a change of its document began meanwhile */
    bool is_running;               /* its turn has come, as a change */
    struct str line_key;           /* ROOT/PATH, what it changes */
    size_t root_n;                 /* of line_key: the folder on disk */
    struct document_row *newest;   /* filled by the commit */
    bool change_kept;              /* the change outlives the call */
    bool is_told;                  /* a change's texts are in the history */
    void (*begin)(struct docs_call *c); /* when it is first in line */
    bool in_line;                       /* a change, or a read that must not run beside one */
    bool (*blocking)(struct docs_call *c, struct error *err); /* on the worker */
    bool (*lookup)(struct docs_call *c, struct store *store, struct error *err);
    void (*next)(struct docs_call *c);
};

/* "Folder/Path.md" to a place.  ERR_NOT_FOUND with "Error: Document not found: X" when the folder
 * is not there, may not be seen, or the path is none; "Access denied: …" where a key is limited to
 * folders. `call->set` holds what it points to until docs_done().  Sets call->place. */
must_check bool docs_resolve(struct docs *d, struct docs_call *call, struct str file_path,
                             struct error *err);
/* What a key that is limited to folders is told about every other; inside a call. */
void docs_denied(const struct docs_call *call, struct error *err);
/* Takes part in the set without naming a document: before docs_work(). */
void docs_begin(struct docs *d, struct docs_call *call);
/* Lets go of the set; after `done`, or when the call comes to nothing. */
void docs_end(struct docs_call *call);
/* The folders this principal may use, sorted by name, in mem; any thread, inside a call. */
size_t docs_visible(const struct docs_call *call, const struct docs_folder ***ret);
const struct docs_folder *docs_folder(const struct docs_call *call, struct str name); /* or NULL */
/* Whether `path` is `prefix`, or below the folder of that name; "" is above everything. */
bool docs_is_under(struct str path, struct str prefix);
/* Some of a folder's documents are at or under `path`; else ERR_NOT_FOUND with what is nearest. */
must_check bool docs_check_path(const struct docs_folder *f, const struct vault_entry *entries,
                                size_t n, struct str path, struct error *err);
/* ERR_NOT_FOUND for a folder that is not there, with the nearest that the caller may use. */
void docs_no_folder(const struct docs_call *call, struct str name, struct error *err);
struct index *docs_index(const struct docs_call *call); /* on workers */
/* Whether anybody is to be served documents at all. */
bool docs_any(const struct docs *d);
/* How each configured folder does, for operators. */
enum docs_state {
    DOCS_SERVED,
    DOCS_LOST,       /* the folder that was opened is no longer at its path */
    DOCS_UNAVAILABLE /* it could not be opened; the log says why */
};
struct docs_folder_state {
    struct str name;
    enum docs_state state;
    int64_t replaced_ms; /* wall time at which another folder stood at its path and was opened; 0:
                            never */
};
const char *docs_state_name(enum docs_state state);
void docs_each_state(const struct docs *d, const struct config *config,
                     void (*fn)(void *arg, const struct docs_folder_state *s), void *arg);
/* What agents may do in the folders this principal may use, at most. */
enum docs_agent docs_most(const struct docs *d, const struct principal *who);

void docs_read(struct docs *d, struct docs_call *call);
void docs_change(struct docs *d, struct docs_call *call);
/* A new document at call->place holding `bytes`, or, with call->change, what that makes of nothing.
 * ERR_CONFLICT: something is there. */
void docs_create(struct docs *d, struct docs_call *call, struct str bytes);
/* Takes the document away if it is empty; its history stays.  ERR_CONFLICT: it is not. */
void docs_remove_empty(struct docs *d, struct docs_call *call);
/* call->place goes to `to_path` of the same folder; links to it are rewritten, and its own relative
 * ones go on meaning what they meant; call->number: how many.  With call->spares_others no other
 * document is changed: ERR_DENIED and call->linking when one would have to be. */
void docs_move(struct docs *d, struct docs_call *call, struct str to_path);
/* Anything else that reads names or the index: call->work alone. */
void docs_work(struct docs *d, struct docs_call *call);
/* Likewise, for what reads many documents: it keeps nobody waiting but its own kind.  It looks at
 * docs_is_stopping() now and then and ends. */
void docs_long_work(struct docs *d, struct docs_call *call);
bool docs_is_stopping(const struct docs_call *call); /* any thread */
/* The history, newest first, before a revision (0: from the newest); without contents. */
void docs_history(struct docs *d, struct docs_call *call, int64_t before, unsigned limit);
/* One revision with its content: call->revisions[0]; ERR_NOT_FOUND. */
void docs_revision(struct docs *d, struct docs_call *call, int64_t number);
/* What a session has read of a document (call->lines). */
bool docs_has_read(struct docs_lines *l, struct str line);  /* this text, wherever it stood */
bool docs_was_there(struct docs_lines *l, struct str line); /* in a revision it read from */
bool docs_read_any(const struct docs_lines *l);
void docs_lines_free(struct docs_lines *l); /* NULL is fine */

#endif
