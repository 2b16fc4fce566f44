/* SPDX-License-Identifier: Apache-2.0 */
/* A server whose lists of tools a test hands to the watch one by one, with a real store, its lanes
 * and a chain behind it.  The clock stands still unless the test turns it. */
#ifndef HOLDFAST_TESTS_PINS_WORLD_H
#define HOLDFAST_TESTS_PINS_WORLD_H

#include "audit_db.h"

#include "config/config.h"
#include "upstream/catalog.h"
#include "upstream/pins_impl.h"

struct pins_world {
    struct audit_db db;
    struct loop *loop;
    struct lanes *lanes;
    struct upstreams *set;
    struct config *config;
    struct upstream *up;
    struct pins *pins;
    struct catalog *catalog; /* the last list, as everybody else gets it */
    struct arena *mem;       /* of what was read */
    unsigned approved, left, unseen;
    struct error err; /* of the last approval; code ERR_NONE: none */
    bool is_done;
};

/* The memory store alone: a start reads what the one before left. */
static inline void pins_world_start(struct pins_world *w, const char *more)
{
    static const struct config_source source = {.file = STR_NONE};
    char text[512];

    w->loop = loop_new();
    w->pins = pins_new(w->loop, false);
    must(pins_load(w->pins, w->db.store, &must_err));
    w->lanes = lanes_new(w->loop, &(struct lanes_config){.write = w->db.store,
                                                         .lookup = w->db.store,
                                                         .query = w->db.store,
                                                         .hook = chain_hook(w->db.chain)});
    struct upstreams_config config = {.loop = w->loop, .guard = pins_guard(w->pins)};
    w->set = upstreams_new(&config);
    snprintf(text, sizeof(text), "{\"mcpServers\":{\"files\":{\"command\":\"/bin/true\"%s}}}",
             more);
    must(config_parse(str_of(text), STR("test.json"), &source, &w->config, &must_err));
    upstreams_apply(w->set, w->config);
    w->up = upstreams_find(w->set, STR("files"));
    assert_non_null(w->up);
    pins_use(w->pins, w->lanes, w->set);
}

/* `more`: further members of the server's entry, each after a comma. */
static inline void pins_world_open(struct pins_world *w, const char *more)
{
    memset(w, 0, sizeof(*w));
    clock_set_fake(1700000000000, 1000000);
    w->mem = arena_new(256u << 20);
    audit_db_open(&w->db, true);
    w->db.store = store_failing(w->db.store);
    pins_world_start(w, more);
}

static inline void pins_world_close(struct pins_world *w)
{
    catalog_unref(w->catalog);
    pins_stop(w->pins);
    upstreams_free(w->set);
    w->db.store = NULL; /* taken */
    lanes_free(w->lanes);
    pins_free(w->pins);
    config_unref(w->config);
    loop_free(w->loop);
    audit_db_close(&w->db);
    arena_free(w->mem);
    clock_set_real();
}

/* From now on the store takes and gives nothing, or does again. */
static inline void pins_world_fail(struct pins_world *w, bool fails)
{
    store_failing_set(w->db.store, fails, false);
}

/* Until all that was found is in the store. */
static inline void pins_world_wait_stored(struct pins_world *w)
{
    while (w->pins->n_queue)
        loop_turn(w->loop);
}

static inline void pins_world_take(struct pins_world *w, struct str tools, bool is_whole)
{
    struct arena *mem = arena_new(512u << 20);
    struct str cursor = STR_NONE;
    struct js_doc doc;
    struct buf text;

    buf_init(&text, 64u << 20);
    buf_addf(&text, "{\"tools\":[%.*s]}", STR_ARG(tools));
    assert_true(js_parse(buf_str(&text), &js_limits_upstream, mem, &doc, NULL));
    catalog_unref(w->catalog);
    w->catalog = catalog_new(MCP_LEGACY);
    must(catalog_take_page(w->catalog, CATALOG_TOOLS, &doc, js_root(&doc), &cursor, &must_err));
    buf_release(&text);
    arena_free(mem);
    pins_look(w->pins, w->up, w->catalog, is_whole);
}

/* The server lists these tools, JSON objects with commas between them. */
static inline void pins_world_list(struct pins_world *w, const char *tools)
{
    pins_world_take(w, str_of(tools), true);
    pins_world_wait_stored(w);
}

/* The same of tools "<prefix>0" … with this description. */
static inline void pins_world_list_many(struct pins_world *w, const char *prefix, unsigned n,
                                        const char *description)
{
    struct buf text;
    buf_init(&text, 64u << 20);
    for (unsigned i = 0; i < n; i++)
        buf_addf(&text, "%s{\"name\":\"%s%u\",\"description\":\"%s\"}", i ? "," : "", prefix, i,
                 description);
    pins_world_take(w, buf_str(&text), true);
    buf_release(&text);
    pins_world_wait_stored(w);
}

