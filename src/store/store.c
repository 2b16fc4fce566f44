/* SPDX-License-Identifier: Apache-2.0 */
/* The entry to every backend: makes the checks that all backends need, then calls through the
 * table.  Also holds the one rule that turns a stored status into the current one. */
#include "store/store.h"

#include "store/store_impl.h"

bool session_row_is_live(const struct session_row *row, int64_t now_ms)
{
    return (row->status == SESSION_ACTIVE || row->status == SESSION_IDLE) &&
           (row->expires_ms == 0 || row->expires_ms > now_ms);
}

bool session_row_counts(const struct session_row *row, int64_t now_ms)
{
    bool is_promoted =
        row->origin != ORIGIN_REST && row->origin != ORIGIN_TOOL && row->origin != ORIGIN_KEYED;

    return row->counted && session_row_is_live(row, now_ms) &&
           !(is_promoted && row->last_activity_ms <= now_ms - SESSION_PROMOTED_IDLE_MS);
}

void session_row_apply_expiry(struct session_row *row, int64_t now_ms)
{
    if (row->status == SESSION_EXPIRED || row->status == SESSION_TERMINATED ||
        session_row_is_live(row, now_ms))
        return;
    row->status = SESSION_EXPIRED;
    row->terminated_ms = row->expires_ms;
    row->termination_reason = STR("expired");
}

void session_row_apply_idle(struct session_row *row, int64_t now_ms, int64_t idle_ms)
{
    session_row_apply_expiry(row, now_ms);
    if (row->status == SESSION_ACTIVE || row->status == SESSION_IDLE)
        row->status = idle_ms > 0 && row->last_activity_ms + idle_ms <= now_ms ? SESSION_IDLE
                                                                               : SESSION_ACTIVE;
}

static bool op_is_sound(const struct store_op *op, struct error *err)
{
    if (op->kind >= OP_COUNT || !store_op_infos[op->kind].name || !op->row)
        return error_set(err, ERR_INTERNAL,
                         "A store op without kind or row was refused; report it.");
    const struct op_info *info = &store_op_infos[op->kind];
    if (info->needs_who && (!op->who || !op->who->tenant.p || !op->who->owner.p))
        return error_set(err, ERR_INTERNAL, "The store op %s names no principal; report it.",
                         info->name);
    return !info->is_sound || info->is_sound(op, err);
}

bool store_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++)
        ops[i].verdict = VERDICT_FAILED;
    for (size_t i = 0; i < n; i++)
        if (!op_is_sound(&ops[i], err))
            return false;
    if (s->ops->write(s, ops, n, err)) {
        for (size_t i = 0; i < n; i++)
            if (store_op_infos[ops[i].kind].done)
                store_op_infos[ops[i].kind].done(&ops[i]);
        return true;
    }
    /* A refused required op keeps its verdict.  All other ops become FAILED, because nothing was
     * written. */
    for (size_t i = 0; i < n; i++)
        if (err->code != ERR_CONFLICT || !ops[i].required || ops[i].verdict == VERDICT_OK)
            ops[i].verdict = VERDICT_FAILED;
    return false;
}

bool store_op_is_refused(const struct store_op *op, struct error *err)
{
    if (!op->required || op->verdict == VERDICT_OK)
        return false;
    error_set(err, ERR_CONFLICT, "The store refused a required change: %s.",
              store_op_infos[op->kind].name);
    return true;
}

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

bool store_page_is_sound(unsigned limit, struct error *err)
{
    if (limit == 0 || limit > STORE_PAGE_MAX)
        return error_set(err, ERR_BAD_INPUT, "A page has 1 to %d rows; ask for fewer.",
                         STORE_PAGE_MAX);
    return true;
}

bool store_call(struct store *s, struct store_call *c, struct error *err)
{
    return (store_verbs[c->verb].kind != VERB_KIND_PAGE || store_page_is_sound(c->limit, err)) &&
           s->ops->call(s, c, err);
}

bool store_row(struct store *s, struct store_call *c, void *ret_row, struct error *err)
{
    if (!store_call(s, c, err))
        return false;
    *(void **)ret_row = c->rows;
    return true;
}

bool store_rows(struct store *s, struct store_call *c, void *ret_rows, size_t *ret_n,
                struct error *err)
{
    if (!store_call(s, c, err))
        return false;
    *(void **)ret_rows = c->rows;
    *ret_n = c->n;
    return true;
}

bool store_find_each(struct store *s, struct store_call *c, struct error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        struct session_find *f = &c->finds[i];
        if (!(f->by_id ? store_session_by_id(s, f->who, f->name, f->mem, &f->row, err)
                       : store_session_by_handle(s, f->who, f->name, f->mem, &f->row, err)))
            return false;
    }
    return true;
}

void store_handlers_add(store_handler *table[VERB_COUNT], const struct verb_handler *list)
{
    for (; list->run; list++)
        table[list->verb] = list->run;
}

int chain_head_order(const void *a, const void *b)
{
    const struct chain_head *x = a;
    const struct chain_head *y = b;
    if (x->writer != y->writer)
        return x->writer < y->writer ? -1 : 1;
    return str_cmp(x->tenant, y->tenant);
}
