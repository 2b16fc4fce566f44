/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about what sessions have read of documents. */
#include "document_contract.h"

static struct document_read_row lines(int session, int64_t from, int64_t to)
{
    static char ids[8][40];
    snprintf(ids[session], sizeof(ids[session]), ID "%06d", session);
    return (struct document_read_row){.session_id = str_of(ids[session]),
                                      .folder = STR("notes"),
                                      .path = STR("a.md"),
                                      .from_line = from,
                                      .to_line = to,
                                      .at_ms = NOW};
}

static enum verdict record(struct fixture *f, const struct principal *who,
                           struct document_read_row row)
{
    return write_one(f, op_document_read(who, &row));
}

static size_t reads_of(struct fixture *f, const struct principal *who, int session, const char *id,
                       struct document_read_row **ret)
{
    size_t n = 0;
    check(f, store_document_reads(f->store, who, lines(session, 0, 0).session_id, str_of(id),
                                  f->mem, ret, &n, &f->err));
    return n;
}

static void records(struct fixture *f)
{
    struct document_read_row *rows = NULL, row = lines(1, 1, 10);
    create(f, &alice, 1);
    put(f, 1, "a.md", "one");
    row.at_ms = NOW + 3;
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 0);
    assert_int_equal(record(f, &alice, row), VERDICT_OK);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 1);
    assert_str(rows[0].session_id, ID "000001");
    assert_str(rows[0].folder, "notes");
    assert_str(rows[0].path, "a.md");
    assert_int_equal(rows[0].revision, 1);
    assert_int_equal(rows[0].from_line, 1);
    assert_int_equal(rows[0].to_line, 10);
    assert_int_equal(rows[0].at_ms, NOW + 3);
    assert_int_equal(move(f, "a.md", "b.md"), VERDICT_OK);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 1);
    assert_str(rows[0].path, "b.md");
    assert_int_equal(reads_of(f, &alice, 1, DOC "000002", &rows), 0);
    assert_int_equal(reads_of(f, &alice, 2, DOC "000001", &rows), 0);
}
TEST(test_document_read__is_kept_for_the_session)
{
    on_every_store(records);
}

static void whose(struct fixture *f)
{
    struct principal admin = bob;
    struct document_read_row *rows = NULL;
    admin.tenant_wide = true;
    put(f, 1, "a.md", "one");
    assert_int_equal(record(f, &alice, lines(1, 1, 1)), VERDICT_MISSING);
    create(f, &alice, 1);
    assert_int_equal(record(f, &bob, lines(1, 1, 1)), VERDICT_MISSING);
    assert_int_equal(record(f, &admin, lines(1, 1, 1)), VERDICT_MISSING);
    assert_int_equal(record(f, &alice_elsewhere, lines(1, 1, 1)), VERDICT_MISSING);
    assert_int_equal(record(f, &alice, lines(1, 1, 1)), VERDICT_OK);
    assert_int_equal(reads_of(f, &bob, 1, DOC "000001", &rows), 0);
    assert_int_equal(reads_of(f, &admin, 1, DOC "000001", &rows), 0);
    assert_int_equal(reads_of(f, &alice_elsewhere, 1, DOC "000001", &rows), 0);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    assert_int_equal(record(f, &alice, lines(1, 1, 1)), VERDICT_NOT_ACTIVE);
    create(f, &alice, 2);
    clock_set_fake(NOW + 25 * HOUR, 1000);
    assert_int_equal(record(f, &alice, lines(2, 1, 1)), VERDICT_NOT_ACTIVE);
}
TEST(test_document_read__the_session_must_be_the_callers_and_live)
{
    on_every_store(whose);
}

