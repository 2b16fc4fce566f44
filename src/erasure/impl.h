/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the steps of an erasure. */
#ifndef HOLDFAST_ERASURE_IMPL_H
#define HOLDFAST_ERASURE_IMPL_H

#include "erasure/erase.h"
#include "erasure/store/ops.h"
#include "erasure/store/verbs.h"
#include "retention/removal.h"

#define ERASURE_SESSIONS 50 /* ended or deleted at a time */

enum erasure_phase {
    ERASURE_ENDS_SESSIONS,
    ERASURE_WALKS,
    ERASURE_DROPS_ROWS,
    ERASURE_RENAMES_AUTHORS,
    ERASURE_COUNTS_SEALED,
    ERASURE_DROPS_NAMES,
    ERASURE_CLEANS,
    ERASURE_ENDS,
};

/* One page of a walk, computed on the query lane. */
struct erasure_page {
    struct removal removal;
    struct erasure_move move;
    bool is_end;    /* no segment is left */
    bool is_found;  /* something of the person was there, or could not be removed yet */
    bool is_open;   /* at the beginning of a walk: a call of the person is under way */
    size_t damaged; /* segments that cannot be read, of whichever person */
};

struct erasures {
    struct erasures_config config;
    struct loop_timer *timer;
    bool busy, stopping;
    char wanted[UUID_TEXT]; /* begun by this process, so taken at once */
    struct read_job read;
    struct write_job write;
    struct registry_call call;
    struct principal owner; /* of `call` */
    struct arena *mem;      /* of one step */
    /* The erasure under way. */
    struct arena *job_mem; /* NULL: none */
    struct erasure_row job;
    enum erasure_phase phase;
    struct erasure_page page;
    bool found, open; /* in this walk */
    size_t damaged;   /* in this walk */
    struct session_row *sessions;
    size_t n_sessions, at_session;
    size_t at_folder;
    struct str after_document; /* in job_mem */
    /* Events that have the name of the user in what is sealed; they cannot be changed. */
    int64_t sealed, sealed_next;
    bool is_counted; /* `sealed` is of all events */
    struct erasure_document *documents;
    size_t n_documents;
    struct erasure_left *left;
    bool is_clean;
    unsigned tries;
    struct event_row event;
    struct store_op ops[64];
    struct erasure_rows rows;
    struct erasure_authors *authors;
};

/* walk.c */
/* The next page after job.next_id. */
must_check bool erasure_walk(struct erasures *e, struct store *store, struct error *err);
/* Counts in `sealed` in the next segments.  is_counted: there are no more. */
must_check bool erasure_count_sealed(struct erasures *e, struct store *store, struct error *err);
/* The sessions of the person that are live and not held; none: all are over. */
must_check bool erasure_find_sessions(struct erasures *e, struct store *store, struct error *err);

#endif
