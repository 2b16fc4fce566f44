/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the PostgreSQL backend share: the connection, its prepared statements, and
 * small words for parameters and columns.  Values travel in binary, so times and bytes arrive as
 * they left.
 *
 * The connection is never blocking: every wait is a poll() with a deadline by the real clock,
 * whatever tests do to ours.  When it passes, or the connection breaks, the connection is dropped,
 * and the next call makes a new one, with back-off after failures.  While there is none every call
 * fails at once with ERR_UNAVAILABLE. */
#ifndef HOLDFAST_STORE_POSTGRES_IMPL_H
#define HOLDFAST_STORE_POSTGRES_IMPL_H

#include <libpq-fe.h>

#include "base/buf.h"
#include "store/migrate.h"
#include "store/segment.h"
#include "store/store_impl.h"

enum pg_statement {
    PG_BEGIN,
    PG_BEGIN_SNAPSHOT,
    PG_COMMIT,
    PG_ROLLBACK,
    PG_PAGE_LIMIT,
    PG_PROBE,
    PG_SESSION_CREATE,
    PG_SESSION_NAME,
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
    PG_SESSION_BY_HANDLE,
    PG_SESSION_BY_ID,
    PG_SESSION_BY_KEY,
    PG_SESSIONS_PAGE,
    PG_TRANSPORT_GET,
    PG_LINKS_OF,
    PG_UNDELIVERED_GET,
    PG_UNDELIVERED_PAGE,
    PG_COUNTS,
    PG_SCHEMA_APPLIED,
    PG_EVENT_AT,
    PG_WRITER_INSERT,
    PG_WRITERS_LAPSE,
    PG_COUNT
};
extern const char *const pg_texts[PG_COUNT];

struct pg_store {
    struct store base;
    PGconn *conn; /* NULL while away */
    PQconninfoOption *options;
    char *sql_dir;
    bool read_only, no_migrate;
    int64_t deadline_ms;
    int64_t until_us; /* of what is under way, by pg_now_us() */
    bool prepared[PG_COUNT];
    bool said_in_clear; /* warned about a connection without TLS */
    bool migrating;     /* inside a migration's transaction */
    char where[128];    /* host, for people */
    char reason[256];   /* why there is no connection */
    int64_t retry_us;   /* by pg_now_us(): not before */
    unsigned failures;  /* connects in a row */
    /* Events of the transaction under way that are not sent yet: consecutive ids. */
    struct segment segment;
    int64_t segment_first;
    struct pg_pending *pending; /* postgres_fold.c: writers with something to fold, ascending */
    size_t n_pending, cap_pending;
    bool pending_known;
};

static inline struct pg_store *pg_of(struct store *s)
{
    return container_of(s, struct pg_store, base);
}

/* postgres_conn.c */
int64_t pg_now_us(void); /* real, monotonic */
/* There is a connection, made now if it must be.  Every verb begins here: its deadline runs. */
must_check bool pg_ready(struct pg_store *s, struct error *err);
/* Drops the connection; `why` is told until there is another. */
bool pg_away(struct pg_store *s, const char *why, struct error *err);
/* Sends what is buffered; reads meanwhile. */
must_check bool pg_flush(struct pg_store *s, struct error *err);
/* The next result of what was sent, NULL at the end of one query's; *ret is the caller's. */
must_check bool pg_next(struct pg_store *s, PGresult **ret, struct error *err);
/* Whatever is waited for from now on ends in so long. */
void pg_deadline(struct pg_store *s, int64_t ms);
/* *err from a failed result, and false; a connection that is of no use any more is dropped. */
bool pg_failed(struct pg_store *s, const PGresult *res, const char *doing, struct error *err);
bool pg_has_state(const PGresult *res, const char *sqlstate);
/* Several statements as one text, without parameters; the last result's first column as a number
 * into *ret (may be NULL). */
must_check bool pg_exec_text(struct pg_store *s, const char *sql, const char *doing, int64_t *ret,
                             struct error *err);

/* postgres_query.c */
#define PG_PARAMS_MAX 40
/* Parameters in order: each call adds the next.  Texts and bytes are borrowed until sent. */
struct pg_params {
    int n;
    bool bad; /* a text that PostgreSQL cannot hold */
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
    char fixed[PG_PARAMS_MAX][16];
};
/* Valid UTF-8 without NUL: what a text may be there. */
bool pg_is_text(struct str s);
/* A UUID as we write them (lower case, 36 characters) to 16 bytes. */
must_check bool pg_uuid_parse(struct str s, uint8_t ret[16]);
void pg_text(struct pg_params *p, struct str s); /* absent is NULL */
void pg_bytes(struct pg_params *p, struct str s);
void pg_sha(struct pg_params *p, const uint8_t sha[32]);
/* Of what is looked for or referred to: what is no UUID becomes one that names nothing. */
void pg_uuid(struct pg_params *p, struct str s);
void pg_own_uuid(struct pg_params *p, struct str s); /* of a row being made: it must be one */
void pg_int(struct pg_params *p, int64_t i);
void pg_int4(struct pg_params *p, int32_t i);
void pg_bool(struct pg_params *p, bool b);
void pg_time(struct pg_params *p, int64_t ms);    /* 0 is NULL */
void pg_instant(struct pg_params *p, int64_t ms); /* 0 is 1970 */

