/* SPDX-License-Identifier: Apache-2.0 */
/* The templates of a tenant, and the versions of one template, page by page. */
#include "templates/api/impl.h"

#include "api/page.h"
#include "templates/store/verbs.h"

#define MAX_BYTES (64u * 1024 * 1024) /* STORE_PAGE_MAX templates of TEMPLATE_SPEC_MAX, twice */

struct templates_list {
    struct api_job j;
    struct read_job read;
    struct page_place place;
    struct str name; /* lists its versions; absent: lists templates */
    struct str after;
    int64_t limit;
    struct str link;
};

/* The position of a page that ends with this row. */
static struct str last_of(struct templates_list *l, const struct template_row *row)
{
    return l->name.p ? arena_printf(l->j.mem, "%lld", (long long)row->version) : row->name;
}

static void write_page(struct templates_list *l, const struct template_row *rows, size_t n)
{
    bool more = n > (size_t)l->limit || (n == (size_t)l->limit && n == STORE_PAGE_MAX);
    struct js_writer w;

    n = n < (size_t)l->limit ? n : (size_t)l->limit;
    js_begin(&w, &l->j.out);
    js_object(&w);
    js_key(&w, l->name.p ? STR("versions") : STR("templates"));
    js_array(&w);
    for (size_t i = 0; i < n; i++)
        template_write(&w, &rows[i]);
    js_array_end(&w);
    l->link = page_end(&l->place, &w, n, more ? last_of(l, &rows[n - 1]) : STR_NONE, l->j.mem);
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct templates_list *l = container_of(job, struct templates_list, read);
    unsigned limit = (unsigned)l->limit + (l->limit < STORE_PAGE_MAX);
    struct str tenant = l->j.call->who.tenant;
    struct template_row *rows = NULL;
    uint64_t before = 0;
    size_t n = 0;

    if (l->after.p && l->name.p && !str_to_u64(l->after, TEMPLATE_VERSIONS_MAX, &before))
        return error_set(&job->err, ERR_BAD_INPUT, "the cursor is of another list");
    if (!(l->name.p ? store_template_versions(store, tenant, l->name, (int64_t)before, limit,
                                              l->j.mem, &rows, &n, &job->err)
                    : store_templates_page(store, tenant, l->after, limit, l->j.mem, &rows, &n,
                                           &job->err)))
        return false;
    if (l->name.p && !n && !l->after.p)
        return error_set(&job->err, ERR_NOT_FOUND,
                         "there is no template %.*s; see `holdfast templates list`",
                         STR_ARG(l->name));
    write_page(l, rows, n);
    return true;
}

static void on_listed(struct read_job *job)
{
    struct templates_list *l = container_of(job, struct templates_list, read);

    if (job->ok)
        api_job_end(&l->j, 200, l->link);
    else
        api_job_refuse(&l->j, &job->err);
}

static void list(struct api_call *c, const char *what, struct str name)
{
    struct templates_list *l = api_job_new(sizeof(*l), MAX_BYTES, c);
    struct str about = page_about(c, what);

    l->name = name;
    if (!api_own_tenant(c) || !api_page(c, about, &l->limit, &l->after)) {
        api_job_drop(&l->j);
        return;
    }
    l->place = (struct page_place){.who = &c->who, .about = about, .url = page_url(c, what)};
    l->read = (struct read_job){.run = run_list, .done = on_listed};
    if (!lane_query(c->sv->lanes, &l->read))
        api_job_busy(&l->j);
}

void api_list_templates(struct api_call *c)
{
    list(c, "/api/v1/templates", STR_NONE);
}

void api_list_template_versions(struct api_call *c)
{
    struct str name;

    if (template_read_name(c, &name))
        list(c, arena_printf(c->mem, "/api/v1/templates/%.*s/versions", STR_ARG(name)).p, name);
}
