/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: a process without threads, subreaper of all children.  It starts them (own process
 * group, limits, clean environment, no shell) and hands their pipes back by SCM_RIGHTS.  When its
 * socket to Holdfast closes, for whatever reason, it kills every descendant and exits: SIGKILL
 * follows half a second after SIGTERM.  If a keeper dies, its children die with it, and it is
 * replaced. */
#ifndef HOLDFAST_UPSTREAM_KEEPER_H
#define HOLDFAST_UPSTREAM_KEEPER_H

#include "base/error.h"
#include "base/list.h"
#include "config/config.h"
#include "io/loop.h"

struct keeper;

/* Forks; call it while the process has one thread.  *ret has no loop yet.  From here on the process
 * ignores SIGPIPE: a child that closed its stdin must not kill it. */
must_check bool keeper_start(struct keeper **ret, struct error *err);
/* From now on callbacks come from the loop. */
void keeper_attach(struct keeper *k, struct loop *loop);
/* Closes the socket, waits (bounded) for the keeper and all children to end, calls on_exited (or
 * on_failed) for the remaining ones, frees.  Not from inside one of its callbacks, and before its
 * loop is freed. */
void keeper_stop(struct keeper *k);
int keeper_pid(const struct keeper *k);
/* False while a keeper that ended has not been replaced: children cannot be started. */
bool keeper_is_up(const struct keeper *k);

struct keeper_child {
    unsigned id; /* ours; pids may be reused */
    int pid;
    int in, out, err; /* our ends: write, read, read; on_started takes ownership */
};
struct keeper_events {
    /* Either on_started, or on_failed (bad command, no such file, limits).  No callback follows
     * on_failed. */
    void (*on_started)(void *arg, const struct keeper_child *child);
    void (*on_failed)(void *arg, const struct error *err);
    /* After on_started: the child and all its descendants are gone. */
    void (*on_exited)(void *arg, int wait_status);
};
/* Asks for a child; returns its id.  Command, args, env and cwd come only from `server`, which is
 * not kept. */
unsigned keeper_spawn(struct keeper *k, const struct server_config *server,
                      const struct keeper_events *events, void *arg);
/* Sends the signal to the child's whole group. */
void keeper_kill(struct keeper *k, unsigned id, int signum);
/* No callback follows for this child; the keeper kills its group with SIGKILL and reaps it. */
void keeper_forget(struct keeper *k, unsigned id);

#endif
