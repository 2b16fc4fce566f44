/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers of the REST operations on documents. */
#include "docs/cli/client.h"

#include "cli/source.h"
#include "config/datadir.h"
#include "config/config.h"
#include "http/codec.h"
#include "json/write.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#define FILES "/api/v1/docs/files"
#define SUGGESTIONS "/api/v1/docs/suggestions"
#define BATCH 200 /* suggestions per request */
#define PAGE 100

static const struct js_limits answer_limits = {.depth = 16, .keys = 64, .nodes = 64u << 20};

static struct str name_of_user(struct arena *mem)
{
    const struct passwd *user = getpwuid(getuid());
    const char *name = user ? user->pw_name : getenv("USER");

    return name && *name ? arena_dup(mem, str_of(name)) : STR_NONE;
}

static bool open_socket(struct cli *cli, struct docs_client *c, struct error *err)
{
    struct str dir;

    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &dir, err))
        return false;
    if (datadir_owner(dir) == 0 && !temporary_start(cli, dir, &c->holdfast, err))
        return false;
    if (control_open_socket(dir, &c->control, err))
        return true;
    temporary_end(&c->holdfast);
    return false;
}

bool docs_client_open(struct cli *cli, struct docs_client *ret, struct error *err)
{
    struct docs_client c = {.mem = cli->mem};

    if (cli_flag(cli, "--ca") && !cli_flag(cli, "--url"))
        return error_set(err, ERR_USAGE, "--ca belongs to --url");
    if (!(cli_flag(cli, "--url") ? source_open_url(cli, &c.control, err)
                                 : open_socket(cli, &c, err)))
        return false;
    c.author = name_of_user(cli->mem);
    *ret = c;
    return true;
}

void docs_client_close(struct docs_client *c)
{
    control_close(c->control);
    c->control = NULL;
    temporary_end(&c->holdfast);
}

/* Requests. */

static bool parse(struct docs_client *c, struct str json, struct js_doc *ret, struct error *err)
{
    if (js_parse(json, &answer_limits, c->mem, ret, NULL))
        return true;
    return error_set(err, ERR_INTERNAL,
                     "the answer of Holdfast is not JSON; is it another version?");
}

bool docs_client_get(struct docs_client *c, struct str target, struct js_doc *ret,
                     struct str *ret_json, struct error *err)
{
    struct str json;

    if (!control_get(c->control, target, c->mem, &json, err) || !parse(c, json, ret, err))
        return false;
    if (ret_json)
        *ret_json = json;
    return true;
}

static struct str encoded(struct docs_client *c, struct str text)
{
    char *out = arena_alloc(c->mem, 3 * text.n + 1);
    return str_n(out, http_percent_encode(text, out));
}

/* Encodes every byte, because "+" and "&" have a meaning in a query. */
struct str docs_client_value(struct docs_client *c, struct str text)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = arena_alloc(c->mem, 3 * text.n + 1), *at = out;

    for (size_t i = 0; i < text.n; i++) {
        unsigned char b = (unsigned char)text.p[i];
        *at++ = '%';
        *at++ = hex[b >> 4];
        *at++ = hex[b & 15];
    }
    return str_n(out, (size_t)(at - out));
}

bool docs_client_target(struct docs_client *c, struct str path, const char *tail, struct str *ret,
                        struct error *err)
{
    struct str rest = path, target = STR(FILES);

    if (path.n < 4 || path.p[0] == '/' || str_find(path, '/') == path.n ||
        !str_ieq(str_n(path.p + path.n - 3, 3), STR(".md")))
        return error_set(err, ERR_USAGE,
                         "a document is named Folder/Path.md; see `holdfast docs list`");
    while (rest.p) {
        struct str part = encoded(c, str_split(&rest, '/'));
        target = arena_printf(c->mem, "%.*s/%.*s", STR_ARG(target), STR_ARG(part));
    }
    *ret = arena_printf(c->mem, "%.*s%s", STR_ARG(target), tail);
    return true;
}

static struct str member(const struct js_doc *doc, const struct js_node *object, const char *name,
                         struct arena *mem)
{
    return js_text(doc, js_get(doc, object, str_of(name)), mem);
}

