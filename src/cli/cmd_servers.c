/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast servers list|show|diff|approve: through the daemon when one runs; else what the
 * configuration and the store say.  An approval needs the daemon, for it goes on record. */
#include "cli/cli.h"

#include "base/log.h"
#include "cli/control.h"
#include "cli/datadir.h"
#include "config/config.h"
#include "json/read.h"
#include "pins/tool_json.h"
#include "store/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct servers_cmd {
    struct cli *cli;
    bool json;
    struct str data_dir;
    struct control *control; /* NULL: nobody runs */
    struct store *store;     /* NULL: or there is none yet */
    struct buf out;
};

struct servers_verb {
    const char *name;
    int min_args, max_args;
    const char *flags[5];
    bool (*run)(struct servers_cmd *c, struct error *err);
};

static bool open_source(struct servers_cmd *c, struct error *err)
{
    struct database db;

    if (!config_data_dir(str_of(cli_flag(c->cli, "--data")), c->cli->mem, &c->data_dir, err))
        return false;
    if (datadir_owner(c->data_dir) != 0)
        return control_open_socket(c->data_dir, &c->control, err);
    if (!database_choose(str_of(getenv("DATABASE_URL")), c->data_dir, c->cli->mem, &db, err))
        return false;
    return (!db.is_postgres && access(db.path.p, F_OK) != 0) ||
           database_open(&db, (struct store_config){.read_only = true}, &c->store, err);
}

static bool parse(struct str json, struct arena *mem, struct js_doc *ret, struct error *err)
{
    return js_parse(json, &js_limits_upstream, mem, ret, NULL) ||
           error_set(err, ERR_INTERNAL,
                     "the answer of Holdfast is not JSON; is it another version?");
}

static struct str member(const struct js_doc *doc, const struct js_node *object, const char *name,
                         struct arena *mem)
{
    struct str text = js_text(doc, js_get(doc, object, str_of(name)), mem);
    return text.p ? text : STR("");
}

static struct str escaped(struct servers_cmd *c, struct str s)
{
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    for (size_t i = 0; i < s.n; i++)
        buf_addf(&out, "%%%02x", (unsigned char)s.p[i]);
    struct str kept = arena_dup(c->cli->mem, buf_str(&out));
    buf_release(&out);
    return kept;
}

/* Tools. */

/* One page, as tools_write() has it. */
static bool tools_page(struct servers_cmd *c, const struct tool_filter *f, struct str *ret_json,
                       struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct tool_row *rows = NULL;
    struct buf out;
    size_t n = 0;

    if (c->control)
        return control_get(
            c->control,
            arena_printf(mem, "/control/tools?server=%.*s&after_server=%.*s&after=%.*s",
                         STR_ARG(escaped(c, f->server)), STR_ARG(escaped(c, f->after_server)),
                         STR_ARG(escaped(c, f->after))),
            mem, ret_json, err);
    if (c->store && !store_tools_page(c->store, f, STORE_PAGE_MAX, mem, &rows, &n, err))
        return false;
    buf_init(&out, SIZE_MAX / 4);
    tools_write(&out, rows, n, STORE_PAGE_MAX);
    *ret_json = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return true;
}

typedef bool tool_fn(struct servers_cmd *c, const struct js_doc *doc, const struct js_node *tool,
                     void *arg, struct error *err);

static bool each_tool(struct servers_cmd *c, struct str server, tool_fn *fn, void *arg,
                      struct error *err)
{
    struct tool_filter filter = {.server = server};
    struct arena *mem = c->cli->mem;
    const struct js_node *next;
    struct js_doc doc;
    struct str json = STR_NONE;

    do {
        if (!tools_page(c, &filter, &json, err) || !parse(json, mem, &doc, err))
            return false;
        const struct js_node *tools = js_get(&doc, js_root(&doc), STR("tools"));
        for (const struct js_node *t = js_first(&doc, tools); t; t = js_next(&doc, tools, t))
            if (!fn(c, &doc, t, arg, err))
                return false;
        next = js_get(&doc, js_root(&doc), STR("next"));
        filter.after_server = member(&doc, next, "server", mem);
        filter.after = member(&doc, next, "name", mem);
    } while (next);
    return true;
}

