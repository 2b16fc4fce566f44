/* SPDX-License-Identifier: Apache-2.0 */
/* Claims, stored with the verbs for Idempotency-Keys.  Clients cannot reach these rows, because no
 * principal has this owner. */
#include "store/claim.h"

#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

#define GENERATIONS_MAX 10000            /* per key */
#define LAST_MS INT64_C(253402300799000) /* the end of the year 9999 */

static const struct principal holdfast_principal = {.tenant = {"default", 7},
                                                    .owner = {"_holdfast", 9}};

bool claim_make(struct store *s, struct str name, const uint8_t value[32], struct str where,
                int64_t for_ms, bool *ret_ours, struct error *err)
{
    int64_t now_ms = clock_life_ms();
    struct idempotency_row row = {
        .tenant = holdfast_principal.tenant,
        .owner = holdfast_principal.owner,
        .key = name,
        .body = where,
        .created_ms = now_ms,
        .expires_ms = for_ms > LAST_MS - now_ms ? LAST_MS : now_ms + for_ms,
    };
    struct store_op op = {
        .kind = OP_IDEMPOTENCY_PUT, .who = &holdfast_principal, .idempotency = &row};
    memcpy(row.request_sha, value, sizeof(row.request_sha));
    if (!store_write(s, &op, 1, err))
        return false;
    *ret_ours = op.verdict == VERDICT_OK;
    return true;
}

bool claim_get(struct store *s, struct str name, struct arena *mem, struct claim **ret,
               struct error *err)
{
    struct idempotency_row *row = NULL;

    if (!store_idempotency_get(s, &holdfast_principal, name, mem, &row, err))
        return false;
    *ret = NULL;
    if (row) {
        *ret = arena_new_of(mem, struct claim);
        memcpy((*ret)->value, row->request_sha, sizeof((*ret)->value));
        (*ret)->where = row->body.n ? row->body : STR_NONE;
    }
    return true;
}

struct str claim_where(struct str path, struct arena *mem)
{
    char node[256] = "";

    if (gethostname(node, sizeof(node) - 1) < 0 || !node[0])
        snprintf(node, sizeof(node), "node");
    return arena_printf(mem, "%s:%.*s", node, STR_ARG(path));
}

/* Keys. */

static struct str name_of(const struct key_claim *k, unsigned generation, struct arena *mem)
{
    return arena_printf(mem, "key/%s/%u", k->file, generation);
}

/* Finds the last claim and its generation.  *ret is NULL when there is no claim; then
 * *ret_generation is left unchanged. */
static bool find_last(struct store *s, const struct key_claim *k, struct arena *mem,
                      struct claim **ret, unsigned *ret_generation, struct error *err)
{
    struct claim *next = NULL;

    *ret = NULL;
    for (unsigned generation = 1; generation <= GENERATIONS_MAX; generation++) {
        if (!claim_get(s, name_of(k, generation, mem), mem, &next, err))
            return false;
        if (!next)
            return true;
        *ret = next;
        *ret_generation = generation;
    }
    return error_set(err, ERR_CONFIG, "%s was rotated more than %d times; start a new database",
                     k->file, GENERATIONS_MAX);
}

static bool is_among(const uint8_t (*prints)[32], size_t n, const uint8_t value[32])
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(prints[i], value, 32) == 0)
            return true;
    return false;
}

bool claim_key(struct store *s, const struct key_claim *k, const uint8_t (*prints)[32], size_t n,
               struct error *err)
{
    struct arena *mem = arena_new(4u << 20);
    struct claim *last = NULL;
    unsigned generation = 0;
    bool is_ours = false;
    bool ok = find_last(s, k, mem, &last, &generation, err);

    if (ok && !last)
        ok = claim_make(s, name_of(k, 1, mem), prints[0], claim_where(k->path, mem), CLAIM_FOR_EVER,
                        &is_ours, err) &&
             (is_ours || find_last(s, k, mem, &last, &generation, err));
    if (ok && last && !is_among(prints, n, last->value))
        ok = error_set(err, ERR_CONFIG,
                       "%.*s is not the key that the nodes of this database share; copy the file "
                       "from %.*s, or name a copy of it with %s",
                       STR_ARG(k->path), STR_ARG(last->where), k->variable);
    arena_free(mem);
    return ok;
}

bool claim_key_rotated(struct store *s, const struct key_claim *k, const uint8_t print[32],
                       struct error *err)
{
    struct arena *mem = arena_new(4u << 20);
    struct claim *last = NULL;
    unsigned generation = 0;
    bool is_ours = true;
    bool ok = find_last(s, k, mem, &last, &generation, err);

    if (ok && last && memcmp(last->value, print, 32) != 0)
        ok = claim_make(s, name_of(k, generation + 1, mem), print, claim_where(k->path, mem),
                        CLAIM_FOR_EVER, &is_ours, err);
    if (ok && !is_ours)
        ok = error_set(err, ERR_CONFLICT, "another node rotates %s too; run this again", k->file);
    arena_free(mem);
    return ok;
}
