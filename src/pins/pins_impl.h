/* SPDX-License-Identifier: Apache-2.0 */
/* What look.c, record.c and approve.c share. */
#ifndef HOLDFAST_PINS_PINS_IMPL_H
#define HOLDFAST_PINS_PINS_IMPL_H

#include "base/map.h"
#include "base/metric.h"
#include "crypto/hash.h"
#include "pins/pins.h"
#include "upstream/catalog.h"

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
    uint8_t digest[SHA256_BYTES], approved[SHA256_BYTES]; /* approved zero: never */
    uint8_t shown[SHA256_BYTES]; /* to a person who is to approve it; zero: not shown */
    uint8_t raw[SHA256_BYTES];   /* of the bytes that made `digest`; zero: look at it again */
    int64_t told_since_ms;       /* events about it from then on … */
    unsigned told;
    unsigned untold;               /* what it did since the last of them */
    bool unrecorded;               /* the store knows nothing of what was found last … */
    enum found_kind unrecorded_as; /* … which was this */
    bool gone;
    uint64_t look; /* the last look that met it */
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
    bool refuses_rest;  /* there are more of them than are remembered */
    bool is_full;       /* of tools, and said so */
    uint64_t look;
    int64_t minute_ms; /* the events of this minute … */
    unsigned told, untold;
    int64_t read_again_ms;
    struct metric_cell *changed, *held;
    struct str name;
    char text[];
};

struct finding {
    enum found_kind kind;
    bool is_told; /* by an event of its own */
    bool is_held;
    bool is_last;    /* told: the next ones of this tool wait */
    unsigned before; /* told: so many changes before it were not */
    struct str tool;
    const char *why; /* FOUND_REFUSED; completes "its name …" */
    struct str like; /* FOUND_REFUSED: the other one, or absent */
    struct tool_row row;
    struct event_row event;
};

/* What one look at a list found, until all of it is in the store. */
struct findings {
    struct list node;
    struct pins *pins;
    struct arena *mem;
    struct str server;
    struct finding *of;
    size_t n, room, trusted;
    unsigned untold; /* left to one event */
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

#define PINS_MAX_QUEUE 32 /* looks that wait to be recorded */

struct watched_server *pins_server(struct pins *p, struct str name); /* made where there is none */
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
/* Lists show again what may be called by now. */
void pins_release(struct pins *p, struct watched_server *s);
/* Rows as the store has them; of tools that are known only what was approved is taken.  true: that
 * is another than before. */
bool pins_take_rows(struct pins *p, const struct tool_row *rows, size_t n);
/* Is this a name that may stand in a command line as it is? */
bool pins_is_plain(struct str name);
/* record.c: taken; recorded in the order they come. */
void pins_record(struct findings *f);
void findings_free(struct findings *f);
/* Gives an event its body: JSON, in memory that outlives it. */
void pins_event_body(struct event_row *e, struct str json);
/* One look at a list. */
struct looking {
    struct pins *pins;
    struct upstream *up;
    struct watched_server *server;
    struct catalog *catalog;
    struct findings *found;  /* NULL: nothing yet */
    struct map folds, loose; /* what a name looks like → the struct str that has it */
    struct map past;         /* the same of tools that are not in this list */
    struct arena *mem;
    bool is_first, is_whole, pinned;
    bool any_new; /* not the first list, and one of its names was never seen */
};
/* look.c */
struct finding *pins_find(struct looking *l, enum found_kind kind, struct str tool);
/* So many events in a minute; what is more is counted in one. */
void pins_tell(struct looking *l, struct finding *one);
/* names.c: takes names that look alike out of the list. */
void pins_sort_names(struct looking *l);
void pins_look(void *arg, struct upstream *u, struct catalog *c, bool is_whole);

#endif
