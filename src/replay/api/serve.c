/* SPDX-License-Identifier: Apache-2.0 */
/* Serving a recording from this Holdfast:
 *
 *   find the session → query lane: [ next page into the mock ]… → write lane: the event → served
 *
 * What is served belongs to the caller alone, also when the caller is an administrator and the
 * session is another's. */
#include "replay/api/table.h"

#include "api/job.h"
#include "base/clock.h"
#include "identity/scopes.h"
#include "json/write.h"
#include "replay/serve.h"
#include "session/resident.h"

#define PAGE 100
#define MAX_BYTES ((size_t)8 << 20)
#define NOT_SERVED                                                                                 \
    "this session is not served for you; POST here serves it, on the node that answers"

struct serving {
    struct api_job j;
    struct serve_options options;
    struct served_room room;
    struct session_row origin;
    struct recording recording;
    struct mock *mock;
    struct read_job read;
    struct event_row event;
    struct store_op op;
    struct write_job write;
};

/* The answer. */

static void write_servers(struct js_writer *w, const struct served *s, struct str url,
                          struct arena *mem)
{
    js_key(w, STR("servers"));
    js_array(w);
    for (size_t i = 0; i < s->servers->n; i++) {
        const struct mock_server *m = &s->servers->list[i];
        js_object(w);
        js_kv_string(w, "name", m->name);
        js_kv_string(w, "path", arena_printf(mem, "/mcp/%.*s", STR_ARG(s->names[i])));
        if (url.p)
            js_kv_string(w, "url",
                         arena_printf(mem, "%.*s/mcp/%.*s", STR_ARG(url), STR_ARG(s->names[i])));
        js_kv_int(w, "tools", (int64_t)m->n_tools);
        js_kv_int(w, "calls", m->calls);
        js_object_end(w);
    }
    js_array_end(w);
}

static void write_served(struct buf *out, const struct served *s, struct str handle,
                         const struct api_call *c, struct arena *mem)
{
    struct js_writer w;
    int64_t lacking = 0;

    for (size_t i = 0; i < s->mock->n_tools; i++)
        lacking += s->mock->tools[i].lacking;
    js_begin(&w, out);
    js_object(&w);
    js_kv_string(&w, "session_id", handle);
    write_servers(&w, s, c->sv->url, mem);
    js_kv_int(&w, "recorded", (int64_t)s->mock->n);
    js_kv_int(&w, "lacking", lacking);
    js_kv_time(&w, "expires_at", s->expires_ms);
    js_key(&w, STR("calls"));
    js_object(&w);
    js_kv_int(&w, "exact", s->counts[MOCK_EXACT]);
    js_kv_int(&w, "again", s->counts[MOCK_AGAIN]);
    js_kv_int(&w, "in_order", s->counts[MOCK_IN_ORDER]);
    js_kv_int(&w, "unknown", s->counts[MOCK_UNKNOWN]);
    js_object_end(&w);
    js_object_end(&w);
}

/* For whom: the local admin acts in the tenant that it has named. */
static struct principal caller_of(const struct api_call *c)
{
    struct principal who = c->caller.who;

    who.tenant = c->who.tenant;
    return who;
}

/* Beginning. */

static void refuse(struct serving *v, enum err_code code, const char *text)
{
    struct error err;

    served_give_room(&v->room);
    mock_free(v->mock);
    error_set(&err, code, "%s", text);
    api_job_refuse(&v->j, &err);
}

static void on_written(struct write_job *job)
{
    struct serving *v = container_of(job, struct serving, write);
    struct api_call *c = v->j.call;
    struct principal who = caller_of(c);

    if (!job->ok) {
        refuse(v, job->err.code, job->err.text);
    } else if (served_find(c->sv->replays, &who, v->origin.id)) {
        refuse(v, ERR_CONFLICT, "another request has begun to serve this session just now");
    } else {
        served_give_room(&v->room);
        const struct served *s =
            served_begin(c->sv->replays, &who, v->origin.id, v->mock, v->options.ttl_ms);
        write_served(&v->j.out, s, v->origin.handle, c, v->j.mem);
        api_job_end(&v->j, 201,
                    arena_printf(v->j.mem, "Location: /api/v1/sessions/%.*s/replay/serve\r\n",
                                 STR_ARG(v->origin.id)));
    }
}

static void write_event(struct serving *v)
{
    const struct api_call *c = v->j.call;

    v->event = (struct event_row){
        .tenant = v->origin.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = v->origin.owner,
        .session_id = v->origin.id,
        .method = STR("session/serve"),
        .outcome = STR("ok"),
        .error = arena_printf(v->j.mem, "by %.*s, for %lld s", STR_ARG(c->who.owner),
                              (long long)v->options.ttl_ms / 1000),
        .body_len = -1,
    };
    v->op = (struct store_op){.kind = OP_EVENT_APPEND, .event = &v->event};
    v->write = (struct write_job){.ops = &v->op, .n = 1, .done = on_written};
    if (!lane_write(v->j.call->sv->lanes, &v->write))
        refuse(v, ERR_UNAVAILABLE, "too many requests are waiting for the store; try again");
}

