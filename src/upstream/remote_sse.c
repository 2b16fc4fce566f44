/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP transport of 2024: a GET opens the channel.  Its first event names the endpoint for
 * posts, and every answer comes on the channel.  The channel is the session: when it ends, the link
 * ends.
 *
 * A server is of this kind if its configuration says so, or if it refuses initialize with 400, 404
 * or 405 and a GET yields an endpoint.  The probe tries that, and the upstream remembers it. */
#include "upstream/remote_impl.h"

#include "base/log.h"

#define ENDPOINT_MS 10000 /* timeout of the first event */

static const struct http_call_events channel_events;

static bool refuse_endpoint(const struct link *l, const char *why, struct error *err)
{
    return error_set(err, ERR_UPSTREAM, "%.*s named an endpoint %s; report that to its authors",
                     STR_ARG(l->up->config->name), why);
}

/* The directory of a path, with its last slash: the base of relative endpoints. */
static struct str directory_of(struct str target)
{
    struct str path = str_n(target.p, str_find(target, '?'));
    while (path.n && path.p[path.n - 1] != '/')
        path.n--;
    return path;
}

/* The request target in an endpoint event, on the same origin; in the link's memory. */
static bool endpoint_target(struct link *l, struct str data, struct str *ret, struct error *err)
{
    const struct http_url *home = &((struct remote *)l->up->wire)->url;
    struct http_url url;
    struct error ignored;

    if (!data.n || data.n > REMOTE_MAX_ENDPOINT || !post_is_visible(data) ||
        str_find(data, '#') != data.n)
        return refuse_endpoint(l, "that is no URL of at most 4096 bytes", err);
    if (str_starts(data, STR("//")))
        return refuse_endpoint(l, "on another origin than its own", err);
    if (str_find(data, ':') < str_find(data, '/') && str_find(data, ':') < str_find(data, '?')) {
        if (!http_url_parse(data, &url, &ignored) || url.is_tls != home->is_tls ||
            url.port != home->port || !str_ieq(url.host, home->host))
            return refuse_endpoint(l, "on another origin than its own", err);
        *ret = arena_dup(l->mem, url.target);
    } else if (data.p[0] == '/') {
        *ret = arena_dup(l->mem, data);
    } else {
        struct str base = data.p[0] == '?' ? str_n(home->target.p, str_find(home->target, '?'))
                                           : directory_of(home->target);
        *ret = arena_printf(l->mem, "%.*s%.*s", STR_ARG(base), STR_ARG(data));
    }
    return true;
}

/* Ends the link because of its channel. */
static void channel_fail(struct post *post, const struct error *err)
{
    post->busy = true;
    link_end(post->link, err);
    post->busy = false;
}

/* The trial is over: the initialize behind it fails in either case. */
static void trial_over(struct post *post, bool found)
{
    struct link *l = post->link;
    struct error err;
    bool was_busy = post->busy;

    post->busy = true;
    if (!post_is_open(post)) {
        post->busy = was_busy;
        return;
    }
    if (found) {
        l->up->sse = l->says_sse = true;
        error_set(&err, ERR_UPSTREAM, "%.*s speaks the HTTP transport of 2024",
                  STR_ARG(l->up->config->name));
        pending_fail(post->pending, &err);
    } else {
        post_fail_by_status(post);
    }
    post->busy = was_busy;
}

static void on_endpoint(struct post *post, struct str data)
{
    struct link *l = post->link;
    struct remote_link *r = l->wire;
    struct error err;

    if (post->role == POST_TRIAL) {
        trial_over(post, true);
    } else if (!r->endpoint.p) {
        loop_timer_stop(post->timer);
        if (!endpoint_target(l, data, &r->endpoint, &err)) {
            channel_fail(post, &err);
            return;
        }
        l->remote_id = r->endpoint;
        link_up_later(l);
    }
}

static bool on_event(void *arg, const struct sse_event *e)
{
    struct post *post = arg;

    if (post->is_dropped)
        return false;
    if (str_eq(e->type, STR("endpoint")))
        on_endpoint(post, e->data);
    else if (post->role == POST_TRIAL)
        trial_over(post, false);
    else if (e->data.n && str_eq(e->type, STR("message")))
        link_receive(post->link, NULL, e->data);
    return !post->is_dropped && (post->role != POST_TRIAL || post_is_open(post));
}

