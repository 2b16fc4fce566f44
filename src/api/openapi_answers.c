/* SPDX-License-Identifier: Apache-2.0 */
/* The responses of operations: statuses, headers and bodies.  Responses that any operation may give
 * are components. */
#include "api/openapi_impl.h"

#include <stdio.h>

/* Health. */

static const struct api_answer healthz_answers[] = {
    {200, "Health", "The process is alive."},
    {403, "Refusal", "The Host is not an address of this server."},
    {0}};
static const struct api_answer readyz_answers[] = {
    {200, "Health", "The server is ready."},
    {403, "Refusal", "The Host is not an address of this server."},
    {503, "Health",
     "The server is stopping, its store cannot be written, or servers cannot be started."},
    {0},
};
const struct api_operation openapi_health[] = {
    {.method = "GET",
     .pattern = "/healthz",
     .id = "getHealth",
     .summary = "Tells whether the process is alive.",
     .answers = healthz_answers},
    {.method = "GET",
     .pattern = "/readyz",
     .id = "getReadiness",
     .summary = "Tells whether the store can be written and the server is not stopping.",
     .answers = readyz_answers},
};
const size_t openapi_n_health = countof(openapi_health);

/* Headers. */

static const struct header {
    const char *name, *type, *example, *help;
    bool is_always; /* read from the row that has the help */
    /* The answers that have the header: all that match these three, and of_schema. */
    int status;            /* 0: any below 400; -1: any */
    const char *schema;    /* NULL: any */
    bool if_once;          /* only operations that take an Idempotency-Key */
    const char *component; /* name of the component; NULL: `name` */
    unsigned of_schema;    /* enum api_header: only bodies whose schema has it; 0: any */
} headers[] = {
    {"X-Request-Id", "string", "\"req_9f86d081884c7d65\"",
     "The X-Request-Id of the request, or a generated one.", true, -1, NULL, false},
    {"ETag", "string", "\"\\\"3-9f86d081884c\\\"\"", "Version of the resource.", true, 0, NULL,
     false, .of_schema = API_ETAG},
    {"ETag", "string", "\"\\\"9f86d081884c\\\"\"",
     "Current version of the resource, where the caller may know it.", false, 412, NULL, false,
     "CurrentETag"},
    {"ETag", "string", NULL, NULL, true, 304, NULL, false},
    {"Location", "string", "\"/api/v1/sessions/session-1\"", "Path of the new resource.", true, 201,
     NULL, false},
    {"Link", "string", "\"</api/v1/sessions?limit=50&cursor=AAAA>; rel=\\\"next\\\"\"",
     "The next page, if there is one (RFC 8288).", false, 200, NULL, false, .of_schema = API_LINK},
    {"RateLimit-Policy", "string", "\"\\\"sessions\\\";q=100\"",
     "How many live sessions the tenant may have. With status 429: the limit that was reached.",
     false, 201, "Session", false},
    {"RateLimit-Policy", "string", NULL, NULL, false, 429, NULL, false},
    {"RateLimit", "string", "\"\\\"sessions\\\";r=42\"",
     "How many more sessions the tenant may create now.", false, 201, "Session", false},
    {"RateLimit", "string", NULL, NULL, false, 429, NULL, false},
    {"Retry-After", "integer", "1", "Seconds after which to try again.", false, 429, NULL, false},
    {"Retry-After", "integer", NULL, NULL, false, 409, NULL, true},
    {"Retry-After", "integer", NULL, NULL, false, 503, "Problem", false},
    {"Idempotency-Replayed", "string", "\"true\"",
     "The answer repeats the one to an earlier request with this Idempotency-Key.", false, 0, NULL,
     true},
    {"WWW-Authenticate", "string",
     "\"Bearer "
     "resource_metadata=\\\"http://127.0.0.1:4653/.well-known/oauth-protected-resource\\\"\"",
     "How to get a credential (RFC 6750, RFC 9728).", true, 401, NULL, false},
};

static const char *component_of(const struct header *h)
{
    return h->component ? h->component : h->name;
}

