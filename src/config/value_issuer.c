/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of "jwt": one issuer of tokens, or several.  The readers check shapes only.
 * identity/issuer_keys.c reads the files and uses the stored position (`at`) in its errors. */
#include "config/config_impl.h"

#include "base/principal.h"

#include <stdio.h>

static bool read_filled(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, struct str *ret, struct error *err)
{
    char what[80];

    snprintf(what, sizeof(what), "\"%s\"", f->name);
    if (!value_string(b, v, what, ret, err))
        return false;
    return ret->n > 0 ||
           js_bind_fault(b, v, err, "\"%s\" is empty; give it a value or leave it out", f->name);
}

bool option_read_secret(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err)
{
    credential_note_literal(b, STR("secret"), v);
    return read_filled(b, f, v, place, err);
}

bool option_read_one_of(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err)
{
    struct str text, all = STR("");

    if (!read_filled(b, f, v, &text, err))
        return false;
    for (size_t i = 0; f->names[i]; i++) {
        if (str_eq(text, str_of(f->names[i]))) {
            *(struct str *)place = text;
            return true;
        }
        all = arena_printf(b->mem, "%.*s%s%s", STR_ARG(all), i ? ", " : "", f->names[i]);
    }
    return js_bind_fault(b, v, err, "\"%s\" must be one of %.*s", f->name, STR_ARG(all));
}

bool option_read_name(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err)
{
    struct str text;

    if (!read_filled(b, f, v, &text, err))
        return false;
    if (!value_is_name(text))
        return js_bind_fault(b, v, err,
                             "\"%s\" has 1 to %d letters, digits and . _ -; choose another name",
                             f->name, CONFIG_NAME_MAX);
    *(struct str *)place = text;
    return true;
}

static bool check_tenant(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, struct str text, struct error *err)
{
    return value_is_name(text) ||
           js_bind_fault(b, v, err,
                         "an entry of \"%s\" has 1 to %d letters, digits and . _ -; correct it",
                         f->name, CONFIG_NAME_MAX);
}

/* An empty list looks like "none" but would mean "any". */
static bool read_names(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, void *place, value_check check, struct error *err)
{
    if (v->type == JS_ARRAY && !js_first(b->doc, v))
        return js_bind_fault(b, v, err, "\"%s\" is empty; name one, or leave it out", f->name);
    return value_list(b, f, v, place, check, err);
}

bool option_read_tenant_names(const struct js_binding *b, const struct js_field *f,
                              const struct js_node *v, void *place, struct error *err)
{
    return read_names(b, f, v, place, check_tenant, err);
}

static bool check_secret(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, struct str text, struct error *err)
{
    return config_is_secret_name(text) ||
           js_bind_fault(b, v, err,
                         "\"%s\" takes names of secrets: letters, digits and . _ -, without ${ }",
                         f->name);
}

bool option_read_secret_names(const struct js_binding *b, const struct js_field *f,
                              const struct js_node *v, void *place, struct error *err)
{
    return read_names(b, f, v, place, check_secret, err);
}

static bool check_role(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, struct str text, struct error *err)
{
    enum role role;

    return role_parse(text, &role) ||
           js_bind_fault(b, v, err, "\"%s\" takes admin, member, auditor and service", f->name);
}

bool option_read_role_names(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, void *place, struct error *err)
{
    return read_names(b, f, v, place, check_role, err);
}

static bool check_audience(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, struct str text, struct error *err)
{
    return text.n > 0 ||
           js_bind_fault(b, v, err, "an entry of \"%s\" is empty; remove it", f->name);
}

bool option_read_audience(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err)
{
    struct str *one;

    if (v->type == JS_ARRAY)
        return value_list(b, f, v, place, check_audience, err);
    one = arena_new_of(b->mem, struct str);
    if (!read_filled(b, f, v, one, err))
        return false;
    *(struct str **)place = one;
    *(size_t *)(void *)((char *)place - f->offset + f->count_offset) = 1;
    return true;
}

/* Keys fetched over plain HTTP are trusted only from loopback. */
bool value_url_is_on_loopback(struct str url)
{
    size_t start = strlen("http://"), end;
    char host[64];
    bool v6 = url.n > start && url.p[start] == '[';

    start += v6;
    end = start;
    while (end < url.n && !strchr(v6 ? "]" : ":/?", url.p[end]))
        end++;
    if (end - start >= sizeof(host))
        return false;
    memcpy(host, url.p + start, end - start);
    host[end - start] = '\0';
    return value_is_loopback(host);
}

bool option_read_jwks(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err)
{
    struct issuer_config *c = container_of(place, struct issuer_config, jwks);
    const char *complaint;

    if (!read_filled(b, f, v, &c->jwks, err))
        return false;
    c->jwks_at = value_place(b, v);
    c->jwks_is_url = memmem(c->jwks.p, c->jwks.n, "://", 3) != NULL;
    complaint = c->jwks_is_url ? value_url_complaint(c->jwks) : NULL;
    if (complaint)
        return js_bind_fault(b, v, err, "\"%s\" %s", f->name, complaint);
    if (c->jwks_is_url && str_starts(c->jwks, STR("http://")) && !value_url_is_on_loopback(c->jwks))
        return js_bind_fault(b, v, err,
                             "\"%s\" must begin with https://, because keys fetched without TLS "
                             "can be forged; http:// is for loopback only",
                             f->name);
    return true;
}

