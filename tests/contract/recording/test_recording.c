/* SPDX-License-Identifier: Apache-2.0 */
/* A recording reads the same calls, in the same order, from every store. */
#include "../store_contract.h"

#include "crypto/hash.h"
#include "recording/imported.h"
#include "recording/recording.h"

#define SESSION ID "000001"
#define OTHER ID "000002"

static struct event_row with_body(struct event_row e, const char *body)
{
    e.body = str_of(body);
    e.body_len = (int64_t)e.body.n;
    sha256(e.body, e.body_sha);
    memcpy(e.stored_sha, e.body_sha, sizeof(e.stored_sha));
    return e;
}

/* Stored otherwise than it came: the original had `length` bytes. */
static struct event_row changed(struct event_row e, const char *body, int64_t length)
{
    e = with_body(e, body);
    e.body_len = length;
    e.body_sha[0] ^= 1;
    return e;
}

static struct event_row note(int64_t id, const char *session)
{
    struct event_row e = intent(id, session);
    e.kind = EVENT_NOTE;
    e.method = STR("resources/read");
    e.tool = STR("file:///a");
    e.outcome = STR("ok");
    return e;
}

static struct event_row report(int64_t id, const char *session)
{
    struct event_row e = event(id, EVENT_RECORD);
    e.exec = id;
    e.session_id = str_of(session);
    e.owner = STR("user:alice");
    e.method = STR("tools/call");
    e.tool = STR("build");
    e.outcome = STR("ok");
    e.duration_us = 2000;
    e.tokens = 7;
    return e;
}

static void call_at(struct fixture *f, int64_t id, const char *session)
{
    append(f, with_body(intent(id, session), "{\"name\":\"read\",\"arguments\":{\"n\":1}}"));
    append(f, with_body(outcome(id + 1, id, session, "ok"), "{\"content\":[]}"));
}

/* All calls, by pages of `limit`. */
static struct recorded_call *read_all(struct fixture *f, const struct session_row *row,
                                      unsigned limit, size_t *ret_n)
{
    struct recorded_call *all = arena_zalloc(f->mem, 4096 * sizeof(*all)), *calls;
    struct recording r;
    size_t n;

    *ret_n = 0;
    for (recording_begin(&r, row, NOW + 50 * HOUR); !r.at_end;) {
        check(f, recording_page(&r, f->store, limit, f->mem, &calls, &n, &f->err));
        assert_true(n <= limit);
        memcpy(all + *ret_n, calls, n * sizeof(*calls));
        *ret_n += n;
    }
    for (size_t i = 0; i < *ret_n; i++) {
        assert_int_equal(all[i].number, i + 1);
        assert_true(!i || all[i].id > all[i - 1].id);
    }
    return all;
}

static struct recorded_call *read_session(struct fixture *f, unsigned limit, size_t *ret_n)
{
    return read_all(f, get(f, &alice, SESSION), limit, ret_n);
}

