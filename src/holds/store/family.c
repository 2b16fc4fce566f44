/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs and ops of holds, and the family that adds them to the store. */
#include "holds/store/family.h"

#include "base/random.h"
#include "holds/store/impl.h"

bool store_holds_page(struct store *s, struct str tenant, bool live_only, struct str before,
                      unsigned limit, struct arena *mem, struct hold_row **ret_rows, size_t *ret_n,
                      struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_HOLDS_PAGE, .tenant = tenant, .flag = live_only,
                                           .after = before, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_held(struct store *s, struct arena *mem, struct held_row **ret_rows, size_t *ret_n,
                struct error *err)
{
    return store_rows(s, &(struct store_call){VERB_HELD, .mem = mem}, ret_rows, ret_n, err);
}

static bool is_whole(bool whole, struct error *err)
{
    return whole ||
           error_set(err, ERR_INTERNAL, "A store op on an incomplete hold was refused; report it.");
}

static bool put_is_sound(const struct store_op *op, struct error *err)
{
    const struct hold_row *r = op->row;

    return is_whole(r->id.n == UUID_TEXT - 1 && r->tenant.n && r->target.n && r->made_by.n &&
                        r->created_ms && r->reason.n <= HOLD_REASON_MAX &&
                        (r->kind == HOLD_SESSION || r->kind == HOLD_USER),
                    err);
}

static bool release_is_sound(const struct store_op *op, struct error *err)
{
    const struct hold_row *r = op->row;

    return is_whole(r->id.n && r->tenant.n && r->released_ms && r->released_by.n, err);
}

static const struct family_op ops[] = {
    {OP_HOLD_PUT, {"hold put", false, put_is_sound}},
    {OP_HOLD_RELEASE, {"hold release", false, release_is_sound}},
    {0},
};

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {HOLD_VERBS(VERB_ROW){0}};

const struct store_family holds_store = {
    .verbs = verbs,
    .ops = ops,
    .reads = sql_hold_reads,
    .sqlite = &hold_sqlite,
    .postgres = &hold_postgres,
};
