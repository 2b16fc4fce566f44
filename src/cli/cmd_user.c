/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast user create|passwd|disable|enable|sessions.  If a daemon runs, it makes the change, so
 * that the change takes effect at once.  Otherwise the command uses the store itself; other nodes
 * on a shared store learn of the change.  The command reads a password from the terminal, a file or
 * standard input, never from the command line, and hashes it. */
#include "cli/cli.h"

#include "base/clock.h"
#include "cli/password.h"
#include "cli/source.h"
#include "config/config.h"
#include "crypto/hash.h"
#include "identity/key_admin.h"
#include "identity/password.h"
#include "identity/user_admin.h"
#include "json/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct user_cmd {
    struct cli *cli;
    bool json;
    struct source source;
    struct user_request wanted;
    char hash[PASSWORD_HASH_TEXT];
    struct buf out;
};

struct user_cmd_verb {
    const char *name;
    enum user_verb verb;
    const char *flags[8];
    bool (*run)(struct user_cmd *c, struct error *err);
    const char *done; /* message after "user NAME"; NULL: none */
};

static bool change_here(struct user_cmd *c, struct error *err)
{
    struct user_change *change = arena_new_of(c->cli->mem, struct user_change);

    user_change_fill(&c->wanted, clock_life_ms(), change);
    return store_write(c->source.store, &change->op, 1, err) &&
           user_change_check(&c->wanted, change, err);
}

static bool change(struct user_cmd *c, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str json;

    if (!user_request_check(&c->wanted, err)) {
        err->code = ERR_USAGE;
        return false;
    }
    if (!source_open(c->cli, true, &c->source, err))
        return false;
    return c->source.control ? control_ask(c->source.control, "POST", STR("/control/users"),
                                           user_request_write(&c->wanted, mem), mem, &json, err)
                             : change_here(c, err);
}

/* Called before the source is opened, because typing and hashing take a while. */
static bool take_password(struct user_cmd *c, struct error *err)
{
    struct password_text password;
    bool ok = password_read(cli_flag(c->cli, "--password-file"), &password, err) &&
              password_check(str_n(password.text, password.n), err) &&
              password_hash(str_n(password.text, password.n), c->hash, err);

    crypto_wipe(&password, sizeof(password));
    c->wanted.hash = str_of(c->hash);
    return ok;
}

static bool run_secret(struct user_cmd *c, struct error *err)
{
    struct str role = str_of(cli_flag(c->cli, "--role"));

    if (role.p && !role_parse(role, &c->wanted.role))
        return error_set(err, ERR_USAGE, "--role is admin, member, auditor or service");
    return take_password(c, err) && change(c, err);
}

/* sessions */

static bool list_here(struct user_cmd *c, struct str tenant, struct str *ret_json,
                      struct error *err)
{
    struct login_row *rows = NULL;
    char user_id[UUID_TEXT];
    struct buf out;
    size_t n = 0;

    struct user_row *user = NULL;
    if (!store_user_by_name(c->source.store, tenant, c->wanted.name, c->cli->mem, &user, err))
        return false;
    if (!user)
        return error_set(err, ERR_NOT_FOUND, "there is no user \"%.*s\" in tenant %.*s",
                         STR_ARG(c->wanted.name), STR_ARG(tenant));
    key_user_id(tenant, c->wanted.name, user_id);
    if (!store_logins_page(c->source.store, tenant, str_of(user_id), STR_NONE, STORE_PAGE_MAX,
                           c->cli->mem, &rows, &n, err))
        return false;
    buf_init(&out, SIZE_MAX / 4);
    logins_write(&out, rows, n);
    *ret_json = arena_dup(c->cli->mem, buf_str(&out));
    buf_release(&out);
    return true;
}

static struct str encoded(struct str text, struct arena *mem)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = arena_alloc(mem, text.n * 3 + 1), *at = out;

    for (size_t i = 0; i < text.n; i++) {
        unsigned char b = (unsigned char)text.p[i];
        *at++ = '%';
        *at++ = hex[b >> 4];
        *at++ = hex[b & 15];
    }
    return str_n(out, (size_t)(at - out));
}

static struct str member(const struct js_doc *doc, const struct js_node *object, const char *name,
                         struct arena *mem)
{
    struct str text = js_text(doc, js_get(doc, object, str_of(name)), mem);
    return text.p ? text : STR("");
}

