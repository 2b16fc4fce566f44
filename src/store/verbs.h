/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the store that are not ops of a batch: reads, and the upkeep of the write lane.
 *
 * Every verb is one struct store_call, and every store answers all of them through one function
 * (store_call()).  So a wrapper such as traced or cached intercepts one function.  Callers use the
 * typed functions below, which also hold the contracts.  Other folders add verbs in families
 * (store/family.h).
 *
 * To add a read verb: a line in STORE_VERBS and its function here; its function in memory_*.c; its
 * statement in both dialects in sql_*.c; its test in tests/contract. */
#ifndef HOLDFAST_STORE_VERBS_H
#define HOLDFAST_STORE_VERBS_H

#include "base/arena.h"
#include "base/error.h"
#include "store/rows.h"

struct store;

/* Name, function and kind of each verb. */
#define STORE_VERBS(X)                                                                             \
    X(SESSION_BY_HANDLE, session_by_handle, ROW)                                                   \
    X(SESSION_BY_ID, session_by_id, ROW)                                                           \
    X(SESSIONS_FIND, sessions_find, OTHER)                                                         \
    X(SESSION_BY_KEY, session_by_key, ROW)                                                         \
    X(TRANSPORT_GET, transport_get, ROW)                                                           \
    X(LINKS_OF, links_of, ROWS)                                                                    \
    X(SESSIONS_PAGE, sessions_page, PAGE)                                                          \
    X(SESSIONS_NAMED, sessions_named, PAGE)                                                        \
    X(SESSION_TOTALS, session_totals, OTHER)                                                       \
    X(EXECUTIONS_PAGE, executions_page, PAGE)                                                      \
    X(CONTEXT_GET, context_get, ROW)                                                               \
    X(IDEMPOTENCY_GET, idempotency_get, ROW)                                                       \
    X(TOOL_KNOWN, tool_known, OTHER)                                                               \
    X(UNDELIVERED_GET, undelivered_get, ROW)                                                       \
    X(KEY_GET, key_get, ROW)                                                                       \
    X(KEYS_PAGE, keys_page, PAGE)                                                                  \
    X(USER_GET, user_get, ROW)                                                                     \
    X(USER_BY_NAME, user_by_name, ROW)                                                             \
    X(USERS_PAGE, users_page, PAGE)                                                                \
    X(LOGIN_GET, login_get, ROW)                                                                   \
    X(LOGIN_BY_HASH, login_by_hash, ROW)                                                           \
    X(LOGINS_PAGE, logins_page, PAGE)                                                              \
    X(TENANT_GET, tenant_get, ROW)                                                                 \
    X(TENANTS_PAGE, tenants_page, PAGE)                                                            \
    X(TENANT_KEY_GET, tenant_key_get, ROW)                                                         \
    X(TENANT_KEYS_PAGE, tenant_keys_page, PAGE)                                                    \
    X(SECRETS_PAGE, secrets_page, PAGE)                                                            \
    X(SEALED_PAGE, sealed_page, PAGE)                                                              \
    X(CHANGES, changes, PAGE)                                                                      \
    X(TOOLS_PAGE, tools_page, PAGE)                                                                \
    X(SERVERS_PAGE, servers_page, PAGE)                                                            \
    X(UNDELIVERED_PAGE, undelivered_page, PAGE)                                                    \
    X(EVENTS_PAGE, events_page, PAGE)                                                              \
    X(CHAIN_HEADS, chain_heads, ROWS)                                                              \
    X(WRITER_START, writer_start, OTHER)                                                           \
    X(OPEN_INTENTS, open_intents, PAGE)                                                            \
    X(FOLD, fold, OTHER)                                                                           \
    X(AUDIT_SIZES, audit_sizes, PAGE)                                                              \
    X(DATABASE_SIZE, database_size, OTHER)                                                         \
    X(COUNTS, counts, OTHER)                                                                       \
    X(REAP, reap, OTHER)

/* ROW: at most one row.  ROWS: all rows.  PAGE: at most `limit` rows.  OTHER: results in `ret`. */
enum verb_kind { VERB_KIND_ROW, VERB_KIND_ROWS, VERB_KIND_PAGE, VERB_KIND_OTHER };

#define VERB_ENUM(upper, lower, kind) VERB_##upper,
/* Verbs of families, that is of other folders, are numbered from VERB_FAMILY on. */
enum store_verb { STORE_VERBS(VERB_ENUM) VERB_FAMILY };
#define VERB_COUNT (VERB_FAMILY + 64)

