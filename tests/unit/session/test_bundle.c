/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/buf.h"
#include "session/bundle.h"

#include <stdio.h>
#include <stdlib.h>

static bool check(struct arena *mem, const char *text, struct str *ret_services, struct error *err)
{
    struct js_doc doc;
    assert_true(js_parse(str_of(text), &js_limits_request, mem, &doc, NULL));
    return bundle_check(&doc, js_root(&doc), mem, ret_services, err);
}

static const char whole[] =
    "{\"credentials\":{\"github\":{\"type\":\"bearer\",\"token\":\"t1\"},"
    "\"*\":{\"type\":\"basic\",\"username\":\"u\",\"password\":\"p\"},"
    "\"jira\":{\"type\":\"api_key\",\"key_name\":\"X-Key\",\"key_value\":\"v\","
    "\"properties\":{\"a\":\"b\"}},\"aws\":{\"type\":\"aws_signature\"}},"
    "\"oauth_tokens\":{\"slack\":{\"access_token\":\"o1\",\"refresh_token\":\"r\","
    "\"token_type\":\"bearer\",\"expires_at\":\"2030-01-01T00:00:00Z\",\"scope\":\"a b\"}},"
    "\"session_tokens\":{\"github\":\"s1\",\"zulip\":\"s2\"},"
    "\"custom_headers\":{\"X-Team\":\"core\"},"
    "\"agent_context\":{\"agent_type\":\"claude\",\"agent_id\":\"a\",\"environment\":{\"x\":1}}}";

TEST(test_bundle_check__takes_the_whole_of_it_and_names_the_services)
{
    struct arena *mem = arena_new(1 << 20);
    struct str services = STR_NONE;
    struct error err;
    if (!check(mem, whole, &services, &err))
        fail_msg("%s", err.text);
    assert_str(services, "[\"*\",\"aws\",\"github\",\"jira\",\"slack\",\"zulip\"]");
    arena_free(mem);
}

TEST(test_bundle_check__refuses_what_is_none_without_telling_a_value)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"[]", "must be an object"},
        {"{}", "empty"},
        {"{\"surprise\":{}}", "takes credentials"},
        {"{\"credentials\":[]}", "must be an object"},
        {"{\"credentials\":{\"a\":\"canary\"}}", "must be an object"},
        {"{\"credentials\":{\"a\":{\"token\":\"canary\"}}}", "type is missing"},
        {"{\"credentials\":{\"a\":{\"type\":\"magic\",\"token\":\"canary\"}}}", "type must be"},
        {"{\"credentials\":{\"a\":{\"type\":\"bearer\"}}}", "token is needed"},
        {"{\"credentials\":{\"a\":{\"type\":\"bearer\",\"token\":5}}}", "must be a text"},
        {"{\"credentials\":{\"a\":{\"type\":\"bearer\",\"token\":\"canary\\r\\nX: y\"}}}",
         "control"},
        {"{\"credentials\":{\"a\":{\"type\":\"bearer\",\"token\":\"\"}}}", "not empty"},
        {"{\"credentials\":{\"a\":{\"type\":\"api_key\"}}}", "key_value is needed"},
        {"{\"credentials\":{\"a\":{\"type\":\"basic\",\"password\":\"canary\"}}}",
         "username is needed"},
        {"{\"credentials\":{\"a\":{\"type\":\"api_key\",\"key_name\":\"a b\",\"token\":\"x\"}}}",
         "name of a header"},
        {"{\"credentials\":{\"a\":{\"type\":\"bearer\",\"token\":\"canary\",\"tokn\":\"x\"}}}",
         "not known"},
        {"{\"credentials\":{\"\":{\"type\":\"bearer\",\"token\":\"canary\"}}}", "without a name"},
        {"{\"oauth_tokens\":{\"a\":{\"scope\":\"x\"}}}", "access_token is missing"},
        {"{\"session_tokens\":{\"a\":{}}}", "must be a text"},
        {"{\"custom_headers\":{\"a:b\":\"canary\"}}", "header"},
        {"{\"agent_context\":{\"agent_id\":5}}", "must be a text"},
    };
    struct arena *mem = arena_new(1 << 20);
    for (size_t i = 0; i < countof(cases); i++) {
        struct str services = STR_NONE;
        struct error err = {0};
        assert_false(check(mem, cases[i].text, &services, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
        if (!strstr(err.text, cases[i].why))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text, err.text, cases[i].why);
        assert_null(strstr(err.text, "canary"));
    }
    arena_free(mem);
}

static bool check_sized(size_t n)
{
    static const char head[] = "{\"session_tokens\":{\"a\":\"", tail[] = "\"}}";
    struct arena *mem = arena_new(1 << 20);
    struct str services = STR_NONE;
    struct error err;
    char *text = malloc(n + 1);
    memset(text, 'x', n);
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + n - (sizeof(tail) - 1), tail, sizeof(tail));
    bool ok = check(mem, text, &services, &err);
    free(text);
    arena_free(mem);
    return ok;
}

TEST(test_bundle_check__takes_64_kib_and_not_a_byte_more)
{
    assert_true(check_sized(BUNDLE_BYTES_MAX));
    assert_false(check_sized(BUNDLE_BYTES_MAX + 1));
}

