/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of retention removes, and what the verification says of it afterwards, also after somebody
 * has been at the checkpoints. */
#include "audit_db.h"

#include "audit/event_id.h"
#include "audit/source.h"
#include "config/config.h"
#include "holds/store/family.h"
#include "holds/store/ops.h"
#include "retention/plan.h"
#include "retention/store/family.h"

#include <sqlite3.h>

#define T0 INT64_C(1700000000000)
#define DAY INT64_C(86400000)
#define RULES                                                                                      \
    "{\"holdfast\":{\"audit\":{\"keep\":\"10d\",\"bodies\":\"2d\"},"                               \
    "\"tenants\":{\"long\":{\"audit\":{\"keep\":\"100d\"}}}}}"

__attribute__((constructor)) static void register_families(void)
{
    store_family_add(&holds_store);
    store_family_add(&retention_store);
}

static void fold(struct audit_db *db)
{
    for (bool left = true; left;)
        must(store_fold(db->store, 1000, &left, &must_err));
}

static int64_t begin(struct audit_db *db, const char *tenant, int64_t at_ms, const char *session)
{
    struct event_row e = audit_db_event(EVENT_INTENT, str_of(tenant));
    e.at_ms = at_ms;
    e.session_id = str_of(session);
    audit_db_body(&e, STR("{\"arguments\":{}}"));
    audit_db_write(db, (struct event_row *[]){&e}, 1);
    return e.id;
}

static void end(struct audit_db *db, const char *tenant, int64_t at_ms, const char *session,
                int64_t exec)
{
    struct event_row e = audit_db_event(EVENT_OUTCOME, str_of(tenant));
    e.at_ms = at_ms;
    e.session_id = str_of(session);
    e.exec = exec;
    e.outcome = STR("ok");
    audit_db_body(&e, STR("{\"r\":1}"));
    audit_db_write(db, (struct event_row *[]){&e}, 1);
}

static void call(struct audit_db *db, const char *tenant, int64_t at_ms)
{
    end(db, tenant, at_ms + 5, "0190-0001", begin(db, tenant, at_ms, "0190-0001"));
}

static bool write_removal(struct audit_db *db, struct removal *r)
{
    struct error err;
    return r->n < 2 || store_write(db->store, r->ops, r->n, &err);
}

static size_t slices; /* of the last run that removed something */

/* One run by these rules; the number of events that went. */
static size_t run_by(struct audit_db *db, const char *rules, int64_t now_ms)
{
    struct config *c = NULL;
    size_t gone = 0;
    bool more = true;
    slices = 0;
    must(config_parse(str_of(rules), STR("h.json"), NULL, &c, &must_err));
    struct plan *p = plan_new(db->chain, rules_new(c, now_ms));
    fold(db);
    must(plan_begin(p, db->store, &must_err));
    while (more) {
        struct arena *mem = arena_new(SIZE_MAX / 4);
        struct removal r;
        must(plan_next(p, db->store, mem, &r, &more, &must_err));
        assert_true(write_removal(db, &r));
        if (r.n > 1)
            plan_written(p);
        slices += r.changes != 0;
        gone += r.whole;
        arena_free(mem);
    }
    assert_null(plan_complaint(p));
    plan_free(p);
    config_unref(c);
    return gone;
}

static size_t run_at(struct audit_db *db, int64_t now_ms)
{
    return run_by(db, RULES, now_ms);
}

static enum event_walk verify_one(void *arg, const struct event_row *e, struct error *err)
{
    return chain_verify_event(arg, e, err) ? EVENT_WALK_ON : EVENT_WALK_FAIL;
}

static bool verify(struct audit_db *db, struct chain_report *ret, struct error *err)
{
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    struct event_source *source = event_source_borrowing(db->store);
    struct chain_verifier *v = chain_verifier_new(db->chain);
    chain_verifier_store(v, db->store);
    bool ok = event_source_walk(source, &filter, verify_one, v, err) &&
              chain_verify_end(v, buf_str(&db->anchor_lines), err);
    *ret = chain_verified(v);
    chain_verifier_free(v);
    event_source_close(source);
    return ok;
}

