/* SPDX-License-Identifier: Apache-2.0 */
/* The era of each server on a pipe, remembered over restarts.  A server/discover to an older server
 * fills a screen of its log, and some servers crash on it.  An entry is valid for one definition of
 * a server and for the serverInfo it gave; when either changes, the era is decided anew.
 *
 * One line per server in a file that may be deleted at any time.  Loop thread only. */
#ifndef HOLDFAST_UPSTREAM_ERAS_H
#define HOLDFAST_UPSTREAM_ERAS_H

#include "base/str.h"
#include "mcp/version.h"

#include <stdint.h>

#define ERAS_MAX 1000      /* servers; further ones are not remembered */
#define ERAS_DEFINITION 32 /* bytes of server_config.definition */

struct eras;
struct era_entry {
    uint8_t definition[ERAS_DEFINITION];
    uint64_t identity; /* a digest of its serverInfo */
    enum mcp_era era;
    bool refuses_initialize; /* modern: it refuses initialize */
};

/* A missing or unreadable file counts as empty.  path absent: nothing is saved. */
struct eras *eras_open(struct str path) must_check;
void eras_free(struct eras *e); /* saves first */
/* The entry for this definition of the server; NULL: none. */
const struct era_entry *eras_find(struct eras *e, struct str server,
                                  const uint8_t definition[ERAS_DEFINITION]);
void eras_put(struct eras *e, struct str server, const struct era_entry *entry);
void eras_forget(struct eras *e, struct str server);
void eras_save(struct eras *e); /* if anything changed since the last save */

#endif
