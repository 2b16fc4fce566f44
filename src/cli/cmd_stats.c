/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast stats: numbers of calls by a label, from GET /api/v1/analytics.  A row for each group; on a
 * terminal each row ends with a sparkline of its calls. */
#include "cli/cli.h"

#include "base/clock.h"
#include "cli/source.h"
#include "cli/spark.h"
#include "cli/table.h"
#include "cli/when.h"

#include <inttypes.h>
#include <unistd.h>

#define HOUR_MS (INT64_C(60) * 60 * 1000)
#define DAY_MS (24 * HOUR_MS)
#define BARS_MAX 32
#define BARS_LEAST 6
#define LABEL_LEAST 11
#define TABLE_GAP 2 /* between columns */
#define GROUPS_DEFAULT 50
#define GROUPS_MAX 200

struct stats_cmd {
    struct cli *cli;
    struct source source;
    struct buf out;
    struct table table;
    struct str by, bucket;
    int64_t since_ms, until_ms, now_ms; /* as asked */
    int64_t first_ms, last_ms;          /* of the answer */
    bool utc;
    size_t bars; /* columns of a sparkline; 0: none */
    bool blocks;
};

static const struct {
    const char *name;
    int64_t ms;
} buckets[] = {{"5m", HOUR_MS / 12}, {"1h", HOUR_MS}, {"1d", DAY_MS}};

static const char *const groups[] = {"server", "tool", "client",  "user",
                                     "tenant", "era",  "carrier", "outcome"};

static bool time_flag(const struct stats_cmd *c, const char *name, int64_t otherwise,
                      int64_t *ret_ms, struct error *err)
{
    struct str text = str_of(cli_flag(c->cli, name));

    *ret_ms = otherwise;
    return !text.p || when_parse(text, c->now_ms, c->utc, ret_ms) ||
           error_set(err, ERR_USAGE,
                     "%s takes a duration such as 30m, 24h or 7d, a time such as 2026-11-17 or "
                     "\"2026-11-17 14:00\", today or yesterday",
                     name);
}

/* The shortest buckets that are still kept, and not too many for a line. */
static struct str default_bucket(const struct stats_cmd *c)
{
    int64_t ms = c->until_ms - c->since_ms;

    if (ms <= 3 * HOUR_MS && c->now_ms - c->since_ms < DAY_MS)
        return STR("5m");
    return ms <= 7 * DAY_MS && c->now_ms - c->since_ms < 300 * DAY_MS ? STR("1h") : STR("1d");
}

static bool check_by(struct str by, struct error *err)
{
    static const char words[] =
        "--by takes server, tool, client, user, tenant, era, carrier or outcome";
    struct cli_nearest near = cli_nearest_to(by);

    for (size_t i = 0; i < countof(groups); i++) {
        if (str_eq(by, str_of(groups[i])))
            return true;
        cli_nearest_offer(&near, groups[i]);
    }
    if (near.name)
        return error_set(err, ERR_USAGE, "there is no --by %.*s; did you mean %s? %s",
                         STR_ARG(str_cut(by, 100)), near.name, words);
    return error_set(err, ERR_USAGE, "%s", words);
}

static bool read_ask(struct stats_cmd *c, struct error *err)
{
    const struct cli *cli = c->cli;
    struct str by = str_of(cli_flag(cli, "--by")), bucket = str_of(cli_flag(cli, "--bucket"));
    bool known = !bucket.p;

    c->now_ms = clock_wall_ms();
    c->utc = cli_flag(cli, "--utc") != NULL;
    c->by = by.p ? by : STR("server");
    if (!check_by(c->by, err) || !time_flag(c, "--until", c->now_ms, &c->until_ms, err) ||
        !time_flag(c, "--since", c->until_ms - DAY_MS, &c->since_ms, err))
        return false;
    for (size_t i = 0; i < countof(buckets); i++)
        known = known || str_eq(bucket, str_of(buckets[i].name));
    c->bucket = bucket.p ? bucket : default_bucket(c);
    return known || error_set(err, ERR_USAGE, "--bucket takes 5m, 1h or 1d");
}

static struct str time_in(int64_t ms, struct arena *mem)
{
    char text[CLOCK_TEXT];
    clock_format(ms, text);
    return arena_dup(mem, str_of(text));
}

static bool fetch(struct stats_cmd *c, struct str *ret, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str tenant = str_of(cli_flag(c->cli, "--tenant"));
    struct str since = time_in(c->since_ms, mem), until = time_in(c->until_ms, mem);
    unsigned limit;

    if (!cli_number_flag(c->cli, "--limit", GROUPS_DEFAULT, GROUPS_MAX, &limit, err) ||
        !source_open(c->cli, SOURCE_READS, &c->source, err))
        return false;
    struct str path = arena_printf(
        mem, "/api/v1/analytics?group_by=%.*s&bucket=%.*s&since=%.*s&until=%.*s&limit=%u%s%.*s",
        STR_ARG(c->by), STR_ARG(c->bucket), STR_ARG(source_encoded(since, mem)),
        STR_ARG(source_encoded(until, mem)), limit, tenant.p ? "&tenant=" : "",
        STR_ARG(source_encoded(tenant, mem)));
    return control_get(c->source.control, path, mem, ret, err);
}

