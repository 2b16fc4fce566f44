/* SPDX-License-Identifier: Apache-2.0 */
/* The fold: events in, projections out. */
#include "store/postgres_impl.h"

void pg_fold_later(struct pg_store *s, int64_t writer)
{
    (void)s, (void)writer;
}
