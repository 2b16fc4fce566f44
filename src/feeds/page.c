/* SPDX-License-Identifier: Apache-2.0 */
#include "feeds/page.h"

#include "audit/audit.h"
#include "audit/event_id.h"
#include "base/clock.h"
#include "feeds/store/verbs.h"
#include "retention/store/verbs.h"

#include <stdlib.h>

#define WRITERS 200 /* of one read */
#define ROWS 200
#define ROWS_WITH_BODIES 16
#define PAGE_MS 250
/* At "now" the position names this many numbers below the highest, if their writers have not appeared
 * yet. */
#define UNSEEN 16

struct writers {
    struct event_writer *rows;
    size_t n, cap;
};

static void writers_add(struct writers *w, const struct event_writer *rows, size_t n)
{
    if (w->n + n > w->cap) {
        w->cap = 2 * (w->n + n);
        w->rows = xrealloc(w->rows, w->cap * sizeof(*w->rows));
    }
    if (n)
        memcpy(w->rows + w->n, rows, n * sizeof(*rows));
    w->n += n;
}

static bool list_writers(struct store *store, int64_t after, int64_t since_ms, struct arena *mem,
                         struct writers *ret, struct error *err)
{
    struct event_writer *rows = NULL;
    size_t n = WRITERS;

    while (n == WRITERS) {
        if (!store_event_writers(store, after, since_ms, WRITERS, mem, &rows, &n, err))
            return false;
        writers_add(ret, rows, n);
        after = n ? rows[n - 1].number : after;
    }
    return true;
}

/* "Now". */

static bool is_listed(const struct writers *w, int64_t number)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->rows[i].number == number)
            return true;
    return false;
}

static void name(struct position *at, int64_t id)
{
    if (at->n == POSITION_WRITERS_MAX) {
        at->n--;
        memmove(at->last, at->last + 1, at->n * sizeof(at->last[0]));
    }
    at->last[at->n++] = id;
}

static bool find_now(struct page *p, struct store *store, struct error *err)
{
    struct writers live = {.n = 0}, newest = {.n = 0};
    int64_t since = p->config->is_shared ? feed_over_before_ms() : 0, highest = p->config->writer;
    int64_t after = p->config->is_shared ? 0 : p->config->writer - 1;
    bool ok = list_writers(store, after, since, p->mem, &live, err);

    for (size_t i = 0; i < live.n; i++)
        highest = live.rows[i].number > highest ? live.rows[i].number : highest;
    ok =
        ok && list_writers(store, highest > UNSEEN ? highest - UNSEEN : 0, 0, p->mem, &newest, err);
    p->at.n = 0;
    for (int64_t number = ok && live.n ? live.rows[0].number : highest, i = 0;
         ok && number <= highest; number++) {
        int64_t id = event_id_make(number, 0);
        while ((size_t)i < live.n && live.rows[i].number < number)
            i++;
        bool found = (size_t)i < live.n && live.rows[i].number == number;
        if (found)
            ok = feed_newest_of(store, &live.rows[i], p->mem, &id, err);
        if (number == highest || (found && !feed_writer_is_over(p->config, &live.rows[i])) ||
            (p->config->is_shared && number > highest - UNSEEN && !is_listed(&newest, number)))
            name(&p->at, id);
    }
    free(live.rows);
    free(newest.rows);
    p->is_last = ok;
    return ok;
}

/* Pages. */

struct reading {
    struct page *page;
    struct store *store;
    struct writers writers;
    unsigned room; /* rows that still fit */
    size_t cap;
    bool is_full;
    bool has_read; /* one writer at least: the page moves the position */
    int64_t until_ms;
};

static void add_item(struct reading *r, int64_t id, const struct event_row *row, bool ends)
{
    struct page *p = r->page;

    if (p->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 256;
        p->items =
            arena_try_resize(p->mem, p->items, r->cap * sizeof(*p->items), cap * sizeof(*p->items));
        r->cap = cap;
    }
    p->items[p->n++] = (struct page_item){id, row, ends};
}

/* The id after which events of the writer are unread; -1: it is read to its end. */
static int64_t start_of(const struct position *at, int64_t writer)
{
    for (size_t i = 0; i < at->n; i++)
        if (event_id_writer(at->last[i]) == writer)
            return at->last[i];
    return position_is_before(at, event_id_make(writer, 1)) ? event_id_make(writer, 0) : -1;
}

static void add_rows(struct reading *r, struct event_row *rows, size_t n)
{
    const struct page *p = r->page;

    for (size_t i = 0; i < n; i++) {
        bool wanted =
            visibility_shows(p->visibility, &rows[i]) && selection_matches(p->selection, &rows[i]);
        add_item(r, rows[i].id, wanted ? &rows[i] : NULL, false);
    }
    r->room -= (unsigned)n;
}

/* The checkpoints of retention say what was removed of each writer and tenant, also between events that
 * stay.  They are read after the events, so none goes away unseen in between. */
