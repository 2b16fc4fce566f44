/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the API inside a command, while no daemon uses the data directory.  The command
 * connects to them as it would connect to a daemon's socket, so every verb is written once.
 *
 * It starts the parts that the administrative operations need: the store, and for changes the lock
 * of the data directory, a writer, the chain and the audit.  It starts no server, no
 * listener and no thread for the loop: gateway_local_turn() runs the loop while the command
 * waits. */
#ifndef HOLDFAST_GATEWAY_LOCAL_H
#define HOLDFAST_GATEWAY_LOCAL_H

#include "config/config.h"
#include "store/database.h"

struct gateway_local;
struct gateway_local_options {
    struct config *config; /* borrowed */
    struct str data_dir;
    struct database database;
    /* Takes the lock and a writer.  Otherwise the database is opened for reading only, and nothing
     * in the data directory changes. */
    bool writes;
    bool has_database; /* false, without `writes`: there is nothing to read yet */
};
must_check bool gateway_local_open(const struct gateway_local_options *options,
                                   struct gateway_local **ret, struct error *err);
/* A connected, non-blocking socket of the caller's own, for one request. */
must_check bool gateway_local_connect(struct gateway_local *g, int *ret_fd, struct error *err);
/* Handles at least one event. */
void gateway_local_turn(struct gateway_local *g);
/* Writes an anchor after changes.  NULL is fine. */
void gateway_local_close(struct gateway_local *g);

#endif
