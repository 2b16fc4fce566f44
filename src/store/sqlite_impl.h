/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the SQLite backend: the connection, its prepared statements, and helpers
 * for bindings and columns.  Statement texts are literals (sqlite_sql.c), each prepared at first
 * use and kept.  Values are always passed as bindings. */
#ifndef HOLDFAST_STORE_SQLITE_IMPL_H
#define HOLDFAST_STORE_SQLITE_IMPL_H

#include <sqlite3.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/random.h"
#include "store/counted.h"
#include "store/family.h"
#include "store/migrate.h"
#include "store/pack.h"
#include "store/segment.h"
#include "store/sizes.h"
#include "store/sql.h"
#include "store/store_impl.h"

enum sq_statement {
    SQ_BEGIN_WRITE,
    SQ_BEGIN_READ,
    SQ_COMMIT,
    SQ_ROLLBACK,
    SQ_PROBE,
    SQ_TENANT_COUNTED,
    SQ_TENANT_ADD,
    SQ_USER_ENSURE,
    SQ_USER_CREATE,
    SQ_USER_PASSWORD,
    SQ_USER_END,
    SQ_LOGIN_FAILED,
    SQ_LOGIN_CREATE,
    SQ_LOGIN_USER,
    SQ_LOGIN_CLEAR,
    SQ_LOGIN_PRUNE,
    SQ_LOGIN_STATE,
    SQ_LOGIN_ROTATE,
    SQ_LOGIN_SPEND,
    SQ_LOGIN_REVOKE,
    SQ_LOGINS_REVOKE,
    SQ_LOGINS_REAP,
    SQ_KEY_CREATE,
    SQ_KEY_EXISTS,
    SQ_KEY_REVOKE,
    SQ_KEY_USED,
    SQ_TENANT_KEY_PUT,
    SQ_TENANT_KEY_WRAP,
    SQ_SECRET_UPDATE,
    SQ_SECRET_INSERT,
    SQ_SECRET_REMOVE,
    SQ_SESSION_RESEAL,
    SQ_SESSION_SEALED,
    SQ_CONTEXT_STATE,
    SQ_CONTEXT_PUT,
    SQ_SESSION_CONTEXT,
    SQ_IDEMPOTENCY_PUT,
    SQ_IDEMPOTENCY_REAP,
    SQ_SESSION_LAPSE_KEY,
    SQ_TENANT_LAPSED,
    SQ_SESSION_TAKEN,
    SQ_SESSION_INSERT,
    SQ_SESSION_STATE,
    SQ_SESSION_PROMOTE,
    SQ_SESSION_END,
    SQ_SESSION_USE,
    SQ_SESSION_CAN_WAIT,
    SQ_SESSION_WAKE,
    SQ_SESSION_PATCH,
    SQ_SESSION_REFRESH,
    SQ_SESSION_IDLE,
    SQ_SESSION_PULL_BACK,
    SQ_SESSION_REAP,
    SQ_SESSION_DELETE_OVER,
    SQ_TOTALS_OF_TENANT,
    SQ_TOTALS_OF_OWNER,
    SQ_TRANSPORT_INSERT,
    SQ_TRANSPORT_EXISTS,
    SQ_TRANSPORT_LINK,
    SQ_TRANSPORT_TOUCH,
    SQ_TRANSPORT_END,
    SQ_TRANSPORT_REAP_ENDED,
    SQ_TRANSPORT_REAP_IDLE,
    SQ_LINK_PUT,
    SQ_LINK_END,
    SQ_LINKS_UPTO,
    SQ_LINKS_REAP,
    SQ_EVENTS_INSERT,
    SQ_EVENTS_UP,
    SQ_EVENTS_DOWN,
    SQ_WRITER_INSERT,
    SQ_WRITERS_LAPSE,
    SQ_WRITER_RENEW,
    SQ_WRITER_END,
    SQ_FOLD_WATERMARK,
    SQ_FOLD_HEADS,
    SQ_FOLD_ADVANCE,
    SQ_EXEC_INSERT,
    SQ_EXEC_CLOSE,
    SQ_EXEC_OUTCOME,
    SQ_EXEC_STATE,
    SQ_SESSION_USED,
    SQ_SESSIONS_WAKE,
    SQ_SESSION_EXECUTIONS_ADD,
    SQ_SESSION_EXECUTIONS,
    SQ_SESSION_EXECUTIONS_DELETE,
    SQ_LONG_OUTCOME,
    SQ_TOOL_ADD,
    SQ_TOOL_KNOWN,
    SQ_OPEN_ALL,
    SQ_OPEN_INTENTS,
    SQ_UNDELIVERED_PUT,
    SQ_UNDELIVERED_EXISTS,
    SQ_UNDELIVERED_TAKE,
    SQ_UNDELIVERED_REAP,
    SQ_TOOL_SEEN,
    SQ_TOOL_APPROVE,
    SQ_TOOL_IS,
    SQ_SERVER_TELL,
    SQ_SIZES_ADD,
    SQ_SIZES_DROP,
    SQ_SIZES_TODO,
    SQ_SIZES_MOVE,
    SQ_SIZES_DONE,
    SQ_SIZES_HAS,
    SQ_DATABASE_SIZE,
    SQ_COUNTS,
    SQ_COUNT
};
extern const char *const sq_texts[SQ_COUNT];
/* Statements of the backend come first, then those of the shared tables (store/sql.h). */
#define SQ_ALL (SQ_COUNT + SQL_STATEMENTS)
/* The text with its columns, in memory of the caller; NULL: SQLite has no such statement. */
char *sq_statement_text(unsigned which) must_check;

