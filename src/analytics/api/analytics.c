/* SPDX-License-Identifier: Apache-2.0 */
/* GET /analytics: rollups added up by a label and by buckets of time.
 *
 *   wait for the fold → [ query lane: some pages of rollups, some milliseconds ]… → answer
 *
 * Between two such steps other requests have their turn on the lane.  Admins and auditors see their
 * tenant, others the calls of their owner, the local admin every tenant.  The scopes of a key hide
 * calls as they hide live events (feeds/visibility.h). */
#include "analytics/api/table.h"

#include "analytics/report.h"
#include "analytics/store/verbs.h"
#include "api/job.h"
#include "api/who.h"
#include "base/clock.h"
#include "feeds/visibility.h"

#define MAX_BYTES (256u * 1024 * 1024)
#define STEP_US 20000
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)

struct analytics_job {
    struct api_job j;
    struct write_job fold;
    struct read_job read;
    struct report report;
    struct str tenant; /* the one being read */
    bool all_tenants;
    bool is_read; /* every row was added */
    struct visibility visibility;
};

static void release(void *arg)
{
    struct analytics_job *a = arg;
    report_release(&a->report);
}

/* On the query lane. */

static bool shows(void *arg, struct str tenant, const struct rollup_row *row)
{
    const struct event_row call = {
        .tenant = tenant, .owner = row->owner, .server = row->server, .tool = row->tool};

    return visibility_shows(arg, &call);
}

static bool next_tenant(struct analytics_job *a, struct store *store, struct error *err)
{
    if (!a->all_tenants) {
        a->is_read = true;
        return true;
    }
    if (!store_rollup_tenant(store, a->tenant, a->j.mem, &a->tenant, err))
        return false;
    a->is_read = !a->tenant.p;
    if (!a->is_read)
        report_begin(&a->report, a->tenant);
    return true;
}

static bool add_page(struct analytics_job *a, struct store *store, struct error *err)
{
    struct arena *mem = arena_new(64 << 20);
    struct rollup_row *rows = NULL;
    size_t n = 0;
    bool ok = store_rollups_page(store, &a->report.next, STORE_PAGE_MAX, mem, &rows, &n, err);

    ok = ok && report_add(&a->report, rows, n, err);
    arena_free(mem);
    return ok && (n == STORE_PAGE_MAX || next_tenant(a, store, err));
}

struct naming {
    struct who_names names;
    struct str tenant; /* absent: owners have no names, because their tenant is not known */
    struct arena *mem;
};

static struct str name_of(void *arg, struct str owner)
{
    struct naming *n = arg;
    struct str user = STR_NONE, key = STR_NONE;

    if (!n->tenant.p)
        return STR_NONE;
    who_owner(&n->names, n->tenant, owner, &user, &key);
    return user.n && key.n ? arena_printf(n->mem, "%.*s (%.*s)", STR_ARG(user), STR_ARG(key))
           : user.n        ? user
                           : key;
}

static void write_answer(struct analytics_job *a, struct store *store)
{
    struct naming naming = {.tenant = a->all_tenants ? STR_NONE : a->tenant, .mem = a->j.mem};
    struct js_writer w;

    who_init(&naming.names, store, a->j.mem);
    js_begin(&w, &a->j.out);
    report_write(&a->report, &w, name_of, &naming);
    who_release(&naming.names);
}

static bool run_step(struct read_job *job, struct store *store)
{
    struct analytics_job *a = container_of(job, struct analytics_job, read);
    int64_t began_us = clock_mono_us();

    if (a->all_tenants && !a->tenant.p && !next_tenant(a, store, &job->err))
        return false;
    while (!a->is_read && clock_mono_us() - began_us < STEP_US)
        if (!add_page(a, store, &job->err))
            return false;
    if (a->is_read)
        write_answer(a, store);
    return true;
}

/* On the loop. */

static void on_step(struct read_job *job);

static void step(struct analytics_job *a)
{
    a->read = (struct read_job){.run = run_step, .done = on_step};
    if (!lane_query(a->j.call->sv->lanes, &a->read))
        api_job_busy(&a->j);
}

static void on_step(struct read_job *job)
{
    struct analytics_job *a = container_of(job, struct analytics_job, read);

    if (!job->ok)
        api_job_refuse(&a->j, &job->err);
    else if (a->is_read)
        api_job_end(&a->j, 200, STR_NONE);
    else
        step(a);
}

/* Also after a fold that failed: the answer is then of what was counted so far. */
static void on_folded(struct write_job *job)
{
    step(container_of(job, struct analytics_job, fold));
}

static bool read_word(struct api_call *c, const char *name, const char *const *words,
                      unsigned if_absent, unsigned *ret)
{
    struct str text;

    if (!api_query(c, name, &text))
        return false;
    *ret = if_absent;
    if (!text.p)
        return true;
    for (*ret = 0; words[*ret]; (*ret)++)
        if (str_eq(text, str_of(words[*ret])))
            return true;
    struct buf known;
    buf_init(&known, 1024);
    for (unsigned i = 0; words[i]; i++)
        buf_addf(&known, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    api_refuse(c, ERR_BAD_INPUT, "?%s= is %.*s", name, STR_ARG(buf_str(&known)));
    buf_release(&known);
    return false;
}

static bool read_query(struct analytics_job *a, struct api_call *c)
{
    int64_t since_ms, until_ms, limit, now_ms = clock_wall_ms();
    struct str asked;
    struct error err;
    unsigned by, bucket;

    if (!read_word(c, "group_by", report_by_names, REPORT_SERVER, &by) ||
        !read_word(c, "bucket", report_step_names, STEP_1H, &bucket) ||
        !api_query_time(c, "since", &since_ms) || !api_query_time(c, "until", &until_ms) ||
        !api_query_number(c, "limit", 1, REPORT_GROUPS_MAX, REPORT_GROUPS, &limit) ||
        !api_query(c, "tenant", &asked) || !api_tenant(c, asked, &a->tenant))
        return false;
    if (!report_init(&a->report, by, bucket, since_ms ? since_ms : now_ms - DAY_MS,
                     until_ms ? until_ms : now_ms, now_ms, a->j.mem, &err)) {
        api_refuse(c, err.code, "%s", err.text);
        return false;
    }
    a->report.limit = (size_t)limit;
    a->report.owner = c->who.tenant_wide || api_is_local(c) ? STR_NONE : c->who.owner;
    a->visibility = visibility_of(&c->who, api_is_local(c));
    if (a->visibility.limited) {
        a->report.shows = shows;
        a->report.arg = &a->visibility;
    }
    a->all_tenants = !a->tenant.p;
    if (!a->all_tenants)
        report_begin(&a->report, a->tenant);
    return true;
}

void api_get_analytics(struct api_call *c)
{
    struct analytics_job *a = api_job_new(sizeof(*a), MAX_BYTES, c);

    arena_on_free(a->j.mem, release, a);
    if (!read_query(a, c)) {
        api_job_drop(&a->j);
        return;
    }
    a->fold = (struct write_job){.done = on_folded};
    if (!lane_write(c->sv->lanes, &a->fold)) /* a command that only reads has no write lane */
        step(a);
}
