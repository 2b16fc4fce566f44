/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast templates list|show|versions|set|remove: a client of /api/v1/templates.  show prints the
 * template as it was written, so that set can read it again. */
#include "cli/cli.h"

#include "base/clock.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/when.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define TEMPLATE_BYTES_MAX (1u << 20) /* Holdfast takes less, and says so */

struct templates_cmd {
    struct cli *cli;
    bool json;
    struct source source;
    struct buf out;
    struct table table; /* columns == NULL: none */
};

struct templates_verb {
    const char *name;
    int n_args;
    const char *flags[8];
    bool (*run)(struct templates_cmd *c, struct error *err);
};

/* PATH below /api/v1/templates with the tenant and a further query ("limit=50", or NULL). */
static struct str path_of(const struct templates_cmd *c, struct str name, const char *rest,
                          const char *query)
{
    struct arena *mem = c->cli->mem;
    struct str tenant = str_of(cli_flag(c->cli, "--tenant"));
    struct str path = arena_printf(mem, "/api/v1/templates%s%.*s%s", name.p ? "/" : "",
                                   STR_ARG(source_encoded(name, mem)), rest);

    if (tenant.p)
        path = arena_printf(mem, "%.*s?tenant=%.*s", STR_ARG(path),
                            STR_ARG(source_encoded(tenant, mem)));
    return query ? arena_printf(mem, "%.*s%c%s", STR_ARG(path), tenant.p ? '&' : '?', query) : path;
}

static struct str when(const struct templates_cmd *c, const struct js_doc *doc,
                       const struct js_node *row)
{
    char shown[WHEN_TEXT];
    int64_t ms;

    if (!clock_parse(source_text(doc, row, "created_at", c->cli->mem), &ms))
        return STR("");
    return arena_dup(c->cli->mem, str_of(when_format(ms, clock_wall_ms(),
                                                     cli_flag(c->cli, "--utc") != NULL, shown)));
}

static struct str version_of(const struct js_doc *doc, const struct js_node *row)
{
    return js_raw(doc, js_get(doc, row, STR("version")));
}

/* list, versions */

static void add_template(struct templates_cmd *c, const struct js_doc *doc,
                         const struct js_node *row)
{
    const struct js_node *spec = js_get(doc, row, STR("spec"));
    struct arena *mem = c->cli->mem;

    table_add(&c->table, source_text(doc, row, "name", mem));
    table_add(&c->table, version_of(doc, row));
    table_add(&c->table, when(c, doc, row));
    table_add(&c->table, source_text(doc, row, "created_by", mem));
    table_add(&c->table, source_text(doc, spec, "profile", mem));
    table_add(&c->table, source_text(doc, spec, "description", mem));
}

static void add_version(struct templates_cmd *c, const struct js_doc *doc,
                        const struct js_node *row)
{
    table_add(&c->table, version_of(doc, row));
    table_add(&c->table, when(c, doc, row));
    table_add(&c->table, source_text(doc, row, "created_by", c->cli->mem));
}

/* Reads all pages; *ret_n is the number of rows. */
static bool each_row(struct templates_cmd *c, struct str name, const char *list,
                     void (*add)(struct templates_cmd *c, const struct js_doc *doc,
                                 const struct js_node *row),
                     size_t *ret_n, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str cursor = STR_NONE, json;
    struct js_doc doc;

    *ret_n = 0;
    do {
        struct str query =
            arena_printf(mem, "limit=%d%s%.*s", STORE_PAGE_MAX, cursor.p ? "&cursor=" : "",
                         STR_ARG(source_encoded(cursor, mem)));
        if (!control_get(c->source.control, path_of(c, name, name.p ? "/versions" : "", query.p),
                         mem, &json, err) ||
            !source_parse(json, mem, &doc, err))
            return false;
        const struct js_node *rows = js_get(&doc, js_root(&doc), str_of(list));
        for (const struct js_node *r = js_first(&doc, rows); r; r = js_next(&doc, rows, r)) {
            ++*ret_n;
            if (!c->json) {
                add(c, &doc, r);
                continue;
            }
            buf_addstr(&c->out, js_raw(&doc, r));
            buf_addc(&c->out, '\n');
        }
        cursor = js_text(&doc, js_get(&doc, js_root(&doc), STR("next_cursor")), mem);
    } while (cursor.p);
    return true;
}

