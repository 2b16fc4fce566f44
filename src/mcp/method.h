/* SPDX-License-Identifier: Apache-2.0 */
/* The method table: the methods of each era, how each is served, and the parameter that names its
 * server. */
#ifndef HOLDFAST_MCP_METHOD_H
#define HOLDFAST_MCP_METHOD_H

#include "mcp/message.h"
#include "mcp/version.h"

enum mcp_service {
    SERVE_INITIALIZE, /* answered here, and makes a transport */
    SERVE_PING,       /* answered here */
    SERVE_DISCOVER,   /* answered from the catalog */
    SERVE_LIST,       /* likewise */
    SERVE_CALL,       /* by the upstream, with a durable exec */
    SERVE_READ,       /* by the upstream, noted in the audit */
    SERVE_SUBSCRIBE,  /* by the upstream, without an audit row */
    SERVE_SET_LEVEL,  /* stored here, sent to upstreams when they are used */
    SERVE_LISTEN,     /* a stream of changes, until the client leaves */
    SERVE_CANCELLED,  /* stops one of the caller's own requests */
    SERVE_RELAYED,    /* a notification for the upstreams in use */
    SERVE_ANSWERED,   /* the client's answer to a server's request */
    SERVE_ACCEPTED,   /* a notification without any effect */
    SERVE_STREAM,     /* GET: the transport's standalone stream */
    SERVE_END,        /* DELETE: ends the transport */
    SERVE_BATCH,      /* an array of messages */
};

/* The parameter that names the server on the endpoint of all servers. */
enum mcp_target {
    TARGET_ALL,  /* no parameter: all servers, or none */
    TARGET_NAME, /* params.name: "server__name" */
    TARGET_URI,  /* params.uri: the server that lists it */
    TARGET_REF,  /* params.ref: a prompt's name or a resource template */
};

struct mcp_method {
    struct str name;
    enum mcp_service service;
    enum mcp_target target;
    bool legacy, modern;
    struct str name_param;  /* mirrored in Mcp-Name: "name", "uri"; or absent */
    const char *capability; /* server capability it needs, or NULL */
};

const struct mcp_method *mcp_method_find(struct str name, enum mcp_era era); /* or NULL */
/* True for methods that an upstream answers, through a call. */
bool mcp_method_forwards(const struct mcp_method *m);
/* The log level of this name, as a static string; NULL: unknown. */
const char *mcp_level(struct str name);
/* True when `name` is at least as severe as `wanted` (both from mcp_level()). */
bool mcp_level_reaches(const char *name, const char *wanted);
extern const struct mcp_method mcp_methods[]; /* ends with an absent name */
/* Requests and messages without a method name. */
extern const struct mcp_method mcp_method_get, mcp_method_delete, mcp_method_notification,
    mcp_method_response, mcp_method_batch;

#endif
