/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the audit: audit.c (start, anchors), exec.c (tokens), unsaved_outcomes.c
 * (outcomes that wait for the store), spooler.c (those outcomes on the local disk). */
#ifndef HOLDFAST_AUDIT_AUDIT_IMPL_H
#define HOLDFAST_AUDIT_AUDIT_IMPL_H

#include "audit/audit.h"
#include "audit/chain.h"
#include "audit/redact.h"
#include "base/log_quiet.h"
#include "base/map.h"
#include "base/metric.h"
#include "store/spool.h"

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

    struct list unsaved; /* struct unsaved_outcome: those that wait and are not being spooled */
    size_t n_unsaved;    /* all, including those being spooled */
    size_t n_spooling, n_retrying;
    struct spooler *spooler;                 /* NULL: they live in memory alone */
    struct unknown_commits *unknown_commits; /* likewise */
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

/* Digests of `body`, and what is stored of it and of the event's error: the bytes themselves, or
 * heap bytes whose owner *ret_heap becomes (NULL before).  On the thread that the redactor belongs
 * to. */
void audit_seal_event(const struct audit *a, struct redactor *redactor,
                      const struct own_secrets *own, struct event_row *e, struct str body,
                      enum server_audit mode, char **ret_heap);
/* Numbers, seals and commits events outside of the lanes: at start, or on the write lane's own
 * thread. */
must_check bool audit_append(struct store *store, struct chain *chain, struct store_op *ops,
                             size_t n, struct error *err);
void audit_count(struct audit *a, struct str server, struct str outcome);
void audit_failed(struct audit *a, const char *what, const struct error *err);

void anchor_init(struct audit *a);
void anchor_release(struct audit *a);

/* Takes over the outcome event of a token whose job failed, with copies of all it points to, and
 * retries it until the store has it.  `done` comes from the loop: err NULL ⇒ it is durable in
 * the spool meanwhile. */
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

/* The spool's own thread: puts and takes, in rounds of one commit each. */
struct spooler;
struct spool_put {
    struct list link; /* the spooler's until `done` */
    struct spooled one;
    struct str body; /* the original, while not sealed */
    struct own_secrets own;
    enum server_audit mode;
    bool sealed;
    char *redacted; /* made when it is sealed; the caller's */
    void (*done)(struct spool_put *put, const struct error *err); /* from the loop */
};
struct spooler *spooler_new(struct audit *a, struct spool *spool) must_check;
void spooler_put(struct spooler *s, struct spool_put *put);
void spooler_take(struct spooler *s, int64_t exec); /* the store has it */
/* Finishes what is under way; every `done` has been called when it returns.  NULL is fine. */
void spooler_free(struct spooler *s);

#endif
