/* SPDX-License-Identifier: Apache-2.0 */
/* Translation between the eras, and the one place where a message is re-stamped on its way.
 *
 * Towards an upstream: the JSON-RPC id and _meta.progressToken become ours.  Same era: every other
 * byte of params stays.  Modern → legacy: the envelope keys (io.modelcontextprotocol/…) are removed
 * from _meta, and an empty _meta is removed with them.  Legacy → modern: the envelope is added.
 *
 * Towards a client: the id is the client's own bytes.  Same era: every other byte of the result
 * stays.  Legacy → modern: resultType and _meta serverInfo are added.  Modern → legacy: they are
 * removed.  Added where INTERFACE says so: the handle line, the state-lost line, and their _meta
 * keys. */
#ifndef HOLDFAST_BRIDGE_BRIDGE_H
#define HOLDFAST_BRIDGE_BRIDGE_H

#include "base/buf.h"
#include "mcp/message.h"
#include "mcp/version.h"

struct bridge_request {
    const struct mcp_message *m; /* the client's */
    enum mcp_era from, to;
    uint64_t id;                      /* ours, also the progress token if the client gave one */
    bool drop_session_id;             /* Holdfast added this argument; the tool does not know it */
    const struct js_node *named;      /* the client's name in params, … */
    struct str name;                  /* … and the upstream's own name */
    const struct js_node *state_node; /* requestState as we bound it, … */
    struct str state;                 /* … and as the upstream gave it */
    const char *log_level;            /* legacy → modern: the level set by its session, or NULL */
    /* Legacy → modern: raw JSON; absent: {} and no clientInfo. */
    struct str capabilities, client_info;
};
void bridge_write_request(const struct bridge_request *b, struct buf *out);

struct bridge_result {
    const struct mcp_message *m; /* the upstream's */
    enum mcp_era from, to;
    struct str id;          /* the client's bytes */
    struct str server_info; /* raw JSON, or absent */
    bool cacheable;         /* resources/read: a modern result says how long it may be cached */
    struct str state;       /* modern → modern: the bound requestState, raw; absent: unchanged */
    struct str handle;      /* added as [session: …]; or absent */
    struct str lost_server, lost_reason, lost_at; /* of lost state; or absent */
    struct str redelivered_at; /* when a redelivered result was ready; absent: not redelivered */
    struct arena *mem;
};
void bridge_write_result(const struct bridge_result *b, struct buf *out);
/* A progress notification with the client's own token in place of ours. */
void bridge_write_progress(const struct mcp_message *m, struct str client_token, struct buf *out);
/* True for a result that asks for input (MRTR), which the legacy era cannot express. */
bool bridge_is_input_required(const struct mcp_message *m);

#endif
