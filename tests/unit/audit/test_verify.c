/* SPDX-License-Identifier: Apache-2.0 */
/* Verification against a database somebody has been at: whatever was done to it is found, and the
 * first bad event is named. */
#include "audit_db.h"

#include "audit/event_id.h"
#include "audit/source.h"
#include "base/random.h"
#include "store/migrate.h"
#include "store/record.h"
#include "store/segment.h"
#include "store/sqlite_impl.h"

#include <sqlite3.h>

#define TAMPERINGS 200
#define WRITERS 3
#define PER_WRITER 21 /* 18 events and 3 anchors */

static const char *const bodies[] = {"{\"a\":1}", "{}", "[\"x\"]"};

static void write_some(struct audit_db *db, int n)
{
    static const struct str tenants[] = {STR("default"), STR("acme"), STR("zoo")};
    for (int i = 0; i < n; i += 2) {
        struct event_row intent = audit_db_event(EVENT_INTENT, tenants[i % 3]), outcome;
        audit_db_body(&intent, str_of(bodies[i % 3]));
        intent.session_id = STR("0190-0001");
        intent.carrier = STR("header");
        audit_db_write(db, (struct event_row *[]){&intent}, 1);
        outcome = audit_db_event(EVENT_OUTCOME, tenants[i % 3]);
        outcome.exec = intent.id;
        outcome.outcome = STR("ok");
        outcome.error = i % 4 ? STR_NONE : STR("");
        outcome.duration_us = 1234 + i;
        audit_db_write(db, (struct event_row *[]){&outcome}, 1);
    }
}

/* Three writers, each of them anchored three times, the last anchor being its last event. */
static void fill(struct audit_db *db)
{
    audit_db_open(db, false);
    for (int w = 0; w < WRITERS; w++) {
        if (w > 0)
            audit_db_start(db);
        for (int i = 0; i < 3; i++) {
            write_some(db, 6);
            audit_db_anchor(db);
        }
    }
    store_close(db->store);
    db->store = NULL;
}

static enum event_walk verify_one(void *arg, const struct event_row *e, struct error *err)
{
    return chain_verify_event(arg, e, err) ? EVENT_WALK_ON : EVENT_WALK_FAIL;
}

static bool verify(struct audit_db *db, const char *name, struct chain_report *ret,
                   struct error *err)
{
    char path[128];
    struct store *store;
    struct store_config config = {.path = audit_db_path(db, name, path), .read_only = true};
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    must(store_open_sqlite(&config, &store, &must_err));
    struct event_source *source = event_source_of_store(store);
    struct chain_verifier *v = chain_verifier_new(db->chain);
    bool ok = event_source_walk(source, &filter, verify_one, v, err) &&
              chain_verify_end(v, buf_str(&db->anchor_lines), err);
    *ret = chain_verified(v);
    chain_verifier_free(v);
    event_source_close(source);
    return ok;
}

static void copy_database(struct audit_db *db)
{
    char command[256];
    snprintf(command, sizeof(command), "rm -f %s/t.db* && cp %s/holdfast.db %s/t.db", db->dir,
             db->dir, db->dir);
    assert_int_equal(system(command), 0);
}

