/* SPDX-License-Identifier: Apache-2.0 */
/* Links to Streamable HTTP servers, both eras.  Every message is a POST of its own; answers come as
 * one JSON object or as a stream of events on that POST.  A legacy server may give a session id
 * with its initialize answer: that id is the link.
 *
 * What a status means is said in one place, judge(): a JSON-RPC error object in any body is an
 * answer; 404 on a session is a lost session; 2xx and 4xx nonsense to a probe say "not this era";
 * the rest is trouble. */
#include "upstream/upstream_impl.h"

#include "base/log.h"
#include "http/client.h"
#include "http/sse.h"
#include "io/tls.h"
#include "mcp/header.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_MESSAGE (16u * 1024 * 1024)
#define LINGER_MS 500
#define MAX_SESSION_ID 4096
#define MAX_UNANSWERED 1024 /* posts of one link that nobody waits for */

struct remote { /* upstream.wire */
    struct http_pool *pool;
    struct tls_context *tls;
    struct http_url url;
    struct str common; /* header lines of every request; owned */
};

struct remote_link { /* link.wire */
    struct list posts;
    unsigned unanswered; /* posts that nobody waits for: notifications and our responses */
};

struct post { /* one POST on its way */
    struct list node;
    struct link *link; /* NULL once nobody waits: a DELETE, or the link has ended */
    struct pending *pending;
    uint64_t id;
    struct http_call *call;
    struct sse_reader sse;
    int status;
    char type[48]; /* its Content-Type, cut, fit to be shown */
    bool is_stream;
    bool ends_soon; /* answered: only the end of the stream is awaited, and not for long */
    bool busy; /* inside one of its callbacks: whoever drops it now leaves it to that callback */
    bool dead; /* dropped meanwhile */
};

static struct post *post_new(struct link *l, struct pending *p)
{
    struct post *post = xcalloc(1, sizeof(*post));
    post->link = l;
    post->pending = p;
    post->id = p ? p->id : 0;
    list_init(&post->node);
    if (l) {
        struct remote_link *r = l->wire;
        list_push(&r->posts, &post->node);
        r->unanswered += !p;
    }
    return post;
}

static void post_free(struct post *post)
{
    if (!list_empty(&post->node)) /* so its link still stands */
        ((struct remote_link *)post->link->wire)->unanswered -= !post->pending;
    list_remove(&post->node);
    if (post->is_stream)
        sse_reader_release(&post->sse);
    free(post);
}

/* Ends the POST without an answer. */
static void post_drop(struct post *post)
{
    if (post->busy) {
        list_remove(&post->node);
        post->dead = true;
        return;
    }
    http_call_cancel(post->call);
    post_free(post);
}

/* Still waited for?  The pending may have been answered and be gone. */
static bool post_is_open(const struct post *post)
{
    return !post->dead && post->link && post->pending &&
           pending_find(post->link, post->id) == post->pending;
}

static bool is_visible(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x21 || s.p[i] > 0x7e)
            return false;
    return true;
}

