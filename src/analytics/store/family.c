/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs and ops of analytics, and the family that adds them to the store. */
#include "analytics/store/family.h"

#include "analytics/store/impl.h"

bool store_rollups_page(struct store *s, const struct rollup_filter *filter, unsigned limit,
                        struct arena *mem, struct rollup_row **ret_rows, size_t *ret_n,
                        struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_ROLLUPS_PAGE, .filter = filter, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}

bool store_rollup_tenant(struct store *s, struct str after, struct arena *mem, struct str *ret,
                         struct error *err)
{
    struct tenant_row *row = NULL;
    if (!store_row(s, &(struct store_call){VERB_ROLLUP_TENANT, .after = after, .mem = mem}, &row,
                   err))
        return false;
    *ret = row ? row->id : STR_NONE;
    return true;
}

bool store_rollups_pack(struct store *s, struct str tenant, int64_t before, unsigned most,
                        bool *ret_more, struct error *err)
{
    return store_call(s,
                      &(struct store_call){VERB_ROLLUPS_PACK, .tenant = tenant, .number = before,
                                           .limit = most, .ret = ret_more},
                      err);
}

static bool age_is_sound(const struct store_op *op, struct error *err)
{
    const struct rollup_age *a = op->row;
    return (a->tenant.n && a->step >= 0 && a->step < ROLLUP_STEPS && a->most > 0) ||
           error_set(err, ERR_INTERNAL,
                     "A store op on an incomplete age of rollups was refused; report it.");
}

static const struct family_op ops[] = {
    {OP_ROLLUPS_AGE, {"rollups age", false, age_is_sound}},
    {0},
};

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {ANALYTICS_VERBS(VERB_ROW){0}};

const struct store_family analytics_store = {
    .verbs = verbs,
    .ops = ops,
    .reads = sql_analytics_reads,
    .sqlite = &analytics_sqlite,
    .postgres = &analytics_postgres,
};
