/* SPDX-License-Identifier: Apache-2.0 */
/* Claims, on the verbs of Idempotency-Keys.  No client reaches these rows: no principal has that
 * owner. */
#include "store/claim.h"

#include "base/clock.h"

#define LAST_MS INT64_C(253402300799000) /* the end of the year 9999 */

static const struct principal nobody = {.tenant = {"default", 7}, .owner = {"_holdfast", 9}};

bool claim_make(struct store *s, struct str name, const uint8_t value[32], int64_t for_ms,
                bool *ret_ours, struct error *err)
{
    int64_t now_ms = clock_life_ms();
    struct idempotency_row row = {
        .tenant = nobody.tenant,
        .owner = nobody.owner,
        .key = name,
        .created_ms = now_ms,
        .expires_ms = for_ms > LAST_MS - now_ms ? LAST_MS : now_ms + for_ms,
    };
    struct store_op op = {.kind = OP_IDEMPOTENCY_PUT, .who = &nobody, .idempotency = &row};
    memcpy(row.request_sha, value, sizeof(row.request_sha));
    if (!store_write(s, &op, 1, err))
        return false;
    *ret_ours = op.verdict == VERDICT_OK;
    return true;
}

bool claim_value(struct store *s, struct str name, uint8_t ret_value[32], bool *ret_found,
                 struct error *err)
{
    struct arena *mem = arena_new(1 << 20);
    struct idempotency_row *row = NULL;
    bool ok = store_idempotency_get(s, &nobody, name, mem, &row, err);
    if (ok) {
        *ret_found = row != NULL;
        if (row)
            memcpy(ret_value, row->request_sha, sizeof(row->request_sha));
    }
    arena_free(mem);
    return ok;
}
