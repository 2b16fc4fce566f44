/* SPDX-License-Identifier: Apache-2.0 */
/* An exchange: one client request from its bytes to its reply.  It owns the reply and lives in the
 * HTTP request's arena; what it waits for is always one thing.  steps.c drives it. */
#ifndef HOLDFAST_EXCHANGE_EXCHANGE_H
#define HOLDFAST_EXCHANGE_EXCHANGE_H

#include "call/call.h"
#include "delivery/hub.h"
#include "exchange/outlet.h"
#include "http/server.h"
#include "identity/identity.h"
#include "identity/logins.h"
#include "identity/quota.h"
#include "io/deadline.h"
#include "mcp/method.h"
#include "route/plan.h"
#include "session/carrier.h"
#include "session/session.h"
#include "session/keyring.h"
#include "upstream/builtin.h"
#include "upstream/upstream.h"

/* What exchanges work with; one per process, owned by the gateway. */
struct services {
    struct loop *loop;
    struct config *config; /* the current one; an exchange keeps the one it began with */
    struct lanes *lanes;
    struct str database; /* which, for people */
    struct identity *identity;
    struct logins *logins;
    struct quotas *quotas;
    struct sessions *sessions;
    struct session_gauges *gauges;
    struct registry *registry;
    struct docs *docs;
    struct keyring *keyring;
    struct upstreams *upstreams;
    struct pins *pins;
    struct audit *audit;
    struct calls *calls;
    struct undelivered *undelivered;
    struct streams *streams;
    struct hub *hub;
    struct deadline_class slow_calls; /* after which an answer takes long */
    struct pipes *pipes;
    struct sse2024 *sse2024;
    struct deadline_class quiet; /* after which a stream shows that it is alive */
    struct hmac_key *state_key;
    struct hmac_key *context_key; /* of profile_context.h */
    bool draining;
    unsigned exchanges;      /* under way */
    struct list before_call; /* struct exchange: those whose call has not started */
};

enum step_result {
    STEP_NEXT,  /* go on */
    STEP_WAIT,  /* exchange_resume() will be called */
    STEP_REPLY, /* the reply is decided: skip to it */
    STEP_DONE,  /* finished; the exchange is gone */
};

/* What must be stored before initialize or DELETE is answered. */
struct transport_change {
    struct exchange *x;
    struct write_job job; /* under way or done once job.done is set */
    struct store_op op;
    struct transport_row row;
    char id[TRANSPORT_ID_LENGTH + 1]; /* empty: one is still to be made */
};

struct exchange {
    struct services *sv;
    struct list before_call; /* in sv, until its call starts */
    const struct outlet *outlet;
    void *outlet_data;            /* owned by the outlet */
    struct http_request *http;    /* NULL on a pipe */
    const struct http_head *head; /* never NULL */
    struct str body;
    struct arena *mem;
    struct config *config;
    unsigned step;
    bool running, resumed;
    bool aborted;  /* the client went away */
    bool unwanted; /* cancelled before it was a call: it never becomes one */
    int64_t began_us;
    /* message */
    struct str server; /* from the path; absent: all of them, or those of a profile */
    struct str profile_name;
    bool by_proxy;                           /* with a profile: a trusted proxy sent it */
    bool is_2024;                            /* on an event stream of 2024 */
    const struct profile_config *profile;    /* in `config`; NULL: the path names none */
    const struct profile_tool *profile_tool; /* it is for one that the profile has of its own */
    struct toolset_change *toolset_change;   /* it is being stored (toolsets.c) */
    struct profile_context *context;         /* what it tells its session; NULL: nothing */
    struct context_seal *context_seal;       /* … being sealed (context.c) */
    bool is_run;         /* it was one, and has become a call of the tool that it named */
    struct str endpoint; /* "/mcp/files" */
    struct str verb;
    bool has_message; /* a POST */
    struct mcp_message msg;
    struct str id; /* the client's bytes, for errors too; absent: none could be made out */
    enum mcp_era era;
    const struct mcp_version *version; /* what the client speaks */
    const struct mcp_method *method;
    /* identify, transport, route, session */
    struct principal who;
    bool is_known;   /* `who` came with the arrival, or was found out */
    bool is_asked;   /* … and is being found out */
    bool is_limited; /* `use` counts */
    struct quota_use use;
    struct str key, channel; /* of the arrival, like the next two */
    bool channel_resumes;
    struct str path_key;
    struct transport *transport;
    struct session *session;
    struct upstream *up;
    struct catalog *catalog;
    struct catalog_want want;
    struct carrier carrier; /* the one being looked up */
    struct plan plan;       /* on the endpoint of all servers */
    bool has_plan;
    struct str tool;                 /* as its server calls it: a tool, a prompt, a uri */
    const struct js_node *named;     /* where the client's own name for it stands; NULL: the same */
    const struct catalog_item *item; /* the tool in `catalog`, from the session step on; or NULL */
    const struct builtin
        *builtin;      /* it is for one of our own servers, from there on too; or NULL */
    bool injects;      /* this request gets the handle treatment */
    bool tells_handle; /* its result carries the handle */
    struct session_plan session_plan; /* what the request changes of `session`; the call's later */
    int session_named;                /* enum builtin_named: what became of its argument session_id */
    bool drops_session_id;            /* the argument is ours: the server does not get it */
    const struct js_node *state_node; /* requestState in params; NULL: none */
    struct str state_text;            /* … and what the server itself had said */
    struct str param_headers;         /* Mcp-Param-* lines towards a 2026-07-28 HTTP server */
    bool has_call;
    bool streaming;                            /* the reply has become an event stream */
    struct stream *stream;                     /* … that can be resumed; NULL: one that cannot */
    struct http_request_memory request_memory; /* after the stream took over the request */
    struct deadline slow;  /* the answer takes long; on a plain stream: nothing was said for long */
    bool handed_over;      /* a stream owns the request now: no reply of ours */
    struct listen *listen; /* subscriptions/listen */
    struct session_catalogs *session_catalogs; /* of this session's own children */
    struct batch *batch;                       /* NULL unless the body is an array */
    struct undelivered_ask *unsent; /* to keep its result, should its last bytes not be sent */
    struct undelivered_take *take;  /* an undelivered result is looked for; NULL: none */
    /* reply */
    int status;
    bool is_error;
    struct buf out; /* JSON; empty: no body */
    struct str headers;
    struct str refusal;              /* why it was refused, should that go on record; absent: not */
    struct transport_change *change; /* a transport begins or ends; NULL for nearly all */
    /* From here on exchange_start() writes only what is read before it is set. */
    struct identify identify;
    struct session_query query;
    struct call call;
};

