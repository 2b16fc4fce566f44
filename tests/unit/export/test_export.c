/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in each format. */
#include "export/line.h"

#include "crypto/hash.h"
#include "export/sign.h"
#include "json/read.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct session_row row = {
    .id = {"0192f0c0-0000-7000-8000-000000000001", 36},
    .handle = {"=handle", 7},
    .tenant = {"default", 7},
    .owner = {"local", 5},
    .edge_mcp_id = {"e", 1},
    .created_ms = 1700000000000,
    .last_activity_ms = 1700000001000,
};

static struct recorded_call call_of(const char *tool, const char *result)
{
    return (struct recorded_call){
        .number = 1,
        .id = 7,
        .origin_id = (INT64_C(3) << EVENT_WRITER_SHIFT) + 17,
        .at_ms = 1700000000500,
        .duration_us = 1500,
        .tokens = -1,
        .server = STR("srv"),
        .method = STR("tools/call"),
        .tool = str_of(tool),
        .outcome = STR("ok"),
        .params = {.state = RECORDED_COMPLETE, .bytes = STR("{\"name\":\"x\"}"), .length = 12},
        .result = {.state = RECORDED_COMPLETE,
                   .bytes = str_of(result),
                   .length = (int64_t)strlen(result)},
    };
}

static struct str context;

static void export_one(const struct export_format *format, const struct export_key *key,
                       const struct recorded_call *call, struct buf *out)
{
    struct export_session s = {.row = &row, .context = context};
    struct export_writer w;

    buf_init(out, 1 << 20);
    export_begin(&w, &s, format, key, out);
    export_calls(&w, call, 1, out);
    export_end(&w, out);
    export_release(&w);
}

static bool contains(const struct buf *out, const char *text)
{
    return memmem(out->p, out->n, text, strlen(text)) != NULL;
}

static void cell_is(const char *tool, const char *want)
{
    struct recorded_call call = call_of(tool, "{}");
    struct buf out;
    char text[200];

    export_one(&export_csv, NULL, &call, &out);
    snprintf(text, sizeof(text), ",\"srv\",%s,\"tools/call\"", want);
    assert_true(contains(&out, text));
    buf_release(&out);
}

TEST(test_csv__takes_no_cell_for_a_formula)
{
    cell_is("plain", "\"plain\"");
    cell_is("=1+1", "\"'=1+1\"");
    cell_is("+1", "\"'+1\"");
    cell_is("-1", "\"'-1\"");
    cell_is("@SUM(A1)", "\"'@SUM(A1)\"");
    cell_is("\tx", "\"'\tx\"");
    cell_is("\rx", "\"'\rx\"");
    cell_is("\nx", "\"'\nx\"");
    cell_is("  =x", "\"'  =x\"");
    cell_is("\xc2\xa0=x", "\"'\xc2\xa0=x\"");
    cell_is("＝x", "\"'＝x\"");
    cell_is("\x01=x", "\"'\xef\xbf\xbd=x\"");
    cell_is("a\x1b[31m\x7f\xc2\x9b", "\"a\xef\xbf\xbd[31m\xef\xbf\xbd\xef\xbf\xbd\"");
    cell_is("a=b", "\"a=b\"");
    cell_is("say \"x\",\r\ny", "\"say \"\"x\"\",\r\ny\"");
    cell_is("", "");
    cell_is("caf\xe9 \xff=", "\"caf\xef\xbf\xbd \xef\xbf\xbd=\"");
}

TEST(test_csv__has_a_head_and_ends_lines_with_crlf)
{
    struct recorded_call call = call_of("t", "{}");
    struct buf out;

    export_one(&export_csv, NULL, &call, &out);
    assert_true(str_starts(buf_str(&out), STR("session_id,number,id,time,")));
    assert_true(contains(&out, "\r\n\"'=handle\",1,\"3.17\",2023-11-14T22:13:20.500Z,call,"));
    assert_true(contains(&out, ",1.500,"));
    assert_true(str_ends(buf_str(&out), STR("\r\n")));
    buf_release(&out);
}

TEST(test_jsonl__keeps_the_bytes_of_a_body)
{
    static const struct {
        const char *body, *want;
    } rows[] = {
        {"{\"n\": 9007199254740993, \"n\":1.50}",
         "\"json\":{\"n\": 9007199254740993, \"n\":1.50}}"},
        {"{\n  \"a\": 1\n}", "\"text\":\"{\\n  \\\"a\\\": 1\\n}\"}"},
        {"1\n", "\"text\":\"1\\n\"}"},
        {"\xff", "\"base64\":\"/w==\"}"},
        {"\"\\u0000\"", "\"json\":\"\\u0000\"}"},
        {"not json", "\"text\":\"not json\"}"},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct recorded_call call = call_of("t", rows[i].body);
        struct buf out;
        export_one(&export_jsonl, NULL, &call, &out);
        assert_true(contains(&out, rows[i].want));
        buf_release(&out);
    }
}

