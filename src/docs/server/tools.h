/* SPDX-License-Identifier: Apache-2.0 */
/* What the tools of the docs server share: arguments, refusals, the life of a call. */
#ifndef HOLDFAST_DOCS_SERVER_TOOLS_H
#define HOLDFAST_DOCS_SERVER_TOOLS_H

#include "docs/critic/critic.h"
#include "docs/server/server.h"

#define READ_LINES 2000 /* that read shows when it is not told how many */

/* One tools/call while the service has it.  In the call's own memory. */
struct tool_call {
    struct docs_call docs; /* .user is this */
    struct builtin_call *call;
    struct docs_server *server;
    struct str file_path; /* as the agent wrote it */
    struct buf text;      /* of the answer; released with the call's memory */
    bool is_error;        /* what `text` says is one */
    void *arg;            /* the tool's own */
};

/* Begins: an answer comes by tool_done(), or by one of the refusals below. */
struct tool_call *tool_begin(struct builtin_call *call);
/* The answer comes later: the service, to hand t->docs to. */
struct docs *tool_wait(struct tool_call *t);
void tool_done(struct tool_call *t); /* with t->text */
void tool_refuse(struct tool_call *t, const char *fmt, ...) printf_like(2, 3);
void tool_fail(struct tool_call *t, const struct error *err); /* the service's own words */
/* What docs_*() calls when it is through, for tools whose `work` has made the text. */
void tool_on_done(struct docs_call *c);

/* Arguments.  False: the call has been refused by name. */
must_check bool tool_string(struct tool_call *t, const char *name, struct str *ret);
/* Absent when it is not there; refused when it is something else. */
must_check bool tool_maybe_string(struct tool_call *t, const char *name, struct str *ret);
must_check bool tool_maybe_int(struct tool_call *t, const char *name, int64_t least, int64_t most,
                               int64_t *ret);
must_check bool tool_maybe_bool(struct tool_call *t, const char *name, bool *ret);
/* file_path, resolved into t->docs.place. */
must_check bool tool_place(struct tool_call *t);
/* A session_id that names none: false, and the call is refused in its words. */
must_check bool tool_session(struct tool_call *t, const char *then);
/* Whether agents of this caller may do as much here; else refused. */
must_check bool tool_may(struct tool_call *t, enum docs_agent least);
/* Who writes, as it stands in the document. */
struct critic_author tool_author(const struct tool_call *t, struct arena *mem);
/* ERR_BAD_INPUT for input that holds markup; `name` is the argument's.  Looks at every byte: on a
 * worker. */
must_check bool text_is_plain(const char *name, struct str value, struct error *err);
size_t utf8_count(struct str s); /* characters */

#define LIFETIME_SENTENCE                                                                          \
    "A session lasts 24 hours after its last use, or 1 hour when read began it and nothing has "   \
    "named it since."

/* The tools. */
void docs_tool_read(struct builtin_call *call);
void docs_tool_edit(struct builtin_call *call);
void docs_tool_glob(struct builtin_call *call);
void docs_tool_grep(struct builtin_call *call);
void docs_tool_get_links(struct builtin_call *call);
void docs_tool_create_session(struct builtin_call *call);
void docs_tool_end_session(struct builtin_call *call);
void docs_tool_list_sessions(struct builtin_call *call);
void docs_tool_search(struct builtin_call *call);
void docs_tool_create(struct builtin_call *call);
void docs_tool_move(struct builtin_call *call);
void docs_tool_comment(struct builtin_call *call);

#endif
