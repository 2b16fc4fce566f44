/* SPDX-License-Identifier: Apache-2.0 */
/* Replay: the recorded calls of a session, sent again in their order, and how the results differ.
 *
 *   recording page ──▶ judge.c: can it be sent again? ──▶ run.c: an exchange through the spine, in a
 *   (query lane)          │ no                               session of its own (exchange/outlet.h)
 *                         ▼                                            │ the server's own answer
 *   one line of JSON ◀── line.c ◀── compare.c, on a worker ◀───────────┘
 *
 * The calls take the ordinary way: quotas, scopes, pins and audit hold for the person who replays,
 * and so do that person's credentials.  One call runs at a time.  The client reads one line for each
 * call as it happens; when it leaves, or a stop begins, the replay ends before the next call.
 * Memory: one page of the recording, one exchange and its result.  Loop thread only. */
#ifndef HOLDFAST_REPLAY_REPLAY_H
#define HOLDFAST_REPLAY_REPLAY_H

#include "base/principal.h"
#include "exchange/services.h"
#include "http/server.h"
#include "replay/diff.h"
#include "store/store.h"

#define REPLAYS_PER_TENANT 2 /* at once, on this node */
#define REPLAYS_PER_NODE 8
#define REPLAY_ONLY_MAX 64 /* patterns */

enum replay_stop { REPLAY_STOP_NEVER, REPLAY_STOP_DIFFERENCE };
extern const char *const replay_stop_names[]; /* NULL-terminated */

struct replay_options {
    struct str against;       /* the server that gets every call; absent: each its own */
    bool writes;              /* also tools that are not annotated as read-only */
    enum replay_stop stop_on; /* ends after the first call that is neither same nor skipped */
    struct diff_ignore ignore;
    const struct str *only; /* patterns of server__tool, as recorded; none: every call */
    size_t n_only;
};

struct replays; /* all replays of this process */
struct replays *replays_new(struct services *sv) must_check;
void replays_stop(struct replays *home); /* before lanes_free(); no replay is under way */
void replays_free(struct replays *home); /* NULL is fine */

/* Whether one more may begin.  ERR_LIMIT. */
must_check bool replays_have_room(const struct replays *home, struct str tenant, struct error *err);

struct replay_args {
    struct http_request *http;        /* its stream has begun (http_stream_begin()) */
    const struct principal *who;      /* of the person who replays */
    const struct session_row *origin; /* the recorded session */
    struct str handle, id;            /* of the new session, whose row is committed */
    const struct replay_options *options;
};
/* Copies what it needs.  Writes the lines, ends the stream and ends the session. */
void replay_start(struct replays *home, const struct replay_args *args);

#endif
