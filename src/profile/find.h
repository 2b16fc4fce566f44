/* SPDX-License-Identifier: Apache-2.0 */
/* The tool find of a search profile. */
#ifndef HOLDFAST_PROFILE_FIND_H
#define HOLDFAST_PROFILE_FIND_H

#include "profile/tools.h"

extern const char find_definition[];

struct find_query {
    struct str words; /* empty: every tool */
    int64_t limit, page, depth;
    double threshold;
};

/* Reads the arguments; returns the refusal, or NULL. */
const char *find_query_read(const struct profile_arguments *a, struct arena *mem,
                            struct find_query *ret);
/* Indexes the words of some tools.  False: there are more, and the caller lets other work run in
 * between.  Needed before an answer to a query with words. */
must_check bool find_index_step(const struct profile_view *v);
void find_answer(const struct profile_view *v, const struct find_query *q,
                 struct profile_answer *ret);

#endif
