/* SPDX-License-Identifier: Apache-2.0 */
#include "session/setup.h"

#include "config/limits.h"
#include "json/write.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SETUP_BYTES_MAX 4096 /* names and limits are bounded where they are accepted */

const char *const setup_audit_names[] = {"redacted", "full", NULL};

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
        s = xcalloc(1, sizeof(*s) + parsed.from.n + parsed.profile.n);
        char *texts = (char *)(s + 1);
        *s = parsed;
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
    if (s->is_told)
        js_kv_bool(&w, "told", true);
    js_object_end(&w);
    struct str text = out.n > 2 ? arena_dup(mem, buf_str(&out)) : STR_NONE;
    buf_release(&out);
    return text;
}
