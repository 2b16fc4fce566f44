/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings that this Holdfast serves beside its servers, each for the owner who asked for it and
 * for a limited time (mock.h says how they answer).  They live in the memory of this node.  Loop
 * thread only. */
#ifndef HOLDFAST_REPLAY_SERVE_H
#define HOLDFAST_REPLAY_SERVE_H

#include "base/principal.h"
#include "exchange/services.h"
#include "replay/mock_server.h"
#include "replay/replay.h"

#define SERVED_PER_TENANT 4 /* at once, on this node */
#define SERVED_PER_NODE 8
#define SERVED_BYTES ((size_t)32 << 20) /* of the recorded calls of each */
#define SERVED_TTL_MS (INT64_C(3600) * 1000)
#define SERVED_TTL_MAX_MS (INT64_C(86400) * 1000)

struct served {
    struct list node;
    struct arena *mem;
    struct replays *home;
    struct principal who; /* for whom */
    struct str origin;    /* id of the row of the recorded session */
    struct mock *mock;
    struct mock_servers *servers;
    struct upstream **upstreams; /* of each server */
    struct str *names;           /* … and its name in this Holdfast: /mcp/{name} */
    struct loop_timer *expiry;
    int64_t expires_ms; /* wall clock */
    int64_t counts[MOCK_RULES];
    size_t n_up; /* upstreams that are not freed yet */
};

/* A place among those that are served at once, from before the recording is read: it counts like a
 * served one.  Zeroed: none is taken. */
struct served_room {
    struct list node;
    struct str tenant;
};
/* Borrows `tenant`.  ERR_LIMIT. */
must_check bool served_take_room(struct replays *home, struct str tenant, struct served_room *room,
                                 struct error *err);
void served_give_room(struct served_room *room); /* also when none is taken */
/* NULL: this session is not served for this caller. */
struct served *served_find(const struct replays *home, const struct principal *who,
                           struct str origin);
/* Takes the mock, which is complete.  Every definition that a server here has now is given to its
 * tool, as far as the caller may see it. */
struct served *served_begin(struct replays *home, const struct principal *who, struct str origin,
                            struct mock *mock, int64_t ttl_ms);
/* Calls under way fail, and the memory goes when they are over. */
void served_end(struct served *s);

#endif
