/* SPDX-License-Identifier: Apache-2.0 */
/* The row of the command "docs". */
#include "docs/cli/commands.h"

static const struct cli_flag docs_flags[] = {
    {"--revision", "N",
     "revision to use, as listed by log (show, restore; show's default: the current text)"},
    {"--accepted", NULL, "print the text with all suggestions accepted (show)"},
    {"--all", NULL, "decide all suggestions of the document; comments stay (accept, reject)"},
    {"--text", "TEXT", "write this text instead of the suggested one (accept of one suggestion)"},
    {"--reason", "TEXT", "reason to record in the history (accept, reject, restore, move)"},
    {"--limit", "N", "print at most this many (log; default: 50)"},
    {"--agent", "WORD",
     "what agents may do: suggest, comment, read or write (add; default: suggest)"},
    {"--config", "FILE", "configuration file (add; default: ~/.config/holdfast/holdfast.json)"},
    {"--data", "DIR", "data directory (default: ~/.local/share/holdfast)"},
    {"--url", "URL",
     "ask the Holdfast at this address, such as https://holdfast.example, with the key in "
     "HOLDFAST_KEY (default: the data directory)"},
    {"--ca", "FILE",
     "PEM file of the authorities to trust with --url (default: SSL_CERT_FILE, else the system's)"},
    {"--json", NULL, "print JSON; a list is one object per line"},
    {NULL, NULL, NULL},
};

const struct cli_command docs_commands[] = {
    {
        .name = "docs",
        .group = "Decide",
        .usage = "add NAME PATH | list [FOLDER] | log PATH | show PATH | restore PATH --revision N "
                 "| move PATH "
                 "NEW-PATH | suggestions [FOLDER|PATH] | accept PATH ID|--all | reject PATH "
                 "ID|--all | review "
                 "[FOLDER|PATH]",
        .summary =
            "Read documents and their history, and accept or reject the suggestions of agents.",
        .examples = {"holdfast docs add Notes ~/notes", "holdfast docs review Notes"},
        .flags = docs_flags,
        .run = cmd_docs,
    },
    {.name = NULL},
};
