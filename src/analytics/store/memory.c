/* SPDX-License-Identifier: Apache-2.0 */
/* Analytics in the memory store.  The caller of an op or of the fold holds the lock; reads take it. */
#include "analytics/store/family.h"
#include "analytics/store/impl.h"
#include "analytics/store/packed.h"

#include <stdlib.h>

#include "store/memory_impl.h"

struct mem_rollup {
    struct str tenant;
    enum rollup_step step;
    struct rollup_row row; /* without cells */
    char *cells;           /* on the heap */
    size_t n_cells;
};
struct arrays {
    struct mem_rollup *rows; /* in the order of pages */
    size_t n, cap;
};

static struct arrays *arrays_of(struct memory_store *s)
{
    return mem_family_arrays(s, &analytics_memory);
}

static const size_t texts[] = {
    offsetof(struct rollup_row, server), offsetof(struct rollup_row, tool),
    offsetof(struct rollup_row, client), offsetof(struct rollup_row, owner),
    offsetof(struct rollup_row, era),    offsetof(struct rollup_row, carrier),
};

static int order(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare(const struct mem_rollup *a, struct str tenant, int64_t step, int64_t span,
                   int64_t label)
{
    int by_tenant = str_cmp(a->tenant, tenant), by_step = order(a->step, step),
        by_span = order(a->row.span, span);
    return by_tenant ? by_tenant
           : by_step ? by_step
           : by_span ? by_span
                     : order(a->row.label, label);
}

static size_t place_of(const struct arrays *a, const struct rollup *row)
{
    size_t low = 0, high = a->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(&a->rows[mid], row->labels->tenant, row->step, row->span, row->label) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* A packed row sorts before that of its first hour. */
static bool is_packed_at(const struct arrays *a, size_t at, const struct rollup *row)
{
    return at < a->n && a->rows[at].row.writer < 0 &&
           compare(&a->rows[at], row->labels->tenant, row->step, row->span, row->label) == 0;
}

static struct mem_rollup *find(const struct arrays *a, const struct rollup *row)
{
    size_t at = place_of(a, row);
    at += is_packed_at(a, at, row);
    bool found = at < a->n &&
                 compare(&a->rows[at], row->labels->tenant, row->step, row->span, row->label) == 0;
    return found ? &a->rows[at] : NULL;
}

static bool load(void *arg, struct rollup **rows, size_t n, struct arena *mem,
                 struct error *err unused_arg)
{
    const struct arrays *a = arrays_of(arg);
    for (size_t i = 0; i < n; i++) {
        const struct mem_rollup *row = find(a, rows[i]);
        if (row)
            rows[i]->cells = arena_dup(mem, str_n(row->cells, row->n_cells));
    }
    return true;
}

static bool count_day(void *arg, struct str tenant, int64_t span, int64_t *ret,
                      struct error *err unused_arg)
{
    const struct arrays *a = arrays_of(arg);
    *ret = 0;
    for (size_t i = 0; i < a->n; i++)
        *ret += a->rows[i].step == STEP_1D && a->rows[i].row.span == span &&
                str_eq(a->rows[i].tenant, tenant);
    return true;
}

static struct mem_rollup *insert(struct memory_store *s, const struct rollup *row)
{
    struct arrays *a = arrays_of(s);
    const struct counted_labels *l = row->labels;
    size_t at = place_of(a, row);
    at += is_packed_at(a, at, row);
    a->rows = mem_grow(a->rows, a->n, &a->cap, sizeof(*a->rows));
    memmove(&a->rows[at + 1], &a->rows[at], (a->n - at) * sizeof(*a->rows));
    a->n++;
    struct mem_rollup *r = &a->rows[at];
    *r = (struct mem_rollup){.tenant = arena_dup(s->mem, l->tenant), .step = row->step};
    r->row = (struct rollup_row){
        .span = row->span,
        .label = row->label,
        .server = l->server,
        .tool = l->tool,
        .client = l->client,
        .owner = l->owner,
        .era = l->era,
        .carrier = l->carrier,
    };
    mem_copy_texts(s->mem, &r->row, texts, countof(texts));
    return r;
}

static bool save(void *arg, struct rollup **rows, size_t n, struct arena *mem unused_arg,
                 struct error *err unused_arg)
{
    const struct arrays *a = arrays_of(arg);
    for (size_t i = 0; i < n; i++) {
        struct mem_rollup *row = find(a, rows[i]);
        if (!row)
            row = insert(arg, rows[i]);
        row->cells = xrealloc(row->cells, rows[i]->cells.n);
        row->n_cells = rows[i]->cells.n;
        memcpy(row->cells, rows[i]->cells.p, row->n_cells);
    }
    return true;
}

static void count_call(struct memory_store *s, const struct counted_call *call)
{
    const struct rollup_io io = {.arg = s, .load = load, .count = count_day, .save = save};
    struct error ignored;
    if (!rollup_fold(&io, call, 1, &ignored))
        abort(); /* nothing above can fail */
}

static bool matches(const struct mem_rollup *r, const struct rollup_filter *f)
{
    int after = compare(r, f->tenant, f->step, f->after_span, f->after_label);
    if (after == 0)
        after = order(r->row.writer, f->after_writer);
    return str_eq(r->tenant, f->tenant) && (int64_t)r->step == f->step && r->row.span >= f->since &&
           r->row.span < f->until && after > 0 && (!f->owner.p || str_eq(r->row.owner, f->owner));
}

static bool page(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    const struct arrays *a = arrays_of(s);
    struct rollup_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < a->n && n < c->limit; i++) {
        const struct mem_rollup *r = &a->rows[i];
        if (!matches(r, c->filter))
            continue;
        rows[n] = r->row;
        mem_copy_texts(c->mem, &rows[n], texts, countof(texts));
        rows[n++].cells = arena_dup(c->mem, str_n(r->cells, r->n_cells));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool next_tenant(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    const struct arrays *a = arrays_of(s);
    struct tenant_row *found = NULL;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < a->n && !found; i++)
        if (!c->after.p || str_cmp(a->rows[i].tenant, c->after) > 0) {
            found = arena_new_of(c->mem, struct tenant_row);
            found->id = arena_dup(c->mem, a->rows[i].tenant);
        }
    pthread_mutex_unlock(&s->lock);
    c->rows = found;
    return true;
}

static bool is_of(const struct mem_rollup *r, struct str tenant, int64_t day, int64_t label)
{
    return str_eq(r->tenant, tenant) && r->step == STEP_1H && r->row.label == label &&
           r->row.span >= day && r->row.span < day + rollup_spans[STEP_1D];
}

/* All hours of one label, in the place of the first one. */
static void pack_first(struct arrays *a, const struct mem_rollup *first)
{
    struct arena *mem = arena_new(1 << 20);
    struct packing *p = packing_new(mem);
    struct mem_rollup packed = *first;
    struct rollup_row *rows;
    int64_t day = packed.row.span - packed.row.span % rollup_spans[STEP_1D];
    size_t kept = 0, at = 0;

    packed.row.span = day;
    for (size_t i = 0; i < a->n; i++) {
        struct mem_rollup *r = &a->rows[i];
        if (!is_of(r, packed.tenant, day, packed.row.label)) {
            at += compare(r, packed.tenant, STEP_1H, day, packed.row.label) < 0;
            a->rows[kept++] = *r;
            continue;
        }
        packing_add(p, r->row.label, r->row.span, arena_dup(mem, str_n(r->cells, r->n_cells)));
        free(r->cells);
    }
    packing_end(p, &rows);
    packed.row.writer = ROLLUP_PACKED;
    packed.n_cells = rows[0].cells.n;
    packed.cells = xmalloc(packed.n_cells);
    memcpy(packed.cells, rows[0].cells.p, packed.n_cells);
    memmove(&a->rows[at + 1], &a->rows[at], (kept - at) * sizeof(*a->rows));
    a->rows[at] = packed;
    a->n = kept + 1;
    arena_free(mem);
}

static bool rollups_pack(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    unsigned left = c->limit;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; left && i < a->n; i++) {
        const struct mem_rollup *r = &a->rows[i];
        if (!str_eq(r->tenant, c->tenant) || r->step != STEP_1H || r->row.writer < 0 ||
            r->row.span >= c->number)
            continue;
        pack_first(a, r);
        left--;
        i = (size_t)-1; /* the rows have moved */
    }
    *(bool *)c->ret = left < c->limit;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static enum verdict rollups_age(struct memory_store *s, const struct store_op *op,
                                int64_t now_ms unused_arg)
{
    struct arrays *a = arrays_of(s);
    const struct rollup_age *age = op->row;
    size_t kept = 0, n = a->n;

    for (size_t i = 0; i < n; i++) {
        struct mem_rollup *r = &a->rows[i];
        bool is_old = str_eq(r->tenant, age->tenant) && (int64_t)r->step == age->step &&
                      r->row.span < age->before && (int64_t)(i - kept) < age->most;
        if (is_old)
            free(r->cells);
        else
            a->rows[kept++] = *r;
    }
    a->n = kept;
    return kept < n ? VERDICT_OK : VERDICT_MISSING;
}

static const struct mem_op ops[] = {
    {OP_ROLLUPS_AGE, rollups_age},
    {0},
};

static const struct verb_handler verbs[] = {
    {VERB_ROLLUPS_PAGE, page},
    {VERB_ROLLUP_TENANT, next_tenant},
    {VERB_ROLLUPS_PACK, rollups_pack},
    {0},
};

/* Not listed for refused batches: ops only delete rollups, and the fold is never undone. */
static size_t tables(void *arrays unused_arg, struct mem_table *ret unused_arg)
{
    return 0;
}

static void release(void *arrays)
{
    struct arrays *a = arrays;
    for (size_t i = 0; i < a->n; i++)
        free(a->rows[i].cells);
    free(a->rows);
}

const struct memory_family analytics_memory = {
    .size = sizeof(struct arrays),
    .tables = tables,
    .ops = ops,
    .verbs = verbs,
    .count = count_call,
    .release = release,
};
