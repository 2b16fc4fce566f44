/* SPDX-License-Identifier: Apache-2.0 */
/* What a link starts or sends with where its server's env or headers have holes (${context:KEY}):
 * filled once, when the link is made, with what its session was told.  A link of nobody (a probe, a
 * watch) has the defaults, and lacks what has none. */
#include "upstream/upstream_impl.h"

#define FILLED_BYTES (8u * 1024 * 1024)

void link_fill(struct link *l, const struct link_identity *who)
{
    const struct server_config *c = l->up->config;
    const struct config_pair *from = c->kind == SERVER_HTTP ? c->headers : c->env;
    size_t n = c->kind == SERVER_HTTP ? c->n_headers : c->n_env;
    struct config_pair *filled;
    struct str missing;
    struct buf value;

    if (!c->takes_context)
        return;
    l->hidden = arena_new_hidden(FILLED_BYTES);
    l->pairs = filled = arena_zalloc(l->hidden, n * sizeof(*filled));
    buf_init_secret(&value, FILLED_BYTES);
    for (size_t i = 0; i < n; i++) {
        buf_reset(&value);
        if (!config_pair_fill(&from[i], who->told, who->n_told, &value, &missing))
            continue;
        filled[l->n_pairs++] = (struct config_pair){.name = from[i].name,
                                                    .value = arena_dup(l->hidden, buf_str(&value))};
    }
    buf_release(&value);
}

const struct config_pair *link_pairs(const struct link *l, size_t *ret_n)
{
    const struct server_config *c = l->up->config;
    bool is_http = c->kind == SERVER_HTTP;

    *ret_n = l->pairs ? l->n_pairs : is_http ? c->n_headers : c->n_env;
    return l->pairs ? l->pairs : is_http ? c->headers : c->env;
}

bool upstream_check_told(const struct upstream *u, const struct config_pair *told, size_t n,
                         struct error *err)
{
    const struct server_config *c = u->config;
    struct str missing = STR_NONE;
    bool ok = true;
    struct buf value;

    if (c->kind != SERVER_HTTP)
        return true;
    buf_init_secret(&value, FILLED_BYTES);
    for (size_t i = 0; ok && i < c->n_headers; i++) {
        if (!c->headers[i].n_holes)
            continue;
        buf_reset(&value);
        ok = !config_pair_fill(&c->headers[i], told, n, &value, &missing) ||
             config_is_header_value(buf_str(&value)) ||
             error_set(err, ERR_BAD_INPUT,
                       "what the session was told for \"%.*s\" cannot stand in the header %.*s of "
                       "the server %.*s; open a new session without line ends, control characters "
                       "and blanks around it",
                       STR_ARG(c->headers[i].holes[0].key), STR_ARG(c->headers[i].name),
                       STR_ARG(c->name));
    }
    buf_release(&value);
    return ok;
}
