/* SPDX-License-Identifier: Apache-2.0 */
/* A call is our side of one request to a server.  A tools/call goes from a durable intent to a
 * durable outcome.  A request that only reads is noted when it is over.  A subscription leaves no
 * row.  The call lives in the memory of its exchange, but does not end with it: if a legacy client
 * disconnects, the call goes on.
 *
 *     NEW
 *      │ call_start()
 *      ▼
 *     BEGINNING ──▶ begun(): the store refused the intent ──▶ REFUSED
 *      │    │                                                    │
 *      │    └─────▶ begun(): cancelled, or too many sessions ──┐ │
 *      │ begun(): the intent is durable                        │ │
 *      ▼                                                       │ │
 *     LINKING ────▶ on_link() with an error, call_cancel() ────┤ │
 *      │ call_send()                                           │ │
 *      ▼                                                       │ │
 *     SENT ───────▶ on_fail(), call_cancel() ──────────────────┤ │
 *      │ on_reply()                              call_failed() │ │ call_commit_outcome()
 *      ▼                                                       │ │
 *     ANSWERED ◀───────────────────────────────────────────────┘ │
 *      │ call_commit_outcome()                                   │
 *      ▼                                                         │
 *     ENDING ─────▶ on_ended(): the outcome is durable ──▶ DONE ◀┘
 *
 * If on_fail() may repeat the call, call_again() takes it back to BEGINNING.  Each attempt has an
 * audit row of its own. */
#ifndef HOLDFAST_CALL_CALL_H
#define HOLDFAST_CALL_CALL_H

#include "audit/audit.h"
#include "base/map.h"
#include "bridge/bridge.h"
#include "call/undelivered.h"
#include "session/plan.h"
#include "upstream/upstream.h"

/* Refuses a method that 2026-07-28 does not have.  The era of a server may be known only when its
 * link is open. */
#define CALL_NOT_TRANSLATED                                                                        \
    "This server speaks 2026-07-28, whose subscriptions Holdfast does not translate for older "    \
    "clients yet; use a 2026-07-28 client"

enum call_state {
    CALL_NEW,
    CALL_BEGINNING,
    CALL_LINKING,
    CALL_SENT,
    CALL_ANSWERED,
    CALL_ENDING,
    CALL_DONE,
    CALL_REFUSED, /* nothing was written and nothing was sent */
};

/* The outcome, as named in the audit and in metrics. */
enum call_outcome {
    OUTCOME_OK,
    OUTCOME_TOOL_ERROR, /* a result that says isError */
    OUTCOME_ERROR,
    OUTCOME_TIMEOUT,
    OUTCOME_CANCELLED,
    OUTCOME_REFUSED,
    OUTCOME_UPSTREAM_LOST,
};
#define OUTCOME_COUNT (OUTCOME_UPSTREAM_LOST + 1)
struct str call_outcome_name(enum call_outcome outcome);

struct calls; /* calls in flight, by (transport, client's id), for cancellation */
struct keyring;
struct calls *calls_new(struct loop *loop, struct audit *audit, struct lanes *lanes,
                        struct keyring *keyring) must_check;
void calls_free(struct calls *c);
unsigned calls_in_flight(const struct calls *c);

struct call {
    struct calls *home;
    enum call_state state;
    struct arena *mem; /* borrowed: the exchange's */
    /* Set by the caller before call_start(); the call owns the references. */
    const struct principal *who;
    const struct mcp_message *request;
    struct own_secrets own; /* the call owns `known`: the secrets of its link */
    enum mcp_era client_era;
    enum mcp_era server_era;          /* of the link that it was sent on */
    struct str client_version;        /* for the audit row */
    enum exec_kind kind;              /* EXEC_DURABLE, EXEC_NOTE, EXEC_HOUSEKEEPING */
    struct str tool;                  /* the name the upstream uses: a tool, a prompt or a uri */
    const struct js_node *named;      /* the client's own name in the message, if it differs */
    const struct js_node *state_node; /* requestState in params; NULL when absent */
    struct str state_text;            /* … and the server's own part of it */
    struct upstream *up;
    struct catalog *catalog;
    const struct catalog_item *item; /* the tool in `catalog`; NULL: not listed, or not a tool */
    struct session *session;
    struct transport *transport; /* or NULL */
    struct session_plan plan;    /* changes of `session`, stored with the intent */
    int session_named; /* enum builtin_named: result of looking up the argument session_id */
    bool drop_session_id;
    struct str header_lines; /* towards a modern HTTP upstream: Mcp-Param-* */
    /* Called from the loop.  on_answer: the state is ANSWERED or REFUSED.  on_outcome_durable: the
     * state is DONE; if the store failed, audit_err says so. */
    void (*on_answer)(struct call *c);
    void (*on_outcome_durable)(struct call *c);
    void (*on_progress)(struct call *c, const struct mcp_message *m); /* may be NULL */
    /* A request or notification of the server about this call; false: it cannot reach the
     * client. */
    bool (*on_message)(struct call *c, const struct mcp_message *m); /* may be NULL */
    void *user;
    /* The answer: either a message or an error. */
    struct mcp_message answer;
    struct arena *answer_mem;
    bool has_answer;
    enum call_outcome outcome; /* from ANSWERED on */
    bool session_over_limit;   /* err is the text for an isError result */
    /* Set before call_commit_outcome(): the sealed result is stored with the outcome. */
    struct undelivered_result *undelivered;
    bool undelivered_stored;   /* the store has it */
    bool undelivered_given_up; /* this call stores no undelivered result */
    bool state_lost;
    /* private */
    struct pending pending;
    int64_t parent;                      /* the intent of the previous attempt; 0: none */
    struct credential_fetch *credential; /* lookup of credential and context values; or NULL */
    bool has_credential;                 /* … which succeeded; else `err` says why not */
    bool goes_alone;                     /* the call uses a link of its session alone */
    struct level_news *level; /* LINKING: waits until the server has accepted a log level */
    struct str cancel_key;
    unsigned attempts;
    int64_t sent_us;        /* of the attempt that was answered; 0: nothing was sent */
    size_t n_plan, n_extra; /* ops of the plan, and all ops beside the intent */
    bool cancelled;         /* cancelled while the intent was being written */
    /* Large, and written before they are read: call_init() leaves them uninitialised, except for
     * the codes of the errors.  A call that waits for the disk should not push others out of the
     * CPU cache. */
    struct error err;       /* without an answer: the reason */
    struct error audit_err; /* the outcome could not be made durable */
    struct link_wait wait;
    struct exec exec;
    struct link_row link_row;
};

void call_init(struct call *c);

void call_start(struct calls *home, struct call *c);
/* Commits the outcome of an answered call, then calls on_outcome_durable().  A refused call has
 * nothing to commit: on_outcome_durable() is called before this returns. */
void call_commit_outcome(struct call *c);
/* The client has cancelled: the upstream is notified, and the answer becomes ERR_CANCELLED. */
void call_cancel(struct call *c, struct str reason);
/* The call of this transport with this client id (its raw bytes), or NULL. */
struct call *calls_find(struct calls *home, const struct transport *t, struct str client_id,
                        struct arena *mem);
void call_release(struct call *c); /* drops references; only in CALL_NEW, DONE */

#endif
