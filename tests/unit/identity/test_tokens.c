/* SPDX-License-Identifier: Apache-2.0 */
/* Bearers of tokens: which tenant, which user, and what the store has to know of them. */
#include "test.h"
#include "tokens.h"

#include "base/clock.h"
#include "identity/identity_impl.h"

#define NOW INT64_C(1800000000000)
#define SECRET "0123456789abcdefghijklmnopqrstuvwxyzABCD"

static const struct principal admin = {STR("default"), STR("local"), ROLE_ADMIN};

struct rig {
    struct loop *loop;
    struct store *store;
    struct lanes *lanes;
    struct config *config;
    struct identity *id;
    struct arena *mem;
    unsigned writes;
};

static void on_verb(void *arg, const char *verb, bool ok unused_arg, int64_t us unused_arg)
{
    ((struct rig *)arg)->writes += strcmp(verb, "write") == 0;
}

static struct config *configure(struct str tenants)
{
    struct arena *mem = arena_new(65536);
    struct config *config = NULL;
    struct error err;
    struct str text =
        arena_printf(mem,
                     "{\"holdfast\":{\"auth\":\"required\",\"jwt\":{\"issuer\":\"https://i\","
                     "\"audience\":\"us\",\"keys\":[{\"alg\":\"HS256\",\"secret\":\"" SECRET
                     "\"}]},\"tenants\":{%.*s}}}",
                     STR_ARG(tenants));

    if (!config_parse(text, STR("t.json"), &(struct config_source){0}, &config, &err))
        fail_msg("%s", err.text);
    arena_free(mem);
    return config;
}

static void rig_open(struct rig *r)
{
    struct store *memory = NULL;
    struct error err;

    clock_set_fake(NOW, 1000);
    *r = (struct rig){.loop = loop_new(), .mem = arena_new(1024 * 1024)};
    assert_true(store_open_memory(&memory, &err));
    r->store = store_traced(memory, on_verb, r);
    struct lanes_config lanes = {.write = r->store, .lookup = r->store, .query = r->store};
    r->lanes = lanes_new(r->loop, &lanes);
    r->config = configure(STR("\"acme\":{}"));
    struct identity_config config = {.loop = r->loop, .lanes = r->lanes};
    if (!identity_new(&config, r->config, &r->id, &err))
        fail_msg("%s", err.text);
}

static void rig_close(struct rig *r)
{
    identity_stop(r->id);
    lanes_free(r->lanes);
    identity_free(r->id);
    loop_free(r->loop);
    config_unref(r->config);
    arena_free(r->mem);
    clock_set_real();
}

static struct str token(struct rig *r, const char *more)
{
    struct str text =
        token_text(r->mem, STR("{\"alg\":\"HS256\"}"),
                   arena_printf(r->mem, "{\"iss\":\"https://i\",\"aud\":\"us\",\"exp\":%lld%s%s}",
                                (long long)(NOW / 1000 + 600), *more ? "," : "", more));
    return token_with(r->mem, text, token_mac(r->mem, STR(SECRET), text));
}

static unsigned n_done;

static void on_done(struct identify *q unused_arg)
{
    n_done++;
}

static struct identify ask_with(struct rig *r, struct str text)
{
    static struct identify q;
    struct http_head *head = arena_new_of(r->mem, struct http_head);

    head->headers[head->n_headers++] = (struct http_header){
        .name = STR("authorization"), .value = arena_printf(r->mem, "Bearer %.*s", STR_ARG(text))};
    q = (struct identify){.config = r->config, .head = head, .mem = r->mem, .done = on_done};
    n_done = 0;
    if (!identify(r->id, &q))
        while (!n_done)
            loop_turn(r->loop);
    return q;
}

static struct identify ask(struct rig *r, const char *more)
{
    return ask_with(r, token(r, more));
}

static struct user_row *user_of(struct rig *r, const struct principal *who)
{
    struct user_row *row = NULL;
    struct error err;
    assert_true(store_user_get(r->store, who->user_id, r->mem, &row, &err));
    return row;
}

TEST(test_token__its_bearer_is_a_user_in_the_store_before_anything_is_done)
{
    struct rig r;

    rig_open(&r);
    struct identify q = ask(&r, "\"sub\":\"alice\",\"role\":\"service\",\"tenant\":\"acme\"");
    assert_true(q.ok);
    assert_str(q.who.tenant, "acme");
    assert_true(q.who.role == ROLE_SERVICE);
    assert_true(str_starts(q.who.owner, STR("user:")) && str_starts(q.who.credential, STR("jwt:")));
    assert_int_equal(q.who.expires_ms, NOW + 600000);
    struct user_row *row = user_of(&r, &q.who);
    assert_non_null(row);
    assert_str(row->tenant, "acme");
    assert_str(row->issuer, "https://i");
    assert_str(row->name, "alice");
    assert_true(row->role == ROLE_SERVICE);
    rig_close(&r);
}

