/* SPDX-License-Identifier: Apache-2.0 */
/* Opening order: connections → writer → chain and its key → records of the spool → open intents of
 * lost writers → the cache, with a key derived from the chain.
 *
 * One node at a time, selected by a claim, closes the intents of lost writers.  After an outage of
 * the database every lease may have lapsed although all nodes are alive.  So a node closes intents
 * only after it has renewed its own lease successfully for a full lease time, which gives the other
 * nodes time to renew. */
#include "storage.h"

#include "audit/audit.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/log_quiet.h"
#include "base/random.h"
#include "config/datadir.h"
#include "crypto/hash.h"
#include "store/claim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LEASE_MS 15000
#define LEASE_RENEW_MS 5000
#define PATIENCE_MS 30000
#define PAUSE_FIRST_MS 200
#define PAUSE_LAST_MS 2000
#define LOOKUP_MS 2000
#define FOLD_EVENTS 8192
#define END_MS 2000 /* timeout for recording the end of a writer */

struct storage {
    struct storage_config config;
    struct arena *mem;
    struct store *stores[3]; /* write, lookup, query; the lanes own them once they run */
    struct writer_row writer;
    char uuid[UUID_TEXT], node[256];
    struct chain *chain;
    struct spool *spool;
    struct cache *cache; /* NULL: no cache */
    /* set by storage_run() */
    struct lanes *lanes;
    struct loop_timer *lease;
    struct write_job lease_job;
    struct store_op lease_op;
    bool renewing;
    /* clock_mono_ms(): all renewals succeeded since then; 0: the last one failed. */
    int64_t steady_since_ms;
    struct read_job lapsed_job;
    bool closing;
    size_t n_lapsed;
#ifdef HOLDFAST_FAULTS
    struct trace {
        int fd;
        const char *lane;
    } traces[3];
#endif
};

bool storage_is_shared(const struct storage *s)
{
    return s->config.database.is_postgres;
}

struct str storage_channel(const struct storage *s)
{
    return s->cache && storage_is_shared(s) ? cache_channel(s->cache) : STR_NONE;
}

struct str storage_events_text(const struct storage *s)
{
    return s->cache ? cache_events_text(s->cache) : STR_NONE;
}

const struct database *storage_database(const struct storage *s)
{
    return &s->config.database;
}

const struct writer_row *storage_writer(const struct storage *s)
{
    return &s->writer;
}

struct chain *storage_chain(struct storage *s)
{
    return s->chain;
}

struct spool *storage_spool(struct storage *s)
{
    return s->spool;
}

struct store *storage_write_store(struct storage *s)
{
    return s->stores[0];
}

/* Connections. */

static void pause_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Waits for a database that is still starting.  An error reply of the database is returned at
 * once. */
static bool open_first(struct storage *s, struct error *err)
{
    const struct database *d = &s->config.database;
    struct store_config how = {0};
    struct error why;
    int64_t until = clock_mono_ms() + s->config.patience_ms;

    for (int64_t pause = PAUSE_FIRST_MS;;
         pause = pause * 2 < PAUSE_LAST_MS ? pause * 2 : PAUSE_LAST_MS) {
        if (database_open(d, how, &s->stores[0], &why))
            return true;
        if (!d->is_postgres || why.code != ERR_UNAVAILABLE ||
            s->config.patience_ms == STORAGE_NO_PATIENCE) {
            *err = why;
            return false;
        }
        if (clock_mono_ms() + pause > until)
            break;
        log_warn("waiting for the database", LS("database", d->shown), LZ("why", why.text));
        pause_ms(pause);
    }
    return error_set(err, ERR_UNREACHABLE,
                     "the database %.*s could not be reached for %d s (%.300s); start it, or "
                     "correct DATABASE_URL",
                     STR_ARG(d->shown), (int)(s->config.patience_ms / 1000), why.text);
}

