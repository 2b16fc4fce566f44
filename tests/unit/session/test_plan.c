/* SPDX-License-Identifier: Apache-2.0 */
/* Plans against the reference store: what they write, and what memory has of it afterwards. */
#include "test.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "session/plan.h"
#include "session/session_metrics.h"

#include <stdlib.h>

#define HOUR_MS (INT64_C(3600) * 1000)

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};

struct world {
    struct store *store;
    struct sessions *home;
    struct arena *mem;
    struct store_op ops[SESSION_PLAN_OPS];
    size_t n;
    struct error err;
};

static void world_init(struct world *w)
{
    struct sessions_config config = {.node = STR("node"), .writer = 7, .max_resident = 16};

    *w = (struct world){.home = sessions_new(&config), .mem = arena_new(1 << 20)};
    log_setup(LOG_ERROR + 1, 0);
    session_metrics_start();
    assert_true(store_open_memory(&w->store, &w->err));
}

static void world_release(struct world *w)
{
    sessions_free(w->home);
    store_close(w->store);
    arena_free(w->mem);
}

static struct session *new_session(struct world *w, const char *key, bool provisional)
{
    struct session_new_args args = {
        .who = &alice,
        .origin = provisional ? ORIGIN_INJECTED : ORIGIN_KEYED,
        .carrier = STR("client-id"),
        .carrier_key = key ? str_of(key) : STR_NONE,
        .provisional = provisional,
        .counted = !provisional,
        .life_ms = HOUR_MS,
    };
    return session_new(w->home, &args);
}

static struct session_plan plan_for(struct session *s)
{
    return (struct session_plan){
        .who = &alice, .session = s, .max_counted = -1, .life_ms = HOUR_MS};
}

static void write_ops(struct world *w, const struct session_plan *p)
{
    w->n = session_plan_ops(p, w->mem, w->ops);
    assert_true(store_write(w->store, w->ops, w->n, &w->err));
}

static enum verdict commit(struct world *w, struct session_plan *p)
{
    write_ops(w, p);
    return session_plan_committed(p, w->ops, w->n, true);
}

static struct session_row *row_of(struct world *w, const struct session *s)
{
    struct session_row *row = NULL;

    assert_true(store_session_by_id(w->store, &alice, s->id, w->mem, &row, &w->err));
    return row;
}

static struct transport *new_transport(struct world *w)
{
    struct transport_row row = {.tenant = alice.tenant,
                                .owner = alice.owner,
                                .endpoint = STR("/mcp"),
                                .protocol_version = STR("2025-11-25"),
                                .initialize_params = STR("{}"),
                                .created_ms = clock_life_ms(),
                                .last_used_ms = clock_life_ms(),
                                .id_hash = {1}};
    struct store_op op = {.kind = OP_TRANSPORT_CREATE, .who = &alice, .transport = &row};

    assert_true(store_write(w->store, &op, 1, &w->err));
    return transport_new(w->home, &row);
}

/* The value of a counter, whatever its labels after these. */
static long counted(const char *series)
{
    struct buf out;

    buf_init(&out, SIZE_MAX);
    metric_write(&out);
    const char *at = strstr(out.p, series);
    const char *value = at ? strchr(at, ' ') : NULL;
    long n = value ? strtol(value, NULL, 10) : 0;
    buf_release(&out);
    return n;
}

TEST(test_session_plan__without_a_change_writes_nothing)
{
    struct store_op ops[SESSION_PLAN_OPS];
    struct session_plan p = {0};

    assert_int_equal(session_plan_ops(&p, NULL, ops), 0);
    assert_int_equal(session_plan_committed(&p, ops, 0, true), VERDICT_OK);
    session_plan_release(&p);
}

TEST(test_session_plan__creates_a_session_once_and_counts_it)
{
    struct world w;
    world_init(&w);
    long before = counted("sessions_created_total{tenant_id=\"acme\"");
    struct session *s = new_session(&w, "k", false);
    struct session_plan p = plan_for(s);
    p.connection = STR("{\"ip_address\":\"127.0.0.1\"}");

    assert_int_equal(commit(&w, &p), VERDICT_OK);
    assert_true(s->stored);
    assert_str(row_of(&w, s)->connection_metadata, "{\"ip_address\":\"127.0.0.1\"}");
    assert_int_equal(counted("sessions_created_total{tenant_id=\"acme\""), before + 1);

    p = plan_for(s);
    write_ops(&w, &p);
    assert_int_equal(w.n, 0);
    session_unref(s);
    world_release(&w);
}

