/* SPDX-License-Identifier: Apache-2.0 */
/* Audit: every tool call leaves a durable intent before the first byte of the request goes out, and
 * a durable outcome before the last byte of the reply.  Only the audit makes exec tokens, and
 * upstream_send() takes nothing else, so no call executes unaudited.
 *
 * The write lane redacts, digests, numbers and chains events (chain.c is its write hook). */
#ifndef HOLDFAST_AUDIT_AUDIT_H
#define HOLDFAST_AUDIT_AUDIT_H

#include "audit/known.h"
#include "base/error.h"
#include "config/config.h"
#include "store/lanes.h"

struct audit;
struct chain;
struct spool;

struct audit_config {
    struct lanes *lanes;
    struct loop *loop;
    struct chain *chain; /* its hook is already registered with the lanes */
    int64_t writer;      /* our writer number */
    size_t max_body;     /* stored bytes of one body, unless its exec_request says more (16 KiB) */
    struct str anchor_file; /* second sink: one JSON line per anchor; absent: no second sink */
    struct spool *spool;    /* borrowed, already drained; NULL: no spool */
};
struct audit *audit_new(const struct audit_config *config) must_check;
/* Call after lanes_free(), when no job of the audit is running any more, and before loop_free().
 * One log line counts the outcomes that are not durable yet; the next start finds their intents
 * open. */
void audit_free(struct audit *a);
/* Writes an anchor.  The audit's own timer does so every second while events are written; a clean
 * stop calls it too.  The loop calls `done` once the anchor and its copy are durable, or could not
 * be written.  `done` may be NULL. */
void audit_anchor(struct audit *a, void (*done)(void *arg), void *arg);
/* Events that this process has committed.  Any thread. */
int64_t audit_committed(const struct audit *a);
/* A chain with the audit's key, for a chain_verifier on another thread; the caller frees it before
 * the audit.  *ret_anchor_file is the file with copies of anchors, the audit's; NULL: none. */
struct chain *audit_chain_to_verify(struct audit *a, const char **ret_anchor_file) must_check;
/* Retention has removed the anchors from before this time: the file need not have them any more. */
void audit_forget_anchors(struct audit *a, int64_t before_ms);

/* Texts that a peer chooses are cut to this many bytes; bodies have their own bound. */
#define AUDIT_TEXT_MAX 256
/* Limit of outcomes that wait for the store to come back.  At the limit exec_begin() refuses calls.
 * With a spool, exec_begin() refuses calls at once while the store cannot write; when the store is
 * back, the waiting outcomes are handed to it before the first new intent. */
#define AUDIT_UNSAVED_MAX 4096
/* Bytes of notes on their way to the store.  A note beyond this limit is dropped and counted. */
#define AUDIT_NOTES_MAX ((size_t)16 << 20)

/* Describes an execution.  The body must live until exec_begin() has called `ready`; the other
 * spans and `who` are copied. */
struct exec_request {
    const struct principal *who;
    struct str session_id, transport, carrier, client, server, method, tool, era;
    struct str body;        /* the params' original bytes */
    enum server_audit mode; /* AUDIT_NONE makes a token without rows */
    size_t max_body;        /* stored bytes of one body if more than audit_config.max_body */
    int64_t parent;
    struct own_secrets own; /* secrets to replace by their names; must live as long as the body */
};
struct exec_result {
    struct str outcome;     /* see event_row.outcome */
    struct str error;       /* one sentence, or absent */
    struct str body;        /* the result's original bytes; absent when the call has no result */
    int64_t tokens;         /* that the server reports with the result; 0: none */
    struct own_secrets own; /* as in exec_request; also redacted from `error` */
    /* Ops committed with the outcome (≤ 5, copied; not with a note).  Their verdicts are in
     * x->ops[0..n).  If the commit fails, only the outcome itself is retried. */
    const struct store_op *extra;
    size_t n_extra;
};

enum exec_state { EXEC_UNUSED, EXEC_BEGINNING, EXEC_OPEN, EXEC_ENDING, EXEC_CLOSED, EXEC_REFUSED };
enum exec_kind { EXEC_DURABLE, EXEC_NOTE, EXEC_HOUSEKEEPING };
/* Housekeeping traffic to upstreams, the only kind without a row. */
enum exec_reason {
    EXEC_PROBE,
    EXEC_INITIALIZE,
    EXEC_PING,
    EXEC_LIST,
    EXEC_CANCEL,
    EXEC_SUBSCRIBE,
    EXEC_CLIENT_RESPONSE
};

/* The token.  Embedded in the call that owns it.  It must not move between exec_begin() and
 * `ready`, nor between exec_end() and `done`.  Only `user` belongs to the caller; the audit owns
 * the other fields. */
