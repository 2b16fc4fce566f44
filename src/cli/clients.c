/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/clients.h"

#include "base/buf.h"

#include <stdlib.h>

const struct client clients[] = {
    {.name = "claude-code",
     .title = "Claude Code",
     .env = "CLAUDE_CONFIG_DIR",
     .home = "",
     .file = ".claude.json",
     .key = "mcpServers",
     .project_file = ".mcp.json",
     .projects_key = "projects",
     .url_key = "url",
     .auth = "Bearer ${HOLDFAST_KEY}",
     .url_type = "http",
     .program = "claude",
     .add = {"mcp", "add", "-s", "user"},
     .add_then = {"--"},
     .check = {"mcp", "get"},
     .check_takes_name = true,
     .says_works = "Connected",
     .says_failed = "Failed to connect",
     .by_hand = "run `claude mcp list`, or /mcp in a session; a running session has to be started "
                "again"},
    {.name = "claude-desktop",
     .title = "Claude Desktop",
     .is_xdg = true,
     .home = "Claude",
     .file = "claude_desktop_config.json",
     .key = "mcpServers",
     .by_hand = "quit Claude Desktop and start it again; Settings > Developer shows the server as "
                "running"},
    {.name = "cursor",
     .title = "Cursor",
     .home = ".cursor",
     .file = "mcp.json",
     .key = "mcpServers",
     .project_file = ".cursor/mcp.json",
     .url_key = "url",
     .auth = "Bearer ${env:HOLDFAST_KEY}",
     .by_hand = "open Cursor Settings > MCP; the server has a green dot"},
    {.name = "vscode",
     .title = "VS Code",
     .is_xdg = true,
     .home = "Code/User",
     .file = "mcp.json",
     .key = "servers",
     .project_file = ".vscode/mcp.json",
     .url_key = "url",
     .auth = "Bearer ${env:HOLDFAST_KEY}",
     .url_type = "http",
     .by_hand = "run \"MCP: List Servers\" from the Command Palette of VS Code"},
    {.name = "codex",
     .title = "Codex",
     .env = "CODEX_HOME",
     .home = ".codex",
     .file = "config.toml",
     .is_toml = true,
     .key = "mcp_servers",
     .url_key = "url",
     .auth_variable = "bearer_token_env_var",
     .program = "codex",
     .add = {"mcp", "add"},
     .add_then = {"--"},
     .check = {"mcp", "get"},
     .check_takes_name = true,
     .says_listed = "enabled: true",
     .by_hand = "start `codex` and enter /mcp"},
    {.name = "gemini",
     .title = "Gemini CLI",
     .has_bare_variables = true,
     .home = ".gemini",
     .file = "settings.json",
     .key = "mcpServers",
     .project_file = ".gemini/settings.json",
     .url_key = "httpUrl",
     .auth = "Bearer ${HOLDFAST_KEY}",
     .program = "gemini",
     .add = {"mcp", "add", "-s", "user"},
     .check = {"mcp", "list"},
     .says_works = "- Connected",
     .says_failed = "Disconnected",
     .by_hand = "run `gemini mcp list` in a folder that Gemini CLI trusts, or /mcp in a session"},
    {0},
};

const struct client *client_find(const char *name)
{
    for (const struct client *c = clients; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static struct str absolute_env(const char *name)
{
    struct str s = name ? str_of(getenv(name)) : STR_NONE;

    return s.n > 0 && s.p[0] == '/' ? s : STR_NONE;
}

static bool home_dir(struct str *ret, struct error *err)
{
    *ret = absolute_env("HOME");
    return ret->p || error_set(err, ERR_CONFIG,
                               "HOME is not set to a directory, so the files of clients cannot be "
                               "found; set it");
}

bool client_file(const struct client *c, struct arena *mem, struct str *ret, struct error *err)
{
    struct str base = absolute_env(c->env), home = STR_NONE;

    if (base.p) {
        *ret = arena_printf(mem, "%.*s/%s", STR_ARG(base), c->file);
        return true;
    }
    if (!home_dir(&home, err))
        return false;
    base = c->is_xdg ? absolute_env("XDG_CONFIG_HOME") : home;
    if (!base.p)
        base = arena_printf(mem, "%.*s/.config", STR_ARG(home));
    *ret = arena_printf(mem, "%.*s/%s%s%s", STR_ARG(base), c->home, *c->home ? "/" : "", c->file);
    return true;
}

/* An entry's name as a part of a file's name: other bytes than letters, digits, - and _ as %XX. */
static struct str file_part(struct str name, struct arena *mem)
{
    struct str part;
    struct buf out;

    buf_init(&out, SIZE_MAX);
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
            buf_addc(&out, c);
        else
            buf_addf(&out, "%%%02X", (unsigned char)c);
    }
    part = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return part;
}

bool client_record(const struct client *c, struct str entry, const char *suffix, struct arena *mem,
                   struct str *ret, struct error *err)
{
    struct str base = absolute_env("XDG_STATE_HOME"), home = STR_NONE;

    if (!base.p) {
        if (!home_dir(&home, err))
            return false;
        base = arena_printf(mem, "%.*s/.local/state", STR_ARG(home));
    }
    *ret = arena_printf(mem, "%.*s/holdfast/connect/%s.%.*s.%s", STR_ARG(base), c->name,
                        STR_ARG(file_part(entry, mem)), suffix);
    return true;
}

struct str client_names(struct arena *mem)
{
    struct str names = STR("");

    for (const struct client *c = clients; c->name; c++)
        names = arena_printf(mem, "%.*s%s%s", STR_ARG(names),
                             c == clients ? ""
                             : c[1].name  ? ", "
                                          : " or ",
                             c->name);
    return names;
}
