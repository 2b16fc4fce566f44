/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache promises: a hit is never old, foreign or forged, and Redis is never needed. */
#include "model_store.h"
#include "redis_server.h"

#include "base/log.h"
#include "io/wire.h"

#include <poll.h>

#define ID "00000000-0000-7000-8000-00000000000a"

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};
static const struct principal bob = {STR("acme"), STR("user:bob"), ROLE_MEMBER};
static const struct principal stranger = {STR("umbrella"), STR("user:alice"), ROLE_MEMBER};

/* Two nodes on one Redis and one store. */
struct world {
    struct redis_server server;
    struct arena *mem;
    struct redis_target target;
    struct session_row row;
    struct node {
        struct cache *cache;
        struct store *store;
        struct model_store *model;
    } a, b;
    struct redis *redis; /* to look behind the curtain */
    struct error err;
};

static void node_init(struct world *w, struct node *n, const char *prefix)
{
    struct cache_config config = {
        .target = &w->target, .prefix = str_of(prefix), .ttl_ms = 60000, .deadline_ms = 2000};
    memset(config.key, 7, sizeof(config.key));
    assert_true(cache_new(&config, &n->cache, &w->err));
    n->model = model_store_new(&w->row);
    assert_true(store_cached(n->cache, &n->model->base, &n->store, &w->err));
}

/* New connections forget everything, so both are made before anything is kept. */
static void meet(struct world *w, struct node *n)
{
    struct session_row *row;
    assert_true(store_session_by_id(n->store, &alice, STR("none"), w->mem, &row, &w->err));
    n->model->reads = 0;
}

static void world_init(struct world *w, const char *const *args)
{
    memset(w, 0, sizeof(*w));
    log_setup(LOG_ERROR + 1, 0);
    redis_server_start(&w->server, args);
    w->mem = arena_new(64 << 20);
    w->row = (struct session_row){.id = STR(ID),
                                  .handle = STR("ses_a"),
                                  .tenant = STR("acme"),
                                  .owner = STR("user:alice"),
                                  .edge_mcp_id = STR("node"),
                                  .sealed_auth = str_n("\0sealed", 7),
                                  .client_name = STR(""),
                                  .origin = ORIGIN_TOOL,
                                  .counted = true,
                                  .created_ms = 5,
                                  .expires_ms = clock_life_ms() + 3600000,
                                  .version = 1};
    assert_true(redis_target_parse(str_of(w->server.url), w->mem, &w->target, &w->err));
    node_init(w, &w->a, "t:");
    node_init(w, &w->b, "t:");
    struct redis_config config = {.target = &w->target, .deadline_ms = 5000, .connect_ms = 5000};
    assert_true(redis_new(&config, &w->redis, &w->err));
    meet(w, &w->a);
    meet(w, &w->b);
}

static void world_release(struct world *w)
{
    struct node *nodes[] = {&w->a, &w->b};
    for (size_t i = 0; i < countof(nodes); i++) {
        store_close(nodes[i]->store);
        cache_free(nodes[i]->cache);
    }
    redis_free(w->redis);
    arena_free(w->mem);
    redis_server_end(&w->server);
}

static struct session_row *read_as(struct world *w, struct node *n, const struct principal *who)
{
    struct session_row *row = NULL;
    assert_true(store_session_by_id(n->store, who, STR(ID), w->mem, &row, &w->err));
    return row;
}

static struct session_row *read_it(struct world *w, struct node *n)
{
    return read_as(w, n, &alice);
}

/* How many of `times` reads got to the store. */
static unsigned missed(struct world *w, struct node *n, unsigned times)
{
    unsigned before = n->model->reads;
    for (unsigned i = 0; i < times; i++)
        assert_non_null(read_it(w, n));
    return n->model->reads - before;
}

static bool write_kind(struct world *w, struct node *n, enum op_kind kind)
{
    struct session_row change = {.id = STR(ID), .tenant = STR("acme")};
    struct context_row context = {.session_id = STR(ID)};
    struct store_op op = {kind, &alice, {.session = &change}};
    if (kind == OP_CONTEXT_PUT)
        op.context = &context;
    if (kind == OP_SESSION_END)
        change.status = SESSION_TERMINATED;
    return store_write(n->store, &op, 1, &w->err);
}

static struct redis_reply *say(struct world *w, const char *a, struct str b, struct str c)
{
    struct str args[] = {str_of(a), b, c};
    struct redis_command command = {args, c.p ? 3 : b.p ? 2 : 1};
    struct redis_reply *reply = NULL;
    assert_true(redis_call(w->redis, &command, 1, w->mem, &reply, &w->err));
    return reply;
}