static struct chain_report proven(struct audit_db *db)
{
    struct chain_report report;
    must(verify(db, &report, &must_err));
    return report;
}

static size_t stored(struct audit_db *db, int64_t exec)
{
    struct event_filter filter = {.kind = -1, .exec = exec};
    struct arena *mem = arena_new(1 << 20);
    struct event_row *rows = NULL;
    size_t n = 0;
    must(store_events_page(db->store, &filter, 10, mem, &rows, &n, &must_err));
    arena_free(mem);
    return n;
}

/* Two writers; calls of three tenants, one every six hours for 20 days, and an anchor a day. */
static void fill(struct audit_db *db)
{
    static const char *const tenants[] = {"default", "acme", "long"};
    audit_db_open(db, false);
    for (int i = 0; i < 80; i++) {
        if (i == 40)
            audit_db_start(db);
        call(db, tenants[i % 3], T0 + i * DAY / 4);
        if (i % 4 == 3)
            audit_db_anchor(db);
    }
    audit_db_anchor(db);
}

TEST(test_plan__what_is_too_old_goes_and_the_chain_is_proven)
{
    struct audit_db db;
    fill(&db);
    struct chain_report before = proven(&db);
    assert_int_equal(before.removed, 0);
    size_t gone = run_at(&db, T0 + 20 * DAY);
    struct chain_report after = proven(&db);
    assert_true(gone > 60);
    assert_int_equal(after.removed, gone);
    assert_int_equal(after.events, before.events - gone);
    assert_true(after.unproven <= before.unproven);
    assert_int_equal(after.writers, 2);
    assert_true(after.bodies_deleted > 0);
    assert_int_equal(run_at(&db, T0 + 20 * DAY), 0);
    gone += run_at(&db, T0 + 25 * DAY);
    assert_int_equal(proven(&db).removed, gone);
    gone += run_at(&db, T0 + 500 * DAY);
    after = proven(&db);
    assert_int_equal(after.removed, gone);
    assert_int_equal(after.events, 2); /* the last event of each writer */
    audit_db_start(&db);
    call(&db, "acme", T0 + 501 * DAY);
    assert_int_equal(proven(&db).events, 4);
    audit_db_close(&db);
}

/* Ages of what is stored after a run. */
static void check_ages(struct audit_db *db, int64_t now_ms)
{
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_row *rows = NULL;
    size_t n = 0, calls[3] = {0};
    must(store_events_page(db->store, &filter, 200, mem, &rows, &n, &must_err));
    for (size_t i = 0; i < n; i++) {
        bool is_long = str_eq(rows[i].tenant, STR("long"));
        if (rows[i].kind == EVENT_ANCHOR)
            continue;
        calls[is_long]++;
        if (!is_long)
            assert_true(rows[i].at_ms >= now_ms - 10 * DAY);
        assert_int_equal(rows[i].body.p != NULL, rows[i].at_ms >= now_ms - 2 * DAY);
    }
    assert_int_equal(calls[1], 26 * 2); /* all calls of the tenant that keeps them longer */
    assert_true(calls[0] >= 26 * 2);    /* those of ten days of the others */
    arena_free(mem);
}

TEST(test_plan__nothing_younger_than_the_rule_of_its_tenant_goes)
{
    struct audit_db db;
    fill(&db);
    run_at(&db, T0 + 20 * DAY);
    check_ages(&db, T0 + 20 * DAY);
    audit_db_close(&db);
}

