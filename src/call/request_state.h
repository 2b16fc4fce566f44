/* SPDX-License-Identifier: Apache-2.0 */
/* requestState of a server that asks for input (2026-07-28): opaque to Holdfast, but bound to its
 * owner.
 *
 *   towards the client:  "hf1.<MAC>.<the server's own>"
 *   back:                checked and cut; the server gets its own bytes
 *
 * The MAC covers tenant, owner, server, method, name and the state.  So another caller, tool or
 * server cannot use the state.  The key survives restarts. */
#ifndef HOLDFAST_CALL_REQUEST_STATE_H
#define HOLDFAST_CALL_REQUEST_STATE_H

#include "base/arena.h"

struct hmac_key;

/* The only request that may bring the state back. */
struct state_binding {
    struct str tenant, owner, server, method, name;
};
/* A JSON string with its quotes, in mem. */
struct str request_state_bind(const struct hmac_key *key, const struct state_binding *to,
                              struct str state, struct arena *mem);
/* *ret is the server's own state, a part of `bound`.  False: it is not bound to this request. */
must_check bool request_state_open(const struct hmac_key *key, const struct state_binding *to,
                                   struct str bound, struct str *ret);

#endif
