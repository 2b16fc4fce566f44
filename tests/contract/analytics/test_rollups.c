/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about analytics: random calls, recounted from their events. */
#include "../store_contract.h"

#include <math.h>

#include "analytics/store/cells.h"
#include "analytics/store/family.h"
#include "analytics/store/ops.h"
#include "analytics/store/packed.h"
#include "analytics/store/verbs.h"
#include "store/memory_impl.h"

/* As the program does at its start; the memory store is for tests only. */
__attribute__((constructor)) static void register_analytics(void)
{
    store_family_add(&analytics_store);
    memory_family_add(&analytics_memory);
}

enum by { BY_TENANT, BY_SERVER, BY_TOOL, BY_CLIENT, BY_USER, BY_ERA, BY_CARRIER, BY_OUTCOME, BYS };

/* Random events.  Each test has its own seed, so that a failure can be repeated. */
struct random {
    uint64_t state;
};
static unsigned pick(struct random *r, unsigned n)
{
    r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(r->state >> 33) % n;
}

static struct str one_of(struct random *r, const char *const *words, unsigned n)
{
    const char *word = words[pick(r, n)];
    return word ? str_of(word) : STR_NONE;
}
#define ONE_OF(r, ...)                                                                             \
    one_of(r, (const char *const[]){__VA_ARGS__}, countof(((const char *const[]){__VA_ARGS__})))

static void label(struct random *r, struct event_row *e, struct fixture *f)
{
    e->tenant = ONE_OF(r, "acme", "acme", "umbrella");
    e->owner = ONE_OF(r, "user:alice", "user:bob", "key:k1", "local");
    e->server = ONE_OF(r, "files", "mail", NULL);
    e->tool = ONE_OF(r, "read", "write", "send", "caf\xc3\xa9");
    e->client = ONE_OF(r, "editor", "chat", NULL);
    e->era = ONE_OF(r, "2025-11-25>2025-11-25", "2026-07-28>2025-11-25");
    e->carrier = ONE_OF(r, "transport", "argument");
    e->session_id = pick(r, 8) ? arena_printf(f->mem, ID "%06u", pick(r, 40)) : STR_NONE;
    e->at_ms = NOW - 40 * HOUR + (int64_t)pick(r, 40 * 60) * 60000;
}

static void measure(struct random *r, struct event_row *e)
{
    e->duration_us = pick(r, 6) ? (int64_t)1 << pick(r, 24) | pick(r, 1000) : 0;
    e->request_len = pick(r, 500);
    e->body_len = pick(r, 9) ? (int64_t)pick(r, 5000) : -1;
    e->tokens = pick(r, 3) ? 0 : pick(r, 900);
}

struct writing {
    struct fixture *f;
    struct random r;
    int64_t count[3]; /* of each writer */
};

static int64_t next_id(struct writing *w, int writer)
{
    return event_id(writer, ++w->count[writer]);
}

static struct event_row ended(struct writing *w, const struct event_row *begun, int writer,
                              const char *how)
{
    struct event_row e = *begun;
    int64_t id = next_id(w, writer);
    struct event_row fresh = event(id, EVENT_OUTCOME);
    e.id = id;
    e.seq = fresh.seq;
    memcpy(e.mac, fresh.mac, sizeof(e.mac));
    e.kind = EVENT_OUTCOME;
    e.outcome = str_of(how);
    e.at_ms += pick(&w->r, 600000);
    if (strcmp(how, "indeterminate") != 0)
        measure(&w->r, &e);
    return e;
}

/* One execution: its intent, and with luck an outcome at once, later, by another writer, or several of
 * them.  `later` gets what is appended after the next fold. */
static void execute(struct writing *w, struct event_row *later, size_t *n_later)
{
    static const char *const ends[] = {"ok", "ok", "ok", "tool_error", "timeout", "refused"};
    struct random *r = &w->r;
    int writer = 1 + (int)pick(r, 2);
    struct event_row e = event(next_id(w, writer), EVENT_INTENT);
    const char *end = ends[pick(r, countof(ends))];

    label(r, &e, w->f);
    e.exec = e.id;
    append(w->f, e);
    switch (pick(r, 8)) {
    case 0: /* open */
        break;
    case 1:
        later[(*n_later)++] = ended(w, &e, writer, end);
        break;
    case 2: /* a guess, then the truth, both before the fold */
        append(w->f, ended(w, &e, writer, "indeterminate"));
        append(w->f, ended(w, &e, writer, end));
        break;
    case 3: /* a guess that another writer makes later */
        later[(*n_later)++] = ended(w, &e, 3 - writer, "indeterminate");
        break;
    case 4: /* further outcomes do not count */
        append(w->f, ended(w, &e, writer, end));
        later[(*n_later)++] = ended(w, &e, writer, "error");
        break;
    default:
        append(w->f, ended(w, &e, writer, end));
    }
}

