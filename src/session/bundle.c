/* SPDX-License-Identifier: Apache-2.0 */
/* Reads bundles: checks a bundle when it is stored, finds credentials when it is used, and lists all
 * secrets for the audit. */
#include "session/bundle.h"

#include "base/buf.h"
#include "crypto/base64.h"
#include "json/write.h"

#include <stdlib.h>

/* The value of a member. */
enum shape {
    SHAPE_SECRET,     /* text that is valid in a header */
    SHAPE_TEXT,       /* any text */
    SHAPE_SCALAR,     /* text or number */
    SHAPE_ANY,        /* anything */
    SHAPE_STRINGS,    /* an object of texts */
    SHAPE_TYPE,       /* a credential's type */
    SHAPE_CREDENTIAL, /* this and the following: objects with these members */
    SHAPE_OAUTH,
    SHAPE_AGENT,
};

struct member {
    const char *name;
    enum shape shape;
};

static const struct member credential_members[] = {
    {"type", SHAPE_TYPE},       {"token", SHAPE_SECRET},    {"username", SHAPE_SECRET},
    {"password", SHAPE_SECRET}, {"key_name", SHAPE_SECRET}, {"key_value", SHAPE_SECRET},
    {"properties", SHAPE_ANY},  {NULL, SHAPE_ANY},
};
static const struct member oauth_members[] = {
    {"access_token", SHAPE_SECRET}, {"refresh_token", SHAPE_SECRET},
    {"token_type", SHAPE_SECRET},   {"expires_at", SHAPE_SCALAR},
    {"scope", SHAPE_ANY},           {NULL, SHAPE_ANY},
};
static const struct member agent_members[] = {
    {"agent_type", SHAPE_TEXT}, {"agent_id", SHAPE_TEXT},   {"user_id", SHAPE_TEXT},
    {"session_id", SHAPE_TEXT}, {"environment", SHAPE_ANY}, {NULL, SHAPE_ANY},
};
static const struct member *const members_of[] = {
    [SHAPE_CREDENTIAL] = credential_members,
    [SHAPE_OAUTH] = oauth_members,
    [SHAPE_AGENT] = agent_members,
};

/* The members of the bundle: objects by service or header name, except agent_context. */
static const struct part {
    const char *name;
    enum shape shape;
    bool by_service;
} parts[] = {
    {"credentials", SHAPE_CREDENTIAL, true}, {"oauth_tokens", SHAPE_OAUTH, true},
    {"session_tokens", SHAPE_SECRET, true},  {"custom_headers", SHAPE_SECRET, false},
    {"agent_context", SHAPE_AGENT, false},
};

static const char *const types[] = {"bearer", "api_key",       "basic",
                                    "custom", "aws_signature", "digest"};

struct reading {
    const struct js_doc *doc;
    struct arena *mem;
    struct str services[BUNDLE_SERVICES_MAX];
    size_t n;
};

static bool refuse(struct error *err, const char *part, const char *member, const char *what)
{
    return error_set(err, ERR_BAD_INPUT, "passthrough_auth.%s%s%s %s", part, member ? ".…." : "",
                     member ? member : "", what);
}

/* No control characters, because the text may be sent in a header. */
static bool is_line(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return false;
    return text.p && text.n > 0;
}

static bool is_token_text(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return name.n > 0 && name.n <= BUNDLE_NAME_MAX;
}

static bool is_type(struct str text)
{
    for (size_t i = 0; i < countof(types); i++)
        if (str_eq(text, str_of(types[i])))
            return true;
    return false;
}

static bool check_value(struct reading *r, const char *part, const struct member *m,
                        const struct js_node *v, struct error *err)
{
    struct str text = js_text(r->doc, v, r->mem);
    switch (m->shape) {
    case SHAPE_TYPE:
        return (text.p && is_type(text)) ||
               refuse(err, part, m->name,
                      "must be bearer, api_key, basic, custom, aws_signature or digest");
    case SHAPE_SECRET:
        return is_line(text) || refuse(err, part, m->name,
                                       "must be a text that is not empty and has no control "
                                       "characters");
    case SHAPE_TEXT:
        return text.p || refuse(err, part, m->name, "must be a text");
    case SHAPE_SCALAR:
        return text.p || v->type == JS_NUMBER ||
               refuse(err, part, m->name, "must be a text or a number");
    default:
        return true;
    }
}