static bool look_for_removed(struct page *p, struct store *store, int64_t start, struct error *err)
{
    struct str tenant = p->visibility->tenant;
    struct removed_row *rows = NULL;
    int64_t upto = p->removed_upto;
    size_t n = 0;

    if (!store_removed(store, event_id_writer(start), p->mem, &rows, &n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((!tenant.p || str_eq(rows[i].tenant, tenant)) && rows[i].last_id > start &&
            rows[i].last_id > upto)
            upto = rows[i].last_id;
    p->removed |= upto > p->removed_upto;
    p->removed_upto = upto;
    return true;
}

/* A reader of everything begins with what is stored: what was removed before it is no gap. */
static bool skip_removed(struct page *p, struct store *store, struct error *err)
{
    bool ok = look_for_removed(p, store, 0, err);

    p->removed = false;
    return ok;
}

static bool refuse_foreign(struct error *err)
{
    return error_set(err, ERR_BAD_INPUT,
                     "the position is ahead of this store, so it comes from another database; "
                     "begin without a position, or with after=0 for all events");
}

/* A database that was restored from a copy gives the numbers of its writers again.  Only this process
 * knows how many events its writer has, because retention may have removed the newest ones. */
static bool is_ahead(const struct page *p, int64_t start, int64_t last)
{
    return start > last && event_id_writer(start) == p->config->writer &&
           event_id_count(start) > audit_committed(p->config->audit);
}

static bool read_writer(struct reading *r, const struct event_writer *w, struct error *err)
{
    const struct page *p = r->page;
    bool is_over = feed_writer_is_over(p->config, w);
    int64_t start = start_of(&p->at, w->number), last = 0, scanned = 0;
    struct event_row *rows = NULL;
    size_t n = 0;

    if (start < 0)
        return true;
    if (!feed_newest_of(r->store, w, p->mem, &last, err))
        return false;
    if (is_ahead(p, start, last))
        return refuse_foreign(err);
    if ((last > start || is_over) && r->has_read && clock_mono_ms() > r->until_ms) {
        r->is_full = true;
        return true;
    }
    r->has_read = true;
    if (last > start) {
        struct event_filter filter = {.kind = -1,
                                      .after = start,
                                      .before = last + 1,
                                      .with_bodies = p->with_bodies,
                                      .ret_scanned = &scanned};
        selection_narrow(p->selection, &filter);
        visibility_narrow(p->visibility, &filter);
        if (!store_events_page(r->store, &filter, r->room, p->mem, &rows, &n, err))
            return false;
        bool full = n == r->room || scanned;
        add_rows(r, rows, n);
        if (scanned)
            add_item(r, scanned, NULL, false);
        if (full) {
            r->is_full = true;
            return look_for_removed(r->page, r->store, start, err);
        }
    }
    if (!look_for_removed(r->page, r->store, start, err))
        return false;
    add_item(r, last > start ? last : start, NULL, is_over);
    return true;
}

/* A named writer that the store does not list never began: its number was given to a start that
 * failed. */
static void end_unlisted(struct reading *r)
{
    const struct position *at = &r->page->at;
    const struct writers *w = &r->writers;
    bool settled = w->n && w->rows[w->n - 1].started_ms < clock_life_ms() - FEED_APPEARS_MS;

    for (size_t i = 0; settled && i < at->n; i++)
        if (!is_listed(w, event_id_writer(at->last[i])))
            add_item(r, at->last[i], NULL, true);
}

static bool read_all(struct reading *r, struct error *err)
{
    const struct writers *w = &r->writers;
    size_t first = r->page->turn % (w->n ? w->n : 1);

    for (size_t i = 0; i < w->n && !r->is_full; i++)
        if (feed_writer_is_over(r->page->config, &w->rows[i]) && !read_writer(r, &w->rows[i], err))
            return false;
    for (size_t k = 0; k < w->n && !r->is_full; k++) {
        size_t i = (first + k) % w->n;
        if (!feed_writer_is_over(r->page->config, &w->rows[i]) && !read_writer(r, &w->rows[i], err))
            return false;
    }
    return true;
}

static bool is_foreign(const struct reading *r)
{
    const struct position *at = &r->page->at;
    const struct writers *w = &r->writers;

    return at->n && (w->n == 0 || w->rows[w->n - 1].number < event_id_writer(at->last[at->n - 1]));
}

bool page_read(struct page *p, struct store *store, struct error *err)
{
    struct reading r = {.page = p,
                        .store = store,
                        .room = p->with_bodies ? ROWS_WITH_BODIES : ROWS,
                        .until_ms = clock_mono_ms() + PAGE_MS};
    int64_t lowest = event_id_writer(position_lowest(&p->at));

    if (p->finds_now)
        return find_now(p, store, err);
    bool ok = list_writers(store, lowest ? lowest - 1 : 0, 0, p->mem, &r.writers, err);
    if (ok && is_foreign(&r))
        ok = refuse_foreign(err);
    if (ok && !p->at.n)
        ok = skip_removed(p, store, err);
    if (ok && !p->at.n && r.writers.n)
        add_item(&r, event_id_make(r.writers.rows[0].number, 0), NULL, false);
    if (ok)
        end_unlisted(&r);
    ok = ok && read_all(&r, err);
    p->is_last = ok && !r.is_full;
    free(r.writers.rows);
    return ok;
}
