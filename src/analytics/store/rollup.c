/* SPDX-License-Identifier: Apache-2.0 */
/* Two rounds of loading.  The first one loads the days of all labels: a day that is not there is a new
 * set of labels, which may be one too many for its tenant.  The second one loads the hours and spans of
 * five minutes of the labels that count, then all rows are saved at once. */
#include "analytics/store/rollup.h"

#include <stdlib.h>

#include "base/log.h"
#include "crypto/hash.h"

#define ROLLUP_ARENA ((size_t)256 << 20)

const int64_t rollup_spans[ROLLUP_STEPS] = {[STEP_5M] = 1, [STEP_1H] = 12, [STEP_1D] = 288};
const size_t rollup_sessions[ROLLUP_STEPS] = {[STEP_5M] = 64, [STEP_1H] = 20, [STEP_1D] = 256};
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
const int64_t rollup_keep_ms[ROLLUP_STEPS] = {[STEP_5M] = 2 * DAY_MS, [STEP_1H] = 400 * DAY_MS};

struct key {
    int64_t label, span, step;
};
struct fold {
    const struct rollup_io *io;
    struct arena *mem;
    struct map rows;   /* struct key → struct rollup */
    struct map labels; /* pointer of counted_labels → its number, as a pointer */
    struct rollup **list;
    size_t n, cap, n_loaded;
};

/* A number for the labels that every node finds by itself. */
static int64_t number_of(const struct counted_labels *l)
{
    const struct str texts[] = {l->tenant, l->server, l->tool,   l->client,
                                l->owner,  l->era,    l->carrier};
    uint32_t sizes[countof(texts)];
    struct str parts[2 * countof(texts)];
    uint8_t sha[SHA256_BYTES];
    uint64_t number = 0;

    for (size_t i = 0; i < countof(texts); i++) {
        sizes[i] = htole32((uint32_t)texts[i].n);
        parts[2 * i] = str_n((const char *)&sizes[i], sizeof(sizes[i]));
        parts[2 * i + 1] = texts[i].p ? texts[i] : STR("");
    }
    sha256_parts(parts, countof(parts), sha);
    for (size_t i = 0; i < sizeof(number); i++)
        number = number << 8 | sha[i];
    return (int64_t)(number >> 1);
}

static int64_t label_of(struct fold *f, const struct counted_labels *labels)
{
    struct str key = str_n((const char *)&labels, sizeof(labels));
    int64_t *number = map_get(&f->labels, key);
    if (!number) {
        number = arena_alloc(f->mem, sizeof(*number));
        *number = number_of(labels);
        map_put(&f->labels, arena_dup(f->mem, key), number);
    }
    return *number;
}

static struct rollup *row_of(struct fold *f, const struct counted_labels *labels, int64_t at_ms,
                             enum rollup_step step)
{
    int64_t unit = at_ms / SPAN_MS;
    struct key key = {label_of(f, labels), unit - unit % rollup_spans[step], step};
    struct str bytes = str_n((const char *)&key, sizeof(key));
    struct rollup *row = map_get(&f->rows, bytes);
    if (row)
        return row;
    row = arena_new_of(f->mem, struct rollup);
    *row = (struct rollup){.labels = labels, .label = key.label, .step = step, .span = key.span};
    map_put(&f->rows, arena_dup(f->mem, bytes), row);
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 64;
        f->list = xrealloc(f->list, f->cap * sizeof(struct rollup *));
    }
    f->list[f->n++] = row;
    return row;
}

static bool load(struct fold *f, struct error *err)
{
    size_t first = f->n_loaded;
    f->n_loaded = f->n;
    return first == f->n || f->io->load(f->io->arg, f->list + first, f->n - first, f->mem, err);
}

static struct rollup *other_of(struct fold *f, const struct rollup *day, bool all)
{
    struct counted_labels *l = arena_new_of(f->mem, struct counted_labels);
    struct str other = STR(ROLLUP_OTHER);
    *l = (struct counted_labels){
        .tenant = day->labels->tenant,
        .server = all ? other : day->labels->server,
        .owner = all ? other : day->labels->owner,
        .tool = other,
        .client = other,
        .era = other,
        .carrier = other,
    };
    return row_of(f, l, day->span * SPAN_MS, STEP_1D);
}

