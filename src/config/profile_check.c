/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the names in profiles after the whole file has been read.  An unknown server is only
 * noted, because servers come and go.  An unknown toolset is refused: the profile would silently
 * offer or withhold less than intended.  Entries without an effect, or with an unexpected effect,
 * are noted.  All messages name the position in the file. */
#include "config/config_impl.h"

#define SHOWN 64
#define AUDIT_BODY_MIN 1024

/* A position in the file: a profile or toolset, its key (NULL: the object itself), an entry
 * there. */
struct place {
    const char *section, *key, *inner; /* "profiles", "policy", "allow"; or "clients" and an id */
    struct str name;
    size_t entry; /* SIZE_MAX: the list itself */
};

static const struct js_node *place_find(const struct js_binding *b, const struct place *p)
{
    const struct js_node *at = js_get(b->doc, js_root(b->doc), STR("holdfast"));
    const struct js_node *e;
    size_t n = 0;

    at = js_get(b->doc, js_get(b->doc, at, str_of(p->section)), p->name);
    if (p->key)
        at = js_get(b->doc, at, str_of(p->key));
    if (p->inner)
        at = js_get(b->doc, at, str_of(p->inner));
    if (p->inner && js_type_is(at, JS_OBJECT)) /* the entry of a client */
        at = js_get(b->doc, at, STR("toolsets"));
    if (p->entry == SIZE_MAX || !js_type_is(at, JS_ARRAY))
        return at;
    for (e = js_first(b->doc, at); e && n < p->entry; e = js_next(b->doc, at, e))
        n++;
    return e;
}

/* The search for a similar name. */
struct near {
    struct str wanted, found; /* found: absent when no name is similar */
    unsigned best;
};

static struct near near_to(struct str wanted)
{
    return (struct near){.wanted = wanted, .best = wanted.n < 4 ? 2 : 3};
}

static void near_look(struct near *n, struct str name)
{
    unsigned far = str_distance(n->wanted, name, n->best);

    if (far < n->best && far < n->wanted.n) {
        n->best = far;
        n->found = name;
    }
}

/* The end of the error message. */
static const char *hint(const struct js_binding *b, const struct near *n, const char *otherwise)
{
    return n->found.p ? arena_printf(b->mem, "; did you mean \"%.*s\"?", STR_ARG(n->found)).p
                      : otherwise;
}

static void look_at_servers(const struct config *c, struct near *n)
{
    for (size_t i = 0; i < c->n_servers; i++)
        near_look(n, c->servers[i].name);
    near_look(n, STR("session"));
    if (c->n_folders)
        near_look(n, STR("docs"));
}

static bool is_ours(const struct config *c, struct str name)
{
    return str_eq(name, STR("session")) || str_eq(name, STR("sample")) ||
           (str_eq(name, STR("docs")) && c->n_folders > 0);
}

static bool is_known_server(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->n_servers; i++)
        if (str_eq(c->servers[i].name, name))
            return true;
    return is_ours(c, name);
}

/* Toolsets of a profile. */

static bool has_toolset(const struct profile_config *p, size_t n, struct str key)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(p->toolset_keys[i], key))
            return true;
    return false;
}

static bool refuse_toolset(const struct js_binding *b, const struct profile_config *p, size_t at,
                           struct error *err)
{
    const struct config *c = reading_of(b)->config;
    struct place place = {"profiles", "toolsets", NULL, p->name, at};
    struct near near = near_to(p->toolset_keys[at]);

    for (size_t i = 0; i < c->n_toolsets; i++)
        near_look(&near, c->toolsets[i].key);
    return js_bind_fault(b, place_find(b, &place), err,
                         "profile \"%.*s\" names the toolset \"%.*s\", which "
                         "\"holdfast.toolsets\" does not have%s",
                         STR_ARG(p->name), SHOWN, p->toolset_keys[at].p,
                         hint(b, &near, "; define it there"));
}

static bool find_toolsets(const struct js_binding *b, struct profile_config *p, struct error *err)
{
    struct config *c = reading_of(b)->config;

    p->toolsets = arena_zalloc(c->mem, (p->n_toolset_keys + 1) * sizeof(struct toolset_config *));
    for (size_t i = 0; i < p->n_toolset_keys; i++) {
        struct place place = {"profiles", "toolsets", NULL, p->name, i};
        p->toolsets[i] = config_toolset(c, p->toolset_keys[i]);
        if (!p->toolsets[i])
            return refuse_toolset(b, p, i, err);
        if (has_toolset(p, i, p->toolset_keys[i]))
            return js_bind_fault(b, place_find(b, &place), err,
                                 "profile \"%.*s\" names the toolset \"%.*s\" twice; take one out",
                                 STR_ARG(p->name), STR_ARG(p->toolset_keys[i]));
    }
    return true;
}

