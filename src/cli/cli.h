/* SPDX-License-Identifier: Apache-2.0 */
/* Commands from a table: parsing, help and the printed reference use the same rows.
 * stdout is data, stderr is talk; exit statuses come from the error table. */
#ifndef HOLDFAST_CLI_CLI_H
#define HOLDFAST_CLI_CLI_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define CLI_MAX_FLAGS 64
#define CLI_MAX_ARGS 16

struct cli;

struct cli_flag {
    const char *name;  /* "--data" */
    const char *value; /* "DIR"; NULL for a switch */
    const char *help;
};

struct cli_command {
    const char *name;
    const char *group;   /* "Run", "Look", "Help" */
    const char *usage;   /* what follows the name */
    const char *summary; /* one line */
    const char *examples[2];
    const struct cli_flag *flags; /* ends with name == NULL; every command also takes --help */
    int (*run)(struct cli *cli);
};
extern const struct cli_command cli_commands[]; /* ends with name == NULL */

struct cli {
    const struct cli_command *command;
    struct arena *mem;
    const char *args[CLI_MAX_ARGS]; /* positional */
    int n_args;
    struct {
        const char *name, *value;
    } given[CLI_MAX_FLAGS];
    int n_given;
};

/* argv to an exit status. */
int cli_main(int argc, char **argv);
/* Value of a flag ("--data"), "" for a switch, NULL when not given; the last one counts. */
const char *cli_flag(const struct cli *cli, const char *name);
/* The first flag given that is none of `flags`, which are `max` or end with NULL; NULL: all are.
 * --quiet is never one. */
const char *cli_flag_beyond(const struct cli *cli, const char *const *flags, size_t max);
/* Says the error on stderr (as JSON with --json) and returns its exit status. */
int cli_fail(const struct cli *cli, const struct error *err);
/* A usage error: the text, the usage line, exit status 2. */
int cli_usage(const struct cli *cli, const char *fmt, ...) printf_like(2, 3);
/* An error of a command: cli_usage() for ERR_USAGE, else cli_fail(). */
int cli_refuse(const struct cli *cli, const struct error *err);
/* Data to stdout, ended by a newline; the exit status: 0, or 1 (said on stderr) when not all went
 * out. */
int cli_print(const struct cli *cli, const struct buf *data);
/* Colour on this stream?  NO_COLOR, TERM=dumb and pipes say no; CLICOLOR_FORCE says yes. */
bool cli_colour(int fd);
/* Fills *ret with the arguments; false (after saying why) on unknown flags, with *ret_status set.
 */
must_check bool cli_parse(struct cli *ret, const struct cli_command *command, int argc, char **argv,
                          int *ret_status);
/* Did you mean: offer every candidate, then look at `name`, which is NULL when none is near. */
struct cli_nearest {
    struct str word;
    const char *name;
    unsigned distance;
};
struct cli_nearest cli_nearest_to(struct str word);
void cli_nearest_offer(struct cli_nearest *n, const char *name);
/* A word that is none of the command's verbs, which were offered: cli_usage() with the nearest one,
 * else with `otherwise`. */
int cli_unknown_verb(const struct cli *cli, const struct cli_nearest *near, const char *otherwise);
const struct cli_command *cli_command_find(const char *name);
void cli_help_command(const struct cli_command *c, struct buf *out);
void cli_help_all(struct buf *out);
void cli_help_markdown(struct buf *out); /* docs/generated/cli.md */
/* docs/generated/NAME.md: "config" or "cli"; false when there is no such page. */
must_check bool cli_help_page(const char *name, struct buf *out);

int cmd_up(struct cli *cli);
int cmd_stdio(struct cli *cli);
int cmd_config(struct cli *cli);
int cmd_audit(struct cli *cli);
int cmd_key(struct cli *cli);
int cmd_servers(struct cli *cli);
int cmd_user(struct cli *cli);
int cmd_db(struct cli *cli);
int cmd_docs(struct cli *cli);
int cmd_version(struct cli *cli);
int cmd_help(struct cli *cli);

#endif
