/* SPDX-License-Identifier: Apache-2.0 */
/* Reads server entries, in the format that MCP clients share.  Checks their names and the keys that
 * must or must not occur together.  Adds the built-in sample when there are no entries.  A disabled
 * entry is skipped, because its program or variables may be missing on this machine. */
#include "config/config_impl.h"

#include "base/log.h"

#include <stdlib.h>

#define TIMEOUT_DEFAULT_MS 60000

/* Path segments of Holdfast, and names of built-in servers. */
static const char *const reserved[] = {
    "p", "k", "messages", "docs", "session", "sample", "server-card",
};

bool config_is_server_name(struct str name)
{
    return value_is_name(name) && !str_eq(name, STR(".")) && !str_eq(name, STR(".."));
}

static const char *name_complaint(struct str name)
{
    if (!value_is_name(name))
        return "must have 1 to 64 letters, digits and . _ -";
    if (memmem(name.p, name.n, "__", 2) || name.p[name.n - 1] == '_')
        return "must not contain __ or end with _, because __ separates it from the tool's name";
    if (str_eq(name, STR(".")) || str_eq(name, STR("..")))
        return "has a special meaning in a URL";
    for (size_t i = 0; i < countof(reserved); i++)
        if (str_eq(name, str_of(reserved[i])))
            return "is reserved";
    return NULL;
}

static bool check_name(const struct js_binding *b, const struct js_node *key, struct str name,
                       struct error *err)
{
    const char *complaint = name_complaint(name);
    struct buf shown;

    if (!complaint)
        return true;
    buf_init(&shown, SIZE_MAX);
    log_escape(&shown, name, CONFIG_NAME_MAX + 1);
    js_bind_fault(b, key, err, "the server name \"%.*s\" %s; choose another",
                  STR_ARG(buf_str(&shown)), complaint);
    buf_release(&shown);
    return false;
}

static bool is_disabled(const struct js_binding *b, const struct js_node *entry)
{
    return js_type_is(js_get(b->doc, entry, STR("disabled")), JS_TRUE) ||
           js_type_is(js_get(b->doc, entry, STR("enabled")), JS_FALSE);
}

/* Names that other clients use for the two kinds. */
static const struct {
    const char *name;
    enum server_kind kind;
} types[] = {
    {"stdio", SERVER_STDIO},         {"local", SERVER_STDIO},
    {"http", SERVER_HTTP},           {"streamable-http", SERVER_HTTP},
    {"streamableHttp", SERVER_HTTP}, {"streamable_http", SERVER_HTTP},
    {"http-first", SERVER_HTTP},     {"sse", SERVER_HTTP},
    {"remote", SERVER_HTTP},
};

static void note_type(struct reading *r, const struct server_draft *d)
{
    if (!d->type.p)
        return;
    for (size_t i = 0; i < countof(types); i++)
        if (str_eq(d->type, str_of(types[i].name)) && types[i].kind == d->server.kind)
            return;
    note_add(r, "the type of server %.*s is not what its \"%s\" says; the type has no effect",
             STR_ARG(r->server), d->server.kind == SERVER_HTTP ? "url" : "command");
}

static void note_misfits(struct reading *r, const struct server_config *s)
{
    bool http = s->kind == SERVER_HTTP;
    const struct {
        const char *key;
        bool given;
    } misfits[] = {
        {"envFile", http && s->env_file.p},
        {"args", http && s->n_args},
        {"env", http && s->n_env && !s->env_file.p},
        {"inherit_env", http && s->n_inherit_env},
        {"cwd", http && s->cwd.p},
        {"headers", !http && s->n_headers},
        {"tls", !http && s->tls_ca.p},
    };

    for (size_t i = 0; i < countof(misfits); i++)
        if (misfits[i].given)
            note_add(r, "\"%s\" of server %.*s has no effect beside \"%s\"", misfits[i].key,
                     STR_ARG(s->name), http ? "url" : "command");
    if (http && s->tls_ca.p && !str_starts(s->url, STR("https://")))
        note_add(r, "\"tls\" of server %.*s has no effect: its \"url\" is not https://",
                 STR_ARG(s->name));
}

/* A client must not replace a header that the operator set.  "as" may name a header of "headers";
 * sessions without a credential then send the configured value. */
