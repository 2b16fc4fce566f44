/* SPDX-License-Identifier: Apache-2.0 */
#include "session/setup.h"

#include "config/limits.h"
#include "json/write.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SETUP_BYTES_MAX 16384 /* names and limits are bounded where they are accepted */

const char *const setup_audit_names[] = {"redacted", "full", NULL};

/* A value that is no reference may be a credential, so no text repeats it. */
static bool read_credential(const struct js_binding *b, const struct js_node *key,
                            struct setup_credential *ret, struct error *err)
{
    const struct js_node *v = js_value_of(key);

    ret->service = js_text(b->doc, key, b->mem);
    if (!ret->service.n || ret->service.n > SETUP_SERVICE_MAX)
        return js_bind_fault(b, key, err, "the name of a service has 1 to %d bytes",
                             SETUP_SERVICE_MAX);
    return (js_type_is(v, JS_STRING) &&
            config_is_secret_reference(js_text(b->doc, v, b->mem), &ret->secret)) ||
           js_bind_fault(b, v, err,
                         "a credential is written \"${secret:NAME}\": the name of a secret, never "
                         "its value");
}

bool session_setup_read_credentials(const struct js_binding *b, const struct js_field *f,
                                    const struct js_node *v, void *place, struct error *err)
{
    struct setup_credential *list = arena_zalloc(b->mem, SETUP_CREDENTIALS_MAX * sizeof(*list));
    size_t n = 0;

    if (!js_type_is(v, JS_OBJECT))
        return js_bind_fault(b, v, err, "\"%s\" must be an object", f->name);
    for (const struct js_node *k = js_first(b->doc, v); k; k = js_next(b->doc, v, js_value_of(k))) {
        if (n == SETUP_CREDENTIALS_MAX)
            return js_bind_fault(b, v, err, "\"%s\" has at most %d services", f->name,
                                 SETUP_CREDENTIALS_MAX);
        if (!read_credential(b, k, &list[n++], err))
            return false;
    }
    *(struct setup_credential **)place = list;
    *(size_t *)(void *)((char *)place - f->offset + f->count_offset) = n;
    return true;
}

struct str session_setup_secret(const struct session_setup *s, struct str service)
{
    for (size_t i = 0; i < s->n_credentials; i++)
        if (str_eq(s->credentials[i].service, service))
            return s->credentials[i].secret;
    return STR_NONE;
}

#define AT(member) .offset = offsetof(struct session_setup, member)
static const struct js_field fields[] = {
    {.name = "template", .kind = JS_BIND_STRING, AT(from)},
    {.name = "profile", .kind = JS_BIND_STRING, AT(profile)},
    {.name = "audit", .kind = JS_BIND_ENUM, AT(audit), .names = setup_audit_names},
    {.name = "audit_body",
     .kind = JS_BIND_SIZE,
     AT(audit_body),
     .min = SETUP_AUDIT_BODY_MIN,
     .max = SETUP_AUDIT_BODY_MAX},
    {.name = "limits", .kind = JS_BIND_OBJECT, AT(limits), .fields = limits_fields},
    {.name = "credentials",
     .kind = JS_BIND_CUSTOM,
     .read = session_setup_read_credentials,
     AT(credentials),
     .count_offset = offsetof(struct session_setup, n_credentials)},
    {.name = "told", .kind = JS_BIND_BOOL, AT(is_told)},
    {0},
};

const struct js_field session_setup_change_fields[] = {
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
     .help = "How much of each body is stored with audit full, if more than limits.audit_body."},
    {.name = "limits",
     .kind = JS_BIND_OBJECT,
     AT(limits),
     .fields = limits_fields,
     .help = "Replaces the limits of the session: requests, bytes, calls."},
    {0},
};

bool session_setup_has_limits(const struct session_setup *s)
{
    return !limits_are_unset(&s->limits);
}

bool session_limits_check(const struct limits *l, struct error *err)
{
    return l->of[LIMIT_CHILDREN].amount == LIMIT_UNSAID ||
           error_set(err, ERR_BAD_INPUT,
                     "\"limits.%s\" is a limit of a tenant or key, not of a session; leave it out",
                     limit_name(LIMIT_CHILDREN));
}

