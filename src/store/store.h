/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of Holdfast sees of the store.  Calls block: on the request path they run on the
 * lanes (store/lanes.h), commands and tests call them directly.
 *
 * Writes are batches of our verbs, one transaction, a verdict each.  Expected refusals (limit,
 * duplicate, not found, not active) are verdicts computed by the statement; an unexpected error
 * fails the batch, rolled back whole.  Replaying by halves is the lanes' business.
 * Every verb names whose data it touches by a principal, but for the reaper's and the audit's. */
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
    VERDICT_STALE, /* the version asked for is not the one that is there */
    VERDICT_FAILED
};

/* Tenant and owner of every row written are those of `who`; another's row is a missing one (of the
 * same tenant only where who->tenant_wide reaches it).  A batch sees its own earlier ops.  `now` is
 * clock_life_ms() at the start of the batch. */
enum op_kind {
    /* session (all columns), max_counted.  LIMIT when this one counts and the tenant has that many
     * live counted ones (session_row_counts()); DUPLICATE, which goes before LIMIT, on id, handle
     * or live key. */
    OP_SESSION_CREATE,
    /* session.id, session.expires_ms (0 leaves it): provisional → durable and counted.  LIMIT
     * likewise; OK when it already is; NOT_ACTIVE when terminal or past its end. */
    OP_SESSION_PROMOTE,
    /* session.id, status (expired or terminated), termination_reason, terminated_ms.  MISSING when
     * unknown, foreign or terminal. */
    OP_SESSION_END,
    /* transport.  DUPLICATE on id_hash; MISSING when it names a session that is not the caller's.
     */
    OP_TRANSPORT_CREATE,
    /* transport.id_hash, transport.session_id.  MISSING when either is unknown or foreign, or the
     * transport ended. */
    OP_TRANSPORT_LINK,
    /* transport.id_hash, transport.last_used_ms (never goes back).  MISSING likewise. */
    OP_TRANSPORT_TOUCH,
    /* transport.id_hash, transport.ended_ms.  MISSING when unknown, foreign or ended. */
    OP_TRANSPORT_END,
    /* link: insert or replace by (session_id, server).  MISSING when the session is unknown or
     * foreign. */
    OP_LINK_PUT,
    /* link.session_id, link.server, ended_ms, end_reason; writer becomes 0.  MISSING when there is
     * no open one. */
    OP_LINK_END,
    /* event.  A second append of one id (same MAC) is OK and changes nothing; another event under a
     * taken id fails the batch.  A writer's ids grow from batch to batch: the fold never looks
     * back. */
    OP_EVENT_APPEND,
    /* writer.number, lease_until_ms.  MISSING when unknown or ended. */
    OP_WRITER_RENEW,
    /* writer.number, ended_ms.  MISSING likewise. */
    OP_WRITER_END,
    /* undelivered (all columns).  DUPLICATE on id; MISSING when the session is unknown or foreign.
     */
    OP_UNDELIVERED_PUT,
    /* undelivered.id: takes it away, so that whoever gets OK alone may hand it out.  MISSING when
     * unknown, foreign, or past its end. */
    OP_UNDELIVERED_TAKE,
    /* session.id, last_activity_ms (never goes back): idle → active, and a sliding end moves along
     * as the fold moves it.  MISSING when unknown or foreign, NOT_ACTIVE when terminal or past its
     * end. */
    OP_SESSION_USE,
    /* session.id and the columns that `fields` names; session.version is the one expected (0: any),
     * else STALE.  MISSING, NOT_ACTIVE as above; those go before STALE. */
    OP_SESSION_PATCH,
    /* session.id, expires_ms, ttl_ms: a new end.  MISSING, NOT_ACTIVE as above. */
    OP_SESSION_REFRESH,
    /* context: makes the document (version 1) or replaces it (version + 1).  context.version is the
     * one expected: 0 when there must be none yet, < 0 for whatever is there; else STALE.  The
     * session's context_id becomes context.id where it had none; where it had one that one is
     * written, and context.id does not matter.  MISSING, NOT_ACTIVE by the session; DUPLICATE when
     * that document is another tenant's. */
    OP_CONTEXT_PUT,
    /* tenant.id, created_ms: OK, made or already there. */
    OP_TENANT_ENSURE,
    /* user (all columns): OK, made or already there (then only role follows, and not that of
     * somebody with a password).  DUPLICATE when the id is one of another tenant, or the name,
     * without an issuer, that of another of its users. */
    OP_USER_ENSURE,
    /* key (all columns).  DUPLICATE on id; MISSING when its user is not of its tenant.  Makes the
     * tenant where there is none. */
    OP_KEY_CREATE,
    /* key.id, key.tenant, revoked_ms.  MISSING when unknown or revoked. */
    OP_KEY_REVOKE,
    /* key.id, last_used_ms (never goes back).  MISSING when unknown. */
    OP_KEY_USED,
    /* idempotency (all columns).  DUPLICATE while one of that (owner, key) is not past its end. */
    OP_IDEMPOTENCY_PUT,
    /* tenant_key (all columns).  DUPLICATE on id.  Makes the tenant where there is none. */
    OP_TENANT_KEY_PUT,
    /* tenant_key.id, tenant, master_id, wrapped: the same key, sealed by another.  MISSING. */
    OP_TENANT_KEY_WRAP,
    /* session.id, tenant, sealed_auth, sealed_context (absent: as it is), and the version it must
     * have (else STALE), which stays: the same secrets, sealed by another key.  Whatever its
     * status.  MISSING, too, when it has none. */
    OP_SESSION_RESEAL,
    /* user (id, tenant, name, role, password, created_ms), of our own: made, or given a password
     * and role where it is there without.  DUPLICATE when id or name are taken otherwise.  Makes
     * the tenant where there is none. */
    OP_USER_CREATE,
    /* user.id, tenant, password: another one; whoever was signed in is so no longer, and a lock is
     * lifted.  MISSING when there is no such user of our own. */
    OP_USER_PASSWORD,
    /* user.id, tenant, ended_ms (0: it may come back); whoever was signed in is so no longer.
     * MISSING when unknown. */
    OP_USER_END,
    /* user.id, tenant: one more failure, and from LOGIN_FREE_FAILURES on a lock that doubles from
     * LOGIN_LOCK_MS to LOGIN_LOCK_MAX_MS.  MISSING when unknown. */
    OP_LOGIN_FAILED,
    /* login (all columns; family = id), max_counted.  Failures are forgotten; of more than
     * max_counted logins that are not revoked those unused for longest are.  MISSING when there is
     * no such user in the tenant; NOT_ACTIVE when it ended or login.password is not its password;
     * DUPLICATE on id or hash. */
    OP_LOGIN_CREATE,
    /* login.refresh_hash → next_hash, expires_ms, ip_address (absent leaves it), arrived_ms;
     * login.id names the row of the token that is used up.  MISSING when unknown, revoked or past
     * its end; NOT_ACTIVE when its user ended.  When that token was used up before: DUPLICATE if
     * not before arrived_ms, so that of two at once one gets OK; else STALE, and the family is
     * revoked ("reuse"). */
    OP_LOGIN_ROTATE,
    /* login.id, tenant, user_id (absent: whoever's), revoked_ms, revoke_reason.  MISSING unless it
     * is live. */
    OP_LOGIN_REVOKE,
    /* login.tenant, user_id, revoked_ms, revoke_reason: all of them.  Always OK. */
    OP_LOGINS_REVOKE,
    /* document.folder, path, and an id for a new one; revision.at_ms, author, kind, reason, sha256,
     * content.  The live document there gets one more revision, or is made with its first.  When
     * the newest has the same sha256 nothing is added, unless even_if_same.  DUPLICATE when a new
     * one's id is taken.  OK fills revision.revision, document_id, path and size, document.id and
     * revision: what was added, or the newest that is the same.  With revision.history_max the
     * oldest revisions that are over it are gone afterwards.  `who` may be NULL. */
    OP_DOCUMENT_REVISE,
    /* document.folder, path, new_path: the same document, elsewhere in its folder; no revision by
     * itself.  MISSING when none is there, DUPLICATE when one is at the new path.  `who` may be
     * NULL. */
    OP_DOCUMENT_MOVE,
    /* document.folder, path, ended_ms: the file is gone; one that is there later is another.
     * MISSING likewise.  `who` may be NULL. */
    OP_DOCUMENT_END,
    /* document_read (all columns; revision 0: the newest).  What it covers of the same revision it
     * replaces; where one covers it, the newest that does counts as read now instead.  Of more than
     * DOCUMENT_READS_MAX the oldest goes.  MISSING when the session is unknown or not the caller's
     * own, NOT_ACTIVE when it is over; then MISSING when there is no such live document or
     * revision. */
    OP_DOCUMENT_READ,
    /* tool (all columns): made, and then what was given as approved is approved with these bytes.
     * One that is there keeps when it was first seen and what is approved of it; changed_ms moves
     * with the digest alone, and with the same digest an absent definition leaves what there is.
     * Always OK. */
    OP_TOOL_SEEN,
    /* tool.server, name, approved_ms, and the digest that must be the one last seen (else STALE):
     * it stands approved.  MISSING when there is no such tool. */
    OP_TOOL_APPROVE,
    /* server (all columns): calls and failures are added to what there is, times never go back, and
     * last_error goes with a later last_failed_ms.  Always OK. */
    OP_SERVER_TELL,
};
#define OP_COUNT (OP_SERVER_TELL + 1)

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
};

