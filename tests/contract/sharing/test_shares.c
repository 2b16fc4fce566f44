/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about shares of sessions and bindings of carriers. */
#include "../store_contract.h"

#include "session/share_store/family.h"
#include "session/share_store/ops.h"
#include "session/share_store/verbs.h"
#include "store/memory_impl.h"

__attribute__((constructor)) static void register_sharing(void)
{
    store_family_add(&sharing_store);
    memory_family_add(&sharing_memory);
}

#define SHARE "50000000-0000-7000-8000-000000"
static const struct principal carol = {STR("acme"), STR("user:carol"), ROLE_MEMBER};
static const struct principal auditor = {STR("acme"), STR("user:root"), ROLE_ADMIN,
                                         .tenant_wide = true};

static struct str session_id(struct fixture *f, int n)
{
    return arena_printf(f->mem, ID "%06d", n);
}

static struct str share_id(struct fixture *f, int n)
{
    return arena_printf(f->mem, SHARE "%06d", n);
}

static const uint8_t *code_hash(struct fixture *f, int n)
{
    uint8_t *hash = arena_zalloc(f->mem, 32);
    hash[0] = 1;
    hash[31] = (uint8_t)n;
    return hash;
}

/* A share of session 1 named by n, with a code. */
static struct share_row *share_row(struct fixture *f, int n, enum share_may may)
{
    struct share_row *row = arena_new_of(f->mem, struct share_row);
    *row = (struct share_row){.id = share_id(f, n),
                              .session_id = session_id(f, 1),
                              .may = (int)may,
                              .created_ms = NOW,
                              .expires_ms = NOW + 600000};
    memcpy(row->code_hash, code_hash(f, n), sizeof(row->code_hash));
    return row;
}

static enum verdict share(struct fixture *f, const struct principal *who, struct share_row *row)
{
    return write_one(f, op_share_create(who, row));
}

static enum verdict join_by(struct fixture *f, const struct principal *who, int n,
                            const char *carrier, const char *key)
{
    struct share_join j = {.id = share_id(f, n),
                           .session_id = session_id(f, 1),
                           .at_ms = NOW + 7,
                           .client = STR("Cursor"),
                           .carrier = carrier ? str_of(carrier) : STR_NONE,
                           .carrier_key = key ? str_of(key) : STR_NONE};
    return write_one(f, op_share_join(who, &j));
}

static enum verdict end_share(struct fixture *f, const struct principal *who, int n)
{
    struct share_row row = {.id = share_id(f, n),
                            .session_id = session_id(f, 1),
                            .ended_ms = NOW + 9,
                            .end_reason = STR("revoked")};
    return write_one(f, op_share_end(who, &row));
}

static struct binding_row *bound(struct fixture *f, const struct principal *who,
                                 const char *carrier, const char *key)
{
    struct binding_row *row = NULL;
    check(f, store_binding(f->store, who, str_of(carrier), str_of(key), f->mem, &row, &f->err));
    return row;
}

static struct session_row *shared(struct fixture *f, const struct principal *who, const char *name,
                                  bool by_id)
{
    struct session_row *row = NULL;
    check(f, store_shared_session(f->store, who, str_of(name), by_id, f->mem, &row, &f->err));
    return row;
}

static struct share_row *share_by_id(struct fixture *f, int n)
{
    struct share_row *row = NULL;
    check(f, store_share_by_id(f->store, &alice, share_id(f, n), f->mem, &row, &f->err));
    return row;
}

