/* SPDX-License-Identifier: Apache-2.0 */
/* The verb of feeds, and the family that adds it to the store. */
#include "feeds/store/impl.h"

bool store_event_writers(struct store *s, int64_t after, int64_t since_ms, unsigned limit,
                         struct arena *mem, struct event_writer **ret_rows, size_t *ret_n,
                         struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_EVENT_WRITERS, .after_id = after,
                                           .since_ms = since_ms, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {FEED_VERBS(VERB_ROW){0}};

static const struct family_op ops[] = {{0}};

const struct store_family feeds_store = {
    .verbs = verbs,
    .ops = ops,
    .reads = sql_feed_reads,
    .sqlite = &feeds_sqlite,
    .postgres = &feeds_postgres,
};
