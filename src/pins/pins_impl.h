/* SPDX-License-Identifier: Apache-2.0 */
/* What look.c, record.c and approve.c share. */
#ifndef HOLDFAST_PINS_PINS_IMPL_H
#define HOLDFAST_PINS_PINS_IMPL_H

#include "base/map.h"
#include "base/metric.h"
#include "crypto/hash.h"
#include "pins/pins.h"

struct watched_tool {
    uint8_t digest[SHA256_BYTES], approved[SHA256_BYTES]; /* approved zero: never */
    uint8_t raw[SHA256_BYTES]; /* of the bytes that made `digest`; zero: not seen yet */
    int64_t told_since_ms;     /* events about it from then on … */
    unsigned told;
    bool gone;
    uint64_t look; /* the last look that met it */
    struct str name;
    char text[];
};

struct watched_server {
    struct map tools;   /* name → struct watched_tool */
    struct map refused; /* name → itself: look-alikes */
    bool refuses_rest;  /* there are more of them than are remembered */
    bool is_full;       /* and said so */
    uint64_t look;
    int64_t minute_ms; /* the events of this minute … */
    unsigned told, untold;
    int64_t read_again_ms;
    struct metric_cell *changed, *held;
    struct str name;
    char text[];
};

enum found_kind { FOUND_TRUSTED, FOUND_ADDED, FOUND_CHANGED, FOUND_REMOVED, FOUND_REFUSED };
struct finding {
    enum found_kind kind;
    bool is_told; /* by an event of its own */
    bool is_held;
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
    size_t written;
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
/* Is this a name that may stand in a command line as it is? */
bool pins_is_plain(struct str name);
/* record.c: taken; recorded in the order they come. */
void pins_record(struct findings *f);
void findings_free(struct findings *f);
/* Gives an event its body: JSON, in memory that outlives it. */
void pins_event_body(struct event_row *e, struct str json);
/* look.c */
void pins_look(void *arg, struct upstream *u, struct catalog *c, bool is_whole);

#endif
