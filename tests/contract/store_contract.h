/* SPDX-License-Identifier: Apache-2.0 */
/* One suite for every store: each claim runs against each backend and wrapper, on an empty store,
 * with the clock stopped at NOW.  Helpers here make rows that are right in all but what a test is
 * about. */
#ifndef HOLDFAST_TESTS_STORE_CONTRACT_H
#define HOLDFAST_TESTS_STORE_CONTRACT_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#include "base/arena.h"
#include "base/clock.h"
#include "store/cached.h"
#include "store/store.h"

#include "pg_cluster.h"
#include "reap.h"
#include "redis_server.h"

#define NOW INT64_C(1800000000000)
#define HOUR INT64_C(3600000)

struct fixture {
    struct store *store;
    struct arena *mem;
    struct error err;
};

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};
static const struct principal bob = {STR("acme"), STR("user:bob"), ROLE_MEMBER};
static const struct principal alice_elsewhere = {STR("umbrella"), STR("user:alice"), ROLE_MEMBER};

#define check(f, call)                                                                             \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("%s: %s", #call, (f)->err.text);                                              \
    } while (0)

static inline void ignore_trace(void *arg, const char *verb, bool ok, int64_t us)
{
    (void)arg, (void)verb, (void)ok, (void)us;
}

static inline struct store *open_memory(const char *dir)
{
    struct store *s = NULL;
    struct error err;
    (void)dir;
    assert_true(store_open_memory(&s, &err));
    return s;
}