TEST(test_plan__an_open_intent_stays_and_an_execution_goes_whole)
{
    struct audit_db db;
    audit_db_open(&db, false);
    int64_t open = begin(&db, "default", T0, "0190-0001");
    int64_t slow = begin(&db, "default", T0, "0190-0001");
    call(&db, "default", T0 + 1);
    end(&db, "default", T0 + 15 * DAY, "0190-0001", slow);
    call(&db, "default", T0 + 15 * DAY);
    assert_int_equal(run_at(&db, T0 + 20 * DAY), 2);
    assert_int_equal(stored(&db, open), 1);
    assert_int_equal(stored(&db, slow), 2);
    proven(&db);
    end(&db, "default", T0 + 20 * DAY, "0190-0001", open);
    call(&db, "default", T0 + 20 * DAY);
    assert_int_equal(run_at(&db, T0 + 26 * DAY), 4); /* slow, and the call beside its end */
    assert_int_equal(stored(&db, open), 2);
    assert_int_equal(stored(&db, slow), 0);
    assert_int_equal(run_at(&db, T0 + 60 * DAY), 2); /* not the last event, so not its intent */
    proven(&db);
    audit_db_close(&db);
}

TEST(test_plan__what_is_held_stays_until_it_is_released)
{
    struct audit_db db;
    struct hold_row hold = {.id = STR("00000000-0000-7000-9000-000000000001"),
                            .tenant = STR("default"),
                            .kind = HOLD_USER,
                            .target = STR("00000000-0000-4000-a000-000000000001"),
                            .made_by = STR("local"),
                            .created_ms = T0};
    struct user_row user = {.id = hold.target,
                            .tenant = STR("default"),
                            .name = STR("ada"),
                            .role = ROLE_MEMBER,
                            .created_ms = T0};
    struct store_op ops[] = {{OP_USER_ENSURE, NULL, {.user = &user}}, op_hold_put(&hold)};
    audit_db_open(&db, false);
    must(store_write(db.store, ops, 2, &must_err));
    struct event_row e = audit_db_event(EVENT_NOTE, STR("default"));
    e.owner = STR("user:00000000-0000-4000-a000-000000000001");
    audit_db_body(&e, STR("{}"));
    call(&db, "default", T0);
    audit_db_write(&db, (struct event_row *[]){&e}, 1);
    call(&db, "default", T0);
    call(&db, "default", T0 + 15 * DAY);
    assert_int_equal(run_at(&db, T0 + 20 * DAY), 4);
    struct chain_report report = proven(&db);
    assert_int_equal(report.events, 3);
    assert_int_equal(report.bodies_deleted, 2);
    hold.released_ms = T0 + 20 * DAY;
    hold.released_by = STR("local");
    struct store_op release = op_hold_release(&hold);
    must(store_write(db.store, &release, 1, &must_err));
    assert_int_equal(run_at(&db, T0 + 20 * DAY), 1);
    assert_int_equal(proven(&db).removed, 5);
    audit_db_close(&db);
}

static void note_alone(struct audit_db *db, const char *owner, int64_t at_ms)
{
    struct event_row e = audit_db_event(EVENT_NOTE, STR("default"));
    e.at_ms = at_ms;
    e.owner = str_of(owner);
    audit_db_write(db, (struct event_row *[]){&e}, 1);
}

TEST(test_plan__events_that_were_written_one_by_one_go_in_few_slices)
{
    struct audit_db db;
    audit_db_open(&db, false);
    for (int i = 0; i < 1001; i++)
        note_alone(&db, "local", T0 + i);
    assert_int_equal(run_at(&db, T0 + 20 * DAY), 1000);
    assert_int_equal(slices, 5);
    proven(&db);
    audit_db_close(&db);
}

TEST(test_plan__many_gaps_are_more_slices_of_one_run)
{
    static const struct hold_row hold = {.id = STR("00000000-0000-7000-9000-000000000001"),
                                         .tenant = STR("default"),
                                         .kind = HOLD_USER,
                                         .target = STR("00000000-0000-4000-a000-000000000001"),
                                         .made_by = STR("local"),
                                         .created_ms = T0};
    struct hold_row held = hold;
    struct user_row user = {.id = hold.target,
                            .tenant = STR("default"),
                            .name = STR("ada"),
                            .role = ROLE_MEMBER,
                            .created_ms = T0};
    struct store_op ops[] = {{OP_USER_ENSURE, NULL, {.user = &user}}, op_hold_put(&held)};
    struct audit_db db;
    audit_db_open(&db, false);
    must(store_write(db.store, ops, 2, &must_err));
    for (int i = 0; i < 1001; i++)
        note_alone(&db, i % 2 ? "user:00000000-0000-4000-a000-000000000001" : "local", T0 + i);
    assert_int_equal(run_at(&db, T0 + 20 * DAY), 500);
    assert_true(slices <= 20);
    assert_int_equal(proven(&db).removed, 500);
    assert_int_equal(run_at(&db, T0 + 20 * DAY), 0);
    audit_db_close(&db);
}