static void code_is_used_once(struct fixture *f)
{
    struct share_row *row = NULL, *made = share_row(f, 1, SHARE_USE);
    bool any = true;
    create(f, &alice, 1);
    made->access_ms = HOUR;
    assert_int_equal(share(f, &alice, made), VERDICT_OK);
    assert_int_equal(share(f, &alice, made), VERDICT_DUPLICATE);
    check(f, store_share_by_code(f->store, &bob, code_hash(f, 1), f->mem, &row, &f->err));
    assert_non_null(row);
    assert_str(row->id, SHARE "000001");
    assert_str(row->session_id, ID "000001");
    assert_str(row->made_by, "user:alice");
    assert_null(row->grantee.p);
    assert_int_equal(row->expires_ms, NOW + 600000);
    assert_int_equal(row->access_ms, HOUR);
    check(f, store_share_by_code(f->store, &bob, code_hash(f, 2), f->mem, &row, &f->err));
    assert_null(row);
    check(f,
          store_share_by_code(f->store, &alice_elsewhere, code_hash(f, 1), f->mem, &row, &f->err));
    assert_null(row);
    check(f, store_has_bindings(f->store, &any, &f->err));
    assert_false(any);

    assert_null(shared(f, &bob, "ses_1", false));
    assert_int_equal(join_by(f, &alice_elsewhere, 1, NULL, NULL), VERDICT_MISSING);
    assert_int_equal(join_by(f, &bob, 1, "client-id", "cursor"), VERDICT_OK);
    assert_int_equal(join_by(f, &carol, 1, "client-id", "cursor"), VERDICT_DUPLICATE);
    assert_int_equal(join_by(f, &bob, 1, NULL, NULL), VERDICT_DUPLICATE);
    assert_int_equal(join_by(f, &bob, 1, "client-id", "other"), VERDICT_DUPLICATE);
    assert_int_equal(join_by(f, &bob, 1, "client-id", "cursor"), VERDICT_OK); /* it is bound */
    row = share_by_id(f, 1);
    assert_str(row->grantee, "user:bob");
    assert_str(row->joined_client, "Cursor");
    assert_int_equal(row->joined_ms, NOW + 7);
    assert_int_equal(row->expires_ms, NOW + 7 + HOUR);
    check(f, store_has_bindings(f->store, &any, &f->err));
    assert_true(any);
}
TEST(test_share__a_code_is_used_once)
{
    on_every_store(code_is_used_once);
}

static void joined_session_is_seen(struct fixture *f)
{
    struct share_row *row = NULL;
    create(f, &alice, 1);
    create(f, &alice, 2);
    assert_int_equal(share(f, &alice, share_row(f, 1, SHARE_READ)), VERDICT_OK);
    assert_int_equal(share(f, &alice, share_row(f, 2, SHARE_USE)), VERDICT_OK);
    assert_int_equal(join_by(f, &bob, 1, NULL, NULL), VERDICT_OK);
    assert_int_equal(join_by(f, &bob, 2, "transport", "abc"), VERDICT_OK);
    assert_str(shared(f, &bob, "ses_1", false)->owner, "user:alice");
    assert_str(shared(f, &bob, ID "000001", true)->handle, "ses_1");
    assert_null(shared(f, &bob, "ses_2", false));
    assert_null(shared(f, &bob, "no uuid", true));
    assert_null(shared(f, &carol, "ses_1", false));
    assert_null(get(f, &bob, ID "000001")); /* not a session of his own */
    check(f, store_share_of(f->store, &bob, session_id(f, 1), f->mem, &row, &f->err));
    assert_int_equal(row->may, SHARE_USE);
    check(f, store_share_of(f->store, &carol, session_id(f, 1), f->mem, &row, &f->err));
    assert_null(row);
    struct binding_row *b = bound(f, &bob, "transport", "abc");
    assert_str(b->session_id, ID "000001");
    assert_str(b->share_id, SHARE "000002");
    assert_int_equal(b->may, SHARE_USE);
    assert_true(b->is_live);
    assert_null(bound(f, &carol, "transport", "abc"));
    assert_null(bound(f, &bob, "client-id", "abc"));
}
TEST(test_share__a_joined_session_is_seen_by_its_grantee_alone)
{
    on_every_store(joined_session_is_seen);
}

