/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the translation that both eras use (era_legacy.c, era_modern.c). */
#ifndef HOLDFAST_MCP_TRANSLATE_IMPL_H
#define HOLDFAST_MCP_TRANSLATE_IMPL_H

#include "json/splice.h"
#include "mcp/translate.h"

/* The client as its initialize described it. */
struct mcp_client_info {
    struct str capabilities, client_info; /* raw JSON, or absent */
    const char *log_level;                /* or NULL */
};

struct mcp_request_edit {
    struct js_splice splice; /* over the client's message */
    struct str params;       /* written if the message has no params; absent: none */
};

/* True for a raw key of the modern envelope. */
bool mcp_is_envelope_key(void *arg, struct str raw_key);
/* Removes from params what no server gets, and _meta too if asked.  All of it is removed here,
 * since a splice may remove from an object only once. */
void mcp_edit_params(const struct mcp_call_request *r, struct mcp_request_edit *e, bool drops_meta);
/* True when mcp_add_notes() adds to _meta without a first member. */
bool mcp_adds_meta(const struct mcp_call_result *r);
/* Adds the lines for the model to the content, and to _meta the member `first` (or absent) and
 * those of Holdfast. */
void mcp_add_notes(const struct mcp_call_result *r, struct js_splice *s, struct str first);

#endif