struct store_op {
    enum op_kind kind;
    const struct principal *who; /* NULL for events and writers */
    union {
        const struct session_row *session;
        const struct transport_row *transport;
        const struct link_row *link;
        struct event_row *event; /* ids and MACs are filled in by the write hook before the batch */
        const struct writer_row *writer;
        const struct undelivered_row *undelivered;
        const struct context_row *context;
        const struct tenant_row *tenant;
        const struct user_row *user;
        const struct key_row *key;
        const struct idempotency_row *idempotency;
        const struct tenant_key_row *tenant_key;
        const struct login_row *login;
        struct document_row *document; /* OP_DOCUMENT_REVISE fills in what it says */
        const struct document_read_row *document_read;
        const struct tool_row *tool;
        const struct server_row *server;
    };
    struct revision_row *revision; /* OP_DOCUMENT_REVISE; likewise */
    /* OP_SESSION_CREATE and OP_SESSION_PROMOTE: < 0 for no limit.  OP_LOGIN_CREATE: ≥ 1. */
    int64_t max_counted;
    unsigned fields; /* OP_SESSION_PATCH: enum session_field */
    /* OP_SESSION_USE: an event of the batch records the use too, and the fold moves the row for
     * it.  Then the row is only looked at, unless its end is nearer than the next fold can be
     * (SESSION_END_NEAR_MS) or it is idle. */
    bool is_in_event;
    bool even_if_same; /* OP_DOCUMENT_REVISE: an event of its own, whatever its bytes */
    /* Unless its verdict is OK nothing of the batch is written: store_write() fails with
     * ERR_CONFLICT, this op's verdict tells why, all others are FAILED.  The lanes then write the
     * batch again in halves, so that only its own job is refused.  For what must stand or fall
     * together, events above all: a chained event cannot be skipped. */
    bool required;
    enum verdict verdict; /* out */
};

