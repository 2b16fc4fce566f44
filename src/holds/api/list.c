/* SPDX-License-Identifier: Apache-2.0 */
/* The holds of a tenant, or of all tenants, page by page. */
#include "holds/api/impl.h"

#include "api/page.h"
#include "holds/store/verbs.h"
#include "session/session_json.h"

#define MAX_BYTES (16u * 1024 * 1024)

struct holds_list {
    struct api_job j;
    struct read_job read;
    struct page_place place;
    struct str tenant, after;
    bool all;
    int64_t limit;
    struct str link;
};

/* Absent if the target was deleted, or has no name. */
static bool name_of(struct store *store, const struct hold_row *row, struct arena *mem,
                    struct str *ret, struct error *err)
{
    const struct principal wide = {.tenant = row->tenant, .owner = STR(""), .tenant_wide = true};
    struct session_row *session = NULL;
    struct user_row *user = NULL;

    *ret = STR_NONE;
    if (row->kind == HOLD_USER) {
        if (!store_user_get(store, row->target, mem, &user, err))
            return false;
        *ret = user ? user->name : STR_NONE;
        return true;
    }
    if (!store_session_by_id(store, &wide, row->target, mem, &session, err))
        return false;
    *ret = session ? session->handle : STR_NONE;
    return true;
}

bool hold_write(struct js_writer *w, struct store *store, const struct hold_row *row,
                struct arena *mem, struct error *err)
{
    struct str name;

    if (!name_of(store, row, mem, &name, err))
        return false;
    js_object(w);
    js_kv_string(w, "id", row->id);
    js_kv_string(w, "tenant", row->tenant);
    js_kv_string(w, "kind", row->kind == HOLD_USER ? STR("user") : STR("session"));
    js_kv_string(w, "target", row->target);
    js_kv_string(w, "name", name);
    js_kv_string(w, "reason", row->reason);
    js_kv_string(w, "made_by", row->made_by);
    json_kv_time(w, "created_at", row->created_ms);
    if (row->released_ms) {
        json_kv_time(w, "released_at", row->released_ms);
        js_kv_string(w, "released_by", row->released_by);
    }
    js_object_end(w);
    return true;
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct holds_list *l = container_of(job, struct holds_list, read);
    unsigned limit = (unsigned)l->limit + (l->limit < STORE_PAGE_MAX);
    struct hold_row *rows = NULL;
    struct js_writer w;
    size_t n = 0;

    if (!store_holds_page(store, l->tenant, !l->all, l->after, limit, l->j.mem, &rows, &n,
                          &job->err))
        return false;
    bool more = n > (size_t)l->limit || (n == (size_t)l->limit && n == STORE_PAGE_MAX);
    n = n < (size_t)l->limit ? n : (size_t)l->limit;
    js_begin(&w, &l->j.out);
    js_object(&w);
    js_key(&w, STR("holds"));
    js_array(&w);
    for (size_t i = 0; i < n; i++)
        if (!hold_write(&w, store, &rows[i], l->j.mem, &job->err))
            return false;
    js_array_end(&w);
    l->link = page_end(&l->place, &w, n, more ? rows[n - 1].id : STR_NONE, l->j.mem);
    return true;
}

static void on_listed(struct read_job *job)
{
    struct holds_list *l = container_of(job, struct holds_list, read);

    if (job->ok)
        api_job_end(&l->j, 200, l->link);
    else
        api_job_refuse(&l->j, &job->err);
}

static bool read_query(struct api_call *c, struct holds_list *l)
{
    struct str asked, all, about = page_about(c, "holds");

    if (!api_query(c, "tenant", &asked) || !api_tenant(c, asked, &l->tenant) ||
        !api_query(c, "all", &all) || !api_page(c, about, &l->limit, &l->after))
        return false;
    l->all = str_eq(all, STR("1"));
    if (all.p && !l->all && !str_eq(all, STR("0"))) {
        api_refuse(c, ERR_BAD_INPUT, "?all= is 0 or 1");
        return false;
    }
    l->place = (struct page_place){
        .who = &c->who, .about = about, .url = page_url(c, "/api/v1/audit/holds")};
    return true;
}

void api_list_holds(struct api_call *c)
{
    struct holds_list *l = api_job_new(sizeof(*l), MAX_BYTES, c);

    if (!read_query(c, l)) {
        api_job_drop(&l->j);
        return;
    }
    l->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(c->sv->lanes, &l->read))
        api_job_busy(&l->j);
}
