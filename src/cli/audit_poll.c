/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of new events, writer by writer. */
#include "cli/audit_poll.h"
#include "cli/cli.h"

#include "audit/event_id.h"

#define POLL_MS 500
#define PAGE 200

bool audit_cursors_read(struct event_source *s, size_t max, struct audit_cursors *ret,
                        struct error *err)
{
    struct event_filter filter = {.kind = -1, .newest_first = true};
    size_t n = 1;

    *ret = (struct audit_cursors){.n = 0};
    while (n > 0 && ret->n < max) {
        struct arena *mem = arena_new(SIZE_MAX / 4);
        struct event_row *rows;
        bool ok = event_source_page(s, &filter, 1, mem, &rows, &n, err);
        if (ok && n > 0) {
            ret->last[ret->n++] = rows[0].id;
            filter.before = event_id_make(event_id_writer(rows[0].id), 0);
        }
        arena_free(mem);
        if (!ok)
            return false;
    }
    return true;
}

void audit_cursors_move(struct audit_cursors *c, int64_t id)
{
    for (size_t i = 0; i < c->n; i++) {
        if (event_id_writer(c->last[i]) == event_id_writer(id)) {
            if (id > c->last[i])
                c->last[i] = id;
            return;
        }
    }
    if (c->n > 0 && id < c->last[0])
        return; /* a writer that is not followed */
    if (c->n < AUDIT_POLL_WRITERS)
        c->n++;
    memmove(c->last + 1, c->last, (c->n - 1) * sizeof(c->last[0]));
    c->last[0] = id;
}

/* Reads one page after the cursor `i`.  Only the first cursor may find events of new writers. */
static bool poll_writer(struct event_source *s, struct event_filter *filter,
                        struct audit_cursors *cursors, size_t i,
                        bool (*each)(void *arg, const struct event_row *e), void *arg,
                        size_t *ret_n, bool *ret_heard, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_row *rows;

    filter->after = i < cursors->n ? cursors->last[i] : 0;
    filter->before = i == 0 ? 0 : event_id_make(event_id_writer(filter->after) + 1, 0);
    bool ok = event_source_page(s, filter, PAGE, mem, &rows, ret_n, err);
    for (size_t k = 0; ok && *ret_heard && k < *ret_n; k++) {
        audit_cursors_move(cursors, rows[k].id);
        *ret_heard = each(arg, &rows[k]);
    }
    arena_free(mem);
    return ok;
}

bool audit_poll(struct event_source *s, const struct event_filter *filter,
                struct audit_cursors *cursors, bool (*each)(void *arg, const struct event_row *e),
                void *arg, struct error *err)
{
    struct event_filter events = *filter;
    bool heard = true;

    while (heard) {
        size_t n_all = 0;
        /* The first cursor is the last one, because a new writer moves the others. */
        for (size_t i = cursors->n ? cursors->n : 1; heard && i-- > 0;) {
            size_t n = 0;
            if (!poll_writer(s, &events, cursors, i, each, arg, &n, &heard, err))
                return false;
            n_all += n;
        }
        if (heard && n_all == 0)
            heard = cli_pause(POLL_MS);
    }
    return true;
}