/* The number of labels of the day's tenant, with those that this slice adds. */
static bool labels_used(struct fold *f, struct map *counts, const struct rollup *day, int64_t **ret,
                        struct error *err)
{
    struct str key =
        arena_printf(f->mem, "%lld %.*s", (long long)day->span, STR_ARG(day->labels->tenant));
    *ret = map_get(counts, key);
    if (*ret)
        return true;
    *ret = arena_alloc(f->mem, sizeof(**ret));
    map_put(counts, key, *ret);
    return f->io->count(f->io->arg, day->labels->tenant, day->span, *ret, err);
}

/* A row for further sets of labels may be there already, so this counts some too many, never too few. */
static void limit_day(struct fold *f, struct rollup *day, int64_t *used)
{
    size_t n = f->n;
    if (*used >= ROLLUP_LABELS_MAX)
        day->instead = other_of(f, day, *used >= 2 * ROLLUP_LABELS_MAX);
    if (!day->instead || f->n > n)
        (*used)++;
}

static bool limit_labels(struct fold *f, struct error *err)
{
    struct map counts = {0};
    size_t n = f->n;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        struct rollup *day = f->list[i];
        int64_t *used = NULL;
        if (day->cells.p)
            continue;
        ok = labels_used(f, &counts, day, &used, err);
        if (ok)
            limit_day(f, day, used);
    }
    map_release(&counts);
    return ok;
}

static void count_all(struct fold *f, const struct counted_call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct counted_labels *labels = calls[i].labels;
        struct rollup *day = row_of(f, labels, calls[i].at_ms, STEP_1D);
        if (day->instead)
            labels = day->instead->labels;
        for (unsigned step = 0; step < ROLLUP_STEPS; step++)
            cells_count(&row_of(f, labels, calls[i].at_ms, step)->delta, &calls[i],
                        rollup_sessions[step]);
    }
}

/* Bytes that nobody can read are replaced: analytics never keep the fold from going on. */
static void finish_row(struct fold *f, struct rollup *row, struct buf *out)
{
    size_t most = rollup_sessions[row->step];
    if (row->cells.p && !cells_add_stored(&row->delta, row->cells, most))
        log_warn("a rollup of analytics cannot be read and begins anew",
                 LS("tenant", row->labels->tenant), LS("server", row->labels->server));
    buf_reset(out);
    bool is_empty = cells_write(&row->delta, most, out) == 0 && !row->cells.p;
    row->cells = is_empty ? STR_NONE : arena_dup(f->mem, buf_str(out));
}

static bool save_all(struct fold *f, struct error *err)
{
    size_t n = 0;
    struct buf out;
    buf_init(&out, SIZE_MAX / 4); /* bounded by the slice and rollup_sessions */
    for (size_t i = 0; i < f->n; i++) {
        struct rollup *row = f->list[i];
        if (row->instead)
            continue;
        finish_row(f, row, &out);
        if (row->cells.p)
            f->list[n++] = row;
        else
            cells_release(&row->delta);
    }
    buf_release(&out);
    bool ok = n == 0 || f->io->save(f->io->arg, f->list, n, f->mem, err);
    for (size_t i = 0; i < n; i++)
        cells_release(&f->list[i]->delta);
    f->n = 0;
    return ok;
}

bool rollup_fold(const struct rollup_io *io, const struct counted_call *calls, size_t n,
                 struct error *err)
{
    struct fold f = {.io = io, .mem = arena_new(ROLLUP_ARENA)};
    for (size_t i = 0; i < n; i++)
        row_of(&f, calls[i].labels, calls[i].at_ms, STEP_1D);
    bool ok = load(&f, err) && limit_labels(&f, err);
    if (ok)
        count_all(&f, calls, n);
    ok = ok && load(&f, err) && save_all(&f, err);
    for (size_t i = 0; i < f.n; i++)
        cells_release(&f.list[i]->delta);
    map_release(&f.rows);
    map_release(&f.labels);
    free(f.list);
    arena_free(f.mem);
    return ok;
}
