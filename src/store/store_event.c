/* SPDX-License-Identifier: Apache-2.0 */
/* Work on events that is the same in every backend: copy an event, filter events, refuse a second
 * event under a taken id. */
#include "store/store_impl.h"

#include <inttypes.h>
#include <stdlib.h>

void event_row_keep(struct arena *mem, const struct event_row *from, struct event_row *to)
{
    struct str *const texts[] = {&to->tenant,  &to->owner,   &to->session_id, &to->transport,
                                 &to->carrier, &to->server,  &to->method,     &to->tool,
                                 &to->era,     &to->outcome, &to->error,      &to->tool_id,
                                 &to->client,  &to->origin,  &to->body};
    *to = *from;
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(mem, *texts[i]);
}

static bool text_matches(struct str want, struct str have)
{
    return !want.p || (have.p && str_eq(want, have));
}

bool event_filter_matches(const struct event_filter *f, const struct event_row *e)
{
    return e->id > f->after && (!f->before || e->id < f->before) && e->at_ms >= f->since_ms &&
           (!f->exec || e->exec == f->exec) && (!f->open || e->kind == EVENT_INTENT) &&
           (f->kind < 0 || (int)e->kind == f->kind) && text_matches(f->tenant, e->tenant) &&
           text_matches(f->session_id, e->session_id) &&
           (!f->session_prefix.p || str_starts(e->session_id, f->session_prefix)) &&
           text_matches(f->server, e->server) && text_matches(f->tool, e->tool) &&
           text_matches(f->outcome, e->outcome);
}

bool event_is_before_all(const struct event_filter *f, const struct event_row *e)
{
    return f->newest_first && e->at_ms < f->since_ms - EVENT_CLOCK_SLACK_MS;
}

static void put(int64_t **list, size_t *n, size_t *cap, int64_t id)
{
    if (*n == *cap) {
        *cap = *cap ? 2 * *cap : 64;
        *list = xrealloc(*list, *cap * sizeof(**list));
    }
    (*list)[(*n)++] = id;
}

void open_set_add(struct open_set *o, int64_t exec)
{
    put(&o->opened, &o->n_opened, &o->cap_opened, exec);
}

void open_set_note(struct open_set *o, const struct event_row *e)
{
    if (e->kind == EVENT_INTENT)
        open_set_add(o, e->id);
    else if (e->kind == EVENT_OUTCOME)
        put(&o->closed, &o->n_closed, &o->cap_closed, e->exec);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

void open_set_filter(struct open_set *o, const struct event_filter *f)
{
    size_t n = 0;
    if (o->n_opened)
        qsort(o->opened, o->n_opened, sizeof(*o->opened), by_number);
    if (o->n_closed)
        qsort(o->closed, o->n_closed, sizeof(*o->closed), by_number);
    for (size_t i = 0; i < o->n_opened; i++) {
        int64_t id = o->opened[i];
        if ((n && o->opened[n - 1] == id) || id <= f->after || (f->before && id >= f->before) ||
            (o->n_closed && bsearch(&id, o->closed, o->n_closed, sizeof(id), by_number)))
            continue;
        o->opened[n++] = id;
    }
    o->n_opened = n;
    for (size_t i = 0; f->newest_first && i < n / 2; i++) {
        int64_t id = o->opened[i];
        o->opened[i] = o->opened[n - 1 - i];
        o->opened[n - 1 - i] = id;
    }
}

void open_set_release(struct open_set *o)
{
    free(o->opened);
    free(o->closed);
}

bool event_id_is_taken(const struct event_row *e, struct error *err)
{
    return error_set(err, ERR_INTERNAL,
                     "Event id %" PRId64 ".%" PRId64
                     " is taken by another event; restart holdfast to "
                     "begin a new writer.",
                     e->id >> EVENT_WRITER_SHIFT, e->id & EVENT_COUNT_MASK);
}
