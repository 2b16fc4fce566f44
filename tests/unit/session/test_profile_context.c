/* SPDX-License-Identifier: Apache-2.0 */
/* What a client tells its session: the forms it comes in, what is refused, and how it is kept. */
#include "test.h"

#include "crypto/base64.h"
#include "session/profile_context.h"
#include "session/sealed.h"

#include <stdio.h>

struct world {
    struct arena *mem;
    struct hmac_key *key;
    struct str keys[3];
    struct profile_config profile;
    struct profile_context_rules rules;
    struct error err;
};

static void enter(struct world *w)
{
    *w = (struct world){.mem = arena_new(64u << 20),
                        .key = hmac_key_new((const uint8_t *)"k", 1),
                        .keys = {STR("region"), STR("token"), STR("n")}};
    w->profile = (struct profile_config){.context_keys = w->keys, .n_context_keys = 3};
    w->rules =
        (struct profile_context_rules){.profile = &w->profile, .key = w->key, .tenant = STR("t")};
}

static void leave(struct world *w)
{
    hmac_key_free(w->key);
    arena_free(w->mem);
}

static bool parse(struct world *w, const char *text, struct profile_context *ret)
{
    return profile_context_parse(str_of(text), &w->rules, w->mem, ret, &w->err);
}

TEST(test_profile_context__every_form_means_the_same)
{
    static const char *const forms[] = {
        "{\"token\":\"a?>\",\"region\":\"eu\",\"n\":1.50}",
        " { \"n\": 1.50, \"region\": \"\\u0065u\", \"token\": \"a?>\" }",
        "eyJ0b2tlbiI6ImE/PiIsInJlZ2lvbiI6ImV1IiwibiI6MS41MH0=",
        "eyJ0b2tlbiI6ImE_PiIsInJlZ2lvbiI6ImV1IiwibiI6MS41MH0",
        "{\"n\":\"1.50\",\"region\":\"eu\",\"token\":\"a?>\"}",
    };
    struct profile_context c, first;
    struct world w;

    enter(&w);
    for (size_t i = 0; i < countof(forms); i++) {
        if (!parse(&w, forms[i], &c))
            fail_msg("%s: %s", forms[i], w.err.text);
        assert_str(c.plain, "{\"n\":\"1.50\",\"region\":\"eu\",\"token\":\"a?>\"}");
        assert_str(c.keys, "[\"n\",\"region\",\"token\"]");
        if (i == 0)
            first = c;
        assert_memory_equal(c.mac, first.mac, sizeof(c.mac));
    }
    w.rules.tenant = STR("u");
    assert_true(parse(&w, forms[0], &c));
    assert_memory_not_equal(c.mac, first.mac, sizeof(c.mac));
    leave(&w);
}

TEST(test_profile_context__a_plus_that_a_query_made_a_blank_is_one_again)
{
    struct profile_context c;
    struct world w;

    enter(&w);
    /* {"n":"~~~>>>"}: + and / in the standard alphabet */
    assert_true(parse(&w, "eyJuIjoifn5 Pj4 In0=", &c));
    assert_str(c.plain, "{\"n\":\"~~~>>>\"}");
    leave(&w);
}

TEST(test_profile_context__an_empty_object_says_nothing)
{
    struct profile_context c;
    struct world w;

    enter(&w);
    for (size_t i = 0; i < 2; i++) {
        w.profile.n_context_keys = 3;
        assert_true(parse(&w, "{\"n\":1}", &c)); /* c now holds the context of another text */
        assert_str(c.plain, "{\"n\":\"1\"}");
        w.profile.n_context_keys = 0;
        assert_true(parse(&w, i ? "e30=" : "{}", &c));
        assert_null(c.plain.p);
        assert_null(c.keys.p);
    }
    leave(&w);
}

