/* SPDX-License-Identifier: Apache-2.0 */
/* An exchange: one client request, from its bytes to its reply.  It owns the reply, lives in the
 * arena of its arrival (outlet.h) and waits for one thing at a time.  steps.c drives it. */
#ifndef HOLDFAST_EXCHANGE_EXCHANGE_H
#define HOLDFAST_EXCHANGE_EXCHANGE_H

#include "call/call.h"
#include "delivery/hub.h"
#include "exchange/outlet.h"
#include "exchange/services.h"
#include "front/front.h"
#include "http/server.h"
#include "io/deadline.h"
#include "mcp/method.h"
#include "profile/plan.h"
#include "session/carrier.h"
#include "session/secrets.h"
#include "session/session.h"
#include "session/keyring.h"
#include "trace/context.h"
#include "upstream/builtin.h"
#include "upstream/upstream.h"

enum step_result {
    STEP_NEXT,  /* go on */
    STEP_WAIT,  /* wait for exchange_resume() */
    STEP_REPLY, /* the reply is decided: skip to the reply step */
    STEP_DONE,  /* finished; the exchange is gone */
};

/* A transport that must be stored or ended before initialize or DELETE is answered. */
struct transport_change {
    struct exchange *x;
    struct write_job job; /* submitted once job.done is set */
    struct store_op op;
    struct transport_row row;
    char id[TRANSPORT_ID_LENGTH + 1]; /* empty: the id is not made yet */
};

struct exchange {
    struct services *sv;
    struct list before_call; /* node in sv->before_call, until the call starts */
    const struct outlet *outlet;
    void *outlet_data;            /* owned by the outlet */
    struct http_request *http;    /* NULL on pipes, in batches and on streams of 2024 */
    const struct http_head *head; /* never NULL */
    struct str body;
    struct arena *mem;
    unsigned step;
    bool running, resumed;
    bool aborted;         /* the client went away */
    bool came_late;       /* it arrived when a stop had begun, and is not served */
    bool cancelled_early; /* cancelled before its call began: it gets no call */
    int64_t began_us;
    /* message */
    struct str server; /* from the path; absent: all servers, or those of a profile */
    struct str profile_name;
    bool by_proxy; /* set only with a profile: a trusted proxy sent the request */
    bool is_2024;  /* the request came on an event stream of 2024 */
    const struct profile_config *profile;    /* in `config`; NULL when the path names no profile */
    const struct profile_tool *profile_tool; /* the profile's own tool that is called; NULL: none */
    struct toolset_change *toolset_change;   /* being stored (toolset_change.c); NULL: none */
    struct profile_context *context;         /* context values in the request; NULL: none */
    struct context_seal *context_seal;       /* … while they are sealed (context.c) */
    struct template_find *template; /* of a session that begins here; NULL: not looked up */
    struct session_secrets *session_secrets; /* all secrets of its session (secrets.c); or NULL */
    bool is_run;         /* a call of "run", now turned into a call of the tool it named */
    struct str endpoint; /* "/mcp/files" */
    struct str verb;
    bool has_message; /* true for a POST */
    struct mcp_message msg;
    struct str id; /* the client's bytes, for errors too; absent when no id could be read */
    enum mcp_era era;
    const struct mcp_version *version; /* spoken by the client */
    const struct mcp_method *method;
    /* identify, transport, route, session */
    struct caller caller;          /* known from the arrival, or after the step `identify` */
    bool is_asked;                 /* admit_ask() was called */
    const struct refusal *refused; /* from the arrival: the front has refused the caller */
    struct str key, channel;       /* from the arrival, like the next two */
    bool channel_resumes;
    struct str path_key;
    struct transport *transport;
    struct session *session;
    bool is_session_given; /* the session came with the arrival: nothing in the request names one */
    bool is_binding_asked; /* whether the client has joined a session was looked up */
    bool is_bound;         /* `session` was found by a binding of its carrier */
    struct principal session_owner; /* of `session`, if it is shared by another owner */
    struct upstream *up;
    struct catalog *catalog;
    struct catalog_want want;
    struct carrier carrier; /* names the session being looked up */
    struct plan plan;       /* set on an endpoint of several servers */
    bool has_plan;
    struct str tool; /* the name its server uses: a tool, a prompt or a uri */
    /* The client's own name in the message; NULL when it is the same. */
    const struct js_node *named;
    const struct catalog_item *item; /* the tool in `catalog`, set by the session step; or NULL */
    const struct builtin
        *builtin;     /* the built-in server called, set by the session step; or NULL */
    bool injects;     /* Holdfast adds the argument session_id to this tool */
    bool adds_handle; /* the result carries the session's handle */
    struct session_plan session_plan; /* changes of `session` to be stored; moves to the call */
    int session_named;     /* enum builtin_named: result of looking up the argument session_id */
    bool drops_session_id; /* Holdfast added the argument session_id: the server does not get it */
    const struct js_node *state_node; /* requestState in params; NULL when absent */
    struct str state_text;            /* … and the server's own part of it */
    struct str param_headers;         /* Mcp-Param-* lines for a 2026-07-28 HTTP server */
    struct call *call; /* NULL before the call step, and for requests that Holdfast answers */
    struct call_listener listener; /* attached to `call` */
    bool streaming;                /* the reply has become an event stream */
    struct stream *stream;         /* … that can be resumed; NULL: a plain one */
    /* The request's memory, once the stream has taken over the request. */
    struct http_request_memory request_memory;
    /* Fires when the answer is slow; on a plain stream, after a long silence. */
    struct deadline slow;
    bool handed_over;      /* a stream owns the request now: the exchange sends no reply */
    struct listen *listen; /* state of subscriptions/listen */
    struct session_catalogs *session_catalogs; /* catalogs of this session's own children */
    struct batch *batch;                       /* NULL unless the body is an array */
    struct unsent_reply *unsent;   /* to store the result if the reply is not sent whole; or NULL */
    struct undelivered_take *take; /* a lookup of an undelivered result; NULL: none */
    struct trace trace;            /* see exchange_read_trace() */
    /* reply */
    int status;
    bool is_error;
    int error_code; /* of a refusal; 0: none */
    struct buf out; /* JSON; empty when the reply has no body */
    struct str headers;
    struct str refusal; /* why the request was refused, for the audit; absent: not refused */
    /* The change of its transport, at initialize and DELETE; otherwise NULL. */
    struct transport_change *change;
    /* exchange_start() does not zero the members below; it sets only those that are read before a
     * step sets them. */
    struct admission admission;
    struct session_query query;
};