static void ends(struct fixture *f)
{
    struct share_row *row = NULL, *named = share_row(f, 3, SHARE_USE);
    create(f, &alice, 1);
    assert_int_equal(share(f, &alice, share_row(f, 1, SHARE_USE)), VERDICT_OK);
    assert_int_equal(share(f, &alice, share_row(f, 2, SHARE_USE)), VERDICT_OK);
    memset(named->code_hash, 0, sizeof(named->code_hash));
    named->grantee = STR("user:carol");
    assert_int_equal(share(f, &auditor, named), VERDICT_OK);
    assert_int_equal(join_by(f, &bob, 1, "transport", "abc"), VERDICT_OK);
    assert_int_equal(end_share(f, &bob, 1), VERDICT_MISSING); /* he does not own the session */
    assert_int_equal(end_share(f, &alice, 9), VERDICT_MISSING);
    assert_int_equal(end_share(f, &alice, 1), VERDICT_OK);
    assert_int_equal(end_share(f, &alice, 1), VERDICT_MISSING);
    assert_int_equal(end_share(f, &auditor, 2), VERDICT_OK);
    assert_int_equal(join_by(f, &carol, 2, NULL, NULL), VERDICT_STALE);
    assert_int_equal(join_by(f, &bob, 1, "transport", "abc"), VERDICT_STALE);
    assert_null(shared(f, &bob, "ses_1", false));
    assert_false(bound(f, &bob, "transport", "abc")->is_live);
    assert_str(bound(f, &bob, "transport", "abc")->end_reason, "revoked");
    struct binding_row drop = {
        .carrier = STR("transport"), .carrier_key = STR("abc"), .share_id = share_id(f, 2)};
    assert_int_equal(write_one(f, op_binding_drop(&bob, &drop)), VERDICT_MISSING);
    drop.share_id = share_id(f, 1);
    assert_int_equal(write_one(f, op_binding_drop(&carol, &drop)), VERDICT_MISSING);
    assert_int_equal(write_one(f, op_binding_drop(&bob, &drop)), VERDICT_OK);
    assert_null(bound(f, &bob, "transport", "abc"));

    /* The named grantee needs no code, and may join more than once; others may not. */
    assert_str(shared(f, &carol, "ses_1", false)->handle, "ses_1");
    assert_int_equal(join_by(f, &bob, 3, NULL, NULL), VERDICT_MISSING);
    assert_int_equal(join_by(f, &carol, 3, "transport", "c1"), VERDICT_OK);
    assert_int_equal(join_by(f, &carol, 3, "transport", "c2"), VERDICT_OK);
    assert_int_equal(share_by_id(f, 3)->expires_ms, NOW + 600000); /* the access; it stays */
    clock_set_fake(NOW + 599999, 1000);
    assert_true(bound(f, &carol, "transport", "c1")->is_live);
    clock_set_fake(NOW + 600000, 1000);
    assert_false(bound(f, &carol, "transport", "c1")->is_live);
    assert_null(shared(f, &carol, "ses_1", false));
    check(f, store_share_of(f->store, &carol, session_id(f, 1), f->mem, &row, &f->err));
    assert_null(row);
    assert_int_equal(join_by(f, &carol, 3, NULL, NULL), VERDICT_STALE);
}
TEST(test_share__ends_when_it_is_revoked_or_expires)
{
    on_every_store(ends);
}

static void code_lapses(struct fixture *f)
{
    create(f, &alice, 1);
    assert_int_equal(share(f, &alice, share_row(f, 1, SHARE_USE)), VERDICT_OK);
    assert_int_equal(share(f, &alice, share_row(f, 2, SHARE_USE)), VERDICT_OK);
    clock_set_fake(NOW + 599999, 1000);
    assert_int_equal(join_by(f, &bob, 1, NULL, NULL), VERDICT_OK);
    assert_int_equal(share_by_id(f, 1)->expires_ms, 0); /* the access lasts as the session */
    clock_set_fake(NOW + 600000, 1000);
    assert_int_equal(join_by(f, &bob, 2, NULL, NULL), VERDICT_STALE);
    assert_non_null(shared(f, &bob, "ses_1", false));
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    assert_int_equal(share(f, &alice, share_row(f, 3, SHARE_USE)), VERDICT_NOT_ACTIVE);
    assert_int_equal(share(f, &bob, share_row(f, 4, SHARE_USE)), VERDICT_MISSING);
}
TEST(test_share__an_unused_code_lapses)
{
    on_every_store(code_lapses);
}

