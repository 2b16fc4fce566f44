/* SPDX-License-Identifier: Apache-2.0 */
/* Tool definitions, watched.  Every list of tools that a server gives passes pins_guard(): each
 * definition's digest is compared with the one remembered in the store, and what is new, changed or
 * gone becomes an event in the audit, with a diff, a log line and a count.  The first list of a
 * server is trusted; from then on a definition stands approved only once a person has said so
 * (pins_approve()), and where the server is configured with "pin" calls to other ones are held.
 * Names that look like another of the same server are left out of its lists, and nobody can call
 * them.
 *
 *   probe, own lists ──look.c──> findings ──record.c──> diff, rows, events
 *   a call ──pins_check()──> may it leave?         a person ──pins_approve()──> it may
 *
 * Digests of all servers are in memory, definitions only in the store.  Loop thread only. */
#ifndef HOLDFAST_PINS_PINS_H
#define HOLDFAST_PINS_PINS_H

#include "store/lanes.h"
#include "upstream/upstream.h"

struct pins;

#define PINS_MAX_TOOLS 20000             /* remembered of one server, gone ones too */
#define PINS_MAX_REFUSED 1000            /* names of one server */
#define PINS_MAX_DEFINITION (64u * 1024) /* bytes kept; of longer ones the digest alone is */
#define PINS_TOLD_PER_MINUTE 100         /* events of one server; the rest is one event */
#define PINS_TOOL_TOLD 4                 /* events about one tool in … */
#define PINS_TOOL_TOLD_MS (10 * 60000)   /* … this time; what it did then is one event after it */
#define PINS_MAX_DIFF (4u * 1024)

struct pins *pins_new(struct loop *loop, bool is_shared) must_check;
/* What the store remembers; blocking, before the lanes run. */
must_check bool pins_load(struct pins *p, struct store *store, struct error *err);
void pins_use(struct pins *p, struct lanes *lanes, struct upstreams *upstreams);
void pins_stop(struct pins *p); /* before upstreams_free() */
/* After lanes_free(). */
void pins_free(struct pins *p);
/* For upstreams_config. */
struct catalog_guard pins_guard(struct pins *p);

enum pin_verdict {
    PIN_FREE,
    PIN_CHANGED, /* held: it is not what was approved */
    PIN_NEW,     /* held: it came after its server's tools were approved */
    PIN_BEYOND,  /* held: its server has had more tools than are remembered */
    PIN_UNKNOWN  /* there is no such tool, as far as anybody may know */
};
/* May this tool be called?  Only asked where upstream_is_guarded(). */
enum pin_verdict pins_check(struct pins *p, struct upstream *u, struct str tool, bool is_listed);
/* The sentence for who called a held tool, in mem. */
struct str pins_held_text(enum pin_verdict verdict, struct str server, struct str tool,
                          struct arena *mem);

/* A person has been shown how this tool differs from what was approved. */
void pins_shown(struct pins *p, const struct tool_row *row);

/* Approves one tool, or all of a server: as they were shown, or named by digest; what nobody has
 * looked at, as it was last seen.  A tool that changed since it was shown is refused, and so is,
 * where some of a server were shown, any other of them. */
#define PINS_APPROVE_MAX 200 /* at once; `left` says how many more there are */
#define PINS_DIGEST_MIN 16   /* hex digits that name a digest, or more of them */
struct pins_approval {
    struct str server, tool; /* tool absent: all that differ; kept by the caller until `done` */
    struct str digest;       /* what the tool must be, in hex; absent: see above */
    struct str by;           /* whose decision it is; likewise */
    void (*done)(struct pins_approval *a, const struct error *err); /* from the loop */
    unsigned approved, left;
    unsigned unseen; /* not approved: changed or new since some were shown */
    /* private */
    struct pins *pins;
    struct arena *mem;
    struct write_job job;
    struct tool_row *rows;
    struct event_row event;
};
/* false: refused now, `done` does not come. */
must_check bool pins_approve(struct pins *p, struct pins_approval *a, struct error *err);

#endif
