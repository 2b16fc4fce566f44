/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/docs share: the service's own state.  Loop thread, but for what a worker is
 * handed with a call. */
#ifndef HOLDFAST_DOCS_DOCS_IMPL_H
#define HOLDFAST_DOCS_DOCS_IMPL_H

#include "docs/docs.h"

#include <stdatomic.h>

#define DOCS_ARENA (64u * 1024 * 1024)

/* One folder, open, with what watches it.  Counted: sets share it. */
struct open_folder {
    struct docs_folder shown;
    unsigned refs;
    struct docs *home;
    struct arena *mem;
    struct str root;
    struct str *tenants;
    size_t n_tenants;
    struct loop_fd *watch;
    bool list_waits;     /* among what is dirty: it is to be listed */
    bool is_current;     /* in the newest set: what it hears matters */
    bool is_owing;       /* .holdfast has texts that the history was not told of */
    bool is_recovering;  /* it is being told */
    bool is_lost;        /* nothing is at its path, and the log has said so */
    int64_t replaced_ms; /* it stands for another one that was at its path before; 0: it does not */
};

/* The folders of one configuration.  Immutable and counted: a call keeps the one it began with. */
struct docs_set {
    unsigned refs;
    struct docs *home;
    struct open_folder **folders; /* by name */
    size_t n;
};

struct docs {
    struct docs_start start;
    struct arena *mem;
    struct pool *files;   /* reading single documents: short jobs */
    struct pool *changes; /* changing them */
    struct pool *find;    /* what is where: lists, index and indexing */
    struct pool *search;  /* through every document: grep, which may take its time */
    struct docs_set *set;
    struct index *index;
    /* Of struct docs_call. */
    struct list line;    /* changes that wait for others of the same document or folder */
    struct list running; /* changes whose turn it is, by run_node */
    struct list reading; /* reads under way */
    struct list readers; /* reads that wait for the change of their document */
    /* Displaced files that an editor may still hold open. */
    struct list late;
    struct loop_timer *tick;
    bool late_busy;
    /* Keeping the index in step. */
    struct list dirty; /* see keep.c */
    size_t n_dirty;
    struct index_job *indexing;
    unsigned index_made; /* what index_is_empty_again() told last */
    int64_t listed_ms;   /* when all folders were listed last, in case */
    bool checking;       /* whether folders were replaced */
    bool stopping;
    atomic_bool stop; /* seen by workers */
};

/* set.c */
void set_ref(struct docs_set *s);
void set_unref(struct docs_set *s); /* NULL is fine */
bool folder_is_for(const struct open_folder *f, const struct principal *who);
void set_check(struct docs *d); /* now and then: folders that were replaced on disk */
void folder_ref(struct open_folder *f);
void folder_unref(struct open_folder *f);
struct open_folder *open_folder_of(const struct docs_folder *f);

/* docs.c: the life of a call. */
void docs_wake(struct docs *d);
void call_finish(struct docs_call *c);                        /* `done` comes, from the loop */
void call_fail(struct docs_call *c, const struct error *err); /* likewise */
void call_stopped(struct docs_call *c);                       /* likewise: we are stopping */
void call_worked(struct docs_call *c);
/* Each calls `next` when it is through, or ends the call. */
void call_submit(struct docs_call *c, struct pool *pool,
                 bool (*blocking)(struct docs_call *c, struct error *err),
                 void (*next)(struct docs_call *c)); /* always; c->ok and c->err tell */
void call_lookup(struct docs_call *c,
                 bool (*lookup)(struct docs_call *c, struct store *store, struct error *err),
                 void (*next)(struct docs_call *c));
void call_write(struct docs_call *c, void (*next)(struct docs_call *c)); /* c->ops */
struct store_op *call_op(struct docs_call *c, enum op_kind kind);
/* `before` is the version that v->prefix and v->suffix are about; NULL: none. */
void call_revise(struct docs_call *c, struct str path, const struct vault_version *v,
                 const struct vault_version *before, const struct revision_row *how);
void call_note_lines(struct docs_call *c, struct str path);

/* read.c */
void read_start(struct docs_call *c);
void read_ended(struct docs_call *c);

/* change.c */
void change_enter(struct docs_call *c); /* in line; c->begin is called when it is its turn */
void change_begin(struct docs_call *c); /* at its turn: publishes, then tells the history */
void change_ended(struct docs_call *c);
void change_name_place(struct docs_call *c); /* what change_runs() goes by */
void change_stop(struct docs *d);            /* who still waits is told */
/* A change of this call's document runs, other than itself. */
bool change_runs(const struct docs_call *c);
void change_tell(struct docs_call *c, struct str path, const struct vault_published *p);

/* history.c: fills *c->lines, which is the caller's. */
void lines_look(struct docs_call *c, void (*next)(struct docs_call *c));

/* late.c: takes over call->published.staged, displaced from `path`, and the change that made it. */
void late_add(struct docs *d, struct docs_call *c, struct str path);
void late_add_left(struct docs *d, struct docs_call *c, const struct vault_left *left);
bool late_has(const struct docs *d, struct str staged);
void late_start(struct docs *d);
void late_stop(struct docs *d);
void late_free(struct docs *d);

/* keep.c: the index follows the files. */
void keep_folder(struct docs *d, struct open_folder *f);                /* list it again */
void keep_path(struct docs *d, struct open_folder *f, struct str path); /* this one changed */
void keep_forget(struct docs *d, struct open_folder *f);
void keep_watch(struct open_folder *f);
void keep_unwatch(struct open_folder *f);
void keep_tick(struct docs *d); /* now and then: what nobody else would notice */
void keep_free(struct docs *d);

/* recover.c: what a crash, or a store that was away, left in .holdfast. */
void recover_folder(struct docs *d, struct open_folder *f);
void recover_owed(struct docs *d); /* now and then: folders that are owing */

#endif
