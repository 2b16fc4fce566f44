/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants and keys may use: at the limit and one past it, over time, under another
 * configuration, and with more of them than are remembered. */
#include "test.h"

#include "base/clock.h"
#include "config/limits.h"
#include "identity/quota.h"

#include <stdio.h>

static struct quotas *quotas;
static struct config *config;
static struct arena *mem;
static struct quota_refusal refusal;

static struct config *parse(const char *limits, const char *tenants)
{
    struct config *c = NULL;
    struct error err;
    char text[1024];

    snprintf(text, sizeof(text), "{\"holdfast\":{\"limits\":%s,\"tenants\":%s}}", limits, tenants);
    if (!config_parse(str_of(text), STR("h.json"), NULL, &c, &err))
        fail_msg("%s", err.text);
    return c;
}

static void begin_kept(const char *limits, const char *tenants, size_t max_quotas)
{
    struct error err;

    clock_set_fake(1000000, 5000);
    config = parse(limits, tenants);
    struct quotas_config how = {.config = config, .max_quotas = max_quotas};
    assert_true(quotas_new(&how, &quotas, &err));
    mem = arena_new(1 << 20);
}

static void begin(const char *limits)
{
    begin_kept(limits, "{}", 0);
}

static void end(void)
{
    quotas_free(quotas);
    config_unref(config);
    arena_free(mem);
    clock_set_real();
}

static void apply(const char *limits, const char *tenants)
{
    struct config *fresh = parse(limits, tenants);
    quotas_apply(quotas, fresh);
    config_unref(config);
    config = fresh;
}

static struct principal tenant(const char *name)
{
    return (struct principal){.tenant = str_of(name), .owner = STR("local"), .role = ROLE_ADMIN};
}

static bool take_of(const struct principal *who, unsigned what, size_t bytes, struct quota_use *use)
{
    *use = (struct quota_use){0};
    return quota_take(quotas, who, what, bytes, use, &refusal);
}

/* A request that is over at once. */
static bool request(const struct principal *who, size_t bytes)
{
    struct quota_use use;

    if (!take_of(who, QUOTA_CALL, bytes, &use))
        return false;
    quota_release(&use);
    return true;
}

static unsigned requests(const struct principal *who, unsigned most)
{
    unsigned n = 0;

    while (n < most && request(who, 0))
        n++;
    return n;
}

TEST(test_quota__requests_at_the_limit_and_one_past_it)
{
    struct principal who = tenant("acme");

    begin("{\"requests\":\"600/m\"}");
    assert_int_equal(requests(&who, 1000), 600);
    assert_int_equal(refusal.kind, LIMIT_REQUESTS);
    assert_int_equal(refusal.err.code, ERR_QUOTA);
    assert_int_equal(refusal.retry_s, 1);
    assert_string_equal(refusal.err.text,
                        "Rate limit of tenant 'acme' reached on this node: 600 requests a minute. "
                        "Try again in 1 second.");
    clock_advance_fake(99);
    assert_int_equal(requests(&who, 2), 0);
    clock_advance_fake(1);
    assert_int_equal(requests(&who, 2), 1);
    clock_advance_fake(60 * 60 * 1000);
    assert_int_equal(requests(&who, 1000), 600); /* never more than a burst */
    end();
}

TEST(test_quota__what_is_said_of_the_wait_is_true_to_the_second)
{
    struct principal who = tenant("acme");

    begin("{\"requests\":\"3/h burst 1\"}");
    assert_int_equal(requests(&who, 9), 1);
    assert_int_equal(refusal.retry_s, 1200);
    clock_advance_fake(1200 * 1000 - 1);
    assert_int_equal(requests(&who, 9), 0);
    assert_int_equal(refusal.retry_s, 1);
    clock_advance_fake(1);
    assert_int_equal(requests(&who, 9), 1);
    end();
}

TEST(test_quota__a_burst_of_its_own)
{
    struct principal who = tenant("acme");

    begin("{\"requests\":\"60/m burst 5\"}");
    assert_int_equal(requests(&who, 100), 5);
    clock_advance_fake(3000);
    assert_int_equal(requests(&who, 100), 3);
    end();
}

