/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that a profile has of its own, beside or in place of those of its servers: find and run,
 * and those for toolsets.  They belong to no server: they are answered here, or turned into a call
 * of the tool that they name. */
#ifndef HOLDFAST_EXCHANGE_PROFILE_TOOLS_H
#define HOLDFAST_EXCHANGE_PROFILE_TOOLS_H

#include "exchange/exchange.h"

struct profile_tool {
    const char *name;
    unsigned modes;         /* a bit for each enum profile_mode that has it */
    const char *definition; /* the whole JSON object of tools/list */
    /* The route step, until it says NEXT. */
    enum step_result (*route)(struct exchange *x);
    bool has_session; /* it is about the session of the call … */
    bool only_looks;  /* … and begins none */
    /* The call step.  NULL: `route` has turned it into another call. */
    enum step_result (*answer)(struct exchange *x);
    const char *const *takes; /* its arguments, NULL at the end; NULL: others do not matter */
};

/* Does it change something? */
static inline bool profile_tool_changes(const struct profile_tool *t)
{
    return t->has_session && !t->only_looks;
}

/* What the profile calls by this name; NULL: nothing of its own. */
const struct profile_tool *profile_tool_find(const struct profile_config *p, struct str name);
/* The next after `before` (NULL: the first); NULL at the end. */
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

/* An argument of the call; NULL: there is none, or it is null. */
const struct js_node *profile_tool_argument(const struct exchange *x, const char *name);
/* Refuses an argument that the tool does not take: what was meant by it would not be done, and a
 * misspelt dry_run would be a real call. */
enum step_result profile_tool_check_names(struct exchange *x);
/* What the answers share: a CallToolResult of a text and, where there is one, of `structured`. */
enum step_result profile_tool_reply(struct exchange *x, struct str text, struct str structured);
/* The same with isError. */
enum step_result profile_tool_refuse(struct exchange *x, struct str text);
/* A tool answered here is in the audit like one that only reads. */
void profile_tool_note(struct exchange *x, const char *outcome);
/* Every tool that this caller has in the profile, of servers that are known by now. */
struct seen_tool {
    struct upstream *up;
    struct catalog *catalog; /* borrowed */
    size_t item;
};
/* Calls fn for each until it returns false.  With a plan of its servers, else of whatever is known.
 */
void profile_tools_each(struct exchange *x, bool (*fn)(void *arg, const struct seen_tool *tool),
                        void *arg);
/* Whether the caller sees this tool, in the profile and by its scopes. */
bool profile_tool_is_seen(const struct exchange *x, const struct upstream *up, struct str tool);
/* "files, mail": the servers that the caller may see, in order. */
struct str profile_servers(struct exchange *x);

#endif
