/* SPDX-License-Identifier: Apache-2.0 */
/* Opening order: connections → writer → chain and its key → what the spool holds → what lost
 * writers left open → the cache, whose key comes from the chain.
 *
 * Of several nodes one at a time closes the intents of writers that are gone, by a claim.  After
 * the database was away every lease may have lapsed although all nodes live, so nobody closes
 * anything before the others had time to renew: a full lease of successful renewals of our own. */
#include "storage.h"

#include "audit/audit.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/log_quiet.h"
#include "base/random.h"
#include "cli/datadir.h"
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
#define END_MS 2000 /* for the last word of a writer */

struct storage {
    struct storage_config config;
    struct arena *mem;
    struct store *stores[3]; /* write, lookup, query; the lanes' once they run */
    struct writer_row writer;
    char uuid[UUID_TEXT], node[256];
    struct chain *chain;
    struct spool *spool;
    struct cache *cache; /* NULL: none */
    /* while it runs */
    struct lanes *lanes;
    struct loop_timer *lease;
    struct write_job lease_job;
    struct store_op lease_op;
    bool renewing;
    int64_t steady_since_ms; /* clock_mono_ms(): renewals have succeeded since; 0: not now */
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

bool storage_is_shared(const struct storage *g)
{
    return g->config.database.is_postgres;
}

struct str storage_channel(const struct storage *g)
{
    return g->cache && storage_is_shared(g) ? cache_channel(g->cache) : STR_NONE;
}

const struct database *storage_database(const struct storage *g)
{
    return &g->config.database;
}

const struct writer_row *storage_writer(const struct storage *g)
{
    return &g->writer;
}

struct chain *storage_chain(struct storage *g)
{
    return g->chain;
}

struct spool *storage_spool(struct storage *g)
{
    return g->spool;
}

struct store *storage_write_store(struct storage *g)
{
    return g->stores[0];
}

/* Connections. */

static void pause_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* A database that starts together with us is waited for; one that refuses us in words is not. */
static bool open_first(struct storage *g, struct error *err)
{
    const struct database *d = &g->config.database;
    struct store_config how = {0};
    struct error why;
    int64_t until = clock_mono_ms() + g->config.patience_ms;

    for (int64_t pause = PAUSE_FIRST_MS;;
         pause = pause * 2 < PAUSE_LAST_MS ? pause * 2 : PAUSE_LAST_MS) {
        if (database_open(d, how, &g->stores[0], &why))
            return true;
        if (!d->is_postgres || why.code != ERR_UNAVAILABLE) {
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
                     STR_ARG(d->shown), (int)(g->config.patience_ms / 1000), why.text);
}

/* Lookups are by key: one that takes long will not come. */
static bool open_stores(struct storage *g, struct error *err)
{
    struct store_config lookup = {.read_only = true, .deadline_ms = LOOKUP_MS};
    struct store_config query = {.read_only = true};
    return open_first(g, err) && database_open(&g->config.database, lookup, &g->stores[1], err) &&
           database_open(&g->config.database, query, &g->stores[2], err);
}

/* Writer, chain, spool. */

/* DATA/writer names the writer that ran here last.  Whoever holds the lock of the data directory
 * knows that it is gone, and nobody has to wait for its lease.  A file that is lost or cannot be
 * read or written costs just that wait. */
static struct str last_writer(const struct storage *g, char ret[UUID_TEXT])
{
    FILE *file = fopen(datadir_path(g->config.data_dir, "writer", g->mem).p, "re");
    size_t n = file ? fread(ret, 1, UUID_TEXT - 1, file) : 0;
    if (file)
        fclose(file);
    return n == UUID_TEXT - 1 ? str_n(ret, n) : STR_NONE;
}

static void note_writer(const struct storage *g)
{
    struct str path = datadir_path(g->config.data_dir, "writer", g->mem);
    struct str fresh = datadir_path(g->config.data_dir, "writer.new", g->mem);
    FILE *file = fopen(fresh.p, "we");
    bool ok = file && fprintf(file, "%s\n", g->uuid) > 0;
    if (file && fclose(file) != 0)
        ok = false;
    if (!ok || rename(fresh.p, path.p) != 0)
        log_warn("the writer was not noted; after a crash its lease has to lapse first");
}

static bool start_writer(struct storage *g, struct error *err)
{
    char last[UUID_TEXT];
    bool is_own = false;
    struct str key = datadir_audit_key(g->config.data_dir, g->mem, &is_own);

    random_uuid7(g->uuid);
    if (gethostname(g->node, sizeof(g->node) - 1) < 0)
        snprintf(g->node, sizeof(g->node), "node");
    g->writer = (struct writer_row){
        .uuid = str_of(g->uuid),
        .node = str_of(g->node),
        .previous = last_writer(g, last),
        .started_ms = clock_life_ms(),
        .lease_until_ms = clock_life_ms() + LEASE_MS,
    };
    if (!store_writer_start(g->stores[0], &g->writer, !storage_is_shared(g), err))
        return false;
    g->writer.previous = STR_NONE;
    note_writer(g);
    return chain_open(key, is_own, g->writer.number, &g->chain, err) &&
           (!storage_is_shared(g) ||
            chain_claim(g->chain, g->stores[0], false, claim_where(key, g->mem), err)) &&
           chain_load(g->chain, g->stores[0], err);
}

/* Without PostgreSQL a spool is of no use: it would lie on the same disk.  One that is there was
 * left by a start that had one. */
static bool open_spool(struct storage *g, struct error *err)
{
    struct str path = datadir_path(g->config.data_dir, "spool.db", g->mem);
    struct spool *left;
    struct error ignored;
    int64_t waiting = 0;
    size_t n = 0;

    if (!storage_is_shared(g)) {
        if (access(path.p, F_OK) != 0 || !spool_open(path, &left, &ignored))
            return true;
        if (spool_count(left, &waiting, &ignored) && waiting > 0)
            log_warn("spool.db holds outcomes of calls that were recorded in PostgreSQL; start "
                     "once with the DATABASE_URL of then to record them",
                     LI("outcomes", waiting));
        spool_close(left);
        return true;
    }
    if (!spool_open(path, &g->spool, err) ||
        !audit_drain_spool(g->stores[0], g->chain, g->spool, &n, err))
        return false;
    if (n)
        log_info("outcomes of the last run are recorded", LI("outcomes", n));
    return true;
}

/* What the writer before us left unfolded, so that the first reader sees what was acknowledged. */
static bool fold_last(struct storage *g, struct error *err)
{
    for (bool left = true; left;)
        if (!store_fold(g->stores[0], FOLD_EVENTS, &left, err))
            return false;
    return true;
}

static bool close_lost(struct storage *g, struct error *err)
{
    size_t lost = 0;
    if (storage_is_shared(g)) /* later, and by one of us */
        return chain_check_key(g->chain, g->stores[0], err) && fold_last(g, err);
    if (!audit_close_lost(g->stores[0], g->chain, &lost, err))
        return false;
    if (lost)
        log_warn("calls of an earlier run have no known outcome", LI("calls", lost));
    return true;
}

/* Lookups are answered from the cache and writes announced to it; queries know nothing of it.  It
 * need not be there: it is looked for at first use, and again whenever it was lost. */
static bool open_cache(struct storage *g, struct error *err)
{
    const struct redis_target *redis = g->config.redis;
    struct cache_config config = {
        .target = redis, .prefix = g->config.cache_prefix, .ttl_ms = g->config.cache_ttl_ms};
    if (!redis)
        return true;
    chain_derive(g->chain, "cache", config.key);
    bool ok = cache_new(&config, &g->cache, err);
    crypto_wipe(config.key, sizeof(config.key));
    for (size_t i = 0; ok && i < 2; i++)
        ok = store_cached(g->cache, g->stores[i], &g->stores[i], err);
    if (ok && !storage_is_shared(g))
        log_warn("REDIS_URL is of little use without DATABASE_URL: nobody else reads the sessions "
                 "of this data directory");
    if (ok)
        log_info("sessions are cached", LS("redis", redis->shown));
    return ok;
}

bool storage_open(const struct storage_config *config, struct storage **ret, struct error *err)
{
    struct storage *g = xcalloc(1, sizeof(*g));
    g->config = *config;
    if (g->config.patience_ms == 0)
        g->config.patience_ms = PATIENCE_MS;
    g->mem = arena_new(1 << 20);
    if (!open_stores(g, err) || !start_writer(g, err) || !open_spool(g, err) ||
        !close_lost(g, err) || !open_cache(g, err)) {
        storage_close(g);
        return false;
    }
    *ret = g;
    return true;
}

/* While it runs: the lease, and the writers of others that have lapsed. */

static bool run_lapsed(struct read_job *job, struct store *store)
{
    struct storage *g = container_of(job, struct storage, lapsed_job);
    static const uint8_t nothing[32];
    bool is_ours = false;
    g->n_lapsed = 0;
    return claim_make(store, STR("close-lapsed"), nothing, STR_NONE, LEASE_MS, &is_ours,
                      &job->err) &&
           (!is_ours || audit_close_lapsed(store, g->chain, &g->n_lapsed, &job->err));
}

static void on_lapsed_done(struct read_job *job)
{
    struct storage *g = container_of(job, struct storage, lapsed_job);
    g->closing = false;
    if (!job->ok)
        log_warn("calls that lost nodes left open were not closed", LZ("why", job->err.text));
    else if (g->n_lapsed)
        log_warn("calls of a node that is gone have no known outcome", LI("calls", g->n_lapsed));
}

static void close_lapsed(struct storage *g)
{
    int64_t now = clock_mono_ms();
    if (!storage_is_shared(g) || g->closing || g->steady_since_ms == 0 ||
        now - g->steady_since_ms < LEASE_MS)
        return;
    g->lapsed_job = (struct read_job){.run = run_lapsed, .done = on_lapsed_done};
    g->closing = lane_maintain(g->lanes, &g->lapsed_job);
}

static void on_lease_written(struct write_job *job)
{
    struct storage *g = container_of(job, struct storage, lease_job);
    g->renewing = false;
    if (!job->ok) {
        static struct log_quiet quiet;
        log_warn_quietly(&quiet, "the writer's lease was not renewed", LZ("why", job->err.text));
        g->steady_since_ms = 0;
        return;
    }
    if (g->steady_since_ms == 0)
        g->steady_since_ms = clock_mono_ms();
    close_lapsed(g);
}

static void on_lease(void *arg)
{
    struct storage *g = arg;

    clock_life_keep();
    if (g->renewing)
        return;
    g->writer.lease_until_ms = clock_life_ms() + LEASE_MS;
    g->lease_op = (struct store_op){.kind = OP_WRITER_RENEW, .writer = &g->writer};
    g->lease_job = (struct write_job){.ops = &g->lease_op, .n = 1, .done = on_lease_written};
    g->renewing = lane_write(g->lanes, &g->lease_job);
}

/* In a build with faults the file that HOLDFAST_TRACE_STORE names gets a line for each call of a
 * lane, its verb in it: tests compare what two requests ask of the store. */
#ifdef HOLDFAST_FAULTS
static void on_traced(void *arg, const char *verb, bool ok, int64_t us)
{
    const struct trace *t = arg;
    (void)ok;
    (void)us;
    dprintf(t->fd, "%s %s\n", t->lane, verb);
}

static void trace_stores(struct storage *g)
{
    static const char *const lanes[] = {"write", "lookup", "query"};
    const char *path = getenv("HOLDFAST_TRACE_STORE");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

    for (size_t i = 0; i < countof(lanes) && fd >= 0; i++) {
        g->traces[i] = (struct trace){fd, lanes[i]};
        g->stores[i] = store_traced(g->stores[i], on_traced, &g->traces[i]);
    }
}
#else
static void trace_stores(struct storage *g unused_arg)
{
}
#endif

/* SQLite alone: PostgreSQL reads back what it folds, and a cache keeps the names of no more
 * sessions than fewer events can have. */
static unsigned fold_most(const struct storage *g)
{
    return storage_is_shared(g) || g->cache ? 0 : 32768;
}

struct lanes *storage_run(struct storage *g, struct loop *loop)
{
    trace_stores(g);
    struct lanes_config lanes = {
        .write = g->stores[0],
        .lookup = g->stores[1],
        .query = g->stores[2],
        .hook = chain_hook(g->chain),
        .max_queue = 65536,
        .max_batch = 512,
        .fold_most = fold_most(g),
        .company_us = 1000,
    };
    memset(g->stores, 0, sizeof(g->stores));
    g->lanes = lanes_new(loop, &lanes);
    g->lease = loop_timer_new(loop, on_lease, g);
    loop_timer_start(g->lease, LEASE_RENEW_MS, LEASE_RENEW_MS);
    return g->lanes;
}

void storage_stop(struct storage *g)
{
    if (!g)
        return;
    loop_timer_free(g->lease);
    g->lease = NULL;
}

/* On a connection of its own: those of the lanes went with them. */
static void end_writer(struct storage *g)
{
    struct error err;
    struct store *store;
    struct store_config how = {.no_migrate = true, .deadline_ms = END_MS};
    g->writer.ended_ms = clock_life_ms();
    struct store_op op = {.kind = OP_WRITER_END, .writer = &g->writer};

    if (!database_open(&g->config.database, how, &store, &err))
        return;
    if (!store_write(store, &op, 1, &err))
        log_warn("the writer's end was not recorded", LZ("why", err.text));
    store_close(store);
}

void storage_close(struct storage *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < countof(g->stores); i++)
        if (g->stores[i])
            store_close(g->stores[i]);
    if (g->lanes)
        end_writer(g);
    cache_free(g->cache);
    spool_close(g->spool);
    chain_free(g->chain);
    arena_free(g->mem);
    free(g);
}