/* The toolsets that a policy or a client names must be in the profile; otherwise a misspelt name
 * would withhold less than intended. */
static bool check_keys(const struct js_binding *b, const struct profile_config *p,
                       const struct str *keys, size_t n, struct place place, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct near near = near_to(keys[i]);
        if (has_toolset(p, p->n_toolset_keys, keys[i]))
            continue;
        for (size_t t = 0; t < p->n_toolset_keys; t++)
            near_look(&near, p->toolset_keys[t]);
        place.entry = i;
        return js_bind_fault(b, place_find(b, &place), err,
                             "\"%s%s%s\" of profile \"%.*s\" names the toolset \"%.*s\", which is "
                             "not among its \"toolsets\"%s",
                             place.key, strcmp(place.key, "policy") == 0 ? "." : "",
                             strcmp(place.key, "policy") == 0 ? place.inner : "", STR_ARG(p->name),
                             SHOWN, keys[i].p, hint(b, &near, "; add it there"));
    }
    return true;
}

static bool check_clients(const struct js_binding *b, const struct profile_config *p,
                          struct error *err)
{
    struct place place = {"profiles", "clients", NULL, p->name, SIZE_MAX};

    for (size_t i = 0; i < p->n_clients; i++) {
        place.inner = p->clients[i].id.p;
        if (!check_keys(b, p, p->clients[i].toolsets, p->clients[i].n_toolsets, place, err))
            return false;
    }
    return true;
}

static bool check_profile(const struct js_binding *b, const struct profile_config *p,
                          struct error *err)
{
    struct place itself = {"profiles", NULL, NULL, p->name, SIZE_MAX};
    struct place allow = {"profiles", "policy", "allow", p->name, 0};
    struct place deny = {"profiles", "policy", "deny", p->name, 0};
    struct place body = {"profiles", "audit_body", NULL, p->name, SIZE_MAX};

    if (p->mode == PROFILE_DYNAMIC && p->n_toolset_keys == 0)
        return js_bind_fault(
            b, place_find(b, &itself), err,
            "profile \"%.*s\" is dynamic and has no \"toolsets\" to enable; name some",
            STR_ARG(p->name));
    if (p->proxy_permits && p->n_toolset_keys == 0)
        return js_bind_fault(b, place_find(b, &itself), err,
                             "profile \"%.*s\" takes permissions from a proxy and has no "
                             "\"toolsets\" to permit; name some",
                             STR_ARG(p->name));
    if (p->audit_body && p->audit_body < AUDIT_BODY_MIN)
        return js_bind_fault(b, place_find(b, &body), err,
                             "\"audit_body\" of profile \"%.*s\" is %d bytes at least, or 0: as "
                             "limits.audit_body",
                             STR_ARG(p->name), AUDIT_BODY_MIN);
    if (p->audit_body && !p->audit_full)
        return js_bind_fault(b, place_find(b, &body), err,
                             "\"audit_body\" of profile \"%.*s\" needs \"audit\": \"full\"; add "
                             "it, or leave audit_body out",
                             STR_ARG(p->name));
    return check_keys(b, p, p->allow, p->n_allow, allow, err) &&
           check_keys(b, p, p->deny, p->n_deny, deny, err) && check_clients(b, p, err);
}

/* Notes. */

/* An empty list means "all", perhaps against the operator's intention. */
static void note_empty(const struct js_binding *b, const struct profile_config *p, const char *key,
                       const char *inner, size_t n, const char *means)
{
    struct place place = {"profiles", key, inner, p->name, SIZE_MAX};
    const struct js_node *at = n == 0 ? place_find(b, &place) : NULL;

    if (js_type_is(at, JS_ARRAY))
        note_at(b, at,
                "\"%s%s%s\" of profile \"%.*s\" is empty, which means %s; name some, or "
                "leave it out",
                key, inner ? "." : "", inner ? inner : "", STR_ARG(p->name), means);
}

static bool reaches_any(const struct profile_config *p, const struct toolset_config *t)
{
    for (size_t i = 0; i < t->n_tools; i++)
        for (size_t s = 0; s < p->n_servers; s++)
            if (config_pattern_reaches(t->tools[i], p->servers[s]))
                return true;
    return p->n_servers == 0 || t->n_tools == 0; /* the toolset has its own note for no tools */
}

