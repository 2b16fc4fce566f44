/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of erasures: persons whose bodies and names are removed. */
#ifndef HOLDFAST_ERASURE_STORE_ROWS_H
#define HOLDFAST_ERASURE_STORE_ROWS_H

#include "store/rows.h"

#define ERASURE_REASON_MAX 400 /* bytes; it is in an event for ever */
/* Stands where the name of an author was. */
#define ERASED_AUTHOR "erased"

struct erasure_row {
    struct str id; /* UUIDv7 */
    struct str tenant;
    struct str user_id;
    struct str made_by;
    struct str reason; /* absent: none was given */
    /* JSON array of the names that remain to be removed: of the user and of the user's keys; absent
     * once they are. */
    struct str names;
    int64_t next_id;                      /* where the walk through the events goes on */
    int64_t bodies, body_bytes, sessions; /* removed so far */
    int64_t held;                         /* sessions that were left because they are held */
    int64_t created_ms, moved_ms;
    int64_t done_ms; /* 0: something remains to be done */
};

/* What there is of a person. */
struct erasure_left {
    int64_t live, over; /* sessions that are not held */
    int64_t held;       /* sessions that are */
    int64_t calls;      /* of the first two */
    int64_t keys, logins;
    int64_t is_held; /* whether the user is */
};
struct erasure_owner {
    struct str owner; /* "user:…" or "key:…" */
};
struct erasure_document {
    struct str id;
};

/* Parameters of ops. */
struct erasure_move {
    struct str id;
    int64_t from, to; /* next_id as it was read, and the new one */
    int64_t bodies, body_bytes;
};
struct erasure_rows {
    struct str id, tenant, user_id;
    int64_t most; /* sessions */
};
struct erasure_authors {
    struct str author, folder;
    struct str from, upto; /* ids of documents, both inclusive */
};

#endif