/* What a page of events is asked by; absent and zero members do not filter. */
struct event_filter {
    struct str tenant;     /* absent: every tenant (verify, local admin) */
    int64_t after, before; /* ids, exclusive */
    int64_t since_ms;
    struct str session_id, server, tool, outcome;
    struct str session_prefix; /* how the session id begins */
    int64_t exec;              /* an execution's events */
    /* Only intents that have no outcome.  They are found by the projection of open executions and
     * by what is not folded yet, not by going through all events. */
    bool open;
    int kind; /* enum event_kind, or -1 for all */
    bool newest_first;
    bool with_bodies;
    /* May be NULL: then a page whose time is over fails with ERR_TIMEOUT.  Else such a page holds
     * what was found so far, perhaps nothing, and *ret_scanned is the id up to which all events
     * were looked at: the next page goes on behind it.  0: the page is complete. */
    int64_t *ret_scanned;
};

/* Which tools a page shows; absent members do not filter. */
struct tool_filter {
    struct str server, name;        /* a name needs its server */
    struct str after_server, after; /* those behind it */
    bool with_definitions;
};

struct chain_head {
    struct str tenant;
    int64_t writer, seq, last_id;
    uint8_t mac[32];
};
int chain_head_order(const void *a, const void *b); /* for qsort(): by writer, then tenant */

