/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast help: commands, error codes, exit codes, environment, the OpenAPI document, and the
 * printed reference pages; all from tables. */
#include "audit/redact.h"
#include "cli/cli.h"
#include "cli/completion.h"
#include "cli/man.h"
#include "config/config.h"
#include "api/openapi.h"

struct row {
    const char *name, *help;
};

static const struct row exit_codes[] = {
    {"0", "done"},
    {"1", "any other failure"},
    {"2", "the command line has a mistake"},
    {"3", "not authenticated, or not allowed"},
    {"4", "the server or Holdfast cannot be reached"},
    {"5", "the tool reported an error"},
    {"6", "conflict"},
    {"7", "bad configuration, or start refused"},
    {"8", "the audit chain is broken"},
    {"130", "interrupted"},
    {NULL, NULL},
};

static const struct row environment[] = {
    {"HOLDFAST_CONFIG", "configuration file, when --config is not given"},
    {"HOLDFAST_LOG_FORMAT", "human or json, when --log-format is not given"},
    {"HOLDFAST_LOG_LEVEL", "debug, info, warn or error, when --log-level is not given"},
    {"HOLDFAST_KEY", "key that holdfast stdio and commands with --url authenticate with; without "
                     "it holdfast stdio acts as the local admin"},
    {"VISUAL, EDITOR", "editor that holdfast docs review opens"},
    {"DATABASE_URL",
     "PostgreSQL (postgresql://…) that stores everything instead of the data directory"},
    {"REDIS_URL", "Redis that caches sessions (redis://, rediss:// or unix://); for nodes that "
                  "share a PostgreSQL"},
    {"HOLDFAST_AUDIT_KEY_FILE",
     "file of the audit key (default: DATA/audit.key); nodes on one PostgreSQL use the same key"},
    {"HOLDFAST_TOKEN_KEY_FILE",
     "file of the key that signs access tokens (default: DATA/token.key, made at the first start); "
     "nodes on one PostgreSQL use the same key"},
    {"HOLDFAST_MASTER_KEY_FILE", "file of the master key that seals stored credentials (default: "
                                 "DATA/master.key); nodes on one PostgreSQL use the same key"},
    {"CREDENTIALS_DIRECTORY",
     "directory of credentials, set by systemd; its files holdfast-master-key, holdfast-audit-key "
     "and holdfast-token-key are used as those keys if they exist, and ${credential:NAME} in the "
     "configuration reads any of its files"},
    {"XDG_CONFIG_HOME",
     "directory in which holdfast/holdfast.json is looked for (default: ~/.config)"},
    {"XDG_DATA_HOME", "directory of the data directory holdfast, when --data is not given "
                      "(default: ~/.local/share)"},
    {"STATE_DIRECTORY",
     "data directory of a service, set by the service manager, when --data is not given"},
    {"NO_COLOR", "if set, output has no colour, even on a terminal"},
    {"CLICOLOR_FORCE", "if set, output has colour even if it is not a terminal"},
    {NULL, NULL},
};

static const struct topic {
    const char *name;
    const struct row *rows;
    int width;
} topics[] = {
    {"exit-codes", exit_codes, 5},
    {"environment", environment, 24},
    {NULL, NULL, 0},
};

static const char config_page_head[] =
    "# Configuration\n\nPrinted by `holdfast help --markdown config`.\n\nThe file is `--config "
    "FILE`, else `HOLDFAST_CONFIG`, `./holdfast.json`,\n`$XDG_CONFIG_HOME/holdfast/holdfast.json` "
    "or `/etc/holdfast/holdfast.json`, whichever exists\nfirst. A user who may not read the file "
    "in `/etc` goes on without it. Without a file the defaults below "
    "are used. The file is JSON with comments and trailing commas.\n`servers` is accepted as "
    "another name of `mcpServers`.\n\nIn strings `${VAR}` and `${env:VAR}` become the value of an "
    "environment variable, which must be set.\n`${VAR:-default}` is the default if the variable is "
    "not set. `${credential:NAME}` is the content of the file NAME in\n`$CREDENTIALS_DIRECTORY` "
    "(systemd: `LoadCredential=NAME:…`), without its last line break. "
    "`${workspaceFolder}`,\n`${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}` and "
    "`${/}` have the same meaning as in editors.\n`$${` is a plain `${`. See [other clients' "
    "configurations](../other-clients.md).\nDurations are written `30m`, `24h`, `1h30m`, or as a "
    "number of seconds; sizes `4MiB`, `16KiB`, or\nas a number of bytes. Holdfast warns about a "
    "file that contains secrets and that other users can read.\n\n`holdfast config check` names "
    "each mistake and its place; `holdfast config show` prints the values in\neffect, without "
    "secrets.\n\n";

