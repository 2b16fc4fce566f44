/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of a session's secrets: made from what is sealed, kept for the same sealed texts only, within
 * limits. */
#include "test.h"

#include "audit/redact.h"
#include "base/buf.h"
#include "session/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ID "01a1dfe0-6fbb-7000-b849-e51ac02e5f37"
#define CAP 4096

struct rig {
    char dir[40], path[64];
    struct store *store; /* store_failing(); the lanes own it */
    struct loop *loop;
    struct lanes *lanes;
    struct keyring *keyring;
    struct secrets *secrets;
    struct arena *mem;
};

/* Like after a start: no key and no set is in memory. */
static void rig_forget(struct rig *r)
{
    struct master *master = NULL;
    struct error err;

    secrets_free(r->secrets);
    keyring_free(r->keyring);
    assert_true(master_load(str_of(r->path), true, &master, &err));
    struct keyring_config config = {.loop = r->loop, .master = master, .path = str_of(r->path)};
    r->keyring = keyring_new(&config);
    keyring_use(r->keyring, r->lanes);
    r->secrets = secrets_new(r->keyring);
}

static void rig_start(struct rig *r)
{
    struct store *memory;
    struct error err;

    *r = (struct rig){.mem = arena_new(1 << 26)};
    snprintf(r->dir, sizeof(r->dir), "/tmp/holdfast-secrets-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->path, sizeof(r->path), "%s/master.key", r->dir);
    assert_true(store_open_memory(&memory, &err));
    r->store = store_failing(memory);
    r->loop = loop_new();
    struct lanes_config lanes = {.write = r->store, .lookup = r->store, .query = r->store};
    r->lanes = lanes_new(r->loop, &lanes);
    rig_forget(r);
}

static void rig_stop(struct rig *r)
{
    lanes_free(r->lanes);
    secrets_free(r->secrets);
    keyring_free(r->keyring);
    loop_free(r->loop);
    arena_free(r->mem);
    unlink(r->path);
    rmdir(r->dir);
}

static void on_sealed(struct keyring_job *j)
{
    loop_stop(((struct rig *)j->user)->loop);
}

static struct str sealed(struct rig *r, const char *id, const char *field, const char *plain)
{
    struct keyring_job j = {.place = {STR("acme"), str_of(id), str_of(field)},
                            .services = STR("[]"),
                            .plain = str_of(plain),
                            .mem = r->mem,
                            .done = on_sealed,
                            .user = r};
    if (!keyring_seal(r->keyring, &j))
        loop_run(r->loop);
    assert_true(j.ok);
    return j.result;
}

static struct secrets_texts texts_of(struct rig *r, const char *id, const char *plain)
{
    return (struct secrets_texts){.tenant = STR("acme"),
                                  .session_id = arena_dup(r->mem, str_of(id)),
                                  .auth = sealed(r, id, SEALED_FIELD_AUTH, plain)};
}

static void on_found(struct secrets_job *j)
{
    loop_stop(((struct rig *)j->user)->loop);
}

/* Returns whether it was found at once. */
static bool find(struct rig *r, const struct secrets_texts *t, struct secrets_job *j)
{
    *j = (struct secrets_job){.done = on_found, .user = r};
    bool at_once = secrets_find(r->secrets, t, j);
    if (!at_once)
        loop_run(r->loop);
    return at_once;
}

static void becomes(struct known *k, const char *text, const char *want)
{
    struct redactor *r = redactor_new();
    const struct own_secrets own = {.session = k};

    assert_str(redact_text(r, &own, str_of(text)), want);
    redactor_free(r);
}

#define PLAIN "{\"session_tokens\":{\"git\":\"plum-tree-on-the-hill\"}}"
#define OTHER "{\"session_tokens\":{\"git\":\"apple-tree-in-the-yard\"}}"

TEST(test_secrets__credentials_and_context_values_are_in_one_set)
{
    struct rig r;
    struct secrets_job j;

    rig_start(&r);
    struct secrets_texts t = texts_of(&r, ID, PLAIN);
    t.context = sealed(&r, ID, SEALED_FIELD_CONTEXT, "{\"REGION\":\"pear-tree-down-there\"}");
    assert_true(find(&r, &t, &j));
    assert_true(j.ok);
    becomes(j.known, "a plum-tree-on-the-hill, a pear-tree-down-there",
            "a [redacted: session token git of the session], a [redacted: context REGION]");
    known_unref(j.known);
    rig_stop(&r);
}

TEST(test_secrets__a_session_without_any_has_no_set)
{
    struct rig r;
    struct secrets_job j;
    struct secrets_texts none = {.tenant = STR("acme"), .session_id = STR(ID)};

    rig_start(&r);
    assert_true(find(&r, &none, &j));
    assert_true(j.ok);
    assert_null(j.known);
    struct secrets_texts t = texts_of(&r, ID, "{\"session_tokens\":{\"git\":\"short\"}}");
    assert_true(find(&r, &t, &j));
    assert_true(j.ok);
    assert_null(j.known);
    rig_stop(&r);
}

TEST(test_secrets__a_set_is_kept_until_the_credentials_change_or_the_session_ends)
{
    struct rig r;
    struct secrets_job a, b;

    rig_start(&r);
    struct secrets_texts t = texts_of(&r, ID, PLAIN);
    assert_true(find(&r, &t, &a));
    assert_true(find(&r, &t, &b));
    assert_ptr_equal(a.known, b.known);
    known_unref(b.known);
    t.auth = sealed(&r, ID, SEALED_FIELD_AUTH, OTHER);
    assert_true(find(&r, &t, &b));
    becomes(b.known, "apple-tree-in-the-yard plum-tree-on-the-hill",
            "[redacted: session token git of the session] plum-tree-on-the-hill");
    becomes(a.known, "plum-tree-on-the-hill", "[redacted: session token git of the session]");
    assert_int_equal(secrets_cached(r.secrets), 1);
    secrets_forget(r.secrets, STR(ID));
    secrets_forget(r.secrets, STR(ID));
    assert_int_equal(secrets_cached(r.secrets), 0);
    known_unref(a.known);
    known_unref(b.known);
    rig_stop(&r);
}

TEST(test_secrets__after_a_start_they_are_opened_again_and_a_silent_store_is_an_error)
{
    struct rig r;
    struct secrets_job j;

    rig_start(&r);
    struct secrets_texts t = texts_of(&r, ID, PLAIN);
    rig_forget(&r);
    store_failing_set(r.store, 1, false);
    assert_false(find(&r, &t, &j));
    assert_false(j.ok);
    assert_int_equal(j.err.code, ERR_UNAVAILABLE);
    assert_null(j.known);
    assert_int_equal(secrets_cached(r.secrets), 0);
    store_failing_set(r.store, 0, false);
    assert_false(find(&r, &t, &j));
    assert_true(j.ok);
    becomes(j.known, "plum-tree-on-the-hill", "[redacted: session token git of the session]");
    known_unref(j.known);
    rig_stop(&r);
}

/* A spoilt text is not opened again for every request, and takes nothing from the other text. */
TEST(test_secrets__a_text_that_does_not_open_is_left_out)
{
    struct rig r;
    struct secrets_job j;

    rig_start(&r);
    struct secrets_texts t = texts_of(&r, ID, PLAIN);
    t.context = sealed(&r, ID, SEALED_FIELD_CONTEXT, "{\"REGION\":\"pear-tree-down-there\"}");
    t.auth.n -= 4;
    assert_true(find(&r, &t, &j));
    assert_true(j.ok);
    becomes(j.known, "plum-tree-on-the-hill pear-tree-down-there",
            "plum-tree-on-the-hill [redacted: context REGION]");
    known_unref(j.known);
    assert_int_equal(secrets_cached(r.secrets), 1);
    rig_stop(&r);
}

TEST(test_secrets__the_sets_in_memory_have_a_limit)
{
    struct rig r;
    struct secrets_job j;
    char id[UUID_TEXT];

    rig_start(&r);
    for (unsigned i = 0; i < SECRETS_SETS_MAX + 10; i++) {
        snprintf(id, sizeof(id), "row-%u", i);
        struct secrets_texts t = texts_of(&r, id, PLAIN);
        assert_true(find(&r, &t, &j));
        known_unref(j.known);
    }
    assert_int_equal(secrets_cached(r.secrets), SECRETS_SETS_MAX);
    rig_stop(&r);
}

/* The largest bundle, all of it values of eight bytes. */
TEST(test_secrets__the_sets_in_memory_take_no_more_than_their_share)
{
    struct rig r;
    struct secrets_job j;
    struct buf b;
    char id[UUID_TEXT];

    rig_start(&r);
    buf_init(&b, 1 << 20);
    buf_addz(&b, "{\"credentials\":{\"a\":{\"type\":\"custom\",\"properties\":[\"v0000000\"");
    for (unsigned i = 1; b.n < 65000; i++)
        buf_addf(&b, ",\"v%07u\"", i);
    buf_addz(&b, "]}}}");
    for (unsigned i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "row-%u", i);
        struct secrets_texts t = texts_of(&r, id, b.p);
        assert_true(find(&r, &t, &j));
        assert_in_range(known_size(j.known), SECRETS_BYTES_MAX / 100, SECRETS_BYTES_MAX);
        becomes(j.known, "a v0000999 b", "a [redacted: credential a of the session] b");
        known_unref(j.known);
    }
    assert_in_range(secrets_cached(r.secrets), 1, 99);
    buf_release(&b);
    rig_stop(&r);
}