/* Which sessions a list shows; zero and absent members do not filter. */
struct session_filter {
    struct str before; /* a row id: those older than it */
    unsigned statuses; /* 1 << enum session_status, as of now_ms; 0: all */
    struct str client_type;
    int64_t now_ms, idle_ms; /* by which active, idle and expired are told apart */
};

/* Of the sessions that a principal may see and that were created or used since.  Stores keep these
 * sums by the minute, so since_ms counts from the beginning of its minute. */
#define STORE_TOTALS_STEP_MS INT64_C(60000)
struct session_totals {
    int64_t active_sessions, total_sessions, total_tool_executions, total_tokens_used;
    double average_session_time_minutes; /* created to ended, or to the last use of a live one */
};

struct reap_what {
    int64_t now_ms, idle_ms;
    unsigned batch; /* of each kind, oldest first */
    int64_t writer; /* who reaps: where several share a store, the one that holds the lease */
    int64_t lease_until_ms;
    int64_t
        *ret_lived_ms; /* room for `batch`: from creation to end, of those that expired; or NULL */
    unsigned links;    /* so many sessions are looked at for links to delete; 0: none */
    struct arena *mem; /* for reaped.links */
};
struct reaped {
    size_t expired, idled;
    size_t pulled_back; /* used in the future, by a clock that was wrong: as of now */
    bool is_elsewhere;  /* another writer holds the lease; nothing was done */
    bool left;          /* session totals are behind by more than a batch; call again */
    /* Rows of links that were deleted because their session is over.  remote_id is absent where
     * somebody else may still use it: the session is derived, so its link is the owner's, or
     * another process wrote the row and still runs. */
    struct link_row *links;
    size_t n_links;
    bool more_links; /* there are sessions that were not looked at in this round */
};

struct store_counts {
    int64_t sessions_active, sessions_total, transports, events, executions_open;
};

struct store_config {
    struct str path; /* SQLite file; PostgreSQL: the connection URL; ignored by memory */
    bool read_only;
    bool no_migrate;     /* a schema that is not the newest is refused instead of brought up */
    int64_t deadline_ms; /* PostgreSQL: of every statement and connect; 0: 5 s */
    const char *sql_dir; /* NULL: migrations compiled into the binary */
};

/* One table per backend; only store.c calls through it.  Contracts are those of the functions
 * below. */
struct store_ops;
struct store {
    const struct store_ops *ops;
};

must_check bool store_open_memory(struct store **ret, struct error *err);
must_check bool store_open_sqlite(const struct store_config *config, struct store **ret,
                                  struct error *err);
/* One connection to a PostgreSQL that others may share.  A lost connection is made again by itself,
 * with back-off and jitter; meanwhile everything fails with ERR_UNAVAILABLE. */
must_check bool store_open_postgres(const struct store_config *config, struct store **ret,
                                    struct error *err);