static const char redaction_page_head[] =
    "# Redaction\n\n"
    "Printed by `holdfast help --markdown redaction` from the tables in "
    "`src/audit/redact_table.c`.\n\n"
    "Before a body, an error or a log line is written, secrets in it are replaced. If the server "
    "or "
    "the session says\n"
    "`\"audit\": \"full\"`, bodies stay as they are, except for the values that are stored with "
    "the "
    "session and the key of the\n"
    "request. A result that is sent to the client is not changed.\n\n";

static const struct page {
    const char *name, *head;
    void (*write)(struct buf *out);
} pages[] = {
    {"config", config_page_head, config_write_reference},
    {"cli", "", cli_help_markdown},
    {"redaction", redaction_page_head, redact_write_reference},
};

static void add_error(const struct error_info *info, struct buf *out)
{
    buf_addf(out, "error %s: %s.\n\n%s\n\nHTTP %d, JSON-RPC %d, exit status %d.\n", info->name,
             info->sentence, info->help, info->http_status, info->jsonrpc, info->exit_status);
}

/* A word may name both a command and an error: then both are explained. */
static bool add_topic(const char *word, struct buf *out)
{
    const struct cli_command *command = cli_command_find(word);
    const struct error_info *info = error_info_by_name(word);

    if (command)
        cli_help_command(command, out);
    if (command && info)
        buf_addc(out, '\n');
    if (info)
        add_error(info, out);
    for (const struct topic *t = topics; t->name; t++)
        for (const struct row *r = t->rows; strcmp(t->name, word) == 0 && r->name; r++)
            buf_addf(out, "%-*s %s\n", t->width, r->name, r->help);
    if (strcmp(word, "openapi") == 0)
        openapi_print(out);
    return out->n > 0;
}

bool cli_help_page(const char *name, struct buf *out)
{
    for (size_t i = 0; i < countof(pages); i++) {
        if (strcmp(pages[i].name, name) == 0) {
            buf_addz(out, pages[i].head);
            pages[i].write(out);
            return true;
        }
    }
    return false;
}

bool cli_topic_row(const char *topic, size_t i, const char **ret_name, const char **ret_help)
{
    for (const struct topic *t = topics; t->name; t++) {
        if (strcmp(t->name, topic) != 0 || !t->rows[i].name)
            continue;
        *ret_name = t->rows[i].name;
        *ret_help = t->rows[i].help;
        return true;
    }
    return false;
}

/* --man and --completion, for what is installed. */
static int print_installed(const struct cli *cli, const char *page, const char *shell)
{
    struct buf out;
    int status;

    if (cli->n_args)
        return cli_usage(cli, "--man and --completion take no topic \"%.100s\"", cli->args[0]);
    buf_init(&out, 4 * 1024 * 1024);
    if (page && !man_write(page, &out))
        status = cli_usage(cli,
                           "there is no manual page \"%.100s\"; there are holdfast, "
                           "holdfast.json and holdfast-api",
                           page);
    else if (!page && !completion_write(shell, &out))
        status = cli_usage(cli,
                           "there is no completion for \"%.100s\"; there is one for bash, "
                           "zsh and fish",
                           shell);
    else
        status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}

static int unknown_topic(const struct cli *cli, const char *word)
{
    struct cli_nearest near = cli_nearest_to(str_of(word));
    const struct cli_command *c;

    for (size_t i = 0; (c = cli_command_at(i)); i++)
        cli_nearest_offer(&near, c->name);
    for (const struct topic *t = topics; t->name; t++)
        cli_nearest_offer(&near, t->name);
    cli_nearest_offer(&near, "openapi");
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++)
        cli_nearest_offer(&near, error_info((enum err_code)code)->name);
    if (near.name)
        return cli_usage(cli, "there is no help on \"%.100s\"; did you mean \"%s\"?", word,
                         near.name);
    return cli_usage(
        cli, "there is no help on \"%.100s\"; run holdfast help for the list of commands", word);
}

int cmd_help(struct cli *cli)
{
    bool markdown = cli_flag(cli, "--markdown") != NULL;
    const char *word = cli->n_args ? cli->args[0] : NULL;
    struct buf out;
    int status = 0;

    if (cli->n_args > 1)
        return cli_usage(cli, "help takes one topic; run holdfast help for the list");
    if (cli_flag(cli, "--man") || cli_flag(cli, "--completion"))
        return print_installed(cli, cli_flag(cli, "--man"), cli_flag(cli, "--completion"));
    buf_init(&out, 1024 * 1024);
    if (markdown && !(word && cli_help_page(word, &out)))
        status = cli_usage(cli, "--markdown needs the name of a page: config, cli or redaction");
    else if (!markdown && !word)
        cli_help_all(&out);
    else if (!markdown && !add_topic(word, &out))
        status = unknown_topic(cli, word);
    if (!status)
        status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}
