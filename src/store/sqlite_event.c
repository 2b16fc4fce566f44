/* SPDX-License-Identifier: Apache-2.0 */
/* Events in SQLite: appending and paging.
 *
 * The events of a transaction are gathered and written as segments (store/segment.h), each a row
 * under the id of its first event.  That key is the table's only index, so every query other than
 * by id scans a range of ids and filters the events here.  Scans for readers have a deadline. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

bool sq_events_open(struct sqlite_store *s, struct sq_events *c, enum sq_statement which,
                    int64_t from, int64_t upto, bool with_bodies, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, which, err);
    if (!st)
        return false;
    *c = (struct sq_events){.s = s, .st = st};
    for (size_t i = 0; i < countof(c->plain); i++)
        buf_init(&c->plain[i], SIZE_MAX / 4);
    c->scan = (struct segment_scan){.from = from, .upto = upto, .down = which == SQ_EVENTS_DOWN};
    struct sq_bind b = {.st = st};
    sq_int(&b, with_bodies);
    sq_int(&b, from);
    sq_int(&b, upto);
    return true;
}

void sq_events_close(struct sq_events *c)
{
    sq_reset(c->st);
    segment_scan_release(&c->scan);
    for (size_t i = 0; i < countof(c->plain); i++)
        buf_release(&c->plain[i]);
}

static bool next_segment(struct sq_events *c, bool *ret_found, struct error *err)
{
    if (!sq_step(c->s, c->st, ret_found, err))
        return false;
    if (!*ret_found)
        return true;
    struct sq_row r = {.st = c->st};
    c->scan.walk.id = sq_get_int(&r);
    bool packed = sq_get_int(&r) != 0;
    struct str *const to[] = {&c->scan.walk.records, &c->scan.walk.bodies};
    for (size_t i = 0; i < countof(to); i++) {
        *to[i] = sq_peek_bytes(&r);
        if (packed) /* the verification reports damage */
            (void)unpack_bytes(*to[i], &c->plain[i], to[i]);
    }
    return true;
}

bool sq_events_next(struct sq_events *c, struct event_row *ret, bool *ret_found, struct error *err)
{
    while (!segment_scan_next(&c->scan, ret)) {
        if (!next_segment(c, ret_found, err)) {
            sq_events_close(c);
            return false;
        }
        if (!*ret_found)
            return true;
    }
    *ret_found = true;
    return true;
}

bool sq_event_peek(struct sqlite_store *s, struct sq_events *c, int64_t id, struct event_row *ret,
                   bool *ret_found, struct error *err)
{
    return sq_events_open(s, c, SQ_EVENTS_UP, id, id, false, err) &&
           sq_events_next(c, ret, ret_found, err);
}

bool sq_event_next(struct sqlite_store *s, int64_t id, int64_t *ret_id, struct error *err)
{
    struct sq_events c;
    struct event_row e;
    bool found = false;
    if (!sq_events_open(s, &c, SQ_EVENTS_UP, id, INT64_MAX, false, err) ||
        !sq_events_next(&c, &e, &found, err))
        return false;
    *ret_id = found ? e.id : 0;
    sq_events_close(&c);
    return true;
}

/* If the id is taken, it must be taken by this same event: a commit of unknown outcome may be
 * repeated, but one event never hides another. */
static bool is_repeated(struct sqlite_store *s, const struct event_row *e, bool *ret,
                        struct error *err)
{
    struct sq_events c;
    struct event_row stored;
    if (!sq_event_peek(s, &c, e->id, &stored, ret, err))
        return false;
    bool same = *ret && memcmp(stored.mac, e->mac, sizeof(stored.mac)) == 0;
    sq_events_close(&c);
    return !*ret || same || event_id_is_taken(e, err);
}

static struct str packed(struct sqlite_store *s, const struct buf *plain, struct buf *to)
{
    buf_reset(to);
    pack_bytes(s->packer, buf_str(plain), to);
    return buf_str(to);
}

static bool insert_segment(struct sqlite_store *s, int64_t first, struct error *err)
{
    struct segment *seg = &s->segment;
    sqlite3_stmt *st = sq_prepare(s, SQ_EVENTS_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, first);
    sq_blob(&b, packed(s, &seg->records, &s->packed[0]));
    sq_blob(&b, packed(s, &seg->bodies, &s->packed[1]));
    bool ok = sq_run(s, st, err);
    s->newest = first + (int64_t)seg->n - 1;
    segment_reset(seg);
    return ok;
}

