/* SPDX-License-Identifier: Apache-2.0 */
/* The erasures of a tenant, or of all tenants, page by page; and one of them. */
#include "erasure/api/impl.h"

#include "api/bodies.h"
#include "api/page.h"
#include "base/random.h"
#include "erasure/store/verbs.h"
#include "session/session_json.h"

#define MAX_BYTES (16u * 1024 * 1024)

struct erasures_list {
    struct api_job j;
    struct read_job read;
    struct page_place place;
    struct str tenant, after, id;
    int64_t limit;
    struct str link;
};

/* The names that remain to be removed are nobody's to read. */
void erasure_write(struct js_writer *w, const struct erasure_row *row)
{
    js_object(w);
    js_kv_string(w, "id", row->id);
    js_kv_string(w, "tenant", row->tenant);
    js_kv_string(w, "user_id", row->user_id);
    js_kv_string(w, "state", row->done_ms ? STR("done") : STR("running"));
    js_kv_string(w, "made_by", row->made_by);
    js_kv_string(w, "reason", row->reason);
    js_kv_int(w, "bodies", row->bodies);
    js_kv_int(w, "body_bytes", row->body_bytes);
    js_kv_int(w, "sessions", row->sessions);
    js_kv_int(w, "held_sessions", row->held);
    json_kv_time(w, "created_at", row->created_ms);
    if (row->done_ms)
        json_kv_time(w, "done_at", row->done_ms);
    js_object_end(w);
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct erasures_list *l = container_of(job, struct erasures_list, read);
    unsigned limit = (unsigned)l->limit + (l->limit < STORE_PAGE_MAX);
    struct erasure_row *rows = NULL;
    struct js_writer w;
    size_t n = 0;

    if (!store_erasures_page(store, l->tenant, false, l->after, limit, l->j.mem, &rows, &n,
                             &job->err))
        return false;
    bool more = n > (size_t)l->limit || (n == (size_t)l->limit && n == STORE_PAGE_MAX);
    n = n < (size_t)l->limit ? n : (size_t)l->limit;
    js_begin(&w, &l->j.out);
    js_object(&w);
    js_key(&w, STR("erasures"));
    js_array(&w);
    for (size_t i = 0; i < n; i++)
        erasure_write(&w, &rows[i]);
    js_array_end(&w);
    l->link = page_end(&l->place, &w, n, more ? rows[n - 1].id : STR_NONE, l->j.mem);
    return true;
}

static void on_listed(struct read_job *job)
{
    struct erasures_list *l = container_of(job, struct erasures_list, read);

    if (job->ok)
        api_job_end(&l->j, 200, l->link);
    else
        api_job_refuse(&l->j, &job->err);
}

static bool read_query(struct api_call *c, struct erasures_list *l)
{
    struct str asked, about = page_about(c, "erasures");

    if (!api_query(c, "tenant", &asked) || !api_tenant(c, asked, &l->tenant) ||
        !api_page(c, about, &l->limit, &l->after))
        return false;
    l->place = (struct page_place){
        .who = &c->who, .about = about, .url = page_url(c, "/api/v1/audit/erasures")};
    return true;
}

static void run(struct erasures_list *l,
                bool (*run_read)(struct read_job *job, struct store *store))
{
    l->read = (struct read_job){.run = run_read, .done = on_listed};
    if (!lane_query(l->j.call->sv->lanes, &l->read))
        api_job_busy(&l->j);
}

void api_list_erasures(struct api_call *c)
{
    struct erasures_list *l = api_job_new(sizeof(*l), MAX_BYTES, c);

    if (read_query(c, l))
        run(l, run_list);
    else
        api_job_drop(&l->j);
}

/* One.  That of another tenant looks like an unknown one. */

static bool find(struct erasures_list *l, struct store *store, struct erasure_row **ret,
                 struct error *err)
{
    struct erasure_row *rows = NULL;
    struct str after = STR_NONE;
    size_t n = 0;

    *ret = NULL;
    do {
        if (!store_erasures_page(store, l->tenant, false, after, STORE_PAGE_MAX, l->j.mem, &rows,
                                 &n, err))
            return false;
        for (size_t i = 0; i < n && !*ret; i++)
            *ret = str_eq(rows[i].id, l->id) ? &rows[i] : NULL;
        after = n ? rows[n - 1].id : STR_NONE;
    } while (n == STORE_PAGE_MAX && !*ret);
    return true;
}

static bool run_get(struct read_job *job, struct store *store)
{
    struct erasures_list *l = container_of(job, struct erasures_list, read);
    struct erasure_row *row = NULL;
    struct js_writer w;

    if (!find(l, store, &row, &job->err))
        return false;
    if (!row)
        return error_set(&job->err, ERR_NOT_FOUND,
                         "there is no such erasure; GET /api/v1/audit/erasures lists them");
    js_begin(&w, &l->j.out);
    erasure_write(&w, row);
    return true;
}

void api_get_erasure(struct api_call *c)
{
    struct erasures_list *l = api_job_new(sizeof(*l), MAX_BYTES, c);

    if (!api_tenant(c, STR_NONE, &l->tenant)) {
        api_job_drop(&l->j);
        return;
    }
    l->id = uuid_lower(c->match.params[0], l->j.mem);
    run(l, run_get);
}