static void begin_table(struct templates_cmd *c, const struct table_column *columns, size_t n)
{
    table_init(&c->table, columns, n, table_terminal_width(STDOUT_FILENO),
               cli_colour(STDOUT_FILENO));
}

static bool run_list(struct templates_cmd *c, struct error *err)
{
    static const struct table_column columns[] = {
        {"NAME", 0, false}, {"VERSION", 0, false}, {"CHANGED", 0, false},
        {"BY", 8, false},   {"PROFILE", 8, false}, {"DESCRIPTION", 12, false},
    };
    size_t n;

    begin_table(c, columns, countof(columns));
    if (!source_open(c->cli, SOURCE_READS, &c->source, err) ||
        !each_row(c, STR_NONE, "templates", add_template, &n, err))
        return false;
    if (n && !c->json)
        table_print(&c->table, &c->out);
    else if (!c->json)
        fprintf(stderr, "there are no templates yet; make one with `holdfast templates set NAME "
                        "--file FILE`\n");
    return true;
}

static bool run_versions(struct templates_cmd *c, struct error *err)
{
    static const struct table_column columns[] = {
        {"VERSION", 0, false}, {"CHANGED", 0, false}, {"BY", 8, false}};
    size_t n;

    begin_table(c, columns, countof(columns));
    if (!source_open(c->cli, SOURCE_READS, &c->source, err) ||
        !each_row(c, str_of(c->cli->args[1]), "versions", add_version, &n, err))
        return false;
    if (!c->json)
        table_print(&c->table, &c->out);
    return true;
}

/* show NAME or NAME@VERSION */

static bool run_show(struct templates_cmd *c, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str rest = str_of(c->cli->args[1]), name = str_split(&rest, '@'), json;
    struct js_doc doc;
    uint64_t version = 0;

    if (rest.p && !str_to_u64(rest, INT32_MAX, &version))
        return error_set(err, ERR_USAGE, "a version is a number: NAME@2");
    struct str query = arena_printf(mem, "version=%llu", (unsigned long long)version);
    if (!source_open(c->cli, SOURCE_READS, &c->source, err) ||
        !control_get(c->source.control, path_of(c, name, "", rest.p ? query.p : NULL), mem, &json,
                     err) ||
        !source_parse(json, mem, &doc, err))
        return false;
    const struct js_node *root = js_root(&doc);
    buf_addstr(&c->out, js_raw(&doc, c->json ? root : js_get(&doc, root, STR("spec"))));
    if (!c->json)
        fprintf(stderr, "version %.*s, by %.*s, %.*s\n", STR_ARG(version_of(&doc, root)),
                STR_ARG(source_text(&doc, root, "created_by", mem)), STR_ARG(when(c, &doc, root)));
    return true;
}

/* set NAME */

static bool read_all(int fd, const char *name, struct buf *out, struct error *err)
{
    char piece[4096];

    for (;;) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys(err, ERR_BAD_INPUT, errno, "%s cannot be read", name);
        if (n == 0)
            return true;
        if (!buf_try_add(out, piece, (size_t)n))
            return error_set(err, ERR_BAD_INPUT, "%s is longer than a template may be", name);
    }
}