static bool check_key_names(const struct js_binding *b, const struct js_node *key,
                            const struct server_config *s, struct error *err)
{
    if (s->n_key_names && !str_starts(s->credential_as, STR("header:")))
        return js_bind_fault(b, key, err,
                             "\"key_names\" has a meaning only beside \"as\": \"header:NAME\"; "
                             "remove it");
    for (size_t i = 0; i < s->n_key_names; i++)
        for (size_t k = 0; k < s->n_headers; k++)
            if (str_ieq(s->key_names[i], s->headers[k].name))
                return js_bind_fault(b, key, err,
                                     "the header %.*s is in \"headers\" and in \"key_names\"; "
                                     "remove it from one of them",
                                     STR_ARG(s->key_names[i]));
    return true;
}

/* The credential must match the kind of server, and must not leak to other sessions. */
static bool check_credential(const struct js_binding *b, const struct js_node *key,
                             const struct server_config *s, struct error *err)
{
    bool is_env = str_starts(s->credential_as, STR("env:"));

    if (str_starts(s->credential_as, STR("header:")) && s->kind != SERVER_HTTP)
        return js_bind_fault(
            b, key, err,
            "header:NAME works only for a server with a \"url\"; use env:NAME or meta:KEY");
    if (is_env && s->kind != SERVER_STDIO)
        return js_bind_fault(
            b, key, err,
            "env:NAME works only for a server with a \"command\"; use header:NAME or meta:KEY");
    if (is_env && s->share == SHARE_ALL)
        return js_bind_fault(b, key, err,
                             "with \"share\": \"all\" every session would use the credential of "
                             "the first one; use \"share\": \"session\", or meta:KEY");
    return check_key_names(b, key, s, err);
}

/* The context values of one session must not leak to other sessions. */
static bool check_context(const struct js_binding *b, const struct js_node *key,
                          const struct server_config *s, struct error *err)
{
    return !s->takes_context || s->share != SHARE_ALL ||
           js_bind_fault(
               b, key, err,
               "with \"share\": \"all\" every session would use the value of the first one for "
               "${context:…}; use \"share\": \"session\", or remove ${context:…}");
}

/* Expands "~" and "~/…" like a shell, for command lines that people copy. */
static struct str expand_home(struct str s, struct arena *mem)
{
    const char *home = getenv("HOME");

    if (!home || !s.n || s.p[0] != '~' || (s.n > 1 && s.p[1] != '/'))
        return s;
    return arena_printf(mem, "%s%.*s", home, (int)s.n - 1, s.p + 1);
}

static void expand_homes(struct server_config *s, struct arena *mem)
{
    s->command = expand_home(s->command, mem);
    s->cwd = expand_home(s->cwd, mem);
    for (size_t i = 0; i < s->n_args; i++)
        s->args[i] = expand_home(s->args[i], mem);
}

static bool read_entry(const struct js_binding *b, const struct js_node *key, struct error *err)
{
    const struct js_node *entry = js_value_of(key);
    struct reading *r = reading_of(b);
    struct server_config *s = &r->config->servers[r->config->n_servers];
    struct server_draft draft = {.enabled = true, .server.timeout_ms = TIMEOUT_DEFAULT_MS};

    js_bind_defaults(server_fields, &draft, b->mem);
    if (!js_bind(b, entry, server_fields, &draft, err))
        return false;
    draft.server.env_file = expand_home(draft.server.env_file, b->mem);
    if (draft.server.env_file.p && !r->is_for_edit &&
        !env_file_read(b, draft.env_file_at, &draft.server, err))
        return false;
    if (!draft.server.command.p == !draft.server.url.p)
        return js_bind_fault(b, key, err, "server \"%.*s\" needs \"command\" or \"url\"%s",
                             STR_ARG(r->server), draft.server.url.p ? ", not both" : "");
    *s = draft.server;
    s->name = r->server;
    s->kind = draft.server.url.p ? SERVER_HTTP : SERVER_STDIO;
    draft.server.kind = s->kind;
    s->sse = s->kind == SERVER_HTTP && str_eq(draft.type, STR("sse"));
    s->takes_context = server_takes_context(s);
    s->secrets = r->secrets;
    s->n_secrets = r->n_secrets;
    expand_homes(s, b->mem);
    if (!check_credential(b, key, s, err) || !check_context(b, key, s, err) ||
        !secret_check_places(b, key, s, err))
        return false;
    note_type(r, &draft);
    note_misfits(r, s);
    definition_compute(s);
    r->config->n_servers++;
    return true;
}

