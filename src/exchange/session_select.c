/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the session of a call.  Carriers in order: the tool argument session_id (built-ins and
 * injected handles) → the handle in header or query → the session that the client has joined → the
 * session linked to the transport → with carriers.client_ids any other value in header or query →
 * _meta keys → headers and client id → derived (owner, client, 30 minutes idle).  The transport's
 * first call links the transport.
 *
 * A client that has joined a session keeps it by the binding of its carrier: of its transport, or of
 * what names its session otherwise.  A transport is never linked to such a session, nor to a session
 * of another owner, because the link would outlive the share. */
#include "exchange/exchange.h"

#include "base/clock.h"
#include "base/log.h"
#include "identity/connection.h"
#include "session/profile_context.h"
#include "session/token.h"

#define NAME_LOGGED 128 /* bytes */
#define SHORT_MAC 16    /* bytes that distinguish contexts */

static void on_query(struct session_query *q)
{
    exchange_resume(container_of(q, struct exchange, query));
}

/* Starts a lookup.  NEXT: the result is in x->query.  WAIT: it will come. */
static enum step_result ask(struct exchange *x, enum session_by by, struct str carrier,
                            struct str name)
{
    struct session_query *q = &x->query;

    session_query_init(q);
    q->by = by;
    q->who = &x->caller.who;
    q->carrier = carrier;
    q->name = name;
    bool is_client_id = by == BY_KEY && str_eq(carrier, STR(CARRIER_CLIENT_ID));
    q->or_handle = is_client_id || (by == BY_KEY && str_starts(carrier, STR("meta:")));
    q->former = is_client_id ? x->caller.config : NULL;
    q->done = on_query;
    return session_find(x->sv->sessions, q) ? STEP_NEXT : STEP_WAIT;
}

static enum step_result not_found(struct exchange *x)
{
    return exchange_refuse(x, 404, -32000, "Session not found or expired");
}

static enum step_result take_transport(struct exchange *x);

/* Not the id of a transport.  It may be the name that a client gave its session by REST. */
static enum step_result try_handle(struct exchange *x)
{
    struct str id = x->query.name;

    transport_unref(x->transport);
    session_unref(x->session);
    x->transport = NULL;
    x->session = NULL;
    return ask(x, BY_HANDLE, STR_NONE, id) == STEP_WAIT ? STEP_WAIT : take_transport(x);
}

static enum step_result take_transport(struct exchange *x)
{
    if (!x->query.ok)
        return exchange_fail(x, &x->query.job.err);
    x->transport = x->query.transport;
    x->session = x->query.session;
    if (x->query.is_linked)
        hub_linked(x->sv->hub, x->transport);
    /* An id works only on the endpoint that issued it. */
    bool found = x->query.by == BY_TRANSPORT
                     ? x->transport && str_eq(x->transport->endpoint, x->endpoint)
                     : x->session != NULL;
    if (!found && !x->key.p && x->query.by == BY_TRANSPORT)
        return try_handle(x);
    if (!found && !x->key.p)
        return not_found(x);
    if (!found) { /* then the key is an ordinary name */
        transport_unref(x->transport);
        session_unref(x->session);
        x->transport = NULL;
        x->session = NULL;
    }
    if (x->transport) {
        x->version = x->transport->version;
        transport_used(x->transport);
    }
    return STEP_NEXT;
}

/* The transport came with the arrival.  Modern requests and initialize do not use it. */
static enum step_result transport_from_arrival(struct exchange *x)
{
    if (!mcp_era(x->era)->is_stateful || x->method->service == SERVE_INITIALIZE) {
        transport_unref(x->transport);
        x->transport = NULL;
        return STEP_NEXT;
    }
    x->version = x->transport->version;
    transport_used(x->transport);
    return STEP_NEXT;
}

enum step_result exchange_find_transport(struct exchange *x)
{
    struct str id = STR_NONE;

