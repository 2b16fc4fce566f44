/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and seals: given once, without gaps, and taken back when the store did not keep them. */
#include "audit_db.h"

#include "audit/event_id.h"

#include <sys/stat.h>

static void write_key(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

TEST(test_chain_key__is_made_once_and_for_its_owner_alone)
{
    char dir[] = "/tmp/holdfast-key-XXXXXX", path[128];
    struct chain *first, *second;
    struct stat st;
    uint8_t zero[32] = {0}, a[32], b[32];
    struct event_row e = audit_db_event(EVENT_INTENT, STR("default"));
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/audit.key", dir);
    assert_false(chain_open(str_of(path), false, 1, &first, &must_err));
    assert_int_equal(must_err.code, ERR_CONFIG);
    must(chain_open(str_of(path), true, 1, &first, &must_err));
    must(chain_open(str_of(path), true, 1, &second, &must_err));
    chain_mac(first, zero, &e, a);
    chain_mac(second, zero, &e, b);
    assert_memory_equal(a, b, 32);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 65);
    chain_free(first);
    chain_free(second);
    unlink(path);
    rmdir(dir);
}

TEST(test_chain_key__is_refused_when_others_can_read_it_or_it_is_none)
{
    static const struct {
        const char *text;
        mode_t mode;
        const char *says;
    } cases[] = {
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", 0640, "chmod 600"},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", 0604, "chmod 600"},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n", 0600,
         "64 hex digits"},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n\n", 0600,
         "64 hex digits"},
        {"", 0600, "64 hex digits"},
    };
    char dir[] = "/tmp/holdfast-key-XXXXXX", path[128];
    struct chain *c;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/audit.key", dir);
    for (size_t i = 0; i < countof(cases); i++) {
        write_key(path, cases[i].text, cases[i].mode);
        assert_false(chain_open(str_of(path), true, 1, &c, &must_err));
        assert_non_null(strstr(must_err.text, cases[i].says));
    }
    unlink(path);
    rmdir(dir);
}

TEST(test_chain__numbers_per_writer_and_per_tenant_without_gaps)
{
    struct audit_db db;
    audit_db_open(&db, true);
    struct event_row a = audit_db_event(EVENT_INTENT, STR("a")),
                     b = audit_db_event(EVENT_OUTCOME, STR("b")),
                     c = audit_db_event(EVENT_NOTE, STR("a"));
    b.exec = 77;
    audit_db_write(&db, (struct event_row *[]){&a, &b, &c}, 3);
    assert_int_equal(a.id, event_id_make(db.writer, 1));
    assert_int_equal(b.id, event_id_make(db.writer, 2));
    assert_int_equal(c.id, event_id_make(db.writer, 3));
    assert_int_equal(a.seq, 1);
    assert_int_equal(b.seq, 1);
    assert_int_equal(c.seq, 2);
    assert_int_equal(a.exec, a.id);
    assert_int_equal(b.exec, 77);
    assert_int_equal(c.exec, c.id);
    assert_int_equal(chain_count(db.chain), 3);
    audit_db_close(&db);
}

TEST(test_chain__a_failed_write_takes_its_numbers_back)
{
    struct audit_db db;
    audit_db_open(&db, true);
    db.store = store_failing(db.store);
    struct event_row a = audit_db_event(EVENT_INTENT, STR("a")), b = a, c = a;
    audit_db_write(&db, (struct event_row *[]){&a}, 1);
    store_failing_set(db.store, 1, true);
    assert_false(audit_db_try_write(&db, (struct event_row *[]){&b}, 1, &must_err));
    assert_int_equal(chain_count(db.chain), 1);
    audit_db_write(&db, (struct event_row *[]){&c, &b}, 2);
    assert_int_equal(c.id, event_id_make(db.writer, 2));
    assert_int_equal(b.id, event_id_make(db.writer, 3));
    assert_int_equal(b.exec, b.id);
    assert_int_equal(b.seq, 3);
    audit_db_close(&db);
}

