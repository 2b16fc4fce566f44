/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast sessions replay (ID | FILE) --serve: a Holdfast for the time of the command, whose servers
 * are those of the recording (replay/mock.h). */
#ifndef HOLDFAST_CLI_SESSIONS_SERVE_H
#define HOLDFAST_CLI_SESSIONS_SERVE_H

#include "cli/cli.h"

struct control;
/* Whether the argument of the command names a file: it ends with .jsonl, or has a slash. */
bool sessions_serve_is_file(struct str name);

struct sessions_serve {
    struct cli *cli;
    struct mock *mock; /* the recording; NULL: not read yet */
    char session[320]; /* its session_id */
    bool json, colour;
};
/* Reads the recording from a file, or from the Holdfast that `control` asks. */
must_check bool sessions_serve_file(struct sessions_serve *s, struct error *err);
must_check bool sessions_serve_session(struct sessions_serve *s, struct control *control,
                                       struct str handle, struct str tenant, struct error *err);
/* Serves it until Ctrl-C, and says what was asked for.  This process has one thread and no open
 * store.  *ret_status: 0, or 1 when a call had no recorded answer. */
must_check bool sessions_serve(struct sessions_serve *s, int *ret_status, struct error *err);
void sessions_serve_release(struct sessions_serve *s);

#endif
