/* SPDX-License-Identifier: Apache-2.0 */
/* One cache for MCP lookups and REST reads: what is resident, for whom, and how much of it. */
#include "test.h"

#include "base/clock.h"
#include "session/resident.h"
#include "session/share_store/family.h"
#include "store/memory_impl.h"
#include "session/session_impl.h"
#include "store/store_impl.h"

#include <stdio.h>

/* A lookup also asks whether another owner shares the session. */
__attribute__((constructor)) static void register_sharing(void)
{
    store_family_add(&sharing_store);
    memory_family_add(&sharing_memory);
}

#define MOST 4

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER},
                              bob = {STR("acme"), STR("user:bob"), ROLE_MEMBER},
                              stranger = {STR("rival"), STR("user:alice"), ROLE_MEMBER};
static const struct principal admin = {
    .tenant = STR("acme"), .owner = STR("user:root"), .role = ROLE_ADMIN, .tenant_wide = true};
static const struct principal strange_admin = {
    .tenant = STR("rival"), .owner = STR("user:root"), .role = ROLE_ADMIN, .tenant_wide = true};

struct rig {
    struct store *store;
    struct loop *loop;
    struct lanes *lanes;
    struct sessions *sessions;
    struct session_query query;
};

static void rig_start(struct rig *r, size_t snapshot_bytes)
{
    struct error err;

    *r = (struct rig){0};
    assert_true(store_open_memory(&r->store, &err));
    r->loop = loop_new();
    struct lanes_config lanes = {.write = r->store, .lookup = r->store, .query = r->store};
    r->lanes = lanes_new(r->loop, &lanes);
    struct sessions_config config = {.lanes = r->lanes,
                                     .node = STR("node"),
                                     .writer = 1,
                                     .max_resident = MOST,
                                     .max_snapshot_bytes = snapshot_bytes};
    r->sessions = sessions_new(&config);
}

static void rig_stop(struct rig *r)
{
    lanes_free(r->lanes);
    sessions_free(r->sessions);
    loop_free(r->loop);
}

/* The row of the session "ses_<digit>" of alice. */
static struct session_row row_of(char digit)
{
    static char ids[256][40], handles[256][8];
    unsigned at = (unsigned char)digit;

    snprintf(ids[at], sizeof(ids[at]), "00000000-0000-7000-8000-00000000000%c", digit);
    snprintf(handles[at], sizeof(handles[at]), "ses_%c", digit);
    return (struct session_row){.id = str_of(ids[at]),
                                .handle = str_of(handles[at]),
                                .tenant = alice.tenant,
                                .owner = alice.owner,
                                .edge_mcp_id = STR("node"),
                                .status = SESSION_ACTIVE,
                                .initialized = true,
                                .carrier = STR("handle"),
                                .created_ms = clock_life_ms(),
                                .last_activity_ms = clock_life_ms(),
                                .expires_ms = clock_life_ms() + 3600000,
                                .version = 1};
}

static struct session *know(struct rig *r, char digit)
{
    struct session_row row = row_of(digit);
    return sessions_know_row(r->sessions, &row, sessions_changes(r->sessions));
}

static struct session *known(struct rig *r, char digit)
{
    return sessions_known(r->sessions, &alice, row_of(digit).handle, false);
}

TEST(test_sessions_known__is_for_the_owner_and_for_the_admin_of_the_tenant)
{
    struct rig r;
    rig_start(&r, 0);
    struct session *s = know(&r, 'a');
    struct str handle = STR("ses_a"), id = row_of('a').id;
    assert_ptr_equal(sessions_known(r.sessions, &alice, handle, false), s);
    assert_ptr_equal(sessions_known(r.sessions, &alice, id, true), s);
    assert_ptr_equal(sessions_known(r.sessions, &admin, handle, false), s);
    assert_null(sessions_known(r.sessions, &bob, handle, false));
    assert_null(sessions_known(r.sessions, &bob, id, true));
    assert_null(sessions_known(r.sessions, &stranger, handle, false));
    assert_null(sessions_known(r.sessions, &strange_admin, handle, false));
    assert_null(sessions_known(r.sessions, &strange_admin, id, true));
    assert_null(sessions_known(r.sessions, &alice, handle, true)); /* names are not ids */
    rig_stop(&r);
}

