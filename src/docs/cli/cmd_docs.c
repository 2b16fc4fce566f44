/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast docs …: the knowledge base from a terminal.  Every verb asks the running Holdfast, the
 * only process that changes the documents and has their history. */
#include "docs/cli/add.h"
#include "docs/cli/commands.h"

#include "base/clock.h"
#include "base/unicode.h"
#include "docs/cli/client.h"
#include "docs/cli/review.h"
#include "docs/cli/view.h"
#include "docs/critic/critic.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_DEFAULT 50

struct docs_cmd {
    struct cli *cli;
    struct docs_client client;
    bool json, colour;
    struct str where; /* the argument after the verb; absent: none given */
    struct buf out;
    size_t rows;
};
struct docs_verb {
    const char *name;
    int min_args, max_args; /* after the verb */
    const char *flags[8];
    bool (*run)(struct docs_cmd *c, struct error *err);
    const char *usage;
};

static bool number_flag(struct docs_cmd *c, const char *name, int64_t if_absent, int64_t *ret,
                        struct error *err)
{
    const char *text = cli_flag(c->cli, name);
    uint64_t number;

    *ret = if_absent;
    if (!text)
        return true;
    if (!str_to_u64(str_of(text), INT32_MAX, &number) || number == 0)
        return error_set(err, ERR_USAGE, "%s takes a number, 1 or more", name);
    *ret = (int64_t)number;
    return true;
}

static struct str member(const struct js_doc *doc, const struct js_node *row, const char *name,
                         struct docs_cmd *c)
{
    struct str text = js_text(doc, js_get(doc, row, str_of(name)), c->client.mem);
    return text.p ? text : STR("");
}

static void add_cell(struct docs_cmd *c, struct str text, unsigned width)
{
    size_t from = c->out.n;

    docs_view_text(&c->out, text, " ");
    unicode_pad(&c->out, from, width);
    buf_addz(&c->out, "  ");
}

static void end_row(struct docs_cmd *c)
{
    while (c->out.n && c->out.p[c->out.n - 1] == ' ')
        c->out.n--;
    buf_addc(&c->out, '\n');
    c->rows++;
}

static void add_json(struct docs_cmd *c, struct str json)
{
    docs_view_json(&c->out, json);
    buf_addc(&c->out, '\n');
    c->rows++;
}

static struct str minute(struct str time)
{
    return time.n > 16 ? str_n(time.p, 16) : time;
}

/* list, log */

static bool add_document(void *arg, const struct js_doc *doc, const struct js_node *row,
                         struct error *err unused_arg)
{
    struct docs_cmd *c = arg;
    int64_t size = 0;

    if (c->json) {
        add_json(c, js_raw(doc, row));
        return true;
    }
    if (!js_to_i64(doc, js_get(doc, row, STR("size")), &size))
        size = 0;
    add_cell(c, minute(member(doc, row, "modified_at", c)), 16);
    buf_addf(&c->out, "%9lld  ", (long long)size);
    add_cell(c, member(doc, row, "path", c), 0);
    end_row(c);
    return true;
}

static struct str query_folder(struct docs_cmd *c, const char *base)
{
    struct str name = c->where;

    if (name.n && name.p[name.n - 1] == '/')
        name.n--;
    if (!name.n)
        return str_of(base);
    struct str value = docs_client_value(&c->client, name);
    return arena_printf(c->client.mem, "%s?folder=%.*s", base, STR_ARG(value));
}

static bool run_list(struct docs_cmd *c, struct error *err)
{
    if (!docs_client_each(&c->client, query_folder(c, "/api/v1/docs/files"), "files", 0,
                          add_document, c, err))
        return false;
    if (!c->rows && !c->json)
        fprintf(stderr, "there are no documents; folders are named under \"docs\" in the "
                        "configuration\n");
    return true;
}

static bool add_revision(void *arg, const struct js_doc *doc, const struct js_node *row,
                         struct error *err unused_arg)
{
    struct docs_cmd *c = arg;