TEST(test_plan__a_tampered_event_stays_as_evidence)
{
    struct audit_db db;
    struct config *c = NULL;
    struct removal r;
    bool more = true;
    fill(&db);
    fold(&db);
    struct segment_row drop = {.id = event_id_make(1, 5)};
    struct store_op op = op_segment_drop(&drop);
    must(store_write(db.store, &op, 1, &must_err));
    must(config_parse(STR(RULES), STR("h.json"), NULL, &c, &must_err));
    struct plan *p = plan_new(db.chain, rules_new(c, T0 + 20 * DAY));
    must(plan_begin(p, db.store, &must_err));
    while (more) {
        struct arena *mem = arena_new(SIZE_MAX / 4);
        must(plan_next(p, db.store, mem, &r, &more, &must_err));
        assert_true(write_removal(&db, &r));
        if (r.n > 1)
            plan_written(p);
        arena_free(mem);
    }
    assert_non_null(plan_complaint(p));
    assert_non_null(strstr(plan_complaint(p), "differs from its seal"));
    plan_free(p);
    config_unref(c);
    struct chain_report report;
    assert_false(verify(&db, &report, &must_err));
    assert_non_null(strstr(must_err.text, "event 1.5 is missing"));
    audit_db_close(&db);
}

#define BODY_RULES "{\"holdfast\":{\"audit\":{\"bodies\":\"2d\"}}}"
#define ALL_SIZE_RULES "{\"holdfast\":{\"audit\":{\"max_size\":\"1MiB\"}}}"
#define SIZE_RULES "{\"holdfast\":{\"tenants\":{\"default\":{\"audit\":{\"max_size\":\"1MiB\"}}}}}"

/* Events and bodies of a tenant. */
static struct size_row size_of(struct audit_db *db, const char *tenant)
{
    struct arena *mem = arena_new(1 << 20);
    struct size_row *rows = NULL, sum = {0};
    size_t n = 0;
    must(store_sizes_by_day(db->store, mem, &rows, &n, &must_err));
    for (size_t i = 0; i < n; i++) {
        if (!str_eq(rows[i].tenant, str_of(tenant)))
            continue;
        sum.events += rows[i].events;
        sum.event_bytes += rows[i].event_bytes;
        sum.bodies += rows[i].bodies;
        sum.body_bytes += rows[i].body_bytes;
    }
    arena_free(mem);
    return sum;
}

static void notes(struct audit_db *db, const char *tenant, size_t n, struct str body)
{
    struct event_row rows[60], *events[60];
    for (size_t i = 0; i < n; i += 60) {
        for (size_t k = 0; k < 60; k++) {
            events[k] = &rows[k];
            rows[k] = audit_db_event(EVENT_NOTE, str_of(tenant));
            rows[k].at_ms = T0 + (int64_t)(i + k) * 60000;
            if (body.n)
                audit_db_body(&rows[k], body);
        }
        audit_db_write(db, events, 60);
    }
}

