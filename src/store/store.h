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
    VERDICT_FAILED
};

/* Tenant and owner of every row written are those of `who`; another's row is a missing one.  A
 * batch sees its own earlier ops.  `now` is the wall clock at the start of the batch. */
enum op_kind {
    /* session (all columns), max_counted.  LIMIT when this one counts and the tenant has that many
     * live counted ones; DUPLICATE, which goes before LIMIT, on id, handle or live key. */
    OP_SESSION_CREATE,
    /* session.id, session.expires_ms (0 leaves it): provisional → durable and counted.  LIMIT
     * likewise; OK when it already is; NOT_ACTIVE when terminal or past its end. */
    OP_SESSION_NAME,
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
};
#define OP_COUNT (OP_UNDELIVERED_TAKE + 1)

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
    };
    int64_t max_counted;  /* OP_SESSION_CREATE and OP_SESSION_NAME; < 0 for no limit */
    enum verdict verdict; /* out */
};

/* What a page of events is asked by; absent and zero members do not filter. */
struct event_filter {
    struct str tenant;     /* absent: every tenant (verify, local admin) */
    int64_t after, before; /* ids, exclusive */
    int64_t since_ms;
    struct str session_id, server, tool, outcome;
    int64_t exec; /* an execution's events */
    int kind;     /* enum event_kind, or -1 for all */
    bool newest_first;
    bool with_bodies;
};

struct chain_head {
    struct str tenant;
    int64_t writer, seq, last_id;
    uint8_t mac[32];
};
int chain_head_order(const void *a, const void *b); /* for qsort(): by writer, then tenant */

struct store_counts {
    int64_t sessions_active, sessions_total, transports, events, executions_open;
};

struct store_config {
    struct str path; /* SQLite file; ignored by memory */
    bool read_only;
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
 * session_row_settle() leaves them; an ended transport and an undelivered result past its end read
 * as none. */
must_check bool store_session_by_handle(struct store *s, const struct principal *who,
                                        struct str handle, struct arena *mem,
                                        struct session_row **ret_row, struct error *err);
must_check bool store_session_by_id(struct store *s, const struct principal *who, struct str id,
                                    struct arena *mem, struct session_row **ret_row,
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
/* Sessions of the principal's tenant (admin, auditor) or its own, newest first; `before` is a row
 * id. */
must_check bool store_sessions_page(struct store *s, const struct principal *who, struct str before,
                                    unsigned limit, struct arena *mem,
                                    struct session_row **ret_rows, size_t *ret_n,
                                    struct error *err);

must_check bool store_undelivered_get(struct store *s, const struct principal *who, int64_t id,
                                      struct arena *mem, struct undelivered_row **ret_row,
                                      struct error *err);

/* Audit and operation; no principal. */
/* Those not past their end, by id, without their sealed bytes; `after` is an id. */
must_check bool store_undelivered_page(struct store *s, int64_t after, unsigned limit,
                                       struct arena *mem, struct undelivered_row **ret_rows,
                                       size_t *ret_n, struct error *err);
must_check bool store_events_page(struct store *s, const struct event_filter *filter,
                                  unsigned limit, struct arena *mem, struct event_row **ret_rows,
                                  size_t *ret_n, struct error *err);
must_check bool store_chain_heads(struct store *s, struct arena *mem, struct chain_head **ret_heads,
                                  size_t *ret_n, struct error *err);
/* Makes a writer: fills row->number, never one used before.  exclusive: we alone own this store, so
 * the leases of all other writers are lapsed at once. */
must_check bool store_writer_start(struct store *s, struct writer_row *row, bool exclusive,
                                   struct error *err);
/* Intents without an outcome whose writer's lease has lapsed (by now_ms) or ended, oldest first.
 * Folds first. */
must_check bool store_open_intents(struct store *s, int64_t now_ms, int64_t after, unsigned limit,
                                   struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                                   struct error *err);
/* Projects events not yet folded (at most `max`, once each, however often it is called) into
 * executions, counters and last_activity. *ret_left tells whether more remain.  Runs on the write
 * connection. */
must_check bool store_fold(struct store *s, unsigned max, bool *ret_left, struct error *err);
must_check bool store_counts(struct store *s, struct store_counts *ret, struct error *err);
/* Reaper: persists expired status, deletes transports that ended or idled out and undelivered
 * results past their end (`batch` of each, oldest first); *ret_n sessions touched.  Folds first, so
 * that no use goes unseen. */
must_check bool store_reap(struct store *s, int64_t now_ms, unsigned batch, size_t *ret_n,
                           struct error *err);

#endif