/* On /mcp the tools of both servers would differ only by case: "Files__read" and "files__read". */
static bool check_twin(const struct js_binding *b, const struct js_node *key, struct str name,
                       struct error *err)
{
    const struct config *c = reading_of(b)->config;

    for (size_t i = 0; i < c->n_servers; i++)
        if (str_ieq(c->servers[i].name, name))
            return js_bind_fault(b, key, err,
                                 "the server name \"%.*s\" differs from \"%.*s\" by case alone, "
                                 "and so would their tools; choose another",
                                 STR_ARG(name), STR_ARG(c->servers[i].name));
    return true;
}

static bool read_one(const struct js_binding *b, const struct js_node *key, struct error *err)
{
    struct reading *r = reading_of(b);
    struct str name = arena_dup(b->mem, js_text(b->doc, key, b->mem));
    bool ok;

    if (!check_name(b, key, name, err))
        return false;
    if (is_disabled(b, js_value_of(key))) {
        note_add(r, "server %.*s is disabled and is left out", STR_ARG(name));
        return true;
    }
    if (!check_twin(b, key, name, err))
        return false;
    r->server = name;
    r->secrets = NULL;
    r->n_secrets = 0;
    ok = read_entry(b, key, err);
    r->server = STR_NONE;
    return ok;
}

bool servers_read(const struct js_binding *b, const struct js_node *servers, struct error *err)
{
    struct config *c = reading_of(b)->config;
    const struct js_node *key;
    size_t n = 0;

    if (servers->type != JS_OBJECT)
        return js_bind_fault(b, servers, err,
                             "the servers must be an object: { \"NAME\": { \"command\": … } }");
    for (key = js_first(b->doc, servers); key; key = js_next(b->doc, servers, js_value_of(key)))
        n++;
    if (n > CONFIG_SERVERS_MAX)
        return js_bind_fault(b, servers, err, "there are %zu servers; at most %d are taken", n,
                             CONFIG_SERVERS_MAX);
    c->servers = arena_zalloc(c->mem, n * sizeof(*c->servers));
    for (key = js_first(b->doc, servers); key; key = js_next(b->doc, servers, js_value_of(key)))
        if (!read_one(b, key, err))
            return false;
    return true;
}

static struct server_config *builtin_new(struct config *c, struct str name, enum server_share share)
{
    struct server_draft *draft = arena_new_of(c->mem, struct server_draft);

    js_bind_defaults(server_fields, draft, c->mem);
    draft->server.name = name;
    draft->server.kind = SERVER_BUILTIN;
    draft->server.timeout_ms = TIMEOUT_DEFAULT_MS;
    draft->server.era = ERA_LEGACY;
    draft->server.share = share;
    definition_compute(&draft->server);
    return &draft->server;
}

/* The built-in servers; "docs" only when there are folders. */
static void builtins_finish(struct config *c)
{
    c->builtins = arena_zalloc(c->mem, 2 * sizeof(*c->builtins));
    c->builtins[c->n_builtins++] = *builtin_new(c, STR("session"), SHARE_ALL);
    if (c->n_folders > 0)
        c->builtins[c->n_builtins++] = *builtin_new(c, STR("docs"), SHARE_ALL);
}

void config_serve_builtins(struct config *c, const struct str *names, size_t n)
{
    c->servers = arena_zalloc(c->mem, (n + 1) * sizeof(*c->servers));
    c->n_servers = n;
    for (size_t i = 0; i < n; i++)
        c->servers[i] = *builtin_new(c, arena_dup(c->mem, names[i]), SHARE_SESSION);
}

/* Without configured servers, adds the sample server. */
void servers_finish(struct config *c)
{
    builtins_finish(c);
    if (c->n_servers > 0)
        return;
    c->servers = builtin_new(c, STR("sample"), SHARE_SESSION);
    c->n_servers = 1;
}
