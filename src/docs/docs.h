/* SPDX-License-Identifier: Apache-2.0 */
/* The knowledge base as a service: for the tools of the built-in `docs` server, for REST and for
 * commands.  It joins the vaults (files), the store (history, lines read by sessions) and the index
 * (words, links).
 *
 *   a read:    worker: file, views ──> loop ──> store: revision (when new), lines read ──> done
 *   a change:  in line ──> worker: read, apply, publish ──> store: revisions ──> index ──> done
 *
 * Changes of one document run one after another, changes of different documents in parallel.  A
 * move has its folder to itself.  Reads run in parallel with changes; if a change of the same
 * document begins during a read, the read is repeated.  A `struct docs_call` is one read or change,
 * embedded in the caller's own struct.  It must stay in place until `done`, which the loop calls,
 * never before the verb returns.  A submitted call runs to its end even when its caller no longer
 * needs it.
 *
 * The service enforces visibility: for a principal, a folder that it may not use does not exist.
 * Loop thread, except where noted. */
#ifndef HOLDFAST_DOCS_DOCS_H
#define HOLDFAST_DOCS_DOCS_H

#include "config/config.h"
#include "docs/index.h"
#include "docs/pool.h"
#include "docs/store/ops.h"
#include "docs/store/verbs.h"
#include "docs/vault.h"
#include "io/worker.h"
#include "store/lanes.h"

struct docs;
struct docs_set;
struct docs_lines;

/* A configured folder, open.  Immutable, and valid as long as its set. */
struct docs_folder {
    struct str name;
    enum docs_agent agent;
    int64_t history_max;     /* bytes of one document's history; 0: no limit */
    int64_t history_keep_ms; /* how long replaced texts stay; 0: for ever */
    struct vault *vault;
};

struct docs_start {
    struct loop *loop;
    struct lanes *lanes;
    struct str data_dir;
};
struct docs *docs_new(const struct docs_start *start) must_check;
/* Opens the folders of this configuration; unchanged folders stay open.  A folder that cannot be
 * opened is left out, with a warning in the log, and is tried again at the next reload. */
void docs_apply(struct docs *d, const struct config *config);
/* Stops the running work and waits for it; before lanes_free().  NULL is fine. */
void docs_stop(struct docs *d);
void docs_free(struct docs *d); /* after lanes_free() */

struct docs_place {
    const struct docs_folder *folder;
    struct str path; /* inside the folder */
};

struct docs_call;
/* Makes a document's new text.  `run` is called on a worker, possibly several times on different
 * bytes, and up to a minute after `done`, when an editor that had the file open saves late.  So it
 * must not refer to memory outside itself.  The service frees it. */
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
    /* Runs on a worker, after the file was read (docs_read()) or changed (docs_change()), or alone
     * (docs_work()).  It makes views and texts off the loop, and may use `mem` and
     * docs_visible(). */
    bool (*work)(struct docs_call *c, struct error *err);
    /* The session (row id) that reads or changes the document.  `work` sets the lines (from 1) of
     * the accepted view that the session sees by this call; with from_line 0 nothing is
     * recorded. */
    struct str session_id;
    struct str session_owner; /* absent: `who` */
    int64_t from_line, to_line;
    struct str author, kind, reason; /* of a change, for the history */
    struct docs_change *change;      /* docs_change() takes ownership */
    /* docs_change(): receives the lines of the document that the session has read, for the change
     * to check.  Looked up at the change's turn, so that the session's earlier changes count. */
    struct docs_lines **lines;
    bool spares_others; /* docs_move(): fail if it would change other documents */
    void (*done)(struct docs_call *c);
    void *user;

    /* Out. */
    bool ok;
    struct error err;
    struct vault_file file;         /* docs_read(), before `work` */
    struct document_row document;   /* docs_read(), docs_change(): its present row */
    struct str bytes;               /* docs_change(): the file's present text */
    uint8_t sha256[32];             /* of bytes */
    bool changed;                   /* docs_change(): false when the text was the same */
    struct revision_row *revisions; /* docs_history(), docs_revision() */
    size_t n_revisions;
    int64_t number;      /* docs_move(): links rewritten */
    struct str *linking; /* docs_move() with ERR_DENIED: paths of the documents it would change */
    size_t n_linking;

    /* private */
    struct docs *home;
    struct docs_set *set;
    struct list node;     /* in `line`, `reading` or `readers` of struct docs */
    struct list run_node; /* in `running` of struct docs */
    struct pool_job job;
    struct read_job read;
    struct write_job write;
    struct loop_task task;
    struct store_op *ops; /* in mem, room for ops_room */
    size_t n_ops, ops_room;
    struct vault_published published;
    struct str before; /* an earlier text of the file, for the history */
    uint8_t before_sha256[32];
    struct str to_path, content;
    struct moving *moving;
    int64_t revision; /* requested */
    unsigned limit, tries;
    bool is_reading, is_overtaken;      /* in progress; a change of its document began */
    bool is_running;                    /* a change that has its turn */
    struct str line_key;                /* ROOT/PATH of the document that it changes */
    size_t root_n;                      /* length of ROOT in line_key */
    struct document_row *newest;        /* filled by the commit */
    bool change_detached;               /* the change is still used after the call */
    bool is_recorded;                   /* the texts of the change are in the history */
    void (*begin)(struct docs_call *c); /* called at its turn */
    bool in_line;                       /* a change, or a read that must not overlap one */
    bool (*blocking)(struct docs_call *c, struct error *err); /* on the worker */
    bool (*lookup)(struct docs_call *c, struct store *store, struct error *err);
    void (*next)(struct docs_call *c);
};