void openapi_headers(struct js_writer *w)
{
    for (size_t i = 0; i < countof(headers); i++) {
        const struct header *h = &headers[i];
        if (!h->help)
            continue;
        js_key(w, str_of(component_of(h)));
        js_object(w);
        js_kv_string(w, "description", str_of(h->help));
        js_kv_bool(w, "required", h->is_always);
        js_key(w, STR("schema"));
        js_object(w);
        js_kv_string(w, "type", str_of(h->type));
        js_object_end(w);
        js_kv_raw(w, "example", str_of(h->example));
        js_object_end(w);
    }
}

static bool schema_has(const char *name, unsigned header)
{
    const struct api_schema *schema = name ? openapi_schema_named(name) : NULL;
    return schema && (schema->headers & header);
}

static bool has_header(const struct header *h, const struct api_answer *a, bool is_once)
{
    return (h->status < 0 || (h->status ? h->status == a->status : a->status < 400)) &&
           (!h->schema || (a->schema && strcmp(h->schema, a->schema) == 0)) &&
           (!h->if_once || is_once) && (!h->of_schema || schema_has(a->schema, h->of_schema));
}

static void write_headers(struct js_writer *w, const struct api_answer *a, bool is_once)
{
    js_key(w, STR("headers"));
    js_object(w);
    for (size_t i = 0; i < countof(headers); i++) {
        if (!has_header(&headers[i], a, is_once))
            continue;
        js_key(w, str_of(headers[i].name));
        openapi_ref(w, "headers", component_of(&headers[i]));
    }
    js_object_end(w);
}

/* Answers. */

static void write_content(struct js_writer *w, const struct api_answer *a, bool is_once)
{
    bool is_problem = strcmp(a->schema, "Problem") == 0;

    js_key(w, STR("content"));
    js_object(w);
    js_key(w, is_problem ? STR("application/problem+json") : STR("application/json"));
    js_object(w);
    js_key(w, STR("schema"));
    openapi_ref(w, "schemas", a->schema);
    js_key(w, STR("example"));
    if (is_problem)
        openapi_problem_example(w, a->status, a->help, is_once);
    else
        openapi_answer_example(w, openapi_schema_named(a->schema));
    js_object_end(w);
    js_object_end(w);
}

/* A body of other types than JSON. */
static void write_types(struct js_writer *w, const char *const *types)
{
    js_key(w, STR("content"));
    js_object(w);
    for (; *types; types++) {
        js_key(w, str_of(*types));
        js_object(w);
        js_kv_raw(w, "schema", STR("{\"type\":\"string\"}"));
        js_kv_string(w, "example", STR("…"));
        js_object_end(w);
    }
    js_object_end(w);
}

static void write_answer(struct js_writer *w, const struct api_answer *a, bool is_once,
                         bool is_health)
{
    js_object(w);
    js_kv_string(w, "description", str_of(a->help));
    if (!is_health)
        write_headers(w, a, is_once);
    if (a->types)
        write_types(w, a->types);
    else if (a->schema)
        write_content(w, a, is_once);
    js_object_end(w);
}

static struct str answer_name(const struct api_answer *a, char text[16])
{
    return str_n(text, (size_t)snprintf(text, 16, "Problem%d", a->status));
}

void openapi_common_answers(struct js_writer *w)
{
    char text[16];

    for (const struct api_answer *a = api_common_answers; a->status; a++) {
        js_key(w, answer_name(a, text));
        write_answer(w, a, false, false);
    }
}

static bool is_listed(const struct api_answer *list, int status)
{
    while (list->status && list->status != status)
        list++;
    return list->status != 0;
}

static void write_status(struct js_writer *w, const struct api_answer *a)
{
    char text[8];
    js_key(w, str_n(text, (size_t)snprintf(text, sizeof(text), "%d", a->status)));
}

void openapi_answers(struct js_writer *w, const struct api_operation *op)
{
    bool is_health = openapi_is_health(op);
    char text[16];

    js_object(w);
    for (const struct api_answer *a = op->answers; a->status; a++) {
        write_status(w, a);
        write_answer(w, a, op->is_once, is_health);
    }
    for (const struct api_answer *a = api_common_answers; a->status && !is_health; a++) {
        if (is_listed(op->answers, a->status))
            continue;
        write_status(w, a);
        openapi_ref(w, "responses", answer_name(a, text).p);
    }
    js_object_end(w);
}