    if (x->query.done) /* resumed: the lookup is done */
        return take_transport(x);
    if (x->transport)
        return transport_from_arrival(x);
    if (!mcp_era(x->era)->is_stateful || x->method->service == SERVE_INITIALIZE)
        return STEP_NEXT;
    if (!carrier_transport_id(x->head, x->mem, &id))
        return exchange_refuse(
            x, 400, -32600,
            "Mcp-Session-Id and ?session_id= are given more than once or differ; send one");
    if (x->key.p && !token_looks_like_transport_id(id))
        return STEP_NEXT; /* the key is a name, not one of our ids */
    if (!id.p)
        return x->has_message ? STEP_NEXT
                              : exchange_refuse(x, 400, -32600,
                                                "%.*s is about a session; send its Mcp-Session-Id",
                                                STR_ARG(x->verb));
    if (x->caller.config->client_ids && x->has_message && !token_looks_like_transport_id(id) &&
        !token_looks_like_handle(id)) {
        x->key = carrier_name(id, x->mem); /* the client chose it */
        return STEP_NEXT;
    }
    log_debug("request names a session", LS("session_id", id));
    if (ask(x, token_looks_like_handle(id) ? BY_HANDLE : BY_TRANSPORT, STR_NONE, id) == STEP_WAIT)
        return STEP_WAIT;
    return take_transport(x);
}

/* True when only an argument can name the session of this request.  Where the session is given,
 * such an argument is dropped. */
static bool carries_nothing(const struct exchange *x)
{
    if (unlikely(x->is_session_given))
        return true;
    return !x->transport && !x->session && !x->channel.p && !x->key.p &&
           !carrier_in_meta(x->caller.config, &x->msg, x->mem).name.p &&
           !carrier_in_headers(x->caller.config, x->head, x->mem).name.p;
}

/* Whether Holdfast adds the argument session_id to the server's tools: for a legacy server with a
 * session per caller, if the request cannot name a session otherwise.  On a dynamic profile for any
 * server except built-ins.  Depends on the request alone. */
bool exchange_injects_handles(const struct exchange *x, const struct upstream *up,
                              const struct catalog *catalog)
{
    const struct server_config *s = upstream_config(up);

    if (x->profile && x->profile->mode == PROFILE_DYNAMIC && s->kind != SERVER_BUILTIN)
        return carries_nothing(x);
    if (s->kind == SERVER_BUILTIN || s->share != SHARE_SESSION ||
        !mcp_era(catalog->era)->is_stateful || s->handles == HANDLES_NEVER)
        return false;
    if (s->handles == HANDLES_ALWAYS)
        return true;
    return carries_nothing(x);
}

/* A legacy client gives its name only once, so its transport keeps it. */
struct str exchange_client(const struct exchange *x)
{
    struct transport *t = x->transport;

    if (!t || mcp_era(x->era)->has_envelope)
        return exchange_client_member(x, "name");
    if (!t->client.p) {
        struct str name = str_cut(exchange_client_member(x, "name"), SESSION_CLIENT_NAME_MAX);
        const char *kept = t->initialize_params.p;
        bool is_kept = name.p >= kept && name.p < kept + t->initialize_params.n;
        t->client = is_kept ? name : arena_dup(t->mem, name.p ? name : STR(""));
    }
    return t->client.n ? t->client : STR_NONE;
}

/* The request names a session that may be provisional or not counted.  Then the call makes it
 * durable and counted. */
static void promote_session(struct exchange *x)
{
    x->session_plan.promotes = x->session->provisional || !x->session->counted;
}

static enum step_result session_from_any(struct exchange *x);

/* The argument names one of our sessions.  Otherwise the call fails with advice, unless a built-in
 * answers such names itself. */
static enum step_result session_from_argument(struct exchange *x, struct str handle)
{
    if (x->query.by != BY_HANDLE || !str_eq(x->query.name, handle) || !x->query.done) {
        session_unref(x->session);
        x->session = NULL;
        if (ask(x, BY_HANDLE, STR_NONE, handle) == STEP_WAIT)
            return STEP_WAIT;
    }
    if (!x->query.ok)
        return exchange_fail(x, &x->query.job.err);
    if (x->query.denied)
        return exchange_refuse_denied(x, x->query.denied);
    if (!x->query.session && x->builtin && x->builtin->answers_names) {
        x->session_named = x->query.is_over ? NAMED_OVER : NAMED_UNKNOWN;
        return session_from_any(x);
    }
    if (!x->query.session)
        return exchange_tool_error(x,
                                   "Session not found or expired. Call again without session_id to "
                                   "begin a new one.");
    x->session = x->query.session;
    x->session_named = NAMED_FOUND;
    x->drops_session_id = x->injects;
    promote_session(x);
    x->adds_handle = x->injects;
    return STEP_NEXT;
}

/* Links the session to the transport, or binds it to the channel. */
static void bind_channel(struct exchange *x)
{
    if (x->transport && exchange_owns_session(x, x->session) &&
        x->transport->session != x->session) {
        transport_link(x->transport, x->session);
        hub_linked(x->sv->hub, x->transport);
    }
    if (x->outlet->attends)
        x->outlet->attends(x, x->session->link_key);
}