static void configure(struct world *w, const char *name, const char *value)
{
    struct str args[] = {STR("CONFIG"), STR("SET"), str_of(name), str_of(value)};
    struct redis_command command = {args, 4};
    struct redis_reply *reply = NULL;
    assert_true(redis_call(w->redis, &command, 1, w->mem, &reply, &w->err));
    assert_str(reply->text, "OK");
}

TEST(test_cached__what_one_node_read_another_need_not)
{
    struct world w;
    world_init(&w, NULL);
    assert_int_equal(missed(&w, &w.a, 3), 1);
    assert_int_equal(missed(&w, &w.b, 3), 0);
    struct session_row *row = read_it(&w, &w.b);
    assert_str(row->handle, "ses_a");
    assert_int_equal(row->sealed_auth.n, 7);
    assert_memory_equal(row->sealed_auth.p, "\0sealed", 7);
    assert_null(row->context_id.p);
    assert_non_null(row->client_name.p); /* empty, not absent */
    assert_int_equal(row->client_name.n, 0);
    assert_int_equal(row->origin, ORIGIN_TOOL);
    assert_true(row->counted);
    assert_false(row->provisional);
    assert_int_equal(row->created_ms, 5);
    assert_int_equal(row->version, 1);
    world_release(&w);
}

TEST(test_cached__a_handle_leads_to_the_same_entry)
{
    struct world w;
    struct session_row *row = NULL;
    world_init(&w, NULL);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(store_session_by_handle(w.a.store, &alice, STR("ses_a"), w.mem, &row, &w.err));
        assert_str(row->id, ID);
    }
    assert_int_equal(w.a.model->reads, 2); /* the handle, then the row it names */
    assert_true(store_session_by_handle(w.a.store, &bob, STR("ses_a"), w.mem, &row, &w.err));
    assert_null(row);
    assert_int_equal(w.a.model->reads, 3);
    world_release(&w);
}

TEST(test_cached__anothers_session_is_asked_of_the_store_like_an_unknown_one)
{
    struct world w;
    struct principal wide = bob;
    world_init(&w, NULL);
    assert_int_equal(missed(&w, &w.a, 2), 1);
    assert_null(read_as(&w, &w.b, &bob));
    assert_null(read_as(&w, &w.b, &stranger));
    assert_int_equal(w.b.model->reads, 2);
    wide.tenant_wide = true;
    assert_non_null(read_as(&w, &w.b, &wide));
    assert_int_equal(w.b.model->reads, 2);
    world_release(&w);
}

TEST(test_cached__every_write_of_a_row_is_seen_by_the_next_read_everywhere)
{
    static const enum op_kind kinds[] = {OP_SESSION_PROMOTE, OP_SESSION_USE,    OP_SESSION_PATCH,
                                         OP_SESSION_REFRESH, OP_SESSION_RESEAL, OP_CONTEXT_PUT,
                                         OP_SESSION_END};
    struct world w;
    world_init(&w, NULL);
    for (size_t i = 0; i < countof(kinds); i++) {
        assert_int_equal(missed(&w, &w.b, 2), 1);
        assert_true(write_kind(&w, &w.a, kinds[i]));
        assert_int_equal(read_it(&w, &w.b)->version, w.row.version);
        assert_int_equal(read_it(&w, &w.a)->version, w.row.version);
        assert_true(write_kind(&w, &w.a, OP_SESSION_PATCH)); /* for the next round */
    }
    assert_int_equal(read_it(&w, &w.b)->status, SESSION_TERMINATED);
    world_release(&w);
}

TEST(test_cached__an_id_in_capitals_is_the_same_session)
{
    struct world w;
    struct session_row *row = NULL;
    struct session_row change = {.id = STR("00000000-0000-7000-8000-00000000000A"),
                                 .status = SESSION_TERMINATED};
    struct store_op op = {OP_SESSION_END, &alice, {.session = &change}};
    world_init(&w, NULL);
    assert_int_equal(missed(&w, &w.b, 2), 1);
    assert_true(store_write(w.a.store, &op, 1, &w.err));
    assert_int_equal(read_it(&w, &w.b)->status, SESSION_TERMINATED);
    assert_true(store_session_by_id(w.b.store, &alice, change.id, w.mem, &row, &w.err));
    assert_int_equal(row->status, SESSION_TERMINATED);
    world_release(&w);
}