static void what(struct fixture *f)
{
    struct document_read_row row = lines(1, 1, 1), *rows = NULL;
    create(f, &alice, 1);
    assert_int_equal(record(f, &alice, row), VERDICT_MISSING);
    put(f, 1, "a.md", "one");
    put(f, 2, "a.md", "two");
    row.revision = 3;
    assert_int_equal(record(f, &alice, row), VERDICT_MISSING);
    row.revision = -1;
    assert_int_equal(record(f, &alice, row), VERDICT_MISSING);
    row.revision = 1;
    assert_int_equal(record(f, &alice, row), VERDICT_OK);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 1);
    assert_int_equal(rows[0].revision, 1);
    row.folder = STR("other");
    assert_int_equal(record(f, &alice, row), VERDICT_MISSING);
    assert_int_equal(end_document(f, "a.md", NOW), VERDICT_OK);
    assert_int_equal(record(f, &alice, lines(1, 1, 1)), VERDICT_MISSING);
}
TEST(test_document_read__document_and_revision_must_be_there)
{
    on_every_store(what);
}

static void newest(struct fixture *f)
{
    struct document_read_row first = lines(1, 1, 5), second = lines(1, 1, 5), *rows = NULL;
    struct revise *a = revise(f, 1, "a.md", STR("one")), *b = revise(f, 2, "a.md", STR("two"));
    create(f, &alice, 1);
    struct store_op ops[] = {
        a->op,
        op_document_read(&alice, &first),
        b->op,
        op_document_read(&alice, &second),
    };
    check(f, store_write(f->store, ops, countof(ops), &f->err));
    for (size_t i = 0; i < countof(ops); i++)
        assert_int_equal(ops[i].verdict, VERDICT_OK);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 2);
    assert_int_equal(rows[0].revision, 1);
    assert_int_equal(rows[1].revision, 2);
}
TEST(test_document_read__no_revision_is_the_newest_that_the_batch_sees)
{
    on_every_store(newest);
}

static void covered(struct fixture *f)
{
    struct document_read_row *rows = NULL, row;
    create(f, &alice, 1);
    put(f, 1, "a.md", "one");
    assert_int_equal(record(f, &alice, lines(1, 1, 3)), VERDICT_OK);
    assert_int_equal(record(f, &alice, lines(1, 5, 9)), VERDICT_OK);
    assert_int_equal(record(f, &alice, lines(1, 2, 6)), VERDICT_OK); /* covers neither */
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 3);
    assert_int_equal(record(f, &alice, lines(1, 1, 6)), VERDICT_OK); /* the first and the third */
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 2);
    assert_int_equal(rows[0].from_line, 5);
    assert_int_equal(rows[1].to_line, 6);
    row = lines(1, 6, 8); /* inside of 5-9, which is as of now instead */
    row.at_ms = NOW + 7;
    assert_int_equal(record(f, &alice, row), VERDICT_OK);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 2);
    assert_int_equal(rows[1].from_line, 5);
    assert_int_equal(rows[1].to_line, 9);
    assert_int_equal(rows[1].at_ms, NOW + 7);
    put(f, 2, "a.md", "two");
    assert_int_equal(record(f, &alice, lines(1, 1, 99)), VERDICT_OK); /* of another revision */
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 3);
}
TEST(test_document_read__what_it_covers_it_replaces)
{
    on_every_store(covered);
}

static void limited(struct fixture *f)
{
    struct document_read_row *rows = NULL, other = lines(1, 1, 1);
    create(f, &alice, 1);
    create(f, &alice, 2);
    put(f, 1, "a.md", "one");
    put(f, 2, "b.md", "one");
    other.path = STR("b.md");
    assert_int_equal(record(f, &alice, other), VERDICT_OK);
    assert_int_equal(record(f, &alice, lines(2, 1, 1)), VERDICT_OK);
    for (int64_t i = 0; i < DOCUMENT_READS_MAX; i++)
        assert_int_equal(record(f, &alice, lines(1, 2 * i, 2 * i)), VERDICT_OK);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), DOCUMENT_READS_MAX);
    assert_int_equal(rows[0].from_line, 0);
    assert_int_equal(record(f, &alice, lines(1, 1001, 1001)), VERDICT_OK);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), DOCUMENT_READS_MAX);
    assert_int_equal(rows[0].from_line, 2);
    assert_int_equal(rows[DOCUMENT_READS_MAX - 1].from_line, 1001);
    assert_int_equal(record(f, &alice, lines(1, 2, 3)),
                     VERDICT_OK); /* in the place of the oldest */
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), DOCUMENT_READS_MAX);
    assert_int_equal(rows[0].from_line, 4);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000002", &rows), 1);
    assert_int_equal(reads_of(f, &alice, 2, DOC "000001", &rows), 1);
}
TEST(test_document_read__of_too_many_the_oldest_goes)
{
    on_every_store(limited);
}

