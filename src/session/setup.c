/* SPDX-License-Identifier: Apache-2.0 */
#include "session/setup.h"

#include "config/limits.h"
#include "json/write.h"

#include <stddef.h>

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
