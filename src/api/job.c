/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of an operation for administrators, and what all of them read of a request. */
#include "api/job.h"

#include "api/cursor.h"
#include "api/page.h"

#include <stdlib.h>

#define PAGE_DEFAULT 50

void *api_job_new(size_t size, size_t max_bytes, struct api_call *c)
{
    struct api_job *j = xcalloc(1, size);

    j->call = c;
    j->mem = arena_new(max_bytes);
    arena_wipe_later(j->mem);
    buf_init_secret(&j->out, max_bytes); /* keys and passwords pass through both */
    return j;
}

void api_job_drop(struct api_job *j)
{
    buf_release(&j->out);
    arena_free(j->mem);
    free(j);
}

void api_job_end(struct api_job *j, int status, struct str headers)
{
    api_reply(j->call, status, headers, buf_str(&j->out));
    api_job_drop(j);
}

void api_job_refuse(struct api_job *j, const struct error *err)
{
    api_refuse(j->call, err->code, "%s", err->text);
    api_job_drop(j);
}

void api_job_busy(struct api_job *j)
{
    struct error err;
    error_set(&err, ERR_UNAVAILABLE,
              "too many requests are waiting for the store; try again shortly");
    api_job_refuse(j, &err);
}

bool api_is_local(const struct api_call *c)
{
    return c->http->is_unix && !c->who.credential.p;
}

bool api_tenant(struct api_call *c, struct str asked, struct str *ret)
{
    if (api_is_local(c)) {
        *ret = asked;
        return true;
    }
    *ret = c->who.tenant;
    if (!asked.p || str_eq(asked, c->who.tenant))
        return true;
    api_refuse(c, ERR_DENIED,
               "this credential belongs to another tenant; leave the tenant out, or use a "
               "credential of that tenant");
    return false;
}

bool api_own_tenant(struct api_call *c)
{
    struct str asked, tenant;

    if (!api_query(c, "tenant", &asked) || !api_tenant(c, asked, &tenant))
        return false;
    if (tenant.n)
        c->who.tenant = tenant;
    return true;
}

bool api_page(struct api_call *c, struct str about, int64_t *ret_limit, struct str *ret_after)
{
    struct str cursor;

    *ret_after = STR_NONE;
    if (!api_query(c, "cursor", &cursor) ||
        !api_query_number(c, "limit", 1, STORE_PAGE_MAX, PAGE_DEFAULT, ret_limit))
        return false;
    if (cursor.p && !cursor_read(cursor, &c->who, about, c->mem, ret_after))
        return page_refuse_cursor(c);
    return true;
}

struct str api_by(const struct api_call *c, struct arena *mem)
{
    return api_is_local(c) ? STR_NONE : arena_printf(mem, "by %.*s", STR_ARG(c->who.owner));
}