static void limit(struct fixture *f)
{
    struct share_row *rows = NULL;
    size_t n = 0;
    create(f, &alice, 1);
    for (int i = 1; i <= SHARES_LIVE_MAX; i++)
        assert_int_equal(share(f, &alice, share_row(f, i, SHARE_USE)), VERDICT_OK);
    assert_int_equal(share(f, &alice, share_row(f, 40, SHARE_USE)), VERDICT_LIMIT);
    check(f, store_shares_page(f->store, &alice, session_id(f, 1), STR_NONE, 3, f->mem, &rows, &n,
                               &f->err));
    assert_int_equal(n, 3);
    assert_str(rows[2].id, SHARE "000003");
    check(f, store_shares_page(f->store, &alice, session_id(f, 1), rows[2].id, 100, f->mem, &rows,
                               &n, &f->err));
    assert_int_equal(n, SHARES_LIVE_MAX - 3);
    assert_str(rows[0].id, SHARE "000004");
    check(f, store_shares_page(f->store, &alice_elsewhere, session_id(f, 1), STR_NONE, 100, f->mem,
                               &rows, &n, &f->err));
    assert_int_equal(n, 0);
    /* Of those that ended only the newest stay. */
    for (int i = 1; i <= SHARES_LIVE_MAX; i++)
        assert_int_equal(end_share(f, &alice, i), VERDICT_OK);
    for (int i = 41; i <= 44; i++) {
        assert_int_equal(share(f, &alice, share_row(f, i, SHARE_USE)), VERDICT_OK);
        assert_int_equal(end_share(f, &alice, i), VERDICT_OK);
    }
    assert_int_equal(share(f, &alice, share_row(f, 45, SHARE_USE)), VERDICT_OK);
    check(f, store_shares_page(f->store, &alice, session_id(f, 1), STR_NONE, 100, f->mem, &rows, &n,
                               &f->err));
    assert_int_equal(n, SHARES_ENDED_KEPT + 1);
    assert_str(rows[0].id, SHARE "000005");
}
TEST(test_share__a_session_has_a_limited_number)
{
    on_every_store(limit);
}

static struct session_totals totals(struct fixture *f, const struct principal *who)
{
    struct session_totals t;
    check(f, store_session_totals(f->store, who, clock_life_ms(), NOW - HOUR, &t, &f->err));
    return t;
}

/* A session of alice with all that a hand-over must deal with. */
static void create_rich(struct fixture *f)
{
    struct session_row row = session_row(f, 1);
    row.origin = ORIGIN_DERIVED;
    row.provisional = true;
    row.carrier = STR("derived");
    row.carrier_key = STR("claude");
    row.sealed_auth = STR("sealed");
    row.sealed_context = STR("values");
    row.tool_count = 3;
    assert_int_equal(create_row(f, &alice, &row, -1), VERDICT_OK);
    struct transport_row t = {.id_hash = {0xab, [31] = 0xcd},
                              .endpoint = STR("/mcp"),
                              .protocol_version = STR("2025-11-25"),
                              .initialize_params = STR("{}"),
                              .session_id = row.id,
                              .created_ms = NOW,
                              .last_used_ms = NOW};
    assert_int_equal(
        write_one(f, (struct store_op){OP_TRANSPORT_CREATE, &alice, {.transport = &t}}),
        VERDICT_OK);
    struct undelivered_row u = {.id = 5,
                                .session_id = row.id,
                                .created_ms = NOW,
                                .expires_ms = NOW + HOUR,
                                .sealed = STR("result")};
    assert_int_equal(
        write_one(f, (struct store_op){OP_UNDELIVERED_PUT, &alice, {.undelivered = &u}}),
        VERDICT_OK);
}