static void calls_are_joined(struct fixture *f)
{
    size_t n;
    create(f, &alice, 1);
    create(f, &alice, 2);
    append(f,
           with_body(intent(event_id(1, 1), SESSION), "{\"name\":\"a\",\"arguments\":{\"b\": 1}}"));
    call_at(f, event_id(1, 2), OTHER);
    append(f, note(event_id(1, 4), SESSION));
    struct event_row again = intent(event_id(1, 5), SESSION);
    again.parent = event_id(1, 1);
    append(f, again);
    struct event_row end = outcome(event_id(1, 6), event_id(1, 1), SESSION, "tool_error");
    end.error = STR("No such file.");
    append(f, with_body(end, "{\"isError\":true}"));
    append(f,
           with_body(report(event_id(1, 7), SESSION), "{\"arguments\":{\"x\":2},\"result\":[3]}"));
    struct recorded_call *c = read_session(f, 100, &n);
    assert_int_equal(n, 4);
    assert_int_equal(c[0].kind, RECORDED_CALL);
    assert_int_equal(c[0].at_ms, NOW + 1);
    assert_str(c[0].params.bytes, "{\"name\":\"a\",\"arguments\":{\"b\": 1}}");
    assert_str(c[0].arguments, "{\"b\": 1}");
    assert_str(c[0].result.bytes, "{\"isError\":true}");
    assert_int_equal(c[0].result.state, RECORDED_COMPLETE);
    assert_str(c[0].outcome, "tool_error");
    assert_str(c[0].error, "No such file.");
    assert_int_equal(c[0].duration_us, 1500);
    assert_int_equal(c[0].tokens, -1);
    assert_int_equal(c[1].kind, RECORDED_NOTE);
    assert_str(c[1].method, "resources/read");
    assert_int_equal(c[1].result.state, RECORDED_NONE);
    assert_str(c[2].outcome, "open");
    assert_int_equal(c[2].parent, event_id(1, 1));
    assert_int_equal(c[2].duration_us, -1);
    assert_int_equal(c[3].kind, RECORDED_REPORTED);
    assert_str(c[3].params.bytes, "{\"arguments\":{\"x\":2}}");
    assert_str(c[3].arguments, "{\"x\":2}");
    assert_str(c[3].result.bytes, "[3]");
    assert_int_equal(c[3].tokens, 7);
}
TEST(test_recording__joins_intents_outcomes_notes_and_reports)
{
    on_every_store(calls_are_joined);
}

static void states_are_told(struct fixture *f)
{
    static const char cut[] =
        "{\"holdfast/cut\":{\"length\":40000,\"kept\":10},\"head\":\"{\\\"name\\\":\"}";
    size_t n;
    create(f, &alice, 1);
    append(f, changed(intent(event_id(1, 1), SESSION), cut, 40000));
    append(f, changed(outcome(event_id(1, 2), event_id(1, 1), SESSION, "ok"),
                      "{\"token\":\"[redacted]\"}", 99));
    struct event_row digest = with_body(intent(event_id(1, 3), SESSION), "{}");
    digest.body = STR_NONE;
    memset(digest.stored_sha, 0, sizeof(digest.stored_sha));
    append(f, digest);
    struct event_row removed =
        with_body(outcome(event_id(1, 4), event_id(1, 3), SESSION, "ok"), "{}");
    removed.body = STR_NONE;
    append(f, removed);
    append(f, changed(report(event_id(1, 5), SESSION), "{\"arguments\":{\"a\":1}}", 4000));
    append(f, with_body(intent(event_id(1, 6), SESSION), cut)); /* that is how it came */
    struct recorded_call *c = read_session(f, 2, &n);
    assert_int_equal(n, 4);
    assert_int_equal(c[0].params.state, RECORDED_CUT);
    assert_int_equal(c[0].params.length, 40000);
    assert_null(c[0].arguments.p);
    assert_non_null(strstr(recorded_body_lack(&c[0].params, f->mem), "40000"));
    assert_int_equal(c[0].result.state, RECORDED_REDACTED);
    assert_int_equal(c[0].result.length, 99);
    assert_int_equal(c[1].params.state, RECORDED_DIGEST);
    assert_null(c[1].params.bytes.p);
    assert_int_equal(c[1].result.state, RECORDED_REMOVED);
    assert_int_equal(c[2].params.state, RECORDED_REDACTED);
    assert_int_equal(c[2].result.state, RECORDED_NONE);
    assert_int_equal(c[3].params.state, RECORDED_COMPLETE);
    assert_null(recorded_body_lack(&c[3].params, f->mem));
}
TEST(test_recording__says_what_is_left_of_each_body)
{
    on_every_store(states_are_told);
}

