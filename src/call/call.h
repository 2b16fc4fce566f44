/* SPDX-License-Identifier: Apache-2.0 */
/* A call is our side of one request to a server.  It owns itself: it lives on the heap with an
 * arena of its own, a copy of the request, and references to session, transport, upstream and
 * catalog.  It commits its intent, sends, receives, and commits its outcome without help.  A
 * tools/call goes from a durable intent to a durable outcome.  A request that only reads is noted
 * when it is over.  A subscription leaves no row.
 *
 * Exchanges attach as listeners: none, one or several.  A listener gets the messages of the server
 * while the call runs, and reads the answer when the call is over.  A call without a listener runs
 * to its end all the same.  It is freed when it is over and the last listener has detached.
 *
 * If no listener is connected to its client when the answer comes, the call stores the result with
 * its outcome (call/undelivered.h), so that the client can ask for it again.
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
 *     SENT ───────▶ on_fail(), call_cancel() ──────────────────┤ │ finish()
 *      │ on_reply()                              call_failed() │ │
 *      ▼                                                       │ │
 *     ENDING ◀─────────────────────────────────────────────────┘ │
 *      │                                                         │
 *      └──────────▶ on_ended(): the outcome is durable ──▶ OVER ◀┘
 *
 * If on_fail() may repeat the call, call_again() takes it back to BEGINNING.  Each attempt has an
 * audit row of its own. */
#ifndef HOLDFAST_CALL_CALL_H
#define HOLDFAST_CALL_CALL_H

#include "audit/audit.h"
#include "base/map.h"
#include "call/undelivered.h"
#include "mcp/translate.h"
#include "session/plan.h"
#include "trace/context.h"
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
    CALL_ENDING,
    CALL_OVER,
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

struct keyring;
struct mcp_method;
struct traces;

struct calls; /* all calls under way, and what they share */
struct calls_config {
    struct loop *loop;
    struct audit *audit;
    struct lanes *lanes;
    struct keyring *keyring;
    struct undelivered *undelivered;
    struct traces *traces;        /* or NULL */
    struct config *const *config; /* the current one */
};
struct calls *calls_new(const struct calls_config *config) must_check;
void calls_free(struct calls *home); /* no call is under way */
unsigned calls_in_flight(const struct calls *home);

/* The receiver of a call's messages and answer.  The owner embeds it and sets `ops` before it
 * attaches.  All functions are called from the loop. */
struct call_listener {
    const struct call_listener_ops *ops;
    struct call *call; /* NULL: not attached */
    struct list node;
};
struct call_listener_ops {
    /* The call is over, see `is_refused`, `err` and `answer`.  The listener may detach now or
     * later. */
    void (*over)(struct call_listener *l);
    void (*progress)(struct call_listener *l, const struct mcp_message *m);
    /* A request or notification of the server about this call.  False: it cannot reach the client.
     * A request goes to the first listener that takes it, a notification to all of them. */
    bool (*message)(struct call_listener *l, const struct mcp_message *m);
    /* False: a reply cannot reach the client now. */
    bool (*is_connected)(const struct call_listener *l);
};

/* A new call.  call_new() copies strings, request and principal, takes references of its own to the
 * counted objects, and takes over `plan`. */
struct call_args {
    enum exec_kind kind; /* EXEC_DURABLE, EXEC_NOTE, EXEC_HOUSEKEEPING */
    const struct mcp_method *method;
    const struct principal *who;
    const struct mcp_message *request;
    struct own_secrets own; /* without `known` */
    enum mcp_era client_era;
    struct str client_version;        /* for the audit row; static */
    struct str client_name;           /* likewise; as the client names itself */
    struct str tool;                  /* the name the upstream uses: a tool, a prompt or a uri */
    const struct js_node *named;      /* the client's own name in the message, if it differs */
    const struct js_node *state_node; /* requestState in params; NULL when absent */
    struct str state_text;            /* … and the server's own part of it */
    struct str header_lines;          /* towards a modern HTTP upstream: Mcp-Param-* */
    struct upstream *up;
    struct catalog *catalog;
    const struct catalog_item *item; /* the tool in `catalog`; NULL: not listed, or not a tool */
    struct session *session;
    struct transport *transport; /* or NULL */
    struct session_plan plan;    /* changes of `session`, stored with the intent */
    /* For a built-in server: the carrier by which the client can keep a session that it joins. */
    struct str carrier, carrier_key;
    int session_named;    /* enum builtin_named: result of looking up the argument session_id */
    bool drop_session_id; /* Holdfast added the argument session_id: the server does not get it */
    bool adds_handle;     /* the result carries the session's handle */
    const struct trace *trace; /* NULL: the request is not traced */
};

