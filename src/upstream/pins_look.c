/* SPDX-License-Identifier: Apache-2.0 */
/* Examines a list of tools.  It removes names that look alike (pins_names.c), and compares every
 * definition with the remembered one.  A held tool is listed with our text instead of its own, so
 * that an unapproved definition reaches no model.
 *
 * A definition with the same bytes as at the last look costs one digest; any other is parsed and
 * written in canonical form. */
#include "upstream/pins_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "json/write.h"
#include "upstream/pins_canon.h"

#define MINUTE_MS 60000
#define FINDINGS_BYTES (64u * 1024 * 1024)

/* Findings. */

struct finding *pins_find(struct looking *l, enum found_kind kind, struct str tool)
{
    struct findings *f = l->found;

    if (!f) {
        struct arena *mem = arena_new(FINDINGS_BYTES);
        f = l->found = arena_new_of(mem, struct findings);
        f->mem = mem;
        f->pins = l->pins;
        f->server = arena_dup(mem, l->server->name);
    }
    if (f->n == f->room) {
        f->room = f->room ? 2 * f->room : 16;
        f->of = xrealloc(f->of, f->room * sizeof(*f->of));
    }
    struct finding *one = &f->of[f->n++];
    *one = (struct finding){.kind = kind, .tool = arena_dup(f->mem, tool)};
    return one;
}

void pins_limit(struct looking *l, struct finding *one)
{
    struct watched_server *s = l->server;
    int64_t now = clock_mono_ms();

    if (!s->minute_ms || now - s->minute_ms >= MINUTE_MS) {
        s->minute_ms = now ? now : 1;
        s->recorded = 0;
    }
    one->is_recorded = s->recorded < PINS_RECORDED_PER_MINUTE;
    if (one->is_recorded)
        s->recorded++;
    else
        l->found->suppressed++;
}

static void fill_row(struct looking *l, struct finding *one, const struct watched_tool *t,
                     struct str canon)
{
    int64_t now = clock_life_ms();
    char *copy = canon.p && canon.n <= PINS_MAX_DEFINITION
                     ? arena_try_alloc(l->found->mem, canon.n + 1)
                     : NULL;

    one->row = (struct tool_row){.server = l->found->server,
                                 .name = one->tool,
                                 .first_seen_ms = now,
                                 .changed_ms = now,
                                 .gone_ms = t->gone ? now : 0};
    memcpy(one->row.digest, t->digest, sizeof(t->digest));
    if (one->kind == FOUND_TRUSTED) {
        memcpy(one->row.approved, t->approved, sizeof(t->approved));
        one->row.approved_ms = now;
    }
    if (copy) {
        memcpy(copy, canon.p, canon.n);
        one->row.definition = str_n(copy, canon.n);
    }
    one->is_held = l->pinned && !t->gone && !watched_is_approved(t);
}

/* Definitions. */

static void say(const struct looking *l, const struct finding *one)
{
    static const char *const texts[] = {
        [FOUND_ADDED] = "a server has a new tool",
        [FOUND_CHANGED] = "a server has changed a tool",
        [FOUND_REMOVED] = "a server has a tool less",
    };
    log_warn(texts[one->kind], LS("server", l->server->name), LS("tool", one->tool),
             LZ("held", one->is_held ? "yes" : "no"));
}

/* Whether the time is over in which changes of the tool were only counted. */
static bool owes(const struct watched_tool *t)
{
    return t->suppressed && clock_mono_ms() - t->recorded_since_ms >= PINS_TOOL_PERIOD_MS;
}

static bool tool_may_be_recorded(struct watched_tool *t)
{
    int64_t now = clock_mono_ms();

    if (!t->recorded || now - t->recorded_since_ms >= PINS_TOOL_PERIOD_MS) {
        t->recorded_since_ms = now;
        t->recorded = 0;
    }
    if (t->recorded == PINS_TOOL_RECORDED)
        return false;
    t->recorded++;
    return true;
}

/* is_change: false when an earlier finding is only reported or recorded again. */
static void found(struct looking *l, enum found_kind kind, struct watched_tool *t, struct str canon,
                  bool is_change)
{
    struct finding *one = pins_find(l, kind, t->name);

    fill_row(l, one, t, canon);
    t->unrecorded = false;
    if (kind == FOUND_TRUSTED) {
        l->found->trusted++;
        return;
    }
    metric_add(l->server->changed, is_change);
    if (!tool_may_be_recorded(t)) {
        t->suppressed += is_change;
        return;
    }
    one->is_last = t->recorded == PINS_TOOL_RECORDED;
    one->before = t->suppressed;
    t->suppressed = 0;
    pins_limit(l, one);
    if (one->is_recorded)
        say(l, one);
}

static struct watched_tool *remember(struct looking *l, struct str name)
{
    struct watched_server *s = l->server;

