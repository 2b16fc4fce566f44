/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of the tables: its example is found wherever it stands, and what only resembles it is
 * kept. */
#include "test.h"

#include "audit/redact.h"
#include "audit/redact_impl.h"
#include "base/buf.h"
#include "json/write.h"

#include <stdio.h>

#define CAP 65536

static struct redactor *r;

/* What is left of the text of a result. */
static struct str of_result(struct buf *b, const char *before, const char *text, const char *after)
{
    struct buf whole;

    buf_init(&whole, CAP);
    buf_addz(&whole, before);
    buf_addz(&whole, text);
    buf_addz(&whole, after);
    buf_reset(b);
    buf_addz(b, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(b, buf_str(&whole));
    buf_addz(b, "}]}");
    buf_release(&whole);
    return redact_body(r, NULL, buf_str(b), true, CAP);
}

/* The secret part of the example: what stands behind the part that is kept. */
static struct str secret_of(const struct redact_shape *shape)
{
    struct shape_memo memo = {0};
    struct str example = str_of(shape->example);
    const char *prefix = memmem(example.p, example.n, shape->prefix.p, shape->prefix.n);
    size_t from, to;

    assert_non_null(prefix);
    if (!redact_shape_at(shape, example, (size_t)(prefix - example.p), &memo, &from, &to))
        fail_msg("the example of %s is none: %s", shape->vendor, shape->example);
    assert_true(to - from >= 4);
    return str_n(example.p + from, to - from);
}

TEST(test_redact_shapes__every_example_is_found_wherever_it_stands)
{
    static const char *const around[][2] = {
        {"", ""},   {"use ", " now"},       {"\n", "\n"},    {"a=", "&b=1"},
        {"(", ")"}, {"caf\xc3\xa9: ", "."}, {"x\\n", "\\n"}, {"%3D", "%26"}};
    struct buf b;

    r = redactor_new();
    buf_init(&b, CAP);
    for (size_t i = 0; i < redact_n_shapes; i++) {
        struct str secret = secret_of(&redact_shapes[i]);
        for (size_t k = 0; k < countof(around); k++) {
            struct str out = of_result(&b, around[k][0], redact_shapes[i].example, around[k][1]);
            struct str needle = str_cut(secret, str_find(secret, '\n'));
            if (memmem(out.p, out.n, needle.p, needle.n) || !memmem(out.p, out.n, "[redacted]", 10))
                fail_msg("%s (%s): %.*s", redact_shapes[i].vendor, redact_shapes[i].example,
                         STR_ARG(out));
        }
    }
    buf_release(&b);
    redactor_free(r);
}

TEST(test_redact_shapes__one_character_too_few_is_none)
{
    struct buf b, text;

    r = redactor_new();
    buf_init(&b, CAP);
    buf_init(&text, CAP);
    for (size_t i = 0; i < redact_n_shapes; i++) {
        const struct redact_shape *s = &redact_shapes[i];
        if (s->match || s->then || s->least < 2)
            continue;
        for (unsigned short_by = 0; short_by < 2; short_by++) {
            buf_reset(&text);
            buf_addstr(&text, s->prefix);
            for (unsigned n = 0; n < s->least - short_by; n++)
                buf_addc(&text, "A1b2C3d4"[s->chars & CHARS_HEX     ? 2 * (n % 4) + 1
                                           : s->chars & CHARS_UPPER ? n % 2
                                                                    : n % 8]);
            struct str out = of_result(&b, "<", text.p, ">");
            bool found = memmem(out.p, out.n, "[redacted]", 10) != NULL;
            if (found != !short_by)
                fail_msg("%s with %u of %d: %.*s", s->vendor, s->least - short_by, s->least,
                         STR_ARG(out));
        }
    }
    buf_release(&text);
    buf_release(&b);
    redactor_free(r);
}

TEST(test_redact_shapes__what_only_resembles_a_token_is_kept)
{
    static const char *const texts[] = {
        "a task-abcdefghijklmnop1234",
        "class=\"sk-loading-spinner-container\"",
        "hf_session_create_with_everything(",
        "Basic authentication is off",
        "Basic QUJDREVGR0hJSktM",
        "https://example.com/a:b@c",
        "https://ada@example.com/",
        "postgres://ada:${PASSWORD}@db/app",
        "scp ada@host:/path",
        "AKIA is how they begin",
        "AKIA0123456789ABCDEF0",
        "SKabcdef",
        "pathological.example",
        "12:AAAA is a time",
        "SG.com",
        "eyJust.two",
        "-----BEGINNING",
        "npm_config_registry=https://r.example",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "ses_0123456789abcdefghijABCDEFGHIJ0123456789abc",
        "v1.0-rc1",
        "key-value stores",
    };
    struct buf b;

    r = redactor_new();
    buf_init(&b, CAP);
    for (size_t i = 0; i < countof(texts); i++) {
        struct str out = of_result(&b, "", texts[i], "");
        if (memmem(out.p, out.n, "[redacted", 9))
            fail_msg("%s became %.*s", texts[i], STR_ARG(out));
    }
    buf_release(&b);
    redactor_free(r);
}

static void is_secret_name(const char *name)
{
    struct buf b;

    buf_init(&b, CAP);
    buf_addf(&b, "{\"a\":1,\"%s\":\"CANARY/1\",\"z\":[]}", name);
    struct str out = redact_body(r, NULL, buf_str(&b), true, CAP);
    if (memmem(out.p, out.n, "CANARY", 6) || !memmem(out.p, out.n, ",\"z\":[]}", 8))
        fail_msg("%.*s", STR_ARG(out));
    buf_reset(&b);
    buf_addf(&b, "{\"text\":\"{\\\"%s\\\": \\\"CANARY/1\\\"}\"}", name);
    out = redact_body(r, NULL, buf_str(&b), true, CAP);
    if (memmem(out.p, out.n, "CANARY", 6))
        fail_msg("%.*s", STR_ARG(out));
    buf_release(&b);
}

TEST(test_redact_names__every_row_is_found_in_every_case)
{
    r = redactor_new();
    for (size_t i = 0; i < redact_n_names; i++) {
        char name[64];
        const char *example = redact_names[i].example;
        is_secret_name(example);
        is_secret_name(redact_names[i].word.p);
        for (size_t k = 0; k <= strlen(example); k++)
            name[k] = (char)(example[k] >= 'a' && example[k] <= 'z' ? example[k] - 32 : example[k]);
        is_secret_name(name);
        for (size_t k = 0; k <= strlen(example); k++)
            name[k] = example[k] == '_' ? '-' : example[k];
        is_secret_name(name);
    }
    redactor_free(r);
}

TEST(test_redact_names__names_of_other_things_are_kept)
{
    static const char *const names[] = {
        "author",       "authority", "authored_at", "passed",        "bypass",       "compass",
        "passenger",    "hotplate",  "footprint",   "keyboard",      "primary_key",  "key",
        "public_key",   "tokenizer", "secretary",   "progressToken", "cookbook",     "credit",
        "instructions", "codec",     "sessionId",   "session_id",    "partition-key"};
    char body[128];

    r = redactor_new();
    for (size_t i = 0; i < countof(names); i++) {
        snprintf(body, sizeof(body), "{\"%s\":\"CANARY/1\"}", names[i]);
        struct str out = redact_body(r, NULL, str_of(body), true, CAP);
        if (out.p != body)
            fail_msg("%s became %.*s", body, STR_ARG(out));
    }
    redactor_free(r);
}

/* in, and how it comes out; NULL: as it is */
static const char *const texts[][2] = {
    {"{\"args\":[\"--password\",\"hunter2\",\"-v\"]}",
     "{\"args\":[\"--password\",\"[redacted]\",\"-v\"]}"},
    {"[\"--api-key\" , \"k\"]", "[\"--api-key\" , \"[redacted]\"]"},
    {"[\"--password\",\"--verbose\"]", NULL},
    {"[\"password\",\"email\"]", NULL},
    {"{\"args\":[\"--token=abc\"]}", "{\"args\":[\"--token=[redacted]\"]}"},
    {"{\"name\":\"password\",\"value\":\"hunter2\"}",
     "{\"name\":\"password\",\"value\":\"[redacted]\"}"},
    {"{\"value\":\"hunter2\",\"name\":\"password\"}",
     "{\"value\":\"[redacted]\",\"name\":\"password\"}"},
    {"[{\"key\":\"DB_PASSWORD\",\"type\":\"string\",\"value\":\"hunter2\"},{\"key\":\"A\","
     "\"value\":\"b\"}]",
     "[{\"key\":\"DB_PASSWORD\",\"type\":\"string\",\"value\":\"[redacted]\"},{\"key\":\"A\","
     "\"value\":\"b\"}]"},
    {"{\"t\":\"[{\\\"name\\\": \\\"token\\\", \\\"value\\\": \\\"abc\\\"}]\"}",
     "{\"t\":\"[{\\\"name\\\": \\\"token\\\", \\\"value\\\": \\\"[redacted]\\\"}]\"}"},
    {"{\"name\":\"password\",\"description\":\"of the user\"}", NULL},
    {"\"password=hunter2\"", "\"password=[redacted]\""},
    {"\"https://h/?a=1&access_token=abc&b=2\"", "\"https://h/?a=1&access_token=[redacted]&b=2\""},
    {"\"host=h password=hunter dbname=d\"", "\"host=h password=[redacted] dbname=d\""},
    {"\"AccountName=a;AccountKey=abc;End=1\"", "\"AccountName=a;AccountKey=[redacted];End=1\""},
    {"\"line\\nPGPASSWORD=x\\nB=1\"", "\"line\\nPGPASSWORD=[redacted]\\nB=1\""},
    {"\"PWD=/home/ada\"", NULL},
    {"{\"pwd\":\"/home/ada\"}", NULL},
    {"{\"pwd\":\"hunter2\"}", "{\"pwd\":\"[redacted]\"}"},
    {"\"password: hunter2\"", "\"password: [redacted]\""},
    {"\"the password: must be long\"", NULL},
    {"\"Authorization: Digest username=ada, response=abc\\nX: y\"",
     "\"Authorization: [redacted]\\nX: y\""},
    {"\"{'password': 'hunter2', 'a': 1}\"", "\"{'password': '[redacted]', 'a': 1}\""},
    {"\"token = strtok(line)\"", NULL},
    {"\"if (password == NULL)\"", NULL},
    {"\"password=${DB_PASSWORD}\"", NULL},
    {"\"max_tokens=4096\"", NULL},
    {"\"--password hunter2 --host h\"", "\"--password [redacted] --host h\""},
    {"\"postgres://ada:hunter2@db/app\"", "\"postgres://ada:[redacted]@db/app\""},
    {"\"https://hooks.slack.com/services/T0/B0/abcdefghijklmnopqrst1\"",
     "\"https://hooks.slack.com/services/[redacted]\""},
    {"{\"otp\":123456,\"auth\":{\"user\":\"u\",\"pass\":\"p\"},\"pass\":3}",
     "{\"otp\":\"[redacted]\",\"auth\":{\"user\":\"u\",\"pass\":\"[redacted]\"},\"pass\":3}"},
};

TEST(test_redact_names__in_arguments_pairs_and_text)
{
    r = redactor_new();
    for (size_t i = 0; i < countof(texts); i++) {
        struct str in = str_of(texts[i][0]);
        struct str out = redact_body(r, NULL, in, true, CAP);
        struct str want = texts[i][1] ? str_of(texts[i][1]) : in;
        if (!str_eq(out, want))
            fail_msg("%s\nbecame  %.*s\nwanted  %.*s", in.p, STR_ARG(out), STR_ARG(want));
    }
    redactor_free(r);
}

TEST(test_redact_reference__has_every_row)
{
    struct buf page;

    buf_init(&page, 1 << 20);
    redact_write_reference(&page);
    for (size_t i = 0; i < redact_n_shapes; i++)
        assert_non_null(strstr(page.p, redact_shapes[i].vendor));
    for (size_t i = 0; i < redact_n_names; i++)
        assert_non_null(strstr(page.p, redact_names[i].example));
    buf_release(&page);
}
