/* SPDX-License-Identifier: Apache-2.0 */
/* Results whose client disconnected before it got them.  They are stored sealed, and returned once
 * when the same session repeats the same call.
 *
 *            client gone           answer               commit
 *     call ────────────▶ EXPECTED ────────▶ sealed ────────────▶ STORED ──▶ taken, or past its end
 *                            └── no result, too large, commit failed ──▶ forgotten
 *
 * An index in memory holds every stored result and every call that still runs without its client.
 * The store is read only for sessions that have one of these.  If a client repeats a call that
 * still runs, the request waits for that call: nothing is executed twice.  Loop thread only. */
#ifndef HOLDFAST_CALL_UNDELIVERED_H
#define HOLDFAST_CALL_UNDELIVERED_H

#include "base/list.h"
#include "store/lanes.h"

#define UNDELIVERED_MAX ((size_t)1024 * 1024)         /* bytes of a result */
#define UNDELIVERED_LIFE_MS (INT64_C(10) * 60 * 1000) /* unless set otherwise */
#define UNDELIVERED_PER_SESSION 32
#define UNDELIVERED_IN_ALL 4096
#define UNDELIVERED_BYTES_IN_ALL ((size_t)256 * 1024 * 1024)

struct undelivered;
struct undelivered_result;

struct undelivered_config {
    struct loop *loop;
    struct store *store; /* read once, for the results of earlier processes; blocks */
    uint8_t key[32];     /* survives restarts */
    int64_t writer;
};
must_check bool undelivered_open(const struct undelivered_config *config, struct undelivered **ret,
                                 struct error *err);
void undelivered_use(struct undelivered *u, struct lanes *lanes); /* before anything else */
/* How long results that are sealed from now on are stored. */
void undelivered_set_life(struct undelivered *u, int64_t ms);
void undelivered_free(struct undelivered *u);          /* after lanes_free(); accepts NULL */
size_t undelivered_count(const struct undelivered *u); /* expected and stored */

/* The request and its caller; all borrowed. */
struct undelivered_ask {
    const struct principal *who;
    struct str session_id;
    struct str server, method, tool;
    struct str arguments;  /* raw bytes; or absent */
    const uint8_t *digest; /* of the four above if it is already known; else NULL */
};
void undelivered_digest(const struct undelivered_ask *ask, uint8_t ret[32]);

/* The client of a call is gone.  NULL: too many results are stored already.  The caller owns the
 * entry until it calls undelivered_result_end() or undelivered_result_write(). */
struct undelivered_result *undelivered_expect(struct undelivered *u,
                                              const struct undelivered_ask *ask) must_check;
/* Seals the result's bytes (copied); false when they are too many.  `until_ms` 0: it expires
 * after the time of undelivered_set_life(). */
must_check bool undelivered_result_seal(struct undelivered_result *k, int64_t exec,
                                        struct str result, int64_t until_ms);
bool undelivered_result_is_sealed(const struct undelivered_result *k);
/* The op to commit with the outcome; valid until undelivered_result_end(). */
struct store_op undelivered_result_op(const struct undelivered_result *k);
int64_t undelivered_result_id(const struct undelivered_result *k); /* 0 before it is sealed */
/* The result was stored, or it was not.  Takes over k. */
void undelivered_result_end(struct undelivered_result *k, bool is_stored);
/* Stores the result in a commit of its own.  Takes over k. */
void undelivered_result_write(struct undelivered_result *k);
/* The client has the result after all.  Unknown ids are ignored. */
void undelivered_drop(struct undelivered *u, int64_t id);

struct undelivered_take {
    void (*done)(struct undelivered_take *t); /* from the loop */
    void *user;
    /* Out. */
    bool ok; /* false: the store failed, see err; the result is still stored */
    struct error err;
    bool found;          /* the caller has it, and it is durably deleted */
    struct str result;   /* valid until undelivered_take_release() */
    struct arena *mem;   /* holds `result`; the caller may use it further */
    int64_t at_ms, exec; /* when it was ready, and its execution */
    int64_t until_ms;
    bool was_cancelled;
    /* private */
    const struct principal *who;
    struct undelivered *home;
    struct undelivered_result *entry;
    struct list waiting;
    struct loop_task later;
    struct read_job read;
    struct write_job write;
    struct store_op op;
    struct undelivered_row *row;
};
/* False: nothing is stored for that call, execute it.  True: `done` will be called. */
must_check bool undelivered_find(struct undelivered *u, const struct undelivered_ask *ask,
                                 struct undelivered_take *t);
/* The client of the repeated call is gone too: the result stays stored, if that is still possible.
 * `done` will be called. */
void undelivered_take_cancel(struct undelivered_take *t);
void undelivered_take_release(struct undelivered_take *t); /* after `done` */

#endif
