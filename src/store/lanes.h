/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes are threads that run blocking store calls, so that the loop never waits.
 *
 *   write   one thread, the only read-write connection; group commit: at once when idle, and with
 *           many calls in flight after up to 1 ms for the batch to fill
 *   lookup  read-only, by key, for the request path
 *   query   read-only: lists, export, verify; pages of at most 200 rows, 250 ms each
 *
 * The write lane also folds appended events, at least once a second, in slices between batches.
 *
 * Jobs are intrusive and belong to the lanes until the loop thread calls `done`.  Jobs of one lane
 * finish in the order in which they were handed in, with three exceptions: a write job without ops
 * waits for the fold, a job that is refused because the disk is nearly full finishes before its
 * batch, and a lane_maintain() job runs after the current batch.  Every queue is bounded: lane_*() returns false for a job past the bound and never calls its `done`. */
#ifndef HOLDFAST_STORE_LANES_H
#define HOLDFAST_STORE_LANES_H

#include "io/loop.h"
#include "store/store.h"

struct lanes;

struct write_job {
    struct loop_task task; /* used by the lanes only */
    struct write_job *next;
    struct store_op *ops; /* one transaction, never split; 1 to max_batch of them */
    /* Begins something new: refused with ERR_UNAVAILABLE while the disk is nearly full. */
    bool grows;
    /* 0: nothing to write; `done` is called once all events committed before are folded. */
    size_t n;
    void (*prepare)(struct write_job *job); /* on the write lane before the batch: redaction,
                                             * digests; may be NULL */
    void (*done)(struct write_job *job);    /* on the loop; `ok`, verdicts and `err` are set */
    bool ok;
    /* Bytes that prepare and the store will read.  Another processor wrote them, so the lane
     * prefetches them into its cache while it works on the previous job.  May be absent. */
    struct str warm[2];
    struct error err; /* when !ok; then nothing of this job was written */
};

#define READS_MAX 64
struct read_job {
    struct loop_task task;
    struct read_job *next;
    /* Runs on the lane's thread with that lane's read-only store. */
    bool (*run)(struct read_job *job, struct store *store);
    /* Runs 2 to READS_MAX queued jobs whose lookups the store can batch.  Sets `ok` and `err` of
     * each job.  May be NULL. */
    void (*run_many)(struct read_job **jobs, size_t n, struct store *store);
    void (*done)(struct read_job *job); /* on the loop */
    bool ok;
    struct error err; /* filled by run */
};

/* The write lane calls this hook around each transaction; audit numbers and chains events here.
 * `assign` gets the ops of one transaction just before the write.  Then exactly one of commit and
 * rollback follows; rollback also follows a failed assign.  If one job makes a batch fail, the lane
 * writes the batch again in halves, each with its own assign. */
struct write_hook {
    void *arg;
    bool (*assign)(void *arg, struct store *store, struct store_op *ops, size_t n,
                   struct error *err);
    void (*commit)(void *arg);
    void (*rollback)(void *arg);
};

struct lanes_config {
    /* Taken: closed by lanes_free.  NULL: nothing can be written, and lane_write() and
     * lane_maintain() refuse every job. */
    struct store *write;
    struct store
        *lookup; /* taken; may equal `write` for the memory store, which serialises its calls */
    struct store *query;    /* taken; likewise */
    struct write_hook hook; /* may be zero */
    size_t max_queue;       /* jobs per lane not yet done; 0: 65,536 */
    unsigned max_batch;     /* ops per transaction; 0: 512 */
    /* The lane folds before more than this many events are unfolded.  One fold writes each session
     * and each page of the projections once for all its events.  Write jobs wait during the fold.
     * 0: 8,192. */
    unsigned fold_most;
    int64_t batch_fill_us; /* longest wait for the batch to fill; 0: 1000; negative: never */
    /* Longest wait for callers of the last batches to write again; 0: 1000, or never if
     * batch_fill_us is negative; negative: never. */
    int64_t return_us;
    /* The directory whose free space is watched (store/room.h); absent: none.  Must outlive the
     * lanes. */
    struct str room_dir;
};
/* Call on the loop thread. */
struct lanes *lanes_new(struct loop *loop, const struct lanes_config *config) must_check;
/* Finishes the queued jobs, joins the threads, and runs the `done` callbacks that are still queued.
 * Call on the loop thread.  Jobs that these callbacks hand in are refused. */
void lanes_free(struct lanes *l);
must_check bool lane_write(struct lanes *l, struct write_job *job);
must_check bool lane_lookup(struct lanes *l, struct read_job *job);
must_check bool lane_query(struct lanes *l, struct read_job *job);
/* Runs between batches with the write lane's store, for verbs that are not ops (reap, fold). */
must_check bool lane_maintain(struct lanes *l, struct read_job *job);
/* Sets how many calls are in flight.  The write lane decides by this number whether to wait for the
 * batch to fill. */
void lanes_set_in_flight(struct lanes *l, unsigned n);
/* Store health as the write lane last saw it.  False after the store itself failed
 * (ERR_UNAVAILABLE) until a write succeeds again; the lane probes every second. */
bool lanes_healthy(const struct lanes *l);
/* The error of the store's last failure; meaningful only while the store is not healthy. */
void lanes_why(struct lanes *l, struct error *ret);
/* Bytes that stay free in config.room_dir: below, jobs that `grow` are refused.  0: never. */
void lanes_set_reserve(struct lanes *l, int64_t bytes);
/* Whether such jobs are refused now; then *ret says why and what to do.  Not while the lanes have no
 * write store. */
bool lanes_lack_room(struct lanes *l, struct error *ret);
/* The queue members count jobs not yet done; `failures` counts jobs. */
struct lane_stats {
    unsigned in_flight; /* of lanes_set_in_flight() */
    size_t write_queue, lookup_queue, query_queue;
    uint64_t batches, ops, failures;
    int64_t last_batch_us;
};
void lanes_stats(const struct lanes *l, struct lane_stats *ret);

#endif