/* Checks an object against a table of members. */
static bool check_members(struct reading *r, const struct part *part, const struct js_node *v,
                          struct error *err)
{
    if (v->type != JS_OBJECT)
        return refuse(err, part->name, NULL, "holds something that must be an object");
    for (const struct js_node *k = js_first(r->doc, v); k; k = js_next(r->doc, v, js_value_of(k))) {
        const struct member *m = members_of[part->shape];
        while (m->name && !js_is(r->doc, k, str_of(m->name)))
            m++;
        if (!m->name)
            return refuse(err, part->name, NULL, "has a member that is not known; leave it out");
        if (js_value_of(k)->type != JS_NULL && !check_value(r, part->name, m, js_value_of(k), err))
            return false;
    }
    return true;
}

static struct str text_of(const struct js_doc *doc, const struct js_node *object, const char *name,
                          struct arena *mem)
{
    return js_text(doc, js_get(doc, object, str_of(name)), mem);
}

/* Checks that the credential has the members that its type needs. */
static bool check_credential(struct reading *r, const struct js_node *v, struct error *err)
{
    struct str type = text_of(r->doc, v, "type", r->mem);
    struct str token = text_of(r->doc, v, "token", r->mem);
    struct str value = text_of(r->doc, v, "key_value", r->mem);
    struct str name = text_of(r->doc, v, "key_name", r->mem);

    if (!type.p)
        return refuse(err, "credentials", "type", "is missing");
    if (str_eq(type, STR("bearer")) && !token.p)
        return refuse(err, "credentials", "token", "is needed with the type bearer");
    if (str_eq(type, STR("api_key")) && !token.p && !value.p)
        return refuse(err, "credentials", "key_value", "is needed with the type api_key");
    if (str_eq(type, STR("basic")) && !text_of(r->doc, v, "username", r->mem).p)
        return refuse(err, "credentials", "username", "is needed with the type basic");
    if (name.p && !is_token_text(name))
        return refuse(err, "credentials", "key_name", "must be the name of a header");
    return true;
}

static bool note_service(struct reading *r, struct str name, struct error *err)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->services[i], name))
            return true;
    if (r->n == BUNDLE_SERVICES_MAX)
        return error_set(err, ERR_BAD_INPUT, "passthrough_auth is for more than %d services",
                         BUNDLE_SERVICES_MAX);
    r->services[r->n++] = name;
    return true;
}

static bool check_entry(struct reading *r, const struct part *part, const struct js_node *key,
                        struct error *err)
{
    struct str name = js_text(r->doc, key, r->mem);
    const struct js_node *v = js_value_of(key);
    static const struct member plain = {"…", SHAPE_SECRET};

    if (part->by_service && (!is_line(name) || name.n > BUNDLE_NAME_MAX))
        return refuse(err, part->name, NULL, "has a service without a name of 1 to 128 bytes");
    if (!part->by_service && !is_token_text(name))
        return refuse(err, part->name, NULL, "has a name that is not a valid header name");
    if (part->by_service && !note_service(r, name, err))
        return false;
    if (part->shape == SHAPE_SECRET)
        return check_value(r, part->name, &plain, v, err);
    return check_members(r, part, v, err) &&
           (part->shape != SHAPE_CREDENTIAL || check_credential(r, v, err)) &&
           (part->shape != SHAPE_OAUTH || text_of(r->doc, v, "access_token", r->mem).p ||
            refuse(err, part->name, "access_token", "is missing"));
}

static bool check_part(struct reading *r, const struct part *part, const struct js_node *v,
                       struct error *err)
{
    if (v->type == JS_NULL)
        return true;
    if (v->type != JS_OBJECT)
        return refuse(err, part->name, NULL, "must be an object");
    if (part->shape == SHAPE_AGENT)
        return check_members(r, part, v, err);
    for (const struct js_node *k = js_first(r->doc, v); k; k = js_next(r->doc, v, js_value_of(k)))
        if (!check_entry(r, part, k, err))
            return false;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static struct str services_text(struct reading *r)
{
    struct js_writer w;
    struct buf out;

    qsort(r->services, r->n, sizeof(r->services[0]), by_name);
    buf_init(&out, 8 * BUNDLE_SERVICES_MAX * BUNDLE_NAME_MAX);
    js_begin(&w, &out);
    js_array(&w);
    for (size_t i = 0; i < r->n; i++)
        js_string(&w, r->services[i]);
    js_array_end(&w);
    struct str text = arena_dup(r->mem, buf_str(&out));
    buf_release(&out);
    return text;
}

bool bundle_check(const struct js_doc *doc, const struct js_node *bundle, struct arena *mem,
                  struct str *ret_services, struct error *err)
{
    struct reading r = {.doc = doc, .mem = mem};

