/* SPDX-License-Identifier: Apache-2.0 */
/* ${secret:NAME} and ${input:NAME} in "env", "headers", "args" and "url" of servers.  Reading leaves
 * them as they are written and notes their names, because the store with the values is opened after
 * the configuration was read; `config check` and `config show` need no store.  config_resolve()
 * replaces them.  A secret that is missing, or does not fit its place, refuses the one server that
 * uses it: other servers and the gateway are not affected. */
#include "config/config_impl.h"
#include "config/sinks.h"

#define USES_MAX 256 /* in one server */

static const struct str prefixes[] = {{"secret:", 7}, {"input:", 6}};

bool config_is_secret_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
            return false;
    }
    return name.n > 0 && name.n <= CONFIG_SECRET_NAME_MAX;
}

/* Whether `inside`, the text between the braces, has one of the prefixes. */
static bool split(struct str inside, struct str *ret_name, bool *ret_is_input)
{
    for (size_t i = 0; i < countof(prefixes); i++)
        if (str_starts(inside, prefixes[i])) {
            *ret_name = str_n(inside.p + prefixes[i].n, inside.n - prefixes[i].n);
            *ret_is_input = i == 1;
            return true;
        }
    return false;
}

bool secret_is_reference(struct str inside)
{
    struct str name;
    bool is_input;

    return split(inside, &name, &is_input);
}

static bool is_noted(const struct reading *r, struct str name)
{
    for (size_t i = 0; i < r->n_secrets; i++)
        if (str_eq(r->secrets[i].name, name))
            return true;
    return false;
}

const char *secret_note(const struct js_binding *b, const struct js_node *v, struct str inside)
{
    struct reading *r = reading_of(b);
    struct secret_use use = {.at = value_place(b, v)};

    if (!split(inside, &use.name, &use.is_input) || !config_is_secret_name(use.name))
        return "has an invalid name; a name has 1 to 200 letters, digits and . _ -";
    if (!r->server.p)
        return "cannot be used here; use it in \"env\", \"headers\", \"args\" and \"url\" of a "
               "server, in \"otlp\" and \"sinks\", or write ${credential:NAME}";
    if (is_noted(r, use.name))
        return NULL;
    if (r->n_secrets == USES_MAX)
        return "is one more than a server may use; use at most 256 secrets";
    if (!r->secrets)
        r->secrets = arena_zalloc(b->mem, USES_MAX * sizeof(*r->secrets));
    use.name = arena_dup(b->mem, use.name);
    r->secrets[r->n_secrets++] = use;
    return NULL;
}

/* The length of the reference at the start of `text`; 0: there is none. */
static size_t reference_at(struct str text, struct str *ret_name)
{
    size_t end;
    bool is_input;

    if (!str_starts(text, STR("${")))
        return 0;
    end = str_find(text, '}');
    if (end == text.n || !split(str_n(text.p + 2, end - 2), ret_name, &is_input) ||
        !config_is_secret_name(*ret_name))
        return 0;
    return end + 1;
}

size_t secret_reference_length(struct str text)
{
    struct str name;

    return reference_at(text, &name);
}

bool secret_has_reference(struct str text)
{
    for (size_t i = 0; i + 2 < text.n; i++)
        if (secret_reference_length(str_n(text.p + i, text.n - i)))
            return true;
    return false;
}

bool secret_check_places(const struct js_binding *b, const struct js_node *key,
                         const struct server_config *s, struct error *err)
{
    const struct {
        const char *name;
        struct str value;
    } others[] = {
        {"command", s->command},
        {"cwd", s->cwd},
        {"envFile", s->env_file},
        {"ca", s->tls_ca},
        {"service", s->credential_service},
        {"as", s->credential_as},
    };

    for (size_t i = 0; i < countof(others); i++)
        if (secret_has_reference(others[i].value))
            return js_bind_fault(b, key, err,
                                 "server \"%.*s\": \"%s\" cannot hold a secret; use ${secret:…} in "
                                 "\"env\", \"headers\", \"args\" and \"url\"",
                                 STR_ARG(s->name), others[i].name);
    return true;
}

/* Resolving. */

struct resolving {
    struct config *config;
    struct server_config *server;
    const struct config_secret *list;
    size_t n;
    size_t bytes; /* of all values with secrets */
};

static const struct config_secret *find(const struct resolving *r, struct str name)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->list[i].name, name))
            return &r->list[i];
    return NULL;
}

