/* SPDX-License-Identifier: Apache-2.0 */
/* /servers/{name}/restart and /servers/{name}/logs: both concern processes, so they need the daemon. */
#include "api/job.h"

#include "base/clock.h"
#include "base/log.h"
#include "identity/scopes.h"
#include "store/lanes.h"
#include "upstream/stderr_log.h"
#include "upstream/upstream.h"

#define MAX_BYTES (1024u * 1024)
#define LINES_DEFAULT 50

/* NULL: the refusal was sent.  A server outside the caller's scopes looks like an unknown one. */
static struct upstream *server_of(struct api_call *c)
{
    struct str name = c->match.params[0];
    struct upstream *u = NULL;

    if (!c->sv->upstreams) {
        api_refuse(c, ERR_UNREACHABLE,
                   "no server runs inside a command; start Holdfast first (`holdfast up`)");
        return NULL;
    }
    if (principal_may_use_server(&c->who, name))
        u = upstreams_find(c->sv->upstreams, name);
    if (!u)
        api_refuse(c, ERR_NOT_FOUND, "there is no such server; see GET /api/v1/servers");
    return u;
}

/* Restart: the event is durable before a process ends. */

struct restart_job {
    struct api_job j;
    struct write_job write;
    struct store_op op;
    struct event_row event;
};

static void on_recorded(struct write_job *job)
{
    struct restart_job *r = container_of(job, struct restart_job, write);
    struct str name = r->j.call->match.params[0];
    struct upstream *u = upstreams_find(r->j.call->sv->upstreams, name);
    struct error err;

    if (!job->ok) {
        api_job_refuse(&r->j, &job->err);
        return;
    }
    if (!u) /* removed from the configuration meanwhile */
        error_set(&err, ERR_NOT_FOUND, "there is no such server; see GET /api/v1/servers");
    if (!u || !upstream_restart(u, &err)) {
        api_job_refuse(&r->j, &err);
        return;
    }
    log_info("a server is restarted", LS("server", name));
    api_job_end(&r->j, 202, STR_NONE);
}

void api_restart_server(struct api_call *c)
{
    struct upstream *u = server_of(c);

    if (!u)
        return;
    if (upstream_config(u)->kind == SERVER_BUILTIN) {
        api_refuse(c, ERR_BAD_INPUT,
                   "%.*s is part of Holdfast and has no process; restart Holdfast instead",
                   STR_ARG(upstream_name(u)));
        return;
    }
    struct restart_job *r = api_job_new(sizeof(*r), MAX_BYTES, c);
    r->event = (struct event_row){
        .tenant = c->who.tenant.n ? c->who.tenant : STR("default"),
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = c->who.owner,
        .server = c->match.params[0],
        .method = STR("server/restart"),
        .outcome = STR("ok"),
        .error = api_by(c, r->j.mem),
        .body_len = -1,
    };
    r->op = (struct store_op){.kind = OP_EVENT_APPEND, .event = &r->event};
    r->write = (struct write_job){.ops = &r->op, .n = 1, .done = on_recorded};
    if (!lane_write(c->sv->lanes, &r->write))
        api_job_busy(&r->j);
}

/* Logs. */

static void write_line(void *arg, const struct stderr_line *line)
{
    struct js_writer *w = arg;

    js_object(w);
    js_kv_time(w, "at", line->at_ms);
    js_kv_int(w, "number", (int64_t)line->number);
    if (line->session.n)
        js_kv_string(w, "session", line->session);
    js_kv_string(w, "text", line->text);
    js_object_end(w);
}

void api_list_server_logs(struct api_call *c)
{
    struct upstream *u = server_of(c);
    int64_t limit, after;
    struct js_writer w;

    if (!u || !api_query_number(c, "limit", 1, STDERR_LOG_LINES, LINES_DEFAULT, &limit) ||
        !api_query_number(c, "after", 0, INT64_MAX, 0, &after))
        return;
    struct api_job *j = api_job_new(sizeof(*j), MAX_BYTES, c);
    js_begin(&w, &j->out);
    js_object(&w);
    js_kv_string(&w, "server", upstream_name(u));
    js_key(&w, STR("lines"));
    js_array(&w);
    stderr_log_each(upstream_stderr(u), (size_t)limit, (uint64_t)after, write_line, &w);
    js_array_end(&w);
    js_object_end(&w);
    api_job_end(j, 200, STR_NONE);
}