struct call {
    struct calls *home;
    struct arena *mem; /* holds this struct too */
    enum call_state state;
    struct list listeners; /* struct call_listener */
    /* As in call_args; all of it is the call's own. */
    enum exec_kind kind;
    const struct mcp_method *method;
    struct principal who;
    struct principal session_owner; /* for changes of the session's own rows */
    struct mcp_message request;
    struct own_secrets own; /* with references to its sets */
    enum mcp_era client_era;
    struct str client_version, client_name, carrier, carrier_key;
    struct str tool;
    const struct js_node *named, *state_node; /* in `request` */
    struct str state_text, header_lines;
    struct upstream *up;
    struct catalog *catalog;
    const struct catalog_item *item;
    struct session *session;
    struct transport *transport;
    struct session_plan plan;
    int session_named;
    bool drop_session_id, adds_handle;
    struct trace trace; /* of the client's request */

    enum mcp_era server_era; /* of the link that it was sent on */
    /* The answer: either a message or an error. */
    bool has_answer;
    struct mcp_message answer;
    struct arena *answer_mem;
    enum call_outcome outcome; /* once it is answered */
    bool is_refused;           /* nothing was written and nothing was sent */
    bool session_over_limit;   /* err is the text for an isError result */
    bool state_lost;
    /* undelivered results: call_result.c */
    struct undelivered_result *undelivered; /* the index expects the result; or NULL */
    bool undelivered_stored;                /* the store has it */
    bool undelivered_given_up;              /* this call stores no (further) result */
    bool is_delivered;                      /* a listener was connected when the call was over */
    /* private */
    struct pending pending;
    int64_t parent;                      /* the intent of the previous attempt; 0: none */
    struct credential_fetch *credential; /* lookup of credential and context values; or NULL */
    bool has_credential;                 /* … which succeeded; else `err` says why not */
    bool uses_session_link;              /* the call uses a link of its session alone */
    struct level_request *level; /* LINKING: waits until the server has accepted a log level */
    struct str cancel_key;
    unsigned attempts;
    int64_t sent_us;           /* of the attempt that was answered; 0: nothing was sent */
    struct trace_context span; /* of that attempt; only with trace.is_recorded */
    size_t n_plan, n_extra;    /* ops of the plan, and all ops beside the intent */
    bool cancelled;            /* cancelled while the intent was being written */
    bool is_announcing;        /* the listeners are being called: the call must not be freed */
    /* Large, and written before they are read: call_new() leaves them uninitialised, except for the
     * codes of the errors. */
    struct error err;       /* without an answer: the reason */
    struct error audit_err; /* the outcome could not be made durable */
    struct link_wait wait;
    struct exec exec;
    struct link_row link_row;
};

struct call *call_new(struct calls *home, const struct call_args *args) must_check;
/* The listener may be over() before this returns. */
void call_start(struct call *c);
void call_attach(struct call *c, struct call_listener *l); /* in any state before OVER */
/* Does nothing if l is not attached.  The last listener frees a call that is over or was never
 * started. */
void call_detach(struct call_listener *l);
/* The client has cancelled: the upstream is notified, and the answer becomes ERR_CANCELLED. */
void call_cancel(struct call *c, struct str reason);
/* The client of this listener no longer wants the answer.  Cancels a call that has no other
 * listener. */
void call_abandon(struct call_listener *l, struct str reason);
/* The call of this transport with this client id (its raw bytes), or NULL. */
struct call *calls_find(struct calls *home, const struct transport *t, struct str client_id,
                        struct arena *mem);

/* How the bodies of calls to this server are stored in a session with this set-up (NULL: none). */
enum server_audit call_audit_mode(const struct session_setup *rules, const struct upstream *up);

/* call_result.c: the answer as the client's era writes it, and what is kept of it. */

/* True for an answer that asks for input in a way that the client's era cannot express. */
bool call_asks_beyond_era(const struct call *c);
struct call_reply {
    struct str id;        /* the client's bytes */
    struct str state;     /* the bound requestState, raw; absent: as the server gave it */
    struct str recording; /* as in mcp_call_result */
    bool is_seen;         /* the client gets this reply, and with it the news of lost state */
    struct arena *mem;    /* for texts of the reply */
};
/* Writes the whole reply.  Needs `has_answer`, and not call_asks_beyond_era(). */
void call_write_reply(struct call *c, const struct call_reply *r, struct buf *out);
/* The result inside of a reply that call_write_reply() wrote. */
struct str call_reply_result(struct str reply, struct str id);

/* A listener lost its client.  If no other listener is connected, the index expects the result, so
 * that the same request waits for it. */
void call_client_lost(struct call *c);
/* The client is back on its stream: the index expects the result no longer. */
void call_client_back(struct call *c);
/* The reply was written, with this result (absent: an error).  is_lost: it cannot reach its client.
 * Returns the id of the undelivered result that was stored; 0: none. */
int64_t call_replied(struct call *c, struct str result, bool is_lost);
/* The request as the index of undelivered results knows it; borrows from the call. */
struct undelivered_ask call_undelivered_ask(const struct call *c);
/* True when the result of this call may be stored as undelivered. */
bool call_keeps_result(const struct call *c);

#endif
