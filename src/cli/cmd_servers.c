/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast servers list|show|diff|approve|restart|logs: a client of /api/v1/servers and
 * /api/v1/tools.  approve needs the daemon, which remembers what was shown to a person; restart and
 * logs need it because it has the processes (servers_process.c). */
#include "cli/cli.h"

#include "base/log.h"
#include "cli/inventory.h"
#include "cli/servers_process.h"
#include "cli/source.h"
#include "cli/table.h"
#include "json/read.h"
#include "json/write.h"

#include <stdio.h>
#include <unistd.h>

struct servers_cmd {
    struct cli *cli;
    bool json;
    struct source source;
    struct inventory from; /* reads servers and tools of `source` */
    struct buf out;
};

struct servers_verb {
    const char *name;
    int min_args, max_args;
    bool pages; /* through the pager */
    const char *flags[6];
    bool (*run)(struct servers_cmd *c, struct error *err);
};

static bool open_source(struct servers_cmd *c, struct error *err)
{
    return source_open(c->cli, SOURCE_LOOKS, &c->source, err);
}

/* list */

#define MOST_SERVERS 1000
struct listed {
    struct str name, state;
    struct str raw; /* its JSON object from the daemon; absent: the daemon does not list it */
    struct str reason, last_error;
    int64_t calls, failures;
    unsigned tools, changed, fresh;
    int64_t
        offered; /* tools in the server's list now, as the daemon knows it; 0: unknown or none */
};
struct listing {
    struct servers_cmd *cmd;
    struct str only; /* absent: every server */
    struct listed of[MOST_SERVERS];
    size_t n;
    bool has_more;
};

static struct listed *server_of(struct listing *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->of[i].name, name))
            return &l->of[i];
    if (l->only.p && !str_eq(l->only, name))
        return NULL;
    if (l->n == MOST_SERVERS) {
        l->has_more = true;
        return NULL;
    }
    l->of[l->n] = (struct listed){.name = name, .state = STR("not configured")};
    return &l->of[l->n++];
}

static bool count_tool(void *arg, const struct js_doc *doc, const struct js_node *tool,
                       struct error *err unused_arg)
{
    struct listing *l = arg;
    struct arena *mem = l->cmd->cli->mem;
    struct listed *s = server_of(l, source_text(doc, tool, "server", mem));
    struct str state = source_text(doc, tool, "state", mem);

    if (!s)
        return true;
    s->tools += !str_eq(state, STR("gone"));
    s->changed += str_eq(state, STR("changed"));
    s->fresh += str_eq(state, STR("new"));
    return true;
}

/* One server that is configured. */
static bool list_one(void *arg, struct str name, const struct js_doc *doc,
                     const struct js_node *server, struct error *err)
{
    struct listing *l = arg;
    struct arena *mem = l->cmd->cli->mem;
    struct listed *one = server_of(l, name);

    if (!one)
        return true;
    one->state = source_text(doc, server, "state", mem);
    if (str_eq(one->state, STR("not running")))
        return true;
    one->reason = source_text(doc, server, "reason", mem);
    one->last_error = source_text(doc, server, "last_error", mem);
    one->raw = js_raw(doc, server);
    if (!js_to_i64(doc, js_get(doc, server, STR("tools")), &one->offered))
        one->offered = 0;
    return (js_to_i64(doc, js_get(doc, server, STR("calls")), &one->calls) &&
            js_to_i64(doc, js_get(doc, server, STR("failures")), &one->failures)) ||
           error_set(err, ERR_INTERNAL,
                     "the answer of Holdfast has no counts of calls; is it an older version?");
}

/* Why a server is not healthy.  The last error is shown only beside a reason, because it may be
 * old. */
static void add_reason(struct servers_cmd *c, const struct listed *s)
{
    static const char reason[] = "  reason: ", last[] = "  last error: ";

    if (!s->reason.n)
        return;
    buf_addz(&c->out, reason);
    text_wrap(&c->out, sizeof(reason) - 1, str_cut(s->reason, 1024), 4);
    if (!s->last_error.n || str_eq(s->last_error, s->reason))
        return;
    buf_addz(&c->out, last);
    text_wrap(&c->out, sizeof(last) - 1, str_cut(s->last_error, 1024), 4);
}

