/* SPDX-License-Identifier: Apache-2.0 */
/* What Holdfast and its keeper say to each other, and what the keeper's own files share.
 *
 * The two ends are one program split by fork(), talking over a SEQPACKET pair: one message is one
 * packet in native layout, and the three pipe ends of a new child travel with its `started` packet.
 * Used by keeper.c (Holdfast's side) and keeper_*.c (the keeper's side) only. */
#ifndef HOLDFAST_UPSTREAM_KEEPER_WIRE_H
#define HOLDFAST_UPSTREAM_KEEPER_WIRE_H

#include "base/base.h"

#include <sys/types.h>

/* A request, strings included.  Below the default send buffer of a unix socket (208 KiB), so that
 * an idle keeper can always be told. */
#define KEEPER_MAX_REQUEST (128 * 1024)
#define KEEPER_MAX_CHILDREN 256 /* twice what one node runs; those still dying count too */
/* How long the keeper and its minders go on killing before they leave the rest to init. */
#define KEEPER_END_MS 5000
/* Between SIGTERM and SIGKILL once Holdfast is gone: what a database needs to close its log. */
#define KEEPER_GRACE_MS 500

enum keeper_verb { KEEPER_SPAWN = 1, KEEPER_KILL, KEEPER_FORGET };
/* A spawn is followed by NUL-terminated strings: command, cwd (may be empty), args, "NAME=VALUE"s.
 */
struct keeper_request {
    uint32_t verb;
    uint32_t id;
    int32_t signum;
    uint32_t n_args, n_env;
};

/* Where starting a child failed. */
enum keeper_stage {
    KEEPER_STAGE_NONE,
    KEEPER_STAGE_REQUEST, /* the request itself makes no sense */
    KEEPER_STAGE_LIMIT,   /* KEEPER_MAX_CHILDREN */
    KEEPER_STAGE_PIPE,
    KEEPER_STAGE_FORK,
    KEEPER_STAGE_SETUP, /* session, limits, descriptors */
    KEEPER_STAGE_CHDIR,
    KEEPER_STAGE_FIND,        /* in no directory of PATH */
    KEEPER_STAGE_INTERPRETER, /* the file is there, what its first line names is not */
    KEEPER_STAGE_EXEC,
    KEEPER_STAGE_COUNT
};

enum keeper_news { KEEPER_STARTED = 1, KEEPER_FAILED, KEEPER_EXITED };
struct keeper_reply {
    uint32_t news;
    uint32_t id;
    int32_t pid;    /* started */
    int32_t status; /* exited: as from waitpid() */
    uint32_t stage; /* failed */
    int32_t errnum; /* failed */
};

/* keeper_zygote.c: forks keepers, in a process of its own.  Takes `fd`, one end of a SEQPACKET
 * pair: each packet of one byte brings the socket of a keeper to fork and is answered by its pid
 * (int32_t; -errno when the fork failed). */
never_returns void keeper_zygote_run(int fd);
/* Descriptors 0 to 2 and `socket`, which becomes KEEPER_SOCKET_FD; all others are closed. */
void keeper_take_fds(int socket);
/* How the process shows in ps; wipes the environment that /proc would go on showing. */
void keeper_take_title(const char *title, const char *name);
enum { KEEPER_SOCKET_FD = 3 };

/* keeper_process.c: the keeper itself, in the forked process.  Takes `fd`; base_env is what of
 * Holdfast's environment children may see. */
never_returns void keeper_process_run(int fd, char **base_env);

/* keeper_minder.c: one process between the keeper and each child. */

/* Signal by which the keeper (or its death) tells a minder to kill everything under it. */
#define MINDER_END_SIGNAL SIGUSR1

/* What a minder tells the keeper through its status pipe; a record is written in one piece.  The
 * pipe ends (EOF) when the child has become its program, or never will. */
struct minder_record {
    int32_t pid;    /* the child's, or 0 in a record of failure */
    uint32_t stage; /* KEEPER_STAGE_NONE, or where it failed */
    int32_t errnum;
};
struct minder_plan {
    char **argv;      /* argv[0] is the command, NULL-terminated */
    char **env;       /* the whole environment of the child */
    const char *cwd;  /* "" for the keeper's own */
    int in, out, err; /* the child's ends, all >= 3 */
    int status;       /* write end of the status pipe, >= 3 */
};
/* Forks a minder; -1 with errno when that fails.  The caller has one thread and blocks every
 * signal. */
pid_t minder_fork(const struct minder_plan *plan) must_check;

/* keeper_env.c: what of our environment a child may see, copied; NULL-terminated. */
char **child_env_save(void) must_check;
/* Saved and declared "NAME=VALUE"s; declared win over saved, later over earlier.  The strings are
 * borrowed, the array is the caller's to free. */
char **child_env_build(char **saved, char **declared, size_t n_declared) must_check;

/* keeper_tree.c: looking at /proc for who descends from whom. */
struct tree_process {
    pid_t pid, parent;
    bool living; /* not a zombie */
    bool chosen;
};
/* Sends SIGKILL to every process that `is_root` chooses and to all that descend from those.
 * Returns how many `is_root` chose.  Zombies count: one that forked and ended while /proc was read
 * may have left a living child that was not seen.  So only a pass that finds none, zombies
 * included, proves that nothing lives. */
size_t tree_kill(bool (*is_root)(void *arg, const struct tree_process *p), void *arg);
/* All that descends from this process. */
void tree_kill_descendants(void);

#endif
