/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles and the toolsets they offer: read once, sorted by name, toolsets found by their keys
 * when all is read.  A profile may name a server that is not there, since servers come and go; a
 * toolset that is not there would quietly offer less than was meant, so it is refused. */
#include "config/config_impl.h"

#define PROFILES_MAX 256
#define TOOLSETS_MAX 1000

bool option_read_profiles(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    struct named_list l = {.size = sizeof(*c->profiles), .max = PROFILES_MAX, .what = "profiles"};

    if (!named_list_read(b, f, v, &l, err))
        return false;
    c->profiles = l.items;
    c->n_profiles = l.n;
    return true;
}

bool option_read_toolsets(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    struct named_list l = {.size = sizeof(*c->toolsets), .max = TOOLSETS_MAX, .what = "toolsets"};

    if (!named_list_read(b, f, v, &l, err))
        return false;
    c->toolsets = l.items;
    c->n_toolsets = l.n;
    return true;
}

const struct profile_config *config_profile(const struct config *c, struct str name)
{
    return named_list_find(c->profiles, c->n_profiles, sizeof(*c->profiles), name);
}

const struct toolset_config *config_toolset(const struct config *c, struct str key)
{
    return named_list_find(c->toolsets, c->n_toolsets, sizeof(*c->toolsets), key);
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
