/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a relay needs to continue with another gateway: the requests that wait for an
 * answer, and the client's initialize.
 *
 * Messages are scanned as their bytes pass; no byte is held back.  The scanner reads only the
 * members "id" and "method" of each JSON-RPC message, also inside a batch. */
#ifndef HOLDFAST_CLI_RELAY_TALK_H
#define HOLDFAST_CLI_RELAY_TALK_H

#include "base/buf.h"

#define RELAY_ID_MAX 1024                 /* bytes of an id that is remembered */
#define RELAY_WAITING_MAX 2048            /* requests; twice what a gateway takes at once */
#define RELAY_INITIALIZE_MAX (512 * 1024) /* bytes of an initialize that can be sent again */

/* The position of the scanner in a line, for one direction. */
struct relay_scan {
    unsigned depth; /* open objects and arrays */
    unsigned level; /* depth of the members of a message: 1, or 2 in a batch */
    bool in_string, is_escaped;
    bool is_value;    /* after the colon of a member of a message */
    bool is_mid_line; /* a line has begun and not ended */
    char key[8];
    size_t n_key;
    char id[RELAY_ID_MAX];
    size_t n_id; /* more than RELAY_ID_MAX: too long to be remembered */
    char method[32];
    size_t n_method;
};

struct relay_talk {
    struct relay_scan up, down;
    struct buf line;       /* the line being sent, as far as it fits */
    struct buf initialize; /* the client's last initialize, with its LF; empty: none */
    struct buf initialize_id;
    bool is_initialized; /* notifications/initialized has followed that initialize */
    char **waiting;      /* ids of requests without an answer; room for RELAY_WAITING_MAX */
    size_t n_waiting;
};
void relay_talk_init(struct relay_talk *t);
void relay_talk_release(struct relay_talk *t);
void relay_talk_sent(struct relay_talk *t, struct str bytes);
void relay_talk_received(struct relay_talk *t, struct str bytes);
/* Whether the request with this id waits for its answer. */
bool relay_talk_waits_for(const struct relay_talk *t, struct str id);
/* The gateway is gone: adds to `out` the end of a line that was cut, and an error line for every
 * waiting request except initialize.  Returns the number of errors. */
size_t relay_talk_lose(struct relay_talk *t, struct buf *out);
/* Whether this line answers the request with this id. */
bool relay_line_answers(struct str line, struct str id);

#endif
