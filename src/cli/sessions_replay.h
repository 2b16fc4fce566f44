/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast sessions replay ID: the recorded calls of a session, sent again. */
#ifndef HOLDFAST_CLI_SESSIONS_REPLAY_H
#define HOLDFAST_CLI_SESSIONS_REPLAY_H

#include "cli/cli.h"

struct control;
struct sessions_replay {
    struct cli *cli;
    struct control *control;
    struct str handle; /* the session_id of the recorded session */
    struct str tenant; /* absent: the default one */
    bool json, colour;
};
/* Prints each call that is not the same as it happens, then the summary.  *ret_status: 0 when every
 * call that was sent again gave the same result and at least one was sent; else 1. */
must_check bool sessions_replay(struct sessions_replay *r, int *ret_status, struct error *err);

#endif
