/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast key create|list|revoke|rotate-master|rotate-token.  The first three are a client of
 * /api/v1/keys.  A new key goes only to standard output, and is never shown again. */
#include "cli/cli.h"

#include "base/clock.h"
#include "cli/inventory.h"
#include "cli/key_list.h"
#include "cli/key_rotate.h"
#include "cli/source.h"
#include "cli/table.h"
#include "config/limits.h"
#include "identity/key_admin.h"
#include "json/read.h"

#include <stdio.h>

struct key_cmd {
    struct cli *cli;
    bool json;
    bool pages; /* the output is a list, for the pager */
    struct source source;
    struct buf out;
};

struct key_verb {
    const char *name;
    int n_args;
    const char *flags[16];
    bool (*run)(struct key_cmd *c, struct error *err);
};

/* create */

static size_t list_flag(struct cli *cli, const char *name, const struct str **ret)
{
    struct str *items = arena_alloc(cli->mem, CLI_MAX_FLAGS * sizeof(*items));
    size_t n = 0;

    for (int i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].name, name) == 0)
            items[n++] = str_of(cli->given[i].value);
    *ret = items;
    return n;
}

/* Refuses a name that no tool can have: the key would match no tool, without any message. */
static bool check_tools(const struct scopes *s, struct error *err)
{
    for (size_t i = 0; i < s->n_tools; i++)
        if (str_find(s->tools[i], '*') == s->tools[i].n && !strstr(s->tools[i].p, "__"))
            return error_set(err, ERR_USAGE,
                             "--tool is written server__tool, such as files__read; * at the end "
                             "stands for any characters");
    return true;
}

/* --limit requests=600/m; one flag for each kind of limit. */
static bool read_limits(struct cli *cli, const struct limits **ret, struct error *err)
{
    struct limits *limits = arena_new_of(cli->mem, struct limits);
    const struct str *given;
    enum limit_kind kind;

    for (size_t i = 0, n = list_flag(cli, "--limit", &given); i < n; i++) {
        struct str value = given[i], name = str_split(&value, '=');
        if (!value.p || !limit_kind_parse(name, &kind))
            return error_set(err, ERR_USAGE,
                             "--limit is written requests=600/m, bytes=50MiB/m, calls=8 or "
                             "children=4");
        if (!limit_parse(kind, value, &limits->of[kind], err)) {
            err->code = ERR_USAGE;
            return error_wrap(err, "--limit");
        }
    }
    *ret = limits;
    return true;
}

static bool read_request(struct cli *cli, struct key_request *ret, struct error *err)
{
    struct str role = str_of(cli_flag(cli, "--role")), expires = str_of(cli_flag(cli, "--expires"));
    struct key_request r = {
        .tenant = str_of(cli_flag(cli, "--tenant")),
        .name = str_of(cli_flag(cli, "--name")),
        .role = ROLE_MEMBER,
        .user = str_of(cli_flag(cli, "--user")),
        .scopes = {.review = cli_flag(cli, "--review"), .read_only = cli_flag(cli, "--read-only")},
    };

    r.scopes.n_servers = list_flag(cli, "--server", &r.scopes.servers);
    r.scopes.n_tools = list_flag(cli, "--tool", &r.scopes.tools);
    r.scopes.n_folders = list_flag(cli, "--folder", &r.scopes.folders);
    if (role.p && !role_parse(role, &r.role))
        return error_set(err, ERR_USAGE, "--role is admin, member, auditor or service");
    if (expires.p && (!clock_parse_duration(expires, &r.expires_in_ms) || !r.expires_in_ms))
        return error_set(err, ERR_USAGE, "--expires takes a duration such as 90d or 12h");
    if (!check_tools(&r.scopes, err) || !read_limits(cli, &r.scopes.limits, err))
        return false;
    if (!key_request_check(&r, err)) {
        err->code = ERR_USAGE;
        return false;
    }
    *ret = r;
    return true;
}

/* The server of "files__read*" is "files". */
static struct str server_of_tool(struct str tool)
{
    const char *parts = memmem(tool.p, tool.n, "__", 2);
    size_t star = str_find(tool, '*');

    if (parts && (size_t)(parts - tool.p) < star)
        return str_n(tool.p, (size_t)(parts - tool.p));
    return str_n(tool.p, star < tool.n ? star + 1 : tool.n);
}

static void warn_of(const struct inventory *all, const char *flag, struct str given,
                    struct str server)
{
    const char *near = NULL;
    struct error err;
    bool fits = true;

