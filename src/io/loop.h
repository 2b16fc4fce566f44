/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: descriptors, timers, posted tasks, signals.  Call everything here on the loop
 * thread, except loop_post() and loop_stop(). */
#ifndef HOLDFAST_IO_LOOP_H
#define HOLDFAST_IO_LOOP_H

#include "base/error.h"
#include "base/list.h"

struct loop;

struct loop *loop_new(void) must_check;
void loop_run(struct loop *loop);  /* until loop_stop() */
void loop_stop(struct loop *loop); /* any thread; signal handlers through loop_on_signal */
/* Everything must have been stopped before.  Posted and deferred tasks are run first. */
void loop_free(struct loop *loop);
/* One turn: waits for at least one event and handles all pending events.  For tests and small
 * commands. */
void loop_turn(struct loop *loop);
/* Monotonic time of the first event of this turn; constant during the turn. */
int64_t loop_now_ms(const struct loop *loop);
int64_t loop_now_us(const struct loop *loop);
/* The shared read buffer.  A reader passes the bytes on before it returns to the loop. */
#define LOOP_SCRATCH (64 * 1024)
char *loop_scratch(struct loop *loop);
/* For deadline.c. */
struct deadlines;
struct deadlines *loop_deadlines(struct loop *loop);
/* For connections; made on first use. */
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
/* Edge-triggered: for a socket with a reader that takes all bytes each time.  While the socket wants
 * LOOP_READ alone, fn is called only for new bytes.  LOOP_LAST then says that the end of the stream
 * follows the bytes.  A reader that may have left bytes calls loop_fd_rearm(); fn is then called in
 * the next turn if there are any. */
void loop_fd_edge_triggered(struct loop_fd *w);
void loop_fd_rearm(struct loop_fd *w);

/* A task for the loop, posted from any thread, run in posting order; no lock. */
struct loop_task {
    struct loop_task *next;
    void (*fn)(struct loop_task *task);
};
void loop_post(struct loop *loop, struct loop_task *task);
/* Runs `task` at the end of this turn, after every callback of the turn: objects are freed there.
 * Tasks deferred by deferred tasks run at the same end of turn. */
void loop_defer(struct loop *loop, struct loop_task *task);

/* Runs a short blocking job (name lookups, small files): calls `run` on the shared pool, then
 * `done` on the loop.  Always calls both.  Long jobs belong to io/worker.h. */
void loop_work(struct loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg);

/* A timer. */
struct loop_timer;
struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg) must_check;
void loop_timer_start(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms); /* restarts */
void loop_timer_stop(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t); /* NULL is fine */

void loop_on_signal(struct loop *loop, int signum, void (*fn)(void *arg, int signum), void *arg);
/* The longest single turn since the last call, in microseconds; exported as a metric. */
int64_t loop_take_stall_us(struct loop *loop);

#endif
