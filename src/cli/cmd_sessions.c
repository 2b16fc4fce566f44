/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast sessions list|show|watch|end|export|import|replay|share|shares|unshare|fork: a client of
 * /api/v1/sessions and, for the calls of a session, of /api/v1/audit/executions. */
#include "cli/cli.h"

#include "audit/executions.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/audit_list.h"
#include "cli/audit_view.h"
#include "cli/confirm.h"
#include "cli/inventory.h"
#include "cli/sessions_export.h"
#include "cli/sessions_import.h"
#include "cli/sessions_list.h"
#include "cli/sessions_replay.h"
#include "cli/sessions_share.h"
#include "cli/sessions_serve.h"
#include "cli/sessions_view.h"
#include "cli/sessions_watch.h"
#include "cli/source.h"
#include "cli/table.h"

#include <stdio.h>
#include <unistd.h>

#define LIST_DEFAULT 50
#define CALLS_DEFAULT 10
#define ROWS_MAX 1000000

struct sessions_cmd {
    struct cli *cli;
    bool json, colour;
    int status;   /* of the command, when nothing failed */
    int terminal; /* stdout, also behind a pager */
    struct source from;
    struct str tenant;
    struct sessions_ask ask;
    struct table table; /* columns == NULL: none yet */
    struct audit_when when;
    struct buf out;
};

struct sessions_verb {
    const char *name;
    int n_args;
    enum source_use use;
    bool pages;        /* through the pager */
    bool may_omit_arg; /* the last argument is optional */
    const char *flags[14];
    bool (*run)(struct sessions_cmd *c, struct error *err);
};

/* list, watch */

static const char *const statuses[] = {"active", "idle", "expired", "terminated", "all"};

static bool check_status(struct str list, struct error *err)
{
    while (list.p) {
        struct str word = str_split(&list, ',');
        struct cli_nearest near = cli_nearest_to(word);
        size_t i = 0;
        while (i < countof(statuses) && !str_eq(word, str_of(statuses[i])))
            cli_nearest_offer(&near, statuses[i++]);
        if (i == countof(statuses) && near.name)
            return error_set(err, ERR_USAGE, "there is no status \"%.*s\"; did you mean \"%s\"?",
                             (int)(word.n < 100 ? word.n : 100), word.p, near.name);
        if (i == countof(statuses))
            return error_set(err, ERR_USAGE,
                             "there is no status \"%.*s\"; --status takes active, idle, expired, "
                             "terminated, several of them with commas, or all",
                             (int)(word.n < 100 ? word.n : 100), word.p);
    }
    return true;
}

static bool read_ask(struct sessions_cmd *c, struct error *err)
{
    const struct cli *cli = c->cli;

    c->ask = (struct sessions_ask){.status = str_of(cli_flag(cli, "--status")),
                                   .client = str_of(cli_flag(cli, "--client")),
                                   .server = str_of(cli_flag(cli, "--server")),
                                   .user = str_of(cli_flag(cli, "--user")),
                                   .tenant = c->tenant};
    return check_status(c->ask.status, err) &&
           cli_number_flag(cli, "--limit", LIST_DEFAULT, ROWS_MAX, &c->ask.limit, err);
}

static bool add_session(void *arg, const struct js_doc *doc, const struct js_node *session)
{
    struct sessions_cmd *c = arg;

    if (c->json) {
        buf_addstr(&c->out, js_raw(doc, session));
        buf_addc(&c->out, '\n');
        return cli_write_part(&c->out);
    }
    if (!c->table.columns)
        sessions_view_begin(&c->table, table_terminal_width(c->terminal), c->colour);
    sessions_view_row(&c->table, doc, session, c->when);
    return true;
}