    if (c->json) {
        add_json(c, js_raw(doc, row));
        return true;
    }
    if (!c->rows)
        buf_addf(&c->out, "%8s  %-16s  %-9s  %-16s  %s\n", "REVISION", "WHEN", "KIND", "AUTHOR",
                 "REASON");
    buf_addf(&c->out, "%8.*s  ", STR_ARG(js_raw(doc, js_get(doc, row, STR("revision")))));
    add_cell(c, minute(member(doc, row, "at", c)), 16);
    add_cell(c, member(doc, row, "kind", c), 9);
    add_cell(c, member(doc, row, "author", c), 16);
    add_cell(c, member(doc, row, "reason", c), 0);
    if (js_type_is(js_get(doc, row, STR("has_text")), JS_FALSE))
        buf_addz(&c->out, " (text deleted)");
    end_row(c);
    return true;
}

static bool run_log(struct docs_cmd *c, struct error *err)
{
    struct str target;
    int64_t limit;

    return number_flag(c, "--limit", LOG_DEFAULT, &limit, err) &&
           docs_client_target(&c->client, c->where, "/history", &target, err) &&
           docs_client_each(&c->client, target, "revisions", limit, add_revision, c, err);
}

/* show, restore */

static bool run_show(struct docs_cmd *c, struct error *err)
{
    struct critic critic;
    struct str target, json, text;
    struct js_doc doc;
    int64_t revision;

    if (!number_flag(c, "--revision", 0, &revision, err))
        return false;
    const char *tail =
        revision ? arena_printf(c->client.mem, "/history/%lld", (long long)revision).p : "";
    if (!docs_client_target(&c->client, c->where, tail, &target, err) ||
        !docs_client_get(&c->client, target, &doc, &json, err))
        return false;
    text = member(&doc, js_root(&doc), "content", c);
    if (c->json) {
        add_json(c, json);
        return true;
    }
    if (cli_flag(c->cli, "--accepted")) {
        critic_parse(text, c->client.mem, &critic);
        text = critic_accepted(&critic, c->client.mem);
    }
    /* A file or pipe gets the bytes of the document unchanged. */
    if (isatty(STDOUT_FILENO))
        docs_view_text(&c->out, text, "");
    else
        buf_addstr(&c->out, text);
    return true;
}

static bool run_restore(struct docs_cmd *c, struct error *err)
{
    struct docs_outcome o;
    int64_t revision;

    if (!number_flag(c, "--revision", 0, &revision, err))
        return false;
    if (!revision)
        return error_set(err, ERR_USAGE,
                         "restore needs --revision N; `holdfast docs log` lists the revisions");
    if (!docs_client_restore(&c->client, c->where, revision, STR_NONE,
                             str_of(cli_flag(c->cli, "--reason")), &o, err))
        return false;
    if (c->json)
        add_json(c, o.json);
    else
        fprintf(stderr, "%.*s has the text of revision %lld again; this is revision %lld\n",
                STR_ARG(c->where), (long long)revision, (long long)o.revision);
    return true;
}

static bool run_move(struct docs_cmd *c, struct error *err)
{
    struct str to = str_of(c->cli->args[2]), json;
    int64_t links;

    if (!docs_client_move(&c->client, c->where, to, str_of(cli_flag(c->cli, "--reason")), &links,
                          &json, err))
        return false;
    if (c->json)
        add_json(c, json);
    else
        fprintf(stderr, "moved to %.*s; %lld links rewritten\n", STR_ARG(to), (long long)links);
    return true;
}

/* suggestions */

