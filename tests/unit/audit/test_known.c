/* SPDX-License-Identifier: Apache-2.0 */
/* Known values: found in every form they are written in, replaced by their name. */
#include "test.h"

#include "audit/redact.h"
#include "base/buf.h"
#include "config/config.h"
#include "crypto/base64.h"
#include "json/write.h"

#include <stdio.h>

#define CAP 65536

static struct known *one_value(const char *value, const char *name)
{
    struct known *k = known_new(false);
    known_add_setting(k, str_of(value), str_of(name));
    known_finish(k);
    return k;
}

static void becomes_with(const struct own_secrets *own, const char *in, const char *want)
{
    struct redactor *r = redactor_new();
    struct str out = redact_body(r, own, str_of(in), true, CAP);
    if (!str_eq(out, str_of(want)))
        fail_msg("%s\nbecame  %.*s\nwanted  %s", in, STR_ARG(out), want);
    redactor_free(r);
}

static void becomes(struct known *k, const char *in, const char *want)
{
    becomes_with(&(struct own_secrets){.known = k}, in, want);
}

TEST(test_known__a_value_is_replaced_by_its_name_wherever_it_stands)
{
    struct known *k = one_value("plum-tree-on-the-hill", "env GITHUB_TOKEN of files");
    becomes(k, "{\"a\":\"xplum-tree-on-the-hillx\",\"b\":[\"plum-tree-on-the-hill\"]}",
            "{\"a\":\"x[redacted: env GITHUB_TOKEN of files]x\","
            "\"b\":[\"[redacted: env GITHUB_TOKEN of files]\"]}");
    becomes(k, "{\"plum-tree-on-the-hill\":1}", "{\"[redacted: env GITHUB_TOKEN of files]\":1}");
    becomes(k, "[\"plum-tree-on-the-hil\"]", "[\"plum-tree-on-the-hil\"]");
    known_unref(k);
}

TEST(test_known__eight_bytes_are_a_value_and_seven_are_none)
{
    struct known *k = known_new(false);
    known_add(k, STR("plumtree"), STR("eight"));
    known_add(k, STR("applebo"), STR("seven"));
    known_finish(k);
    becomes(k, "[\"plumtree applebo\"]", "[\"[redacted: eight] applebo\"]");
    known_unref(k);
}

TEST(test_known__a_value_is_found_as_json_writes_it)
{
    struct known *k = one_value("pl\"um\\tree/ü", "env A of b");
    becomes(k, "[\"pl\\\"um\\\\tree/ü\"]", "[\"[redacted: env A of b]\"]");
    becomes(k, "[\"pl\\\"um\\\\tree/\\u00fc\"]", "[\"[redacted: env A of b]\"]");
    becomes(k, "[\"{\\\"x\\\":\\\"pl\\\\\\\"um\\\\\\\\tree/ü\\\"}\"]",
            "[\"{\\\"x\\\":\\\"[redacted: env A of b]\\\"}\"]");
    known_unref(k);
    k = one_value("a/plum/tree", "env A of b");
    becomes(k, "[\"a\\/plum\\/tree\"]", "[\"[redacted: env A of b]\"]");
    becomes(k, "[\"a%2Fplum%2ftree a%2Fplum%2Ftree\"]",
            "[\"a%2Fplum%2ftree [redacted: env A of b]\"]");
    known_unref(k);
}

TEST(test_known__a_value_is_found_as_other_languages_encode_it)
{
    struct known *k = one_value("zq7+val/ue&9<xy'z ü", "env A of b");
    static const char *const forms[] = {
        "zq7+val/ue\\u00269\\u003cxy'z ü",                   /* Go */
        "zq7\\u002Bval/ue\\u00269\\u003Cxy\\u0027z \\u00FC", /* .NET */
        "zq7%2Bval%2Fue%269%3Cxy%27z%20%C3%BC",              /* urlencode */
        "zq7%2Bval/ue%269%3Cxy%27z%20%C3%BC",                /* Python */
        "zq7%2Bval%2Fue%269%3Cxy'z%20%C3%BC",                /* encodeURIComponent */
        "zq7+val/ue&9%3Cxy'z%20%C3%BC",                      /* encodeURI */
    };
    for (size_t i = 0; i < countof(forms); i++) {
        char body[128];
        snprintf(body, sizeof(body), "[\"x %s y\"]", forms[i]);
        becomes(k, body, "[\"x [redacted: env A of b] y\"]");
    }
    known_unref(k);
}