/* Wrappers take the inner store and close it with themselves. */
struct store *store_traced(struct store *inner,
                           void (*sink)(void *arg, const char *verb, bool ok, int64_t us),
                           void *arg) must_check;
/* Fails the n-th call and those after it, until told otherwise; n = 0 never.  Thread-safe. */
struct store *store_failing(struct store *inner) must_check;
void store_failing_set(struct store *failing, int64_t nth, bool only_once);
void store_close(struct store *s);

/* n = 0 is a probe: true when the store can write again.  A failure with ERR_UNAVAILABLE is the
 * store's own (disk, lock, lost connection); any other code is about one of the ops.  On failure
 * every verdict is VERDICT_FAILED. */
must_check bool store_write(struct store *s, struct store_op *ops, size_t n, struct error *err);

/* No page is longer; asking for more is ERR_BAD_INPUT.  A page that takes longer than this is
 * ERR_TIMEOUT on a read-only store. */
#define STORE_PAGE_MAX 200
#define STORE_PAGE_MS 250

/* Reads.  Rows and their spans are allocated in `mem`; *ret_row is NULL when there is none
 * (absence, foreign ownership alike), untouched on failure.  Sessions are seen as
 * session_row_apply_expiry() leaves them; an ended transport and an undelivered result past its end
 * read as none. */
must_check bool store_session_by_handle(struct store *s, const struct principal *who,
                                        struct str handle, struct arena *mem,
                                        struct session_row **ret_row, struct error *err);
must_check bool store_session_by_id(struct store *s, const struct principal *who, struct str id,
                                    struct arena *mem, struct session_row **ret_row,
                                    struct error *err);
/* Several of these two in one go; fails for all when it fails for one. */
struct session_find {
    const struct principal *who;
    struct str name;
    bool by_id;
    struct arena *mem;
    struct session_row *row; /* out */
};
must_check bool store_sessions_find(struct store *s, struct session_find *finds, size_t n,
                                    struct error *err);
/* The live (not terminal) session keyed (owner, carrier, key). */
must_check bool store_session_by_key(struct store *s, const struct principal *who,
                                     struct str carrier, struct str key, struct arena *mem,
                                     struct session_row **ret_row, struct error *err);
must_check bool store_transport_get(struct store *s, const struct principal *who,
                                    const uint8_t id_hash[32], struct arena *mem,
                                    struct transport_row **ret_row, struct error *err);
must_check bool store_links_of(struct store *s, const struct principal *who, struct str session_id,
                               struct arena *mem, struct link_row **ret_rows, size_t *ret_n,
                               struct error *err);
/* Sessions of the tenant (who->tenant_wide) or the principal's own, newest first. */
must_check bool store_sessions_page(struct store *s, const struct principal *who,
                                    const struct session_filter *filter, unsigned limit,
                                    struct arena *mem, struct session_row **ret_rows, size_t *ret_n,
                                    struct error *err);
must_check bool store_session_totals(struct store *s, const struct principal *who, int64_t now_ms,
                                     int64_t since_ms, struct session_totals *ret,
                                     struct error *err);
/* Executions of one session, newest first; `before` is an exec (0: from the newest).  Only what is
 * folded: who needs all waits for the fold first.  None when the session is foreign or unknown. */
must_check bool store_executions_page(struct store *s, const struct principal *who,
                                      struct str session_id, int64_t before, bool with_bodies,
                                      unsigned limit, struct arena *mem,
                                      struct execution_row **ret_rows, size_t *ret_n,
                                      struct error *err);
/* By its own id, when a session that the principal reaches has it, or the principal reaches the
 * whole tenant; session_id of the row stays absent. */
must_check bool store_context_get(struct store *s, const struct principal *who, struct str id,
                                  struct arena *mem, struct context_row **ret_row,
                                  struct error *err);