static const struct secret_use *use_of(const struct server_config *s, struct str name)
{
    for (size_t i = 0; i < s->n_secrets; i++)
        if (str_eq(s->secrets[i].name, name))
            return &s->secrets[i];
    return NULL;
}

/* The first reason stays. */
static void refuse(struct resolving *r, struct str at, struct str why)
{
    if (!r->server->refusal.p)
        r->server->refusal = arena_printf(r->config->mem, "%.*s%s%s\"%.*s\": %.*s", STR_ARG(at),
                                          at.p ? ": " : "", r->server->is_outward ? "" : "server ",
                                          STR_ARG(r->server->name), STR_ARG(why));
}

static void refuse_missing(struct resolving *r, const struct secret_use *use,
                           const struct config_secret *found)
{
    refuse(r, use->at,
           arena_printf(r->config->mem, "the secret %.*s %s; run `holdfast secret set %.*s`",
                        STR_ARG(use->name),
                        found ? "cannot be opened with the master key" : "is not set",
                        STR_ARG(use->name)));
}

/* Where a value came from, for errors about it: the place of the first secret in it. */
static struct str place_in(const struct server_config *s, struct str text)
{
    struct str name;

    for (size_t i = 0; i < text.n; i++)
        if (reference_at(str_n(text.p + i, text.n - i), &name) && use_of(s, name))
            return use_of(s, name)->at;
    return STR_NONE;
}

/* Replaces the references in *value.  `pair` has placeholders that move with the text; NULL: none. */
static void replace(struct resolving *r, struct str *value, struct config_pair *pair)
{
    struct str text = *value, name;
    struct buf out;
    size_t moved = 0, n_moved = pair ? pair->n_placeholders : 0;

    if (!secret_has_reference(text))
        return;
    buf_init_secret(&out, CONFIG_EXPANDED_ONE_MAX + 1);
    bool fits = true;
    for (size_t i = 0; i < text.n && fits;) {
        size_t n = reference_at(str_n(text.p + i, text.n - i), &name);
        const struct secret_use *use = n ? use_of(r->server, name) : NULL;
        const struct config_secret *secret = use ? find(r, name) : NULL;
        for (; moved < n_moved && pair->placeholders[moved].at <= i; moved++)
            pair->placeholders[moved].at = out.n;
        if (use && (!secret || !secret->value.p))
            refuse_missing(r, use, secret);
        struct str add = use ? (secret ? secret->value : STR_NONE) : str_n(text.p + i, 1);
        fits = !add.n || buf_try_add(&out, add.p, add.n);
        i += use ? n : 1;
    }
    for (; moved < n_moved; moved++)
        pair->placeholders[moved].at = out.n;
    r->bytes += out.n;
    if (!fits || out.n > CONFIG_EXPANDED_ONE_MAX || r->bytes > CONFIG_EXPANDED_ALL_MAX)
        refuse(r, place_in(r->server, text),
               STR("a secret makes the value too long; set a shorter one"));
    else
        *value = arena_dup(r->config->mem, buf_str(&out));
    buf_release(&out);
}

static void replace_headers(struct resolving *r)
{
    struct server_config *s = r->server;
    size_t bytes = 0;

    for (size_t i = 0; i < s->n_headers; i++) {
        struct str before = s->headers[i].value;
        replace(r, &s->headers[i].value, &s->headers[i]);
        bytes += s->headers[i].name.n + s->headers[i].value.n + 4;
        if (!s->headers[i].n_placeholders && !config_is_header_value(s->headers[i].value))
            refuse(r, place_in(s, before),
                   arena_printf(r->config->mem,
                                "the secret makes the header %.*s contain control characters, or "
                                "begin or end with a blank; set it without them",
                                STR_ARG(s->headers[i].name)));
    }
    if (bytes > CONFIG_HEADERS_BYTES_MAX && s->n_secrets)
        refuse(r, s->secrets[0].at,
               arena_printf(r->config->mem,
                            "the headers have more than %u KiB together; set a shorter secret",
                            CONFIG_HEADERS_BYTES_MAX >> 10));
}

static void replace_url(struct resolving *r)
{
    struct server_config *s = r->server;
    struct str before = s->url;

    if (!secret_has_reference(before))
        return;
    replace(r, &s->url, NULL);
    const char *complaint = value_url_complaint(s->url);
    if (complaint)
        refuse(r, place_in(s, before),
               arena_printf(r->config->mem, "with its secret \"url\" %s", complaint));
}

