/* SPDX-License-Identifier: Apache-2.0 */
/* Reads profiles and their toolsets, sorted by name.  profile_check.c resolves the names in them
 * after the whole file has been read. */
#include "config/config_impl.h"

#define PROFILES_MAX 256
#define TOOLSETS_MAX 1000
#define CLIENTS_MAX 1000
#define CLIENT_ID_MAX 255

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

/* A client id may be any text, so named_list_read() cannot read this object. */
bool option_read_clients(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err)
{
    struct profile_config *p =
        (struct profile_config *)(void *)((char *)place - offsetof(struct profile_config, clients));
    size_t n = 0;

    if (v->type != JS_OBJECT)
        return js_bind_fault(b, v, err, "\"%s\" must be an object of client ids", f->name);
    for (const struct js_node *key = js_first(b->doc, v); key;
         key = js_next(b->doc, v, js_value_of(key)))
        n++;
    if (n > CLIENTS_MAX)
        return js_bind_fault(b, v, err, "\"%s\" has at most %d client ids", f->name, CLIENTS_MAX);
    p->clients = arena_zalloc(b->mem, n * sizeof(*p->clients));
    p->n_clients = 0;
    for (const struct js_node *key = js_first(b->doc, v); key;
         key = js_next(b->doc, v, js_value_of(key))) {
        struct client_config *c = &p->clients[p->n_clients++];
        c->id = arena_dup(b->mem, js_text(b->doc, key, b->mem));
        if (c->id.n == 0 || c->id.n > CLIENT_ID_MAX)
            return js_bind_fault(b, key, err, "a client id in \"%s\" has 1 to %d bytes", f->name,
                                 CLIENT_ID_MAX);
        if (!js_bind(b, js_value_of(key), f->fields, c, err))
            return false;
    }
    return true;
}

const struct profile_config *config_profile(const struct config *c, struct str name)
{
    static const struct profile_config search = {
        .name = {CONFIG_SEARCH_PROFILE, sizeof(CONFIG_SEARCH_PROFILE) - 1},
        .mode = PROFILE_SEARCH,
    };

    if (str_eq(name, search.name))
        return &search;
    return named_list_find(c->profiles, c->n_profiles, sizeof(*c->profiles), name);
}

const struct toolset_config *config_toolset(const struct config *c, struct str key)
{
    return named_list_find(c->toolsets, c->n_toolsets, sizeof(*c->toolsets), key);
}