static void reaped(struct fixture *f)
{
    struct document_read_row *rows = NULL;
    size_t n = 0;
    put(f, 1, "a.md", "one");
    for (int i = 1; i <= 5; i++) {
        create(f, &alice, i);
        assert_int_equal(record(f, &alice, lines(i, 1, 1)), VERDICT_OK);
        assert_int_equal(record(f, &alice, lines(i, 3, 3)), VERDICT_OK);
    }
    assert_int_equal(end_session(f, &alice, ID "000002"), VERDICT_OK);
    assert_int_equal(end_session(f, &alice, ID "000005"), VERDICT_OK);
    check(f, reap_at(f->store, NOW, 100, &n, &f->err));
    for (int i = 1; i <= 5; i++)
        assert_int_equal(reads_of(f, &alice, i, DOC "000001", &rows), i == 2 || i == 5 ? 0 : 2);
    assert_int_equal(end_session(f, &alice, ID "000004"), VERDICT_OK);
    for (int round = 0; round < 3; round++) /* one after the other, past those that live */
        check(f, reap_at(f->store, NOW, 1, &n, &f->err));
    assert_int_equal(reads_of(f, &alice, 4, DOC "000001", &rows), 0);
    assert_int_equal(reads_of(f, &alice, 3, DOC "000001", &rows), 2);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    for (int round = 0; round < 3; round++) /* and from the first again */
        check(f, reap_at(f->store, NOW, 1, &n, &f->err));
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 0);
    check(f, reap_at(f->store, NOW + 25 * HOUR, 100, &n, &f->err));
    assert_int_equal(n, 1);
    check(f, reap_at(f->store, NOW + 25 * HOUR, 100, &n, &f->err)); /* the round began behind it */
    assert_int_equal(reads_of(f, &alice, 3, DOC "000001", &rows), 0);
}
TEST(test_reap__reads_go_with_their_session)
{
    on_every_store(reaped);
}

static void copied(struct fixture *f)
{
    struct document_read_row *rows = NULL;
    struct document_reads_copy copy = {STR(ID "000001"), STR(ID "000002")};

    put(f, 1, "a.md", "one");
    create(f, &alice, 1);
    create(f, &alice, 2);
    create(f, &bob, 3);
    assert_int_equal(record(f, &alice, lines(1, 1, 4)), VERDICT_OK);
    assert_int_equal(record(f, &alice, lines(1, 7, 9)), VERDICT_OK);
    assert_int_equal(write_one(f, op_document_reads_copy(&alice, &copy)), VERDICT_OK);
    assert_int_equal(reads_of(f, &alice, 2, DOC "000001", &rows), 2);
    assert_int_equal(rows[1].from_line, 7);
    assert_int_equal(reads_of(f, &alice, 1, DOC "000001", &rows), 2);
    copy.to = STR(ID "000003"); /* the session of somebody else */
    assert_int_equal(write_one(f, op_document_reads_copy(&alice, &copy)), VERDICT_OK);
    assert_int_equal(reads_of(f, &bob, 3, DOC "000001", &rows), 0);
    assert_int_equal(write_one(f, op_document_reads_copy(&bob, &copy)), VERDICT_OK);
    assert_int_equal(reads_of(f, &bob, 3, DOC "000001", &rows), 2);
}
TEST(test_reads__of_a_session_are_copied_to_a_new_one_of_the_caller)
{
    on_every_store(copied);
}
