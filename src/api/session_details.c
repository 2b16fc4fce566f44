/* SPDX-License-Identifier: Apache-2.0 */
/* /sessions/details: sessions for people, with the names of user and key, the servers and their
 * links.  Read from the store on the query lane, so a command can run them without a daemon. */
#include "api/bodies.h"
#include "api/job.h"
#include "api/page.h"
#include "api/session_named.h"
#include "api/who.h"

#include "base/clock.h"
#include "base/random.h"
#include "session/session_json.h"

#include <stdio.h>

#define MAX_BYTES (64u * 1024 * 1024)
#define SEARCH_MS 200 /* a page ends after this time, even if it is not full */

struct details_job {
    struct api_job j;
    struct read_job read;
    struct principal reader; /* of the tenant, as a whole */
    int64_t now_ms, idle_ms;
    struct str name; /* one session: session_id, row id, or the beginning of one */
    /* A list. */
    struct session_filter filter;
    struct str client, server, user; /* absent: any */
    int64_t limit;
    struct page_place place;
    struct str link;
};

/* A session with its rows of other tables, in `mem`. */
struct detail {
    struct session_row *row;
    struct str user, key;
    struct link_row *links;
    size_t n_links;
};

static bool read_links(struct store *store, struct detail *d, struct arena *mem, struct error *err)
{
    const struct principal owner = {.tenant = d->row->tenant, .owner = d->row->owner};

    return store_links_of(store, &owner, d->row->id, mem, &d->links, &d->n_links, err);
}

static void write_servers(struct js_writer *w, const struct detail *d)
{
    js_key(w, STR("servers"));
    js_array(w);
    for (size_t i = 0; i < d->n_links; i++)
        js_string(w, d->links[i].server);
    js_array_end(w);
}

static void write_common(struct js_writer *w, const struct detail *d, int64_t now_ms)
{
    const struct session_row *row = d->row;

    js_kv_string(w, "id", row->id);
    js_kv_string(w, "session_id", row->handle);
    js_kv_string(w, "tenant_id", row->tenant);
    js_kv_string(w, "status", str_of(session_status_name(row->status)));
    js_kv_string(w, "origin", str_of(session_origin_name(row->origin)));
    js_kv_string(w, "carrier", row->carrier);
    js_kv_string(w, "owner", row->owner);
    js_kv_string(w, "user_name", d->user);
    js_kv_string(w, "key_name", d->key);
    js_kv_string(w, "edge_mcp_id", row->edge_mcp_id);
    js_kv_string(w, "client_name", row->client_name);
    js_kv_string(w, "client_type", row->client_type);
    js_kv_string(w, "client_version", row->client_version);
    write_servers(w, d);
    js_kv_int(w, "tool_execution_count", row->tool_count);
    js_kv_int(w, "total_tokens_used", row->tokens_used);
    json_kv_time(w, "created_at", row->created_ms);
    json_kv_time(w, "last_activity_at", row->last_activity_ms);
    json_kv_time(w, "expires_at", row->expires_ms);
    json_kv_time(w, "terminated_at", row->terminated_ms);
    js_kv_string(w, "termination_reason", row->termination_reason);
    js_kv_int(w, "session_age", now_ms > row->created_ms ? (now_ms - row->created_ms) / 1000 : 0);
}

/* One session. */

static void write_links(struct js_writer *w, const struct detail *d)
{
    js_key(w, STR("links"));
    js_array(w);
    for (size_t i = 0; i < d->n_links; i++) {
        const struct link_row *l = &d->links[i];
        js_object(w);
        js_kv_string(w, "server", l->server);
        js_kv_bool(w, "is_live", l->writer != 0);
        json_kv_time(w, "opened_at", l->opened_ms);
        json_kv_time(w, "ended_at", l->ended_ms);
        js_kv_string(w, "end_reason", l->end_reason);
        js_object_end(w);
    }
    js_array_end(w);
}

