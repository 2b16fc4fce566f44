/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the audit: audit.c (start, anchors), exec.c (tokens), kept.c (outcomes that
 * wait for the store). */
#ifndef HOLDFAST_AUDIT_AUDIT_IMPL_H
#define HOLDFAST_AUDIT_AUDIT_IMPL_H

#include "audit/audit.h"
#include "audit/chain.h"
#include "audit/redact.h"
#include "base/map.h"
#include "base/metric.h"

/* An anchor under way; one at a time. */
struct anchor {
    struct write_job job;
    struct store_op op;
    struct event_row event;
    struct buf body; /* written on the write lane */
    bool left;       /* some heads did not fit into this one */
    bool busy, again;
    int64_t covered;      /* chain_count() up to which anchors reach */
    struct read_job copy; /* appends `line` to the second sink, on the query lane */
    struct buf line;
    struct loop_task idle;
    struct list waiting; /* struct anchor_waiter, for the anchor after this one too when `again` */
};

struct audit {
    struct lanes *lanes;
    struct loop *loop;
    struct chain *chain;
    int64_t writer;
    size_t max_body;
    char *anchor_file;         /* NULL: none */
    struct redactor *redactor; /* the write lane's */
    struct loop_timer *tick;
    struct anchor anchor;

    struct list kept; /* struct kept: outcomes that wait for the store */
    size_t n_kept, n_retrying;
    int64_t retry_ms;
    struct loop_timer *retry;

    size_t note_bytes;
    struct map counters; /* "server\\0outcome" → struct counter */
    struct metric *executions;
    struct metric_cell *failures;
};

/* Write lane: digests of `body`, and what is stored of it: `body` itself, or heap bytes whose owner
 * *ret_heap becomes (NULL before). */
void audit_seal_body(struct audit *a, struct event_row *e, struct str body, enum server_audit mode,
                     char **ret_heap);
void audit_count(struct audit *a, struct str server, struct str outcome);
void audit_failed(struct audit *a, const char *what, const struct error *err);

void anchor_init(struct audit *a);
void anchor_release(struct audit *a);

/* Takes over the outcome event of a token whose job failed, with copies of all it points to, and
 * retries it until the store has it. */
void audit_keep_outcome(struct audit *a, const struct exec *x);
void kept_init(struct audit *a);
void kept_release(struct audit *a);

#endif
