/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast audit hold|holds|release|stats. */
#include "cli/audit_upkeep.h"

#include "base/clock.h"
#include "cli/audit_stats.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/when.h"
#include "json/write.h"
#include "store/store.h"

#include <stdio.h>
#include <unistd.h>

struct upkeep {
    struct cli *cli;
    bool json;
    struct source source;
    struct buf out;
    struct table table; /* columns == NULL: none */
};

/* hold session|user NAME */

static struct str hold_body(struct upkeep *u)
{
    struct buf out;
    struct js_writer w;

    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, u->cli->args[1], str_of(u->cli->args[2]));
    js_kv_string(&w, "reason", str_of(cli_flag(u->cli, "--reason")));
    js_kv_string(&w, "tenant", str_of(cli_flag(u->cli, "--tenant")));
    js_object_end(&w);
    struct str body = arena_dup(u->cli->mem, buf_str(&out));
    buf_release(&out);
    return body;
}

static bool parse(struct upkeep *u, struct str json, struct js_doc *ret, struct error *err)
{
    if (!source_parse(json, u->cli->mem, ret, err))
        return false;
    if (u->json)
        buf_addstr(&u->out, js_raw(ret, js_root(ret)));
    return true;
}

static bool run_hold(struct upkeep *u, struct error *err)
{
    struct arena *mem = u->cli->mem;
    struct str kind = str_of(u->cli->args[1]), json;
    struct js_doc doc;

    if (!str_eq(kind, STR("session")) && !str_eq(kind, STR("user")))
        return error_set(err, ERR_USAGE, "audit hold takes session or user, and then its name");
    if (!source_open(u->cli, SOURCE_CHANGES, &u->source, err) ||
        !control_ask(u->source.control, "POST", STR("/api/v1/audit/holds"), hold_body(u), mem,
                     &json, err) ||
        !parse(u, json, &doc, err))
        return false;
    if (!u->json)
        fprintf(stderr,
                "%s %.*s is held: nothing of it is removed until `holdfast audit release %.*s`\n",
                kind.p, STR_ARG(source_text(&doc, js_root(&doc), "name", mem)),
                STR_ARG(source_text(&doc, js_root(&doc), "id", mem)));
    return true;
}

/* holds */

static const struct table_column columns[] = {
    {"HELD", 0, false},   {"NAME", 10, false}, {"SINCE", 0, false},
    {"REASON", 6, false}, {"ID", 36, false},
};
static const struct table_column columns_all[] = {
    {"HELD", 0, false},   {"NAME", 10, false},    {"SINCE", 0, false},
    {"REASON", 6, false}, {"RELEASED", 0, false}, {"ID", 36, false},
};

static struct str time_of(struct upkeep *u, struct str text)
{
    char shown[WHEN_TEXT];
    int64_t ms;

    if (!clock_parse(text, &ms))
        return STR("");
    return arena_dup(u->cli->mem, str_of(when_format(ms, clock_wall_ms(),
                                                     cli_flag(u->cli, "--utc") != NULL, shown)));
}

static void add_hold(struct upkeep *u, const struct js_doc *doc, const struct js_node *hold)
{
    struct arena *mem = u->cli->mem;
    struct str name = source_text(doc, hold, "name", mem);

    if (u->json) {
        buf_addstr(&u->out, js_raw(doc, hold));
        buf_addc(&u->out, '\n');
        return;
    }
    table_add(&u->table, source_text(doc, hold, "kind", mem));
    table_add(&u->table, name.n ? name : source_text(doc, hold, "target", mem));
    table_add(&u->table, time_of(u, source_text(doc, hold, "created_at", mem)));
    table_add(&u->table, source_text(doc, hold, "reason", mem));
    if (cli_flag(u->cli, "--all"))
        table_add(&u->table, time_of(u, source_text(doc, hold, "released_at", mem)));
    table_add(&u->table, source_text(doc, hold, "id", mem));
}

static struct str holds_path(struct upkeep *u, struct str cursor)
{
    struct arena *mem = u->cli->mem;
    struct str tenant = str_of(cli_flag(u->cli, "--tenant"));

    return arena_printf(mem, "/api/v1/audit/holds?limit=%d%s%s%.*s%s%.*s", STORE_PAGE_MAX,
                        cli_flag(u->cli, "--all") ? "&all=1" : "", tenant.p ? "&tenant=" : "",
                        STR_ARG(source_encoded(tenant, mem)), cursor.p ? "&cursor=" : "",
                        STR_ARG(cursor));
}

static void begin_table(struct upkeep *u)
{
    bool all = cli_flag(u->cli, "--all") != NULL;

    table_init(&u->table, all ? columns_all : columns,
               all ? countof(columns_all) : countof(columns), table_terminal_width(STDOUT_FILENO),
               cli_colour(STDOUT_FILENO));
}

