/* SPDX-License-Identifier: Apache-2.0 */
/* /system: the program itself, and the limits of the caller's tenant. */
#include "api/job.h"

#include "base/clock.h"
#include "config/limits.h"
#include "front/front.h"
#include "store/lanes.h"

#include <unistd.h>

#define MAX_BYTES (64u * 1024)

static void write_quota(struct js_writer *w, const char *name, struct limits limits)
{
    js_key(w, str_of(name));
    js_object(w);
    limits_write(w, &limits);
    js_object_end(w);
}

/* The limits in effect.  A member without a limit is left out. */
static void write_limits(struct js_writer *w, const struct api_call *c)
{
    static const struct limits none;

    js_key(w, STR("limits"));
    js_object(w);
    write_quota(w, "tenant", config_limits(c->config, c->who.tenant));
    write_quota(w, "key", config_key_limits(c->config, c->who.tenant, &none));
    js_kv_int(w, "max_sessions", api_max_sessions(c));
    js_kv_int(w, "body_bytes", (int64_t)c->config->limit_body);
    js_kv_int(w, "audit_body_bytes", (int64_t)c->config->limit_audit_body);
    js_object_end(w);
}

/* For the user who runs Holdfast. */
static void write_process(struct js_writer *w, const struct api_services *sv)
{
    const struct config *c = sv->front->config;
    char since[CLOCK_TEXT];

    js_kv_string(w, "database", sv->database);
    js_kv_string(w, "config", c->identity.path);
    if (!sv->started_ms)
        return;
    clock_format(sv->started_ms, since);
    js_kv_int(w, "pid", getpid());
    js_kv_string(w, "started_at", str_of(since));
    if (sv->url.p)
        js_kv_string(w, "url", sv->url);
    js_kv_string(w, "data_dir", sv->data_dir);
    js_kv_bool(w, "auth_required", c->auth_required);
}

void api_get_system(struct api_call *c)
{
    struct api_job *j = api_job_new(sizeof(*j), MAX_BYTES, c);
    const struct api_services *sv = c->sv;
    struct lane_stats lanes = {0};
    struct js_writer w;

    if (sv->lanes)
        lanes_stats(sv->lanes, &lanes);
    js_begin(&w, &j->out);
    js_object(&w);
    js_kv_string(&w, "version", STR(HOLDFAST_VERSION));
    js_kv_bool(&w, "stopping", sv->front->draining);
    js_kv_int(&w, "calls_in_flight", lanes.in_flight);
    js_kv_bool(&w, "store_healthy", sv->lanes && lanes_healthy(sv->lanes));
    if (api_is_local(c))
        write_process(&w, sv);
    write_limits(&w, c);
    js_object_end(&w);
    api_job_end(j, 200, STR_NONE);
}