struct exec {
    enum exec_kind kind;
    enum exec_state state;
    enum exec_reason reason;
    int64_t id; /* the intent's event id once open; 0 for AUDIT_NONE */
    int64_t began_us;
    uint8_t intent_mac[32]; /* the intent's seal, once open */
    void *user;
    struct audit *audit;
    struct write_job job;
    struct store_op ops[7];
    struct event_row event; /* followed directly by its texts: the write lane prefetches both */
    char copied[384];
    size_t n_copied;
    char *redacted; /* the write lane's redacted body or error; freed after the job */
    enum server_audit mode;
    size_t max_body;
    bool sealed;            /* `event` holds the digests and the stored body */
    struct own_secrets own; /* of the current event; borrowed */
    struct str body;        /* original bytes of the current event */
    struct arena *texts;    /* holds the event's texts when `copied` is too small */
    void (*then)(struct exec *x, const struct error *err);
};

/* Commits the intent together with the `extra` ops (≤ 5, copied; for example a new session or a
 * link) in one transaction.  The loop calls `ready`.  err NULL: the token is open and may be sent.
 * Otherwise nothing was written and the call must be refused.  Verdicts of the extra ops are in
 * x->ops[0..n). */
void exec_begin(struct audit *a, struct exec *x, const struct exec_request *what,
                const struct store_op *extra, size_t n_extra,
                void (*ready)(struct exec *x, const struct error *err));
/* Commits the outcome; the spans of `result` must live until `done`.
 *
 * If the store fails and there is a spool, the outcome is written to the spool: it is durable and
 * `done` gets no error.  Of the extra ops, only the undelivered result goes into the spool; the
 * verdicts say so.
 *
 * Without a spool, or if the spool fails too, the audit keeps the outcome in memory and retries it
 * (bounded by the calls in flight).  The outcome is lost only if the process dies first.  `done`
 * gets the error, so that the reply can say that the outcome is not yet durable. */
void exec_end(struct audit *a, struct exec *x, const struct exec_result *result,
              void (*done)(struct exec *x, const struct error *err));
/* Records one event with the params, without waiting for the commit.  The body of the result is not
 * stored.  Everything is copied.  The request itself is sent with exec_for_note(). */
struct exec exec_for_note(void);
void exec_note(struct audit *a, const struct exec_request *what, const struct exec_result *result);
struct exec exec_housekeeping(enum exec_reason reason);
/* Whether the token may be sent to an upstream now.  upstream_send() asserts it. */
bool exec_is_open(const struct exec *x);

/* Executions that a client ran elsewhere and reports by REST (audit/record.c). */
struct reported_execution {
    struct str tool;              /* 1 to AUDIT_TEXT_MAX bytes */
    struct str tool_id;           /* a UUID, or absent */
    struct str arguments, result; /* JSON; absent when not reported */
    struct str error;             /* absent: the execution succeeded */
    int64_t duration_ms, tokens;  /* >= 0 */
};
/* The bytes to store for a body or, if it is not JSON, for a text, that came from elsewhere whole:
 * not cut.  On the write lane, in the `prepare` of a job; valid until the next use. */
struct str audit_redact(struct audit *a, struct str bytes, bool is_json);

struct audit_record_what {
    const struct principal *who;
    const struct session_row *session; /* id, tenant, owner, client_name */
    int64_t at_ms;                     /* time of the session use that this report counts as */
    const struct reported_execution *reported;
    struct own_secrets own; /* of the reporting client; live until `done` */
    size_t n;               /* 1 to AUDIT_REPORTED_MAX, all in one transaction */
    /* Further preconditions (≤ 1, copied).  Nothing is written unless the session belongs to the
     * principal and is live, and these ops succeed. */
    const struct store_op *extra;
    size_t n_extra;
};
#define AUDIT_REPORTED_MAX 100
struct audit_record {
    struct write_job job; /* the caller hands it to the write lane; holds the verdicts */
    void (*done)(struct audit_record *r); /* from the loop */
    void *user;
    struct audit *audit;
    struct principal who;
    struct session_row session;
    struct own_secrets own;
    struct reported_event *events;
    size_t n;
};
/* Allocated in mem.  `what->reported` must live until `done`. */
struct audit_record *audit_record_new(struct audit *a, const struct audit_record_what *what,
                                      struct arena *mem) must_check;

/* Closes as `indeterminate` every open intent of writers that have ended.  Blocking; called at
 * start, before the lanes run, so it numbers the events through the chain directly.  Fails when the
 * chain's key is not the one that sealed the stored events. */
must_check bool audit_close_lost(struct store *store, struct chain *chain, size_t *ret_n,
                                 struct error *err);
/* The same at run time, for writers of other nodes with a lapsed lease.  Called on the write
 * lane. */
must_check bool audit_close_lapsed(struct store *store, struct chain *chain, size_t *ret_n,
                                   struct error *err);

/* Writes the outcomes that an earlier run left in the spool to the store, then removes them from
 * the spool.  Each outcome is written exactly once, even if a drain is interrupted.  Blocking;
 * called at start before audit_close_lost(), so that no known outcome becomes indeterminate.
 * ERR_CONFIG when the spool belongs to another database. */
must_check bool audit_drain_spool(struct store *store, struct chain *chain, struct spool *spool,
                                  size_t *ret_n, struct error *err);

#endif