TEST(test_session_plan__promotes_a_provisional_session_also_in_the_batch_that_creates_it)
{
    struct world w;
    world_init(&w);
    struct session *s = new_session(&w, NULL, true);
    struct session_plan p = plan_for(s);
    p.promotes = true;

    assert_int_equal(commit(&w, &p), VERDICT_OK);
    assert_true(s->stored && s->counted && !s->provisional);
    assert_int_equal(s->expires_ms, s->last_used_ms + HOUR_MS);
    assert_true(row_of(&w, s)->counted && !row_of(&w, s)->provisional);
    assert_int_equal(row_of(&w, s)->expires_ms, s->expires_ms);
    session_unref(s);
    world_release(&w);
}

TEST(test_session_plan__at_the_limit_neither_creates_nor_binds)
{
    struct world w;
    world_init(&w);
    struct session *first = new_session(&w, "a", false), *second = new_session(&w, "b", false);
    struct transport *t = new_transport(&w);
    struct session_plan p = plan_for(first);
    p.max_counted = 1;
    assert_int_equal(commit(&w, &p), VERDICT_OK);
    long before = counted("holdfast_session_create_failures_total{reason=\"limit\"");

    p = plan_for(second);
    p.max_counted = 1;
    p.binds = t;
    assert_int_equal(commit(&w, &p), VERDICT_LIMIT);
    assert_false(second->stored);
    assert_null(t->session);
    assert_false(t->link_stored);
    assert_int_equal(counted("holdfast_session_create_failures_total{reason=\"limit\""),
                     before + 1);
    transport_unref(t);
    session_unref(first);
    session_unref(second);
    world_release(&w);
}

TEST(test_session_plan__binds_a_transport_to_the_session)
{
    struct world w;
    world_init(&w);
    struct session *s = new_session(&w, NULL, false);
    struct transport *t = new_transport(&w);
    struct session_plan p = plan_for(s);
    p.binds = t;

    assert_int_equal(commit(&w, &p), VERDICT_OK);
    assert_ptr_equal(t->session, s);
    assert_true(t->link_stored);
    transport_unref(t);
    session_unref(s);
    world_release(&w);
}

TEST(test_session_plan__a_replaced_session_ends_and_no_name_finds_it)
{
    struct world w;
    world_init(&w);
    struct session *old = new_session(&w, "k", false);
    struct session_plan p = plan_for(old);
    assert_int_equal(commit(&w, &p), VERDICT_OK);
    session_forget(old); /* as the one who looks for a session does */
    struct session *s = new_session(&w, "k", false);

    p = plan_for(s);
    p.replaces = old;
    assert_int_equal(commit(&w, &p), VERDICT_OK);
    assert_null(p.replaces);
    assert_true(s->stored);
    assert_int_equal(w.ops[0].kind, OP_SESSION_END);
    assert_int_equal(w.ops[0].verdict, VERDICT_OK);
    assert_ptr_equal(sessions_by_id(w.home, alice.tenant, s->id), s);
    session_unref(s);
    world_release(&w);
}

TEST(test_session_plan__a_row_that_another_request_of_the_session_made_is_fine)
{
    struct world w;
    world_init(&w);
    struct session *s = new_session(&w, "k", false);
    struct session_plan first = plan_for(s), second = plan_for(s);
    struct store_op later[SESSION_PLAN_OPS];
    size_t n = session_plan_ops(&second, w.mem, later);

    assert_int_equal(commit(&w, &first), VERDICT_OK);
    assert_true(store_write(w.store, later, n, &w.err));
    assert_int_equal(later[0].verdict, VERDICT_DUPLICATE);
    assert_int_equal(session_plan_committed(&second, later, n, true), VERDICT_OK);
    session_unref(s);
    world_release(&w);
}

