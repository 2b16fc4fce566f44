/* SPDX-License-Identifier: Apache-2.0 */
/* The tools create, move and comment.  In a folder where agents suggest, the text of a new document
 * is itself a suggestion: the file exists, and a person decides about its text. */
#include "docs/server/tools.h"

#include <stdlib.h>

/* Checks a path that the agent chose: it must end in .md, and its part after the folder must be
 * safe to copy into links of other documents. */
static bool check_name(struct tool_call *t, struct str path)
{
    const char *slash = path.n ? memchr(path.p, '/', path.n) : NULL;
    struct str inside = slash ? str_n(slash + 1, path.n - (size_t)(slash + 1 - path.p)) : path;
    struct error err;

    if (path.n <= 3 || !(str_ends(path, STR(".md")) || str_ends(path, STR(".MD")))) {
        tool_refuse(t, "Error: a document's path ends in .md; give one such as 'Folder/Name.md'.");
        return false;
    }
    if (vault_name_check(inside, &err))
        return true;
    tool_refuse(t, "Error: %s.", err.text);
    return false;
}

/* Checks that the folder exists.  False: the call was refused with the names of the existing
 * folders. */
static bool known_folder(struct tool_call *t, struct str file_path)
{
    const char *slash = file_path.n ? memchr(file_path.p, '/', file_path.n) : NULL;
    struct str name = str_n(file_path.p, slash ? (size_t)(slash - file_path.p) : file_path.n);
    const struct docs_folder **folders;
    struct buf names;
    size_t n;

    docs_begin(t->server->docs, &t->docs);
    n = docs_visible(&t->docs, &folders);
    bool known = docs_folder(&t->docs, name) != NULL;
    buf_init(&names, 16384); /* 64 folders, names of 64 bytes */
    for (size_t i = 0; i < n; i++)
        buf_addf(&names, "%s%.*s", i ? ", " : "", STR_ARG(folders[i]->name));
    docs_end(&t->docs);
    if (!known && !(t->call->who->scopes && t->call->who->scopes->n_folders))
        tool_refuse(t, "Unknown folder '%.*s'. Available folders: %.*s", STR_ARG(name),
                    (int)names.n, names.n ? names.p : "");
    else
        known = true; /* tool_place() refuses the folder with its own text */
    buf_release(&names);
    return known;
}

static void on_created(struct docs_call *c)
{
    struct tool_call *t = c->user;

    if (c->ok) {
        buf_addf(&t->text, "Created %.*s", STR_ARG(t->file_path));
        tool_done(t);
    } else if (c->err.code == ERR_CONFLICT) {
        tool_refuse(t, "Path '%.*s' already exists in folder '%.*s'", STR_ARG(c->place.path),
                    STR_ARG(c->place.folder->name));
    } else {
        tool_fail(t, &c->err);
    }
}

/* The text of a new document, made on a worker.  For review, it is an addition to an empty text. */
struct creation {
    struct docs_change change;
    struct arena *mem;
    struct str content;
    struct critic_author author;
    bool is_reviewed;
};

static void creation_free(struct docs_change *change)
{
    struct creation *n = container_of(change, struct creation, change);

    arena_free(n->mem);
    free(n);
}

static bool creation_run(struct docs_change *change, struct str bytes, struct arena *mem,
                         struct str *ret, struct error *err)
{
    struct creation *n = container_of(change, struct creation, change);
    struct critic_edit edit = {.fresh = n->content, .author = n->author};
    struct critic empty;

    if (!text_is_plain("content", n->content, err))
        return false;
    critic_parse(bytes, mem, &empty);
    return n->is_reviewed ? critic_suggest(&empty, &edit, mem, ret, err)
                          : critic_apply(&empty, &edit, mem, ret, err);
}

static struct creation *creation_new(struct tool_call *t, struct str content)
{
    struct creation *n = xcalloc(1, sizeof(*n));

    n->change = (struct docs_change){.run = creation_run, .free = creation_free};
    n->mem = arena_new(16u * 1024 * 1024);
    n->content = arena_dup(n->mem, content);
    n->author = tool_author(t, n->mem);
    n->is_reviewed = t->docs.place.folder->agent != AGENT_WRITE && content.n > 0;
    return n;
}

void docs_tool_create(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct creation *n;
    struct str content;

    if (!tool_string(t, "file_path", &t->file_path) || !tool_string(t, "content", &content) ||
        !tool_session(t, "create again") || !check_name(t, t->file_path) ||
        !known_folder(t, t->file_path) || !tool_place(t) || !tool_may(t, AGENT_SUGGEST))
        return;
    if (content.n > VAULT_FILE_MAX / 2) {
        tool_refuse(t, "Error: a new document holds at most 2 MiB; create several.");
        return;
    }
    n = creation_new(t, content);
    t->docs.change = &n->change;
    t->docs.author = n->author.name;
    t->docs.kind = STR("create");
    t->docs.from_line = 1;
    t->docs.to_line = INT32_MAX;
    t->docs.done = on_created;
    docs_create(tool_wait(t), &t->docs, STR_NONE);
}

#define LINKING_SHOWN 5

/* Quotes a path for the shell, for a command that a person may paste. */
static void add_quoted(struct buf *out, struct str path)
{
    buf_addc(out, '\'');
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] == '\'')
            buf_addz(out, "'\\''");
        else
            buf_addc(out, path.p[i]);
    buf_addc(out, '\'');
}

