/* SPDX-License-Identifier: Apache-2.0 */
/* A page that took too long ends early with a cursor, so a list may need more pages than its rows
 * fill, also empty ones. */
#include "cli/audit_list.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "audit/event_query.h"
#include "store/store.h"

#include <stdlib.h>

struct list {
    const struct audit_list_ask *ask;
    struct control *control;
    struct arena *mem;      /* of the rows that are held */
    struct execution *rows; /* allocated */
    size_t n, cap, total;
    struct str cursor; /* in `cursor_text`; absent: the first page */
    struct buf cursor_text;
    bool is_over;
};

static void add_param(struct buf *path, const char *name, struct str value)
{
    if (!value.p)
        return;
    buf_addf(path, "&%s=", name);
    audit_query_encode(value, path);
}

static void write_path(const struct list *l, unsigned limit, struct buf *path)
{
    const struct audit_list_ask *ask = l->ask;

    buf_addf(path, "/api/v1/audit/executions?limit=%u", limit);
    add_param(path, "server", ask->server);
    add_param(path, "tool", ask->tool);
    add_param(path, "session", ask->session);
    add_param(path, "outcome", ask->outcome);
    add_param(path, "since", ask->since);
    add_param(path, "until", ask->until);
    add_param(path, "user", ask->user);
    add_param(path, "errors", ask->errors ? STR("1") : STR_NONE);
    add_param(path, "arguments", STR("1"));
    add_param(path, "cursor", l->cursor);
}

static void add_row(struct list *l, const struct execution *x)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->rows = xrealloc(l->rows, l->cap * sizeof(*l->rows));
    }
    l->rows[l->n++] = *x;
    l->total++;
}

static bool read_page(struct list *l, struct str body, struct error *err)
{
    struct js_doc doc;

    if (!js_parse(body, &js_limits_upstream, l->mem, &doc, NULL))
        return error_set(err, ERR_PARSE, "the answer is not JSON; is that address a Holdfast?");
    const struct js_node *list = js_get(&doc, js_root(&doc), STR("executions"));
    if (!js_type_is(list, JS_ARRAY))
        return error_set(err, ERR_PARSE, "the answer holds no events; is that address a Holdfast?");
    for (const struct js_node *v = js_first(&doc, list); v; v = js_next(&doc, list, v)) {
        struct execution x;
        if (!execution_from_json(&doc, v, l->mem, &x, err))
            return false;
        add_row(l, &x);
    }
    struct str next = js_text(&doc, js_get(&doc, js_root(&doc), STR("next_cursor")), l->mem);
    buf_reset(&l->cursor_text);
    buf_addstr(&l->cursor_text, next.p ? next : STR(""));
    l->cursor = buf_str(&l->cursor_text);
    l->is_over = !next.p;
    return true;
}

static bool fetch_page(struct list *l, struct error *err)
{
    size_t left = l->ask->limit - l->total;
    struct buf path;
    struct str body;

    if (l->ask->each && left > AUDIT_LIST_PIECE - l->n)
        left = AUDIT_LIST_PIECE - l->n;
    if (left > STORE_PAGE_MAX)
        left = STORE_PAGE_MAX;
    buf_init(&path, 1 << 20);
    write_path(l, (unsigned)left, &path);
    bool ok =
        control_get(l->control, buf_str(&path), l->mem, &body, err) && read_page(l, body, err);
    buf_release(&path);
    return ok;
}

/* Hands out the held rows, and ends the list if each() wants no more. */
static void hand_out(struct list *l)
{
    if (l->n && !l->ask->each(l->ask->arg, l->rows, l->n))
        l->is_over = true;
    l->n = 0;
    arena_reset(l->mem);
}

static bool walk(struct list *l, struct error *err)
{
    while (!l->is_over && l->total < l->ask->limit) {
        if (!fetch_page(l, err))
            return false;
        if (l->ask->each && l->n == AUDIT_LIST_PIECE)
            hand_out(l);
    }
    if (l->ask->each)
        hand_out(l);
    return true;
}

bool audit_list(struct control *c, const struct audit_list_ask *ask, struct arena *mem,
                struct execution **ret_rows, size_t *ret_n, struct error *err)
{
    struct list l = {.ask = ask, .control = c, .mem = ask->each ? arena_new(SIZE_MAX / 4) : mem};

    buf_init(&l.cursor_text, 1 << 20);
    bool ok = walk(&l, err);
    if (ok) {
        *ret_rows = NULL;
        *ret_n = l.total;
        if (!ask->each && l.n) {
            *ret_rows = arena_alloc(mem, l.n * sizeof(*l.rows));
            memcpy(*ret_rows, l.rows, l.n * sizeof(*l.rows));
        }
    }
    if (ask->each)
        arena_free(l.mem);
    buf_release(&l.cursor_text);
    free(l.rows);
    return ok;
}

bool audit_get(struct control *c, int64_t id, struct arena *mem, struct str *ret_body,
               struct error *err)
{
    char text[EVENT_ID_TEXT];
    struct str path = arena_printf(mem, "/api/v1/audit/executions/%s", event_id_format(id, text));

    if (control_get(c, path, mem, ret_body, err))
        return true;
    /* The sentence of the API names a path of its own; where retention removed the event it says so. */
    if (err->code == ERR_NOT_FOUND && strstr(err->text, "there is no such execution"))
        error_set(err, ERR_NOT_FOUND,
                  "there is no event %s; `holdfast audit list` shows those there are", text);
    return false;
}

bool audit_read_execution(struct str body, struct arena *mem, struct execution *ret,
                          struct event_row **ret_events, size_t *ret_n, struct error *err)
{
    struct js_doc doc;
    int64_t scanned;

    if (!events_from_json(body, mem, ret_events, ret_n, &scanned, err))
        return false;
    if (!js_parse(body, &js_limits_upstream, mem, &doc, NULL) || *ret_n == 0)
        return error_set(err, ERR_PARSE, "the answer holds no events; is that address a Holdfast?");
    if (!execution_from_json(&doc, js_get(&doc, js_root(&doc), STR("execution")), mem, ret, err))
        return false;
    ret->event = (*ret_events)[0]; /* has all fields */
    return true;
}