TEST(test_quota__bytes_past_the_limit_are_a_debt_of_at_most_a_burst)
{
    struct principal who = tenant("acme");
    struct quota_use use;

    begin("{\"bytes\":\"1000B/s\"}");
    assert_true(request(&who, 999));
    assert_true(request(&who, 1)); /* one byte was left */
    assert_false(request(&who, 0));
    assert_int_equal(refusal.kind, LIMIT_BYTES);
    assert_string_equal(refusal.err.text,
                        "Rate limit of tenant 'acme' reached on this node: 1000 bytes a second. "
                        "Try again in 1 second.");
    clock_advance_fake(1000);
    assert_true(take_of(&who, QUOTA_CALL, 500, &use));
    quota_spend(&use, 1000); /* its answer: 500 too many */
    quota_release(&use);
    clock_advance_fake(500);
    assert_false(request(&who, 1));
    clock_advance_fake(1);
    assert_true(request(&who, 1));
    clock_advance_fake(1000);
    assert_true(take_of(&who, QUOTA_CALL, 0, &use));
    quota_spend(&use, 1 << 30);
    quota_release(&use);
    assert_false(request(&who, 1));
    assert_int_equal(refusal.retry_s, 2); /* a burst and the first byte */
    clock_advance_fake(1001);
    assert_true(request(&who, 1));
    end();
}

TEST(test_quota__calls_are_counted_while_they_are_under_way)
{
    struct principal who = tenant("acme"), other = tenant("globex");
    struct quota_use use[4];

    begin("{\"calls\":3}");
    for (unsigned i = 0; i < 3; i++)
        assert_true(take_of(&who, QUOTA_CALL, 0, &use[i]));
    assert_false(take_of(&who, QUOTA_CALL, 0, &use[3]));
    assert_int_equal(refusal.kind, LIMIT_CALLS);
    assert_string_equal(refusal.err.text, "Limit of tenant 'acme' reached on this node: 3 calls at "
                                          "a time. Try again in 1 second.");
    assert_true(request(&other, 0));
    assert_true(take_of(&who, QUOTA_REQUEST, 0, &use[3])); /* a list is no call */
    quota_release(&use[3]);
    quota_release(&use[0]);
    assert_true(take_of(&who, QUOTA_CALL, 0, &use[0]));
    for (unsigned i = 0; i < 3; i++)
        quota_release(&use[i]);
    end();
}

TEST(test_quota__children_at_the_limit_and_one_past_it)
{
    struct principal who = tenant("acme");
    struct quota_use use[3];

    begin("{\"children\":2}");
    assert_true(take_of(&who, QUOTA_CHILD, 0, &use[0]));
    assert_true(take_of(&who, QUOTA_CHILD, 0, &use[1]));
    assert_false(take_of(&who, QUOTA_CHILD, 0, &use[2]));
    assert_ptr_equal(refusal.who, use[0].of[0]);
    assert_string_equal(refusal.err.text,
                        "Limit of tenant 'acme' reached on this node: 2 server processes at a "
                        "time. Try again in 5 seconds.");
    quota_release(&use[0]);
    assert_true(take_of(&who, QUOTA_CHILD, 0, &use[2]));
    quota_release(&use[1]);
    quota_release(&use[2]);
    end();
}

TEST(test_quota__nothing_is_taken_of_one_limit_when_another_refuses)
{
    struct principal who = tenant("acme");
    struct quota_use use;

    begin("{\"requests\":\"2/h\",\"calls\":1}");
    assert_true(take_of(&who, QUOTA_CALL, 0, &use));
    for (unsigned i = 0; i < 5; i++) {
        struct quota_use another;
        assert_false(take_of(&who, QUOTA_CALL, 0, &another));
        assert_int_equal(refusal.kind, LIMIT_CALLS);
    }
    quota_release(&use);
    assert_true(request(&who, 0));
    assert_false(request(&who, 0));
    assert_int_equal(refusal.kind, LIMIT_REQUESTS);
    end();
}

TEST(test_quota__what_must_pass_is_counted_and_never_refused)
{
    struct principal who = tenant("acme");
    struct quota_use use;

    begin("{\"requests\":\"2/s\"}");
    for (unsigned i = 0; i < 10; i++) {
        assert_true(take_of(&who, QUOTA_REQUEST | QUOTA_ALWAYS, 0, &use));
        quota_release(&use);
    }
    assert_false(request(&who, 0));
    clock_advance_fake(1499); /* a debt of two, and one to use */
    assert_false(request(&who, 0));
    clock_advance_fake(1);
    assert_true(request(&who, 0));
    end();
}

TEST(test_quota__a_key_has_limits_of_its_own_beside_its_tenants)
{
    struct limits own = {.of[LIMIT_REQUESTS] = {3, 60000, 3}};
    struct scopes scopes = {.limits = &own};
    struct principal key = tenant("acme"), other = tenant("acme"), user = tenant("acme");

    key.credential = STR("key:aaaaaaaaaaaa");
    key.scopes = &scopes;
    other.credential = STR("key:bbbbbbbbbbbb");
    user.credential = STR("jwt:0123");
    user.owner = STR("user:5");
    begin("{\"requests\":\"12/m\",\"key\":{\"requests\":\"5/m\"}}");
    assert_int_equal(requests(&key, 100), 3);
    assert_int_equal(refusal.scope, QUOTA_OF_KEY);
    assert_string_equal(refusal.err.text,
                        "Rate limit of key 'aaaaaaaaaaaa' reached on this node: 3 requests a "
                        "minute. Try again in 20 seconds.");
    assert_int_equal(requests(&other, 100), 5); /* as all keys */
    assert_int_equal(requests(&user, 100), 4);  /* what the tenant has left */
    assert_int_equal(refusal.scope, QUOTA_OF_TENANT);
    user.credential = STR("jwt:another token of the same user");
    clock_advance_fake(5000);
    assert_int_equal(requests(&user, 100), 1);
    end();
}