/* Reading. */

static bool run_page(struct read_job *job, struct store *store)
{
    struct serving *v = container_of(job, struct serving, read);
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct recorded_call *calls = NULL;
    size_t n = 0;
    bool ok = recording_page(&v->recording, store, PAGE, mem, &calls, &n, &job->err);

    for (size_t i = 0; ok && i < n; i++)
        ok = !mock_wants(v->options.only, v->options.n_only, &calls[i]) ||
             mock_add(v->mock, &calls[i], &job->err);
    arena_free(mem);
    if (ok && v->recording.at_end)
        mock_define(v->mock);
    return ok;
}

static void on_page(struct read_job *job);

static void read_page(struct serving *v)
{
    v->read = (struct read_job){.run = run_page, .done = on_page};
    if (!lane_query(v->j.call->sv->lanes, &v->read))
        refuse(v, ERR_UNAVAILABLE, "too many requests are waiting for the store; try again");
}

static void on_page(struct read_job *job)
{
    struct serving *v = container_of(job, struct serving, read);

    if (!job->ok)
        refuse(v, job->err.code, job->err.text);
    else if (!v->recording.at_end)
        read_page(v);
    else if (!v->mock->n_tools)
        refuse(v, ERR_CONFLICT,
               "the recording has no such call of a tool, so there is nothing to serve");
    else
        write_event(v);
}

static void on_origin(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    struct serving *v = c->args;
    struct principal who = caller_of(c);

    if (reg->result != REGISTRY_OK) {
        served_give_room(&v->room);
        api_refuse_result(c);
        api_job_drop(&v->j);
        return;
    }
    v->origin = session_row_dup(reg->row, v->j.mem);
    if (served_find(c->sv->replays, &who, v->origin.id)) {
        refuse(v, ERR_CONFLICT, "this session is served already; GET shows where, DELETE ends it");
        return;
    }
    v->mock = mock_new(SERVED_BYTES);
    recording_begin(&v->recording, &v->origin, clock_wall_ms());
    read_page(v);
}

/* False: the refusal was sent. */
static bool is_running(struct api_call *c)
{
    if (c->sv->replays)
        return true;
    api_refuse(
        c, ERR_UNAVAILABLE,
        "a running Holdfast serves recordings; start it with `holdfast up`, or serve this one "
        "with `holdfast sessions replay ID --serve`");
    return false;
}

void api_serve_replay(struct api_call *c)
{
    struct serving *v = api_job_new(sizeof(*v), MAX_BYTES, c);
    struct error err;

    c->args = v;
    v->options.ttl_ms = SERVED_TTL_MS;
    if ((c->doc.n && !api_bind(c, js_root(&c->doc), &body_serve, &v->options, NULL, NULL)) ||
        !api_own_tenant(c) || !is_running(c)) {
        api_job_drop(&v->j);
        return;
    }
    if (!principal_may_use_server(&c->who, STR("replay-00000000-x"))) {
        refuse(v, ERR_DENIED,
               "this key is limited to some servers, and would not reach the one that is served; a "
               "key that may also use replay-* does");
        return;
    }
    if (!served_take_room(c->sv->replays, c->who.tenant, &v->room, &err)) {
        refuse(v, err.code, err.text);
        return;
    }
    api_session(c, on_origin);
    if (registry_get(c->sv->registry, &c->reg))
        on_origin(&c->reg);
}

/* Looking and ending. */

/* NULL: the refusal was sent. */
static struct served *find(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    struct principal who = caller_of(c);

    if (reg->result != REGISTRY_OK) {
        api_refuse_result(c);
        return NULL;
    }
    struct served *s = served_find(c->sv->replays, &who, reg->row->id);
    if (!s)
        api_refuse(c, ERR_NOT_FOUND, NOT_SERVED);
    return s;
}

static void on_look(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    const struct served *s = find(reg);
    struct buf out;

    if (!s)
        return;
    buf_init(&out, MAX_BYTES);
    write_served(&out, s, reg->row->handle, c, c->mem);
    struct str body = arena_dup(c->mem, buf_str(&out));
    buf_release(&out);
    api_reply(c, 200, STR_NONE, body);
}

static void on_end(struct registry_call *reg)
{
    struct api_call *c = api_of(reg);
    struct served *s = find(reg);

    if (!s)
        return;
    served_end(s);
    api_reply(c, 204, STR_NONE, STR_NONE);
}

static void with_session(struct api_call *c, void (*done)(struct registry_call *reg))
{
    if (!api_own_tenant(c) || !is_running(c))
        return;
    api_session(c, done);
    if (registry_get(c->sv->registry, &c->reg))
        done(&c->reg);
}

void api_get_served_replay(struct api_call *c)
{
    with_session(c, on_look);
}

void api_end_served_replay(struct api_call *c)
{
    with_session(c, on_end);
}