/* One row per verb; without a name where no family has added a verb (family.c). */
struct verb_info {
    const char *name;
    enum verb_kind kind;
};
extern struct verb_info store_verbs[VERB_COUNT];

/* The arguments of any verb, and its results.  The function of a verb sets the arguments that the
 * verb uses. */
struct store_call {
    unsigned verb;  /* enum store_verb, or a verb of a family */
    unsigned limit; /* rows of a page */
    const struct principal *who;
    struct arena *mem; /* for the results */
    struct str tenant, id, name, session_id;
    struct str after; /* the page begins after this row, in the order of the page */
    int64_t after_id; /* likewise, for rows with a number */
    int64_t number;
    const uint8_t *hash; /* 32 bytes */
    int64_t now_ms, since_ms;
    const void *filter;         /* session_filter, tool_filter …; a struct of the verb's own */
    struct session_find *finds; /* `n` of them */
    struct writer_row *writer;
    bool flag;
    void *ret; /* results of a verb that returns no rows */
    /* Results: rows in `mem`.  NULL when a verb for one row finds none. */
    void *rows;
    size_t n;
};
/* Refuses a page with an unsound limit, then lets the store answer. */
must_check bool store_call(struct store *s, struct store_call *c, struct error *err);
/* store_call(), then sets the caller's pointer to the row or rows. */
must_check bool store_row(struct store *s, struct store_call *c, void *ret_row, struct error *err);
must_check bool store_rows(struct store *s, struct store_call *c, void *ret_rows, size_t *ret_n,
                           struct error *err);

/* Reads.  Rows and their spans are allocated in `mem`.  *ret_row is NULL when the row is missing or
 * foreign, and untouched on failure.  Sessions are returned as session_row_apply_expiry() leaves
 * them.  An ended transport and an undelivered result past its end read as missing. */
must_check static inline bool store_session_by_handle(struct store *s, const struct principal *who,
                                                      struct str handle, struct arena *mem,
                                                      struct session_row **ret_row,
                                                      struct error *err)
{
    return store_row(
        s, &(struct store_call){VERB_SESSION_BY_HANDLE, .who = who, .id = handle, .mem = mem},
        ret_row, err);
}
must_check static inline bool store_session_by_id(struct store *s, const struct principal *who,
                                                  struct str id, struct arena *mem,
                                                  struct session_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_SESSION_BY_ID, .who = who, .id = id, .mem = mem},
                     ret_row, err);
}
/* Several of these two lookups in one call; all fail if one fails. */
struct session_find {
    const struct principal *who;
    struct str name;
    bool by_id;
    struct arena *mem;
    struct session_row *row; /* out */
};
must_check static inline bool store_sessions_find(struct store *s, struct session_find *finds,
                                                  size_t n, struct error *err)
{
    return store_call(s, &(struct store_call){VERB_SESSIONS_FIND, .finds = finds, .n = n}, err);
}
/* The live (not terminal) session with the key (owner, carrier, key). */
must_check static inline bool store_session_by_key(struct store *s, const struct principal *who,
                                                   struct str carrier, struct str key,
                                                   struct arena *mem, struct session_row **ret_row,
                                                   struct error *err)
{
    return store_row(s,
                     &(struct store_call){VERB_SESSION_BY_KEY, .who = who, .name = carrier,
                                          .id = key, .mem = mem},
                     ret_row, err);
}
must_check static inline bool store_transport_get(struct store *s, const struct principal *who,
                                                  const uint8_t id_hash[32], struct arena *mem,
                                                  struct transport_row **ret_row, struct error *err)
{
    return store_row(
        s, &(struct store_call){VERB_TRANSPORT_GET, .who = who, .hash = id_hash, .mem = mem},
        ret_row, err);
}
must_check static inline bool store_links_of(struct store *s, const struct principal *who,
                                             struct str session_id, struct arena *mem,
                                             struct link_row **ret_rows, size_t *ret_n,
                                             struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_LINKS_OF, .who = who, .session_id = session_id, .mem = mem},
        ret_rows, ret_n, err);
}
/* Sessions of the tenant (who->tenant_wide) or the principal's own, newest first. */
must_check static inline bool store_sessions_page(struct store *s, const struct principal *who,
                                                  const struct session_filter *filter,
                                                  unsigned limit, struct arena *mem,
                                                  struct session_row **ret_rows, size_t *ret_n,
                                                  struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_SESSIONS_PAGE, .who = who, .filter = filter,
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}
/* Sessions of the same, whose handle or row id begins with `start`; none for an empty `start`.  By
 * row id. */
