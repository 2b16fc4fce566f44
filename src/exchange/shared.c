/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in a session that another owner shares with the caller, or shared: refusals in words. */
#include "call/credential.h"
#include "exchange/exchange.h"

bool exchange_owns_session(const struct exchange *x, const struct session *s)
{
    return principal_owns(&x->caller.who, s->tenant, s->owner);
}

static const char denied_reading[] =
    "This session is shared with you for reading: ask its owner for a share that may use it, or go "
    "on in a session of your own.";

static const char *denied_text(enum session_denied denied)
{
    switch (denied) {
    case DENIED_REVOKED:
        return "The session that this client had joined is not shared with it any more: its owner "
               "has revoked the share. Nothing was called. The next call goes on in a session of "
               "your own.";
    case DENIED_EXPIRED:
        return "The share by which this client had joined a session has expired. Nothing was "
               "called. Ask for a new code, or call again: the next call goes on in a session of "
               "your own.";
    case DENIED_HANDED_OVER:
        return "This session was handed over to somebody else. Nothing was called. The next call "
               "goes on in a new session of your own.";
    default:
        return denied_reading;
    }
}

enum step_result exchange_refuse_denied(struct exchange *x, enum session_denied denied)
{
    return x->method->service == SERVE_CALL
               ? exchange_tool_error(x, denied_text(denied))
               : exchange_refuse(x, 200, -32000, "%s", denied_text(denied));
}

enum step_result exchange_check_shared(struct exchange *x)
{
    static const char text[] =
        "The owner of this session has stored credentials or settings for this server with it, and "
        "a share does not lend them. Ask the owner to make this call, or call it in a session of "
        "your own.";
    struct credential_ask ignored = {.config = x->caller.config};

    if (likely(exchange_owns_session(x, x->session)) ||
        !credential_is_due(x->session, upstream_config(x->up), &ignored))
        return STEP_NEXT;
    return x->method->service == SERVE_CALL ? exchange_tool_error(x, text)
                                            : exchange_refuse(x, 200, -32000, "%s", text);
}
