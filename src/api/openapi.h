/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document of /api/v1.  It is written from the same tables by which requests are
 * routed and bodies are read (api_table.c, bodies.c), so it cannot tell of what is not there. */
#ifndef HOLDFAST_API_OPENAPI_H
#define HOLDFAST_API_OPENAPI_H

#include "base/buf.h"

/* For people: docs/generated/openapi.json. */
void openapi_print(struct buf *out);

#endif
