/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes: where blocking store calls run so that the loop never waits.
 *
 *   write   one thread, the only read-write connection; group commit: at once when idle, and with
 *           many calls in flight after up to 1 ms for the batch to fill
 *   lookup  read-only, by key, for the request path
 *   query   read-only: lists, export, verify; pages of at most 200 rows, 250 ms each
 *
 * The write lane also folds what was appended, at least once a second, in slices between batches.
 *
 * Jobs are intrusive and belong to the lanes until `done` is called on the loop thread, which comes
 * for jobs of one lane in the order they were handed in.  Every queue is bounded: a job past the
 * bound is refused at once (lane_*() returns false), and its `done` is never called. */
#ifndef HOLDFAST_STORE_LANES_H
#define HOLDFAST_STORE_LANES_H

#include "io/loop.h"
#include "store/store.h"

struct lanes;

struct write_job {
    struct loop_task task; /* the lanes' */
    struct write_job *next;
    struct store_op *ops; /* one transaction, never split; 1 to max_batch of them */
    size_t n; /* 0: nothing to write; done once all that was committed before is folded */
    void (*prepare)(struct write_job *job); /* on the write lane before the batch: redaction,
                                               digests; may be NULL */
    void (*done)(struct write_job *job);    /* on the loop; `ok`, verdicts and `err` are set */
    bool ok;
    /* What prepare and the store will read: fetched into the cache while the job before is worked
     * on, for it was written on another processor.  May be absent. */
    struct str warm[2];
    struct error err; /* when !ok: nothing of this job was written */
};

#define READS_MAX 64
struct read_job {
    struct loop_task task;
    struct read_job *next;
    /* On the lane's thread, with that lane's read-only store. */
    bool (*run)(struct read_job *job, struct store *store);
    /* The same for 2 to READS_MAX jobs that came together, for what the store answers in one go:
     * sets ok, and err, of each.  May be NULL. */
    void (*run_many)(struct read_job **jobs, size_t n, struct store *store);
    void (*done)(struct read_job *job); /* on the loop */
    bool ok;
    struct error err; /* filled by run */
};

/* Seen by the write lane around each transaction: audit numbers and chains events here.  `assign`
 * is called with the ops of one transaction just before it; then exactly one of commit/rollback
 * (rollback, too, when assign itself failed).  A batch that fails for one of its jobs is written
 * again in halves, each with its own assign. */
struct write_hook {
    void *arg;
    bool (*assign)(void *arg, struct store *store, struct store_op *ops, size_t n,
                   struct error *err);
    void (*commit)(void *arg);
    void (*rollback)(void *arg);
};

struct lanes_config {
    struct store *write; /* taken: closed by lanes_free */
    struct store
        *lookup; /* taken; may equal write for the memory store (then serialised inside it) */
    struct store *query;    /* taken; likewise */
    struct write_hook hook; /* may be zero */
    size_t max_queue;       /* jobs per lane not yet done; 0: 65,536 */
    unsigned max_batch;     /* ops per transaction; 0: 512 */
    /* Before there are more events than this to fold they are folded, all at once: each session
     * and each page of the projections is written once for all of them, and whoever writes waits
     * meanwhile.  0: 8,192. */
    unsigned fold_most;
    int64_t batch_fill_us; /* longest wait for the batch to fill; 0: 1000; negative: never */
    int64_t return_us; /* longest wait for callers of the last batches to write again; the same */
};
/* On the loop thread. */
struct lanes *lanes_new(struct loop *loop, const struct lanes_config *config) must_check;
/* Finishes what is queued, then joins the threads; done callbacks still queued are run.  On the
 * loop thread; what they hand in now is refused. */
void lanes_free(struct lanes *l);
must_check bool lane_write(struct lanes *l, struct write_job *job);
must_check bool lane_lookup(struct lanes *l, struct read_job *job);
must_check bool lane_query(struct lanes *l, struct read_job *job);
/* Runs between batches with the write lane's store: for verbs that are no ops (reap, fold). */
must_check bool lane_maintain(struct lanes *l, struct read_job *job);
/* How many calls are in flight, so that the write lane knows whether to wait for the batch to
 * fill. */
void lanes_set_in_flight(struct lanes *l, unsigned n);
/* Store health as the write lane saw it last: false after the store itself failed (ERR_UNAVAILABLE)
 * until it writes again, which is tried every second. */
bool lanes_healthy(const struct lanes *l);
/* Why the store failed last; only while it is not healthy. */
void lanes_why(struct lanes *l, struct error *ret);
/* Queues hold jobs not yet done; failures counts jobs. */
struct lane_stats {
    size_t write_queue, lookup_queue, query_queue;
    uint64_t batches, ops, failures;
    int64_t last_batch_us;
};
void lanes_stats(const struct lanes *l, struct lane_stats *ret);

#endif
