/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a REST call before and after its operation.  The checks here are the same for all
 * operations: query parameters, Idempotency-Key, body.  The front has admitted the caller. */
#include "api/api.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/utf8.h"
#include "crypto/hash.h"

#include <stdio.h>
#include <stdlib.h>

#define PREFIX "/api/v1"
#define ONCE_MS (INT64_C(24) * 3600 * 1000)
#define REQUEST_ID_MAX 128

/* Keeps the client's X-Request-Id if it is fit for a header and a log line; else makes an id. */
static struct str request_id(struct http_request *r)
{
    static uint64_t begin, count;
    struct str own = http_header_get(r->head, STR("x-request-id"));
    char text[32];

    if (own.n && own.n <= REQUEST_ID_MAX) {
        size_t i = 0;
        while (i < own.n && own.p[i] > ' ' && own.p[i] < 0x7f && own.p[i] != '"' &&
               own.p[i] != '\\')
            i++;
        if (i == own.n)
            return own;
    }
    if (!begin)
        begin = random_u64();
    uint64_t id = begin + count++ * UINT64_C(0x9e3779b97f4a7c15);
    int n = snprintf(text, sizeof(text), "req_%016llx", (unsigned long long)id);
    return arena_dup(r->mem, str_n(text, (size_t)n));
}

/* Answers. */

static struct str lines_of(struct arena *mem, struct str request_id, struct str headers)
{
    static const struct str name = {"X-Request-Id: ", 14},
                            fixed = {"\r\nCache-Control: no-store\r\n", 27};
    size_t n = name.n + request_id.n + fixed.n + headers.n;
    char *text = arena_alloc(mem, n), *at = text;
    const struct str parts[] = {name, request_id, fixed, headers};

    for (size_t i = 0; i < countof(parts); i++) {
        if (parts[i].n)
            memcpy(at, parts[i].p, parts[i].n);
        at += parts[i].n;
    }
    return str_n(text, n);
}

static void let_go(struct api_call *c)
{
    if (c->is_busy)
        registry_drop_key(c->sv->registry, c->busy_key);
    c->is_busy = false;
    c->sv->front->under_way--;
    caller_release(&c->caller);
}

static void answer(struct api_call *c, int status, const char *type, struct str headers,
                   struct str body)
{
    struct http_request *r = c->http;
    struct str lines = lines_of(c->mem, c->request_id, headers);

    caller_spend(&c->caller, body.n);
    let_go(c);
    http_reply(r, status, type, lines, body);
}

void api_reply(struct api_call *c, int status, struct str headers, struct str body)
{
    answer(c, status, "application/json", headers, body);
}

void api_stream_begin(struct api_call *c, const char *type, struct str headers, size_t max_queue)
{
    http_stream_begin(c->http, 200, type, lines_of(c->mem, c->request_id, headers), max_queue);
}

bool api_stream_write(struct api_call *c, struct str bytes)
{
    caller_spend(&c->caller, bytes.n);
    return http_stream_write(c->http, bytes);
}

void api_stream_end(struct api_call *c)
{
    struct http_request *r = c->http;

    let_go(c);
    r->on_abort = NULL;
    r->on_drained = NULL;
    http_stream_end(r);
}

void api_stream_abort(struct api_call *c)
{
    struct http_request *r = c->http;

    let_go(c);
    r->on_abort = NULL;
    r->on_drained = NULL;
    http_stream_abort(r);
}

struct http_request *api_stream(struct api_call *c, const char *type, struct str headers,
                                size_t max_queue)
{
    struct http_request *r = c->http;
    struct str lines = arena_printf(c->mem, "X-Request-Id: %.*s\r\n%.*s", STR_ARG(c->request_id),
                                    STR_ARG(headers));

    let_go(c);
    http_stream_begin(r, 200, type, lines, max_queue);
    return r;
}

struct http_request *api_upgrade(struct api_call *c, struct str headers, size_t max_queue)
{
    struct http_request *r = c->http;
    struct str lines = arena_printf(c->mem, "X-Request-Id: %.*s\r\n%.*s", STR_ARG(c->request_id),
                                    STR_ARG(headers));