    if (bundle->type != JS_OBJECT || js_raw(doc, bundle).n > BUNDLE_BYTES_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "passthrough_auth must be an object of at most %u bytes",
                         BUNDLE_BYTES_MAX);
    if (!js_first(doc, bundle))
        return error_set(err, ERR_BAD_INPUT,
                         "passthrough_auth is empty; leave it out, or send null to take away what "
                         "is stored");
    for (const struct js_node *k = js_first(doc, bundle); k;
         k = js_next(doc, bundle, js_value_of(k))) {
        size_t i = 0;
        while (i < countof(parts) && !js_is(doc, k, str_of(parts[i].name)))
            i++;
        if (i == countof(parts))
            return error_set(err, ERR_BAD_INPUT,
                             "passthrough_auth takes credentials, oauth_tokens, session_tokens, "
                             "custom_headers and agent_context; leave out what else is there");
        if (!check_part(&r, &parts[i], js_value_of(k), err))
            return false;
    }
    *ret_services = services_text(&r);
    return true;
}

/* Finding a credential. */

static const struct js_node *entry_of(const struct js_doc *doc, const char *part,
                                      struct str service, struct arena *mem)
{
    const struct js_node *all = js_get(doc, js_root(doc), str_of(part));
    const struct js_node *found = js_get(doc, all, service);

    if (!found)
        found = js_get(doc, all, STR("*"));
    if (!found) {
        char *lower = arena_alloc(mem, service.n + 1);
        for (size_t i = 0; i < service.n; i++)
            lower[i] = service.p[i] >= 'A' && service.p[i] <= 'Z' ? (char)(service.p[i] + 32)
                                                                  : service.p[i];
        found = js_get(doc, all, str_n(lower, service.n));
    }
    return found && found->type != JS_NULL ? found : NULL;
}

static struct str basic_text(const struct js_doc *doc, const struct js_node *v, struct arena *mem)
{
    struct str user = text_of(doc, v, "username", mem), pass = text_of(doc, v, "password", mem);
    struct str both = arena_printf(mem, "%.*s:%.*s", STR_ARG(user), STR_ARG(pass));
    char *text = arena_alloc(mem, both.n * 4 / 3 + 8);
    return str_n(text, base64_encode(both.p, both.n, text));
}

static bool take_credential(const struct js_doc *doc, const struct js_node *v, struct arena *mem,
                            struct credential *ret, struct error *err)
{
    struct str type = text_of(doc, v, "type", mem), token = text_of(doc, v, "token", mem);
    struct str value = text_of(doc, v, "key_value", mem);

    if (str_eq(type, STR("bearer"))) {
        *ret = (struct credential){.scheme = STR("Bearer"), .secret = token};
    } else if (str_eq(type, STR("basic"))) {
        *ret = (struct credential){.scheme = STR("Basic"), .secret = basic_text(doc, v, mem)};
    } else if (str_eq(type, STR("api_key")) || str_eq(type, STR("custom"))) {
        *ret = (struct credential){.secret = value.p ? value : token,
                                   .header = text_of(doc, v, "key_name", mem)};
    } else {
        return error_set(err, ERR_BAD_INPUT,
                         "the session's credential is of a kind that cannot be passed on as it is; "
                         "store one of type bearer, basic, api_key or custom");
    }
    return true;
}

static struct str custom_header(const struct js_doc *doc, struct str name, struct arena *mem)
{
    const struct js_node *all = js_get(doc, js_root(doc), STR("custom_headers"));

    if (!name.p || !js_type_is(all, JS_OBJECT))
        return STR_NONE;
    for (const struct js_node *k = js_first(doc, all); k; k = js_next(doc, all, js_value_of(k)))
        if (str_ieq(js_text(doc, k, mem), name))
            return js_text(doc, js_value_of(k), mem);
    return STR_NONE;
}

bool bundle_find(struct str plain, struct str service, struct str header, struct arena *mem,
                 struct credential *ret, struct error *err)
{
    struct js_doc doc;
    const struct js_node *found;

