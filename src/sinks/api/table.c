/* SPDX-License-Identifier: Apache-2.0 */
/* The states of the sinks: GET /api/v1/sinks on the unix socket, and a member of /readyz.  A sink that
 * fails does not make the node unready: every call still works. */
#include "sinks/api/sinks_api.h"

#include "api/job.h"
#include "front/front.h"
#include "session/session_json.h"
#include "sinks/sinks.h"

#define MAX_BYTES (256u * 1024)

static const char *const type_names[] = {"file", "webhook", "syslog"};

static void write_sink(void *arg, const struct sink_status *s)
{
    struct js_writer *w = arg;

    js_object(w);
    js_kv_string(w, "name", s->name);
    js_kv_string(w, "receiver", str_of(type_names[s->type]));
    js_kv_string(w, "state", str_of(sink_state_name(s->state)));
    if (s->state == SINK_FAILING)
        js_kv_string(w, "reason", str_of(s->why));
    js_kv_int(w, "delivered", (int64_t)s->delivered);
    js_kv_int(w, "failures", (int64_t)s->failures);
    js_kv_int(w, "lag_ms", s->lag_ms);
    js_kv_time(w, "last_delivery_at", s->last_delivery_ms);
    js_object_end(w);
}

static void api_list_sinks(struct api_call *c)
{
    struct api_job *j = api_job_new(sizeof(*j), MAX_BYTES, c);
    struct js_writer w;

    js_begin(&w, &j->out);
    js_object(&w);
    js_key(&w, STR("sinks"));
    js_array(&w);
    if (c->sv->sinks)
        sinks_each(c->sv->sinks, write_sink, &w);
    js_array_end(&w);
    js_object_end(&w);
    api_job_end(j, 200, STR_NONE);
}

/* /readyz: by name, or with `auth: required` the number of sinks in each state. */

struct ready_report {
    struct js_writer *w;
    int64_t in_state[SINK_FAILING + 1];
};

static void write_state(void *arg, const struct sink_status *s)
{
    struct ready_report *t = arg;

    js_key(t->w, s->name);
    js_object(t->w);
    js_kv_string(t->w, "state", str_of(sink_state_name(s->state)));
    if (s->state == SINK_FAILING)
        js_kv_string(t->w, "reason", str_of(s->why));
    js_kv_int(t->w, "lag_ms", s->lag_ms);
    js_object_end(t->w);
}

static void count_state(void *arg, const struct sink_status *s)
{
    ((struct ready_report *)arg)->in_state[s->state]++;
}

static void write_ready(struct api_services *sv, struct js_writer *w)
{
    bool by_name = !sv->front->config->auth_required;
    struct ready_report t = {.w = w};

    if (!sv->sinks || !sv->front->config->n_sinks)
        return;
    js_key(w, STR("sinks"));
    js_object(w);
    sinks_each(sv->sinks, by_name ? write_state : count_state, &t);
    for (int s = 0; !by_name && s <= SINK_FAILING; s++)
        js_kv_int(w, sink_state_name((enum sink_state)s), t.in_state[s]);
    js_object_end(w);
}

static const struct api_param no_params[] = {{0}};
static const struct api_answer list_answers[] = {
    {200, "SinkList", "The sinks in the order of the configuration."}, {0}};

static const char *const types[] = {"file", "webhook", "syslog", NULL};
static const char *const states[] = {"starting", "standby", "sending", "failing", NULL};
static const struct api_member sink_members[] = {
    {"name", "string", NULL, true, NULL, NULL, "Name of the sink."},
    {"receiver", "string", NULL, true, NULL, types, "Receiver."},
    {"state", "string", NULL, true, NULL, states,
     "standby: another node sends. failing: the receiver did not take the last batch."},
    {"reason", "string", NULL, false, NULL, NULL, "Why it fails."},
    {"delivered", "integer", NULL, true, NULL, NULL, "Events that this process delivered."},
    {"failures", "integer", NULL, true, NULL, NULL, "Batches that were not taken, each try."},
    {"lag_ms", "integer", NULL, true, NULL, NULL, "Age of the oldest event that waits for it."},
    {"last_delivery_at", "string", NULL, false, "date-time", NULL, "Last delivery."},
    {0},
};
static const struct api_member list_members[] = {
    {"sinks", "array", "Sink", true, NULL, NULL, "The sinks."}, {0}};
static const struct api_schema schemas[] = {
    {"Sink", sink_members, "A receiver of the events of the audit, as this node sees it."},
    {"SinkList", list_members, "All sinks."},
    {0},
};

static const struct api_operation operations[] = {
    {.method = "GET",
     .pattern = "/api/v1/sinks",
     .id = "listSinks",
     .access = API_LOCAL,
     .run = api_list_sinks,
     .summary = "Lists the sinks and their states. Only on the unix socket.",
     .params = no_params,
     .answers = list_answers},
    {0},
};

static const struct api_member ready_members[] = {
    {"sinks", "object", NULL, false, NULL, NULL,
     "On /readyz, if sinks are configured: the state of each sink (starting, standby, sending, "
     "failing), by name or counted like servers. They do not affect readiness."},
    {0},
};

static const struct api_example examples[] = {
    {"lag_ms", "120"},
    {"last_delivery_at", "\"2026-11-15T09:02:03.456Z\""},
    {0},
};

const struct api_part sinks_api = {
    .operations = operations,
    .after = "removeSecret",
    .schemas = schemas,
    .after_schema = "AuditHoldList",
    .examples = examples,
    .write_ready = write_ready,
    .ready_members = ready_members,
};