/* Why the list is empty: an unknown server is an error. */
static bool explain_empty(struct sessions_cmd *c, struct error *err)
{
    struct inventory all = {c->cli, &c->from};
    struct str tenant = c->tenant.p ? c->tenant : STR("default");

    if (c->ask.server.p && !inventory_has_server(&all, c->ask.server, err))
        return false;
    if (c->ask.client.p || c->ask.server.p || c->ask.user.p)
        fprintf(stderr, "no sessions match; use fewer flags, or --status all for ended ones too\n");
    else if (c->from.place.data_dir.p)
        fprintf(stderr,
                "tenant %.*s has no such sessions; --status all shows ended ones too, "
                "--tenant NAME those of another tenant\n",
                STR_ARG(tenant));
    else
        fprintf(stderr, "there are no such sessions; --status all shows ended ones too\n");
    return true;
}

static bool run_list(struct sessions_cmd *c, struct error *err)
{
    bool more = false, any;

    if (!read_ask(c, err) || !sessions_list(c->from.control, &c->ask, add_session, c, &more, err))
        return false;
    if (c->json)
        return true;
    any = c->table.columns != NULL;
    if (any)
        table_print(&c->table, &c->out);
    cli_write_part(&c->out);
    if (more)
        fprintf(stderr, "these are the newest %u sessions; --limit N shows more\n", c->ask.limit);
    return any || explain_empty(c, err);
}

static bool run_watch(struct sessions_cmd *c, struct error *err)
{
    struct sessions_watch watch = {.ask = &c->ask,
                                   .json = c->json,
                                   .utc = c->when.utc,
                                   .colour = c->colour,
                                   .width = c->json ? 0 : table_terminal_width(c->terminal)};

    watch.control = c->from.control;
    if (!read_ask(c, err))
        return false;
    if (watch.width && !cli_flag(c->cli, "--limit")) /* a screen, with the head and the cursor */
        c->ask.limit = (unsigned)table_terminal_height(c->terminal) - 2;
    return sessions_watch(&watch, err);
}

/* show */

static bool read_session(struct sessions_cmd *c, struct str *ret_json, struct js_doc *ret,
                         struct error *err)
{
    return sessions_get(c->from.control, str_of(c->cli->args[1]), c->tenant, c->cli->mem, ret_json,
                        err) &&
           source_parse(*ret_json, c->cli->mem, ret, err);
}

/* The newest calls, newest first. */
static bool read_calls(struct sessions_cmd *c, const struct js_doc *doc, struct execution **ret,
                       size_t *ret_n, struct error *err)
{
    struct audit_list_ask ask = {.session = source_text(doc, js_root(doc), "id", c->cli->mem)};

    return cli_number_flag(c->cli, "-n", CALLS_DEFAULT, ROWS_MAX, &ask.limit, err) &&
           audit_list(c->from.control, &ask, c->cli->mem, ret, ret_n, err);
}

static void add_json(struct sessions_cmd *c, struct str json, const struct execution *rows,
                     size_t n)
{
    buf_add(&c->out, json.p, json.n - 1); /* without its closing brace */
    buf_addz(&c->out, ",\"calls\":[");
    for (size_t i = 0; i < n; i++) {
        struct js_writer w;
        buf_addz(&c->out, i ? "," : "");
        js_begin(&w, &c->out);
        execution_to_json(&rows[i], &w);
    }
    buf_addz(&c->out, "]}\n");
}

/* As `holdfast tail` prints them: the newest is the last. */
static void add_calls(struct sessions_cmd *c, const struct execution *rows, size_t n)
{
    if (!n)
        return;
    audit_view_begin(&c->table, AUDIT_VIEW_STORY, table_terminal_width(c->terminal), c->colour);
    for (size_t i = n; i-- > 0;)
        audit_view_story_row(&c->table, &rows[i], c->when);
    buf_addc(&c->out, '\n');
    table_print(&c->table, &c->out);
}

static bool run_show(struct sessions_cmd *c, struct error *err)
{
    struct execution *rows = NULL;
    struct str json = STR_NONE;
    struct js_doc doc;
    size_t n = 0;

    if (!read_session(c, &json, &doc, err) || !read_calls(c, &doc, &rows, &n, err))
        return false;
    if (c->json) {
        add_json(c, json, rows, n);
    } else {
        sessions_view_one(&c->out, &doc, js_root(&doc), c->when, c->colour);
        add_calls(c, rows, n);
    }
    cli_write_part(&c->out);
    return true;
}