TEST(test_jsonl__line_of_the_largest_bodies_is_bounded)
{
    size_t size = 1 << 20;
    char *body = malloc(size + 1);
    struct buf out;

    memset(body, '\n', size);
    memcpy(body, "1", 1);
    body[size] = '\0';
    struct recorded_call call = call_of("t", body);
    call.params.bytes = call.result.bytes;
    struct export_session s = {.row = &row};
    struct export_writer w;
    buf_init(&out, 4 << 20);
    export_begin(&w, &s, &export_jsonl, NULL, &out);
    buf_reset(&out);
    export_calls(&w, &call, 1, &out);
    assert_true(contains(&out, "\"base64\":\"MQoK"));
    assert_true(out.n < 3u << 20);
    export_release(&w);
    buf_release(&out);
    free(body);
}

TEST(test_jsonl__is_chained_and_signed)
{
    static const uint8_t seed[32] = {1};
    struct export_key *key = export_key_new(seed);
    struct recorded_call call = call_of("t", "{}");
    struct export_chain chain = {0}, before = {0};
    uint8_t signature[EXPORT_SIGNATURE_BYTES];
    char text[EXPORT_SIGNED_TEXT], hex[65];
    struct buf out;
    size_t lines = 0;

    export_one(&export_jsonl, key, &call, &out);
    for (struct str rest = buf_str(&out), line; rest.n; lines++) {
        line = str_split(&rest, '\n');
        struct str head = str_n(line.p, line.n - EXPORT_LINE_TAIL),
                   parts[] = {str_n((char *)chain.link, 32), head};
        before = chain;
        sha256_parts(parts, 2, chain.link);
        hex_encode(chain.link, 32, hex);
        assert_memory_equal(line.p + head.n, ",\"chain\":\"", 10);
        assert_memory_equal(line.p + head.n + 10, hex, 64);
    }
    assert_int_equal(lines, 3);
    export_sign(key, export_signed_text(&before, 1, text), signature);
    char want[2 * EXPORT_SIGNATURE_BYTES + 1];
    hex_encode(signature, sizeof(signature), want);
    assert_true(contains(&out, want));
    assert_true(export_signature_is_of(export_key_public(key), export_signed_text(&before, 1, text),
                                       signature));
    assert_false(export_signature_is_of(export_key_public(key),
                                        export_signed_text(&before, 2, text), signature));
    export_key_free(key);
    buf_release(&out);
}

TEST(test_md__shows_what_a_peer_sent_as_text)
{
    struct recorded_call call = call_of(
        "<b>`x`", "{\"content\":[{\"type\":\"text\",\"text\":\"```\\n<script>\"},"
                  "{\"type\":\"image\",\"data\":\"aGVsbG8=\",\"mimeType\":\"image/`p\"},5]}");
    struct buf out;

    call.error = STR("@octocat\n\n# big");
    export_one(&export_md, NULL, &call, &out);
    assert_true(contains(&out, "## 1. `srv` `` <b>`x` ``\n"));
    assert_true(contains(&out, "````\n```\n<script>\n````\n"));
    assert_true(contains(&out, "*Image, ``image/`p``, 6 bytes*"));
    assert_true(contains(&out, "> `@octocat<U+000A><U+000A># big`\n"));
    assert_true(contains(&out, " · **ok**, 1.5 ms\n"));
    buf_release(&out);
}

TEST(test_md__shows_an_outcome_that_it_does_not_know)
{
    struct recorded_call call = call_of("t", "{}");
    struct buf out;

    call.outcome = STR("denied**");
    export_one(&export_md, NULL, &call, &out);
    assert_true(contains(&out, " · `denied**`, "));
    assert_false(contains(&out, "**ok**"));
    buf_release(&out);
}

TEST(test_md__says_that_a_body_of_unknown_length_was_cut)
{
    struct recorded_call call = call_of("t", "{}");
    struct buf out;

    call.result.state = RECORDED_CUT;
    call.result.length = -1;
    export_one(&export_md, NULL, &call, &out);
    assert_true(contains(&out, "result were cut: they are more than audit_body keeps.*\n"));
    buf_release(&out);
}

TEST(test_md__says_that_bodies_are_not_redacted)
{
    struct recorded_call call = call_of("t", "{}");
    struct buf out;

    export_one(&export_md, NULL, &call, &out);
    assert_false(contains(&out, "**Bodies:**"));
    buf_release(&out);
    row.setup = STR("{\"audit\":\"full\"}");
    export_one(&export_md, NULL, &call, &out);
    assert_true(
        contains(&out, "- **Bodies:** recorded completely (`audit: full`), with the secrets"));
    buf_release(&out);
    row.setup = STR_NONE;
}

TEST(test_md__has_no_secrets_of_the_context_document)
{
    struct str secret = STR("ghp_A1b2C3d4E5f6A1b2C3d4E5f6A1b2C3d4E5f6");
    struct recorded_call call = call_of("t", "{}");
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct buf out;

    context = arena_printf(mem, "{\"goal\":\"all\",\"github\":\"%.*s\"}", STR_ARG(secret));
    export_one(&export_md, NULL, &call, &out);
    assert_true(contains(&out, "\"goal\": \"all\""));
    assert_false(contains(&out, secret.p));
    buf_release(&out);
    export_one(&export_jsonl, NULL, &call, &out); /* an import has the document as it is */
    assert_true(contains(&out, secret.p));
    buf_release(&out);
    context = STR_NONE;
    arena_free(mem);
}