static void note_profile(const struct js_binding *b, const struct profile_config *p)
{
    const struct config *c = reading_of(b)->config;
    struct place servers = {"profiles", "servers", NULL, p->name, 0};
    struct place toolsets = {"profiles", "toolsets", NULL, p->name, 0};
    struct place permissions = {"profiles", "permissions", NULL, p->name, SIZE_MAX};

    note_empty(b, p, "servers", NULL, p->n_servers, "all servers");
    note_empty(b, p, "toolsets", NULL, p->n_toolset_keys, "every tool");
    note_empty(b, p, "policy", "allow", p->n_allow, "all toolsets");
    for (servers.entry = 0; servers.entry < p->n_servers; servers.entry++) {
        struct near near = near_to(p->servers[servers.entry]);
        if (is_known_server(c, near.wanted))
            continue;
        look_at_servers(c, &near);
        note_at(b, place_find(b, &servers),
                "profile \"%.*s\" names the server \"%.*s\", which is not configured%s",
                STR_ARG(p->name), SHOWN, near.wanted.p, hint(b, &near, ""));
    }
    for (toolsets.entry = 0; toolsets.entry < p->n_toolset_keys; toolsets.entry++)
        if (!reaches_any(p, p->toolsets[toolsets.entry]))
            note_at(b, place_find(b, &toolsets),
                    "no tool of toolset \"%.*s\" belongs to a server of profile \"%.*s\"",
                    STR_ARG(p->toolset_keys[toolsets.entry]), STR_ARG(p->name));
    if (p->proxy_permits && c->n_trusted_proxies == 0)
        note_at(b, place_find(b, &permissions),
                "profile \"%.*s\" takes permissions from a proxy, but \"trusted_proxies\" is "
                "empty, so no client gets its tools; name the proxy there",
                STR_ARG(p->name));
}

static bool reaches_server(const struct config *c, struct str pattern)
{
    static const struct str ours[] = {STR("session"), STR("sample"), STR("docs")};

    for (size_t i = 0; i < c->n_servers; i++)
        if (config_pattern_reaches(pattern, c->servers[i].name))
            return true;
    for (size_t i = 0; i < countof(ours); i++)
        if (is_ours(c, ours[i]) && config_pattern_reaches(pattern, ours[i]))
            return true;
    return false;
}

static size_t find_separator(struct str pattern)
{
    for (size_t i = 0; i + 1 < pattern.n; i++)
        if (pattern.p[i] == '_' && pattern.p[i + 1] == '_')
            return i;
    return pattern.n;
}

static void note_pattern(const struct js_binding *b, const struct toolset_config *t, size_t at)
{
    struct place place = {"toolsets", "tools", NULL, t->key, at};
    size_t end = find_separator(t->tools[at]);
    struct near near = near_to(str_n(t->tools[at].p, end));

    if (end < t->tools[at].n)
        look_at_servers(reading_of(b)->config, &near);
    if (near.found.p)
        near.found = arena_printf(b->mem, "%.*s%s", STR_ARG(near.found), t->tools[at].p + end);
    note_at(b, place_find(b, &place), "\"%.*s\" of toolset \"%.*s\" matches no configured server%s",
            SHOWN, t->tools[at].p, STR_ARG(t->key),
            hint(b, &near, "; tools are named server__tool"));
}

static void note_toolset(const struct js_binding *b, const struct toolset_config *t)
{
    struct place tools = {"toolsets", "tools", NULL, t->key, SIZE_MAX};

    if (t->n_tools == 0)
        note_at(b, place_find(b, &tools), "toolset \"%.*s\" has no tools", STR_ARG(t->key));
    for (size_t i = 0; i < t->n_tools; i++)
        if (!reaches_server(reading_of(b)->config, t->tools[i]))
            note_pattern(b, t, i);
}

/* Compares the part before the first *. */
bool config_pattern_reaches(struct str pattern, struct str server)
{
    struct str start = str_n(pattern.p, str_find(pattern, '*'));
    size_t n = start.n < server.n ? start.n : server.n;

    if (memcmp(start.p, server.p, n) != 0)
        return false;
    if (start.n <= server.n)
        return start.n < pattern.n; /* the * matches the rest of the name */
    struct str rest = str_n(start.p + server.n, start.n - server.n);
    return str_starts(rest, STR("__")) || (str_eq(rest, STR("_")) && start.n < pattern.n);
}

bool profiles_finish(const struct js_binding *b, struct error *err)
{
    struct config *c = reading_of(b)->config;

    for (size_t i = 0; i < c->n_profiles; i++) {
        struct profile_config *p = &c->profiles[i];
        if (!find_toolsets(b, p, err) || !check_profile(b, p, err))
            return false;
        note_profile(b, p);
    }
    for (size_t i = 0; i < c->n_toolsets; i++)
        note_toolset(b, &c->toolsets[i]);
    context_note_unlisted(reading_of(b));
    return true;
}
