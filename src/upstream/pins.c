/* SPDX-License-Identifier: Apache-2.0 */
/* The remembered tools of servers, and the check of calls. */
#include "upstream/pins_impl.h"

#include "base/clock.h"

#include <stdlib.h>

#define READ_AGAIN_MS 2000

struct pins *pins_new(struct loop *loop, bool is_shared)
{
    struct pins *p = xcalloc(1, sizeof(*p));

    p->loop = loop;
    p->is_shared = is_shared;
    list_init(&p->queue);
    p->changed =
        metric_register(METRIC_COUNTER, "holdfast_tool_definitions_changed_total",
                        "Tools of a server that were changed, added or removed.", "server", 256);
    p->held = metric_register(METRIC_COUNTER, "holdfast_tool_calls_held_total",
                              "Calls refused because their tool is not approved.", "server", 256);
    return p;
}

void pins_use(struct pins *p, struct lanes *lanes, struct upstreams *upstreams)
{
    p->lanes = lanes;
    p->upstreams = upstreams;
}

void pins_stop(struct pins *p)
{
    if (p)
        p->upstreams = NULL;
}

struct catalog_guard pins_guard(struct pins *p)
{
    return (struct catalog_guard){.look = pins_look, .arg = p};
}

struct watched_server *pins_server(struct pins *p, struct str name)
{
    struct watched_server *s = map_get(&p->servers, name);

    if (s)
        return s;
    s = xcalloc(1, sizeof(*s) + name.n + 1);
    memcpy(s->text, name.p, name.n);
    s->name = str_n(s->text, name.n);
    s->changed = metric_cell(p->changed, &s->name, 1);
    s->held = metric_cell(p->held, &s->name, 1);
    map_put(&p->servers, s->name, s);
    return s;
}

struct watched_tool *pins_tool_new(struct watched_server *s, struct str name)
{
    struct watched_tool *t = xcalloc(1, sizeof(*t) + name.n + 1);

    memcpy(t->text, name.p, name.n);
    t->name = str_n(t->text, name.n);
    map_put(&s->tools, t->name, t);
    return t;
}

static void server_free(struct watched_server *s)
{
    void *value;
    struct str key;

    for (size_t at = 0; map_next(&s->tools, &at, &key, &value);)
        free(value);
    for (size_t at = 0; map_next(&s->refused, &at, &key, &value);)
        free(value);
    map_release(&s->tools);
    map_release(&s->refused);
    free(s);
}

void pins_free(struct pins *p)
{
    void *value;
    struct str key;

    if (!p)
        return;
    for (struct list *n = list_pop(&p->queue); n; n = list_pop(&p->queue))
        findings_free(list_entry(n, struct findings, node));
    for (size_t at = 0; map_next(&p->servers, &at, &key, &value);)
        server_free(value);
    map_release(&p->servers);
    free(p);
}

bool pins_take_rows(struct pins *p, const struct tool_row *rows, size_t n)
{
    bool differs = false;

    for (size_t i = 0; i < n; i++) {
        struct watched_server *s = pins_server(p, rows[i].server);
        struct watched_tool *t = map_get(&s->tools, rows[i].name);
        if (!t && s->tools.n >= PINS_MAX_TOOLS) {
            s->is_full = true;
            continue;
        }
        if (!t) {
            t = pins_tool_new(s, rows[i].name);
            memcpy(t->digest, rows[i].digest, sizeof(t->digest));
            t->gone = rows[i].gone_ms != 0;
        }
        differs = differs || memcmp(t->approved, rows[i].approved, sizeof(t->approved)) != 0;
        memcpy(t->approved, rows[i].approved, sizeof(t->approved));
    }
    return differs;
}