/* A writer that has unfolded events while `pending`. */
struct sq_unfolded {
    int64_t writer;
    int64_t watermark; /* last folded event; -1: read the table */
    bool pending;
};

/* The fields of an unfolded event that the fold needs; see sqlite_unfolded.c. */
struct unfolded_event {
    int64_t id, exec, at_ms, seq, tokens;
    struct unfolded_session *session; /* NULL: none, or irrelevant */
    struct unfolded_tool *tool;       /* tool of an intent; NULL likewise */
    struct unfolded_chain *chain;
    struct event_size size;
    struct counted_call call; /* without labels: the event ends no execution */
    uint8_t mac[32];
    uint8_t kind; /* enum event_kind */
    bool refused, indeterminate;
};

struct unfolded_events {
    struct unfolded_event *items; /* in the order they were appended */
    size_t n, cap;
    size_t committed; /* the first `committed` items; the rest is in the open transaction */
    struct map sessions, chains, tools;
    struct counted_names names;
    struct unfolded_chain *last_chain; /* mostly also the chain of the next event */
    struct unfolded_tool *last_tool;   /* likewise */
    struct arena *mem;                 /* memory of the maps; NULL: not yet made */
};

struct sqlite_store {
    struct store base;
    sqlite3 *db; /* NULL only while broken */
    char *path;
    char *sql_dir;
    bool read_only;
    bool broken;             /* a commit or a sync failed: reopen and probe before the next write */
    int64_t reopen_after_us; /* while broken: no reopen before */
    int64_t reopen_pause_us; /* pause after the last failed reopen */
    struct error why;        /* error of the last failed reopen */
    int64_t deadline_us;     /* deadline of the page being read; 0: none */
    /* A commit is followed by a checkpoint when the WAL has this many frames. */
    int checkpoint_frames;
    int64_t wal_warned;            /* bytes of the WAL at the last warning; 0: not large */
    struct metric_cell *wal_bytes; /* writer only */
    sqlite3_stmt *statements[SQ_ALL];
    /* While this list is complete, the fold reads no events back. */
    struct unfolded_events unfolded_events;
    bool unfolded_events_complete;
    /* Otherwise: the writers that have unfolded events.  Unknown after an open, exact from then on,
     * because all appends pass through this connection. */
    bool unfolded_known;
    struct sq_unfolded *unfolded; /* sorted by writer */
    size_t n_unfolded, cap_unfolded;
    uint64_t slices; /* slices folded or tried */
    /* Events of the open transaction that are not written yet; their ids are consecutive. */
    const struct event_row *gathered[512];
    size_t n_gathered;
    struct segment segment;
    struct packer *packer;
    struct buf packed[2]; /* records and bodies of the segment being written */
    /* Last session whose rows the reaper has checked, in the table of each family and in links. */
    char families_after[STORE_FAMILIES_MAX][UUID_TEXT], links_after[UUID_TEXT];
    /* The last event of its writer in the file; -1: unknown. */
    int64_t newest;
};

