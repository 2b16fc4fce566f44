/* SPDX-License-Identifier: Apache-2.0 */
/* The toolsets of a profile as one caller sees them.  A toolset is its position in the profile. */
#ifndef HOLDFAST_PROFILE_TOOLSETS_H
#define HOLDFAST_PROFILE_TOOLSETS_H

#include "profile/tools.h"

extern const char enable_definition[], disable_definition[], list_toolsets_definition[],
    describe_definition[], list_tools_definition[];

bool toolset_is_seen(const struct profile_view *v, size_t at);
/* The toolset that the argument `name` names; -1: no such toolset, see *ret_refusal. */
int toolset_named(const struct profile_view *v, const struct profile_arguments *a,
                  struct str *ret_refusal);
/* The number of tools in these toolsets that the caller sees. */
size_t toolset_count_tools(const struct profile_view *v, uint64_t toolsets);
/* The number of servers of the toolset that have no catalog now. */
size_t toolset_count_unavailable(const struct profile_view *v, size_t at);

enum toolset_verdict {
    TOOLSET_CHANGES,
    TOOLSET_SAME, /* there is nothing to change */
    TOOLSET_REFUSED,
};
/* Whether the caller may enable the toolset now; *ret_text says why there is no change.  A change is
 * acknowledged only once it is stored: with is_storing, when a change is still being stored, a
 * toolset that is enabled in memory is changed again, and the caller waits for the commit. */
enum toolset_verdict toolset_may_enable(const struct profile_view *v, size_t at, bool is_storing,
                                        struct str *ret_text);

/* The answer to a change of toolsets. */
struct toolset_message {
    bool ok;
    struct str text;
    struct str session_id; /* the handle of the session; absent: the answer does not name it */
    bool is_enabled;       /* names the servers of the toolset `at` that are unavailable */
    size_t at;
};
void toolset_message(const struct profile_view *v, const struct toolset_message *m,
                     struct profile_answer *ret);
/* The answers of list_toolsets, describe_toolset and list_tools. */
void toolset_list(const struct profile_view *v, struct profile_answer *ret);
void toolset_describe(const struct profile_view *v, size_t at, struct profile_answer *ret);
void toolset_list_tools(const struct profile_view *v, struct profile_answer *ret);

#endif
