/* SPDX-License-Identifier: Apache-2.0 */
/* Filling errors, and the table of what each code means outside: HTTP, JSON-RPC, exit status, the
 * sentence for outsiders and the help text (`holdfast help CODE`). */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROW(CODE, NAME, HTTP, JSONRPC, EXIT, SENTENCE, HELP)                                       \
    [CODE] = {CODE, NAME, HTTP, JSONRPC, EXIT, SENTENCE, HELP}

static const struct error_info table[ERR_COUNT] = {
    ROW(ERR_NONE, "none", 200, 0, 0, "No error", "Nothing went wrong. There is nothing to do."),
    ROW(ERR_PARSE, "parse", 400, -32700, 1, "The message is not valid JSON",
        "The bytes received are not one JSON value in UTF-8. "
        "Check the sender for trailing commas, comments, cut-off bodies or a byte order mark."),
    ROW(ERR_BAD_INPUT, "bad_input", 400, -32600, 1, "The request is not acceptable",
        "The request was understood but breaks a rule of the protocol or of this interface. "
        "Read the detail text, correct the request and send it again."),
    ROW(ERR_BAD_PARAMS, "bad_params", 400, -32602, 1, "The parameters are not acceptable",
        "A parameter is missing, has the wrong type or is out of range. "
        "Compare the call with the schema that tools/list or the interface reference shows."),
    ROW(ERR_NO_METHOD, "no_method", 404, -32601, 1, "The method does not exist",
        "No such method, or the server behind it does not offer it. "
        "Check its spelling and the capabilities that initialize or discovery returned."),
    ROW(ERR_USAGE, "usage", 400, -32600, 2, "The command line is not understood",
        "An option or argument is unknown, missing or does not fit with the others. "
        "Run `holdfast help` or `holdfast COMMAND --help` to see what is accepted."),
    ROW(ERR_UNAUTHENTICATED, "unauthenticated", 401, -32000, 3, "Authentication is required",
        "No credential was sent, or the one sent is unknown, expired or revoked. "
        "Create one with `holdfast key create` and send it as a bearer token."),
    ROW(ERR_DENIED, "denied", 403, -32000, 3, "The caller is not allowed to do this",
        "The caller is known but its role, scopes or profile do not permit this. "
        "Use another key, or ask an administrator to widen this one."),
    ROW(ERR_NOT_FOUND, "not_found", 404, -32000, 1, "Not found",
        "The name does not exist, or is not visible to this caller. Check the spelling, list the "
        "existing names, and check which key is in use."),
    ROW(ERR_SESSION_NOT_FOUND, "session_not_found", 404, -32000, 1, "Session not found or expired",
        "The session id is unknown, has expired or belongs to another owner. Start again with a "
        "new initialize and use the session id it returns."),
    ROW(ERR_CONFLICT, "conflict", 409, -32000, 6, "The request conflicts with the present state",
        "The name is taken, or the thing changed since it was read. "
        "Read it again and repeat the change, or choose another name."),
    ROW(ERR_TOO_LARGE, "too_large", 413, -32600, 1, "The message is too large",
        "A size limit was passed. "
        "Send less at a time, or raise the limit in the configuration."),
    ROW(ERR_LIMIT, "limit", 429, -32000, 1, "A limit has been reached",
        "A quota of sessions, calls or connections is used up. Wait a little, end sessions, calls "
        "or connections that are not needed, or raise the limit in the configuration."),
    ROW(ERR_QUOTA, "quota", 429, -32000, 1, "A quota is used up",
        "The tenant or the key has made as many requests, moved as many bytes, or has as many "
        "calls or server processes under way as its limits allow. Wait as long as Retry-After or "
        "_meta says, or raise the limits in the configuration."),
    ROW(ERR_UNAVAILABLE, "unavailable", 503, -32000, 4, "The service is not available just now",
        "The store cannot be used, or this process is stopping. Try again shortly; if it lasts, "
        "GET /readyz and the log name the reason."),
    ROW(ERR_UNREACHABLE, "unreachable", 502, -32000, 4, "The server cannot be reached",
        "A connection or process could not be started, or it broke off. "
        "Run `holdfast doctor`, and look at `holdfast servers logs NAME`."),
    ROW(ERR_UPSTREAM, "upstream", 502, -32000, 1, "The server broke the protocol",
        "The answer of the server cannot be understood. Look at its log, and report the problem to "
        "its authors with the text of this error."),
    ROW(ERR_TIMEOUT, "timeout", 504, -32000, 1, "The answer did not come in time",
        "A deadline passed before the work was done; it may still finish later. Check whether the "
        "call had an effect before you repeat it, or raise the timeout."),
    ROW(ERR_CANCELLED, "cancelled", 500, -32800, 1, "The request was cancelled",
        "The caller withdrew the request before it was answered. "
        "Send it again if the answer is still wanted."),
    ROW(ERR_TOOL, "tool", 200, -32000, 5, "The tool reported an error",
        "The call reached the tool and the tool itself says that it failed. "
        "Read the text of the result; the fault is in the arguments or in the tool."),
    ROW(ERR_CONFIG, "config", 500, -32603, 7, "The configuration is not usable",
        "The configuration file or an environment variable has a mistake, or a start was refused "
        "because of it. Correct the place that the message names; `holdfast config check` checks "
        "the file without starting."),
    ROW(ERR_CHAIN_BROKEN, "chain_broken", 500, -32603, 8, "The audit chain is broken",
        "Audit records were changed, removed or reordered after they were written. "
        "Keep a copy of the data directory and find out who had access to it."),
    ROW(ERR_INTERRUPTED, "interrupted", 500, -32603, 130, "The command was interrupted",
        "A signal ended the command before it was done. "
        "Run it again; nothing that was acknowledged is lost."),
    ROW(ERR_INTERNAL, "internal", 500, -32603, 1, "Internal error",
        "Holdfast or the machine has a fault, such as a full disk. The log has the details; please "
        "report the error with the log lines around it."),
    ROW(ERR_TENANT_NOT_FOUND, "tenant_not_found", 401, -32000, 3,
        "The request belongs to no tenant",
        "The request has no credential, or one that is unknown, expired or revoked, so it belongs "
        "to no tenant. Create a key with `holdfast key create` and send it as a bearer token."),
    ROW(ERR_SESSION_EXISTS, "session_exists", 409, -32000, 6, "A session of this name exists",
        "Names of sessions are unique in a tenant, and sessions that have ended keep theirs. "
        "Choose another session_id, or leave it out and use the one that is returned."),
    ROW(ERR_SESSION_LIMIT, "session_limit", 429, -32000, 1,
        "The tenant has reached its session limit",
        "The tenant has as many live sessions as it may have. End sessions that are not needed "
        "with DELETE /api/v1/sessions/{id}, wait for some to expire, or raise the tenant's limit "
        "in the configuration."),
    ROW(ERR_SESSION_NOT_ACTIVE, "session_not_active", 409, -32000, 1, "The session is over",
        "The session has expired or was terminated, so nothing can be done in it any more. "
        "Create a new one; GET /api/v1/sessions/{id} shows when and why the old one ended."),
    ROW(ERR_BAD_DURATION, "invalid_duration", 400, -32602, 1, "The duration is not understood",
        "A duration is a number with a unit, such as 90s, 30m, 24h or 1h30m, or a number of "
        "seconds. Correct it and send the request again."),
    ROW(ERR_BAD_CURSOR, "bad_cursor", 400, -32602, 1, "The cursor belongs to another list",
        "A cursor works only for the caller that received it, and with the same parameters. Send "
        "next_cursor unchanged, or begin without a cursor."),
    ROW(ERR_UNKNOWN_CLIENT_TYPE, "unknown_client_type", 400, -32602, 1, "Unknown client type",
        "A client_type is one of claude-code, ide, agent and cli. "
        "Use one of them, or leave it out."),
    ROW(ERR_UNKNOWN_TOOL, "unknown_tool", 400, -32602, 1, "Unknown tool id",
        "No tool with this id was called through MCP in the tenant. Leave tool_id out, or use the "
        "id that GET /api/v1/sessions/{id}/tools shows with a call that went through MCP."),
    ROW(ERR_UNKNOWN_CONTEXT, "unknown_context", 400, -32602, 1, "Unknown context id",
        "The tenant has no context document of this id. Leave context_id out: a session gets one "
        "when its context is first written."),
    ROW(ERR_SEALED, "credentials_unreadable", 500, -32603, 1, "Stored credentials cannot be opened",
        "The credentials stored with a session were sealed by another key, or were changed since. "
        "Restore the master key if it was replaced, else store them again: PATCH the session with "
        "passthrough_auth."),
    ROW(ERR_PRECONDITION_MISSING, "precondition_required", 428, -32000, 6,
        "The change names no version",
        "A change must name the version that it changes, so that it does not overwrite a change of "
        "another client. Read the resource, and send its ETag as If-Match."),
    ROW(ERR_PRECONDITION_FAILED, "precondition_failed", 412, -32000, 6,
        "The resource has changed since it was read",
        "The ETag in If-Match is not the current one. Read the resource again, repeat the change "
        "on its current state, and send the new ETag."),
    ROW(ERR_IDEMPOTENCY_MISMATCH, "idempotency_mismatch", 422, -32000, 6,
        "The Idempotency-Key belongs to another request",
        "This key came with another path or body within the last 24 hours. "
        "Use a new key for every new request, and the same one only to repeat it unchanged."),
    ROW(ERR_IDEMPOTENCY_BUSY, "idempotency_in_flight", 409, -32000, 6,
        "The same request is under way",
        "A request with this Idempotency-Key has not been answered yet. "
        "Wait for it, or repeat the request in a moment."),
    ROW(ERR_MEDIA_TYPE, "unsupported_media_type", 415, -32600, 1,
        "The body's type is not understood",
        "Bodies are JSON. Send Content-Type: application/json."),
    ROW(ERR_BAD_METHOD, "method_not_allowed", 405, -32600, 1, "The path does not take this method",
        "The path exists, but not with this method. "
        "The Allow header of the answer names those it takes."),
    ROW(ERR_TOO_SLOW, "too_slow", 408, -32600, 1, "The request came too slowly",
        "The body did not arrive in the time that is given to it. "
        "Send the request again, over a faster connection or in smaller parts."),
};

