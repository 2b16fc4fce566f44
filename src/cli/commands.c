/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, and the help printed from it.  Other folders add their commands to it. */
#include "cli/cli.h"

#include "cli/table.h"

#include <assert.h>

#define COMMANDS_MAX 64

#define CONFIG_FLAG                                                                                \
    {                                                                                              \
        "--config", "FILE",                                                                        \
            "configuration file (default: HOLDFAST_CONFIG, else the first holdfast.json found)"    \
    }
#define DATA_FLAG                                                                                  \
    {                                                                                              \
        "--data", "DIR", "data directory (default: ~/.local/share/holdfast)"                       \
    }
#define JSON_FLAG                                                                                  \
    {                                                                                              \
        "--json", NULL, "print JSON; a list is one object per line"                                \
    }
#define LOG_FORMAT_FLAG                                                                            \
    {                                                                                              \
        "--log-format", "FORMAT",                                                                  \
            "human or json (default: HOLDFAST_LOG_FORMAT, else human on a terminal, json "         \
            "otherwise)"                                                                           \
    }
#define URL_FLAGS                                                                                  \
    {"--url", "URL",                                                                               \
     "ask the Holdfast at this address, such as https://holdfast.example, with the key in "        \
     "HOLDFAST_KEY (default: the data directory)"},                                                \
    {                                                                                              \
        "--ca", "FILE",                                                                            \
            "PEM file of the authorities to trust with --url (default: SSL_CERT_FILE, else the "   \
            "system's)"                                                                            \
    }
#define QUIET_FLAG                                                                                 \
    {                                                                                              \
        "--quiet", NULL, "do not print which data directory is used"                               \
    }
#define SINCE_FLAG                                                                                 \
    {                                                                                              \
        "--since", "TIME",                                                                         \
            "only records since then: 30m, 2d, 2026-11-17, \"2026-11-17 14:00\", today or "        \
            "yesterday (default: all)"                                                             \
    }
#define UNTIL_FLAG                                                                                 \
    {                                                                                              \
        "--until", "TIME", "only records before then, written as for --since; does not follow"     \
    }
#define UTC_FLAG                                                                                   \
    {                                                                                              \
        "--utc", NULL, "read and print times in UTC (default: local time)"                         \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }

static const struct cli_flag up_flags[] = {
    CONFIG_FLAG,
    {"--listen", "HOST:PORT",
     "address to listen on (default: 127.0.0.1:4653); an address beyond loopback needs auth and "
     "TLS"},
    DATA_FLAG,
    LOG_FORMAT_FLAG,
    {"--log-level", "LEVEL",
     "debug, info, warn or error (default: info; with lines for people: warn)"},
    END,
};
static const struct cli_flag stop_flags[] = {CONFIG_FLAG, DATA_FLAG, END};
static const struct cli_flag status_flags[] = {CONFIG_FLAG, DATA_FLAG, JSON_FLAG, END};
static const struct cli_flag stdio_flags[] = {
    {"--server", "NAME", "serve this server only, with its own tool names (default: all servers)"},
    {"--profile", "NAME", "serve this profile"},
    {"--search", NULL, "serve find and run over all servers, without a profile"},
    {"--start", NULL,
     "if no Holdfast runs, start one in the background as holdfast start does; it goes on when the "
     "client ends (default: one that ends with its last client)"},
    CONFIG_FLAG,
    DATA_FLAG,
    {"--log-level", "LEVEL", "debug, info, warn or error (default: warn)"},
    END,
};
static const struct cli_flag add_flags[] = {
    {"-e", "NAME=VALUE", "variable of the server's environment; may be repeated"},
    {"--env", "NAME=VALUE", "the same as -e"},
    {"-H", "'NAME: VALUE'", "header of requests to the URL; may be repeated"},
    {"--header", "'NAME: VALUE'", "the same as -H"},
    {"-t", "KIND", "transport of the URL: http, or sse for the one of 2024 (default: http)"},
    {"--transport", "KIND", "the same as -t"},
    {"--plain", NULL, "write values that look like secrets into the file in clear"},
    {"--no-check", NULL, "add the server without connecting to it"},
    {"--replace", NULL, "replace a server of the same name"},
    CONFIG_FLAG,
    DATA_FLAG,
    JSON_FLAG,
    END,
};
static const struct cli_flag remove_flags[] = {CONFIG_FLAG, DATA_FLAG, JSON_FLAG, END};
static const struct cli_flag config_flags[] = {CONFIG_FLAG, JSON_FLAG, END};
static const struct cli_flag import_flags[] = {
    {"--replace", NULL,
     "also take over servers that Holdfast has with another definition, and secrets again"},
    {"--plain", NULL, "write secrets in clear (default: sealed in the store)"},
    {"--dry-run", NULL, "show the servers and write nothing"},
    {"--yes", NULL, "write without asking"},
    CONFIG_FLAG,
    DATA_FLAG,
    JSON_FLAG,
    END,
};
static const struct cli_flag connect_flags[] = {
    {"--name", "NAME", "name of the entry in the client's file (default: holdfast)"},
    {"--server", "NAME", "connect to this server only"},
    {"--profile", "NAME", "connect to this profile"},
    {"--http", NULL, "write the address of Holdfast (default: the command holdfast stdio)"},
    {"--url", "URL",
     "write the address of the Holdfast of another machine; with HOLDFAST_KEY set, the client "
     "sends "
     "the key from that variable"},
    {"--file", NULL, "write the client's file, also if the client has a command for this"},
    {"--no-check", NULL, "do not ask the client whether it reaches Holdfast"},
    {"--print", NULL, "print what would be written, to paste it by hand"},
    {"--dry-run", NULL, "show the change and write nothing"},
    {"--yes", NULL, "write without asking"},
    CONFIG_FLAG,
    DATA_FLAG,
    JSON_FLAG,
    END,
};
static const struct cli_flag disconnect_flags[] = {
    {"--name", "NAME", "name of the entry in the client's file (default: holdfast)"},
    {"--dry-run", NULL, "show the change and write nothing"},
    {"--yes", NULL, "write without asking"},
    JSON_FLAG,
    END,
};
static const struct cli_flag json_flags[] = {JSON_FLAG, END};
static const struct cli_flag help_flags[] = {
    {"--markdown", NULL, "print the reference page of config, cli or redaction"},
    {"--man", "PAGE", "print the manual page holdfast, holdfast.json or holdfast-api as roff"},
    {"--completion", "SHELL", "print the completion script of bash, zsh or fish"},
    END,
};
static const struct cli_flag audit_flags[] = {
    {"-n", "N", "number of calls to begin with (tail; default: 20)"},
    {"--follow", NULL, "print new calls as they are made, until interrupted (tail)"},
    {"-f", NULL, "the same as --follow (tail)"},
    {"--session", "ID", "only records of this session, by its row id"},
    {"--server", "NAME", "only records of this server"},
    {"--tool", "NAME", "only records of this tool"},
    {"--outcome", "WORD",
     "only calls with this outcome: ok, tool_error, error, timeout, cancelled, refused, "
     "upstream_lost, indeterminate, redelivered, open"},
    {"--user", "NAME", "only calls of this user or key, by its name or id (tail, list)"},
    {"--errors", NULL, "only calls that failed (tail, list)"},
    SINCE_FLAG,
    UNTIL_FLAG,
    UTC_FLAG,
    {"--limit", "N", "print at most this many (list, events; default: 50)"},
    {"--reason", "TEXT", "reason, for people (hold)"},
    {"--tenant", "NAME",
     "tenant of the session or user (hold; default: default), or only this "
     "tenant (holds, stats)"},
    {"--all", NULL, "also holds that were released (holds)"},
    DATA_FLAG,
    URL_FLAGS,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag tail_flags[] = {
    {"-n", "N", "number of calls to begin with (default: 20)"},
    {"-f", NULL, "go on with new calls until interrupted; this is the default"},
    {"--session", "ID", "only calls of this session, by its row id"},
    {"--server", "NAME", "only calls of this server"},
    {"--tool", "NAME", "only calls of this tool"},
    {"--user", "NAME", "only calls of this user or key, by its name or id"},
    {"--errors", NULL, "only calls that failed"},
    SINCE_FLAG,
    UNTIL_FLAG,
    UTC_FLAG,
    DATA_FLAG,
    URL_FLAGS,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag stats_flags[] = {
    {"--by", "WORD",
     "server, tool, client, user, tenant, era, carrier or outcome (default: server)"},
    {"--bucket", "WORD", "length of a bucket: 5m, 1h or 1d (default: by the length of the time)"},
    {"--since", "TIME",
     "only calls since then: 30m, 2d, 2026-11-17, \"2026-11-17 14:00\", today or yesterday "
     "(default: 24 hours before --until)"},
    {"--until", "TIME", "only calls before then, written as for --since (default: now)"},
    UTC_FLAG,
    {"--limit", "N", "print at most this many rows, those with the most calls (default: 50)"},
    {"--tenant", "NAME", "only calls of this tenant"},
    DATA_FLAG,
    URL_FLAGS,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag key_flags[] = {
    {"--tenant", "NAME",
     "tenant of the key (create; default: default), or look only in this tenant (list, revoke)"},
    {"--name", "TEXT", "name of the key for people (create)"},
    {"--role", "ROLE", "admin, member, auditor or service (create; default: member)"},
    {"--user", "NAME", "user that the key acts for (create; default: none, it acts for itself)"},
    {"--server", "NAME",
     "only this server; may be repeated; * at the end stands for any characters (create; default: "
     "all servers)"},
    {"--tool", "NAME",
     "only this tool, as server__tool; may be repeated, with * as above; without --server the key "
     "is limited to the servers of these tools (create)"},
    {"--folder", "NAME",
     "only this folder of documents; may be repeated, with * as above (create)"},
    {"--review", NULL, "allow the key to accept and reject suggestions (create)"},
    {"--read-only", NULL, "forbid the key to change documents (create)"},
    {"--limit", "NAME=LIMIT",
     "limit of the key: requests=600/m, bytes=50MiB/m, calls=8 or children=4; may be repeated "
     "(create; default: limits.key of the configuration)"},
    {"--expires", "DURATION",
     "time after which the key expires, such as 12h or 90d (create; default: never)"},
    {"--new-file", "FILE", "file with the new master key (rotate-master; default: a random key)"},
    {"--reseal", NULL,
     "also make new keys for the tenants and seal all stored credentials again (rotate-master)"},
    UTC_FLAG,
    DATA_FLAG,
    URL_FLAGS,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag templates_flags[] = {
    {"--file", "FILE",
     "file with the template as JSON; - is standard input (set; default: standard input)"},
    {"--tenant", "NAME", "tenant of the template (default: default, or that of the key)"},
    UTC_FLAG,
    DATA_FLAG,
    URL_FLAGS,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag secret_flags[] = {
    {"--value-file", "FILE",
     "file with the value; - is standard input; a newline at the end is left out (set; default: "
     "ask "
     "on the terminal)"},
    DATA_FLAG,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag user_flags[] = {
    {"--tenant", "NAME", "tenant of the user (default: default; list: all)"},
    {"--role", "ROLE", "admin, member, auditor or service (create; default: member)"},
    {"--password-file", "FILE",
     "file whose first line is the password, or - for standard input (create, passwd; default: ask "
     "on the terminal)"},
    {"--revoke", "ID", "end the sign-in with this id; all ends every one of them (sessions)"},
    {"--reason", "TEXT", "reason, for people; it stays on record (erase)"},
    {"--dry-run", NULL, "only show what there is of the person (erase)"},
    {"--yes", NULL, "do not ask (erase)"},
    UTC_FLAG,
    DATA_FLAG,
    URL_FLAGS,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag servers_flags[] = {
    {"-n", "N", "number of lines to begin with (logs; default: 50, at most 200)"},
    {"-f", NULL, "print new lines as they come, until interrupted (logs)"},
    {"--all", NULL, "approve every tool that differs from its approved definition (approve)"},
    {"--digest", "HEX",
     "approve only if the tool still has this digest, as printed by diff (approve)"},
    CONFIG_FLAG,
    DATA_FLAG,
    URL_FLAGS,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag sessions_flags[] = {
    {"--status", "LIST",
     "only sessions with this status: active, idle, expired, terminated, several with commas, or "
     "all (list, watch; default: active,idle)"},
    {"--client", "NAME",
     "only sessions of this client, by its name or type (list, watch); the key that gets the "
     "share, "
     "by its name or id (share)"},
    {"--server", "NAME", "only sessions that have used this server (list, watch)"},
    {"--user", "NAME",
     "only sessions of this user or key, by its name or id (list, watch); the user who gets the "
     "share (share; default: whoever has the code)"},
    {"--may", "WHAT", "read, use or hand_over (share; default: use)"},
    {"--expires", "TIME",
     "end of the code (share; default: 10m), or of the access of a user or key (default: with the "
     "session)"},
    {"--limit", "N",
     "print at most this many, the newest (list, watch; default: 50; watch on a terminal: its "
     "lines)"},
    {"-n", "N", "number of calls to print (show; default: 10)"},
    {"--reason", "TEXT", "reason to record (end; default: ended by an administrator)"},
    {"--against", "SERVER", "send every call to this server (replay; default: each to its own)"},
    {"--diff", NULL, "print the two values of each difference (replay)"},
    {"--writes", NULL,
     "also send calls of tools that are not annotated as read-only; asks first (replay)"},
    {"--ignore", "PATH",
     "a place in results that does not count, such as /content/0/text/time, with * for any key; "
     "may be given several times (replay)"},
    {"--only", "PATTERN",
     "only calls of these tools, as server__tool with *; may be given several times (replay)"},
    {"--stop", NULL, "end after the first call that is neither same nor skipped (replay)"},
    {"--serve", NULL,
     "send nothing: answer as the recorded servers did, as MCP servers of their own, until Ctrl-C; "
     "ID may be an exported file (replay)"},
    {"--listen", "ADDR",
     "address of these servers (replay --serve; default: 127.0.0.1:0, a free port)"},
    {"--yes", NULL, "do not ask (end, replay)"},
    {"--tenant", "NAME", "tenant of the sessions (default: default; with --url that of the key)"},
    {"--format", "NAME",
     "jsonl, md or csv (export; default: by the end of the name in -o, else jsonl)"},
    {"-o", "FILE", "write into FILE, whole or not at all (export; default: standard output)"},
    {"--since", "TIME",
     "all sessions that were used since then: 30m, 2d, 2026-11-17, \"2026-11-17 14:00\", today or "
     "yesterday (export, instead of ID)"},
    {"--until", "TIME", "of these, the sessions that began before then (export)"},
    {"--key", "KEY",
     "public key that must have signed the file: \"key\" in the first line of an export (import)"},
    {"--as-recorded", NULL,
     "keep secrets in the bodies of a complete record; for administrators (import)"},
    {"--again", NULL, "make a further session if the file was imported before (import)"},
    UTC_FLAG,
    DATA_FLAG,
    URL_FLAGS,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};
static const struct cli_flag db_flags[] = {
    {"--dry-run", NULL, "print the SQL that would run, and change nothing"},
    {"--to", "N", "schema to go back to (rollback; default: the one before)"},
    {"--yes", NULL, "confirm that going back deletes data (rollback)"},
    DATA_FLAG,
    {"--database-url", "URL",
     "PostgreSQL database (default: DATABASE_URL, else the data directory)"},
    JSON_FLAG,
    END,
};

static const struct cli_flag doctor_flags[] = {
    {"--bundle", "FILE",
     "also write the findings, the configuration and logs to FILE (.tar.gz), "
     "without secrets"},
    {"--no-trial", NULL, "do not start the servers for a trial of both protocol eras"},
    {"--keys-backed-up", NULL, "record that the key files were backed up now, and do nothing else"},
    CONFIG_FLAG,
    DATA_FLAG,
    JSON_FLAG,
    QUIET_FLAG,
    END,
};

static const struct cli_command own[] = {
    {
        .name = "up",
        .group = "Start",
        .usage = "[--config FILE] [--listen HOST:PORT] [--data DIR]",
        .summary = "Serve MCP until stopped.",
        .examples = {"holdfast up", "holdfast up --config ./holdfast.json --listen 127.0.0.1:8080"},
        .flags = up_flags,
        .run = cmd_up,
    },
    {
        .name = "start",
        .group = "Start",
        .usage = "[--config FILE] [--listen HOST:PORT] [--data DIR]",
        .summary = "Start Holdfast in the background, unless it runs, and wait until it is ready.",
        .examples = {"holdfast start", "holdfast start --config ./holdfast.json"},
        .flags = up_flags,
        .run = cmd_start,
    },
    {
        .name = "stop",
        .group = "Start",
        .usage = "[--data DIR]",
        .summary = "Stop the Holdfast of the data directory, after the calls under way.",
        .examples = {"holdfast stop", "holdfast stop --data ./data"},
        .flags = stop_flags,
        .run = cmd_stop,
    },
    {
        .name = "status",
        .group = "Start",
        .usage = "[--data DIR] [--json]",
        .summary = "Show whether Holdfast runs, its address, its servers and its database.",
        .examples = {"holdfast status", "holdfast status --json"},
        .flags = status_flags,
        .run = cmd_status,
    },
    {
        .name = "stdio",
        .group = "Start",
        .usage =
            "[--server NAME | --profile NAME | --search] [--start] [--config FILE] [--data DIR]",
        .summary = "Serve MCP on standard input and output, for clients that start their servers.",
        .examples = {"holdfast stdio --server files", "holdfast stdio --search"},
        .flags = stdio_flags,
        .run = cmd_stdio,
    },
    {
        .name = "add",
        .group = "Connect",
        .usage = "NAME [-e NAME=VALUE] [-H 'NAME: VALUE'] [-t http|sse] (URL | -- COMMAND "
                 "[ARGUMENTS]), or JSON or TOML on standard input",
        .summary = "Connect to a server, and add it to the configuration file.",
        .examples = {"holdfast add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
                     "holdfast add tickets https://tickets.example/mcp -H 'Authorization: Bearer "
                     "${TICKETS_TOKEN}'"},
        .flags = add_flags,
        .run = cmd_add,
    },
    {
        .name = "remove",
        .group = "Connect",
        .usage = "NAME [--config FILE]",
        .summary = "Take a server out of the configuration file.",
        .examples = {"holdfast remove files", "holdfast remove files --config ./holdfast.json"},
        .flags = remove_flags,
        .run = cmd_remove,
    },
    {
        .name = "config",
        .group = "Manage",
        .usage = "check|show [--config FILE]",
        .summary = "Check the configuration, or print the values in effect.",
        .examples = {"holdfast config check", "holdfast config show --config ./holdfast.json"},
        .flags = config_flags,
        .run = cmd_config,
    },
    {
        .name = "import",
        .group = "Connect",
        .usage = "[CLIENT...] [flags]",
        .summary = "Take the servers of MCP clients over into the configuration.",
        .examples = {"holdfast import", "holdfast import cursor --dry-run"},
        .flags = import_flags,
        .run = cmd_import,
    },
    {
        .name = "connect",
        .group = "Connect",
        .usage = "claude-code|claude-desktop|cursor|vscode|codex|gemini [flags]",
        .summary = "Write Holdfast into the configuration of an MCP client.",
        .examples = {"holdfast connect claude-code",
                     "holdfast connect cursor --url https://mcp.example"},
        .flags = connect_flags,
        .run = cmd_connect,
    },
    {
        .name = "disconnect",
        .group = "Connect",
        .usage = "claude-code|claude-desktop|cursor|vscode|codex|gemini [flags]",
        .summary = "Take Holdfast out of the configuration of an MCP client.",
        .examples = {"holdfast disconnect claude-code", "holdfast disconnect codex --yes"},
        .flags = disconnect_flags,
        .run = cmd_disconnect,
    },
    {
        .name = "audit",
        .group = "Look",
        .usage = "tail|list|events|show ID|verify|stats | hold (session | user) NAME | holds | "
                 "release ID "
                 "[flags]",
        .summary = "Read the audit record of tool calls and of changes to tools, verify that it is "
                   "complete, show its size, and hold sessions and users, so that nothing of them "
                   "is removed.",
        .examples = {"holdfast audit list --since 1h --outcome tool_error",
                     "holdfast audit events --server files"},
        .flags = audit_flags,
        .run = cmd_audit,
    },
    {
        .name = "tail",
        .group = "Look",
        .usage = "[-n N] [--user NAME] [--server NAME] [--errors] [flags]",
        .summary = "Print calls as they are made: when, who, client, outcome, tool and arguments.",
        .examples = {"holdfast tail", "holdfast tail --errors --since today"},
        .flags = tail_flags,
        .run = cmd_tail,
    },
    {
        .name = "stats",
        .group = "Look",
        .usage = "[--by WORD] [--since TIME] [--until TIME] [--bucket 5m|1h|1d] [flags]",
        .summary = "Count calls: errors, durations, bytes, tokens and sessions, of the last 24 "
                   "hours by server unless told otherwise.",
        .examples = {"holdfast stats", "holdfast stats --by tool --since 7d"},
        .flags = stats_flags,
        .run = cmd_stats,
    },
    {
        .name = "key",
        .group = "Manage",
        .usage = "create [flags] | list [--tenant NAME] | revoke NAME|ID | rotate-master [flags] "
                 "| rotate-token",
        .summary =
            "Create, list and revoke the keys of clients; rotate the master key and the token key.",
        .examples = {"holdfast key create --name laptop --server files --expires 90d",
                     "holdfast key revoke laptop"},
        .flags = key_flags,
        .run = cmd_key,
    },
    {
        .name = "secret",
        .group = "Manage",
        .usage = "set NAME [--value-file FILE|-] | list | remove NAME",
        .summary = "Set, list and remove the secrets that the configuration names as "
                   "${secret:NAME}.",
        .examples = {"holdfast secret set GITHUB_TOKEN",
                     "holdfast secret set GITHUB_TOKEN --value-file token.txt"},
        .flags = secret_flags,
        .run = cmd_secret,
    },
    {
        .name = "templates",
        .group = "Manage",
        .usage =
            "list | show NAME[@VERSION] | versions NAME | set NAME [--file FILE] | remove NAME",
        .summary = "List, show, set and remove templates: named set-ups of new sessions.",
        .examples = {"holdfast templates set support --file support.json",
                     "holdfast templates show support@1"},
        .flags = templates_flags,
        .run = cmd_templates,
    },
    {
        .name = "user",
        .group = "Manage",
        .usage = "create NAME | list | passwd NAME | disable NAME | enable NAME | sessions NAME "
                 "[--revoke ID] | erase NAME",
        .summary = "Create, list, disable and enable users with passwords; list and end their "
                   "sign-ins; erase "
                   "a person from the record.",
        .examples = {"holdfast user create ada --role admin",
                     "holdfast user sessions ada --revoke all"},
        .flags = user_flags,
        .run = cmd_user,
    },
    {
        .name = "servers",
        .group = "Look",
        .usage = "list | show NAME | diff NAME [TOOL] | approve NAME TOOL|--all | restart NAME | "
                 "logs NAME [-f] [-n N]",
        .summary =
            "List the servers, show and approve changes of their tools, restart one, read its "
            "stderr.",
        .examples = {"holdfast servers diff files", "holdfast servers approve files read_file"},
        .flags = servers_flags,
        .run = cmd_servers,
    },
    {
        .name = "sessions",
        .group = "Look",
        .usage = "list | show ID | watch | end ID [--reason TEXT] [--yes] | export (ID | --since "
                 "TIME) [--format jsonl|md|csv] [-o FILE] | import FILE [--key KEY] | replay ID "
                 "[--against SERVER] [--diff | --serve] | share ID [--user NAME] [--may WHAT] | "
                 "shares ID | unshare ID SHARE | fork ID",
        .summary =
            "List, show, watch and end the sessions of clients. Export and import them, send their "
            "recorded calls again or answer with them, share one, or copy what it remembers.",
        .examples = {"holdfast sessions share ses_Heefe51k",
                     "holdfast sessions replay ses_Heefe51k --diff"},
        .flags = sessions_flags,
        .run = cmd_sessions,
    },
    {
        .name = "db",
        .group = "Manage",
        .usage = "migrate [--dry-run] | status | rollback [--to N] --yes | compact",
        .summary =
            "Migrate the database to this version's schema, show its schema, roll it back, or "
            "write its file anew without unused space.",
        .examples = {"holdfast db status", "holdfast db migrate --dry-run"},
        .flags = db_flags,
        .run = cmd_db,
    },
    {
        .name = "doctor",
        .group = "Look",
        .usage =
            "[--bundle FILE] [--no-trial] [--keys-backed-up] [--config FILE] [--data DIR] [--json]",
        .summary = "Check the machine, the store, the keys, the servers and the clients, and say "
                   "what to repair.",
        .examples = {"holdfast doctor", "holdfast doctor --bundle report.tar.gz"},
        .flags = doctor_flags,
        .run = cmd_doctor,
    },
    {
        .name = "version",
        .group = "Help",
        .usage = "[--json]",
        .summary = "Print the version.",
        .examples = {"holdfast version", "holdfast version --json"},
        .flags = json_flags,
        .run = cmd_version,
    },
    {
        .name = "help",
        .group = "Help",
        .usage = "[COMMAND | ERROR-CODE | exit-codes | environment | openapi]",
        .summary =
            "Explain a command, an error code, exit codes, the environment or the REST interface.",
        .examples = {"holdfast help up", "holdfast help session_not_found"},
        .flags = help_flags,
        .run = cmd_help,
    },
};

/* The rows above, with those of cli_add() between them. */
static const struct cli_command *all[COMMANDS_MAX];
static size_t n_all;

static void fill(void)
{
    static_assert(countof(own) <= COMMANDS_MAX, "every own command has a place");
    while (n_all < countof(own)) {
        all[n_all] = &own[n_all];
        n_all++;
    }
}

void cli_add(const struct cli_command *rows, const char *after)
{
    size_t at = 0, n = 0;

    fill();
    if (cli_command_find(rows->name) == rows)
        return;
    while (at < n_all && strcmp(all[at]->name, after) != 0)
        at++;
    while (rows[n].name)
        n++;
    assert(at < n_all && n_all + n <= COMMANDS_MAX);
    at++;
    memmove(&all[at + n], &all[at], (n_all - at) * sizeof(all[0]));
    for (size_t i = 0; i < n; i++)
        all[at + i] = &rows[i];
    n_all += n;
}

const struct cli_command *cli_command_at(size_t i)
{
    fill();
    return i < n_all ? all[i] : NULL;
}

#define FLAG_COLUMN 26
#define NAME_COLUMN 13

/* A usage with several verbs breaks only between them. */
void cli_help_usage(const struct cli_command *c, struct buf *out)
{
    struct str rest = str_of(c->usage);
    size_t indent = strlen("usage: holdfast ") + strlen(c->name) + 1, column = indent;

    buf_addf(out, "usage: holdfast %s ", c->name);
    if (!strstr(c->usage, " | ")) {
        text_wrap(out, column, rest, indent);
        return;
    }
    for (bool is_first = true; rest.n; is_first = false) {
        const char *end = memmem(rest.p, rest.n, " | ", 3);
        struct str verb = end ? str_n(rest.p, (size_t)(end - rest.p)) : rest;
        rest = end ? str_n(end + 3, rest.n - verb.n - 3) : STR("");
        if (!is_first && column + 3 + verb.n > 77) {
            buf_addf(out, " |\n%*s", (int)indent, "");
            column = indent;
        } else if (!is_first) {
            buf_addz(out, " | ");
            column += 3;
        }
        buf_addstr(out, verb);
        column += verb.n;
    }
    buf_addc(out, '\n');
}

static void add_flag(const struct cli_flag *f, struct buf *out)
{
    size_t begin = out->n;

    buf_addf(out, "  %-12s %-10s ", f->name, f->value ? f->value : "");
    size_t column = out->n - begin;
    if (column > FLAG_COLUMN) {
        buf_addf(out, "\n%*s", FLAG_COLUMN, "");
        column = FLAG_COLUMN;
    }
    text_wrap(out, column, str_of(f->help), FLAG_COLUMN);
}

void cli_help_command(const struct cli_command *c, struct buf *out)
{
    text_wrap(out, 0, str_of(c->summary), 0);
    buf_addc(out, '\n');
    cli_help_usage(c, out);
    if (c->flags && c->flags->name)
        buf_addz(out, "\nflags:\n");
    for (const struct cli_flag *f = c->flags; f && f->name; f++)
        add_flag(f, out);
    buf_addz(out, "\nexamples:\n");
    for (size_t i = 0; i < countof(c->examples); i++)
        if (c->examples[i])
            buf_addf(out, "  %s\n", c->examples[i]);
}

void cli_help_all(struct buf *out)
{
    static const char *const groups[] = {"Start", "Connect", "Look", "Decide", "Manage", "Help"};
    const struct cli_command *c;

    buf_addz(out, "Holdfast: the session layer for MCP.\n\nusage: holdfast COMMAND [flags]\n");
    for (size_t g = 0; g < countof(groups); g++) {
        buf_addf(out, "\n%s:\n", groups[g]);
        for (size_t i = 0; (c = cli_command_at(i)); i++)
            if (strcmp(c->group, groups[g]) == 0) {
                buf_addf(out, "  %-10s ", c->name);
                text_wrap(out, NAME_COLUMN, str_of(c->summary), NAME_COLUMN);
            }
    }
    buf_addz(out, "\nFor more, run holdfast help COMMAND, holdfast help exit-codes or holdfast\n"
                  "help environment.\n");
}

void cli_help_markdown(struct buf *out)
{
    const struct cli_command *c;

    buf_addz(out, "# Commands\n\nPrinted by `holdfast help --markdown cli`.\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        buf_addf(out, "\n## holdfast %s\n\n%s\n\n```\nholdfast %s %s\n```\n", c->name, c->summary,
                 c->name, c->usage);
        if (c->flags && c->flags->name)
            buf_addz(out, "\n| flag | value | meaning |\n|---|---|---|\n");
        for (const struct cli_flag *f = c->flags; f && f->name; f++)
            buf_addf(out, "| `%s` | %s | %s |\n", f->name, f->value ? f->value : "", f->help);
        buf_addf(out, "\n```\n%s\n%s\n```\n", c->examples[0], c->examples[1]);
    }
}