/* Lookups are by key, so a slow lookup is treated as failed. */
static bool open_stores(struct storage *s, struct error *err)
{
    struct store_config lookup = {.read_only = true, .deadline_ms = LOOKUP_MS};
    struct store_config query = {.read_only = true};
    return open_first(s, err) && database_open(&s->config.database, lookup, &s->stores[1], err) &&
           database_open(&s->config.database, query, &s->stores[2], err);
}

/* Writer, chain, spool. */

/* DATA/writer names the last writer of this data directory.  The holder of the directory's lock
 * knows that this writer is gone, so its lease need not lapse first.  If the file is missing or
 * unreadable, the lease has to lapse. */
static struct str last_writer(const struct storage *s, char ret[UUID_TEXT])
{
    FILE *file = fopen(datadir_path(s->config.data_dir, "writer", s->mem).p, "re");
    size_t n = file ? fread(ret, 1, UUID_TEXT - 1, file) : 0;
    if (file)
        fclose(file);
    return n == UUID_TEXT - 1 ? str_n(ret, n) : STR_NONE;
}

static void note_writer(const struct storage *s)
{
    struct str path = datadir_path(s->config.data_dir, "writer", s->mem);
    struct str fresh = datadir_path(s->config.data_dir, "writer.new", s->mem);
    FILE *file = fopen(fresh.p, "we");
    bool ok = file && fprintf(file, "%s\n", s->uuid) > 0;
    if (file && fclose(file) != 0)
        ok = false;
    if (!ok || rename(fresh.p, path.p) != 0)
        log_warn("the file of the writer could not be written; after a crash the next start waits "
                 "for its lease to lapse");
}

static bool start_writer(struct storage *s, struct error *err)
{
    char last[UUID_TEXT];
    bool is_own = false;
    struct str key = datadir_audit_key(s->config.data_dir, s->mem, &is_own);

    random_uuid7(s->uuid);
    if (gethostname(s->node, sizeof(s->node) - 1) < 0)
        snprintf(s->node, sizeof(s->node), "node");
    s->writer = (struct writer_row){
        .uuid = str_of(s->uuid),
        .node = str_of(s->node),
        .previous = last_writer(s, last),
        .started_ms = clock_life_ms(),
        .lease_until_ms = clock_life_ms() + LEASE_MS,
    };
    if (!store_writer_start(s->stores[0], &s->writer, !storage_is_shared(s), err))
        return false;
    s->writer.previous = STR_NONE;
    note_writer(s);
    return chain_open(key, is_own, s->writer.number, &s->chain, err) &&
           (!storage_is_shared(s) ||
            chain_claim(s->chain, s->stores[0], false, claim_where(key, s->mem), err)) &&
           chain_load(s->chain, s->stores[0], err);
}

/* Without PostgreSQL a spool has no use: it would be on the same disk.  An existing spool was left
 * by a start with PostgreSQL. */
static bool open_spool(struct storage *s, struct error *err)
{
    struct str path = datadir_path(s->config.data_dir, "spool.db", s->mem);
    struct spool *left;
    struct error ignored;
    int64_t waiting = 0;
    size_t n = 0;

    if (!storage_is_shared(s)) {
        if (access(path.p, F_OK) != 0 || !spool_open(path, &left, &ignored))
            return true;
        if (spool_count(left, &waiting, &ignored) && waiting > 0)
            log_warn("spool.db holds outcomes of calls that were recorded in PostgreSQL; start "
                     "once with the DATABASE_URL used then to record them",
                     LI("outcomes", waiting));
        spool_close(left);
        return true;
    }
    if (!spool_open(path, &s->spool, err) ||
        !audit_drain_spool(s->stores[0], s->chain, s->spool, &n, err))
        return false;
    if (n)
        log_info("outcomes of the last run are recorded", LI("outcomes", n));
    return true;
}

/* Folds the events that the last writer left, so that the first read sees all acknowledged
 * changes. */
