/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about removed events and bodies, checkpoints and sums. */
#include "../store_contract.h"

#include "holds/store/family.h"
#include "holds/store/ops.h"
#include "retention/removal.h"
#include "retention/store/family.h"
#include "retention/store/ops.h"
#include "retention/store/verbs.h"
#include "store/memory_impl.h"

/* As the program does at its start; the memory store is for tests only. */
__attribute__((constructor)) static void register_retention(void)
{
    store_family_add(&holds_store);
    memory_family_add(&holds_memory);
    store_family_add(&retention_store);
    memory_family_add(&retention_memory);
}

static int64_t version(struct fixture *f)
{
    struct retention_state *state = NULL;
    check(f, store_retention_state(f->store, f->mem, &state, &f->err));
    assert_non_null(state);
    return state->version;
}

static struct event_row with_body(struct event_row e, const char *body)
{
    e.body = str_of(body);
    e.body_len = (int64_t)e.body.n;
    memset(e.body_sha, 1, sizeof(e.body_sha));
    memset(e.stored_sha, 1, sizeof(e.stored_sha));
    return e;
}

/* Two calls in one transaction: events 1 to 4. */
static void two_calls(struct fixture *f)
{
    struct event_row e[] = {
        with_body(intent(event_id(1, 1), ID "000001"), "{\"arguments\":{\"n\":1}}"),
        with_body(outcome(event_id(1, 2), event_id(1, 1), ID "000001", "ok"), "{\"r\":1}"),
        with_body(intent(event_id(1, 3), ID "000001"), "{\"arguments\":{\"n\":2}}"),
        with_body(outcome(event_id(1, 4), event_id(1, 3), ID "000001", "ok"), "{\"r\":2}"),
    };
    struct store_op ops[4];
    create(f, &alice, 1);
    for (size_t i = 0; i < 4; i++)
        ops[i] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &e[i]}};
    check(f, store_write(f->store, ops, 4, &f->err));
    fold_all(f);
}

/* Applies the fate of each event by its count. */
static void apply(struct fixture *f, const enum fate *by_count)
{
    const struct segment_page page = {.upto = INT64_MAX, .with_bodies = true};
    struct segment_row *segments = NULL;
    struct removal r;
    size_t n = 0;
    removal_init(&r, f->mem, version(f));
    check(f, store_segments(f->store, &page, 50, f->mem, &segments, &n, &f->err));
    for (size_t i = 0; i < n; i++) {
        struct event_row *events = segment_events(&segments[i], f->mem);
        enum fate fates[8];
        for (size_t k = 0; k < segments[i].n; k++)
            fates[k] = by_count[(events[k].id & EVENT_COUNT_MASK) - 1];
        removal_segment(&r, &segments[i], events, fates);
    }
    removal_end(&r);
    check(f, store_write(f->store, r.ops, r.n, &f->err));
}

static struct event_row *events(struct fixture *f, size_t *ret_n)
{
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    struct event_row *rows = NULL;
    check(f, store_events_page(f->store, &filter, 50, f->mem, &rows, ret_n, &f->err));
    return rows;
}

static struct execution_row *executions(struct fixture *f, size_t *ret_n)
{
    struct execution_row *rows = NULL;
    check(f, store_executions_page(f->store, &alice, STR(ID "000001"), 0, true, 10, f->mem, &rows,
                                   ret_n, &f->err));
    return rows;
}

/* The sizes of the audit follow every removal. */
static void assert_sizes(struct fixture *f, int64_t n_events, int64_t bodies, int64_t body_bytes)
{
    struct audit_size_row *row = NULL;
    size_t n = 0;
    check(f, store_audit_sizes(f->store, STR("acme"), STR_NONE, 0, 1, f->mem, &row, &n, &f->err));
    assert_int_equal(n, 1);
    assert_int_equal(row->events, n_events);
    assert_int_equal(row->bodies, bodies);
    assert_int_equal(row->body_bytes, body_bytes);
}

static void bodies_go(struct fixture *f)
{
    const enum fate fates[] = {FATE_LOSES_BODY, FATE_LOSES_BODY, FATE_STAYS, FATE_STAYS};
    size_t n = 0;
    two_calls(f);
    assert_sizes(f, 4, 4, 2 * 21 + 2 * 7);
    apply(f, fates);
    assert_sizes(f, 4, 2, 21 + 7);
    struct event_row *rows = events(f, &n);
    assert_int_equal(n, 4);
    assert_null(rows[0].body.p);
    assert_null(rows[1].body.p);
    assert_str(rows[2].body, "{\"arguments\":{\"n\":2}}");
    assert_str(rows[3].body, "{\"r\":2}");
    assert_int_equal(rows[0].stored_sha[0], 1);
    assert_int_equal(rows[1].mac[0], event(event_id(1, 2), EVENT_OUTCOME).mac[0]);
    struct execution_row *x = executions(f, &n);
    assert_int_equal(n, 2);
    assert_str(x[0].arguments, "{\"n\":2}");
    assert_str(x[0].result, "{\"r\":2}");
    assert_null(x[1].arguments.p);
    assert_null(x[1].result.p);
    assert_str(x[1].outcome, "ok");
}
TEST(test_removal__takes_the_bodies_of_some_events_of_a_segment)
{
    on_every_store(bodies_go);
}