TEST(test_quota__a_key_is_limited_where_nobody_else_is)
{
    struct limits own = {.of[LIMIT_CALLS] = {.amount = 1}};
    struct scopes scopes = {.limits = &own};
    struct principal key = tenant("acme");
    struct quota_use use, second;

    begin("{}");
    assert_false(quota_applies(config, &key));
    key.credential = STR("key:aaaaaaaaaaaa");
    key.scopes = &scopes;
    assert_true(quota_applies(config, &key));
    assert_true(take_of(&key, QUOTA_CALL, 0, &use));
    assert_null(use.of[0]);
    assert_false(take_of(&key, QUOTA_CALL, 0, &second));
    quota_release(&use);
    end();
}

static struct limits limits_of(const char *requests, int64_t calls)
{
    struct limits l = {0};
    struct error err;

    if (requests && !limit_parse(LIMIT_REQUESTS, str_of(requests), &l.of[LIMIT_REQUESTS], &err))
        fail_msg("%s", err.text);
    l.of[LIMIT_CALLS].amount = calls;
    return l;
}

/* Like request(), in a session. */
static bool session_request(const char *id, const struct limits *limits, struct quota_use *use)
{
    struct quota_session s = {.tenant = STR("acme"), .id = str_of(id), .limits = limits};

    *use = (struct quota_use){0};
    return quota_take_session(quotas, &s, QUOTA_CALL, 0, use, &refusal);
}

static unsigned session_requests(const char *id, const struct limits *limits, unsigned most)
{
    struct quota_use use;
    unsigned n = 0;

    for (; n < most && session_request(id, limits, &use); n++)
        quota_release(&use);
    return n;
}

TEST(test_quota_session__is_counted_by_itself_beside_its_tenant)
{
    struct limits limits = limits_of("3/h", 0), wider = limits_of("5/h", 0);
    struct principal who = tenant("acme");
    struct quota_session s = {
        .tenant = STR("acme"), .id = STR("one"), .from = STR("slow@2"), .limits = &limits};
    struct quota_use use;

    begin("{\"requests\":\"2/h\"}");
    assert_int_equal(session_requests("one", &limits, 10), 3);
    assert_int_equal(refusal.scope, QUOTA_OF_SESSION);
    assert_string_equal(refusal.err.text,
                        "Rate limit of this session reached on this node: 3 requests an hour, set "
                        "by an administrator. Try again in 1200 seconds.");
    use = (struct quota_use){0};
    assert_false(quota_take_session(quotas, &s, QUOTA_CALL, 0, &use, &refusal));
    assert_non_null(strstr(refusal.err.text, "3 requests an hour, set by its template slow@2."));
    quota_refused(quotas, &refusal);
    assert_true(quota_take_session(quotas, &s, QUOTA_CALL | QUOTA_ALWAYS, 0, &use, &refusal));
    quota_release(&use);
    assert_int_equal(session_requests("two", &limits, 10), 3);
    assert_int_equal(requests(&who, 10), 2); /* the tenant has used none of its own */
    assert_int_equal(refusal.scope, QUOTA_OF_TENANT);
    assert_int_equal(session_requests("one", &wider, 10), 1); /* four are used */
    end();
}

TEST(test_quota_session__holds_calls_together_with_its_tenant)
{
    struct limits limits = limits_of(NULL, 1);
    struct principal who = tenant("acme");
    struct quota_session s = {.tenant = STR("acme"), .id = STR("one"), .limits = &limits};
    struct quota_use first, second = {0}, other;

    begin("{\"calls\":2}");
    assert_true(take_of(&who, QUOTA_CALL, 0, &first));
    assert_true(quota_take_session(quotas, &s, QUOTA_CALL, 0, &first, &refusal));
    assert_true(take_of(&who, QUOTA_CALL, 0, &second));
    assert_false(quota_take_session(quotas, &s, QUOTA_CALL, 0, &second, &refusal));
    assert_int_equal(refusal.kind, LIMIT_CALLS);
    quota_release(&second); /* what its tenant held */
    assert_true(take_of(&who, QUOTA_CALL, 0, &second));
    assert_false(take_of(&who, QUOTA_CALL, 0, &other));
    quota_release(&first);
    assert_true(quota_take_session(quotas, &s, QUOTA_CALL, 0, &second, &refusal));
    quota_release(&second);
    end();
}

