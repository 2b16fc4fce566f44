/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that a profile provides itself, beside or in place of those of its servers: find, run, and
 * the tools for toolsets.  They belong to no server.  Holdfast answers them, or turns them into a
 * call of the tool that they name.  An answer is a value here; the exchange writes the reply. */
#ifndef HOLDFAST_PROFILE_TOOLS_H
#define HOLDFAST_PROFILE_TOOLS_H

#include "base/buf.h"
#include "json/read.h"
#include "profile/view.h"

enum profile_tool_id {
    PROFILE_FIND,
    PROFILE_RUN,
    PROFILE_ENABLE,
    PROFILE_DISABLE,
    PROFILE_LIST_TOOLSETS,
    PROFILE_DESCRIBE,
    PROFILE_LIST_TOOLS,
    PROFILE_TOOLS
};

struct profile_tool {
    enum profile_tool_id id;
    const char *name;
    unsigned modes;         /* bits: each enum profile_mode that has the tool */
    const char *definition; /* the whole JSON object of tools/list */
    bool has_session;       /* acts on the session of the call … */
    bool only_looks;        /* … but does not create it */
    bool is_passed_on;      /* the request becomes a call of another tool */
    /* Names of its arguments, NULL-terminated; NULL: any name is accepted. */
    const char *const *takes;
};

/* True when the tool changes the session. */
static inline bool profile_tool_changes(const struct profile_tool *t)
{
    return t->has_session && !t->only_looks;
}

/* The profile's own tool of this name; NULL: none. */
const struct profile_tool *profile_tool_find(const struct profile_config *p, struct str name);
/* The profile's next own tool after `before` (NULL: the first); NULL at the end. */
const struct profile_tool *profile_tool_next(const struct profile_config *p,
                                             const struct profile_tool *before);

/* The arguments of a call. */
struct profile_arguments {
    const struct js_doc *doc;
    const struct js_node *object; /* NULL: the call has none */
};
/* An argument; NULL when it is absent or null. */
const struct js_node *profile_argument(const struct profile_arguments *a, const char *name);
/* The refusal of an argument that the tool does not take, in mem; absent: the tool takes all of
 * them.  Without this check a misspelt dry_run would be a real call. */
struct str profile_wrong_argument(const struct profile_tool *t, const struct profile_arguments *a,
                                  struct arena *mem);

/* The content of a CallToolResult.  The receiver releases it. */
struct profile_answer {
    struct buf text;
    struct buf structured; /* JSON; empty: none */
    bool is_json;          /* `text` is JSON, and is the structure too */
    bool is_error;
};
void profile_answer_release(struct profile_answer *a);

#endif
