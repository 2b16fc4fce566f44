/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast sessions share|shares|unshare|fork: who else may go on in a session, and copies of it. */
#ifndef HOLDFAST_CLI_SESSIONS_SHARE_H
#define HOLDFAST_CLI_SESSIONS_SHARE_H

#include "cli/cli.h"

struct control;
struct sessions_share {
    const struct cli *cli;
    struct control *control;
    struct str handle; /* the session_id */
    struct str tenant; /* absent: the default one */
    bool json, utc, colour;
    size_t width; /* of the terminal; 0: it is none */
};
/* Prints the code, which is shown only now; nothing on stdout for a named user or client. */
must_check bool sessions_share_make(const struct sessions_share *s, struct error *err);
must_check bool sessions_share_list(const struct sessions_share *s, struct error *err);
/* The share is the last argument: its id, or the beginning of one. */
must_check bool sessions_share_end(const struct sessions_share *s, struct error *err);
/* Prints the session_id of the copy. */
must_check bool sessions_share_fork(const struct sessions_share *s, struct error *err);

#endif