/* The commit went through, but we were told that it failed. */
TEST(test_chain__an_event_the_store_has_after_all_keeps_its_number)
{
    struct audit_db db;
    audit_db_open(&db, false);
    struct event_row a = audit_db_event(EVENT_OUTCOME, STR("a")), b = a;
    struct store_op op = {.kind = OP_EVENT_APPEND, .event = &a};
    struct write_hook hook = chain_hook(db.chain);
    must(hook.assign(hook.arg, db.store, &op, 1, &must_err));
    must(store_write(db.store, &op, 1, &must_err));
    hook.rollback(hook.arg);
    audit_db_write(&db, (struct event_row *[]){&b, &a}, 2);
    assert_int_equal(a.id, event_id_make(db.writer, 1));
    assert_int_equal(b.id, event_id_make(db.writer, 2));
    assert_int_equal(chain_count(db.chain), 2);
    audit_db_close(&db);
}

/* The same number, but another event took it meanwhile. */
TEST(test_chain__an_event_whose_number_was_taken_gets_a_new_one)
{
    struct audit_db db;
    audit_db_open(&db, false);
    struct event_row a = audit_db_event(EVENT_OUTCOME, STR("a")), b = a;
    b.tool = STR("other");
    struct store_op op = {.kind = OP_EVENT_APPEND, .event = &a};
    struct write_hook hook = chain_hook(db.chain);
    must(hook.assign(hook.arg, db.store, &op, 1, &must_err));
    hook.rollback(hook.arg);
    audit_db_write(&db, (struct event_row *[]){&b}, 1);
    assert_int_equal(b.id, event_id_make(db.writer, 1));
    audit_db_write(&db, (struct event_row *[]){&a}, 1);
    assert_int_equal(a.id, event_id_make(db.writer, 2));
    audit_db_close(&db);
}

TEST(test_chain__goes_on_where_the_store_stands)
{
    struct audit_db db;
    char path[128];
    audit_db_open(&db, false);
    struct event_row a = audit_db_event(EVENT_INTENT, STR("a")), b = a;
    audit_db_write(&db, (struct event_row *[]){&a}, 1);
    chain_free(db.chain);
    must(chain_open(audit_db_path(&db, "audit.key", path), false, db.writer, &db.chain, &must_err));
    audit_db_write(&db, (struct event_row *[]){&b}, 1);
    assert_int_equal(b.id, a.id + 1);
    assert_int_equal(b.seq, 2);
    audit_db_close(&db);
}

TEST(test_chain__the_seal_tells_absent_from_empty_and_field_from_field)
{
    struct audit_db db;
    uint8_t zero[32] = {0}, one[32], other[32];
    audit_db_open(&db, true);
    struct event_row e = audit_db_event(EVENT_INTENT, STR("a")), f = e;
    f.error = STR("");
    chain_mac(db.chain, zero, &e, one);
    chain_mac(db.chain, zero, &f, other);
    assert_memory_not_equal(one, other, 32);
    f = e;
    f.method = STR("tools/callec");
    f.tool = STR("ho");
    chain_mac(db.chain, zero, &f, other);
    assert_memory_not_equal(one, other, 32);
    chain_mac(db.chain, one, &e, other);
    assert_memory_not_equal(one, other, 32);
    audit_db_close(&db);
}

TEST(test_chain_anchor__names_what_moved_since_the_last_and_at_most_its_limit)
{
    struct audit_db db;
    struct buf body;
    bool left;
    audit_db_open(&db, true);
    buf_init(&body, 1 << 20);
    for (int i = 0; i <= CHAIN_ANCHOR_HEADS; i++) {
        char tenant[16];
        snprintf(tenant, sizeof(tenant), "t%d", i);
        struct event_row e = audit_db_event(EVENT_NOTE, str_of(tenant));
        audit_db_write(&db, (struct event_row *[]){&e}, 1);
    }
    assert_int_equal(chain_anchor_body(db.chain, &body, &left), CHAIN_ANCHOR_HEADS);
    assert_true(left);
    audit_db_anchor(&db);
    buf_reset(&body);
    /* The tenant that was left, and the anchor's own chain. */
    assert_int_equal(chain_anchor_body(db.chain, &body, &left), 2);
    assert_false(left);
    buf_release(&body);
    audit_db_close(&db);
}
