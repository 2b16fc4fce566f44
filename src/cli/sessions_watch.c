/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the list once a second.  A terminal gets it drawn again if it differs; a file or pipe gets
 * the rows that are new or changed, and once more each session that left the list. */
#include "cli/sessions_watch.h"

#include "base/clock.h"
#include "base/map.h"
#include "cli/sessions_view.h"
#include "cli/source.h"
#include "cli/table.h"

#include <signal.h>
#include <stdio.h>

#define WATCH_MS 1000

/* The sessions of one reading: the value of each id is what a change of it shows in. */
struct seen {
    struct arena *mem;
    struct map by_id;
    struct str *ids;
    size_t n;
};
struct watching {
    const struct sessions_watch *w;
    struct seen before, now;
    struct table table;
    struct buf out, shown; /* `shown`: the screen as it was drawn last */
    bool is_waiting;
};

static void seen_init(struct seen *s, unsigned most)
{
    *s = (struct seen){.mem = arena_new(SIZE_MAX / 4)};
    s->ids = arena_alloc(s->mem, ((size_t)most + 1) * sizeof(*s->ids));
    map_init(&s->by_id);
}

static void seen_release(struct seen *s)
{
    map_release(&s->by_id);
    arena_free(s->mem);
}

/* Status, last use, calls, servers and end; not the age. */
static struct str state_of(const struct js_doc *doc, const struct js_node *session,
                           struct arena *mem)
{
    static const char *const members[] = {"status", "last_activity_at", "tool_execution_count",
                                          "servers", "terminated_at"};
    struct str text = STR("");

    for (size_t i = 0; i < countof(members); i++) {
        const struct js_node *v = js_get(doc, session, str_of(members[i]));
        text = arena_printf(mem, "%.*s %.*s", STR_ARG(text), STR_ARG(v ? js_raw(doc, v) : STR("")));
    }
    return text;
}

static void add(struct watching *v, const struct js_doc *doc, const struct js_node *session)
{
    struct audit_when when = {clock_wall_ms(), v->w->utc};

    if (v->w->json) {
        buf_addstr(&v->out, js_raw(doc, session));
        buf_addc(&v->out, '\n');
    } else {
        sessions_view_row(&v->table, doc, session, when);
    }
}

static bool take(void *arg, const struct js_doc *doc, const struct js_node *session)
{
    struct watching *v = arg;
    struct str id = arena_dup(v->now.mem, source_text(doc, session, "id", v->now.mem)),
               state = state_of(doc, session, v->now.mem),
               *kept = arena_new_of(v->now.mem, struct str);
    const struct str *before = map_get(&v->before.by_id, id);

    *kept = state;
    map_put(&v->now.by_id, id, kept);
    v->now.ids[v->now.n++] = id;
    if (v->w->width || !before || !str_eq(*before, state))
        add(v, doc, session);
    return true;
}

/* Shows a session that is not in the list any more, because it ended or newer ones fill the list.
 * A session that was deleted meanwhile has no row. */
static bool add_left(struct watching *v, struct str id, struct error *err)
{
    struct arena *mem = arena_new(16u * 1024 * 1024);
    struct str json = STR_NONE;
    struct js_doc doc;
    bool ok = sessions_get(v->w->control, id, v->w->ask->tenant, mem, &json, err);

    if (ok && source_parse(json, mem, &doc, err)) {
        struct str state = state_of(&doc, js_root(&doc), mem);
        const struct str *before = map_get(&v->before.by_id, id);
        if (!str_eq(*before, state))
            add(v, &doc, js_root(&doc));
    } else {
        ok = err->code == ERR_NOT_FOUND;
    }
    arena_free(mem);
    return ok;
}

static bool read_list(struct watching *v, struct error *err)
{
    bool more;

    if (!sessions_list(v->w->control, v->w->ask, take, v, &more, err))
        return false;
    for (size_t i = 0; !v->w->width && i < v->before.n; i++)
        if (!map_get(&v->now.by_id, v->before.ids[i]) && !add_left(v, v->before.ids[i], err))
            return false;
    return true;
}

/* False when stdout takes no more data. */
static bool print(struct watching *v)
{
    struct str text;

    if (v->table.n_cells || v->w->width)
        table_print(&v->table, &v->out);
    if (v->w->width && str_eq(buf_str(&v->out), buf_str(&v->shown))) {
        buf_reset(&v->out);
        return true;
    }
    if (v->w->width) {
        buf_reset(&v->shown);
        buf_addstr(&v->shown, buf_str(&v->out));
        fputs("\033[H\033[2J", stdout);
    }
    text = buf_str(&v->out);
    bool ok = fwrite(text.p, 1, text.n, stdout) == text.n && fflush(stdout) == 0;
    buf_reset(&v->out);
    return ok;
}

/* One reading, and what it shows.  A Holdfast that is away is waited for. */
static bool turn(struct watching *v, bool *ret_goes_on, struct error *err)
{
    seen_init(&v->now, v->w->ask->limit);
    if (!v->table.columns || v->w->width) {
        if (v->table.columns)
            table_release(&v->table);
        sessions_view_begin(&v->table, v->w->width, v->w->colour);
    }
    if (read_list(v, err)) {
        seen_release(&v->before);
        v->before = v->now;
        v->is_waiting = false;
        *ret_goes_on = print(v);
        return true;
    }
    seen_release(&v->now);
    buf_reset(&v->out);
    table_release(&v->table);
    if (err->code != ERR_UNREACHABLE && err->code != ERR_UNAVAILABLE)
        return false;
    if (!v->is_waiting)
        fprintf(stderr, "holdfast: no Holdfast answers there; waiting for it to come back\n");
    v->is_waiting = true;
    return true;
}

bool sessions_watch(const struct sessions_watch *w, struct error *err)
{
    struct watching v = {.w = w};
    bool ok, goes_on = true;

    signal(SIGINT, SIG_DFL); /* a shell starts background commands with SIGINT ignored */
    seen_init(&v.before, 0);
    buf_init(&v.out, SIZE_MAX / 4);
    buf_init(&v.shown, SIZE_MAX / 4);
    while ((ok = turn(&v, &goes_on, err)) && goes_on)
        goes_on = cli_pause(WATCH_MS);
    seen_release(&v.before);
    if (v.table.columns)
        table_release(&v.table);
    buf_release(&v.out);
    buf_release(&v.shown);
    return ok;
}
