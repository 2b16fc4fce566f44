/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs and ops of retention, and the family that adds them to the store. */
#include "retention/store/family.h"

#include "retention/store/impl.h"

bool store_retention_state(struct store *s, struct arena *mem, struct retention_state **ret,
                           struct error *err)
{
    return store_row(s, &(struct store_call){VERB_RETENTION_STATE, .mem = mem}, ret, err);
}

bool store_segments(struct store *s, const struct segment_page *page, unsigned limit,
                    struct arena *mem, struct segment_row **ret_rows, size_t *ret_n,
                    struct error *err)
{
    return store_rows(
        s, &(struct store_call){VERB_SEGMENTS, .filter = page, .limit = limit, .mem = mem},
        ret_rows, ret_n, err);
}

bool store_removed(struct store *s, int64_t writer, struct arena *mem,
                   struct removed_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_rows(s, &(struct store_call){VERB_REMOVED, .number = writer, .mem = mem}, ret_rows,
                      ret_n, err);
}

bool store_tallies(struct store *s, enum tally_kind kind, struct arena *mem,
                   struct tally_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_rows(s, &(struct store_call){VERB_TALLIES, .number = kind, .mem = mem}, ret_rows,
                      ret_n, err);
}

bool store_sizes_by_day(struct store *s, struct arena *mem, struct size_row **ret_rows,
                        size_t *ret_n, struct error *err)
{
    return store_rows(s, &(struct store_call){VERB_SIZES_BY_DAY, .mem = mem}, ret_rows, ret_n, err);
}

bool store_folded(struct store *s, struct arena *mem, struct folded_row **ret_rows, size_t *ret_n,
                  struct error *err)
{
    return store_rows(s, &(struct store_call){VERB_FOLDED, .mem = mem}, ret_rows, ret_n, err);
}

bool store_file_space(struct store *s, struct file_space *ret, struct error *err)
{
    return store_call(s, &(struct store_call){VERB_FILE_SPACE, .ret = ret}, err);
}

bool store_file_shrink(struct store *s, int64_t bytes, struct error *err)
{
    return store_call(s, &(struct store_call){VERB_FILE_SHRINK, .number = bytes}, err);
}

static bool is_whole(bool whole, struct error *err)
{
    return whole || error_set(err, ERR_INTERNAL,
                              "A store op of retention was incomplete and was refused; report it.");
}

static bool begin_is_sound(const struct store_op *op, struct error *err)
{
    return is_whole(((const struct retention_state *)op->row)->version >= 0 && op->required, err);
}

static bool drop_is_sound(const struct store_op *op, struct error *err)
{
    return is_whole(((const struct segment_row *)op->row)->id > 0, err);
}

static bool put_is_sound(const struct store_op *op, struct error *err)
{
    const struct segment_row *r = op->row;

    return is_whole(r->id > 0 && r->n > 0 && r->records.n > 0, err);
}

static bool removed_is_sound(const struct store_op *op, struct error *err)
{
    const struct removed_row *r = op->row;

    return is_whole(r->writer > 0 && r->tenant.n && r->first_seq > 0 &&
                        r->last_seq >= r->first_seq && r->first_id > 0 &&
                        r->last_id >= r->first_id && r->rule.n && r->removed_ms &&
                        r->by_age + r->by_size == r->last_seq - r->first_seq + 1,
                    err);
}

static bool tally_is_sound(const struct store_op *op, struct error *err)
{
    const struct tally_row *r = op->row;

    return is_whole(r->kind < TALLY_KINDS && r->tenant.p, err);
}

static bool gone_is_sound(const struct store_op *op, struct error *err)
{
    return is_whole(((const struct executions_gone *)op->row)->mem != NULL, err);
}

static const struct family_op ops[] = {
    {OP_RETENTION_BEGIN, {"retention begin", false, begin_is_sound}},
    {OP_SEGMENT_DROP, {"segment drop", false, drop_is_sound}},
    {OP_SEGMENT_PUT, {"segment put", false, put_is_sound}},
    {OP_REMOVED_PUT, {"removed put", false, removed_is_sound}},
    {OP_TALLY_ADD, {"tally add", false, tally_is_sound}},
    {OP_EXECUTIONS_GONE, {"executions gone", false, gone_is_sound}},
    {0},
};

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {RETENTION_VERBS(VERB_ROW){0}};

const struct store_family retention_store = {
    .verbs = verbs,
    .ops = ops,
    .reads = sql_retention_reads,
    .sqlite = &retention_sqlite,
    .postgres = &retention_postgres,
};
