/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operations that export and import sessions. */
#ifndef HOLDFAST_EXPORT_API_IMPL_H
#define HOLDFAST_EXPORT_API_IMPL_H

#include "api/job.h"
#include "export/api/exports.h"
#include "export/export.h"

struct audit;

/* send.c */
void api_export_session(struct api_call *c);
/* import.c */
void api_import_session(struct api_call *c);

/* redact.c: takes what this Holdfast knows for a secret out of the bodies and the error of a call
 * that another one recorded.  On the write lane.  In mem. */
void import_redact(struct audit *a, struct recorded_call *call, struct arena *mem);

#endif
