/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document of /api/v1.  Its source are the tables that route requests and read
 * bodies (api_table.c, bodies.c), so it cannot describe an operation that does not exist. */
#ifndef HOLDFAST_API_OPENAPI_H
#define HOLDFAST_API_OPENAPI_H

#include "base/buf.h"

/* Pretty-printed: docs/generated/openapi.json. */
void openapi_print(struct buf *out);

#endif