must_check static inline bool store_sessions_named(struct store *s, const struct principal *who,
                                                   struct str start, unsigned limit,
                                                   struct arena *mem, struct session_row **ret_rows,
                                                   size_t *ret_n, struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_SESSIONS_NAMED, .who = who, .name = start,
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}
must_check static inline bool store_session_totals(struct store *s, const struct principal *who,
                                                   int64_t now_ms, int64_t since_ms,
                                                   struct session_totals *ret, struct error *err)
{
    since_ms -= since_ms % STORE_TOTALS_STEP_MS;
    return store_call(s,
                      &(struct store_call){VERB_SESSION_TOTALS, .who = who, .now_ms = now_ms,
                                           .since_ms = since_ms, .ret = ret},
                      err);
}
/* Executions of one session, newest first; `before` is an exec (0: from the newest).  Only folded
 * executions: a caller that needs all waits for the fold first.  Empty when the session is foreign
 * or unknown. */
must_check static inline bool
store_executions_page(struct store *s, const struct principal *who, struct str session_id,
                      int64_t before, bool with_bodies, unsigned limit, struct arena *mem,
                      struct execution_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_EXECUTIONS_PAGE, .who = who,
                                           .session_id = session_id, .after_id = before,
                                           .flag = with_bodies, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}
/* Finds a context by its id.  The principal must reach the whole tenant, or own a session with this
 * context.  session_id of the row stays absent. */
must_check static inline bool store_context_get(struct store *s, const struct principal *who,
                                                struct str id, struct arena *mem,
                                                struct context_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_CONTEXT_GET, .who = who, .id = id, .mem = mem},
                     ret_row, err);
}
/* Returns only a row that is not past its end. */
must_check static inline bool store_idempotency_get(struct store *s, const struct principal *who,
                                                    struct str key, struct arena *mem,
                                                    struct idempotency_row **ret_row,
                                                    struct error *err)
{
    return store_row(s,
                     &(struct store_call){VERB_IDEMPOTENCY_GET, .who = who, .id = key, .mem = mem},
                     ret_row, err);
}
/* *ret: a tool with this id was executed in the tenant.  (The fold enters these ids.) */
must_check static inline bool store_tool_known(struct store *s, const struct principal *who,
                                               struct str tool_id, bool *ret, struct error *err)
{
    return store_call(
        s, &(struct store_call){VERB_TOOL_KNOWN, .who = who, .id = tool_id, .ret = ret}, err);
}

must_check static inline bool store_undelivered_get(struct store *s, const struct principal *who,
                                                    int64_t id, struct arena *mem,
                                                    struct undelivered_row **ret_row,
                                                    struct error *err)
{
    return store_row(
        s, &(struct store_call){VERB_UNDELIVERED_GET, .who = who, .number = id, .mem = mem},
        ret_row, err);
}

/* Identity; these reads take no principal. */
must_check static inline bool store_key_get(struct store *s, struct str id, struct arena *mem,
                                            struct key_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_KEY_GET, .id = id, .mem = mem}, ret_row, err);
}
/* Keys of one tenant, or of all (absent), sorted by id. */
must_check static inline bool store_keys_page(struct store *s, struct str tenant, struct str after,
                                              unsigned limit, struct arena *mem,
                                              struct key_row **ret_rows, size_t *ret_n,
                                              struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_KEYS_PAGE, .tenant = tenant, .after = after,
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}
must_check static inline bool store_user_get(struct store *s, struct str id, struct arena *mem,
                                             struct user_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_USER_GET, .id = id, .mem = mem}, ret_row, err);
}
/* A user without issuer, by name. */
must_check static inline bool store_user_by_name(struct store *s, struct str tenant,
                                                 struct str name, struct arena *mem,
                                                 struct user_row **ret_row, struct error *err)
{
    return store_row(
        s, &(struct store_call){VERB_USER_BY_NAME, .tenant = tenant, .name = name, .mem = mem},
        ret_row, err);
}
/* Users without issuer, of one tenant or of all (absent), sorted by tenant and name.  The page
 * begins after the user `after_name` of `after_tenant`. */
