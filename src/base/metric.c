/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, gauges and histograms.  The registry is a list under one lock; the cells are relaxed
 * atomics.  A scrape may read a histogram between two of its adds, which is harmless.
 *
 * Each metric has at most `max_cells` label combinations, plus `_other`, which counts all further
 * combinations.  So a peer that invents label values cannot exhaust memory. */
#include "base/metric.h"

#include "base/map.h"
#include "base/utf8.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MOST_LABELS 8
#define LONGEST_VALUE 128

#define SECOND INT64_C(1000000)

static const struct bound {
    int64_t us;
    const char *le;
} bounds[] = {
    {100, "0.0001"},  {250, "0.00025"}, {500, "0.0005"},  {1000, "0.001"},  {2500, "0.0025"},
    {5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"}, {50000, "0.05"},  {100000, "0.1"},
    {250000, "0.25"}, {500000, "0.5"},  {1000000, "1"},   {2500000, "2.5"}, {5000000, "5"},
    {10000000, "10"}, {30000000, "30"}, {60000000, "60"},
};
static const struct bound lifetime_bounds[] = {
    {SECOND, "1"},
    {10 * SECOND, "10"},
    {60 * SECOND, "60"},
    {300 * SECOND, "300"},
    {900 * SECOND, "900"},
    {1800 * SECOND, "1800"},
    {3600 * SECOND, "3600"},
    {14400 * SECOND, "14400"},
    {43200 * SECOND, "43200"},
    {86400 * SECOND, "86400"},
    {604800 * SECOND, "604800"},
    {2592000 * SECOND, "2592000"},
};

/* How each kind is written. */
static const struct {
    const char *name;
    const struct bound *bounds; /* NULL: not a histogram */
    size_t n_bounds;
} kinds[] = {
    [METRIC_COUNTER] = {"counter", NULL, 0},
    [METRIC_GAUGE] = {"gauge", NULL, 0},
    [METRIC_HISTOGRAM] = {"histogram", bounds, countof(bounds)},
    [METRIC_LIFETIMES] = {"histogram", lifetime_bounds, countof(lifetime_bounds)},
};

struct metric_cell {
    struct metric_cell *next;
    char *labels;          /* rendered: server="a",outcome="ok"; also the key in `cells` */
    _Atomic int64_t value; /* for a histogram, the sum in microseconds */
    enum metric_kind kind;
    _Atomic int64_t *buckets; /* histograms: one per bound and one above, not cumulative */
};

struct metric {
    struct metric *next;
    enum metric_kind kind;
    const char *name, *help;
    struct str labels[MOST_LABELS];
    size_t n_labels;
    unsigned max_cells;
    struct map cells;
    struct metric_cell *first, **last;
    struct metric_cell *other;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *first, **last = &first;

static struct metric *metric_find(const char *name)
{
    for (struct metric *m = first; m; m = m->next)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

static struct metric_cell *cell_new(struct metric *m, struct str labels)
{
    struct metric_cell *c = xcalloc(1, sizeof(*c));

    c->labels = xmalloc(labels.n + 1);
    memcpy(c->labels, labels.p, labels.n);
    c->labels[labels.n] = '\0';
    c->kind = m->kind;
    if (kinds[m->kind].bounds)
        c->buckets = xcalloc(kinds[m->kind].n_bounds + 1, sizeof(*c->buckets));
    *m->last = c;
    m->last = &c->next;
    return c;
}

static struct metric *metric_new(enum metric_kind kind, const char *name, const char *help,
                                 const char *labels, unsigned max_cells)
{
    struct metric *m = xcalloc(1, sizeof(*m));
    struct str rest = str_of(labels);

    m->kind = kind;
    m->name = name;
    m->help = help;
    m->max_cells = max_cells;
    m->last = &m->first;
    while (rest.n > 0) {
        if (m->n_labels == MOST_LABELS)
            die("the metric %s has too many labels; this is a bug, please report it", name);
        m->labels[m->n_labels++] = str_split(&rest, ',');
    }
    /* A metric without labels has one cell, shown from the start. */
    if (m->n_labels == 0)
        m->other = cell_new(m, STR(""));
    *last = m;
    last = &m->next;
    return m;
}

struct metric *metric_register(enum metric_kind kind, const char *name, const char *help,
                               const char *labels, unsigned max_cells)
{
    struct metric *m;

    pthread_mutex_lock(&lock);
    m = metric_find(name);
    if (!m)
        m = metric_new(kind, name, help, labels, max_cells);
    pthread_mutex_unlock(&lock);
    return m;
}

/* Escapes backslash, quote and newline; the text form must be UTF-8. */
static void add_label_value(struct buf *out, struct str value)
{
    const char *p = value.p, *end = value.p + (value.n > LONGEST_VALUE ? LONGEST_VALUE : value.n);

    while (p < end) {
        uint32_t code;
        size_t n = utf8_decode(p, end, &code);
        if (n == 0)
            buf_addz(out, "?");
        else if (*p == '\n')
            buf_addz(out, "\\n");
        else if (*p == '"' || *p == '\\')
            buf_addf(out, "\\%c", *p);
        else
            buf_add(out, p, n);
        p += n ? n : 1;
    }
}

static void render_labels(const struct metric *m, const struct str *values, struct buf *out)
{
    for (size_t i = 0; i < m->n_labels; i++) {
        buf_addf(out, "%s%.*s=\"", i ? "," : "", STR_ARG(m->labels[i]));
        add_label_value(out, values ? values[i] : STR("_other"));
        buf_addc(out, '"');
    }
}

static struct metric_cell *cell_other(struct metric *m)
{
    struct buf labels;

    if (!m->other) {
        buf_init(&labels, SIZE_MAX);
        render_labels(m, NULL, &labels);
        m->other = cell_new(m, buf_str(&labels));
        buf_release(&labels);
    }
    return m->other;
}

struct metric_cell *metric_cell(struct metric *m, const struct str *values, size_t n)
{
    struct metric_cell *c;
    struct buf labels;

    if (n != m->n_labels)
        die("the metric %s has %zu labels, not %zu; this is a bug", m->name, m->n_labels, n);
    if (n == 0)
        return m->other;
    buf_init(&labels, SIZE_MAX);
    render_labels(m, values, &labels);
    pthread_mutex_lock(&lock);
    c = map_get(&m->cells, buf_str(&labels));
    if (!c && m->cells.n >= m->max_cells)
        c = cell_other(m);
    if (!c) {
        c = cell_new(m, buf_str(&labels));
        map_put(&m->cells, str_of(c->labels), c);
    }
    pthread_mutex_unlock(&lock);
    buf_release(&labels);
    return c;
}

void metric_add(struct metric_cell *c, int64_t n)
{
    atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

void metric_set(struct metric_cell *c, int64_t value)
{
    atomic_store_explicit(&c->value, value, memory_order_relaxed);
}

void metric_observe_us(struct metric_cell *c, int64_t us)
{
    const struct bound *b = kinds[c->kind].bounds;
    size_t i = 0, n = kinds[c->kind].n_bounds;

    if (us < 0)
        us = 0;
    while (i < n && us > b[i].us)
        i++;
    atomic_fetch_add_explicit(&c->buckets[i], 1, memory_order_relaxed);
    metric_add(c, us);
}

int64_t metric_value(const struct metric_cell *c)
{
    return atomic_load_explicit(&c->value, memory_order_relaxed);
}

static void write_histogram(const struct metric *m, const struct metric_cell *c, struct buf *out)
{
    const char *comma = c->labels[0] ? "," : "";
    const char *open = c->labels[0] ? "{" : "", *close = c->labels[0] ? "}" : "";
    const struct bound *b = kinds[m->kind].bounds;
    size_t n = kinds[m->kind].n_bounds;
    int64_t total = 0, sum = metric_value(c);

    for (size_t i = 0; i <= n; i++) {
        total += atomic_load_explicit(&c->buckets[i], memory_order_relaxed);
        buf_addf(out, "%s_bucket{%s%sle=\"%s\"} %lld\n", m->name, c->labels, comma,
                 i < n ? b[i].le : "+Inf", (long long)total);
    }
    buf_addf(out, "%s_sum%s%s%s %lld.%06lld\n", m->name, open, c->labels, close,
             (long long)(sum / 1000000), (long long)(sum % 1000000));
    buf_addf(out, "%s_count%s%s%s %lld\n", m->name, open, c->labels, close, (long long)total);
}

static void write_plain(const struct metric *m, const struct metric_cell *c, struct buf *out)
{
    const char *open = c->labels[0] ? "{" : "", *close = c->labels[0] ? "}" : "";

    buf_addf(out, "%s%s%s%s %lld\n", m->name, open, c->labels, close, (long long)metric_value(c));
}

static bool has_label(const struct metric *m, struct str label)
{
    for (size_t i = 0; i < m->n_labels; i++)
        if (str_eq(m->labels[i], label))
            return true;
    return false;
}

/* Quotes in a value are escaped, so a value cannot look like a label. */
static bool is_of(const struct metric_cell *c, struct str want)
{
    for (const char *at = c->labels; (at = strstr(at, want.p)); at++)
        if (at == c->labels || at[-1] == ',')
            return true;
    return false;
}

void metric_write_of(struct buf *out, struct str label, struct str value)
{
    struct buf want;

    buf_init(&want, SIZE_MAX);
    buf_addf(&want, "%.*s=\"", STR_ARG(label));
    add_label_value(&want, value);
    buf_add(&want, "\"", 2); /* with the terminating NUL */
    pthread_mutex_lock(&lock);
    for (const struct metric *m = first; m; m = m->next) {
        bool chooses = label.p && has_label(m, label);
        buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
                 kinds[m->kind].name);
        for (const struct metric_cell *c = m->first; c; c = c->next)
            if (!chooses || is_of(c, buf_str(&want)))
                (kinds[m->kind].bounds ? write_histogram : write_plain)(m, c, out);
    }
    pthread_mutex_unlock(&lock);
    buf_release(&want);
}

void metric_write(struct buf *out)
{
    metric_write_of(out, STR_NONE, STR_NONE);
}
