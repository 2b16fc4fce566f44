/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles and the toolsets they offer: read once, sorted by name, toolsets found by their keys
 * when all is read.  A profile may name a server that is not there, since servers come and go; a
 * toolset that is not there would quietly offer less than was meant, so it is refused. */
#include "config/config_impl.h"

#include <stdlib.h>

#define PROFILES_MAX 256
#define TOOLSETS_MAX 1000

static int by_profile_name(const void *a, const void *b)
{
    return str_cmp(((const struct profile_config *)a)->name,
                   ((const struct profile_config *)b)->name);
}

static int by_toolset_key(const void *a, const void *b)
{
    return str_cmp(((const struct toolset_config *)a)->key,
                   ((const struct toolset_config *)b)->key);
}

/* How many there are; false: no object of named objects, or too many. */
static bool count_named(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, size_t max, size_t *ret, struct error *err)
{
    size_t n = 0;

    if (v->type != JS_OBJECT)
        return js_bind_fault(b, v, err, "\"%s\" must be an object of named objects", f->name);
    for (const struct js_node *key = js_first(b->doc, v); key;
         key = js_next(b->doc, v, js_value_of(key)))
        n++;
    if (n > max)
        return js_bind_fault(b, v, err, "\"%s\" has at most %zu names", f->name, max);
    *ret = n;
    return true;
}

bool option_read_profiles(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    struct str name;
    size_t n;

    if (!count_named(b, f, v, PROFILES_MAX, &n, err))
        return false;
    c->profiles = arena_zalloc(b->mem, n * sizeof(*c->profiles));
    c->n_profiles = 0;
    for (const struct js_node *key = js_first(b->doc, v); key;
         key = js_next(b->doc, v, js_value_of(key))) {
        struct profile_config *p = &c->profiles[c->n_profiles++];
        if (!value_name(b, f, key, &name, err))
            return false;
        js_bind_defaults(f->fields, p, b->mem);
        p->name = arena_dup(b->mem, name);
        if (!js_bind(b, js_value_of(key), f->fields, p, err))
            return false;
    }
    qsort(c->profiles, n, sizeof(*c->profiles), by_profile_name);
    return true;
}

bool option_read_toolsets(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    struct str key_text;
    size_t n;

    if (!count_named(b, f, v, TOOLSETS_MAX, &n, err))
        return false;
    c->toolsets = arena_zalloc(b->mem, n * sizeof(*c->toolsets));
    c->n_toolsets = 0;
    for (const struct js_node *key = js_first(b->doc, v); key;
         key = js_next(b->doc, v, js_value_of(key))) {
        struct toolset_config *t = &c->toolsets[c->n_toolsets++];
        if (!value_name(b, f, key, &key_text, err))
            return false;
        t->key = arena_dup(b->mem, key_text);
        if (!js_bind(b, js_value_of(key), f->fields, t, err))
            return false;
    }
    qsort(c->toolsets, n, sizeof(*c->toolsets), by_toolset_key);
    return true;
}

const struct profile_config *config_profile(const struct config *c, struct str name)
{
    struct profile_config wanted = {.name = name};

    if (c->n_profiles == 0)
        return NULL;
    return bsearch(&wanted, c->profiles, c->n_profiles, sizeof(*c->profiles), by_profile_name);
}

const struct toolset_config *config_toolset(const struct config *c, struct str key)
{
    struct toolset_config wanted = {.key = key};

    if (c->n_toolsets == 0)
        return NULL;
    return bsearch(&wanted, c->toolsets, c->n_toolsets, sizeof(*c->toolsets), by_toolset_key);
}

static bool find_toolsets(struct config *c, struct profile_config *p, struct error *err)
{
    p->toolsets = arena_zalloc(c->mem, (p->n_toolset_keys + 1) * sizeof(struct toolset_config *));
    for (size_t i = 0; i < p->n_toolset_keys; i++) {
        const struct toolset_config *t = config_toolset(c, p->toolset_keys[i]);
        if (!t)
            return error_set(err, ERR_CONFIG,
                             "profile \"%.*s\" names the toolset \"%.64s\", which "
                             "\"holdfast.toolsets\" does not have; define it there",
                             STR_ARG(p->name), p->toolset_keys[i].p);
        p->toolsets[i] = t;
    }
    return true;
}

static bool is_known_server(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->n_servers; i++)
        if (str_eq(c->servers[i].name, name))
            return true;
    return str_eq(name, STR("session")) || str_eq(name, STR("sample")) ||
           (str_eq(name, STR("docs")) && c->n_folders > 0);
}

bool profiles_finish(struct reading *r, struct error *err)
{
    struct config *c = r->config;

    for (size_t i = 0; i < c->n_profiles; i++) {
        struct profile_config *p = &c->profiles[i];
        if (!find_toolsets(c, p, err))
            return false;
        if (p->mode > PROFILE_SEARCH)
            note_add(r, "profile \"%.*s\" is not served yet: its mode is neither all nor search",
                     STR_ARG(p->name));
        for (size_t s = 0; s < p->n_servers; s++)
            if (!is_known_server(c, p->servers[s]))
                note_add(r, "profile \"%.*s\" names the server \"%.64s\", which is not configured",
                         STR_ARG(p->name), p->servers[s].p);
    }
    return true;
}