/* The tools of built-in servers are not pinned, so only the daemon knows how many there are. */
static int64_t tools_of(const struct listed *s)
{
    return s->tools ? s->tools : s->offered;
}

static void add_json(struct servers_cmd *c, const struct listed *s)
{
    struct js_writer w;

    js_begin(&w, &c->out);
    js_object(&w);
    js_kv_string(&w, "name", s->name);
    js_kv_string(&w, "state", s->state);
    if (s->raw.p)
        js_kv_raw(&w, "health", s->raw);
    js_kv_int(&w, "tools", tools_of(s));
    js_kv_int(&w, "changed", s->changed);
    js_kv_int(&w, "new", s->fresh);
    js_object_end(&w);
    buf_addc(&c->out, '\n');
}

static const struct table_column server_columns[] = {
    {"SERVER", 8, false}, {"STATE", 0, false},   {"TOOLS", 0, true},  {"CHANGED", 0, true},
    {"NEW", 0, true},     {"REQUESTS", 0, true}, {"FAILED", 0, true},
};

static void add_number(struct table *t, int64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)number);
    table_add(t, str_of(text));
}

static const char *colour_of(struct str state)
{
    return str_eq(state, STR("healthy"))    ? "32"
           : str_eq(state, STR("degraded")) ? "33"
           : str_eq(state, STR("down"))     ? "31"
                                            : "2";
}

/* A row for each server, and below it why it is not healthy. */
static void add_servers(struct servers_cmd *c, const struct listing *l)
{
    struct table t;
    struct buf rows;

    table_init(&t, server_columns, countof(server_columns), table_terminal_width(STDOUT_FILENO),
               cli_colour(STDOUT_FILENO));
    for (size_t i = 0; i < l->n; i++) {
        const struct listed *s = &l->of[i];
        table_add(&t, s->name);
        table_add_coloured(&t, source_state_word(s->state), colour_of(s->state));
        add_number(&t, tools_of(s));
        add_number(&t, s->changed);
        add_number(&t, s->fresh);
        add_number(&t, s->calls);
        add_number(&t, s->failures);
    }
    buf_init(&rows, SIZE_MAX / 4);
    table_print(&t, &rows);
    struct str rest = buf_str(&rows), head = str_split(&rest, '\n');
    buf_addf(&c->out, "%.*s\n", STR_ARG(head));
    for (size_t i = 0; i < l->n; i++) {
        struct str row = str_split(&rest, '\n');
        buf_addf(&c->out, "%.*s\n", STR_ARG(row));
        add_reason(c, &l->of[i]);
    }
    buf_release(&rows);
    table_release(&t);
}

static bool run_list(struct servers_cmd *c, struct error *err)
{
    struct listing *l = arena_new_of(c->cli->mem, struct listing);

    l->cmd = c;
    if (!open_source(c, err) || !inventory_each_server(&c->from, list_one, l, err) ||
        !inventory_each_tool(&c->from, STR_NONE, count_tool, l, err))
        return false;
    for (size_t i = 0; c->json && i < l->n; i++)
        add_json(c, &l->of[i]);
    if (l->n && !c->json)
        add_servers(c, l);
    if (!l->n && !c->json)
        fprintf(stderr, "there are no servers; add one with `holdfast add NAME -- COMMAND`\n");
    if (l->has_more)
        fprintf(stderr,
                "there are more than the %d servers listed; see `holdfast servers show NAME`\n",
                MOST_SERVERS);
    return true;
}

/* show */

struct shown {
    struct servers_cmd *cmd;
    size_t n;
    int64_t offered;
};

static bool show_tool(void *arg, const struct js_doc *doc, const struct js_node *tool,
                      struct error *err unused_arg)
{
    struct shown *shown = arg;
    struct servers_cmd *c = shown->cmd;
    struct arena *mem = c->cli->mem;
    struct str changed = source_text(doc, tool, "changed_at", mem);

