/* SPDX-License-Identifier: Apache-2.0 */
/* The running program: start and stop order on one screen, in gateway.c. */
#ifndef HOLDFAST_GATEWAY_H
#define HOLDFAST_GATEWAY_H

#include "config/config.h"
#include "store/database.h"
#include "store/redis_conn.h"

struct datadir;
struct gateway_options {
    struct config *config;       /* taken */
    struct config_source source; /* where it came from: SIGHUP reads it again */
    struct str data_dir;
    struct database database;
    struct redis_target redis; /* shown absent: none */
    struct datadir *datadir;   /* taken; NULL: to be owned first */
    /* For `stdio`: no listener but the control socket, and the end comes with the last pipe. */
    bool ends_with_pipes;
};
/* Whether a start would take the files that the configuration names: certificates and keys. */
must_check bool gateway_check_files(const struct config *config, struct error *err);
/* Runs until SIGTERM or SIGINT; returns the exit status. */
int gateway_run(const struct gateway_options *options);

#endif
