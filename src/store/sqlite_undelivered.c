/* SPDX-License-Identifier: Apache-2.0 */
/* Undelivered results in SQLite.  Tenant, owner and end are in every WHERE, so a row past its end
 * is missing even before the reaper deletes it. */
#include "store/sqlite_impl.h"

static bool undelivered_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct sqlite_store *s = batch->s;
    const struct undelivered_row *u = op->undelivered;
    sqlite3_stmt *st = sq_prepare(s, SQ_UNDELIVERED_PUT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, u->id);
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    sq_text(&b, u->session_id);
    sq_blob(&b, str_n((const char *)u->digest, sizeof(u->digest)));
    sq_int(&b, u->exec);
    sq_int(&b, u->created_ms);
    sq_int(&b, u->expires_ms);
    sq_blob(&b, u->sealed);
    if (!sq_run_verdict(s, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = sq_prepare(s, SQ_UNDELIVERED_EXISTS, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_int(&b, u->id);
    return sq_run_refusal(s, st, op, VERDICT_DUPLICATE, err);
}

static bool undelivered_take(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct sqlite_store *s = batch->s;
    sqlite3_stmt *st = sq_prepare(s, SQ_UNDELIVERED_TAKE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, op->undelivered->id);
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    sq_int(&b, batch->now_ms);
    return sq_run_verdict(s, st, op, VERDICT_MISSING, err);
}

const struct sq_op sq_undelivered_ops[] = {
    {OP_UNDELIVERED_PUT, undelivered_put},
    {OP_UNDELIVERED_TAKE, undelivered_take},
    {0},
};