static inline struct store *open_sqlite(const char *dir)
{
    char path[128];
    struct store *s = NULL;
    struct error err;
    snprintf(path, sizeof(path), "%s/holdfast.db", dir);
    struct store_config config = {.path = str_of(path)};
    if (!store_open_sqlite(&config, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

/* Named by a number: one is open at a time. */
static inline const char *contract_database(bool next)
{
    static char name[32];
    static int number;
    number += next;
    snprintf(name, sizeof(name), "contract_%d_%d", (int)getpid(), number);
    return name;
}

static inline struct store *open_postgres(const char *dir)
{
    char url[PG_URL_MAX];
    struct store *s = NULL;
    struct error err;
    (void)dir;
    if (!pg_cluster_url())
        return NULL;
    pg_database_make(contract_database(true));
    pg_database_url(contract_database(false), url);
    struct store_config config = {.path = str_of(url)};
    if (!store_open_postgres(&config, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static inline struct store *open_traced(const char *dir)
{
    return store_traced(open_memory(dir), ignore_trace, NULL);
}

static inline struct store *open_failing(const char *dir)
{
    struct store *s = store_failing(open_memory(dir));
    store_failing_set(s, 0, false);
    return s;
}

/* All of one program on one Redis, each store with a prefix of its own; gone with the process. */
static inline struct cache *contract_cache(bool next)
{
    static struct redis_target target;
    static struct arena *mem;
    static struct cache *cache;
    static int number;
    struct error err;
    if (!next || !redis_server_url())
        return cache;
    if (!mem) {
        mem = arena_new(1 << 20);
        assert_true(redis_target_parse(str_of(redis_server_url()), mem, &target, &err));
    }
    cache_free(cache);
    struct cache_config config = {.target = &target,
                                  .prefix = arena_printf(mem, "contract-%d:", number++),
                                  .ttl_ms = 300000,
                                  .deadline_ms = 5000};
    assert_true(cache_new(&config, &cache, &err));
    return cache;
}

static inline struct store *cached(struct store *inner)
{
    struct cache *cache = inner ? contract_cache(true) : NULL;
    struct store *s = NULL;
    struct error err;
    if (!cache) {
        store_close(inner);
        return NULL;
    }
    assert_true(store_cached(cache, inner, &s, &err));
    return s;
}

static inline struct store *open_cached(const char *dir)
{
    return cached(open_memory(dir));
}

static inline struct store *open_cached_postgres(const char *dir)
{
    return cached(open_postgres(dir));
}

static inline void remove_dir(const char *dir)
{
    static const char *const files[] = {"holdfast.db", "holdfast.db-wal", "holdfast.db-shm"};
    for (size_t i = 0; i < countof(files); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* Runs one claim against every store; the test is skipped where one of them cannot be started. */
static inline void on_every_store(void (*claim)(struct fixture *f))
{
    static const struct {
        const char *name;
        struct store *(*open)(const char *dir);
    } stores[] = {
        {"memory", open_memory},
        {"sqlite", open_sqlite},
        {"postgres", open_postgres},
        {"traced(memory)", open_traced},
        {"failing(memory)", open_failing},
        {"cached(memory)", open_cached},
        {"cached(postgres)", open_cached_postgres},
    };
    bool all = true;
    for (size_t i = 0; i < countof(stores); i++) {
        char dir[] = "/tmp/holdfast-store-XXXXXX";
        assert_non_null(mkdtemp(dir));
        clock_set_fake(NOW, 1000);
        print_message("           on %s\n", stores[i].name);
        struct fixture f = {.store = stores[i].open(dir), .mem = arena_new(1 << 20)};
        if (f.store)
            claim(&f);
        all = all && f.store;
        store_close(f.store);
        arena_free(f.mem);
        remove_dir(dir);
        if (f.store && strstr(stores[i].name, "postgres"))
            pg_database_drop(contract_database(false));
        clock_set_real();
    }
    if (!all)
        skip_because("no PostgreSQL or Redis to start");
}

static inline enum verdict write_one(struct fixture *f, struct store_op op)
{
    check(f, store_write(f->store, &op, 1, &f->err));
    return op.verdict;
}

/* Row ids are UUIDs: ID "000001". */
#define ID "00000000-0000-7000-8000-000000"

/* A live session named by a number: its id ends in it (in order), handle "ses_N". */
static inline struct session_row session_row(struct fixture *f, int n)
{
    return (struct session_row){
        .id = arena_printf(f->mem, ID "%06d", n),
        .handle = arena_printf(f->mem, "ses_%d", n),
        .edge_mcp_id = STR("node-1"),
        .status = SESSION_ACTIVE,
        .origin = ORIGIN_REST,
        .created_ms = NOW,
        .last_activity_ms = NOW,
        .expires_ms = NOW + 24 * HOUR,
        .version = 1,
    };
}

static inline enum verdict create_row(struct fixture *f, const struct principal *who,
                                      const struct session_row *row, int64_t max)
{
    return write_one(
        f, (struct store_op){OP_SESSION_CREATE, who, {.session = row}, .max_counted = max});
}

static inline void create(struct fixture *f, const struct principal *who, int n)
{
    struct session_row row = session_row(f, n);
    assert_int_equal(create_row(f, who, &row, -1), VERDICT_OK);
}

static inline struct session_row *get(struct fixture *f, const struct principal *who,
                                      const char *id)
{
    struct session_row *row = NULL;
    check(f, store_session_by_id(f->store, who, str_of(id), f->mem, &row, &f->err));
    return row;
}

static inline enum verdict end_session(struct fixture *f, const struct principal *who,
                                       const char *id)
{
    struct session_row row = {.id = str_of(id),
                              .status = SESSION_TERMINATED,
                              .termination_reason = STR("done"),
                              .terminated_ms = NOW + 5};
    return write_one(f, (struct store_op){OP_SESSION_END, who, {.session = &row}});
}

static inline int64_t event_id(int64_t writer, int64_t count)
{
    return writer << EVENT_WRITER_SHIFT | count;
}

/* An event with a MAC made from its id, as no two events share one. */
static inline struct event_row event(int64_t id, enum event_kind kind)
{
    struct event_row e = {.id = id,
                          .tenant = STR("acme"),
                          .seq = id & EVENT_COUNT_MASK,
                          .at_ms = NOW + (id & EVENT_COUNT_MASK),
                          .kind = kind,
                          .body_len = -1};
    memcpy(e.mac, &id, sizeof(id));
    e.mac[31] = 1;
    return e;
}

static inline struct event_row intent(int64_t id, const char *session)
{
    struct event_row e = event(id, EVENT_INTENT);
    e.exec = id;
    e.owner = STR("user:alice");
    e.session_id = str_of(session);
    e.server = STR("files");
    e.method = STR("tools/call");
    e.tool = STR("read");
    return e;
}

static inline struct event_row outcome(int64_t id, int64_t exec, const char *session,
                                       const char *how)
{
    struct event_row e = intent(id, session);
    e.kind = EVENT_OUTCOME;
    e.exec = exec;
    e.outcome = str_of(how);
    e.duration_us = 1500;
    return e;
}

static inline void append(struct fixture *f, struct event_row e)
{
    assert_int_equal(write_one(f, (struct store_op){OP_EVENT_APPEND, NULL, {.event = &e}}),
                     VERDICT_OK);
}

static inline void fold_now(struct fixture *f)
{
    for (bool left = true; left;)
        check(f, store_fold(f->store, 100, &left, &f->err));
}

/* A fold comes after what it folds, which here is somewhat after NOW. */
static inline void fold_all(struct fixture *f)
{
    int64_t wall = clock_wall_ms(), mono = clock_mono_ms();
    clock_set_fake(wall + 100 * 24 * HOUR, mono);
    fold_now(f);
    clock_set_fake(wall, mono);
}

static inline struct store_counts counts(struct fixture *f)
{
    struct store_counts c;
    check(f, store_counts(f->store, &c, &f->err));
    return c;
}

#endif
