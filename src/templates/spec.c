/* SPDX-License-Identifier: Apache-2.0 */
#include "templates/spec.h"

#include "config/limits.h"
#include "json/bind.h"
#include "profile/profile.h"

#include <stddef.h>

/* A JSON object that is stored as it is. */
static bool read_object(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err)
{
    struct str raw = js_raw(b->doc, v);

    if (v->type != JS_OBJECT || (int64_t)raw.n > f->max)
        return js_bind_fault(b, v, err, "\"%s\" must be an object of at most %lld bytes", f->name,
                             (long long)f->max);
    *(struct str *)place = arena_dup(b->mem, raw);
    return true;
}

#define AT(member) .offset = offsetof(struct template_spec, member)
const struct js_field template_fields[] = {
    {.name = "description", .kind = JS_BIND_STRING, AT(description), .help = "Text for people."},
    {.name = "ttl",
     .kind = JS_BIND_DURATION,
     AT(ttl_ms),
     .min = 1,
     .max = SESSION_LIFE_MAX_MS,
     .help = "Lifetime of the session; at most 30 days. A request may ask for less, not for more."},
    {.name = "profile",
     .kind = JS_BIND_STRING,
     AT(profile),
     .help = "Profile through which alone the session can be used."},
    {.name = "toolsets",
     .kind = JS_BIND_STRINGS,
     AT(toolsets),
     .count_offset = offsetof(struct template_spec, n_toolsets),
     .max_items = TEMPLATE_TOOLSETS_MAX,
     .help = "Keys of toolsets that are enabled from the start."},
    {.name = "audit",
     .kind = JS_BIND_ENUM,
     AT(audit),
     .names = setup_audit_names,
     .help = "full: the audit stores complete bodies where a server's own mode is redacted. The "
             "client is told."},
    {.name = "audit_body",
     .kind = JS_BIND_SIZE,
     AT(audit_body),
     .min = SETUP_AUDIT_BODY_MIN,
     .max = SETUP_AUDIT_BODY_MAX,
     .help = "How much of each body is stored with audit full (default: limits.audit_body)."},
    {.name = "limits",
     .kind = JS_BIND_OBJECT,
     AT(limits),
     .fields = limits_fields,
     .help = "Limits of the session beside those of tenant and key: requests, bytes, calls."},
    {.name = "context",
     .kind = JS_BIND_CUSTOM,
     .read = read_object,
     AT(context),
     .max = TEMPLATE_SPEC_MAX,
     .help = "The session's first context document, an object."},
    {.name = "metadata",
     .kind = JS_BIND_CUSTOM,
     .read = read_object,
     AT(metadata),
     .max = TEMPLATE_METADATA_MAX,
     .help = "Metadata of the session, an object. Members that a request sends take precedence."},
    {.name = "credentials",
     .kind = JS_BIND_CUSTOM,
     .read = session_setup_read_credentials,
     AT(credentials),
     .count_offset = offsetof(struct template_spec, n_credentials),
     .help =
         "Credentials of the session for services, each as \"${secret:NAME}\". The operator lists "
         "the secrets that templates of the tenant may name (tenants.NAME.secrets)."},
    {0},
};

bool template_name_is_fit(struct str name)
{
    if (!name.n || name.n > TEMPLATE_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_word && (i == 0 || (c != '.' && c != '_' && c != '-')))
            return false;
    }
    return true;
}

bool template_ref_parse(struct str ref, struct str *ret_name, int64_t *ret_version)
{
    struct str rest = ref, name = str_split(&rest, '@');
    uint64_t version = 0;

    if (!template_name_is_fit(name) ||
        (rest.p && (!str_to_u64(rest, TEMPLATE_VERSIONS_MAX, &version) || version == 0)))
        return false;
    *ret_name = name;
    *ret_version = (int64_t)version;
    return true;
}

bool template_spec_parse(struct str json, struct arena *mem, struct template_spec *ret,
                         struct error *err)
{
    struct js_doc doc;
    struct js_fault fault;
    struct template_spec t = {0};