static void events_go(struct fixture *f)
{
    const enum fate first[] = {FATE_STAYS, FATE_GOES, FATE_STAYS, FATE_STAYS};
    const enum fate rest[] = {FATE_GOES, FATE_STAYS, FATE_GOES, FATE_STAYS};
    struct chain_head *heads = NULL;
    size_t n = 0, n_heads = 0;
    two_calls(f);
    apply(f, first);
    assert_sizes(f, 3, 3, 2 * 21 + 7);
    struct event_row *rows = events(f, &n);
    assert_int_equal(n, 3);
    assert_int_equal(rows[0].id, event_id(1, 1));
    assert_int_equal(rows[1].id, event_id(1, 3));
    assert_str(rows[1].body, "{\"arguments\":{\"n\":2}}");
    apply(f, rest);
    assert_sizes(f, 1, 1, 7);
    rows = events(f, &n);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].id, event_id(1, 4));
    assert_str(rows[0].body, "{\"r\":2}");
    executions(f, &n);
    assert_int_equal(n, 0);
    check(f, store_chain_heads(f->store, f->mem, &heads, &n_heads, &f->err));
    assert_int_equal(n_heads, 1);
    assert_int_equal(heads[0].last_id, event_id(1, 4));
}
TEST(test_removal__takes_events_and_their_executions_follow)
{
    on_every_store(events_go);
}

static void ends_stay(struct fixture *f)
{
    const enum fate fates[] = {FATE_GOES, FATE_GOES, FATE_GOES, FATE_GOES};
    struct chain_head *heads = NULL;
    size_t n = 0;
    two_calls(f);
    apply(f, fates);
    events(f, &n);
    assert_int_equal(n, 0);
    check(f, store_chain_heads(f->store, f->mem, &heads, &n, &f->err));
    assert_int_equal(n, 1);
    assert_int_equal(heads[0].last_id, event_id(1, 4));
    append(f, intent(event_id(1, 5), ID "000001"));
    fold_all(f);
    executions(f, &n);
    assert_int_equal(n, 1);
}
TEST(test_removal__of_all_events_leaves_the_end_of_the_chain)
{
    on_every_store(ends_stay);
}

static void folded_upto(struct fixture *f)
{
    struct folded_row *rows = NULL;
    size_t n = 0;
    two_calls(f);
    append(f, intent(event_id(1, 5), ID "000001"));
    check(f, store_folded(f->store, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].writer, 1);
    assert_int_equal(rows[0].last_id, event_id(1, 4));
}
TEST(test_folded__is_the_last_event_that_the_projections_have)
{
    on_every_store(folded_upto);
}

static void only_with_bodies(struct fixture *f)
{
    const struct segment_page page = {.upto = INT64_MAX, .only_bodies = true};
    struct segment_row *rows = NULL;
    size_t n = 0;
    append(f, intent(event_id(1, 1), ID "000001"));
    append(f, with_body(intent(event_id(1, 2), ID "000001"), "{}"));
    check(f, store_segments(f->store, &page, 50, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].id, event_id(1, 2));
    assert_int_equal(rows[0].n, 1);
    assert_null(rows[0].bodies.p);
}
TEST(test_segments__may_be_only_those_with_bodies)
{
    on_every_store(only_with_bodies);
}

static size_t page_of(struct fixture *f, size_t events, unsigned limit)
{
    const struct segment_page page = {.upto = INT64_MAX, .events = events};
    struct segment_row *rows = NULL;
    size_t n = 0;
    check(f, store_segments(f->store, &page, limit, f->mem, &rows, &n, &f->err));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(rows[i].id, event_id(1, (int64_t)i + 1));
    return n;
}

static void end_at_a_number_of_events(struct fixture *f)
{
    for (int i = 1; i <= 50; i++)
        append(f, intent(event_id(1, i), ID "000001"));
    assert_int_equal(page_of(f, 0, 100), 50);
    assert_int_equal(page_of(f, 0, 40), 40);
    assert_int_equal(page_of(f, 30, 100), 30);
    assert_int_equal(page_of(f, 1, 100), 1);
    assert_int_equal(page_of(f, 50, 100), 50);
    assert_int_equal(page_of(f, 51, 100), 50);
}
TEST(test_segments__of_a_page_have_so_many_events)
{
    on_every_store(end_at_a_number_of_events);
}

