/* SPDX-License-Identifier: Apache-2.0 */
/* The list, diff and approval of tools, for `holdfast servers` beside a running Holdfast. */
#include "api/control_job.h"

#include "base/log.h"
#include "json/read.h"
#include "pins/pins.h"
#include "pins/tool_json.h"

#define MAX_BYTES (32u * 1024 * 1024)

struct tools_job {
    struct control_job c;
    struct read_job read;
    struct tool_filter filter;
    struct tool_row *shown; /* the tool of a diff; NULL: this is a list */
    struct pins_approval approval;
};

static bool run_tools(struct read_job *job, struct store *store)
{
    struct tools_job *j = container_of(job, struct tools_job, read);
    struct tool_row *rows = NULL;
    size_t n = 0;

    if (!store_tools_page(store, &j->filter, j->filter.name.p ? 1 : STORE_PAGE_MAX, j->c.mem, &rows,
                          &n, &job->err))
        return false;
    if (j->filter.name.p && !n)
        return error_set(&job->err, ERR_NOT_FOUND,
                         "no such tool is known; see `holdfast servers show NAME`");
    if (j->filter.name.p) {
        tool_diff_write(&j->c.out, rows);
        j->shown = rows;
    } else {
        tools_write(&j->c.out, rows, n, STORE_PAGE_MAX);
    }
    return true;
}

static void on_tools(struct read_job *job)
{
    struct tools_job *j = container_of(job, struct tools_job, read);

    if (job->ok && j->shown)
        pins_shown(j->c.sv->pins, j->shown);
    control_job_end(&j->c, job->ok ? NULL : &job->err);
}

static void ask(struct tools_job *j)
{
    j->read = (struct read_job){.run = run_tools, .done = on_tools};
    if (!lane_query(j->c.sv->lanes, &j->read))
        control_job_busy(&j->c);
}

/* ?server= selects one server; ?after_server=&after= select the next page. */
void control_tools(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct tools_job *j = control_job_new(sizeof(*j), MAX_BYTES, arg, r);

    j->filter.server = control_query(r, STR("server"), j->c.mem);
    j->filter.after_server = control_query(r, STR("after_server"), j->c.mem);
    j->filter.after = control_query(r, STR("after"), j->c.mem);
    ask(j);
}

/* ?server=&tool= */
void control_tool_diff(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct tools_job *j = control_job_new(sizeof(*j), MAX_BYTES, arg, r);
    struct error err;

    j->filter.server = control_query(r, STR("server"), j->c.mem);
    j->filter.name = control_query(r, STR("tool"), j->c.mem);
    j->filter.with_definitions = true;
    if (j->filter.server.p && j->filter.name.p) {
        ask(j);
        return;
    }
    error_set(&err, ERR_BAD_INPUT, "name ?server= and ?tool=");
    control_job_end(&j->c, &err);
}

static void on_approved(struct pins_approval *a, const struct error *err)
{
    struct tools_job *j = container_of(a, struct tools_job, approval);
    struct js_writer w;

    js_begin(&w, &j->c.out);
    js_object(&w);
    js_kv_string(&w, "server", a->server);
    js_kv_int(&w, "approved", a->approved);
    js_kv_int(&w, "left", a->left);
    js_kv_int(&w, "unseen", a->unseen);
    js_object_end(&w);
    control_job_end(&j->c, err);
}

/* Body: {"server":…,"tool":…,"digest":…}.  Without "tool", all tools of the server that differ from
 * their approved definitions. */
void control_approve(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct tools_job *j = control_job_new(sizeof(*j), MAX_BYTES, arg, r);
    struct pins_approval *a = &j->approval;
    struct js_doc doc;
    struct error err;

    if (!js_parse(r->body, &js_limits_request, j->c.mem, &doc, NULL)) {
        error_set(&err, ERR_BAD_INPUT, "the body is not JSON");
        control_job_end(&j->c, &err);
        return;
    }
    a->server =
        arena_dup(j->c.mem, js_text(&doc, js_get(&doc, js_root(&doc), STR("server")), j->c.mem));
    a->tool =
        arena_dup(j->c.mem, js_text(&doc, js_get(&doc, js_root(&doc), STR("tool")), j->c.mem));
    a->digest =
        arena_dup(j->c.mem, js_text(&doc, js_get(&doc, js_root(&doc), STR("digest")), j->c.mem));
    a->by = STR("local");
    a->done = on_approved;
    if (!pins_approve(j->c.sv->pins, a, &err))
        control_job_end(&j->c, &err);
}
