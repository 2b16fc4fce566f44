/* SPDX-License-Identifier: Apache-2.0 */
/* What a watcher asked for, and the notices that it gets; the same for both transports. */
#ifndef HOLDFAST_FEEDS_API_WATCH_H
#define HOLDFAST_FEEDS_API_WATCH_H

#include "api/api.h"
#include "feeds/reader.h"

struct watch_request {
    struct selection selection;
    struct visibility visibility;
    bool has_from; /* else: from now on */
    struct position from;
};
/* Reads the query and the header Last-Event-ID; texts are in c->mem.  false: the refusal was sent. */
must_check bool watch_request_read(struct api_call *c, struct watch_request *ret);
/* ?tenant= and the rights of the caller.  false: the refusal was sent. */
must_check bool watch_request_visibility(struct api_call *c, struct visibility *ret);
/* Refuses the call. */
void watch_refuse(struct api_call *c, const struct error *err);
/* The text of a position from a client. */
must_check bool watch_position_parse(struct str text, struct position *ret, struct error *err);

/* Why a watcher is told to resync. */
enum watch_gap {
    WATCH_SLOW,    /* it took too long for what it was sent */
    WATCH_REMOVED, /* events after its position were removed before it read them */
    WATCH_LOST,    /* its position is none of this store */
};
/* Adds the members of the notice to an open object, and counts it. */
void watch_gap_write(enum watch_gap gap, const struct position *at, const struct error *err,
                     struct js_writer *w);

#endif
