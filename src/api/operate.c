/* SPDX-License-Identifier: Apache-2.0 */
/* /healthz, /readyz, /metrics.  Gauges that mirror the state of other parts are filled at each
 * scrape, so the request path does not update them.  A scrape waits at most SESSION_GAUGES_MS for
 * the gauges of the store.  /metrics is for the roles admin and auditor.  In the tenant `default`
 * they see the metrics of every tenant; in another tenant they see no other tenant's metrics. */
#include "api/plain.h"

#include "api/api.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/metric.h"
#include "json/write.h"
#include "session/session_gauges.h"
#include "store/database.h"
#include "store/lanes.h"
#include "upstream/upstream.h"

#include <sys/statvfs.h>

static struct metric *in_flight, *waiting, *links, *resident, *upstream_up, *degraded, *requests,
    *failures, *queues, *stall, *log_lost, *batches, *disk;

void operate_start(struct api_services *sv unused_arg)
{
    in_flight =
        metric_register(METRIC_GAUGE, "holdfast_calls_in_flight", "Calls under way.", "", 1);
    waiting = metric_register(METRIC_GAUGE, "holdfast_requests_in_flight",
                              "Requests under way whose client is waiting.", "", 1);
    links = metric_register(METRIC_GAUGE, "holdfast_upstream_links",
                            "Live children and remote sessions.", "", 1);
    resident = metric_register(METRIC_GAUGE, "holdfast_sessions_resident",
                               "Sessions and transports held in memory.", "", 1);
    upstream_up = metric_register(METRIC_GAUGE, "holdfast_upstream_up",
                                  "1 up, 0 down, -1 not used yet.", "server", 256);
    degraded = metric_register(METRIC_GAUGE, "holdfast_upstream_degraded",
                               "1 for a server that answers, but not always.", "server", 256);
    requests = metric_register(METRIC_COUNTER, "holdfast_upstream_requests_total",
                               "Requests to a server, over all starts.", "server", 256);
    failures = metric_register(METRIC_COUNTER, "holdfast_upstream_failures_total",
                               "Starts and requests that failed, over all starts.", "server", 256);
    queues = metric_register(METRIC_GAUGE, "holdfast_lane_queue", "Jobs waiting for a store lane.",
                             "lane", 4);
    stall = metric_register(METRIC_GAUGE, "holdfast_loop_stall_microseconds",
                            "Longest turn of the loop since the last scrape.", "", 1);
    log_lost =
        metric_register(METRIC_GAUGE, "holdfast_log_lines_dropped", "Log lines dropped.", "", 1);
    batches = metric_register(METRIC_GAUGE, "holdfast_store_writes",
                              "Batches, ops and failures of the write lane.", "what", 4);
    disk = metric_register(METRIC_GAUGE, "holdfast_data_free_bytes",
                           "Free bytes of the file system of the data directory.", "", 1);
}

/* If the file system cannot be examined, the gauge keeps its value. */
static void set_disk(struct str data_dir)
{
    struct statvfs fs;

    if (data_dir.p && statvfs(data_dir.p, &fs) == 0)
        metric_set(metric_cell(disk, NULL, 0), (int64_t)fs.f_bavail * (int64_t)fs.f_frsize);
}

static void set(struct metric *m, const char *label, int64_t value)
{
    struct str labels[] = {str_of(label)};
    metric_set(metric_cell(m, labels, label ? 1 : 0), value);
}

static void set_upstream(void *arg unused_arg, struct upstream *u)
{
    struct str labels[] = {upstream_name(u)};
    struct upstream_health h = upstream_health(u);

    metric_set(metric_cell(upstream_up, labels, 1), h.state == HEALTH_DOWN      ? 0
                                                    : h.state == HEALTH_UNKNOWN ? -1
                                                                                : 1);
    metric_set(metric_cell(degraded, labels, 1), h.state == HEALTH_DEGRADED);
    metric_set(metric_cell(requests, labels, 1), h.calls);
    metric_set(metric_cell(failures, labels, 1), h.failures);
}

static void fill(struct api_services *sv)
{
    struct lane_stats lanes;
    lanes_stats(sv->lanes, &lanes);
    set(in_flight, NULL, lanes.in_flight);
    set(waiting, NULL, sv->front->under_way);
    set(links, NULL, upstreams_links(sv->upstreams));
    set(resident, NULL, sessions_resident(sv->sessions));
    set(queues, "write", (int64_t)lanes.write_queue);
    set(queues, "lookup", (int64_t)lanes.lookup_queue);
    set(queues, "query", (int64_t)lanes.query_queue);
    set(batches, "batches", (int64_t)lanes.batches);
    set(batches, "ops", (int64_t)lanes.ops);
    set(batches, "failures", (int64_t)lanes.failures);
    set(stall, NULL, loop_take_stall_us(sv->loop));
    set(log_lost, NULL, (int64_t)log_dropped());
    set_disk(sv->data_dir);
    upstreams_each(sv->upstreams, set_upstream, NULL);
}

/* A scrape that waits for the gauges of the store. */
struct scrape {
    struct gauges_wait wait;
    struct api_services *sv;
    struct http_request *http;
    struct str tenant; /* of the caller */
};

static void show_metrics(struct api_services *sv, struct http_request *r, struct str tenant)
{
    struct buf out;

    fill(sv);
    buf_init(&out, 16u * 1024 * 1024);
    if (str_eq(tenant, STR("default")))
        metric_write(&out);
    else
        metric_write_of(&out, STR("tenant_id"), tenant);
    http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", STR_NONE, buf_str(&out));
    buf_release(&out);
}