TEST(test_session_plan__a_key_that_another_node_took_is_a_duplicate)
{
    struct world w;
    world_init(&w);
    struct session *theirs = new_session(&w, "k", false), *ours = new_session(&w, "k", false);
    struct session_plan p = plan_for(theirs);
    assert_int_equal(commit(&w, &p), VERDICT_OK);

    p = plan_for(ours);
    assert_int_equal(commit(&w, &p), VERDICT_DUPLICATE);
    assert_false(ours->stored);
    session_unref(theirs);
    session_unref(ours);
    world_release(&w);
}

TEST(test_session_plan__keeps_its_reference_when_the_store_fails)
{
    struct world w;
    world_init(&w);
    struct session *old = new_session(&w, "k", false), *s = new_session(&w, "l", false);
    struct session_plan p = plan_for(s);
    p.replaces = old;
    long before = counted("holdfast_session_create_failures_total{reason=\"store\"");
    w.n = session_plan_ops(&p, w.mem, w.ops);

    assert_int_equal(session_plan_committed(&p, NULL, w.n, false), VERDICT_FAILED);
    assert_ptr_equal(p.replaces, old);
    assert_false(s->stored);
    assert_int_equal(counted("holdfast_session_create_failures_total{reason=\"store\""),
                     before + 1);
    session_plan_release(&p);
    session_unref(s);
    world_release(&w);
}

TEST(test_session_plan__ends_a_session_that_is_known_by_its_row)
{
    struct world w;
    world_init(&w);
    struct session *s = new_session(&w, "k", false);
    struct session_plan p = plan_for(s);
    assert_int_equal(commit(&w, &p), VERDICT_OK);
    struct session_row end = {.id = s->id,
                              .tenant = alice.tenant,
                              .status = SESSION_TERMINATED,
                              .created_ms = s->created_ms,
                              .terminated_ms = clock_life_ms(),
                              .termination_reason = STR("done")};

    p = (struct session_plan){.who = &alice, .ends = &end, .home = w.home};
    assert_int_equal(commit(&w, &p), VERDICT_OK);
    assert_null(sessions_by_id(w.home, alice.tenant, s->id));
    assert_true(s->ended);
    p = (struct session_plan){.who = &alice, .ends = &end, .home = w.home};
    assert_int_equal(commit(&w, &p), VERDICT_MISSING);
    session_unref(s);
    world_release(&w);
}

/* From here on: what a template gives a session. */

TEST(test_plan__of_a_template_writes_the_context_once_and_keeps_the_lifetime)
{
    struct world w;
    struct context_row *context = NULL;
    world_init(&w);
    struct session *s = new_session(&w, "one", false), *late = new_session(&w, NULL, true);
    struct session_plan p = plan_for(s), again = plan_for(s), promotes = plan_for(late);

    session_begin_with(s, HOUR_MS / 2, STR("{\"a\":1}"), STR("{\"team\":\"b\"}"));
    session_begin_with(late, 2 * HOUR_MS, STR_NONE, STR_NONE);
    assert_null(late->first);
    write_ops(&w, &p);
    struct store_op second[SESSION_PLAN_OPS];
    size_t n = session_plan_ops(&again, w.mem, second); /* planned before the first was committed */
    assert_int_equal(session_plan_committed(&p, w.ops, w.n, true), VERDICT_OK);
    assert_null(s->first);
    assert_true(store_write(w.store, second, n, &w.err));
    assert_int_equal(session_plan_committed(&again, second, n, true), VERDICT_OK);
    struct session_row *row = row_of(&w, s);
    assert_int_equal(row->ttl_ms, HOUR_MS / 2);
    assert_int_equal(row->expires_ms, row->created_ms + HOUR_MS / 2);
    assert_true(store_context_get(w.store, &alice, row->context_id, w.mem, &context, &w.err));
    assert_str(context->document, "{\"a\":1}");
    promotes.promotes = true;
    assert_int_equal(commit(&w, &promotes), VERDICT_OK);
    assert_int_equal(row_of(&w, late)->expires_ms, late->created_ms + 2 * HOUR_MS);
    session_unref(s);
    session_unref(late);
    world_release(&w);
}
