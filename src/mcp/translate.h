/* SPDX-License-Identifier: Apache-2.0 */
/* Translation between the eras, and the one place where a message is re-stamped on its way.  A
 * request and a result pass here in a neutral form.  The rows of mcp/era.h say how each era reads
 * and writes it: the server's era writes a request, the client's era writes a result.
 *
 * Towards an upstream: the JSON-RPC id and _meta.progressToken become ours.  Same era: every other
 * byte of params stays.  Modern → legacy: the envelope keys (io.modelcontextprotocol/…) are removed
 * from _meta, and an empty _meta is removed with them.  Legacy → modern: the envelope is added.
 *
 * Towards a client: the id is the client's own bytes.  Same era: every other byte of the result
 * stays.  Legacy → modern: resultType and _meta serverInfo are added.  Modern → legacy: they are
 * removed.  Holdfast may add the handle line, the state-lost line, and their _meta keys
 * (docs/what-we-change.md). */
#ifndef HOLDFAST_MCP_TRANSLATE_H
#define HOLDFAST_MCP_TRANSLATE_H

#include "base/buf.h"
#include "mcp/message.h"
#include "mcp/version.h"

struct mcp_call_request {
    const struct mcp_message *m; /* the client's */
    enum mcp_era client_era, server_era;
    uint64_t id;                      /* ours, also the progress token if the client gave one */
    bool drop_session_id;             /* Holdfast added this argument; the tool does not know it */
    const struct js_node *named;      /* the client's name in params, … */
    struct str name;                  /* … and the upstream's own name */
    const struct js_node *state_node; /* requestState as we bound it, … */
    struct str state;                 /* … and as the upstream gave it */
    struct str initialize_params;     /* raw JSON, of the client's transport; or absent */
    const char *log_level;            /* likewise, set by logging/setLevel; or NULL */
    struct arena *mem;                /* for texts that are needed until it is written */
};
void mcp_write_request(const struct mcp_call_request *r, struct buf *out);

struct mcp_call_result {
    const struct mcp_message *m; /* the upstream's */
    enum mcp_era server_era, client_era;
    struct str id;          /* the client's bytes */
    struct str server_info; /* raw JSON, or absent */
    bool cacheable;         /* resources/read: a modern result says how long it may be cached */
    struct str state;       /* modern → modern: the bound requestState, raw; absent: unchanged */
    struct str handle;      /* added as [session: …]; or absent */
    struct str lost_server, lost_reason, lost_at; /* of lost state; or absent */
    struct str recording; /* JSON: how completely the session is recorded; absent: not told now */
    struct str redelivered_at; /* when a redelivered result was ready; absent: not redelivered */
    struct arena *mem;
};
void mcp_write_result(const struct mcp_call_result *r, struct buf *out);
/* A progress notification with the client's own token in place of ours. */
void mcp_write_progress(const struct mcp_message *m, struct str client_token, struct buf *out);
/* True for a result that asks for input (MRTR) in a way that clients of this era do not know. */
bool mcp_asks_beyond(enum mcp_era client, const struct mcp_message *m);
/* The requestState of a result that asks for input; NULL: the server of this era gave none. */
const struct js_node *mcp_request_state(enum mcp_era server, const struct mcp_message *m);

#endif