static bool fold_last(struct storage *s, struct error *err)
{
    for (bool left = true; left;)
        if (!store_fold(s->stores[0], FOLD_EVENTS, &left, err))
            return false;
    return true;
}

static bool close_lost(struct storage *s, struct error *err)
{
    size_t lost = 0;
    if (storage_is_shared(s)) /* one of the nodes closes them later */
        return chain_check_key(s->chain, s->stores[0], err) && fold_last(s, err);
    if (!audit_close_lost(s->stores[0], s->chain, &lost, err))
        return false;
    if (lost)
        log_warn("calls of an earlier run have no known outcome", LI("calls", lost));
    return true;
}

/* Lookups read from the cache, writes invalidate its entries from the Redis lane, queries bypass it.  Redis need not be
 * reachable: it is connected at first use and after each loss. */
static bool open_cache(struct storage *s, struct error *err)
{
    const struct redis_target *redis = s->config.redis;
    struct cache_config config = {
        .target = redis,
        .prefix = s->config.cache_prefix,
        .ttl_ms = s->config.cache_ttl_ms,
        .tells_events = storage_is_shared(s),
    };
    if (!redis)
        return true;
    chain_derive(s->chain, "cache", config.key);
    bool ok = cache_new(&config, &s->cache, err);
    crypto_wipe(config.key, sizeof(config.key));
    ok = ok && store_cached_with_lane(s->cache, s->stores[0], &s->stores[0], err) &&
         store_cached(s->cache, s->stores[1], &s->stores[1], err);
    if (ok && !storage_is_shared(s))
        log_warn("REDIS_URL has little use without DATABASE_URL: no other node reads the sessions "
                 "of this data directory");
    if (ok)
        log_info("sessions are cached", LS("redis", redis->shown));
    return ok;
}

bool storage_open(const struct storage_config *config, struct storage **ret, struct error *err)
{
    struct storage *s = xcalloc(1, sizeof(*s));
    s->config = *config;
    if (s->config.patience_ms == 0)
        s->config.patience_ms = PATIENCE_MS;
    s->mem = arena_new(1 << 20);
    if (!open_stores(s, err) || !start_writer(s, err) || !open_spool(s, err) ||
        !close_lost(s, err) || !open_cache(s, err)) {
        storage_close(s);
        return false;
    }
    *ret = s;
    return true;
}

/* While running: renews the lease, and closes the intents of lapsed writers. */

static bool run_lapsed(struct read_job *job, struct store *store)
{
    struct storage *s = container_of(job, struct storage, lapsed_job);
    static const uint8_t nothing[32];
    bool is_ours = false;
    s->n_lapsed = 0;
    return claim_make(store, STR("close-lapsed"), nothing, STR_NONE, LEASE_MS, &is_ours,
                      &job->err) &&
           (!is_ours || audit_close_lapsed(store, s->chain, &s->n_lapsed, &job->err));
}

static void on_lapsed_done(struct read_job *job)
{
    struct storage *s = container_of(job, struct storage, lapsed_job);
    s->closing = false;
    if (!job->ok)
        log_warn("open calls of lost nodes could not be closed", LZ("why", job->err.text));
    else if (s->n_lapsed)
        log_warn("calls of a lost node have no known outcome", LI("calls", s->n_lapsed));
}

static void close_lapsed(struct storage *s)
{
    int64_t now = clock_mono_ms();
    if (!storage_is_shared(s) || s->closing || s->steady_since_ms == 0 ||
        now - s->steady_since_ms < LEASE_MS)
        return;
    s->lapsed_job = (struct read_job){.run = run_lapsed, .done = on_lapsed_done};
    s->closing = lane_maintain(s->lanes, &s->lapsed_job);
}

