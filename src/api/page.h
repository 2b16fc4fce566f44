/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a list.  Every list of the API has the same form: rows, count, next_cursor and Link. */
#ifndef HOLDFAST_API_PAGE_H
#define HOLDFAST_API_PAGE_H

#include "json/write.h"
#include "api/api.h"

/* Returns how many of the rows that the registry has read go on a page of `limit`.  *ret_more: more
 * rows follow.  If the registry was not asked for one row beyond the limit, a full page means that
 * more may follow. */
size_t page_cut(const struct registry_call *reg, int64_t limit, bool *ret_more);

/* The caller, the list and query that its cursors belong to (api/cursor.h), and the URL with the
 * query. */
struct page_place {
    const struct principal *who;
    struct str about, url;
};
/* Writes count and next_cursor and ends the object; returns the Link header.  `last` is the last
 * row of this page; absent: no page follows. */
struct str page_end(const struct page_place *p, struct js_writer *w, size_t count, struct str last,
                    struct arena *mem);
/* What a cursor of this list belongs to: the list and every filter of its query. */
struct str page_about(const struct api_call *c, const char *list);
/* The URL of this page without its cursor. */
struct str page_url(const struct api_call *c, const char *path);
/* Refuses a cursor that was changed or belongs to another caller or list; returns false. */
bool page_refuse_cursor(struct api_call *c);

#endif
