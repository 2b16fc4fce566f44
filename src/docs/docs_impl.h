/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of src/docs: the state of the service.  Loop thread, except for data that a
 * worker gets with a call. */
#ifndef HOLDFAST_DOCS_DOCS_IMPL_H
#define HOLDFAST_DOCS_DOCS_IMPL_H

#include "docs/docs.h"

#include <stdatomic.h>

#define DOCS_ARENA (64u * 1024 * 1024)

/* One open folder and its watch.  Reference-counted: sets share it. */
struct open_folder {
    struct docs_folder shown;
    unsigned refs;
    struct docs *home;
    struct arena *mem;
    struct str root;
    struct str *tenants;
    size_t n_tenants;
    struct loop_fd *watch;
    bool list_waits;     /* a listing of it is in `dirty` */
    bool is_current;     /* in the newest set, so its events matter */
    bool is_owing;       /* .holdfast has texts that are not in the history yet */
    bool is_recovering;  /* these texts are being written to the history */
    bool is_lost;        /* its path is missing, and the log has said so */
    int64_t replaced_ms; /* wall time when it replaced another folder at its path; 0: it did not */
};

/* The folders of one configuration.  Immutable and reference-counted: a call keeps the set that it
 * began with. */
struct docs_set {
    unsigned refs;
    struct docs *home;
    struct open_folder **folders; /* sorted by name */
    size_t n;
};

struct docs {
    struct docs_start start;
    struct arena *mem;
    struct pool *files;   /* reading single documents: short jobs */
    struct pool *changes; /* changing documents */
    struct pool *find;    /* lists, queries of the index and indexing */
    struct pool *search;  /* grep through all documents: long jobs */
    struct docs_set *set;
    struct index *index;
    /* Lists of struct docs_call. */
    struct list line;    /* changes that wait for others of the same document or folder */
    struct list running; /* changes that have their turn, by run_node */
    struct list reading; /* reads in progress */
    struct list readers; /* reads that wait for a change of their document */
    /* Displaced files that an editor may still have open. */
    struct list late;
    struct loop_timer *tick;
    bool late_busy;
    /* Keeping the index up to date. */
    struct list dirty; /* see keep.c */
    size_t n_dirty;
    struct index_job *indexing;
    unsigned index_made; /* for index_is_empty_again() */
    int64_t listed_ms;   /* time of the last periodic listing of all folders */
    bool checking;       /* a check for replaced folders is running */
    struct doc_age *age; /* NULL: no folder has ever had a history_keep */
    bool stopping;
    atomic_bool stop; /* polled by workers */
};

/* set.c */
void set_ref(struct docs_set *s);
void set_unref(struct docs_set *s); /* NULL is fine */
bool folder_is_for(const struct open_folder *f, const struct principal *who);
void set_check(struct docs *d); /* periodic: opens folders that were replaced on disk */
void folder_ref(struct open_folder *f);
void folder_unref(struct open_folder *f);
struct open_folder *open_folder_of(const struct docs_folder *f);

/* docs.c: the stages of a call. */
void docs_wake(struct docs *d);
void call_finish(struct docs_call *c);                        /* the loop then calls `done` */
void call_fail(struct docs_call *c, const struct error *err); /* likewise */
void call_stopped(struct docs_call *c);                       /* likewise, with the error for a
                                                               * stop */
void call_worked(struct docs_call *c);
/* Each calls `next` when it succeeded, or ends the call. */
void call_submit(struct docs_call *c, struct pool *pool,
                 bool (*blocking)(struct docs_call *c, struct error *err),
                 void (*next)(struct docs_call *c)); /* called after a failure of `blocking` too;
                                                      * see c->ok and c->err */
void call_lookup(struct docs_call *c,
                 bool (*lookup)(struct docs_call *c, struct store *store, struct error *err),
                 void (*next)(struct docs_call *c));
void call_write(struct docs_call *c, void (*next)(struct docs_call *c)); /* writes c->ops */
void call_op(struct docs_call *c, struct store_op op); /* adds the op, for the caller */
/* `before` is the version that v->prefix and v->suffix refer to; NULL: there is none. */
void call_revise(struct docs_call *c, struct str path, const struct vault_version *v,
                 const struct vault_version *before, const struct revision_row *how);
void call_note_lines(struct docs_call *c, struct str path);
/* The principal whose session reads: the owner of the session. */
const struct principal *call_reader(struct docs_call *c);

/* read.c */
void read_start(struct docs_call *c);
void read_ended(struct docs_call *c);

/* change.c */
void change_enter(struct docs_call *c); /* waits in line; c->begin is called at its turn */
void change_begin(struct docs_call *c); /* at its turn: publishes, then writes the history */
void change_ended(struct docs_call *c);
void change_name_place(struct docs_call *c); /* sets the key for change_runs() */
void change_stop(struct docs *d);            /* ends all waiting calls */
/* Whether a change of this call's document runs, other than itself. */
bool change_runs(const struct docs_call *c);
void change_record(struct docs_call *c, struct str path, const struct vault_published *p);

/* history.c: fills *c->lines, which the caller owns. */
void lines_look(struct docs_call *c, void (*next)(struct docs_call *c));

/* late.c: takes over call->published.staged, displaced from `path`, and the change that displaced
 * it. */
void late_add(struct docs *d, struct docs_call *c, struct str path);
void late_add_left(struct docs *d, struct docs_call *c, const struct vault_leftover *left);
bool late_has(const struct docs *d, struct str staged);
void late_start(struct docs *d);
void late_stop(struct docs *d);
void late_free(struct docs *d);

/* age.c: deletes old texts of the history. */
void age_apply(struct docs *d, const struct config *config);
void age_stop(struct docs *d);
void age_free(struct docs *d); /* after lanes_free() */

/* keep.c: keeps the index up to date with the files. */
void keep_folder(struct docs *d, struct open_folder *f);                /* the folder must be listed
                                                                         * again */
void keep_path(struct docs *d, struct open_folder *f, struct str path); /* this document changed */
void keep_forget(struct docs *d, struct open_folder *f);
void keep_watch(struct open_folder *f);
void keep_unwatch(struct open_folder *f);
void keep_tick(struct docs *d); /* periodic: lists folders again in case a change was missed */
void keep_free(struct docs *d);

/* recover.c: texts that a crash, or a time without the store, left in .holdfast. */
void recover_folder(struct docs *d, struct open_folder *f);
void recover_owed(struct docs *d); /* periodic: folders with is_owing */

#endif