TEST(test_token__the_user_follows_issuer_and_subject_alone)
{
    char a[UUID_TEXT], b[UUID_TEXT], c[UUID_TEXT];

    identity_user_id(STR("https://i"), STR("alice"), a);
    identity_user_id(STR("https://i"), STR("alice"), b);
    identity_user_id(STR("https://ia"), STR("lice"), c);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_int_equal(a[14], '8');
    assert_non_null(strchr("89ab", a[19]));
}

TEST(test_token__a_user_is_written_once_and_again_when_its_role_is_another)
{
    struct rig r;

    rig_open(&r);
    assert_true(ask(&r, "\"sub\":\"alice\"").ok);
    assert_int_equal(r.writes, 1);
    assert_true(ask(&r, "\"sub\":\"alice\",\"jti\":\"2\"").ok);
    assert_int_equal(r.writes, 1);
    struct identify q = ask(&r, "\"sub\":\"alice\",\"role\":\"admin\"");
    assert_true(q.ok);
    assert_int_equal(r.writes, 2);
    assert_true(user_of(&r, &q.who)->role == ROLE_ADMIN);
    rig_close(&r);
}

TEST(test_token__tenants_that_nobody_knows_are_refused)
{
    struct tenant_row row = {.id = STR("made"), .created_ms = NOW};
    struct store_op op = {.kind = OP_TENANT_ENSURE, .who = &admin, .tenant = &row};
    struct error err;
    struct rig r;

    rig_open(&r);
    assert_true(ask(&r, "\"sub\":\"a\"").ok);
    assert_true(ask(&r, "\"sub\":\"b\",\"tenant\":\"acme\"").ok);
    struct identify q = ask(&r, "\"sub\":\"c\",\"tenant\":\"made\"");
    assert_false(q.ok);
    assert_int_equal(q.err.code, ERR_UNAUTHENTICATED);
    assert_string_equal(q.err.text, "tenant not found");
    assert_true(store_write(r.store, &op, 1, &err));
    clock_advance_fake(IDENTITY_REFUSED_MS);
    assert_true(ask(&r, "\"sub\":\"c\",\"tenant\":\"made\"").ok);
    rig_close(&r);
}

TEST(test_token__a_subject_has_one_tenant)
{
    struct rig r;

    rig_open(&r);
    assert_true(ask(&r, "\"sub\":\"a\"").ok);
    struct identify q = ask(&r, "\"sub\":\"a\",\"tenant\":\"acme\"");
    assert_false(q.ok);
    assert_int_equal(q.err.code, ERR_UNAUTHENTICATED);
    rig_close(&r);
}

TEST(test_token__that_does_not_hold_is_refused_and_one_that_ended_too)
{
    struct rig r;

    rig_open(&r);
    struct str good = token(&r, "\"sub\":\"a\"");
    ((char *)good.p)[good.n - 1] ^= 1;
    assert_false(ask_with(&r, good).ok);
    struct str brief = token(&r, "\"sub\":\"a\"");
    assert_true(ask_with(&r, brief).ok);
    clock_advance_fake(599999);
    assert_true(ask_with(&r, brief).ok);
    clock_advance_fake(1);
    assert_false(ask_with(&r, brief).ok);
    rig_close(&r);
}

struct watch {
    struct identity_watch w;
    unsigned told;
};

static void on_revoked(struct identity_watch *w)
{
    container_of(w, struct watch, w)->told++;
}

static void nothing(struct loop_task *task unused_arg)
{
}

static void reload(struct rig *r, struct config *fresh)
{
    struct loop_task task = {.fn = nothing};
    struct error err;

    assert_true(identity_apply(r->id, fresh, &err));
    config_unref(r->config);
    r->config = fresh;
    loop_post(r->loop, &task);
    loop_turn(r->loop);
}

TEST(test_reload__ends_what_tokens_opened_only_where_the_issuers_are_others)
{
    struct config *none = NULL;
    struct watch w = {{on_revoked}, 0};
    struct error err;
    struct rig r;

    rig_open(&r);
    struct str text = token(&r, "\"sub\":\"a\"");
    struct principal who = ask_with(&r, text).who;
    identity_watch(r.id, &w.w, &who);
    reload(&r, configure(STR("\"acme\":{},\"more\":{}")));
    assert_int_equal(w.told, 0);
    assert_true(ask_with(&r, text).ok);
    assert_true(config_parse(STR("{\"holdfast\":{\"auth\":\"required\"}}"), STR("t.json"),
                             &(struct config_source){0}, &none, &err));
    reload(&r, none);
    assert_int_equal(w.told, 1);
    assert_false(ask_with(&r, text).ok);
    rig_close(&r);
}

TEST(test_credential__of_16_kib_is_the_longest)
{
    struct rig r;
    char *text;

    rig_open(&r);
    text = arena_alloc(r.mem, IDENTITY_MAX_CREDENTIAL + 1);
    memset(text, 'a', IDENTITY_MAX_CREDENTIAL + 1);
    struct identify q = ask_with(&r, str_n(text, IDENTITY_MAX_CREDENTIAL));
    assert_null(strstr(q.err.text, "too long"));
    q = ask_with(&r, str_n(text, IDENTITY_MAX_CREDENTIAL + 1));
    assert_non_null(strstr(q.err.text, "too long"));
    rig_close(&r);
}
