/* SPDX-License-Identifier: Apache-2.0 */
/* The stored form: version, then each hour as its distance from the day (in hours), the size of its
 * cells, and the cells.  Numbers are LEB128. */
#include "analytics/store/packed.h"

#include <stdlib.h>

#define VERSION_PACKED 2 /* cells.c has 1 */
#define HOURS 24

struct hours {
    int64_t label;
    int64_t day;
    struct cells cells[HOURS];
};
struct packing {
    struct arena *mem;
    struct map by_label; /* number → struct hours */
};

static void release(void *arg)
{
    struct packing *p = arg;
    struct str key;
    void *value;
    for (size_t at = 0; map_next(&p->by_label, &at, &key, &value);)
        for (size_t i = 0; i < HOURS; i++)
            cells_release(&((struct hours *)value)->cells[i]);
    map_release(&p->by_label);
}

struct packing *packing_new(struct arena *mem)
{
    struct packing *p = arena_new_of(mem, struct packing);
    p->mem = mem;
    arena_on_free(mem, release, p);
    return p;
}

static struct hours *hours_of(struct packing *p, int64_t label, int64_t day)
{
    struct str key = str_n((const char *)&label, sizeof(label));
    struct hours *h = map_get(&p->by_label, key);
    if (!h) {
        h = arena_new_of(p->mem, struct hours);
        h->label = label;
        h->day = day;
        map_put(&p->by_label, str_n((const char *)&h->label, sizeof(h->label)), h);
    }
    return h;
}

void packing_add(struct packing *p, int64_t label, int64_t span, struct str cells)
{
    struct hours *h = hours_of(p, label, span - span % rollup_spans[STEP_1D]);
    struct packed r = packed_of(span, cells);
    while (packed_next(&r, &span, &cells)) {
        int64_t hour = (span - h->day) / rollup_spans[STEP_1H];
        /* Cells that cannot be read are dropped: a reader passes over them too. */
        if (hour >= 0 && hour < HOURS &&
            !cells_add_stored(&h->cells[hour], cells, rollup_sessions[STEP_1H]))
            continue;
    }
}

static void put_number(struct buf *out, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        buf_addc(out, (char)(n | 0x80));
    buf_addc(out, (char)n);
}

static struct str pack(struct packing *p, struct hours *h, struct buf *out, struct buf *one)
{
    buf_reset(out);
    buf_addc(out, VERSION_PACKED);
    for (unsigned i = 0; i < HOURS; i++) {
        buf_reset(one);
        if (!cells_write(&h->cells[i], rollup_sessions[STEP_1H], one))
            continue;
        put_number(out, i);
        put_number(out, one->n);
        buf_addstr(out, buf_str(one));
    }
    return arena_dup(p->mem, buf_str(out));
}

size_t packing_end(struct packing *p, struct rollup_row **ret)
{
    struct rollup_row *rows = arena_zalloc(p->mem, (p->by_label.n + 1) * sizeof(*rows));
    struct buf out, one;
    struct str key;
    void *value;
    size_t n = 0;

    buf_init(&out, SIZE_MAX / 4);
    buf_init(&one, SIZE_MAX / 4);
    for (size_t at = 0; map_next(&p->by_label, &at, &key, &value); n++) {
        struct hours *h = value;
        rows[n] = (struct rollup_row){.span = h->day,
                                      .label = h->label,
                                      .writer = ROLLUP_PACKED,
                                      .cells = pack(p, h, &out, &one)};
    }
    buf_release(&out);
    buf_release(&one);
    *ret = rows;
    return n;
}

/* Reading. */

struct packed packed_of(int64_t span, struct str cells)
{
    bool is_packed = cells.n && cells.p[0] == VERSION_PACKED;
    return (struct packed){.rest = is_packed ? str_n(cells.p + 1, cells.n - 1) : cells,
                           .span = span,
                           .is_single = !is_packed};
}

static bool get_number(struct str *from, uint64_t *ret)
{
    *ret = 0;
    for (int shift = 0; from->n && shift < 35; shift += 7) {
        uint8_t byte = (uint8_t)from->p[0];
        *from = str_n(from->p + 1, from->n - 1);
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

bool packed_next(struct packed *r, int64_t *ret_span, struct str *ret_cells)
{
    uint64_t hour, size;

    if (!r->rest.n)
        return false;
    if (r->is_single) {
        *ret_span = r->span;
        *ret_cells = r->rest;
        r->rest = STR_NONE;
        return true;
    }
    if (!get_number(&r->rest, &hour) || !get_number(&r->rest, &size) || size > r->rest.n ||
        hour >= HOURS)
        return false;
    *ret_span = r->span + (int64_t)hour * rollup_spans[STEP_1H];
    *ret_cells = str_n(r->rest.p, size);
    r->rest = str_n(r->rest.p + size, r->rest.n - size);
    return true;
}