/* Did it change anything? */
static bool try_sql(struct audit_db *db, const char *sql)
{
    char path[128], *message = NULL;
    sqlite3 *raw;
    audit_db_path(db, "t.db", path);
    assert_int_equal(sqlite3_open(path, &raw), SQLITE_OK);
    assert_int_equal(sq_add_unpacked(raw), SQLITE_OK);
    if (sqlite3_exec(raw, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    bool changed = sqlite3_total_changes(raw) > 0;
    sqlite3_close(raw);
    return changed;
}

static void run_sql(struct audit_db *db, const char *sql)
{
    assert_true(try_sql(db, sql));
}

/* Events as they were stored before they were packed, and still may be. */
static void lay_open(struct audit_db *db)
{
    run_sql(db, "UPDATE events SET records = unpacked(records), bodies = unpacked(bodies), "
                "packed = 0");
}

/* Makes t.db what copy_database() copies. */
static void keep_copy(struct audit_db *db)
{
    char command[256];
    snprintf(command, sizeof(command), "rm %s/holdfast.db* && cp %s/t.db %s/holdfast.db", db->dir,
             db->dir, db->dir);
    assert_int_equal(system(command), 0);
}

static int64_t random_event(void)
{
    return event_id_make(1 + (int64_t)random_below(WRITERS), 1 + (int64_t)random_below(PER_WRITER));
}

/* Each writes the SQL that does the deed and returns the event that must be named.  Every event was
 * written by itself, so its row holds nothing else. */
static int64_t edit_column(char *sql, size_t n)
{
    static const char *const sets[] = {
        "records = CAST(records || x'00' AS BLOB)",
        "records = substr(records, 1, length(records) - 1)",
        "records = substr(records, 1, 20)",
        "records = x''",
        "bodies = CAST(bodies || ' ' AS BLOB)",
    };
    int64_t id = random_event();
    snprintf(sql, n, "UPDATE events SET %s WHERE id = %lld", sets[random_below(countof(sets))],
             (long long)id);
    return id;
}

/* Any byte, to any other value. */
static int64_t edit_record(char *sql, size_t n)
{
    int64_t id = random_event();
    unsigned at = 1 + (unsigned)random_below(100);
    snprintf(
        sql, n,
        "UPDATE events SET records = CAST(substr(records, 1, %u) || CASE substr(records, %u, 1) "
        "WHEN x'%02x' THEN x'%02x' ELSE x'%02x' END || substr(records, %u) AS BLOB) "
        "WHERE id = %lld",
        at - 1, at, at * 7 & 0xff, (at * 7 + 1) & 0xff, at * 7 & 0xff, at + 1, (long long)id);
    return id;
}

static int64_t move_event(char *sql, size_t n)
{
    int64_t id = random_event();
    snprintf(sql, n, "UPDATE events SET id = id + 1000 WHERE id = %lld", (long long)id);
    return id;
}

static int64_t delete_event(char *sql, size_t n)
{
    int64_t id = random_event();
    snprintf(sql, n, "DELETE FROM events WHERE id = %lld", (long long)id);
    return id;
}

static int64_t swap_events(char *sql, size_t n)
{
    int64_t a = random_event(), b = random_event();
    while (a == b)
        b = random_event();
    snprintf(
        sql, n,
        "UPDATE events SET id = -1 WHERE id = %lld; UPDATE events SET id = %lld WHERE id = %lld;"
        "UPDATE events SET id = %lld WHERE id = -1",
        (long long)a, (long long)a, (long long)b, (long long)b);
    return a < b ? a : b;
}

static int64_t cut_tail(char *sql, size_t n)
{
    int64_t id = random_event();
    snprintf(sql, n, "DELETE FROM events WHERE id >= %lld AND id < %lld", (long long)id,
             (long long)event_id_make(event_id_writer(id) + 1, 0));
    return id;
}

TEST(test_verify__names_the_first_bad_event_after_any_tampering)
{
    static int64_t (*const deeds[])(char *sql, size_t n) = {edit_column,  edit_record, move_event,
                                                            delete_event, swap_events, cut_tail};
    struct audit_db db;
    struct chain_report report;
    fill(&db);
    random_set_fake(20261115);
    for (int i = 0; i < TAMPERINGS; i++) {
        char sql[512], id[EVENT_ID_TEXT], want[64];
        struct error err = {0};
        copy_database(&db);
        if (i % 4 < 2)
            lay_open(&db);
        int64_t bad = deeds[i % 2 ? 0 : i / 2 % countof(deeds)](sql, sizeof(sql));
        run_sql(&db, sql);
        if (verify(&db, "t.db", &report, &err))
            fail_msg("not found: %s", sql);
        assert_int_equal(err.code, ERR_CHAIN_BROKEN);
        snprintf(want, sizeof(want), "event %s ", event_id_format(bad, id));
        if (strncmp(err.text, want, strlen(want)) != 0)
            fail_msg("%s\nshould name %s, says: %s", sql, want, err.text);
    }
    random_set_real();
    audit_db_close(&db);
}

TEST(test_verify__an_untouched_database_is_fine_and_counted)
{
    struct audit_db db;
    struct chain_report report;
    struct error err;
    fill(&db);
    if (!verify(&db, "holdfast.db", &report, &err))
        fail_msg("%s", err.text);
    assert_int_equal(report.events, WRITERS * PER_WRITER);
    assert_int_equal(report.writers, WRITERS);
    assert_int_equal(report.anchors, WRITERS * 3);
    assert_int_equal(report.bodies_deleted, 0);
    assert_int_equal(report.last_anchor_ms, 1700000001000);
    assert_true(report.unproven < report.events);
    audit_db_close(&db);
}

TEST(test_verify__deleted_bodies_are_fine_and_counted)
{
    struct audit_db db;
    struct chain_report report;
    struct error err;
    fill(&db);
    copy_database(&db);
    lay_open(&db);
    run_sql(&db, "UPDATE events SET bodies = NULL WHERE substr(records, 43, 1) = x'00'");
    if (!verify(&db, "t.db", &report, &err))
        fail_msg("%s", err.text);
    assert_int_equal(report.bodies_deleted, WRITERS * 9);
    audit_db_close(&db);
}

TEST(test_verify__an_empty_database_contradicts_its_anchor_file)
{
    struct audit_db db;
    struct chain_report report;
    struct error err;
    fill(&db);
    copy_database(&db);
    run_sql(&db, "DELETE FROM events");
    assert_false(verify(&db, "t.db", &report, &err));
    assert_non_null(strstr(err.text, "event 1.1 is missing"));
    buf_reset(&db.anchor_lines);
    assert_true(verify(&db, "t.db", &report, &err));
    audit_db_close(&db);
}

/* Restored from a backup and gone on with: the same numbers, other events. */
TEST(test_verify__a_replaced_end_is_found_by_the_anchor_file)
{
    struct audit_db db;
    struct chain_report report;
    struct error err;
    audit_db_open(&db, false);
    write_some(&db, 6);
    audit_db_anchor(&db);
    store_close(db.store);
    copy_database(&db);
    struct store_config config = {0};
    char path[128];
    for (int i = 0; i < 2; i++) {
        /* The lost timeline first, then the restored one, which writes something else. */
        config.path = audit_db_path(&db, i == 0 ? "holdfast.db" : "t.db", path);
        must(store_open_sqlite(&config, &db.store, &must_err));
        must(chain_load(db.chain, db.store, &must_err));
        size_t kept = db.anchor_lines.n;
        write_some(&db, i == 0 ? 6 : 10);
        audit_db_anchor(&db);
        if (i == 1)
            db.anchor_lines.n = kept;
        store_close(db.store);
    }
    db.store = NULL;
    assert_false(verify(&db, "t.db", &report, &err));
    assert_non_null(strstr(err.text, "event 1.14 is not the anchor"));
    audit_db_close(&db);
}

TEST(test_verify__a_torn_line_of_the_anchor_file_vouches_for_nothing)
{
    struct audit_db db;
    struct chain_report report;
    struct error err;
    fill(&db);
    buf_addz(&db.anchor_lines, "{\"id\":\"9.9\",\"ten\n");
    buf_addz(&db.anchor_lines, "{\"id\":\"9.9\",\"tenant\":\"_system\",\"seq\":9,");
    if (!verify(&db, "holdfast.db", &report, &err))
        fail_msg("%s", err.text);
    audit_db_close(&db);
}

enum { EVENTS = 12 };

/* Many events in one row. */
static void fill_one_segment(struct audit_db *db, struct event_row events[EVENTS])
{
    struct event_row *pointers[EVENTS];
    struct chain_report report;
    audit_db_open(db, false);
    for (int i = 0; i < EVENTS; i++) {
        events[i] = audit_db_event(EVENT_NOTE, STR("acme"));
        audit_db_body(&events[i], STR("{\"n\":1}"));
        pointers[i] = &events[i];
    }
    audit_db_write(db, pointers, EVENTS);
    store_close(db->store);
    db->store = NULL;
    copy_database(db);
    must(verify(db, "t.db", &report, &must_err));
    assert_int_equal(report.events, EVENTS);
}

static void write_edit(char *sql, size_t n, const char *column, size_t at)
{
    snprintf(sql, n,
             "UPDATE events SET %s = CAST(substr(%s, 1, %zu) || CASE "
             "substr(%s, %zu, 1) WHEN x'55' THEN x'aa' ELSE x'55' END || "
             "substr(%s, %zu) AS BLOB)",
             column, column, at - 1, column, at, column, at + 1);
}

/* A changed byte is laid to the event it belongs to. */
TEST(test_verify__names_the_event_in_its_segment)
{
    struct event_row events[EVENTS];
    struct audit_db db;
    struct chain_report report;
    struct error err;
    fill_one_segment(&db, events);
    lay_open(&db);
    keep_copy(&db);
    char record[512];
    assert_true(record_room(&events[0]) <= sizeof(record));
    size_t frame = 40 + record_write(&events[0], record);
    for (size_t at = 1; at <= EVENTS * frame; at += 7) {
        char sql[512], want[32];
        copy_database(&db);
        write_edit(sql, sizeof(sql), "records", at);
        run_sql(&db, sql);
        if (verify(&db, "t.db", &report, &err))
            fail_msg("not found: %s", sql);
        assert_int_equal(err.code, ERR_CHAIN_BROKEN);
        snprintf(want, sizeof(want), "event 1.%zu ", (at - 1) / frame + 1);
        if (strncmp(err.text, want, strlen(want)) != 0)
            fail_msg("%s\nshould name %s, says: %s", sql, want, err.text);
    }
    copy_database(&db);
    run_sql(&db, "UPDATE events SET bodies = CAST(substr(bodies, 1, 31) || 'x' || "
                 "substr(bodies, 33) AS BLOB)");
    assert_false(verify(&db, "t.db", &report, &err)); /* bodies of seven bytes */
    assert_true(strncmp(err.text, "event 1.5 ", 10) == 0);
    audit_db_close(&db);
}

/* Packed, a byte may stand for several events; one of the segment is named, whatever was changed.
 */
TEST(test_verify__no_changed_byte_of_a_packed_segment_goes_unseen)
{
    static const char *const columns[] = {"records", "bodies"};
    struct event_row events[EVENTS];
    struct audit_db db;
    struct chain_report report;
    fill_one_segment(&db, events);
    for (size_t c = 0; c < countof(columns); c++) {
        bool within = true;
        for (size_t at = 1; within; at += 7) {
            char sql[512];
            struct error err = {0};
            int named = 0;
            copy_database(&db);
            write_edit(sql, sizeof(sql), columns[c], at);
            run_sql(&db, sql);
            bool ok = verify(&db, "t.db", &report, &err);
            snprintf(sql, sizeof(sql), "DELETE FROM events WHERE length(%s) > %zu", columns[c],
                     at + 6);
            if (ok || sscanf(err.text, "event 1.%d ", &named) != 1 || named < 1 || named > EVENTS)
                fail_msg("%s, byte %zu: %s", columns[c], at, ok ? "unseen" : err.text);
            within = try_sql(&db, sql);
        }
    }
    audit_db_close(&db);
}

/* An older Holdfast reads the events again, and a newer one after it. */
TEST(test_verify__events_outlive_the_way_back_to_before_they_were_packed)
{
    struct event_row events[EVENTS];
    struct audit_db db;
    struct chain_report report;
    struct migrations known;
    struct arena *mem = arena_new(1 << 20);
    sqlite3 *raw;
    char path[128];
    fill_one_segment(&db, events);
    audit_db_path(&db, "t.db", path);
    assert_int_equal(sqlite3_open(path, &raw), SQLITE_OK);
    struct migrate_driver driver = sq_migrate_driver(&raw);
    must(migrate_load("sqlite", NULL, mem, &known, &must_err));
    must(migrate_down(&driver, &known, 10, &must_err));
    sqlite3_stmt *st;
    assert_int_equal(
        sqlite3_prepare_v2(raw, "SELECT CAST(bodies AS TEXT) FROM events", -1, &st, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_memory_equal(sqlite3_column_text(st, 0), "{\"n\":1}{\"n\":1}", 14);
    sqlite3_finalize(st);
    must(migrate_up(&driver, &known, &must_err));
    sqlite3_close(raw);
    must(verify(&db, "t.db", &report, &must_err));
    assert_int_equal(report.events, EVENTS);
    assert_int_equal(report.bodies_deleted, 0);
    arena_free(mem);
    audit_db_close(&db);
}

TEST(test_verify__damaged_events_are_not_made_worse_by_the_way_back)
{
    struct event_row events[EVENTS];
    struct audit_db db;
    struct migrations known;
    struct error err;
    struct arena *mem = arena_new(1 << 20);
    sqlite3 *raw;
    char path[128], sql[512];
    fill_one_segment(&db, events);
    write_edit(sql, sizeof(sql), "bodies", 6); /* of the checksum: all is still there */
    run_sql(&db, sql);
    audit_db_path(&db, "t.db", path);
    assert_int_equal(sqlite3_open(path, &raw), SQLITE_OK);
    struct migrate_driver driver = sq_migrate_driver(&raw);
    must(migrate_load("sqlite", NULL, mem, &known, &must_err));
    assert_false(migrate_down(&driver, &known, 10, &err));
    assert_non_null(strstr(err.text, "some events are damaged"));
    sqlite3_close(raw);
    assert_true(try_sql(&db, "UPDATE events SET packed = packed WHERE packed"));
    arena_free(mem);
    audit_db_close(&db);
}

/* Verifies one segment as it stands. */
static bool verify_segment(struct audit_db *db, const struct segment *s, struct error *err)
{
    struct segment_walk walk = {
        .id = event_id_make(1, 1), .records = buf_str(&s->records), .bodies = buf_str(&s->bodies)};
    struct chain_verifier *v = chain_verifier_new(db->chain);
    struct event_row e;
    bool ok = true;
    while (ok && segment_next(&walk, &e))
        ok = chain_verify_event(v, &e, err);
    chain_verifier_free(v);
    return ok;
}

/* Flips each bit from..upto; one of the events first..last must be named. */
static void flip_bits(struct audit_db *db, struct segment *s, struct buf *in, size_t from,
                      size_t upto, int first, int last)
{
    struct error err = {0};
    for (size_t bit = 8 * from; bit < 8 * upto; bit++) {
        int named = 0;
        in->p[bit / 8] ^= (char)(1u << bit % 8);
        if (verify_segment(db, s, &err))
            fail_msg("bit %zu of event 1.%d was flipped unseen", bit - 8 * from, first);
        in->p[bit / 8] ^= (char)(1u << bit % 8);
        assert_int_equal(err.code, ERR_CHAIN_BROKEN);
        assert_int_equal(sscanf(err.text, "event 1.%d ", &named), 1);
        if (named < first || named > last)
            fail_msg("bit %zu of event 1.%d: %s", bit - 8 * from, first, err.text);
    }
}

/* A body's length that reads as "none" is a deleted body, which shifts those behind it: there one
 * of them is named. */
TEST(test_verify__no_flipped_bit_goes_unseen)
{
    static const char *const texts[] = {"{\"abcdefgh\":1234567890,\"abcdef\":1}", NULL, "{}",
                                        "[1]"};
    struct event_row events[countof(texts)], *pointers[countof(texts)];
    size_t record = 0, body = 0;
    struct segment s;
    struct audit_db db;
    audit_db_open(&db, false);
    for (size_t i = 0; i < countof(texts); i++) {
        events[i] = audit_db_event(EVENT_NOTE, STR("acme"));
        if (texts[i])
            audit_db_body(&events[i], str_of(texts[i]));
        pointers[i] = &events[i];
    }
    audit_db_write(&db, pointers, countof(texts));
    segment_init(&s);
    for (size_t i = 0; i < countof(texts); i++)
        segment_add(&s, &events[i]);
    must(verify_segment(&db, &s, &must_err));
    for (int i = 0; i < (int)countof(texts); i++) {
        size_t end = record + 40 + record_write(&events[i], (char[1024]){0});
        size_t body_end = body + events[i].body.n;
        flip_bits(&db, &s, &s.records, record, record + 4, i + 1, i + 1);
        flip_bits(&db, &s, &s.records, record + 4, record + 8, i + 1, countof(texts));
        flip_bits(&db, &s, &s.records, record + 8, end, i + 1, i + 1);
        flip_bits(&db, &s, &s.bodies, body, body_end, i + 1, i + 1);
        record = end;
        body = body_end;
    }
    assert_int_equal(record, s.records.n);
    assert_int_equal(body, s.bodies.n);
    segment_release(&s);
    audit_db_close(&db);
}