bool session_setup_apply(const struct session_setup_change *change, struct session_setup *s,
                         struct error *err)
{
    if (change->sets_limits && !session_limits_check(&change->to.limits, err))
        return false;
    if (change->sets_limits)
        s->limits = change->to.limits;
    if (change->sets_audit && change->to.audit != s->audit) {
        s->audit = change->to.audit;
        s->audit_body = 0;
        s->is_told = false;
    }
    if (change->sets_audit_body && s->audit != SETUP_AUDIT_FULL)
        return error_set(
            err, ERR_BAD_INPUT,
            "\"audit_body\" needs \"audit\": \"full\"; add it, or leave audit_body out");
    if (change->sets_audit_body)
        s->audit_body = change->to.audit_body;
    return true;
}

bool session_setup_parse(struct str json, struct arena *mem, struct session_setup *ret)
{
    struct js_doc doc;
    struct session_setup s = {0};
    struct error err;

    if (!json.p || !js_parse(json, &js_limits_request, mem, &doc, NULL))
        return false;
    struct js_binding b = {.doc = &doc, .mem = mem, .code = ERR_BAD_INPUT, .unknown_ok = true};
    if (!js_bind(&b, js_root(&doc), fields, &s, &err))
        return false;
    *ret = s;
    return true;
}

static struct str copy_to(char **to, struct str s)
{
    struct str copy = s.n ? str_n(memcpy(*to, s.p, s.n), s.n) : STR_NONE;

    *to += s.n;
    return copy;
}

/* One block: many sessions may have a set-up, and parsing needs more memory than its result. */
struct session_setup *session_setup_new(struct str json)
{
    struct arena *mem = arena_new(16 * SETUP_BYTES_MAX);
    struct session_setup parsed, *s = NULL;

    if (session_setup_parse(json, mem, &parsed)) {
        size_t bytes = parsed.n_credentials * sizeof(*parsed.credentials);
        size_t texts_n = parsed.from.n + parsed.profile.n;
        for (size_t i = 0; i < parsed.n_credentials; i++)
            texts_n += parsed.credentials[i].service.n + parsed.credentials[i].secret.n;
        s = xcalloc(1, sizeof(*s) + bytes + texts_n);
        char *texts = (char *)(s + 1) + bytes;
        *s = parsed;
        s->credentials = bytes ? (struct setup_credential *)(s + 1) : NULL;
        for (size_t i = 0; i < parsed.n_credentials; i++)
            s->credentials[i] =
                (struct setup_credential){copy_to(&texts, parsed.credentials[i].service),
                                          copy_to(&texts, parsed.credentials[i].secret)};
        s->from = copy_to(&texts, parsed.from);
        s->profile = copy_to(&texts, parsed.profile);
    }
    arena_free(mem);
    return s;
}

void session_setup_free(const struct session_setup *s)
{
    free((void *)s);
}

struct str session_setup_write(const struct session_setup *s, struct arena *mem)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, SETUP_BYTES_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "template", s->from);
    js_kv_string(&w, "profile", s->profile);
    if (s->audit == SETUP_AUDIT_FULL)
        js_kv_string(&w, "audit", STR("full"));
    if (s->audit == SETUP_AUDIT_FULL && s->audit_body)
        js_kv_int(&w, "audit_body", (int64_t)s->audit_body);
    if (!limits_are_unset(&s->limits)) {
        js_key(&w, STR("limits"));
        js_object(&w);
        limits_write(&w, &s->limits);
        js_object_end(&w);
    }
    if (s->n_credentials) {
        js_key(&w, STR("credentials"));
        js_object(&w);
        for (size_t i = 0; i < s->n_credentials; i++) {
            js_key(&w, s->credentials[i].service);
            js_string(&w, arena_printf(mem, "${secret:%.*s}", STR_ARG(s->credentials[i].secret)));
        }
        js_object_end(&w);
    }
    if (s->is_told)
        js_kv_bool(&w, "told", true);
    js_object_end(&w);
    struct str text = out.n > 2 ? arena_dup(mem, buf_str(&out)) : STR_NONE;
    buf_release(&out);
    return text;
}

struct str session_setup_for_copy(struct str json, struct arena *mem)
{
    struct session_setup s;

    if (!session_setup_parse(json, mem, &s))
        return STR_NONE;
    s.is_told = false;
    s.n_credentials = 0;
    return session_setup_write(&s, mem);
}
