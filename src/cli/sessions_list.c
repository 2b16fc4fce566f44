/* SPDX-License-Identifier: Apache-2.0 */
/* A page that took too long ends early with a cursor, so a list may need more pages than its rows
 * fill, also empty ones. */
#include "cli/sessions_list.h"

#include "cli/source.h"
#include "store/store.h"

#define PAGE_BYTES ((size_t)128 * 1024 * 1024)

struct list {
    struct control *control;
    const struct sessions_ask *ask;
    sessions_each_fn *each;
    void *arg;
    unsigned n;
    bool is_over, is_enough;
    struct buf cursor; /* empty: the first page */
};

static void add_param(struct buf *path, const char *name, struct str value, struct arena *mem)
{
    if (value.p)
        buf_addf(path, "&%s=%.*s", name, STR_ARG(source_encoded(value, mem)));
}

static struct str path_of(const struct list *l, struct arena *mem)
{
    const struct sessions_ask *ask = l->ask;
    unsigned left = ask->limit - l->n;
    struct buf out;

    buf_init(&out, 1 << 20);
    buf_addf(&out, "/api/v1/sessions/details?limit=%u",
             left < STORE_PAGE_MAX ? left : STORE_PAGE_MAX);
    add_param(&out, "status", ask->status, mem);
    add_param(&out, "client", ask->client, mem);
    add_param(&out, "server", ask->server, mem);
    add_param(&out, "user", ask->user, mem);
    add_param(&out, "tenant", ask->tenant, mem);
    if (l->cursor.n)
        add_param(&out, "cursor", buf_str(&l->cursor), mem);
    struct str path = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return path;
}

static bool take_page(struct list *l, struct arena *mem, struct error *err)
{
    struct str json = STR_NONE;
    struct js_doc doc;

    if (!control_get(l->control, path_of(l, mem), mem, &json, err) ||
        !source_parse(json, mem, &doc, err))
        return false;
    const struct js_node *rows = js_get(&doc, js_root(&doc), STR("sessions"));
    if (!js_type_is(rows, JS_ARRAY))
        return error_set(err, ERR_PARSE,
                         "the answer holds no sessions; is that address a Holdfast?");
    for (const struct js_node *s = js_first(&doc, rows); s && !l->is_enough;
         s = js_next(&doc, rows, s)) {
        l->n++;
        l->is_enough = !l->each(l->arg, &doc, s);
    }
    struct str next = js_text(&doc, js_get(&doc, js_root(&doc), STR("next_cursor")), mem);
    l->is_over = !next.p;
    buf_reset(&l->cursor);
    buf_addstr(&l->cursor, next.p ? next : STR(""));
    return true;
}

bool sessions_list(struct control *c, const struct sessions_ask *ask, sessions_each_fn *each,
                   void *arg, bool *ret_more, struct error *err)
{
    struct list l = {.control = c, .ask = ask, .each = each, .arg = arg};
    bool ok = true;

    buf_init(&l.cursor, 64 * 1024);
    while (ok && !l.is_over && !l.is_enough && l.n < ask->limit) {
        struct arena *mem = arena_new(PAGE_BYTES);
        ok = take_page(&l, mem, err);
        arena_free(mem);
    }
    buf_release(&l.cursor);
    *ret_more = !l.is_over;
    return ok;
}

bool sessions_get(struct control *c, struct str name, struct str tenant, struct arena *mem,
                  struct str *ret_json, struct error *err)
{
    struct str path =
        arena_printf(mem, "/api/v1/sessions/%.*s/details%s%.*s", STR_ARG(source_encoded(name, mem)),
                     tenant.p ? "?tenant=" : "", STR_ARG(source_encoded(tenant, mem)));

    if (control_get(c, path, mem, ret_json, err))
        return true;
    if (err->code == ERR_NOT_FOUND)
        error_set(err, ERR_NOT_FOUND,
                  "there is no session \"%.*s\"; `holdfast sessions list --status all` shows those "
                  "there are",
                  (int)(name.n < 100 ? name.n : 100), name.p);
    return false;
}