void exchange_resume(struct exchange *x); /* the awaited thing has happened */
/* Runs the reply step of an exchange that was made for it (absent.c). */
void exchange_reply(struct exchange *x);
/* arrive.c: releases what x holds, and x itself.  Its reply was written, or it has none. */
void exchange_end(struct exchange *x);
/* x->change, made at the first call. */
struct transport_change *exchange_change(struct exchange *x);

/* decode.c: parses the bytes to message, era and method, or refuses them. */
enum step_result exchange_decode(struct exchange *x);
#define REFUSAL_MAX 1024 /* bytes of a refusal's text that go into the audit */
/* note.c: the audit note about this exchange, and the note about a tools/call that was refused
 * before it began. */
struct exec_request exchange_what(const struct exchange *x);
/* The credential of the request, and the secrets of its session as far as exchange_know_secrets()
 * has found them.  Lives as long as the request. */
struct own_secrets exchange_secrets(const struct exchange *x);
/* WAIT: the note needs the secrets of the session first. */
enum step_result exchange_note_refusal(struct exchange *x);
/* secrets.c: finds the secrets of the session, which records and logs must not show.  Refuses the
 * request while the store does not answer. */
enum step_result exchange_know_secrets(struct exchange *x);
/* The same without a refusal.  False: exchange_resume() will be called.  *ret_ok false: the secrets
 * are not known. */
must_check bool exchange_find_secrets(struct exchange *x, bool *ret_ok);
struct known *exchange_session_secrets(const struct exchange *x); /* borrowed; NULL: none */
void exchange_release_secrets(struct exchange *x);
/* identify.c: finds the principal. */
enum step_result exchange_identify(struct exchange *x);
/* Checks the caller's role and scopes for this call. */
enum step_result exchange_check_scopes(struct exchange *x);
enum step_result exchange_check_role(struct exchange *x); /* the role alone */
/* Why the client is refused when clients must send mcp-client-id; NULL: it is not refused. */
const char *exchange_client_refusal(bool is_required, const struct http_head *head);
/* limit.c: the quotas of tenant and key. */
enum step_result exchange_limit(struct exchange *x);
/* Sends a message before the result, and counts its bytes against the quotas. */
must_check bool exchange_send_message(struct exchange *x, struct str json,
                                      enum outlet_weight weight);
/* In addition, the limits of the set-up of x->session, which has one. */
enum step_result exchange_limit_session(struct exchange *x);
/* Refuses a request that reached its limit after the limit step. */
enum step_result exchange_over_quota(struct exchange *x, const char *text, int64_t retry_s,
                                     struct str headers);
/* process_quota.c: the quota on server processes, for upstreams_new(). */
struct process_quota exchange_process_quota(struct services *sv);
/* session_begin.c: a session that begins with this request, with the template of its profile. */
/* Call it before exchange_begin_session().  WAIT: the template is read, and the step runs again. */
enum step_result exchange_find_template(struct exchange *x);
void exchange_begin_session(struct exchange *x, enum session_origin origin, struct str carrier,
                            struct str key);
