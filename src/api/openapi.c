/* SPDX-License-Identifier: Apache-2.0 */
/* The document's frame, paths and operations, and GET /api/v1/openapi.json. */
#include "api/openapi.h"
#include "api/openapi_impl.h"

#include "crypto/hash.h"
#include "api/tags.h"

#include <ctype.h>

#define DOCUMENT_MAX (4u * 1024 * 1024)

static const char description[] =
    "Sessions, the tools that ran in them, and their context documents. MCP clients and this "
    "interface use the same sessions.\n\nA credential is sent as a bearer token or as `X-API-Key`; "
    "its tenant and role decide what the caller sees. If the server runs with `auth: none`, which "
    "is for loopback only, requests without a credential belong to the tenant `default`. A "
    "resource of another owner is answered like one that does not exist.\n\nErrors are "
    "`application/problem+json`; `holdfast help CODE` explains their codes. A request that is not "
    "valid HTTP is refused with 400, 408, 413, 414 or 431 before any operation is chosen. A method "
    "that a path does not support is refused with 405 and `Allow`.\n\nLater versions may add "
    "members to answers: clients must ignore members that they do not know.";

/* The first row whose in_pattern occurs in the pattern of an operation gives its tag; the last row
 * matches every pattern.  Tags of other folders come first. */
static const struct api_tag tags[] = {
    {"/v1/keys", "Administration",
     "Keys, users, servers, the audit and the system. Admins may change them, auditors may read "
     "them."},
    {"/v1/users", "Administration", NULL},
    {"/v1/secrets", "Administration", NULL},
    {"/v1/audit", "Administration", NULL},
    {"/v1/system", "Administration", NULL},
    {"/v1/servers", "Administration", NULL},
    {"/v1/tools", "Administration", NULL},
    {"/v1/sinks", "Administration", NULL},
    {"/context", "Contexts", "The context document of a session, shared by all of its clients."},
    {"/tools", "Executions", "Executions of tools."},
    {"/executions", "Executions", NULL},
    {"/auth/", "Identity", "The tenant of a credential; sign-in and sign-out of users."},
    {"/openapi.json", "Interface", "This interface and the health of the server."},
    {"", "Sessions", "Durable sessions, created here or by MCP traffic."},
};

static const char *tag_of(const struct api_operation *op)
{
    size_t i = 0, n;
    const struct api_part *const *parts = api_parts(&n);

    if (openapi_is_health(op))
        return "Interface";
    for (size_t k = 0; k < n; k++)
        if (parts[k]->tag && strstr(op->pattern, parts[k]->tag->in_pattern))
            return parts[k]->tag->name;
    while (!strstr(op->pattern, tags[i].in_pattern))
        i++;
    return tags[i].name;
}

/* The frame. */

static void write_info(struct js_writer *w)
{
    js_key(w, STR("info"));
    js_object(w);
    js_kv_string(w, "title", STR("Holdfast"));
    js_kv_string(w, "version", STR(HOLDFAST_VERSION));
    js_kv_string(w, "summary", STR("Durable sessions for MCP."));
    js_kv_string(w, "description", str_of(description));
    js_key(w, STR("license"));
    js_object(w);
    js_kv_string(w, "name", STR("Apache-2.0"));
    js_kv_string(w, "identifier", STR("Apache-2.0"));
    js_object_end(w);
    js_object_end(w);
}

static void write_servers(struct js_writer *w)
{
    js_key(w, STR("servers"));
    js_array(w);
    js_object(w);
    js_kv_string(w, "url", STR("/"));
    js_kv_string(w, "description", STR("The server that serves this document."));
    js_object_end(w);
    js_array_end(w);
}

static void write_security(struct js_writer *w)
{
    static const char *const names[] = {"bearer", "apiKey"};

    js_key(w, STR("security"));
    js_array(w);
    for (size_t i = 0; i < countof(names); i++) {
        js_object(w);
        js_key(w, str_of(names[i]));
        js_array(w);
        js_array_end(w);
        js_object_end(w);
    }
    js_array_end(w);
}