    if (!inventory_fits_server(all, server, &fits, &near, &err) || fits)
        return; /* the servers are unknown, or one fits: no warning */
    fprintf(stderr, "holdfast: warning: %s %.*s fits no server there is%s%s%s\n", flag,
            STR_ARG(given), near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* A key may be created before its server is configured, so an unknown server is a warning. */
static void warn_of_unknown(struct key_cmd *c, const struct scopes *s)
{
    struct inventory all = {c->cli, &c->source};

    for (size_t i = 0; i < s->n_servers; i++)
        warn_of(&all, "--server", s->servers[i], s->servers[i]);
    for (size_t i = 0; i < s->n_tools; i++)
        warn_of(&all, "--tool", s->tools[i], server_of_tool(s->tools[i]));
}

static bool run_create(struct key_cmd *c, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct key_request wanted;
    struct str json = STR_NONE;
    struct js_doc doc;

    if (!read_request(c->cli, &wanted, err) ||
        !source_open(c->cli, SOURCE_CHANGES, &c->source, err) ||
        !control_ask(c->source.control, "POST", STR("/api/v1/keys"),
                     key_request_write(&wanted, mem), mem, &json, err) ||
        !source_parse(json, mem, &doc, err))
        return false;
    if (!c->json)
        warn_of_unknown(c, &wanted.scopes);
    const struct js_node *root = js_root(&doc);
    buf_addstr(&c->out, c->json ? json : source_text(&doc, root, "key", mem));
    if (!c->json)
        fprintf(stderr,
                "key %.*s of tenant %.*s, role %.*s. It is shown this once; send it as\n"
                "  Authorization: Bearer KEY      (or X-API-Key: KEY)\n"
                "and take it back with `holdfast key revoke %.*s`.\n",
                STR_ARG(source_text(&doc, root, "id", mem)),
                STR_ARG(source_text(&doc, root, "tenant", mem)),
                STR_ARG(source_text(&doc, root, "role", mem)),
                STR_ARG(source_text(&doc, root, "id", mem)));
    return true;
}

/* list, revoke */

static bool run_list(struct key_cmd *c, struct error *err)
{
    struct key_request named = {.tenant = str_of(cli_flag(c->cli, "--tenant"))};

    if (!key_request_check(&named, err) || !source_open(c->cli, SOURCE_READS, &c->source, err))
        return false;
    c->pages = true;
    return key_list(c->cli, c->source.control, named.tenant, &c->out, err);
}

static bool run_revoke(struct key_cmd *c, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str name = str_of(c->cli->args[1]), id, json;

    if (key_parse(name, &id))
        name = id; /* the argument is the key itself */
    if (!source_open(c->cli, SOURCE_CHANGES, &c->source, err) ||
        !key_find(c->cli, c->source.control, str_of(cli_flag(c->cli, "--tenant")), name, &id,
                  err) ||
        !control_ask(c->source.control, "DELETE",
                     arena_printf(mem, "/api/v1/keys/%.*s", STR_ARG(id)), STR_NONE, mem, &json,
                     err))
        return false;
    if (c->json)
        buf_addf(&c->out, "{\"id\":\"%.*s\",\"revoked\":true}", STR_ARG(id));
    else
        fprintf(stderr, "key %.*s is revoked: its streams are closed, calls under way still end\n",
                STR_ARG(id));
    return true;
}

static bool run_rotate(struct key_cmd *c, struct error *err)
{
    return key_rotate(c->cli, c->json, &c->out, err);
}

static bool run_rotate_token(struct key_cmd *c, struct error *err)
{
    return key_rotate_token(c->cli, c->json, &c->out, err);
}

static const struct key_verb verbs[] = {
    {"create",
     0,
     {"--tenant", "--name", "--role", "--user", "--server", "--tool", "--folder", "--review",
      "--read-only", "--limit", "--expires", "--data", "--url", "--json"},
     run_create},
    {"list", 0, {"--tenant", "--utc", "--data", "--url", "--json"}, run_list},
    {"revoke", 1, {"--tenant", "--data", "--url", "--json"}, run_revoke},
    {"rotate-master", 0, {"--new-file", "--reseal", "--data", "--json"}, run_rotate},
    {"rotate-token", 0, {"--data", "--json"}, run_rotate_token},
};

int cmd_key(struct cli *cli)
{
    struct key_cmd c = {.cli = cli, .json = cli_flag(cli, "--json")};
    struct error err;
    size_t i = 0;
    int status = 0;

    while (i < countof(verbs) && (!cli->n_args || strcmp(cli->args[0], verbs[i].name) != 0))
        i++;
    if (i == countof(verbs)) {
        struct cli_nearest near = cli_nearest_to(str_of(cli->n_args ? cli->args[0] : ""));
        for (size_t k = 0; k < countof(verbs); k++)
            cli_nearest_offer(&near, verbs[k].name);
        return cli_unknown_verb(
            cli, &near, "key needs one of create, list, revoke, rotate-master or rotate-token");
    }
    if (cli->n_args != 1 + verbs[i].n_args)
        return cli_usage(cli,
                         verbs[i].n_args ? "key %s takes the name or the id of one key"
                                         : "key %s takes flags only",
                         verbs[i].name);
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "key %s does not take %s", verbs[i].name, flag);
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = verbs[i].run(&c, &err);
    source_close(&c.source);
    if (c.pages && !c.json)
        pager_begin();
    if (ok && c.out.n)
        status = cli_print(cli, &c.out);
    pager_end();
    buf_release(&c.out);
    return ok ? status : cli_refuse(cli, &err);
}
