/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the placeholders (${context:KEY}) in the env or headers of a server with the context values
 * of the session, once, when the link is made.  A link without a session (a probe, a watch) gets
 * the defaults.  A variable or header whose placeholder has no default is left out. */
#include "upstream/upstream_impl.h"

#include "audit/known.h"

/* More than a configuration and the context values can produce. */
#define FILLED_BYTES (8u * 1024 * 1024)

static const struct config_pair *fill_pairs(const struct server_config *c,
                                            const struct link_identity *who, struct arena *mem,
                                            size_t *ret_n)
{
    const struct config_pair *from = c->kind == SERVER_HTTP ? c->headers : c->env;
    size_t n = c->kind == SERVER_HTTP ? c->n_headers : c->n_env;
    struct config_pair *filled = arena_zalloc(mem, n * sizeof(*filled));
    struct str missing;
    struct buf value;

    *ret_n = 0;
    buf_init_secret(&value, FILLED_BYTES);
    for (size_t i = 0; i < n; i++) {
        buf_reset(&value);
        if (!config_pair_fill(&from[i], who->context_values, who->n_context_values, &value,
                              &missing))
            continue;
        filled[(*ret_n)++] =
            (struct config_pair){.name = from[i].name, .value = arena_dup(mem, buf_str(&value))};
    }
    buf_release(&value);
    return filled;
}

void link_fill(struct link *l, const struct link_identity *who)
{
    if (!l->up->config->takes_context)
        return;
    l->has_context_values = who->n_context_values > 0;
    l->hidden = arena_new_hidden(FILLED_BYTES);
    l->pairs = fill_pairs(l->up->config, who, l->hidden, &l->n_pairs);
}

struct known *upstream_secrets(const struct upstream *u, const struct link_identity *who)
{
    const struct server_config *c = u->config;
    const char *kind = c->kind == SERVER_HTTP ? "header" : "env";
    bool has_values = c->takes_context && who->n_context_values > 0;
    struct known *known;
    struct arena *mem;
    size_t n = 0;

    if (!who->credential.value.p && !has_values)
        return NULL;
    known = known_new(false);
    mem = arena_new_hidden(2 * FILLED_BYTES);
    if (who->credential.value.p)
        known_add_setting(known, who->credential.value,
                          arena_printf(mem, "credential %.*s of %.*s",
                                       STR_ARG(c->credential_service), STR_ARG(c->name)));
    for (size_t i = 0; i < who->n_context_values; i++)
        known_add_setting(known, who->context_values[i].value,
                          arena_printf(mem, "context %.*s", STR_ARG(who->context_values[i].name)));
    const struct config_pair *pairs = has_values ? fill_pairs(c, who, mem, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        known_add_setting(
            known, pairs[i].value,
            arena_printf(mem, "%s %.*s of %.*s", kind, STR_ARG(pairs[i].name), STR_ARG(c->name)));
    known_finish(known);
    arena_free(mem);
    return known;
}

const struct config_pair *link_pairs(const struct link *l, size_t *ret_n)
{
    const struct server_config *c = l->up->config;
    bool is_http = c->kind == SERVER_HTTP;

    *ret_n = l->pairs ? l->n_pairs : is_http ? c->n_headers : c->n_env;
    return l->pairs ? l->pairs : is_http ? c->headers : c->env;
}

/* The context value for that placeholder; absent: its default is used. */
static struct str context_value_for(const struct context_placeholder *placeholder,
                                    const struct config_pair *context_values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(context_values[i].name, placeholder->key))
            return context_values[i].value;
    return STR_NONE;
}

/* Text around the placeholders and their defaults were checked when the configuration was read. */
static bool check_header(const struct server_config *c, const struct config_pair *pair,
                         const struct config_pair *context_values, size_t n, struct error *err)
{
    for (size_t i = 0; i < pair->n_placeholders; i++)
        if (!config_is_header_value(context_value_for(&pair->placeholders[i], context_values, n)))
            return error_set(err, ERR_BAD_INPUT,
                             "the value of \"%.*s\" in this session's config cannot be sent in the "
                             "header %.*s of the server %.*s; open a new session with a value "
                             "without line ends, control characters and blanks around it",
                             STR_ARG(pair->placeholders[i].key), STR_ARG(pair->name),
                             STR_ARG(c->name));
    return true;
}

bool upstream_check_context_values(const struct upstream *u,
                                   const struct config_pair *context_values, size_t n,
                                   struct error *err)
{
    const struct server_config *c = u->config;
    bool is_http = c->kind == SERVER_HTTP;
    const struct config_pair *pairs = is_http ? c->headers : c->env;
    size_t n_pairs = is_http ? c->n_headers : c->n_env, bytes = 0;

    for (size_t i = 0; i < n_pairs; i++) {
        for (size_t k = 0; k < pairs[i].n_placeholders; k++)
            bytes += context_value_for(&pairs[i].placeholders[k], context_values, n).n;
        if (is_http && !check_header(c, &pairs[i], context_values, n, err))
            return false;
    }
    return bytes <= UPSTREAM_CONTEXT_BYTES_MAX ||
           error_set(err, ERR_BAD_INPUT,
                     "the values of this session's config need %zu bytes in the %s of the server "
                     "%.*s, of at most %u; open a new session with shorter values",
                     bytes, is_http ? "headers" : "environment", STR_ARG(c->name),
                     UPSTREAM_CONTEXT_BYTES_MAX);
}