    if (json.n > TEMPLATE_SPEC_MAX)
        return error_set(err, ERR_TOO_LARGE,
                         "a template has at most %zu bytes, and this one has %zu; make its context "
                         "or metadata smaller",
                         TEMPLATE_SPEC_MAX, json.n);
    if (!js_parse(json, &js_limits_request, mem, &doc, &fault))
        return js_bind_parse_fault(STR_NONE, &fault, ERR_BAD_INPUT, err);
    if (js_root(&doc)->type != JS_OBJECT)
        return error_set(err, ERR_BAD_INPUT, "a template is a JSON object");
    struct js_binding b = {.doc = &doc, .mem = mem, .code = ERR_BAD_INPUT};
    if (!js_bind(&b, js_root(&doc), template_fields, &t, err))
        return false;
    if (t.description.n > TEMPLATE_DESCRIPTION_MAX)
        return error_set(err, ERR_BAD_INPUT, "\"description\" has at most %d bytes",
                         TEMPLATE_DESCRIPTION_MAX);
    if (t.audit_body && t.audit != SETUP_AUDIT_FULL)
        return error_set(
            err, ERR_BAD_INPUT,
            "\"audit_body\" needs \"audit\": \"full\"; add it, or leave audit_body out");
    if (!session_limits_check(&t.limits, err))
        return false;
    *ret = t;
    return true;
}

static bool toolset_check(struct str key, const struct profile_config *p, const struct config *c,
                          struct error *err)
{
    if (!config_toolset(c, key))
        return error_set(err, ERR_BAD_INPUT,
                         "there is no toolset \"%.*s\"; \"toolsets\" of the configuration has the "
                         "keys",
                         STR_ARG(str_cut(key, TEMPLATE_NAME_MAX)));
    if (p && profile_toolset(p, key) < 0)
        return error_set(err, ERR_BAD_INPUT,
                         "the profile %.*s does not have the toolset %.*s; see its \"toolsets\"",
                         STR_ARG(p->name), STR_ARG(key));
    if (p && (profile_denies(p, key) || !profile_allows(p, key)))
        return error_set(err, ERR_BAD_INPUT,
                         "the policy of the profile %.*s does not allow the toolset %.*s",
                         STR_ARG(p->name), STR_ARG(key));
    return true;
}

static bool credentials_check(const struct template_spec *t, const struct config *c,
                              struct str tenant, struct error *err)
{
    for (size_t i = 0; i < t->n_credentials; i++)
        if (!config_tenant_may(c, tenant, t->credentials[i].secret))
            return error_set(
                err, ERR_BAD_INPUT,
                "templates of the tenant %.*s may not name the secret %.*s; the operator "
                "allows it with \"secrets\" of the tenant in the configuration",
                STR_ARG(tenant), STR_ARG(t->credentials[i].secret));
    return true;
}

bool template_spec_check(const struct template_spec *t, const struct config *c, struct str tenant,
                         struct error *err)
{
    const struct profile_config *p = t->profile.p ? config_profile(c, t->profile) : NULL;

    if (t->profile.p && !p)
        return error_set(err, ERR_BAD_INPUT,
                         "there is no profile \"%.*s\"; \"profiles\" of the configuration has the "
                         "names",
                         STR_ARG(str_cut(t->profile, TEMPLATE_NAME_MAX)));
    if (p && p->max_active && (int64_t)t->n_toolsets > p->max_active)
        return error_set(err, ERR_BAD_INPUT,
                         "\"toolsets\" has %zu keys, but the profile %.*s allows %lld at a time",
                         t->n_toolsets, STR_ARG(p->name), (long long)p->max_active);
    for (size_t i = 0; i < t->n_toolsets; i++)
        if (!toolset_check(t->toolsets[i], p, c, err))
            return false;
    return credentials_check(t, c, tenant, err);
}

struct session_setup template_setup_of(const struct template_spec *t,
                                       const struct template_row *row, struct arena *mem)
{
    return (struct session_setup){
        .from = arena_printf(mem, "%.*s@%lld", STR_ARG(row->name), (long long)row->version),
        .profile = t->profile,
        .audit = t->audit,
        .audit_body = t->audit_body,
        .limits = t->limits,
        .credentials = t->credentials,
        .n_credentials = t->n_credentials,
    };
}

struct str template_setup(const struct template_spec *t, const struct template_row *row,
                          struct arena *mem)
{
    struct session_setup s = template_setup_of(t, row, mem);

    return session_setup_write(&s, mem);
}

struct str template_toolsets(const struct template_spec *t, struct arena *mem)
{
    struct str keys = STR_NONE;

    for (size_t i = 0; i < t->n_toolsets; i++)
        keys = keys.p ? arena_printf(mem, "%.*s,%.*s", STR_ARG(keys), STR_ARG(t->toolsets[i]))
                      : t->toolsets[i];
    return keys;
}
