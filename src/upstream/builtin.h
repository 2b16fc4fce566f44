/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in MCP servers: tables of tools run in this process, reached like any other upstream, so
 * that sessions, audit and eras need to know nothing special about them. */
#ifndef HOLDFAST_UPSTREAM_BUILTIN_H
#define HOLDFAST_UPSTREAM_BUILTIN_H

#include "base/buf.h"
#include "base/principal.h"
#include "json/read.h"

/* What became of the session_id that a call named. */
enum builtin_named { NAMED_NONE, NAMED_FOUND, NAMED_UNKNOWN, NAMED_OVER };

/* One tools/call.  A tool writes its result and returns, or sets `waits` and calls builtin_finish()
 * later, from the loop: everything here lives until then, whether or not somebody still waits. */
struct builtin_call {
    const struct js_doc *doc;
    const struct js_node *arguments; /* an object, or NULL */
    void **state;                    /* this link's own, NULL at first; freed with the link.  Not
                                      * for tools that wait */
    struct arena *mem;
    struct buf *result;          /* write a CallToolResult object here */
    const struct principal *who; /* whose call it is … */
    struct str session_id; /* … and the row id of the session it belongs to; its row is there */
    struct str handle;     /* that session's name */
    enum builtin_named named;
    struct str person; /* the name that create_session was given; absent: none */
    void *arg;         /* as registered */
    bool waits;
};

struct builtin_tool {
    const char *name;
    const char *definition; /* the whole JSON object of tools/list */
    void (*run)(struct builtin_call *call);
    /* Called without anything that names a session it begins one of its own, rather than share what
     * its owner's other calls without a name belong to. */
    bool begins_session;
};

struct builtin {
    const char *name; /* as in /mcp/{name} */
    const char *instructions;
    const struct builtin_tool *tools; /* ends with name == NULL */
    void (*free_state)(void *state);  /* NULL: its links keep none, and nothing is lost with them */
    /* A session_id that names none is the tool's to answer (`named` says so); it then runs in the
     * session that the call would have had without. */
    bool answers_names;
    /* Whether a list leaves the tool out for this caller; NULL: never.  Calls still reach it. */
    bool (*hides)(void *arg, const struct principal *who, struct str tool);
    /* Adds to the instructions what holds for this caller; NULL: nothing. */
    void (*describe)(void *arg, const struct principal *who, struct buf *out);
};

/* Before any upstream of that name is used; the table is kept. */
void builtin_register(const struct builtin *b, void *arg);
const struct builtin *builtin_find(struct str name);                               /* NULL: none */
const struct builtin_tool *builtin_tool(const struct builtin *b, struct str name); /* or NULL */
bool builtin_hides(const struct builtin *b, const struct principal *who, struct str tool);
/* Its own words about this caller, as the inside of a JSON string. */
void builtin_describe(const struct builtin *b, const struct principal *who, struct buf *out);
/* {"content":[{"type":"text","text":…}],"isError":…} */
void builtin_text(struct builtin_call *call, struct str text, bool is_error);
/* The result of a call that waited is written.  The call is gone afterwards. */
void builtin_finish(struct builtin_call *call);

#endif