/* False when the server gave a session id that we could not send back as it is. */
static bool keep_session(struct link *l, const struct http_head *head)
{
    struct str id = http_header_get(head, STR("mcp-session-id"));

    if (!id.n || l->era == MCP_MODERN)
        return true;
    if (id.n > MAX_SESSION_ID || !is_visible(id))
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

static bool is_event_stream(struct str type)
{
    return str_ieq(str_trim(str_split(&type, ';')), STR("text/event-stream"));
}

static bool on_head(void *arg, const struct http_head *head)
{
    struct post *post = arg;
    struct str type = http_header_get(head, STR("content-type"));

    post->status = head->status;
    log_escape_cut(post->type, sizeof(post->type), type);
    if (post_is_open(post) && post->pending == &post->link->handshake && head->status == 200 &&
        !keep_session(post->link, head)) {
        post->busy = true;
        refuse_session(post->link);
        http_call_cancel(post->call);
        post_free(post);
        return false;
    }
    if (head->status == 200 && is_event_stream(type)) {
        sse_reader_init(&post->sse, MAX_MESSAGE);
        post->is_stream = true;
    }
    return post->is_stream;
}

static bool on_event(void *arg, const struct sse_event *e)
{
    struct post *post = arg;
    if (post->link && !post->dead && e->data.n && str_eq(e->type, STR("message")))
        link_receive(post->link, post_is_open(post) ? post->pending : NULL, e->data);
    return true;
}

/* A stream should end with its answer.  One that does not would hold a connection for ever. */
static void end_soon(struct post *post)
{
    if (!post->pending || post->ends_soon || post_is_open(post))
        return;
    post->ends_soon = true;
    http_call_within(post->call, LINGER_MS);
}

static bool on_body(void *arg, struct str bytes)
{
    struct post *post = arg;
    struct error err;

    post->busy = true;
    bool fits = sse_feed(&post->sse, bytes, on_event, post);
    if (!fits && post_is_open(post)) {
        error_set(&err, ERR_UPSTREAM, "%.*s sent an event larger than %u bytes; ask it for less",
                  STR_ARG(post->link->up->config->name), MAX_MESSAGE);
        pending_fail(post->pending, &err);
    }
    post->busy = false;
    if (fits && !post->dead) {
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

/* A body with an `error` object answers the request whatever its status and id say, unless the
 * status says more; a version named to a probe is the answer too. */
static bool answer_with_error(struct post *post, struct str body)
{
    struct arena *mem = arena_new(MAX_MESSAGE);
    struct mcp_message m;
    struct error ignored;
    bool answered = false;

    if (mcp_parse_upstream(body, mem, &m, &ignored) && js_type_is(m.error, JS_OBJECT) &&
        (judge(post) == ERR_UPSTREAM || mcp_names_modern(&m))) {
        struct buf text;
        buf_init(&text, MAX_MESSAGE + 128);
        buf_addf(&text,
                 "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":", (unsigned long long)post->id);
        buf_addstr(&text, js_raw(&m.doc, m.error));
        buf_addc(&text, '}');
        link_receive(post->link, post->pending, buf_str(&text));
        buf_release(&text);
        answered = true;
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

static void fail_by_status(struct post *post)
{
    struct link *l = post->link;
    struct pending *p = post->pending;
    struct str name = l->up->config->name;
    struct error err;

    switch (judge(post)) {
    case ERR_SESSION_NOT_FOUND:
        error_set(&err, ERR_SESSION_NOT_FOUND, "%.*s no longer knows its session; call again",
                  STR_ARG(name));
        p->left = false; /* refused unread: it may be sent again on a new session */
        pending_fail(p, &err);
        link_end(l, &err);
        return;
    case ERR_NO_METHOD:
        error_set(&err, ERR_NO_METHOD, "%.*s does not speak 2026-07-28", STR_ARG(name));
        break;
    case ERR_DENIED:
        error_set(
            &err, ERR_UPSTREAM,
            "%.*s answered %d: it wants a credential; put one under \"headers\" of the server",
            STR_ARG(name), post->status);
        break;
    default:
        error_set(&err, ERR_UPSTREAM,
                  "%.*s answered HTTP %d (%s) without the JSON-RPC answer%s; %s", STR_ARG(name),
                  post->status, *post->type ? post->type : "no content type", pending_odd(p),
                  advice_on(post->status));
    }
    pending_fail(p, &err);
}

static void on_done(void *arg, struct str body, const struct error *err, bool sent)
{
    struct post *post = arg;

    post->busy = true;
    if (post_is_open(post)) {
        if (err) {
            struct error why = *err;
            if (why.code == ERR_TOO_LARGE) /* would blame the client */
                why.code = ERR_UPSTREAM;
            error_wrap(&why, "%.*s", STR_ARG(post->link->up->config->name));
            post->pending->left = sent;
            pending_fail(post->pending, &why);
        } else if (post->is_stream) {
            struct error why;
            error_set(&why, ERR_UNREACHABLE, "%.*s ended its stream without a result%s; %s",
                      STR_ARG(post->link->up->config->name), pending_odd(post->pending),
                      advice_on(500));
            pending_fail(post->pending, &why);
        } else {
            bool ok = post->status / 100 == 2 && body.n;
            if (ok)
                link_receive(post->link, post->pending, body);
            if (post_is_open(post) && !(body.n && !ok && answer_with_error(post, body)))
                fail_by_status(post);
        }
    }
    post_free(post);
}

static const struct http_call_events call_events = {
    .on_head = on_head,
    .on_body = on_body,
    .on_done = on_done,
};

static bool remote_of(struct upstream *u, struct remote **ret, struct error *err)
{
    struct remote *r = u->wire;
    struct buf lines;

    if (r) {
        *ret = r;
        return true;
    }
    r = xcalloc(1, sizeof(*r));
    if (!http_url_parse(u->config->url, &r->url, err) ||
        (r->url.is_tls && !tls_client_new(u->config->tls_ca.p, &r->tls, err))) {
        free(r);
        return false;
    }
    buf_init(&lines, 64 * 1024);
    buf_addz(&lines, "Content-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\n");
    for (size_t i = 0; i < u->config->n_headers; i++)
        buf_addf(&lines, "%.*s: %.*s\r\n", STR_ARG(u->config->headers[i].name),
                 STR_ARG(u->config->headers[i].value));
    r->common.p = buf_steal(&lines, &r->common.n);
    struct http_pool_config pool = {
        .host = r->url.host,
        .port = r->url.port,
        .tls = r->tls,
        .max_connections = 256,
        .connect_ms = 5000,
        .idle_ms = 30000,
        .max_body = MAX_MESSAGE,
    };
    r->pool = http_pool_new(u->set->loop, &pool);
    *ret = u->wire = r;
    return true;
}

static void remote_open(struct link *l)
{
    struct remote_link *r = xcalloc(1, sizeof(*r));
    list_init(&r->posts);
    l->wire = r;
    link_up_later(l);
}

static void add_session_line(struct buf *lines, const struct link *l)
{
    if (!l->remote_id.p)
        return;
    buf_addz(lines, "Mcp-Session-Id: ");
    buf_addstr(lines, l->remote_id);
    buf_addz(lines, "\r\n");
}

/* The era's own header lines for this message. */
static void add_era_lines(struct buf *lines, const struct link *l, const struct outgoing *m)
{
    add_session_line(lines, l);
    if (l->era == MCP_LEGACY) {
        if (l->version && l->version->version_header) {
            buf_addstr(lines, STR("MCP-Protocol-Version: "));
            buf_addstr(lines, l->version->name);
            buf_addstr(lines, STR("\r\n"));
        }
        return;
    }
    buf_addstr(lines, STR("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: "));
    buf_addstr(lines, m->method);
    buf_addstr(lines, STR("\r\n"));
    if (m->name.p) {
        buf_addz(lines, "Mcp-Name: ");
        mcp_header_encode(lines, m->name);
        buf_addz(lines, "\r\n");
    }
    buf_addstr(lines, m->header_lines);
}

static bool remote_send(struct link *l, struct pending *p, const struct outgoing *m,
                        struct error *err)
{
    struct remote *r;
    struct buf lines;

    if (!remote_of(l->up, &r, err))
        return false;
    if (!p && ((struct remote_link *)l->wire)->unanswered >= MAX_UNANSWERED)
        return error_set(err, ERR_UNREACHABLE, "%.*s does not take notifications (%d are waiting)",
                         STR_ARG(l->up->config->name), MAX_UNANSWERED);
    struct post *post = post_new(l, p);
    struct iovec part = {.iov_base = (void *)m->text.p, .iov_len = m->text.n};
    buf_init(&lines, 256 * 1024);
    (void)buf_room(&lines, r->common.n + 512);
    buf_addstr(&lines, r->common);
    add_era_lines(&lines, l, m);
    /* A request's clock is its pending's, which may be stopped meanwhile. */
    int64_t timeout = p ? 0 : l->up->config->timeout_ms;
    if (p) {
        p->wire = post;
        p->left = true;
    }
    post->call = http_call_start(r->pool, "POST", r->url.target, buf_str(&lines), &part, 1, timeout,
                                 &call_events, post);
    buf_release(&lines);
    return true;
}

static void remote_abandon(struct link *l unused_arg, struct pending *p)
{
    post_drop(p->wire);
}

/* Best effort: tells the server that its session is over.  Nobody waits for the answer. */
static void say_goodbye(struct link *l)
{
    struct remote *r = l->up->wire;
    struct buf lines;

    if (!l->remote_id.p || !r)
        return;
    struct post *post = post_new(NULL, NULL);
    buf_init(&lines, 64 * 1024);
    buf_addstr(&lines, r->common);
    add_session_line(&lines, l);
    post->call = http_call_start(r->pool, "DELETE", r->url.target, buf_str(&lines), NULL, 0, 5000,
                                 &call_events, post);
    buf_release(&lines);
}

static void remote_close(struct link *l)
{
    struct remote_link *r = l->wire;
    list_each(&r->posts, n) post_drop(list_entry(n, struct post, node));
    say_goodbye(l);
    free(r);
    l->wire = NULL;
}

static void remote_forget(struct upstream *u)
{
    struct remote *r = u->wire;
    if (!r)
        return;
    http_pool_free(r->pool);
    tls_free(r->tls);
    free((char *)r->common.p);
    free(r);
}

const struct upstream_ops upstream_remote = {
    .name = "http",
    .has_process = false,
    .open = remote_open,
    .send = remote_send,
    .abandon = remote_abandon,
    .close = remote_close,
    .forget = remote_forget,
};
