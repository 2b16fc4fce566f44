/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand interleavings of readers, writers and trouble on four nodes: what has ended is never
 * seen alive by a read that begins later, on whichever node.
 *
 * Every actor is a thread, and one runs at a time: it hands back its turn before and after each
 * read and commit of the store, that is between any two exchanges with Redis, and who goes on is
 * drawn from a seed. */
#include "model_store.h"
#include "redis_server.h"

#include "base/log.h"

#include <pthread.h>

#define ROUNDS 10000
#define NODES 4
#define ACTORS (NODES + 1)
#define READS 2
#define SCHEDULER (-1)

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};

struct race;
struct actor {
    struct race *race;
    int number;
    struct cache *cache;
    struct store *store;
    struct arena *mem;
    bool done;
    pthread_t thread;
};

struct race {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turn; /* an actor's number, or SCHEDULER */
    bool over;
    uint64_t seed;
    char id[64];
    struct session_row row;
    bool ended; /* the end was acknowledged */
    struct actor actors[ACTORS];
    struct redis *redis;
    struct arena *mem;
    bool quiet;      /* nobody gives way */
    char wrong[128]; /* the first thing that was; threads cannot fail a test */
    unsigned from_store, reads;
};

static uint64_t draw(struct race *r, uint64_t limit)
{
    r->seed ^= r->seed << 13;
    r->seed ^= r->seed >> 7;
    r->seed ^= r->seed << 17;
    return r->seed % limit;
}

static void hand_to(struct race *r, int whom)
{
    r->turn = whom;
    pthread_cond_broadcast(&r->changed);
}

/* false: there are no more rounds. */
static bool await_turn(struct race *r, int own)
{
    while (r->turn != own && !r->over)
        pthread_cond_wait(&r->changed, &r->lock);
    return !r->over;
}

static void give_way(struct actor *a)
{
    hand_to(a->race, SCHEDULER);
    (void)await_turn(a->race, a->number);
}

static void on_point(void *arg, enum model_point point)
{
    struct actor *a = arg;
    a->race->from_store += point == BEFORE_READ;
    if (!a->race->quiet)
        give_way(a);
}

static void expect(struct actor *a, bool truth, const char *what)
{
    if (!truth && !a->race->wrong[0])
        snprintf(a->race->wrong, sizeof(a->race->wrong), "node %d: %s", a->number, what);
}

static void read_and_check(struct actor *a)
{
    struct race *r = a->race;
    struct session_row *row = NULL;
    struct error err;
    bool ended = r->ended;
    r->reads++;
    if (!store_session_by_id(a->store, &alice, r->row.id, a->mem, &row, &err) || !row)
        expect(a, false, "a session was not found");
    else
        expect(a, !ended || row->status == SESSION_TERMINATED, "what had ended was seen alive");
    if (r->quiet && row)
        expect(a, row->version == r->row.version, "an old version was seen");
    arena_reset(a->mem);
}

static void write_kind(struct actor *a, enum op_kind kind)
{
    struct session_row change = {.id = a->race->row.id, .status = SESSION_TERMINATED};
    struct store_op op = {kind, &alice, {.session = &change}};
    struct error err;
    expect(a, store_write(a->store, &op, 1, &err), "a write failed");
}

static void say(struct race *r, const struct str *args, size_t n)
{
    struct redis_command command = {args, n};
    struct redis_reply *reply = NULL;
    struct error err;
    expect(&r->actors[NODES],
           redis_call(r->redis, &command, 1, r->mem, &reply, &err) && reply->kind != REDIS_REFUSAL,
           "Redis was not told");
    arena_reset(r->mem);
}

static void set_memory(struct race *r, struct str limit)
{
    struct str args[] = {STR("CONFIG"), STR("SET"), STR("maxmemory"), limit};
    say(r, args, countof(args));
}

static void trouble(struct actor *a)
{
    struct race *r = a->race;
    struct str flush[] = {STR("FLUSHALL")};
    struct str hang_up[] = {STR("CLIENT"), STR("KILL"), STR("TYPE"), STR("normal")};
    switch (draw(r, 8)) {
    case 0:
        say(r, flush, countof(flush));
        break;
    case 1:
        say(r, hang_up, countof(hang_up));
        break;
    case 2:
        set_memory(r, STR("1"));
        give_way(a);
        give_way(a);
        give_way(a);
        set_memory(r, STR("0"));
        break;
    default:
        break;
    }
}

