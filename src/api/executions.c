/* SPDX-License-Identifier: Apache-2.0 */
/* /sessions/{id}/tools: records executions that a client reports, and lists all executions of the
 * session, reported ones and our own. */
#include "api/bodies.h"
#include "api/cursor.h"
#include "api/page.h"

#include "json/write.h"

#define PAGE_DEFAULT 50

static void on_recorded(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);

    if (reg->result == REGISTRY_OK)
        api_reply_prepared(c, STR_NONE);
    else
        api_refuse_result(c);
}

static void record(struct api_call *c, struct str session,
                   const struct reported_execution *reported, size_t n, bool is_array)
{
    api_prepare(c, 200, STR_NONE,
                is_array
                    ? arena_printf(c->mem, "{\"message\":\"executions recorded\",\"count\":%zu}", n)
                    : STR("{\"message\":\"execution recorded\"}"));
    api_session(c, on_recorded);
    c->reg.name = session;
    if (c->who.credential.p)
        c->reg.own.credential =
            identity_presented(c->http->head, STR_NONE, &c->reg.own.credential_marker);
    registry_record(c->sv->registry, &c->reg, reported, n);
}

/* One bad element refuses the whole array. */
static bool read_array(struct api_call *c, struct reported_execution **ret, size_t *ret_n)
{
    const struct js_node *root = js_root(&c->doc);
    size_t n = 0;

    for (const struct js_node *e = js_first(&c->doc, root); e; e = js_next(&c->doc, root, e))
        n++;
    if (n < 1 || n > AUDIT_REPORTED_MAX) {
        api_refuse(c, ERR_BAD_INPUT, "an array of executions has 1 to %d of them",
                   AUDIT_REPORTED_MAX);
        return false;
    }
    struct reported_execution *reported = arena_zalloc(c->mem, n * sizeof(*reported));
    n = 0;
    for (const struct js_node *e = js_first(&c->doc, root); e; e = js_next(&c->doc, root, e)) {
        struct record_body body = {0};
        if (!api_bind(c, e, &body_record, &body, NULL, NULL))
            return false;
        reported[n++] = body.execution;
    }
    *ret = reported;
    *ret_n = n;
    return true;
}

void api_record(struct api_call *c)
{
    struct reported_execution *reported;
    size_t n;

    if (js_type_is(js_root(&c->doc), JS_ARRAY)) {
        if (read_array(c, &reported, &n))
            record(c, c->match.params[0], reported, n, true);
        return;
    }
    struct record_body *body = arena_new_of(c->mem, struct record_body);
    if (api_bind(c, js_root(&c->doc), &body_record, body, NULL, NULL))
        record(c, c->match.params[0], &body->execution, 1, false);
}

void api_record_alias(struct api_call *c)
{
    struct record_body *body = arena_new_of(c->mem, struct record_body);

    if (api_bind(c, js_root(&c->doc), &body_record_alias, body, NULL, NULL))
        record(c, body->session_id, &body->execution, 1, false);
}

/* The page. */

struct paging {
    int64_t limit, before;
    bool with_bodies;
    struct str about;
};

static void on_page(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    const struct paging *p = c->args;
    struct page_place place = {.who = &c->who, .about = p->about};
    char last[EXECUTION_UUID_TEXT];
    struct js_writer w;
    struct buf out;
    bool more;

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    size_t n = page_cut(reg, p->limit, &more);
    if (more) {
        execution_uuid(reg->executions[n - 1].exec, last);
        place.url = arena_printf(c->mem, "/api/v1/sessions/%.*s/tools?limit=%lld&bodies=%s",
                                 STR_ARG(api_in_path(c, reg->row->handle)), (long long)p->limit,
                                 p->with_bodies ? "true" : "false");
    }
    buf_init(&out, 64u * 1024 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("executions"));
    js_array(&w);
    for (size_t i = 0; i < n; i++)
        execution_row_to_json(&reg->executions[i], &w);
    js_array_end(&w);
    struct str link = page_end(&place, &w, n, more ? str_of(last) : STR_NONE, c->mem);
    struct str body = arena_dup(c->mem, buf_str(&out));
    buf_release(&out);
    api_reply(c, 200, link, body);
}

static bool read_paging(struct api_call *c, struct paging *p)
{
    struct str cursor, bodies, row;

    if (!api_query(c, "cursor", &cursor) || !api_query(c, "bodies", &bodies) ||
        !api_query_number(c, "limit", 1, STORE_PAGE_MAX, PAGE_DEFAULT, &p->limit))
        return false;
    p->with_bodies = !bodies.p || str_eq(bodies, STR("true"));
    if (bodies.p && !p->with_bodies && !str_eq(bodies, STR("false"))) {
        api_refuse(c, ERR_BAD_INPUT, "?bodies= is true or false");
        return false;
    }
    p->about = arena_printf(c->mem, "tools %.*s", STR_ARG(c->match.params[0]));
    if (cursor.p && (!cursor_read(cursor, &c->who, p->about, c->mem, &row) ||
                     !execution_uuid_parse(row, &p->before)))
        return page_refuse_cursor(c);
    return true;
}

void api_list_executions(struct api_call *c)
{
    struct paging *p = arena_new_of(c->mem, struct paging);

    c->args = p;
    if (!read_paging(c, p))
        return;
    api_session(c, on_page);
    c->reg.reach = REACH_READ;
    registry_executions(c->sv->registry, &c->reg, p->before, p->with_bodies,
                        (unsigned)p->limit + (p->limit < STORE_PAGE_MAX));
}
