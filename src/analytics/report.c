/* SPDX-License-Identifier: Apache-2.0 */
#include "analytics/report.h"

#include "analytics/store/packed.h"

#include <stdlib.h>

#include "base/clock.h"

const char *const report_by_names[] = {
    [REPORT_SERVER] = "server",   [REPORT_TOOL] = "tool",       [REPORT_CLIENT] = "client",
    [REPORT_USER] = "user",       [REPORT_TENANT] = "tenant",   [REPORT_ERA] = "era",
    [REPORT_CARRIER] = "carrier", [REPORT_OUTCOME] = "outcome", NULL,
};
const char *const report_step_names[] = {
    [STEP_5M] = "5m", [STEP_1H] = "1h", [STEP_1D] = "1d", NULL};

/* Sessions of a group are an exact set up to this number. */
#define SESSIONS_EXACT 4096

struct report_tally {
    struct cell cell; /* of all outcomes */
    int64_t outcomes[COUNTED_OUTCOMES];
};
struct report_bucket {
    int64_t span;
    struct report_tally tally;
};
struct report_group {
    struct str label, server; /* server: of a tool */
    struct report_tally tally;
    struct report_bucket *buckets; /* by span, on the heap */
    size_t n, cap;
};

static const char *way_out(enum rollup_step step)
{
    return step == STEP_1D ? "ask for a shorter time"
                           : "ask for a shorter time or for larger buckets";
}

static int64_t floor_to(int64_t n, int64_t step)
{
    return n - n % step;
}

bool report_init(struct report *r, enum report_by by, enum rollup_step step, int64_t since_ms,
                 int64_t until_ms, int64_t now_ms, struct arena *mem, struct error *err)
{
    int64_t length = rollup_spans[step], keep_ms = rollup_keep_ms[step];
    int64_t since = since_ms > 0 ? floor_to(since_ms / SPAN_MS, length) : 0;
    int64_t until = floor_to((until_ms > 0 ? until_ms - 1 : 0) / SPAN_MS, length) + length;

    if (since >= until)
        return error_set(err, ERR_BAD_INPUT, "until must be later than since");
    if (keep_ms && since * SPAN_MS < floor_to(now_ms - keep_ms, length * SPAN_MS))
        return error_set(err, ERR_BAD_INPUT,
                         "buckets of %s are kept for %lld days; ask for a later time or for larger "
                         "buckets (bucket=%s)",
                         report_step_names[step], (long long)(keep_ms / 86400000),
                         report_step_names[step + 1]);
    if ((until - since) / length > REPORT_BUCKETS_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "these are %lld buckets, and an answer has at most %d; %s",
                         (long long)((until - since) / length), REPORT_BUCKETS_MAX, way_out(step));
    *r = (struct report){.by = by, .step = step, .since = since, .until = until, .mem = mem};
    r->limit = REPORT_GROUPS;
    r->max_bytes = REPORT_BYTES_MAX;
    r->total = xcalloc(1, sizeof(*r->total));
    return true;
}

void report_release(struct report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct report_group *g = &r->groups[i];
        for (size_t k = 0; k < g->n; k++)
            cell_release(&g->buckets[k].tally.cell);
        cell_release(&g->tally.cell);
        free(g->buckets);
    }
    if (r->total)
        cell_release(&r->total->cell);
    free(r->total);
    free(r->groups);
    map_release(&r->by_key);
    *r = (struct report){0};
}

void report_begin(struct report *r, struct str tenant)
{
    r->next = (struct rollup_filter){
        .tenant = tenant,
        .step = r->step,
        .since = r->step == STEP_1H ? floor_to(r->since, rollup_spans[STEP_1D]) : r->since,
        .until = r->until,
        .after_span = -1,
        .owner = r->owner,
    };
}

/* Adding. */

static struct report_group *group_of(struct report *r, struct str label, struct str server)
{
    struct str key = r->by == REPORT_TOOL
                         ? arena_printf(r->mem, "%.*s/%.*s", STR_ARG(server), STR_ARG(label))
                         : label;
    size_t at = (size_t)(uintptr_t)map_get(&r->by_key, key);
    if (at)
        return &r->groups[at - 1];
    if (r->n >= REPORT_GROUPS_COUNTED && !str_eq(label, STR(ROLLUP_OTHER)))
        return group_of(r, STR(ROLLUP_OTHER), STR(ROLLUP_OTHER));
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 16;
        r->groups = xrealloc(r->groups, r->cap * sizeof(*r->groups));
    }
    r->groups[r->n] = (struct report_group){.label = arena_dup(r->mem, label),
                                            .server = arena_dup(r->mem, server)};
    map_put(&r->by_key, arena_dup(r->mem, key), (void *)(uintptr_t)(r->n + 1));
    return &r->groups[r->n++];
}

