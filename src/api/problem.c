/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as application/problem+json (RFC 9457).  `holdfast help CODE` explains the member `code`;
 * clients of the first API look for the text in `error`. */
#include "api/api.h"

#include "json/write.h"

#include <stdarg.h>
#include <stdio.h>

struct str problem_body(struct arena *mem, enum err_code code, const char *error,
                        const char *detail, struct str request_id)
{
    const struct error_info *info = error_info(code);
    struct js_writer w;
    struct buf out;

    buf_init(&out, 16 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("type"));
    js_string(&w, arena_printf(mem, "urn:holdfast:problem:%s", info->name));
    js_kv_string(&w, "title", str_of(info->sentence));
    js_kv_int(&w, "status", info->http_status);
    js_kv_string(&w, "detail", str_of(detail));
    js_kv_string(&w, "code", str_of(info->name));
    js_kv_string(&w, "request_id", request_id);
    js_kv_string(&w, "error", str_of(error));
    js_object_end(&w);
    struct str body = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return body;
}

void api_refuse(struct api_call *c, enum err_code code, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    api_problem(c, code, text, text,
                error_info(code)->http_status == 503 ? STR("Retry-After: 1\r\n") : STR_NONE);
}

/* The texts of `error` are those of the first API; `detail` says what to do. */
void api_refuse_result(struct api_call *c)
{
    static const struct {
        enum err_code code;
        const char *error, *detail, *headers;
    } table[] = {
        [REGISTRY_OK] = {ERR_INTERNAL, "this should not have been refused", NULL, NULL},
        [REGISTRY_MISSING] = {ERR_SESSION_NOT_FOUND, "session not found",
                              "There is no session of this name that you may use; list them with "
                              "GET /api/v1/sessions.",
                              NULL},
        [REGISTRY_NOT_ACTIVE] = {ERR_SESSION_NOT_ACTIVE, "session is not active",
                                 "The session has expired or was terminated; create a new one.",
                                 NULL},
        [REGISTRY_DUPLICATE] = {ERR_SESSION_EXISTS, "session already exists",
                                "Another session of the tenant has this session_id; choose "
                                "another, or leave it out to get one.",
                                NULL},
        [REGISTRY_LIMIT] = {ERR_SESSION_LIMIT, "session limit exceeded for tenant",
                            "The tenant has as many live sessions as it may; end one that is not "
                            "needed any more with DELETE /api/v1/sessions/{id}, wait for one to "
                            "expire, or raise session.limits.max_per_tenant.",
                            "Retry-After: 60\r\n"},
        [REGISTRY_STALE] = {ERR_PRECONDITION_FAILED, "changed since it was read",
                            "The ETag in If-Match is not the current one; read it again and "
                            "repeat the change.",
                            NULL},
        [REGISTRY_NO_CONTEXT] = {ERR_UNKNOWN_CONTEXT, "unknown context_id",
                                 "The tenant has no context of this id; leave context_id out to "
                                 "begin a new one.",
                                 NULL},
        [REGISTRY_NO_TOOL] = {ERR_UNKNOWN_TOOL, "unknown tool_id",
                              "The tenant has no tool of this id; leave tool_id out.", NULL},
        [REGISTRY_ONCE] = {ERR_IDEMPOTENCY_BUSY, "a request with this Idempotency-Key is under way",
                           "Wait for its answer, or send the request again in a moment.",
                           "Retry-After: 1\r\n"},
        [REGISTRY_TOO_LARGE] = {ERR_TOO_LARGE, "the context is too large",
                                "A context holds at most 1 MiB of JSON, and 10,000 members "
                                "in an object; take something out first.",
                                NULL},
        [REGISTRY_FAILED] = {ERR_INTERNAL, NULL, NULL, NULL},
    };
    enum registry_result result = c->reg.result;

    if (result == REGISTRY_FAILED)
        api_refuse(c, c->reg.err.code == ERR_NONE ? ERR_INTERNAL : c->reg.err.code, "%s",
                   c->reg.err.text);
    else
        api_problem(c, table[result].code, table[result].error,
                    table[result].detail ? table[result].detail : table[result].error,
                    str_of(table[result].headers));
}