/* While the template is read, another request may begin the session. */
static enum step_result ask_again(struct exchange *x, enum step_result result)
{
    session_unref(x->query.session);
    x->query.session = NULL;
    x->query.name = STR_NONE;
    return result;
}

/* Finds the session with that key, or creates it. */
static enum step_result session_from_key(struct exchange *x, enum session_origin origin)
{
    bool asked = x->query.by == BY_KEY && x->query.done && str_eq(x->query.name, x->carrier.name) &&
                 str_eq(x->query.carrier, x->carrier.label);
    if (!asked && ask(x, BY_KEY, x->carrier.label, x->carrier.name) == STEP_WAIT)
        return STEP_WAIT;
    if (!x->query.ok)
        return exchange_fail(x, &x->query.job.err);
    if (x->query.denied) /* the key is the handle of a session that is shared for reading */
        return exchange_refuse_denied(x, x->query.denied);
    struct session *found = x->query.session;
    bool is_idle = found && origin == ORIGIN_DERIVED &&
                   clock_life_ms() - found->last_used_ms >=
                       config_idle_ms(x->caller.config, x->caller.who.tenant);
    if (!found || is_idle) {
        enum step_result result = exchange_find_template(x);
        if (result != STEP_NEXT)
            return ask_again(x, result);
    }
    if (is_idle) {
        x->session_plan.replaces = found;
        session_forget(found);
        found = NULL;
    }
    x->session = found;
    if (found && origin == ORIGIN_KEYED)
        promote_session(x); /* the key may be a handle */
    if (!found)
        exchange_begin_session(x, origin, x->carrier.label, x->carrier.name);
    if (str_eq(x->carrier.label, STR("channel")))
        bind_channel(x);
    return STEP_NEXT;
}

/* The carrier in the request itself.  A client id groups requests without a transport.  With a
 * transport it is only a label: a client with two windows has two sessions
 * (docs/decisions/0012). */
static struct carrier carrier_of(const struct exchange *x)
{
    struct carrier c;

    if (x->key.p && mcp_era(x->era)->is_stateful)
        return (struct carrier){
            x->caller.config->client_ids ? STR(CARRIER_CLIENT_ID) : STR(CARRIER_MESSAGES), x->key};
    c = carrier_in_meta(x->caller.config, &x->msg, x->mem);
    if (!c.name.p)
        c = carrier_in_headers(x->caller.config, x->head, x->mem);
    if ((x->transport || x->method->service == SERVE_INITIALIZE) &&
        str_eq(c.label, STR("client-id")))
        c = (struct carrier){STR_NONE, STR_NONE};
    return c;
}

/* Shows why two calls share a session, or do not.  The name is the client's own text: escaped, cut,
 * and logged at debug only. */
static void log_carrier(const struct carrier *c)
{
    if (c->name.p)
        log_debug("request names a session", LS("session_id", str_cut(c->name, NAME_LOGGED)),
                  LS("carrier", c->label));
}

static bool begins_session(const struct exchange *x)
{
    const struct builtin_tool *tool =
        x->builtin && x->method->service == SERVE_CALL ? builtin_tool(x->builtin, x->tool) : NULL;
    return tool && tool->begins_session;
}

/* Two contexts of one client are two sessions. */
static struct str derived_name(const struct exchange *x, struct str client)
{
    char digits[2 * SHORT_MAC + 1];

    if (!x->context)
        return client;
    hex_encode(x->context->mac, SHORT_MAC, digits);
    return arena_printf(x->mem, "%.*s config:%s", STR_ARG(client), digits);
}

/* The carrier by which this client keeps a session that it has joined. */
struct carrier exchange_lasting_carrier(const struct exchange *x)
{
    char digits[2 * sizeof(x->transport->id_hash) + 1];
    struct carrier c;

    if (x->transport && !x->channel_resumes) {
        hex_encode(x->transport->id_hash, sizeof(x->transport->id_hash), digits);
        return (struct carrier){STR("transport"), arena_dup(x->mem, str_of(digits))};
    }
    c = carrier_of(x);
    if (!c.name.p && x->transport && x->channel_resumes)
        return (struct carrier){STR("channel"),
                                arena_printf(x->mem, "%.*s/1", STR_ARG(x->channel))};
    if (!c.name.p && x->channel.p)
        return (struct carrier){STR("channel"), x->channel};
    if (!c.name.p) {
        struct str client = exchange_client_member(x, "name");
        c = (struct carrier){STR("derived"),
                             derived_name(x, client.n && client.n <= 200 ? client : STR("-"))};
    }
    return c;
}

