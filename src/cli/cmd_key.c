/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast key create|list|revoke|rotate-master|rotate-token.  The first three are a client of
 * /api/v1/keys.  A new key goes only to standard output, and is never shown again. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/inventory.h"
#include "cli/key_rotate.h"
#include "cli/source.h"
#include "config/limits.h"
#include "identity/key_admin.h"
#include "json/read.h"

#include <stdio.h>

struct key_cmd {
    struct cli *cli;
    bool json;
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

/* list */

static bool page(struct key_cmd *c, struct str tenant, struct str cursor, struct str *ret_json,
                 struct error *err)
{
    struct arena *mem = c->cli->mem;

    return control_get(c->source.control,
                       arena_printf(mem, "/api/v1/keys?limit=%d%s%.*s%s%.*s", STORE_PAGE_MAX,
                                    tenant.p ? "&tenant=" : "", STR_ARG(tenant),
                                    cursor.p ? "&cursor=" : "", STR_ARG(cursor)),
                       mem, ret_json, err);
}

/* "2026-11-15T09:02:03.456Z", cut after the minutes. */
static struct str short_time(struct str time, const char *otherwise)
{
    return time.n >= 16 ? str_n(time.p, 16) : str_of(otherwise);
}

static const char *state_of(const struct js_doc *doc, const struct js_node *key, struct arena *mem)
{
    struct str expires = source_text(doc, key, "expires_at", mem);
    char now[CLOCK_TEXT];

    if (source_text(doc, key, "revoked_at", mem).n)
        return "revoked";
    clock_format(clock_wall_ms(), now);
    return expires.n && str_cmp(expires, str_of(now)) <= 0 ? "expired" : "active";
}

static void add_row(struct key_cmd *c, const struct js_doc *doc, const struct js_node *key)
{
    struct arena *mem = c->cli->mem;
    struct str id = source_text(doc, key, "id", mem), tenant = source_text(doc, key, "tenant", mem),
               role = source_text(doc, key, "role", mem), name = source_text(doc, key, "name", mem);

    buf_addf(&c->out, "%-12.*s  %-8s %-8.*s %-12.*s %-16.*s  %-16.*s  ", STR_ARG(id),
             state_of(doc, key, mem), STR_ARG(role), STR_ARG(tenant),
             STR_ARG(short_time(source_text(doc, key, "expires_at", mem), "never")),
             STR_ARG(short_time(source_text(doc, key, "last_used_at", mem), "never")));
    log_escape(&c->out, name, KEY_NAME_MAX);
    buf_addc(&c->out, '\n');
}

static void add_page(struct key_cmd *c, const struct js_doc *doc, size_t *n)
{
    const struct js_node *keys = js_get(doc, js_root(doc), STR("keys"));

    for (const struct js_node *k = js_first(doc, keys); k; k = js_next(doc, keys, k), ++*n) {
        if (*n == 0 && !c->json)
            buf_addf(&c->out, "%-12s  %-8s %-8s %-12s %-16s  %-16s  %s\n", "ID", "STATE", "ROLE",
                     "TENANT", "EXPIRES", "LAST USED", "NAME");
        if (c->json) {
            buf_addstr(&c->out, js_raw(doc, k));
            buf_addc(&c->out, '\n');
        } else {
            add_row(c, doc, k);
        }
    }
}

static bool run_list(struct key_cmd *c, struct error *err)
{
    struct str tenant = str_of(cli_flag(c->cli, "--tenant")), cursor = STR_NONE, json;
    struct key_request named = {.tenant = tenant};
    struct js_doc doc;
    size_t n = 0;

    if (!key_request_check(&named, err) || !source_open(c->cli, SOURCE_READS, &c->source, err))
        return false;
    do {
        if (!page(c, tenant, cursor, &json, err) || !source_parse(json, c->cli->mem, &doc, err))
            return false;
        add_page(c, &doc, &n);
        cursor = js_text(&doc, js_get(&doc, js_root(&doc), STR("next_cursor")), c->cli->mem);
    } while (cursor.p);
    if (!n && !c->json && tenant.p)
        fprintf(stderr, "tenant %.*s has no keys; without --tenant all keys are listed\n",
                STR_ARG(tenant));
    else if (!n && !c->json)
        fprintf(stderr, "there are no keys yet; make one with `holdfast key create`\n");
    return true;
}

/* revoke */

static bool run_revoke(struct key_cmd *c, struct error *err)
{
    struct str id = str_of(c->cli->args[1]), whole, json;

    if (key_parse(id, &whole))
        id = whole; /* the argument is the key itself, not its id */
    if (!key_id_is_valid(id))
        return error_set(err, ERR_USAGE,
                         "the id of a key has %d small letters and digits; see `holdfast key list`",
                         KEY_ID_LENGTH);
    if (!source_open(c->cli, SOURCE_CHANGES, &c->source, err) ||
        !control_ask(c->source.control, "DELETE",
                     arena_printf(c->cli->mem, "/api/v1/keys/%.*s", STR_ARG(id)), STR_NONE,
                     c->cli->mem, &json, err))
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
    {"list", 0, {"--tenant", "--data", "--url", "--json"}, run_list},
    {"revoke", 1, {"--data", "--url", "--json"}, run_revoke},
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
        return cli_usage(
            cli, verbs[i].n_args ? "key %s takes the id of one key" : "key %s takes flags only",
            verbs[i].name);
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "key %s does not take %s", verbs[i].name, flag);
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = verbs[i].run(&c, &err);
    source_close(&c.source);
    if (ok && c.out.n)
        status = cli_print(cli, &c.out);
    buf_release(&c.out);
    return ok ? status : cli_refuse(cli, &err);
}
