/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of a session: its text, its changes, and that it only narrows. */
#include "test.h"

#include "config/limits.h"
#include "session/setup.h"

static struct arena *mem;

static struct session_setup parsed(const char *json)
{
    struct session_setup s;

    assert_true(session_setup_parse(str_of(json), mem, &s));
    return s;
}

static const char whole[] =
    "{\"template\":\"support@3\",\"profile\":\"support\",\"audit\":\"full\","
    "\"audit_body\":65536,\"limits\":{\"requests\":\"60/m\",\"calls\":2},\"told\":true}";

TEST(test_setup__is_written_as_it_was_read)
{
    struct session_setup s;

    mem = arena_new(1 << 20);
    s = parsed(whole);
    assert_str(s.from, "support@3");
    assert_str(session_setup_write(&s, mem), whole);
    s = (struct session_setup){0};
    assert_null(session_setup_write(&s, mem).p);
    assert_false(session_setup_parse(STR_NONE, mem, &s));
    assert_false(session_setup_parse(STR("{\"audit\":\"none\"}"), mem, &s));
    assert_false(session_setup_parse(STR("{"), mem, &s));
    arena_free(mem);
}

TEST(test_setup_new__owns_its_texts)
{
    char text[sizeof(whole)];
    struct session_setup *s;

    memcpy(text, whole, sizeof(whole));
    s = session_setup_new(str_of(text));
    memset(text, 'x', sizeof(text) - 1);
    assert_str(s->from, "support@3");
    assert_str(s->profile, "support");
    assert_int_equal(s->limits.of[LIMIT_CALLS].amount, 2);
    session_setup_free(s);
    session_setup_free(NULL);
    assert_null(session_setup_new(STR("nothing")));
}

TEST(test_setup__has_credentials_by_the_names_of_secrets)
{
    static const char text[] = "{\"template\":\"a@1\",\"credentials\":{\"github\":\"${secret:GH}\","
                               "\"jira \\\"x\\\"\":\"${secret:J.1_-}\"}}";
    static const char *const wrong[] = {
        "{\"credentials\":{\"a\":\"plain\"}}",
        "{\"credentials\":{\"a\":\"${secret:}\"}}",
        "{\"credentials\":{\"a\":\"${secret:A}x\"}}",
        "{\"credentials\":{\"a\":\"x${secret:A}\"}}",
        "{\"credentials\":{\"a\":\"${input:A}\"}}",
        "{\"credentials\":{\"\":\"${secret:A}\"}}",
        "{\"credentials\":{\"a\":1}}",
        "{\"credentials\":[]}",
    };
    struct session_setup s, *own;

    mem = arena_new(1 << 20);
    s = parsed(text);
    assert_int_equal(s.n_credentials, 2);
    assert_str(session_setup_secret(&s, STR("github")), "GH");
    assert_str(session_setup_secret(&s, STR("jira \"x\"")), "J.1_-");
    assert_null(session_setup_secret(&s, STR("GitHub")).p);
    assert_str(session_setup_write(&s, mem), text);
    own = session_setup_new(str_of(text));
    arena_free(mem);
    assert_str(session_setup_secret(own, STR("github")), "GH");
    session_setup_free(own);
    mem = arena_new(1 << 20);
    for (size_t i = 0; i < countof(wrong); i++)
        assert_false(session_setup_parse(str_of(wrong[i]), mem, &s));
    arena_free(mem);
}

TEST(test_setup_audit_mode__is_complete_where_a_server_is_redacted_and_never_less_than_the_server)
{
    static const struct {
        enum server_audit server, plain, full;
    } rows[] = {
        {AUDIT_FULL, AUDIT_FULL, AUDIT_FULL},
        {AUDIT_REDACTED, AUDIT_REDACTED, AUDIT_FULL},
        {AUDIT_DIGEST, AUDIT_DIGEST, AUDIT_DIGEST},
        {AUDIT_NONE, AUDIT_NONE, AUDIT_NONE},
    };
    struct session_setup plain = {.audit_body = 5000};
    struct session_setup full = {.audit = SETUP_AUDIT_FULL, .audit_body = 5000};

    for (size_t i = 0; i < countof(rows); i++) {
        assert_int_equal(setup_audit_mode(NULL, rows[i].server), rows[i].plain);
        assert_int_equal(setup_audit_mode(&plain, rows[i].server), rows[i].plain);
        assert_int_equal(setup_audit_mode(&full, rows[i].server), rows[i].full);
    }
    assert_int_equal(setup_audit_body(NULL), 0);
    assert_int_equal(setup_audit_body(&plain), 0);
    assert_int_equal(setup_audit_body(&full), 5000);
}

TEST(test_setup_apply__changes_what_it_names)
{
    struct session_setup_change change = {.sets_audit = true};
    struct session_setup s;
    struct error err;

    mem = arena_new(1 << 20);
    s = parsed(whole);
    change.to.audit = SETUP_AUDIT_FULL;
    assert_true(session_setup_apply(&change, &s, &err));
    assert_str(session_setup_write(&s, mem), whole); /* no change: the client still knows */
    change.to.audit = SETUP_AUDIT_REDACTED;
    assert_true(session_setup_apply(&change, &s, &err));
    assert_false(s.is_told);
    assert_int_equal(s.audit_body, 0);
    assert_str(s.profile, "support");
    assert_int_equal(s.limits.of[LIMIT_CALLS].amount, 2);
    change = (struct session_setup_change){.sets_audit_body = true, .to = {.audit_body = 2048}};
    assert_false(session_setup_apply(&change, &s, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    change.sets_audit = true;
    change.to.audit = SETUP_AUDIT_FULL;
    assert_true(session_setup_apply(&change, &s, &err));
    assert_int_equal(s.audit_body, 2048);
    change = (struct session_setup_change){.sets_limits = true};
    assert_true(session_setup_apply(&change, &s, &err));
    assert_true(limits_are_unset(&s.limits));
    change.to.limits.of[LIMIT_CHILDREN].amount = 1;
    assert_false(session_setup_apply(&change, &s, &err));
    arena_free(mem);
}