    if (c->json) {
        buf_addstr(&c->out, js_raw(doc, tool));
        buf_addc(&c->out, '\n');
        return true;
    }
    if (shown->n++ == 0)
        buf_addf(&c->out, "%-9s %-16s  %-12s  %s\n", "STATE", "CHANGED", "DIGEST", "TOOL");
    buf_addf(&c->out, "%-9.*s %-16.*s  %-12.12s  ", STR_ARG(source_text(doc, tool, "state", mem)),
             (int)(changed.n < 16 ? changed.n : 16), changed.p,
             source_text(doc, tool, "digest", mem).p);
    log_escape(&c->out, source_text(doc, tool, "name", mem), 256);
    buf_addc(&c->out, '\n');
    return true;
}

/* The daemon's notes about faults in the lists of a server. */
static void add_notes(struct servers_cmd *c, const struct listed *s)
{
    struct arena *mem = c->cli->mem;
    struct js_doc doc;

    if (!s->raw.p || !js_parse(s->raw, &js_limits_upstream, mem, &doc, NULL))
        return;
    const struct js_node *notes = js_get(&doc, js_root(&doc), STR("notes"));
    for (const struct js_node *v = notes ? js_first(&doc, notes) : NULL; v;
         v = js_next(&doc, notes, v)) {
        buf_addz(&c->out, "  note: ");
        log_escape(&c->out, js_text(&doc, v, mem), 512);
        buf_addc(&c->out, '\n');
    }
}

/* Prints the server to stderr; stdout is for its tools. */
static bool print_server(struct servers_cmd *c, struct str name, int64_t *ret_offered,
                         struct error *err)
{
    struct listing *l = arena_new_of(c->cli->mem, struct listing);

    l->cmd = c;
    l->only = name;
    if (!inventory_each_server(&c->from, list_one, l, err))
        return false;
    *ret_offered = l->n ? l->of[0].offered : 0;
    if (c->json)
        return true;
    fprintf(stderr, "%.*s: %.*s\n", STR_ARG(name),
            STR_ARG(l->n ? source_state_word(l->of[0].state) : STR("not configured")));
    if (l->n) {
        add_reason(c, &l->of[0]);
        add_notes(c, &l->of[0]);
    }
    fprintf(stderr, "%.*s", STR_ARG(buf_str(&c->out)));
    buf_reset(&c->out);
    return true;
}

static bool run_show(struct servers_cmd *c, struct error *err)
{
    struct str server = str_of(c->cli->args[1]);
    struct shown shown = {.cmd = c};

    if (!open_source(c, err) || !inventory_has_server(&c->from, server, err) ||
        !print_server(c, server, &shown.offered, err) ||
        !inventory_each_tool(&c->from, server, show_tool, &shown, err))
        return false;
    if (!shown.n && !c->json && shown.offered)
        fprintf(stderr,
                "its %lld tools are Holdfast's own, so there is nothing to approve; a client sees "
                "them in tools/list of /mcp/%.*s\n",
                (long long)shown.offered, STR_ARG(server));
    else if (!shown.n && !c->json)
        fprintf(stderr, "Holdfast has not seen its tools yet\n");
    return true;
}

/* diff */

static struct str server_path(struct servers_cmd *c, struct str server, const char *verb)
{
    return arena_printf(c->cli->mem, "/api/v1/servers/%.*s/%s",
                        STR_ARG(source_encoded(server, c->cli->mem)), verb);
}

static bool get_diff(struct servers_cmd *c, struct str server, struct str tool,
                     struct str *ret_json, struct error *err)
{
    struct arena *mem = c->cli->mem;

    return control_get(c->source.control,
                       arena_printf(mem, "%.*s?tool=%.*s", STR_ARG(server_path(c, server, "diff")),
                                    STR_ARG(source_encoded(tool, mem))),
                       mem, ret_json, err);
}

/* Escapes each line, because control characters of a server must not reach a terminal. */
static void add_lines(struct buf *out, struct str text)
{
    while (text.n) {
        log_escape(out, str_split(&text, '\n'), SIZE_MAX / 8);
        buf_addc(out, '\n');
    }
}

#define DIGEST_SHOWN 32 /* hex digits: too many to find a second definition with the same */