static inline struct sqlite_store *sq_of(struct store *s)
{
    return container_of(s, struct sqlite_store, base);
}

/* sqlite.c */
/* Sets err from the connection's last failure; `doing` completes "The database failed while …". */
bool sq_error(struct sqlite_store *s, struct error *err, const char *doing);
/* `which` is an enum sq_statement, or SQ_COUNT + a statement of the shared tables. */
sqlite3_stmt *sq_prepare(struct sqlite_store *s, unsigned which, struct error *err) must_check;
/* Steps a statement that returns no rows, and resets it. */
must_check bool sq_run(struct sqlite_store *s, sqlite3_stmt *st, struct error *err);
/* Steps once.  *ret_row: there is a row to read.  The caller resets with sq_reset(). */
must_check bool sq_step(struct sqlite_store *s, sqlite3_stmt *st, bool *ret_row, struct error *err);
void sq_reset(sqlite3_stmt *st);
/* Write transactions.  sq_begin() reopens a broken connection.  A failed sq_commit() has rolled
 * back, and the connection is broken. */
must_check bool sq_begin(struct sqlite_store *s, struct error *err);
must_check bool sq_commit(struct sqlite_store *s, struct error *err);
void sq_rollback(struct sqlite_store *s);
/* Copies committed pages from the WAL to the file now, which also makes the file shorter.  A failure is
 * logged, and the next checkpoint tries again. */
void sq_checkpoint(struct sqlite_store *s);
must_check bool sq_begin_read(struct sqlite_store *s, struct error *err);
void sq_end_read(struct sqlite_store *s);
/* Call around a page on a read-only connection: after STORE_PAGE_MS the page is interrupted. */
void sq_page_begin(struct sqlite_store *s);
void sq_page_end(struct sqlite_store *s);
struct migrate_driver sq_migrate_driver(sqlite3 **db);
/* Adds the SQL function unpacked(BLOB), for a down migration.  Returns SQLite's code. */
int sq_add_unpacked(sqlite3 *db);
/* Opens the file, but neither migrates nor checks the schema.  Close with store_close(). */
must_check bool sq_open_file(const struct store_config *config, struct sqlite_store **ret,
                             struct error *err);

/* Bindings in order: each call binds the next parameter. */
struct sq_bind {
    sqlite3_stmt *st;
    int at;
};
void sq_text(struct sq_bind *b, struct str s); /* absent is NULL */
void sq_blob(struct sq_bind *b, struct str s);
void sq_sha(struct sq_bind *b, const uint8_t sha[32]); /* all zero is NULL */
void sq_int(struct sq_bind *b, int64_t i);
void sq_time(struct sq_bind *b, int64_t ms);                   /* 0 is NULL */
void sq_owner(struct sq_bind *b, const struct principal *who); /* NULL when tenant_wide */
/* Columns in order: each call reads the next. */
struct sq_row {
    sqlite3_stmt *st;
    struct arena *mem;
    int at;
};
struct str sq_get_bytes(struct sq_row *r);  /* copied to mem; NULL is absent */
struct str sq_peek_bytes(struct sq_row *r); /* valid until the next step */
int64_t sq_get_int(struct sq_row *r);       /* NULL is 0 */
void sq_get_sha(struct sq_row *r, uint8_t ret[32]);

/* sqlite_sizes.c */
/* Adds the gathered sizes to the table, in the open transaction. */
must_check bool sq_sizes_write(struct sqlite_store *s, struct sizes *sizes, struct error *err);
/* Counts up to `max` events that were folded before sizes were kept, in the open transaction.
 * *ret_left: there are more. */
must_check bool sq_sizes_count(struct sqlite_store *s, size_t max, bool *ret_left,
                               struct error *err);
extern const struct verb_handler sq_size_verbs[];

/* sqlite_sql_read.c */
/* Answers a verb of the shared tables. */
must_check bool sq_read_call(struct sqlite_store *s, struct store_call *c, struct error *err);
/* Rows of a type: `n` items in `mem`. */
struct sq_rows {
    const struct row_type *type;
    struct arena *mem;
    void *items;
    size_t n;
};
/* Reads at most `limit` rows from a bound statement, and resets the statement. */
must_check bool sq_read_rows(struct sqlite_store *s, sqlite3_stmt *st, size_t limit,
                             struct sq_rows *rows, struct error *err);