/* NEXT: x->session is the session that this client has joined, or absent: it has joined none. */
static enum step_result session_from_binding(struct exchange *x)
{
    struct session_query *q = &x->query;

    if (!x->is_binding_asked) {
        struct carrier c = exchange_lasting_carrier(x);
        if (likely(!sessions_may_be_bound(x->sv->sessions, &x->caller.who, c.label, c.name)))
            return STEP_NEXT;
        x->is_binding_asked = true;
        if (ask(x, BY_BINDING, c.label, c.name) == STEP_WAIT)
            return STEP_WAIT;
    }
    if (q->by != BY_BINDING)
        return STEP_NEXT; /* it was answered before, by no session */
    if (!q->ok)
        return exchange_fail(x, &q->job.err);
    if (q->session) {
        session_unref(x->session);
        x->session = q->session;
        x->is_bound = true;
        x->session_plan.promotes = x->session->provisional;
        return STEP_NEXT;
    }
    if (q->share_id[0])
        sessions_unbind(x->sv->sessions, &x->caller.who, q->carrier, q->name, str_of(q->share_id));
    return q->denied ? exchange_refuse_denied(x, q->denied) : STEP_NEXT;
}

/* Tries the next carriers in order, when argument, transport and handle named no session. */
static enum step_result session_from_request(struct exchange *x)
{
    enum session_origin origin = ORIGIN_KEYED;

    if (!x->carrier.name.p) {
        x->carrier = carrier_of(x);
        log_carrier(&x->carrier);
        if (!x->carrier.name.p && x->transport && x->channel_resumes)
            x->carrier = (struct carrier){STR("channel"),
                                          arena_printf(x->mem, "%.*s/1", STR_ARG(x->channel))};
        if (!x->carrier.name.p && x->transport) {
            enum step_result result = exchange_find_template(x);
            if (result != STEP_NEXT)
                return result;
            exchange_begin_session(x, ORIGIN_TRANSPORT, STR("transport"), STR_NONE);
            transport_link(x->transport, x->session);
            hub_linked(x->sv->hub, x->transport);
            return STEP_NEXT;
        }
        if (!x->carrier.name.p && x->channel.p)
            x->carrier = (struct carrier){STR("channel"), x->channel};
        if (!x->carrier.name.p && (x->injects || begins_session(x))) {
            enum step_result result = exchange_find_template(x);
            if (result != STEP_NEXT)
                return result;
            x->adds_handle = x->injects;
            exchange_begin_session(x, ORIGIN_INJECTED, STR("argument"), STR_NONE);
            return STEP_NEXT;
        }
    }
    if (!x->carrier.name.p || str_eq(x->carrier.label, STR("derived"))) {
        struct str client = exchange_client_member(x, "name");
        origin = ORIGIN_DERIVED;
        x->carrier = (struct carrier){
            STR("derived"), derived_name(x, client.n && client.n <= 200 ? client : STR("-"))};
    }
    if (str_eq(x->carrier.label, STR("channel")))
        origin = ORIGIN_TRANSPORT;
    return session_from_key(x, origin);
}

enum step_result exchange_select_initial_session(struct exchange *x)
{
    if (x->session)
        return STEP_NEXT;
    if (!x->carrier.name.p)
        x->carrier = carrier_of(x);
    if (x->carrier.name.p)
        return session_from_key(x, ORIGIN_KEYED);
    enum step_result result = exchange_find_template(x);
    if (result == STEP_NEXT)
        exchange_begin_session(x, ORIGIN_TRANSPORT, STR("transport"), STR_NONE);
    return result;
}

enum step_result exchange_select_channel_session(struct exchange *x)
{
    return x->channel.p && !x->session ? session_from_request(x) : STEP_NEXT;
}

/* While this request waited for the catalog, another request may have linked the transport. */
static void session_from_transport(struct exchange *x)
{
    struct session *linked = x->transport ? x->transport->session : NULL;

    if (x->session || x->carrier.name.p || !linked || session_is_over(linked, clock_life_ms()))
        return;
    session_ref(linked);
    x->session = linked;
}

