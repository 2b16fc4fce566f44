/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operations that export and import sessions. */
#ifndef HOLDFAST_EXPORT_API_IMPL_H
#define HOLDFAST_EXPORT_API_IMPL_H

#include "api/job.h"
#include "export/api/exports.h"
#include "export/export.h"

/* send.c */
void api_export_session(struct api_call *c);

#endif
