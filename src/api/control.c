/* SPDX-License-Identifier: Apache-2.0 */
/* Commands ask a running Holdfast for events and status over DATA/holdfast.sock.  The query lane
 * reads the pages of events, so a slow list never delays a call. */
#include "api/control_job.h"

#include "audit/event_json.h"
#include "audit/event_query.h"
#include "base/clock.h"
#include "call/call.h"
#include "health/health.h"
#include "json/write.h"

#define EVENTS_BYTES (256u * 1024 * 1024)
#define STATUS_BYTES (4u * 1024 * 1024) /* enough for a thousand servers with their last errors */

struct events_job {
    struct control_job c;
    struct read_job job;
    struct event_filter filter;
    unsigned limit;
};

static bool run_events(struct read_job *job, struct store *store)
{
    struct events_job *e = container_of(job, struct events_job, job);
    struct event_row *rows = NULL;
    size_t n = 0;
    int64_t scanned = 0;

    e->filter.ret_scanned = &scanned;
    if (!store_events_page(store, &e->filter, e->limit, e->c.mem, &rows, &n, &job->err))
        return false;
    events_to_json(rows, n, scanned, &e->c.out);
    return true;
}

static void events_done(struct read_job *job)
{
    control_job_end(&container_of(job, struct events_job, job)->c, job->ok ? NULL : &job->err);
}

void control_events(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct api_services *sv = arg;
    struct events_job *e = control_job_new(sizeof(*e), EVENTS_BYTES, sv, r);
    struct str query = r->head->query.p ? r->head->query : STR("");
    struct error err;

    if (!audit_events_query_parse(query, &e->filter, &e->limit, e->c.mem, &err)) {
        control_job_end(&e->c, &err);
        return;
    }
    e->job = (struct read_job){.run = run_events, .done = events_done};
    if (!lane_query(sv->lanes, &e->job))
        control_job_busy(&e->c);
}

static void write_note(void *arg, const char *note)
{
    js_string(arg, str_of(note));
}

static void write_upstream(void *arg, struct upstream *u)
{
    struct js_writer *w = arg;
    struct upstream_health h = upstream_health(u);
    struct catalog *c = upstream_known(u);
    js_object(w);
    js_kv_string(w, "name", upstream_name(u));
    health_write(w, &h);
    if (c)
        js_kv_int(w, "tools", (int64_t)c->lists[CATALOG_TOOLS].n);
    js_key(w, STR("notes"));
    js_array(w);
    if (c)
        catalog_each_note(c, write_note, w);
    js_array_end(w);
    js_object_end(w);
}

void control_status(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct api_services *sv = arg;
    struct js_writer w;
    struct buf out;

    buf_init(&out, STATUS_BYTES);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "version", STR(HOLDFAST_VERSION));
    js_kv_bool(&w, "stopping", sv->front->draining);
    js_kv_int(&w, "calls_in_flight", calls_in_flight(sv->calls));
    js_key(&w, STR("servers"));
    js_array(&w);
    upstreams_each(sv->upstreams, write_upstream, &w);
    js_array_end(&w);
    js_object_end(&w);
    http_reply(r, 200, "application/json", STR_NONE, buf_str(&out));
    buf_release(&out);
}
