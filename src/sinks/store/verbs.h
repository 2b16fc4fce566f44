/* SPDX-License-Identifier: Apache-2.0 */
/* The read verb of sinks: a list beside STORE_VERBS (store/verbs.h). */
#ifndef HOLDFAST_SINKS_STORE_VERBS_H
#define HOLDFAST_SINKS_STORE_VERBS_H

#include "sinks/store/rows.h"
#include "store/store.h"

#define SINK_VERBS(X) X(SINK, sink, ROW)

enum sink_verb {
    SINK_VERBS_BEFORE = VERB_FAMILY + 44 - 1,
    SINK_VERBS(VERB_ENUM) SINK_VERBS_END,
};
_Static_assert(SINK_VERBS_END <= VERB_COUNT, "raise VERB_COUNT");

/* *ret is NULL when no process ever took a sink of this name. */
must_check bool store_sink(struct store *s, struct str name, struct arena *mem,
                           struct sink_row **ret, struct error *err);

#endif
