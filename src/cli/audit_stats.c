/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/audit_stats.h"

#include "base/clock.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/when.h"

#include <unistd.h>

static const struct table_column columns[] = {
    {"TENANT", 8, false}, {"EVENTS", 0, true}, {"BODIES", 0, true},  {"SIZE", 0, true},
    {"A DAY", 0, true},   {"KEPT", 6, false},  {"OLDEST", 0, false}, {"NEWEST", 0, false},
};

static int64_t number(const struct js_doc *doc, const struct js_node *object, const char *name)
{
    int64_t value = 0;
    const struct js_node *node = object ? js_get(doc, object, str_of(name)) : NULL;

    return node && js_to_i64(doc, node, &value) ? value : 0;
}

static struct str size_text(int64_t bytes, struct arena *mem)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes / 1024;
    size_t unit = 0;

    while (size >= 1024 && unit + 1 < countof(units)) {
        size /= 1024;
        unit++;
    }
    return arena_printf(mem, "%.1f %s", size, units[unit]);
}

static struct str time_text(struct cli *cli, struct str text)
{
    char shown[WHEN_TEXT];
    int64_t ms;

    if (!clock_parse(text, &ms))
        return STR("");
    when_format(ms, clock_wall_ms(), cli_flag(cli, "--utc") != NULL, shown);
    return arena_dup(cli->mem, str_of(shown));
}

/* "90d", "36h", "90s" */
static struct str age_text(int64_t seconds, struct arena *mem)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;

    while (i + 1 < countof(units) && seconds % units[i].seconds)
        i++;
    return arena_printf(mem, "%lld%c", (long long)(seconds / units[i].seconds), units[i].unit);
}

/* "keep 90d, bodies 7d, max_size 10.0 GiB"; empty: nothing is removed. */
static struct str rules_text(const struct js_doc *doc, const struct js_node *rules,
                             struct arena *mem)
{
    static const struct {
        const char *member, *word;
    } parts[] = {{"keep_seconds", "keep"}, {"bodies_seconds", "bodies"}};
    struct str text = STR("");

    for (size_t i = 0; i < countof(parts); i++) {
        int64_t seconds = number(doc, rules, parts[i].member);
        if (seconds)
            text = arena_printf(mem, "%.*s%s%s %.*s", STR_ARG(text), text.n ? ", " : "",
                                parts[i].word, STR_ARG(age_text(seconds, mem)));
    }
    int64_t most = number(doc, rules, "max_size_bytes");
    if (most)
        text = arena_printf(mem, "%.*s%smax_size %.*s", STR_ARG(text), text.n ? ", " : "",
                            STR_ARG(size_text(most, mem)));
    return text;
}

static void add_tenant(struct cli *cli, struct table *t, const struct js_doc *doc,
                       const struct js_node *tenant)
{
    struct arena *mem = cli->mem;

    table_add(t, source_text(doc, tenant, "tenant", mem));
    table_add(t, arena_printf(mem, "%lld", (long long)number(doc, tenant, "events")));
    table_add(t, arena_printf(mem, "%lld", (long long)number(doc, tenant, "bodies")));
    table_add(t, size_text(number(doc, tenant, "bytes"), mem));
    table_add(t, size_text(number(doc, tenant, "bytes_per_day"), mem));
    table_add(t, rules_text(doc, js_get(doc, tenant, STR("rules")), mem));
    table_add(t, time_text(cli, source_text(doc, tenant, "oldest_at", mem)));
    table_add(t, time_text(cli, source_text(doc, tenant, "newest_at", mem)));
}

static void print_tenants(struct cli *cli, const struct js_doc *doc, struct buf *out)
{
    struct table t = {0};
    const struct js_node *tenants = js_get(doc, js_root(doc), STR("tenants"));

    table_init(&t, columns, countof(columns), table_terminal_width(STDOUT_FILENO),
               cli_colour(STDOUT_FILENO));
    for (const struct js_node *n = js_first(doc, tenants); n; n = js_next(doc, tenants, n))
        add_tenant(cli, &t, doc, n);
    if (t.n_cells)
        table_print(&t, out);
    else
        buf_addstr(out, STR("no event is recorded yet\n"));
    table_release(&t);
}

static void print_database(const struct js_doc *doc, const struct js_node *database,
                           struct arena *mem, struct buf *out)
{
    struct str bytes = size_text(number(doc, database, "bytes"), mem);

    buf_addf(out, "database: %.*s", STR_ARG(bytes));
    if (js_get(doc, database, STR("wal_bytes"))) {
        struct str unused = size_text(number(doc, database, "free_bytes"), mem);
        struct str wal = size_text(number(doc, database, "wal_bytes"), mem);
        buf_addf(out, ", of which %.*s free to be used again; its log: %.*s", STR_ARG(unused),
                 STR_ARG(wal));
    }
    buf_addc(out, '\n');
}

/* On a terminal, a line that is too long for it goes on below. */
static void add_line(struct str text, struct buf *out)
{
    if (table_terminal_width(STDOUT_FILENO))
        text_wrap(out, 0, text, 2);
    else
        buf_addf(out, "%.*s\n", STR_ARG(text));
}

#define DAYS_SHOWN 36500

static struct str days_text(long long days, struct arena *mem)
{
    if (days > DAYS_SHOWN)
        return STR("more than 100 years");
    return arena_printf(mem, "%lld day%s", days, days == 1 ? "" : "s");
}

static void print_disk(const struct js_doc *doc, const struct js_node *disk, struct arena *mem,
                       struct buf *out)
{
    struct str left = size_text(number(doc, disk, "free_bytes"), mem);
    struct str kept = size_text(number(doc, disk, "reserve_bytes"), mem);
    struct str days = days_text((long long)number(doc, disk, "days_left"), mem);
    struct str lasts = STR("it lasts, as the record does not grow beyond it");

    if (js_get(doc, disk, STR("days_left")))
        lasts = arena_printf(mem, "at this growth it lasts %.*s", STR_ARG(days));
    add_line(arena_printf(mem,
                          "disk: %.*s free, of which %.*s stay free (limits.disk_reserve); %.*s",
                          STR_ARG(left), STR_ARG(kept), STR_ARG(lasts)),
             out);
}

void audit_stats_print(struct cli *cli, const struct js_doc *doc, struct buf *out)
{
    const struct js_node *root = js_root(doc);
    const struct js_node *database = js_get(doc, root, STR("database"));
    const struct js_node *disk = js_get(doc, root, STR("disk"));
    long long uncounted = (long long)number(doc, root, "uncounted");

    print_tenants(cli, doc, out);
    if (uncounted)
        buf_addf(out, "about %lld events of an older Holdfast are not counted yet\n", uncounted);
    if (database)
        print_database(doc, database, cli->mem, out);
    if (disk)
        print_disk(doc, disk, cli->mem, out);
}
