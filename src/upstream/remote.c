/* SPDX-License-Identifier: Apache-2.0 */
/* Links to HTTP servers of all eras.  Every message is a POST of its own (remote_post.c).  A legacy
 * server may give a session id with its initialize answer; the link stands for that session.  A
 * link that was opened with a client's own initialize also listens for messages that belong to no
 * request (remote_stream.c).  Servers of 2024 answer on a stream of their own (remote_sse.c). */
#include "upstream/remote_impl.h"

#include "base/log.h"
#include "io/tls.h"
#include "mcp/header.h"

#include <stdlib.h>

#define MAX_UNANSWERED 1024 /* posts of one link whose answers are not awaited */
#define MAX_REQUESTS 256    /* connections per server */
#define MAX_STREAMS 1024

static struct http_pool *pool_new(struct upstream *u, const struct remote *r, unsigned connections)
{
    struct http_pool_config pool = {
        .host = r->url.host,
        .port = r->url.port,
        .tls = r->tls,
        .max_connections = connections,
        .connect_ms = 5000,
        .idle_ms = 30000,
        .max_body = REMOTE_MAX_MESSAGE,
    };
    return http_pool_new(u->set->loop, &pool);
}

bool remote_of(struct upstream *u, struct remote **ret, struct error *err)
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
    buf_init_secret(&lines, 64 * 1024);
    buf_addz(&lines, "Content-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\n");
    size_t general = lines.n;
    for (size_t i = 0; i < u->config->n_headers; i++)
        buf_addf(&lines, "%.*s: %.*s\r\n", STR_ARG(u->config->headers[i].name),
                 STR_ARG(u->config->headers[i].value));
    secret_set(&r->common, buf_str(&lines));
    buf_release(&lines);
    r->own = str_n(r->common.p + general, r->common.n - general);
    buf_init_secret(&r->lines, REMOTE_MAX_LINES);
    r->pool = pool_new(u, r, MAX_REQUESTS);
    *ret = u->wire = r;
    return true;
}

struct http_pool *remote_streams(struct upstream *u, struct remote *r)
{
    if (!r->streams)
        r->streams = pool_new(u, r, MAX_STREAMS);
    return r->streams;
}

/* Without printf, which leaves copies on the stack. */
static void add_line(struct buf *lines, struct str name, struct str value)
{
    buf_addstr(lines, name);
    buf_addz(lines, ": ");
    buf_addstr(lines, value);
    buf_addz(lines, "\r\n");
}

/* Adds the configured headers, filled for this link.  The link's credential replaces the header of
 * the same name. */
void remote_add_own_lines(struct buf *lines, const struct link *l, struct str own)
{
    const struct link_credential *c = &l->credential;
    bool has_credential = c->value.p && c->as == CREDENTIAL_HEADER;
    size_t n;
    const struct config_pair *headers = link_pairs(l, &n);

    if (!has_credential && !l->pairs) {
        buf_addstr(lines, own);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!has_credential || !str_ieq(headers[i].name, c->name))
            add_line(lines, headers[i].name, headers[i].value);
    if (has_credential)
        add_line(lines, c->name, c->value);
}

/* Adds the lines common to all requests. */
static void add_common_lines(struct buf *lines, const struct link *l, const struct remote *r)
{
    buf_addstr(lines, str_n(r->common.p, r->common.n - r->own.n));
    remote_add_own_lines(lines, l, r->own);
}

static void remote_open(struct link *l)
{
    struct remote_link *r = xcalloc(1, sizeof(*r));
    list_init(&r->posts);
    l->wire = r;
    if (l->up->sse)
        remote_channel_open(l);
    else
        link_up_later(l);
}

void remote_add_session_lines(struct buf *lines, const struct link *l)
{
    const struct remote_link *r = l->wire;

    if (l->remote_id.p && !r->endpoint.p) {
        buf_addz(lines, "Mcp-Session-Id: ");
        buf_addstr(lines, l->remote_id);
        buf_addz(lines, "\r\n");
    }
    if (l->version && l->version->version_header) {
        buf_addstr(lines, STR("MCP-Protocol-Version: "));
        buf_addstr(lines, l->version->name);
        buf_addstr(lines, STR("\r\n"));
    }
}