static void on_gauges(struct gauges_wait *w)
{
    struct scrape *scrape = container_of(w, struct scrape, wait);
    show_metrics(scrape->sv, scrape->http, scrape->tenant);
}

static void on_scrape_gone(struct http_request *r)
{
    struct scrape *scrape = r->user;
    gauges_wait_cancel(&scrape->wait);
    http_request_done(r);
}

void operate_metrics(void *arg, struct http_request *r, struct caller *caller)
{
    struct api_services *sv = arg;
    struct scrape *scrape = arena_new_of(r->mem, struct scrape);

    *scrape = (struct scrape){
        .wait = {.done = on_gauges}, .sv = sv, .http = r, .tenant = caller->who.tenant};
    if (session_gauges_refresh(sv->gauges, sv->front->config, &scrape->wait)) {
        show_metrics(sv, r, caller->who.tenant);
        return;
    }
    r->user = scrape;
    r->on_abort = on_scrape_gone;
}

void operate_healthz(void *arg unused_arg, struct http_request *r, struct caller *caller unused_arg)
{
    http_reply(r, 200, "application/json", STR_NONE, STR("{\"status\":\"ok\"}\n"));
}

/* With `auth: required`, the answer leaves `reason` out: the caller is not authenticated. */
static void refuse_unready(struct api_services *sv, struct http_request *r, struct str status,
                           const char *reason)
{
    struct js_writer w;
    struct buf out;
    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "status", status);
    if (!sv->front->config->auth_required)
        js_kv_string(&w, "reason", str_of(reason));
    js_object_end(&w);
    buf_addc(&out, '\n');
    http_reply(r, 503, "application/json", STR_NONE, buf_str(&out));
    buf_release(&out);
}

/* /readyz needs no credential.  With `auth: required`, only the log says which database failed, and
 * why. */
static void refuse_unhealthy(struct api_services *sv, struct http_request *r)
{
    struct error why;
    lanes_why(sv->lanes, &why);
    refuse_unready(sv, r, STR("the database cannot be written; see the log of Holdfast"), why.text);
}

struct ready_report {
    struct js_writer w;
    int64_t in_state[HEALTH_DOWN + 1];
};

static void write_server(void *arg, struct upstream *u)
{
    struct ready_report *t = arg;
    struct upstream_health h = upstream_health(u);

    js_key(&t->w, upstream_name(u));
    js_object(&t->w);
    js_kv_string(&t->w, "state", str_of(health_state_name(h.state)));
    if (h.reason[0])
        js_kv_string(&t->w, "reason", str_of(h.reason));
    js_object_end(&t->w);
}

static void count_server(void *arg, struct upstream *u)
{
    ((struct ready_report *)arg)->in_state[upstream_health(u).state]++;
}

static void write_warning(struct api_services *sv, struct js_writer *w)
{
    struct metric *wal = metric_register(METRIC_GAUGE, SQ_WAL_METRIC, SQ_WAL_HELP, "", 1);
    int64_t bound = fault_hits("readyz.wal_bound") ? 1 : SQ_WAL_BOUND;
    if (!sv->front->config->auth_required && metric_value(metric_cell(wal, NULL, 0)) >= bound)
        js_kv_string(w, "warning",
                     STR("the WAL of the database grows, because a reader keeps a transaction "
                         "open; end programs that read holdfast.db"));
}

/* The answer has the state of each server by name; with `auth: required`, only the number of
 * servers in each state.  The last error of a server is shown by `holdfast servers` alone. */
static void send_ready(struct api_services *sv, struct http_request *r)
{
    struct ready_report t = {.in_state = {0}};
    struct buf out;

    buf_init(&out, 1024 * 1024);
    js_begin(&t.w, &out);
    js_object(&t.w);
    js_kv_string(&t.w, "status", STR("ready"));
    write_warning(sv, &t.w);
    js_key(&t.w, STR("servers"));
    js_object(&t.w);
    if (!sv->front->config->auth_required)
        upstreams_each(sv->upstreams, write_server, &t);
    else
        upstreams_each(sv->upstreams, count_server, &t);
    for (int s = 0; sv->front->config->auth_required && s <= HEALTH_DOWN; s++)
        js_kv_int(&t.w, health_state_name(s), t.in_state[s]);
    js_object_end(&t.w);
    api_write_ready(sv, &t.w);
    js_object_end(&t.w);
    buf_addc(&out, '\n');
    http_reply(r, 200, "application/json", STR_NONE, buf_str(&out));
    buf_release(&out);
}

void operate_readyz(void *arg, struct http_request *r, struct caller *caller unused_arg)
{
    struct api_services *sv = arg;
    struct error why;

    if (sv->front->draining)
        http_reply(r, 503, "application/json", STR_NONE, STR("{\"status\":\"stopping\"}\n"));
    else if (!lanes_healthy(sv->lanes))
        refuse_unhealthy(sv, r);
    else if (lanes_lack_room(sv->lanes, &why))
        refuse_unready(sv, r, STR("the disk is nearly full, so new calls are refused; see the log"),
                       why.text);
    else if (!upstreams_can_start(sv->upstreams))
        refuse_unready(sv, r, STR("servers run by command cannot be started; see the log"),
                       "the keeper process ended and could not be replaced yet; if this lasts, "
                       "restart Holdfast");
    else
        send_ready(sv, r);
}