    if (!http_upgrade(r, lines, max_queue))
        return NULL;
    let_go(c);
    return r;
}

void api_problem(struct api_call *c, enum err_code code, const char *error, const char *detail,
                 struct str headers)
{
    answer(c, error_info(code)->http_status, "application/problem+json", headers,
           problem_body(c->mem, code, error, detail, c->request_id));
}

void api_prepare(struct api_call *c, int status, struct str headers, struct str body)
{
    c->once.status = status;
    c->once.headers = headers.p ? headers : STR("");
    c->once.body = body;
    if (c->is_once)
        c->reg.once = &c->once;
}

void api_reply_prepared(struct api_call *c, struct str more_headers)
{
    struct str headers = c->once.headers;
    if (more_headers.n)
        headers = arena_printf(c->mem, "%.*s%.*s", STR_ARG(headers), STR_ARG(more_headers));
    api_reply(c, c->once.status, headers, c->once.body);
}

/* Idempotency-Key. */

static void begin(struct api_call *c);

static void digest_request(const struct api_call *c, uint8_t ret[SHA256_BYTES])
{
    const struct http_request *r = c->http;
    const struct str parts[] = {r->head->method, STR("\0"), r->head->target, STR("\0"), r->body};
    sha256_parts(parts, countof(parts), ret);
}

static void on_stored_answer(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    const struct idempotency_row *stored = reg->stored_answer;

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
    } else if (!stored) {
        begin(c);
    } else if (memcmp(stored->request_sha, c->once.request_sha, sizeof(stored->request_sha)) != 0) {
        api_refuse(c, ERR_IDEMPOTENCY_MISMATCH,
                   "this Idempotency-Key came with another request before; use a new one");
    } else {
        api_reply(
            c, stored->status,
            arena_printf(c->mem, "%.*sIdempotency-Replayed: true\r\n", STR_ARG(stored->headers)),
            stored->body);
    }
}

static void ask_stored_answer(struct api_call *c)
{
    c->reg =
        (struct registry_call){.who = &c->who, .mem = c->mem, .done = on_stored_answer, .user = c};
    registry_stored_answer(c->sv->registry, &c->reg, c->once.key);
}

static bool take_key(struct api_call *c, struct str key)
{
    c->busy_key = arena_printf(c->mem, "%.*s%c%.*s%c%.*s", STR_ARG(c->who.tenant), 0,
                               STR_ARG(c->who.owner), 0, STR_ARG(key));
    c->is_busy = registry_take_key(c->sv->registry, c->busy_key);
    return c->is_busy;
}

static void begin_once(struct api_call *c, struct str key)
{
    int64_t now = clock_life_ms();

    if (!key.n || key.n > 255 || http_header_count(c->http->head, STR("idempotency-key")) > 1) {
        api_refuse(c, ERR_BAD_INPUT, "send one Idempotency-Key of 1 to 255 characters");
        return;
    }
    if (!take_key(c, key)) {
        c->reg.result = REGISTRY_ONCE;
        api_refuse_result(c);
        return;
    }
    c->is_once = true;
    c->once = (struct idempotency_row){
        .tenant = c->who.tenant,
        .owner = c->who.owner,
        .key = key,
        .created_ms = now,
        .expires_ms = now + ONCE_MS,
    };
    digest_request(c, c->once.request_sha);
    ask_stored_answer(c);
}

/* The body. */

static bool type_is(struct str type, const char *want)
{
    struct str rest = type, media = str_trim(str_split(&rest, ';'));

    if (!str_ieq(media, str_of(want)))
        return false;
    rest = rest.p ? str_trim(rest) : STR("");
    return rest.n == 0 || str_ieq(rest, STR("charset=utf-8")) ||
           str_ieq(rest, STR("charset=\"utf-8\""));
}

