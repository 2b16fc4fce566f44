/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the PostgreSQL backend: the connection, its prepared statements, and
 * helpers for parameters and columns.  Values travel in binary form, so times and bytes arrive
 * exactly as they were sent.
 *
 * The connection is non-blocking.  Every wait is a poll() with a deadline by the real clock, even
 * when tests use a fake one.  If the deadline passes or the connection breaks, the connection is
 * dropped, and the next call makes a new one.  After failed attempts there is a back-off; during it
 * every call fails at once with ERR_UNAVAILABLE. */
#ifndef HOLDFAST_STORE_POSTGRES_IMPL_H
#define HOLDFAST_STORE_POSTGRES_IMPL_H

#include "base/buf.h"
#include "base/random.h"
#include "store/counted.h"
#include "store/family.h"
#include "store/libpq.h"
#include "store/migrate.h"
#include "store/segment.h"
#include "store/sizes.h"
#include "store/sql.h"
#include "store/store_impl.h"

enum pg_statement {
    PG_BEGIN,
    PG_COMMIT,
    PG_PAGE_LIMIT,
    PG_PROBE,
    PG_SESSION_CREATE,
    PG_SESSION_PROMOTE,
    PG_SESSION_END,
    PG_TRANSPORT_CREATE,
    PG_TRANSPORT_LINK,
    PG_TRANSPORT_TOUCH,
    PG_TRANSPORT_END,
    PG_LINK_PUT,
    PG_LINK_END,
    PG_EVENTS_APPEND,
    PG_WRITER_RENEW,
    PG_WRITER_END,
    PG_UNDELIVERED_PUT,
    PG_UNDELIVERED_TAKE,
    PG_SESSION_USE,
    PG_SESSION_PATCH,
    PG_SESSION_REFRESH,
    PG_CONTEXT_PUT,
    PG_TENANT_ENSURE,
    PG_USER_ENSURE,
    PG_KEY_CREATE,
    PG_KEY_REVOKE,
    PG_KEY_USED,
    PG_IDEMPOTENCY_PUT,
    PG_TENANT_KEY_PUT,
    PG_TENANT_KEY_WRAP,
    PG_SECRET_PUT,
    PG_SECRET_REMOVE,
    PG_SESSION_RESEAL,
    PG_USER_CREATE,
    PG_USER_PASSWORD,
    PG_USER_END,
    PG_LOGIN_FAILED,
    PG_LOGIN_CREATE,
    PG_LOGIN_ROTATE,
    PG_LOGIN_REVOKE,
    PG_LOGINS_REVOKE,
    PG_TOOL_SEEN,
    PG_TOOL_APPROVE,
    PG_SERVER_TELL,
    PG_CHANGES_NUMBER,
    PG_SIZES_ADD,
    PG_SIZES_TODO,
    PG_SIZES_MOVE,
    PG_SIZES_DONE,
    PG_SIZES_SUBTRACT,
    PG_DATABASE_SIZE,
    PG_COUNTS,
    PG_SCHEMA_APPLIED,
    PG_SCHEMA_USERS,
    PG_EVENT_AT,
    PG_EVENTS_UP,
    PG_EVENTS_DOWN,
    PG_EVENTS_OF,
    PG_EXEC_OUTCOMES,
    PG_TAILS,
    PG_FOLD_LOCK,
    PG_FOLD_ADVANCE,
    PG_FOLD_HEAD,
    PG_FOLD_HEADS,
    PG_EXEC_INSERT,
    PG_EXEC_CLOSE,
    PG_SESSIONS_USED,
    PG_TOOL_ENTER,
    PG_OPEN_ALL,
    PG_OPEN_INTENTS,
    PG_LEASE,
    PG_REAP_AHEAD,
    PG_REAP_PAST,
    PG_REAP_UNUSED,
    PG_REAP_OVER,
    PG_REAP_TRANSPORTS_ENDED,
    PG_REAP_TRANSPORTS_IDLE,
    PG_REAP_UNDELIVERED,
    PG_REAP_IDEMPOTENCY,
    PG_SUMS_MERGE,
    PG_REAP_CHANGES,
    PG_REAP_LOGINS,
    PG_TOTALS,
    PG_EXECUTIONS_PAGE,
    PG_TOOL_KNOWN,
    PG_LINKS_UPTO,
    PG_LINKS_REAP,
    PG_WRITER_INSERT,
    PG_WRITERS_LAPSE,
    PG_COUNT
};
extern const char *const pg_texts[PG_COUNT];
/* Statements of the backend come first, then those of the shared tables (store/sql.h). */
#define PG_ALL (PG_COUNT + SQL_STATEMENTS)

