/* SPDX-License-Identifier: Apache-2.0 */
/* A person has looked at what tools say, and takes them as they are: rows and one event in one
 * transaction, then calls pass and lists show the server's own words again. */
#include "pins/pins_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "json/write.h"

#define NAMES_MAX (8u * 1024)

/* Shows again what may be called by now. */
static void release(struct pins *p, struct watched_server *s)
{
    struct upstream *u = p->upstreams ? upstreams_find(p->upstreams, s->name) : NULL;
    struct catalog *c = u ? upstream_known(u) : NULL;

    if (!u)
        return;
    for (size_t i = 0; c && i < c->lists[CATALOG_TOOLS].n; i++) {
        struct catalog_item *item = &c->lists[CATALOG_TOOLS].items[i];
        const struct watched_tool *t = map_get(&s->tools, item->name);
        if (t && watched_is_approved(t))
            item->held = STR_NONE;
    }
    upstream_shown_anew(u);
}

static void on_written(struct write_job *job)
{
    struct pins_approval *a = container_of(job, struct pins_approval, job);
    struct watched_server *s = pins_server(a->pins, a->server);
    struct error err;

    if (!job->ok && job->err.code == ERR_CONFLICT)
        error_set(&err, ERR_CONFLICT,
                  "a tool changed just now; look at it again with `holdfast servers diff`");
    else if (!job->ok)
        err = job->err;
    for (size_t i = 0; job->ok && i < a->approved; i++) {
        struct watched_tool *t = map_get(&s->tools, a->rows[i].name);
        if (t)
            memcpy(t->approved, a->rows[i].digest, sizeof(t->approved));
        log_info("a tool was approved", LS("server", a->server), LS("tool", a->rows[i].name));
    }
    if (job->ok)
        release(a->pins, s);
    struct arena *mem = a->mem;
    a->done(a, job->ok ? NULL : &err);
    arena_free(mem);
}

static void add(struct pins_approval *a, const struct watched_tool *t)
{
    struct tool_row *row = &a->rows[a->approved++];

    *row = (struct tool_row){
        .server = a->server, .name = arena_dup(a->mem, t->name), .approved_ms = clock_life_ms()};
    memcpy(row->digest, t->digest, sizeof(t->digest));
}

static bool choose(struct pins_approval *a, struct watched_server *s, struct error *err)
{
    struct watched_tool *t = a->tool.p ? map_get(&s->tools, a->tool) : NULL;
    struct str key;
    void *value;

    if (a->tool.p && (!t || t->gone))
        return error_set(err, ERR_NOT_FOUND,
                         "that server has no such tool now; see `holdfast servers show NAME`");
    if (t)
        add(a, t);
    for (size_t at = 0; !t && map_next(&s->tools, &at, &key, &value);) {
        const struct watched_tool *each = value;
        if (each->gone || watched_is_approved(each))
            continue;
        if (a->approved < PINS_APPROVE_MAX)
            add(a, each);
        else
            a->left++;
    }
    return true;
}

static struct str names(const struct pins_approval *a)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, 16 * NAMES_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("tools"));
    js_array(&w);
    for (size_t i = 0; i < a->approved && out.n < NAMES_MAX; i++) {
        char hex[2 * SHA256_BYTES + 1];
        hex_encode(a->rows[i].digest, SHA256_BYTES, hex);
        js_object(&w);
        js_kv_string(&w, "name",
                     str_n(a->rows[i].name.p, a->rows[i].name.n < 256 ? a->rows[i].name.n : 256));
        js_kv_string(&w, "digest", str_of(hex));
        js_object_end(&w);
    }
    js_array_end(&w);
    js_object_end(&w);
    struct str kept = arena_dup(a->mem, buf_str(&out));
    buf_release(&out);
    return kept;
}

bool pins_approve(struct pins *p, struct pins_approval *a, struct error *err)
{
    struct watched_server *s = map_get(&p->servers, a->server);

    if (!s)
        return error_set(err, ERR_NOT_FOUND,
                         "no tools of such a server are known; see `holdfast servers list`");
    a->pins = p;
    a->mem = arena_new(16u * 1024 * 1024);
    a->rows = arena_zalloc(a->mem, PINS_APPROVE_MAX * sizeof(*a->rows));
    if (!choose(a, s, err) || !a->approved) {
        arena_free(a->mem);
        return a->approved || !a->tool.p
                   ? error_set(err, ERR_NOT_FOUND,
                               "no tool of that server waits to be approved; see `holdfast servers "
                               "show NAME`")
                   : false;
    }
    a->event = (struct event_row){
        .tenant = STR("default"),
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_dup(a->mem, a->by),
        .server = a->server,
        .method = STR("tool/approved"),
        .tool = a->tool.n <= 256 ? a->tool : STR_NONE,
        .outcome = STR("ok"),
        .error =
            arena_printf(a->mem, "%u tools of %.*s were approved", a->approved, STR_ARG(a->server)),
    };
    pins_event_body(&a->event, names(a));
    struct store_op *ops = arena_zalloc(a->mem, (PINS_APPROVE_MAX + 1) * sizeof(*ops));
    for (size_t i = 0; i < a->approved; i++)
        ops[i] = (struct store_op){.kind = OP_TOOL_APPROVE, .tool = &a->rows[i], .required = true};
    ops[a->approved] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &a->event};
    a->job = (struct write_job){.ops = ops, .n = a->approved + 1u, .done = on_written};
    if (lane_write(p->lanes, &a->job))
        return true;
    arena_free(a->mem);
    return error_set(err, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
}