TEST(test_plan__the_oldest_bodies_go_until_the_tenant_is_small_enough)
{
    static char text[20000];
    struct audit_db db;
    audit_db_open(&db, false);
    memset(text, 'x', sizeof(text));
    notes(&db, "default", 120, str_n(text, sizeof(text)));
    notes(&db, "acme", 120, str_n(text, sizeof(text)));
    assert_int_equal(run_by(&db, SIZE_RULES, T0 + DAY), 0);
    struct size_row left = size_of(&db, "default");
    assert_int_equal(left.events, 120);
    assert_true(left.event_bytes + left.body_bytes <= 1 << 20);
    assert_true(left.event_bytes + left.body_bytes + (int64_t)sizeof(text) > 1 << 20);
    assert_int_equal(size_of(&db, "acme").bodies, 120);
    struct chain_report report = proven(&db);
    assert_int_equal(report.bodies_deleted, 120 - left.bodies);
    assert_int_equal(run_by(&db, SIZE_RULES, T0 + DAY), 0);
    assert_int_equal(size_of(&db, "default").bodies, left.bodies);
    audit_db_close(&db);
}

TEST(test_plan__events_go_when_bodies_are_not_enough)
{
    struct audit_db db;
    audit_db_open(&db, false);
    notes(&db, "default", 15000, STR_NONE);
    notes(&db, "acme", 60, STR("{}"));
    fold(&db);
    int64_t before = size_of(&db, "default").event_bytes;
    assert_true(before > 1 << 20);
    size_t gone = run_by(&db, SIZE_RULES, T0 + DAY);
    struct size_row left = size_of(&db, "default");
    assert_int_equal(left.events, 15000 - gone);
    assert_true(left.event_bytes <= 1 << 20);
    assert_true(left.event_bytes + 1000 > 1 << 20);
    assert_int_equal(size_of(&db, "acme").bodies, 60);
    assert_int_equal(proven(&db).removed, gone);
    audit_db_close(&db);
}

TEST(test_plan__anchors_go_whole_for_their_size)
{
    struct audit_db db;
    audit_db_open(&db, false);
    call(&db, "default", T0);
    for (int i = 0; i < 8000; i++) {
        audit_db_anchor(&db);
        buf_reset(&db.anchor_lines);
    }
    fold(&db);
    struct size_row before = size_of(&db, "_system");
    assert_true(before.body_bytes > before.event_bytes);
    assert_true(before.event_bytes + before.body_bytes > 5 << 18);
    assert_true(run_by(&db, ALL_SIZE_RULES, INT64_C(4000000000000)) > 0);
    struct size_row left = size_of(&db, "_system");
    assert_true(left.event_bytes + left.body_bytes <= 1 << 20);
    assert_true(left.event_bytes + left.body_bytes + 2000 > 1 << 20);
    assert_int_equal(left.bodies, left.events);
    proven(&db);
    audit_db_close(&db);
}