/* Resolves "Folder/Path.md" and sets call->place.  ERR_NOT_FOUND with "Error: Document not found:
 * X" when the folder does not exist or is not visible, or the path is not valid.  A key that is
 * limited to folders gets "Access denied: …" for all others.  call->set keeps the place valid until
 * docs_end(). */
must_check bool docs_resolve(struct docs *d, struct docs_call *call, struct str file_path,
                             struct error *err);
/* The error for a key that is limited to folders, about all other folders; inside a call. */
void docs_denied(const struct docs_call *call, struct error *err);
/* Gives the call a reference to the set without naming a document: before docs_work(). */
void docs_begin(struct docs *d, struct docs_call *call);
/* Releases the set; after `done`, or when the call is not made. */
void docs_end(struct docs_call *call);
/* The folders this principal may use, sorted by name, in mem; any thread, inside a call. */
size_t docs_visible(const struct docs_call *call, const struct docs_folder ***ret);
const struct docs_folder *docs_folder(const struct docs_call *call, struct str name); /* or NULL */
/* Whether `path` is `prefix`, or below the folder of that name; every path is under "". */
bool docs_is_under(struct str path, struct str prefix);
/* Checks that documents exist at or under `path`; else ERR_NOT_FOUND with the nearest names. */
must_check bool docs_check_path(const struct docs_folder *f, const struct vault_entry *entries,
                                size_t n, struct str path, struct error *err);
/* ERR_NOT_FOUND for a missing folder, with the nearest names that the caller may use. */
void docs_no_folder(const struct docs_call *call, struct str name, struct error *err);
struct index *docs_index(const struct docs_call *call); /* on workers */
/* Whether any folder is open. */
bool docs_any(const struct docs *d);
/* The state of each configured folder, for operators. */
enum docs_state {
    DOCS_SERVED,
    DOCS_LOST,       /* the folder that was opened is no longer at its path */
    DOCS_UNAVAILABLE /* the folder could not be opened; the log says why */
};
struct docs_folder_state {
    struct str name;
    enum docs_state state;
    int64_t replaced_ms; /* wall time of opening a replacement found at its path; 0: never */
};
const char *docs_state_name(enum docs_state state);
void docs_each_state(const struct docs *d, const struct config *config,
                     void (*fn)(void *arg, const struct docs_folder_state *s), void *arg);
/* The most that agents may do in any of the folders this principal may use. */
enum docs_agent docs_most(const struct docs *d, const struct principal *who);

void docs_read(struct docs *d, struct docs_call *call);
void docs_change(struct docs *d, struct docs_call *call);
/* Creates a document at call->place with `bytes`, or, with call->change, with the text that the
 * change makes from "".  ERR_CONFLICT: the path exists already. */
void docs_create(struct docs *d, struct docs_call *call, struct str bytes);
/* Removes the document if it is empty; its history stays.  ERR_CONFLICT: it is not empty. */
void docs_remove_empty(struct docs *d, struct docs_call *call);
/* Moves call->place to `to_path` of the same folder.  Links to the document are rewritten, and its
 * own relative links keep their meaning; call->number counts them.  With call->spares_others no
 * other document is changed: ERR_DENIED and call->linking if the move would need that. */
void docs_move(struct docs *d, struct docs_call *call, struct str to_path);
/* For other work that reads names or the index: runs call->work alone. */
void docs_work(struct docs *d, struct docs_call *call);
/* Likewise, for work that reads many documents: it delays only other long work.  call->work must
 * poll docs_is_stopping() and end early. */
void docs_long_work(struct docs *d, struct docs_call *call);
bool docs_is_stopping(const struct docs_call *call); /* any thread */
/* The history, newest first, before a revision (0: from the newest); without contents. */
void docs_history(struct docs *d, struct docs_call *call, int64_t before, unsigned limit);
/* One revision with its content: call->revisions[0]; ERR_NOT_FOUND. */
void docs_revision(struct docs *d, struct docs_call *call, int64_t number);
/* The lines of a document that a session has read (call->lines). */
bool docs_has_read(struct docs_lines *l, struct str line);  /* this text, on any line */
bool docs_was_there(struct docs_lines *l, struct str line); /* in a revision that the session read
                                                             * from */
bool docs_read_any(const struct docs_lines *l);
void docs_lines_free(struct docs_lines *l); /* NULL is fine */

#endif