must_check static inline bool store_users_page(struct store *s, struct str tenant,
                                               struct str after_tenant, struct str after_name,
                                               unsigned limit, struct arena *mem,
                                               struct user_row **ret_rows, size_t *ret_n,
                                               struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_USERS_PAGE, .tenant = tenant, .name = after_tenant,
                                           .after = after_name, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}
/* The login of a device, also when revoked. */
must_check static inline bool store_login_get(struct store *s, struct str id, struct arena *mem,
                                              struct login_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_LOGIN_GET, .id = id, .mem = mem}, ret_row, err);
}
/* The login of a device, or a used token. */
must_check static inline bool store_login_by_hash(struct store *s, const uint8_t hash[32],
                                                  struct arena *mem, struct login_row **ret_row,
                                                  struct error *err)
{
    return store_row(s, &(struct store_call){VERB_LOGIN_BY_HASH, .hash = hash, .mem = mem}, ret_row,
                     err);
}
/* The live logins of one user, newest first; `before` is an id (absent: from the newest). */
must_check static inline bool store_logins_page(struct store *s, struct str tenant,
                                                struct str user_id, struct str before,
                                                unsigned limit, struct arena *mem,
                                                struct login_row **ret_rows, size_t *ret_n,
                                                struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_LOGINS_PAGE, .tenant = tenant, .id = user_id,
                                           .after = before, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}
must_check static inline bool store_tenant_get(struct store *s, struct str id, struct arena *mem,
                                               struct tenant_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_TENANT_GET, .id = id, .mem = mem}, ret_row, err);
}
must_check static inline bool store_tenants_page(struct store *s, struct str after, unsigned limit,
                                                 struct arena *mem, struct tenant_row **ret_rows,
                                                 size_t *ret_n, struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_TENANTS_PAGE, .after = after, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}
/* The key `id`, or the tenant's newest key (absent). */
must_check static inline bool store_tenant_key_get(struct store *s, struct str tenant,
                                                   struct str id, struct arena *mem,
                                                   struct tenant_key_row **ret_row,
                                                   struct error *err)
{
    return store_row(
        s, &(struct store_call){VERB_TENANT_KEY_GET, .tenant = tenant, .id = id, .mem = mem},
        ret_row, err);
}
/* Keys of all tenants, sorted by id. */
must_check static inline bool store_tenant_keys_page(struct store *s, struct str after,
                                                     unsigned limit, struct arena *mem,
                                                     struct tenant_key_row **ret_rows,
                                                     size_t *ret_n, struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_TENANT_KEYS_PAGE, .after = after, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}
/* Secrets of the configuration, sorted by name. */
must_check static inline bool store_secrets_page(struct store *s, struct str after, unsigned limit,
                                                 struct arena *mem, struct secret_row **ret_rows,
                                                 size_t *ret_n, struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_SECRETS_PAGE, .after = after, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}
/* Sessions of all tenants and of every status that have sealed_auth or sealed_context, by id. */
must_check static inline bool store_sealed_page(struct store *s, struct str after, unsigned limit,
                                                struct arena *mem, struct session_row **ret_rows,
                                                size_t *ret_n, struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_SEALED_PAGE, .after = after, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}
/* Changes that other nodes must learn of, in the order of their commits; `after` is an id.  -1
 * returns only the newest change (one row or none).  Only stores that several processes share have
 * changes. */
must_check static inline bool store_changes(struct store *s, int64_t after, unsigned limit,
                                            struct arena *mem, struct change_row **ret_rows,
                                            size_t *ret_n, struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_CHANGES, .after_id = after, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}

/* Tools of servers, sorted by server and name (bytewise). */
must_check static inline bool store_tools_page(struct store *s, const struct tool_filter *filter,
                                               unsigned limit, struct arena *mem,
                                               struct tool_row **ret_rows, size_t *ret_n,
                                               struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_TOOLS_PAGE, .filter = filter, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}

/* Servers sorted by name; `after` is a name. */
must_check static inline bool store_servers_page(struct store *s, struct str after, unsigned limit,
                                                 struct arena *mem, struct server_row **ret_rows,
                                                 size_t *ret_n, struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_SERVERS_PAGE, .after = after, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}

