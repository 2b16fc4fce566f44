/* SPDX-License-Identifier: Apache-2.0 */
/* One message to a Streamable HTTP server and its answer, as one JSON object or as an event stream.
 *
 * judge() alone decides what a status means: a JSON-RPC error object in any body is an answer; 404
 * on a session is a lost session; unusable 2xx and 4xx replies to a probe mean "not this era";
 * anything else is a failure.  A legacy stream that breaks before its answer is resumed by GET if
 * its events had ids (remote_stream.c). */
#include "upstream/remote_impl.h"

#include "base/log.h"

#include <stdlib.h>

#define LINGER_MS 500
#define MAX_SESSION_ID 4096

struct post *post_new(struct link *l, struct pending *p)
{
    struct post *post = xmalloc(sizeof(*post)); /* not calloc: clearing all of it would be slow */
    memset(post, 0, offsetof(struct post, type));
    post->link = l;
    post->pending = p;
    post->id = p ? p->id : 0;
    post->waited = p != NULL;
    if (p)
        p->waited = &post->waited;
    post->retry_ms = REMOTE_RETRY_MS;
    buf_init(&post->last_id, REMOTE_MAX_EVENT_ID);
    list_init(&post->node);
    if (l)
        list_push(&((struct remote_link *)l->wire)->posts, &post->node);
    return post;
}

void post_free(struct post *post)
{
    if (post->waited)
        post->pending->waited = NULL;
    if (!list_empty(&post->node)) /* so its link is still alive */
        ((struct remote_link *)post->link->wire)->unanswered -= post->is_spare;
    list_remove(&post->node);
    if (post->is_stream)
        sse_reader_release(&post->sse);
    buf_release(&post->last_id);
    loop_timer_free(post->timer);
    free(post);
}

void post_drop(struct post *post)
{
    if (post->busy) {
        list_remove(&post->node);
        post->is_dropped = true;
        return;
    }
    if (post->call)
        http_call_cancel(post->call);
    post_free(post);
}

bool post_is_open(const struct post *post)
{
    return !post->is_dropped && post->link && post->waited;
}

bool post_is_visible(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x21 || s.p[i] > 0x7e)
            return false;
    return true;
}

/* False when the server gave a session id that cannot be sent back unchanged. */
static bool keep_session(struct link *l, const struct http_head *head)
{
    struct str id = http_header_get(head, STR("mcp-session-id"));

    if (!id.n || !mcp_era(l->era)->is_stateful)
        return true;
    if (id.n > MAX_SESSION_ID || !post_is_visible(id))
        return false;
    l->remote_id = arena_dup(l->mem, id);
    return true;
}

static void refuse_session(struct link *l)
{
    struct error err;

    error_set(&err, ERR_UPSTREAM,
              "%.*s gave a session id that is longer than %d bytes or not visible ASCII; report "
              "that to its authors",
              STR_ARG(l->up->config->name), MAX_SESSION_ID);
    pending_fail(&l->handshake, &err);
}

bool post_is_event_stream(const struct http_head *head)
{
    struct str type = http_header_get(head, STR("content-type"));
    return head->status == 200 &&
           str_ieq(str_trim(str_split(&type, ';')), STR("text/event-stream"));
}

void post_begin_stream(struct post *post, const struct http_head *head)
{
    struct str type = http_header_get(head, STR("content-type"));

    post->status = head->status;
    post->got_event = false;
    post->type_n = (uint8_t)(type.n < sizeof(post->type) ? type.n : sizeof(post->type));
    if (post->type_n)
        memcpy(post->type, type.p, post->type_n);
    if (!post_is_event_stream(head))
        return;
    sse_reader_init(&post->sse, REMOTE_MAX_MESSAGE);
    post->is_stream = true;
}

static bool on_head(void *arg, const struct http_head *head)
{
    struct post *post = arg;

    if (post_is_open(post) && post->pending == &post->link->handshake && head->status == 200 &&
        !keep_session(post->link, head)) {
        post->busy = true;
        refuse_session(post->link);
        http_call_cancel(post->call);
        post_free(post);
        return false;
    }
    post_begin_stream(post, head);
    return post->is_stream;
}

bool post_on_event(void *arg, const struct sse_event *e)
{
    struct post *post = arg;

    if (!post->link || post->is_dropped)
        return true;
    stream_note(post, e);
    if (e->data.n && str_eq(e->type, STR("message")))
        link_receive(post->link, post_is_open(post) ? post->pending : NULL, e->data);
    return true;
}

/* A stream should end with its answer.  Otherwise it would hold a connection for ever. */
static void end_soon(struct post *post)
{
    if (!post->pending || post->ends_soon || post_is_open(post))
        return;
    post->ends_soon = true;
    http_call_within(post->call, LINGER_MS);
}

