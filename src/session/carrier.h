/* SPDX-License-Identifier: Apache-2.0 */
/* Carriers: where a request names its session.  This file only reads names; whose they are is
 * checked by the lookup.  A name never authenticates. */
#ifndef HOLDFAST_SESSION_CARRIER_H
#define HOLDFAST_SESSION_CARRIER_H

#include "config/config.h"
#include "http/codec.h"
#include "mcp/message.h"

struct carrier {
    struct str label; /* "meta:session_id", "client-id", "header:x-thread" … */
    struct str
        name; /* the value; long ones are replaced by their digest.  Absent: no such carrier */
};

#define CARRIER_MESSAGES "messages" /* the session id of POST /mcp/messages */
/* With carriers.client_ids: the label that header, query and _meta values share. */
#define CARRIER_CLIENT_ID "session-id"

/* A value as a name: itself, or its digest when it is long. */
struct str carrier_name(struct str value, struct arena *mem);
/* The first configured _meta key that has a value. */
struct carrier carrier_in_meta(const struct config *c, const struct mcp_message *m,
                               struct arena *mem);
/* The first configured header that has a value, then mcp-client-id. */
struct carrier carrier_in_headers(const struct config *c, const struct http_head *head,
                                  struct arena *mem);
/* Before carriers.client_ids was switched on, the same value may have named a session under one of
 * these labels.  Gives the i-th of them; absent: there are no more. */
struct str carrier_former_label(const struct config *c, size_t i);
/* Mcp-Session-Id or ?session_id= of a legacy request; false when both stand there and differ. */
must_check bool carrier_transport_id(const struct http_head *head, struct arena *mem,
                                     struct str *ret);

#endif
