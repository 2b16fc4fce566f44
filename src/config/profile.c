/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles and the toolsets they offer: read once, sorted by name, toolsets found by their keys
 * when all is read.  A profile may name a server that is not there, since servers come and go; a
 * toolset that is not there would quietly offer less than was meant, so it is refused. */
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

/* Client ids are any text, so they are no named_list. */
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

static bool has_toolset(const struct profile_config *p, struct str key)
{
    for (size_t i = 0; i < p->n_toolset_keys; i++)
        if (str_eq(p->toolset_keys[i], key))
            return true;
    return false;
}

/* What a policy or a client is told of must be there: else less would be withheld than was meant.
 */
static bool check_keys(const struct profile_config *p, const struct str *keys, size_t n,
                       const char *where, struct error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!has_toolset(p, keys[i]))
            return error_set(err, ERR_CONFIG,
                             "\"%s\" of profile \"%.*s\" names the toolset \"%.64s\", which is not "
                             "among its \"toolsets\"; add it there",
                             where, STR_ARG(p->name), keys[i].p);
    return true;
}

static bool check_profile(const struct profile_config *p, struct error *err)
{
    if (p->mode == PROFILE_DYNAMIC && p->n_toolset_keys == 0)
        return error_set(err, ERR_CONFIG,
                         "profile \"%.*s\" is dynamic and has no \"toolsets\" to enable; name some",
                         STR_ARG(p->name));
    if (p->proxy_permits && p->n_toolset_keys == 0)
        return error_set(err, ERR_CONFIG,
                         "profile \"%.*s\" takes permissions from a proxy and has no \"toolsets\" "
                         "to permit; name some",
                         STR_ARG(p->name));
    if (!check_keys(p, p->allow, p->n_allow, "policy.allow", err) ||
        !check_keys(p, p->deny, p->n_deny, "policy.deny", err))
        return false;
    for (size_t i = 0; i < p->n_clients; i++)
        if (!check_keys(p, p->clients[i].toolsets, p->clients[i].n_toolsets, "clients", err))
            return false;
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
        if (!find_toolsets(c, p, err) || !check_profile(p, err))
            return false;
        for (size_t s = 0; s < p->n_servers; s++)
            if (!is_known_server(c, p->servers[s]))
                note_add(r, "profile \"%.*s\" names the server \"%.64s\", which is not configured",
                         STR_ARG(p->name), p->servers[s].p);
    }
    return true;
}