static void single(struct writing *w, enum event_kind kind, const char *how)
{
    struct event_row e = event(next_id(w, 1), kind);
    label(&w->r, &e, w->f);
    measure(&w->r, &e);
    e.exec = kind == EVENT_RECORD ? e.id : 0;
    e.outcome = str_of(how);
    append(w->f, e);
}

/* Some rounds; the events of `later` have ids of before but are appended after the fold, so each round
 * hands them new ones. */
static void write_random(struct fixture *f, struct writing *w, int rounds)
{
    struct event_row later[40], again[40];
    size_t n_later = 0, n_again = 0;

    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < n_again; i++) {
            int64_t id = next_id(w, (int)(again[i].id >> EVENT_WRITER_SHIFT));
            struct event_row fresh = event(id, EVENT_OUTCOME);
            again[i].id = id;
            again[i].seq = fresh.seq;
            memcpy(again[i].mac, fresh.mac, sizeof(fresh.mac));
            append(f, again[i]);
            if (str_eq(again[i].outcome, STR("indeterminate")) && pick(&w->r, 2)) /* the truth */
                append(f, ended(w, &again[i], (int)(id >> EVENT_WRITER_SHIFT), "ok"));
        }
        n_later = 0;
        for (int i = 0; i < 25; i++)
            execute(w, later, &n_later);
        single(w, EVENT_NOTE, "ok");
        single(w, EVENT_NOTE, "redelivered");
        single(w, EVENT_NOTE, "refused");
        single(w, EVENT_RECORD, "error");
        single(w, EVENT_IMPORT, "ok"); /* ran elsewhere */
        memcpy(again, later, sizeof(again));
        n_again = n_later;
        if (round % 3 != 2) {
            bool left = true;
            while (left)
                check(f, store_fold(f->store, 1 + pick(&w->r, 60), &left, &f->err));
        }
    }
    fold_now(f);
}

/* The recount: every execution with the outcome that stands. */

static size_t standing(struct fixture *f, struct event_row **ret)
{
    struct event_filter filter = {.kind = -1};
    struct event_row *all = arena_zalloc(f->mem, 4000 * sizeof(*all)), *page = NULL;
    size_t n = 0, got = 0, kept = 0;
    do {
        check(f,
              store_events_page(f->store, &filter, STORE_PAGE_MAX, f->mem, &page, &got, &f->err));
        for (size_t i = 0; i < got; i++)
            if (page[i].kind == EVENT_OUTCOME || page[i].kind == EVENT_NOTE ||
                page[i].kind == EVENT_RECORD)
                all[n++] = page[i];
        filter.after = got ? page[got - 1].id : 0;
        assert_true(n < 3800);
    } while (got == STORE_PAGE_MAX);
    *ret = arena_zalloc(f->mem, (n + 1) * sizeof(**ret));
    for (size_t i = 0; i < n; i++) {
        bool stands = true, guess = str_eq(all[i].outcome, STR("indeterminate"));
        for (size_t k = 0; k < n && all[i].kind == EVENT_OUTCOME; k++) {
            if (k == i || all[k].kind != EVENT_OUTCOME || all[k].exec != all[i].exec)
                continue;
            bool other = str_eq(all[k].outcome, STR("indeterminate"));
            stands =
                stands && (guess ? other && all[k].id < all[i].id : other || all[k].id > all[i].id);
        }
        if (stands)
            (*ret)[kept++] = all[i];
    }
    return kept;
}

static struct str or_empty(struct str s)
{
    return s.p ? s : STR("");
}

static struct str group_of(const struct event_row *e, enum by by)
{
    const struct str texts[BYS] = {e->tenant, e->server, e->tool,    e->client,
                                   e->owner,  e->era,    e->carrier, e->outcome};
    return or_empty(texts[by]);
}

