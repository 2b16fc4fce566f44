/* SPDX-License-Identifier: Apache-2.0 */
#include "front/front.h"

#include "front/plain.h"
#include "identity/proxy.h"

const struct need need_open = {.access = ACCESS_OPEN}, need_spine = {.access = ACCESS_SPINE},
                  need_any = {.access = ACCESS_ANY},
                  need_local_admin = {.access = ACCESS_LOCAL_ADMIN};

static void on_identified(struct identify *q)
{
    struct admission *a = container_of(q, struct admission, identify);
    a->done(a);
}

bool admit_ask(struct front *f, struct admission *a, const struct config *config,
               const struct http_request *r, struct str path_key, struct arena *mem)
{
    struct identify *q = &a->identify;

    /* Member by member: zeroing the error text for every request would cost too much. */
    q->config = config;
    q->head = r->head;
    q->path_key = path_key;
    q->from = r;
    q->is_unix = r->is_unix;
    q->is_elsewhere = !config->auth_required && client_is_elsewhere(config, r);
    q->peer_uid = r->peer_uid;
    q->mem = mem;
    q->done = on_identified;
    return identify(f->identity, q);
}

void admit_cancel(struct admission *a)
{
    identify_cancel(&a->identify);
}

bool admit_identified(struct admission *a, const struct http_request *r, struct caller *c,
                      struct refusal *ret)
{
    const struct identify *q = &a->identify;

    if (q->ok) {
        c->who = q->who;
        c->is_known = true;
        return true;
    }
    *ret = (struct refusal){
        .code = q->err.code,
        .text = q->err.text,
        .headers = q->err.code == ERR_UNAUTHENTICATED
                       ? identity_challenge(q->config, r, q->had_credential)
                       : STR("Retry-After: 1\r\n"),
    };
    return false;
}

static struct refusal format_quota(const struct quota_refusal *q, struct arena *mem)
{
    return (struct refusal){
        .code = ERR_QUOTA,
        .text = arena_printf(mem, "%s", q->err.text).p,
        .headers = quota_lines(q, mem),
        .retry_s = q->retry_s,
    };
}

bool admit_limit(struct front *f, struct caller *c, unsigned what, size_t bytes, struct arena *mem,
                 struct refusal *ret)
{
    struct quota_refusal refusal;

    if (likely(!quota_applies(c->config, &c->who)) || !what)
        return true;
    if (quota_take(f->quotas, &c->who, what, bytes, &c->use, &refusal)) {
        c->is_limited = true;
        return true;
    }
    quota_refused(f->quotas, &refusal);
    *ret = format_quota(&refusal, mem);
    return false;
}

bool admit_session_limit(struct front *f, struct caller *c, const struct quota_session *session,
                         unsigned what, size_t bytes, struct arena *mem, struct refusal *ret)
{
    struct quota_refusal refusal;

    if (!what)
        return true;
    if (quota_take_session(f->quotas, session, what, bytes, &c->use, &refusal)) {
        c->is_limited = true;
        return true;
    }
    quota_refused(f->quotas, &refusal);
    *ret = format_quota(&refusal, mem);
    return false;
}

/* Whether the route exists for this caller, and whether its role may use it. */
static bool check_need(const struct caller *c, const struct need *need, struct refusal *ret)
{
    static const char *const denied[] = {
        [ACCESS_WRITE] = "The role auditor reads and changes nothing; use another key.",
        [ACCESS_WATCH] = "This is for the roles admin and auditor; use another key.",
        [ACCESS_ADMIN] = "This is for the role admin; use another key.",
        [ACCESS_LOCAL_ADMIN] = "this is for the user who runs Holdfast, without a key",
    };
    const char *why = need->off ? need->off(c) : NULL;

    if (why) {
        *ret = (struct refusal){.code = ERR_NOT_FOUND, .text = why};
        return false;
    }
    if (need->access == ACCESS_SPINE || caller_may(c, need->access))
        return true;
    *ret = (struct refusal){.code = ERR_DENIED,
                            .text = need->denied ? need->denied : denied[need->access]};
    return false;
}

/* A request in the pipeline; in the memory of the request. */
struct visit {
    struct admission admission;
    struct front *front;
    struct http_request *http;
    const struct front_route *route;
    struct caller caller;
};

static void refuse(const struct front_route *route, struct http_request *r, struct caller *c,
                   const struct refusal *why)
{
    if (route->refuse)
        route->refuse(route->arg, r, c, why);
    else
        plain_refuse(r, error_info(why->code)->http_status, why->headers, why->text);
}

/* The handler may end the request and free its memory, so the caller moves to the stack. */
static void enter(const struct front_route *route, struct http_request *r, struct caller *from,
                  const struct refusal *why)
{
    struct caller c;

    caller_take(&c, from);
    c.route = route;
    if (why)
        refuse(route, r, &c, why);
    else
        route->fn(route->arg, r, &c);
    caller_release(&c);
}

static bool check_limit(struct visit *v, struct refusal *ret)
{
    const struct need *need = v->route->need;

    return (need->is_free_for_local && caller_is_local_admin(&v->caller)) ||
           admit_limit(v->front, &v->caller, need->quota, v->http->body.n, v->http->mem, ret);
}

static void decide(struct visit *v)
{
    const struct need *need = v->route->need;
    struct http_request *r = v->http;
    struct refusal why;
    bool ok = admit_identified(&v->admission, r, &v->caller, &why) && check_limit(v, &why) &&
              check_need(&v->caller, need, &why);

    enter(v->route, r, &v->caller, ok ? NULL : &why);
}

static void on_asked(struct admission *a)
{
    struct visit *v = container_of(a, struct visit, admission);

    v->front->under_way--;
    v->http->user = NULL;
    v->http->on_abort = NULL;
    decide(v);
}

static void on_abort(struct http_request *r)
{
    struct visit *v = r->user;

    v->front->under_way--;
    admit_cancel(&v->admission);
    caller_release(&v->caller);
    http_request_done(r); /* also frees v */
}

static void admit_open(struct front *f, struct http_request *r, const struct front_route *route)
{
    struct refusal why;
    struct caller c;

    caller_init(&c, f->config);
    c.is_unix = r->is_unix;
    enter(route, r, &c, check_need(&c, route->need, &why) ? NULL : &why);
}

void admit_request(struct front *f, struct http_request *r, const struct front_route *route)
{
    struct visit *v;

    if (route->need->access == ACCESS_OPEN || route->need->access == ACCESS_SPINE) {
        admit_open(f, r, route);
        return;
    }
    v = arena_alloc(r->mem, sizeof(*v));
    v->admission.done = on_asked;
    v->front = f;
    v->http = r;
    v->route = route;
    caller_init(&v->caller, f->config);
    v->caller.is_unix = r->is_unix;
    if (admit_ask(f, &v->admission, v->caller.config, r, STR_NONE, r->mem)) {
        decide(v);
        return;
    }
    f->under_way++;
    r->user = v;
    r->on_abort = on_abort;
}
