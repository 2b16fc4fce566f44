/* SPDX-License-Identifier: Apache-2.0 */
/* The common parts of the tools: reading arguments, permission, and the end of a call. */
#include "docs/server/tools.h"

#include "base/clock.h"
#include "json/write.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

/* Room for the largest document with line numbers; its escaped form still fits into a result. */
#define MAX_TEXT (5u * 1024 * 1024)

static void release_text(void *arg)
{
    buf_release(arg);
}

struct tool_call *tool_begin(struct builtin_call *call)
{
    struct tool_call *t = arena_new_of(call->mem, struct tool_call);

    t->call = call;
    t->server = call->arg;
    t->docs.who = call->who;
    t->docs.mem = call->mem;
    t->docs.session_id = call->session_id;
    t->docs.session_owner = call->session_owner;
    t->docs.user = t;
    t->docs.done = tool_on_done;
    buf_init(&t->text, MAX_TEXT);
    arena_on_free(call->mem, release_text, &t->text);
    return t;
}

static void finish(struct tool_call *t, bool is_error)
{
    struct builtin_call *call = t->call;

    if (t->docs.set)
        docs_end(&t->docs);
    builtin_text(call, buf_str(&t->text), is_error);
    if (call->waits) /* otherwise the tool has not returned yet, and its return sends the answer */
        builtin_finish(call);
}

struct docs *tool_wait(struct tool_call *t)
{
    t->call->waits = true;
    return t->server->docs;
}

void tool_done(struct tool_call *t)
{
    finish(t, t->is_error);
}

void tool_refuse(struct tool_call *t, const char *fmt, ...)
{
    char text[16384];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    buf_reset(&t->text);
    buf_addz(&t->text, text);
    finish(t, true);
}

void tool_fail(struct tool_call *t, const struct error *err)
{
    /* The error of the vault names the path without its folder. */
    if (err->code == ERR_NOT_FOUND && !strstr(err->text, "not found") &&
        !strstr(err->text, "denied"))
        tool_refuse(t, "Error: Document not found: %.*s", STR_ARG(t->file_path));
    else
        tool_refuse(t, "%s%s", islower((unsigned char)err->text[0]) ? "Error: " : "", err->text);
}

void tool_on_done(struct docs_call *c)
{
    struct tool_call *t = c->user;

    if (c->ok)
        tool_done(t);
    else
        tool_fail(t, &c->err);
}

static const struct js_node *argument(const struct tool_call *t, const char *name)
{
    const struct js_node *v =
        t->call->arguments ? js_get(t->call->doc, t->call->arguments, str_of(name)) : NULL;
    return v && v->type != JS_NULL ? v : NULL;
}

bool tool_maybe_string(struct tool_call *t, const char *name, struct str *ret)
{
    const struct js_node *v = argument(t, name);

    *ret = STR_NONE;
    if (!v)
        return true;
    if (v->type != JS_STRING) {
        tool_refuse(t, "Parameter %s must be a string, not %s.", name, js_type_name(v->type));
        return false;
    }
    *ret = js_text(t->call->doc, v, t->call->mem);
    return true;
}

bool tool_string(struct tool_call *t, const char *name, struct str *ret)
{
    if (!tool_maybe_string(t, name, ret))
        return false;
    if (!ret->p)
        tool_refuse(t, "Missing required parameter: %s", name);
    return ret->p != NULL;
}

bool tool_maybe_int(struct tool_call *t, const char *name, int64_t least, int64_t most,
                    int64_t *ret)
{
    const struct js_node *v = argument(t, name);
    int64_t found;

    if (!v)
        return true;
    if (v->type != JS_NUMBER || !js_to_i64(t->call->doc, v, &found) || found < least ||
        found > most) {
        tool_refuse(t, "Parameter %s must be a whole number from %lld to %lld.", name,
                    (long long)least, (long long)most);
        return false;
    }
    *ret = found;
    return true;
}

bool tool_maybe_bool(struct tool_call *t, const char *name, bool *ret)
{
    const struct js_node *v = argument(t, name);

    if (!v)
        return true;
    if (v->type != JS_TRUE && v->type != JS_FALSE) {
        tool_refuse(t, "Parameter %s must be true or false, not %s.", name, js_type_name(v->type));
        return false;
    }
    *ret = v->type == JS_TRUE;
    return true;
}

bool tool_place(struct tool_call *t)
{
    struct error err;

    if (!docs_resolve(t->server->docs, &t->docs, t->file_path, &err)) {
        tool_refuse(t, "%s", err.text);
        return false;
    }
    return true;
}

bool tool_session(struct tool_call *t, const char *then)
{
    static const char *const states[] = {[NAMED_UNKNOWN] = "not found", [NAMED_OVER] = "expired"};
    enum builtin_named named = t->call->named;
    struct str id;

    if (!tool_maybe_string(t, "session_id", &id))
        return false;
    if (named != NAMED_UNKNOWN && named != NAMED_OVER)
        return true;
    tool_refuse(t, "Session %s: %.*s. Call read or create_session to get a session_id, then %s.",
                states[named], (int)(id.n < 300 ? id.n : 300), id.p ? id.p : "", then);
    return false;
}

bool tool_may(struct tool_call *t, enum docs_agent least)
{
    static const char *const what[] = {
        [AGENT_READ] = "read", [AGENT_COMMENT] = "comment in", [AGENT_SUGGEST] = "change"};
    const struct docs_folder *f = t->docs.place.folder;

    if (t->call->who->scopes && t->call->who->scopes->read_only) {
        tool_refuse(t, "Access denied: read-only access. Cannot use write tools.");
        return false;
    }
    if (f->agent >= least)
        return true;
    tool_refuse(t,
                "Access denied: agents may not %s documents in '%.*s'. Read them, and tell the "
                "person what you would change.",
                what[least], STR_ARG(f->name));
    return false;
}

struct critic_author tool_author(const struct tool_call *t, struct arena *mem)
{
    return (struct critic_author){critic_author_name(t->call->person, mem), clock_wall_ms() / 1000};
}

bool text_is_plain(const char *name, struct str value, struct error *err)
{
    struct str found = critic_forbidden(value);

    return !found.p ||
           error_set(err, ERR_BAD_INPUT,
                     "Error: %s contains CriticMarkup syntax '%.*s'. Do not include CriticMarkup "
                     "in your input: give the text as it should read, and it is turned into a "
                     "suggestion.",
                     name, STR_ARG(found));
}