    if (!js_parse(plain, &js_limits_request, mem, &doc, NULL))
        return error_set(err, ERR_INTERNAL,
                         "the session's credentials are damaged; store them again");
    *ret = (struct credential){0};
    if ((found = entry_of(&doc, "credentials", service, mem)))
        return take_credential(&doc, found, mem, ret, err);
    if ((found = entry_of(&doc, "oauth_tokens", service, mem))) {
        struct str scheme = text_of(&doc, found, "token_type", mem);
        ret->scheme = !scheme.p || str_ieq(scheme, STR("bearer")) ? STR("Bearer") : scheme;
        ret->secret = text_of(&doc, found, "access_token", mem);
    } else if ((found = entry_of(&doc, "session_tokens", service, mem))) {
        *ret = (struct credential){.scheme = STR("Bearer"), .secret = js_text(&doc, found, mem)};
    } else {
        ret->secret = custom_header(&doc, header, mem);
    }
    return true;
}

/* Listing the secrets. */

struct listing {
    const struct js_doc *doc;
    struct arena *mem;
    void (*take)(void *arg, struct str value, struct str name);
    void *arg;
};

/* Takes a text, or every text inside of an object or array.  The parser limits the depth. */
static void list_texts(const struct listing *l, const struct js_node *v, struct str name)
{
    if (js_type_is(v, JS_STRING)) {
        l->take(l->arg, js_text(l->doc, v, l->mem), name);
    } else if (js_type_is(v, JS_ARRAY)) {
        for (const struct js_node *e = js_first(l->doc, v); e; e = js_next(l->doc, v, e))
            list_texts(l, e, name);
    } else if (js_type_is(v, JS_OBJECT)) {
        for (const struct js_node *k = js_first(l->doc, v); k;
             k = js_next(l->doc, v, js_value_of(k)))
            list_texts(l, js_value_of(k), name);
    }
}

static void list_credential(const struct listing *l, const struct js_node *v, struct str name)
{
    static const char *const secrets[] = {"token", "password", "key_value", "properties"};

    for (size_t i = 0; i < countof(secrets); i++)
        list_texts(l, js_get(l->doc, v, str_of(secrets[i])), name);
    if (js_type_is(js_get(l->doc, v, STR("username")), JS_STRING))
        l->take(l->arg, basic_text(l->doc, v, l->mem), name);
}

static void list_oauth(const struct listing *l, const struct js_node *v, struct str name)
{
    list_texts(l, js_get(l->doc, v, STR("access_token")), name);
    list_texts(l, js_get(l->doc, v, STR("refresh_token")), name);
}

/* Lists each member of an object; the name is made of `kind` and the name of the member. */
static void list_members(const struct listing *l, const struct js_node *all, const char *kind,
                         void (*list)(const struct listing *l, const struct js_node *v,
                                      struct str name))
{
    if (!js_type_is(all, JS_OBJECT))
        return;
    for (const struct js_node *k = js_first(l->doc, all); k;
         k = js_next(l->doc, all, js_value_of(k)))
        list(l, js_value_of(k),
             arena_printf(l->mem, "%s %.*s of the session", kind,
                          STR_ARG(js_text(l->doc, k, l->mem))));
}

bool bundle_each_secret(struct str plain, struct arena *mem,
                        void (*take)(void *arg, struct str value, struct str name), void *arg)
{
    struct js_doc doc;
    const struct listing l = {&doc, mem, take, arg};

    if (!js_parse(plain, &js_limits_request, mem, &doc, NULL))
        return false;
    const struct js_node *root = js_root(&doc);
    const struct js_node *agent = js_get(&doc, root, STR("agent_context"));
    list_members(&l, js_get(&doc, root, STR("credentials")), "credential", list_credential);
    list_members(&l, js_get(&doc, root, STR("oauth_tokens")), "oauth token", list_oauth);
    list_members(&l, js_get(&doc, root, STR("session_tokens")), "session token", list_texts);
    list_members(&l, js_get(&doc, root, STR("custom_headers")), "header", list_texts);
    list_members(&l, js_get(&doc, agent, STR("environment")), "environment", list_texts);
    return true;
}