static void hands_over(struct fixture *f)
{
    static const char hash[] = "ab000000000000000000000000000000000000000000000000000000000000cd";
    struct undelivered_row *left = NULL;
    create_rich(f);
    create(f, &alice, 2);
    assert_int_equal(share(f, &alice, share_row(f, 1, SHARE_HAND_OVER)), VERDICT_OK);
    assert_int_equal(share(f, &alice, share_row(f, 2, SHARE_USE)), VERDICT_OK);
    assert_int_equal(share(f, &alice, share_row(f, 3, SHARE_HAND_OVER)), VERDICT_OK);
    assert_int_equal(totals(f, &alice).total_sessions, 2);
    assert_int_equal(join_by(f, &alice, 3, "client-id", "x"),
                     VERDICT_OK); /* nothing changes hands */
    assert_str(get(f, &alice, ID "000001")->carrier_key, "claude");

    assert_int_equal(join_by(f, &bob, 1, "client-id", "cursor"), VERDICT_OK);
    assert_null(get(f, &alice, ID "000001"));
    struct session_row *row = get(f, &bob, ID "000001");
    assert_str(row->owner, "user:bob");
    assert_int_equal(row->origin, ORIGIN_TRANSPORT);
    assert_false(row->provisional);
    assert_null(row->carrier_key.p);
    assert_null(row->sealed_auth.p);
    assert_null(row->sealed_context.p);
    assert_int_equal(row->version, 2);
    assert_int_equal(row->tool_count, 3);
    assert_true(bound(f, &bob, "client-id", "cursor")->is_live);
    /* The carriers of the former owner lead to a share that is not hers. */
    assert_false(bound(f, &alice, "transport", hash)->is_live);
    assert_false(bound(f, &alice, "derived", "claude")->is_live);
    assert_str(bound(f, &alice, "derived", "claude")->session_id, ID "000001");
    assert_str(share_by_id(f, 2)->end_reason, "handed_over");
    assert_int_equal(join_by(f, &carol, 2, NULL, NULL), VERDICT_STALE);
    assert_int_equal(end_share(f, &alice, 1), VERDICT_MISSING);
    check(f, store_undelivered_get(f->store, &alice, 5, f->mem, &left, &f->err));
    assert_null(left);
    /* The sums of sessions moved too. */
    assert_int_equal(totals(f, &alice).total_sessions, 1);
    assert_int_equal(totals(f, &alice).total_tool_executions, 0);
    assert_int_equal(totals(f, &bob).total_sessions, 1);
    assert_int_equal(totals(f, &bob).active_sessions, 1);
    assert_int_equal(totals(f, &bob).total_tool_executions, 3);
    assert_int_equal(totals(f, &auditor).total_sessions, 2);
    /* The key is free for another session of hers. */
    struct session_row again = session_row(f, 3);
    again.carrier = STR("derived");
    again.carrier_key = STR("claude");
    assert_int_equal(create_row(f, &alice, &again, -1), VERDICT_OK);
}
TEST(test_share__a_hand_over_changes_the_owner)
{
    on_every_store(hands_over);
}

static void reaped_with_session(struct fixture *f)
{
    struct share_row *rows = NULL;
    size_t n = 9;
    bool any = true;
    create(f, &alice, 1);
    assert_int_equal(share(f, &alice, share_row(f, 1, SHARE_USE)), VERDICT_OK);
    assert_int_equal(join_by(f, &bob, 1, "transport", "abc"), VERDICT_OK);
    size_t reaped = 0;
    check(f, reap_at(f->store, NOW, 100, &reaped, &f->err));
    assert_true(bound(f, &bob, "transport", "abc")->is_live);
    assert_int_equal(end_session(f, &alice, ID "000001"), VERDICT_OK);
    check(f, reap_at(f->store, NOW, 100, &reaped, &f->err));
    check(f, store_shares_page(f->store, &alice, session_id(f, 1), STR_NONE, 100, f->mem, &rows, &n,
                               &f->err));
    assert_int_equal(n, 0);
    assert_null(bound(f, &bob, "transport", "abc"));
    check(f, store_has_bindings(f->store, &any, &f->err));
    assert_false(any);
}
TEST(test_share__goes_with_its_session)
{
    on_every_store(reaped_with_session);
}
