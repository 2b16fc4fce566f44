/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in server `docs`: the knowledge base for agents.  Agents read freely and change
 * documents only by suggestions, unless a folder allows more.  The table of the tools is in
 * server.c.  A failure is a result with isError that says what to do next. */
#ifndef HOLDFAST_DOCS_SERVER_SERVER_H
#define HOLDFAST_DOCS_SERVER_SERVER_H

#include "config/config.h"
#include "docs/docs.h"
#include "session/registry.h"
#include "upstream/builtin.h"

extern const struct builtin server_docs;

/* The argument of the built-in server; lives as long as the server. */
struct docs_server {
    struct docs *docs;
    struct registry *registry;
    struct sessions *sessions;
    struct config *const *config; /* the current one */
};

#endif
