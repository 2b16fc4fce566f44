/* SPDX-License-Identifier: Apache-2.0 */
/* One event has one record and one record one event, whatever is done to its bytes. */
#include "test.h"

#include "base/random.h"
#include "store/record.h"

static struct event_row full(void)
{
    struct event_row e = {.id = INT64_C(3) << EVENT_WRITER_SHIFT | 17,
                          .tenant = STR("acme"),
                          .seq = 1234567,
                          .at_ms = 1700000001000,
                          .kind = EVENT_OUTCOME,
                          .exec = INT64_C(3) << EVENT_WRITER_SHIFT | 2,
                          .parent = INT64_C(2) << EVENT_WRITER_SHIFT | 9,
                          .owner = STR("user:alice"),
                          .session_id = STR("0190-1234"),
                          .transport = STR("0a1b2c3d"),
                          .carrier = STR("header"),
                          .server = STR("files"),
                          .method = STR("tools/call"),
                          .tool = STR(""),
                          .era = STR("2025-11-25>2026-07-28"),
                          .outcome = STR("tool_error"),
                          .error = STR("No such file."),
                          .duration_us = 1500,
                          .body_len = 70000};
    memset(e.body_sha, 0xab, 32);
    memset(e.stored_sha, 0xcd, 32);
    return e;
}

static struct str record_of(const struct event_row *e, char *to)
{
    size_t n = record_write(e, to);
    assert_true(n <= record_room(e));
    return str_n(to, n);
}

static void assert_same_text(struct str a, struct str b)
{
    assert_true((a.p == NULL) == (b.p == NULL));
    assert_true(str_eq(a, b));
}

static void assert_survives(const struct event_row *e)
{
    char bytes[1024];
    struct event_row got;
    assert_true(record_read(e->id, record_of(e, bytes), &got));
    assert_int_equal(got.id, e->id);
    assert_int_equal(got.seq, e->seq);
    assert_int_equal(got.at_ms, e->at_ms);
    assert_int_equal(got.kind, e->kind);
    assert_int_equal(got.exec, e->exec);
    assert_int_equal(got.parent, e->parent);
    assert_int_equal(got.duration_us, e->duration_us);
    assert_int_equal(got.tokens, e->tokens);
    assert_same_text(got.tool_id, e->tool_id);
    assert_same_text(got.client, e->client);
    assert_int_equal(got.request_len, e->request_len);
    assert_same_text(got.origin, e->origin);
    assert_int_equal(got.body_len, e->body_len);
    assert_same_text(got.tenant, e->tenant);
    assert_same_text(got.owner, e->owner);
    assert_same_text(got.session_id, e->session_id);
    assert_same_text(got.transport, e->transport);
    assert_same_text(got.carrier, e->carrier);
    assert_same_text(got.server, e->server);
    assert_same_text(got.method, e->method);
    assert_same_text(got.tool, e->tool);
    assert_same_text(got.era, e->era);
    assert_same_text(got.outcome, e->outcome);
    assert_same_text(got.error, e->error);
    assert_memory_equal(got.body_sha, e->body_sha, 32);
    assert_memory_equal(got.stored_sha, e->stored_sha, 32);
}

TEST(test_record__every_field_survives)
{
    struct event_row e = full();
    assert_survives(&e);
    memcpy(e.stored_sha, e.body_sha, 32);
    assert_survives(&e);
    memset(e.stored_sha, 0, 32);
    assert_survives(&e);
    memset(e.body_sha, 0, 32);
    memset(e.stored_sha, 1, 32);
    assert_survives(&e);
    e = (struct event_row){.id = 1, .tenant = STR("t"), .body_len = -1};
    assert_survives(&e);
}

TEST(test_record__tokens_and_tool_survive_and_cost_nothing_where_there_are_none)
{
    char plain[1024], told[1024];
    struct event_row e = full(), got;
    struct str without = record_of(&e, plain);
    assert_int_equal(plain[0], 1);
    e.tokens = 1;
    assert_survives(&e);
    struct str with = record_of(&e, told);
    assert_int_equal(told[0], 2);
    assert_int_equal(with.n, without.n + 2);
    told[0] = 1; /* the longer bytes under the shorter version, and the other way round */
    assert_false(record_read(e.id, with, &got));
    plain[0] = 2;
    assert_false(record_read(e.id, without, &got));
    e.tokens = INT64_MAX;
    e.tool_id = STR("");
    assert_survives(&e);
    e.tokens = 0;
    e.tool_id = STR("01890a5d-ac96-774b-bcce-b302099a8057");
    assert_survives(&e);
}

