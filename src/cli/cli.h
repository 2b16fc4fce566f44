/* SPDX-License-Identifier: Apache-2.0 */
/* Commands from a table: parsing, help and the printed reference use the same rows.  Data goes to
 * stdout, messages go to stderr; exit statuses come from the error table. */
#ifndef HOLDFAST_CLI_CLI_H
#define HOLDFAST_CLI_CLI_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define CLI_MAX_FLAGS 64
#define CLI_MAX_ARGS 256 /* a command behind `--` may have many */

struct cli;

struct cli_flag {
    const char *name;  /* "--data" */
    const char *value; /* "DIR"; NULL for a switch */
    const char *help;
};

struct cli_command {
    const char *name;
    const char *group;   /* "Start", "Connect", "Look", "Decide", "Manage" or "Help" */
    const char *usage;   /* the arguments after the name */
    const char *summary; /* one line */
    const char *examples[2];
    const struct cli_flag *flags; /* ends with name == NULL; every command also takes --help */
    int (*run)(struct cli *cli);
};
/* Adds the commands of another folder: `rows` (ended by a NULL name) follow the command `after`.  They
 * stay in use until the process ends; a second call with the same rows changes nothing. */
void cli_add(const struct cli_command *rows, const char *after);
/* The i-th command, with the added ones; NULL: there are no more. */
const struct cli_command *cli_command_at(size_t i);

struct cli {
    const struct cli_command *command;
    struct arena *mem;
    const char *args[CLI_MAX_ARGS]; /* positional */
    int n_args;
    int n_before_dashes; /* arguments before `--`; -1: there was no `--` */
    struct {
        const char *name, *value;
    } given[CLI_MAX_FLAGS];
    int n_given;
};

/* Runs the command in argv; returns its exit status. */
int cli_main(int argc, char **argv);
/* Value of a flag ("--data"), "" for a switch, NULL when not given; of a repeated flag the last
 * value.  -n and --limit name the same flag. */
const char *cli_flag(const struct cli *cli, const char *name);
/* The first given flag that is not in `flags`; NULL: every given flag is.  `flags` has `max`
 * entries or ends with NULL.  --quiet is always allowed, and --ca beside
 * --url. */
const char *cli_flag_beyond(const struct cli *cli, const char *const *flags, size_t max);
/* Writes the error to stderr (as JSON with --json) and returns its exit status. */
int cli_fail(const struct cli *cli, const struct error *err);
/* A usage error: writes the text and the usage line to stderr; exit status 2. */
int cli_usage(const struct cli *cli, const char *fmt, ...) printf_like(2, 3);
/* An error of a command: cli_usage() for ERR_USAGE, else cli_fail(). */
int cli_refuse(const struct cli *cli, const struct error *err);
/* Writes data to stdout, ended by a newline.  Returns the exit status: 0, or 1 (with a message on
 * stderr) when stdout did not take all of the data. */
int cli_print(const struct cli *cli, const struct buf *data);
/* Writes a part of a longer output to stdout and empties the buffer; false when stdout takes no more
 * data. */
bool cli_write_part(struct buf *part);
/* Waits between two parts.  False, at once: the reader of stdout has gone (a closed pipe, a terminal
 * that hung up), so that a command which follows something ends although it has nothing to write. */
bool cli_pause(int ms);
/* The value of a flag that takes a number from 1 to `most`; `otherwise` if it is not given. */
must_check bool cli_number_flag(const struct cli *cli, const char *name, unsigned otherwise,
                                unsigned most, unsigned *ret, struct error *err);
/* Whether to use colour on this stream: not with NO_COLOR; always with CLICOLOR_FORCE; else on a
 * terminal, unless TERM is missing or "dumb". */
bool cli_colour(int fd);
/* Fills *ret with the flags and arguments.  false: the command line was refused, or --help was
 * printed; *ret_status is the exit status. */
must_check bool cli_parse(struct cli *ret, const struct cli_command *command, int argc, char **argv,
                          int *ret_status);
/* For "did you mean": offer every candidate, then read `name`; NULL: no candidate is near. */
struct cli_nearest {
    struct str word;
    const char *name;
    unsigned distance;
};
struct cli_nearest cli_nearest_to(struct str word);
void cli_nearest_offer(struct cli_nearest *n, const char *name);
/* For a word that is not a verb of the command: cli_usage() with the nearest verb that was offered,
 * or with `otherwise` if no verb is near. */
int cli_unknown_verb(const struct cli *cli, const struct cli_nearest *near, const char *otherwise);
const struct cli_command *cli_command_find(const char *name);
void cli_help_command(const struct cli_command *c, struct buf *out);
void cli_help_usage(const struct cli_command *c, struct buf *out); /* "usage: holdfast …" */
void cli_help_all(struct buf *out);
void cli_help_markdown(struct buf *out); /* docs/generated/cli.md */
/* docs/generated/NAME.md: "config", "cli" or "redaction"; false when there is no such page. */
must_check bool cli_help_page(const char *name, struct buf *out);
/* The i-th row of "exit-codes" or "environment"; false: there are no more. */
bool cli_topic_row(const char *topic, size_t i, const char **ret_name, const char **ret_help);

int cmd_up(struct cli *cli);
int cmd_start(struct cli *cli);
int cmd_stop(struct cli *cli);
int cmd_status(struct cli *cli);
int cmd_stdio(struct cli *cli);
int cmd_add(struct cli *cli);
int cmd_remove(struct cli *cli);
int cmd_config(struct cli *cli);
int cmd_connect(struct cli *cli);
int cmd_disconnect(struct cli *cli);
int cmd_import(struct cli *cli);
int cmd_audit(struct cli *cli);
int cmd_tail(struct cli *cli);
int cmd_stats(struct cli *cli);
int cmd_key(struct cli *cli);
int cmd_secret(struct cli *cli);
int cmd_servers(struct cli *cli);
int cmd_sessions(struct cli *cli);
int cmd_templates(struct cli *cli);
int cmd_user(struct cli *cli);
int cmd_db(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_version(struct cli *cli);
int cmd_help(struct cli *cli);

#endif
