/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in MCP servers: tables of tools run in this process, reached like any other upstream, so
 * that sessions, audit and eras need to know nothing special about them. */
#ifndef HOLDFAST_UPSTREAM_BUILTIN_H
#define HOLDFAST_UPSTREAM_BUILTIN_H

#include "base/buf.h"
#include "json/read.h"

struct builtin_call {
    const struct js_doc *doc;
    const struct js_node *arguments; /* an object, or NULL */
    void **state;                    /* this link's own, NULL at first; freed with the link */
    struct arena *mem;
    struct buf *result; /* write a CallToolResult object here */
};

struct builtin_tool {
    const char *name;
    const char *definition; /* the whole JSON object of tools/list */
    void (*run)(struct builtin_call *call);
};

struct builtin {
    const char *name; /* as in /mcp/{name} */
    const char *instructions;
    const struct builtin_tool *tools; /* ends with name == NULL */
    void (*free_state)(void *state);
};

/* Before any upstream of that name is used; the table is kept. */
void builtin_register(const struct builtin *b);
const struct builtin *builtin_find(struct str name); /* NULL: none */
/* {"content":[{"type":"text","text":…}],"isError":…} */
void builtin_text(struct builtin_call *call, struct str text, bool is_error);

#endif