/* session_select.c: finds the session of a call. */
enum step_result exchange_find_transport(struct exchange *x);
enum step_result exchange_select_session(struct exchange *x);
/* shared.c: whether the session belongs to the caller, and is not only shared with it. */
bool exchange_owns_session(const struct exchange *x, const struct session *s);
/* Refuses a call in a session by a share that does not permit it. */
enum step_result exchange_refuse_denied(struct exchange *x, enum session_denied denied);
/* Refuses a call in the session of another owner that needs the credentials or context values which
 * that owner has stored with it. */
enum step_result exchange_check_shared(struct exchange *x);
/* The carrier by which the client of this request keeps a session that it has joined; never
 * absent. */
struct carrier exchange_lasting_carrier(const struct exchange *x);
/* The name that the client of this request gives itself; absent: it gives none. */
struct str exchange_client(const struct exchange *x);
/* "name" or "version" of the clientInfo that the client gave; absent: it gave none.  session_begin.c. */
struct str exchange_client_member(const struct exchange *x, const char *name);
/* For requests other than calls: the session of a channel that stays open.  Without such a channel
 * x->session is unchanged. */
enum step_result exchange_select_channel_session(struct exchange *x);
/* For a profile's own tools.  With only_looks no session is created. */
enum step_result exchange_select_profile_session(struct exchange *x, bool only_looks);
/* x->session_plan, ready to be written: the decisions of session_select.c and the rows they
 * need. */
struct session_plan *exchange_plan_session(struct exchange *x);
bool exchange_injects_handles(const struct exchange *x, const struct upstream *up,
                              const struct catalog *catalog);
/* At initialize, when the client sends context values: the session of the transport to be made. */
enum step_result exchange_select_initial_session(struct exchange *x);
/* context.c: the values that a client gives its session. */
enum step_result exchange_read_context(struct exchange *x);
/* Fixes the context of a new session; refuses values that differ from the session's. */
enum step_result exchange_fix_context(struct exchange *x);
/* At initialize: the first adds the session's rows to the batch of x->change, the second checks the
 * result. */
void exchange_store_session(struct exchange *x);
enum step_result exchange_session_stored(struct exchange *x);
/* Refuses the call when the session lacks a value that x->up needs. */
enum step_result exchange_check_context(struct exchange *x);
/* route.c: finds the server of a request. */
enum step_result exchange_route(struct exchange *x);
/* Fills x->plan with every server that this request concerns. */
enum step_result exchange_gather(struct exchange *x);
/* Fills x->catalog with the catalog of x->up.  fresh: waits for a new list if the server has
 * announced a change. */
enum step_result exchange_want_catalog(struct exchange *x, bool fresh);
/* False for servers outside of the caller's scopes or of the profile. */
bool exchange_sees_server(const struct exchange *x, struct str server);
/* gate.c: whether the profile shows this tool to the caller, in lists and for calls.  Needs
 * x->profile. */
bool exchange_profile_shows(const struct exchange *x, struct str server, struct str tool);
/* The toolsets that the caller may enable in the profile, and those in effect now. */
uint64_t exchange_permitted_toolsets(const struct exchange *x);
uint64_t exchange_toolsets(const struct exchange *x);
/* How many edits may be between this name and one that is suggested for it. */
static inline unsigned exchange_near(struct str name)
{
    return name.n >= 4 ? 2 : (unsigned)name.n / 2;
}
/* A call of a tool that the profile does not show: unknown tool, or how to enable its toolset. */
enum step_result exchange_unknown_tool(struct exchange *x);
enum step_result exchange_refuse_tool(struct exchange *x);
/* listener_scope.c: the scope of this caller as a listener; borrows from x. */
struct listener_scope exchange_listener_scope(const struct exchange *x);
uint64_t listener_scope_toolsets(const struct listener_scope *a, const struct profile_config *p);
/* The filter for hub_set_visibility(); its argument is the services. */
hub_may_see_fn listener_may_see;
/* session_rules.c: the set-up of the session (session/setup.h).  Whether it shows this server, this
 * tool; also true when the session is not known yet or has no set-up. */
bool exchange_rules_show_server(const struct exchange *x, struct str server);
bool exchange_rules_show_tool(const struct exchange *x, struct str server, struct str tool);
/* The name of the only profile that the session may use; absent: any. */
struct str exchange_rules_profile(const struct exchange *x);
/* Refuses a call or read that the profile of x->session, which has a set-up, does not show. */
enum step_result exchange_check_profile(struct exchange *x);
/* For the result of x->call: the member of _meta that tells the client that its session, which has
 * a set-up, is recorded completely.  Absent: it is not, or it was told before.  Tells it once: the
 * session remembers. */
