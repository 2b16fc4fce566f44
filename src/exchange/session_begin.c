/* SPDX-License-Identifier: Apache-2.0 */
/* A session that begins with a request of MCP.  If the profile of the endpoint has a template, its
 * version of now is read first, and the session copies what it takes from it.  A template that cannot
 * be used refuses the request: a session without it would have more rights than the operator meant. */
#include "exchange/exchange.h"

#include "base/log.h"
#include "session/profile_context.h"
#include "session/setup.h"
#include "templates/find.h"

struct str exchange_client_member(const struct exchange *x, const char *name)
{
    struct js_doc doc;
    if (x->method->service == SERVE_INITIALIZE) {
        const struct js_node *info = mcp_param(&x->msg, STR("clientInfo"));
        return js_text(&x->msg.doc, js_get(&x->msg.doc, info, str_of(name)), x->mem);
    }
    if (mcp_era(x->era)->has_envelope) {
        const struct js_node *info = js_get(&x->msg.doc, x->msg.meta, STR(MCP_KEY_CLIENT_INFO));
        return js_text(&x->msg.doc, js_get(&x->msg.doc, info, str_of(name)), x->mem);
    }
    if (!x->transport ||
        !js_parse(x->transport->initialize_params, &js_limits_request, x->mem, &doc, NULL))
        return STR_NONE;
    const struct js_node *info = js_get(&doc, js_root(&doc), STR("clientInfo"));
    return js_text(&doc, js_get(&doc, info, str_of(name)), x->mem);
}

static void on_template(struct template_find *f)
{
    exchange_resume(f->user);
}

static enum step_result refuse(struct exchange *x)
{
    struct str text =
        arena_printf(x->mem,
                     "The profile %.*s begins sessions with a template, but %s. Ask an "
                     "administrator.",
                     STR_ARG(x->profile->name), x->template->err.text);

    if (x->template->err.code != ERR_BAD_INPUT)
        return exchange_fail(x, &x->template->err);
    log_warn("the template of a profile cannot be used", LS("profile", x->profile->name),
             LS("tenant", x->caller.who.tenant), LZ("why", x->template->err.text));
    return x->method->service == SERVE_CALL
               ? exchange_tool_error(x, text.p)
               : exchange_refuse(x, 200, -32000, "%.*s", STR_ARG(text));
}

enum step_result exchange_find_template(struct exchange *x)
{
    struct template_find *f = x->template;

    if (f)
        return f->ok ? STEP_NEXT : refuse(x);
    if (!x->profile || !x->profile->template.p)
        return STEP_NEXT;
    f = x->template = arena_new_of(x->mem, struct template_find);
    *f = (struct template_find){
        .tenant = x->caller.who.tenant,
        .ref = x->profile->template,
        .config = x->caller.config,
        .mem = x->mem,
        .done = on_template,
        .user = x,
    };
    return template_find(x->sv->lanes, f) ? STEP_WAIT : refuse(x);
}

/* The record is complete if the template or the profile says so. */
static void set_up(struct exchange *x)
{
    const struct profile_config *p = x->profile;
    struct session_setup setup = {.audit = SETUP_AUDIT_REDACTED};

    if (x->template)
        setup = template_setup_of(&x->template->spec, x->template->row, x->mem);
    if (p->audit_full && setup.audit != SETUP_AUDIT_FULL) {
        setup.audit = SETUP_AUDIT_FULL;
        setup.audit_body = p->audit_body;
    }
    session_take_setup(x->session, session_setup_write(&setup, x->mem));
}

static void take_template(struct exchange *x)
{
    const struct template_spec *t = &x->template->spec;
    struct str toolsets = template_toolsets(t, x->mem);

    if (toolsets.p)
        session_take_toolsets(x->session, toolsets);
    session_begin_with(x->session, t->ttl_ms, t->context, t->metadata);
}

void exchange_begin_session(struct exchange *x, enum session_origin origin, struct str carrier,
                            struct str key)
{
    struct str name = exchange_client_member(x, "name"),
               version = exchange_client_member(x, "version");
    struct session_new_args args = {
        .who = &x->caller.who,
        .origin = origin,
        .carrier = carrier,
        .carrier_key = key,
        .client_name =
            str_n(name.p, name.n < SESSION_CLIENT_NAME_MAX ? name.n : SESSION_CLIENT_NAME_MAX),
        .client_version = str_n(version.p, version.n < 50 ? version.n : 50),
        .provisional = origin == ORIGIN_INJECTED,
        .counted = origin == ORIGIN_KEYED,
        .life_ms = config_default_ttl_ms(x->caller.config, x->caller.who.tenant),
        .context_mac = x->context ? x->context->mac : NULL,
    };
    x->session = session_new(x->sv->sessions, &args);
    if (x->template || (x->profile && x->profile->audit_full))
        set_up(x);
    if (x->template)
        take_template(x);
    log_debug("session begun", LS("session_id", x->session->handle), LS("carrier", carrier));
}
