/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sizes.h"

#include <stdlib.h>

#include "store/record.h"
#include "store/segment.h"

#define SIZES_ARENA (64u << 20)

struct event_size event_size_of(const struct event_row *e)
{
    return (struct event_size){
        .event = (int64_t)(SEGMENT_FRAME + (e->record.p ? e->record.n : record_length(e))),
        .body = e->body.p ? (int64_t)e->body.n : -1,
    };
}

void sizes_release(struct sizes *s)
{
    free(s->rows);
    map_release(&s->by_key);
    arena_free(s->mem);
    *s = (struct sizes){0};
}

int64_t sizes_day(int64_t at_ms)
{
    return at_ms / SIZES_DAY_MS - (at_ms % SIZES_DAY_MS < 0);
}

static struct size_row *row_add(struct sizes *s, struct str tenant, int64_t day, struct str key)
{
    struct size_row *row = arena_new_of(s->mem, struct size_row);

    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 16;
        s->rows = xrealloc(s->rows, s->cap * sizeof(struct size_row *));
    }
    *row = (struct size_row){.tenant = arena_dup(s->mem, tenant.p ? tenant : STR("")),
                             .day = day,
                             .first_ms = INT64_MAX,
                             .last_ms = INT64_MIN};
    map_put(&s->by_key, arena_dup(s->mem, key), row);
    return s->rows[s->n++] = row;
}

static struct size_row *row_of(struct sizes *s, struct str tenant, int64_t at_ms)
{
    char small[128];
    int64_t day = sizes_day(at_ms);
    size_t n = sizeof(day) + tenant.n;

    if (s->last && s->last->day == day && str_eq(s->last->tenant, tenant))
        return s->last;
    if (!s->mem)
        s->mem = arena_new(SIZES_ARENA);
    char *key = n <= sizeof(small) ? small : arena_alloc(s->mem, n);
    memcpy(key, &day, sizeof(day));
    if (tenant.n)
        memcpy(key + sizeof(day), tenant.p, tenant.n);
    s->last = map_get(&s->by_key, str_n(key, n));
    if (!s->last)
        s->last = row_add(s, tenant, day, str_n(key, n));
    return s->last;
}

void sizes_add(struct sizes *s, struct str tenant, int64_t at_ms, struct event_size size)
{
    struct size_row *row = row_of(s, tenant, at_ms);

    row->events++;
    row->event_bytes += size.event;
    row->bodies += size.body >= 0;
    row->body_bytes += size.body > 0 ? size.body : 0;
    if (at_ms < row->first_ms)
        row->first_ms = at_ms;
    if (at_ms > row->last_ms)
        row->last_ms = at_ms;
}

void sizes_subtract(struct sizes *s, const struct size_gone *gone)
{
    struct size_row *row = row_of(s, gone->tenant, gone->at_ms);

    row->events -= gone->whole;
    row->event_bytes -= gone->whole ? gone->size.event : 0;
    row->bodies -= gone->size.body >= 0;
    row->body_bytes -= gone->size.body > 0 ? gone->size.body : 0;
}

static int by_tenant(const void *a, const void *b)
{
    const struct size_row *x = *(struct size_row *const *)a;
    const struct size_row *y = *(struct size_row *const *)b;
    int order = str_cmp(x->tenant, y->tenant);

    return order ? order : x->day < y->day ? -1 : x->day > y->day;
}

void sizes_sort(struct sizes *s)
{
    if (s->n)
        qsort(s->rows, s->n, sizeof(struct size_row *), by_tenant);
}
