/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "session/sealed.h"

#include <stdlib.h>

#define KEY_ID "01a1dfe0-6fbb-7000-b849-e51ac02e5f37"
#define SERVICES "[\"github\"]"
#define PLAIN "{\"session_tokens\":{\"github\":\"canary\"}}"

static const uint8_t key_bytes[SEAL_KEY_BYTES] = {1, 2, 3}, other_bytes[SEAL_KEY_BYTES] = {3, 2, 1};
static const struct sealed_place home = {
    {"acme", 4}, {"row-1", 5}, {SEALED_FIELD_AUTH, sizeof(SEALED_FIELD_AUTH) - 1}};

static struct str seal_one(struct arena *mem)
{
    struct seal_key *k = seal_key_new(key_bytes);
    struct str text = sealed_write(k, STR(KEY_ID), &home, STR(SERVICES), STR(PLAIN), mem);
    seal_key_free(k);
    return text;
}

static bool opens(struct str text, const uint8_t key[SEAL_KEY_BYTES],
                  const struct sealed_place *place, struct arena *mem)
{
    struct sealed s;
    size_t n = 0;
    if (!sealed_read(text, mem, &s))
        return false;
    struct seal_key *k = seal_key_new(key);
    char *plain = arena_zalloc(mem, s.bytes.n + 1);
    bool ok = sealed_open(k, &s, place, plain, &n);
    seal_key_free(k);
    if (ok)
        assert_true(str_eq(str_n(plain, n), STR(PLAIN)));
    else
        assert_null(memmem(plain, s.bytes.n, "canary", 6));
    return ok;
}

TEST(test_sealed__opens_where_it_belongs_and_tells_its_key_and_services)
{
    struct arena *mem = arena_new(1 << 20);
    struct str text = seal_one(mem);
    struct sealed s;
    assert_true(opens(text, key_bytes, &home, mem));
    assert_true(sealed_read(text, mem, &s));
    assert_str(s.key_id, KEY_ID);
    assert_str(s.services, SERVICES);
    assert_null(memmem(text.p, text.n, "canary", 6));
    arena_free(mem);
}

TEST(test_sealed__twice_the_same_is_never_the_same_text)
{
    struct arena *mem = arena_new(1 << 20);
    assert_false(str_eq(seal_one(mem), seal_one(mem)));
    arena_free(mem);
}

TEST(test_sealed__does_not_open_for_another_tenant_session_field_or_key)
{
    struct arena *mem = arena_new(1 << 20);
    struct str text = seal_one(mem);
    struct sealed_place tenant = home, session = home, field = home, moved = home;
    tenant.tenant = STR("umbrella");
    session.session_id = STR("row-2");
    field.field = STR("context");
    moved.tenant = STR("acmer"); /* parts are told apart, not only their sum */
    moved.session_id = STR("ow-1");
    assert_false(opens(text, key_bytes, &tenant, mem));
    assert_false(opens(text, key_bytes, &session, mem));
    assert_false(opens(text, key_bytes, &field, mem));
    assert_false(opens(text, key_bytes, &moved, mem));
    assert_false(opens(text, other_bytes, &home, mem));
    arena_free(mem);
}

TEST(test_sealed__does_not_open_when_anything_of_it_was_cut_or_changed)
{
    struct arena *mem = arena_new(64u << 20);
    struct str text = seal_one(mem);
    for (size_t n = 0; n < text.n; n++)
        assert_false(opens(str_n(text.p, n), key_bytes, &home, mem));
    for (size_t i = 0; i < text.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            char *copy = arena_alloc(mem, text.n);
            memcpy(copy, text.p, text.n);
            copy[i] = (char)(copy[i] ^ 1 << bit);
            assert_false(opens(str_n(copy, text.n), key_bytes, &home, mem));
        }
    arena_free(mem);
}