/* The table. */

static int64_t number(const struct js_doc *doc, const struct js_node *object, const char *name)
{
    int64_t value;
    return js_to_i64(doc, js_get(doc, object, str_of(name)), &value) ? value : 0;
}

static struct str count_text(int64_t n, bool is_estimate, struct arena *mem)
{
    static const char units[] = {'k', 'M', 'G', 'T'};
    double value = (double)n / 1000;
    size_t unit = 0;

    if (n < 10000)
        return arena_printf(mem, "%s%" PRId64, is_estimate && n ? "~" : "", n);
    while (value >= 1000 && unit + 1 < countof(units)) {
        value /= 1000;
        unit++;
    }
    return arena_printf(mem, "%s%.*f%c", is_estimate ? "~" : "", value < 100 ? 1 : 0, value,
                        units[unit]);
}

/* As `ls -h` does: K is 1,024 bytes. */
static struct str size_text(int64_t bytes, struct arena *mem)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    double size = (double)bytes;
    size_t unit = 0;

    while (size >= 1024 && unit + 1 < countof(units)) {
        size /= 1024;
        unit++;
    }
    return arena_printf(mem, "%.*f%s", unit && size < 10 ? 1 : 0, size, units[unit]);
}

/* Two digits that count: quantiles are not known better. */
static struct str duration_text(const struct js_doc *doc, const struct js_node *object,
                                const char *name, struct arena *mem)
{
    double ms = (double)number(doc, object, name) / 1000;

    if (!js_get(doc, object, str_of(name)))
        return STR("");
    if (ms < 1000)
        return arena_printf(mem, "%.*fms", ms < 1 ? 2 : ms < 10 ? 1 : 0, ms);
    return arena_printf(mem, "%.*fs", ms < 10000 ? 1 : 0, ms / 1000);
}

static struct str label_text(const struct stats_cmd *c, const struct js_doc *doc,
                             const struct js_node *group)
{
    struct arena *mem = c->cli->mem;
    struct str label = source_text(doc, group, "label", mem),
               name = source_text(doc, group, "name", mem),
               server = source_text(doc, group, "server", mem);

    if (str_eq(c->by, STR("tool")) && label.n && server.n)
        return arena_printf(mem, "%.*s__%.*s", STR_ARG(server), STR_ARG(label));
    return name.n ? name : label.n ? label : STR("(none)");
}

/* Each bar is the sum of one or more buckets. */
static struct str spark_of(const struct stats_cmd *c, const struct js_doc *doc,
                           const struct js_node *group)
{
    const struct js_node *all = js_get(doc, group, STR("buckets"));
    int64_t bars[BARS_MAX] = {0}, length = c->last_ms - c->first_ms;

    for (const struct js_node *b = js_first(doc, all); b; b = js_next(doc, all, b)) {
        int64_t at;
        if (!clock_parse(source_text(doc, b, "at", c->cli->mem), &at) || at < c->first_ms)
            continue;
        size_t bar = (size_t)((at - c->first_ms) * (int64_t)c->bars / length);
        bars[bar < c->bars ? bar : c->bars - 1] += number(doc, b, "calls");
    }
    return spark_line(bars, c->bars, c->blocks, c->cli->mem);
}

static void add_row(struct stats_cmd *c, const struct js_doc *doc, const struct js_node *row,
                    struct str label, bool is_total)
{
    struct arena *mem = c->cli->mem;
    struct table *t = &c->table;
    int64_t errors = number(doc, row, "errors"), reported = number(doc, row, "tokens"),
            estimated = number(doc, row, "tokens_estimated");
    bool about = js_type_is(js_get(doc, row, STR("sessions_are_estimated")), JS_TRUE);

    table_add(t, label);
    table_add(t, count_text(number(doc, row, "calls"), false, mem));
    table_add_coloured(t, count_text(errors, false, mem), errors ? "31" : NULL);
    table_add(t, duration_text(doc, row, "p50_us", mem));
    table_add(t, duration_text(doc, row, "p95_us", mem));
    table_add(t, duration_text(doc, row, "p99_us", mem));
    table_add(
        t, size_text(number(doc, row, "request_bytes") + number(doc, row, "response_bytes"), mem));
    table_add(t, count_text(reported + estimated, estimated > 0, mem));
    table_add(t, count_text(number(doc, row, "sessions"), about, mem));
    if (c->bars)
        table_add(t, is_total ? STR(" ") : spark_of(c, doc, row));
}

static const char *head_of(struct str by, struct arena *mem)
{
    char *head = arena_alloc(mem, by.n + 1);
    for (size_t i = 0; i < by.n; i++)
        head[i] = (char)(by.p[i] - 'a' + 'A');
    head[by.n] = '\0';
    return head;
}