static bool show_diff(struct servers_cmd *c, struct str server, struct str tool, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct js_doc doc;
    struct str json = STR_NONE;

    if (!get_diff(c, server, tool, &json, err) || !source_parse(json, mem, &doc, err))
        return false;
    if (c->json) {
        buf_addstr(&c->out, json);
        buf_addc(&c->out, '\n');
        return true;
    }
    buf_addf(&c->out, "--- %.*s ", STR_ARG(server));
    log_escape(&c->out, tool, 256);
    buf_addf(&c->out, " approved\n+++ %.*s ", STR_ARG(server));
    log_escape(&c->out, tool, 256);
    buf_addf(&c->out, " %.*s %.*s\n", STR_ARG(source_text(&doc, js_root(&doc), "state", mem)),
             DIGEST_SHOWN, source_text(&doc, js_root(&doc), "digest", mem).p);
    add_lines(&c->out, source_text(&doc, js_root(&doc), "diff", mem));
    return true;
}

struct diffed {
    struct servers_cmd *cmd;
    size_t n, n_seen;
};

static bool diff_if_changed(void *arg, const struct js_doc *doc, const struct js_node *tool,
                            struct error *err)
{
    struct diffed *d = arg;
    struct servers_cmd *c = d->cmd;
    struct arena *mem = c->cli->mem;
    struct str state = source_text(doc, tool, "state", mem);

    d->n_seen++;
    if (!str_eq(state, STR("changed")) && !str_eq(state, STR("new")))
        return true;
    d->n++;
    return show_diff(c, source_text(doc, tool, "server", mem), source_text(doc, tool, "name", mem),
                     err);
}

static bool run_diff(struct servers_cmd *c, struct error *err)
{
    struct str server = str_of(c->cli->args[1]);
    struct diffed d = {.cmd = c};

    if (!open_source(c, err) || !inventory_has_server(&c->from, server, err))
        return false;
    if (c->cli->n_args == 3)
        return show_diff(c, server, str_of(c->cli->args[2]), err);
    if (!inventory_each_tool(&c->from, server, diff_if_changed, &d, err))
        return false;
    if (!d.n && !c->json)
        fprintf(stderr,
                d.n_seen ? "every tool of %.*s is as it was approved\n"
                         : "Holdfast has not seen the tools of %.*s yet, so no tool differs\n",
                STR_ARG(server));
    return true;
}

/* approve */

struct approved {
    int64_t approved, left, unseen;
};

/* Approves as many tools as one event may name. */
static bool approve_some(struct servers_cmd *c, struct approved *ret, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct js_writer w;
    struct js_doc doc;
    struct buf body;
    struct str json = STR_NONE;

    buf_init(&body, SIZE_MAX / 4);
    js_begin(&w, &body);
    js_object(&w);
    if (c->cli->n_args == 3)
        js_kv_string(&w, "tool", str_of(c->cli->args[2]));
    if (cli_flag(c->cli, "--digest"))
        js_kv_string(&w, "digest", str_of(cli_flag(c->cli, "--digest")));
    js_object_end(&w);
    bool ok =
        control_ask(c->source.control, "POST", server_path(c, str_of(c->cli->args[1]), "approve"),
                    buf_str(&body), mem, &json, err) &&
        source_parse(json, mem, &doc, err);
    buf_release(&body);
    if (!ok)
        return false;
    const struct js_node *root = js_root(&doc);
    return (js_to_i64(&doc, js_get(&doc, root, STR("approved")), &ret->approved) &&
            js_to_i64(&doc, js_get(&doc, root, STR("left")), &ret->left) &&
            js_to_i64(&doc, js_get(&doc, root, STR("unseen")), &ret->unseen)) ||
           error_set(
               err, ERR_INTERNAL,
               "the answer of Holdfast does not name the approved tools; is it an older version?");
}