static int64_t number(const struct js_doc *doc, const struct js_node *object, const char *name)
{
    int64_t value = 0;
    return js_to_i64(doc, js_get(doc, object, str_of(name)), &value) ? value : 0;
}

bool docs_client_each(struct docs_client *c, struct str target, const char *name, int64_t limit,
                      docs_row_fn *fn, void *arg, struct error *err)
{
    bool has_query = str_find(target, '?') != target.n, is_bounded = limit > 0;
    struct str cursor = STR("");

    for (;;) {
        int64_t page = is_bounded && limit < PAGE ? limit : PAGE;
        struct js_doc doc;
        if (!docs_client_get(c,
                             arena_printf(c->mem, "%.*s%slimit=%lld%.*s", STR_ARG(target),
                                          has_query ? "&" : "?", (long long)page, STR_ARG(cursor)),
                             &doc, NULL, err))
            return false;
        const struct js_node *rows = js_get(&doc, js_root(&doc), str_of(name));
        for (const struct js_node *r = js_first(&doc, rows); r; r = js_next(&doc, rows, r))
            if (!fn(arg, &doc, r, err))
                return false;
        limit -= number(&doc, js_root(&doc), "count");
        struct str next = member(&doc, js_root(&doc), "next_cursor", c->mem);
        if (!next.p || (is_bounded && limit <= 0))
            return true;
        cursor = arena_printf(c->mem, "&cursor=%.*s", STR_ARG(next));
    }
}

/* Suggestions. */

bool docs_item_is_change(const struct docs_item *i)
{
    return !str_eq(i->type, STR("comment")) && !str_eq(i->type, STR("highlight"));
}

struct gathering {
    struct docs_client *c;
    struct docs_item *items;
    size_t n, room;
    int64_t hidden;
};

static struct docs_item *item_new(struct gathering *g)
{
    if (g->n == g->room) {
        struct docs_item *old = g->items;
        g->room = g->room ? 2 * g->room : 64;
        g->items = arena_zalloc(g->c->mem, g->room * sizeof(*g->items));
        if (g->n)
            memcpy(g->items, old, g->n * sizeof(*old));
    }
    return &g->items[g->n++];
}

static void read_item(struct docs_item *i, const struct js_doc *doc, const struct js_node *s,
                      struct arena *mem)
{
    i->json = js_raw(doc, s);
    i->id = member(doc, s, "id", mem);
    i->type = member(doc, s, "type", mem);
    i->old = member(doc, s, "old_content", mem);
    i->fresh = member(doc, s, "new_content", mem);
    i->author = member(doc, s, "author", mem);
    i->raw = member(doc, s, "raw_markup", mem);
    i->before = member(doc, s, "context_before", mem);
    i->after = member(doc, s, "context_after", mem);
    i->time_ms = number(doc, s, "timestamp");
    i->from = number(doc, s, "from");
    i->line = number(doc, s, "line");
}

static bool take_file(void *arg, const struct js_doc *doc, const struct js_node *file,
                      struct error *err unused_arg)
{
    struct gathering *g = arg;
    const struct js_node *list = js_get(doc, file, STR("suggestions"));
    struct str path = member(doc, file, "path", g->c->mem),
               etag = member(doc, file, "etag", g->c->mem);
    int64_t shown = 0;

    for (const struct js_node *s = js_first(doc, list); s; s = js_next(doc, list, s), shown++) {
        struct docs_item *i = item_new(g);
        read_item(i, doc, s, g->c->mem);
        i->path = path;
        i->etag = etag;
    }
    g->hidden += number(doc, file, "total") - shown;
    return true;
}

bool docs_client_suggestions(struct docs_client *c, struct str where, struct docs_item **ret,
                             size_t *ret_n, int64_t *ret_hidden, struct error *err)
{
    struct gathering g = {.c = c};
    struct str rest = where, folder = str_split(&rest, '/'), target = STR(SUGGESTIONS);

    if (folder.n)
        target = arena_printf(c->mem, SUGGESTIONS "?folder=%.*s%s%.*s",
                              STR_ARG(docs_client_value(c, folder)), rest.n ? "&path=" : "",
                              STR_ARG(docs_client_value(c, rest)));
    if (!docs_client_each(c, target, "files", 0, take_file, &g, err))
        return false;
    *ret = g.items;
    *ret_n = g.n;
    *ret_hidden = g.hidden;
    return true;
}

