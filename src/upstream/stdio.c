/* SPDX-License-Identifier: Apache-2.0 */
/* Links to stdio servers: one child process each, messages as lines (child.c does the framing). */
#include "upstream/upstream_impl.h"

#include "upstream/child.h"
#include "upstream/keeper_env.h"

#include <stdio.h>

static void on_line(void *arg, struct str line)
{
    link_receive(arg, NULL, line);
}

/* Only the telling lines of its stderr are in the error. */
static void say_where_to_look(const struct link *l, struct error *err)
{
    struct str name = upstream_name(l->up);
    size_t n = strlen(err->text);

    if (err->code != ERR_CANCELLED && strstr(err->text, "it wrote to stderr: "))
        snprintf(err->text + n, sizeof(err->text) - n, "; %s`holdfast servers logs %.*s` has more",
                 l->has_answered ? "the next call starts it anew; " : "", STR_ARG(name));
}

/* A server that never answered may lack a variable that Holdfast's environment has. */
static void on_end(void *arg, const struct error *why)
{
    struct link *l = arg;
    struct error err = *why;
    char names[100];
    size_t n = strlen(err.text);

    child_env_hint(l->up->config, names, sizeof(names));
    if (!l->has_answered && *names && err.code != ERR_CANCELLED)
        snprintf(err.text + n, sizeof(err.text) - n,
                 "; it does not get %s from the environment of Holdfast: add the names that it "
                 "needs to its \"inherit_env\"",
                 names);
    say_where_to_look(l, &err);
    link_end(l, &err);
}

static const struct child_events events = {.on_line = on_line, .on_end = on_end};

static void stdio_open(struct link *l)
{
    struct upstreams *s = l->up->set;
    struct server_config with = *l->up->config;
    size_t n;
    const struct config_pair *own = link_pairs(l, &n);
    struct config_pair *env;

    with.env = (struct config_pair *)own; /* only read */
    with.n_env = n;
    if (l->credential.value.p && l->credential.as == CREDENTIAL_ENV) {
        env = arena_alloc(l->mem, (n + 1) * sizeof(*env));
        with.n_env = 0;
        for (size_t i = 0; i < n; i++)
            if (!str_eq(own[i].name, l->credential.name))
                env[with.n_env++] = own[i];
        env[with.n_env++] =
            (struct config_pair){.name = l->credential.name, .value = l->credential.value};
        with.env = env;
    }
    l->wire = child_start(s->loop, s->keeper, &with, &events, l);
    child_set_secrets(l->wire, &l->own);
    child_set_log(l->wire, l->up->stderr_log,
                  str_starts(l->key, STR("s:")) ? str_n(l->key.p + 2, l->key.n - 2) : STR_NONE);
    link_up_later(l);
}

static bool stdio_send(struct link *l, struct pending *p, const struct outgoing *m,
                       struct error *err)
{
    struct iovec part = {.iov_base = (void *)m->text.p, .iov_len = m->text.n};
    if (!child_write(l->wire, &part, 1))
        return error_set(err, ERR_UNREACHABLE,
                         "%.*s does not read its input (1 MiB is waiting); try again later",
                         STR_ARG(l->up->config->name));
    if (p)
        p->left = true;
    return true;
}

static void stdio_abandon(struct link *l unused_arg, struct pending *p unused_arg)
{
}

static void stdio_close(struct link *l)
{
    child_retire(l->wire);
    l->wire = NULL;
}

const struct upstream_ops upstream_stdio = {
    .name = "stdio",
    .has_process = true,
    .open = stdio_open,
    .send = stdio_send,
    .abandon = stdio_abandon,
    .close = stdio_close,
};