TEST(test_known__a_value_is_found_in_base64_wherever_it_begins)
{
    struct known *k = one_value("plum-tree-on-the-hill", "env A of b");
    static const char *const leads[] = {"", "u", "us", "user:"};
    for (size_t i = 0; i < countof(leads); i++) {
        char plain[64], text[128], body[256];
        snprintf(plain, sizeof(plain), "%splum-tree-on-the-hill!", leads[i]);
        base64_encode(plain, strlen(plain), text);
        snprintf(body, sizeof(body), "[\"%s\"]", text);
        struct redactor *r = redactor_new();
        struct str out = redact_body(r, &(struct own_secrets){.known = k}, str_of(body), true, CAP);
        if (!memmem(out.p, out.n, "[redacted: env A of b]", 22))
            fail_msg("%s became %.*s", body, STR_ARG(out));
        redactor_free(r);
    }
    known_unref(k);
}

TEST(test_known__a_setting_is_known_by_the_secret_inside)
{
    struct known *k = one_value("Token plum-tree-on-the-hill", "header X of web");
    becomes(k, "[\"plum-tree-on-the-hill\"]", "[\"[redacted: header X of web]\"]");
    known_unref(k);
    k = one_value("Basic YWRhOnBsdW0tdHJlZS1oaWxs", "header Authorization of web");
    becomes(k, "[\"ada plum-tree-hill\"]", "[\"ada [redacted: header Authorization of web]\"]");
    becomes(k, "[\"YWRhOnBsdW0tdHJlZS1oaWxs\"]", "[\"[redacted: header Authorization of web]\"]");
    known_unref(k);
    k = one_value("redis://:plum-tree@cache:6379/0", "env REDIS of web");
    becomes(k, "[\"plum-tree\"]", "[\"[redacted: env REDIS of web]\"]");
    known_unref(k);
}

TEST(test_known__a_name_cannot_break_what_it_is_written_into)
{
    struct known *k = one_value("plum-tree-on-the-hill", "env A\"]\\\n of b");
    becomes(k, "[\"plum-tree-on-the-hill\"]", "[\"[redacted: env A???? of b]\"]");
    known_unref(k);
}

TEST(test_known__a_value_across_the_cut_does_not_show)
{
    static const char value[] = "CANARYCANARYCANARYCANARYCANARYCANARY7f3b";
    struct known *k = one_value(value, "v");
    struct redactor *r = redactor_new();
    struct buf b;

    buf_init(&b, CAP);
    for (size_t lead = 1; lead < 300; lead++) {
        buf_reset(&b);
        buf_addz(&b, "{\"a\":\"");
        for (size_t i = 0; i < lead; i++)
            buf_addc(&b, ' ');
        buf_addz(&b, value);
        for (size_t i = 0; i < 400; i++)
            buf_addc(&b, 'z');
        buf_addz(&b, "\"}");
        struct str out = redact_body(r, &(struct own_secrets){.known = k}, buf_str(&b), true, 256);
        assert_null(memmem(out.p, out.n, "CANARY", 6));
    }
    buf_release(&b);
    redactor_free(r);
    known_unref(k);
}

TEST(test_known__what_is_published_is_taken_up_by_redactors_and_lines)
{
    static const char text[] = "{\"mcpServers\":{\"files\":{\"command\":\"c\",\"env\":{\"A\":"
                               "\"plum-tree-on-the-hill\",\"B\":\"short\"}},\"web\":{\"url\":"
                               "\"http://h/\",\"headers\":{\"X-Key\":\"apple-tree-hill\"}}}}";
    static const char body[] = "[\"plum-tree-on-the-hill apple-tree-hill short\"]";
    struct redactor *r = redactor_new();
    struct config *c = NULL;
    struct error err;
    struct buf line;

    assert_true(config_parse(str_of(text), STR("h.json"), NULL, &c, &err));
    assert_str(redact_body(r, NULL, str_of(body), true, CAP), body);
    known_publish(known_of_config(c, NULL));
    assert_str(redact_body(r, NULL, str_of(body), true, CAP),
               "[\"[redacted: env A of files] [redacted: header X-Key of web] short\"]");
    buf_init(&line, CAP);
    assert_true(redact_line(NULL, STR("key apple-tree-hill"), &line));
    assert_str(buf_str(&line), "key [redacted: header X-Key of web]");
    assert_false(redact_line(NULL, STR("nothing"), &line));
    known_publish(NULL);
    assert_str(redact_body(r, NULL, str_of(body), true, CAP), body);
    buf_release(&line);
    config_unref(c);
    redactor_free(r);
}

