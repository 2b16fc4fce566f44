/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a list: the number of rows on a page, and the link to the next page. */
#include "api/page.h"

#include "api/cursor.h"

size_t page_cut(const struct registry_call *reg, int64_t limit, bool *ret_more)
{
    size_t most = (size_t)limit;
    *ret_more = reg->limit > (unsigned)limit ? reg->n > most : reg->n == most;
    return reg->n < most ? reg->n : most;
}

struct str page_end(const struct page_place *p, struct js_writer *w, size_t count, struct str last,
                    struct arena *mem)
{
    struct str link = STR_NONE;

    js_kv_int(w, "count", (int64_t)count);
    js_key(w, STR("next_cursor"));
    if (last.p) {
        struct str next = cursor_make(p->who, p->about, last, mem);
        js_string(w, next);
        link = arena_printf(mem, "Link: <%.*s&cursor=%.*s>; rel=\"next\"\r\n", STR_ARG(p->url),
                            STR_ARG(next));
    } else {
        js_null(w);
    }
    js_object_end(w);
    return link;
}

struct str page_about(const struct api_call *c, const char *list)
{
    struct str query = c->http->head->query, about = str_of(list);

    while (query.n) {
        struct str pair = str_split(&query, '&');
        if (!str_starts(pair, STR("cursor=")) && !str_starts(pair, STR("limit=")))
            about = arena_printf(c->mem, "%.*s&%.*s", STR_ARG(about), STR_ARG(pair));
    }
    return about;
}

struct str page_url(const struct api_call *c, const char *path)
{
    struct str query = c->http->head->query, url = arena_printf(c->mem, "%s?", path);

    while (query.n) {
        struct str pair = str_split(&query, '&');
        if (pair.n && !str_starts(pair, STR("cursor=")))
            url = arena_printf(c->mem, "%.*s%s%.*s", STR_ARG(url),
                               url.p[url.n - 1] == '?' ? "" : "&", STR_ARG(pair));
    }
    return url;
}

bool page_refuse_cursor(struct api_call *c)
{
    api_refuse(c, ERR_BAD_CURSOR,
               "this cursor belongs to another list; send next_cursor unchanged");
    return false;
}
