/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC envelopes as spans over the original bytes; ids are kept byte for byte. */
#ifndef HOLDFAST_MCP_MESSAGE_H
#define HOLDFAST_MCP_MESSAGE_H

#include "base/error.h"
#include "json/read.h"

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

struct mcp_message {
    struct js_doc doc;
    enum mcp_kind kind;
    struct str id;                       /* exact bytes, quotes included; absent on notifications */
    struct str method;                   /* unescaped; absent on responses */
    const struct js_node *params, *meta; /* params._meta when it is an object */
    const struct js_node *result, *error;
    const struct js_node *id_node, *method_node, *meta_node; /* of any type */
    bool is_2_0;
    bool has_others; /* has members outside of the envelope */
};

/* Parses a client's message strictly (no duplicate keys, no case-twins of envelope names, jsonrpc
 * "2.0", id a string or a number).  On failure *ret_id holds the id's bytes if they could be read,
 * else is absent; an array fails with ERR_BAD_INPUT and *ret_is_batch set. */
must_check bool mcp_parse_request(struct str text, struct arena *mem, struct mcp_message *ret,
                                  struct str *ret_id, bool *ret_is_batch, struct error *err);
/* Parses an upstream's message: one validating scan, tolerant in harmless details. */
must_check bool mcp_parse_upstream(struct str text, struct arena *mem, struct mcp_message *ret,
                                   struct error *err);
/* A deep copy in mem. */
struct mcp_message mcp_message_dup(const struct mcp_message *m, struct arena *mem);
/* The fault in the shape of an upstream's response ("a result that is not an object"), or NULL.
 * Clients cannot be expected to accept every shape. */
const char *mcp_response_fault(const struct mcp_message *m);
/* True for a notification that may be dropped when the reader is slow: a log line, or an unknown
 * kind. */
bool mcp_is_droppable(const struct mcp_message *m);
const struct js_node *mcp_param(const struct mcp_message *m, struct str name);
/* params.NAME as text; absent when it is not a string. */
struct str mcp_param_text(const struct mcp_message *m, struct str name, struct arena *mem);
/* The raw bytes of params, or absent. */
struct str mcp_params_raw(const struct mcp_message *m);
/* True for an error -32022 whose data.supported has a modern version that we speak. */
bool mcp_names_modern(const struct mcp_message *m);
/* Reads an id of ours: ids towards upstreams are plain integers. */
must_check bool mcp_id_ours(struct str raw, uint64_t *ret);

#endif
