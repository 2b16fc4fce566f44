/* SPDX-License-Identifier: Apache-2.0 */
/* The source of events: a store, or the API.  Both return the same pages. */
#ifndef HOLDFAST_AUDIT_SOURCE_H
#define HOLDFAST_AUDIT_SOURCE_H

#include "store/store.h"

struct event_source;

/* Takes ownership of `store`. */
struct event_source *event_source_of_store(struct store *store) must_check;
/* `store` stays the caller's. */
struct event_source *event_source_borrowing(struct store *store) must_check;
/* `get` fetches a path of the API ("/api/v1/audit/events?…") and returns the body of a 200 response,
 * in `mem`; any other response is an error. */
struct event_source *event_source_of_daemon(bool (*get)(void *arg, struct str path,
                                                        struct arena *mem, struct str *ret_body,
                                                        struct error *err),
                                            void *arg) must_check;
void event_source_close(struct event_source *s);

must_check bool event_source_page(struct event_source *s, const struct event_filter *filter,
                                  unsigned limit, struct arena *mem, struct event_row **ret_rows,
                                  size_t *ret_n, struct error *err);

/* Calls `each` for every event that passes the filter, page by page, in the filter's order.  A row
 * lives until `each` returns.  `each` ends the walk early with EVENT_WALK_STOP, or with
 * EVENT_WALK_FAIL and *err filled. */
enum event_walk { EVENT_WALK_ON, EVENT_WALK_STOP, EVENT_WALK_FAIL };
must_check bool event_source_walk(struct event_source *s, const struct event_filter *filter,
                                  enum event_walk (*each)(void *arg, const struct event_row *e,
                                                          struct error *err),
                                  void *arg, struct error *err);
/* The same, until until_ms (clock_mono_ms()).  *ret_end is the event that the walk got to by then; 0:
 * it was not cut short. */
must_check bool event_source_walk_until(
    struct event_source *s, const struct event_filter *filter, int64_t until_ms, int64_t *ret_end,
    enum event_walk (*each)(void *arg, const struct event_row *e, struct error *err), void *arg,
    struct error *err);

#endif
