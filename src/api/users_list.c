/* SPDX-License-Identifier: Apache-2.0 */
/* GET /users: the users without an issuer of tokens, page by page.  The last row of a page is
 * "tenant/name" in the cursor; a tenant's name contains no slash. */
#include "api/job.h"
#include "api/page.h"

#include "identity/user_admin.h"

#define MAX_BYTES (16u * 1024 * 1024)

struct users_list {
    struct api_job j;
    struct read_job read;
    struct page_place place;
    struct str tenant; /* absent: all */
    struct str after;
    int64_t limit;
    struct str link;
};

static void write_page(struct users_list *l, const struct user_row *rows, size_t n)
{
    bool more = n > (size_t)l->limit || (n == (size_t)l->limit && n == STORE_PAGE_MAX);
    struct str last = STR_NONE;
    struct js_writer w;

    n = n < (size_t)l->limit ? n : (size_t)l->limit;
    js_begin(&w, &l->j.out);
    js_object(&w);
    js_key(&w, STR("users"));
    js_array(&w);
    for (size_t i = 0; i < n; i++) {
        js_object(&w);
        user_write(&w, &rows[i]);
        js_object_end(&w);
    }
    js_array_end(&w);
    if (more)
        last = arena_printf(l->j.mem, "%.*s/%.*s", STR_ARG(rows[n - 1].tenant),
                            STR_ARG(rows[n - 1].name));
    l->link = page_end(&l->place, &w, n, last, l->j.mem);
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct users_list *l = container_of(job, struct users_list, read);
    unsigned limit = (unsigned)l->limit + (l->limit < STORE_PAGE_MAX);
    struct str after_name = l->after, after_tenant = STR_NONE;
    struct user_row *rows = NULL;
    size_t n = 0;

    if (l->after.p)
        after_tenant = str_split(&after_name, '/');
    if (!store_users_page(store, l->tenant, after_tenant, after_name, limit, l->j.mem, &rows, &n,
                          &job->err))
        return false;
    write_page(l, rows, n);
    return true;
}

static void on_listed(struct read_job *job)
{
    struct users_list *l = container_of(job, struct users_list, read);

    if (job->ok)
        api_job_end(&l->j, 200, l->link);
    else
        api_job_refuse(&l->j, &job->err);
}

void api_list_users(struct api_call *c)
{
    struct users_list *l = api_job_new(sizeof(*l), MAX_BYTES, c);
    struct str asked, about;

    if (!api_query(c, "tenant", &asked) || !api_tenant(c, asked, &l->tenant)) {
        api_job_drop(&l->j);
        return;
    }
    about = arena_printf(c->mem, "users %.*s", STR_ARG(l->tenant));
    if (!api_page(c, about, &l->limit, &l->after)) {
        api_job_drop(&l->j);
        return;
    }
    l->place = (struct page_place){.who = &c->who, .about = about};
    l->place.url = arena_printf(c->mem, "/api/v1/users?limit=%lld%s%.*s", (long long)l->limit,
                                asked.p ? "&tenant=" : "", STR_ARG(api_in_path(c, asked)));
    l->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(c->sv->lanes, &l->read))
        api_job_busy(&l->j);
}
