/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL backend: opening, closing and the table of verbs.
 *
 * One store is one connection, used by one thread.  Several processes may share a database.  Limits
 * are checked under a lock on the tenant.  One process at a time folds the events of a writer.
 * Changes that other nodes must learn of at once are rows of mcp.changes. */
#include "store/postgres_impl.h"

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

static const struct store_ops postgres_ops = {
    .name = "postgres",
    .close = pg_close,
    .write = pg_write,
    .session_by_handle = pg_session_by_handle,
    .sessions_find = pg_sessions_find,
    .session_by_id = pg_session_by_id,
    .session_by_key = pg_session_by_key,
    .transport_get = pg_transport_get,
    .links_of = pg_links_of,
    .sessions_page = pg_sessions_page,
    .session_totals = pg_session_totals,
    .executions_page = pg_executions_page,
    .context_get = pg_context_get,
    .idempotency_get = pg_idempotency_get,
    .tool_known = pg_tool_known,
    .key_get = pg_key_get,
    .keys_page = pg_keys_page,
    .user_get = pg_user_get,
    .user_by_name = pg_user_by_name,
    .login_get = pg_login_get,
    .login_by_hash = pg_login_by_hash,
    .logins_page = pg_logins_page,
    .tenant_get = pg_tenant_get,
    .tenants_page = pg_tenants_page,
    .tenant_key_get = pg_tenant_key_get,
    .tenant_keys_page = pg_tenant_keys_page,
    .sealed_page = pg_sealed_page,
    .changes = pg_changes,
    .document = pg_document,
    .document_by_id = pg_document_by_id,
    .documents_page = pg_documents_page,
    .tools_page = pg_tools_page,
    .servers_page = pg_servers_page,
    .document_history = pg_document_history,
    .document_revision = pg_document_revision,
    .document_reads = pg_document_reads,
    .undelivered_get = pg_undelivered_get,
    .undelivered_page = pg_undelivered_page,
    .events_page = pg_events_page,
    .chain_heads = pg_chain_heads,
    .writer_start = pg_writer_start,
    .open_intents = pg_open_intents,
    .fold = pg_fold,
    .counts = pg_counts,
    .reap = pg_reap,
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
    if (!config->path.p || config->path.n == 0)
        return error_set(err, ERR_CONFIG,
                         "The PostgreSQL store needs a database URL; set DATABASE_URL.");
    if (!libpq_load(err))
        return false;
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