/* Not past its end. */
must_check bool store_idempotency_get(struct store *s, const struct principal *who, struct str key,
                                      struct arena *mem, struct idempotency_row **ret_row,
                                      struct error *err);
/* Is this the id of a tool that was ever executed in the tenant?  (The fold enters them.) */
must_check bool store_tool_known(struct store *s, const struct principal *who, struct str tool_id,
                                 bool *ret, struct error *err);

must_check bool store_undelivered_get(struct store *s, const struct principal *who, int64_t id,
                                      struct arena *mem, struct undelivered_row **ret_row,
                                      struct error *err);

/* Identity; no principal yet. */
must_check bool store_key_get(struct store *s, struct str id, struct arena *mem,
                              struct key_row **ret_row, struct error *err);
/* Of one tenant, or of all (absent); by id. */
must_check bool store_keys_page(struct store *s, struct str tenant, struct str after,
                                unsigned limit, struct arena *mem, struct key_row **ret_rows,
                                size_t *ret_n, struct error *err);
must_check bool store_user_get(struct store *s, struct str id, struct arena *mem,
                               struct user_row **ret_row, struct error *err);
/* One of our own, by name. */
must_check bool store_user_by_name(struct store *s, struct str tenant, struct str name,
                                   struct arena *mem, struct user_row **ret_row, struct error *err);
/* A device's row, revoked ones too. */
must_check bool store_login_get(struct store *s, struct str id, struct arena *mem,
                                struct login_row **ret_row, struct error *err);
/* A device's row, or that of a token which is used up. */
must_check bool store_login_by_hash(struct store *s, const uint8_t hash[32], struct arena *mem,
                                    struct login_row **ret_row, struct error *err);
/* The live ones of one user, newest first; `before` is an id (absent: from the newest). */
must_check bool store_logins_page(struct store *s, struct str tenant, struct str user_id,
                                  struct str before, unsigned limit, struct arena *mem,
                                  struct login_row **ret_rows, size_t *ret_n, struct error *err);
must_check bool store_tenant_get(struct store *s, struct str id, struct arena *mem,
                                 struct tenant_row **ret_row, struct error *err);
must_check bool store_tenants_page(struct store *s, struct str after, unsigned limit,
                                   struct arena *mem, struct tenant_row **ret_rows, size_t *ret_n,
                                   struct error *err);
/* By its id, or the tenant's newest (absent). */
must_check bool store_tenant_key_get(struct store *s, struct str tenant, struct str id,
                                     struct arena *mem, struct tenant_key_row **ret_row,
                                     struct error *err);
/* Of all tenants, by id. */
must_check bool store_tenant_keys_page(struct store *s, struct str after, unsigned limit,
                                       struct arena *mem, struct tenant_key_row **ret_rows,
                                       size_t *ret_n, struct error *err);
/* Sessions of all tenants and of every status that have sealed_auth or sealed_context, by id. */
must_check bool store_sealed_page(struct store *s, struct str after, unsigned limit,
                                  struct arena *mem, struct session_row **ret_rows, size_t *ret_n,
                                  struct error *err);
/* What ended or was revoked, in the order it was committed; `after` is an id, -1 asks for nothing
 * but the newest id there is (one row or none).  Only stores that several processes share have any.
 */
must_check bool store_changes(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                              struct change_row **ret_rows, size_t *ret_n, struct error *err);

/* Documents; no principal but for what a session read. */
/* The live one there. */
must_check bool store_document(struct store *s, struct str folder, struct str path,
                               struct arena *mem, struct document_row **ret_row, struct error *err);
/* The one that ended there last, whether or not there is another by now. */
must_check bool store_document_ended(struct store *s, struct str folder, struct str path,
                                     struct arena *mem, struct document_row **ret_row,
                                     struct error *err);
/* Live or ended. */
must_check bool store_document_by_id(struct store *s, struct str id, struct arena *mem,
                                     struct document_row **ret_row, struct error *err);
