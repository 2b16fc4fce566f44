/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a list, as every list of the API tells them: rows, count, next_cursor and Link. */
#ifndef HOLDFAST_API_PAGE_H
#define HOLDFAST_API_PAGE_H

#include "json/write.h"
#include "api/api.h"

/* How many of the rows that the registry read go on a page of `limit`.  *ret_more: others follow;
 * where no row more could be asked for, a full page is taken for it. */
size_t page_cut(const struct registry_call *reg, int64_t limit, bool *ret_more);

/* Whose list it is, what its cursors are about (api/cursor.h), and where it is, with a query. */
struct page_place {
    const struct principal *who;
    struct str about, url;
};
/* Writes count and next_cursor and ends the object; gives the Link header.  `last` is the row the
 * next page follows, absent: this was the last page. */
struct str page_end(const struct page_place *p, struct js_writer *w, size_t count, struct str last,
                    struct arena *mem);
/* Always false: the cursor is another's, of another list, or was changed. */
bool page_refuse_cursor(struct api_call *c);

#endif
