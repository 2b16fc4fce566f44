/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a command line by the table, and prints errors. */
#include "cli/cli.h"

#include "base/log.h"
#include "json/write.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const struct cli_command *cli_command_find(const char *name)
{
    const struct cli_command *c;

    for (size_t i = 0; (c = cli_command_at(i)); i++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

/* -n and --limit are the same, where they take a number. */
static bool is_same_flag(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (strcmp(a, "-n") == 0 && strcmp(b, "--limit") == 0) ||
           (strcmp(a, "--limit") == 0 && strcmp(b, "-n") == 0);
}

const char *cli_flag(const struct cli *cli, const char *name)
{
    for (int i = cli->n_given - 1; i >= 0; i--)
        if (is_same_flag(cli->given[i].name, name))
            return cli->given[i].value;
    return NULL;
}

const char *cli_flag_beyond(const struct cli *cli, const char *const *flags, size_t max)
{
    for (int i = 0; i < cli->n_given; i++) {
        const char *name = cli->given[i].name;
        const char *with = strcmp(name, "--ca") == 0 ? "--url" : name;
        bool known = strcmp(name, "--quiet") == 0;
        for (size_t k = 0; k < max && flags[k]; k++)
            known = known || is_same_flag(flags[k], with);
        if (!known)
            return cli->given[i].name;
    }
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
    if (cli->command && !cli_flag(cli, "--json")) {
        struct buf usage;
        buf_init(&usage, 64 * 1024);
        cli_help_usage(cli->command, &usage);
        fputs(usage.p, stderr);
        buf_release(&usage);
    }
    return status;
}

int cli_refuse(const struct cli *cli, const struct error *err)
{
    return err->code == ERR_USAGE ? cli_usage(cli, "%s", err->text) : cli_fail(cli, err);
}

int cli_print(const struct cli *cli, const struct buf *data)
{
    struct error err;
    struct str text = buf_str(data);
    bool ended = text.n && text.p[text.n - 1] == '\n';

    fwrite(text.p, 1, text.n, stdout);
    if (!ended)
        fputc('\n', stdout);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    error_sys(&err, ERR_INTERNAL, errno, "cannot write the output");
    return cli_fail(cli, &err);
}

bool cli_write_part(struct buf *part)
{
    struct str text = buf_str(part);
    bool ok = fwrite(text.p, 1, text.n, stdout) == text.n && fflush(stdout) == 0;

    buf_reset(part);
    return ok;
}

bool cli_pause(int ms)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    return poll(&out, 1, ms) <= 0;
}

bool cli_number_flag(const struct cli *cli, const char *name, unsigned otherwise, unsigned most,
                     unsigned *ret, struct error *err)
{
    const char *text = cli_flag(cli, name);
    uint64_t value = otherwise;

    if (text && (!str_to_u64(str_of(text), most, &value) || value == 0))
        return error_set(err, ERR_USAGE, "%s takes a number from 1 to %u, not \"%.64s\"", name,
                         most, text);
    *ret = (unsigned)value;
    return true;
}

bool cli_colour(int fd)
{
    const char *force = getenv("CLICOLOR_FORCE"), *none = getenv("NO_COLOR"),
               *term = getenv("TERM");
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
    for (const struct cli_flag *f = c->flags; f && f->name; f++)
        if (f->value && strcmp(f->value, "N") == 0 &&
            ((str_eq(name, STR("-n")) && strcmp(f->name, "--limit") == 0) ||
             (str_eq(name, STR("--limit")) && strcmp(f->name, "-n") == 0)))
            return f;
    return NULL;
}

struct cli_nearest cli_nearest_to(struct str word)
{
    /* About a quarter of a word may be wrong: "verison" is near "version", "xyz" not near "up". */
    return (struct cli_nearest){.word = word,
                                .distance = (unsigned)((word.n < 64 ? word.n : 64) + 1) / 4 + 2};
}

void cli_nearest_offer(struct cli_nearest *n, const char *name)
{
    unsigned d = str_distance(str_of(name), n->word, n->distance);
    if (d < n->distance) {
        n->distance = d;
        n->name = name;
    }
}

int cli_unknown_verb(const struct cli *cli, const struct cli_nearest *near, const char *otherwise)
{
    if (near->word.n && near->name)
        return cli_usage(cli, "there is no %s %.*s; did you mean holdfast %s %s?",
                         cli->command->name, (int)(near->word.n < 100 ? near->word.n : 100),
                         near->word.p, cli->command->name, near->name);
    if (near->word.n)
        return cli_usage(cli, "there is no %s %.*s; %s", cli->command->name,
                         (int)(near->word.n < 100 ? near->word.n : 100), near->word.p, otherwise);
    return cli_usage(cli, "%s", otherwise);
}

static int unknown_flag(const struct cli *cli, struct str name)
{
    struct cli_nearest near = cli_nearest_to(name);
    for (const struct cli_flag *f = cli->command->flags; f && f->name; f++)
        cli_nearest_offer(&near, f->name);
    cli_nearest_offer(&near, "--help");
    if (near.name)
        return cli_usage(cli, "unknown flag %.*s; did you mean %s?", STR_ARG(name), near.name);
    return cli_usage(cli, "unknown flag %.*s; see holdfast %s --help", STR_ARG(name),
                     cli->command->name);
}

/* Takes one argument that begins with "-": "--flag", "--flag=value" or "--flag value".  A value
 * that begins with "--" must be given with "=": after a space it is more likely the next flag. */
static bool take_flag(struct cli *cli, int argc, char **argv, int *at, int *ret_status)
{
    struct str rest = str_of(argv[*at]), name = str_split(&rest, '=');
    const struct cli_flag *f = flag_find(cli->command, name);
    const char *value = rest.p;

    if (!f && !rest.p && name.n > 2 && name.p[1] != '-') { /* "-n5" */
        f = flag_find(cli->command, str_n(name.p, 2));
        f = f && f->value ? f : NULL;
        value = f ? name.p + 2 : NULL;
    }
    if (!f) {
        *ret_status = unknown_flag(cli, name);
        return false;
    }
    if (f->value && !value && *at + 1 < argc && strncmp(argv[*at + 1], "--", 2) != 0)
        value = argv[++*at];
    if (f->value && !value)
        *ret_status = cli_usage(cli, "%s needs a value: %s %s", f->name, f->name, f->value);
    else if (!f->value && value)
        *ret_status = cli_usage(cli, "%s takes no value; write %s alone", f->name, f->name);
    else if (cli->n_given == CLI_MAX_FLAGS)
        *ret_status = cli_usage(cli, "too many flags; at most %d are allowed", CLI_MAX_FLAGS);
    else {
        cli->given[cli->n_given].name = f->name;
        cli->given[cli->n_given++].value = value ? value : "";
        return true;
    }
    return false;
}

/* -h or --help: the help from the command's row. */
static int print_help(const struct cli *cli)
{
    struct buf out;

    buf_init(&out, 64 * 1024);
    cli_help_command(cli->command, &out);
    int status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}

bool cli_parse(struct cli *ret, const struct cli_command *command, int argc, char **argv,
               int *ret_status)
{
    bool flags = true;

    ret->command = command;
    ret->n_before_dashes = -1;
    for (int i = 0; i < argc; i++) {
        bool is_flag = flags && argv[i][0] == '-' && argv[i][1];
        if (is_flag && strcmp(argv[i], "--") == 0) {
            flags = false;
            ret->n_before_dashes = ret->n_args;
        } else if (is_flag && (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)) {
            *ret_status = print_help(ret);
            return false;
        } else if (is_flag) {
            if (!take_flag(ret, argc, argv, &i, ret_status))
                return false;
        } else if (ret->n_args == CLI_MAX_ARGS) {
            *ret_status =
                cli_usage(ret, "too many arguments; at most %d are allowed", CLI_MAX_ARGS);
            return false;
        } else {
            ret->args[ret->n_args++] = argv[i];
        }
    }
    return true;
}

static int unknown_command(const char *name)
{
    struct cli_nearest near = cli_nearest_to(str_of(name));
    const struct cli_command *c;
    struct error err;

    for (size_t i = 0; (c = cli_command_at(i)); i++)
        cli_nearest_offer(&near, c->name);
    if (near.name)
        error_set(&err, ERR_USAGE, "there is no command \"%.100s\"; did you mean \"%s\"?", name,
                  near.name);
    else
        error_set(&err, ERR_USAGE, "there is no command \"%.100s\"; see holdfast help", name);
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
