/* SPDX-License-Identifier: Apache-2.0 */
/* The tool edit: one replacement in the accepted view, as a suggestion.  A session may change only
 * lines that it has read.  The lines it has read are looked up at the edit's turn and compared with
 * the bytes of the document while no other call changes them.
 *
 * The session is the one that the argument names, not the session of the transport. */
#include "docs/server/tools.h"

#include "base/utf8.h"
#include "docs/text.h"

#include <stdio.h>
#include <stdlib.h>

/* Has copies of everything it needs, because it may run again after the call has ended. */
struct edit {
    struct docs_change change;
    struct arena *mem;
    struct str file_path, old_string, new_string;
    struct critic_author author;
    struct docs_lines *lines;
    bool writes; /* without review */
    /* Results of the last run. */
    bool is_same;
    int64_t from_line, to_line;
};

static void edit_free(struct docs_change *change)
{
    struct edit *e = container_of(change, struct edit, change);

    docs_lines_free(e->lines);
    arena_free(e->mem);
    free(e);
}

static bool must_read(const struct edit *e, struct error *err)
{
    return error_set(err, ERR_DENIED,
                     "You must read this document before editing it. Call the read tool with "
                     "file_path: \"%.*s\" first.",
                     STR_ARG(e->file_path));
}

static bool find(const struct edit *e, struct str accepted, size_t *at, size_t *n,
                 struct error *err)
{
    size_t count;

    *at = *n = 0;
    if (e->old_string.n == 0) {
        return accepted.n == 0 ||
               error_set(err, ERR_BAD_INPUT,
                         "Error: old_string is empty. Give the text to replace; to add text, give "
                         "a line that is there and repeat it in new_string.");
    }
    critic_find(accepted, e->old_string, at, n, &count);
    if (count == 1)
        return true;
    if (count == 0)
        return error_set(err, ERR_BAD_INPUT,
                         "Error: old_string not found in %.*s. Make sure it matches exactly.",
                         STR_ARG(e->file_path));
    return error_set(err, ERR_BAD_INPUT,
                     "Error: old_string is not unique in %.*s (%zu occurrences found). Include "
                     "more surrounding context to make it unique.",
                     STR_ARG(e->file_path), count);
}

static int64_t line_of(struct str text, size_t at)
{
    int64_t line = 1;

    for (size_t i = 0; i < at && i < text.n; i++)
        line += text.p[i] == '\n';
    return line;
}

/* The lines among first..last that the session may not change yet, because it has not read them or
 * because they have changed since. */
struct unread {
    size_t first, last;
    bool is_changed;
};

static bool find_unread(struct edit *e, const struct str *lines, size_t first, size_t last,
                        struct unread *ret)
{
    *ret = (struct unread){0};
    for (size_t i = first; i <= last; i++) {
        if (docs_has_read(e->lines, lines[i - 1]))
            continue;
        ret->first = ret->first ? ret->first : i;
        ret->last = i;
        ret->is_changed = ret->is_changed || !docs_was_there(e->lines, lines[i - 1]);
    }
    return ret->first > 0;
}

/* Names the lines and the offset to read from: a read of a long document from its beginning would
 * end before these lines. */
static bool must_read_lines(const struct edit *e, const struct unread *u, struct error *err)
{
    char which[64];

    if (u->first == u->last)
        snprintf(which, sizeof which, "Line %zu has", u->first);
    else
        snprintf(which, sizeof which, "Lines %zu to %zu have", u->first, u->last);
    if (u->is_changed && u->first <= READ_LINES)
        return error_set(err, ERR_CONFLICT,
                         "Document changed since last read. Please re-read and try again.");
    if (u->is_changed)
        return error_set(err, ERR_CONFLICT,
                         "Document changed since last read. Please re-read and try again. %s "
                         "changed: read with offset: %zu.",
                         which, u->first);
    return error_set(err, ERR_DENIED,
                     "You must read this document before editing it. Call the read tool with "
                     "file_path: \"%.*s\" and offset: %zu first. %s not been read.",
                     STR_ARG(e->file_path), u->first, which);
}

/* Checks that the session has read every line of the replaced text as it is now. */
static bool check_read(struct edit *e, struct str accepted, size_t at, size_t n, struct arena *mem,
                       struct error *err)
{
    struct str *lines;
    struct unread unread;
    size_t count = text_lines(accepted, mem, &lines);
    size_t last_byte = n > 0 ? at + n - 1 : at;
    size_t first = (size_t)line_of(accepted, at), last = (size_t)line_of(accepted, last_byte);

    return !find_unread(e, lines, first, last < count ? last : count, &unread) ||
           must_read_lines(e, &unread, err);
}

/* Whether lines around `at` end with CRLF.  If the accepted view has no line end, the first line of
 * the document decides. */
static bool ends_are_crlf(struct str bytes, struct str accepted, size_t at)
{
    const char *from = accepted.p,
               *lf = accepted.n ? memchr(from + at, '\n', accepted.n - at) : NULL;

    if (!lf && at > 0)
        lf = memrchr(from, '\n', at);
    if (!lf && bytes.n) {
        from = bytes.p;
        lf = memchr(from, '\n', bytes.n);
    }
    return lf && lf > from && lf[-1] == '\r';
}

