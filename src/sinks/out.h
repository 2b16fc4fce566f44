/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of a sink: a file, a webhook, a syslog server.  A way out writes events in the form of
 * its receiver, and sends one batch at a time.  It says when the receiver has the batch for good. */
#ifndef HOLDFAST_SINKS_OUT_H
#define HOLDFAST_SINKS_OUT_H

#include "config/sinks.h"
#include "io/loop.h"
#include "io/worker.h"
#include "store/rows.h"

#define SINK_BATCH_EVENTS 500
#define SINK_BATCH_BYTES (512u * 1024) /* one more event follows at most */

/* One thing to send.  Without a row: retention removed events before the sink had read them. */
struct sink_item {
    const struct event_row *row;
    struct str sink;     /* name of the sink */
    struct str position; /* without a row: the position after which events are missing */
    int64_t at_ms;       /* without a row: now */
};
/* {"id":"7.120",…}, or {"kind":"removed",…}: a line without its end. */
void sink_item_write(const struct sink_item *item, struct buf *out);

struct sink_batch {
    struct buf bytes; /* items as sink_out_type.add() wrote them */
    unsigned n;
    int64_t first_id, last_id; /* 0: no event */
    int64_t at_ms;             /* when the first item happened */
    int64_t made_ms;           /* wall clock, when the first item was added */
};

enum sink_result {
    SINK_TAKEN,
    SINK_LATER,     /* the same batch comes again after a wait */
    SINK_TOO_LARGE, /* a smaller one comes next */
};
struct sink_answer {
    enum sink_result result;
    int64_t wait_ms; /* at least; 0: as usual */
    const char *why; /* a sentence without bytes of the receiver; NULL when taken */
};

struct sink_out;
struct sink_out_config {
    struct loop *loop;
    struct worker *files;             /* for blocking calls of the file system */
    const struct sink_config *config; /* used during make() alone */
    struct str node;
    /* On the loop, later than send(); the way out may be freed in it. */
    void (*done)(void *arg, const struct sink_answer *a);
    void *arg;
};
struct sink_out_type {
    must_check bool (*make)(const struct sink_out_config *c, struct sink_out **ret,
                            struct error *err);
    void (*add)(struct sink_out *o, const struct sink_item *item, struct buf *to);
    /* The batch stays as it is until done(), or until the way out is freed. */
    void (*send)(struct sink_out *o, const struct sink_batch *b);
    void (*free)(struct sink_out *o); /* no done() afterwards */
};
extern const struct sink_out_type sink_file, sink_webhook, sink_syslog;
/* The first member of every way out. */
struct sink_out {
    const struct sink_out_type *type;
};

#endif