static void on_lease_written(struct write_job *job)
{
    struct storage *s = container_of(job, struct storage, lease_job);
    s->renewing = false;
    if (!job->ok) {
        static struct log_quiet quiet;
        log_warn_quietly(&quiet, "the writer's lease was not renewed", LZ("why", job->err.text));
        s->steady_since_ms = 0;
        return;
    }
    if (s->steady_since_ms == 0)
        s->steady_since_ms = clock_mono_ms();
    close_lapsed(s);
}

static void on_lease(void *arg)
{
    struct storage *s = arg;

    clock_life_keep();
    if (s->renewing)
        return;
    s->writer.lease_until_ms = clock_life_ms() + LEASE_MS;
    s->lease_op = (struct store_op){.kind = OP_WRITER_RENEW, .writer = &s->writer};
    s->lease_job = (struct write_job){.ops = &s->lease_op, .n = 1, .done = on_lease_written};
    s->renewing = lane_write(s->lanes, &s->lease_job);
}

/* In a build with faults, writes a line with the verb of each call of a lane to the file
 * HOLDFAST_TRACE_STORE.  Tests compare the store calls of two requests. */
#ifdef HOLDFAST_FAULTS
static void on_traced(void *arg, const char *verb, bool ok, int64_t us)
{
    const struct trace *t = arg;
    (void)ok;
    (void)us;
    dprintf(t->fd, "%s %s\n", t->lane, verb);
}

static void trace_stores(struct storage *s)
{
    static const char *const lanes[] = {"write", "lookup", "query"};
    const char *path = getenv("HOLDFAST_TRACE_STORE");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

    for (size_t i = 0; i < countof(lanes) && fd >= 0; i++) {
        s->traces[i] = (struct trace){fd, lanes[i]};
        s->stores[i] = store_traced(s->stores[i], on_traced, &s->traces[i]);
    }
}
#else
static void trace_stores(struct storage *s unused_arg)
{
}
#endif

/* A larger fold only for SQLite without a cache: PostgreSQL reads back the rows it folds, and the
 * cache can track only the session names of a smaller fold. */
static unsigned fold_most(const struct storage *s)
{
    return storage_is_shared(s) || s->cache ? 0 : 32768;
}

struct lanes *storage_run(struct storage *s, struct loop *loop)
{
    trace_stores(s);
    struct lanes_config lanes = {
        .write = s->stores[0],
        .lookup = s->stores[1],
        .query = s->stores[2],
        .hook = chain_hook(s->chain),
        .max_queue = 65536,
        .max_batch = 512,
        .fold_most = fold_most(s),
        .batch_fill_us = 1000,
        .room_dir = s->config.data_dir,
    };
    memset(s->stores, 0, sizeof(s->stores));
    s->lanes = lanes_new(loop, &lanes);
    s->lease = loop_timer_new(loop, on_lease, s);
    loop_timer_start(s->lease, LEASE_RENEW_MS, LEASE_RENEW_MS);
    return s->lanes;
}

void storage_stop(struct storage *s)
{
    if (!s)
        return;
    loop_timer_free(s->lease);
    s->lease = NULL;
}

/* Opens a new connection: those of the lanes are closed. */
static void end_writer(struct storage *s)
{
    struct error err;
    struct store *store;
    struct store_config how = {.no_migrate = true, .deadline_ms = END_MS};
    s->writer.ended_ms = clock_life_ms();
    struct store_op op = {.kind = OP_WRITER_END, .writer = &s->writer};

    if (!database_open(&s->config.database, how, &store, &err))
        return;
    if (!store_write(store, &op, 1, &err))
        log_warn("the writer's end was not recorded", LZ("why", err.text));
    store_close(store);
}

void storage_close(struct storage *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < countof(s->stores); i++)
        if (s->stores[i])
            store_close(s->stores[i]);
    if (s->writer.number) /* also after a start that failed later: else its lease must lapse */
        end_writer(s);
    cache_free(s->cache);
    spool_close(s->spool);
    chain_free(s->chain);
    arena_free(s->mem);
    free(s);
}
