/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operations on holds. */
#ifndef HOLDFAST_HOLDS_API_IMPL_H
#define HOLDFAST_HOLDS_API_IMPL_H

#include "api/job.h"
#include "holds/api/holds.h"
#include "holds/store/rows.h"

#include "json/write.h"

/* list.c */
/* Writes the row as an object, with the name that its target has now. */
must_check bool hold_write(struct js_writer *w, struct store *store, const struct hold_row *row,
                           struct arena *mem, struct error *err);

#endif
