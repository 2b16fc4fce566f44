/* SPDX-License-Identifier: Apache-2.0 */
/* The tools create_session, end_session and list_sessions, for agents that manage their handles
 * themselves. */
#include "docs/server/tools.h"

#include "base/clock.h"
#include "base/random.h"
#include "session/token.h"

#define LIST_MAX 50
#define NAME_MAX_BYTES 255

struct session_call {
    struct registry_call registry;
    struct tool_call *tool;
    struct session_row row;
    struct session_filter filter;
    char id[UUID_TEXT], handle[HANDLE_LENGTH + 1];
};

static struct session_call *session_begin(struct tool_call *t, void (*done)(struct registry_call *))
{
    struct session_call *s = arena_new_of(t->call->mem, struct session_call);

    s->tool = t;
    s->registry.who = t->call->who;
    s->registry.mem = t->call->mem;
    s->registry.done = done;
    s->registry.idle_ms = config_idle_ms(*t->server->config, t->call->who->tenant);
    return s;
}

static void refuse_result(struct session_call *s)
{
    const struct registry_call *r = &s->registry;

    if (r->result == REGISTRY_LIMIT)
        tool_refuse(s->tool, "session limit exceeded for tenant. End one that is not needed any "
                             "more with end_session, or go on with one that list_sessions names.");
    else
        tool_refuse(s->tool, "%s",
                    r->err.code != ERR_NONE ? r->err.text
                                            : "The session could not be reached; call again.");
}

static void on_created(struct registry_call *r)
{
    struct session_call *s = container_of(r, struct session_call, registry);

    if (r->result != REGISTRY_OK) {
        refuse_result(s);
        return;
    }
    buf_addf(&s->tool->text,
             "%s\n\nPass this as session_id to the other tools. It lasts 24 hours after its last "
             "use; end it with end_session.",
             s->handle);
    tool_done(s->tool);
}

void docs_tool_create_session(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    const struct config *config = *t->server->config;
    int64_t now = clock_life_ms();
    struct session_call *s;
    struct str name, model;

    if (!tool_maybe_string(t, "name", &name) || !tool_maybe_string(t, "model", &model))
        return;
    if (name.n > NAME_MAX_BYTES || model.n > 50) {
        tool_refuse(t, "name has at most 255 bytes, model at most 50; give shorter ones.");
        return;
    }
    s = session_begin(t, on_created);
    random_uuid7(s->id);
    token_handle(s->handle);
    s->row = (struct session_row){
        .id = str_of(s->id),
        .handle = str_of(s->handle),
        .tenant = call->who->tenant,
        .owner = call->who->owner,
        .user_id = call->who->user_id,
        .edge_mcp_id = sessions_node(t->server->sessions),
        .client_name = name.n ? name : STR_NONE,
        .client_version = model.n ? model : STR_NONE,
        .status = SESSION_ACTIVE,
        .origin = ORIGIN_TOOL,
        .counted = true,
        .carrier = STR("argument"),
        .created_ms = now,
        .last_activity_ms = now,
        .expires_ms = now + config_default_ttl_ms(config, call->who->tenant),
        .version = 1,
    };
    (void)tool_wait(t);
    registry_create(t->server->registry, &s->registry, &s->row,
                    config_max_sessions(config, call->who->tenant));
}

static void on_ended(struct registry_call *r)
{
    struct session_call *s = container_of(r, struct session_call, registry);

    if (r->result != REGISTRY_OK) {
        refuse_result(s);
        return;
    }
    buf_addf(&s->tool->text, "Session ended: %.*s", STR_ARG(s->tool->call->handle));
    tool_done(s->tool);
}

void docs_tool_end_session(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct session_call *s;
    struct str id;

    if (!tool_maybe_string(t, "session_id", &id))
        return;
    if (call->named == NAMED_NONE) {
        tool_refuse(t, "Missing required parameter: session_id. Give the one to end.");
        return;
    }
    if (!tool_session(t, "go on"))
        return;
    s = session_begin(t, on_ended);
    s->registry.name = call->session_id;
    s->registry.by_id = true;
    (void)tool_wait(t);
    registry_end(t->server->registry, &s->registry, STR("end_session"));
}

static void on_listed(struct registry_call *r)
{
    struct session_call *s = container_of(r, struct session_call, registry);
    struct buf *out = &s->tool->text;
    char used[CLOCK_TEXT];

    if (r->result != REGISTRY_OK) {
        refuse_result(s);
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct session_row *row = &r->rows[i];
        clock_format(row->last_activity_ms, used);
        buf_addf(out, "%s%.*s  %s  last used %s  %.*s", i ? "\n" : "", STR_ARG(row->handle),
                 session_status_name(row->status), used, STR_ARG(row->client_name));
    }
    if (r->n == 0)
        buf_addz(out, "No sessions.");
    if (r->n == LIST_MAX)
        buf_addf(out, "\n\n[The newest %d are shown.]", LIST_MAX);
    tool_done(s->tool);
}

void docs_tool_list_sessions(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct session_call *s;

    if (!tool_session(t, "call again"))
        return;
    s = session_begin(t, on_listed);
    s->filter.statuses = 1u << SESSION_ACTIVE | 1u << SESSION_IDLE;
    s->filter.now_ms = clock_life_ms();
    s->filter.idle_ms = s->registry.idle_ms;
    (void)tool_wait(t);
    registry_list(t->server->registry, &s->registry, &s->filter, LIST_MAX);
}
