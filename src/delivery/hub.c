/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners, and which servers they make us watch. */
#include "delivery/hub.h"

#include <stdlib.h>

struct hub {
    struct loop *loop;
    struct upstreams *upstreams;
    struct list listeners;
};

struct hub *hub_new(struct loop *loop)
{
    struct hub *h = xcalloc(1, sizeof(*h));
    h->loop = loop;
    list_init(&h->listeners);
    return h;
}

void hub_set_upstreams(struct hub *h, struct upstreams *upstreams)
{
    h->upstreams = upstreams;
}

void hub_free(struct hub *h)
{
    free(h);
}

void hub_listen(struct hub *h, struct listener *l)
{
    transport_ref(l->transport);
    l->transport->listener = l;
    list_push(&h->listeners, &l->node);
}

void hub_unlisten(struct hub *h unused_arg, struct listener *l)
{
    if (l->transport->listener == l)
        l->transport->listener = NULL;
    list_remove(&l->node);
    transport_unref(l->transport);
    l->transport = NULL;
}
