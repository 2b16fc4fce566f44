/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files src/upstream/pins*.c. */
#ifndef HOLDFAST_UPSTREAM_PINS_IMPL_H
#define HOLDFAST_UPSTREAM_PINS_IMPL_H

#include "base/map.h"
#include "base/metric.h"
#include "crypto/hash.h"
#include "upstream/catalog.h"
#include "upstream/pins.h"

#include <stdlib.h>

enum found_kind {
    FOUND_TRUSTED,
    FOUND_ADDED,
    FOUND_CHANGED,
    FOUND_REMOVED,
    FOUND_REFUSED,
    FOUND_REFUSED_REST, /* once: more names than PINS_MAX_REFUSED */
    FOUND_BEYOND        /* once: more tools than PINS_MAX_TOOLS */
};

struct watched_tool {
    uint8_t digest[SHA256_BYTES], approved[SHA256_BYTES]; /* approved all zero: never */
    uint8_t shown[SHA256_BYTES]; /* to the person who approves; all zero: not shown */
    uint8_t raw[SHA256_BYTES];   /* of the bytes that gave `digest`; all zero: parse it again */
    int64_t recorded_since_ms;   /* `recorded` counts events about the tool from then on */
    unsigned recorded;
    unsigned suppressed;           /* changes since the last event */
    bool unrecorded;               /* the last finding did not reach the store */
    enum found_kind unrecorded_as; /* kind of that finding */
    bool gone;
    uint64_t look; /* number of the last list that had it */
    struct str name;
    char text[];
};

/* A name that is left out. */
struct refused_name {
    bool unrecorded;
    struct str name;
    char text[];
};

struct watched_server {
    struct map tools;   /* name → struct watched_tool */
    struct map refused; /* name → struct refused_name */
    bool refuses_rest;  /* more names are refused than are remembered */
    bool is_full;       /* PINS_MAX_TOOLS is reached, and was reported */
    uint64_t look;
    int64_t minute_ms; /* start of the minute that `recorded` counts */
    unsigned recorded, suppressed;
    int64_t read_again_ms;
    struct metric_cell *changed, *held;
    struct str name;
    char text[];
};

struct finding {
    enum found_kind kind;
    bool is_recorded; /* has an event of its own */
    bool is_held;
    bool is_last;    /* the tool's further events in this period wait */
    unsigned before; /* changes before it that had no event */
    struct str tool;
    const char *why; /* FOUND_REFUSED; completes "its name …" */
    struct str like; /* FOUND_REFUSED: the name it looks like, or absent */
    struct tool_row row;
    struct event_row event;
};

/* The findings of one list, until all of them are in the store. */
struct findings {
    struct list node;
    struct pins *pins;
    struct arena *mem;
    struct str server;
    struct finding *of;
    size_t n, room, trusted;
    unsigned suppressed; /* combined in one event */
    struct event_row rest;
    size_t written, committed;
    struct read_job read;
    struct write_job write;
    struct store_op *ops;
};

struct pins {
    struct loop *loop;
    struct lanes *lanes;
    struct upstreams *upstreams;
    bool is_shared;
    struct map servers; /* name → struct watched_server */
    struct list queue;  /* struct findings, the first is being recorded */
    unsigned n_queue;
    struct metric *changed, *held;
};

#define PINS_MAX_QUEUE 32 /* lists whose findings wait to be recorded */

struct watched_server *pins_server(struct pins *p, struct str name); /* created if missing */
struct watched_tool *pins_tool_new(struct watched_server *s, struct str name);
static inline bool watched_is_approved(const struct watched_tool *t)
{
    return memcmp(t->digest, t->approved, sizeof(t->digest)) == 0;
}
static inline bool digest_is_none(const uint8_t digest[SHA256_BYTES])
{
    static const uint8_t none[SHA256_BYTES];
    return memcmp(digest, none, sizeof(none)) == 0;
}
#define PINS_MAX_NAME 256 /* bytes of a tool's name in an event */
static inline struct str name_cut(struct str name)
{
    return str_cut(name, PINS_MAX_NAME);
}
/* Clears the hold of approved tools in lists. */
void pins_release(struct pins *p, struct watched_server *s);
/* Takes rows from the store.  Of tools that are known, only the approved digest is taken.  True:
 * one of these differs from before. */
bool pins_take_rows(struct pins *p, const struct tool_row *rows, size_t n);
/* Whether the name is safe in a command line without quoting. */
bool pins_is_plain(struct str name);
/* pins_record.c: takes ownership; recorded in the order of the calls. */
void pins_record(struct findings *f);
void findings_free(struct findings *f);
/* Sets the body of an event: JSON, in memory that outlives the event. */
void pins_event_body(struct event_row *e, struct str json);
/* The examination of one list. */
struct looking {
    struct pins *pins;
    struct upstream *up;
    struct watched_server *server;
    struct catalog *catalog;
    struct findings *found;  /* NULL: no finding yet */
    struct map folds, loose; /* fold of a name → the struct str that has it */
    struct map past;         /* the same for tools that are not in this list */
    struct arena *mem;
    bool is_first, is_whole, pinned;
    bool any_new; /* not the first list, and one of its names was never seen */
};
/* pins_look.c */
struct finding *pins_find(struct looking *l, enum found_kind kind, struct str tool);
/* Gives the finding an event of its own, up to PINS_RECORDED_PER_MINUTE; further ones are
 * counted. */
void pins_limit(struct looking *l, struct finding *one);
/* pins_names.c: removes look-alike names from the list. */
void pins_sort_names(struct looking *l);
void pins_look(void *arg, struct upstream *u, struct catalog *c, bool is_whole);

#endif
