/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: fds, timers, posted calls.  The only file pair that knows libuv.  Everything here
 * is called on the loop thread, but for loop_post() and loop_stop(). */
#ifndef HOLDFAST_IO_LOOP_H
#define HOLDFAST_IO_LOOP_H

#include "base/error.h"
#include "base/list.h"

struct loop;

struct loop *loop_new(void) must_check;
void loop_run(struct loop *loop);  /* until loop_stop() */
void loop_stop(struct loop *loop); /* any thread, and signal handlers through loop_on_signal */
/* Everything must have been stopped before; tasks still posted or deferred are run first. */
void loop_free(struct loop *loop);
/* One turn: waits for at least one event and handles all there are.  For tests and small commands.
 */
void loop_turn(struct loop *loop);
/* Monotonic, as of the first event of this turn: stays the same for all of it. */
int64_t loop_now_ms(const struct loop *loop);
int64_t loop_now_us(const struct loop *loop);
/* The shared read buffer.  Whoever reads into it hands the bytes on before returning to the loop.
 */
#define LOOP_SCRATCH (64 * 1024)
char *loop_scratch(struct loop *loop);
/* For deadline.c. */
struct deadlines;
struct deadlines *loop_deadlines(struct loop *loop);
/* For conns: made when it is first needed. */
struct outbox;
struct outbox *loop_outbox(struct loop *loop);

/* A file descriptor.  `fn` gets LOOP_READ and/or LOOP_WRITE (errors and hang-up show as LOOP_READ),
 * and LOOP_LAST after loop_fd_edge_triggered(). */
enum { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_LAST = 4 };
struct loop_fd;
/* NULL when the kernel cannot poll it (a regular file, a closed number). */
struct loop_fd *loop_fd_new(struct loop *loop, int fd, void (*fn)(void *arg, int events),
                            void *arg) must_check;
void loop_fd_want(struct loop_fd *w, int events); /* 0 pauses; no cost when unchanged */
void loop_fd_free(struct loop_fd *w); /* no callback afterwards; does not close the fd */
/* Edge-triggered: for a socket whose reader takes all bytes each time.  Once the socket is in use,
 * fn is called only for new bytes.  LOOP_LAST then says that the end of the stream follows the
 * bytes.  A reader that may have left bytes calls loop_fd_rearm(), and is called in the next turn
 * if there are any. */
void loop_fd_edge_triggered(struct loop_fd *w);
void loop_fd_rearm(struct loop_fd *w);

/* Work handed to the loop from any thread, run in posting order; no lock. */
struct loop_task {
    struct loop_task *next;
    void (*fn)(struct loop_task *task);
};
void loop_post(struct loop *loop, struct loop_task *task);
/* Runs `task` at the end of this turn, after every callback of it: where objects are freed.  Tasks
 * deferred by deferred tasks run in the same go. */
void loop_defer(struct loop *loop, struct loop_task *task);

/* A short blocking job on the shared pool (name lookups, small files): `run` there, then `done`
 * from the loop.  Always both; long jobs belong to io/worker.h. */
void loop_work(struct loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg);

/* A timer. */
struct loop_timer;
struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg) must_check;
void loop_timer_start(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms); /* restarts */
void loop_timer_stop(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t); /* NULL is fine */

void loop_on_signal(struct loop *loop, int signum, void (*fn)(void *arg, int signum), void *arg);
/* Longest single turn since last asked, in microseconds; exported as a metric. */
int64_t loop_take_stall_us(struct loop *loop);

#endif