/* end */

/* The handle for a message: it comes from a client. */
static struct str shown(struct sessions_cmd *c, struct str text)
{
    struct buf out;

    buf_init(&out, 4096);
    log_escape(&out, text, 255);
    struct str copy = arena_dup(c->cli->mem, buf_str(&out));
    buf_release(&out);
    return copy;
}

static bool confirm_end(struct sessions_cmd *c, const struct js_doc *doc, bool *ret_yes,
                        struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str client = source_text(doc, js_root(doc), "client_name", mem);
    struct str question =
        arena_printf(mem, "End session %.*s (%.*s%sof %.*s)? Its servers lose its state.",
                     STR_ARG(shown(c, source_text(doc, js_root(doc), "session_id", mem))),
                     STR_ARG(shown(c, client)), client.n ? ", " : "",
                     STR_ARG(shown(c, sessions_view_who(doc, js_root(doc), mem))));

    return confirm(c->cli, question.p, "to end the session", false, ret_yes, err);
}

static bool end_session(struct sessions_cmd *c, struct str handle, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str reason = str_of(cli_flag(c->cli, "--reason")), ignored;

    if (!reason.p)
        reason = STR("ended by an administrator");
    return control_ask(
        c->from.control, "DELETE",
        arena_printf(mem, "/api/v1/sessions/%.*s?reason=%.*s%s%.*s",
                     STR_ARG(source_encoded(handle, mem)), STR_ARG(source_encoded(reason, mem)),
                     c->tenant.p ? "&tenant=" : "", STR_ARG(source_encoded(c->tenant, mem))),
        STR_NONE, mem, &ignored, err);
}

static bool run_end(struct sessions_cmd *c, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str json = STR_NONE;
    struct js_doc doc;
    bool yes = false;

    if (!read_session(c, &json, &doc, err))
        return false;
    struct str handle = source_text(&doc, js_root(&doc), "session_id", mem),
               status = source_text(&doc, js_root(&doc), "status", mem);
    if (!str_eq(status, STR("active")) && !str_eq(status, STR("idle")))
        return error_set(err, ERR_CONFLICT, "session %.*s is %.*s already",
                         STR_ARG(shown(c, handle)), STR_ARG(status));
    if (!confirm_end(c, &doc, &yes, err))
        return false;
    if (!yes) {
        fprintf(stderr, "nothing was ended\n");
        return true;
    }
    if (!end_session(c, handle, err))
        return false;
    if (c->json)
        buf_addf(&c->out, "{\"id\":\"%.*s\",\"ended\":true}\n",
                 STR_ARG(source_text(&doc, js_root(&doc), "id", mem)));
    else
        fprintf(stderr, "session %.*s is ended; calls that name it are refused from now on\n",
                STR_ARG(shown(c, handle)));
    cli_write_part(&c->out);
    return true;
}

/* export */

static bool run_export(struct sessions_cmd *c, struct error *err)
{
    const struct sessions_export e = {.cli = c->cli,
                                      .control = c->from.control,
                                      .name = str_of(c->cli->n_args > 1 ? c->cli->args[1] : NULL),
                                      .tenant = c->tenant,
                                      .when = c->when};
    return sessions_export(&e, err);
}

/* import */

static bool run_import(struct sessions_cmd *c, struct error *err)
{
    const struct sessions_import i = {.cli = c->cli,
                                      .control = c->from.control,
                                      .file = c->cli->args[1],
                                      .tenant = c->tenant,
                                      .json = c->json};
    return sessions_import(&i, err);
}

/* replay */

/* The session_id of the session of the argument.  Only those who may read every session find one by
 * a part of its name; its owner gives the whole name. */
static bool find_session(struct sessions_cmd *c, struct str *ret, struct error *err)
{
    struct str json = STR_NONE;
    struct js_doc doc;

    *ret = str_of(c->cli->args[1]);
    if (!read_session(c, &json, &doc, err))
        return err->code == ERR_DENIED;
    *ret = source_text(&doc, js_root(&doc), "session_id", c->cli->mem);
    return true;
}

