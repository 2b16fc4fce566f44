/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operations on erasures. */
#ifndef HOLDFAST_ERASURE_API_IMPL_H
#define HOLDFAST_ERASURE_API_IMPL_H

#include "api/job.h"
#include "erasure/api/erasures.h"
#include "erasure/store/rows.h"

#include "json/write.h"

/* list.c */
void erasure_write(struct js_writer *w, const struct erasure_row *row);

#endif