static bool count_objects(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, size_t *ret, struct error *err)
{
    size_t n = 0;

    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e))
        n++;
    if (n > f->max_items)
        return js_bind_fault(b, v, err, "\"%s\" has %zu entries; at most %zu are taken", f->name, n,
                             f->max_items);
    *ret = n;
    return true;
}

static bool read_key(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     struct issuer_key_config *key, struct error *err)
{
    bool is_secret;

    key->at = value_place(b, v);
    if (!js_bind(b, v, f->fields, key, err))
        return false;
    is_secret = str_eq(key->alg, STR("HS256"));
    if ((key->pem.p != NULL) == is_secret || (key->secret.p != NULL) != is_secret)
        return js_bind_fault(
            b, v, err, "a key for %.*s needs \"%s\" and must not have the other one; correct it",
            STR_ARG(key->alg), is_secret ? "secret" : "pem");
    return true;
}

bool option_read_issuer_keys(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, void *place, struct error *err)
{
    struct issuer_config *c = container_of(place, struct issuer_config, keys);
    size_t n = 0, i = 0;

    if (v->type != JS_ARRAY)
        return js_bind_fault(b, v, err, "\"%s\" must be an array of objects", f->name);
    if (!count_objects(b, f, v, &n, err))
        return false;
    c->keys = arena_zalloc(b->mem, n * sizeof(*c->keys));
    c->n_keys = n;
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e))
        if (!read_key(b, f, e, &c->keys[i++], err))
            return false;
    return true;
}

static bool has_tenant(const struct issuer_config *c, struct str name)
{
    for (size_t i = 0; i < c->n_tenants; i++)
        if (str_eq(c->tenants[i], name))
            return true;
    return false;
}

/* Chooses the tenant of tokens without a tenant claim. */
static bool choose_tenant(const struct js_binding *b, const struct js_node *v,
                          struct issuer_config *c, struct error *err)
{
    if (c->tenant.p && c->n_tenants && !has_tenant(c, c->tenant))
        return js_bind_fault(b, v, err,
                             "\"tenant\" is %.*s, which is not among \"tenants\"; add it there, or "
                             "leave it out",
                             STR_ARG(c->tenant));
    if (!c->tenant.p && (!c->n_tenants || has_tenant(c, STR("default"))))
        c->tenant = STR("default");
    else if (!c->tenant.p && c->n_tenants == 1)
        c->tenant = c->tenants[0];
    return true;
}

static bool read_issuer(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, struct config *c, struct error *err)
{
    struct issuer_config *issuer = &c->issuers[c->n_issuers];

    js_bind_defaults(f->fields, issuer, b->mem);
    issuer->at = value_place(b, v);
    if (!js_bind(b, v, f->fields, issuer, err) || !choose_tenant(b, v, issuer, err))
        return false;
    if (!issuer->jwks.p && !issuer->n_keys)
        return js_bind_fault(b, v, err, "an issuer needs \"jwks\" or \"keys\"; add one of them");
    for (size_t i = 0; i < c->n_issuers; i++)
        if (str_eq(c->issuers[i].issuer, issuer->issuer))
            return js_bind_fault(b, v, err, "this \"issuer\" is given twice; keep one of them");
    c->n_issuers++;
    return true;
}

bool option_read_jwt(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    size_t n = 1;

    if (v->type == JS_ARRAY && !count_objects(b, f, v, &n, err))
        return false;
    c->issuers = arena_zalloc(b->mem, n * sizeof(*c->issuers));
    if (v->type != JS_ARRAY)
        return read_issuer(b, f, v, c, err);
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e))
        if (!read_issuer(b, f, e, c, err))
            return false;
    return true;
}

bool issuers_finish(struct config *c, struct error *err)
{
    for (size_t i = 0; i < c->n_issuers; i++) {
        struct issuer_config *issuer = &c->issuers[i];
        struct str base = c->public_url;

        if (c->n_issuers > 1 && !issuer->n_tenants && issuer->tenant_claim.n)
            return error_set(
                err, ERR_CONFIG,
                "%.*s: with several issuers each needs the tenants that its tokens may name, or "
                "%.*s could name any tenant; add for instance \"tenants\": [\"%.*s\"]",
                STR_ARG(issuer->at), STR_ARG(issuer->issuer), STR_ARG(issuer->tenant));
        if (issuer->n_audiences)
            continue;
        if (!base.p)
            return error_set(err, ERR_CONFIG,
                             "%.*s: set \"audience\" of the issuer, or \"public_url\"; without "
                             "them tokens for other services would be accepted",
                             STR_ARG(issuer->at));
        issuer->n_audiences = 2;
        issuer->audiences = arena_zalloc(c->mem, 2 * sizeof(struct str));
        issuer->audiences[0] = base;
        issuer->audiences[1] =
            arena_printf(c->mem, "%.*s/mcp", (int)(base.n - (base.p[base.n - 1] == '/')), base.p);
    }
    return true;
}