static void write_security_schemes(struct js_writer *w)
{
    js_key(w, STR("securitySchemes"));
    js_object(w);
    js_key(w, STR("bearer"));
    js_object(w);
    js_kv_string(w, "type", STR("http"));
    js_kv_string(w, "scheme", STR("bearer"));
    js_kv_string(w, "description",
                 STR("A key made by `holdfast key create`, a JWT of a configured issuer, or the "
                     "access token of a user who signed in."));
    js_object_end(w);
    js_key(w, STR("apiKey"));
    js_object(w);
    js_kv_string(w, "type", STR("apiKey"));
    js_kv_string(w, "in", STR("header"));
    js_kv_string(w, "name", STR("X-API-Key"));
    js_kv_string(
        w, "description",
        STR("The same credential in another header, for clients that cannot send Authorization."));
    js_object_end(w);
    js_object_end(w);
}

static void write_tag(struct js_writer *w, const struct api_tag *tag)
{
    js_object(w);
    js_kv_string(w, "name", str_of(tag->name));
    js_kv_string(w, "description", str_of(tag->help));
    js_object_end(w);
}

/* Tags come in the reverse order of the table, each followed by those that other folders add
 * there. */
static void write_tags(struct js_writer *w)
{
    size_t n;
    const struct api_part *const *parts = api_parts(&n);

    js_key(w, STR("tags"));
    js_array(w);
    for (size_t i = countof(tags); i-- > 0;) {
        if (!tags[i].help)
            continue;
        write_tag(w, &tags[i]);
        for (size_t k = 0; k < n; k++)
            if (parts[k]->tag && strcmp(parts[k]->after_tag, tags[i].name) == 0)
                write_tag(w, parts[k]->tag);
    }
    js_array_end(w);
}

/* Operations. */

static void write_params(struct js_writer *w, const struct api_param *p)
{
    if (!p || !p->name)
        return;
    js_key(w, STR("parameters"));
    js_array(w);
    for (; p->name; p++) {
        js_object(w);
        js_kv_string(w, "name", str_of(p->name));
        js_kv_string(w, "in", str_of(p->in));
        js_kv_bool(w, "required", p->is_required);
        js_kv_string(w, "description", str_of(p->help));
        js_key(w, STR("schema"));
        openapi_param_schema(w, p);
        js_kv_raw(w, "example", str_of(p->example));
        if (p->has_slashes)
            js_kv_bool(w, "x-slashes", true);
        js_object_end(w);
    }
    js_array_end(w);
}

static void write_one_or_many(struct js_writer *w, const struct api_body *body)
{
    if (!body->or_array) {
        openapi_ref(w, "schemas", body->name);
        return;
    }
    js_object(w);
    js_key(w, STR("oneOf"));
    js_array(w);
    openapi_ref(w, "schemas", body->name);
    js_object(w);
    js_kv_string(w, "type", STR("array"));
    js_kv_int(w, "minItems", 1);
    js_kv_int(w, "maxItems", AUDIT_REPORTED_MAX);
    js_key(w, STR("items"));
    openapi_ref(w, "schemas", body->name);
    js_object_end(w);
    js_array_end(w);
    js_object_end(w);
}

static void write_media(struct js_writer *w, const char *type, const struct api_body *body)
{
    if (!type)
        return;
    js_key(w, str_of(type));
    js_object(w);
    js_key(w, STR("schema"));
    write_one_or_many(w, body);
    js_key(w, STR("example"));
    openapi_body_example(w, body);
    js_object_end(w);
}

static void write_body(struct js_writer *w, const struct api_body *body)
{
    if (!body)
        return;
    js_key(w, STR("requestBody"));
    js_object(w);
    js_kv_bool(w, "required", !body->is_optional);
    js_key(w, STR("content"));
    js_object(w);
    write_media(w, "application/json", body);
    write_media(w, body->type, body);
    js_object_end(w);
    js_object_end(w);
}

static void write_taken(struct js_writer *w, const char *type)
{
    if (!type)
        return;
    js_key(w, STR("requestBody"));
    js_object(w);
    js_kv_bool(w, "required", true);
    js_key(w, STR("content"));
    js_object(w);
    js_key(w, str_of(type));
    js_object(w);
    js_key(w, STR("schema"));
    js_object(w);
    js_kv_string(w, "type", STR("string"));
    js_object_end(w);
    js_object_end(w);
    js_object_end(w);
    js_object_end(w);
}

static void write_roles(struct js_writer *w, const struct api_operation *op)
{
    js_key(w, STR("x-roles"));
    js_array(w);
    for (enum role role = ROLE_ADMIN; role <= ROLE_SERVICE; role++)
        if (api_is_for(op, role))
            js_string(w, str_of(role_name(role)));
    js_array_end(w);
}

