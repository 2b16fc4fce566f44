/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as a stand-in for its servers: for a call that comes now, the recorded call whose
 * answer it gets.
 *
 * The rules, in this order:
 *   exact     the same tool with equal arguments, not answered with yet: the oldest one
 *   again     the same tool with equal arguments; all of them were used: they begin anew
 *   in order  the same tool, other arguments: the oldest one that was not used yet
 * Arguments are equal as JSON values; a `session_id` with a handle of Holdfast does not count.  Only
 * calls whose answer is on record whole take part.
 *
 * What was used is kept in a cursor, so each session of a client meets the recording from its
 * beginning.  No I/O; not thread-safe. */
#ifndef HOLDFAST_REPLAY_MOCK_H
#define HOLDFAST_REPLAY_MOCK_H

#include "recording/recording.h"

#define MOCK_SERVERS_MAX 64
#define MOCK_TOOLS_MAX 5000 /* of all servers */

enum mock_rule { MOCK_EXACT, MOCK_AGAIN, MOCK_IN_ORDER, MOCK_UNKNOWN, MOCK_RULES };
extern const char *const mock_rule_names[]; /* "exact", "again", "in order", "unknown" */

/* One recorded call with an answer. */
struct mock_call {
    int64_t number;
    size_t tool, key;     /* positions in the mock's tools and keys; key SIZE_MAX: unknown */
    struct str arguments; /* JSON; absent: none, or they are not known */
    struct str answer;    /* the result, or the error object: JSON */
    bool is_error;        /* `answer` is an error object */
};

struct mock_tool {
    struct str server, name;
    struct str definition; /* the JSON object of tools/list; absent: not known */
    int64_t recorded;      /* calls on record … */
    int64_t lacking;       /* … of which these have no answer that can be given … */
    struct str lack;       /* … and why the first of them has none, a sentence */
    size_t *calls, n, room;
};

/* The calls of one tool with equal arguments. */
#define MOCK_KEY_TEXT 96
struct mock_key {
    char name[MOCK_KEY_TEXT];
    size_t *calls, n, room;
};

struct mock {
    struct arena *mem;
    size_t max_bytes; /* of the recorded calls in memory */
    struct mock_call *calls;
    size_t n, room;
    struct mock_tool *tools;
    size_t n_tools, room_tools, n_servers;
    struct mock_key **keys; /* each stays where it is: key_at borrows its name */
    size_t n_keys, room_keys;
    struct map *tool_at, *key_at; /* "server/tool" and a key's name → its position + 1 */
};
struct mock *mock_new(size_t max_bytes) must_check;
void mock_free(struct mock *m); /* NULL is fine */
/* Whether the call is of a tool that one of the patterns of server__tool names; none: every call. */
bool mock_wants(const struct str *only, size_t n_only, const struct recorded_call *c);
/* Copies what it needs.  Requests that are no calls of a server's tool are left out, and so is a call
 * of a server whose name no server may have.  ERR_TOO_LARGE. */
must_check bool mock_add(struct mock *m, const struct recorded_call *c, struct error *err);
/* NULL: no such tool is on record. */
struct mock_tool *mock_tool(const struct mock *m, struct str server, struct str name);

struct mock_cursor *mock_cursor_new(const struct mock *m) must_check;
void mock_cursor_free(void *cursor); /* NULL is fine */
/* `arguments` is JSON; absent: none.  *ret_rule is MOCK_UNKNOWN when the result is NULL. */
const struct mock_call *mock_match(const struct mock *m, struct mock_cursor *cursor,
                                   const struct mock_tool *tool, struct str arguments,
                                   enum mock_rule *ret_rule);

#endif
