/* SPDX-License-Identifier: Apache-2.0 */
/* Begins a replay: finds the recorded session, makes the session of the replay, begins the stream.
 * From then on src/replay writes the lines. */
#include "replay/api/table.h"

#include "api/job.h"
#include "base/clock.h"
#include "identity/scopes.h"
#include "json/write.h"
#include "replay/replay.h"
#include "session/lineage.h"
#include "session/resident.h"
#include "session/setup.h"
#include "session/token.h"
#include "upstream/upstream.h"

#define QUEUE_MAX ((size_t)4 << 20) /* bytes that wait for a slow reader */
#define PATTERN_MAX 256

struct replaying {
    struct replay_options options;
    struct session_row origin, row;
    struct event_row event;
    char id[UUID_TEXT], handle[HANDLE_LENGTH + 1];
};

/* Reading. */

static bool check_options(struct api_call *c, const struct replay_options *o)
{
    struct error err;

    for (size_t i = 0; i < o->ignore.n; i++)
        if (!diff_pattern_check(o->ignore.patterns[i], &err)) {
            api_refuse(c, err.code, "%s", err.text);
            return false;
        }
    for (size_t i = 0; i < o->n_only; i++)
        if (!o->only[i].n || o->only[i].n > PATTERN_MAX) {
            api_refuse(c, ERR_BAD_INPUT,
                       "a pattern in \"only\" has 1 to %d bytes, such as files__*", PATTERN_MAX);
            return false;
        }
    return true;
}

/* A server outside of the caller's scopes is answered like an unknown one. */
static bool check_server(struct api_call *c, struct str name)
{
    if (!name.p ||
        (upstreams_find(c->sv->upstreams, name) && principal_may_use_server(&c->who, name)))
        return true;
    api_refuse(c, ERR_NOT_FOUND, "there is no server \"%.*s\"; see `holdfast servers list`",
               STR_ARG(str_cut(name, 64)));
    return false;
}

static bool check_state(struct api_call *c)
{
    struct error err;

    if (!c->sv->replays) {
        api_refuse(c, ERR_UNAVAILABLE,
                   "calls are sent again by a running Holdfast; start it with `holdfast up`");
        return false;
    }
    if (c->sv->front->draining) {
        api_refuse(c, ERR_UNAVAILABLE, "Holdfast is stopping; try again in a moment");
        return false;
    }
    if (!replays_have_room(c->sv->replays, c->who.tenant, &err)) {
        api_problem(c, err.code, "too many replays", err.text, STR("Retry-After: 10\r\n"));
        return false;
    }
    return true;
}

/* The session of the replay. */

static void on_created(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    struct replaying *p = c->args;
    struct principal who = c->caller.who;
    struct replays *replays = c->sv->replays;
    struct replay_args args = {
        .who = &who,
        .origin = &p->origin,
        .handle = p->row.handle,
        .id = p->row.id,
        .options = &p->options,
    };

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    who.tenant = c->who.tenant; /* the local admin acts in the tenant that it has named */
    args.http =
        api_stream(c, "application/x-ndjson", STR("Cache-Control: no-store\r\n"), QUEUE_MAX);
    replay_start(replays, &args);
}

/* It belongs to the caller.  It has the set-up of the recorded session: a template's limits and
 * profile hold for it too, and its bodies are kept likewise.  Nothing else is copied: no
 * credentials, no context values. */
static void fill_row(struct api_call *c, struct replaying *p)
{
    int64_t now = clock_life_ms();
    struct str more = STR_NONE;

    random_uuid7(p->id);
    token_handle(p->handle);
    if (p->options.against.p) {
        struct js_writer w;
        struct buf out;
        buf_init(&out, 8192);
        js_begin(&w, &out);
        js_object(&w);
        js_kv_string(&w, "against", p->options.against);
        js_object_end(&w);
        more = arena_dup(c->mem, buf_str(&out));
        buf_release(&out);
    }
    p->row = (struct session_row){
        .id = str_of(p->id),
        .handle = str_of(p->handle),
        .tenant = c->who.tenant,
        .owner = c->who.owner,
        .user_id = c->who.user_id,
        .edge_mcp_id = p->origin.edge_mcp_id,
        .client_name = STR("holdfast replay"),
        .client_version = STR(HOLDFAST_VERSION),
        .status = SESSION_ACTIVE,
        .origin = ORIGIN_REST,
        .initialized = true,
        .counted = true,
        .carrier = STR("rest"),
        .setup = session_setup_for_copy(p->origin.setup, c->mem),
        .toolsets = p->origin.toolsets,
        .lineage = lineage_write(LINEAGE_REPLAY, p->origin.id, more, c->mem),
        .created_ms = now,
        .last_activity_ms = now,
        .expires_ms = now + api_default_ttl_ms(c),
        .version = 1,
    };
}

static void create(struct api_call *c, struct replaying *p)
{
    const struct replay_options *o = &p->options;

    fill_row(c, p);
    p->event = (struct event_row){
        .tenant = c->who.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_dup(c->mem, p->origin.owner),
        .session_id = p->origin.id,
        .method = STR("session/replay"),
        .outcome = STR("ok"),
        .error = arena_printf(c->mem, "by %.*s, in session %s%s%.*s%s", STR_ARG(c->who.owner),
                              p->id, o->against.p ? ", against " : "", STR_ARG(o->against),
                              o->writes ? ", with writes" : ""),
        .body_len = -1,
    };
    c->reg = (struct registry_call){
        .who = &c->who, .mem = c->mem, .event = &p->event, .done = on_created, .user = c};
    registry_create(c->sv->registry, &c->reg, &p->row, api_max_sessions(c));
}

static void on_origin(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    struct replaying *p = c->args;

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return;
    }
    p->origin = session_row_dup(reg->row, c->mem);
    if (check_server(c, p->options.against) && check_state(c))
        create(c, p);
}

void api_replay_session(struct api_call *c)
{
    struct replaying *p = arena_new_of(c->mem, struct replaying);

    c->args = p;
    if (c->doc.n && !api_bind(c, js_root(&c->doc), &body_replay, &p->options, NULL, NULL))
        return;
    if (!api_own_tenant(c) || !check_options(c, &p->options) || !check_state(c))
        return;
    api_session(c, on_origin);
    if (registry_get(c->sv->registry, &c->reg))
        on_origin(&c->reg);
}
