/* SPDX-License-Identifier: Apache-2.0 */
/* The map against a plain array that cannot be wrong. */
#include "test.h"

#include "base/map.h"
#include "base/random.h"

#include <stdio.h>

TEST(test_map__a_zeroed_map_is_ready)
{
    struct map m = {0};

    assert_null(map_get(&m, STR("a")));
    assert_null(map_remove(&m, STR("a")));
    assert_null(map_put(&m, STR("a"), "1"));
    assert_string_equal(map_get(&m, STR("a")), "1");
    map_release(&m);
    assert_null(map_get(&m, STR("a")));
}

TEST(test_map_put__replaces_and_returns_what_was_there)
{
    struct map m;
    char one[] = "k", two[] = "k";
    struct str key;
    size_t at = 0;

    map_init(&m);
    assert_null(map_put(&m, str_of(one), "1"));
    assert_string_equal(map_put(&m, str_of(two), "2"), "1");
    assert_int_equal(m.n, 1);
    assert_true(map_next(&m, &at, &key, NULL));
    assert_ptr_equal(key.p, two); /* the key is replaced with its value */
    map_release(&m);
}

TEST(test_map__keys_are_bytes_not_strings)
{
    struct map m = {0};

    map_put(&m, str_n("a\0b", 3), "1");
    assert_null(map_get(&m, STR("a")));
    assert_string_equal(map_get(&m, str_n("a\0b", 3)), "1");
    map_put(&m, STR(""), "empty");
    assert_string_equal(map_get(&m, STR("")), "empty");
    assert_null(map_get(&m, STR_NONE));
    map_release(&m);
}

#define KEYS 2000
static char names[KEYS][8];
static bool present[KEYS];

static void check_all(const struct map *m)
{
    size_t at = 0, seen = 0, expected = 0;
    void *value;

    for (int i = 0; i < KEYS; i++) {
        assert_ptr_equal(map_get(m, str_of(names[i])), present[i] ? names[i] : NULL);
        expected += present[i];
    }
    while (map_next(m, &at, NULL, &value))
        seen += present[((char(*)[8])value) - names];
    assert_int_equal(seen, expected);
    assert_int_equal(m->n, expected);
}

TEST(test_map__agrees_with_an_array_through_random_changes)
{
    struct map m = {0};

    random_set_fake(42);
    memset(present, 0, sizeof(present));
    for (int i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof(names[i]), "k%d", i);
    for (int step = 0; step < 40000; step++) {
        int i = (int)random_below(KEYS);
        /* Fill in the first half of the run, drain in the second. */
        if (random_below(10) < (step < 20000 ? 7 : 2)) {
            map_put(&m, str_of(names[i]), names[i]);
            present[i] = true;
        } else {
            assert_ptr_equal(map_remove(&m, str_of(names[i])), present[i] ? names[i] : NULL);
            present[i] = false;
        }
        if (step % 5000 == 0)
            check_all(&m);
    }
    check_all(&m);
    random_set_real();
    map_release(&m);
}

TEST(test_map_remove__gives_memory_back)
{
    struct map m = {0};

    for (int i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof(names[i]), "k%d", i);
        map_put(&m, str_of(names[i]), names[i]);
    }
    assert_true(m.cap >= KEYS);
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(map_remove(&m, str_of(names[i])), names[i]);
    assert_int_equal(m.n, 0);
    assert_true(m.cap <= 64);
    map_release(&m);
}

TEST(test_map_hash__is_stable_inside_one_process)
{
    assert_true(map_hash(STR("a")) == map_hash(STR("a")));
    assert_true(map_hash(STR("a")) != map_hash(STR("b")));
}