static void add_item(struct docs_cmd *c, const struct docs_item *i, bool is_first)
{
    if (c->json) {
        buf_addz(&c->out, "{\"path\":");
        js_quote(&c->out, i->path);
        buf_addc(&c->out, ',');
        add_json(c, str_n(i->json.p + 1, i->json.n - 1));
        return;
    }
    if (is_first) {
        docs_view_text(&c->out, i->path, "");
        buf_addc(&c->out, '\n');
    }
    buf_addf(&c->out, "  %-10.*s  line %lld  ", STR_ARG(i->id), (long long)i->line);
    docs_view_about(&c->out, i, clock_wall_ms());
    buf_addc(&c->out, '\n');
    docs_view_change(&c->out, i, "      ", c->colour);
    c->rows++;
}

static bool run_suggestions(struct docs_cmd *c, struct error *err)
{
    struct docs_item *items;
    int64_t hidden;
    size_t n;

    if (!docs_client_suggestions(&c->client, c->where, &items, &n, &hidden, err))
        return false;
    for (size_t i = 0; i < n; i++)
        add_item(c, &items[i], i == 0 || !str_eq(items[i].path, items[i - 1].path));
    if (!c->json && n == 0)
        fprintf(stderr, "nothing waits for review\n");
    if (hidden > 0)
        fprintf(stderr, "%lld more are not shown; accept or reject some of these first\n",
                (long long)hidden);
    return true;
}

/* accept, reject */

static bool find_named(struct docs_cmd *c, const struct docs_item *items, size_t n,
                       struct docs_item *ret, size_t *ret_n, struct error *err)
{
    for (int a = 2; a < c->cli->n_args; a++) {
        size_t i = 0;
        while (i < n && !str_eq(items[i].id, str_of(c->cli->args[a])))
            i++;
        if (i == n)
            return error_set(err, ERR_NOT_FOUND,
                             "there is no suggestion %.40s in this document any more; see "
                             "`holdfast docs suggestions`",
                             c->cli->args[a]);
        ret[(*ret_n)++] = items[i];
    }
    return true;
}

/* The suggestions to decide: those named by id or, with --all, all changes of the document.
 * Comments and highlights are not changes and stay. */
static bool choose(struct docs_cmd *c, struct docs_decision *d, int64_t *ret_hidden,
                   struct error *err)
{
    struct docs_item *items, *chosen;
    size_t n;

    if (!docs_client_suggestions(&c->client, c->where, &items, &n, ret_hidden, err))
        return false;
    chosen = arena_zalloc(c->client.mem, (n + CLI_MAX_ARGS) * sizeof(*chosen));
    d->items = chosen;
    d->n = 0;
    if (!cli_flag(c->cli, "--all"))
        return find_named(c, items, n, chosen, &d->n, err);
    for (size_t i = 0; i < n; i++)
        if (docs_item_is_change(&items[i]))
            chosen[d->n++] = items[i];
    return true;
}

/* With --all, repeats while the document has more suggestions than one list shows. */
static bool decide_all(struct docs_cmd *c, struct docs_decision *d, struct docs_outcome *sum,
                       struct error *err)
{
    bool is_all = cli_flag(c->cli, "--all") != NULL;
    struct docs_outcome o = {0};
    int64_t hidden = 0;

    do {
        if (!choose(c, d, &hidden, err))
            return false;
        if (d->n == 0)
            return true;
        if (!docs_client_decide(&c->client, d, &o, err))
            return false;
        sum->applied += o.applied;
        sum->failed = o.failed;
        sum->reason = o.reason;
        if (c->json)
            add_json(c, o.json);
    } while (is_all && hidden > 0 && o.applied > 0);
    return true;
}

static bool decide(struct docs_cmd *c, const char *action, struct error *err)
{
    struct docs_decision d = {.action = action,
                              .text = str_of(cli_flag(c->cli, "--text")),
                              .reason = str_of(cli_flag(c->cli, "--reason"))};
    bool is_all = cli_flag(c->cli, "--all") != NULL;
    struct docs_outcome sum = {0};
    struct str target;

    if (is_all == (c->cli->n_args > 2))
        return error_set(err, ERR_USAGE,
                         "name suggestions by their ids, or use --all; `holdfast docs suggestions` "
                         "lists the ids");
    if (!docs_client_target(&c->client, c->where, "", &target, err) ||
        !decide_all(c, &d, &sum, err))
        return false;
    if (!c->json)
        fprintf(stderr, "%zu %sed in %.*s\n", sum.applied, action, STR_ARG(c->where));
    if (sum.failed)
        return error_set(err, ERR_CONFLICT, "%zu left alone: %.*s", sum.failed,
                         STR_ARG(sum.reason));
    return true;
}