TEST(test_cached__the_fold_and_the_reaper_are_seen_too)
{
    struct world w;
    bool left;
    struct reaped reaped;
    struct reap_request what = {0};
    struct event_row event = {.id = INT64_C(1) << EVENT_WRITER_SHIFT | 1,
                              .seq = 1,
                              .kind = EVENT_SESSION,
                              .body_len = -1,
                              .mac = {1},
                              .tenant = STR("acme"),
                              .session_id = STR(ID)};
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &event}};
    world_init(&w, NULL);
    assert_int_equal(missed(&w, &w.b, 2), 1);
    assert_true(store_write(w.a.store, &op, 1, &w.err));
    assert_int_equal(missed(&w, &w.b, 1), 0);
    assert_true(store_fold(w.a.store, 100, &left, &w.err));
    assert_int_equal(read_it(&w, &w.b)->tool_count, 1);
    assert_int_equal(missed(&w, &w.b, 1), 0);
    assert_true(store_reap(w.a.store, &what, &reaped, &w.err));
    assert_int_equal(read_it(&w, &w.b)->status, SESSION_IDLE);
    world_release(&w);
}

TEST(test_cached__what_has_ended_is_asked_of_the_store)
{
    struct world w;
    world_init(&w, NULL);
    clock_set_fake(1800000000000, 1000);
    w.row.expires_ms = clock_life_ms() + 50000;
    assert_int_equal(missed(&w, &w.a, 3), 1);
    clock_advance_fake(50000);
    w.row.expires_ms += 50000; /* and was told of a later end meanwhile */
    assert_int_equal(read_it(&w, &w.a)->status, SESSION_ACTIVE);
    assert_int_equal(w.a.model->reads, 2);
    clock_set_real();
    world_release(&w);
}

TEST(test_cached__an_entry_lives_no_longer_than_its_session)
{
    struct world w;
    world_init(&w, NULL);
    w.row.expires_ms = clock_life_ms() + 20000;
    assert_int_equal(missed(&w, &w.a, 1), 1);
    struct redis_reply *keys = say(&w, "KEYS", STR("t:*"), STR_NONE);
    bool found = false;
    for (size_t i = 0; i < keys->n; i++) {
        struct redis_reply *value = say(&w, "GET", keys->items[i]->text, STR_NONE);
        if (value->text.n < 100)
            continue;
        int64_t left = say(&w, "PTTL", keys->items[i]->text, STR_NONE)->number;
        assert_true(left > 0 && left <= 20000);
        found = true;
    }
    assert_true(found);
    world_release(&w);
}

TEST(test_cached__names_do_not_reach_redis_and_forged_rows_are_not_believed)
{
    struct world w;
    world_init(&w, NULL);
    w.row.tenant = STR("a\r\nFLUSHALL\r\n");
    struct principal odd = alice;
    odd.tenant = w.row.tenant;
    assert_non_null(read_as(&w, &w.a, &odd));
    assert_non_null(read_as(&w, &w.a, &odd));
    assert_int_equal(w.a.model->reads, 1);
    struct redis_reply *keys = say(&w, "KEYS", STR("*"), STR_NONE);
    for (size_t i = 0; i < keys->n; i++) {
        struct str key = keys->items[i]->text;
        assert_true(str_starts(key, STR("t:")));
        assert_false(str_icontains(key, STR("00000000-")));
        assert_false(str_icontains(key, STR("ses_")));
        struct redis_reply *value = say(&w, "GET", key, STR_NONE);
        if (value->text.n < 100)
            continue;
        char *forged = arena_alloc(w.mem, value->text.n);
        memcpy(forged, value->text.p, value->text.n);
        forged[value->text.n - 1] ^= 1;
        say(&w, "SET", key, str_n(forged, value->text.n));
    }
    assert_non_null(read_as(&w, &w.a, &odd));
    assert_int_equal(w.a.model->reads, 2);
    world_release(&w);
}

/* A reader is on its way while the row is written. */
struct between {
    struct world *w;
    enum model_point at;
    void (*act)(struct world *w);
    bool done;
};

static void on_point(void *arg, enum model_point point)
{
    struct between *b = arg;
    if (point != b->at || b->done)
        return;
    b->done = true;
    b->act(b->w);
}

static void end_on_a(struct world *w)
{
    assert_true(write_kind(w, &w->a, OP_SESSION_END));
}

static void end_on_a_and_flush(struct world *w)
{
    end_on_a(w);
    say(w, "FLUSHALL", STR_NONE, STR_NONE);
}

static void end_on_a_without_memory(struct world *w)
{
    configure(w, "maxmemory", "1");
    end_on_a(w);
    configure(w, "maxmemory", "0");
}

