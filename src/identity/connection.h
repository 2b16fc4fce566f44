/* SPDX-License-Identifier: Apache-2.0 */
/* connection_metadata: what the client says, and four members that the server knows better. */
#ifndef HOLDFAST_IDENTITY_CONNECTION_H
#define HOLDFAST_IDENTITY_CONNECTION_H

#include "config/config.h"
#include "http/server.h"

/* `metadata` is a JSON object or absent; the answer is one, in mem. */
struct str connection_metadata(const struct config *c, const struct http_request *r,
                               struct str metadata, struct arena *mem);
/* The same for a change: the server's members stay as they were in `before`. */
struct str connection_metadata_again(struct str before, struct str metadata, struct arena *mem);

#endif