static bool read_spec(const struct templates_cmd *c, struct buf *out, struct error *err)
{
    const char *file = cli_flag(c->cli, "--file");

    if (!file && isatty(STDIN_FILENO))
        return error_set(err, ERR_USAGE,
                         "templates set reads JSON from --file FILE, or from standard input");
    if (!file || strcmp(file, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", out, err);
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_sys(err, ERR_BAD_INPUT, errno, "%s cannot be opened", file);
    bool ok = read_all(fd, file, out, err);
    close(fd);
    return ok;
}

/* The newest version as text; absent: there is no such template yet. */
static bool newest(struct templates_cmd *c, struct str name, struct str *ret, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct str json;
    struct js_doc doc;

    *ret = STR_NONE;
    if (!control_get(c->source.control, path_of(c, name, "", NULL), mem, &json, err))
        return err->code == ERR_NOT_FOUND;
    if (!source_parse(json, mem, &doc, err))
        return false;
    *ret = version_of(&doc, js_root(&doc));
    return true;
}

static bool put(struct templates_cmd *c, struct str name, struct str spec, struct error *err)
{
    struct arena *mem = c->cli->mem;
    struct control_request r = {.method = "PUT", .path = path_of(c, name, "", NULL), .body = spec};
    struct str before, json;
    struct js_doc doc;

    if (!newest(c, name, &before, err))
        return false;
    r.headers = before.p ? STR("If-Match: *\r\n") : STR("If-None-Match: *\r\n");
    if (!control_send(c->source.control, &r, mem, &json, err) ||
        !source_parse(json, mem, &doc, err))
        return false;
    struct str version = version_of(&doc, js_root(&doc));
    if (c->json)
        buf_addstr(&c->out, js_raw(&doc, js_root(&doc)));
    else if (before.p && str_eq(before, version))
        fprintf(stderr, "template %.*s is as it was: version %.*s\n", STR_ARG(name),
                STR_ARG(version));
    else
        fprintf(stderr,
                "template %.*s is set: version %.*s; sessions that begin from now on get "
                "it\n",
                STR_ARG(name), STR_ARG(version));
    return true;
}

static bool run_set(struct templates_cmd *c, struct error *err)
{
    struct buf spec;

    buf_init(&spec, TEMPLATE_BYTES_MAX);
    bool ok = read_spec(c, &spec, err) && source_open(c->cli, SOURCE_CHANGES, &c->source, err) &&
              put(c, str_of(c->cli->args[1]), buf_str(&spec), err);
    buf_release(&spec);
    return ok;
}

static bool run_remove(struct templates_cmd *c, struct error *err)
{
    struct str name = str_of(c->cli->args[1]), json;

    if (!source_open(c->cli, SOURCE_CHANGES, &c->source, err) ||
        !control_ask(c->source.control, "DELETE", path_of(c, name, "", NULL), STR_NONE, c->cli->mem,
                     &json, err))
        return false;
    if (c->json)
        buf_addf(&c->out, "{\"name\":\"%.*s\",\"removed\":true}", STR_ARG(name));
    else
        fprintf(stderr, "template %.*s is removed; sessions that run keep what they took from it\n",
                STR_ARG(name));
    return true;
}

static const struct templates_verb verbs[] = {
    {"list", 0, {"--tenant", "--utc", "--data", "--url", "--json"}, run_list},
    {"show", 1, {"--tenant", "--utc", "--data", "--url", "--json"}, run_show},
    {"versions", 1, {"--tenant", "--utc", "--data", "--url", "--json"}, run_versions},
    {"set", 1, {"--file", "--tenant", "--data", "--url", "--json"}, run_set},
    {"remove", 1, {"--tenant", "--data", "--url", "--json"}, run_remove},
};

int cmd_templates(struct cli *cli)
{
    struct templates_cmd c = {.cli = cli, .json = cli_flag(cli, "--json")};
    struct error err;
    size_t i = 0;
    int status = 0;

    while (i < countof(verbs) && (!cli->n_args || strcmp(cli->args[0], verbs[i].name) != 0))
        i++;
    if (i == countof(verbs)) {
        struct cli_nearest near = cli_nearest_to(str_of(cli->n_args ? cli->args[0] : ""));
        for (size_t k = 0; k < countof(verbs); k++)
            cli_nearest_offer(&near, verbs[k].name);
        return cli_unknown_verb(cli, &near,
                                "templates needs one of list, show, versions, set or remove");
    }
    if (cli->n_args != 1 + verbs[i].n_args)
        return cli_usage(cli,
                         verbs[i].n_args ? "templates %s takes the name of one template"
                                         : "templates %s takes flags only",
                         verbs[i].name);
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "templates %s does not take %s", verbs[i].name, flag);
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = verbs[i].run(&c, &err);
    source_close(&c.source);
    if (ok && c.out.n)
        status = cli_print(cli, &c.out);
    if (c.table.columns)
        table_release(&c.table);
    buf_release(&c.out);
    return ok ? status : cli_refuse(cli, &err);
}