/* True when every id of this writer from `id` on is free.  Known for the writer that appended last;
 * a query for others. */
static bool is_newest(struct sqlite_store *s, int64_t id, bool *ret, struct error *err)
{
    int64_t writer = id >> EVENT_WRITER_SHIFT;
    int64_t next = 0;
    if (s->newest >> EVENT_WRITER_SHIFT == writer && s->newest < id) {
        *ret = true;
        return true;
    }
    if (!sq_event_next(s, id, &next, err))
        return false;
    *ret = next == 0 || next >> EVENT_WRITER_SHIFT != writer;
    return true;
}

/* Writes the gathered events, except for those that are already stored. */
bool sq_events_flush(struct sqlite_store *s, struct error *err)
{
    bool newest = true;
    size_t n = s->n_gathered;
    s->n_gathered = 0;
    if (n == 0)
        return true;
    if (!is_newest(s, s->gathered[0]->id, &newest, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct event_row *e = s->gathered[i];
        bool repeated = false;
        if (!newest && !is_repeated(s, e, &repeated, err))
            return false;
        if (!repeated) {
            segment_add(&s->segment, e);
            sq_unfolded_append(s, e);
        }
        bool closed = i + 1 == n || repeated || segment_is_full(&s->segment);
        if (closed && s->segment.n &&
            !insert_segment(s, e->id + !repeated - (int64_t)s->segment.n, err))
            return false;
    }
    if (!newest)
        s->newest = -1; /* a gap was filled, or nothing was written */
    return true;
}

bool sq_event_append(struct sqlite_store *s, const struct event_row *e, struct error *err)
{
    bool follows = s->n_gathered && s->gathered[s->n_gathered - 1]->id + 1 == e->id;
    if ((!follows || s->n_gathered == countof(s->gathered)) && !sq_events_flush(s, err))
        return false;
    s->gathered[s->n_gathered++] = e;
    return true;
}

void sq_events_forget(struct sqlite_store *s)
{
    s->n_gathered = 0;
    s->newest = -1;
    segment_reset(&s->segment);
}

/* Events between two checks of the clock. */
#define SCAN_STEP 256

static bool page_is_over(const struct sqlite_store *s, const struct event_filter *f, size_t scanned)
{
    return f->ret_scanned && scanned % SCAN_STEP == 0 && clock_mono_us() > s->deadline_us;
}

/* Reads the matching events of one range until the page is full or its time is over. */
static bool read_range(struct sqlite_store *s, const struct event_filter *f, int64_t from,
                       int64_t upto, unsigned limit, struct arena *mem, struct event_row *rows,
                       size_t *n, struct error *err)
{
    struct sq_events c;
    struct event_row e;
    bool found = true;
    int64_t last = 0;
    size_t scanned = 0;
    bool ok = sq_events_open(s, &c, f->newest_first ? SQ_EVENTS_DOWN : SQ_EVENTS_UP, from, upto,
                             f->with_bodies, err);
    if (!ok)
        return false;
    while (*n < limit) {
        ok = sq_events_next(&c, &e, &found, err);
        if (!ok || !found)
            break;
        last = e.id;
        if (event_is_before_all(f, &e)) { /* all earlier events of its writer are too old */
            last = e.id >> EVENT_WRITER_SHIFT << EVENT_WRITER_SHIFT;
            sq_events_close(&c);
            ok = sq_events_open(s, &c, SQ_EVENTS_DOWN, from, last - 1, f->with_bodies, err);
            if (!ok)
                return false;
            continue;
        }
        if (event_filter_matches(f, &e))
            event_row_keep(mem, &e, &rows[(*n)++]);
        if (page_is_over(s, f, ++scanned)) {
            *f->ret_scanned = last;
            break;
        }
    }
    sq_events_close(&c);
    if (!ok && f->ret_scanned && last && err->code == ERR_TIMEOUT) {
        *f->ret_scanned = last;
        return true;
    }
    return ok;
}

/* Finds the second event of an execution.  *ret_second is 0 when only a scan from the intent on can
 * find it.  Such a scan is short: for executions that were open long the fold stores the id of the
 * outcome.  For a note, and for an event that is not stored, *ret_second is the event itself. */
static bool find_pair(struct sqlite_store *s, int64_t exec, int64_t *ret_second, struct error *err)
{
    bool found = false;
    struct sq_events c;
    struct event_row e;
    if (!sq_select_number(s, SQ_EXEC_OUTCOME, exec, &found, ret_second, err))
        return false;
    if (found)
        return true;
    if (!sq_event_peek(s, &c, exec, &e, &found, err))
        return false;
    if (!found || e.kind == EVENT_NOTE) /* not found: retention removed it, or it never was */
        *ret_second = exec;
    sq_events_close(&c);
    return true;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool read_page(struct sqlite_store *s, const struct event_filter *f, int64_t second,
                      unsigned limit, struct arena *mem, struct event_row *rows, size_t *n,
                      struct error *err)
{
    int64_t from = f->after < INT64_MAX ? f->after + 1 : f->after;
    int64_t upto = f->before ? f->before - 1 : INT64_MAX;
    if (!second)
        return read_range(s, f, most(from, f->exec), upto, limit, mem, rows, n, err);
    int64_t ids[] = {f->newest_first ? second : f->exec, f->newest_first ? f->exec : second};
    for (size_t i = 0; i < (second == f->exec ? 1 : countof(ids)); i++)
        if (!read_range(s, f, most(from, ids[i]), least(upto, ids[i]), limit, mem, rows, n, err))
            return false;
    return true;
}

static bool add_folded(struct sqlite_store *s, struct open_set *open, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_OPEN_ALL, err);
    if (!st)
        return false;
    for (bool row = true;;) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        open_set_add(open, sqlite3_column_int64(st, 0));
    }
    sq_reset(st);
    return true;
}

