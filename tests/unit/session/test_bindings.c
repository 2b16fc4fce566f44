/* SPDX-License-Identifier: Apache-2.0 */
/* What a process knows of bound carriers: when it asks the store, and when it need not. */
#include "test.h"

#include "session/session_impl.h"

#include <stdio.h>

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER},
                              bob = {STR("acme"), STR("user:bob"), ROLE_MEMBER};

static struct sessions *begin(bool has_bindings)
{
    struct sessions_config config = {
        .node = STR("node"), .writer = 1, .max_resident = 4, .has_bindings = has_bindings};
    return sessions_new(&config);
}

static bool may_be(struct sessions *s, const struct principal *who, const char *key)
{
    return sessions_may_be_bound(s, who, STR("transport"), str_of(key));
}

static void is_free(struct sessions *s, const struct principal *who, const char *key,
                    uint64_t since)
{
    bindings_none(s->bindings, who->tenant, who->owner, STR("transport"), str_of(key), since);
}

TEST(test_bindings__nobody_asks_while_there_is_none)
{
    struct sessions *s = begin(false);

    assert_false(may_be(s, &alice, "a"));
    sessions_bound(s, alice.tenant, alice.owner, STR("transport"), STR("a"));
    assert_true(may_be(s, &alice, "a"));
    assert_true(may_be(s, &alice, "b")); /* not asked yet */
    sessions_free(s);
}

TEST(test_bindings__a_free_carrier_is_asked_for_once_and_of_one_owner)
{
    struct sessions *s = begin(true);

    assert_true(may_be(s, &alice, "a"));
    is_free(s, &alice, "a", bindings_changes(s->bindings));
    assert_false(may_be(s, &alice, "a"));
    assert_true(may_be(s, &bob, "a"));
    assert_true(sessions_may_be_bound(s, &alice, STR("derived"), STR("a")));
    sessions_bound(s, alice.tenant, alice.owner, STR("transport"), STR("a"));
    assert_true(may_be(s, &alice, "a"));
    sessions_free(s);
}

TEST(test_bindings__an_answer_from_before_a_join_is_not_kept)
{
    struct sessions *s = begin(true);
    uint64_t since = bindings_changes(s->bindings);

    sessions_bound(s, alice.tenant, alice.owner, STR("transport"), STR("a"));
    is_free(s, &alice, "a", since);
    assert_true(may_be(s, &alice, "a"));
    sessions_free(s);
}

TEST(test_bindings__after_a_hand_over_every_carrier_is_asked_for_again)
{
    struct sessions *s = begin(true);

    is_free(s, &alice, "a", bindings_changes(s->bindings));
    sessions_recheck_bindings(s);
    assert_true(may_be(s, &alice, "a"));
    sessions_free(s);
}

TEST(test_bindings__what_is_known_is_bounded_and_a_bound_carrier_stays_so)
{
    struct sessions *s = begin(true);
    char key[16];

    sessions_bound(s, alice.tenant, alice.owner, STR("transport"), STR("mine"));
    for (int i = 1; i < 65536; i++) { /* the limit, with that one */
        snprintf(key, sizeof(key), "k%d", i);
        is_free(s, &alice, key, bindings_changes(s->bindings));
    }
    assert_false(may_be(s, &alice, "k1"));
    is_free(s, &alice, "one-more", bindings_changes(s->bindings));
    assert_false(may_be(s, &alice, "one-more"));
    assert_true(may_be(s, &alice, "k1")); /* forgotten, so asked for again */
    assert_true(may_be(s, &alice, "mine"));
    sessions_free(s);
}