static void play(struct actor *a)
{
    switch (a->number) {
    case 0:
        write_kind(a, OP_SESSION_END);
        a->race->ended = true;
        break;
    case 1:
        read_and_check(a);
        give_way(a);
        write_kind(a, OP_SESSION_PATCH);
        break;
    case NODES:
        trouble(a);
        break;
    default:
        for (unsigned i = 0; i < READS; i++) {
            read_and_check(a);
            give_way(a);
        }
        break;
    }
}

static void *actor_main(void *arg)
{
    struct actor *a = arg;
    pthread_mutex_lock(&a->race->lock);
    while (await_turn(a->race, a->number)) {
        play(a);
        a->done = true;
        hand_to(a->race, SCHEDULER);
    }
    pthread_mutex_unlock(&a->race->lock);
    return NULL;
}

static void play_round(struct race *r, unsigned number)
{
    unsigned left = ACTORS;
    snprintf(r->id, sizeof(r->id), "00000000-0000-7000-8000-%012u", number);
    r->row = (struct session_row){.id = str_of(r->id),
                                  .handle = STR("ses_a"),
                                  .tenant = STR("acme"),
                                  .owner = STR("user:alice"),
                                  .edge_mcp_id = STR("node"),
                                  .expires_ms = clock_life_ms() + 3600000,
                                  .version = 1};
    r->ended = false;
    r->seed = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (unsigned i = 0; i < ACTORS; i++)
        r->actors[i].done = false;
    if (draw(r, 2)) { /* it is kept already */
        r->quiet = true;
        read_and_check(&r->actors[NODES - 1]);
        r->quiet = false;
    }
    while (left > 0) {
        struct actor *a = &r->actors[draw(r, ACTORS)];
        if (a->done)
            continue;
        hand_to(r, a->number);
        (void)await_turn(r, SCHEDULER);
        left -= a->done;
    }
}

/* Once all is quiet, on every node. */
static void check_all(struct race *r)
{
    r->quiet = true;
    for (unsigned i = 0; i < NODES; i++)
        read_and_check(&r->actors[i]);
    r->quiet = false;
}

static void actor_init(struct race *r, struct redis_target *target, int number)
{
    struct actor *a = &r->actors[number];
    struct cache_config config = {
        .target = target, .prefix = STR("race:"), .ttl_ms = 60000, .deadline_ms = 10000};
    struct error err;
    *a = (struct actor){.race = r, .number = number, .mem = arena_new(1 << 20)};
    assert_true(cache_new(&config, &a->cache, &err));
    struct model_store *m = model_store_new(&r->row);
    assert_true(store_cached(a->cache, &m->base, &a->store, &err));
    m->hook = on_point;
    m->arg = a;
    assert_int_equal(pthread_create(&a->thread, NULL, actor_main, a), 0);
}

static void actor_release(struct actor *a)
{
    pthread_join(a->thread, NULL);
    store_close(a->store);
    cache_free(a->cache);
    arena_free(a->mem);
}

TEST(test_cached_race__nothing_that_ended_is_seen_again_in_ten_thousand_interleavings)
{
    static struct race r;
    struct redis_server server;
    struct redis_target target;
    struct error err;
    redis_server_start(&server, NULL);
    struct arena *mem = arena_new(1 << 20);
    log_setup(LOG_ERROR + 1, 0);
    assert_true(redis_target_parse(str_of(server.url), mem, &target, &err));
    r = (struct race){.lock = PTHREAD_MUTEX_INITIALIZER,
                      .changed = PTHREAD_COND_INITIALIZER,
                      .turn = SCHEDULER,
                      .mem = arena_new(1 << 20)};
    struct redis_config config = {.target = &target, .deadline_ms = 10000, .connect_ms = 10000};
    assert_true(redis_new(&config, &r.redis, &err));
    pthread_mutex_lock(&r.lock);
    for (int i = 0; i < ACTORS; i++)
        actor_init(&r, &target, i);
    unsigned round = 0;
    for (; round < ROUNDS && !r.wrong[0]; round++) {
        play_round(&r, round);
        check_all(&r);
    }
    r.over = true;
    pthread_cond_broadcast(&r.changed);
    pthread_mutex_unlock(&r.lock);
    for (int i = 0; i < ACTORS; i++)
        actor_release(&r.actors[i]);
    redis_free(r.redis);
    arena_free(r.mem);
    arena_free(mem);
    redis_server_end(&server);
    if (r.wrong[0])
        fail_msg("round %u: %s", round - 1, r.wrong);
    print_message("           %u reads, %u of them from the store\n", r.reads, r.from_store);
    assert_true(r.from_store < r.reads); /* the cache was there */
}