static bool begins(struct fixture *f, int64_t at)
{
    struct retention_state row = {at};
    struct store_op op = op_retention_begin(&row);
    bool ok = store_write(f->store, &op, 1, &f->err);
    assert_int_equal(op.verdict, ok ? VERDICT_OK : VERDICT_STALE);
    assert_true(ok || f->err.code == ERR_CONFLICT);
    return ok;
}

static void versions(struct fixture *f)
{
    struct hold_row hold = {.id = STR("00000000-0000-7000-9000-000000000001"),
                            .tenant = STR("acme"),
                            .target = STR(ID "000001"),
                            .made_by = STR("local"),
                            .created_ms = NOW};
    int64_t before = version(f);
    create(f, &alice, 1);
    assert_true(begins(f, before));
    assert_false(begins(f, before));
    before = version(f);
    assert_int_equal(write_one(f, op_hold_put(&hold)), VERDICT_OK);
    assert_false(begins(f, before));
    assert_true(begins(f, version(f)));
}
TEST(test_retention_begin__is_refused_after_another_removal_or_a_new_hold)
{
    on_every_store(versions);
}

static void refused_whole(struct fixture *f)
{
    struct retention_state row = {version(f) + 1};
    struct segment_row drop = {.id = event_id(1, 1)};
    struct store_op ops[] = {op_retention_begin(&row), op_segment_drop(&drop)};
    size_t n = 0;
    two_calls(f);
    assert_false(store_write(f->store, ops, 2, &f->err));
    events(f, &n);
    assert_int_equal(n, 4);
}
TEST(test_removal__that_is_stale_changes_nothing)
{
    on_every_store(refused_whole);
}

static void checkpoint(struct fixture *f, const char *tenant, int64_t first, int64_t last)
{
    struct removed_row row = {.writer = 1,
                              .tenant = str_of(tenant),
                              .first_seq = first,
                              .last_seq = last,
                              .first_id = event_id(1, first),
                              .last_id = event_id(1, last),
                              .oldest_ms = NOW + first,
                              .newest_ms = NOW + last,
                              .by_age = last - first + 1,
                              .removed_ms = NOW,
                              .rule = STR("keep 90d"),
                              .after = {2},
                              .seal = {3}};
    assert_int_equal(write_one(f, op_removed_put(&row)), VERDICT_OK);
}

static void checkpoints(struct fixture *f)
{
    struct removed_row *rows = NULL;
    size_t n = 0;
    checkpoint(f, "acme", 1, 10);
    checkpoint(f, "acme", 20, 30);
    checkpoint(f, "umbrella", 5, 6);
    check(f, store_removed(f->store, 1, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 3);
    assert_int_equal(rows[0].last_seq, 10);
    assert_int_equal(rows[1].first_id, event_id(1, 20));
    assert_int_equal(rows[1].newest_ms, NOW + 30);
    assert_int_equal(rows[1].by_age, 11);
    assert_int_equal(rows[1].removed_ms, NOW);
    assert_str(rows[1].rule, "keep 90d");
    assert_int_equal(rows[1].before[0], 0);
    assert_int_equal(rows[1].after[0], 2);
    assert_int_equal(rows[1].seal[0], 3);
    checkpoint(f, "acme", 1, 40);
    check(f, store_removed(f->store, 0, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].last_seq, 40);
    assert_str(rows[1].tenant, "umbrella");
    check(f, store_removed(f->store, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 0);
}
TEST(test_removed_put__replaces_the_checkpoints_that_it_covers)
{
    on_every_store(checkpoints);
}

static void add(struct fixture *f, enum tally_kind kind, int64_t at, int64_t by)
{
    struct tally_row row = {kind, STR("acme"), at, by, 10 * by, 100 * by};
    assert_int_equal(write_one(f, op_tally_add(&row)), VERDICT_OK);
}

static void sums(struct fixture *f)
{
    struct tally_row *rows = NULL;
    size_t n = 0;
    add(f, TALLY_BODIES_BY_AGE, 7, 2);
    add(f, TALLY_BODIES_BY_AGE, 3, 1);
    add(f, TALLY_BODIES_BY_AGE, 7, 3);
    add(f, TALLY_BY_AGE, 0, 3);
    check(f, store_tallies(f->store, TALLY_BODIES_BY_AGE, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].at, 3);
    assert_int_equal(rows[1].events, 5);
    assert_int_equal(rows[1].bytes, 50);
    assert_int_equal(rows[1].body_bytes, 500);
    add(f, TALLY_BODIES_BY_AGE, 7, -5);
    check(f, store_tallies(f->store, TALLY_BODIES_BY_AGE, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
}
TEST(test_tally_add__adds_and_forgets_what_is_zero)
{
    on_every_store(sums);
}

static void space(struct fixture *f)
{
    struct file_space space = {0};
    check(f, store_file_space(f->store, &space, &f->err));
    assert_true(space.free <= space.bytes);
    check(f, store_file_shrink(f->store, 1 << 20, &f->err));
}
TEST(test_file_space__can_be_asked_for)
{
    on_every_store(space);
}