/* Agents see lines without line ends and write \n.  New lines get the line end of the lines around
 * them. */
static struct str with_ends_of(struct str fresh, struct str bytes, struct str accepted, size_t at,
                               struct arena *mem)
{
    char *out, before = at > 0 ? accepted.p[at - 1] : '\0';
    size_t n = 0;

    if (!fresh.n || !memchr(fresh.p, '\n', fresh.n) || !ends_are_crlf(bytes, accepted, at))
        return fresh;
    out = arena_alloc(mem, 2 * fresh.n);
    for (size_t i = 0; i < fresh.n; i++) {
        if (fresh.p[i] == '\n' && before != '\r')
            out[n++] = '\r';
        before = out[n++] = fresh.p[i];
    }
    return str_n(out, n);
}

/* Puts "Error: " before the text of the library, as in the other refusals. */
static bool suggest(const struct edit *e, const struct critic *c, const struct critic_edit *edit,
                    struct arena *mem, struct str *ret, struct error *err)
{
    struct error why;

    if (e->writes ? critic_apply(c, edit, mem, ret, &why) : critic_suggest(c, edit, mem, ret, &why))
        return true;
    return error_set(err, why.code, "Error: %s", why.text);
}

/* Runs on a worker, on the current bytes of the document. */
static bool edit_run(struct docs_change *change, struct str bytes, struct arena *mem,
                     struct str *ret, struct error *err)
{
    struct edit *e = container_of(change, struct edit, change);
    struct critic_edit edit = {.author = e->author};
    struct critic critic;
    struct str accepted;
    bool ok;

    if (!text_is_plain("old_string", e->old_string, err) ||
        !text_is_plain("new_string", e->new_string, err))
        return false;
    if (!docs_read_any(e->lines))
        return must_read(e, err);
    critic_parse(bytes, mem, &critic);
    accepted = critic_accepted(&critic, mem);
    if (!find(e, accepted, &edit.at, &edit.n, err) ||
        !check_read(e, accepted, edit.at, edit.n, mem, err))
        return false;
    edit.fresh = with_ends_of(e->new_string, bytes, accepted, edit.at, mem);
    e->is_same = str_eq(str_n(accepted.p + edit.at, edit.n), edit.fresh);
    *ret = bytes;
    ok = e->is_same || suggest(e, &critic, &edit, mem, ret, err);
    e->from_line = line_of(accepted, edit.at);
    e->to_line = e->from_line + line_of(edit.fresh, edit.fresh.n) - 1;
    return ok;
}

/* Lines that the session wrote itself count as read. */
static bool note_lines(struct docs_call *c, struct error *err unused_arg)
{
    struct edit *e = container_of(c->change, struct edit, change);

    c->from_line = e->from_line;
    c->to_line = e->to_line;
    return true;
}

static void on_changed(struct docs_call *c)
{
    struct tool_call *t = c->user;
    struct edit *e = container_of(c->change, struct edit, change);

    if (!c->ok) {
        tool_fail(t, &c->err);
        return;
    }
    if (e->is_same)
        buf_addf(&t->text, "No changes needed for %.*s", STR_ARG(t->file_path));
    else
        buf_addf(&t->text, "Edited %.*s: replaced %zu characters%s.", STR_ARG(t->file_path),
                 utf8_count(e->old_string),
                 e->writes ? "" : " with CriticMarkup suggestion for human review");
    tool_done(t);
}

static struct edit *edit_new(struct tool_call *t, struct str old_string, struct str new_string)
{
    struct edit *e = xcalloc(1, sizeof(*e));

    e->mem = arena_new(16u * 1024 * 1024);
    e->change.run = edit_run;
    e->change.free = edit_free;
    e->file_path = arena_dup(e->mem, t->file_path);
    e->old_string = arena_dup(e->mem, old_string);
    e->new_string = arena_dup(e->mem, new_string);
    e->author = tool_author(t, e->mem);
    e->writes = t->docs.place.folder->agent == AGENT_WRITE;
    return e;
}

void docs_tool_edit(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct str old_string, new_string, id;
    struct edit *e;

    if (!tool_string(t, "file_path", &t->file_path) || !tool_string(t, "old_string", &old_string) ||
        !tool_string(t, "new_string", &new_string) || !tool_maybe_string(t, "session_id", &id))
        return;
    if (call->named == NAMED_NONE) {
        tool_refuse(t, "Missing required parameter: session_id. Pass the session value from the "
                       "read tool's response.");
        return;
    }
    if (!tool_session(t, "edit again") || !tool_place(t) || !tool_may(t, AGENT_SUGGEST))
        return;
    e = edit_new(t, old_string, new_string);
    t->docs.change = &e->change;
    t->docs.lines = &e->lines;
    t->docs.author = e->author.name;
    t->docs.kind = e->writes ? STR("write") : STR("suggest");
    t->docs.work = note_lines;
    t->docs.done = on_changed;
    docs_change(tool_wait(t), &t->docs);
}
