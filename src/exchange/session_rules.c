/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of a session, applied to its requests (session/setup.h).
 *
 *   permit step    limits beside those of tenant and key (limit.c); the profile that alone shows what
 *                  the session may use
 *   intent         call.c and note.c ask call_audit_mode() how the bodies are stored
 *   reply          the first result of a session that is recorded completely says so
 *
 * The stored set-up remembers that the client was told, so that it is told once, also across a
 * restart and on another node.  The write comes after the reply: a process that dies in between
 * tells the client a second time. */
#include "exchange/exchange.h"

#include "base/log.h"
#include "profile/profile.h"
#include "session/registry.h"
#include "session/setup.h"

#define TELLING_BYTES ((size_t)2 << 20)
#define TELLING_TRIES 4

/* The session of the transport is known before the session step. */
static const struct session_setup *rules_of(const struct exchange *x)
{
    const struct session *s = x->session ? x->session : x->transport ? x->transport->session : NULL;

    return s ? s->rules : NULL;
}

struct str exchange_rules_profile(const struct exchange *x)
{
    const struct session_setup *rules = rules_of(x);

    return rules ? rules->profile : STR_NONE;
}

bool exchange_rules_show_server(const struct exchange *x, struct str server)
{
    struct str name = exchange_rules_profile(x);
    const struct profile_config *p = name.p ? config_profile(x->caller.config, name) : NULL;

    return !name.p || (p && profile_has_server(p, server));
}

bool exchange_rules_show_tool(const struct exchange *x, struct str server, struct str tool)
{
    const struct session *s = x->session ? x->session : x->transport ? x->transport->session : NULL;
    struct str name = exchange_rules_profile(x);
    const struct profile_config *p = name.p ? config_profile(x->caller.config, name) : NULL;

    if (!p)
        return !name.p; /* a profile that is configured no more shows nothing */
    struct listener_scope scope = exchange_listener_scope(x);
    uint64_t toolsets = listener_scope_toolsets(&scope, p);
    if (p->mode == PROFILE_DYNAMIC)
        toolsets &= profile_enabled(p, s->toolsets);
    return profile_shows(p, toolsets, server, tool);
}

static enum step_result refuse(struct exchange *x)
{
    const struct session_setup *rules = x->session->rules;
    const char *why = config_profile(x->caller.config, rules->profile)
                          ? "does not show this"
                          : "is not in the configuration any more";
    struct str text = arena_printf(x->mem,
                                   "The template %.*s limits this session to the profile %.*s, "
                                   "which %s. Use a session without "
                                   "this template, or ask an administrator.",
                                   STR_ARG(rules->from), STR_ARG(rules->profile), why);

    return x->method->service == SERVE_CALL
               ? exchange_tool_error(x, text.p)
               : exchange_refuse(x, 200, -32602, "%.*s", STR_ARG(text));
}

enum step_result exchange_check_profile(struct exchange *x)
{
    bool is_shown = x->method->service == SERVE_CALL
                        ? exchange_rules_show_tool(x, upstream_name(x->up), x->tool)
                        : exchange_rules_show_server(x, upstream_name(x->up));
    return is_shown ? STEP_NEXT : refuse(x);
}

/* Storing that the client was told. */

struct telling {
    struct registry_call reg;
    struct services *sv;
    struct principal who;
    struct session_row change;
    unsigned tries;
};

static void telling_free(struct telling *t)
{
    arena_free(t->reg.mem); /* frees t too */
}

static void tell(struct telling *t);

static void on_told(struct registry_call *reg)
{
    struct telling *t = container_of(reg, struct telling, reg);

    if (reg->result == REGISTRY_STALE && ++t->tries < TELLING_TRIES) {
        tell(t);
        return;
    }
    if (reg->result == REGISTRY_OK)
        sessions_setup_changed(t->sv->sessions, t->who.tenant, reg->name, t->change.setup);
    else if (reg->result != REGISTRY_MISSING && reg->result != REGISTRY_NOT_ACTIVE)
        log_warn("that a client knows that its session is recorded completely could not be stored, "
                 "so it may be told again",
                 LS("session", reg->name), LZ("why", reg->err.text));
    telling_free(t);
}

/* The row may have another set-up by now. */
static void on_row(struct registry_call *reg)
{
    struct telling *t = container_of(reg, struct telling, reg);
    struct session_setup setup;

    if (reg->result != REGISTRY_OK || !session_setup_parse(reg->row->setup, reg->mem, &setup) ||
        setup.is_told || setup.audit != SETUP_AUDIT_FULL) {
        telling_free(t);
        return;
    }
    setup.is_told = true;
    t->change.setup = session_setup_write(&setup, reg->mem);
    reg->done = on_told;
    registry_patch(t->sv->registry, reg, &t->change, FIELD_SETUP, reg->row->version);
}

static void tell(struct telling *t)
{
    t->reg.done = on_row;
    if (registry_get(t->sv->registry, &t->reg))
        on_row(&t->reg);
}

static void remember_told(struct exchange *x, const struct session *s)
{
    struct arena *mem = arena_new(TELLING_BYTES);
    struct telling *t = arena_new_of(mem, struct telling);

    t->sv = x->sv;
    t->who =
        (struct principal){.tenant = arena_dup(mem, s->tenant), .owner = arena_dup(mem, s->owner)};
    t->reg = (struct registry_call){
        .who = &t->who, .mem = mem, .name = arena_dup(mem, s->id), .by_id = true};
    tell(t);
}

static bool is_complete_result(const struct call *c)
{
    const struct js_node *type = js_get(&c->answer.doc, c->answer.result, STR("resultType"));

    return c->kind == EXEC_DURABLE && js_type_is(c->answer.result, JS_OBJECT) &&
           !js_is(&c->answer.doc, type, STR("input_required"));
}

struct str exchange_tell_recording(struct exchange *x)
{
    const struct call *c = x->call;
    struct session_setup *rules = c->session->rules;
    size_t body = x->caller.config->limit_audit_body;

    if (rules->audit != SETUP_AUDIT_FULL || rules->is_told || x->aborted ||
        call_audit_mode(rules, c->up) != AUDIT_FULL || !is_complete_result(c))
        return STR_NONE;
    if (rules->audit_body > body)
        body = rules->audit_body;
    rules->is_told = true;
    remember_told(x, c->session);
    return arena_printf(x->mem, "{\"audit\":\"full\",\"audit_body\":%zu}", body);
}