static bool run_holds(struct upkeep *u, struct error *err)
{
    struct str cursor = STR_NONE, json;
    struct js_doc doc;
    size_t n = 0;

    if (!source_open(u->cli, SOURCE_READS, &u->source, err))
        return false;
    begin_table(u);
    do {
        if (!control_get(u->source.control, holds_path(u, cursor), u->cli->mem, &json, err) ||
            !source_parse(json, u->cli->mem, &doc, err))
            return false;
        const struct js_node *holds = js_get(&doc, js_root(&doc), STR("holds"));
        for (const struct js_node *h = js_first(&doc, holds); h; h = js_next(&doc, holds, h), n++)
            add_hold(u, &doc, h);
        cursor = js_text(&doc, js_get(&doc, js_root(&doc), STR("next_cursor")), u->cli->mem);
    } while (cursor.p);
    if (!n && !u->json)
        fprintf(stderr, "nothing is held; hold with `holdfast audit hold session|user NAME`\n");
    return true;
}

/* release ID */

static bool run_release(struct upkeep *u, struct error *err)
{
    struct arena *mem = u->cli->mem;
    struct str id = source_encoded(str_of(u->cli->args[1]), mem), json;
    struct js_doc doc;

    if (!source_open(u->cli, SOURCE_CHANGES, &u->source, err) ||
        !control_ask(u->source.control, "DELETE",
                     arena_printf(mem, "/api/v1/audit/holds/%.*s", STR_ARG(id)), STR_NONE, mem,
                     &json, err) ||
        !parse(u, json, &doc, err))
        return false;
    if (!u->json)
        fprintf(stderr,
                "the hold of the %.*s is released: retention and erasures apply to it again\n",
                STR_ARG(source_text(&doc, js_root(&doc), "kind", mem)));
    return true;
}

/* stats */

static bool run_stats(struct upkeep *u, struct error *err)
{
    struct arena *mem = u->cli->mem;
    struct str tenant = str_of(cli_flag(u->cli, "--tenant")), json;
    struct js_doc doc;

    if (!source_open(u->cli, SOURCE_READS, &u->source, err) ||
        !control_get(u->source.control,
                     arena_printf(mem, "/api/v1/audit/stats%s%.*s", tenant.p ? "?tenant=" : "",
                                  STR_ARG(source_encoded(tenant, mem))),
                     mem, &json, err) ||
        !parse(u, json, &doc, err))
        return false;
    if (!u->json)
        audit_stats_print(u->cli, &doc, &u->out);
    return true;
}

#define WHERE "--data", "--url", "--json"
static const struct upkeep_verb {
    const char *name;
    int n_args;
    bool (*run)(struct upkeep *u, struct error *err);
    const char *takes; /* after "audit NAME takes " */
    const char *flags[8];
} verbs[] = {
    {"hold", 2, run_hold, "session or user, and then its name", {"--reason", "--tenant", WHERE}},
    {"holds", 0, run_holds, "flags only", {"--all", "--tenant", "--utc", WHERE}},
    {"stats", 0, run_stats, "flags only", {"--tenant", "--utc", WHERE}},
    {"release", 1, run_release, "the id of one hold", {WHERE}},
};

static const struct upkeep_verb *verb_of(const struct cli *cli)
{
    for (size_t i = 0; cli->n_args && i < countof(verbs); i++)
        if (strcmp(cli->args[0], verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

bool audit_is_upkeep(const struct cli *cli)
{
    return verb_of(cli) != NULL;
}

void audit_upkeep_offer(struct cli_nearest *near)
{
    for (size_t i = 0; i < countof(verbs); i++)
        cli_nearest_offer(near, verbs[i].name);
}

int audit_upkeep(struct cli *cli)
{
    const struct upkeep_verb *v = verb_of(cli);
    struct upkeep u = {.cli = cli, .json = cli_flag(cli, "--json")};
    struct error err;
    int status = 0;

    if (cli->n_args != 1 + v->n_args)
        return cli_usage(cli, "audit %s takes %s", v->name, v->takes);
    const char *flag = cli_flag_beyond(cli, v->flags, countof(v->flags));
    if (flag)
        return cli_usage(cli, "audit %s does not take %s", v->name, flag);
    buf_init(&u.out, SIZE_MAX / 4);
    bool ok = v->run(&u, &err);
    source_close(&u.source);
    if (ok && u.table.n_cells)
        table_print(&u.table, &u.out);
    if (ok && u.out.n) {
        pager_begin();
        status = cli_print(cli, &u.out);
        pager_end();
    }
    if (u.table.columns)
        table_release(&u.table);
    buf_release(&u.out);
    return ok ? status : cli_refuse(cli, &err);
}
