/* SPDX-License-Identifier: Apache-2.0 */
/* The verb and ops of sinks, and the family that adds them to the store. */
#include "sinks/store/family.h"

#include "sinks/store/impl.h"

bool store_sink(struct store *s, struct str name, struct arena *mem, struct sink_row **ret,
                struct error *err)
{
    return store_row(s, &(struct store_call){VERB_SINK, .name = name, .mem = mem}, ret, err);
}

static bool claim_is_sound(const struct store_op *op, struct error *err)
{
    const struct sink_claim *c = op->row;

    if (c->name.n && c->writer > 0 && c->lease_ms >= 0 && c->now_ms > 0)
        return true;
    return error_set(err, ERR_INTERNAL, "A store op on an incomplete sink was refused; report it.");
}

static const struct family_op ops[] = {
    {OP_SINK_TAKE, {"sink take", false, claim_is_sound}},
    {OP_SINK_SAVE, {"sink save", false, claim_is_sound}},
    {0},
};

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {SINK_VERBS(VERB_ROW){0}};

const struct store_family sinks_store = {
    .verbs = verbs,
    .ops = ops,
    .reads = sql_sink_reads,
    .sqlite = &sink_sqlite,
    .postgres = &sink_postgres,
};