struct pg_store {
    struct store base;
    PGconn *conn; /* NULL while away */
    PQconninfoOption *options;
    char *sql_dir;
    bool read_only, no_migrate;
    int64_t deadline_ms;
    int64_t until_us; /* deadline of the current operation, by pg_now_us() */
    bool prepared[PG_ALL];
    bool migrating;    /* inside a migration's transaction */
    char where[128];   /* host, for people */
    char reason[256];  /* why there is no connection */
    int64_t retry_us;  /* by pg_now_us(): no attempt before */
    unsigned failures; /* failed connects in a row */
    bool was_connected;
    /* Start time of this connection's server process, in µs since 1970; it identifies the process.
     * lost_us: the same of a broken connection, until its process has ended. */
    int64_t backend_us, lost_us;
    /* Events of the current transaction that are not sent yet; their ids are consecutive. */
    struct segment segment;
    int64_t segment_first;
    /* Writers that may have events after their mark, ascending: writers that appended through this
     * connection, and writers found by pg_fold_discover(). */
    int64_t *pending;
    size_t n_pending, cap_pending;
    bool discovered;
    size_t slice_events; /* maximum of one slice */
    /* Last session whose rows the reaper has checked, in the table of each family and in links. */
    char families_after[STORE_FAMILIES_MAX][UUID_TEXT], links_after[UUID_TEXT];
};

static inline struct pg_store *pg_of(struct store *s)
{
    return container_of(s, struct pg_store, base);
}

/* postgres_conn.c */
int64_t pg_now_us(void); /* the real monotonic clock */
/* Every verb begins here.  Connects if necessary, and starts the deadline. */
must_check bool pg_ready(struct pg_store *s, struct error *err);
/* Drops the connection.  `why` is the reported reason until the next connection. */
bool pg_disconnect(struct pg_store *s, const char *why, struct error *err);
/* Sends the buffered data, and reads meanwhile. */
must_check bool pg_flush(struct pg_store *s, struct error *err);
/* The next result; NULL at the end of one query's results.  The caller clears *ret. */
must_check bool pg_next(struct pg_store *s, PGresult **ret, struct error *err);
/* Sets the deadline of all waits from now on. */
void pg_deadline(struct pg_store *s, int64_t ms);
/* Sets *err from a failed result and returns false.  Drops the connection if it cannot be used any
 * more. */
bool pg_failed(struct pg_store *s, const PGresult *res, const char *doing, struct error *err);
bool pg_has_state(const PGresult *res, const char *sqlstate);
/* Runs several statements as one text, without parameters.  *ret (may be NULL) is the first column
 * of the last result as a number. */
must_check bool pg_exec_text(struct pg_store *s, const char *sql, const char *doing, int64_t *ret,
                             struct error *err);

/* postgres_query.c */
#define PG_PARAMS_MAX 40
/* Parameters in order: each call adds the next.  Texts and bytes are borrowed until sent. */
struct pg_params {
    int n;
    bool bad; /* a text or id that PostgreSQL cannot store */
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
    char fixed[PG_PARAMS_MAX][16];
};
/* True for valid UTF-8 without NUL; PostgreSQL stores no other texts. */
bool pg_is_text(struct str s);
/* Parses a UUID in our spelling (lower case, 36 characters) into 16 bytes. */
must_check bool pg_uuid_parse(struct str s, uint8_t ret[16]);
void pg_text(struct pg_params *p, struct str s); /* absent is NULL */
void pg_bytes(struct pg_params *p, struct str s);
void pg_sha(struct pg_params *p, const uint8_t sha[32]);
/* For ids in lookups and references.  A text that is not a UUID becomes the zero UUID, which no row
 * has. */
void pg_uuid(struct pg_params *p, struct str s);
void pg_own_uuid(struct pg_params *p, struct str s); /* id of a new row: must be a UUID */
void pg_int(struct pg_params *p, int64_t i);
void pg_int4(struct pg_params *p, int32_t i);
void pg_bool(struct pg_params *p, bool b);
void pg_time(struct pg_params *p, int64_t ms);    /* 0 is NULL */
void pg_instant(struct pg_params *p, int64_t ms); /* 0 is 1970 */
void pg_ints(struct pg_params *p, const int64_t *ids, size_t n, struct arena *mem);
void pg_uuids(struct pg_params *p, const struct str *texts, size_t n, struct arena *mem);
void pg_blobs_of(struct pg_params *p, const struct str *blobs, size_t n, struct arena *mem);
void pg_texts_of(struct pg_params *p, const struct str *texts, size_t n, struct arena *mem);