TEST(test_cached__a_slow_reader_brings_nothing_back)
{
    static void (*const acts[])(struct world * w) = {end_on_a, end_on_a_and_flush,
                                                     end_on_a_without_memory};
    for (size_t i = 0; i < countof(acts); i++) {
        struct world w;
        world_init(&w, NULL);
        struct between b = {&w, AFTER_READ, acts[i], false};
        w.b.model->hook = on_point;
        w.b.model->arg = &b;
        assert_int_equal(read_it(&w, &w.b)->status, SESSION_ACTIVE); /* as it was when it asked */
        assert_true(b.done);
        assert_int_equal(read_it(&w, &w.b)->status, SESSION_TERMINATED);
        assert_int_equal(read_it(&w, &w.a)->status, SESSION_TERMINATED);
        world_release(&w);
    }
}

static void read_on_b(struct world *w)
{
    read_it(w, &w->b);
}

TEST(test_cached__a_reader_between_tombstone_and_commit_brings_nothing_back)
{
    struct world w;
    world_init(&w, NULL);
    struct between b = {&w, BEFORE_COMMIT, read_on_b, false};
    w.a.model->hook = on_point;
    w.a.model->arg = &b;
    end_on_a(&w);
    assert_true(b.done);
    assert_int_equal(read_it(&w, &w.b)->status, SESSION_TERMINATED);
    world_release(&w);
}

TEST(test_cached__without_redis_everything_works_and_it_is_used_again_when_it_is_back)
{
    struct world w;
    world_init(&w, NULL);
    assert_int_equal(missed(&w, &w.a, 2), 1);
    redis_server_order(&w.server, "kill");
    assert_int_equal(missed(&w, &w.a, 5), 5);
    assert_true(write_kind(&w, &w.a, OP_SESSION_PATCH));
    assert_int_equal(read_it(&w, &w.a)->version, 2);
    redis_server_order(&w.server, "start");
    int64_t until_us = wire_now_us() + 20 * 1000000;
    unsigned reads;
    do {
        struct writer_row writer = {0};
        struct store_op op = {OP_WRITER_RENEW, NULL, {.writer = &writer}};
        assert_true(store_write(w.a.store, &op, 1, &w.err));
        reads = missed(&w, &w.a, 2);
        poll(NULL, 0, 10);
    } while (reads > 0 && wire_now_us() < until_us);
    assert_int_equal(reads, 0);
    world_release(&w);
}

TEST(test_cached__who_reads_of_an_end_in_the_store_buries_it_for_all)
{
    struct world w;
    struct change_row *changes;
    size_t n = 0;
    world_init(&w, NULL);
    assert_int_equal(missed(&w, &w.b, 2), 1);
    w.row.status = SESSION_TERMINATED; /* by a node that Redis does not hear */
    assert_int_equal(read_it(&w, &w.b)->status, SESSION_ACTIVE);
    assert_true(store_changes(w.b.store, 0, 10, w.mem, &changes, &n, &w.err));
    assert_int_equal(n, 1);
    assert_int_equal(read_it(&w, &w.b)->status, SESSION_TERMINATED);
    assert_int_equal(read_it(&w, &w.a)->status, SESSION_TERMINATED);
    world_release(&w);
}

TEST(test_cached__who_reads_of_other_toolsets_in_the_store_buries_what_was_before)
{
    struct world w;
    struct change_row *changes;
    size_t n = 0;
    world_init(&w, NULL);
    assert_int_equal(missed(&w, &w.b, 2), 1);
    w.row.toolsets = STR("read"); /* by a node that Redis does not hear */
    assert_null(read_it(&w, &w.b)->toolsets.p);
    assert_true(store_changes(w.b.store, 0, 10, w.mem, &changes, &n, &w.err));
    assert_int_equal(n, 1);
    assert_str(read_it(&w, &w.b)->toolsets, "read");
    assert_str(read_it(&w, &w.a)->toolsets, "read");
    world_release(&w);
}

/* How often anything was published. */
static long published(struct world *w)
{
    struct str text = say(w, "INFO", STR("commandstats"), STR_NONE)->text;
    static const struct str mark = {"cmdstat_publish:calls=", 22};
    const char *at = memmem(text.p, text.n, mark.p, mark.n);
    return at ? strtol(at + mark.n, NULL, 10) : 0;
}