static bool check_services(unsigned n, unsigned name)
{
    struct arena *mem = arena_new(1 << 20);
    struct str services = STR_NONE;
    struct error err;
    struct str text = STR("{\"session_tokens\":{");
    for (unsigned i = 0; i < n; i++)
        text = arena_printf(mem, "%.*s%s\"%0*u\":\"x\"", STR_ARG(text), i ? "," : "", (int)name, i);
    text = arena_printf(mem, "%.*s}}", STR_ARG(text));
    bool ok = check(mem, text.p, &services, &err);
    arena_free(mem);
    return ok;
}

TEST(test_bundle_check__takes_64_services_of_128_bytes)
{
    assert_true(check_services(BUNDLE_SERVICES_MAX, 3));
    assert_false(check_services(BUNDLE_SERVICES_MAX + 1, 3));
    assert_true(check_services(1, BUNDLE_NAME_MAX));
    assert_false(check_services(1, BUNDLE_NAME_MAX + 1));
}

static void found(const char *bundle, const char *service, const char *header, const char *scheme,
                  const char *secret, const char *own_header)
{
    struct arena *mem = arena_new(1 << 20);
    struct credential c;
    struct error err;
    if (!bundle_find(str_of(bundle), str_of(service), header ? str_of(header) : STR_NONE, mem, &c,
                     &err))
        fail_msg("%s", err.text);
    assert_true(str_eq(c.scheme, scheme ? str_of(scheme) : STR_NONE) || (!scheme && !c.scheme.p));
    assert_true(secret ? str_eq(c.secret, str_of(secret)) : !c.secret.p);
    assert_true(own_header ? str_eq(c.header, str_of(own_header)) : !c.header.p);
    arena_free(mem);
}

TEST(test_bundle_find__looks_exactly_then_for_all_then_in_lower_case)
{
    found(whole, "github", NULL, "Bearer", "t1", NULL);
    found(whole, "GitHub", NULL, "Basic", "dTpw", NULL); /* "*" goes before lower case */
    found(whole, "jira", NULL, NULL, "v", "X-Key");
    static const char lower[] =
        "{\"credentials\":{\"github\":{\"type\":\"bearer\",\"token\":\"t1\"}}}";
    found(lower, "GitHub", NULL, "Bearer", "t1", NULL);
    found(lower, "gitlab", NULL, NULL, NULL, NULL);
}

TEST(test_bundle_find__falls_back_from_credentials_to_tokens_to_a_header_of_that_name)
{
    static const char text[] = "{\"oauth_tokens\":{\"slack\":{\"access_token\":\"o1\"},"
                               "\"mac\":{\"access_token\":\"o2\",\"token_type\":\"MAC\"}},"
                               "\"session_tokens\":{\"slack\":\"no\",\"zulip\":\"s2\"},"
                               "\"custom_headers\":{\"X-Team\":\"core\"}}";
    found(text, "slack", NULL, "Bearer", "o1", NULL);
    found(text, "mac", NULL, "MAC", "o2", NULL);
    found(text, "zulip", NULL, "Bearer", "s2", NULL);
    found(text, "other", "x-team", NULL, "core", NULL);
    found(text, "other", "x-other", NULL, NULL, NULL);
    found(text, "other", NULL, NULL, NULL, NULL);
}

TEST(test_bundle_find__refuses_kinds_that_need_signing)
{
    struct arena *mem = arena_new(1 << 20);
    struct credential c;
    struct error err;
    assert_false(bundle_find(str_of(whole), STR("aws"), STR_NONE, mem, &c, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    arena_free(mem);
}

static void list_secret(void *arg, struct str value, struct str name)
{
    struct buf *out = arg;
    buf_addf(out, "%.*s=%.*s\n", STR_ARG(name), STR_ARG(value));
}

static void lists(const char *text, const char *want)
{
    struct arena *mem = arena_new(1 << 20);
    struct buf out;

    buf_init(&out, 1 << 16);
    assert_true(bundle_each_secret(str_of(text), mem, list_secret, &out));
    assert_str(buf_str(&out), want);
    buf_release(&out);
    arena_free(mem);
}

TEST(test_bundle_each_secret__lists_every_secret_by_its_name_and_nothing_else)
{
    lists(whole, "credential github of the session=t1\n"
                 "credential * of the session=p\n"
                 "credential * of the session=dTpw\n"
                 "credential jira of the session=v\n"
                 "credential jira of the session=b\n"
                 "oauth token slack of the session=o1\n"
                 "oauth token slack of the session=r\n"
                 "session token github of the session=s1\n"
                 "session token zulip of the session=s2\n"
                 "header X-Team of the session=core\n");
    lists("{\"credentials\":{\"a\":{\"type\":\"custom\",\"token\":null,\"username\":null,"
          "\"properties\":{\"x\":[1,\"\\u0061b\",{\"y\":\"c\"}],\"z\":true}}},"
          "\"oauth_tokens\":null,"
          "\"agent_context\":{\"user_id\":\"u\",\"environment\":{\"KEY\":\"k\",\"N\":5}}}",
          "credential a of the session=ab\n"
          "credential a of the session=c\n"
          "environment KEY of the session=k\n");
    lists("{\"agent_context\":{\"environment\":\"production\"}}", "");
}

TEST(test_bundle_each_secret__fails_on_damaged_text)
{
    struct arena *mem = arena_new(1 << 20);
    assert_false(bundle_each_secret(STR("{\"credentials\":"), mem, list_secret, NULL));
    arena_free(mem);
}