/* Columns in order: each call reads the next. */
struct pg_row {
    const PGresult *res;
    struct arena *mem;
    int row, at;
};
struct str pg_get_bytes(struct pg_row *r);  /* copied to mem; NULL is absent */
struct str pg_peek_bytes(struct pg_row *r); /* valid until the result is cleared */
struct str pg_get_uuid(struct pg_row *r);   /* as text in mem */
int64_t pg_get_int(struct pg_row *r);       /* bigint or integer; NULL is 0 */
bool pg_get_bool(struct pg_row *r);
int64_t pg_get_time(struct pg_row *r); /* NULL is 0 */
void pg_get_sha(struct pg_row *r, uint8_t ret[32]);

/* `which` is an enum pg_statement, or PG_COUNT + a statement of the shared tables. */
must_check bool pg_prepare(struct pg_store *s, unsigned which, struct error *err);
/* Runs one statement on the current connection.  The caller clears *ret. */
must_check bool pg_run(struct pg_store *s, unsigned which, const struct pg_params *p,
                       PGresult **ret, struct error *err);
/* pg_run() as a verb of its own: connects first if necessary. */
must_check bool pg_query(struct pg_store *s, unsigned which, const struct pg_params *p,
                         PGresult **ret, struct error *err);
/* pg_query() for a page.  On a read-only store it fails with ERR_TIMEOUT after STORE_PAGE_MS. */
must_check bool pg_page(struct pg_store *s, unsigned which, const struct pg_params *p,
                        PGresult **ret, struct error *err);
/* Pipeline mode: statements are sent without waiting for their results, until pg_pipe_end().  Every
 * statement must be prepared before. */
must_check bool pg_pipe_begin(struct pg_store *s, struct error *err);
must_check bool pg_pipe_send(struct pg_store *s, unsigned which, const struct pg_params *p,
                             struct error *err);
/* Requests the results of all statements sent since the last pg_pipe_sync(). */
must_check bool pg_pipe_sync(struct pg_store *s, struct error *err);
/* The result of the next statement; the caller clears *ret.  A statement that was skipped because
 * an earlier one failed has the status PGRES_PIPELINE_ABORTED. */
must_check bool pg_pipe_next(struct pg_store *s, PGresult **ret, struct error *err);
/* Call after taking the results of all statements. */
must_check bool pg_pipe_synced(struct pg_store *s, struct error *err);
void pg_pipe_end(struct pg_store *s);
/* Rolls back a failed transaction.  Drops the connection if the rollback fails. */
void pg_rollback(struct pg_store *s);

/* postgres.c */
/* Connects, but neither migrates nor checks the schema.  Close with store_close(). */
must_check bool pg_open_server(const struct store_config *config, struct pg_store **ret,
                               struct error *err);
/* postgres_migrate.c */
struct migrate_driver pg_migrate_driver(struct pg_store *s);

/* postgres_verb.c */
struct pg_verb {
    unsigned kind;
    unsigned statement; /* enum pg_statement, or a statement of a family */
    /* Adds all parameters but the last one, which every verb has: whether the op is required.  NULL
     * for events, which are collected into segments. */
    void (*params)(struct pg_params *p, const struct store_op *op, int64_t now_ms);
    /* Reads the columns after the verdict OK; NULL: there are none. */
    void (*take)(struct pg_row *r, const struct store_op *op);
};
/* The ops that each file applies; the last row is zero. */
extern const struct pg_verb pg_verb_ops[], pg_login_ops[], pg_tool_ops[], pg_size_ops[];
extern const struct pg_verb *pg_verbs[OP_COUNT]; /* all of them */
/* The verdict of a verb; raises an exception when the op is required and the verdict is not OK. */
#define PG_VERB(call, required) "SELECT mcp.hf_require(mcp." call ", " required "::boolean)"
/* The PostgreSQL part of a family (store/family.h).  Its statements are numbered from PG_COUNT +
 * SQL_FAMILY on. */
struct postgres_family {
    const struct sql_text *texts;
    const struct pg_verb *ops;
    const struct verb_handler *verbs; /* those that need more than one statement */
    /* For a table with rows of sessions, two statements of the reaper; see struct sqlite_family. */
    unsigned upto, over;
    /* Counts the calls of a slice of the fold, in its transaction; NULL: this family counts none.
     * Only one process at a time folds the events of `writer`. */
    bool (*count)(struct pg_store *s, int64_t writer, const struct counted_call *calls, size_t n,
                  struct arena *mem, struct error *err);
};
/* postgres_write.c */
bool pg_write(struct store *s, struct store_op *ops, size_t n, struct error *err);

