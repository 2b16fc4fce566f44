/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast secret set|list|remove: a client of /api/v1/secrets.  A value is read from the terminal, a
 * file or standard input, and never printed. */
#include "cli/cli.h"

#include "cli/secret.h"
#include "json/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct secret_cmd {
    struct cli *cli;
    bool json;
    struct source source;
    struct buf out;
};

struct secret_verb {
    const char *name;
    int n_args;
    const char *flags[4];
    bool (*run)(struct secret_cmd *c, struct error *err);
};

static bool check_name(struct str name, struct error *err)
{
    return config_is_secret_name(name) ||
           error_set(err, ERR_USAGE, "the name of a secret has 1 to %d letters, digits and . _ -",
                     CONFIG_SECRET_NAME_MAX);
}

static bool read_all(int fd, const char *file, struct buf *out, struct error *err)
{
    char piece[4096];
    ssize_t n = 1;
    bool ok = true;

    while (ok && n != 0) {
        n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno != EINTR)
            ok = error_sys(err, ERR_BAD_INPUT, errno, "%s cannot be read", file);
        else if (n > 0 && !buf_try_add(out, piece, (size_t)n))
            ok = error_set(err, ERR_BAD_INPUT, "a secret has at most %u bytes; %s has more",
                           CONFIG_SECRET_BYTES_MAX, file);
    }
    explicit_bzero(piece, sizeof(piece));
    return ok;
}

/* Editors and `echo` end the last line with a newline. */
static struct str without_newline(struct str s)
{
    size_t n = s.n;

    if (n && s.p[n - 1] == '\n')
        n--;
    if (n && n < s.n && s.p[n - 1] == '\r')
        n--;
    return str_n(s.p, n);
}

static bool read_value(struct secret_cmd *c, struct str name, struct buf *out, struct error *err)
{
    const char *file = cli_flag(c->cli, "--value-file");

    if (!file && isatty(STDIN_FILENO))
        return secret_read_terminal(name, STR_NONE, out, err);
    if (!file || strcmp(file, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", out, err);
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_sys(err, ERR_BAD_INPUT, errno, "%s cannot be opened", file);
    bool ok = read_all(fd, file, out, err);
    close(fd);
    return ok;
}

static bool run_set(struct secret_cmd *c, struct error *err)
{
    struct str name = str_of(c->cli->args[1]);
    struct buf value;

    buf_init_secret(&value, CONFIG_SECRET_BYTES_MAX + 2); /* with a newline at its end */
    bool ok = check_name(name, err) && read_value(c, name, &value, err);
    struct str text = without_newline(buf_str(&value));
    if (ok && (!text.n || text.n > CONFIG_SECRET_BYTES_MAX))
        ok = error_set(err, ERR_BAD_INPUT, "a secret has 1 to %u bytes; give another value",
                       CONFIG_SECRET_BYTES_MAX);
    ok = ok && source_open(c->cli, SOURCE_CHANGES, &c->source, err) &&
         secret_put(c->cli, &c->source, name, text, err);
    buf_release(&value);
    if (ok && c->json)
        buf_addf(&c->out, "{\"name\":\"%.*s\",\"set\":true}", STR_ARG(name));
    else if (ok)
        fprintf(stderr, "secret %.*s is set; a configuration uses it as ${secret:%.*s}\n",
                STR_ARG(name), STR_ARG(name));
    return ok;
}

static void add_row(struct secret_cmd *c, const struct js_doc *doc, const struct js_node *secret)
{
    struct arena *mem = c->cli->mem;
    const struct js_node *users = js_get(doc, secret, STR("used_by"));
    struct str at = source_text(doc, secret, "updated_at", mem);
    const char *between = "";

    buf_addf(&c->out, "%-24.*s  %-16.*s  ", STR_ARG(source_text(doc, secret, "name", mem)),
             (int)(at.n < 16 ? at.n : 16), at.p);
    for (const struct js_node *u = js_first(doc, users); u; u = js_next(doc, users, u)) {
        struct str name = js_text(doc, u, mem);
        buf_addf(&c->out, "%s%.*s", between, STR_ARG(name));
        between = ", ";
    }
    buf_addz(&c->out, *between ? "\n" : "-\n");
}

static bool run_list(struct secret_cmd *c, struct error *err)
{
    const struct js_node *list;
    struct js_doc doc;
    struct str json;
    size_t n = 0;

    if (!source_open(c->cli, SOURCE_READS, &c->source, err) ||
        !control_get(c->source.control, STR("/api/v1/secrets"), c->cli->mem, &json, err) ||
        !source_parse(json, c->cli->mem, &doc, err))
        return false;
    list = js_get(&doc, js_root(&doc), STR("secrets"));
    for (const struct js_node *s = js_first(&doc, list); s; s = js_next(&doc, list, s), n++) {
        if (c->json) {
            buf_addstr(&c->out, js_raw(&doc, s));
            buf_addc(&c->out, '\n');
            continue;
        }
        if (n == 0)
            buf_addf(&c->out, "%-24s  %-16s  %s\n", "NAME", "LAST SET", "USED BY");
        add_row(c, &doc, s);
    }
    if (!n && !c->json)
        fprintf(stderr, "there are no secrets yet; set one with `holdfast secret set NAME`\n");
    return true;
}

static bool run_remove(struct secret_cmd *c, struct error *err)
{
    struct str name = str_of(c->cli->args[1]);

    if (!check_name(name, err) || !source_open(c->cli, SOURCE_CHANGES, &c->source, err) ||
        !secret_remove(c->cli, &c->source, name, err))
        return false;
    if (c->json)
        buf_addf(&c->out, "{\"name\":\"%.*s\",\"removed\":true}", STR_ARG(name));
    else
        fprintf(stderr, "secret %.*s is removed; servers that use it do not start any more\n",
                STR_ARG(name));
    return true;
}

static const struct secret_verb verbs[] = {
    {"set", 1, {"--value-file", "--data", "--json"}, run_set},
    {"list", 0, {"--data", "--json"}, run_list},
    {"remove", 1, {"--data", "--json"}, run_remove},
};

int cmd_secret(struct cli *cli)
{
    struct secret_cmd c = {.cli = cli, .json = cli_flag(cli, "--json")};
    struct error err;
    size_t i = 0;
    int status = 0;

    while (i < countof(verbs) && (!cli->n_args || strcmp(cli->args[0], verbs[i].name) != 0))
        i++;
    if (i == countof(verbs)) {
        struct cli_nearest near = cli_nearest_to(str_of(cli->n_args ? cli->args[0] : ""));
        for (size_t k = 0; k < countof(verbs); k++)
            cli_nearest_offer(&near, verbs[k].name);
        return cli_unknown_verb(cli, &near, "secret needs one of set, list or remove");
    }
    if (cli->n_args > 2 && strcmp(verbs[i].name, "set") == 0)
        return cli_usage(cli, "secret set takes a name alone: a value on the command line could be "
                              "seen by other users; use --value-file, or the terminal");
    if (cli->n_args != 1 + verbs[i].n_args)
        return cli_usage(cli,
                         verbs[i].n_args ? "secret %s takes the name of one secret"
                                         : "secret %s takes flags only",
                         verbs[i].name);
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "secret %s does not take %s", verbs[i].name, flag);
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = verbs[i].run(&c, &err);
    source_close(&c.source);
    if (ok && c.out.n)
        status = cli_print(cli, &c.out);
    buf_release(&c.out);
    return ok ? status : cli_refuse(cli, &err);
}