static bool on_head(void *arg, const struct http_head *head)
{
    struct post *post = arg;

    if (post->role != POST_TRIAL) {
        post_begin_stream(post, head);
    } else if (post_is_event_stream(head)) { /* keeps the refused status, for the error */
        sse_reader_init(&post->sse, REMOTE_MAX_MESSAGE);
        post->is_stream = true;
    }
    return post->is_stream;
}

static bool on_body(void *arg, struct str bytes)
{
    struct post *post = arg;
    struct error err;

    post->busy = true;
    bool goes_on = sse_feed(&post->sse, bytes, on_event, post);
    if (!goes_on && !post->is_dropped && post->role == POST_CHANNEL) {
        error_set(&err, ERR_UPSTREAM, "%.*s sent an event larger than %u bytes; ask it for less",
                  STR_ARG(post->link->up->config->name), REMOTE_MAX_MESSAGE);
        link_end(post->link, &err);
    } else if (!goes_on && !post->is_dropped) {
        trial_over(post, false); /* does nothing when the trial is already over */
    }
    post->busy = false;
    if (goes_on && !post->is_dropped)
        return true;
    post_free(post);
    return false;
}

static void say_why_over(const struct post *post, const struct error *broken, struct error *ret)
{
    struct str name = post->link->up->config->name;

    if (broken) {
        *ret = *broken;
        error_wrap(ret, "%.*s", STR_ARG(name));
    } else if (post->is_stream) {
        error_set(ret, ERR_UNREACHABLE,
                  "%.*s ended its event stream, and its session with it; call again",
                  STR_ARG(name));
    } else {
        error_set(ret, ERR_UPSTREAM,
                  "%.*s answered HTTP %d to the GET that opens its event stream; check its \"url\" "
                  "and its \"type\"",
                  STR_ARG(name), post->status);
    }
}

static void on_done(void *arg, struct str body unused_arg, const struct error *broken,
                    bool sent unused_arg)
{
    struct post *post = arg;
    struct error err;

    post->call = NULL;
    post->busy = true;
    if (post->role == POST_TRIAL) {
        trial_over(post, false);
    } else {
        say_why_over(post, broken, &err);
        link_end(post->link, &err);
    }
    post_free(post);
}

static const struct http_call_events channel_events = {
    .on_head = on_head,
    .on_body = on_body,
    .on_done = on_done,
};

static void on_silence(void *arg)
{
    struct post *post = arg;
    struct error err;

    if (post->role == POST_TRIAL) {
        trial_over(post, false);
        post_drop(post);
        return;
    }
    error_set(&err, ERR_TIMEOUT, "%.*s did not name its endpoint within %d s; check its \"url\"",
              STR_ARG(post->link->up->config->name), ENDPOINT_MS / 1000);
    link_end(post->link, &err);
}

static void connect_channel(struct post *post, struct remote *r)
{
    struct link *l = post->link;
    struct buf lines;

    if (!post->timer)
        post->timer = loop_timer_new(l->up->set->loop, on_silence, post);
    loop_timer_start(post->timer, ENDPOINT_MS, 0);
    buf_init_secret(&lines, REMOTE_MAX_LINES);
    buf_addz(&lines, "Accept: text/event-stream\r\n");
    remote_add_own_lines(&lines, l, r->own);
    post->call = http_call_start(remote_streams(l->up, r), "GET", r->url.target, buf_str(&lines),
                                 NULL, 0, 0, &channel_events, post);
    buf_release(&lines);
}

void remote_channel_open(struct link *l)
{
    struct error err;
    struct remote *r;

    if (!remote_of(l->up, &r, &err)) {
        link_up_later(l); /* sending will fail in the same way, from the loop */
        return;
    }
    struct post *post = post_new(l, NULL);
    post->role = POST_CHANNEL;
    connect_channel(post, r);
}

bool remote_channel_is_worth_a_trial(const struct post *post)
{
    const struct link *l = post->link;
    bool refused = post->status == 400 || post->status == 404 || post->status == 405;

    return refused && l->is_probe && l->era == MCP_LEGACY && !l->up->sse &&
           post->pending == &l->handshake && post->role == POST_MESSAGE;
}

void remote_channel_try(struct post *post)
{
    post->role = POST_TRIAL;
    connect_channel(post, post->link->up->wire);
}
