/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL backend: opening, closing and the table of verbs.
 *
 * One store is one connection, used by one thread.  Several processes may share a database.  Limits
 * are checked under a lock on the tenant.  One process at a time folds the events of a writer.
 * Changes that other nodes must learn of at once are rows of mcp.changes. */
#include "store/postgres_impl.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

#define DEADLINE_MS 5000

static void pg_close(struct store *store)
{
    struct pg_store *s = pg_of(store);
    pq.finish(s->conn);
    pq.conninfo_free(s->options);
    segment_release(&s->segment);
    free(s->pending);
    free(s->sql_dir);
    free(s);
}

static store_handler *handlers[VERB_COUNT];
const struct pg_verb *pg_verbs[OP_COUNT];

static void add_ops(const struct pg_verb *list)
{
    for (; list->statement; list++)
        pg_verbs[list->kind] = list;
}

static void register_ops(void)
{
    add_ops(pg_verb_ops);
    add_ops(pg_login_ops);
    add_ops(pg_tool_ops);
    add_ops(pg_size_ops);
}

static void register_families(void)
{
    size_t n;
    const struct store_family *const *families = store_families(&n);
    for (size_t i = 0; i < n; i++) {
        add_ops(families[i]->postgres->ops);
        store_handlers_add(handlers, families[i]->postgres->verbs);
        sql_texts_add(families[i]->postgres->texts, SQL_POSTGRES, PG_COUNT);
    }
    for (size_t i = 0; i < OP_COUNT; i++)
        assert(pg_verbs[i] || !store_op_infos[i].name);
    for (size_t i = 0; i < VERB_COUNT; i++)
        assert(handlers[i] || !store_verbs[i].name ||
               sql_statement_text(i * SQL_VARIANTS_MAX, SQL_POSTGRES));
}

static void register_verbs(void)
{
    register_ops();
    store_handlers_add(handlers, pg_read_verbs);
    store_handlers_add(handlers, pg_registry_verbs);
    store_handlers_add(handlers, pg_event_verbs);
    store_handlers_add(handlers, pg_head_verbs);
    store_handlers_add(handlers, pg_fold_verbs);
    store_handlers_add(handlers, pg_reap_verbs);
    store_handlers_add(handlers, pg_write_verbs);
    store_handlers_add(handlers, pg_size_verbs);
    register_families();
}

static bool pg_call(struct store *store, struct store_call *c, struct error *err)
{
    store_handler *run = handlers[c->verb];
    return run ? run(store, c, err) : pg_read_call(pg_of(store), c, err);
}

static const struct store_ops postgres_ops = {
    .name = "postgres",
    .close = pg_close,
    .write = pg_write,
    .call = pg_call,
};

/* Migrates up to the newest schema.  A store that must not migrate only checks that the schema is
 * the newest. */
static bool migrate_or_check(struct pg_store *s, struct error *err)
{
    struct migrations known;
    struct arena *mem = arena_new(1 << 20);
    struct migrate_driver driver = pg_migrate_driver(s);
    int number = 0;
    bool ok = migrate_load("postgres", s->sql_dir, mem, &known, err);
    if (ok && (s->read_only || s->no_migrate))
        ok = driver.version(driver.arg, &number, err) && migrate_check(&known, number, err);
    else if (ok)
        ok = migrate_up(&driver, &known, err);
    arena_free(mem);
    return ok;
}

static bool check_server(struct pg_store *s, struct error *err)
{
    int64_t is_utf8 = 0;
    if (!pg_ready(s, err))
        return false;
    if (pq.server_version(s->conn) < 140000)
        return error_set(err, ERR_CONFIG, "PostgreSQL at %s is older than 14; use a newer server.",
                         s->where);
    if (!pg_exec_text(s, "SELECT (current_setting('server_encoding') = 'UTF8')::int",
                      "reading its encoding", &is_utf8, err))
        return false;
    if (!is_utf8)
        return error_set(err, ERR_CONFIG,
                         "The database at %s does not use UTF8; create it with ENCODING 'UTF8'.",
                         s->where);
    return true;
}

static char *copy_of(struct str s)
{
    char *copy = xmalloc(s.n + 1);
    memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return copy;
}

/* The parser's message quotes the part that it did not understand.  That part may hold a password,
 * so the message is not passed on. */
static bool parse_url(struct pg_store *s, struct str url, struct error *err)
{
    char *text = copy_of(url);
    s->options = pq.conninfo_parse(text, NULL);
    free(text);
    if (!s->options)
        return error_set(err, ERR_CONFIG,
                         "The database URL cannot be read; write it as "
                         "postgresql://USER@HOST:PORT/DATABASE?sslmode=verify-full.");
    const char *host = NULL;
    for (const PQconninfoOption *o = s->options; o->keyword; o++)
        if (strcmp(o->keyword, "host") == 0 && o->val && *o->val)
            host = o->val;
    snprintf(s->where, sizeof(s->where), "%s", host ? host : "the local socket");
    return true;
}

bool pg_open_server(const struct store_config *config, struct pg_store **ret, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!config->path.p || config->path.n == 0)
        return error_set(err, ERR_CONFIG,
                         "The PostgreSQL store needs a database URL; set DATABASE_URL.");
    if (!libpq_load(err))
        return false;
    pthread_once(&once, register_verbs);
    struct pg_store *s = xcalloc(1, sizeof(*s));
    s->base.ops = &postgres_ops;
    s->sql_dir = config->sql_dir ? copy_of(str_of(config->sql_dir)) : NULL;
    s->read_only = config->read_only;
    s->no_migrate = config->no_migrate;
    s->deadline_ms = config->deadline_ms > 0 ? config->deadline_ms : DEADLINE_MS;
    segment_init(&s->segment);
    if (!parse_url(s, config->path, err) || !check_server(s, err)) {
        pg_close(&s->base);
        return false;
    }
    *ret = s;
    return true;
}

bool store_open_postgres(const struct store_config *config, struct store **ret, struct error *err)
{
    struct pg_store *s = NULL;
    if (!pg_open_server(config, &s, err))
        return false;
    if (!migrate_or_check(s, err)) {
        pg_close(&s->base);
        return false;
    }
    log_debug("database opened", LI("postgres", pq.server_version(s->conn)), LZ("host", s->where),
              LZ("mode", s->read_only ? "read-only" : "read-write"));
    *ret = &s->base;
    return true;
}
