/* SPDX-License-Identifier: Apache-2.0 */
/* Watches tool definitions.  Every list of tools from a server passes pins_guard(), which compares
 * each definition's digest with the stored one.  A new, changed or removed tool causes an event in
 * the audit, with a diff, a log line and a count.  The first list of a server is trusted.  From
 * then on a definition is approved only by a person (pins_approve()).  If the server is configured
 * with "pin", calls to unapproved tools are held.  Names that look like another of the same server
 * are left out of its lists, and cannot be called.
 *
 *   probe, own lists ──pins_look.c──> findings ──pins_record.c──> diff, rows, events
 *   a call ──pins_check()──> may it leave?         a person ──pins_approve()──> it may
 *
 * Digests of all servers are in memory, definitions only in the store.  Loop thread only. */
#ifndef HOLDFAST_UPSTREAM_PINS_H
#define HOLDFAST_UPSTREAM_PINS_H

#include "store/lanes.h"
#include "upstream/upstream.h"

struct pins;

#define PINS_MAX_TOOLS 20000             /* remembered per server, gone ones included */
#define PINS_MAX_REFUSED 1000            /* refused names remembered per server */
#define PINS_MAX_DEFINITION (64u * 1024) /* bytes; of longer ones only the digest is stored */
#define PINS_RECORDED_PER_MINUTE 100     /* events per server; further ones are one event */
#define PINS_TOOL_RECORDED 4             /* events per tool in … */
#define PINS_TOOL_PERIOD_MS (10 * 60000) /* … this time; further changes are one event later */
#define PINS_MAX_DIFF (4u * 1024)

struct pins *pins_new(struct loop *loop, bool is_shared) must_check;
/* Loads the rows of the store; blocking, before the lanes run. */
must_check bool pins_load(struct pins *p, struct store *store, struct error *err);
void pins_use(struct pins *p, struct lanes *lanes, struct upstreams *upstreams);
void pins_stop(struct pins *p); /* before upstreams_free() */
/* After lanes_free(). */
void pins_free(struct pins *p);
/* For upstreams_config. */
struct catalog_guard pins_guard(struct pins *p);

enum pin_verdict {
    PIN_FREE,
    PIN_CHANGED, /* held: it differs from the approved definition */
    PIN_NEW,     /* held: it appeared after its server's tools were approved */
    PIN_BEYOND,  /* held: its server has had more tools than are remembered */
    PIN_UNKNOWN  /* reported to callers as a missing tool */
};
/* Whether this tool may be called.  Only for servers with upstream_is_guarded(). */
enum pin_verdict pins_check(struct pins *p, struct upstream *u, struct str tool, bool is_listed);
/* The message for the caller of a held tool, in mem. */
struct str pins_held_text(enum pin_verdict verdict, struct str server, struct str tool,
                          struct arena *mem);

/* Records that a person has seen how this tool differs from the approved definition. */
void pins_shown(struct pins *p, const struct tool_row *row);

/* Approves one tool, or all of a server: as shown, or as named by digest.  A tool that was not
 * shown is approved as last seen.  A tool that changed since it was shown is refused.  If some
 * tools of a server were shown, approving all refuses the others. */
#define PINS_APPROVE_MAX 200 /* per call; `left` counts the rest */
#define PINS_DIGEST_MIN 16   /* least number of hex digits of a digest */
struct pins_approval {
    struct str server, tool; /* tool absent: all that differ; owned by the caller until `done` */
    struct str digest;       /* required digest, in hex; absent: see above */
    struct str by;           /* who decided; owned by the caller until `done` */
    void (*done)(struct pins_approval *a, const struct error *err); /* called by the loop */
    unsigned approved, left;
    unsigned unseen; /* not approved: changed or new since some were shown */
    /* private */
    struct pins *pins;
    struct arena *mem;
    struct write_job job;
    struct tool_row *rows;
    struct event_row event;
};
/* False: refused now, and `done` is not called. */
must_check bool pins_approve(struct pins *p, struct pins_approval *a, struct error *err);

#endif
