/* SPDX-License-Identifier: Apache-2.0 */
/* Which era each server on a pipe was found to speak, remembered over restarts: asking an older
 * server for server/discover costs it a screen of log lines, and some of them their process.  An
 * entry holds for one definition of a server, and for what the server said of itself then; when
 * either changes, the era is decided anew.
 *
 * One line a server in a file that may be deleted at any time.  Loop thread only. */
#ifndef HOLDFAST_UPSTREAM_ERAS_H
#define HOLDFAST_UPSTREAM_ERAS_H

#include "base/str.h"
#include "mcp/version.h"

#include <stdint.h>

#define ERAS_MAX 1000      /* servers; of more, nothing is remembered */
#define ERAS_DEFINITION 32 /* bytes of server_config.definition */

struct eras;
struct era_entry {
    uint8_t definition[ERAS_DEFINITION];
    uint64_t identity; /* a digest of its serverInfo */
    enum mcp_era era;
    bool refuses_initialize; /* modern: it speaks nothing older */
};

/* A file that is not there, or cannot be read, is an empty one; path absent: nothing is saved. */
struct eras *eras_open(struct str path) must_check;
void eras_free(struct eras *e); /* saves first */
/* Of this definition of the server; NULL: nothing is remembered. */
const struct era_entry *eras_find(struct eras *e, struct str server,
                                  const uint8_t definition[ERAS_DEFINITION]);
void eras_put(struct eras *e, struct str server, const struct era_entry *entry);
void eras_forget(struct eras *e, struct str server);
void eras_save(struct eras *e); /* if anything changed since the last time */

#endif