/* Adds the rows to c->table, with sparklines of c->bars columns. */
static void fill(struct stats_cmd *c, const struct js_doc *doc, const struct table_column *columns,
                 size_t n_columns, size_t width)
{
    const struct js_node *all = js_get(doc, js_root(doc), STR("groups"));
    size_t n = 0;

    table_init(&c->table, columns, n_columns - !c->bars, width, cli_colour(STDOUT_FILENO));
    for (const struct js_node *g = js_first(doc, all); g; g = js_next(doc, all, g), n++)
        add_row(c, doc, g, label_text(c, doc, g), false);
    if (n > 1)
        add_row(c, doc, js_get(doc, js_root(doc), STR("total")), STR("(total)"), true);
}

/* The columns that the rows leave for a sparkline of up to `most`.  The label gives some of its own. */
static size_t room_for_bars(const struct stats_cmd *c, size_t width, size_t most)
{
    const struct table *t = &c->table;
    size_t used = 0;

    for (size_t i = 0; i < t->n; i++)
        used += t->natural[i] + TABLE_GAP;
    if (t->natural[0] > LABEL_LEAST)
        used -= t->natural[0] - LABEL_LEAST;
    size_t left = width > used ? width - used : 0;
    return left < BARS_LEAST ? 0 : left < most ? left : most;
}

static void print_rows(struct stats_cmd *c, const struct js_doc *doc, size_t n_buckets)
{
    const struct table_column columns[] = {
        {head_of(c->by, c->cli->mem), 8, false},
        {"CALLS", 0, true},
        {"ERRORS", 0, true},
        {"P50", 0, true},
        {"P95", 0, true},
        {"P99", 0, true},
        {"BYTES", 0, true},
        {"TOKENS", 0, true},
        {"SESSIONS", 0, true},
        {"TREND", 0, false},
    };
    size_t width = table_terminal_width(STDOUT_FILENO);

    fill(c, doc, columns, countof(columns), width);
    if (width && n_buckets > 1) {
        c->bars = room_for_bars(c, width, n_buckets < BARS_MAX ? n_buckets : BARS_MAX);
        table_release(&c->table);
        fill(c, doc, columns, countof(columns), width);
    }
    table_print(&c->table, &c->out);
    table_release(&c->table);
}

static void print_foot(struct stats_cmd *c, const struct js_doc *doc)
{
    char from[WHEN_TEXT], to[WHEN_TEXT];
    long long more = (long long)number(doc, js_root(doc), "more_groups");

    if (more)
        buf_addf(&c->out, "%lld more; --limit shows up to %d\n", more, GROUPS_MAX);
    if (!table_terminal_width(STDOUT_FILENO))
        return;
    when_format(c->first_ms, c->now_ms, c->utc, from);
    when_format(c->last_ms, c->now_ms, c->utc, to);
    buf_addf(&c->out, "since %s%s%s; ~ is an estimate\n", from,
             c->last_ms < c->now_ms ? ", until " : "", c->last_ms < c->now_ms ? to : "");
}

static void print_table(struct stats_cmd *c, const struct js_doc *doc)
{
    const struct js_node *all = js_get(doc, js_root(doc), STR("groups"));
    int64_t bucket_ms = DAY_MS;

    if (!js_first(doc, all)) {
        buf_addstr(&c->out, STR("no call was counted in this time\n"));
        return;
    }
    for (size_t i = 0; i < countof(buckets); i++)
        if (str_eq(c->bucket, str_of(buckets[i].name)))
            bucket_ms = buckets[i].ms;
    c->blocks = spark_has_blocks();
    print_rows(c, doc, (size_t)((c->last_ms - c->first_ms) / bucket_ms));
    print_foot(c, doc);
}

static bool run_stats(struct stats_cmd *c, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str json;
    struct js_doc doc;

    if (!read_ask(c, err) || !fetch(c, &json, err) || !source_parse(json, mem, &doc, err))
        return false;
    if (cli_flag(c->cli, "--json")) {
        buf_addstr(&c->out, js_raw(&doc, js_root(&doc)));
        return true;
    }
    if (!clock_parse(source_text(&doc, js_root(&doc), "since", mem), &c->first_ms) ||
        !clock_parse(source_text(&doc, js_root(&doc), "until", mem), &c->last_ms) ||
        c->last_ms <= c->first_ms)
        return error_set(err, ERR_PARSE,
                         "the answer holds no analytics; is that address a Holdfast?");
    print_table(c, &doc);
    return true;
}

int cmd_stats(struct cli *cli)
{
    struct stats_cmd c = {.cli = cli};
    struct error err;

    if (cli->n_args)
        return cli_usage(cli, "stats takes flags only");
    buf_init(&c.out, 128 << 20);
    bool ok = run_stats(&c, &err);
    int status = ok ? cli_print(cli, &c.out) : cli_refuse(cli, &err);
    source_close(&c.source);
    buf_release(&c.out);
    return status;
}
