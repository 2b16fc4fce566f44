/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs and ops of erasures, and the family that adds them to the store. */
#include "erasure/store/family.h"

#include "base/random.h"
#include "erasure/store/impl.h"

bool store_erasures_page(struct store *s, struct str tenant, bool open_only, struct str before,
                         unsigned limit, struct arena *mem, struct erasure_row **ret_rows,
                         size_t *ret_n, struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_ERASURES_PAGE, .tenant = tenant, .flag = open_only,
                                           .after = before, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_erasure_left(struct store *s, struct str tenant, struct str user_id, struct arena *mem,
                        struct erasure_left **ret_row, struct error *err)
{
    return store_row(
        s, &(struct store_call){VERB_ERASURE_LEFT, .tenant = tenant, .id = user_id, .mem = mem},
        ret_row, err);
}

bool store_erasure_owners(struct store *s, struct str user_id, struct arena *mem,
                          struct erasure_owner **ret_rows, size_t *ret_n, struct error *err)
{
    return store_rows(s, &(struct store_call){VERB_ERASURE_OWNERS, .id = user_id, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_erasure_documents(struct store *s, struct str folder, struct str after, unsigned limit,
                             struct arena *mem, struct erasure_document **ret_rows, size_t *ret_n,
                             struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_ERASURE_DOCUMENTS, .name = folder, .after = after,
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_erasure_clean(struct store *s, bool *ret, struct error *err)
{
    return store_call(s, &(struct store_call){VERB_ERASURE_CLEAN, .ret = ret}, err);
}

static bool is_whole(bool whole, struct error *err)
{
    return whole || error_set(err, ERR_INTERNAL,
                              "A store op on an incomplete erasure was refused; report it.");
}

static bool begin_is_sound(const struct store_op *op, struct error *err)
{
    const struct erasure_row *r = op->row;

    return is_whole(r->id.n == UUID_TEXT - 1 && r->tenant.n && r->user_id.n && r->made_by.n &&
                        r->names.n && r->created_ms && r->reason.n <= ERASURE_REASON_MAX,
                    err);
}

static const struct family_op ops[] = {
    {OP_ERASURE_BEGIN, {"erasure begin", false, begin_is_sound}},
    {OP_ERASURE_MOVE, {"erasure move", false, NULL}},
    {OP_ERASURE_ROWS, {"erasure rows", false, NULL}},
    {OP_ERASURE_AUTHORS, {"erasure authors", false, NULL}},
    {OP_ERASURE_NAMES, {"erasure names", false, NULL}},
    {OP_ERASURE_DONE, {"erasure done", false, NULL}},
    {0},
};

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {ERASURE_VERBS_1(VERB_ROW) ERASURE_VERBS_2(VERB_ROW){0}};

const struct store_family erasure_store = {
    .verbs = verbs,
    .ops = ops,
    .reads = sql_erasure_reads,
    .sqlite = &erasure_sqlite,
    .postgres = &erasure_postgres,
};