static bool run_approve(struct servers_cmd *c, struct error *err)
{
    const char *server = c->cli->args[1];
    struct approved some;
    int64_t all = 0;

    if ((c->cli->n_args == 3) == (cli_flag(c->cli, "--all") != NULL))
        return error_set(err, ERR_USAGE, "servers approve takes the name of a tool, or --all");
    if (cli_flag(c->cli, "--all") && cli_flag(c->cli, "--digest"))
        return error_set(err, ERR_USAGE, "--digest belongs to one tool; name the tool");
    if (!open_source(c, err))
        return false;
    if (c->source.local)
        return error_set(err, ERR_UNREACHABLE,
                         "Holdfast must run to record an approval; start it first (`holdfast up`)");
    if (!inventory_has_server(&c->from, str_of(server), err))
        return false;
    do {
        if (!approve_some(c, &some, err))
            return false;
        all += some.approved;
    } while (some.left);
    if (c->json)
        buf_addf(&c->out, "{\"server\":\"%s\",\"approved\":%lld,\"unseen\":%lld}", server,
                 (long long)all, (long long)some.unseen);
    else
        fprintf(stderr, "approved: %lld tool%s of %s\n", (long long)all, all == 1 ? "" : "s",
                server);
    if (some.unseen && !c->json)
        fprintf(stderr,
                "not approved: %lld, changed or new since the others were shown; see `holdfast "
                "servers diff %s`\n",
                (long long)some.unseen, server);
    return true;
}

/* restart, logs */

static bool needs_daemon(struct servers_cmd *c, struct error *err)
{
    if (!open_source(c, err))
        return false;
    if (c->source.local)
        return error_set(
            err, ERR_UNREACHABLE,
            "no Holdfast runs here, so no server does; start it first (`holdfast up`)");
    return inventory_has_server(&c->from, str_of(c->cli->args[1]), err);
}

static bool run_restart(struct servers_cmd *c, struct error *err)
{
    return needs_daemon(c, err) &&
           servers_restart(&c->source, str_of(c->cli->args[1]), c->json, c->cli->mem, &c->out, err);
}

static bool run_logs(struct servers_cmd *c, struct error *err)
{
    struct servers_logs l = {.cli = c->cli, .source = &c->source, .out = &c->out};

    return servers_logs_flags(&l, err) && needs_daemon(c, err) && servers_logs(&l, err);
}

static const struct servers_verb verbs[] = {
    {"list", 1, 1, true, {"--config", "--data", "--url", "--json"}, run_list},
    {"show", 2, 2, true, {"--config", "--data", "--url", "--json"}, run_show},
    {"diff", 2, 3, true, {"--config", "--data", "--url", "--json"}, run_diff},
    {"approve", 2, 3, false, {"--all", "--digest", "--data", "--url", "--json"}, run_approve},
    {"restart", 2, 2, false, {"--data", "--url", "--json"}, run_restart},
    {"logs", 2, 2, false, {"-f", "-n", "--data", "--url", "--json"}, run_logs},
};

int cmd_servers(struct cli *cli)
{
    struct servers_cmd c = {.cli = cli, .json = cli_flag(cli, "--json")};
    const struct servers_verb *v = verbs;
    struct error err;
    int status = 0;

    while (v < verbs + countof(verbs) && (!cli->n_args || strcmp(cli->args[0], v->name) != 0))
        v++;
    if (v == verbs + countof(verbs)) {
        struct cli_nearest near = cli_nearest_to(str_of(cli->n_args ? cli->args[0] : ""));
        for (size_t k = 0; k < countof(verbs); k++)
            cli_nearest_offer(&near, verbs[k].name);
        return cli_unknown_verb(cli, &near,
                                "servers needs one of list, show, diff, approve, restart or logs");
    }
    if (cli->n_args < v->min_args || cli->n_args > v->max_args)
        return cli_usage(cli, "servers %s takes %s", v->name,
                         v->max_args == 1   ? "flags only"
                         : v->max_args == 2 ? "the name of a server"
                                            : "the name of a server, and of a tool");
    const char *flag = cli_flag_beyond(cli, v->flags, countof(v->flags));
    if (flag)
        return cli_usage(cli, "servers %s does not take %s", v->name, flag);
    c.from = (struct inventory){cli, &c.source};
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = v->run(&c, &err);
    source_close(&c.source);
    if (ok && c.out.n && v->pages && !c.json)
        pager_begin();
    if (ok && c.out.n)
        status = cli_print(cli, &c.out);
    pager_end();
    buf_release(&c.out);
    if (!ok && err.code == ERR_USAGE)
        return cli_usage(cli, "%s", err.text);
    return ok ? status : cli_fail(cli, &err);
}
