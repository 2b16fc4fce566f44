/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the store.  Calls block: on the request path they run on the lanes
 * (store/lanes.h); commands and tests call them directly.
 *
 * Writes are batches of verbs.  A batch is one transaction, and each op gets a verdict.  Expected
 * refusals (limit, duplicate, not found, not active) are verdicts computed by the statement.  An
 * unexpected error fails the batch, which is rolled back whole.  The lanes, not the store, write a
 * failed batch again in halves.
 *
 * Verbs on sessions and their data name the caller by a principal.  Other verbs need no principal;
 * the table in family.c lists them. */
#ifndef HOLDFAST_STORE_STORE_H
#define HOLDFAST_STORE_STORE_H

#include "base/arena.h"
#include "base/error.h"
#include "store/rows.h"

struct store;

enum verdict {
    VERDICT_OK,
    VERDICT_DUPLICATE,
    VERDICT_LIMIT,
    VERDICT_MISSING,
    VERDICT_NOT_ACTIVE,
    VERDICT_STALE, /* the expected version is not the current one */
    VERDICT_FAILED
};

/* Rows written with a principal get the tenant and owner of `who`.  A row of another tenant or
 * owner is foreign and reads as missing.  OP_SESSION_END, _USE, _PATCH, _REFRESH and OP_CONTEXT_PUT
 * also reach the tenant's other sessions if who->tenant_wide.  A batch sees its own earlier ops.
 * `now` is clock_life_ms() at the start of the batch. */
