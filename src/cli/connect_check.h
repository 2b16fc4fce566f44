/* SPDX-License-Identifier: Apache-2.0 */
/* After connect: asks the client itself whether it reaches Holdfast. */
#ifndef HOLDFAST_CLI_CONNECT_CHECK_H
#define HOLDFAST_CLI_CONNECT_CHECK_H

#include "base/buf.h"
#include "cli/clients.h"

enum connect_state {
    CONNECT_UNCHECKED, /* the client has no command for this, or it is not installed */
    CONNECT_WORKS,     /* the client connected */
    CONNECT_LISTED,    /* the client read the entry; it connects later */
    CONNECT_UNCLEAR,   /* the client said something else, or did not answer in time */
    CONNECT_FAILED,    /* the client tried and failed */
};
extern const char *const connect_states[]; /* "unchecked" and so on, for --json */

struct connect_check {
    enum connect_state state;
    struct str command; /* that was run, for people; absent: none */
    struct str words;   /* the line of the client that decided; absent: none */
};

/* Runs the client's command for the entry `name` and reads its answer: such commands exit 0 even
 * when the connection failed.  Waits up to 45 s, because a client has to start Holdfast and its
 * servers.  The texts are in mem. */
struct connect_check connect_check(const struct client *client, struct str name, struct arena *mem);
/* Lines for people, each with a line end before it: what the client said, and how to look by
 * hand. */
void connect_check_show(const struct client *client, const struct connect_check *check,
                        struct buf *out);

#endif