TEST(test_record__client_and_size_of_the_request_survive)
{
    char told[1024];
    struct event_row e = full(), got;
    e.client = STR("Editor");
    assert_survives(&e);
    struct str record = record_of(&e, told);
    assert_int_equal(told[0], 3);
    for (char version = 1; version < 5; version++) { /* no other version holds these bytes */
        told[0] = version;
        assert_int_equal(record_read(e.id, record, &got), version == 3);
    }
    e.request_len = INT64_MAX;
    e.tokens = 7;
    assert_survives(&e);
    e.client = STR_NONE;
    e.request_len = 1;
    e.tool_id = STR("01890a5d-ac96-774b-bcce-b302099a8057");
    assert_survives(&e);
    e.client = STR("");
    e.request_len = 0;
    assert_survives(&e);
}

TEST(test_record__origin_of_an_imported_call_survives)
{
    char told[1024];
    struct event_row e = full(), got;
    e.kind = EVENT_IMPORT;
    e.duration_us = -1;
    e.origin = STR("{\"kind\":\"call\"}");
    assert_survives(&e);
    struct str record = record_of(&e, told);
    for (char version = 1; version < 6; version++) { /* no other version holds these bytes */
        told[0] = version;
        assert_int_equal(record_read(e.id, record, &got), version == 4);
    }
    e.origin = STR("");
    e.client = STR("Editor");
    assert_survives(&e);
}

TEST(test_record__what_is_not_told_is_not_spelled_as_if_it_were)
{
    char bytes[1024];
    struct event_row e = {.id = 1, .exec = 1, .tenant = STR("t"), .body_len = -1}, got;
    struct str record = record_of(&e, bytes);
    bytes[0] = 2;
    bytes[record.n] = 0;     /* no tokens */
    bytes[record.n + 1] = 0; /* no tool */
    assert_false(record_read(1, str_n(record.p, record.n + 2), &got));
    bytes[record.n] = 1;
    assert_true(record_read(1, str_n(record.p, record.n + 2), &got));
    assert_int_equal(got.tokens, 1);
}

TEST(test_record__numbers_survive_to_their_ends)
{
    static const int64_t numbers[] = {0, 1, -1, 127, 128, 16383, 16384, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < countof(numbers); i++) {
        struct event_row e = full();
        e.id = numbers[countof(numbers) - 1 - i];
        e.seq = e.at_ms = e.exec = e.parent = e.duration_us = e.body_len = numbers[i];
        assert_survives(&e);
    }
}

TEST(test_record__texts_survive_where_their_length_takes_another_byte)
{
    char text[16400];
    memset(text, 'x', sizeof(text));
    for (size_t n = 126; n <= 16384; n = n < 129 ? n + 1 : n == 129 ? 16382 : n + 1) {
        struct event_row e = {.id = 1, .tenant = STR("t"), .error = str_n(text, n)};
        struct event_row got;
        char bytes[17000];
        assert_true(record_read(1, record_of(&e, bytes), &got));
        assert_true(str_eq(got.error, e.error));
    }
}

TEST(test_record__cut_short_is_no_record)
{
    char bytes[1024];
    struct event_row e = full(), got;
    struct str record = record_of(&e, bytes);
    for (size_t n = 0; n < record.n; n++)
        assert_false(record_read(e.id, str_n(record.p, n), &got));
    bytes[record.n] = 0;
    assert_false(record_read(e.id, str_n(record.p, record.n + 1), &got));
}

/* What can be read is written the same again: no two spellings of one event. */
TEST(test_record__a_changed_byte_changes_the_event_or_cannot_be_read)
{
    char bytes[1024], changed[1024], again[4096];
    struct event_row e = full(), got;
    struct str record = record_of(&e, bytes);
    unsigned readable = 0;
    random_set_fake(7);
    for (size_t at = 0; at < record.n; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(changed, bytes, record.n);
            changed[at] = (char)(changed[at] ^ (1 << bit));
            if (random_below(2)) /* and another one */
                changed[random_below(record.n)] ^= 0x40;
            if (!record_read(e.id, str_n(changed, record.n), &got))
                continue;
            readable++;
            assert_true(record_room(&got) <= sizeof(again));
            assert_int_equal(record_write(&got, again), record.n);
            assert_memory_equal(again, changed, record.n);
        }
    assert_true(readable > 100);
}

TEST(test_record__longer_spellings_of_a_number_are_refused)
{
    struct event_row e = {.id = 1, .exec = 1, .tenant = STR("t")}, got;
    char bytes[256];
    struct str record = record_of(&e, bytes);
    assert_true(record_read(1, record, &got));
    /* The kind, 0, in two bytes. */
    memmove(bytes + 4, bytes + 3, record.n - 3);
    bytes[2] = (char)0x80;
    bytes[3] = 0;
    assert_false(record_read(1, str_n(bytes, record.n + 1), &got));
}
