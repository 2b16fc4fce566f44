/* SPDX-License-Identifier: Apache-2.0 */
/* What a relay must know of the messages that pass, to go on with another gateway: which requests
 * wait for an answer, and how the client introduced itself.
 *
 * Messages are read as their bytes pass; nothing is held back.  Only the members "id" and "method"
 * of each JSON-RPC message are looked at, also inside of a batch. */
#ifndef HOLDFAST_CLI_RELAY_TALK_H
#define HOLDFAST_CLI_RELAY_TALK_H

#include "base/buf.h"

#define RELAY_ID_MAX 1024                 /* bytes of an id that is remembered */
#define RELAY_WAITING_MAX 2048            /* requests; twice what a gateway takes at once */
#define RELAY_INITIALIZE_MAX (512 * 1024) /* bytes of an initialize that can be said again */

/* One direction: where in a line it is. */
struct relay_scan {
    unsigned depth; /* open objects and arrays */
    unsigned level; /* depth of the members of a message: 1, or 2 in a batch */
    bool in_string, is_escaped;
    bool is_value;    /* behind the colon of a member of a message */
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
    bool is_initialized; /* … and notifications/initialized followed */
    char **waiting;      /* ids of requests without an answer, RELAY_WAITING_MAX of them */
    size_t n_waiting;
};
void relay_talk_init(struct relay_talk *t);
void relay_talk_release(struct relay_talk *t);
void relay_talk_sent(struct relay_talk *t, struct str bytes);
void relay_talk_received(struct relay_talk *t, struct str bytes);
/* Does this request wait for its answer? */
bool relay_talk_waits_for(const struct relay_talk *t, struct str id);
/* The gateway is gone: adds to `out` what the client has to be told, whole lines: the end of a line
 * that was cut, and an error for every request that waits, but for initialize.  Returns how many.
 */
size_t relay_talk_lose(struct relay_talk *t, struct buf *out);
/* Is this line the answer to that request? */
bool relay_line_answers(struct str line, struct str id);

#endif