static void add_row(struct user_cmd *c, const struct js_doc *doc, const struct js_node *row)
{
    struct arena *mem = c->cli->mem;
    const struct js_node *device = js_get(doc, row, STR("device_info"));
    struct str used = member(doc, row, "last_activity", mem),
               name = member(doc, device, "device_name", mem),
               since = member(doc, row, "created_at", mem);

    buf_addf(&c->out, "%-36.*s  %-16.*s  %-16.*s  %-15.*s  %.*s\n",
             STR_ARG(member(doc, row, "id", mem)),
             STR_ARG(str_n(since.p, since.n < 16 ? since.n : 16)),
             STR_ARG(str_n(used.p, used.n < 16 ? used.n : 16)),
             STR_ARG(member(doc, row, "ip_address", mem)),
             STR_ARG(name.n ? name : member(doc, device, "user_agent", mem)));
}

static bool show(struct user_cmd *c, struct str json, struct error *err)
{
    struct js_doc doc;
    size_t n = 0;

    if (!js_parse(json, &js_limits_upstream, c->cli->mem, &doc, NULL))
        return error_set(err, ERR_INTERNAL,
                         "the answer of Holdfast is not JSON; is it another version?");
    const struct js_node *rows = js_get(&doc, js_root(&doc), STR("sessions"));
    for (const struct js_node *r = js_first(&doc, rows); r; r = js_next(&doc, rows, r), n++) {
        if (c->json) {
            buf_addstr(&c->out, js_raw(&doc, r));
            buf_addc(&c->out, '\n');
            continue;
        }
        if (n == 0)
            buf_addf(&c->out, "%-36s  %-16s  %-16s  %-15s  %s\n", "ID", "SINCE", "LAST USED",
                     "ADDRESS", "DEVICE");
        add_row(c, &doc, r);
    }
    if (!n && !c->json)
        fprintf(stderr, "this user is not signed in anywhere\n");
    return true;
}

static bool run_sessions(struct user_cmd *c, struct error *err)
{
    struct arena *mem = c->cli->mem;
    const char *revoke = cli_flag(c->cli, "--revoke");
    struct str tenant = c->wanted.tenant.p ? c->wanted.tenant : STR("default"), json = STR_NONE;

    if (revoke) {
        c->wanted.login = strcmp(revoke, "all") == 0 ? STR_NONE : str_of(revoke);
        return change(c, err);
    }
    if (!user_request_check(&c->wanted, err)) {
        err->code = ERR_USAGE;
        return false;
    }
    if (!source_open(c->cli, false, &c->source, err))
        return false;
    bool ok = c->source.control
                  ? control_get(c->source.control,
                                arena_printf(mem, "/control/users/sessions?tenant=%.*s&name=%.*s",
                                             STR_ARG(encoded(tenant, mem)),
                                             STR_ARG(encoded(c->wanted.name, mem))),
                                mem, &json, err)
                  : list_here(c, tenant, &json, err);
    return ok && show(c, json, err);
}

static const struct user_cmd_verb verbs[] = {
    {"create",
     USER_CREATE,
     {"--tenant", "--role", "--password-file", "--data", "--json"},
     run_secret,
     "can sign in now: POST /api/v1/auth/login"},
    {"passwd",
     USER_PASSWD,
     {"--tenant", "--password-file", "--data", "--json"},
     run_secret,
     "has another password, and is signed out everywhere"},
    {"disable",
     USER_DISABLE,
     {"--tenant", "--data", "--json"},
     change,
     "is disabled; what was open in its name is closed"},
    {"enable", USER_ENABLE, {"--tenant", "--data", "--json"}, change, "may sign in again"},
    {"sessions", USER_REVOKE, {"--tenant", "--revoke", "--data", "--json"}, run_sessions, NULL},
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
        return cli_unknown_verb(cli, &near, "say create, passwd, disable, enable or sessions");
    }
    if (cli->n_args != 2)
        return cli_usage(cli, "user %s takes the name of one user", verbs[i].name);
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "user %s does not take %s", verbs[i].name, flag);
    c.wanted = (struct user_request){.verb = verbs[i].verb,
                                     .tenant = str_of(cli_flag(cli, "--tenant")),
                                     .name = str_of(cli->args[1]),
                                     .role = ROLE_MEMBER};
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = run_verb(&c, &verbs[i], &err);
    source_close(&c.source);
    if (ok && c.out.n)
        status = cli_print(cli, &c.out);
    buf_release(&c.out);
    return ok ? status : cli_refuse(cli, &err);
}