static void replace_signing_key(struct resolving *r)
{
    struct server_config *s = r->server;
    struct str before = s->secret;

    if (!secret_has_reference(before))
        return;
    replace(r, &s->secret, NULL);
    if (s->secret.n < CONFIG_SINK_SECRET_MIN)
        refuse(r, place_in(s, before),
               arena_printf(r->config->mem,
                            "the secret is shorter than %d bytes; a signing key must be longer",
                            CONFIG_SINK_SECRET_MIN));
}

static void resolve_server(struct resolving *r)
{
    struct server_config *s = r->server;

    for (size_t i = 0; i < s->n_env; i++)
        if (!s->env[i].is_from_file)
            replace(r, &s->env[i].value, &s->env[i]);
    for (size_t i = 0; i < s->n_args; i++)
        replace(r, &s->args[i], NULL);
    replace_headers(r);
    replace_url(r);
    replace_signing_key(r);
    definition_compute(s);
}

/* Keeps the values that are in use, so that redaction knows them. */
static void keep(struct resolving *r, struct str name)
{
    struct config *c = r->config;
    const struct config_secret *found = find(r, name);

    for (size_t i = 0; i < c->n_secrets; i++)
        if (str_eq(c->secrets[i].name, name))
            return;
    if (found && found->value.p)
        c->secrets[c->n_secrets++] =
            (struct config_secret){.name = name, .value = arena_dup(c->mem, found->value)};
}

static void resolve_one(void *arg, struct server_config *s)
{
    struct resolving *r = arg;

    if (!s->n_secrets)
        return;
    r->server = s;
    for (size_t k = 0; k < s->n_secrets; k++)
        keep(r, s->secrets[k].name);
    resolve_server(r);
}

void config_resolve(struct config *c, const struct config_secret *list, size_t n)
{
    struct resolving r = {.config = c, .list = list, .n = n};

    c->secrets = arena_zalloc(c->mem, (n + 1) * sizeof(*c->secrets));
    config_each_target(c, resolve_one, &r);
    for (size_t i = 0; i < c->n_tenants; i++)
        for (size_t k = 0; k < c->tenants[i].n_secrets; k++)
            keep(&r, c->tenants[i].secrets[k]);
}

bool config_tenant_may(const struct config *c, struct str tenant, struct str secret)
{
    const struct tenant_config *t = config_tenant(c, tenant);

    for (size_t i = 0; t && i < t->n_secrets; i++)
        if (str_eq(t->secrets[i], secret))
            return true;
    return false;
}

struct str config_secret_value(const struct config *c, struct str secret)
{
    for (size_t i = 0; i < c->n_secrets; i++)
        if (str_eq(c->secrets[i].name, secret))
            return c->secrets[i].value;
    return STR_NONE;
}

bool config_is_secret_reference(struct str text, struct str *ret_name)
{
    return text.n && str_starts(text, STR("${secret:")) && reference_at(text, ret_name) == text.n;
}

static void note_use(void *arg, struct server_config *s)
{
    bool *uses = arg;

    *uses = *uses || s->n_secrets > 0;
}

bool config_uses_secrets(const struct config *c)
{
    bool uses = false;

    config_each_target((struct config *)c, note_use, &uses);
    for (size_t i = 0; i < c->n_tenants; i++)
        uses = uses || c->tenants[i].n_secrets > 0;
    return uses;
}

/* "inputs" of VS Code: what an editor would ask for. */

bool inputs_read(const struct js_binding *b, const struct js_node *key,
                 struct error *err unused_arg)
{
    struct config *c = reading_of(b)->config;
    const struct js_node *list = js_value_of(key);
    size_t n = 0;

    if (!js_type_is(list, JS_ARRAY))
        return true;
    for (const struct js_node *e = js_first(b->doc, list); e; e = js_next(b->doc, list, e))
        n++;
    c->inputs = arena_zalloc(b->mem, n * sizeof(*c->inputs));
    c->n_inputs = 0;
    for (const struct js_node *e = js_first(b->doc, list); e; e = js_next(b->doc, list, e)) {
        if (!js_type_is(e, JS_OBJECT))
            continue;
        struct str id = js_text(b->doc, js_get(b->doc, e, STR("id")), b->mem);
        struct str what = js_text(b->doc, js_get(b->doc, e, STR("description")), b->mem);
        if (id.p && config_is_secret_name(id))
            c->inputs[c->n_inputs++] = (struct config_input){
                .name = arena_dup(b->mem, id), .description = arena_dup(b->mem, what)};
    }
    return true;
}

struct str config_input_description(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->n_inputs; i++)
        if (str_eq(c->inputs[i].name, name))
            return c->inputs[i].description;
    return STR_NONE;
}