/* Selects the session if the arguments name none, or name one that does not exist. */
static enum step_result session_from_any(struct exchange *x)
{
    bool is_named = x->session && x->query.by == BY_HANDLE && x->query.session == x->session;
    enum step_result result = is_named || x->is_bound ? STEP_NEXT : session_from_binding(x);

    if (result != STEP_NEXT || x->is_bound)
        return result;
    session_from_transport(x);
    if (!x->session)
        return session_from_request(x);
    if (x->query.by == BY_HANDLE && x->query.session == x->session)
        promote_session(x); /* the handle came in header or query */
    return STEP_NEXT;
}

/* The first call binds its transport to the session.  A call that names another session by a handle
 * does not rebind the transport. */
static void decide_binding(struct exchange *x, bool is_named)
{
    const struct transport *t = x->transport;
    bool binds = t && !x->is_bound && exchange_owns_session(x, x->session) &&
                 (t->session == x->session ? !t->link_stored : !(t->session && is_named));

    x->session_plan.binds = binds ? x->transport : NULL;
}

struct session_plan *exchange_plan_session(struct exchange *x)
{
    struct session_plan *p = &x->session_plan;

    p->who = &x->caller.who;
    if (unlikely(!exchange_owns_session(x, x->session))) {
        x->session_owner = session_owner(x->session);
        p->who = &x->session_owner;
    }
    p->session = x->session;
    p->max_counted = config_max_sessions(x->caller.config, x->caller.who.tenant);
    p->life_ms = config_default_ttl_ms(x->caller.config, x->caller.who.tenant);
    struct str metadata = x->session->first ? x->session->first->metadata : STR_NONE;
    if (!x->session->stored)
        p->connection = x->http ? connection_metadata(x->caller.config, x->http, metadata, x->mem)
                                : arena_dup(x->mem, metadata);
    return p;
}

static struct str without_blanks(struct str s)
{
    while (s.n && strchr(" \t\r\n", s.p[0]))
        s = str_n(s.p + 1, s.n - 1);
    while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    return s;
}

/* The handle in the argument session_id; absent when the argument is missing or empty.  Models may
 * copy the whole line of a result: "[session: ses_…]". */
static struct str named_handle(struct exchange *x)
{
    static const struct str before = {"[session:", 9};
    const struct js_node *arguments = mcp_param(&x->msg, STR("arguments"));
    const struct js_node *named = js_get(&x->msg.doc, arguments, STR("session_id"));
    struct str text;

    if (!js_type_is(named, JS_STRING))
        return STR_NONE;
    text = without_blanks(js_text(&x->msg.doc, named, x->mem));
    if (str_starts(text, before) && text.p[text.n - 1] == ']')
        text = without_blanks(str_n(text.p + before.n, text.n - before.n - 1));
    return text.n ? text : STR_NONE;
}

enum step_result exchange_select_profile_session(struct exchange *x, bool only_looks)
{
    struct str named = named_handle(x);
    enum step_result result;

    if (!x->injects)
        x->injects = !named.p && carries_nothing(x);
    if (x->injects && only_looks)
        return STEP_NEXT;
    result = named.p ? session_from_argument(x, named) : session_from_any(x);
    if (result == STEP_NEXT)
        decide_binding(x, named.p != NULL);
    return result;
}

/* Whatever session the arguments name, they mean this one. */
static enum step_result take_given_session(struct exchange *x, struct str named)
{
    if (named.p && x->builtin)
        x->session_named = NAMED_FOUND;
    return STEP_NEXT;
}

enum step_result exchange_select_session(struct exchange *x)
{
    struct str named = named_handle(x);
    const struct catalog_item *tool = x->item =
        x->method->service == SERVE_CALL ? catalog_tool(x->catalog, x->tool) : NULL;
    bool is_named = named.p && x->session_named == NAMED_NONE && !x->is_session_given;
    enum step_result result;

    if (upstream_config(x->up)->kind == SERVER_BUILTIN)
        x->builtin = builtin_find(upstream_name(x->up));
    if (!x->injects)
        x->injects =
            tool && !tool->owns_session_id && exchange_injects_handles(x, x->up, x->catalog);
    if (unlikely(x->is_session_given))
        result = take_given_session(x, named);
    else if (is_named && tool && (x->builtin || x->injects))
        result = session_from_argument(x, named);
    else
        result = session_from_any(x);
    if (result == STEP_NEXT) {
        decide_binding(x, named.p != NULL);
        if (x->injects) /* also when the argument is empty */
            x->adds_handle = x->drops_session_id = true;
    }
    return result;
}
