/* SPDX-License-Identifier: Apache-2.0 */
/* What commands ask a running Holdfast over DATA/holdfast.sock.  Pages run on the query lane, so a
 * slow list never delays a call. */
#include "rest/front.h"

#include "audit/event_json.h"
#include "audit/event_query.h"
#include "base/clock.h"
#include "json/write.h"

#include <stdlib.h>

struct events_job {
    struct read_job job;
    struct http_request *http;
    struct arena *mem;
    struct event_filter filter;
    unsigned limit;
    struct buf out;
    bool aborted;
};

static bool run_events(struct read_job *job, struct store *store)
{
    struct events_job *e = container_of(job, struct events_job, job);
    struct event_row *rows = NULL;
    size_t n = 0;

    if (!store_events_page(store, &e->filter, e->limit, e->mem, &rows, &n, &job->err))
        return false;
    events_to_json(rows, n, &e->out);
    return true;
}

static void events_done(struct read_job *job)
{
    struct events_job *e = container_of(job, struct events_job, job);
    if (e->aborted)
        http_request_done(e->http);
    else if (job->ok)
        http_reply(e->http, 200, "application/json", STR_NONE, buf_str(&e->out));
    else
        front_refuse(e->http, error_info(job->err.code)->http_status, STR_NONE, job->err.text);
    buf_release(&e->out);
    arena_free(e->mem);
    free(e);
}

static void on_abort(struct http_request *r)
{
    ((struct events_job *)r->user)->aborted = true;
}

void front_control_events(void *arg, struct http_request *r, const struct route_match *m unused_arg)
{
    struct services *sv = arg;
    struct events_job *e;
    struct error err;

    e = xcalloc(1, sizeof(*e));
    e->mem = arena_new(256u * 1024 * 1024);
    e->http = r;
    struct str query = r->head->query.p ? r->head->query : STR("");
    if (!audit_events_query_parse(query, &e->filter, &e->limit, e->mem, &err)) {
        front_refuse(r, 400, STR_NONE, err.text);
        arena_free(e->mem);
        free(e);
        return;
    }
    buf_init(&e->out, 64u * 1024 * 1024);
    r->user = e;
    r->on_abort = on_abort;
    e->job = (struct read_job){.run = run_events, .done = events_done};
    if (!lane_query(sv->lanes, &e->job)) {
        error_set(&e->job.err, ERR_UNAVAILABLE, "too many queries are waiting; try again shortly");
        events_done(&e->job);
    }
}

static void write_upstream(void *arg, struct upstream *u)
{
    struct js_writer *w = arg;
    js_object(w);
    js_kv_string(w, "name", upstream_name(u));
    js_kv_string(w, "state", str_of(upstream_state(u)));
    js_object_end(w);
}

void front_control_status(void *arg, struct http_request *r, const struct route_match *m unused_arg)
{
    struct services *sv = arg;
    struct js_writer w;
    struct buf out;

    buf_init(&out, 1024 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "version", STR(HOLDFAST_VERSION));
    js_kv_bool(&w, "stopping", sv->draining);
    js_kv_int(&w, "calls_in_flight", calls_in_flight(sv->calls));
    js_key(&w, STR("servers"));
    js_array(&w);
    upstreams_each(sv->upstreams, write_upstream, &w);
    js_array_end(&w);
    js_object_end(&w);
    http_reply(r, 200, "application/json", STR_NONE, buf_str(&out));
    buf_release(&out);
}