void exchange_resume(struct exchange *x); /* what it waited for has happened */
/* x->change, made by the first who asks. */
struct transport_change *exchange_change(struct exchange *x);

/* decode.c: bytes to message, era and method; the ladder of refusals. */
enum step_result exchange_decode(struct exchange *x);
#define REFUSAL_MAX 1024 /* bytes of its reason that go on record */
/* note.c: what a note about this exchange says, and that of a tools/call refused before it began.
 */
struct exec_what exchange_what(const struct exchange *x);
/* The credential that the request came with.  Lives as long as the request. */
struct own_secrets exchange_secrets(const struct exchange *x);
void exchange_note_refusal(struct exchange *x);
/* identify.c: who is calling. */
enum step_result exchange_identify(struct exchange *x);
/* What role and scopes of the caller leave of a call. */
enum step_result exchange_check_scopes(struct exchange *x);
enum step_result exchange_check_role(struct exchange *x); /* of its role alone */
/* Why this client is not served, where every client has to name itself; NULL: it is. */
const char *exchange_client_refusal(bool is_required, const struct http_head *head);
/* limit.c: what its tenant and its key may use. */
enum step_result exchange_limit(struct exchange *x);
/* A message before the result. */
must_check bool exchange_say(struct exchange *x, struct str json, enum outlet_weight weight);
/* The limit was found to be reached later on. */
enum step_result exchange_over_quota(struct exchange *x, const char *text, int64_t retry_s,
                                     struct str headers);
void exchange_count_reply(struct exchange *x);
/* process_quota.c: the quota on server processes, for upstreams_new(). */
struct process_quota exchange_process_quota(struct services *sv);
/* session_select.c: which session a call belongs to. */
enum step_result exchange_find_transport(struct exchange *x);
enum step_result exchange_select_session(struct exchange *x);
/* For what is no call: the session of a channel that stays; none elsewhere. */
enum step_result exchange_select_channel_session(struct exchange *x);
/* For tools that a profile has of its own: one that only looks makes none. */
enum step_result exchange_select_profile_session(struct exchange *x, bool only_looks);
/* x->session_plan, ready to be written: what session_select.c decided, and what its rows need. */
struct session_plan *exchange_plan_session(struct exchange *x);
bool exchange_injects_handles(const struct exchange *x, const struct upstream *up,
                              const struct catalog *catalog);
/* At initialize, where the client has something to tell: the session that its transport will have.
 */