/* Binds all columns of the row, in their order.  With `who`, tenant and owner are the
 * principal's. */
void sq_bind_row(struct sq_bind *b, const struct row_type *type, const void *row,
                 const struct principal *who);

/* The verbs that each file answers itself. */
extern const struct verb_handler sq_count_verbs[], sq_registry_verbs[], sq_event_verbs[],
    sq_head_verbs[], sq_execution_verbs[], sq_fold_verbs[], sq_write_verbs[];

/* sqlite_write.c */
/* The batch that is being written. */
struct sq_batch {
    struct sqlite_store *s;
    int64_t now_ms;
};
/* Verbs set op->verdict; false means an unexpected error. */
typedef bool sq_verb(struct sq_batch *b, struct store_op *op, struct error *err);
/* The ops that each file applies; the last row is zero. */
struct sq_op {
    unsigned kind;
    sq_verb *run;
};
extern const struct sq_op sq_session_ops[], sq_registry_ops[], sq_key_ops[], sq_secret_ops[],
    sq_login_ops[], sq_tool_ops[], sq_size_ops[], sq_write_ops[], sq_undelivered_ops[];
extern sq_verb *sq_ops[OP_COUNT]; /* all of them */
/* The SQLite part of a family (store/family.h).  Its statements are numbered from SQ_COUNT +
 * SQL_FAMILY on. */
struct sqlite_family {
    const struct sql_text *texts;
    const struct sq_op *ops;
    const struct verb_handler *verbs; /* those that need more than one statement */
    /* For a table with rows of sessions, two statements of the reaper; 0: there is no such table.
     * Each round checks a number of sessions and continues there in the next round.  `upto` selects
     * the last of the next ?2 sessions after ?1, and their number; `over` deletes the rows of
     * sessions after ?1 up to ?2 that are over. */
    unsigned upto, over;
    /* Counts the calls of a slice of the fold, in its transaction; NULL: this family counts none. */
    bool (*count)(struct sqlite_store *s, const struct counted_call *calls, size_t n,
                  struct error *err);
};
/* Runs a bound statement.  The verdict is OK when it changed a row, else `otherwise`. */
must_check bool sq_run_verdict(struct sqlite_store *s, sqlite3_stmt *st, struct store_op *op,
                               enum verdict otherwise, struct error *err);
/* Runs a bound statement; *ret: it returned a row. */
must_check bool sq_run_exists(struct sqlite_store *s, sqlite3_stmt *st, bool *ret,
                              struct error *err);
/* Finds out why nothing was changed: runs a bound statement that looks for the row.  The verdict is
 * `if_there` when the row exists, else MISSING. */
must_check bool sq_run_refusal(struct sqlite_store *s, sqlite3_stmt *st, struct store_op *op,
                               enum verdict if_there, struct error *err);
bool sq_write(struct store *s, struct store_op *ops, size_t n, struct error *err);
/* sqlite_session.c */
/* The state of a session that the caller reaches; `found` is false when the caller reaches no such
 * session. */
struct sq_session_state {
    bool found, named, counted, live;
    int64_t version;
};
must_check bool sq_session_state(struct sqlite_store *s, const struct principal *who, struct str id,
                                 int64_t now_ms, struct sq_session_state *ret, struct error *err);
/* sqlite_key.c */
must_check bool sq_tenant_make(struct sqlite_store *s, struct str tenant, int64_t now_ms,
                               struct error *err);
/* sqlite_execution.c */
/* An execution of a session in the slice that is being folded.  `outcome` is 0 when long_executions
 * has the execution's outcome, or will have it. */
struct sq_listed {
    int64_t exec, outcome;
    struct sq_listed *next;
};
/* Stores the list of the session's executions, sorted by id. */
must_check bool sq_executions_add(struct sqlite_store *s, struct str session,
                                  const struct sq_listed *listed, struct buf *scratch,
                                  struct error *err);
/* Takes executions out of the session's list; `ids` are sorted. */
must_check bool sq_executions_remove(struct sqlite_store *s, struct str session, const int64_t *ids,
                                     size_t n, struct error *err);
