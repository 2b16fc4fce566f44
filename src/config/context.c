/* SPDX-License-Identifier: Apache-2.0 */
/* ${context:KEY} and ${context:KEY:-default} in "env" and "headers" of servers: placeholders that
 * each session fills with its context values (session/profile_context.h).  Reading stores
 * placeholders apart from the text, so a variable or a client value cannot introduce another
 * placeholder.  They are filled when a link is opened. */
#include "config/config_impl.h"

#define PLACEHOLDERS_MAX 16 /* in one value */

bool context_is_key(struct str key)
{
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-')
            return false;
    }
    return key.n > 0 && key.n <= CONTEXT_KEY_MAX;
}

void context_placeholders_begin(struct reading *r, struct context_placeholders *placeholders)
{
    *placeholders = (struct context_placeholders){0};
    r->placeholders = placeholders;
}

void context_placeholders_end(struct reading *r, struct config_pair *pair)
{
    pair->placeholders = r->placeholders->list;
    pair->n_placeholders = r->placeholders->n;
    r->placeholders = NULL;
}

const char *context_placeholder_add(const struct js_binding *b, struct str inside, size_t at)
{
    struct context_placeholders *placeholders = reading_of(b)->placeholders;
    size_t colon = str_find(inside, ':');
    struct context_placeholder placeholder = {.at = at,
                                              .key = arena_dup(b->mem, str_n(inside.p, colon))};

    if (!placeholders)
        return "cannot be used here, because this value is read before a session exists; use it in "
               "values of \"env\" and \"headers\"";
    if (colon < inside.n) {
        struct str rest = str_n(inside.p + colon, inside.n - colon);
        if (!str_starts(rest, STR(":-")))
            return "is not understood; write ${context:KEY} or ${context:KEY:-default}";
        placeholder.fallback = arena_dup(b->mem, str_n(rest.p + 2, rest.n - 2));
        if (memmem(placeholder.fallback.p, placeholder.fallback.n, "${", 2))
            return "has a variable as its default; write a plain text there, as variables in a "
                   "default are not replaced";
    }
    if (!context_is_key(placeholder.key))
        return "has an invalid key; a key has 1 to 64 letters, digits, _ and -";
    if (placeholders->n == PLACEHOLDERS_MAX)
        return "is more than a value may have; use at most 16 of them";
    if (!placeholders->list)
        placeholders->list = arena_zalloc(b->mem, PLACEHOLDERS_MAX * sizeof(*placeholders->list));
    placeholders->list[placeholders->n++] = placeholder;
    return NULL;
}

bool server_takes_context(const struct server_config *s)
{
    const struct config_pair *pairs = s->kind == SERVER_HTTP ? s->headers : s->env;
    size_t n = s->kind == SERVER_HTTP ? s->n_headers : s->n_env;

    for (size_t i = 0; i < n; i++)
        if (pairs[i].n_placeholders)
            return true;
    return false;
}

static bool is_listed(const struct config *c, struct str key)
{
    for (size_t i = 0; i < c->n_profiles; i++)
        for (size_t k = 0; k < c->profiles[i].n_context_keys; k++)
            if (str_eq(c->profiles[i].context_keys[k], key))
                return true;
    return false;
}

static void note_pair(struct reading *r, struct str server, const struct config_pair *pair)
{
    for (size_t i = 0; i < pair->n_placeholders; i++)
        if (!pair->placeholders[i].fallback.p && !is_listed(r->config, pair->placeholders[i].key))
            note_add(r,
                     "server \"%.*s\" needs ${context:%.*s}, which no profile lists in "
                     "\"context\", so its calls are refused",
                     STR_ARG(server), STR_ARG(pair->placeholders[i].key));
}

void context_note_unlisted(struct reading *r)
{
    for (size_t i = 0; i < r->config->n_servers; i++) {
        const struct server_config *s = &r->config->servers[i];
        for (size_t k = 0; k < s->n_headers && s->kind == SERVER_HTTP; k++)
            note_pair(r, s->name, &s->headers[k]);
        for (size_t k = 0; k < s->n_env && s->kind == SERVER_STDIO; k++)
            note_pair(r, s->name, &s->env[k]);
    }
}

static bool check_key(const struct js_binding *b, const struct js_field *f unused_arg,
                      const struct js_node *v, struct str text, struct error *err)
{
    return context_is_key(text) ||
           js_bind_fault(b, v, err, "a key has 1 to %d letters, digits, _ and -; correct this one",
                         CONTEXT_KEY_MAX);
}

bool option_read_context_keys(const struct js_binding *b, const struct js_field *f,
                              const struct js_node *v, void *place, struct error *err)
{
    size_t *n = (size_t *)(void *)((char *)place - f->offset + f->count_offset);

    if (!value_list(b, f, v, place, check_key, err))
        return false;
    return *n > 0 || js_bind_fault(b, v, err,
                                   "\"%s\" is empty; name the keys, or leave \"context\" "
                                   "out",
                                   f->name);
}

static const struct config_pair *find(const struct config_pair *context_values, size_t n,
                                      struct str key)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(context_values[i].name, key))
            return &context_values[i];
    return NULL;
}

bool config_pair_fill(const struct config_pair *pair, const struct config_pair *context_values,
                      size_t n, struct buf *out, struct str *ret_missing)
{
    size_t at = 0;

    for (size_t i = 0; i < pair->n_placeholders; i++) {
        const struct context_placeholder *placeholder = &pair->placeholders[i];
        const struct config_pair *value = find(context_values, n, placeholder->key);
        if (!value && !placeholder->fallback.p) {
            *ret_missing = placeholder->key;
            return false;
        }
        buf_add(out, pair->value.p + at, placeholder->at - at);
        buf_addstr(out, value && (value->value.n || !placeholder->fallback.p)
                            ? value->value
                            : placeholder->fallback);
        at = placeholder->at;
    }
    buf_add(out, pair->value.p + at, pair->value.n - at);
    return true;
}