enum step_result exchange_select_initial_session(struct exchange *x);
/* context.c: what a client tells its session. */
enum step_result exchange_read_context(struct exchange *x);
/* The session has it, or is refused another. */
enum step_result exchange_fix_context(struct exchange *x);
/* At initialize: the session's rows go into the batch of x->change; and what became of them. */
void exchange_store_session(struct exchange *x);
enum step_result exchange_session_stored(struct exchange *x);
/* Has the session what x->up, a server that takes some of it, needs? */
enum step_result exchange_check_context(struct exchange *x);
/* route.c: which server it is for. */
enum step_result exchange_route(struct exchange *x);
/* Every server that counts for it, in x->plan. */
enum step_result exchange_gather(struct exchange *x);
/* What x->up offers, in x->catalog; fresh: a list that it says has changed will not do. */
enum step_result exchange_want_catalog(struct exchange *x, bool fresh);
/* What a scope or a profile leaves out is not there. */
bool exchange_sees_server(const struct exchange *x, struct str server);
/* gate.c: what a profile shows this caller, for lists and calls alike.  Not asked without one. */
bool exchange_profile_shows(const struct exchange *x, struct str server, struct str tool);
/* The toolsets that this caller may have there, and those that count right now. */
uint64_t exchange_permitted_toolsets(const struct exchange *x);
uint64_t exchange_toolsets(const struct exchange *x);
/* A call of a tool that the profile does not show: as if there were none, or how to enable it. */
enum step_result exchange_refuse_tool(struct exchange *x);
/* listener_scope.c: the scope of this caller as a listener; borrows from x. */
struct listener_scope exchange_listener_scope(const struct exchange *x);
uint64_t listener_scope_toolsets(const struct listener_scope *a, const struct profile_config *p);
/* The filter for hub_set_visibility(); its argument is the services. */
hub_may_see_fn listener_may_see;
/* pin.c: may a tool of a guarded server be called? */
enum step_result exchange_check_pin(struct exchange *x);
/* What the caller of a tool that runs only as a task is told; ends with NUL. */
struct str exchange_task_text(struct exchange *x, const struct upstream *up, struct str tool);
/* answer.c, lists.c, listen.c, standalone.c: what is answered here. */
enum step_result exchange_answer(struct exchange *x);
enum step_result exchange_answer_discover(struct exchange *x);
enum step_result exchange_answer_list(struct exchange *x);
enum step_result exchange_answer_listen(struct exchange *x);
enum step_result exchange_answer_stream(struct exchange *x);
void exchange_write_initialized(struct exchange *x);
/* Why its notifications/cancelled says the request is wanted no more; never absent. */
struct str exchange_cancel_reason(const struct exchange *x);
void exchange_listen_gone(struct exchange *x);
/* Asks those links whose session has lists of its own; WAIT while they answer. */
enum step_result exchange_gather_session_catalogs(struct exchange *x, enum catalog_kind kind);
/* What the i-th server of the plan offers this session, once that is done; NULL: nobody knows. */
struct catalog *exchange_listed_catalog(const struct exchange *x, size_t i);
void exchange_release_session_catalogs(struct exchange *x);
/* The link on which this session has a list of its own; NULL: it has none. */
struct link *exchange_session_catalog_link(const struct exchange *x, struct upstream *up,
                                           enum catalog_kind kind);
/* Whether its lists of this kind can change, and it can hear of it. */
bool exchange_tells_changes(const struct exchange *x, enum catalog_kind kind);
/* redeliver.c: results whose client was gone.  The first three are steps of the call's way. */
enum step_result exchange_redeliver(struct exchange *x);
void exchange_undelivered_on_answer(struct exchange *x);   /* before the outcome is committed */
void exchange_undelivered_after_reply(struct exchange *x); /* the reply is written, but not sent */
void exchange_undelivered_on_resume(struct exchange *x);   /* the client has resumed its stream */
void exchange_undelivered_on_disconnect(struct exchange *x); /* the client went away */
/* The reply was handed to the connection, which has not sent all of it: who keeps it if it never
 * does, or NULL. */
struct http_receipt *exchange_unsent(struct exchange *x);
/* forward.c */
enum step_result exchange_forward(struct exchange *x);
void exchange_await_slow(struct exchange *x); /* the outlet hears when it takes long */
/* tell.c: what a server says while a call runs. */
bool exchange_tell(struct call *c, const struct mcp_message *m);
#define EXCHANGE_SLOW_MS 200
#define EXCHANGE_NAME_MAX 2048 /* bytes of a tool, a prompt or a uri that a call names */
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
/* By the error table: for our own refusals. */
enum step_result exchange_fail(struct exchange *x, const struct error *err);
/* A result with isError: what a model reads. */
enum step_result exchange_tool_error(struct exchange *x, const char *text);
/* The same for a tenant that has as many sessions as it may: the seed's text, then what to do. */
enum step_result exchange_over_session_limit(struct exchange *x);
enum step_result exchange_accept(struct exchange *x); /* 202 */
/* `{"jsonrpc":"2.0","id":…,"result":` begun in x->out; the caller writes the result, then
 * exchange_end_result. */
struct buf *exchange_begin_result(struct exchange *x);
enum step_result exchange_end_result(struct exchange *x);
void exchange_write_call_reply(struct exchange *x);
void exchange_send_progress(struct call *c, const struct mcp_message *m);
/* headers.c: arguments mirrored in headers (x-mcp-header). */
enum step_result exchange_check_params(struct exchange *x);

#endif
