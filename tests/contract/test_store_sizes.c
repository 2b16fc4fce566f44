/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about the sizes of the audit: they equal a recount of its events. */
#include "store_contract.h"

#include "store/record.h"
#include "store/segment.h"

#define DAY (24 * HOUR)
#define TENANTS 3

static const char *const tenants[TENANTS] = {"acme", "beta", "umbrella"};

static struct audit_size_row *sizes(struct fixture *f, const char *tenant, const char *after,
                                    int64_t since_ms, unsigned limit, size_t *ret_n)
{
    struct audit_size_row *rows = NULL;
    check(f, store_audit_sizes(f->store, tenant ? str_of(tenant) : STR_NONE,
                               after ? str_of(after) : STR_NONE, since_ms, limit, f->mem, &rows,
                               ret_n, &f->err));
    return rows;
}

static void count(struct audit_size_row *to, const struct event_row *e, int64_t since_ms)
{
    char record[8192];
    int64_t bytes = SEGMENT_FRAME + (int64_t)record_write(e, record);
    bool recent = e->at_ms / DAY >= since_ms / DAY;

    assert_int_equal(bytes - SEGMENT_FRAME, record_length(e));
    to->first_ms = to->events && to->first_ms < e->at_ms ? to->first_ms : e->at_ms;
    to->last_ms = to->events && to->last_ms > e->at_ms ? to->last_ms : e->at_ms;
    to->events++;
    to->event_bytes += bytes;
    to->bodies += e->body.p != NULL;
    to->body_bytes += (int64_t)e->body.n;
    to->recent_events += recent;
    to->recent_event_bytes += recent ? bytes : 0;
    to->recent_body_bytes += recent ? (int64_t)e->body.n : 0;
}

/* All events of the tenant, read page by page. */
static struct audit_size_row recount(struct fixture *f, const char *tenant, int64_t since_ms)
{
    struct audit_size_row sum = {.tenant = str_of(tenant)};
    struct event_filter filter = {.kind = -1, .with_bodies = true, .tenant = str_of(tenant)};
    for (size_t n = STORE_PAGE_MAX; n == STORE_PAGE_MAX;) {
        struct event_row *rows = NULL;
        check(f, store_events_page(f->store, &filter, STORE_PAGE_MAX, f->mem, &rows, &n, &f->err));
        for (size_t i = 0; i < n; i++)
            count(&sum, &rows[i], since_ms);
        filter.after = n ? rows[n - 1].id : 0;
    }
    return sum;
}

static void assert_size(const struct audit_size_row *got, const struct audit_size_row *want)
{
    assert_true(str_eq(got->tenant, want->tenant));
    assert_int_equal(got->events, want->events);
    assert_int_equal(got->event_bytes, want->event_bytes);
    assert_int_equal(got->bodies, want->bodies);
    assert_int_equal(got->body_bytes, want->body_bytes);
    assert_int_equal(got->first_ms, want->first_ms);
    assert_int_equal(got->last_ms, want->last_ms);
    assert_int_equal(got->recent_events, want->recent_events);
    assert_int_equal(got->recent_event_bytes, want->recent_event_bytes);
    assert_int_equal(got->recent_body_bytes, want->recent_body_bytes);
}

/* Events of three tenants and two writers over five days, from a fixed seed. */
static void fill(struct fixture *f, unsigned n)
{
    static char body[3000];
    unsigned random = 4711;
    int64_t counts_of[2] = {0};

    memset(body, 'b', sizeof(body));
    for (unsigned i = 0; i < n; i++) {
        random = random * 1103515245 + 12345;
        unsigned writer = random >> 16 & 1;
        struct event_row e = event(event_id(writer + 1, ++counts_of[writer]), EVENT_SYSTEM);
        e.tenant = str_of(tenants[(random >> 8) % TENANTS]);
        e.at_ms = NOW - 4 * DAY + (random >> 4) % (5 * DAY);
        e.tool = str_n(body, (random >> 12) % 200);
        e.tokens = random >> 18 & 7;
        if (random >> 5 & 1) {
            e.body = str_n(body, (random >> 10) % sizeof(body));
            e.body_len = (int64_t)e.body.n;
            memset(e.body_sha, 7, 32);
            memset(e.stored_sha, random >> 3 & 1 ? 7 : 8, 32);
        }
        append(f, e);
    }
}

static void sizes_equal_a_recount(struct fixture *f)
{
    size_t n = 99;
    int64_t since_ms = NOW - 2 * DAY;
    sizes(f, NULL, NULL, 0, 10, &n);
    assert_int_equal(n, 0);
    fill(f, 500);
    fold_all(f);
    struct audit_size_row *all = sizes(f, NULL, NULL, since_ms, 10, &n);
    assert_int_equal(n, TENANTS);
    for (size_t i = 0; i < TENANTS; i++) {
        struct audit_size_row want = recount(f, tenants[i], since_ms);
        assert_true(want.events > 100 && want.bodies > 20 && want.recent_events > 20);
        assert_size(&all[i], &want);
        struct audit_size_row *one = sizes(f, tenants[i], NULL, since_ms, 1, &n);
        assert_int_equal(n, 1);
        assert_size(one, &want);
    }
}
TEST(test_audit_sizes__equal_a_recount_of_the_events)
{
    on_every_store(sizes_equal_a_recount);
}

static void pages_follow_tenants(struct fixture *f)
{
    size_t n = 99;
    fill(f, 50);
    fold_all(f);
    struct audit_size_row *rows = sizes(f, NULL, NULL, 0, 2, &n);
    assert_int_equal(n, 2);
    assert_str(rows[1].tenant, "beta");
    rows = sizes(f, NULL, "beta", 0, 2, &n);
    assert_int_equal(n, 1);
    assert_str(rows[0].tenant, "umbrella");
    sizes(f, "nobody", NULL, 0, 2, &n);
    assert_int_equal(n, 0);
}
TEST(test_audit_sizes__pages_follow_the_names_of_tenants)
{
    on_every_store(pages_follow_tenants);
}

static void a_repeated_append_counts_once(struct fixture *f)
{
    size_t n = 0;
    struct event_row e = event(event_id(1, 1), EVENT_SYSTEM);
    append(f, e);
    fold_all(f);
    append(f, e);
    fold_all(f);
    assert_int_equal(sizes(f, "acme", NULL, 0, 1, &n)->events, 1);
}
TEST(test_audit_sizes__an_event_that_is_appended_again_counts_once)
{
    on_every_store(a_repeated_append_counts_once);
}

static void nothing_waits_in_a_new_store(struct fixture *f)
{
    struct database_size size = {.uncounted = 9};
    fill(f, 20);
    fold_all(f);
    check(f, store_database_size(f->store, &size, &f->err));
    assert_int_equal(size.uncounted, 0);
}
TEST(test_database_size__in_a_new_store_every_event_is_counted)
{
    on_every_store(nothing_waits_in_a_new_store);
}
