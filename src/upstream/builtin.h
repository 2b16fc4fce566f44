/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in MCP servers: tables of tools that run in this process.  They are reached like any other
 * upstream, so sessions, audit and eras treat them alike. */
#ifndef HOLDFAST_UPSTREAM_BUILTIN_H
#define HOLDFAST_UPSTREAM_BUILTIN_H

#include "base/buf.h"
#include "base/principal.h"
#include "json/read.h"

/* The result of looking up the session_id that a call named. */
enum builtin_named { NAMED_NONE, NAMED_FOUND, NAMED_UNKNOWN, NAMED_OVER };

/* One tools/call.  A tool writes its result and returns, or sets `waits` and later calls
 * builtin_finish() from the loop.  Everything here lives until then, also when the caller has
 * gone. */
struct builtin_call {
    struct str tool; /* its name */
    const struct js_doc *doc;
    const struct js_node *arguments; /* an object, or NULL */
    /* State of this link, NULL at first; freed with the link.  Not for tools that wait. */
    void **state;
    struct arena *mem;
    struct buf *result;          /* write a CallToolResult object here */
    const struct principal *who; /* the caller … */
    struct str session_id;       /* … and the row id of its session, which is stored */
    struct str session_owner;    /* … and its owner, who may share it with the caller */
    struct str handle;           /* of that session */
    enum builtin_named named;
    struct str person; /* the name given to create_session; or absent */
    /* The carrier by which the client can keep a session that it joins; absent: it has none. */
    struct str carrier, carrier_key;
    struct str client; /* the name that the client gives itself; or absent */
    void *arg;         /* as registered */
    bool waits;
};

struct builtin_tool {
    const char *name;
    const char *definition; /* the whole JSON object of tools/list */
    void (*run)(struct builtin_call *call);
    /* A call that names no session begins a new one, instead of sharing the owner's derived
     * session. */
    bool begins_session;
};

struct builtin {
    const char *name; /* as in /mcp/{name} */
    const char *instructions;
    const struct builtin_tool *tools; /* ends with name == NULL */
    void (*free_state)(void *state);  /* NULL: its links hold no state */
    /* True: a tool of this server answers a session_id that names no session (`named` says so).  It
     * runs in the session that the call would have had without the argument. */
    bool answers_names;
    /* True: lists leave the tool out for this caller.  NULL: never.  Calls still reach it. */
    bool (*hides)(void *arg, const struct principal *who, struct str tool);
    /* Adds text for this caller to the instructions; NULL: none. */
    void (*describe)(void *arg, const struct principal *who, struct buf *out);
    /* Answers calls of tools that are not in the table; NULL: an error does. */
    void (*run_unknown)(struct builtin_call *call);
    /* Its tools judge all of their arguments themselves. */
    bool checks_arguments;
    /* Its arguments and results hold secrets, so their bodies are never stored complete. */
    bool has_secrets;
};

/* Call it before any upstream of that name is used.  The table is not copied.  Of two servers with
 * one name the first counts. */
void builtin_register(const struct builtin *b, void *arg);
void builtin_unregister(const struct builtin *b);    /* no link to it is left */
const struct builtin *builtin_find(struct str name); /* or NULL */
const struct builtin_tool *builtin_tool(const struct builtin *b, struct str name); /* or NULL */
bool builtin_hides(const struct builtin *b, const struct principal *who, struct str tool);
/* Writes its instructions for this caller, as the inside of a JSON string. */
void builtin_describe(const struct builtin *b, const struct principal *who, struct buf *out);
/* {"content":[{"type":"text","text":…}],"isError":…} */
void builtin_text(struct builtin_call *call, struct str text, bool is_error);
/* Answers with a JSON-RPC error object (JSON) instead of a result. */
void builtin_error(struct builtin_call *call, struct str error);
/* The result of a call that waited is written.  Frees the call. */
void builtin_finish(struct builtin_call *call);

#endif
