/* SPDX-License-Identifier: Apache-2.0 */
/* Finds how far the events of each writer are folded, and the heads of their chains.  Both must be
 * quick no matter how old the database is: they use the table of the fold and read only the events
 * after it. */
#include "store/sqlite_impl.h"

#include "store/heads.h"

/* Reads the single number of a one-parameter statement; *ret_found is false without a row. */
bool sq_select_number(struct sqlite_store *s, enum sq_statement which, int64_t key, bool *ret_found,
                      int64_t *ret, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, which, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, key);
    if (!sq_step(s, st, ret_found, err))
        return false;
    *ret = *ret_found ? sqlite3_column_int64(st, 0) : 0;
    sq_reset(st);
    return true;
}

bool sq_watermark(struct sqlite_store *s, int64_t writer, int64_t *ret_id, struct error *err)
{
    bool found = false;
    int64_t id = 0;
    if (!sq_select_number(s, SQ_FOLD_WATERMARK, writer, &found, &id, err))
        return false;
    *ret_id = id > writer << EVENT_WRITER_SHIFT ? id : writer << EVENT_WRITER_SHIFT;
    return true;
}

static bool gather_folded(struct sqlite_store *s, struct heads *h, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_FOLD_HEADS, err);
    if (!st)
        return false;
    for (bool row = true;;) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st};
        struct str tenant = sq_peek_bytes(&r);
        struct chain_head *head = heads_of(h, sq_get_int(&r), tenant);
        head->seq = sq_get_int(&r);
        head->last_id = sq_get_int(&r);
        sq_get_sha(&r, head->mac);
    }
    sq_reset(st);
    return true;
}

static bool gather_tail(struct sqlite_store *s, struct heads *h, int64_t writer, struct error *err)
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
        heads_follow(h, &e);
    }
    sq_events_close(&c);
    return true;
}

static bool gather(struct sqlite_store *s, struct heads *h, struct error *err)
{
    if (!gather_folded(s, h, err))
        return false;
    for (int64_t id = 0;;) {
        if (!sq_event_next(s, id, &id, err))
            return false;
        if (id == 0)
            return true;
        int64_t writer = id >> EVENT_WRITER_SHIFT;
        if (!gather_tail(s, h, writer, err))
            return false;
        id = (writer + 1) << EVENT_WRITER_SHIFT;
    }
}

static bool chain_heads(struct store *store, struct store_call *c, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct heads h = {.mem = c->mem};
    if (!sq_begin_read(s, err))
        return false;
    bool ok = gather(s, &h, err);
    sq_end_read(s);
    if (ok)
        c->rows = heads_list(&h, &c->n);
    heads_release(&h);
    return ok;
}

const struct verb_handler sq_head_verbs[] = {
    {VERB_CHAIN_HEADS, chain_heads},
    {0},
};
