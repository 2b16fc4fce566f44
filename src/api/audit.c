/* SPDX-License-Identifier: Apache-2.0 */
/* /audit: pages of events, and executions, which are joined from them.  A caller sees the events of
 * its tenant; the local admin those of every tenant.  The query lane reads the pages, so a slow list
 * never delays a call. */
#include "api/cursor.h"
#include "api/job.h"
#include "api/page.h"
#include "api/who.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "audit/event_query.h"
#include "audit/executions.h"
#include "base/clock.h"
#include "retention/store/verbs.h"

#define EVENTS_BYTES (256u * 1024 * 1024)
#define SEARCH_MS 200 /* a page of executions ends after this time, even if it is not full */

struct events_job {
    struct api_job j;
    struct read_job read;
    struct event_filter filter;
    unsigned limit;
    struct page_place place;
    struct str link;
};

/* ?cursor= as the event that the page before ended with; 0: none.  false: the refusal was sent. */
static bool read_cursor(struct api_call *c, struct str about, int64_t *ret)
{
    struct str cursor, row;

    *ret = 0;
    if (!api_query(c, "cursor", &cursor))
        return false;
    if (cursor.p &&
        (!cursor_read(cursor, &c->who, about, c->mem, &row) || !event_id_parse(row, ret)))
        return page_refuse_cursor(c);
    return true;
}

/* Events. */

static bool run_events(struct read_job *job, struct store *store)
{
    struct events_job *e = container_of(job, struct events_job, read);
    struct event_row *rows = NULL;
    char last[EVENT_ID_TEXT];
    struct js_writer w;
    int64_t scanned = 0;
    size_t n = 0;

    e->filter.ret_scanned = &scanned;
    if (!store_events_page(store, &e->filter, e->limit, e->j.mem, &rows, &n, &job->err))
        return false;
    int64_t end = scanned ? scanned : n == e->limit ? rows[n - 1].id : 0;
    js_begin(&w, &e->j.out);
    js_object(&w);
    events_write(&w, rows, n, scanned);
    e->link =
        page_end(&e->place, &w, n, end ? str_of(event_id_format(end, last)) : STR_NONE, e->j.mem);
    return true;
}

static void on_events(struct read_job *job)
{
    struct events_job *e = container_of(job, struct events_job, read);

    if (job->ok)
        api_job_end(&e->j, 200, e->link);
    else
        api_job_refuse(&e->j, &job->err);
}

static bool read_events_query(struct api_call *c, struct events_job *e)
{
    struct str query = c->http->head->query.p ? c->http->head->query : STR("");
    struct error err;
    int64_t from;

    if (!audit_events_query_parse(query, &e->filter, &e->limit, e->j.mem, &err)) {
        api_refuse(c, err.code, "%s", err.text);
        return false;
    }
    e->place.about = page_about(c, "events");
    if (!api_tenant(c, e->filter.tenant, &e->filter.tenant) ||
        !read_cursor(c, e->place.about, &from))
        return false;
    if (from && e->filter.newest_first)
        e->filter.before = from;
    else if (from)
        e->filter.after = from;
    return true;
}

void api_list_events(struct api_call *c)
{
    struct events_job *e = api_job_new(sizeof(*e), EVENTS_BYTES, c);

    e->place.who = &c->who;
    if (!read_events_query(c, e)) {
        api_job_drop(&e->j);
        return;
    }
    e->place.url = page_url(c, "/api/v1/audit/events");
    e->read = (struct read_job){.run = run_events, .done = on_events};
    if (!lane_query(c->sv->lanes, &e->read))
        api_job_busy(&e->j);
}

/* Executions. */

struct executions_job {
    struct api_job j;
    struct read_job read;
    struct execution_filter filter;
    struct page_place place;
    struct str link;
    struct str user;
    bool arguments;
    int64_t id; /* one execution */
    struct str tenant;
};

static bool run_executions(struct read_job *job, struct store *store)
{
    struct executions_job *x = container_of(job, struct executions_job, read);
    struct execution *rows = NULL;
    char last[EVENT_ID_TEXT];
    struct js_writer w;
    int64_t end = 0;
    size_t n = 0;

    x->filter.until_ms = clock_mono_ms() + SEARCH_MS;
    x->filter.ret_end = &end;
    struct event_source *source = event_source_borrowing(store);
    struct who_names names;
    who_init(&names, store, x->j.mem);
    names.wanted = x->user;
    x->filter.fits = x->user.p ? who_fits : NULL;
    x->filter.fits_arg = &names;
    bool ok = executions_newest(source, &x->filter, x->j.mem, &rows, &n, &job->err);
    event_source_close(source);
    for (size_t i = 0; ok && i < n; i++) {
        who_fill(&names, &rows[i]);
        ok = !x->arguments || who_add_arguments(&names, &rows[i], &job->err);
    }
    who_release(&names);
    if (!ok)
        return false;
    js_begin(&w, &x->j.out);
    js_object(&w);
    js_key(&w, STR("executions"));
    js_array(&w);
    for (size_t i = 0; i < n; i++)
        execution_to_json(&rows[i], &w);
    js_array_end(&w);
    x->link =
        page_end(&x->place, &w, n, end ? str_of(event_id_format(end, last)) : STR_NONE, x->j.mem);
    return true;
}

