/* SPDX-License-Identifier: Apache-2.0 */
/* connection_metadata: the client's own metadata, and four members that the server sets. */
#ifndef HOLDFAST_IDENTITY_CONNECTION_H
#define HOLDFAST_IDENTITY_CONNECTION_H

#include "config/config.h"
#include "http/server.h"

/* `metadata` is a JSON object or absent.  Returns a JSON object in mem. */
struct str connection_metadata(const struct config *c, const struct http_request *r,
                               struct str metadata, struct arena *mem);
/* The same for an update: the server's members keep their values from `before`. */
struct str connection_metadata_again(struct str before, struct str metadata, struct arena *mem);

#endif