TEST(test_cached__other_nodes_are_called_for_the_changes_that_the_store_tells_them)
{
    static const struct {
        unsigned fields;
        long calls;
    } cases[] = {
        {FIELD_CLIENT_NAME, 0}, {FIELD_SEALED_AUTH, 1}, {FIELD_TOOLSETS, 1}, {FIELD_SETUP, 1}};
    struct session_row change = {.id = STR(ID), .tenant = STR("acme"), .toolsets = STR("read")};
    struct world w;
    world_init(&w, NULL);
    for (size_t i = 0; i < countof(cases); i++) {
        struct store_op op = {
            OP_SESSION_PATCH, &alice, {.session = &change}, .fields = cases[i].fields};
        long before = published(&w);
        assert_true(store_write(w.a.store, &op, 1, &w.err));
        assert_int_equal(published(&w) - before, cases[i].calls);
    }
    world_release(&w);
}

TEST(test_cached__a_commit_that_failed_leaves_what_was)
{
    struct world w;
    world_init(&w, NULL);
    assert_int_equal(missed(&w, &w.b, 2), 1);
    w.a.model->fails = true;
    assert_false(write_kind(&w, &w.a, OP_SESSION_END));
    assert_int_equal(w.err.code, ERR_UNAVAILABLE);
    assert_int_equal(read_it(&w, &w.b)->status, SESSION_ACTIVE);
    world_release(&w);
}

TEST(test_cached__a_long_row_is_not_kept)
{
    struct world w;
    world_init(&w, NULL);
    char *text = calloc(1, CACHE_ROW_BYTES_MAX);
    size_t all_else = 16 + 6 + 8 * 28 + w.row.id.n + w.row.handle.n + w.row.tenant.n +
                      w.row.owner.n + w.row.edge_mcp_id.n + w.row.sealed_auth.n;
    w.row.connection_metadata = str_n(text, CACHE_ROW_BYTES_MAX - all_else + 1);
    assert_int_equal(missed(&w, &w.a, 2), 2);
    w.row.connection_metadata.n--;
    assert_true(write_kind(&w, &w.a, OP_SESSION_PATCH));
    assert_int_equal(missed(&w, &w.a, 2), 1);
    free(text);
    world_release(&w);
}

TEST(test_cached__several_are_found_together_each_for_its_asker)
{
    struct world w;
    world_init(&w, NULL);
    for (unsigned round = 0; round < 3; round++) {
        struct session_find finds[] = {
            {.who = &alice, .name = STR(ID), .by_id = true, .mem = w.mem},
            {.who = &bob, .name = STR(ID), .by_id = true, .mem = w.mem},
            {.who = &alice, .name = STR("ses_a"), .mem = w.mem},
            {.who = &alice, .name = STR("ses_b"), .mem = w.mem},
            {.who = &bob, .name = STR("ses_a"), .mem = w.mem},
        };
        w.a.model->reads = 0;
        assert_true(store_sessions_find(w.a.store, finds, countof(finds), &w.err));
        for (size_t i = 0; i < countof(finds); i++)
            assert_int_equal(finds[i].row != NULL, i == 0 || i == 2);
    }
    assert_int_equal(w.a.model->reads, 3); /* those that are none */
    world_release(&w);
}

/* All hits, the longest there are: one more than fit into one reply are asked for in two. */
TEST(test_cached__the_longest_rows_are_found_together)
{
    enum { MANY = 61 };
    struct world w;
    struct session_find finds[MANY];
    world_init(&w, NULL);
    char *text = calloc(1, CACHE_ROW_BYTES_MAX);
    w.row.connection_metadata = str_n(text, CACHE_ROW_BYTES_MAX - 512);
    assert_int_equal(missed(&w, &w.a, 2), 1);
    for (size_t i = 0; i < MANY; i++)
        finds[i] =
            (struct session_find){.who = &alice, .name = STR(ID), .by_id = true, .mem = w.mem};
    assert_true(store_sessions_find(w.a.store, finds, MANY, &w.err));
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(finds[i].row->connection_metadata.n, CACHE_ROW_BYTES_MAX - 512);
    assert_int_equal(w.a.model->reads, 1);
    free(text);
    world_release(&w);
}

TEST(test_cached__a_prefix_has_a_limit)
{
    char prefix[CACHE_PREFIX_MAX + 1] = {0};
    struct redis_target target = {.path = STR("/nowhere")};
    struct cache_config config = {.target = &target, .prefix = str_n(prefix, CACHE_PREFIX_MAX)};
    struct cache *cache = NULL;
    struct error err;
    memset(prefix, 'x', sizeof(prefix));
    assert_true(cache_new(&config, &cache, &err));
    cache_free(cache);
    config.prefix.n++;
    assert_false(cache_new(&config, &cache, &err));
    assert_int_equal(err.code, ERR_CONFIG);
}
