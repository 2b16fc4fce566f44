/* SPDX-License-Identifier: Apache-2.0 */
/* One look at a list of tools: names that look alike are taken out, every definition is compared
 * with what is remembered, and what may not be called is listed in our words instead of its own, so
 * that words nobody has approved reach no model.
 *
 * Bytes that did not change since the last look cost one digest; the rest is read and written in
 * canonical form. */
#include "pins/pins_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "json/write.h"
#include "pins/canon.h"
#include "pins/lookalike.h"

#include <stdlib.h>

#define MINUTE_MS 60000
#define TOOL_TOLD_MS (10 * MINUTE_MS) /* one that goes back and forth is told … */
#define TOOL_TOLD_MAX 4               /* … so often in that time */
#define FINDINGS_BYTES (64u * 1024 * 1024)

struct looking {
    struct pins *pins;
    struct upstream *up;
    struct watched_server *server;
    struct catalog *catalog;
    struct findings *found; /* NULL: nothing yet */
    struct map folds;       /* what a name looks like → the struct str that has it */
    struct arena *mem;
    bool is_first, is_whole, pinned;
};

/* Findings. */

static struct finding *find(struct looking *l, enum found_kind kind, struct str tool)
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

/* So many events in a minute; what is more is counted in one. */
static void tell(struct looking *l, struct finding *one)
{
    struct watched_server *s = l->server;
    int64_t now = clock_mono_ms();

    if (!s->minute_ms || now - s->minute_ms >= MINUTE_MS) {
        s->minute_ms = now ? now : 1;
        s->told = 0;
    }
    one->is_told = s->told < PINS_TOLD_PER_MINUTE;
    if (one->is_told)
        s->told++;
    else
        l->found->untold++;
}

static void fill_row(struct looking *l, struct finding *one, const struct watched_tool *t,
                     struct str canon)
{
    int64_t now = clock_life_ms();
    char *kept = canon.p && canon.n <= PINS_MAX_DEFINITION
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
    if (kept) {
        memcpy(kept, canon.p, canon.n);
        one->row.definition = str_n(kept, canon.n);
    }
    one->is_held = l->pinned && !t->gone && !watched_is_approved(t);
}

/* Names. */

static bool refuse(struct looking *l, struct str name, const char *why, struct str like)
{
    struct watched_server *s = l->server;

    upstream_guard(l->up);
    if (map_get(&s->refused, name))
        return false;
    if (s->refused.n >= PINS_MAX_REFUSED) {
        s->refuses_rest = true;
    } else {
        struct str *kept = xcalloc(1, sizeof(*kept) + name.n + 1);
        memcpy(kept + 1, name.p, name.n);
        *kept = str_n((char *)(kept + 1), name.n);
        map_put(&s->refused, *kept, kept);
    }
    struct finding *one = find(l, FOUND_REFUSED, name);
    one->why = why;
    one->like = like.p ? arena_dup(l->found->mem, like) : STR_NONE;
    tell(l, one);
    log_warn("left out a tool: its name is no name of its own", LS("server", s->name),
             LS("tool", name), LZ("why", why), LS("like", like));
    return false;
}

/* Claims what the name looks like, or finds who has it. */
static bool claim(struct looking *l, struct str name)
{
    const char *why = NULL;
    struct buf fold;

    buf_init(&fold, 4 * LOOKALIKE_MAX);
    bool ok = lookalike_fold(name, &fold, &why);
    if (!ok) {
        buf_release(&fold);
        return refuse(l, name, why, STR_NONE);
    }
    const struct str *other = map_get(&l->folds, buf_str(&fold));
    if (!other) {
        struct str *mine = arena_new_of(l->mem, struct str);
        *mine = name;
        map_put(&l->folds, arena_dup(l->mem, buf_str(&fold)), mine);
    }
    buf_release(&fold);
    return !other || str_eq(*other, name) ||
           refuse(l, name, "looks like that of another tool", *other);
}

static bool stays(void *arg, const struct catalog_item *item)
{
    struct looking *l = arg;

    if (!claim(l, item->name))
        return false;
    void *was = map_remove(&l->server->refused, item->name);
    free(was);
    return true;
}