/* Whether the recording is in a file, so that no Holdfast is asked for it. */
static bool serves_file(const struct cli *cli)
{
    return cli_flag(cli, "--serve") && cli->n_args > 1 &&
           sessions_serve_is_file(str_of(cli->args[1]));
}

static bool read_recording(struct sessions_cmd *c, struct sessions_serve *s, struct error *err)
{
    struct str handle;

    if (serves_file(c->cli))
        return sessions_serve_file(s, err);
    return find_session(c, &handle, err) &&
           sessions_serve_session(s, c->from.control, handle, c->tenant, err);
}

static bool run_serve(struct sessions_cmd *c, struct error *err)
{
    static const char *const others[] = {"--against", "--diff", "--writes",
                                         "--ignore",  "--stop", "--yes"};
    struct sessions_serve s = {.cli = c->cli, .json = c->json, .colour = c->colour};

    for (size_t i = 0; i < countof(others); i++)
        if (cli_flag(c->cli, others[i]))
            return error_set(err, ERR_USAGE, "--serve sends no calls, so it does not take %s",
                             others[i]);
    bool ok = read_recording(c, &s, err);
    source_close(&c->from);
    c->from = (struct source){0};
    ok = ok && sessions_serve(&s, &c->status, err);
    sessions_serve_release(&s);
    return ok;
}

static bool run_replay(struct sessions_cmd *c, struct error *err)
{
    struct sessions_replay r = {.cli = c->cli,
                                .control = c->from.control,
                                .tenant = c->tenant,
                                .json = c->json,
                                .colour = c->colour};

    if (cli_flag(c->cli, "--serve"))
        return run_serve(c, err);
    if (cli_flag(c->cli, "--listen"))
        return error_set(err, ERR_USAGE, "--listen goes with --serve");
    if (sessions_serve_is_file(str_of(c->cli->args[1])) && access(c->cli->args[1], F_OK) == 0)
        return error_set(err, ERR_USAGE,
                         "a file can be served with --serve; to send its calls again, import it "
                         "with `holdfast sessions import %s` and replay that session",
                         c->cli->args[1]);
    return find_session(c, &r.handle, err) && sessions_replay(&r, &c->status, err);
}

/* share, shares, unshare, fork */

static bool share_with(struct sessions_cmd *c,
                       bool (*fn)(const struct sessions_share *s, struct error *err),
                       struct error *err)
{
    struct sessions_share s = {.cli = c->cli,
                               .control = c->from.control,
                               .tenant = c->tenant,
                               .json = c->json,
                               .utc = c->when.utc,
                               .colour = c->colour,
                               .width = table_terminal_width(c->terminal)};

    return find_session(c, &s.handle, err) && fn(&s, err);
}

static bool run_share(struct sessions_cmd *c, struct error *err)
{
    return share_with(c, sessions_share_make, err);
}

static bool run_shares(struct sessions_cmd *c, struct error *err)
{
    return share_with(c, sessions_share_list, err);
}

static bool run_unshare(struct sessions_cmd *c, struct error *err)
{
    return share_with(c, sessions_share_end, err);
}

static bool run_fork(struct sessions_cmd *c, struct error *err)
{
    return share_with(c, sessions_share_fork, err);
}

