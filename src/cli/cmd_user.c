/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast user create|list|passwd|disable|enable|sessions|erase: a client of /api/v1/users.  The command reads a
 * password from the terminal, a file or standard input, never from the command line. */
#include "cli/cli.h"

#include "base/clock.h"
#include "cli/password.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/user_erase.h"
#include "cli/when.h"
#include "crypto/hash.h"
#include "identity/key_admin.h"
#include "identity/user_admin.h"
#include "json/read.h"
#include "json/write.h"

#include <stdio.h>
#include <unistd.h>

struct user_cmd {
    struct cli *cli;
    bool json;
    struct source source;
    struct user_request wanted;
    struct password_text password; /* empty: the verb takes none */
    struct buf out;
    struct table table; /* of a list; columns == NULL: none */
};

struct user_cmd_verb {
    const char *name;
    enum user_verb verb;
    const char *flags[8];
    bool (*run)(struct user_cmd *c, struct error *err);
    const char *done; /* message after "user NAME"; NULL: none */
};

static struct str path_of(struct user_cmd *c, const char *rest)
{
    struct arena *mem = c->cli->mem;
    struct str tenant = c->wanted.tenant;

    return arena_printf(mem, "/api/v1/users/%.*s%s%s%.*s",
                        STR_ARG(source_encoded(c->wanted.name, mem)), rest,
                        tenant.p ? "?tenant=" : "", STR_ARG(source_encoded(tenant, mem)));
}

static struct str body_of(struct user_cmd *c)
{
    struct js_writer w;
    struct buf out;