/* Audit and operation; these functions take no principal. */
/* Results not past their end, sorted by id, without their sealed bytes; `after` is an id. */
must_check static inline bool store_undelivered_page(struct store *s, int64_t after, unsigned limit,
                                                     struct arena *mem,
                                                     struct undelivered_row **ret_rows,
                                                     size_t *ret_n, struct error *err)
{
    return store_rows(
        s,
        &(struct store_call){VERB_UNDELIVERED_PAGE, .after_id = after, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}
/* With newest_first and since_ms a scan may skip the rest of a writer's events at the first event
 * that is older than since_ms by more than EVENT_CLOCK_SLACK_MS.  Ids follow time, except when a
 * clock was set back. */
#define EVENT_CLOCK_SLACK_MS (INT64_C(60) * 60 * 1000)
must_check static inline bool store_events_page(struct store *s, const struct event_filter *filter,
                                                unsigned limit, struct arena *mem,
                                                struct event_row **ret_rows, size_t *ret_n,
                                                struct error *err)
{
    if (filter->ret_scanned)
        *filter->ret_scanned = 0;
    return store_rows(
        s, &(struct store_call){VERB_EVENTS_PAGE, .filter = filter, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}
must_check static inline bool store_chain_heads(struct store *s, struct arena *mem,
                                                struct chain_head **ret_heads, size_t *ret_n,
                                                struct error *err)
{
    return store_rows(s, &(struct store_call){VERB_CHAIN_HEADS, .mem = mem}, ret_heads, ret_n, err);
}
/* Makes a writer: sets row->number to a number that was never used before.  With `exclusive` this
 * process alone owns the store, so the leases of all other writers lapse at once; otherwise only
 * the lease of row->previous lapses. */
must_check static inline bool store_writer_start(struct store *s, struct writer_row *row,
                                                 bool exclusive, struct error *err)
{
    return store_call(s, &(struct store_call){VERB_WRITER_START, .writer = row, .flag = exclusive},
                      err);
}
/* Intents without an outcome of writers that ended or whose lease has lapsed by now_ms, oldest
 * first.  Folds first. */
must_check static inline bool store_open_intents(struct store *s, int64_t now_ms, int64_t after,
                                                 unsigned limit, struct arena *mem,
                                                 struct event_row **ret_rows, size_t *ret_n,
                                                 struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_OPEN_INTENTS, .now_ms = now_ms, .after_id = after,
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}
/* Projects unfolded events into executions, counters and last_activity.  Takes at most `max`
 * events, or fewer to keep writers from waiting too long.  Each event is folded once, however often
 * this is called.  last_activity is clock_life_of_wall() of the event's time, so it never moves
 * into the future.  *ret_left: more events remain.  Runs on the write connection. */
must_check static inline bool store_fold(struct store *s, unsigned max, bool *ret_left,
                                         struct error *err)
{
    return store_call(s, &(struct store_call){VERB_FOLD, .limit = max, .ret = ret_left}, err);
}
must_check static inline bool store_counts(struct store *s, struct store_counts *ret,
                                           struct error *err)
{
    return store_call(s, &(struct store_call){VERB_COUNTS, .ret = ret}, err);
}
/* What the audit holds of one tenant, or of each tenant after `after` (absent: from the first), by
 * tenant.  Only what is folded, and without the events that store_database_size() calls uncounted.
 * recent_*: of events from the day of since_ms on. */
must_check static inline bool store_audit_sizes(struct store *s, struct str tenant,
                                                struct str after, int64_t since_ms, unsigned limit,
                                                struct arena *mem, struct audit_size_row **ret_rows,
                                                size_t *ret_n, struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_AUDIT_SIZES, .tenant = tenant, .after = after,
                                           .number = since_ms / (INT64_C(24) * 3600 * 1000),
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}
must_check static inline bool store_database_size(struct store *s, struct database_size *ret,
                                                  struct error *err)
{
    return store_call(s, &(struct store_call){VERB_DATABASE_SIZE, .ret = ret}, err);
}
/* Reaper: stores idle and expired status, and sets sessions used in the future back to now.
 * Deletes sessions that ended before over_ms and are not held (holds/), each with its context
 * document if no other session has it; transports that ended or idled out; undelivered results,
 * idempotency rows and logins past their end; and links, and rows of families, of sessions that are
 * over.  Folds first, so that every use is counted.  Also counts some of the events that
 * store_database_size() calls uncounted. */
must_check static inline bool store_reap(struct store *s, const struct reap_request *what,
                                         struct reaped *ret, struct error *err)
{
    return store_call(s, &(struct store_call){VERB_REAP, .filter = what, .ret = ret}, err);
}

#endif