/* list */

#define MOST_SERVERS 1000
struct listed {
    struct str name, state;
    struct str raw; /* what the daemon says of it: a JSON object; absent: nothing */
    struct str why;
    int64_t calls, failures;
    unsigned tools, changed, fresh;
};
struct listing {
    struct listed of[MOST_SERVERS];
    size_t n;
    bool has_more;
};

static struct listed *server_of(struct listing *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->of[i].name, name))
            return &l->of[i];
    if (l->n == MOST_SERVERS) {
        l->has_more = true;
        return NULL;
    }
    l->of[l->n] = (struct listed){.name = name, .state = STR("not configured")};
    return &l->of[l->n++];
}

static bool count_tool(struct servers_cmd *c, const struct js_doc *doc, const struct js_node *tool,
                       void *arg, struct error *err unused_arg)
{
    struct listed *s = server_of(arg, member(doc, tool, "server", c->cli->mem));
    struct str state = member(doc, tool, "state", c->cli->mem);

    if (!s)
        return true;
    s->tools += !str_eq(state, STR("gone"));
    s->changed += str_eq(state, STR("changed"));
    s->fresh += str_eq(state, STR("new"));
    return true;
}

/* The servers that there are, from who runs or from the configuration. */
static bool list_configured(struct servers_cmd *c, struct listing *l, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct config *config = NULL;
    struct js_doc doc;
    struct str json = STR_NONE;

    if (!c->control) {
        struct config_source source = {.file = str_of(cli_flag(c->cli, "--config"))};
        if (!config_load(&source, &config, err))
            return false;
        for (size_t i = 0; i < config->n_servers; i++) {
            struct listed *s = server_of(l, arena_dup(mem, config->servers[i].name));
            if (s)
                s->state = STR("not running");
        }
        config_unref(config);
        return true;
    }
    if (!control_get(c->control, STR("/control/status"), mem, &json, err) ||
        !parse(json, mem, &doc, err))
        return false;
    const struct js_node *servers = js_get(&doc, js_root(&doc), STR("servers"));
    for (const struct js_node *s = js_first(&doc, servers); s; s = js_next(&doc, servers, s)) {
        struct listed *one = server_of(l, member(&doc, s, "name", mem));
        if (!one)
            continue;
        one->state = member(&doc, s, "state", mem);
        one->why = member(&doc, s, "reason", mem);
        one->raw = js_raw(&doc, s);
        if (!js_to_i64(&doc, js_get(&doc, s, STR("calls")), &one->calls) ||
            !js_to_i64(&doc, js_get(&doc, s, STR("failures")), &one->failures))
            return error_set(err, ERR_INTERNAL, "Holdfast says nothing of calls; is it older?");
    }
    return true;
}

static void show_listed(struct servers_cmd *c, const struct listed *s)
{
    struct js_writer w;

    if (!c->json) {
        buf_addf(&c->out, "%-20.*s  %-14.*s %5u  %7u  %5u  %8lld  %6lld  %.*s\n", STR_ARG(s->name),
                 STR_ARG(s->state), s->tools, s->changed, s->fresh, (long long)s->calls,
                 (long long)s->failures, STR_ARG(s->why));
        return;
    }
    js_begin(&w, &c->out);
    js_object(&w);
    js_kv_string(&w, "name", s->name);
    js_kv_string(&w, "state", s->state);
    if (s->raw.p)
        js_kv_raw(&w, "health", s->raw);
    js_kv_int(&w, "tools", s->tools);
    js_kv_int(&w, "changed", s->changed);
    js_kv_int(&w, "new", s->fresh);
    js_object_end(&w);
    buf_addc(&c->out, '\n');
}

