/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "identity/grant.h"

#define NOW INT64_C(1800000000000)

static struct str files[] = {{"files", 5}}, wide[] = {{"f*", 2}}, narrow[] = {{"fi*s", 4}},
                  other[] = {{"git", 3}}, all[] = {{"*", 1}};

static struct principal admin_with(const struct scopes *scopes)
{
    return (struct principal){.tenant = STR("acme"),
                              .owner = STR("key:a"),
                              .credential = STR("key:a"),
                              .role = ROLE_ADMIN,
                              .scopes = scopes};
}

static bool grants(const struct scopes *own, struct scopes wanted)
{
    struct principal maker = admin_with(own);
    struct key_request r = {.tenant = STR("acme"), .role = ROLE_MEMBER, .scopes = wanted};
    struct error err;

    bool ok = grant_key(&maker, &r, NOW, &err);
    assert_true(ok || err.code == ERR_DENIED);
    return ok;
}

TEST(test_grant_key__is_for_the_tenant_of_its_maker_and_no_higher_role)
{
    struct principal maker = admin_with(NULL);
    struct key_request r = {.tenant = STR("other"), .role = ROLE_ADMIN};
    struct error err;

    assert_false(grant_key(&maker, &r, NOW, &err));
    r.tenant = STR("acme");
    assert_true(grant_key(&maker, &r, NOW, &err));
    r.tenant = STR_NONE;
    assert_true(grant_key(&maker, &r, NOW, &err));
    maker.role = ROLE_MEMBER;
    assert_false(grant_key(&maker, &r, NOW, &err));
}

TEST(test_grant_key__lists_must_be_covered_by_the_makers_patterns)
{
    struct scopes own = {.servers = wide, .n_servers = 1};

    assert_true(grants(NULL, (struct scopes){0}));
    assert_false(grants(&own, (struct scopes){0}));
    assert_true(grants(&own, (struct scopes){.servers = files, .n_servers = 1}));
    assert_true(grants(&own, (struct scopes){.servers = wide, .n_servers = 1}));
    assert_true(grants(&own, (struct scopes){.servers = narrow, .n_servers = 1}));
    assert_false(grants(&own, (struct scopes){.servers = other, .n_servers = 1}));
    assert_false(grants(&own, (struct scopes){.servers = all, .n_servers = 1}));
    own = (struct scopes){.tools = wide, .n_tools = 1};
    assert_false(grants(&own, (struct scopes){.servers = files, .n_servers = 1}));
    own = (struct scopes){.folders = files, .n_folders = 1};
    assert_false(grants(&own, (struct scopes){.folders = wide, .n_folders = 1}));
}

TEST(test_grant_key__review_and_read_only_are_not_widened)
{
    struct scopes own = {.read_only = true}, reviews = {.review = true};
    struct principal user = admin_with(NULL);
    struct key_request r = {.scopes = {.review = true}};
    struct error err;

    assert_false(grants(&own, (struct scopes){0}));
    assert_true(grants(&own, (struct scopes){.read_only = true}));
    assert_false(grants(NULL, reviews));
    assert_true(grants(&reviews, reviews));
    user.credential = STR("session:1");
    assert_true(grant_key(&user, &r, NOW, &err));
}

TEST(test_grant_key__limits_and_life_are_not_widened)
{
    struct limits own_limits = {.of = {[LIMIT_REQUESTS] = {600, 60000, 600}, [LIMIT_CALLS] = {8}}};
    struct limits less = {.of = {[LIMIT_REQUESTS] = {5, 1000, 5}, [LIMIT_CALLS] = {8}}};
    struct limits more = {.of = {[LIMIT_REQUESTS] = {11, 1000, 11}, [LIMIT_CALLS] = {8}}};
    struct limits some = {.of = {[LIMIT_CALLS] = {8}}};
    struct scopes own = {.limits = &own_limits};
    struct principal maker = admin_with(NULL);
    struct key_request r = {.expires_in_ms = 1000};
    struct error err;

    assert_false(grants(&own, (struct scopes){0}));
    assert_true(grants(&own, (struct scopes){.limits = &own_limits}));
    assert_true(grants(&own, (struct scopes){.limits = &less}));
    assert_false(grants(&own, (struct scopes){.limits = &more}));
    assert_false(grants(&own, (struct scopes){.limits = &some}));
    maker.expires_ms = NOW + 1000;
    assert_true(grant_key(&maker, &r, NOW, &err));
    r.expires_in_ms = 1001;
    assert_false(grant_key(&maker, &r, NOW, &err));
    r.expires_in_ms = 0;
    assert_false(grant_key(&maker, &r, NOW, &err));
    maker.credential = STR("session:1"); /* an access token ends, its user does not */
    assert_true(grant_key(&maker, &r, NOW, &err));
}

TEST(test_grant_user__needs_a_maker_without_scopes_limits_and_end)
{
    struct limits limits = {.of = {[LIMIT_CALLS] = {8}}};
    struct scopes narrowed = {.servers = files, .n_servers = 1}, limited = {.limits = &limits},
                  reviews = {.review = true};
    struct principal maker = admin_with(NULL);
    struct error err;

    assert_true(grant_user(&maker, &err));
    maker.scopes = &reviews;
    assert_true(grant_user(&maker, &err));
    maker.scopes = &narrowed;
    assert_false(grant_user(&maker, &err));
    maker.scopes = &limited;
    assert_false(grant_user(&maker, &err));
    maker.scopes = NULL;
    maker.expires_ms = NOW;
    assert_false(grant_user(&maker, &err));
}
