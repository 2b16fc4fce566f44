/* SPDX-License-Identifier: Apache-2.0 */
/* Audit: every tool call leaves a durable intent before its first byte goes out and a durable
 * outcome before the last byte of its reply.  This is the only maker of exec tokens, and
 * upstream_send() takes nothing else: nothing executes unaudited.
 *
 * Events are redacted, digested, numbered and chained on the write lane (chain.c is its write
 * hook). */
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
    struct chain *chain;    /* its hook is already in the lanes */
    int64_t writer;         /* our writer number */
    size_t max_body;        /* 16 KiB each way, as stored */
    struct str anchor_file; /* second sink: one JSON line per anchor; absent: none */
    struct spool *spool;    /* borrowed, drained already; NULL: none */
};
struct audit *audit_new(const struct audit_config *config) must_check;
/* After lanes_free(), so that no job of ours is under way any more, and before loop_free().
 * Outcomes that are still not durable are counted in one log line; the next start finds their
 * intents open. */
void audit_free(struct audit *a);
/* Every 10 s while events were written (the audit's own timer), and at a clean stop; `done` is
 * called from the loop once the anchor and its copy are durable, or could not be written.  May be
 * NULL. */
void audit_anchor(struct audit *a, void (*done)(void *arg), void *arg);

/* Texts that a peer chooses are kept to this many bytes, bodies aside. */
#define AUDIT_TEXT_MAX 256
/* Outcomes that wait for the store to come back; with so many exec_begin() refuses.  With a spool
 * it refuses at once for as long as the store does not write, and when that is back they are handed
 * to it before the first new intent. */
#define AUDIT_UNSAVED_MAX 4096
/* Bytes of notes on their way to the store; a note past them is dropped and counted. */
#define AUDIT_NOTES_MAX ((size_t)16 << 20)

/* What an execution is about.  The body must live until exec_begin's `ready` has been called; the
 * other spans and `who` are copied. */
struct exec_what {
    const struct principal *who;
    struct str session_id, transport, carrier, server, method, tool, era;
    struct str body;        /* the params' original bytes */
    enum server_audit mode; /* AUDIT_NONE makes a token without rows */
    int64_t parent;
    struct own_secrets own; /* to be replaced by their names; live as long as the body */
};
struct exec_result {
    struct str outcome;     /* see event_row.outcome */
    struct str error;       /* one sentence, or absent */
    struct str body;        /* the result's original bytes; absent when there is none */
    struct own_secrets own; /* as in exec_what; the error is looked through for them too */
    /* Committed with the outcome (≤ 5, copied; not with a note): verdicts stand in x->ops[0..n).
     * When the commit fails only the outcome itself is tried again. */
    const struct store_op *extra;
    size_t n_extra;
};

enum exec_state { EXEC_UNUSED, EXEC_BEGINNING, EXEC_OPEN, EXEC_ENDING, EXEC_CLOSED, EXEC_REFUSED };
enum exec_kind { EXEC_DURABLE, EXEC_NOTE, EXEC_HOUSEKEEPING };
/* Our own traffic towards upstreams, the only kind that leaves no row. */
enum exec_reason {
    EXEC_PROBE,
    EXEC_INITIALIZE,
    EXEC_PING,
    EXEC_LIST,
    EXEC_CANCEL,
    EXEC_SUBSCRIBE,
    EXEC_CLIENT_RESPONSE
};

/* The token.  Embedded in the call that owns it; must stay in place from exec_begin until `ready`,
 * and from exec_end until `done`.  The fields are audit's but for `user`. */
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
    struct event_row event; /* and its texts right behind it: the write lane fetches both */
    char copied[384];
    size_t n_copied;
    char *redacted; /* made on the write lane when a body or error changes, freed after the job */
    enum server_audit mode;
    bool sealed;            /* digests and stored body stand in `event` */
    struct own_secrets own; /* of the event under way; borrowed */
    struct str body;        /* original bytes of the event under way */
    struct arena *texts;    /* holds the event's texts when `copied` is too small */
    void (*then)(struct exec *x, const struct error *err);
};

/* Commits the intent, together with `extra` ops (≤ 5: a new session, a link …; copied), in one
 * transaction.  `ready` comes from the loop: err NULL ⇒ the token is open and may be sent; else the
 * call must be refused and nothing was written.  Verdicts of the extra ops stand in x->ops[0..n).
 */
void exec_begin(struct audit *a, struct exec *x, const struct exec_what *what,
                const struct store_op *extra, size_t n_extra,
                void (*ready)(struct exec *x, const struct error *err));
/* Commits the outcome; `result` spans must live until `done`.  When the store fails it goes to the
 * spool, where there is one: then it is durable and `done` gets no error; of the extra ops only
 * a result kept for its client goes along, the verdicts say so.  Without, or when that fails as
 * well, the outcome is lost to this process's death only: it is retried by the audit (bounded by
 * the calls in flight) and `done` gets the error so that the reply can say the outcome is not yet
 * durable. */
void exec_end(struct audit *a, struct exec *x, const struct exec_result *result,
              void (*done)(struct exec *x, const struct error *err));
/* Recorded, not awaited: one event with the params (the result's own body is not kept); everything
 * is copied.  The request itself leaves with exec_for_note(). */
struct exec exec_for_note(void);
void exec_note(struct audit *a, const struct exec_what *what, const struct exec_result *result);
struct exec exec_housekeeping(enum exec_reason reason);
/* May this token leave for an upstream now?  Asserted by upstream_send(). */
bool exec_is_open(const struct exec *x);

/* Executions that a client ran elsewhere and reports by REST (audit/record.c). */
struct reported_execution {
    struct str tool;              /* 1 to AUDIT_TEXT_MAX bytes */
    struct str tool_id;           /* a UUID, or absent */
    struct str arguments, result; /* JSON; absent when not reported */
    struct str error;             /* absent: it went well */
    int64_t duration_ms, tokens;  /* >= 0 */
};
struct audit_record_what {
    const struct principal *who;
    const struct session_row *session; /* id, tenant, owner */
    int64_t at_ms;                     /* the use that it is of the session */
    const struct reported_execution *reported;
    struct own_secrets own; /* of the client that reports; live until `done` */
    size_t n;               /* 1 to AUDIT_REPORTED_MAX, committed together */
    /* Required beside (≤ 1, copied): the session must be the principal's and live, these must hold,
     * or nothing is written. */
    const struct store_op *extra;
    size_t n_extra;
};
#define AUDIT_REPORTED_MAX 100
struct audit_record {
    struct write_job job; /* handed to the write lane by the asker; the verdicts stand in it */
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

/* Closes as `indeterminate` every open intent of writers that are gone.  Blocking; at start, before
 * the lanes run, with the chain's own numbering.  Refuses a key that did not seal what is there. */
must_check bool audit_close_lost(struct store *store, struct chain *chain, size_t *ret_n,
                                 struct error *err);
/* The same while we run, for writers of other nodes whose lease has lapsed; on the write lane. */
must_check bool audit_close_lapsed(struct store *store, struct chain *chain, size_t *ret_n,
                                   struct error *err);

/* Writes what an earlier run left in the spool, each outcome once whatever was interrupted when,
 * and takes it away there.  Blocking; at start, before audit_close_lost(), so that nothing that is
 * known becomes indeterminate.  ERR_CONFIG when the spool belongs to another database. */
must_check bool audit_drain_spool(struct store *store, struct chain *chain, struct spool *spool,
                                  size_t *ret_n, struct error *err);

#endif
