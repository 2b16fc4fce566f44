/* SPDX-License-Identifier: Apache-2.0 */
/* Results whose client was gone before it had them: kept sealed in the store, handed out once to
 * the same session asking the same again.
 *
 *            client gone           answer               commit
 *     call ────────────▶ EXPECTED ────────▶ sealed ────────────▶ STORED ──▶ taken, or past its end
 *                            └── no result, too large, commit failed ──▶ forgotten
 *
 * An index in memory knows every kept result and every call that still runs without its client, so
 * that nothing is looked up for sessions that have neither.  Whoever asks again while the call
 * still runs waits for it: nothing is executed twice.  Loop thread only. */
#ifndef HOLDFAST_CALL_UNDELIVERED_H
#define HOLDFAST_CALL_UNDELIVERED_H

#include "base/list.h"
#include "store/lanes.h"

#define UNDELIVERED_MAX ((size_t)1024 * 1024) /* bytes of a result */
#define UNDELIVERED_LIFE_MS (INT64_C(10) * 60 * 1000)
#define UNDELIVERED_PER_SESSION 32
#define UNDELIVERED_IN_ALL 4096
#define UNDELIVERED_BYTES_IN_ALL ((size_t)256 * 1024 * 1024)

struct undelivered;
struct kept;

struct undelivered_config {
    struct loop *loop;
    struct store *store; /* read once, for what an earlier process kept; blocking */
    uint8_t key[32];     /* survives restarts */
    int64_t writer;
};
must_check bool undelivered_open(const struct undelivered_config *config, struct undelivered **ret,
                                 struct error *err);
void undelivered_use(struct undelivered *u, struct lanes *lanes); /* before anything else */
void undelivered_free(struct undelivered *u);          /* after lanes_free(); NULL is fine */
size_t undelivered_count(const struct undelivered *u); /* expected and stored */

/* What was asked, and by whom; all borrowed. */
struct undelivered_ask {
    const struct principal *who;
    struct str session_id;
    struct str server, method, tool;
    struct str arguments;  /* raw bytes; absent: none */
    const uint8_t *digest; /* of the four above, when it is known already; else NULL */
};
void undelivered_digest(const struct undelivered_ask *ask, uint8_t ret[32]);

/* The client of a call is gone.  NULL: too many are kept already.  Ends with kept_settled() or
 * kept_write(), and only then is it anybody's but the caller's. */
struct kept *undelivered_expect(struct undelivered *u,
                                const struct undelivered_ask *ask) must_check;
/* The result's own bytes (copied): false when they are too many.  `until_ms` 0: a lifetime from
 * now. */
must_check bool kept_seal(struct kept *k, int64_t exec, struct str result, int64_t until_ms);
bool kept_is_sealed(const struct kept *k);
/* To be committed with the outcome; good until kept_settled(). */
struct store_op kept_op(const struct kept *k);
int64_t kept_id(const struct kept *k); /* 0 before it is sealed */
/* What became of it: stored, or not.  Takes k. */
void kept_settled(struct kept *k, bool is_stored);
/* Stores it in a commit of its own.  Takes k. */
void kept_write(struct kept *k);
/* The client has it after all.  Unknown ids are fine. */
void undelivered_drop(struct undelivered *u, int64_t id);

struct undelivered_take {
    void (*done)(struct undelivered_take *t); /* from the loop */
    void *user;
    /* Out. */
    bool ok; /* false: the store failed, see err; it is still kept */
    struct error err;
    bool found;          /* it is yours, and durably nobody else's */
    struct str result;   /* until undelivered_take_release() */
    struct arena *mem;   /* holds it; may be used further */
    int64_t at_ms, exec; /* when it was ready, and what it came from */
    int64_t until_ms;
    bool was_cancelled;
    /* private */
    const struct principal *who;
    struct undelivered *home;
    struct kept *kept;
    struct list waiting;
    struct loop_task later;
    struct read_job read;
    struct write_job write;
    struct store_op op;
    struct undelivered_row *row;
};
/* false: nothing is kept for that, execute it.  true: `done` comes. */
must_check bool undelivered_find(struct undelivered *u, const struct undelivered_ask *ask,
                                 struct undelivered_take *t);
/* The one who asked is gone too: it stays kept, if that is still possible.  `done` comes. */
void undelivered_take_cancel(struct undelivered_take *t);
void undelivered_take_release(struct undelivered_take *t); /* after `done` */

#endif
