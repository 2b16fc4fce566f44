/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in `session` server: the context document of a session (session.c), and sharing the session
 * (session_share.c). */
#ifndef HOLDFAST_SERVERS_SESSION_H
#define HOLDFAST_SERVERS_SESSION_H

#include "upstream/builtin.h"

struct config;
struct registry;
struct sharing;
/* What its tools use; its `arg`. */
struct session_server {
    struct registry *registry;
    struct sharing *sharing;
    struct config *const *config; /* the one in use */
};
extern const struct builtin server_session;

/* session.c: the JSON on one line. */
struct str session_compact_json(struct str json, struct arena *mem);
/* session_share.c */
void session_share_run(struct builtin_call *call);
void session_join_run(struct builtin_call *call);
void session_fork_run(struct builtin_call *call);

#endif