TEST(test_sessions_known__never_answers_with_a_session_that_is_over_or_not_stored)
{
    struct rig r;
    rig_start(&r, 0);
    struct session *s = know(&r, 'a');
    s->expires_ms = clock_life_ms();
    assert_null(known(&r, 'a'));
    s->expires_ms = 0;
    s->stored = false;
    assert_null(known(&r, 'a'));
    s->stored = true;
    assert_ptr_equal(known(&r, 'a'), s);
    sessions_ended(r.sessions, STR("acme"), row_of('a').id);
    assert_null(known(&r, 'a'));
    assert_int_equal(sessions_resident(r.sessions), 0);
    rig_stop(&r);
}

TEST(test_sessions_know_row__keeps_no_row_that_is_over_or_older_than_a_change)
{
    struct rig r;
    struct session_row row = row_of('a');
    rig_start(&r, 0);
    uint64_t before = sessions_changes(r.sessions);
    sessions_sealed(r.sessions, STR("acme"), row.id, STR("new"));
    assert_null(sessions_know_row(r.sessions, &row, before));
    row.status = SESSION_TERMINATED;
    assert_null(sessions_know_row(r.sessions, &row, sessions_changes(r.sessions)));
    row.status = SESSION_ACTIVE;
    assert_non_null(sessions_know_row(r.sessions, &row, sessions_changes(r.sessions)));
    rig_stop(&r);
}

TEST(test_sessions_know_row__a_handle_that_names_another_session_now_finds_that_one)
{
    struct rig r;
    struct session_row later = row_of('b');
    rig_start(&r, 0);
    assert_non_null(know(&r, 'a'));
    later.handle = STR("ses_a");
    struct session *s = sessions_know_row(r.sessions, &later, sessions_changes(r.sessions));
    assert_ptr_equal(known(&r, 'a'), s);
    assert_int_equal(sessions_resident(r.sessions), 1);
    rig_stop(&r);
}

static struct session *used_by_mcp(struct rig *r)
{
    struct session_new_args args = {
        .who = &alice, .origin = ORIGIN_TRANSPORT, .carrier = STR("transport"), .life_ms = 1000};
    struct session *s = session_new(r->sessions, &args);

    s->stored = true;
    return s;
}

TEST(test_sessions_know_row__at_the_limit_the_least_recently_read_goes_and_no_session_of_mcp)
{
    struct rig r;
    rig_start(&r, 0);
    struct session *mcp = used_by_mcp(&r);
    session_unref(mcp); /* idle, and older than all that follow */
    for (char c = 'a'; c < 'a' + MOST - 1; c++)
        assert_non_null(know(&r, c));
    assert_int_equal(sessions_resident(r.sessions), MOST); /* at the limit */
    assert_non_null(known(&r, 'a'));                       /* now 'b' is the oldest */
    assert_non_null(know(&r, 'x'));                        /* one past it */
    assert_int_equal(sessions_resident(r.sessions), MOST);
    assert_null(known(&r, 'b'));
    assert_true(known(&r, 'a') && known(&r, 'c') && known(&r, 'x'));
    assert_ptr_equal(sessions_by_id(r.sessions, STR("acme"), mcp->id), mcp);
    rig_stop(&r);
}

TEST(test_sessions_know_row__displaces_no_session_in_use)
{
    struct rig r;
    struct session *used[MOST];
    rig_start(&r, 0);
    for (size_t i = 0; i < MOST; i++)
        used[i] = used_by_mcp(&r);
    assert_null(know(&r, 'a'));
    assert_int_equal(sessions_resident(r.sessions), MOST);
    for (size_t i = 0; i < MOST; i++)
        session_unref(used[i]);
    assert_non_null(know(&r, 'a'));
    assert_int_equal(sessions_resident(r.sessions), MOST);
    rig_stop(&r);
}

