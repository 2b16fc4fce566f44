/* SPDX-License-Identifier: Apache-2.0 */
/* The profile's own tools (profile/tools.h) in an exchange: the steps in which they wait, and their
 * replies. */
#ifndef HOLDFAST_EXCHANGE_PROFILE_TOOLS_H
#define HOLDFAST_EXCHANGE_PROFILE_TOOLS_H

#include "exchange/exchange.h"
#include "profile/tools.h"

/* Both need x->profile_tool.  The first runs in the route step until it returns NEXT; it may turn
 * the request into another call.  The second runs in the call step. */
enum step_result exchange_route_profile_tool(struct exchange *x);
enum step_result exchange_answer_profile_tool(struct exchange *x);

/* The part of the profile that this caller sees now; borrows from x. */
struct profile_view exchange_profile_view(const struct exchange *x);
struct profile_arguments exchange_profile_arguments(const struct exchange *x);

/* toolset_change.c */
enum step_result exchange_answer_enable(struct exchange *x);
enum step_result exchange_answer_disable(struct exchange *x);

/* Replies with the answer, and releases it. */
enum step_result profile_tool_reply(struct exchange *x, struct profile_answer *answer);
/* Replies with a text and isError. */
enum step_result profile_tool_refuse(struct exchange *x, struct str text);
/* Adds the audit note of a tool that Holdfast answers itself. */
void profile_tool_note(struct exchange *x, const char *outcome);

#endif