static void pages_agree(struct fixture *f)
{
    static const unsigned limits[] = {1, 2, 7, 100, RECORDING_PAGE_MAX};
    size_t n, first_n = 0;
    create(f, &alice, 1);
    create(f, &alice, 2);
    for (int i = 0; i < 30; i++) {
        call_at(f, event_id(1, 1 + 4 * i), SESSION);
        call_at(f, event_id(1, 3 + 4 * i), i % 5 ? SESSION : OTHER);
    }
    /* An outcome far behind its intent, in another page; another writer in between. */
    append(f, with_body(intent(event_id(1, 500), SESSION), "{\"name\":\"slow\"}"));
    for (int i = 0; i < 120; i++)
        call_at(f, event_id(1, 501 + 2 * i), OTHER);
    call_at(f, event_id(2, 1), OTHER);
    call_at(f, event_id(3, 1), SESSION);
    append(f, with_body(outcome(event_id(1, 900), event_id(1, 500), SESSION, "ok"), "[\"late\"]"));
    for (size_t i = 0; i < countof(limits); i++) {
        struct recorded_call *c = read_session(f, limits[i], &n);
        assert_int_equal(n, i ? first_n : 56);
        first_n = n;
        assert_str(c[54].params.bytes, "{\"name\":\"slow\"}");
        assert_str(c[54].result.bytes, "[\"late\"]");
        assert_int_equal(c[55].id, event_id(3, 1));
    }
}
TEST(test_recording__is_the_same_in_pages_of_any_size)
{
    on_every_store(pages_agree);
}

/* Events of hours before and after the session are found to be of no use without being read. */
static void range_is_found(struct fixture *f)
{
    struct recorded_call *calls;
    size_t n;
    create(f, &alice, 1);
    for (int i = 1; i <= 60; i++) {
        struct event_row e = note(event_id(1, i), i == 40 || i == 41 ? SESSION : OTHER);
        e.at_ms = NOW + (i - 40) * HOUR;
        append(f, e);
        struct event_row old = note(event_id(2, i), OTHER);
        old.at_ms = NOW - (100 - i) * HOUR;
        append(f, old);
    }
    struct event_row last = note(event_id(3, 1), SESSION);
    last.at_ms = NOW + 2 * HOUR;
    append(f, last);
    fold_all(f);
    assert_int_equal(end_session(f, &alice, SESSION), VERDICT_OK);
    calls = read_session(f, 10, &n);
    assert_int_equal(n, 3);
    assert_int_equal(calls[0].id, event_id(1, 40));
    assert_int_equal(calls[1].id, event_id(1, 41));
    assert_int_equal(calls[2].id, event_id(3, 1));
}
TEST(test_recording__searches_the_range_of_the_session)
{
    on_every_store(range_is_found);
}

static void later_calls_are_left_out(struct fixture *f)
{
    struct recorded_call *calls;
    struct recording r;
    size_t n;
    create(f, &alice, 1);
    call_at(f, event_id(1, 1), SESSION);
    call_at(f, event_id(1, 10), SESSION);
    recording_begin(&r, get(f, &alice, SESSION), NOW + 9);
    check(f, recording_page(&r, f->store, 10, f->mem, &calls, &n, &f->err));
    assert_int_equal(n, 1);
    while (!r.at_end) {
        check(f, recording_page(&r, f->store, 10, f->mem, &calls, &n, &f->err));
        assert_int_equal(n, 0);
    }
    assert_false(recording_page(&r, f->store, 0, f->mem, &calls, &n, &f->err));
    assert_false(recording_page(&r, f->store, RECORDING_PAGE_MAX + 1, f->mem, &calls, &n, &f->err));
}
TEST(test_recording__leaves_out_calls_that_began_later)
{
    on_every_store(later_calls_are_left_out);
}

