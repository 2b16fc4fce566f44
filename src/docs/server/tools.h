/* SPDX-License-Identifier: Apache-2.0 */
/* The common parts of the tools of the docs server: arguments, refusals, and the course of a
 * call. */
#ifndef HOLDFAST_DOCS_SERVER_TOOLS_H
#define HOLDFAST_DOCS_SERVER_TOOLS_H

#include "docs/critic/critic.h"
#include "docs/server/server.h"

#define READ_LINES 2000 /* lines of a read without `limit` */

/* One tools/call, in the memory of the call. */
struct tool_call {
    struct docs_call docs; /* .user is this */
    struct builtin_call *call;
    struct docs_server *server;
    struct str file_path; /* as the agent wrote it */
    struct buf text;      /* text of the answer; released with the call's memory */
    bool is_error;        /* `text` is an error message */
    void *arg;            /* the tool's own */
};

/* Begins a call. tool_done() or one of the refusals below must end it. */
struct tool_call *tool_begin(struct builtin_call *call);
/* The answer will come later.  Returns the service to which t->docs is submitted. */
struct docs *tool_wait(struct tool_call *t);
void tool_done(struct tool_call *t); /* with t->text */
void tool_refuse(struct tool_call *t, const char *fmt, ...) printf_like(2, 3);
void tool_fail(struct tool_call *t, const struct error *err); /* the service's own words */
/* The `done` of docs_*() for tools whose `work` has written t->text. */
void tool_on_done(struct docs_call *c);

/* Arguments.  False: the call was refused, and the refusal names the argument. */
must_check bool tool_string(struct tool_call *t, const char *name, struct str *ret);
/* *ret is absent when the argument is missing.  Another type is refused. */
must_check bool tool_maybe_string(struct tool_call *t, const char *name, struct str *ret);
must_check bool tool_maybe_int(struct tool_call *t, const char *name, int64_t least, int64_t most,
                               int64_t *ret);
must_check bool tool_maybe_bool(struct tool_call *t, const char *name, bool *ret);
/* file_path, resolved into t->docs.place. */
must_check bool tool_place(struct tool_call *t);
/* Checks the argument session_id.  False: it names no session of the caller, and the call was
 * refused.  `then` ends the refusal's advice. */
must_check bool tool_session(struct tool_call *t, const char *then);
/* Checks that agents may do at least this in the folder and that the key is not read-only.  False:
 * the call was refused. */
must_check bool tool_may(struct tool_call *t, enum docs_agent least);
/* The author for suggestions and comments of this call. */
struct critic_author tool_author(const struct tool_call *t, struct arena *mem);
/* ERR_BAD_INPUT if the value contains markup; `name` is the argument.  Reads every byte, so call it
 * on a worker. */
must_check bool text_is_plain(const char *name, struct str value, struct error *err);

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