/* Many of them alike. */
TEST(test_known__thousands_of_values_are_all_found)
{
    struct known *k = known_new(true);
    struct redactor *r = redactor_new();
    char value[64], body[128];

    for (unsigned i = 0; i < 3000; i++) {
        snprintf(value, sizeof(value), "common-prefix-%06u-end", i);
        known_add(k, str_of(value), STR("v"));
    }
    size_t n = known_count(k);
    known_add(k, STR("common-prefix-002999-end"), STR("w"));
    assert_int_equal(known_count(k), n); /* the first name stays */
    known_finish(k);
    for (unsigned i = 0; i < 3000; i += 7) {
        snprintf(body, sizeof(body), "[\"common-prefix-%06u-end\"]", i);
        assert_str(redact_body(r, &(struct own_secrets){.known = k}, str_of(body), true, CAP),
                   "[\"[redacted: v]\"]");
    }
    assert_str(redact_body(r, &(struct own_secrets){.known = k},
                           STR("[\"common-prefix-003000-end\"]"), true, CAP),
               "[\"common-prefix-003000-end\"]");
    redactor_free(r);
    known_unref(k);
}

TEST(test_known__the_sets_of_link_and_session_are_both_searched_for)
{
    struct known *link = one_value("plum-tree-on-the-hill", "credential a of web");
    struct known *session = known_new(false);
    struct own_secrets own = {.known = link, .session = session};
    struct buf line;

    known_add(session, STR("plum-tree-on-the-hill"), STR("credential a of the session"));
    known_add(session, STR("apple-tree-in-the-yard"), STR("credential b of the session"));
    known_add(session, STR("ghp_0123456789abcdefghijABCDEFGHIJ012345"), STR("credential c"));
    known_finish(session);
    becomes_with(&own, "[\"plum-tree-on-the-hill apple-tree-in-the-yard\"]",
                 "[\"[redacted: credential a of web] [redacted: credential b of the session]\"]");
    becomes_with(&own, "[\"x ghp_0123456789abcdefghijABCDEFGHIJ012345\"]",
                 "[\"x [redacted: credential c]\"]");
    own.known = NULL;
    becomes_with(&own, "[\"plum-tree-on-the-hill\"]",
                 "[\"[redacted: credential a of the session]\"]");
    buf_init(&line, CAP);
    assert_true(redact_line(&own, STR("it is apple-tree-in-the-yard"), &line));
    assert_str(buf_str(&line), "it is [redacted: credential b of the session]");
    buf_release(&line);
    known_unref(link);
    known_unref(session);
}

TEST(test_known__a_complete_body_loses_the_values_of_its_own_request_alone)
{
    struct known *session = one_value("apple-tree-in-the-yard", "credential b of the session");
    struct own_secrets own = {.session = session,
                              .credential = STR("key-of-this-request"),
                              .credential_marker = STR("[redacted: header X]")};
    struct redactor *r = redactor_new();
    struct str in =
        STR("{\"password\":\"hunter2\",\"a\":\"ghp_0123456789abcdefghijABCDEFGHIJ012345 "
            "apple-tree-in-the-yard key-of-this-request\"}");
    struct str plain = STR("{\"password\":\"hunter2\"}");

    assert_str(redact_body(r, &own, in, false, CAP),
               "{\"password\":\"hunter2\",\"a\":\"ghp_0123456789abcdefghijABCDEFGHIJ012345 "
               "[redacted: credential b of the session] [redacted: header X]\"}");
    assert_ptr_equal(redact_body(r, &own, plain, false, CAP).p, plain.p);
    assert_ptr_equal(redact_body(r, NULL, in, false, CAP).p, in.p);
    redactor_free(r);
    known_unref(session);
}

#define KEY "hf_0123456789ab_Qx7-Zk_0123456789abcdefghijABCDEFGHIJ0123456"
#define MARKER "[redacted: header Authorization]"

static const struct own_secrets with_key = {.credential = {KEY, sizeof(KEY) - 1},
                                            .credential_marker = {MARKER, sizeof(MARKER) - 1}};