static const struct sessions_verb verbs[] = {
    {"list",
     0,
     SOURCE_READS,
     true,
     false,
     {"--status", "--client", "--server", "--user", "--limit", "--tenant", "--utc", "--data",
      "--url", "--json"},
     run_list},
    {"show",
     1,
     SOURCE_READS,
     true,
     false,
     {"-n", "--tenant", "--utc", "--data", "--url", "--json"},
     run_show},
    {"watch",
     0,
     SOURCE_READS,
     false,
     false,
     {"--status", "--client", "--server", "--user", "--limit", "--tenant", "--utc", "--data",
      "--url", "--json"},
     run_watch},
    {"end",
     1,
     SOURCE_CHANGES,
     false,
     false,
     {"--reason", "--yes", "--tenant", "--data", "--url", "--json"},
     run_end},
    {"export",
     1,
     SOURCE_READS,
     false,
     true,
     {"--format", "-o", "--since", "--until", "--tenant", "--utc", "--data", "--url"},
     run_export},
    {"import",
     1,
     SOURCE_CHANGES,
     false,
     false,
     {"--key", "--again", "--as-recorded", "--tenant", "--data", "--url", "--json"},
     run_import},
    {"replay",
     1,
     SOURCE_READS,
     false,
     false,
     {"--against", "--diff", "--writes", "--ignore", "--only", "--stop", "--yes", "--serve",
      "--listen", "--tenant", "--data", "--url", "--json"},
     run_replay},
    {"share",
     1,
     SOURCE_CHANGES,
     false,
     false,
     {"--user", "--client", "--may", "--expires", "--tenant", "--utc", "--data", "--url", "--json"},
     run_share},
    {"shares",
     1,
     SOURCE_READS,
     false,
     false,
     {"--tenant", "--utc", "--data", "--url", "--json"},
     run_shares},
    {"unshare",
     2,
     SOURCE_CHANGES,
     false,
     false,
     {"--tenant", "--data", "--url", "--json"},
     run_unshare},
    {"fork", 1, SOURCE_CHANGES, false, false, {"--tenant", "--data", "--url", "--json"}, run_fork},
};

static int run(struct sessions_cmd *c, const struct sessions_verb *v)
{
    struct error err;

    c->json = cli_flag(c->cli, "--json") != NULL;
    c->colour = cli_colour(STDOUT_FILENO);
    c->terminal = dup(STDOUT_FILENO);
    c->tenant = str_of(cli_flag(c->cli, "--tenant"));
    c->when = (struct audit_when){clock_wall_ms(), cli_flag(c->cli, "--utc") != NULL};
    buf_init(&c->out, SIZE_MAX / 4);
    bool ok = serves_file(c->cli) || source_open(c->cli, v->use, &c->from, &err);
    if (ok && v->pages && !c->json)
        pager_begin();
    ok = ok && v->run(c, &err);
    pager_end();
    source_close(&c->from);
    if (c->table.columns)
        table_release(&c->table);
    buf_release(&c->out);
    close(c->terminal);
    return ok ? c->status : cli_refuse(c->cli, &err);
}

int cmd_sessions(struct cli *cli)
{
    struct sessions_cmd c = {.cli = cli};
    const struct sessions_verb *v = verbs;

    while (v < verbs + countof(verbs) && (!cli->n_args || strcmp(cli->args[0], v->name) != 0))
        v++;
    if (v == verbs + countof(verbs)) {
        struct cli_nearest near = cli_nearest_to(str_of(cli->n_args ? cli->args[0] : ""));
        for (size_t i = 0; i < countof(verbs); i++)
            cli_nearest_offer(&near, verbs[i].name);
        return cli_unknown_verb(cli, &near,
                                "sessions needs one of list, show ID, watch, end ID, export ID, "
                                "import FILE, replay ID, share ID, shares ID, unshare ID SHARE or "
                                "fork ID");
    }
    if (cli->n_args != 1 + v->n_args && !(v->may_omit_arg && cli->n_args == v->n_args))
        return cli_usage(cli,
                         v->run == run_import ? "sessions %s takes one file, or - for its input"
                         : v->n_args == 2
                             ? "sessions %s takes a session and one of its shares; see holdfast "
                               "sessions shares"
                         : v->n_args ? "sessions %s takes one session: its session_id, its id, or "
                                       "the beginning of one; see holdfast sessions list"
                                     : "sessions %s takes flags only",
                         v->name);
    const char *flag = cli_flag_beyond(cli, v->flags, countof(v->flags));
    if (flag)
        return cli_usage(cli, "sessions %s does not take %s", v->name, flag);
    return run(&c, v);
}
