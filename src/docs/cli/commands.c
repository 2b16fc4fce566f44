/* SPDX-License-Identifier: Apache-2.0 */
/* The row of the command "docs". */
#include "docs/cli/commands.h"

static const struct cli_flag docs_flags[] = {
    {"--revision", "N", "which one of its history (show, restore)"},
    {"--accepted", NULL, "as it reads with everything accepted (show)"},
    {"--all", NULL, "every change of the document; comments stay (accept, reject)"},
    {"--text", "TEXT", "write this instead of what is suggested (accept, one)"},
    {"--reason", "TEXT", "why, for the history (accept, reject, restore, move)"},
    {"--limit", "N", "at most this many (log; default: 50)"},
    {"--data", "DIR", "data directory"},
    {"--url", "URL", "ask a Holdfast that listens there, with the key in HOLDFAST_KEY"},
    {"--json", NULL, "print JSON (one object a line for lists)"},
    {NULL, NULL, NULL},
};

const struct cli_command docs_commands[] = {
    {
        .name = "docs",
        .group = "Look",
        .usage = "list [FOLDER] | log PATH | show PATH | restore PATH --revision N | move PATH "
                 "NEW-PATH | suggestions [FOLDER|PATH] | accept PATH ID|--all | reject PATH "
                 "ID|--all | review "
                 "[FOLDER|PATH]",
        .summary = "Documents, their history, and what agents suggest: read it, and decide.",
        .examples = {"holdfast docs review Lens",
                     "holdfast docs accept Lens/plan.md --all --reason \"reads better\""},
        .flags = docs_flags,
        .run = cmd_docs,
    },
    {.name = NULL},
};