/* A page ends once it holds RECORDING_PAGE_BYTES. */
static void pages_are_bounded(struct fixture *f)
{
    struct recorded_call *calls;
    struct recording r;
    size_t n, total = 0;
    char *big = xmalloc(400001);
    memset(big, 'x', 400000);
    big[0] = big[399999] = '"';
    big[400000] = '\0';
    create(f, &alice, 1);
    for (int i = 1; i <= 10; i++)
        append(f, with_body(intent(event_id(1, i), SESSION), big));
    for (recording_begin(&r, get(f, &alice, SESSION), NOW + HOUR); !r.at_end; total += n) {
        check(f, recording_page(&r, f->store, 100, f->mem, &calls, &n, &f->err));
        assert_true(n <= 3);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(calls[i].params.bytes.n, 400000);
    }
    assert_int_equal(total, 10);
    free(big);
}
TEST(test_recording__bounds_the_bytes_of_a_page)
{
    on_every_store(pages_are_bounded);
}

static struct event_row imported(struct fixture *f, int64_t id, const char *session)
{
    struct recorded_call call = {
        .origin_id = event_id(7, 70),
        .parent = event_id(7, 60),
        .kind = RECORDED_CALL,
        .at_ms = 1700000000123,
        .duration_us = 1500,
        .tokens = 9,
        .owner = STR("user:there"),
        .server = STR("files"),
        .method = STR("tools/call"),
        .tool = STR("read"),
        .outcome = STR("tool_error"),
        .error = STR("No."),
        .params = {.state = RECORDED_REDACTED,
                   .bytes = STR("{\"name\":\"read\",\"arguments\":{\"k\":\"[redacted]\"}}"),
                   .length = 80},
        .result = {.state = RECORDED_COMPLETE, .bytes = STR("\xff\n"), .length = 2},
    };
    struct event_row e = event(id, EVENT_IMPORT);

    memset(call.params.sha, 3, sizeof(call.params.sha));
    e.exec = id;
    e.session_id = str_of(session);
    imported_call_write(&call, f->mem, &e);
    return e;
}

static void imported_calls_are_calls_but_count_nothing(struct fixture *f)
{
    struct execution_row *rows = NULL;
    size_t n;

    create(f, &alice, 1);
    struct event_row e = imported(f, event_id(1, 1), SESSION), gone = e;
    append(f, e);
    gone.id = gone.exec = event_id(1, 2);
    gone.body = STR_NONE;
    append(f, gone);
    call_at(f, event_id(1, 3), SESSION);
    struct recorded_call *c = read_session(f, 100, &n);
    assert_int_equal(n, 3);
    assert_int_equal(c[0].id, event_id(1, 1));
    assert_int_equal(c[0].origin_id, event_id(7, 70));
    assert_int_equal(c[0].parent, event_id(7, 60));
    assert_int_equal(c[0].at_ms, 1700000000123);
    assert_int_equal(c[0].tokens, 9);
    assert_str(c[0].owner, "user:there");
    assert_str(c[0].outcome, "tool_error");
    assert_str(c[0].arguments, "{\"k\":\"[redacted]\"}");
    assert_int_equal(c[0].params.state, RECORDED_REDACTED);
    assert_int_equal(c[0].params.length, 80);
    assert_int_equal(c[0].params.sha[31], 3);
    assert_str(c[0].result.bytes, "\xff\n");
    assert_int_equal(c[1].params.state, RECORDED_REMOVED);
    assert_int_equal(c[1].params.sha[31], 3);
    assert_int_equal(c[1].result.state, RECORDED_REMOVED);
    assert_int_equal(c[2].origin_id, event_id(1, 3));
    fold_all(f);
    assert_int_equal(get(f, &alice, SESSION)->tool_count, 1);
    assert_int_equal(get(f, &alice, SESSION)->tokens_used, 0);
    check(f, store_executions_page(f->store, &alice, STR(SESSION), 0, false, 10, f->mem, &rows, &n,
                                   &f->err));
    assert_int_equal(n, 1);
}
TEST(test_recording__has_imported_calls_that_count_nothing)
{
    on_every_store(imported_calls_are_calls_but_count_nothing);
}