/* Who was there first keeps the name, wherever a list has it. */
static void sort_out_names(struct looking *l)
{
    const struct catalog_list *list = &l->catalog->lists[CATALOG_TOOLS];

    for (size_t i = 0; i < list->n; i++)
        if (map_get(&l->server->tools, list->items[i].name))
            (void)claim(l, list->items[i].name);
    catalog_filter(l->catalog, CATALOG_TOOLS, stays, l);
}

/* Definitions. */

static bool is_zero(const uint8_t digest[SHA256_BYTES])
{
    static const uint8_t zero[SHA256_BYTES];
    return memcmp(digest, zero, sizeof(zero)) == 0;
}

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

static bool tool_may_be_told(struct watched_tool *t)
{
    int64_t now = clock_mono_ms();

    if (!t->told || now - t->told_since_ms >= TOOL_TOLD_MS) {
        t->told_since_ms = now;
        t->told = 0;
    }
    if (t->told == TOOL_TOLD_MAX)
        return false;
    t->told++;
    return true;
}

static void found(struct looking *l, enum found_kind kind, struct watched_tool *t, struct str canon)
{
    struct finding *one = find(l, kind, t->name);

    fill_row(l, one, t, canon);
    if (kind == FOUND_TRUSTED) {
        l->found->trusted++;
        return;
    }
    metric_add(l->server->changed, 1);
    if (!tool_may_be_told(t))
        return;
    tell(l, one);
    if (one->is_told)
        say(l, one);
}

static struct watched_tool *remember(struct looking *l, struct str name)
{
    struct watched_server *s = l->server;

    if (s->tools.n < PINS_MAX_TOOLS)
        return pins_tool_new(s, name);
    if (!s->is_full)
        log_warn("a server has had more tools than are watched; the rest counts as new",
                 LS("server", s->name), LI("watched", PINS_MAX_TOOLS));
    s->is_full = true;
    return NULL;
}

static void compare(struct looking *l, const struct catalog_item *item)
{
    struct watched_tool *t = map_get(&l->server->tools, item->name);
    uint8_t raw[SHA256_BYTES], digest[SHA256_BYTES];
    bool is_new = !t;
    struct buf canon;

    sha256(item->raw, raw);
    if (t)
        t->look = l->server->look;
    if (t && !t->gone && memcmp(t->raw, raw, sizeof(raw)) == 0)
        return;
    if (is_new && !(t = remember(l, item->name)))
        return;
    buf_init(&canon, SIZE_MAX / 4);
    if (!tool_canon(item->raw, &canon))
        buf_reset(&canon); /* cannot be: it was read when it came */
    sha256(buf_str(&canon), digest);
    bool differs = memcmp(digest, t->digest, sizeof(digest)) != 0, was_gone = t->gone;
    memcpy(t->digest, digest, sizeof(digest));
    memcpy(t->raw, raw, sizeof(raw));
    t->gone = false;
    t->look = l->server->look;
    if (is_new && l->is_first)
        memcpy(t->approved, digest, sizeof(digest));
    if (is_new && l->is_first)
        found(l, FOUND_TRUSTED, t, buf_str(&canon));
    else if (is_new || (was_gone && !differs))
        found(l, FOUND_ADDED, t, buf_str(&canon));
    else if (differs)
        found(l, FOUND_CHANGED, t, buf_str(&canon));
    buf_release(&canon);
}

static void find_gone(struct looking *l)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&l->server->tools, &at, &key, &value);) {
        struct watched_tool *t = value;
        if (t->gone || t->look == l->server->look)
            continue;
        t->gone = true;
        memset(t->raw, 0, sizeof(t->raw));
        found(l, FOUND_REMOVED, t, STR_NONE);
    }
}

/* What is listed of a held tool. */
static void hold(struct looking *l, struct catalog_item *item)
{
    const struct watched_tool *t = map_get(&l->server->tools, item->name);
    enum pin_verdict verdict = t && !is_zero(t->approved) ? PIN_CHANGED : PIN_NEW;
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
    if (l.pinned || l.server->refused.n || l.server->refuses_rest)
        upstream_guard(u);
    sort_out_names(&l);
    for (size_t i = 0; i < list->n; i++)
        compare(&l, &list->items[i]);
    if (is_whole)
        find_gone(&l);
    for (size_t i = 0; l.pinned && i < list->n; i++)
        hold(&l, &list->items[i]);
    map_release(&l.folds);
    arena_free(l.mem);
    if (l.found)
        pins_record(l.found);
}