static bool run_accept(struct docs_cmd *c, struct error *err)
{
    return decide(c, "accept", err);
}

static bool run_reject(struct docs_cmd *c, struct error *err)
{
    return decide(c, "reject", err);
}

#define WHERE "--data", "--url" /* which Holdfast to ask */
#define USUAL WHERE, "--json"
static const struct docs_verb verbs[] = {
    {"list", 0, 1, {USUAL}, run_list, "[FOLDER]"},
    {"log", 1, 1, {USUAL, "--limit"}, run_log, "PATH"},
    {"show", 1, 1, {USUAL, "--revision", "--accepted"}, run_show, "PATH"},
    {"restore", 1, 1, {USUAL, "--revision", "--reason"}, run_restore, "PATH --revision N"},
    {"move", 2, 2, {USUAL, "--reason"}, run_move, "PATH NEW-PATH"},
    {"suggestions", 0, 1, {USUAL}, run_suggestions, "[FOLDER or PATH]"},
    {"accept", 1, 15, {USUAL, "--all", "--reason", "--text"}, run_accept, "PATH ID… or --all"},
    {"reject", 1, 15, {USUAL, "--all", "--reason"}, run_reject, "PATH ID… or --all"},
    {"review", 0, 1, {WHERE}, NULL, "[FOLDER or PATH]"},
    {"add", 2, 2, {"--agent", "--config", "--data", "--json"}, NULL, "NAME PATH"},
};

static int run_verb(struct docs_cmd *c, const struct docs_verb *v)
{
    struct error err = {0};
    int status = 0;

    if (!docs_client_open(c->cli, &c->client, &err))
        return cli_refuse(c->cli, &err);
    buf_init(&c->out, SIZE_MAX / 4);
    bool ok = true;
    if (v->run)
        ok = v->run(c, &err);
    else
        status = docs_review(c->cli, &c->client, c->where);
    if (c->out.n && (fwrite(c->out.p, 1, c->out.n, stdout) != c->out.n || fflush(stdout) != 0))
        status = 1;
    buf_release(&c->out);
    docs_client_close(&c->client);
    if (ok)
        return status;
    return cli_refuse(c->cli, &err);
}

int cmd_docs(struct cli *cli)
{
    struct docs_cmd c = {.cli = cli, .json = cli_flag(cli, "--json")};
    size_t i = 0;

    while (i < countof(verbs) && (!cli->n_args || strcmp(cli->args[0], verbs[i].name) != 0))
        i++;
    if (i == countof(verbs)) {
        struct cli_nearest near = cli_nearest_to(str_of(cli->n_args ? cli->args[0] : ""));
        for (size_t k = 0; k < countof(verbs); k++)
            cli_nearest_offer(&near, verbs[k].name);
        return cli_unknown_verb(cli, &near,
                                "docs needs one of add, list, log, show, restore, move, "
                                "suggestions, accept, reject or review");
    }
    if (cli->n_args - 1 < verbs[i].min_args || cli->n_args - 1 > verbs[i].max_args)
        return cli_usage(cli, "docs %s takes %s", verbs[i].name, verbs[i].usage);
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "docs %s does not take %s", verbs[i].name, flag);
    if (strcmp(verbs[i].name, "add") == 0)
        return docs_add(cli);
    c.where = cli->n_args > 1 ? str_of(cli->args[1]) : STR_NONE;
    c.colour = cli_colour(STDOUT_FILENO);
    return run_verb(&c, &verbs[i]);
}
