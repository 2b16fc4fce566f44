/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of sessions, transports, events and executions, and the walk over unfolded events. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

static bool tail_walk(struct sqlite_store *s, int64_t writer,
                      void (*each)(void *arg, const struct event_row *e), void *arg,
                      struct error *err)
{
    int64_t watermark = 0;
    struct sq_events c;
    struct event_row e;
    bool found = true;
    if (!sq_watermark(s, writer, &watermark, err) ||
        !sq_events_open(s, &c, SQ_EVENTS_UP, watermark + 1, sq_last_id_of(writer), false, err))
        return false;
    for (;;) {
        if (!sq_events_next(&c, &e, &found, err))
            return false;
        if (!found)
            break;
        each(arg, &e);
    }
    sq_events_close(&c);
    return true;
}

bool sq_tails_walk(struct sqlite_store *s, void (*each)(void *arg, const struct event_row *e),
                   void *arg, struct error *err)
{
    for (int64_t id = 0;;) {
        if (!sq_event_next(s, id, &id, err))
            return false;
        if (id == 0)
            return true;
        if (!tail_walk(s, id >> EVENT_WRITER_SHIFT, each, arg, err))
            return false;
        id = ((id >> EVENT_WRITER_SHIFT) + 1) << EVENT_WRITER_SHIFT;
    }
}

static void count_event(void *arg, const struct event_row *e unused_arg)
{
    (*(int64_t *)arg)++;
}

static bool count_all(struct sqlite_store *s, struct store_counts *ret, struct error *err)
{
    int64_t tails = 0;
    bool row = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_COUNTS, err);
    if (!st || !sq_tails_walk(s, count_event, &tails, err))
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, clock_life_ms());
    if (!sq_step(s, st, &row, err))
        return false;
    struct sq_row r = {.st = st};
    ret->sessions_active = sq_get_int(&r);
    ret->sessions_total = sq_get_int(&r);
    ret->transports = sq_get_int(&r);
    ret->events = sq_get_int(&r) + tails;
    ret->executions_open = sq_get_int(&r);
    sq_reset(st);
    return true;
}

static bool counts(struct store *store, struct store_call *c, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct store_counts counts = {0};
    if (!sq_begin_read(s, err))
        return false;
    bool ok = count_all(s, &counts, err);
    sq_end_read(s);
    if (ok)
        *(struct store_counts *)c->ret = counts;
    return ok;
}

const struct verb_handler sq_count_verbs[] = {
    {VERB_COUNTS, counts},
    {0},
};