static inline bool pins_world_lists(const struct pins_world *w, const char *name)
{
    return catalog_tool(w->catalog, str_of(name)) != NULL;
}

static inline enum pin_verdict pins_world_check(struct pins_world *w, const char *name)
{
    return pins_check(w->pins, w->up, str_of(name), pins_world_lists(w, name));
}

struct pins_reading {
    struct read_job job;
    struct pins_world *world;
    struct event_filter filter;
    struct tool_filter tools;
    struct event_row *events;
    struct tool_row *rows;
    size_t n;
    bool done;
};

static inline bool pins_run_reading(struct read_job *job, struct store *store)
{
    struct pins_reading *r = container_of(job, struct pins_reading, job);
    if (r->tools.server.p)
        return store_tools_page(store, &r->tools, STORE_PAGE_MAX, r->world->mem, &r->rows, &r->n,
                                &job->err);
    return store_events_page(store, &r->filter, STORE_PAGE_MAX, r->world->mem, &r->events, &r->n,
                             &job->err);
}

static inline void pins_on_reading(struct read_job *job)
{
    container_of(job, struct pins_reading, job)->done = true;
}

static inline void pins_read(struct pins_world *w, struct pins_reading *r)
{
    r->world = w;
    r->job = (struct read_job){.run = pins_run_reading, .done = pins_on_reading};
    assert_true(lane_query(w->lanes, &r->job));
    while (!r->done)
        loop_turn(w->loop);
    must_err = r->job.err;
    must(r->job.ok);
}

/* How many events of this method there are ("tool/changed"), of this tool or (NULL) of any; the
 * last of them is *ret_last when that is not NULL. */
static inline unsigned pins_world_events(struct pins_world *w, const char *method, const char *tool,
                                         struct event_row *ret_last)
{
    struct pins_reading r = {.filter = {.kind = EVENT_SYSTEM, .with_bodies = true}};
    unsigned n = 0;

    for (bool more = true; more;) {
        r.done = false;
        pins_read(w, &r);
        for (size_t i = 0; i < r.n; i++) {
            if (!str_eq(r.events[i].method, str_of(method)) ||
                (tool && !str_eq(r.events[i].tool, str_of(tool))))
                continue;
            if (ret_last)
                *ret_last = r.events[i];
            n++;
        }
        more = r.n == STORE_PAGE_MAX;
        if (more)
            r.filter.after = r.events[r.n - 1].id;
    }
    return n;
}

/* The row of one tool; its name is absent when there is none. */
static inline struct tool_row pins_world_row(struct pins_world *w, const char *tool)
{
    struct pins_reading r = {
        .tools = {.server = STR("files"), .name = str_of(tool), .with_definitions = true}};
    pins_read(w, &r);
    return r.n ? r.rows[0] : (struct tool_row){.server = STR_NONE};
}

struct pins_world_approval {
    struct pins_approval a;
    struct pins_world *world;
};

static inline void pins_on_approved(struct pins_approval *a, const struct error *err)
{
    struct pins_world *w = container_of(a, struct pins_world_approval, a)->world;
    w->approved = err ? 0 : a->approved;
    w->left = a->left;
    if (err)
        w->err = *err;
    w->is_done = true;
}

/* Somebody is shown how this tool differs. */
static inline void pins_world_show(struct pins_world *w, const char *tool)
{
    struct tool_row row = pins_world_row(w, tool);
    assert_non_null(row.server.p);
    pins_shown(w->pins, &row);
}

/* tool NULL: all; digest NULL: as it was shown.  false: w->err says why not. */
static inline bool pins_world_approve_as(struct pins_world *w, const char *tool, const char *digest)
{
    struct pins_world_approval one = {.a = {.server = STR("files"),
                                            .tool = str_of(tool),
                                            .digest = str_of(digest),
                                            .by = STR("local"),
                                            .done = pins_on_approved},
                                      .world = w};

    w->err = (struct error){.code = ERR_NONE};
    w->is_done = false;
    w->approved = w->left = 0;
    bool begun = pins_approve(w->pins, &one.a, &w->err);
    w->unseen = one.a.unseen;
    while (begun && !w->is_done)
        loop_turn(w->loop);
    return w->err.code == ERR_NONE;
}
static inline bool pins_world_approve(struct pins_world *w, const char *tool)
{
    return pins_world_approve_as(w, tool, NULL);
}

#endif
