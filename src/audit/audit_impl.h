/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the audit: audit.c (start), anchor.c (anchors), exec.c (tokens),
 * unsaved_outcomes.c (outcomes that wait for the store), unknown_commits.c (intents of unknown
 * fate), spooler.c (outcomes on the local disk). */
#ifndef HOLDFAST_AUDIT_AUDIT_IMPL_H
#define HOLDFAST_AUDIT_AUDIT_IMPL_H

#include "audit/anchor_file.h"
#include "audit/audit.h"
#include "audit/chain.h"
#include "audit/publish.h"
#include "audit/redact.h"
#include "base/log_quiet.h"
#include "base/map.h"
#include "base/metric.h"
#include "store/spool.h"

/* The anchor being written; at most one at a time. */
struct anchor {
    struct write_job job;
    struct store_op op;
    struct event_row event;
    struct buf body; /* written on the write lane */
    bool left;       /* some heads are not anchored yet */
    bool busy, again;
    int64_t covered;      /* chain_count() at the last committed anchor */
    struct read_job copy; /* appends `line` to the second sink, on the query lane */
    struct anchor_file file;
    struct buf line;
    struct loop_task idle;
    struct list waiting; /* struct anchor_waiter; with `again`, also for the next anchor */
};

struct audit {
    struct lanes *lanes;
    struct loop *loop;
    struct chain *chain;
    int64_t writer;
    size_t max_body;
    char *anchor_file;         /* NULL: no second sink */
    struct redactor *redactor; /* used by the write lane only */
    struct publish_point *publish;
    struct loop_timer *tick;
    struct anchor anchor;

    struct list unsaved; /* struct unsaved_outcome: waiting, and not being spooled */
    size_t n_unsaved;    /* all unsaved outcomes, including those being spooled */
    size_t n_spooling, n_retrying;
    struct spooler *spooler;                 /* NULL: unsaved outcomes stay in memory */
    struct unknown_commits *unknown_commits; /* NULL without a spool */
    struct metric_cell *waiting;
    int64_t retry_ms;
    struct loop_timer *retry;

    size_t note_bytes;
    struct map counters; /* "server\\0outcome" → struct counter */
    struct counter *counted_last;
    struct metric *executions;
    struct metric_cell *failures;
    struct log_quiet quiet_intents, quiet_others;
};

/* How much of a body is stored: `max` bytes at most, but never fewer than audit_config.max_body. */
struct body_rule {
    enum server_audit mode;
    size_t max;
};
/* Fills in the digests of `body`, and the body and error to store.  These are the original bytes,
 * or heap bytes: *ret_heap (NULL before) then owns them.  Call it on the redactor's thread. */
void audit_seal_event(const struct audit *a, struct redactor *redactor,
                      const struct own_secrets *own, struct event_row *e, struct str body,
                      struct body_rule rule, char **ret_heap);
/* Numbers, seals and commits events without the lanes: at start, or on the write lane's own
 * thread. */
must_check bool audit_append(struct store *store, struct chain *chain, struct store_op *ops,
                             size_t n, struct error *err);
void audit_count(struct audit *a, struct str server, struct str outcome);
void audit_failed(struct audit *a, const char *what, const struct error *err);

void anchor_init(struct audit *a);
void anchor_release(struct audit *a);

/* Takes over the outcome event of a token with a failed job, copies everything that it points to,
 * and retries it until the store has it.  The loop calls `done`; err NULL: the outcome is durable
 * in the spool meanwhile. */
void audit_retry_outcome(struct audit *a, struct exec *x,
                         void (*done)(struct exec *x, const struct error *err));
/* Says whether an intent may be handed to the write lane now.  With a spool: only while the store
 * writes.  Unsaved outcomes are handed to the lane before the intent. */
bool unsaved_outcomes_go_first(struct audit *a);
void unsaved_outcomes_init(struct audit *a);
void unsaved_outcomes_release(struct audit *a);

/* Intents that the store may or may not have (unknown_commits.c). */
struct unknown_commits;
struct unknown_commits *unknown_commits_new(struct audit *a) must_check;
void unknown_commits_add(struct unknown_commits *d, const struct event_row *intent); /* copied */
void unknown_commits_free(struct unknown_commits *d); /* NULL is fine */

/* Keeps spool writes off the loop: puts and takes, in rounds of one commit each. */
struct spooler;
struct spool_put {
    struct list link; /* belongs to the spooler until `done` */
    struct spooled one;
    struct str body; /* the original bytes, until sealed */
    struct own_secrets own;
    struct body_rule rule;
    bool sealed;
    char *redacted; /* made when the outcome is sealed; owned by the caller */
    void (*done)(struct spool_put *put, const struct error *err); /* from the loop */
};
struct spooler *spooler_new(struct audit *a, struct spool *spool) must_check;
void spooler_put(struct spooler *s, struct spool_put *put);
void spooler_take(struct spooler *s, int64_t exec); /* the store has the outcome */
/* Finishes the current round; every `done` has been called when it returns.  NULL is fine. */
void spooler_free(struct spooler *s);

#endif
