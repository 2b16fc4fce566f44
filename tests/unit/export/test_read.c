/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a file: its limits.  Changed files are tested end to end (test_import.py). */
#include "export/read.h"

#include "crypto/hash.h"
#include "export/line.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static const uint8_t seed[32] = {7};

struct file {
    struct arena *mem;
    struct export_key *key;
    struct export_chain chain;
    struct export_read read;
    struct error err;
};

static void begin(struct file *f)
{
    *f = (struct file){.mem = arena_new(SIZE_MAX / 4), .key = export_key_new(seed)};
    f->read.first_line = 1;
}

static void release(struct file *f)
{
    arena_free(f->mem);
    export_key_free(f->key);
}

/* Reads the line that begins so, with the chain that belongs there. */
static bool add(struct file *f, struct str bare, struct export_line *ret)
{
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    buf_addstr(&out, bare);
    export_line_end(&f->chain, &out, 0);
    struct str line = arena_dup(f->mem, str_n(out.p, out.n - 1));
    buf_release(&out);
    return export_read_line(&f->read, line, f->mem, ret, &f->err);
}

static bool add_session(struct file *f, const char *members)
{
    char hex[65];
    struct export_line what;

    hex_encode(export_key_public(f->key), EXPORT_KEY_BYTES, hex);
    return add(f,
               arena_printf(f->mem,
                            "{\"type\":\"session\",\"format\":1,\"key\":\"%s\",\"session\":{"
                            "\"id\":\"1\",\"session_id\":\"s\",\"status\":\"active\"%s}",
                            hex, members),
               &what);
}

static bool add_call(struct file *f, const struct recorded_call *call)
{
    struct export_line what;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    export_write_call(&out, call, f->mem);
    bool ok = add(f, arena_dup(f->mem, buf_str(&out)), &what);
    buf_release(&out);
    return ok;
}

static bool add_end(struct file *f, int64_t calls)
{
    uint8_t signature[EXPORT_SIGNATURE_BYTES];
    char text[EXPORT_SIGNED_TEXT], hex[2 * EXPORT_SIGNATURE_BYTES + 1];
    struct export_line what;

    export_sign(f->key, export_signed_text(&f->chain, calls, text), signature);
    hex_encode(signature, sizeof(signature), hex);
    return add(f,
               arena_printf(f->mem, "{\"type\":\"end\",\"calls\":%lld,\"signature\":\"%s\"",
                            (long long)calls, hex),
               &what);
}

static struct recorded_call some_call(void)
{
    return (struct recorded_call){
        .number = 1,
        .at_ms = 1700000000500,
        .duration_us = -1,
        .tokens = -1,
        .outcome = STR("ok"),
        .params = {.length = -1},
        .result = {.length = -1},
    };
}

static struct str filled(struct file *f, char c, size_t n)
{
    char *bytes = arena_alloc(f->mem, n + 1);

    memset(bytes, c, n);
    bytes[n] = '\0';
    return str_n(bytes, n);
}

TEST(test_read__takes_a_whole_file)
{
    struct recorded_call call = some_call();
    struct file f;

    begin(&f);
    assert_true(add_session(&f, ""));
    assert_false(export_read_end(&f.read, &f.err));
    assert_true(add_call(&f, &call));
    assert_true(add_end(&f, 1));
    assert_true(export_read_end(&f.read, &f.err));
    assert_memory_equal(f.read.key, export_key_public(f.key), EXPORT_KEY_BYTES);
    release(&f);
}

TEST(test_read__texts_have_a_limit)
{
    for (size_t n = EXPORT_TEXT_MAX; n <= EXPORT_TEXT_MAX + 1; n++) {
        struct recorded_call call = some_call();
        struct file f;
        begin(&f);
        assert_true(add_session(&f, ""));
        call.error = filled(&f, 'e', n);
        assert_int_equal(add_call(&f, &call), n == EXPORT_TEXT_MAX);
        release(&f);
        begin(&f);
        struct str member =
            arena_printf(f.mem, ",\"client_name\":\"%.*s\"", STR_ARG(filled(&f, 'c', n)));
        assert_int_equal(add_session(&f, member.p), n == EXPORT_TEXT_MAX);
        release(&f);
    }
}

TEST(test_read__calls_have_a_limit)
{
    for (int64_t n = EXPORT_CALLS_MAX; n <= EXPORT_CALLS_MAX + 1; n++) {
        struct recorded_call call = some_call();
        struct file f;
        begin(&f);
        assert_true(add_session(&f, ""));
        f.read.calls = n - 1;
        call.number = n;
        assert_int_equal(add_call(&f, &call), n == EXPORT_CALLS_MAX);
        release(&f);
    }
}

TEST(test_read__lines_have_a_limit)
{
    for (size_t extra = 0; extra < 2; extra++) {
        struct recorded_call call = some_call();
        struct buf out;
        struct file f;
        begin(&f);
        assert_true(add_session(&f, ""));
        call.result =
            (struct recorded_body){.state = RECORDED_COMPLETE, .length = -1, .bytes = STR("x")};
        buf_init(&out, SIZE_MAX / 4);
        export_write_call(&out, &call, f.mem);
        call.result.bytes = filled(&f, 'x', EXPORT_LINE_MAX - EXPORT_LINE_TAIL - out.n + 1 + extra);
        buf_release(&out);
        assert_int_equal(add_call(&f, &call), !extra);
        if (extra)
            assert_non_null(strstr(f.err.text, "is longer than 4194304 bytes"));
        release(&f);
    }
}

TEST(test_read__takes_bodies_as_deep_as_a_message_may_be)
{
    struct recorded_call call = some_call();
    struct file f;

    begin(&f);
    assert_true(add_session(&f, ""));
    struct str open = filled(&f, '[', 64), close = filled(&f, ']', 64);
    call.result = (struct recorded_body){.state = RECORDED_COMPLETE,
                                         .length = 128,
                                         .bytes = arena_printf(f.mem, "%s%s", open.p, close.p)};
    assert_true(add_call(&f, &call));
    release(&f);
}

TEST(test_read__a_bare_key_is_no_signature)
{
    struct recorded_call call = some_call();
    struct file f;

    begin(&f);
    assert_true(add_session(&f, ""));
    export_key_free(f.key);
    f.key = export_key_new((const uint8_t[32]){8});
    assert_true(add_call(&f, &call));
    assert_false(add_end(&f, 1));
    assert_non_null(strstr(f.err.text, "line 3 has a \"signature\" that is not of these lines"));
    assert_false(export_read_end(&f.read, &f.err));
    release(&f);
}
