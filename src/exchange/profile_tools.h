/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that a profile provides itself, beside or in place of those of its servers: find, run, and
 * the tools for toolsets.  They belong to no server.  Holdfast answers them, or turns them into a
 * call of the tool that they name. */
#ifndef HOLDFAST_EXCHANGE_PROFILE_TOOLS_H
#define HOLDFAST_EXCHANGE_PROFILE_TOOLS_H

#include "exchange/exchange.h"

struct profile_tool {
    const char *name;
    unsigned modes;         /* bits: each enum profile_mode that has the tool */
    const char *definition; /* the whole JSON object of tools/list */
    /* Runs in the route step until it returns NEXT. */
    enum step_result (*route)(struct exchange *x);
    bool has_session; /* acts on the session of the call … */
    bool only_looks;  /* … but does not create it */
    /* Runs in the call step.  NULL: `route` has turned the request into another call. */
    enum step_result (*answer)(struct exchange *x);
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

/* find.c */
extern const char find_definition[];
enum step_result exchange_answer_find(struct exchange *x);
/* run.c */
extern const char run_definition[];
enum step_result exchange_route_run(struct exchange *x);

/* toolsets.c */
extern const char enable_definition[], disable_definition[], list_toolsets_definition[],
    describe_definition[], list_tools_definition[];
enum step_result exchange_answer_enable(struct exchange *x);
enum step_result exchange_answer_disable(struct exchange *x);
enum step_result exchange_answer_list_toolsets(struct exchange *x);
enum step_result exchange_answer_describe(struct exchange *x);
enum step_result exchange_answer_list_tools(struct exchange *x);

/* An argument of the call; NULL when it is absent or null. */
const struct js_node *profile_tool_argument(const struct exchange *x, const char *name);
/* Refuses arguments that the tool does not take.  Otherwise a misspelt dry_run would be a real
 * call. */
enum step_result profile_tool_check_names(struct exchange *x);
/* Replies with a CallToolResult: a text and, if present, `structured`. */
enum step_result profile_tool_reply(struct exchange *x, struct str text, struct str structured);
/* The same with isError. */
enum step_result profile_tool_refuse(struct exchange *x, struct str text);
/* Adds the audit note of a tool that Holdfast answers itself. */
void profile_tool_note(struct exchange *x, const char *outcome);
/* A tool that the caller sees in the profile, of a server with a known catalog. */
struct seen_tool {
    struct upstream *up;
    struct catalog *catalog; /* borrowed */
    size_t item;
};
/* Calls fn for each such tool until it returns false.  Covers the servers of the plan if there is
 * one, else every server with a known catalog. */
void profile_tools_each(struct exchange *x, bool (*fn)(void *arg, const struct seen_tool *tool),
                        void *arg);
/* Whether the profile and the caller's scopes show this tool. */
bool profile_tool_is_seen(const struct exchange *x, const struct upstream *up, struct str tool);
/* "files, mail": the servers that the caller may see, in order. */
struct str profile_servers(struct exchange *x);

#endif