static void write_toolsets(struct js_writer *w, struct str toolsets)
{
    js_key(w, STR("toolsets"));
    js_array(w);
    while (toolsets.n)
        js_string(w, str_split(&toolsets, ','));
    js_array_end(w);
}

static bool write_context(struct js_writer *w, struct details_job *d, const struct detail *s,
                          struct store *store, struct error *err)
{
    struct context_row *context = NULL;

    if (s->row->context_id.p &&
        !store_context_get(store, &d->reader, s->row->context_id, d->j.mem, &context, err))
        return false;
    js_kv_int(w, "context_bytes", context ? (int64_t)context->document.n : 0);
    return true;
}

static void apply_status(const struct details_job *d, struct session_row *row)
{
    session_row_apply_expiry(row, d->now_ms);
    session_row_apply_idle(row, d->now_ms, d->idle_ms);
}

static bool run_one(struct read_job *job, struct store *store)
{
    struct details_job *d = container_of(job, struct details_job, read);
    struct detail one = {0};
    struct who_names names;
    struct js_writer w;

    if (!session_find_named(store, &d->reader, d->name, d->j.mem, &one.row, &job->err) ||
        !read_links(store, &one, d->j.mem, &job->err))
        return false;
    apply_status(d, one.row);
    who_init(&names, store, d->j.mem);
    who_owner(&names, one.row->tenant, one.row->owner, &one.user, &one.key);
    who_release(&names);
    js_begin(&w, &d->j.out);
    js_object(&w);
    write_common(&w, &one, d->now_ms);
    write_links(&w, &one);
    write_toolsets(&w, one.row->toolsets);
    if (one.row->connection_metadata.n)
        js_kv_raw(&w, "connection_metadata", one.row->connection_metadata);
    js_kv_string(&w, "core_session_id", one.row->core_session_id);
    if (one.row->lineage.n)
        js_kv_raw(&w, "lineage", one.row->lineage);
    js_kv_string(&w, "context_id", one.row->context_id);
    if (!write_context(&w, d, &one, store, &job->err))
        return false;
    js_object_end(&w);
    return true;
}

/* A list. */

static bool has_name(struct str wanted, const struct detail *d)
{
    struct str rest = d->row->owner;

    str_split(&rest, ':');
    return !wanted.p || str_eq(wanted, d->user.p ? d->user : STR("")) ||
           str_eq(wanted, d->key.p ? d->key : STR("")) ||
           str_eq(wanted, rest.p ? rest : d->row->owner);
}

static bool has_client(struct str wanted, const struct session_row *row)
{
    return !wanted.p || str_eq(wanted, row->client_name.p ? row->client_name : STR("")) ||
           str_eq(wanted, row->client_type.p ? row->client_type : STR(""));
}

static bool has_server(struct str wanted, const struct detail *d)
{
    bool has = !wanted.p;

    for (size_t i = 0; i < d->n_links; i++)
        has = has || str_eq(d->links[i].server, wanted);
    return has;
}

/* Writes the session if the filters of this job let it pass. */
static bool take_row(struct details_job *d, struct store *store, struct who_names *names,
                     struct session_row *row, struct arena *mem, struct js_writer *w, size_t *n,
                     struct error *err)
{
    struct detail one = {.row = row};

    if (!has_client(d->client, row))
        return true;
    who_owner(names, row->tenant, row->owner, &one.user, &one.key);
    if (!has_name(d->user, &one))
        return true;
    if (!read_links(store, &one, mem, err))
        return false;
    if (!has_server(d->server, &one))
        return true;
    apply_status(d, row);
    js_object(w);
    write_common(w, &one, d->now_ms);
    js_object_end(w);
    ++*n;
    return true;
}

struct details_page {
    size_t n;
    char last[UUID_TEXT]; /* the last row that was examined */
    bool more;
};

/* Examines one page of the store. */
static bool take_page(struct details_job *d, struct store *store, struct who_names *names,
                      struct js_writer *w, struct details_page *p, struct error *err)
{
    struct arena *mem = arena_new(MAX_BYTES);
    struct session_row *rows = NULL;
    size_t n = 0, i = 0;

