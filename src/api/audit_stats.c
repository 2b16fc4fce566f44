/* SPDX-License-Identifier: Apache-2.0 */
/* /audit/stats: how much the audit holds, how fast it grows, and how long the disk lasts.  Every
 * number is a sum that the database keeps (store/sizes.h), so the answer costs the same however
 * large the record is.  The local admin also sees the database and its disk, which all tenants
 * share. */
#include "api/job.h"

#include "base/clock.h"
#include "config/config.h"
#include "front/front.h"
#include "retention/store/verbs.h"

#include <math.h>
#include <sys/statvfs.h>

#define MAX_BYTES (64u * 1024 * 1024)
#define DAY_MS (INT64_C(24) * 3600 * 1000)
/* Growth is that of this many days, the last of them today's. */
#define GROWTH_DAYS 7

struct stats_job {
    struct api_job j;
    struct read_job read;
    struct str tenant; /* absent: every tenant */
    struct str data_dir;
    int64_t reserve, now_ms;
    bool is_local;
    const struct config *config; /* of the call, which keeps it */
    struct removed_row *removed;
    size_t n_removed;
    double bytes, bytes_a_day; /* of all tenants of the answer */
    double room_to_grow; /* bytes that the rules allow in the end; INFINITY: no rule ends it */
};

/* A day at least, so that the first hour of a record does not pass for a day. */
static double days_of_growth(const struct stats_job *s, const struct audit_size_row *row)
{
    int64_t from_ms = (s->now_ms / DAY_MS - (GROWTH_DAYS - 1)) * DAY_MS;
    int64_t ms = s->now_ms - (row->first_ms > from_ms ? row->first_ms : from_ms);

    return ms > DAY_MS ? (double)ms / (double)DAY_MS : 1;
}

/* Bytes of the tenant once it has grown as far as its rules let it, at this growth. */
static double most_bytes(const struct audit_keep *rules, double event_bytes_a_day,
                         double body_bytes_a_day)
{
    double keep = (double)rules->keep_ms / (double)DAY_MS;
    double bodies = (double)rules->bodies_ms / (double)DAY_MS;
    double size = rules->max_size ? (double)rules->max_size : INFINITY;

    if (!rules->keep_ms && (event_bytes_a_day > 0 || !rules->bodies_ms))
        return size;
    if (!rules->bodies_ms || (rules->keep_ms && keep < bodies))
        bodies = keep;
    return fmin(size, event_bytes_a_day * keep + body_bytes_a_day * bodies);
}

static void note_rules(struct stats_job *s, const struct audit_keep *rules,
                       const struct audit_size_row *row, double days)
{
    double most = most_bytes(rules, (double)row->recent_event_bytes / days,
                             (double)row->recent_body_bytes / days);
    double bytes = (double)(row->event_bytes + row->body_bytes);

    if (most > bytes)
        s->room_to_grow += most - bytes;
}

static void write_rules(struct js_writer *w, const struct audit_keep *rules)
{
    js_key(w, STR("rules"));
    js_object(w);
    if (rules->keep_ms)
        js_kv_int(w, "keep_seconds", rules->keep_ms / 1000);
    if (rules->bodies_ms)
        js_kv_int(w, "bodies_seconds", rules->bodies_ms / 1000);
    if (rules->max_size)
        js_kv_int(w, "max_size_bytes", (int64_t)rules->max_size);
    js_object_end(w);
}

/* What the checkpoints of the tenant say. */
static void write_removed(const struct stats_job *s, struct js_writer *w, struct str tenant)
{
    int64_t events = 0, last_ms = 0;

    for (size_t i = 0; i < s->n_removed; i++) {
        const struct removed_row *r = &s->removed[i];
        if (!str_eq(r->tenant, tenant))
            continue;
        events += r->last_seq - r->first_seq + 1;
        last_ms = r->removed_ms > last_ms ? r->removed_ms : last_ms;
    }
    if (!events)
        return;
    js_kv_int(w, "removed_events", events);
    js_kv_time(w, "removed_at", last_ms);
}

static void write_tenant(struct stats_job *s, struct js_writer *w, const struct audit_size_row *row)
{
    int64_t bytes = row->event_bytes + row->body_bytes;
    double days = days_of_growth(s, row);
    double bytes_a_day = (double)(row->recent_event_bytes + row->recent_body_bytes) / days;
    struct audit_keep rules = config_audit_keep(s->config, row->tenant);

    s->bytes += (double)bytes;
    s->bytes_a_day += bytes_a_day;
    js_object(w);
    js_kv_string(w, "tenant", row->tenant);
    js_kv_int(w, "events", row->events);
    js_kv_int(w, "event_bytes", row->event_bytes);
    js_kv_int(w, "bodies", row->bodies);
    js_kv_int(w, "body_bytes", row->body_bytes);
    js_kv_int(w, "bytes", bytes);
    js_kv_int(w, "events_per_day", (int64_t)((double)row->recent_events / days));
    js_kv_int(w, "bytes_per_day", (int64_t)bytes_a_day);
    js_kv_time(w, "oldest_at", row->first_ms);
    js_kv_time(w, "newest_at", row->last_ms);
    write_rules(w, &rules);
    write_removed(s, w, row->tenant);
    note_rules(s, &rules, row, days);
    js_object_end(w);
}

