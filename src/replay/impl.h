/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder. */
#ifndef HOLDFAST_REPLAY_IMPL_H
#define HOLDFAST_REPLAY_IMPL_H

#include "audit/publish.h"
#include "exchange/exchange.h"
#include "io/worker.h"
#include "recording/recording.h"
#include "replay/replay.h"
#include "session/registry.h"

enum replay_status {
    REPLAY_SAME,
    REPLAY_DIFFERENT,
    REPLAY_UNKNOWN, /* it was sent, and there is no whole recorded result to compare with */
    REPLAY_SKIPPED, /* it was not sent */
    REPLAY_REFUSED, /* Holdfast refused it now */
    REPLAY_FAILED,  /* no answer came now */
    REPLAY_STATUSES
};
extern const char *const replay_status_names[]; /* NULL-terminated */

/* What came now.  Texts are in the memory of the call. */
struct replay_answer {
    struct str body;    /* the server's result or error object, as it came; absent: none */
    bool is_error;      /* `body` is an error object */
    struct str outcome; /* "ok", "tool_error", "timeout" …; absent: the call was not made */
    struct str why;     /* without a body: a sentence */
    bool is_refused;    /* by Holdfast, before anything was sent */
    int64_t retry_s;    /* … because a quota is used up: seconds; 0: another reason */
    int64_t took_us;    /* -1: not measured */
};

struct replay_verdict {
    enum replay_status status;
    struct str reason; /* a sentence; absent with SAME */
    struct diff diff;  /* DIFFERENT */
};

/* judge.c.  Why this call cannot be sent again, a sentence in mem; NULL: it can. */
const char *replay_lack(const struct recorded_call *c, struct arena *mem);
/* Whether the reason is a body that is not whole: then recording completely helps. */
bool replay_lacks_body(const struct recorded_call *c);
/* The JSON-RPC request, for a tool of this name. */
void replay_write_request(const struct recorded_call *c, struct buf *out);
/* compare.c.  Pure; may run on any thread. */
void replay_compare(const struct recorded_call *c, const struct replay_answer *now,
                    const struct diff_ignore *ignore, struct arena *mem,
                    struct replay_verdict *ret);

struct replay {
    struct replays *home;
    struct list node;
    struct arena *mem;
    struct http_request *http; /* NULL: the client has left */
    struct principal who;
    struct identity_watch credential;
    struct replay_options options;
    struct str origin, origin_id, handle, id;
    const char *stopped; /* why it ends before the last call; NULL: it does not */
    struct session *session;
    struct session_query query;
    struct registry_call reg;
    struct event_row event;
    struct recording recording;
    struct read_job read;
    struct arena *page; /* of the calls below */
    struct recorded_call *calls;
    size_t n, next;
    int64_t counts[REPLAY_STATUSES];
    int64_t n_bodies; /* calls that were skipped or not compared for lack of a body */
    struct loop_task again;
    struct loop_timer *quiet, *pause;
    int64_t pause_s; /* what is left of a pause */
    bool waits_for_reader;
    struct buf line;
    /* The present call. */
    const struct recorded_call *call;
    struct arena *call_mem;
    struct str server;
    struct catalog_want want;
    struct replay_answer answer;
    struct replay_verdict verdict;
    struct worker_job job;
    int64_t began_us;
    unsigned tries;
};

struct replays {
    struct services *sv;
    struct list all;                  /* struct replay */
    struct list served;               /* struct served (serve.h) */
    struct list rooms;                /* struct served_room: recordings that are being read */
    struct audit_subscriber erasures; /* while something is served */
    unsigned n;
    struct worker *worker; /* NULL before the first replay */
};

/* run.c: sends r->call, or settles it without.  Calls replay_settled() once, perhaps before it
 * returns. */
void replay_run_call(struct replay *r);
/* replay.c: r->verdict is there. */
void replay_settled(struct replay *r);
/* Why no further call may be sent; NULL: it may. */
const char *replay_reason_to_stop(const struct replay *r);

/* line.c: each replaces r->line. */
void replay_write_head(struct replay *r);
void replay_write_call(struct replay *r);
void replay_write_summary(struct replay *r);

#endif
