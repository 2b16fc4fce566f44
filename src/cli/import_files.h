/* SPDX-License-Identifier: Apache-2.0 */
/* The files from which import takes the servers of a client: the user's own, and those of the
 * project in the current directory. */
#ifndef HOLDFAST_CLI_IMPORT_FILES_H
#define HOLDFAST_CLI_IMPORT_FILES_H

#include "cli/clients.h"
#include "config/snippet.h"

struct import_file {
    const struct client *client;
    struct str path;
    struct str
        project; /* absolute path; the servers of this project in the user's file; else absent */
    struct str title; /* for people: "Cursor", "Claude Code, .mcp.json" */
};
/* Those that exist, in the order in which the client prefers them: a project's before the user's.
 * Files and texts are in mem. */
must_check bool import_files_of(const struct client *client, struct arena *mem,
                                struct import_file **ret, size_t *ret_n, struct error *err);
/* A file that is gone or empty has no servers.  ERR_CONFIG, with line and column: it cannot be
 * parsed. */
must_check bool import_file_read(const struct import_file *file, struct arena *mem,
                                 struct snippet_server **ret, size_t *ret_n, struct error *err);

#endif