bool pins_load(struct pins *p, struct store *store, struct error *err)
{
    struct tool_filter filter = {.server = STR_NONE};
    struct arena *mem = arena_new(64u * 1024 * 1024);
    struct arena *page = arena_new(64u * 1024 * 1024);
    struct tool_row *rows = NULL;
    size_t n = STORE_PAGE_MAX;
    bool ok = true;

    while (ok && n == STORE_PAGE_MAX) {
        ok = store_tools_page(store, &filter, STORE_PAGE_MAX, page, &rows, &n, err);
        if (!ok || !n)
            break;
        (void)pins_take_rows(p, rows, n);
        arena_reset(mem);
        filter.after_server = arena_dup(mem, rows[n - 1].server);
        filter.after = arena_dup(mem, rows[n - 1].name);
        arena_reset(page);
    }
    arena_free(page);
    arena_free(mem);
    return ok || error_wrap(err, "reading the known tools");
}

/* Another node may have stored an approval.  When a call is held, the row is read again, for the
 * next call. */
struct again {
    struct read_job job;
    struct pins *pins;
    struct arena *mem;
    struct tool_filter filter;
    struct tool_row *rows;
    size_t n;
};

static bool run_again(struct read_job *job, struct store *store)
{
    struct again *a = container_of(job, struct again, job);
    return store_tools_page(store, &a->filter, 1, a->mem, &a->rows, &a->n, &job->err);
}

static void on_again(struct read_job *job)
{
    struct again *a = container_of(job, struct again, job);

    if (job->ok && pins_take_rows(a->pins, a->rows, a->n))
        pins_release(a->pins, pins_server(a->pins, a->filter.server));
    arena_free(a->mem);
}

static void read_again(struct pins *p, struct watched_server *s, struct str tool)
{
    int64_t now = clock_mono_ms();

    if (!p->is_shared || (s->read_again_ms && now - s->read_again_ms < READ_AGAIN_MS))
        return;
    s->read_again_ms = now;
    struct arena *mem = arena_new(1024 * 1024);
    struct again *a = arena_new_of(mem, struct again);
    a->mem = mem;
    a->pins = p;
    a->filter =
        (struct tool_filter){.server = arena_dup(mem, s->name), .name = arena_dup(mem, tool)};
    a->job = (struct read_job){.run = run_again, .done = on_again};
    if (!lane_lookup(p->lanes, &a->job))
        arena_free(mem);
}

enum pin_verdict pins_check(struct pins *p, struct upstream *u, struct str tool, bool is_listed)
{
    struct watched_server *s = pins_server(p, upstream_name(u));
    const struct watched_tool *t;

    if (map_get(&s->refused, tool) || (s->refuses_rest && !is_listed))
        return PIN_UNKNOWN;
    if (!upstream_config(u)->pin)
        return PIN_FREE;
    t = map_get(&s->tools, tool);
    if (t && watched_is_approved(t))
        return PIN_FREE;
    metric_add(s->held, 1);
    if (!t)
        return is_listed ? PIN_BEYOND : PIN_UNKNOWN;
    read_again(p, s, tool);
    return digest_is_none(t->approved) ? PIN_NEW : PIN_CHANGED;
}

bool pins_is_plain(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-",
                    name.p[i]))
            return false;
    return name.n > 0 && name.n <= 128 && name.p[0] != '-';
}

/* A server chooses the names of its tools, and a person may paste this text into a shell. */
struct str pins_held_text(enum pin_verdict verdict, struct str server, struct str tool,
                          struct arena *mem)
{
    const char *what = verdict == PIN_CHANGED
                           ? "changed since it was approved"
                           : "is new since the tools of its server were approved";
    if (verdict == PIN_BEYOND)
        return arena_printf(mem,
                            "'%.*s' has had more than %d tools, and this one is not watched; a "
                            "person must give the server another name in the configuration",
                            STR_ARG(server), PINS_MAX_TOOLS);
    if (!pins_is_plain(tool))
        return arena_printf(mem,
                            "This tool of '%.*s' %s; a person must look at: holdfast servers show "
                            "%.*s",
                            STR_ARG(server), what, STR_ARG(server));
    return arena_printf(mem,
                        "Tool '%.*s' of '%.*s' %s; a person must look at it with `holdfast servers "
                        "diff %.*s %.*s`, then run: holdfast servers approve %.*s %.*s",
                        STR_ARG(tool), STR_ARG(server), what, STR_ARG(server), STR_ARG(tool),
                        STR_ARG(server), STR_ARG(tool));
}
