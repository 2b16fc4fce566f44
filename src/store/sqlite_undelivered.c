/* SPDX-License-Identifier: Apache-2.0 */
/* Undelivered results in SQLite.  Tenant, owner and end are in every WHERE, so a row past its end
 * is missing even before the reaper deletes it. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

bool sq_undelivered_put(struct sqlite_store *s, struct store_op *op, struct error *err)
{
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

static void bind_key(struct sq_bind *b, int64_t id, const struct principal *who, int64_t now_ms)
{
    sq_int(b, id);
    sq_text(b, who->tenant);
    sq_text(b, who->owner);
    sq_int(b, now_ms);
}

bool sq_undelivered_take(struct sqlite_store *s, struct store_op *op, int64_t now_ms,
                         struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_UNDELIVERED_TAKE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_key(&b, op->undelivered->id, op->who, now_ms);
    return sq_run_verdict(s, st, op, VERDICT_MISSING, err);
}
