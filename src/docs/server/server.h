/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in `docs` server: the knowledge base for agents.  They read freely and change only by
 * suggestion; each tool is one file's business, the table is in server.c.  Failures are results with
 * isError, and each says what to do next. */
#ifndef HOLDFAST_DOCS_SERVER_SERVER_H
#define HOLDFAST_DOCS_SERVER_SERVER_H

#include "config/config.h"
#include "docs/docs.h"
#include "session/registry.h"
#include "upstream/builtin.h"

extern const struct builtin server_docs;

/* What it is registered with; lasts as long as the server. */
struct docs_server {
    struct docs *docs;
    struct registry *registry;
    struct sessions *sessions;
    struct config *const *config; /* the current one */
};

#endif