enum op_kind {
    /* session (all columns), max_counted.  LIMIT when the session counts and the tenant has
     * max_counted live counted sessions (session_row_counts()).  DUPLICATE on id, handle or live
     * key; it takes precedence over LIMIT. */
    OP_SESSION_CREATE,
    /* session.id, session.expires_ms (0 leaves it): provisional → durable and counted.  LIMIT
     * likewise; OK when already promoted; MISSING when unknown or foreign; NOT_ACTIVE when terminal
     * or past its end. */
    OP_SESSION_PROMOTE,
    /* session.id, status (expired or terminated), termination_reason, terminated_ms.  MISSING when
     * unknown, foreign, terminal or past its end. */
    OP_SESSION_END,
    /* transport.  DUPLICATE on id_hash; MISSING when session_id names a session that is not the
     * caller's. */
    OP_TRANSPORT_CREATE,
    /* transport.id_hash, transport.session_id.  MISSING when transport or session is unknown or
     * foreign, or the transport ended. */
    OP_TRANSPORT_LINK,
    /* transport.id_hash, transport.last_used_ms (never goes back).  MISSING when unknown, foreign
     * or ended. */
    OP_TRANSPORT_TOUCH,
    /* transport.id_hash, transport.ended_ms.  MISSING when unknown, foreign or ended. */
    OP_TRANSPORT_END,
    /* link: insert or replace by (session_id, server).  MISSING when the session is unknown or
     * foreign. */
    OP_LINK_PUT,
    /* link.session_id, link.server, ended_ms, end_reason; writer becomes 0.  MISSING when there is
     * no open link, or the session is foreign. */
    OP_LINK_END,
    /* event.  Appending the same event (same id and MAC) again is OK and changes nothing.  Another
     * event under a taken id fails the batch.  A writer's ids grow from batch to batch, because the
     * fold never looks back. */
    OP_EVENT_APPEND,
    /* writer.number, lease_until_ms.  MISSING when unknown or ended. */
    OP_WRITER_RENEW,
    /* writer.number, ended_ms.  MISSING likewise. */
    OP_WRITER_END,
    /* undelivered (all columns).  DUPLICATE on id; MISSING when the session is unknown or foreign.
     */
    OP_UNDELIVERED_PUT,
    /* undelivered.id: deletes the row.  Only the one caller that gets OK may deliver the result.
     * MISSING when unknown, foreign, or past its end. */
    OP_UNDELIVERED_TAKE,
    /* session.id, last_activity_ms (never goes back): idle → active, and a sliding end moves as in
     * the fold.  MISSING when unknown or foreign, NOT_ACTIVE when terminal or past its end. */
    OP_SESSION_USE,
    /* session.id and the columns that `fields` names.  session.version is the expected version (0:
     * any); STALE when it differs.  MISSING and NOT_ACTIVE as above; both take precedence over
     * STALE. */
    OP_SESSION_PATCH,
    /* session.id, expires_ms, ttl_ms: sets a new end.  MISSING, NOT_ACTIVE as above. */
    OP_SESSION_REFRESH,
    /* context: makes the document (version 1) or replaces it (version + 1).  context.version is the
     * expected version: 0 when there must be no document yet, < 0 for any; STALE when it differs.
     * If the session has a context_id, that document is written and context.id is ignored.
     * Otherwise the session's context_id becomes context.id.  MISSING, NOT_ACTIVE by the session;
     * DUPLICATE when the document belongs to another tenant. */
    OP_CONTEXT_PUT,
    /* tenant.id, created_ms: makes the tenant if it does not exist.  Always OK. */
    OP_TENANT_ENSURE,
    /* user (all columns): makes the user.  If the user exists, only updates its role, and only if
     * it has no password.  DUPLICATE when the id belongs to another tenant, or when the name
     * belongs to another user of the tenant and both have no issuer. */
    OP_USER_ENSURE,
    /* key (all columns).  DUPLICATE on id; MISSING when its user is not in its tenant.  Makes the
     * tenant if it does not exist. */
    OP_KEY_CREATE,
    /* key.id, key.tenant, revoked_ms.  MISSING when unknown or revoked. */
    OP_KEY_REVOKE,
    /* key.id, last_used_ms (never goes back).  MISSING when unknown. */
    OP_KEY_USED,
    /* idempotency (all columns).  DUPLICATE while a row with this (owner, key) is not past its
     * end. */
    OP_IDEMPOTENCY_PUT,
    /* tenant_key (all columns).  DUPLICATE on id.  Makes the tenant if it does not exist. */
    OP_TENANT_KEY_PUT,
    /* tenant_key.id, tenant, master_id, wrapped: the same key, sealed by another master key.
     * MISSING when unknown. */
    OP_TENANT_KEY_WRAP,
    /* session.id, tenant, sealed_auth, sealed_context (absent leaves it) and the expected version:
     * the same secrets, sealed by another key.  The version stays; STALE when it differs.  Any
     * status is fine.  MISSING when unknown or without sealed secrets. */
    OP_SESSION_RESEAL,
    /* secret (all columns), max_counted (< 0: no limit): makes the secret, or replaces sealed and
     * updated_ms.  LIMIT when it is new and there are max_counted already.  On a store that is
     * shared a CHANGE_SECRET follows. */
    OP_SECRET_PUT,
    /* secret.name.  MISSING when unknown.  A CHANGE_SECRET follows like after OP_SECRET_PUT. */
    OP_SECRET_REMOVE,
    /* user (id, tenant, name, role, password, created_ms), without issuer: makes the user, or sets
     * password and role of an existing user without a password.  DUPLICATE when id or name are
     * taken otherwise.  Makes the tenant if it does not exist. */
    OP_USER_CREATE,
    /* user.id, tenant, password: sets another password, revokes the user's logins and lifts a lock.
     * MISSING when there is no such user without issuer. */
    OP_USER_PASSWORD,
    /* user.id, tenant, ended_ms (0: the user may sign in again); revokes the user's logins.
     * MISSING when unknown. */
    OP_USER_END,
    /* user.id, tenant: counts one more failure.  From LOGIN_FREE_FAILURES on, locks the user; the
     * lock doubles from LOGIN_LOCK_MS to LOGIN_LOCK_MAX_MS.  MISSING when unknown. */
    OP_LOGIN_FAILED,
    /* login (all columns; family = id), max_counted.  Clears the user's failures.  If the user has
     * more than max_counted unrevoked logins, revokes the longest unused.  MISSING when the tenant
     * has no such user; NOT_ACTIVE when the user ended or login.password is not its password;
     * DUPLICATE on id or hash. */
    OP_LOGIN_CREATE,
    /* login.refresh_hash → next_hash, expires_ms, ip_address (absent leaves it), arrived_ms;
     * login.id is the id of the row for the used token.  MISSING when unknown, revoked or past its
     * end; NOT_ACTIVE when its user ended.  For a token that was already used: DUPLICATE if it was
     * used at arrived_ms or later, so that of two concurrent requests one gets OK; otherwise STALE,
     * and the family is revoked ("reuse"). */
    OP_LOGIN_ROTATE,
    /* login.id, tenant, user_id (absent: of any user), revoked_ms, revoke_reason.  MISSING unless
     * the login is live. */
    OP_LOGIN_REVOKE,
    /* login.tenant, user_id, revoked_ms, revoke_reason: revokes all logins of the user.  Always
     * OK. */
    OP_LOGINS_REVOKE,
    /* tool (all columns): makes the tool; a digest given in `approved` is approved with this
     * definition.  An existing tool keeps first_seen_ms and its approval.  changed_ms moves only
     * with the digest.  With the same digest an absent definition leaves the stored one.  Always
     * OK. */
    OP_TOOL_SEEN,
    /* tool.server, name, approved_ms, digest: approves the last seen definition.  STALE when its
     * digest differs; MISSING when there is no such tool. */
    OP_TOOL_APPROVE,
    /* server (all columns): adds calls and failures to the stored numbers.  Times never go back.
     * last_error is stored only with a later last_failed_ms.  Always OK. */
    OP_SERVER_COUNT,
    /* sizes: subtracts these events from the sizes of the audit (store/sizes.h).  In the batch that
     * removes them.  Always OK. */
    OP_SIZES_SUBTRACT,
    /* Ops of families, that is of other folders (store/family.h), are numbered from here on. */
    OP_FAMILY,
};
#define OP_COUNT (OP_FAMILY + 48)

