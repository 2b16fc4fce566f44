/* SPDX-License-Identifier: Apache-2.0 */
/* What REDIS_URL may say, and that its password is never shown. */
#include "test.h"

#include "store/redis_conn.h"

#include <stdlib.h>

static bool parse(const char *url, struct arena *mem, struct redis_target *t, struct error *err)
{
    return redis_target_parse(str_of(url), mem, t, err);
}

TEST(test_redis_url__three_schemes_and_their_parts_are_understood)
{
    struct arena *mem = arena_new(1 << 20);
    struct redis_target t;
    struct error err;
    assert_true(parse("redis://cache", mem, &t, &err));
    assert_str(t.host, "cache");
    assert_int_equal(t.port, 6379);
    assert_false(t.is_tls);
    assert_null(t.password.p);
    assert_true(parse("rediss://me:p%40ss@[::1]:7000/3", mem, &t, &err));
    assert_true(t.is_tls);
    assert_str(t.host, "::1");
    assert_int_equal(t.port, 7000);
    assert_int_equal(t.db, 3);
    assert_str(t.user, "me");
    assert_str(t.password, "p@ss");
    assert_str(t.shown, "rediss://[::1]:7000/3");
    assert_true(parse("unix:///run/redis.sock?db=2", mem, &t, &err));
    assert_str(t.path, "/run/redis.sock");
    assert_int_equal(t.db, 2);
    assert_true(parse("unix://:pw@/run/redis.sock", mem, &t, &err));
    assert_null(t.user.p);
    assert_str(t.password, "pw");
    arena_free(mem);
}

TEST(test_redis_url__what_is_not_understood_is_refused_without_quoting_it)
{
    static const char *const urls[] = {
        "http://canary@x",         "redis://",
        "redis://canary@host",     "redis://:canary@h:0",
        "redis://:canary@h:x",     "redis://:canary@h/1x",
        "redis://:canary%4@host",  "redis://[::1",
        "redis://:canary%00@h",    "unix://canary",
        "unix:///a?x=canary",      "redis://:canary @h",
        "redis://:canary@h:65536", "redis://:canary@h/65536",
    };
    struct arena *mem = arena_new(1 << 20);
    for (size_t i = 0; i < countof(urls); i++) {
        struct redis_target t;
        struct error err = {0};
        if (parse(urls[i], mem, &t, &err))
            fail_msg("%s was accepted", urls[i]);
        assert_int_equal(err.code, ERR_CONFIG);
        assert_null(strstr(err.text, "canary"));
    }
    arena_free(mem);
}

TEST(test_redis_url__a_password_that_was_not_encoded_is_not_shown)
{
    struct arena *mem = arena_new(1 << 20);
    struct redis_target t;
    struct error err;
    assert_true(parse("redis://u:can@ary/canary@host:1/0", mem, &t, &err));
    assert_str(t.shown, "redis://host:1/0");
    assert_str(t.password, "can@ary/canary");
    arena_free(mem);
}

TEST(test_redis_url__length_has_a_limit)
{
    struct arena *mem = arena_new(1 << 20);
    struct redis_target t;
    struct error err;
    char *url = malloc(REDIS_URL_MAX + 2);
    memset(url, 'p', REDIS_URL_MAX + 2);
    memcpy(url, "redis://:", 9);
    memcpy(url + REDIS_URL_MAX - 2, "@h", 2);
    assert_true(redis_target_parse(str_n(url, REDIS_URL_MAX), mem, &t, &err));
    memcpy(url + REDIS_URL_MAX - 2, "p@h", 3);
    assert_false(redis_target_parse(str_n(url, REDIS_URL_MAX + 1), mem, &t, &err));
    free(url);
    arena_free(mem);
}

TEST(test_redis_url__a_socket_path_has_a_limit)
{
    struct arena *mem = arena_new(1 << 20);
    struct redis_target t;
    struct error err;
    char url[7 + 109];
    memset(url, 'a', sizeof(url));
    memcpy(url, "unix:///", 8);
    assert_true(redis_target_parse(str_n(url, 7 + 107), mem, &t, &err));
    assert_false(redis_target_parse(str_n(url, 7 + 108), mem, &t, &err));
    arena_free(mem);
}
