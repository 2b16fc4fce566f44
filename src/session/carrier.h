/* SPDX-License-Identifier: Apache-2.0 */
/* Carriers: the places where a request names its session.  This file only reads names; the lookup
 * checks their owner.  A name never authenticates. */
#ifndef HOLDFAST_SESSION_CARRIER_H
#define HOLDFAST_SESSION_CARRIER_H

#include "config/config.h"
#include "http/codec.h"
#include "mcp/message.h"

struct carrier {
    struct str label; /* "meta:session_id", "client-id", "header:x-thread" … */
    /* The value, or the digest of a long value; absent: the request has no carrier. */
    struct str name;
};

#define CARRIER_MESSAGES "messages" /* the session id of POST /mcp/messages */
/* With carriers.client_ids: the common label of values in header, query and _meta. */
#define CARRIER_CLIENT_ID "session-id"

/* The name of a value: the value itself, or its digest when it is long. */
struct str carrier_name(struct str value, struct arena *mem);
/* The first configured _meta key that has a value. */
struct carrier carrier_in_meta(const struct config *c, const struct mcp_message *m,
                               struct arena *mem);
/* The first configured header that has a value, then mcp-client-id. */
struct carrier carrier_in_headers(const struct config *c, const struct http_head *head,
                                  struct arena *mem);
/* The i-th label under which the value may have named a session before carriers.client_ids was
 * switched on; absent: no more labels. */
struct str carrier_former_label(const struct config *c, size_t i);
/* Mcp-Session-Id or ?session_id= of a legacy request.  Returns false when both are given and
 * differ, when one is repeated, or when the query cannot be decoded. */
must_check bool carrier_transport_id(const struct http_head *head, struct arena *mem,
                                     struct str *ret);

#endif
