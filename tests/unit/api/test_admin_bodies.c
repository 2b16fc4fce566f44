/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "api/admin_bodies.h"
#include "identity/scopes.h"

/* Reads a body of POST /api/v1/keys as the operation does. */
static bool reads(struct str json, struct arena *mem, struct key_request *ret, struct error *err)
{
    struct js_doc doc;

    *ret = (struct key_request){.role = ROLE_MEMBER};
    if (!js_parse(json, &js_limits_request, mem, &doc, NULL) ||
        !js_type_is(js_root(&doc), JS_OBJECT))
        return false;
    struct js_binding b = {
        .doc = &doc, .mem = mem, .code = ERR_BAD_INPUT, .null_is_absent = !body_key.takes_null};
    return js_bind(&b, js_root(&doc), body_key.fields, ret, err) && key_request_check(ret, err);
}

static bool parses(const char *json, struct arena *mem)
{
    struct key_request r;
    struct error err;
    return reads(str_of(json), mem, &r, &err);
}

TEST(test_key_request__comes_back_as_it_was_written)
{
    struct arena *mem = arena_new(1024 * 1024);
    struct str tools[] = {STR("a__b")};
    struct key_request r = {.tenant = STR("acme"),
                            .name = STR("x \"y\""),
                            .role = ROLE_AUDITOR,
                            .user = STR("bob"),
                            .scopes = {.tools = tools, .n_tools = 1, .review = true},
                            .expires_in_ms = 5000},
                       back;
    struct error err;

    assert_true(reads(key_request_write(&r, mem), mem, &back, &err));
    assert_str(back.tenant, "acme");
    assert_str(back.name, "x \"y\"");
    assert_true(back.role == ROLE_AUDITOR);
    assert_str(back.user, "bob");
    assert_str(back.scopes.tools[0], "a__b");
    assert_true(back.scopes.review && !back.scopes.read_only);
    assert_int_equal(back.expires_in_ms, 5000);
    arena_free(mem);
}

TEST(test_key_request__what_makes_no_sense_is_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"role\":\"boss\"}",
        "{\"role\":1}",
        "{\"tenant\":\"\"}",
        "{\"tenant\":\"a b\"}",
        "{\"tenant\":\"a/b\"}",
        "{\"name\":\"\"}",
        "{\"name\":\"a\\nb\"}",
        "{\"user\":\"\"}",
        "{\"scopes\":[]}",
        "{\"scopes\":{\"server\":[]}}",
        "{\"expires_in\":\"999ms\"}",
        "{\"expires_in\":-1}",
        "{\"id\":\"x\"}",
    };
    struct arena *mem = arena_new(1024 * 1024);

    assert_true(parses("{}", mem));
    assert_true(parses("{\"expires_in\":1}", mem));
    assert_true(parses("{\"expires_in\":\"90d\"}", mem));
    for (size_t i = 0; i < countof(bad); i++)
        if (parses(bad[i], mem))
            fail_msg("taken: %s", bad[i]);
    arena_free(mem);
}
