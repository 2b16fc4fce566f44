/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder. */
#ifndef HOLDFAST_SINKS_IMPL_H
#define HOLDFAST_SINKS_IMPL_H

#include "base/metric.h"
#include "feeds/reader.h"
#include "io/worker.h"
#include "sinks/out.h"
#include "sinks/sinks.h"
#include "sinks/store/rows.h"

struct sinks {
    struct sinks_config config;
    char *node;
    struct worker *files;
    struct sink *list[CONFIG_SINKS_MAX];
    size_t n;
    struct loop_timer *tick;
};

/* What a sink counts and shows. */
struct sink_meter {
    struct metric_cell *delivered, *failures, *removed, *up, *lag, *last;
    uint64_t n_delivered, n_failures;
    int64_t last_delivery_ms;
};

/* One sink; sink.c. */
struct sink {
    struct sinks *home;
    const struct sink_config *config; /* of the configuration that was applied last */
    struct str name;                  /* a copy */
    enum sink_state state;
    char why[sizeof(((struct error *)0)->text)];
    struct sink_meter meter;
    /* The lease. */
    struct sink_job *job;   /* a read or a write of the store under way; NULL: none */
    bool is_taken;          /* we have the lease */
    int64_t lease_until_ms; /* clock_mono_ms(), for certain */
    int64_t ask_ms;         /* clock_mono_ms(): not taken before */
    /* The way from the reader to the receiver. */
    struct sink_out *out; /* NULL: not sending */
    struct reader reader;
    struct sink_batch batch;
    struct position before, upto; /* of the batch */
    unsigned most;                /* events of a batch, at most */
    bool is_lingering, is_sending, is_flushing;
    bool leaves_body; /* of the next event: it alone is too large for the receiver */
    bool is_sealed;   /* the batch was sent once, so it stays as it is */
    bool has_removed; /* comes before the next event */
    struct position removed_after;
    unsigned tries;
    struct loop_timer *next; /* sends the batch: it is old enough, or the wait is over */
    struct position done;    /* the receiver has everything up to here */
    bool has_done, is_saved;
};

void sink_meters_start(void); /* so that the metrics are there without a sink */
struct sink *sink_new(struct sinks *home, const struct sink_config *config) must_check;
void sink_free(struct sink *s); /* releases the lease */
void sink_tick(struct sink *s); /* every second */
void sink_flush(struct sink *s);
int64_t sink_lag_ms(const struct sink *s);

/* lease.c */
int64_t sink_lease_ms(void);
/* Asks for the lease; then sink_begin() or nothing follows. */
void sink_take(struct sink *s);
/* Saves how far the sink is, and prolongs the lease.  sink_lose() may follow. */
void sink_save(struct sink *s);
/* Lets another process send, from position `done` on. */
void sink_release(struct sink *s);
void sink_forget_job(struct sink *s); /* its end touches the sink no more */
/* sink.c, called by lease.c: */
void sink_begin(struct sink *s, struct str position); /* absent: none is stored */
/* Another process sends now, or may. */
void sink_lose(struct sink *s, const char *why);

#endif