static void note_unfolded(void *arg, const struct event_row *e)
{
    open_set_note(arg, e);
}

/* Reads the matching intents of `open` until the page is full or its time is over. */
static bool read_open(struct sqlite_store *s, const struct event_filter *f,
                      const struct open_set *open, unsigned limit, struct arena *mem,
                      struct event_row *rows, size_t *n, struct error *err)
{
    for (size_t i = 0; i < open->n_opened && *n < limit; i++) {
        struct sq_events c;
        struct event_row e;
        bool found = false;
        int64_t id = open->opened[i];
        if (f->ret_scanned && i && clock_mono_us() > s->deadline_us) {
            *f->ret_scanned = open->opened[i - 1];
            return true;
        }
        if (!sq_events_open(s, &c, SQ_EVENTS_UP, id, id, f->with_bodies, err) ||
            !sq_events_next(&c, &e, &found, err))
            return false;
        if (found && event_filter_matches(f, &e))
            event_row_keep(mem, &e, &rows[(*n)++]);
        sq_events_close(&c);
    }
    return true;
}

/* Reads both in one transaction, so that an event that is folded meanwhile is in one of them. */
static bool open_page(struct sqlite_store *s, const struct event_filter *f, unsigned limit,
                      struct arena *mem, struct event_row *rows, size_t *n, struct error *err)
{
    struct open_set open = {0};
    if (!sq_begin_read(s, err))
        return false;
    bool ok = sq_tails_walk(s, note_unfolded, &open, err) && add_folded(s, &open, err);
    if (ok) {
        open_set_filter(&open, f);
        ok = read_open(s, f, &open, limit, mem, rows, n, err);
    }
    sq_end_read(s);
    open_set_release(&open);
    return ok;
}

static bool events_page(struct store *store, struct store_call *c, struct error *err)
{
    const struct event_filter *f = c->filter;
    struct sqlite_store *s = sq_of(store);
    int64_t second = 0;
    size_t n = 0;
    if (f->exec && !find_pair(s, f->exec, &second, err))
        return false;
    struct event_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    sq_page_begin(s);
    bool ok = f->open ? open_page(s, f, c->limit, c->mem, rows, &n, err)
                      : read_page(s, f, second, c->limit, c->mem, rows, &n, err);
    sq_page_end(s);
    if (ok) {
        c->rows = rows;
        c->n = n;
    }
    return ok;
}

const struct verb_handler sq_event_verbs[] = {
    {VERB_EVENTS_PAGE, events_page},
    {0},
};
