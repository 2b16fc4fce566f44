/* SPDX-License-Identifier: Apache-2.0 */
/* Which MCP clients of this user are configured, and whether they name Holdfast. */
#include "cli/doctor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *name, *connect, *file; /* below HOME */
} clients[] = {
    {"Claude Code", "claude-code", ".claude.json"},
    {"Claude Desktop", "claude-desktop", ".config/Claude/claude_desktop_config.json"},
    {"Cursor", "cursor", ".cursor/mcp.json"},
    {"VS Code", "vscode", ".config/Code/User/mcp.json"},
    {"Codex", "codex", ".codex/config.toml"},
    {"Gemini CLI", "gemini", ".gemini/settings.json"},
};
#define CLIENT_FILE_MAX (8u * 1024 * 1024)

/* false: the file does not exist. */
static bool read_file(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = 1;

    if (fd < 0)
        return false;
    while (n > 0 && out->n < CLIENT_FILE_MAX) {
        n = read(fd, buf_room(out, 65536), 65536);
        if (n > 0)
            buf_grown(out, (size_t)n);
    }
    close(fd);
    return true;
}

/* By the address that we listen on, or the command that connects by stdio. */
static bool names_us(const struct doctor *d, struct str text)
{
    struct str listen = d->config ? d->config->listen : STR("127.0.0.1:4653");
    struct str url = d->config ? d->config->public_url : STR_NONE;

    return memmem(text.p, text.n, listen.p, listen.n) || memmem(text.p, text.n, "holdfast", 8) ||
           (url.n && memmem(text.p, text.n, url.p, url.n));
}

void doctor_clients(struct doctor *d)
{
    const char *home = getenv("HOME");
    unsigned found = 0;

    for (size_t i = 0; home && i < countof(clients); i++) {
        struct str path = arena_printf(d->mem, "%s/%s", home, clients[i].file);
        struct buf text;
        buf_init(&text, CLIENT_FILE_MAX + 65536);
        if (read_file(path.p, &text)) {
            found++;
            if (text.n && names_us(d, buf_str(&text)))
                doctor_say(d, DOCTOR_OK, NULL, "%s names Holdfast (%.*s)", clients[i].name,
                           STR_ARG(path));
            else
                doctor_say(
                    d, DOCTOR_WARNING,
                    arena_printf(d->mem, "connect it: holdfast connect %s", clients[i].connect).p,
                    "%s does not name Holdfast (%.*s)", clients[i].name, STR_ARG(path));
        }
        buf_release(&text);
    }
    if (!found)
        doctor_say(d, DOCTOR_OK, NULL, "no configuration file of a known client is in %s",
                   home ? home : "HOME, which is not set");
}