TEST(test_known__the_requests_credential_is_replaced_by_its_name)
{
    becomes_with(&with_key, "{\"text\":\"it is " KEY " he said\"}",
                 "{\"text\":\"it is " MARKER " he said\"}");
    becomes_with(&with_key, "{\"text\":\"x" KEY "\"}", "{\"text\":\"x" MARKER "\"}");
    becomes_with(&with_key, "{\"text\":\"Authorization: Bearer " KEY "\\nnext\"}",
                 "{\"text\":\"Authorization: [redacted]\\nnext\"}");
    becomes_with(&with_key, "{\"api_key\":\"" KEY "\",\"a\":1}",
                 "{\"api_key\":\"" MARKER "\",\"a\":1}");
    becomes_with(&with_key, "{\"" KEY "\":[\"" KEY "\"]}", "{\"" MARKER "\":[\"" MARKER "\"]}");
    becomes_with(&with_key, "[\"https://u:" KEY "@host/x\"]", "[\"https://u:" MARKER "@host/x\"]");
    becomes_with(&with_key, "[\"a=1&key=" KEY "&b=2\"]", "[\"a=1&key=" MARKER "&b=2\"]");
}

TEST(test_known__another_key_is_replaced_by_its_shape_alone)
{
    becomes_with(&with_key, "[\"hf_0123456789ab_0123456789abcdefghijABCDEFGHIJ0123456789abc\"]",
                 "[\"[redacted]\"]");
    /* Eight bytes are looked for, seven are not. */
    struct own_secrets own = {.credential = STR("plumtree"), .credential_marker = STR(MARKER)};
    becomes_with(&own, "[\"plumtree\"]", "[\"" MARKER "\"]");
    own.credential = STR("plumtre");
    becomes_with(&own, "[\"plumtre\"]", "[\"plumtre\"]");
    own.credential = STR("");
    becomes_with(&own, "[\"plumtre\"]", "[\"plumtre\"]");
}

/* Around the places at which blocks of 32 begin and end, with wide registers and without. */
TEST(test_known__the_requests_credential_is_found_in_base64_and_at_every_place)
{
    static const char plain[] = "0123456789abcdefghijkl-" KEY "-xyz0123456789";
    char text[256], body[512];
    struct redactor *wide = redactor_new(), *narrow = redactor_new();

    redactor_be_narrow(narrow);
    for (size_t lead = 0; lead < 70; lead++)
        for (int form = 0; form < 5; form++) {
            struct str out, same;
            if (form < 3)
                base64_encode(plain + form, sizeof(plain) - 1 - (size_t)form, text);
            else if (form == 3)
                base64url_encode(plain, sizeof(plain) - 1, text);
            else
                snprintf(text, sizeof(text), "~%s~", KEY);
            snprintf(body, sizeof(body), "[\"%*s%s\"]", (int)lead, "", text);
            out = redact_body(wide, &with_key, str_of(body), true, CAP);
            if (!memmem(out.p, out.n, MARKER, sizeof(MARKER) - 1) || out.n + 20 > strlen(body))
                fail_msg("%s became %.*s", body, STR_ARG(out));
            same = redact_body(narrow, &with_key, str_of(body), true, CAP);
            assert_true(str_eq(out, same));
        }
    redactor_free(wide);
    redactor_free(narrow);
}

TEST(test_known__a_value_that_has_a_shape_or_a_telling_name_is_replaced_by_its_name)
{
    struct known *k = one_value("ghp_0123456789abcdefghijABCDEFGHIJ012345", "env T of g");
    becomes(k, "[\"ghp_0123456789abcdefghijABCDEFGHIJ012345\"]", "[\"[redacted: env T of g]\"]");
    becomes(k, "{\"token\":\"ghp_0123456789abcdefghijABCDEFGHIJ012345\"}",
            "{\"token\":\"[redacted: env T of g]\"}");
    becomes(k, "[\"ghp_0123456789abcdefghijABCDEFGHIJ012346\"]", "[\"[redacted]\"]");
    known_unref(k);
    k = one_value("plum-tree-on-the-hill", "env P of g");
    becomes(k, "{\"password\":\"plum-tree-on-the-hill\"}",
            "{\"password\":\"[redacted: env P of g]\"}");
    becomes(k, "{\"password\":\"not plum-tree-on-the-hill\"}", "{\"password\":\"[redacted]\"}");
    becomes(k, "{\"password\":\"\"}", "{\"password\":\"[redacted]\"}");
    known_unref(k);
}