bool post_on_body(void *arg, struct str bytes)
{
    struct post *post = arg;
    struct error err;

    post->busy = true;
    bool fits = sse_feed(&post->sse, bytes, post_on_event, post);
    if (!fits && post_is_open(post)) {
        error_set(&err, ERR_UPSTREAM, "%.*s sent an event larger than %u bytes; ask it for less",
                  STR_ARG(post->link->up->config->name), REMOTE_MAX_MESSAGE);
        pending_fail(post->pending, &err);
    }
    post->busy = false;
    if (fits && !post->is_dropped) {
        end_soon(post);
        return true;
    }
    post_free(post);
    return false;
}

static enum err_code judge(const struct post *post)
{
    const struct link *l = post->link;
    if (post->status == 404 && l->remote_id.p)
        return ERR_SESSION_NOT_FOUND;
    if (post->status == 401 || post->status == 403)
        return ERR_DENIED;
    if (l->is_probe && l->era == MCP_MODERN && post->status < 500 && post->status / 100 != 3)
        return ERR_NO_METHOD;
    return ERR_UPSTREAM;
}

/* If the server refuses our version but names that same version, the first refusal is taken as
 * transient.  The request was not processed, so it may be sent again. */
static bool may_ask_again(struct post *post, const struct mcp_message *m)
{
    struct link *l = post->link;
    struct remote_link *r = l->wire;
    struct error err;

    if (l->is_probe || !mcp_era(l->era)->has_envelope || r->version_refused || !mcp_names_modern(m))
        return false;
    r->version_refused = true;
    error_set(&err, ERR_UNREACHABLE, "%.*s refused a version that it names; call again",
              STR_ARG(l->up->config->name));
    post->pending->left = false;
    pending_fail(post->pending, &err);
    return true;
}

/* An error may show that our catalog of mirrored headers is old, or our idea of the server's
 * era. */
static void learn_from_error(struct link *l, const struct mcp_message *m)
{
    int64_t code = 0;

    if (l->is_probe || !mcp_era(l->era)->has_envelope ||
        !js_to_i64(&m->doc, js_get(&m->doc, m->error, STR("code")), &code))
        return;
    if (code == -32020)
        upstream_refresh(l->up, 1u << CATALOG_TOOLS);
    else if (code == -32022)
        upstream_refresh(l->up, CATALOG_ALL);
}

/* Many servers derived from the official examples answer an unknown session with 400 and -32000,
 * "No valid session ID provided" or "Server not initialized", instead of 404.  For a resumed
 * session without an answer so far, any code counts as that. */
static bool says_session_is_lost(const struct post *post, const struct mcp_message *m)
{
    const struct link *l = post->link;
    int64_t code = 0;
    char text[160];

    if (post->status != 400 || !l->remote_id.p ||
        !js_to_i64(&m->doc, js_get(&m->doc, m->error, STR("code")), &code) ||
        (code != -32000 && (!l->is_resumed || l->has_answered)))
        return false;
    log_escape_cut(text, sizeof(text), js_raw(&m->doc, m->error));
    return strcasestr(text, "session") || strcasestr(text, "not initialized");
}

/* A body with an `error` object answers the request whatever its status and id, unless the status
 * means more.  For a probe, an error that names a version is an answer too. */