static void on_executions(struct read_job *job)
{
    struct executions_job *x = container_of(job, struct executions_job, read);

    if (job->ok)
        api_job_end(&x->j, 200, x->link);
    else
        api_job_refuse(&x->j, &job->err);
}

static bool read_flag(struct api_call *c, const char *name, bool *ret)
{
    struct str text;

    if (!api_query(c, name, &text))
        return false;
    *ret = str_eq(text, STR("1"));
    if (text.p && !*ret && !str_eq(text, STR("0"))) {
        api_refuse(c, ERR_BAD_INPUT, "?%s= is 0 or 1", name);
        return false;
    }
    return true;
}

static bool read_executions_query(struct api_call *c, struct executions_job *x)
{
    struct execution_filter *f = &x->filter;
    struct str tenant;
    int64_t from, limit;

    f->events.kind = -1;
    x->place.about = page_about(c, "executions");
    if (!api_query(c, "tenant", &tenant) || !api_tenant(c, tenant, &f->events.tenant) ||
        !api_query(c, "server", &f->events.server) || !api_query(c, "tool", &f->events.tool) ||
        !api_query(c, "session", &f->session) || !api_query(c, "outcome", &f->outcome) ||
        !api_query(c, "user", &x->user) || !read_flag(c, "errors", &f->errors) ||
        !read_flag(c, "arguments", &x->arguments) ||
        !api_query_time(c, "since", &f->events.since_ms) ||
        !api_query_time(c, "until", &f->begun_before_ms) ||
        !read_cursor(c, x->place.about, &from) ||
        !api_query_number(c, "limit", 1, STORE_PAGE_MAX, 50, &limit))
        return false;
    f->events.before = from;
    f->limit = (unsigned)limit;
    return true;
}

void api_list_audit_executions(struct api_call *c)
{
    struct executions_job *x = api_job_new(sizeof(*x), EVENTS_BYTES, c);

    x->place.who = &c->who;
    if (!read_executions_query(c, x)) {
        api_job_drop(&x->j);
        return;
    }
    x->place.url = page_url(c, "/api/v1/audit/executions");
    x->read = (struct read_job){.run = run_executions, .done = on_executions};
    if (!lane_query(c->sv->lanes, &x->read))
        api_job_busy(&x->j);
}

/* One execution with its events. */

/* The event is missing because retention removed it: says when and by which rule.  Checkpoints of
 * other tenants tell the caller nothing. */
static bool say_removed(struct executions_job *x, struct store *store, struct error *err)
{
    struct removed_row *rows = NULL;
    struct error ignored;
    size_t n = 0;

    if (err->code != ERR_NOT_FOUND ||
        !store_removed(store, event_id_writer(x->id), x->j.mem, &rows, &n, &ignored))
        return false;
    for (size_t i = 0; i < n; i++) {
        char id[EVENT_ID_TEXT], at[CLOCK_TEXT];
        if (x->id < rows[i].first_id || x->id > rows[i].last_id ||
            (x->tenant.p && !str_eq(x->tenant, rows[i].tenant)))
            continue;
        clock_format(rows[i].removed_ms, at);
        return error_set(
            err, ERR_NOT_FOUND,
            "there is no event %s any more: retention removes old events; the last time "
            "around it was %s by %.*s",
            event_id_format(x->id, id), at, STR_ARG(rows[i].rule));
    }
    return false;
}

static bool run_execution(struct read_job *job, struct store *store)
{
    struct executions_job *x = container_of(job, struct executions_job, read);
    struct event_source *source = event_source_borrowing(store);
    struct event_row *events = NULL;
    struct execution found;
    struct js_writer w;
    size_t n = 0;

    bool ok = execution_get(source, x->id, x->j.mem, &found, &events, &n, &job->err);
    event_source_close(source);
    if (!ok)
        return say_removed(x, store, &job->err);
    if (x->tenant.p && !str_eq(x->tenant, found.event.tenant))
        ok = error_set(&job->err, ERR_NOT_FOUND,
                       "there is no such execution; see GET /api/v1/audit/executions");
    if (!ok)
        return false;
    struct who_names names;
    who_init(&names, store, x->j.mem);
    who_fill(&names, &found);
    who_release(&names);
    found.arguments = execution_arguments(events[0].body, x->j.mem);
    if (found.outcome_id && !found.error.n && execution_failed(found.outcome))
        found.reply = execution_reply_text(events[n - 1].body, x->j.mem);
    js_begin(&w, &x->j.out);
    js_object(&w);
    js_key(&w, STR("execution"));
    execution_to_json(&found, &w);
    js_key(&w, STR("events"));
    js_array(&w);
    for (size_t i = 0; i < n; i++)
        event_to_json(&events[i], &w);
    js_array_end(&w);
    js_object_end(&w);
    return true;
}

void api_get_audit_execution(struct api_call *c)
{
    struct executions_job *x = api_job_new(sizeof(*x), EVENTS_BYTES, c);
    struct error err;

    x->tenant = api_is_local(c) ? STR_NONE : c->who.tenant;
    if (!event_id_parse(c->match.params[0], &x->id)) {
        error_set(&err, ERR_NOT_FOUND,
                  "there is no such execution; see GET /api/v1/audit/executions");
        api_job_refuse(&x->j, &err);
        return;
    }
    x->read = (struct read_job){.run = run_execution, .done = on_executions};
    if (!lane_query(c->sv->lanes, &x->read))
        api_job_busy(&x->j);
}