static void run_sql(struct audit_db *db, const char *sql)
{
    char path[128], *message = NULL;
    sqlite3 *raw;
    audit_db_path(db, "holdfast.db", path);
    assert_int_equal(sqlite3_open(path, &raw), SQLITE_OK);
    if (sqlite3_exec(raw, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    assert_true(sqlite3_total_changes(raw) > 0);
    sqlite3_close(raw);
}

TEST(test_plan__a_damaged_segment_stays_and_no_event_tells_of_its_removal)
{
    struct audit_db db;
    struct tally_row *rows = NULL;
    size_t n = 0;
    audit_db_open(&db, false);
    notes(&db, "default", 60, STR("{}"));
    fold(&db);
    struct arena *mem = arena_new(1 << 20);
    const struct segment_page all = {.upto = INT64_MAX, .with_bodies = true};
    struct segment_row *segment = NULL;
    must(store_segments(db.store, &all, 1, mem, &segment, &n, &must_err));
    segment->bodies = arena_printf(mem, "%.*s}", STR_ARG(segment->bodies));
    struct store_op op = op_segment_put(segment);
    must(store_write(db.store, &op, 1, &must_err));
    assert_int_equal(run_by(&db, BODY_RULES, T0 + 5 * DAY), 0);
    must(store_tallies(db.store, TALLY_BODIES_BY_AGE, mem, &rows, &n, &must_err));
    assert_int_equal(n, 0);
    assert_int_equal(size_of(&db, "default").bodies, 60);
    arena_free(mem);
    audit_db_close(&db);
}

TEST(test_checkpoint__tampering_with_it_or_behind_it_is_found)
{
    static const struct {
        const char *sql, *says;
    } deeds[] = {
        {"UPDATE audit_removed SET last_seq = last_seq + 1 WHERE tenant = 'acme'", "was changed"},
        {"UPDATE audit_removed SET rule = 'keep 1d'", "was changed"},
        {"UPDATE audit_removed SET removed_ms = removed_ms - 1", "was changed"},
        {"UPDATE audit_removed SET after = before WHERE tenant = 'acme'", "was changed"},
        {"UPDATE audit_removed SET writer = 7", "was changed"},
        {"UPDATE audit_removed SET seal = zeroblob(32)", "was changed"},
        {"UPDATE audit_removed SET first_seq = 0 WHERE tenant = 'acme'", "was changed"},
        {"INSERT INTO audit_removed SELECT writer, tenant, first_seq + 1, last_seq, first_id, "
         "last_id, "
         "oldest_ms, newest_ms, by_age, by_size, removed_ms, rule, before, after, seal FROM "
         "audit_removed WHERE tenant = 'acme'",
         "was changed"},
        {"DELETE FROM audit_removed", "is missing"},
        {"DELETE FROM audit_removed WHERE tenant = 'acme'", "are missing"},
        {"DELETE FROM events WHERE id = (SELECT min(id) FROM events)", ""},
        {"DELETE FROM events WHERE id = (SELECT min(id) FROM events WHERE id > (1 << 40) + 80)",
         ""},
        {"DELETE FROM events WHERE id >> 40 = 1 AND id < (SELECT max(id) FROM events WHERE id >> "
         "40 = 1)",
         ""},
    };
    struct audit_db db;
    char command[400];
    fill(&db);
    assert_true(run_at(&db, T0 + 20 * DAY) > 0);
    struct str path = STR("");
    char at[128];
    path = audit_db_path(&db, "holdfast.db", at);
    for (size_t i = 0; i < countof(deeds); i++) {
        struct store_config config = {.path = path};
        struct chain_report report;
        store_close(db.store);
        snprintf(command, sizeof(command), "cp %s/holdfast.db %s/kept.db", db.dir, db.dir);
        assert_int_equal(system(command), 0);
        run_sql(&db, deeds[i].sql);
        must(store_open_sqlite(&config, &db.store, &must_err));
        if (verify(&db, &report, &must_err))
            fail_msg("%s went unnoticed", deeds[i].sql);
        assert_int_equal(must_err.code, ERR_CHAIN_BROKEN);
        if (!strstr(must_err.text, deeds[i].says))
            fail_msg("%s: %s", deeds[i].sql, must_err.text);
        store_close(db.store);
        snprintf(command, sizeof(command), "rm %s/holdfast.db*; mv %s/kept.db %s/holdfast.db",
                 db.dir, db.dir, db.dir);
        assert_int_equal(system(command), 0);
        must(store_open_sqlite(&config, &db.store, &must_err));
        proven(&db);
    }
    audit_db_close(&db);
}

/* The end of a chain that nothing follows, cut off behind the events of another tenant. */
TEST(test_checkpoint__hides_no_cut_end_of_another_chain)
{
    struct audit_db db;
    struct chain_report report;
    audit_db_open(&db, false);
    call(&db, "default", T0);
    call(&db, "long", T0);
    call(&db, "default", T0);
    call(&db, "default", T0 + 15 * DAY);
    assert_int_equal(run_at(&db, T0 + 20 * DAY), 4);
    proven(&db);
    struct segment_row drop[] = {{.id = event_id_make(1, 3)}, {.id = event_id_make(1, 4)}};
    struct store_op ops[] = {op_segment_drop(&drop[0]), op_segment_drop(&drop[1])};
    must(store_write(db.store, ops, 2, &must_err));
    assert_false(verify(&db, &report, &must_err));
    assert_non_null(strstr(must_err.text, "2 events of writer 1 are missing"));
    audit_db_close(&db);
}