    buf_init_secret(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    if (c->wanted.verb == USER_CREATE) {
        js_kv_string(&w, "tenant", c->wanted.tenant);
        js_kv_string(&w, "username", c->wanted.name);
        js_kv_string(&w, "role", str_of(role_name(c->wanted.role)));
    }
    if (c->password.n)
        js_kv_string(&w, "password", str_n(c->password.text, c->password.n));
    else
        js_kv_bool(&w, "disabled", c->wanted.verb == USER_DISABLE);
    js_object_end(&w);
    struct str body = arena_dup(c->cli->mem, buf_str(&out));
    buf_release(&out);
    return body;
}

static bool check(struct user_cmd *c, struct error *err)
{
    if (user_request_check(&c->wanted, err))
        return true;
    err->code = ERR_USAGE;
    return false;
}

static bool change(struct user_cmd *c, struct error *err)
{
    struct arena *mem = c->cli->mem;
    bool is_new = c->wanted.verb == USER_CREATE;
    struct str json;

    arena_wipe_later(mem);
    return check(c, err) && source_open(c->cli, SOURCE_CHANGES, &c->source, err) &&
           control_ask(c->source.control, is_new ? "POST" : "PATCH",
                       is_new ? STR("/api/v1/users") : path_of(c, ""), body_of(c), mem, &json, err);
}

/* Called before the source is opened, because typing takes a while. */
static bool take_password(struct user_cmd *c, struct error *err)
{
    return password_read(cli_flag(c->cli, "--password-file"), &c->password, err) &&
           password_check(str_n(c->password.text, c->password.n), err);
}

static bool run_secret(struct user_cmd *c, struct error *err)
{
    struct str role = str_of(cli_flag(c->cli, "--role"));

    if (role.p && !role_parse(role, &c->wanted.role))
        return error_set(err, ERR_USAGE, "--role is admin, member, auditor or service");
    return take_password(c, err) && change(c, err);
}

/* list */

static bool list_page(struct user_cmd *c, struct str cursor, struct str *ret_json,
                      struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str tenant = c->wanted.tenant;

    return control_get(c->source.control,
                       arena_printf(mem, "/api/v1/users?limit=%d%s%.*s%s%.*s", STORE_PAGE_MAX,
                                    tenant.p ? "&tenant=" : "", STR_ARG(tenant),
                                    cursor.p ? "&cursor=" : "", STR_ARG(cursor)),
                       mem, ret_json, err);
}

static const struct table_column user_columns[] = {
    {"NAME", 8, false},   {"STATE", 0, false}, {"ROLE", 0, false},
    {"TENANT", 6, false}, {"ID", 8, false},
};

static void begin_table(struct user_cmd *c, const struct table_column *columns, size_t n)
{
    if (!c->table.columns)
        table_init(&c->table, columns, n, table_terminal_width(STDOUT_FILENO),
                   cli_colour(STDOUT_FILENO));
}

static void add_user(struct user_cmd *c, const struct js_doc *doc, const struct js_node *user)
{
    struct arena *mem = c->cli->mem;
    bool disabled = js_type_is(js_get(doc, user, STR("disabled")), JS_TRUE);

    if (c->json) {
        buf_addstr(&c->out, js_raw(doc, user));
        buf_addc(&c->out, '\n');
        return;
    }
    begin_table(c, user_columns, countof(user_columns));
    table_add(&c->table, source_text(doc, user, "username", mem));
    table_add_coloured(&c->table, disabled ? STR("disabled") : STR("active"),
                       disabled ? "2" : "32");
    table_add(&c->table, source_text(doc, user, "role", mem));
    table_add(&c->table, source_text(doc, user, "tenant_id", mem));
    table_add(&c->table, source_text(doc, user, "id", mem));
}

static bool run_list(struct user_cmd *c, struct error *err)
{
    struct key_request named = {.tenant = c->wanted.tenant};
    struct str cursor = STR_NONE, json;
    struct js_doc doc;
    size_t n = 0;

    if (!key_request_check(&named, err) || !source_open(c->cli, SOURCE_READS, &c->source, err))
        return false;
    do {
        if (!list_page(c, cursor, &json, err) || !source_parse(json, c->cli->mem, &doc, err))
            return false;
        const struct js_node *users = js_get(&doc, js_root(&doc), STR("users"));
        for (const struct js_node *u = js_first(&doc, users); u; u = js_next(&doc, users, u)) {
            add_user(c, &doc, u);
            n++;
        }
        cursor = js_text(&doc, js_get(&doc, js_root(&doc), STR("next_cursor")), c->cli->mem);
    } while (cursor.p);
    if (!n && !c->json && named.tenant.p)
        fprintf(stderr, "tenant %.*s has no users; without --tenant all users are listed\n",
                STR_ARG(named.tenant));
    else if (!n && !c->json)
        fprintf(stderr, "there are no users yet; make one with `holdfast user create NAME`\n");
    return true;
}

/* sessions */

static const struct table_column login_columns[] = {
    {"ID", 0, false},      {"SINCE", 0, false},  {"LAST USED", 0, false},
    {"ADDRESS", 9, false}, {"DEVICE", 6, false},
};

/* A time of today, else the day. */
static struct str day_of(struct user_cmd *c, struct str text)
{
    char shown[WHEN_TEXT];
    int64_t ms;

