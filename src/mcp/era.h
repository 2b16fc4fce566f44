/* SPDX-License-Identifier: Apache-2.0 */
/* How the two kinds of protocol differ: properties that other directories ask for by name, and the
 * functions that translate.  The legacy versions open a transport with initialize and keep state
 * behind it.  Since 2026-07-28 every request carries all that it needs. */
#ifndef HOLDFAST_MCP_ERA_H
#define HOLDFAST_MCP_ERA_H

#include "base/str.h"

enum mcp_era { MCP_LEGACY, MCP_MODERN };

/* Errors whose code differs between the eras. */
enum mcp_fault {
    MCP_FAULT_OTHER,       /* any other error: its code stays */
    MCP_FAULT_NO_RESOURCE, /* the resource is not there */
    MCP_FAULT_ENVELOPE,    /* the envelope or a mirrored header was refused */
};

struct arena;
struct js_splice;
struct mcp_call_request;
struct mcp_call_result;
struct mcp_client_info;
struct mcp_request_edit;

struct mcp_era_rules {
    const char *name;
    bool is_stateful;    /* initialize opens a transport, and servers keep a session behind it */
    bool has_envelope;   /* each request has version and capabilities in params._meta */
    bool mirrors_body;   /* HTTP headers repeat method, name and some arguments of the body */
    bool stamps_results; /* results carry resultType, lists how long they may be cached */
    bool disconnect_cancels; /* a client that closes the connection has cancelled its request */
    bool resumes_streams;    /* a client may come back for the rest of a stream */
    bool asks_by_requests; /* servers ask by requests of their own, not by input_required results */
    bool has_listen;       /* changes come on subscriptions/listen alone */
    int no_method_status;  /* HTTP status of "Method not found" */
    int no_resource_code;  /* JSON-RPC code of a resource that is not there */
    int envelope_code;     /* JSON-RPC code of MCP_FAULT_ENVELOPE; 0: the code stays */
    struct str result_end; /* the end of a result object that Holdfast writes itself */
    int (*error_status)(int64_t code); /* HTTP status of an error that a server answered */

    /* Translation (mcp/translate.h).  The client's era: */
    /* Reads from initialize what the envelope of another era must say about the client.  NULL: each
     * request has its own envelope. */
    void (*read_client)(const struct mcp_call_request *r, struct mcp_client_info *ret);
    /* Brings a server's result into this era, and adds the words of Holdfast. */
    void (*edit_result)(const struct mcp_call_result *r, struct js_splice *s);
    /* The server's era: */
    /* Brings a client's params into this era.  It is called once for each request, before any other
     * edit. */
    void (*edit_request)(const struct mcp_call_request *r, struct mcp_request_edit *e);
    /* The meaning of an error code that a server answered. */
    enum mcp_fault (*fault_of)(int64_t code);
};

extern const struct mcp_era_rules mcp_era_legacy, mcp_era_modern;

static inline const struct mcp_era_rules *mcp_era(enum mcp_era era)
{
    return era == MCP_MODERN ? &mcp_era_modern : &mcp_era_legacy;
}

/* The era of a request, by whether it has the envelope. */
static inline enum mcp_era mcp_era_by_envelope(bool has_envelope)
{
    return has_envelope ? MCP_MODERN : MCP_LEGACY;
}

#endif