    d->filter.before = p->last[0] ? str_of(p->last) : d->filter.before;
    bool ok =
        store_sessions_page(store, &d->reader, &d->filter, STORE_PAGE_MAX, mem, &rows, &n, err);
    for (; ok && i < n && p->n < (size_t)d->limit; i++) {
        snprintf(p->last, sizeof(p->last), "%.*s", STR_ARG(rows[i].id));
        ok = take_row(d, store, names, &rows[i], mem, w, &p->n, err);
    }
    p->more = i < n || n == STORE_PAGE_MAX;
    arena_free(mem);
    return ok;
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct details_job *d = container_of(job, struct details_job, read);
    int64_t until = clock_mono_ms() + SEARCH_MS;
    struct details_page p = {.more = true};
    struct who_names names;
    struct js_writer w;
    bool ok = true;

    js_begin(&w, &d->j.out);
    js_object(&w);
    js_key(&w, STR("sessions"));
    js_array(&w);
    who_init(&names, store, d->j.mem);
    do
        ok = take_page(d, store, &names, &w, &p, &job->err);
    while (ok && p.more && p.n < (size_t)d->limit && clock_mono_ms() < until);
    who_release(&names);
    if (!ok)
        return false;
    js_array_end(&w);
    d->link = page_end(&d->place, &w, p.n, p.more ? str_of(p.last) : STR_NONE, d->j.mem);
    return true;
}

static void on_read(struct read_job *job)
{
    struct details_job *d = container_of(job, struct details_job, read);

    if (job->ok)
        api_job_end(&d->j, 200, d->link);
    else
        api_job_refuse(&d->j, &job->err);
}

static struct details_job *job_new(struct api_call *c)
{
    struct details_job *d = api_job_new(sizeof(*d), MAX_BYTES, c);

    d->now_ms = clock_life_ms();
    d->idle_ms = api_idle_ms(c);
    return d;
}

/* The tenant of the query, else the caller's own. */
static bool read_tenant(struct api_call *c, struct details_job *d)
{
    if (!api_own_tenant(c))
        return false;
    d->reader = (struct principal){
        .tenant = c->who.tenant, .owner = STR(""), .role = ROLE_ADMIN, .tenant_wide = true};
    return true;
}

static void begin(struct api_call *c, struct details_job *d,
                  bool (*run)(struct read_job *job, struct store *store))
{
    d->read = (struct read_job){.run = run, .done = on_read};
    if (!lane_query(c->sv->lanes, &d->read))
        api_job_busy(&d->j);
}

void api_session_details(struct api_call *c)
{
    struct details_job *d = job_new(c);

    d->name = c->match.params[0];
    if (read_tenant(c, d))
        begin(c, d, run_one);
    else
        api_job_drop(&d->j);
}

static bool read_query(struct api_call *c, struct details_job *d)
{
    unsigned statuses = 1u << SESSION_ACTIVE | 1u << SESSION_IDLE;

    d->place = (struct page_place){.who = &c->who, .about = page_about(c, "session details")};
    d->filter = (struct session_filter){.now_ms = d->now_ms, .idle_ms = d->idle_ms};
    return read_tenant(c, d) && api_query_statuses(c, statuses, &d->filter.statuses) &&
           api_query(c, "client", &d->client) && api_query(c, "server", &d->server) &&
           api_query(c, "user", &d->user) &&
           api_page(c, d->place.about, &d->limit, &d->filter.before);
}

void api_list_session_details(struct api_call *c)
{
    struct details_job *d = job_new(c);

    if (!read_query(c, d)) {
        api_job_drop(&d->j);
        return;
    }
    if (d->filter.before.p && !text_is_uuid(d->filter.before)) {
        (void)page_refuse_cursor(c);
        api_job_drop(&d->j);
        return;
    }
    d->place.url = page_url(c, "/api/v1/sessions/details");
    begin(c, d, run_list);
}
