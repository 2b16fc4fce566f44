/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of events from a store or from the daemon, and the walk over them.  The walk frees each
 * page before it fetches the next, so a walk over millions of events uses little memory. */
#include "audit/source.h"

#include "audit/event_json.h"
#include "audit/event_query.h"
#include "base/clock.h"

#include <stdlib.h>

struct event_source {
    struct store *store; /* NULL: the source is the API */
    bool is_borrowed;
    bool (*get)(void *arg, struct str path, struct arena *mem, struct str *ret_body,
                struct error *err);
    void *arg;
};

struct event_source *event_source_of_store(struct store *store)
{
    struct event_source *s = xcalloc(1, sizeof(*s));
    s->store = store;
    return s;
}

struct event_source *event_source_borrowing(struct store *store)
{
    struct event_source *s = event_source_of_store(store);
    s->is_borrowed = true;
    return s;
}

struct event_source *event_source_of_daemon(bool (*get)(void *arg, struct str path,
                                                        struct arena *mem, struct str *ret_body,
                                                        struct error *err),
                                            void *arg)
{
    struct event_source *s = xcalloc(1, sizeof(*s));
    s->get = get;
    s->arg = arg;
    return s;
}

void event_source_close(struct event_source *s)
{
    if (s && s->store && !s->is_borrowed)
        store_close(s->store);
    free(s);
}

static bool daemon_page(struct event_source *s, const struct event_filter *filter, unsigned limit,
                        struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                        struct error *err)
{
    struct buf path;
    struct str body;
    int64_t scanned = 0;
    buf_init(&path, 1 << 20);
    buf_addz(&path, "/api/v1/audit/events?");
    audit_events_query_format(filter, limit, &path);
    bool ok = s->get(s->arg, buf_str(&path), mem, &body, err) &&
              events_from_json(body, mem, ret_rows, ret_n, &scanned, err);
    buf_release(&path);
    if (ok && filter->ret_scanned)
        *filter->ret_scanned = scanned;
    else if (ok && scanned)
        ok = error_set(err, ERR_TIMEOUT, "the page took too long; ask for a narrower one");
    return ok;
}

bool event_source_page(struct event_source *s, const struct event_filter *filter, unsigned limit,
                       struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                       struct error *err)
{
    if (s->store)
        return store_events_page(s->store, filter, limit, mem, ret_rows, ret_n, err);
    return daemon_page(s, filter, limit, mem, ret_rows, ret_n, err);
}

/* Calls `each` for the rows of a page.  Returns EVENT_WALK_ON if there may be another page. */
static enum event_walk walk_page(const struct event_row *rows, size_t n, bool more,
                                 enum event_walk (*each)(void *arg, const struct event_row *e,
                                                         struct error *err),
                                 void *arg, struct error *err)
{
    enum event_walk how = more ? EVENT_WALK_ON : EVENT_WALK_STOP;
    for (size_t i = 0; i < n; i++) {
        enum event_walk said = each(arg, &rows[i], err);
        if (said != EVENT_WALK_ON)
            return said;
    }
    return how;
}

/* A page that takes too long is cut short and reports how far it got.  If it got nowhere, because
 * the machine is busy, or if the rows are too large for one answer, half as many rows are
 * requested. */
static bool fetch_page(struct event_source *s, const struct event_filter *filter, unsigned *limit,
                       struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                       struct error *err)
{
    struct error why;
    while (!event_source_page(s, filter, *limit, mem, ret_rows, ret_n, &why)) {
        if ((why.code != ERR_TIMEOUT && why.code != ERR_TOO_LARGE) || *limit == 1) {
            *err = why;
            return false;
        }
        *limit /= 2;
    }
    return true;
}

bool event_source_walk(struct event_source *s, const struct event_filter *filter,
                       enum event_walk (*each)(void *arg, const struct event_row *e,
                                               struct error *err),
                       void *arg, struct error *err)
{
    int64_t ignored;

    return event_source_walk_until(s, filter, INT64_MAX, &ignored, each, arg, err);
}

bool event_source_walk_until(struct event_source *s, const struct event_filter *filter,
                             int64_t until_ms, int64_t *ret_end,
                             enum event_walk (*each)(void *arg, const struct event_row *e,
                                                     struct error *err),
                             void *arg, struct error *err)
{
    struct event_filter next = *filter;
    unsigned limit = EVENTS_PAGE_MAX;
    int64_t scanned = 0;
    *ret_end = 0;
    next.ret_scanned = &scanned;
    for (enum event_walk how = EVENT_WALK_ON; how == EVENT_WALK_ON;) {
        struct arena *mem = arena_new(SIZE_MAX / 4);
        struct event_row *rows;
        size_t n = 0;
        if (!fetch_page(s, &next, &limit, mem, &rows, &n, err)) {
            how = EVENT_WALK_FAIL;
        } else {
            int64_t last = scanned ? scanned : n ? rows[n - 1].id : 0;
            how = walk_page(rows, n, scanned || n == limit, each, arg, err);
            if (next.newest_first)
                next.before = last;
            else
                next.after = last;
            if (how == EVENT_WALK_ON && clock_mono_ms() >= until_ms) {
                *ret_end = last;
                how = EVENT_WALK_STOP;
            }
        }
        arena_free(mem);
        if (how == EVENT_WALK_FAIL)
            return false;
    }
    return true;
}
