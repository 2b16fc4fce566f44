/* SPDX-License-Identifier: Apache-2.0 */
/* A person approves tool definitions as they were shown.  One transaction writes the rows and one
 * event; then calls pass and lists show the server's own definitions again.  A server may change a
 * tool between the display and the decision, so the displayed digest is remembered until it is
 * approved.  The store refuses a digest that is not the last one it has. */
#include "upstream/pins_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "json/write.h"

#define NAMES_MAX (1024u * 1024) /* room for PINS_APPROVE_MAX of the longest names */

void pins_release(struct pins *p, struct watched_server *s)
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
                  "a tool changed a moment ago; look at it again with `holdfast servers diff`");
    else if (!job->ok)
        err = job->err;
    for (size_t i = 0; job->ok && i < a->approved; i++) {
        struct watched_tool *t = map_get(&s->tools, a->rows[i].name);
        if (t) {
            memcpy(t->approved, a->rows[i].digest, sizeof(t->approved));
            memset(t->shown, 0, sizeof(t->shown));
        }
        log_info("a tool was approved", LS("server", a->server), LS("tool", a->rows[i].name));
    }
    if (job->ok)
        pins_release(a->pins, s);
    struct arena *mem = a->mem;
    a->done(a, job->ok ? NULL : &err);
    arena_free(mem);
}

void pins_shown(struct pins *p, const struct tool_row *row)
{
    struct watched_server *s = pins_server(p, row->server);
    struct watched_tool *t = map_get(&s->tools, row->name);

    if (!t && p->is_shared) /* only another node has seen it */
        (void)pins_take_rows(p, row, 1);
    t = map_get(&s->tools, row->name);
    if (t && memcmp(row->digest, row->approved, sizeof(row->digest)) != 0)
        memcpy(t->shown, row->digest, sizeof(t->shown));
}

/* The digest to approve: the one that was shown.  With several nodes it may differ from the one
 * that this node saw. */
static const uint8_t *wanted(const struct pins *p, const struct watched_tool *t)
{
    return p->is_shared && !digest_is_none(t->shown) ? t->shown : t->digest;
}

static bool is_as_shown(const struct pins *p, const struct watched_tool *t)
{
    return digest_is_none(t->shown) || memcmp(t->shown, wanted(p, t), sizeof(t->shown)) == 0;
}

static void add(struct pins_approval *a, const struct watched_tool *t)
{
    struct tool_row *row = &a->rows[a->approved++];

    *row = (struct tool_row){
        .server = a->server, .name = arena_dup(a->mem, t->name), .approved_ms = clock_life_ms()};
    memcpy(row->digest, wanted(a->pins, t), sizeof(row->digest));
}

static bool is_named(const struct pins_approval *a, const struct watched_tool *t)
{
    char hex[2 * SHA256_BYTES + 1];

    hex_encode(wanted(a->pins, t), SHA256_BYTES, hex);
    return a->digest.n >= PINS_DIGEST_MIN && a->digest.n <= 2 * SHA256_BYTES &&
           str_starts(str_of(hex), a->digest);
}

static bool choose_one(struct pins_approval *a, struct watched_server *s, struct error *err)
{
    const struct watched_tool *t = map_get(&s->tools, a->tool);

    if (!t || t->gone)
        return error_set(err, ERR_NOT_FOUND,
                         "that server has no such tool now; see `holdfast servers show NAME`");
    if (a->digest.p && !is_named(a, t))
        return error_set(err, ERR_CONFLICT,
                         "the tool has another digest, or fewer than %d digits of it were given; "
                         "look at it with `holdfast servers diff`",
                         PINS_DIGEST_MIN);
    if (!a->digest.p && !is_as_shown(a->pins, t))
        return error_set(err, ERR_CONFLICT,
                         "the tool changed since it was shown; look at it again with `holdfast "
                         "servers diff`");
    add(a, t);
    return true;
}

/* Whether the tool waits for approval, also if only another node has seen it change. */
static bool waits(const struct watched_tool *t)
{
    return !t->gone && (!watched_is_approved(t) || !digest_is_none(t->shown));
}

/* Whether a waiting tool was shown to a person. */
static bool any_shown(struct watched_server *s)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&s->tools, &at, &key, &value);) {
        const struct watched_tool *t = value;
        if (waits(t) && !digest_is_none(t->shown))
            return true;
    }
    return false;
}

static bool choose_all(struct pins_approval *a, struct watched_server *s, struct error *err)
{
    bool only_shown = any_shown(s);
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&s->tools, &at, &key, &value);) {
        const struct watched_tool *t = value;
        if (!waits(t))
            continue;
        if (!is_as_shown(a->pins, t) || (only_shown && digest_is_none(t->shown)))
            a->unseen++;
        else if (a->approved < PINS_APPROVE_MAX)
            add(a, t);
        else
            a->left++;
    }
    if (a->approved)
        return true;
    return a->unseen ? error_set(err, ERR_CONFLICT,
                                 "%u tools changed or came since the others were shown; look at "
                                 "them with `holdfast servers diff`",
                                 a->unseen)
                     : error_set(err, ERR_NOT_FOUND,
                                 "no tool of that server waits to be approved; see `holdfast "
                                 "servers show NAME`");
}

static struct str names(const struct pins_approval *a)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, NAMES_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("tools"));
    js_array(&w);
    for (size_t i = 0; i < a->approved; i++) {
        char hex[2 * SHA256_BYTES + 1];
        hex_encode(a->rows[i].digest, SHA256_BYTES, hex);
        js_object(&w);
        js_kv_string(&w, "name", name_cut(a->rows[i].name));
        js_kv_string(&w, "digest", str_of(hex));
        js_object_end(&w);
    }
    js_array_end(&w);
    js_object_end(&w);
    struct str copy = arena_dup(a->mem, buf_str(&out));
    buf_release(&out);
    return copy;
}

bool pins_approve(struct pins *p, struct pins_approval *a, struct error *err)
{
    struct watched_server *s = map_get(&p->servers, a->server);

    if (!s)
        return error_set(err, ERR_NOT_FOUND,
                         "no server of this name has known tools; see `holdfast servers list`");
    a->pins = p;
    a->mem = arena_new(16u * 1024 * 1024);
    a->rows = arena_zalloc(a->mem, PINS_APPROVE_MAX * sizeof(*a->rows));
    if (!(a->tool.p ? choose_one(a, s, err) : choose_all(a, s, err))) {
        arena_free(a->mem);
        return false;
    }
    a->event = (struct event_row){
        .tenant = STR("default"),
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_dup(a->mem, a->by),
        .server = a->server,
        .method = STR("tool/approved"),
        .tool = name_cut(a->tool),
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
