/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies the sender of an HTTP request.  The client may disconnect before the result. */
#include "identity/identity.h"

#include "identity/proxy.h"

struct asking {
    struct identify q;
    struct http_request *r;
    void *user; /* saved r->user */
    identified_fn *fn;
    void *arg;
};

static void answer(struct asking *a)
{
    a->fn(a->arg, a->r, a->q.ok ? &a->q.who : NULL, &a->q);
}

static void on_done(struct identify *q)
{
    struct asking *a = container_of(q, struct asking, q);
    a->r->user = a->user;
    a->r->on_abort = NULL;
    answer(a);
}

static void on_abort(struct http_request *r)
{
    struct asking *a = r->user;
    identify_cancel(&a->q);
    http_request_done(r); /* also frees `a` */
}

void identify_request(struct identity *id, const struct config *c, struct http_request *r,
                      struct str path_key, identified_fn *fn, void *arg)
{
    struct asking *a = arena_new_of(r->mem, struct asking);

    a->r = r;
    a->user = r->user;
    a->fn = fn;
    a->arg = arg;
    a->q = (struct identify){
        .config = c,
        .head = r->head,
        .path_key = path_key,
        .from = r,
        .is_unix = r->is_unix,
        .is_elsewhere = !c->auth_required && client_is_elsewhere(c, r),
        .peer_uid = r->peer_uid,
        .mem = r->mem,
        .done = on_done,
    };
    if (identify(id, &a->q)) {
        answer(a);
        return;
    }
    r->user = a;
    r->on_abort = on_abort;
}