bool error_set(struct error *err, enum err_code code, const char *fmt, ...)
{
    struct error filled = {.code = code};
    va_list args;

    va_start(args, fmt);
    vsnprintf(filled.text, sizeof(filled.text), fmt, args);
    va_end(args);
    if (err)
        *err = filled;
    return false;
}

bool error_wrap(struct error *err, const char *fmt, ...)
{
    char context[sizeof(err->text)];
    size_t n, keep;
    va_list args;

    if (!err)
        return false;
    va_start(args, fmt);
    vsnprintf(context, sizeof(context) - 2, fmt, args);
    va_end(args);
    n = strlen(context);
    memcpy(context + n, ": ", 3);
    n += 2;
    keep = strlen(err->text);
    if (keep > sizeof(err->text) - 1 - n)
        keep = sizeof(err->text) - 1 - n;
    memmove(err->text + n, err->text, keep);
    memcpy(err->text, context, n);
    err->text[n + keep] = '\0';
    return false;
}

bool error_sys(struct error *err, enum err_code code, int errnum, const char *fmt, ...)
{
    struct error filled = {.code = code};
    char reason[128];
    size_t n;
    va_list args;

    va_start(args, fmt);
    vsnprintf(filled.text, sizeof(filled.text) - sizeof(reason), fmt, args);
    va_end(args);
    n = strlen(filled.text);
    snprintf(filled.text + n, sizeof(filled.text) - n, ": %s",
             strerror_r(errnum, reason, sizeof(reason)));
    if (err)
        *err = filled;
    return false;
}

const struct error_info *error_info(enum err_code code)
{
    return (unsigned)code < ERR_COUNT ? &table[code] : &table[ERR_INTERNAL];
}

const struct error_info *error_info_by_name(const char *name)
{
    for (size_t i = 0; name && i < countof(table); i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}