/* Adds the header lines of the era for this message. */
static void add_era_lines(struct buf *lines, const struct link *l, const struct outgoing *m)
{
    if (!mcp_era(l->era)->mirrors_body) {
        remote_add_session_lines(lines, l);
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
    struct remote_link *rl = l->wire;
    struct remote *r;

    if (!remote_of(l->up, &r, err))
        return false;
    if (!p && rl->unanswered >= MAX_UNANSWERED)
        return error_set(err, ERR_UNREACHABLE, "%.*s does not take notifications (%d are waiting)",
                         STR_ARG(l->up->config->name), MAX_UNANSWERED);
    struct post *post = post_new(l, p);
    struct iovec part = {.iov_base = (void *)m->text.p, .iov_len = m->text.n};
    buf_reset(&r->lines);
    add_common_lines(&r->lines, l, r);
    add_era_lines(&r->lines, l, m);
    buf_addstr(&r->lines, m->trace_lines);
    /* The timeout of a request is its pending's, which may be stopped meanwhile. */
    int64_t timeout = p ? 0 : l->up->config->timeout_ms;
    if (p) {
        p->wire = post;
        p->left = true;
    } else {
        post->is_spare = true;
        post->is_initialized = str_eq(m->method, STR("notifications/initialized"));
        rl->unanswered++;
    }
    struct http_pool *pool = p && p->patient ? remote_streams(l->up, r) : r->pool;
    struct str target = rl->endpoint.p ? rl->endpoint : r->url.target;
    post->call = http_call_start(pool, "POST", target, buf_str(&r->lines), &part, 1, timeout,
                                 &post_events, post);
    buf_reset(&r->lines);
    return true;
}

static void remote_abandon(struct link *l unused_arg, struct pending *p)
{
    if (p->wire)
        post_drop(p->wire);
}

/* True for a session that its clients can resume when Holdfast is started again. */
static bool outlives_us(const struct link *l)
{
    return l->up->set->is_stopping && !l->is_probe && !str_eq(l->key, STR(LINK_KEY_WATCH));
}

/* Best effort: ends the session at the server.  The answer is not awaited. */
static void end_remote_session(struct link *l)
{
    struct remote *r = l->up->wire;
    struct remote_link *rl = l->wire;
    struct buf lines;

    if (!l->remote_id.p || !r || rl->endpoint.p || outlives_us(l))
        return;
    struct post *post = post_new(NULL, NULL);
    buf_init_secret(&lines, REMOTE_MAX_LINES);
    add_common_lines(&lines, l, r);
    remote_add_session_lines(&lines, l);
    post->call = http_call_start(r->pool, "DELETE", r->url.target, buf_str(&lines), NULL, 0, 5000,
                                 &post_events, post);
    buf_release(&lines);
}

static void remote_close(struct link *l)
{
    struct remote_link *r = l->wire;
    list_each(&r->posts, n) post_drop(list_entry(n, struct post, node));
    end_remote_session(l);
    loop_timer_free(r->listen_wait);
    free(r);
    l->wire = NULL;
}

/* Another link of ours may have resumed the session: a shared link outlives a session. */
static bool is_in_use(struct upstream *u, const struct link *but)
{
    list_each(&u->lru, n)
    {
        struct link *l = list_entry(n, struct link, lru);
        if (l != but && str_eq(l->remote_id, but->remote_id))
            return true;
    }
    return false;
}

void remote_end_session(struct upstream *u, struct str resume)
{
    static const struct error quiet = {.code = ERR_NONE};
    struct link_identity who = {.key = STR("past"), .owner = STR("past"), .resume = resume};
    struct remote *r;
    struct error err;
    struct link *l;

    if (u->sse || u->retired || !remote_of(u, &r, &err))
        return;
    l = link_new(u, &who, MCP_LEGACY, true);
    remote_open(l);
    if (!l->is_resumed || is_in_use(u, l))
        l->remote_id = STR_NONE; /* then no DELETE is sent */
    else
        log_debug("deleting a session at a server that is not used any more",
                  LS("server", u->config->name));
    link_end(l, &quiet);
}

static void remote_forget(struct upstream *u)
{
    struct remote *r = u->wire;
    if (!r)
        return;
    http_pool_free(r->pool);
    http_pool_free(r->streams);
    tls_free(r->tls);
    secret_release(&r->common);
    buf_release(&r->lines);
    free(r);
}

const struct upstream_ops upstream_remote = {
    .name = "http",
    .has_process = false,
    .open = remote_open,
    .prepare = remote_prepare,
    .send = remote_send,
    .abandon = remote_abandon,
    .close = remote_close,
    .forget = remote_forget,
};
