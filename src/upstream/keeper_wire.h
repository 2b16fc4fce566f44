/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between Holdfast and its keeper, and declarations shared by the keeper's own files.
 *
 * The two ends are one program split by fork(), connected by a SEQPACKET pair: one message is one
 * packet in native layout, and the three pipe ends of a new child travel with its `started` packet.
 * Used by keeper.c (Holdfast's side) and keeper_*.c (the keeper's side) only. */
#ifndef HOLDFAST_UPSTREAM_KEEPER_WIRE_H
#define HOLDFAST_UPSTREAM_KEEPER_WIRE_H

#include "base/base.h"

#include <sys/types.h>

/* Bytes of a request, strings included.  Below the default send buffer of a unix socket (208 KiB),
 * so that a request to an idle keeper always fits. */
#define KEEPER_MAX_REQUEST (128 * 1024)
#define KEEPER_MAX_CHILDREN 256 /* twice the limit of one node; children still dying count too */
/* How long the keeper and its minders go on killing before they leave the rest to init. */
#define KEEPER_END_MS 5000
/* Between SIGTERM and SIGKILL once Holdfast is gone: enough for a database to close its log. */
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

/* The step at which starting a child failed. */
enum keeper_stage {
    KEEPER_STAGE_NONE,
    KEEPER_STAGE_REQUEST, /* the request is malformed */
    KEEPER_STAGE_LIMIT,   /* KEEPER_MAX_CHILDREN */
    KEEPER_STAGE_PIPE,
    KEEPER_STAGE_FORK,
    KEEPER_STAGE_SETUP, /* session, limits, descriptors */
    KEEPER_STAGE_CHDIR,
    KEEPER_STAGE_FIND,        /* not in any directory of PATH */
    KEEPER_STAGE_INTERPRETER, /* the file exists, the interpreter in its first line does not */
    KEEPER_STAGE_EXEC,
    KEEPER_STAGE_COUNT
};

enum keeper_report { KEEPER_STARTED = 1, KEEPER_FAILED, KEEPER_EXITED };
struct keeper_reply {
    uint32_t news;
    uint32_t id;
    int32_t pid;    /* started */
    int32_t status; /* exited: as from waitpid() */
    uint32_t stage; /* failed */
    int32_t errnum; /* failed */
};

/* keeper_zygote.c: forks keepers, in a process of its own.  Takes over `fd`, one end of a SEQPACKET
 * pair.  Each packet of one byte carries the socket of a keeper to fork.  The answer is the
 * keeper's pid (int32_t; -errno when the fork failed). */
never_returns void keeper_zygote_run(int fd);
/* Keeps descriptors 0 to 2 and `socket`, which becomes KEEPER_SOCKET_FD; closes all others. */
void keeper_take_fds(int socket);
/* Sets the name shown by ps, and wipes the environment that /proc would go on showing. */
void keeper_take_title(const char *title, const char *name);
enum { KEEPER_SOCKET_FD = 3 };

/* keeper_process.c: the keeper itself, in the forked process.  Takes over `fd`; base_env is the
 * part of Holdfast's environment that children may see. */
never_returns void keeper_process_run(int fd, char **base_env);

/* keeper_minder.c: one process between the keeper and each child. */

/* Signal by which the keeper (or its death) orders a minder to kill everything below it. */
#define MINDER_END_SIGNAL SIGUSR1

/* A record that a minder writes to its status pipe, in one piece.  The pipe ends (EOF) when the
 * child runs its program, or never will. */
struct minder_record {
    int32_t pid;    /* the child's, or 0 in a record of failure */
    uint32_t stage; /* KEEPER_STAGE_NONE, or the step that failed */
    int32_t errnum;
};
struct minder_plan {
    char **argv;      /* argv[0] is the command, NULL-terminated */
    char **env;       /* the whole environment of the child */
    const char *cwd;  /* "" for the keeper's own */
    int in, out, err; /* the child's ends, all >= 3 */
    int status;       /* write end of the status pipe, >= 3 */
};
/* Forks a minder; -1 with errno on failure.  The caller has one thread and blocks every signal. */
pid_t minder_fork(const struct minder_plan *plan) must_check;

/* keeper_env.c: the part of our environment that a child may see, copied; NULL-terminated. */
char **child_env_save(void) must_check;
/* Merges saved and declared "NAME=VALUE"s; declared win over saved, later over earlier.  The
 * strings are borrowed; the caller frees the array. */
char **child_env_build(char **saved, char **declared, size_t n_declared) must_check;

/* keeper_tree.c: reads the process tree from /proc. */
struct tree_process {
    pid_t pid, parent;
    bool living; /* not a zombie */
    bool chosen;
};
/* Sends SIGKILL to every process that `is_root` chooses and to all its descendants.  Returns the
 * number that `is_root` chose.  Zombies count: a process that forked and ended while /proc was read
 * may have left a living child that was not seen.  So only a pass that finds none, zombies
 * included, proves that nothing lives. */
size_t tree_kill(bool (*is_root)(void *arg, const struct tree_process *p), void *arg);
/* All descendants of this process. */
void tree_kill_descendants(void);

#endif
