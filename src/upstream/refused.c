/* SPDX-License-Identifier: Apache-2.0 */
/* The transport of a server that cannot be started as it is configured, because a secret is missing
 * or makes a value unusable (config_resolve()).  Each link ends with that reason.  A changed secret
 * replaces the server by one with its own transport. */
#include "upstream/upstream_impl.h"

static void refuse(struct loop_task *task)
{
    struct link *l = container_of(task, struct link, start);
    struct error err;

    error_set(&err, ERR_UNREACHABLE, "%.*s", STR_ARG(l->up->config->refusal));
    if (l->state == LINK_OPENING)
        link_end(l, &err);
}

static void refused_open(struct link *l)
{
    l->start.fn = refuse;
    loop_defer(l->up->set->loop, &l->start);
}

static bool refused_send(struct link *l, struct pending *p unused_arg,
                         const struct outgoing *m unused_arg, struct error *err)
{
    return error_set(err, ERR_UNREACHABLE, "%.*s", STR_ARG(l->up->config->refusal));
}

static void refused_abandon(struct link *l unused_arg, struct pending *p unused_arg)
{
}

static void refused_close(struct link *l unused_arg)
{
}

const struct upstream_ops upstream_refused = {
    .name = "refused",
    .open = refused_open,
    .send = refused_send,
    .abandon = refused_abandon,
    .close = refused_close,
};
