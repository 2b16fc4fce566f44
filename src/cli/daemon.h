/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon of a data directory: starting it in the background, waiting until it is ready, and
 * ending it. */
#ifndef HOLDFAST_CLI_DAEMON_H
#define HOLDFAST_CLI_DAEMON_H

#include "cli/cli.h"

#define DAEMON_READY_MS 30000
#define DAEMON_STOP_MS 45000 /* calls under way have 25 s */
#define DAEMON_LOG "holdfast.log"

enum daemon_start {
    DAEMON_RAN,     /* it ran already */
    DAEMON_STARTED, /* as a process in the background */
    DAEMON_BY_UNIT, /* by the user's service manager */
};
/* Starts the daemon for --config, --listen and --data, unless one runs, and waits until it is
 * ready.  The process must have one thread.  An error has the lines of the log that say why. */
must_check bool daemon_start(struct cli *cli, struct str data_dir, enum daemon_start *ret,
                             struct error *err);
/* Waits until the Holdfast of the directory is ready.  `pid`: of the process that was started for
 * this; 0: none.  *ret_status is its exit status if it has ended, else -1. */
must_check bool daemon_await(struct cli *cli, struct str data_dir, int pid, int *ret_status,
                             struct error *err);
/* The pid of the Holdfast that listens on the control socket of the directory and has its lock; 0:
 * none runs.  ERR_UNREACHABLE: the directory has an owner that does not listen, because it is
 * starting or stopping; ERR_DENIED: it belongs to another user. */
must_check bool daemon_pid(struct str data_dir, int *ret, struct error *err);
/* Sends it a signal.  *ret_pid is its pid, or 0 if none runs.  Errors are those of daemon_pid(). */
must_check bool daemon_signal(struct str data_dir, int signum, int *ret_pid, struct error *err);
/* Ends it with SIGTERM and waits until it has ended.  *ret_pid is 0 if none ran. */
must_check bool daemon_stop(struct str data_dir, int *ret_pid, struct error *err);

#endif