/* Refuses a move that would change the documents with links to this one without review. */
static void refuse_linked(struct tool_call *t, const struct docs_call *c, struct str to)
{
    struct str folder = c->place.folder->name;
    struct buf names, command;

    buf_init(&names, 16384);
    buf_init(&command, 16384);
    add_quoted(&command, t->file_path);
    buf_addc(&command, ' ');
    add_quoted(&command, to);
    for (size_t i = 0; i < c->n_linking && i < LINKING_SHOWN; i++)
        buf_addf(&names, "%s%.*s/%.*s", i ? ", " : "", STR_ARG(folder), STR_ARG(c->linking[i]));
    if (c->n_linking > LINKING_SHOWN)
        buf_addf(&names, " and %zu more", c->n_linking - LINKING_SHOWN);
    tool_refuse(t,
                "Error: %.*s was not moved. %zu other document%s to it, and in '%.*s' agents do "
                "not change documents without review: %.*s. Ask a person to run `holdfast docs "
                "move %.*s`, which moves it and rewrites the links.",
                STR_ARG(t->file_path), c->n_linking, c->n_linking == 1 ? " links" : "s link",
                STR_ARG(folder), (int)names.n, names.p, (int)command.n, command.p);
    buf_release(&names);
    buf_release(&command);
}

static void on_moved(struct docs_call *c)
{
    struct tool_call *t = c->user;
    struct str to = *(struct str *)t->arg;

    if (c->ok) {
        buf_addf(&t->text, "Moved %.*s -> %.*s (%lld links rewritten)", STR_ARG(t->file_path),
                 STR_ARG(to), (long long)c->number);
        tool_done(t);
    } else if (c->err.code == ERR_CONFLICT) {
        tool_refuse(t, "Path '%.*s' already exists in folder '%.*s'", STR_ARG(c->to_path),
                    STR_ARG(c->place.folder->name));
    } else if (c->n_linking > 0) {
        refuse_linked(t, c, to);
    } else {
        tool_fail(t, &c->err);
    }
}

void docs_tool_move(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct str *to = arena_new_of(call->mem, struct str), path;
    struct error err;

    t->arg = to;
    if (!tool_string(t, "file_path", &t->file_path) || !tool_string(t, "new_path", to) ||
        !tool_session(t, "move again") || !check_name(t, *to) || !tool_place(t) ||
        !tool_may(t, AGENT_SUGGEST))
        return;
    struct str folder = t->docs.place.folder->name;
    if (to->n <= folder.n + 1 || !str_starts(*to, folder) || to->p[folder.n] != '/') {
        tool_refuse(t,
                    "Error: a document stays in its folder; give a new_path that begins with "
                    "'%.*s/'.",
                    STR_ARG(folder));
        return;
    }
    path = str_n(to->p + folder.n + 1, to->n - folder.n - 1);
    if (!vault_path_check(path, &err)) {
        tool_refuse(t, "Error: %s", err.text);
        return;
    }
    t->docs.author = tool_author(t, call->mem).name;
    t->docs.kind = STR("move");
    t->docs.spares_others = t->docs.place.folder->agent != AGENT_WRITE;
    t->docs.done = on_moved;
    docs_move(tool_wait(t), &t->docs, path);
}

/* A comment after a passage that occurs once in the document. */
struct remark {
    struct docs_change change;
    struct arena *mem;
    struct str file_path, quote, text;
    struct critic_author author;
};

static void remark_free(struct docs_change *change)
{
    struct remark *r = container_of(change, struct remark, change);

    arena_free(r->mem);
    free(r);
}

static bool remark_run(struct docs_change *change, struct str bytes, struct arena *mem,
                       struct str *ret, struct error *err)
{
    struct remark *r = container_of(change, struct remark, change);
    struct critic critic;
    struct str accepted;
    size_t at = 0, n = 0, count = 1;

    if (!text_is_plain("comment", r->text, err))
        return false;
    critic_parse(bytes, mem, &critic);
    accepted = critic_accepted(&critic, mem);
    critic_find(accepted, r->quote, &at, &n, &count);
    if (count == 0)
        return error_set(err, ERR_BAD_INPUT,
                         "Error: quote not found in %.*s. Make sure it matches exactly.",
                         STR_ARG(r->file_path));
    if (count > 1)
        return error_set(err, ERR_BAD_INPUT,
                         "Error: quote is not unique in %.*s (%zu occurrences found). Include more "
                         "surrounding context to make it unique.",
                         STR_ARG(r->file_path), count);
    return critic_comment(&critic, at + n, r->text, &r->author, mem, ret, err);
}

static void on_commented(struct docs_call *c)
{
    struct tool_call *t = c->user;

    if (c->ok)
        buf_addf(&t->text, "Commented on %.*s.", STR_ARG(t->file_path));
    tool_on_done(c);
}

void docs_tool_comment(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct str quote, text;
    struct remark *r;

    if (!tool_string(t, "file_path", &t->file_path) || !tool_string(t, "quote", &quote) ||
        !tool_string(t, "comment", &text) || !tool_session(t, "comment again") || !tool_place(t) ||
        !tool_may(t, AGENT_COMMENT))
        return;
    if (quote.n == 0) {
        tool_refuse(t, "Error: quote is empty. Give the text that the comment is about.");
        return;
    }
    r = xcalloc(1, sizeof(*r));
    r->mem = arena_new(16u * 1024 * 1024);
    r->change.run = remark_run;
    r->change.free = remark_free;
    r->file_path = arena_dup(r->mem, t->file_path);
    r->quote = arena_dup(r->mem, quote);
    r->text = arena_dup(r->mem, text);
    r->author = tool_author(t, r->mem);
    t->docs.change = &r->change;
    t->docs.author = r->author.name;
    t->docs.kind = STR("comment");
    t->docs.done = on_commented;
    docs_change(tool_wait(t), &t->docs);
}