static bool read_body(struct api_call *c)
{
    const struct api_body *want = c->op->body;
    struct str type = http_header_get(c->http->head, STR("content-type"));
    struct js_fault fault;
    struct error err;

    if (!want || (!c->http->body.n && want->is_optional))
        return true;
    if (http_header_count(c->http->head, STR("content-type")) != 1 ||
        !(type_is(type, "application/json") || (want->type && type_is(type, want->type)))) {
        api_refuse(c, ERR_MEDIA_TYPE, "send Content-Type: application/json");
        return false;
    }
    if (js_parse(c->http->body, &js_limits_request, c->mem, &c->doc, &fault))
        return true;
    js_bind_parse_fault(STR_NONE, &fault, ERR_PARSE, &err);
    api_refuse(c, fault.duplicate || fault.limit ? ERR_BAD_INPUT : ERR_PARSE, "%s", err.text);
    return false;
}

/* A body that the operation reads itself. */
static bool takes_body(struct api_call *c)
{
    struct str type = http_header_get(c->http->head, STR("content-type"));

    if (!c->op->takes ||
        (http_header_count(c->http->head, STR("content-type")) == 1 && type_is(type, c->op->takes)))
        return true;
    api_refuse(c, ERR_MEDIA_TYPE, "send Content-Type: %s", c->op->takes);
    return false;
}

static void begin(struct api_call *c)
{
    if (takes_body(c) && read_body(c))
        c->op->run(c);
}

/* Access. */

static bool takes_query(const struct api_operation *op, struct str name)
{
    for (const struct api_param *p = op->params; p && p->name; p++)
        if (strcmp(p->in, "query") == 0 && str_eq(name, str_of(p->name)))
            return true;
    return false;
}

/* Refuses unknown query parameters: to ignore one would silently change the answer. */
static bool has_known_query(struct api_call *c)
{
    struct str query = c->http->head->query;

    while (query.p) {
        struct str pair = str_split(&query, '&'), name = str_split(&pair, '=');
        if (!name.n || takes_query(c->op, name))
            continue;
        struct str known = STR("");
        for (const struct api_param *p = c->op->params; p && p->name; p++)
            if (strcmp(p->in, "query") == 0)
                known =
                    arena_printf(c->mem, "%.*s%s%s", STR_ARG(known), known.n ? ", " : "", p->name);
        api_refuse(c, ERR_BAD_INPUT, "there is no query parameter \"%.*s\" here; %s%.*s",
                   STR_ARG(str_cut(name, 64)), known.n ? "take one of: " : "this path takes none",
                   STR_ARG(known));
        return false;
    }
    return true;
}

static struct api_call *new_call(struct api_services *sv, struct http_request *r,
                                 struct caller *caller)
{
    struct api_call *c = arena_new_of(r->mem, struct api_call);

    c->sv = sv;
    c->http = r;
    c->op = caller->route->data;
    c->match = r->route->match;
    c->mem = r->mem;
    c->request_id = request_id(r);
    caller_take(&c->caller, caller);
    c->config = c->caller.config;
    c->who = c->caller.who;
    c->who.tenant_wide = caller_may(&c->caller, ACCESS_WATCH);
    sv->front->under_way++;
    return c;
}

static void serve(void *arg, struct http_request *r, struct caller *caller)
{
    struct api_call *c = new_call(arg, r, caller);
    struct str key = http_header_get(r->head, STR("idempotency-key"));

    if (c->op->access == API_OPEN)
        begin(c);
    else if (unlikely(r->head->query.p != NULL) && !has_known_query(c))
        return;
    else if (c->op->is_once && key.p)
        begin_once(c, key);
    else
        begin(c);
}

/* The front refuses the caller; the refusal is a problem. */
static void refuse_caller(void *arg, struct http_request *r, struct caller *caller,
                          const struct refusal *why)
{
    struct api_call *c = new_call(arg, r, caller);

    if (why->code == ERR_UNAUTHENTICATED)
        api_problem(c, ERR_TENANT_NOT_FOUND, "tenant not found", why->text, why->headers);
    else if (why->code == ERR_DENIED)
        api_problem(c, ERR_DENIED, "access denied", why->text, STR_NONE);
    else
        api_problem(c, why->code, why->text, why->text, why->headers);
}