static struct report_tally *bucket_of(struct report *r, struct report_group *g, int64_t span)
{
    size_t at = g->n;
    while (at > 0 && g->buckets[at - 1].span > span)
        at--;
    if (at > 0 && g->buckets[at - 1].span == span)
        return &g->buckets[at - 1].tally;
    if (g->n == g->cap) {
        size_t more = g->cap ? g->cap : 4;
        g->cap += more;
        g->buckets = xrealloc(g->buckets, g->cap * sizeof(*g->buckets));
        r->bytes += more * sizeof(*g->buckets);
    }
    memmove(&g->buckets[at + 1], &g->buckets[at], (g->n - at) * sizeof(*g->buckets));
    g->buckets[at] = (struct report_bucket){.span = span};
    g->n++;
    return &g->buckets[at].tally;
}

static size_t heap_of(const struct cell *c)
{
    return c->durations.cap * sizeof(*c->durations.items) +
           c->sessions.cap * sizeof(*c->sessions.hashes) +
           (c->sessions.registers ? DISTINCT_REGISTERS : 0);
}

static void add(struct report *r, struct report_tally *t, enum counted_outcome outcome,
                const struct cell *cell)
{
    r->bytes -= heap_of(&t->cell);
    t->outcomes[outcome] += cell->calls;
    cell_merge(&t->cell, cell, SESSIONS_EXACT);
    r->bytes += heap_of(&t->cell);
}

static struct str label_of(const struct report *r, const struct rollup_row *row,
                           enum counted_outcome outcome)
{
    const struct str labels[] = {
        [REPORT_SERVER] = row->server,    [REPORT_TOOL] = row->tool,
        [REPORT_CLIENT] = row->client,    [REPORT_USER] = row->owner,
        [REPORT_TENANT] = r->next.tenant, [REPORT_ERA] = row->era,
        [REPORT_CARRIER] = row->carrier,  [REPORT_OUTCOME] = str_of(counted_outcome_names[outcome]),
    };
    return labels[r->by];
}

static void add_span(struct report *r, const struct rollup_row *row, int64_t span,
                     struct str stored)
{
    struct cells cells = {0};

    /* Cells that cannot be read are as good as missing; the fold tells of them. */
    if (cells_add_stored(&cells, stored, SESSIONS_EXACT))
        for (unsigned i = 0; i < COUNTED_OUTCOMES; i++) {
            if (!cells.of[i])
                continue;
            struct report_group *g = group_of(r, label_of(r, row, i), row->server);
            add(r, &g->tally, i, cells.of[i]);
            add(r, bucket_of(r, g, span), i, cells.of[i]);
            add(r, r->total, i, cells.of[i]);
        }
    cells_release(&cells);
}

static void add_row(struct report *r, const struct rollup_row *row)
{
    struct packed p = packed_of(row->span, row->cells);
    struct str cells;
    int64_t span;

    if (r->shows && !r->shows(r->arg, r->next.tenant, row))
        return;
    while (packed_next(&p, &span, &cells))
        if (span >= r->since && span < r->until)
            add_span(r, row, span, cells);
}

bool report_add(struct report *r, const struct rollup_row *rows, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        add_row(r, &rows[i]);
        if (r->bytes > r->max_bytes)
            return error_set(err, ERR_BAD_INPUT,
                             "this time has too many different %ss to count in buckets of %s; %s",
                             report_by_names[r->by], report_step_names[r->step], way_out(r->step));
    }
    if (n) {
        r->next.since = r->next.after_span = rows[n - 1].span;
        r->next.after_label = rows[n - 1].label;
        r->next.after_writer = rows[n - 1].writer;
    }
    return true;
}

/* Writing. */

