/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing a command line against the table, and saying errors. */
#include "cli/cli.h"

#include "base/log.h"
#include "json/write.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const struct cli_command *cli_command_find(const char *name)
{
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

const char *cli_flag(const struct cli *cli, const char *name)
{
    for (int i = cli->n_given - 1; i >= 0; i--)
        if (strcmp(cli->given[i].name, name) == 0)
            return cli->given[i].value;
    return NULL;
}

int cli_fail(const struct cli *cli, const struct error *err)
{
    const struct error_info *info = error_info(err->code);
    struct buf out;

    buf_init(&out, 64 * 1024);
    if (cli && cli_flag(cli, "--json")) {
        struct js_writer w;
        js_begin(&w, &out);
        js_object(&w);
        js_key(&w, STR("error"));
        js_object(&w);
        js_kv_string(&w, "code", str_of(info->name));
        js_kv_string(&w, "message", str_of(err->text));
        js_object_end(&w);
        js_object_end(&w);
    } else {
        buf_addz(&out, "holdfast: ");
        log_escape(&out, str_of(err->text), sizeof(err->text));
    }
    fprintf(stderr, "%s\n", out.p);
    buf_release(&out);
    return info->exit_status;
}

int cli_usage(const struct cli *cli, const char *fmt, ...)
{
    struct error err = {.code = ERR_USAGE};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err.text, sizeof(err.text), fmt, ap);
    va_end(ap);
    int status = cli_fail(cli, &err);
    if (cli->command && !cli_flag(cli, "--json"))
        fprintf(stderr, "usage: holdfast %s %s\n", cli->command->name, cli->command->usage);
    return status;
}

bool cli_colour(int fd)
{
    const char *force = getenv("CLICOLOR_FORCE"), *none = getenv("NO_COLOR"), *term = getenv("TERM");
    if (none && *none)
        return false;
    if (force && *force && strcmp(force, "0") != 0)
        return true;
    return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static const struct cli_flag *flag_find(const struct cli_command *c, struct str name)
{
    for (const struct cli_flag *f = c->flags; f && f->name; f++)
        if (str_eq(str_of(f->name), name))
            return f;
    return NULL;
}

static const char *nearest_flag(const struct cli_command *c, struct str name)
{
    const char *best = NULL;
    unsigned least = 4;
    for (const struct cli_flag *f = c->flags; f && f->name; f++) {
        unsigned d = str_distance(str_of(f->name), name, least);
        if (d < least) {
            least = d;
            best = f->name;
        }
    }
    return best;
}

static const char *nearest_command(const char *name)
{
    const char *best = NULL;
    unsigned least = 4;
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        unsigned d = str_distance(str_of(c->name), str_of(name), least);
        if (d < least) {
            least = d;
            best = c->name;
        }
    }
    return best;
}

/* One argument that begins with "--": "--flag", "--flag=value" or "--flag value". */
static bool take_flag(struct cli *cli, int argc, char **argv, int *at, int *ret_status)
{
    struct str rest = str_of(argv[*at]), name = str_split(&rest, '=');
    const struct cli_flag *f = flag_find(cli->command, name);
    const char *value = rest.p;

    if (!f) {
        const char *near = nearest_flag(cli->command, name);
        *ret_status = near ? cli_usage(cli, "unknown flag %.*s; did you mean %s?", STR_ARG(name), near)
                           : cli_usage(cli, "unknown flag %.*s", STR_ARG(name));
        return false;
    }
    if (f->value && !value && *at + 1 < argc)
        value = argv[++*at];
    if (!f->value != !value) {
        *ret_status = f->value ? cli_usage(cli, "%s needs a value: %s", f->name, f->value)
                               : cli_usage(cli, "%s takes no value", f->name);
        return false;
    }
    if (cli->n_given == CLI_MAX_FLAGS) {
        *ret_status = cli_usage(cli, "too many flags");
        return false;
    }
    cli->given[cli->n_given].name = f->name;
    cli->given[cli->n_given++].value = value ? value : "";
    return true;
}

bool cli_parse(struct cli *ret, const struct cli_command *command, int argc, char **argv, int *ret_status)
{
    bool flags = true;

    ret->command = command;
    for (int i = 0; i < argc; i++) {
        if (flags && strcmp(argv[i], "--") == 0) {
            flags = false;
        } else if (flags && argv[i][0] == '-' && argv[i][1]) {
            if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
                struct buf out;
                buf_init(&out, 64 * 1024);
                cli_help_command(command, &out);
                fputs(out.p, stdout);
                buf_release(&out);
                *ret_status = 0;
                return false;
            }
            if (!take_flag(ret, argc, argv, &i, ret_status))
                return false;
        } else if (ret->n_args == CLI_MAX_ARGS) {
            *ret_status = cli_usage(ret, "too many arguments");
            return false;
        } else {
            ret->args[ret->n_args++] = argv[i];
        }
    }
    return true;
}

static int unknown_command(const char *name)
{
    struct error err;
    const char *near = nearest_command(name);
    if (near)
        error_set(&err, ERR_USAGE, "there is no command \"%s\"; did you mean \"%s\"?", name, near);
    else
        error_set(&err, ERR_USAGE, "there is no command \"%s\"; see holdfast help", name);
    return cli_fail(NULL, &err);
}

int cli_main(int argc, char **argv)
{
    struct cli cli = {0};
    const char *name = argc > 1 ? argv[1] : "help";
    int status = 0;

    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    const struct cli_command *c = cli_command_find(name);
    if (!c)
        return unknown_command(name);
    cli.mem = arena_new(256u * 1024 * 1024);
    if (cli_parse(&cli, c, argc > 2 ? argc - 2 : 0, argv + 2, &status))
        status = c->run(&cli);
    arena_free(cli.mem);
    return status;
}