/* Columns that OP_SESSION_PATCH writes; an absent value clears the column. */
enum session_field {
    FIELD_CLIENT_NAME = 1,
    FIELD_CLIENT_TYPE = 2,
    FIELD_CLIENT_VERSION = 4,
    FIELD_CONNECTION_METADATA = 8,
    FIELD_CORE_SESSION_ID = 16,
    FIELD_CONTEXT_ID = 32,
    FIELD_INITIALIZED = 64,
    FIELD_SEALED_AUTH = 128,
    FIELD_TOOLSETS = 256,
    FIELD_SETUP = 512,
};

struct store_op {
    unsigned kind;               /* enum op_kind, or an op of a family */
    const struct principal *who; /* may be NULL for verbs without a principal */
    union {
        const struct session_row *session;
        const struct transport_row *transport;
        const struct link_row *link;
        struct event_row *event; /* the write hook sets ids and MACs before the batch */
        const struct writer_row *writer;
        const struct undelivered_row *undelivered;
        const struct context_row *context;
        const struct tenant_row *tenant;
        const struct user_row *user;
        const struct key_row *key;
        const struct idempotency_row *idempotency;
        const struct tenant_key_row *tenant_key;
        const struct login_row *login;
        const struct secret_row *secret;
        const struct tool_row *tool;
        const struct server_row *server;
        const struct sizes_gone *sizes;
        void *row; /* of an op of a family; the folder of the family has typed functions */
    };
    /* OP_SESSION_CREATE, OP_SESSION_PROMOTE and OP_SECRET_PUT: < 0 for no limit.  OP_LOGIN_CREATE: ≥ 1. */
    int64_t max_counted;
    unsigned fields; /* OP_SESSION_PATCH: enum session_field */
    /* OP_SESSION_USE: an event of the batch also records the use, and the fold updates the row for
     * it.  The op then only reads the row, unless the session is idle or may end before the next
     * fold (SESSION_END_NEAR_MS). */
    bool is_in_event;
    /* If the verdict of this op is not OK, nothing of the batch is written.  store_write() fails
     * with ERR_CONFLICT, this op's verdict says why, and all others are FAILED.  The lanes then
     * write the batch again in halves, so that only the op's own job is refused.  For ops that must
     * succeed or fail together, above all events: a chained event cannot be skipped. */
    bool required;
    enum verdict verdict; /* out */
};

/* Filter of a page of events; absent and zero members do not filter. */
struct event_filter {
    struct str tenant;     /* absent: every tenant (verify, local admin) */
    int64_t after, before; /* ids, exclusive */
    int64_t since_ms;
    struct str session_id, server, tool, outcome;
    struct str session_prefix; /* prefix of the session id */
    int64_t exec;              /* events of this execution */
    /* Only intents without an outcome.  They are found through the projection of open executions
     * and the unfolded events, not by a scan of all events. */
    bool open;
    int kind; /* enum event_kind, or -1 for all */
    bool newest_first;
    bool with_bodies;
    /* If NULL, a page that takes too long fails with ERR_TIMEOUT.  Otherwise such a page holds the
     * events found so far, perhaps none, and *ret_scanned is the id up to which all events were
     * checked; the next page continues after it.  0: the page is complete. */
    int64_t *ret_scanned;
};

/* Filter of a page of tools; absent members do not filter. */
struct tool_filter {
    struct str server, name;        /* a name needs its server */
    struct str after_server, after; /* only tools after this one */
    bool with_definitions;
};

struct chain_head {
    struct str tenant;
    int64_t writer, seq, last_id;
    uint8_t mac[32];
};
int chain_head_order(const void *a, const void *b); /* for qsort(): by writer, then tenant */