TEST(test_sessions_known__does_not_drop_the_session_that_it_returns)
{
    struct rig r;
    rig_start(&r, 0);
    struct session *s = know(&r, 'a'), *used[MOST];
    for (size_t i = 0; i < MOST; i++)
        used[i] = used_by_mcp(&r); /* one more than fits, all in use but the first */
    assert_int_equal(sessions_resident(r.sessions), MOST + 1);
    assert_ptr_equal(known(&r, 'a'), s);
    assert_true(str_eq(s->handle, STR("ses_a")));
    for (size_t i = 0; i < MOST; i++)
        session_unref(used[i]);
    assert_int_equal(sessions_resident(r.sessions), MOST);
    rig_stop(&r);
}

static size_t bytes_of_one(void)
{
    struct rig r;
    struct session_row row = row_of('a');
    rig_start(&r, 0);
    session_keep_snapshot(know(&r, 'a'), &row, 1);
    size_t bytes = sessions_snapshot_bytes(r.sessions);
    assert_true(bytes > sizeof(struct session_snapshot));
    rig_stop(&r);
    return bytes;
}

TEST(test_snapshots__are_bounded_in_bytes_and_the_session_stays)
{
    struct rig r;
    size_t one = bytes_of_one();
    rig_start(&r, 2 * one);
    for (char c = 'a'; c <= 'b'; c++) {
        struct session_row row = row_of(c);
        session_keep_snapshot(know(&r, c), &row, 1);
    }
    assert_int_equal(sessions_snapshot_bytes(r.sessions), 2 * one); /* at the limit */
    assert_true(known(&r, 'a')->snapshot && known(&r, 'b')->snapshot);
    snapshot_used(known(&r, 'a')->snapshot);
    struct session_row row = row_of('c');
    session_keep_snapshot(know(&r, 'c'), &row, 1); /* one past it */
    assert_int_equal(sessions_snapshot_bytes(r.sessions), 2 * one);
    assert_true(known(&r, 'a')->snapshot && known(&r, 'c')->snapshot);
    assert_null(known(&r, 'b')->snapshot);
    buf_addstr(&known(&r, 'c')->snapshot->json, STR("{}")); /* grows past it */
    snapshot_used(known(&r, 'c')->snapshot);
    assert_null(known(&r, 'a')->snapshot);
    assert_int_equal(sessions_snapshot_bytes(r.sessions), one + 2);
    session_drop_snapshot(known(&r, 'c'));
    assert_int_equal(sessions_snapshot_bytes(r.sessions), 0);
    rig_stop(&r);
}

static void on_found(struct session_query *q)
{
    loop_stop(container_of(q, struct rig, query)->loop);
}

static bool find(struct rig *r, const struct principal *who)
{
    r->query =
        (struct session_query){.by = BY_HANDLE, .who = who, .name = STR("ses_a"), .done = on_found};
    bool at_once = session_find(r->sessions, &r->query);
    if (!at_once)
        loop_run(r->loop);
    assert_true(r->query.ok);
    session_unref(r->query.session);
    return at_once;
}

TEST(test_session_find__makes_a_session_that_rest_has_read_its_own_and_not_a_second_one)
{
    struct rig r;
    struct error err;
    struct session_row row = row_of('a');
    struct store_op op = {
        .kind = OP_SESSION_CREATE, .who = &alice, .session = &row, .max_counted = -1};
    rig_start(&r, 0);
    assert_true(store_write(r.store, &op, 1, &err));
    struct session *s = know(&r, 'a');
    assert_false(s->links_known);
    assert_false(find(&r, &alice)); /* its links are read */
    assert_ptr_equal(r.query.session, s);
    assert_true(s->links_known);
    assert_int_equal(sessions_resident(r.sessions), 1);
    assert_true(find(&r, &alice));
    assert_ptr_equal(r.query.session, s);
    assert_ptr_equal(known(&r, 'a'), s); /* and REST reads it */
    assert_false(find(&r, &bob));        /* another owner asks the store, and finds nothing */
    assert_null(r.query.session);
    rig_stop(&r);
}
