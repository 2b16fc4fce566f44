/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of a recording as built-in servers of a Holdfast: each has the tools that were called, and
 * answers calls as they were answered then (mock.h).  The spine around them speaks both eras. */
#ifndef HOLDFAST_REPLAY_MOCK_SERVER_H
#define HOLDFAST_REPLAY_MOCK_SERVER_H

#include "replay/mock.h"
#include "upstream/builtin.h"

/* One call that came. */
struct mock_answered {
    struct str server, tool;
    enum mock_rule rule;
    const struct mock_call *call; /* that answered; NULL: none did … */
    struct str why;               /* … and why, a sentence */
};

struct mock_server {
    struct builtin builtin;
    struct mock_servers *set;
    struct str name;
    int64_t calls; /* on record */
    size_t n_tools;
};

struct mock_servers {
    struct arena *mem;
    const struct mock *mock;
    struct mock_server *list;
    size_t n;
    /* On the loop thread, for each call; NULL: nobody is told. */
    void (*on_answered)(void *arg, const struct mock_answered *a);
    void *arg;
};
/* The mock is complete, and outlives the servers.  They are freed after the upstreams. */
struct mock_servers *mock_servers_new(const struct mock *m) must_check;
void mock_servers_register(struct mock_servers *s); /* as built-in servers of this process */
void mock_servers_free(struct mock_servers *s);     /* NULL is fine */

/* Gives each tool without a definition that of mock_write_definition().  Reads all arguments, so it is
 * for another thread than the loop's. */
void mock_define(struct mock *m);
/* The definition of a tool as far as the recorded calls show it: a JSON object. */
void mock_write_definition(const struct mock *m, const struct mock_tool *t, struct buf *out);

#endif