TEST(test_profile_context__refusals_name_the_key_and_no_value)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"other\":\"hush\"}", "\"other\" of the config is not among"},
        {"{\"region\":[\"hush\"]}", "\"region\" of the config must be"},
        {"{\"region\":{\"a\":\"hush\"}}", "\"region\" of the config must be"},
        {"{\"region\":null}", "\"region\" of the config must be"},
        {"{\"region\":\"hush\\u0000\"}", "\"region\" of the config has a NUL"},
        {"{\"region\":\"hush\",\"region\":\"hush\"}", "no JSON object"},
        {"{\"region\":\"hush\"", "no JSON object"},
        {"\"hush\"", "no JSON object"},
        {"[\"hush\"]", "no JSON object"},
        {"aHVzaA", "no JSON object"}, /* hush */
        {"hush.hush", "neither JSON nor base64"},
        {"a", "neither JSON nor base64"},
    };
    struct profile_context c;
    struct world w;

    enter(&w);
    for (size_t i = 0; i < countof(cases); i++) {
        assert_false(parse(&w, cases[i].text, &c));
        assert_int_equal(w.err.code, ERR_BAD_INPUT);
        if (!strstr(w.err.text, cases[i].words) || strstr(w.err.text, "hush"))
            fail_msg("%s: %s", cases[i].text, w.err.text);
    }
    w.profile.n_context_keys = 0;
    assert_false(parse(&w, "{\"region\":\"hush\"}", &c));
    assert_non_null(strstr(w.err.text, "has no \"context\""));
    leave(&w);
}

TEST(test_profile_context__has_at_most_8_KiB)
{
    char text[PROFILE_CONTEXT_BYTES_MAX + 2];
    char coded[2 * sizeof(text)];
    struct profile_context c;
    struct world w;

    enter(&w);
    for (size_t n = PROFILE_CONTEXT_BYTES_MAX; n <= PROFILE_CONTEXT_BYTES_MAX + 1; n++) {
        bool fits = n == PROFILE_CONTEXT_BYTES_MAX;
        int head = snprintf(text, sizeof(text), "{\"token\":\"");
        memset(text + head, 'x', n - (size_t)head);
        memcpy(text + n - 2, "\"}", 3);
        assert_int_equal(strlen(text), n);
        assert_int_equal(parse(&w, text, &c), fits);
        base64url_encode(text, n, coded);
        assert_int_equal(parse(&w, coded, &c), fits);
    }
    assert_non_null(strstr(w.err.text, "at most 8192 bytes"));
    leave(&w);
}

TEST(test_profile_context__what_is_stored_tells_keys_and_opens_to_the_values)
{
    struct profile_context c;
    uint8_t raw[SEAL_KEY_BYTES] = {7}, mac[SHA256_BYTES];
    struct config_pair *pairs;
    struct str keys, sealed;
    struct sealed parts;
    struct world w;
    char plain[256];
    size_t n = 0;

    enter(&w);
    assert_true(parse(&w, "{\"token\":\"a\\\"b\",\"region\":true}", &c));
    struct seal_key *key = seal_key_new(raw);
    struct sealed_place place = {STR("t"), STR("id"), STR(SEALED_FIELD_CONTEXT)};
    sealed = sealed_write(key, STR("k1"), &place, profile_context_label(&c, w.mem), c.plain, w.mem);
    assert_true(profile_context_read_label(sealed, w.mem, &keys, mac));
    assert_str(keys, "[\"region\",\"token\"]");
    assert_memory_equal(mac, c.mac, sizeof(mac));
    assert_true(profile_context_has_key(keys, STR("token")));
    assert_false(profile_context_has_key(keys, STR("toke")));
    assert_false(profile_context_has_key(keys, STR("n")));
    assert_false(profile_context_has_key(STR_NONE, STR("n")));
    assert_true(sealed_read(sealed, w.mem, &parts));
    assert_true(sealed_open(key, &parts, &place, plain, &n));
    assert_true(profile_context_read(str_n(plain, n), w.mem, &pairs, &n));
    assert_int_equal(n, 2);
    assert_str(pairs[0].name, "region");
    assert_str(pairs[0].value, "true");
    assert_str(pairs[1].value, "a\"b");
    place.field = STR(SEALED_FIELD_AUTH);
    assert_false(sealed_open(key, &parts, &place, plain, &n));
    assert_false(profile_context_read_label(STR("hfs1.k.e30.AAAA"), w.mem, &keys, mac));
    seal_key_free(key);
    leave(&w);
}
