/* SPDX-License-Identifier: Apache-2.0 */
/* A bound requestState, and every way in which it is not that of a request. */
#include "test.h"

#include "call/request_state.h"
#include "crypto/hash.h"
#include "json/read.h"

static const struct state_binding own = {.tenant = {"t", 1},
                                         .owner = {"user:a", 6},
                                         .server = {"files", 5},
                                         .method = {"tools/call", 10},
                                         .name = {"read", 4}};

/* The text of the JSON string, as a client would send it back. */
static struct str bind_text(const struct hmac_key *key, struct str state, struct arena *mem)
{
    struct str raw = request_state_bind(key, &own, state, mem);
    struct js_doc doc;

    assert_true(js_parse(raw, &js_limits_upstream, mem, &doc, NULL));
    return js_text(&doc, js_root(&doc), mem);
}

TEST(test_request_state__comes_back_whole_to_the_request_that_it_is_bound_to)
{
    struct arena *mem = arena_new(100000);
    struct hmac_key *key = hmac_key_new((const uint8_t *)"key", 3);
    const struct str states[] = {STR(""), STR("s"), STR("a \"quote\" and \xe2\x82\xac"),
                                 STR("before\0after")};

    for (size_t i = 0; i < countof(states); i++) {
        struct str bound = bind_text(key, states[i], mem), back;
        assert_true(str_starts(bound, STR("hf1.")));
        assert_true(request_state_open(key, &own, bound, &back));
        assert_true(str_eq(back, states[i]));
    }
    hmac_key_free(key);
    arena_free(mem);
}

TEST(test_request_state__is_refused_for_any_other_request)
{
    struct arena *mem = arena_new(100000);
    struct hmac_key *key = hmac_key_new((const uint8_t *)"key", 3);
    struct hmac_key *other_key = hmac_key_new((const uint8_t *)"yek", 3);
    struct state_binding others[] = {own, own, own, own, own};
    struct str bound = bind_text(key, STR("state"), mem), back;

    others[0].tenant = STR("u");
    others[1].owner = STR("user:b");
    others[2].server = STR("web");
    others[3].method = STR("prompts/get");
    others[4].name = STR("write");
    for (size_t i = 0; i < countof(others); i++)
        assert_false(request_state_open(key, &others[i], bound, &back));
    assert_false(request_state_open(other_key, &own, bound, &back));
    hmac_key_free(other_key);
    hmac_key_free(key);
    arena_free(mem);
}

TEST(test_request_state__is_refused_when_a_byte_differs_or_is_missing)
{
    struct arena *mem = arena_new(100000);
    struct hmac_key *key = hmac_key_new((const uint8_t *)"key", 3);
    struct str bound = bind_text(key, STR("state"), mem), back;

    for (size_t i = 0; i < bound.n; i++) {
        char *copy = arena_alloc(mem, bound.n);
        memcpy(copy, bound.p, bound.n);
        copy[i] ^= 1;
        assert_false(request_state_open(key, &own, str_n(copy, bound.n), &back));
        assert_false(request_state_open(key, &own, str_n(bound.p, i), &back));
    }
    hmac_key_free(key);
    arena_free(mem);
}