static bool write_tenants(struct stats_job *s, struct js_writer *w, struct store *store,
                          struct error *err)
{
    int64_t since_ms = s->now_ms - (GROWTH_DAYS - 1) * DAY_MS;
    struct audit_size_row *rows = NULL;
    struct str after = STR_NONE;
    size_t n = 0;

    js_key(w, STR("tenants"));
    js_array(w);
    do {
        if (!store_audit_sizes(store, s->tenant, after, since_ms, STORE_PAGE_MAX, s->j.mem, &rows,
                               &n, err))
            return false;
        for (size_t i = 0; i < n; i++)
            write_tenant(s, w, &rows[i]);
        after = n ? rows[n - 1].tenant : STR_NONE;
    } while (n == STORE_PAGE_MAX && !s->tenant.p);
    js_array_end(w);
    return true;
}

static void write_database(struct js_writer *w, const struct database_size *size)
{
    js_key(w, STR("database"));
    js_object(w);
    js_kv_int(w, "bytes", size->bytes);
    if (size->is_file) {
        js_kv_int(w, "free_bytes", size->free_bytes);
        js_kv_int(w, "wal_bytes", size->wal_bytes);
    }
    js_object_end(w);
}

/* The file grows by less than the logical bytes, as far as it packs them. */
static double file_bytes_a_day(const struct stats_job *s, const struct database_size *size)
{
    double used = (double)(size->bytes - size->free_bytes);
    double ratio = s->bytes > 0 && used < s->bytes ? used / s->bytes : 1;

    return s->bytes_a_day * ratio;
}

static void write_disk(struct stats_job *s, struct js_writer *w, const struct database_size *size)
{
    struct statvfs fs;
    double growth = file_bytes_a_day(s, size);

    if (!size->is_file || !s->data_dir.p || statvfs(s->data_dir.p, &fs) != 0)
        return;
    int64_t left = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    double room = (double)(left - s->reserve + size->free_bytes);
    double ratio = s->bytes_a_day > 0 ? growth / s->bytes_a_day : 1;
    bool ends = growth >= 1 && s->room_to_grow * ratio > room;
    js_key(w, STR("disk"));
    js_object(w);
    js_kv_int(w, "free_bytes", left);
    js_kv_int(w, "reserve_bytes", s->reserve);
    if (ends)
        js_kv_int(w, "days_left", room > 0 ? (int64_t)(room / growth) : 0);
    js_object_end(w);
}

static bool run_stats(struct read_job *job, struct store *store)
{
    struct stats_job *s = container_of(job, struct stats_job, read);
    struct database_size size = {0};
    struct js_writer w;

    js_begin(&w, &s->j.out);
    js_object(&w);
    if (!store_removed(store, 0, s->j.mem, &s->removed, &s->n_removed, &job->err) ||
        !write_tenants(s, &w, store, &job->err) || !store_database_size(store, &size, &job->err))
        return false;
    js_kv_int(&w, "uncounted", size.uncounted);
    if (s->is_local) {
        write_database(&w, &size);
        write_disk(s, &w, &size);
    }
    js_object_end(&w);
    return true;
}

static void on_stats(struct read_job *job)
{
    struct stats_job *s = container_of(job, struct stats_job, read);

    if (job->ok)
        api_job_end(&s->j, 200, STR_NONE);
    else
        api_job_refuse(&s->j, &job->err);
}

void api_get_audit_stats(struct api_call *c)
{
    struct stats_job *s = api_job_new(sizeof(*s), MAX_BYTES, c);
    struct str asked;

    if (!api_query(c, "tenant", &asked) || !api_tenant(c, asked, &s->tenant)) {
        api_job_drop(&s->j);
        return;
    }
    s->data_dir = c->sv->data_dir;
    s->reserve = (int64_t)c->config->disk_reserve;
    s->config = c->config;
    s->now_ms = clock_wall_ms();
    /* The disk lasts as long as all tenants let it. */
    s->is_local = api_is_local(c) && !s->tenant.p;
    s->read = (struct read_job){.run = run_stats, .done = on_stats};
    if (!lane_query(c->sv->lanes, &s->read))
        api_job_busy(&s->j);
}