/* postgres_event.c */
/* Finds one event without its body, on the current connection.  The event's texts are valid as long
 * as *ret_res, which the caller clears. */
must_check bool pg_event_at(struct pg_store *s, int64_t id, PGresult **ret_res,
                            struct event_row *ret, bool *ret_found, struct error *err);
/* Iterates over the events from..upto, across segments.  Texts are valid until the next step.
 * Always call pg_events_close().  Uses the current connection; only a page may reconnect. */
struct pg_events {
    struct pg_store *s;
    struct segment_scan scan;
    int64_t next; /* id to read on from, upwards or downwards */
    bool with_bodies;
    bool is_page;  /* each chunk may take STORE_PAGE_MS on a read-only store */
    bool is_begun; /* the segment that may contain `from` was requested */
    bool is_last;  /* no more chunks */
    int chunk;     /* segments per request */
    PGresult *res;
    int row;
};
void pg_events_open(struct pg_store *s, struct pg_events *c, int64_t from, int64_t upto);
/* *ret_found is false at the end. */
must_check bool pg_events_next(struct pg_events *c, struct event_row *ret, bool *ret_found,
                               struct error *err);
void pg_events_close(struct pg_events *c);
/* The existing events among `ids`, sorted by id, copied to `mem`. */
must_check bool pg_events_of(struct pg_store *s, const int64_t *ids, size_t n, bool with_bodies,
                             struct arena *mem, struct event_row *ret_rows, size_t *ret_n,
                             struct error *err);
/* postgres_head.c */
/* A writer with events after its mark. */
struct pg_tail {
    int64_t writer, mark, last_id;
};
/* The tails of all writers (now_ms < 0), or of writers that are gone by now_ms; in `mem`.  On the
 * current connection. */
must_check bool pg_tails(struct pg_store *s, int64_t now_ms, struct arena *mem,
                         struct pg_tail **ret, size_t *ret_n, struct error *err);
/* postgres_fold.c */
/* Notes that events of this writer were, or may have been, appended. */
void pg_fold_later(struct pg_store *s, int64_t writer);
/* Notes writers that are gone: no other node folds their events. */
must_check bool pg_fold_discover(struct pg_store *s, int64_t now_ms, struct error *err);
must_check bool pg_fold_all(struct store *s, int64_t now_ms, struct error *err);
/* postgres_sizes.c */
/* The parameters of PG_SIZES_ADD: adds the gathered sizes. */
void pg_sizes_params(struct pg_params *p, struct sizes *sizes, struct arena *mem);
/* Counts up to `max` events that were folded before sizes were kept, in a transaction of its own.
 * *ret_left is set when there may be more, else untouched. */
must_check bool pg_sizes_count(struct pg_store *s, size_t max, bool *ret_left, struct error *err);
extern const struct verb_handler pg_size_verbs[];
/* postgres_exec.c */
/* A text that PostgreSQL can store: in a text that is not valid, every byte that is NUL or not
 * ASCII becomes '?'. */
struct str pg_cleaned(struct arena *mem, struct str s);
/* Projects one slice into executions, sessions, tools and chains. */
must_check bool pg_project(struct pg_store *s, int64_t writer, struct event_row *events, size_t n,
                           struct arena *mem, struct error *err);
/* postgres_sql_read.c */
/* Answers a verb of the shared tables (store/sql.h). */
must_check bool pg_read_call(struct pg_store *s, struct store_call *c, struct error *err);
/* The statement of such a call; adds its parameters. */
unsigned pg_read_params(struct pg_params *p, const struct store_call *c);
/* Adds all columns of the row, in their order.  With `who`, tenant and owner are the
 * principal's. */
void pg_row_params(struct pg_params *p, const struct row_type *type, const void *row,
                   const struct principal *who);
/* The rows read from a result: `n` items of the type, in `mem`. */
struct pg_rows {
    const struct row_type *type;
    struct arena *mem;
    void *items;
    size_t n;
};
/* Reads at most `limit` rows of a result, and clears the result. */
must_check bool pg_take_rows(PGresult *res, size_t limit, struct pg_rows *rows, struct error *err);
/* The same after pg_query(). */
must_check bool pg_read_rows(struct pg_store *s, unsigned which, const struct pg_params *p,
                             struct pg_rows *rows, struct error *err);

/* The verbs that each file answers itself. */
extern const struct verb_handler pg_read_verbs[], pg_registry_verbs[], pg_event_verbs[],
    pg_head_verbs[], pg_fold_verbs[], pg_reap_verbs[], pg_write_verbs[];

#endif