TEST(test_quota_session__many_sessions_evict_no_tenant)
{
    struct limits limits = limits_of("1/h", 0);
    struct principal who = tenant("acme");
    char id[16];

    begin_kept("{\"requests\":\"1/h\"}", "{}", 4);
    assert_int_equal(requests(&who, 10), 1);
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof(id), "s%d", i);
        assert_int_equal(session_requests(id, &limits, 10), 1);
    }
    assert_int_equal(quotas_count(quotas), 1 + 4);
    assert_int_equal(requests(&who, 10), 0);
    assert_int_equal(session_requests("s5", &limits, 10), 0); /* used last */
    assert_int_equal(session_requests("s0", &limits, 10), 1); /* forgotten */
    end();
}

TEST(test_quota__a_tenant_may_have_more_less_or_no_limit)
{
    struct principal more = tenant("more"), none = tenant("none"), as_all = tenant("x");

    begin_kept("{\"requests\":\"10/m\"}",
               "{\"more\":{\"limits\":{\"requests\":\"20/m\"}},"
               "\"none\":{\"limits\":{\"requests\":\"none\"}}}",
               0);
    assert_int_equal(requests(&more, 100), 20);
    assert_int_equal(requests(&none, 100), 100);
    assert_int_equal(requests(&as_all, 100), 10);
    end();
}

TEST(test_quota__another_configuration_keeps_what_was_used)
{
    struct principal who = tenant("acme");
    struct quota_use use, more;

    begin("{\"requests\":\"10/m\",\"calls\":1}");
    assert_true(take_of(&who, QUOTA_CALL, 0, &use));
    assert_int_equal(requests(&who, 100), 0);
    quota_release(&use);
    assert_int_equal(requests(&who, 100), 9);
    apply("{\"requests\":\"15/m\"}", "{}");
    assert_int_equal(requests(&who, 100), 5); /* ten of them are used */
    apply("{\"requests\":\"1000/h burst 12\"}", "{}");
    assert_int_equal(requests(&who, 100), 0); /* more than a burst is */
    apply("{\"calls\":1}", "{}");
    assert_true(take_of(&who, QUOTA_CALL, 0, &use));
    assert_false(take_of(&who, QUOTA_CALL, 0, &more));
    apply("{\"calls\":2}", "{}");
    assert_true(take_of(&who, QUOTA_CALL, 0, &more));
    apply("{\"calls\":1}", "{}");
    quota_release(&more);
    assert_false(take_of(&who, QUOTA_CALL, 0, &more)); /* one goes on */
    quota_release(&use);
    assert_true(take_of(&who, QUOTA_CALL, 0, &use));
    quota_release(&use);
    end();
}

TEST(test_quota__who_was_not_here_for_longest_is_forgotten_first)
{
    struct principal first = tenant("first"), held = tenant("held");
    struct quota_use use;
    char names[16][8];

    begin_kept("{\"requests\":\"1/h\",\"calls\":1}", "{}", 4);
    assert_true(take_of(&held, QUOTA_CALL, 0, &use));
    assert_true(request(&first, 0));
    for (unsigned i = 0; i < 16; i++) {
        snprintf(names[i], sizeof(names[i]), "t%u", i);
        struct principal who = tenant(names[i]);
        assert_true(request(&who, 0));
        assert_in_range(quotas_count(quotas), 1, 4);
    }
    assert_true(request(&first, 0)); /* forgotten, and so as new */
    assert_false(request(&held, 0)); /* not: it holds a call */
    quota_release(&use);
    end();
}

TEST(test_quota_lines__say_the_policy_and_the_wait)
{
    struct principal who = tenant("acme");
    struct quota_use use, more;

    begin("{\"requests\":\"600/m burst 1\",\"bytes\":\"1KiB/h\",\"calls\":8}");
    assert_int_equal(requests(&who, 9), 1);
    assert_str(quota_lines(&refusal, mem),
               "Retry-After: 1\r\nRateLimit-Policy: \"requests\";q=600;w=60\r\n"
               "RateLimit: \"requests\";r=0;t=1\r\n");
    clock_advance_fake(1000);
    assert_true(take_of(&who, QUOTA_REQUEST, 1024, &use));
    quota_release(&use);
    clock_advance_fake(1000);
    assert_false(take_of(&who, QUOTA_REQUEST, 0, &more));
    assert_str(quota_lines(&refusal, mem),
               "Retry-After: 3\r\n"
               "RateLimit-Policy: \"bytes\";q=1024;w=3600;qu=\"content-bytes\"\r\n"
               "RateLimit: \"bytes\";r=0;t=3\r\n");
    end();
}