/* Filter of a list of sessions; zero and absent members do not filter. */
struct session_filter {
    struct str before; /* a row id: only sessions older than it */
    unsigned statuses; /* 1 << enum session_status, as of now_ms; 0: all */
    struct str client_type;
    int64_t now_ms, idle_ms; /* to tell active, idle and expired apart */
};

/* Totals of the sessions that a principal may see and that were created or used since since_ms.
 * Stores keep these sums per minute, so since_ms is rounded down to its minute. */
#define STORE_TOTALS_STEP_MS INT64_C(60000)
struct session_totals {
    int64_t active_sessions, total_sessions, total_tool_executions, total_tokens_used;
    /* From creation to the end, or to the last use of a live session. */
    double average_session_time_minutes;
};

struct reap_request {
    int64_t now_ms, idle_ms;
    int64_t over_ms; /* sessions that ended before are deleted; 0: none */
    unsigned batch;  /* rows of each kind, oldest first */
    int64_t writer;  /* the reaper; on a shared store only the holder of the lease reaps */
    int64_t lease_until_ms;
    int64_t *ret_lived_ms; /* lifetimes of expired sessions, room for `batch`; or NULL */
    unsigned links;        /* number of sessions to check for links to delete; 0: none */
    struct arena *mem;     /* for reaped.links */
};
struct reaped {
    size_t expired, idled;
    size_t deleted;    /* sessions that had ended long ago */
    size_t clamped;    /* sessions used in the future by a wrong clock, set back to now */
    bool is_elsewhere; /* another writer holds the lease; nothing was done */
    bool left;         /* session totals lag by more than a batch; call again */
    /* Links that were deleted because their session is over.  remote_id is absent if it may still
     * be in use: the session is derived, so its link belongs to the owner, or another process wrote
     * the row and still runs. */
    struct link_row *links;
    size_t n_links;
    bool more_links; /* some sessions were not checked in this round */
};

struct store_counts {
    int64_t sessions_active, sessions_total, transports, events, executions_open;
};

struct database_size {
    int64_t bytes;      /* of the database */
    bool is_file;       /* SQLite: a file in the data directory */
    int64_t free_bytes; /* of its pages that hold nothing; PostgreSQL: 0, unknown */
    int64_t wal_bytes;  /* SQLite: of the WAL beside it */
    /* Ids, and so about the number of events, that store_audit_sizes() does not include yet. */
    int64_t uncounted;
};

struct store_config {
    struct str path; /* SQLite file; PostgreSQL: the connection URL; ignored by memory */
    bool read_only;
    bool no_migrate;     /* refuse a schema that is not the newest instead of migrating */
    int64_t deadline_ms; /* PostgreSQL: of every statement and connect; 0: 5 s */
    const char *sql_dir; /* NULL: migrations compiled into the binary */
};

/* One table per backend; only store.c calls through it.  The contracts are at the functions
 * below. */
struct store_ops;
struct store {
    const struct store_ops *ops;
};

must_check bool store_open_memory(struct store **ret, struct error *err);
must_check bool store_open_sqlite(const struct store_config *config, struct store **ret,
                                  struct error *err);
/* One connection to a PostgreSQL database that other processes may share.  A lost connection is
 * made again automatically, with back-off and jitter; until then every call fails with
 * ERR_UNAVAILABLE. */
must_check bool store_open_postgres(const struct store_config *config, struct store **ret,
                                    struct error *err);
/* Wrappers own the inner store and close it. */
struct store *store_traced(struct store *inner,
                           void (*sink)(void *arg, const char *verb, bool ok, int64_t us),
                           void *arg) must_check;
/* Fails the n-th call and all calls after it, or with only_once just the n-th; n = 0: never.
 * Thread-safe. */
struct store *store_failing(struct store *inner) must_check;
void store_failing_set(struct store *failing, int64_t nth, bool only_once);
void store_close(struct store *s);

/* n = 0 is a probe: true when the store can write again.  ERR_UNAVAILABLE means that the store
 * itself failed (disk, lock, lost connection); any other code is about one of the ops.  On failure
 * every verdict is VERDICT_FAILED, except for that of a refused required op. */
must_check bool store_write(struct store *s, struct store_op *ops, size_t n, struct error *err);

/* Maximum rows of a page; a larger limit is ERR_BAD_INPUT.  On a read-only store a page that takes
 * longer than STORE_PAGE_MS is ERR_TIMEOUT. */
#define STORE_PAGE_MAX 200
#define STORE_PAGE_MS 250

#include "store/verbs.h"

#endif