/* Columns likewise. */
struct pg_row {
    const PGresult *res;
    struct arena *mem;
    int row, at;
};
struct str pg_get_bytes(struct pg_row *r);  /* copied to mem; NULL is absent */
struct str pg_peek_bytes(struct pg_row *r); /* valid as long as the result */
struct str pg_get_uuid(struct pg_row *r);   /* as text in mem */
int64_t pg_get_int(struct pg_row *r);       /* bigint; NULL is 0 */
bool pg_get_bool(struct pg_row *r);
int64_t pg_get_time(struct pg_row *r); /* NULL is 0 */
void pg_get_sha(struct pg_row *r, uint8_t ret[32]);

must_check bool pg_prepare(struct pg_store *s, enum pg_statement which, struct error *err);
/* Runs one statement on the connection there is, and gives its rows; PQclear() is the caller's. */
must_check bool pg_run(struct pg_store *s, enum pg_statement which, const struct pg_params *p,
                       PGresult **ret, struct error *err);
/* The same as a verb of its own: with a new connection if need be. */
must_check bool pg_query(struct pg_store *s, enum pg_statement which, const struct pg_params *p,
                         PGresult **ret, struct error *err);
/* The same for a page: on a read-only store it may take STORE_PAGE_MS, then it is ERR_TIMEOUT. */
must_check bool pg_page(struct pg_store *s, enum pg_statement which, const struct pg_params *p,
                        PGresult **ret, struct error *err);
/* Statements sent without waiting for their answers; all in one go until pg_pipe_end().  Every one
 * must be prepared before. */
must_check bool pg_pipe_begin(struct pg_store *s, struct error *err);
must_check bool pg_pipe_send(struct pg_store *s, enum pg_statement which, const struct pg_params *p,
                             struct error *err);
/* Asks for the answers of all that was sent since the last of these. */
must_check bool pg_pipe_sync(struct pg_store *s, struct error *err);
/* The answer of the next statement; PQclear() is the caller's.  One that was passed over because of
 * an earlier one has the status PGRES_PIPELINE_ABORTED. */
must_check bool pg_pipe_next(struct pg_store *s, PGresult **ret, struct error *err);
/* After the answers of all statements. */
must_check bool pg_pipe_synced(struct pg_store *s, struct error *err);
void pg_pipe_end(struct pg_store *s);
/* Ends a transaction that failed; a connection that cannot even do this is dropped. */
void pg_rollback(struct pg_store *s);

/* postgres.c */
/* Connects and leaves the schema alone; ends with store_close(). */
must_check bool pg_open_server(const struct store_config *config, struct pg_store **ret,
                               struct error *err);
/* postgres_migrate.c */
struct migrate_driver pg_migrate_driver(struct pg_store *s);

/* postgres_verb.c */
struct pg_verb {
    enum pg_statement statement;
    /* All parameters but the last, which every verb has: whether it is required.  NULL: events,
     * which are gathered. */
    void (*params)(struct pg_params *p, const struct store_op *op, int64_t now_ms);
};
extern const struct pg_verb pg_verbs[OP_COUNT];
/* postgres_write.c */
bool pg_write(struct store *s, struct store_op *ops, size_t n, struct error *err);
bool pg_writer_start(struct store *s, struct writer_row *row, bool exclusive, struct error *err);

/* postgres_event.c */
/* One event without its body, if it is there; its texts live as long as *ret_res, which is the
 * caller's. */
must_check bool pg_event_at(struct pg_store *s, int64_t id, PGresult **ret_res,
                            struct event_row *ret, bool *ret_found, struct error *err);
/* postgres_fold.c */
/* Events of this writer were, or may have been, appended. */
void pg_fold_later(struct pg_store *s, int64_t writer);
/* postgres_read.c */
/* In the order of SESSION_COLUMNS; settled. */
must_check bool pg_read_session(struct pg_row *r, struct session_row *row, struct error *err);
bool pg_session_by_handle(struct store *s, const struct principal *who, struct str handle,
                          struct arena *mem, struct session_row **ret_row, struct error *err);
bool pg_session_by_id(struct store *s, const struct principal *who, struct str id,
                      struct arena *mem, struct session_row **ret_row, struct error *err);
bool pg_session_by_key(struct store *s, const struct principal *who, struct str carrier,
                       struct str key, struct arena *mem, struct session_row **ret_row,
                       struct error *err);
bool pg_transport_get(struct store *s, const struct principal *who, const uint8_t id_hash[32],
                      struct arena *mem, struct transport_row **ret_row, struct error *err);
bool pg_links_of(struct store *s, const struct principal *who, struct str session_id,
                 struct arena *mem, struct link_row **ret_rows, size_t *ret_n, struct error *err);
bool pg_sessions_page(struct store *s, const struct principal *who,
                      const struct session_filter *filter, unsigned limit, struct arena *mem,
                      struct session_row **ret_rows, size_t *ret_n, struct error *err);
bool pg_undelivered_get(struct store *s, const struct principal *who, int64_t id, struct arena *mem,
                        struct undelivered_row **ret_row, struct error *err);
bool pg_undelivered_page(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                         struct undelivered_row **ret_rows, size_t *ret_n, struct error *err);
bool pg_counts(struct store *s, struct store_counts *ret, struct error *err);

#endif
