/* SPDX-License-Identifier: Apache-2.0 */
/* The error type, and the table that maps a code to HTTP status, JSON-RPC code and exit status.
 * Functions that can fail return bool (true for success) and fill a caller-owned struct error only
 * on failure.  error_set() and error_wrap() return false, so `return error_set(...)` is one line.
 * The text is one sentence for its reader and says what to do next; it contains no ids, tokens or
 * payloads. */
#ifndef HOLDFAST_BASE_ERROR_H
#define HOLDFAST_BASE_ERROR_H

#include "base/base.h"

enum err_code {
    ERR_NONE,
    ERR_PARSE,      /* bytes are not JSON */
    ERR_BAD_INPUT,  /* understood but not acceptable */
    ERR_BAD_PARAMS, /* JSON-RPC invalid params */
    ERR_NO_METHOD,  /* JSON-RPC method not found */
    ERR_USAGE,      /* command line */
    ERR_UNAUTHENTICATED,
    ERR_DENIED,
    ERR_NOT_FOUND,
    ERR_SESSION_NOT_FOUND, /* unknown, expired or foreign transport id */
    ERR_CONFLICT,
    ERR_TOO_LARGE,
    ERR_LIMIT,       /* a limit of this node */
    ERR_QUOTA,       /* the quota of a tenant or a key */
    ERR_UNAVAILABLE, /* the store fails, or Holdfast is stopping */
    ERR_UNREACHABLE, /* an upstream cannot be reached or disconnected */
    ERR_UPSTREAM,    /* an upstream broke the protocol */
    ERR_TIMEOUT,
    ERR_CANCELLED,
    ERR_TOOL, /* isError of a tool result, for commands */
    ERR_CONFIG,
    ERR_CHAIN_BROKEN,
    ERR_INTERRUPTED,
    ERR_INTERNAL,
    /* Codes of the registry, as REST shows them. */
    ERR_TENANT_NOT_FOUND,
    ERR_SESSION_EXISTS,
    ERR_SESSION_LIMIT,
    ERR_SESSION_NOT_ACTIVE,
    ERR_BAD_DURATION,
    ERR_BAD_CURSOR,
    ERR_UNKNOWN_CLIENT_TYPE,
    ERR_UNKNOWN_TOOL,
    ERR_UNKNOWN_CONTEXT,
    ERR_SEALED, /* sealed data cannot be opened */
    ERR_PRECONDITION_MISSING,
    ERR_PRECONDITION_FAILED,
    ERR_IDEMPOTENCY_MISMATCH, /* the key was used with another request before */
    ERR_IDEMPOTENCY_BUSY,
    ERR_MEDIA_TYPE,
    ERR_BAD_METHOD,
    ERR_TOO_SLOW, /* a request that arrives too slowly */
    ERR_COUNT
};

struct error {
    enum err_code code;
    char text[512];
};

struct error_info {
    enum err_code code;
    const char *name; /* lower_snake_case, as in problem+json and `holdfast help CODE` */
    int http_status;
    int jsonrpc;
    int exit_status;
    const char *sentence; /* for outsiders, who must not see `text` */
    const char *help;     /* how to fix it, in a few sentences */
};

bool error_set(struct error *err, enum err_code code, const char *fmt, ...)
    printf_like(3, 4) rarely_called;
/* Puts "context: " before the text; the code stays. */
bool error_wrap(struct error *err, const char *fmt, ...) printf_like(2, 3) rarely_called;
/* "…: strerror(errno)" */
bool error_sys(struct error *err, enum err_code code, int errnum, const char *fmt, ...)
    printf_like(4, 5) rarely_called;
const struct error_info *error_info(enum err_code code);
const struct error_info *error_info_by_name(const char *name); /* NULL for an unknown name */

#endif
