/* SPDX-License-Identifier: Apache-2.0 */
/* The recording of a session: its recorded calls, oldest first, read from the events of the store.
 *
 *   struct recording r;
 *   recording_begin(&r, row, clock_wall_ms());
 *   while (!r.at_end)
 *       if (!recording_page(&r, store, 100, mem, &calls, &n, &err)) …
 *
 * recording_page() blocks, so it runs on the query lane (inside read_job.run, with that lane's
 * store) or inside a command, with a store of its own.  One call of it takes about
 * STORE_PAGE_MS and holds at most RECORDING_PAGE_BYTES of bodies, plus one call.  No transaction
 * stays open between pages, and struct recording holds no memory and no pointer into a page: a
 * reader may free `mem` after each page, and may wait between two pages as long as it likes.
 *
 * Order: calls come in the order of the event ids of their intents, notes and records, each once.
 * That is the order in which they began, except where two nodes served the session at the same
 * time: there all calls of the node that started first come first.  Reading again gives the same
 * order.  A call that began after recording_begin() is left out, so a reading of a session in use
 * ends.  A call shows the outcome that is known when its page is read.
 *
 * The caller decides who may read: it finds the session's row by a principal first
 * (store_session_by_id(), or the registry). */
#ifndef HOLDFAST_RECORDING_RECORDING_H
#define HOLDFAST_RECORDING_RECORDING_H

#include "store/store.h"

/* What is left of one body (arguments or result). */
enum recorded_state {
    RECORDED_NONE,     /* there was no body: no result was recorded, or the request has no params */
    RECORDED_COMPLETE, /* the original bytes */
    RECORDED_REDACTED, /* whole, valid JSON, but with names in the place of secrets */
    RECORDED_CUT,      /* {"holdfast/cut":{"length":N,"kept":M},"head":"…"}, see audit/redact.h */
    RECORDED_DIGEST,   /* never stored: the server's audit mode is "digest" */
    RECORDED_REMOVED,  /* was stored; retention or an erasure removed it since */
};
/* "none", "complete", "redacted", "cut", "digest", "removed". */
const char *recorded_state_name(enum recorded_state state);
must_check bool recorded_state_parse(struct str name, enum recorded_state *ret);

struct recorded_body {
    enum recorded_state state;
    struct str bytes; /* as stored, JSON; absent for NONE, DIGEST and REMOVED */
    int64_t length;   /* of the original bytes; -1: unknown, or there was no body */
    /* SHA-256 of the original bytes; zero where it is not known (NONE, and the two parts of a
     * reported execution, which are digested together). */
    uint8_t sha[32];
};

/* How the call was recorded. */
enum recorded_kind {
    RECORDED_CALL,     /* intent and outcome: a tools/call, or a retry of one */
    RECORDED_NOTE,     /* a request that only reads (resources/read, prompts/get …); its result is
                        * never recorded.  With the outcome "redelivered": nothing ran, and the
                        * client got the result of `parent` */
    RECORDED_REPORTED, /* the client ran it elsewhere and reported it by REST */
};
const char *recorded_kind_name(enum recorded_kind kind); /* "call", "note", "reported" */
must_check bool recorded_kind_parse(struct str name, enum recorded_kind *ret);

/* Absent texts were not recorded.  Spans are in the arena of the page. */
struct recorded_call {
    int64_t number; /* in the recording, from 1 */
    int64_t id;     /* the event in this store: what `audit show` and execution_uuid() take */
    /* The event id at the Holdfast where the call ran.  Equals `id`, except in an imported
     * session.  `parent` is such an id too. */
    int64_t origin_id;
    int64_t parent; /* origin_id of the call that was tried before, or redelivered; 0: none */
    enum recorded_kind kind;
    int64_t at_ms; /* when it began (wall clock) */
    /* With at_ms, when the result came; -1: unknown, or it has no outcome yet. */
    int64_t duration_us;
    int64_t tokens;                               /* -1: not reported */
    struct str owner, transport, carrier, client; /* as in struct event_row */
    struct str server;                            /* absent on reported executions */
    struct str method, tool, tool_id, era;
    struct str outcome; /* as in struct event_row, and "open": no outcome yet */
    struct str error;   /* one sentence; absent: the server answered */
    /* The params of the request: {"name":…,"arguments":{…},"_meta":…} of a tools/call.  Of a
     * reported execution {"arguments":…}. */
    struct recorded_body params;
    /* The result, or the error object {"code":…,"message":…} when `outcome` is "error". */
    struct recorded_body result;
    /* The member "arguments" of the params as stored, JSON; absent when there is none, or when the
     * params are not COMPLETE or REDACTED. */
    struct str arguments;
};
/* What is missing of a body, as the rest of a sentence that begins with "the arguments" or "the
 * bytes of the result": "were removed by retention or an erasure".  NULL: the body is complete.  In
 * mem. */
const char *recorded_body_lack(const struct recorded_body *body, struct arena *mem);

#define RECORDING_PAGE_BYTES ((size_t)1 << 20)
#define RECORDING_PAGE_MAX 200

/* A place in the recording of one session; plain values.  Only recording.c reads the members,
 * except for at_end and number. */
struct recording {
    bool at_end;    /* there are no further calls */
    int64_t number; /* calls returned so far */
    char tenant[256], session_id[64];
    size_t tenant_n, session_n;
    int64_t since_ms;  /* no call began before it (wall clock) */
    int64_t until_ms;  /* calls that began later are left out */
    int64_t over_ms;   /* no event of the session is later */
    int64_t after;     /* event id that was scanned last */
    int64_t in_writer; /* the scan is inside the events of this writer; 0: before its first */
};
/* `row` is the session, `now_ms` clock_wall_ms(): later calls are left out. */
void recording_begin(struct recording *r, const struct session_row *row, int64_t now_ms);
/* Reads on: the next calls, at most `limit` (1 to RECORDING_PAGE_MAX), in `mem`.  A page may be
 * short, or empty, before the end: a long scan stops after STORE_PAGE_MS.  r->at_end says whether
 * it was the last page.  On failure *r is as before, so the page can be tried again. */
must_check bool recording_page(struct recording *r, struct store *store, unsigned limit,
                               struct arena *mem, struct recorded_call **ret_calls, size_t *ret_n,
                               struct error *err);
/* Blocking: calls `each` for every call until it returns false with *err set. */
must_check bool recording_walk(struct store *store, const struct session_row *row,
                               bool (*each)(void *arg, const struct recorded_call *call,
                                            struct error *err),
                               void *arg, struct error *err);

#endif
