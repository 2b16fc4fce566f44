/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of retention: stored segments of events, what was removed of each chain, and sums. */
#ifndef HOLDFAST_RETENTION_STORE_ROWS_H
#define HOLDFAST_RETENTION_STORE_ROWS_H

#include "base/arena.h"
#include "store/rows.h"

/* A row of the events: a segment (store/segment.h), unpacked. */
struct segment_row {
    int64_t id; /* of its first event */
    size_t n;   /* events in it */
    struct str records, bodies;
};

/* A checkpoint: consecutive events of one chain (writer and tenant) that were removed.  The events of
 * a chain that are stored and its checkpoints cover every seq of the chain.  `seal` is made with the
 * audit key (audit/chain.h). */
struct removed_row {
    int64_t writer;
    struct str tenant;
    int64_t first_seq, last_seq;
    int64_t first_id, last_id;
    int64_t oldest_ms, newest_ms; /* times of the events */
    int64_t by_age, by_size;      /* how many each rule removed; together all of them */
    int64_t removed_ms;           /* the last removal */
    struct str rule;              /* of the last removal, for people: "keep 90d" */
    uint8_t before[32];           /* seal of the event before; zero before the first */
    uint8_t after[32];            /* seal of the last removed event */
    uint8_t seal[32];
};

/* Sums of what was removed. */
enum tally_kind {
    TALLY_BY_AGE, /* removed of a tenant, and no event tells of it yet; `at` is 0 */
    TALLY_BY_SIZE,
    TALLY_BODIES_BY_AGE,
    TALLY_BODIES_BY_SIZE,
    TALLY_KINDS
};
struct tally_row {
    enum tally_kind kind;
    struct str tenant;
    int64_t at;
    int64_t events; /* of the last two kinds: bodies */
    int64_t bytes;  /* of records with their frames */
    int64_t body_bytes;
};

/* How far the events of a writer are folded. */
struct folded_row {
    int64_t writer, last_id;
};

struct retention_state {
    int64_t version; /* changes with every removal and with every new hold */
};

/* Executions of which events or bodies are removed; ids of their intents or records. */
struct execution_gone {
    struct str session; /* row id; absent: none */
    int64_t exec;
};
struct executions_gone {
    const struct execution_gone *removed; /* by session and id */
    const int64_t *bodies;
    size_t n_removed, n_bodies;
    struct arena *mem; /* for the writing of the op */
};

#endif