static int by_calls(const void *a, const void *b)
{
    const struct report_group *x = a, *y = b;
    if (x->tally.cell.calls != y->tally.cell.calls)
        return x->tally.cell.calls > y->tally.cell.calls ? -1 : 1;
    int order = str_cmp(x->label, y->label);
    return order ? order : str_cmp(x->server, y->server);
}

static int64_t errors_of(const struct report_tally *t)
{
    return t->cell.calls - t->outcomes[COUNTED_OK] - t->outcomes[COUNTED_REDELIVERED] -
           t->outcomes[COUNTED_CANCELLED];
}

static void write_quantiles(struct js_writer *w, const struct durations *d)
{
    static const struct {
        const char *name;
        unsigned percent;
    } all[] = {{"p50_us", 50}, {"p95_us", 95}, {"p99_us", 99}};

    js_kv_int(w, "timed_calls", durations_total(d));
    for (size_t i = 0; d->n && i < countof(all); i++)
        js_kv_int(w, all[i].name, durations_quantile(d, all[i].percent));
}

static void write_outcomes(struct js_writer *w, const struct report_tally *t)
{
    js_key(w, STR("outcomes"));
    js_object(w);
    for (size_t i = 0; i < COUNTED_OUTCOMES; i++)
        if (t->outcomes[i])
            js_kv_int(w, counted_outcome_names[i], t->outcomes[i]);
    js_object_end(w);
}

static void write_tally(struct js_writer *w, const struct report_tally *t)
{
    const struct cell *c = &t->cell;

    js_kv_int(w, "calls", c->calls);
    js_kv_int(w, "errors", errors_of(t));
    write_outcomes(w, t);
    write_quantiles(w, &c->durations);
    js_kv_int(w, "request_bytes", c->request_bytes);
    js_kv_int(w, "response_bytes", c->response_bytes);
    js_kv_int(w, "tokens", c->tokens);
    js_kv_int(w, "tokens_estimated", c->tokens_estimated);
    js_kv_int(w, "sessions", distinct_count(&c->sessions));
    js_kv_bool(w, "sessions_are_estimated", c->sessions.registers != NULL);
}

static void write_label(const struct report *r, struct js_writer *w, const struct report_group *g,
                        struct str (*name_of)(void *arg, struct str owner), void *arg)
{
    struct str name = r->by == REPORT_USER && name_of ? name_of(arg, g->label) : STR_NONE;

    if (r->by == REPORT_TOOL)
        js_kv_string(w, "server", g->server.n ? g->server : STR(""));
    if (g->label.n)
        js_kv_string(w, "label", g->label);
    else
        js_kv_raw(w, "label", STR("null"));
    if (name.n)
        js_kv_string(w, "name", name);
}

static void write_group(const struct report *r, struct js_writer *w, const struct report_group *g,
                        struct str (*name_of)(void *arg, struct str owner), void *arg)
{
    js_object(w);
    write_label(r, w, g, name_of, arg);
    write_tally(w, &g->tally);
    js_key(w, STR("buckets"));
    js_array(w);
    for (size_t i = 0; i < g->n; i++) {
        js_object(w);
        js_kv_time(w, "at", g->buckets[i].span * SPAN_MS);
        write_tally(w, &g->buckets[i].tally);
        js_object_end(w);
    }
    js_array_end(w);
    js_object_end(w);
}

void report_write(struct report *r, struct js_writer *w,
                  struct str (*name_of)(void *arg, struct str owner), void *arg)
{
    size_t n = r->n < r->limit ? r->n : r->limit;

    if (r->n)
        qsort(r->groups, r->n, sizeof(*r->groups), by_calls);
    js_object(w);
    js_kv_string(w, "group_by", str_of(report_by_names[r->by]));
    js_kv_string(w, "bucket", str_of(report_step_names[r->step]));
    js_kv_time(w, "since", r->since * SPAN_MS);
    js_kv_time(w, "until", r->until * SPAN_MS);
    js_kv_raw(w, "quantile_error", STR("0.0625"));
    js_kv_raw(w, "sessions_error", STR("0.092"));
    js_key(w, STR("total"));
    js_object(w);
    write_tally(w, r->total);
    js_object_end(w);
    js_key(w, STR("groups"));
    js_array(w);
    for (size_t i = 0; i < n; i++)
        write_group(r, w, &r->groups[i], name_of, arg);
    js_array_end(w);
    js_kv_int(w, "more_groups", (int64_t)(r->n - n));
    js_object_end(w);
}