static int64_t span_of(int64_t at_ms, enum rollup_step step)
{
    static const int64_t length[] = {300000, 3600000, 86400000};
    return at_ms / length[step] * length[step] / 300000;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void assert_near(int64_t got, int64_t exact)
{
    if (llabs(got - exact) > exact * DURATIONS_ERROR)
        fail_msg("%lld is too far from %lld", (long long)got, (long long)exact);
}

static void assert_quantiles(const struct cell *c, int64_t *us, size_t n)
{
    static const unsigned percents[] = {50, 95, 99};
    assert_int_equal(durations_total(&c->durations), n);
    qsort(us, n, sizeof(*us), by_number);
    for (size_t i = 0; i < countof(percents); i++) {
        int64_t got = durations_quantile(&c->durations, percents[i]);
        if (n)
            assert_near(got, us[(n * percents[i] + 99) / 100 - 1]);
        else
            assert_int_equal(got, -1);
    }
}

/* One group in one span: what was counted, and its events. */
static void assert_group(const struct cell *c, const struct event_row *events, size_t n, enum by by,
                         struct str group, enum rollup_step step, int64_t span, struct arena *mem)
{
    int64_t calls = 0, request = 0, response = 0, tokens = 0, estimated = 0;
    int64_t *us = arena_alloc(mem, (n + 1) * sizeof(*us));
    struct distinct sketch = {0};
    struct map sessions = {0};
    size_t n_us = 0;

    for (size_t i = 0; i < n; i++) {
        const struct event_row *e = &events[i];
        if (span_of(e->at_ms, step) != span || !str_eq(group_of(e, by), group))
            continue;
        int64_t body = e->body_len > 0 ? e->body_len : 0;
        int64_t in = e->kind == EVENT_NOTE ? body : e->request_len;
        int64_t out = e->kind == EVENT_NOTE ? 0 : e->kind == EVENT_OUTCOME ? body : body - in;
        out = out > 0 ? out : 0;
        calls++;
        request += in;
        response += out;
        tokens += e->tokens;
        estimated += e->tokens ? 0 : (in + out + 3) / 4;
        if (e->duration_us)
            us[n_us++] = e->duration_us;
        if (e->session_id.p && !str_eq(e->outcome, STR("indeterminate"))) {
            map_put(&sessions, e->session_id, (void *)e);
            distinct_add(&sketch, distinct_hash(e->session_id), 0);
        }
    }
    assert_int_equal(c->calls, calls);
    assert_int_equal(c->request_bytes, request);
    assert_int_equal(c->response_bytes, response);
    assert_int_equal(c->tokens, tokens);
    assert_int_equal(c->tokens_estimated, estimated);
    assert_quantiles(c, us, n_us);
    assert_int_equal(distinct_count(&c->sessions),
                     c->sessions.registers ? distinct_count(&sketch) : (int64_t)sessions.n);
    distinct_release(&sketch);
    map_release(&sessions);
}

struct counted_group {
    struct str group;
    int64_t span;
    struct cell cell;
};

static struct cell *enter(struct counted_group *groups, size_t *n, struct str group, int64_t span)
{
    for (size_t i = 0; i < *n; i++)
        if (groups[i].span == span && str_eq(groups[i].group, group))
            return &groups[i].cell;
    groups[*n] = (struct counted_group){.group = group, .span = span};
    return &groups[(*n)++].cell;
}

#define GROUPS_MAX 4000

static void add_row(const struct rollup_row *row, struct str tenant, enum by by,
                    struct counted_group *groups, size_t *n)
{
    const struct str texts[BYS] = {tenant,     row->server, row->tool,   row->client,
                                   row->owner, row->era,    row->carrier};
    struct cells cells = {0};
    struct packed p = packed_of(row->span, row->cells);
    struct str stored;
    int64_t span;
    while (packed_next(&p, &span, &stored)) {
        assert_true(cells_add_stored(&cells, stored, 64));
        for (size_t i = 0; i < COUNTED_OUTCOMES; i++)
            if (cells.of[i]) {
                struct str group = by == BY_OUTCOME ? str_of(counted_outcome_names[i]) : texts[by];
                cell_merge(enter(groups, n, group, span), cells.of[i], 4096);
                assert_true(*n < GROUPS_MAX);
            }
        cells_release(&cells);
    }
}

static void add_rows(struct fixture *f, struct rollup_filter filter, enum by by,
                     struct counted_group *groups, size_t *n)
{
    struct rollup_row *rows = NULL;
    size_t got = 0;
    do {
        check(f, store_rollups_page(f->store, &filter, 150, f->mem, &rows, &got, &f->err));
        for (size_t i = 0; i < got; i++)
            add_row(&rows[i], filter.tenant, by, groups, n);
        if (got) {
            filter.after_span = rows[got - 1].span;
            filter.after_label = rows[got - 1].label;
            filter.after_writer = rows[got - 1].writer;
        }
    } while (got == 150);
}

static struct rollup_filter everything(struct str tenant, enum rollup_step step)
{
    return (struct rollup_filter){
        .tenant = tenant, .step = step, .until = INT32_MAX, .after_span = -1, .after_writer = -1};
}

static void assert_recount(struct fixture *f)
{
    struct event_row *events = NULL;
    size_t n = standing(f, &events);
    struct counted_group *groups = arena_alloc(f->mem, GROUPS_MAX * sizeof(*groups));

    assert_true(n > 100);
    for (unsigned by = 0; by < BYS; by++)
        for (unsigned step = 0; step < ROLLUP_STEPS; step++) {
            size_t n_groups = 0;
            int64_t calls = 0;
            for (struct str tenant = STR_NONE;;) {
                check(f, store_rollup_tenant(f->store, tenant, f->mem, &tenant, &f->err));
                if (!tenant.p)
                    break;
                add_rows(f, everything(tenant, step), by, groups, &n_groups);
            }
            for (size_t i = 0; i < n_groups; i++) {
                calls += groups[i].cell.calls;
                assert_group(&groups[i].cell, events, n, by, groups[i].group, step, groups[i].span,
                             f->mem);
                cell_release(&groups[i].cell);
            }
            assert_int_equal(calls, n); /* so no group is missing */
        }
}

static void rollups_equal_a_recount(struct fixture *f)
{
    struct writing w = {.f = f, .r = {7}};
    write_random(f, &w, 6);
    assert_recount(f);
    write_random(f, &w, 3); /* from the list in memory, where there is one */
    assert_recount(f);
    fold_now(f);
    assert_recount(f);
}
TEST(test_rollups__equal_a_recount_of_the_events_by_every_grouping_and_step)
{
    on_every_store(rollups_equal_a_recount);
}

static size_t rows_of(struct fixture *f, struct str tenant)
{
    struct rollup_filter filter = everything(tenant, STEP_1H);
    struct rollup_row *rows = NULL;
    size_t got = 0, n = 0;
    do {
        check(f, store_rollups_page(f->store, &filter, 200, f->mem, &rows, &got, &f->err));
        for (size_t i = 0; i < got; i++) {
            filter.after_span = rows[i].span;
            filter.after_label = rows[i].label;
            filter.after_writer = rows[i].writer;
        }
        n += got;
    } while (got == 200);
    return n;
}

static void pack_before(struct fixture *f, struct str tenant, int64_t before)
{
    for (bool more = true; more;)
        check(f, store_rollups_pack(f->store, tenant, before, 7, &more, &f->err));
}

static void packed_hours_count_the_same(struct fixture *f)
{
    struct writing w = {.f = f, .r = {9}};
    int64_t day = NOW / SPAN_MS / 288 * 288;

    write_random(f, &w, 5);
    size_t before = rows_of(f, STR("acme"));
    pack_before(f, STR("acme"), day - 288);
    size_t some = rows_of(f, STR("acme"));
    assert_true(some <= before); /* less, but in SQLite */
    assert_recount(f);
    write_random(f, &w, 2); /* late events: of hours that are packed, too */
    assert_recount(f);
    before = rows_of(f, STR("acme"));
    pack_before(f, STR("acme"), day);
    pack_before(f, STR("umbrella"), day);
    assert_true(rows_of(f, STR("acme")) <= before);
    assert_recount(f);
    size_t packed = rows_of(f, STR("acme"));
    pack_before(f, STR("acme"), day);
    assert_int_equal(rows_of(f, STR("acme")), packed);
}
TEST(test_rollups__packed_hours_count_the_same_and_take_late_calls)
{
    on_every_store(packed_hours_count_the_same);
}

/* Limits. */

static void call_by(struct fixture *f, int64_t *count, struct str client, struct str owner)
{
    struct event_row e = intent(event_id(1, ++*count), ID "000001");
    e.at_ms = NOW;
    e.client = client;
    e.session_id = STR_NONE;
    e.owner = owner;
    int64_t exec = e.id;
    append(f, e);
    e.id = event_id(1, ++*count);
    struct event_row fresh = event(e.id, EVENT_OUTCOME);
    e.seq = fresh.seq;
    memcpy(e.mac, fresh.mac, sizeof(e.mac));
    e.kind = EVENT_OUTCOME;
    e.exec = exec;
    e.outcome = STR("ok");
    append(f, e);
}

static void call_once(struct fixture *f, int64_t *count, struct str client)
{
    call_by(f, count, client, STR("user:alice"));
}

static int64_t calls_of(struct fixture *f, struct str client, size_t *ret_rows)
{
    struct rollup_filter filter = everything(STR("acme"), STEP_1D);
    struct rollup_row *rows = NULL;
    int64_t calls = 0;
    size_t got = 0;
    *ret_rows = 0;
    do {
        check(f, store_rollups_page(f->store, &filter, 200, f->mem, &rows, &got, &f->err));
        *ret_rows += got;
        for (size_t i = 0; i < got; i++) {
            struct cells cells = {0};
            filter.after_span = rows[i].span;
            filter.after_label = rows[i].label;
            filter.after_writer = rows[i].writer;
            assert_true(cells_add_stored(&cells, rows[i].cells, 64));
            if (str_eq(rows[i].client, client))
                calls += cells.of[COUNTED_OK]->calls;
            cells_release(&cells);
        }
    } while (got == 200);
    return calls;
}

static void labels_are_limited(struct fixture *f)
{
    int64_t count = 0;
    size_t rows = 0;
    for (int i = 0; i < ROLLUP_LABELS_MAX; i++)
        call_once(f, &count, arena_printf(f->mem, "client %d", i));
    fold_now(f);
    assert_int_equal(calls_of(f, STR(ROLLUP_OTHER), &rows), 0);
    assert_int_equal(rows, ROLLUP_LABELS_MAX);
    call_once(f, &count, STR("one too many"));
    call_once(f, &count, STR("client 7"));
    fold_now(f);
    call_once(f, &count, STR("two too many"));
    fold_now(f);
    assert_int_equal(calls_of(f, STR(ROLLUP_OTHER), &rows), 2);
    assert_int_equal(rows, ROLLUP_LABELS_MAX + 1);
    assert_int_equal(calls_of(f, STR("client 7"), &rows), 2);
    for (int i = 1; i < ROLLUP_LABELS_MAX; i++) /* each user has a row for others */
        call_by(f, &count, STR("new"), arena_printf(f->mem, "user:%d", i));
    fold_now(f);
    assert_int_equal(calls_of(f, STR(ROLLUP_OTHER), &rows), ROLLUP_LABELS_MAX + 1);
    assert_int_equal(rows, 2 * ROLLUP_LABELS_MAX);
    for (int i = 0; i < 3; i++)
        call_by(f, &count, STR("new"), arena_printf(f->mem, "user:late %d", i));
    fold_now(f);
    assert_int_equal(calls_of(f, STR(ROLLUP_OTHER), &rows), ROLLUP_LABELS_MAX + 4);
    assert_int_equal(rows, 2 * ROLLUP_LABELS_MAX + 1);
}
TEST(test_rollups__a_tenant_has_so_many_labels_in_a_day_and_further_calls_are_counted_as_other)
{
    on_every_store(labels_are_limited);
}

static void members_and_ages(struct fixture *f)
{
    struct rollup_filter filter = everything(STR("acme"), STEP_5M);
    struct rollup_age age = {
        .tenant = STR("acme"), .step = STEP_5M, .before = INT32_MAX, .most = 1};
    struct rollup_row *rows = NULL;
    struct writing w = {.f = f, .r = {3}};
    size_t n = 0, left = 0;

    write_random(f, &w, 1);
    filter.owner = STR("user:bob");
    check(f, store_rollups_page(f->store, &filter, 200, f->mem, &rows, &n, &f->err));
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_str(rows[i].owner, "user:bob");
    filter.owner = STR_NONE;
    check(f, store_rollups_page(f->store, &filter, 200, f->mem, &rows, &n, &f->err));
    assert_int_equal(write_one(f, op_rollups_age(&age)), VERDICT_OK);
    check(f, store_rollups_page(f->store, &filter, 200, f->mem, &rows, &left, &f->err));
    assert_int_equal(left, n - 1);
    age.before = rows[left - 1].span;
    age.most = 1000;
    assert_int_equal(write_one(f, op_rollups_age(&age)), VERDICT_OK);
    assert_int_equal(write_one(f, op_rollups_age(&age)), VERDICT_MISSING);
    check(f, store_rollups_page(f->store, &filter, 200, f->mem, &rows, &n, &f->err));
    assert_true(n >= 1);
    assert_int_equal(rows[0].span, age.before);
    age.tenant = STR("nobody");
    assert_int_equal(write_one(f, op_rollups_age(&age)), VERDICT_MISSING);
}
TEST(test_rollups__are_read_by_owner_and_deleted_by_age)
{
    on_every_store(members_and_ages);
}
