/* SPDX-License-Identifier: Apache-2.0 */
/* Audit notes about exchanges, beside the intents and outcomes of calls.
 *
 * A tools/call that is refused before it begins leaves a note in the audit: the caller, the tool
 * and the reason.  Examples: a tool that is held, unknown or not permitted; parameters that its
 * schema refuses.  Nothing waits for the note, because nothing was executed.
 *
 * Not noted: requests of unknown callers, which could fill the disk; requests over a quota, which
 * the quotas record once a minute; and refusals because Holdfast cannot serve right now, which are
 * not the caller's fault. */
#include "exchange/exchange.h"

#include "session/setup.h"

static bool is_recorded(const struct exchange *x)
{
    return !x->call && x->caller.is_known && x->method && x->method->service == SERVE_CALL &&
           x->msg.kind == MCP_REQUEST && x->status != 429 && x->status != 503;
}

/* The tool's name; as the client wrote it if its server was not found. */
static struct str name_of(const struct exchange *x)
{
    return x->tool.p ? x->tool : mcp_param_text(&x->msg, STR("name"), x->mem);
}

struct own_secrets exchange_secrets(const struct exchange *x)
{
    struct own_secrets own = {.session = exchange_session_secrets(x)};

    if (x->caller.who.credential.p)
        own.credential = identity_presented(x->head, x->path_key, &own.credential_marker);
    return own;
}

struct exec_request exchange_what(const struct exchange *x)
{
    const struct session_setup *rules = x->session ? x->session->rules : NULL;

    return (struct exec_request){
        .who = &x->caller.who,
        .session_id = x->session ? x->session->id : STR_NONE,
        .transport = x->transport ? str_n(x->transport->shown, 8) : STR_NONE,
        .client = exchange_client(x),
        .carrier = x->session ? x->session->carrier : STR_NONE,
        .server = x->up ? upstream_name(x->up) : STR("holdfast"),
        .method = x->msg.method,
        .tool = name_of(x),
        .era = x->version->name,
        .body = mcp_params_raw(&x->msg),
        .mode = x->up ? call_audit_mode(rules, x->up) : setup_audit_mode(rules, AUDIT_REDACTED),
        .max_body = setup_audit_body(rules),
        .own = exchange_secrets(x),
    };
}

/* A request may be refused before its secrets step. */
enum step_result exchange_note_refusal(struct exchange *x)
{
    bool is_known = false;

    if (!is_recorded(x))
        return STEP_NEXT;
    if (!exchange_find_secrets(x, &is_known))
        return STEP_WAIT;
    struct exec_request what = exchange_what(x);
    struct exec_result result = {.outcome = STR("refused"), .error = x->refusal};
    if (!is_known) { /* both texts may contain a secret */
        what.mode = AUDIT_DIGEST;
        result.error = STR_NONE;
    }
    exec_note(x->sv->audit, &what, &result);
    return STEP_NEXT;
}