/* Keys need the scope; the local admin and signed-in users do not. */
static void write_scopes(struct js_writer *w)
{
    js_kv_string(w, "description",
                 STR("For users who signed in, the local admin, and keys made with `--review` that "
                     "are not read-only."));
    js_kv_string(w, "x-scope", STR("review"));
}

/* The document has {path} for the router's "{+path:.md}". */
static void write_path(struct js_writer *w, const char *pattern)
{
    char text[256];
    size_t n = 0;
    bool is_rule = false;

    for (const char *p = pattern; *p && n < sizeof(text); p++) {
        is_rule = *p != '}' && (is_rule || *p == ':');
        if (!is_rule && !(*p == '+' && p[-1] == '{'))
            text[n++] = *p;
    }
    js_key(w, str_n(text, n));
}

static void write_operation(struct js_writer *w, const struct api_operation *op)
{
    char method[8] = "";

    for (size_t i = 0; op->method[i] && i + 1 < sizeof(method); i++)
        method[i] = (char)tolower((unsigned char)op->method[i]);
    js_key(w, str_of(method));
    js_object(w);
    js_kv_string(w, "operationId", str_of(op->id));
    js_kv_string(w, "summary", str_of(op->summary));
    js_key(w, STR("tags"));
    js_array(w);
    js_string(w, str_of(tag_of(op)));
    js_array_end(w);
    if (openapi_is_health(op) || op->access == API_OPEN)
        js_kv_raw(w, "security", STR("[]"));
    else
        write_roles(w, op);
    if (op->is_review)
        write_scopes(w);
    write_params(w, op->params);
    write_body(w, op->body);
    write_taken(w, op->takes);
    js_key(w, STR("responses"));
    openapi_answers(w, op);
    js_object_end(w);
}

/* All rows with the same pattern become one path, wherever they are in the table. */
static void write_paths_of(struct js_writer *w, const struct api_operation *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        while (strcmp(ops[first]->pattern, ops[i]->pattern) != 0)
            first++;
        if (first != i)
            continue;
        write_path(w, ops[i]->pattern);
        js_object(w);
        for (size_t k = i; k < n; k++)
            if (strcmp(ops[k]->pattern, ops[i]->pattern) == 0)
                write_operation(w, ops[k]);
        js_object_end(w);
    }
}

static void write_components(struct js_writer *w)
{
    js_key(w, STR("components"));
    js_object(w);
    write_security_schemes(w);
    js_key(w, STR("schemas"));
    js_object(w);
    openapi_schemas(w);
    js_object_end(w);
    js_key(w, STR("headers"));
    js_object(w);
    openapi_headers(w);
    js_object_end(w);
    js_key(w, STR("responses"));
    js_object(w);
    openapi_common_answers(w);
    js_object_end(w);
    js_object_end(w);
}

static void write_document(struct js_writer *w)
{
    size_t n;
    const struct api_operation *const *operations = api_operations(&n);

    js_object(w);
    js_kv_string(w, "openapi", STR("3.1.1"));
    write_info(w);
    write_servers(w);
    write_security(w);
    write_tags(w);
    js_key(w, STR("paths"));
    js_object(w);
    write_paths_of(w, operations, n);
    for (size_t i = 0; i < openapi_n_health; i++)
        write_paths_of(w, &(const struct api_operation *){&openapi_health[i]}, 1);
    js_object_end(w);
    write_components(w);
    js_object_end(w);
}

void openapi_print(struct buf *out)
{
    struct js_writer w;

    js_begin(&w, out);
    w.pretty = true;
    write_document(&w);
    buf_addc(out, '\n');
}

/* Written at the first request and kept until the process ends, because the tables never change. */
static const struct buf *openapi_document(struct str *ret_tag)
{
    static struct buf document;
    static char tag[20];
    uint8_t sha[SHA256_BYTES];
    struct js_writer w;

    if (!document.n) {
        buf_init(&document, DOCUMENT_MAX);
        js_begin(&w, &document);
        write_document(&w);
        sha256(buf_str(&document), sha);
        tag[0] = '"';
        hex_encode(sha, 8, tag + 1);
        memcpy(tag + 17, "\"", 2);
    }
    *ret_tag = str_of(tag);
    return &document;
}

void api_get_openapi(struct api_call *c)
{
    struct str tag, known = http_header_get(c->http->head, STR("if-none-match"));
    const struct buf *document = openapi_document(&tag);

    api_reply(c, known.p && tags_have(known, tag) ? 304 : 200,
              arena_printf(c->mem, "ETag: %.*s\r\n", STR_ARG(tag)), buf_str(document));
}
