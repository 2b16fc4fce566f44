/* SPDX-License-Identifier: Apache-2.0 */
/* At start, writes the outcomes that an earlier run left in the spool to the store.
 *
 * Each outcome is written exactly once: it is appended unless the store already has an outcome of
 * that execution, and removed from the spool afterwards.  If the process is killed in between, the
 * next start repeats the drain without effect.  If the store has only a guessed outcome
 * (indeterminate), the known outcome is appended behind the guess, and the fold uses the known
 * outcome.  If the store does not have the execution's intent under the same seal, the spool
 * belongs to another database: then nothing is changed. */
#include "audit/audit_impl.h"

#include "crypto/hash.h"

#define DRAIN_PAGE 100
#define MAX_EVENTS 50 /* of one execution: an intent, an outcome, perhaps a guessed outcome */

enum found { FOUND_NO_INTENT, FOUND_OPEN, FOUND_ENDED };

static bool look_up(struct store *store, const struct spooled *one, struct arena *mem,
                    enum found *ret, struct error *err)
{
    struct event_filter filter = {.kind = -1, .exec = one->event.exec};
    struct event_row *rows = NULL;
    size_t n = 0;
    if (!store_events_page(store, &filter, MAX_EVENTS, mem, &rows, &n, err))
        return false;
    bool has_intent = false, has_outcome = false;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].kind == EVENT_INTENT)
            has_intent = crypto_equal(rows[i].mac, one->intent_mac, sizeof(one->intent_mac));
        if (rows[i].kind == EVENT_OUTCOME && !str_eq(rows[i].outcome, STR("indeterminate")))
            has_outcome = true;
    }
    *ret = !has_intent ? FOUND_NO_INTENT : has_outcome ? FOUND_ENDED : FOUND_OPEN;
    return true;
}

static bool refuse_foreign(struct error *err)
{
    return error_set(err, ERR_CONFIG,
                     "spool.db in the data directory holds outcomes of calls that were recorded in "
                     "another database; start once with the DATABASE_URL of that one, or move "
                     "spool.db away");
}

/* The outcome and its undelivered result, if any. */
static size_t ops_of(struct spooled *one, struct arena *mem, struct store_op ret[2])
{
    size_t n = 0;
    if (one->undelivered.id != 0) {
        struct principal *who = arena_new_of(mem, struct principal);
        who->tenant = one->undelivered.tenant;
        who->owner = one->undelivered.owner;
        ret[n++] = (struct store_op){
            .kind = OP_UNDELIVERED_PUT, .who = who, .undelivered = &one->undelivered};
    }
    ret[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &one->event};
    return n;
}

/* Appends the missing outcomes of one page in one transaction, then removes the page from the
 * spool. */
static bool drain_page(struct store *store, struct chain *chain, struct spool *spool,
                       struct spooled *list, size_t n, struct arena *mem, size_t *ret_written,
                       struct error *err)
{
    struct store_op *ops = arena_zalloc(mem, 2 * n * sizeof(*ops));
    struct spool_change *takes = arena_zalloc(mem, n * sizeof(*takes));
    size_t n_ops = 0, n_written = 0;
    for (size_t i = 0; i < n; i++) {
        enum found found;
        if (!look_up(store, &list[i], mem, &found, err))
            return false;
        if (found == FOUND_NO_INTENT)
            return refuse_foreign(err);
        if (found == FOUND_OPEN)
            n_ops += ops_of(&list[i], mem, &ops[n_ops]);
        n_written += found == FOUND_OPEN;
        takes[i].exec = list[i].event.exec;
    }
    if ((n_ops > 0 && !audit_append(store, chain, ops, n_ops, err)) ||
        !spool_write(spool, takes, n, err))
        return false;
    *ret_written = n_written;
    return true;
}

bool audit_drain_spool(struct store *store, struct chain *chain, struct spool *spool, size_t *ret_n,
                       struct error *err)
{
    size_t total = 0;
    for (size_t n = DRAIN_PAGE; n == DRAIN_PAGE;) {
        struct arena *mem = arena_new(SIZE_MAX / 4);
        struct spooled *list = NULL;
        size_t written = 0;
        bool ok = spool_page(spool, 0, DRAIN_PAGE, mem, &list, &n, err) &&
                  (n == 0 || drain_page(store, chain, spool, list, n, mem, &written, err));
        arena_free(mem);
        if (!ok)
            return error_wrap(err, "writing the outcomes that an earlier run left in the spool");
        total += written;
    }
    *ret_n = total;
    return true;
}
