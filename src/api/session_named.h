/* SPDX-License-Identifier: Apache-2.0 */
/* A session by what a person types: its session_id, the id of its row, or the beginning of one. */
#ifndef HOLDFAST_API_SESSION_NAMED_H
#define HOLDFAST_API_SESSION_NAMED_H

#include "store/store.h"

/* Among those that `reader` reaches.  ERR_NOT_FOUND when there is none, ERR_BAD_INPUT when several
 * begin with the name.  Used on the query lane. */
must_check bool session_find_named(struct store *store, const struct principal *reader,
                                   struct str name, struct arena *mem, struct session_row **ret,
                                   struct error *err);

#endif
