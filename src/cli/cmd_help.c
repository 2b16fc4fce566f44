/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast help: commands, error codes, exit codes, environment, the OpenAPI document, and the
 * printed reference pages; all from tables. */
#include "audit/redact.h"
#include "cli/cli.h"
#include "config/config.h"
#include "api/openapi.h"

struct row {
    const char *name, *help;
};

static const struct row exit_codes[] = {
    {"0", "done"},
    {"1", "failed for another reason"},
    {"2", "the command line is not understood"},
    {"3", "not authenticated, or not allowed"},
    {"4", "not reachable"},
    {"5", "the tool reported an error"},
    {"6", "conflict"},
    {"7", "bad configuration, or start refused"},
    {"8", "the audit chain is broken"},
    {"130", "interrupted"},
    {NULL, NULL},
};

static const struct row environment[] = {
    {"HOLDFAST_CONFIG", "configuration file, when --config is not given"},
    {"HOLDFAST_LOG_LEVEL", "debug, info, warn or error, when --log-level is not given"},
    {"HOLDFAST_KEY", "a key that holdfast stdio speaks for, and holdfast docs with --url; without "
                     "one it is the local admin"},
    {"VISUAL, EDITOR", "the editor that holdfast docs review opens"},
    {"DATABASE_URL",
     "PostgreSQL to keep everything in (postgresql://…) instead of the data directory"},
    {"REDIS_URL", "Redis to cache sessions in (redis://, rediss:// or unix://), beside a "
                  "PostgreSQL that several "
                  "nodes share"},
    {"HOLDFAST_AUDIT_KEY_FILE",
     "file of the audit key, when it is not audit.key in the data directory; nodes on one "
     "PostgreSQL use the same key"},
    {"HOLDFAST_TOKEN_KEY_FILE",
     "the file of the key that signs access tokens, for nodes that share a database; else "
     "DATA/token.key, which is made at the first start"},
    {"HOLDFAST_MASTER_KEY_FILE",
     "file of the master key that seals stored credentials, when it is not master.key in the data "
     "directory; nodes on one PostgreSQL use the same key"},
    {"CREDENTIALS_DIRECTORY",
     "set by systemd: the master, audit and token keys are its holdfast-master-key, "
     "holdfast-audit-key and holdfast-token-key, where there are such; ${credential:NAME} in the "
     "configuration reads any of its files"},
    {"XDG_CONFIG_HOME", "where holdfast/holdfast.json is looked for; ~/.config when not set"},
    {"XDG_DATA_HOME",
     "where the data directory holdfast is, when --data is not given; ~/.local/share "
     "when not set"},
    {"STATE_DIRECTORY", "the data directory, when a service manager sets it"},
    {"NO_COLOR", "no colour, whatever the output is"},
    {"CLICOLOR_FORCE", "colour although the output is no terminal"},
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
    "# Configuration\n\n"
    "Printed by `holdfast help --markdown config`.\n\n"
    "The file is `--config FILE`, else `HOLDFAST_CONFIG`, `./holdfast.json`,\n"
    "`$XDG_CONFIG_HOME/holdfast/holdfast.json` or `/etc/holdfast/holdfast.json`, the first there "
    "is; with "
    "none,\nthe defaults below. It is JSON with comments and trailing commas. `servers` may stand "
    "for\n"
    "`mcpServers`.\n\n"
    "In strings `${VAR}` and `${env:VAR}` become the value of an environment variable, which must "
    "be set;\n"
    "`${VAR:-default}` needs none; `${credential:NAME}` is what the file NAME in "
    "`$CREDENTIALS_DIRECTORY`\n"
    "holds (systemd: `LoadCredential=NAME:…`), without the end of its last line; "
    "`${workspaceFolder}`,\n"
    "`${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}` and `${/}` are what editors "
    "mean by them;\n"
    "`$${` is a plain `${`. See [other clients' configurations](../other-clients.md).\n"
    "Durations are written `30m`, `24h`, `1h30m`, or as a number of seconds; sizes `4MiB`, "
    "`16KiB`, or\n"
    "as a number of bytes. A file that others can read and that holds secrets itself is warned "
    "of.\n\n"
    "`holdfast config check` says what is wrong and where; `holdfast config show` prints what is "
    "in\n"
    "effect, without secrets.\n\n";

static const char redaction_page_head[] =
    "# Redaction\n\n"
    "Printed by `holdfast help --markdown redaction` from the tables in "
    "`src/audit/redact_table.c`.\n\n"
    "Before a body, an error or a log line is written, secrets in it are replaced, unless the "
    "server says `\"audit\": \"full\"`\n"
    "(then bodies stay as they are). A result that is sent to the client is not changed.\n\n";

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
    return cli_usage(cli, "there is no help on \"%.100s\"; holdfast help lists the commands", word);
}

int cmd_help(struct cli *cli)
{
    bool markdown = cli_flag(cli, "--markdown") != NULL;
    const char *word = cli->n_args ? cli->args[0] : NULL;
    struct buf out;
    int status = 0;

    if (cli->n_args > 1)
        return cli_usage(cli, "help explains one thing at a time");
    buf_init(&out, 1024 * 1024);
    if (markdown && !(word && cli_help_page(word, &out)))
        status = cli_usage(cli, "--markdown prints the page of config, cli or redaction");
    else if (!markdown && !word)
        cli_help_all(&out);
    else if (!markdown && !add_topic(word, &out))
        status = unknown_topic(cli, word);
    if (!status)
        status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}
