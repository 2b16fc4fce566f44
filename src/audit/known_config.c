/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of a configuration: every value of env and headers, the sealed secrets in
 * use, and the secrets of issuers. */
#include "audit/known.h"

#include "base/arena.h"
#include "config/sinks.h"

/* For a value with placeholders, adds the text around them and their defaults.  The values that a
 * session fills in are added with the session's link. */
static void add_pair(struct known *k, const struct config_pair *pair, struct str name)
{
    size_t at = 0;

    if (!pair->n_placeholders) {
        known_add_setting(k, pair->value, name);
        return;
    }
    for (size_t i = 0; i <= pair->n_placeholders; i++) {
        size_t end = i < pair->n_placeholders ? pair->placeholders[i].at : pair->value.n;
        known_add(k, str_n(pair->value.p + at, end - at), name);
        if (i < pair->n_placeholders)
            known_add_setting(k, pair->placeholders[i].fallback, name);
        at = end;
    }
}

static void add_pairs(struct known *k, const char *kind, struct str server,
                      const struct config_pair *pairs, size_t n, struct arena *mem)
{
    for (size_t i = 0; i < n; i++)
        add_pair(
            k, &pairs[i],
            arena_printf(mem, "%s %.*s of %.*s", kind, STR_ARG(pairs[i].name), STR_ARG(server)));
}

static void add_config(struct known *k, const struct config *c, struct arena *mem)
{
    for (size_t i = 0; i < c->n_servers; i++) {
        const struct server_config *s = &c->servers[i];
        add_pairs(k, "env", s->name, s->env, s->n_env, mem);
        add_pairs(k, "header", s->name, s->headers, s->n_headers, mem);
    }
    if (c->otlp)
        add_pairs(k, "header", c->otlp->name, c->otlp->headers, c->otlp->n_headers, mem);
    for (size_t i = 0; i < c->n_sinks; i++) {
        const struct server_config *s = &c->sinks[i].target;
        add_pairs(k, "header", s->name, s->headers, s->n_headers, mem);
        known_add(k, s->secret, arena_printf(mem, "secret of %.*s", STR_ARG(s->name)));
    }
    for (size_t i = 0; i < c->n_secrets; i++)
        known_add(k, c->secrets[i].value,
                  arena_printf(mem, "secret %.*s", STR_ARG(c->secrets[i].name)));
    for (size_t i = 0; i < c->n_issuers; i++)
        for (size_t n = 0; n < c->issuers[i].n_keys; n++)
            known_add(k, c->issuers[i].keys[n].secret,
                      arena_printf(mem, "jwt secret of %.*s", STR_ARG(c->issuers[i].issuer)));
}

struct known *known_of_config(const struct config *c, const struct config *before)
{
    struct known *k = known_new(true);
    struct arena *mem = arena_new(SIZE_MAX / 4);

    add_config(k, c, mem);
    if (before)
        add_config(k, before, mem);
    known_finish(k);
    arena_free(mem);
    return k;
}