static bool run_list(struct servers_cmd *c, struct error *err)
{
    struct listing *l = arena_new_of(c->cli->mem, struct listing);

    if (!open_source(c, err) || !list_configured(c, l, err) ||
        !each_tool(c, STR_NONE, count_tool, l, err))
        return false;
    if (l->n && !c->json)
        buf_addf(&c->out, "%-20s  %-14s %5s  %7s  %5s  %8s  %6s\n", "SERVER", "STATE", "TOOLS",
                 "CHANGED", "NEW", "REQUESTS", "FAILED");
    for (size_t i = 0; i < l->n; i++)
        show_listed(c, &l->of[i]);
    if (l->has_more)
        fprintf(stderr,
                "there are more than the %d servers listed; see `holdfast servers show NAME`\n",
                MOST_SERVERS);
    return true;
}

/* show */

static bool show_tool(struct servers_cmd *c, const struct js_doc *doc, const struct js_node *tool,
                      void *arg, struct error *err unused_arg)
{
    struct arena *mem = c->cli->mem;
    struct str changed = member(doc, tool, "changed_at", mem);
    size_t *n = arg;

    if (c->json) {
        buf_addstr(&c->out, js_raw(doc, tool));
        buf_addc(&c->out, '\n');
        return true;
    }
    if ((*n)++ == 0)
        buf_addf(&c->out, "%-9s %-16s  %-12s  %s\n", "STATE", "CHANGED", "DIGEST", "TOOL");
    buf_addf(&c->out, "%-9.*s %-16.*s  %-12.12s  ", STR_ARG(member(doc, tool, "state", mem)),
             (int)(changed.n < 16 ? changed.n : 16), changed.p, member(doc, tool, "digest", mem).p);
    log_escape(&c->out, member(doc, tool, "name", mem), 256);
    buf_addc(&c->out, '\n');
    return true;
}

static bool run_show(struct servers_cmd *c, struct error *err)
{
    size_t n = 0;

    return open_source(c, err) && each_tool(c, str_of(c->cli->args[1]), show_tool, &n, err) &&
           (n || c->out.n ||
            error_set(err, ERR_NOT_FOUND,
                      "no tools of such a server are known; see `holdfast servers list`"));
}

/* diff */

static bool get_diff(struct servers_cmd *c, struct str server, struct str tool,
                     struct str *ret_json, struct error *err)
{
    struct tool_filter filter = {.server = server, .name = tool, .with_definitions = true};
    struct arena *mem = c->cli->mem;
    struct tool_row *rows = NULL;
    struct buf out;
    size_t n = 0;

    if (c->control)
        return control_get(c->control,
                           arena_printf(mem, "/control/tools/diff?server=%.*s&tool=%.*s",
                                        STR_ARG(escaped(c, server)), STR_ARG(escaped(c, tool))),
                           mem, ret_json, err);
    if (c->store && !store_tools_page(c->store, &filter, 1, mem, &rows, &n, err))
        return false;
    if (!n)
        return error_set(err, ERR_NOT_FOUND,
                         "no such tool is known; see `holdfast servers show NAME`");
    buf_init(&out, SIZE_MAX / 4);
    tool_diff_write(&out, rows);
    *ret_json = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return true;
}

/* Control characters of a server must not reach a terminal; line ends are ours. */
static void add_lines(struct buf *out, struct str text)
{
    while (text.n) {
        log_escape(out, str_split(&text, '\n'), SIZE_MAX / 8);
        buf_addc(out, '\n');
    }
}

#define DIGEST_SHOWN 32 /* hex digits: nobody finds another definition with the same */

static bool show_diff(struct servers_cmd *c, struct str server, struct str tool, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct js_doc doc;
    struct str json = STR_NONE;

    if (!get_diff(c, server, tool, &json, err) || !parse(json, mem, &doc, err))
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
    buf_addf(&c->out, " %.*s %.*s\n", STR_ARG(member(&doc, js_root(&doc), "state", mem)),
             DIGEST_SHOWN, member(&doc, js_root(&doc), "digest", mem).p);
    add_lines(&c->out, member(&doc, js_root(&doc), "diff", mem));
    return true;
}

static bool diff_if_changed(struct servers_cmd *c, const struct js_doc *doc,
                            const struct js_node *tool, void *arg, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str state = member(doc, tool, "state", mem);
    size_t *n = arg;

    if (!str_eq(state, STR("changed")) && !str_eq(state, STR("new")))
        return true;
    ++*n;
    return show_diff(c, member(doc, tool, "server", mem), member(doc, tool, "name", mem), err);
}

