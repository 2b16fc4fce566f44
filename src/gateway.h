/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the gateway.  gateway.c shows the start and stop order on one screen. */
#ifndef HOLDFAST_GATEWAY_H
#define HOLDFAST_GATEWAY_H

#include "config/config.h"
#include "store/database.h"
#include "store/redis_conn.h"

struct datadir;
struct service;
struct gateway_options {
    struct config *config;       /* taken */
    struct config_source source; /* the source of `config`; SIGHUP reads it again */
    struct str data_dir;
    struct database database;
    struct redis_target redis; /* `shown` absent: no Redis */
    struct datadir *datadir;   /* taken; NULL: gateway_run() locks data_dir first */
    struct service *service;   /* the service manager; borrowed; NULL: none is told anything */
    bool only_control_socket;  /* opens no listener but the control socket */
    bool ends_with_pipes;      /* for `stdio`: stops when the last pipe ends */
    /* Log lines are for people: shows the start in short, and a line for each call
     * (gateway_show.h). */
    bool is_shown;
    /* There is no file to read again: SIGHUP ends it. */
    bool has_no_file;
    /* Called once, before the first request is read, instead of telling the log that it is ready;
     * NULL: the log is told.  `url` is that of the listener: http://127.0.0.1:4653. */
    void (*on_ready)(void *arg, struct str url);
    void *ready_arg;
};
/* Whether a start would accept the certificate and key files that the configuration names. */
must_check bool gateway_check_files(const struct config *config, struct error *err);
/* Runs until SIGTERM, SIGINT, the loss of its terminal or, with ends_with_pipes, the end of the
 * last pipe.  Returns the exit status. */
int gateway_run(const struct gateway_options *options);

#endif