/* Decisions. */

static struct str take(struct buf *out, struct arena *mem)
{
    struct str text = arena_dup(mem, buf_str(out));
    buf_release(out);
    return text;
}

static struct str decision_json(struct docs_client *c, const struct docs_decision *d)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "path", d->items[0].path);
    js_kv_string(&w, "action", str_of(d->action));
    js_kv_string(&w, "text", d->text);
    js_kv_string(&w, "reason", d->reason);
    js_kv_string(&w, "author", c->author);
    js_key(&w, STR("suggestions"));
    js_array(&w);
    for (size_t i = 0; i < d->n; i++) {
        js_object(&w);
        js_kv_string(&w, "raw_markup", d->items[i].raw);
        js_kv_int(&w, "from", d->items[i].from);
        js_kv_string(&w, "context_before", d->items[i].before);
        js_kv_string(&w, "context_after", d->items[i].after);
        js_object_end(&w);
    }
    js_array_end(&w);
    js_object_end(&w);
    return take(&out, c->mem);
}

static bool post(struct docs_client *c, const struct control_request *r, struct docs_outcome *ret,
                 struct error *err)
{
    struct js_doc doc;
    struct str json;

    if (!control_send(c->control, r, c->mem, &json, err) || !parse(c, json, &doc, err))
        return false;
    const struct js_node *root = js_root(&doc), *applied = js_get(&doc, root, STR("applied")),
                         *failed = js_get(&doc, root, STR("failed"));
    ret->json = json;
    ret->revision = number(&doc, root, "revision");
    ret->etag = member(&doc, root, "etag", c->mem);
    for (const struct js_node *a = js_first(&doc, applied); a; a = js_next(&doc, applied, a))
        ret->applied++;
    for (const struct js_node *f = js_first(&doc, failed); f; f = js_next(&doc, failed, f)) {
        if (!ret->failed++)
            ret->reason = member(&doc, f, "reason", c->mem);
    }
    return true;
}

bool docs_client_decide(struct docs_client *c, const struct docs_decision *d,
                        struct docs_outcome *ret, struct error *err)
{
    *ret = (struct docs_outcome){0};
    for (size_t at = 0; at < d->n; at += BATCH) {
        struct docs_decision some = *d;
        some.items = d->items + at;
        some.n = d->n - at < BATCH ? d->n - at : BATCH;
        struct control_request r = {
            .method = "POST", .path = STR(SUGGESTIONS "/apply"), .body = decision_json(c, &some)};
        if (!post(c, &r, ret, err))
            return false;
    }
    return true;
}

bool docs_client_restore(struct docs_client *c, struct str path, int64_t revision, struct str etag,
                         struct str reason, struct docs_outcome *ret, struct error *err)
{
    struct control_request r = {.method = "POST"};
    struct js_writer w;
    struct buf out;

    *ret = (struct docs_outcome){0};
    if (!docs_client_target(c, path, "/restore", &r.path, err))
        return false;
    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_int(&w, "revision", revision);
    js_kv_string(&w, "reason", reason);
    js_kv_string(&w, "author", c->author);
    js_object_end(&w);
    r.body = take(&out, c->mem);
    if (etag.p)
        r.headers = arena_printf(c->mem, "If-Match: %.*s\r\n", STR_ARG(etag));
    return post(c, &r, ret, err);
}

bool docs_client_move(struct docs_client *c, struct str path, struct str new_path,
                      struct str reason, int64_t *ret_links, struct str *ret_json,
                      struct error *err)
{
    struct control_request r = {.method = "POST"};
    struct js_writer w;
    struct js_doc doc;
    struct buf out;

    if (!docs_client_target(c, path, "/move", &r.path, err))
        return false;
    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "new_path", new_path);
    js_kv_string(&w, "reason", reason);
    js_kv_string(&w, "author", c->author);
    js_object_end(&w);
    r.body = take(&out, c->mem);
    if (!control_send(c->control, &r, c->mem, ret_json, err) || !parse(c, *ret_json, &doc, err))
        return false;
    *ret_links = number(&doc, js_root(&doc), "links_rewritten");
    return true;
}
