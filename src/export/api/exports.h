/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that export and import sessions, as a part of the table of REST (api/api.h). */
#ifndef HOLDFAST_EXPORT_API_EXPORTS_H
#define HOLDFAST_EXPORT_API_EXPORTS_H

#include "api/api.h"

extern const struct api_part exports_api; /* for api_add() */

/* Exports under way in this process: each holds one page in memory. */
#define EXPORTS_MAX 16
/* Imports likewise. */
#define IMPORTS_MAX 4

#endif