/* The live ones of a folder, by path (bytewise); `after` is a path (absent: from the first). */
must_check bool store_documents_page(struct store *s, struct str folder, struct str after,
                                     unsigned limit, struct arena *mem,
                                     struct document_row **ret_rows, size_t *ret_n,
                                     struct error *err);
/* Newest first, without their content; `before` is a revision (0: from the newest). */
must_check bool store_document_history(struct store *s, struct str document_id, int64_t before,
                                       unsigned limit, struct arena *mem,
                                       struct revision_row **ret_rows, size_t *ret_n,
                                       struct error *err);
/* With its content; 0 is the newest. */
must_check bool store_document_revision(struct store *s, struct str document_id, int64_t revision,
                                        struct arena *mem, struct revision_row **ret_row,
                                        struct error *err);
/* What a session of the caller's own has read of it, in the order it did; at most
 * DOCUMENT_READS_MAX, with the path it has now. */
must_check bool store_document_reads(struct store *s, const struct principal *who,
                                     struct str session_id, struct str document_id,
                                     struct arena *mem, struct document_read_row **ret_rows,
                                     size_t *ret_n, struct error *err);

/* Tools of servers, by server and name (bytewise). */
must_check bool store_tools_page(struct store *s, const struct tool_filter *filter, unsigned limit,
                                 struct arena *mem, struct tool_row **ret_rows, size_t *ret_n,
                                 struct error *err);

/* By name; `after` is a name. */
must_check bool store_servers_page(struct store *s, struct str after, unsigned limit,
                                   struct arena *mem, struct server_row **ret_rows, size_t *ret_n,
                                   struct error *err);

/* Audit and operation; no principal. */
/* Those not past their end, by id, without their sealed bytes; `after` is an id. */
must_check bool store_undelivered_page(struct store *s, int64_t after, unsigned limit,
                                       struct arena *mem, struct undelivered_row **ret_rows,
                                       size_t *ret_n, struct error *err);
/* Newest first and with since_ms, a scan may leave a writer's events at the first one that is older
 * by more than EVENT_CLOCK_SLACK_MS: its ids follow time but for clocks that were set back. */
#define EVENT_CLOCK_SLACK_MS (INT64_C(60) * 60 * 1000)
must_check bool store_events_page(struct store *s, const struct event_filter *filter,
                                  unsigned limit, struct arena *mem, struct event_row **ret_rows,
                                  size_t *ret_n, struct error *err);
must_check bool store_chain_heads(struct store *s, struct arena *mem, struct chain_head **ret_heads,
                                  size_t *ret_n, struct error *err);
/* Makes a writer: fills row->number, never one used before.  exclusive: we alone own this store, so
 * the leases of all other writers are lapsed at once; else only that of row->previous. */
must_check bool store_writer_start(struct store *s, struct writer_row *row, bool exclusive,
                                   struct error *err);
/* Intents without an outcome whose writer's lease has lapsed (by now_ms) or ended, oldest first.
 * Folds first. */
must_check bool store_open_intents(struct store *s, int64_t now_ms, int64_t after, unsigned limit,
                                   struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                                   struct error *err);
/* Projects events not yet folded (at most `max`, or as many as writers may be kept waiting for;
 * once each, however often it is called) into executions, counters and last_activity (by
 * clock_life_of_wall() of the event's time: it never moves into the future).  *ret_left tells
 * whether more remain.  Runs on the write connection. */
must_check bool store_fold(struct store *s, unsigned max, bool *ret_left, struct error *err);
must_check bool store_counts(struct store *s, struct store_counts *ret, struct error *err);
/* Reaper: persists idle and expired status, pulls back what was used in the future, deletes
 * transports that ended or idled out, undelivered results, idempotency rows and logins past their
 * end, and what sessions that are over had read, and their links. Folds first, so that no use goes
 * unseen. */
must_check bool store_reap(struct store *s, const struct reap_what *what, struct reaped *ret,
                           struct error *err);

#endif