static void refuse_path(struct http_request *r, struct str allow)
{
    int status = r->route->status;
    struct str id = request_id(r);
    enum err_code code = status == 405   ? ERR_BAD_METHOD
                         : status == 400 ? ERR_BAD_INPUT
                                         : ERR_NOT_FOUND;
    const char *text = status == 405 ? "this path does not take that method; see Allow"
                       : status == 400
                           ? "this path cannot be read; send it without encoded slashes and dots"
                           : "there is no such path; the operations are in /api/v1/openapi.json";

    http_reply(r, error_info(code)->http_status, "application/problem+json",
               lines_of(r->mem, id, allow), problem_body(r->mem, code, text, text, id));
}

/* The problem document for a request that the HTTP server or the gate refuses. */
static struct str format_refusal(struct http_request *r, int status, const char *reason)
{
    static const struct {
        int status;
        enum err_code code;
    } table[] = {
        {400, ERR_BAD_INPUT}, {403, ERR_DENIED},     {408, ERR_TOO_SLOW},
        {413, ERR_TOO_LARGE}, {415, ERR_MEDIA_TYPE}, {503, ERR_UNAVAILABLE},
    };
    struct str id = request_id(r);
    size_t i = 0;

    while (i < countof(table) && table[i].status != status)
        i++;
    if (i == countof(table)) /* 431, trailers too long; `reason` has no quotes to escape */
        return arena_printf(r->mem, "{\"error\":\"%s\"}", reason);
    r->refusal_type = "application/problem+json";
    r->extra = lines_of(r->mem, id, r->extra);
    return problem_body(r->mem, table[i].code, reason, reason, id);
}

/* Routes. */

static const char *sessions_are_off(const struct caller *c)
{
    return config_has_sessions(c->config, c->who.tenant)
               ? NULL
               : "sessions are switched off for this tenant";
}

static const struct need *need_of(const struct api_operation *op)
{
    static const struct need needs[][2] = {
        [API_READ] = {{ACCESS_ANY, QUOTA_REQUEST},
                      {ACCESS_ANY, QUOTA_REQUEST, .off = sessions_are_off}},
        [API_WRITE] = {{ACCESS_WRITE, QUOTA_REQUEST},
                       {ACCESS_WRITE, QUOTA_REQUEST, .off = sessions_are_off}},
        [API_OPEN] = {{ACCESS_OPEN}, {ACCESS_OPEN}},
        [API_AUDIT] = {{.access = ACCESS_WATCH, .quota = QUOTA_REQUEST, .is_free_for_local = true}},
        [API_ADMIN] = {{.access = ACCESS_ADMIN, .quota = QUOTA_REQUEST, .is_free_for_local = true}},
        [API_LOCAL] = {{.access = ACCESS_LOCAL_ADMIN,
                        .quota = QUOTA_REQUEST,
                        .is_free_for_local = true,
                        .denied = "only the user who runs Holdfast may do this, without a key; use "
                                  "the command on its machine (`holdfast help`)"}},
    };

    return &needs[op->access][op->is_sessions];
}

bool api_is_for(const struct api_operation *op, enum role role)
{
    const struct caller c = {.who = {.role = role}, .is_known = true};

    return caller_may(&c, need_of(op)->access);
}

void api_add_routes(struct api_services *sv)
{
    static const struct front_format words = {"/api/", format_refusal, refuse_path};
    size_t n;
    const struct api_operation *const *operations = api_operations(&n);

    for (size_t i = 0; i < n; i++) {
        const struct api_operation *op = operations[i];
        struct front_route route = {
            .method = op->method,
            .pattern = op->pattern,
            .fn = serve,
            .summary = op->summary,
            .flags = strcmp(op->method, "GET") == 0 ? ROUTE_HEAD : 0,
            .need = need_of(op),
            .refuse = refuse_caller,
            .data = op,
        };
        front_add(sv->front, &words, &route, 1, sv);
    }
}