    if (!clock_parse(text, &ms))
        return STR("");
    struct str time =
        str_of(when_format(ms, clock_wall_ms(), cli_flag(c->cli, "--utc") != NULL, shown));
    return arena_dup(c->cli->mem, str_n(time.p, time.n < 10 ? time.n : 10));
}

static void add_row(struct user_cmd *c, const struct js_doc *doc, const struct js_node *row)
{
    struct arena *mem = c->cli->mem;
    const struct js_node *device = js_get(doc, row, STR("device_info"));
    struct str name = source_text(doc, device, "device_name", mem);

    begin_table(c, login_columns, countof(login_columns));
    table_add(&c->table, source_text(doc, row, "id", mem));
    table_add(&c->table, day_of(c, source_text(doc, row, "created_at", mem)));
    table_add(&c->table, day_of(c, source_text(doc, row, "last_activity", mem)));
    table_add(&c->table, source_text(doc, row, "ip_address", mem));
    table_add(&c->table, name.n ? name : source_text(doc, device, "user_agent", mem));
}

static bool show(struct user_cmd *c, struct str json, struct error *err)
{
    struct js_doc doc;
    size_t n = 0;

    if (!source_parse(json, c->cli->mem, &doc, err))
        return false;
    const struct js_node *rows = js_get(&doc, js_root(&doc), STR("sessions"));
    for (const struct js_node *r = js_first(&doc, rows); r; r = js_next(&doc, rows, r), n++) {
        if (c->json) {
            buf_addstr(&c->out, js_raw(&doc, r));
            buf_addc(&c->out, '\n');
            continue;
        }
        add_row(c, &doc, r);
    }
    if (!n && !c->json)
        fprintf(stderr, "this user is not signed in anywhere\n");
    return true;
}

static bool run_revoke(struct user_cmd *c, struct str login, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str json, path = STR("/sessions");

    if (!str_eq(login, STR("all")))
        path = arena_printf(mem, "/sessions/%.*s", STR_ARG(source_encoded(login, mem)));
    return source_open(c->cli, SOURCE_CHANGES, &c->source, err) &&
           control_ask(c->source.control, "DELETE", path_of(c, path.p), STR_NONE, mem, &json, err);
}

static bool run_sessions(struct user_cmd *c, struct error *err)
{
    struct str revoke = str_of(cli_flag(c->cli, "--revoke")), json = STR_NONE;

    if (!check(c, err))
        return false;
    if (revoke.p)
        return run_revoke(c, revoke, err);
    return source_open(c->cli, SOURCE_READS, &c->source, err) &&
           control_get(c->source.control, path_of(c, "/sessions"), c->cli->mem, &json, err) &&
           show(c, json, err);
}

static bool run_erase(struct user_cmd *c, struct error *err)
{
    return user_erase(c->cli, c->wanted.tenant, c->wanted.name, &c->source, &c->out, err);
}

static const struct user_cmd_verb verbs[] = {
    {"create",
     USER_CREATE,
     {"--tenant", "--role", "--password-file", "--data", "--url", "--json"},
     run_secret,
     "can sign in now: POST /api/v1/auth/login"},
    {"list", USER_REVOKE, {"--tenant", "--data", "--url", "--json"}, run_list, NULL},
    {"passwd",
     USER_PASSWD,
     {"--tenant", "--password-file", "--data", "--url", "--json"},
     run_secret,
     "has another password, and is signed out everywhere"},
    {"disable",
     USER_DISABLE,
     {"--tenant", "--data", "--url", "--json"},
     change,
     "is disabled; its open streams are closed"},
    {"enable", USER_ENABLE, {"--tenant", "--data", "--url", "--json"}, change, "may sign in again"},
    {"sessions",
     USER_REVOKE,
     {"--tenant", "--revoke", "--utc", "--data", "--url", "--json"},
     run_sessions,
     NULL},
    {"erase",
     USER_REVOKE,
     {"--tenant", "--reason", "--dry-run", "--yes", "--data", "--url", "--json"},
     run_erase,
     NULL},
};

static bool run_verb(struct user_cmd *c, const struct user_cmd_verb *v, struct error *err)
{
    if (!v->run(c, err))
        return false;
    if (v->done && c->json)
        buf_addf(&c->out, "{\"done\":\"%s\"}", v->name);
    else if (v->done)
        fprintf(stderr, "user %.*s %s\n", STR_ARG(c->wanted.name), v->done);
    return true;
}

int cmd_user(struct cli *cli)
{
    struct user_cmd c = {.cli = cli, .json = cli_flag(cli, "--json")};
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
            cli, &near,
            "user needs one of create, list, passwd, disable, enable, sessions or erase");
    }
    bool takes_name = verbs[i].run != run_list;
    if (cli->n_args != 1 + takes_name)
        return cli_usage(
            cli, takes_name ? "user %s takes the name of one user" : "user %s takes no name",
            verbs[i].name);
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "user %s does not take %s", verbs[i].name, flag);
    c.wanted = (struct user_request){.verb = verbs[i].verb,
                                     .tenant = str_of(cli_flag(cli, "--tenant")),
                                     .name = takes_name ? str_of(cli->args[1]) : STR_NONE,
                                     .role = ROLE_MEMBER};
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = run_verb(&c, &verbs[i], &err);
    crypto_wipe(&c.password, sizeof(c.password));
    source_close(&c.source);
    if (ok && c.table.columns) {
        table_print(&c.table, &c.out);
        pager_begin();
    }
    if (ok && c.out.n)
        status = cli_print(cli, &c.out);
    pager_end();
    if (c.table.columns)
        table_release(&c.table);
    buf_release(&c.out);
    return ok ? status : cli_refuse(cli, &err);
}