static bool answer_with_error(struct post *post, struct str body)
{
    struct arena *mem = arena_new(4 * REMOTE_MAX_MESSAGE);
    struct mcp_message m;
    struct error ignored;
    struct buf text;
    bool answered = mcp_parse_upstream(body, mem, &m, &ignored) && js_type_is(m.error, JS_OBJECT) &&
                    (judge(post) == ERR_UPSTREAM || mcp_names_modern(&m));

    if (answered && says_session_is_lost(post, &m)) {
        post->status = 404;
        answered = false;
    } else if (answered && !may_ask_again(post, &m)) {
        learn_from_error(post->link, &m);
        buf_init(&text, REMOTE_MAX_MESSAGE + 128);
        buf_addf(&text,
                 "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":", (unsigned long long)post->id);
        buf_addstr(&text, js_raw(&m.doc, m.error));
        buf_addc(&text, '}');
        link_receive(post->link, post->pending, buf_str(&text));
        buf_release(&text);
    }
    arena_free(mem);
    return answered;
}

static const char *advice_on(int status)
{
    static const struct {
        int status;
        const char *text;
    } table[] = {
        {404, "check its \"url\""},
        {405, "check its \"url\""},
        {429, "try again later"},
        {503, "try again later"},
    };

    for (size_t i = 0; i < countof(table); i++)
        if (table[i].status == status)
            return table[i].text;
    return status / 100 == 2 ? "check that its \"url\" is an MCP endpoint" : "look at its log";
}

/* What to do about 401 and 403. */
static const char *credential_advice(const struct link *l)
{
    const struct server_config *c = l->up->config;

    if (l->credential.value.p)
        return "it refuses the credential that the session stored for it; store a new one";
    for (size_t i = 0; i < c->n_headers; i++)
        if (credential_is_named(c->headers[i].name))
            return "it refuses the credential in \"headers\" of the server, which may have "
                   "expired; "
                   "replace it";
    return "it requires a credential; set one in \"headers\" of the server";
}

void post_fail_by_status(struct post *post)
{
    struct link *l = post->link;
    struct pending *p = post->pending;
    struct str name = l->up->config->name;
    char type[sizeof(post->type)];
    struct error err;

    log_escape_cut(type, sizeof(type), str_n(post->type, post->type_n));
    switch (judge(post)) {
    case ERR_SESSION_NOT_FOUND:
        error_set(&err, ERR_SESSION_NOT_FOUND, "%.*s no longer knows its session; call again",
                  STR_ARG(name));
        p->left = false; /* not processed: it may be sent again, at once and on a new session */
        link_end(l, &err);
        return;
    case ERR_NO_METHOD:
        error_set(&err, ERR_NO_METHOD, "%.*s does not speak 2026-07-28", STR_ARG(name));
        break;
    case ERR_DENIED:
        error_set(&err, ERR_UPSTREAM, "%.*s answered %d: %s", STR_ARG(name), post->status,
                  credential_advice(l));
        break;
    default:
        error_set(&err, ERR_UPSTREAM,
                  "%.*s answered HTTP %d (%s) without the JSON-RPC answer%s; %s", STR_ARG(name),
                  post->status, *type ? type : "no content type", pending_odd(p),
                  advice_on(post->status));
    }
    pending_fail(p, &err);
}

void post_fail_ended(struct post *post)
{
    struct error why;
    error_set(&why, ERR_UNREACHABLE, "%.*s ended its stream without a result%s; %s",
              STR_ARG(post->link->up->config->name), pending_odd(post->pending), advice_on(500));
    pending_fail(post->pending, &why);
}

static void fail_by_error(struct post *post, const struct error *err, bool sent)
{
    struct error why = *err;
    if (why.code == ERR_TOO_LARGE) /* that code would blame the client */
        why.code = ERR_UPSTREAM;
    error_wrap(&why, "%.*s", STR_ARG(post->link->up->config->name));
    post->pending->left = sent;
    pending_fail(post->pending, &why);
}

/* Takes a whole response that is not a stream.  True: the post continues as another GET. */
static bool take_response(struct post *post, struct str body)
{
    bool ok = post->status / 100 == 2 && body.n;
    struct remote_link *r = post->link->wire;

    if (r->endpoint.p && post->status / 100 == 2) {
        post->pending->wire = NULL; /* accepted; the answer comes on the channel */
        return false;
    }
    if (ok)
        link_receive(post->link, post->pending, body);
    if (!post_is_open(post) || (body.n && !ok && answer_with_error(post, body)))
        return false;
    if (remote_channel_is_worth_a_trial(post))
        return true;
    post_fail_by_status(post);
    return false;
}

/* A server may close a kept connection just as it is used again.  Without this notification the
 * session stays half open, and saying it twice does no harm. */
static bool says_initialized_again(struct post *post, const struct error *err)
{
    struct remote_link *r = post->link->wire;
    struct error ignored;

    if (!err || r->initialized_again)
        return false;
    r->initialized_again = true;
    return link_send_initialized(post->link, &ignored);
}

static void on_done(void *arg, struct str body, const struct error *err, bool sent)
{
    struct post *post = arg;

    post->call = NULL;
    if (post_is_open(post) && stream_may_resume(post)) {
        stream_again(post, err != NULL);
        return;
    }
    post->busy = true;
    if (post->is_initialized && post->link && !err && post->status / 100 == 2)
        stream_listen(post->link);
    else if (post->is_initialized && post->link && !says_initialized_again(post, err))
        remote_listen_done(post->link);
    if (!post_is_open(post)) {
        post_free(post);
    } else if (!err && !post->is_stream && take_response(post, body)) {
        post->busy = false;
        remote_channel_try(post);
    } else {
        if (post_is_open(post) && err)
            fail_by_error(post, err, sent);
        else if (post_is_open(post) && post->is_stream)
            post_fail_ended(post);
        post_free(post);
    }
}

const struct http_call_events post_events = {
    .on_head = on_head,
    .on_body = post_on_body,
    .on_done = on_done,
};