/* Reading. */

bool api_bind(struct api_call *c, const struct js_node *object, const struct api_body *body,
              void *dest, void *user,
              void (*seen)(const struct js_binding *b, const struct js_field *field,
                           const struct js_node *key))
{
    struct js_binding b = {
        .doc = &c->doc,
        .mem = c->mem,
        .code = ERR_BAD_INPUT,
        .unknown_ok = body->unknown_ok,
        .null_is_absent = !body->takes_null,
        .seen = seen,
        .user = user,
    };
    struct error err;

    if (js_bind(&b, object, body->fields, dest, &err))
        return true;
    api_refuse(c, err.code, "%s", err.text);
    return false;
}

struct str api_in_path(struct api_call *c, struct str name)
{
    char *text = arena_alloc(c->mem, 3 * name.n);
    return str_n(text, http_percent_encode(name, text));
}

bool api_query(struct api_call *c, const char *name, struct str *ret)
{
    struct str query = c->http->head->query.p ? c->http->head->query : STR("");
    unsigned count = 0;
    struct str value = http_query_get(query, str_of(name), &count);

    *ret = STR_NONE;
    if (count == 0)
        return true;
    char *text = arena_alloc(c->mem, value.n + 1);
    int n = count == 1 ? http_percent_decode(value, text, false) : -1;
    if (n < 0 || !utf8_is_valid(str_n(text, (size_t)n))) {
        api_refuse(c, ERR_BAD_INPUT, "?%s= cannot be read; give it once, as percent-encoded UTF-8",
                   name);
        return false;
    }
    *ret = str_n(text, (size_t)n);
    return true;
}

bool api_query_number(struct api_call *c, const char *name, int64_t min, int64_t max,
                      int64_t if_absent, int64_t *ret)
{
    struct str text;
    uint64_t number;

    if (!api_query(c, name, &text))
        return false;
    if (!text.p) {
        *ret = if_absent;
        return true;
    }
    if (!str_to_u64(text, (uint64_t)max, &number) || (int64_t)number < min) {
        api_refuse(c, ERR_BAD_INPUT, "?%s= is a whole number from %lld to %lld", name,
                   (long long)min, (long long)max);
        return false;
    }
    *ret = (int64_t)number;
    return true;
}

bool api_query_time(struct api_call *c, const char *name, int64_t *ret_ms)
{
    struct str text;
    int64_t ms = 0;

    if (!api_query(c, name, &text))
        return false;
    *ret_ms = 0;
    if (text.p && clock_parse_duration(text, &ms))
        *ret_ms = clock_wall_ms() - ms;
    else if (text.p && !clock_parse(text, ret_ms)) {
        api_refuse(c, ERR_BAD_INPUT,
                   "?%s= takes a duration such as 30m, 24h or 7d, or a time such as "
                   "2026-11-17T00:00:00.000Z",
                   name);
        return false;
    }
    return true;
}

void api_session(struct api_call *c, void (*done)(struct registry_call *reg))
{
    const struct idempotency_row *once = c->reg.once;
    c->reg = (struct registry_call){
        .who = &c->who,
        .mem = c->mem,
        .name = c->match.n ? c->match.params[0] : STR_NONE,
        .idle_ms = api_idle_ms(c),
        .once = once,
        .done = done,
        .user = c,
    };
}

/* The tenant's settings. */

int64_t api_max_sessions(const struct api_call *c)
{
    return config_max_sessions(c->config, c->who.tenant);
}

int64_t api_default_ttl_ms(const struct api_call *c)
{
    return config_default_ttl_ms(c->config, c->who.tenant);
}

int64_t api_idle_ms(const struct api_call *c)
{
    return config_idle_ms(c->config, c->who.tenant);
}

bool api_has_sessions(const struct api_call *c)
{
    return config_has_sessions(c->config, c->who.tenant);
}