/* sqlite_event.c */
/* Gathers the event; sq_events_flush() writes the gathered events before the commit.  `e` must live
 * until then. */
must_check bool sq_event_append(struct sqlite_store *s, const struct event_row *e,
                                struct error *err);
must_check bool sq_events_flush(struct sqlite_store *s, struct error *err);
/* Call after a rollback. */
void sq_events_forget(struct sqlite_store *s);
/* Iterates over the events from..upto, across segments, in the direction of the statement.  Spans
 * are valid until the next step.  Each statement serves one iteration at a time. */
struct sq_events {
    struct sqlite_store *s;
    sqlite3_stmt *st;
    struct segment_scan scan;
    struct buf plain[2]; /* unpacked records and bodies of the current segment */
};
must_check bool sq_events_open(struct sqlite_store *s, struct sq_events *c, enum sq_statement which,
                               int64_t from, int64_t upto, bool with_bodies, struct error *err);
/* *ret_found is false at the end.  A failed iteration need not be closed. */
must_check bool sq_events_next(struct sq_events *c, struct event_row *ret, bool *ret_found,
                               struct error *err);
void sq_events_close(struct sq_events *c);
/* Finds one event; close `c` afterwards. */
must_check bool sq_event_peek(struct sqlite_store *s, struct sq_events *c, int64_t id,
                              struct event_row *ret, bool *ret_found, struct error *err);
/* The first event at or after `id`; *ret_id is 0 when no event follows. */
must_check bool sq_event_next(struct sqlite_store *s, int64_t id, int64_t *ret_id,
                              struct error *err);
/* sqlite_head.c */
/* Reads the single number of a one-parameter statement; *ret_found is false without a row. */
must_check bool sq_select_number(struct sqlite_store *s, enum sq_statement which, int64_t key,
                                 bool *ret_found, int64_t *ret, struct error *err);
must_check bool sq_watermark(struct sqlite_store *s, int64_t writer, int64_t *ret_id,
                             struct error *err);
static inline int64_t sq_last_id_of(int64_t writer)
{
    return writer << EVENT_WRITER_SHIFT | EVENT_COUNT_MASK;
}
/* sqlite_count.c */
/* Calls `each` for every unfolded event of every writer. */
must_check bool sq_tails_walk(struct sqlite_store *s,
                              void (*each)(void *arg, const struct event_row *e), void *arg,
                              struct error *err);
/* sqlite_unfolded.c */
/* Call after inserting an event in the open transaction. */
void sq_unfolded_append(struct sqlite_store *s, const struct event_row *e);
void sq_unfolded_commit(struct sqlite_store *s);
void sq_unfolded_rollback(struct sqlite_store *s);
/* The connection is closed: the unfolded events must be read from the database. */
void sq_unfolded_lose(struct sqlite_store *s);
bool sq_unfolded_pending(const struct sqlite_store *s);
/* A slice updates at most this many sessions, some 10 µs each; writes wait meanwhile. */
#define SQ_SLICE_SESSIONS 4096

/* The next events to fold, at most `max`.  The store owns them until sq_unfolded_done(), which is
 * called after they are committed.  Call inside a transaction. */
struct sq_slice {
    struct unfolded_event *items;
    size_t n;
    bool from_memory;
    struct unfolded_events loaded; /* when not from_memory */
    struct sq_unfolded *after;     /* the entries of s->unfolded after the commit */
};
must_check bool sq_unfolded_take(struct sqlite_store *s, size_t max, struct sq_slice *ret,
                                 struct error *err);
void sq_unfolded_done(struct sqlite_store *s, const struct sq_slice *slice);
void sq_slice_release(struct sq_slice *slice);

/* The effect of a slice on one session; reset in each slice. */
struct unfolded_session {
    struct str tenant, id;
    uint64_t slice;
    int64_t at_ms, executions, tokens;
    struct sq_listed *listed, *last_listed; /* executions that begin in the slice */
};
/* A tool of the tenant; entered once. */
struct unfolded_tool {
    struct str tenant, server, tool;
    uint64_t slice;
    bool entered;
};
/* The effect of a slice on the chain of one (writer, tenant). */
struct unfolded_chain {
    int64_t writer;
    struct str tenant;
    uint64_t slice;
    int64_t events;
    const struct unfolded_event *last;
};

#endif