struct str exchange_tell_recording(struct exchange *x);
/* pin.c: refuses calls of held tools of a guarded server. */
enum step_result exchange_check_pin(struct exchange *x);
/* The error text for a tool that runs only as a task; ends with NUL. */
struct str exchange_task_text(struct exchange *x, const struct upstream *up, struct str tool);
/* answer.c, lists.c, listen.c, standalone.c: requests that Holdfast answers itself. */
enum step_result exchange_answer(struct exchange *x);
enum step_result exchange_answer_discover(struct exchange *x);
enum step_result exchange_answer_list(struct exchange *x);
enum step_result exchange_answer_listen(struct exchange *x);
enum step_result exchange_answer_stream(struct exchange *x);
void exchange_write_initialized(struct exchange *x);
/* The reason in a notifications/cancelled; never absent. */
struct str exchange_cancel_reason(const struct exchange *x);
void exchange_listen_gone(struct exchange *x);
/* Asks each link with a catalog of its own session; WAIT while they answer. */
enum step_result exchange_gather_session_catalogs(struct exchange *x, enum catalog_kind kind);
/* The catalog of the plan's i-th server for this session, after exchange_gather_session_catalogs();
 * NULL when it is not known. */
struct catalog *exchange_listed_catalog(const struct exchange *x, size_t i);
void exchange_release_session_catalogs(struct exchange *x);
/* The link with a catalog of its own for this session; NULL: none. */
struct link *exchange_session_catalog_link(const struct exchange *x, struct upstream *up,
                                           enum catalog_kind kind);
/* True when lists of this kind can change and the client can be notified. */
bool exchange_announces_changes(const struct exchange *x, enum catalog_kind kind);
/* trace.c: fills x->trace from the request; without an effect after the first time. */
void exchange_read_trace(struct exchange *x);
/* The reply is written: exports the span of the request, if traces are on. */
void exchange_end_trace(struct exchange *x);
/* redeliver.c: results that did not reach their client. */
enum step_result exchange_redeliver(struct exchange *x);
void exchange_undelivered_after_reply(struct exchange *x); /* the reply is written, not yet sent */
void exchange_undelivered_on_resume(struct exchange *x);   /* the client has resumed its stream */
void exchange_undelivered_on_disconnect(struct exchange *x); /* the client disconnected */
/* Called when the connection has not sent the whole reply yet.  Returns the receipt that stores the
 * result if the reply is never sent; or NULL. */
struct http_receipt *exchange_unsent(struct exchange *x);
/* forward.c: makes the call and attaches to it. */
enum step_result exchange_forward(struct exchange *x);
void exchange_await_slow(struct exchange *x); /* starts the timer for outlet.slow() */
/* server_messages.c: messages of a server while a call runs.  False: the message cannot reach the client. */
bool exchange_pass_message(struct exchange *x, const struct mcp_message *m);
/* Gives a question of the server to `say`, which sends it to the client of this call. */
bool exchange_ask(struct services *sv, struct call *c, const struct mcp_message *m,
                  bool (*say)(void *arg, struct str json), void *arg);
/* absent.c: the client has left.  If x waits for a call, it ends; the call goes on. */
void exchange_leave(struct exchange *x);
#define EXCHANGE_SLOW_MS 200
#define EXCHANGE_NAME_MAX 2048 /* bytes in the name of a tool or prompt, or in a uri */
#define EXCHANGE_QUIET_MS 15000
/* state.c: requestState, bound to its owner. */
struct str exchange_bind_state(struct exchange *x, struct str server, struct str name,
                               struct str state);
enum step_result exchange_check_state(struct exchange *x);
/* reply.c */
enum step_result exchange_refuse(struct exchange *x, int status, int code, const char *fmt, ...)
    printf_like(4, 5);
enum step_result exchange_refuse_data(struct exchange *x, int status, int code, struct str data,
                                      const char *fmt, ...) printf_like(5, 6);
/* Refuses with the status and code that the error table has for err. */
enum step_result exchange_fail(struct exchange *x, const struct error *err);
/* A result with isError, which the model reads. */
enum step_result exchange_tool_error(struct exchange *x, const char *text);
/* The same for a tenant at its limit of sessions. */
enum step_result exchange_over_session_limit(struct exchange *x);
enum step_result exchange_accept(struct exchange *x); /* 202 */
/* Begins `{"jsonrpc":"2.0","id":…,"result":` in x->out.  The caller writes the result, then calls
 * exchange_end_result(). */
struct buf *exchange_begin_result(struct exchange *x);
enum step_result exchange_end_result(struct exchange *x);
void exchange_write_call_reply(struct exchange *x);
void exchange_send_progress(struct exchange *x, const struct mcp_message *m);
/* headers.c: arguments mirrored in headers (x-mcp-header). */
enum step_result exchange_check_params(struct exchange *x);

#endif