static bool run_diff(struct servers_cmd *c, struct error *err)
{
    struct str server = str_of(c->cli->args[1]);
    size_t n = 0;

    if (!open_source(c, err))
        return false;
    if (c->cli->n_args == 3)
        return show_diff(c, server, str_of(c->cli->args[2]), err);
    if (!each_tool(c, server, diff_if_changed, &n, err))
        return false;
    if (!n && !c->json)
        fprintf(stderr, "every tool of %.*s is as it was approved\n", STR_ARG(server));
    return true;
}

/* approve */

struct approved {
    int64_t approved, left, unseen;
};

/* As many as one event may name. */
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
    js_kv_string(&w, "server", str_of(c->cli->args[1]));
    if (c->cli->n_args == 3)
        js_kv_string(&w, "tool", str_of(c->cli->args[2]));
    if (cli_flag(c->cli, "--digest"))
        js_kv_string(&w, "digest", str_of(cli_flag(c->cli, "--digest")));
    js_object_end(&w);
    bool ok = control_ask(c->control, "POST", STR("/control/tools/approve"), buf_str(&body), mem,
                          &json, err) &&
              parse(json, mem, &doc, err);
    buf_release(&body);
    if (!ok)
        return false;
    const struct js_node *root = js_root(&doc);
    return (js_to_i64(&doc, js_get(&doc, root, STR("approved")), &ret->approved) &&
            js_to_i64(&doc, js_get(&doc, root, STR("left")), &ret->left) &&
            js_to_i64(&doc, js_get(&doc, root, STR("unseen")), &ret->unseen)) ||
           error_set(err, ERR_INTERNAL, "Holdfast does not say what it approved; is it older?");
}

static bool run_approve(struct servers_cmd *c, struct error *err)
{
    const char *server = c->cli->args[1];
    struct approved some;
    int64_t all = 0;

    if ((c->cli->n_args == 3) == (cli_flag(c->cli, "--all") != NULL))
        return error_set(err, ERR_USAGE, "servers approve takes the name of a tool, or --all");
    if (cli_flag(c->cli, "--all") && cli_flag(c->cli, "--digest"))
        return error_set(err, ERR_USAGE, "--digest is of one tool, which must be named");
    if (!open_source(c, err))
        return false;
    if (!c->control)
        return error_set(err, ERR_UNREACHABLE,
                         "an approval goes on record; start Holdfast first (`holdfast up`)");
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

static const struct servers_verb verbs[] = {
    {"list", 1, 1, {"--config", "--data", "--json"}, run_list},
    {"show", 2, 2, {"--data", "--json"}, run_show},
    {"diff", 2, 3, {"--data", "--json"}, run_diff},
    {"approve", 2, 3, {"--all", "--digest", "--data", "--json"}, run_approve},
};

int cmd_servers(struct cli *cli)
{
    struct servers_cmd c = {.cli = cli, .json = cli_flag(cli, "--json")};
    const struct servers_verb *v = verbs;
    struct error err;
    int status = 0;

    while (v < verbs + countof(verbs) && (!cli->n_args || strcmp(cli->args[0], v->name) != 0))
        v++;
    if (v == verbs + countof(verbs))
        return cli_usage(cli, "say list, show, diff or approve");
    if (cli->n_args < v->min_args || cli->n_args > v->max_args)
        return cli_usage(cli, "servers %s takes %s", v->name,
                         v->max_args == 1   ? "flags only"
                         : v->max_args == 2 ? "the name of a server"
                                            : "the name of a server, and of a tool");
    const char *flag = cli_flag_beyond(cli, v->flags, countof(v->flags));
    if (flag)
        return cli_usage(cli, "servers %s does not take %s", v->name, flag);
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = v->run(&c, &err);
    if (c.store)
        store_close(c.store);
    control_close(c.control);
    if (ok && c.out.n)
        status = cli_print(cli, &c.out);
    buf_release(&c.out);
    if (!ok && err.code == ERR_USAGE)
        return cli_usage(cli, "%s", err.text);
    return ok ? status : cli_fail(cli, &err);
}