    if (s->tools.n < PINS_MAX_TOOLS)
        return pins_tool_new(s, name);
    if (!s->is_full) {
        pins_limit(l, pins_find(l, FOUND_BEYOND, name));
        log_warn("a server has had more tools than Holdfast watches; give it another name in the "
                 "configuration to begin again",
                 LS("server", s->name), LI("watched", PINS_MAX_TOOLS));
    }
    s->is_full = true;
    return NULL;
}

/* Which finding a listed tool gives; false: none. */
static bool judge(const struct looking *l, const struct watched_tool *t, bool is_new, bool differs,
                  enum found_kind *ret)
{
    if (is_new)
        *ret = l->is_first ? FOUND_TRUSTED : FOUND_ADDED;
    else if (t->unrecorded && (!differs || t->unrecorded_as == FOUND_ADDED))
        *ret = t->unrecorded_as;
    else if (t->gone && !differs)
        *ret = FOUND_ADDED;
    else if (differs || owes(t))
        *ret = FOUND_CHANGED;
    else
        return false;
    return true;
}

static void compare(struct looking *l, const struct catalog_item *item)
{
    struct watched_tool *t = map_get(&l->server->tools, item->name);
    uint8_t raw[SHA256_BYTES], digest[SHA256_BYTES];
    bool is_new = !t;
    enum found_kind kind;
    struct buf canon;

    sha256(item->raw, raw);
    if (t)
        t->look = l->server->look;
    if (t && !t->gone && !owes(t) && memcmp(t->raw, raw, sizeof(raw)) == 0)
        return;
    if (is_new && !(t = remember(l, item->name)))
        return;
    buf_init(&canon, SIZE_MAX / 4);
    if (!tool_canon(item->raw, &canon))
        buf_reset(&canon); /* cannot happen: it was parsed when it arrived */
    sha256(buf_str(&canon), digest);
    bool differs = memcmp(digest, t->digest, sizeof(digest)) != 0;
    bool is_recorded = judge(l, t, is_new, differs, &kind),
         is_change = is_new || differs || t->gone;
    memcpy(t->digest, digest, sizeof(digest));
    memcpy(t->raw, raw, sizeof(raw));
    t->gone = false;
    t->look = l->server->look;
    if (is_new && l->is_first)
        memcpy(t->approved, digest, sizeof(digest));
    if (is_recorded)
        found(l, kind, t, buf_str(&canon), is_change);
    buf_release(&canon);
}

static void find_gone(struct looking *l)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&l->server->tools, &at, &key, &value);) {
        struct watched_tool *t = value;
        if (t->look == l->server->look || (t->gone && !owes(t)))
            continue;
        bool is_change = !t->gone;
        t->gone = true;
        memset(t->raw, 0, sizeof(t->raw));
        found(l, FOUND_REMOVED, t, STR_NONE, is_change);
    }
}

/* Replaces the listed definition of a held tool. */
static void hold(struct looking *l, struct catalog_item *item)
{
    const struct watched_tool *t = map_get(&l->server->tools, item->name);
    enum pin_verdict verdict = !t                            ? PIN_BEYOND
                               : digest_is_none(t->approved) ? PIN_NEW
                                                             : PIN_CHANGED;
    struct buf text;

    if (t && watched_is_approved(t))
        return;
    buf_init(&text, 64u * 1024);
    buf_addz(&text, "{\"name\":");
    js_quote(&text, item->name);
    buf_addz(&text, ",\"description\":");
    js_quote(&text, pins_held_text(verdict, l->server->name, item->name, l->mem));
    buf_addz(&text, ",\"inputSchema\":{\"type\":\"object\"}}");
    catalog_hold(l->catalog, item, buf_str(&text));
    buf_release(&text);
}

void pins_look(void *arg, struct upstream *u, struct catalog *c, bool is_whole)
{
    struct looking l = {.pins = arg, .up = u, .catalog = c, .is_whole = is_whole};
    struct catalog_list *list = &c->lists[CATALOG_TOOLS];

    if (upstream_config(u)->kind == SERVER_BUILTIN)
        return;
    l.server = pins_server(l.pins, upstream_name(u));
    l.server->look++;
    l.is_first = l.server->tools.n == 0;
    l.pinned = upstream_config(u)->pin;
    l.mem = arena_new(FINDINGS_BYTES);
    map_init(&l.folds);
    map_init(&l.loose);
    map_init(&l.past);
    if (l.pinned || l.server->refused.n || l.server->refuses_rest)
        upstream_guard(u);
    pins_sort_names(&l);
    for (size_t i = 0; i < list->n; i++)
        compare(&l, &list->items[i]);
    if (is_whole)
        find_gone(&l);
    for (size_t i = 0; l.pinned && i < list->n; i++)
        hold(&l, &list->items[i]);
    map_release(&l.folds);
    map_release(&l.loose);
    map_release(&l.past);
    arena_free(l.mem);
    if (l.found)
        pins_record(l.found);
}
