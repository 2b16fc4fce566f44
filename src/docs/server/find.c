/* SPDX-License-Identifier: Apache-2.0 */
/* The tools glob, grep, search and get_links.  They run on a worker, see only folders that the
 * caller may use, and say so when an answer is incomplete. */
#include "docs/server/tools.h"

#include "base/clock.h"
#include "base/fault.h"
#include "docs/text.h"

#include <stdlib.h>

#define GLOB_MAX 1000
#define GREP_BYTES_MAX (1u << 20)
#define GREP_MAX_MS 10000 /* after this time a grep ends with an incomplete answer */
#define GREP_SLOW_MAX 4   /* … or after so many documents that took more than 500 ms */

struct finding {
    struct str pattern, path;
    struct glob *glob;
    struct grep *grep;
    struct grep_options options;
    int64_t until_ms;
    struct buf out; /* of grep */
    size_t shown, left_out;
    size_t slow, unread; /* documents skipped: the pattern took too long; unreadable file */
    size_t looked_at, all;
    bool is_late, is_stopped; /* the time is over; the same, or too many documents were slow */
    int64_t limit;
};

/* Splits "Folder", "Folder/sub" or "" into the folder and the prefix of paths inside it.  False:
 * the call was refused. */
static bool split_path(struct tool_call *t, struct str path, struct str *folder, struct str *prefix)
{
    const char *slash = path.n ? memchr(path.p, '/', path.n) : NULL;

    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    *folder = str_n(path.p, slash && slash < path.p + path.n ? (size_t)(slash - path.p) : path.n);
    *prefix = folder->n < path.n ? str_n(path.p + folder->n + 1, path.n - folder->n - 1) : STR("");
    if (path.n == 0 || docs_folder(&t->docs, *folder))
        return true;
    struct error err;
    if (t->call->who->scopes && t->call->who->scopes->n_folders > 0)
        docs_denied(&t->docs, &err);
    else
        docs_no_folder(&t->docs, *folder, &err);
    tool_refuse(t, "%s", err.text);
    return false;
}

/* Calls `each` for every document under f->path; `each` returns false to stop. */
static bool walk(struct tool_call *t,
                 bool (*each)(struct tool_call *t, const struct docs_folder *f, struct str path,
                              struct str full),
                 struct error *err)
{
    struct finding *f = t->arg;
    const struct docs_folder **folders;
    size_t n = docs_visible(&t->docs, &folders);
    const char *slash = f->path.n ? memchr(f->path.p, '/', f->path.n) : NULL;
    struct str only = str_n(f->path.p, slash ? (size_t)(slash - f->path.p) : f->path.n);
    struct str prefix = slash ? str_n(slash + 1, f->path.n - only.n - 1) : STR("");

    for (size_t i = 0; i < n; i++) {
        struct vault_entry *entries;
        size_t m = 0;
        bool cut;
        if (only.n && !str_eq(folders[i]->name, only))
            continue;
        if (!vault_list(folders[i]->vault, t->call->mem, &entries, &m, &cut, err))
            return false;
        if (!docs_check_path(folders[i], entries, m, prefix, err))
            return false;
        for (size_t k = 0; k < m; k++) {
            if (!docs_is_under(entries[k].path, prefix))
                continue;
            struct str full = arena_printf(t->call->mem, "%.*s/%.*s", STR_ARG(folders[i]->name),
                                           STR_ARG(entries[k].path));
            if (!each(t, folders[i], entries[k].path, full))
                return true;
        }
    }
    return true;
}

static bool has_slash(struct str s)
{
    return s.n && memchr(s.p, '/', s.n);
}

static struct str last_part(struct str path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return str_n(path.p + at, path.n - at);
}

/* Matches the pattern with the whole path, with the part of it below f->path and, for a pattern
 * without a slash, with the name alone. */
static bool glob_one(struct tool_call *t, const struct docs_folder *folder unused_arg,
                     struct str path unused_arg, struct str full)
{
    struct finding *f = t->arg;
    struct str rest = f->path.n && full.n > f->path.n
                          ? str_n(full.p + f->path.n + 1, full.n - f->path.n - 1)
                          : full;

    if (!glob_matches(f->glob, full) && !glob_matches(f->glob, rest) &&
        (has_slash(f->pattern) || !glob_matches(f->glob, last_part(full))))
        return true;
    if (f->shown == GLOB_MAX) {
        f->left_out++;
        return true;
    }
    buf_addf(&t->text, "%s%.*s", f->shown++ ? "\n" : "", STR_ARG(full));
    return true;
}

static bool glob_work(struct docs_call *c, struct error *err)
{
    struct tool_call *t = c->user;
    struct finding *f = t->arg;

    if (!walk(t, glob_one, err))
        return false;
    if (f->shown == 0)
        buf_addz(&t->text, "No matches found.");
    if (f->left_out)
        buf_addf(&t->text, "\n\n[%zu more not shown; use a narrower pattern or path.]",
                 f->left_out);
    return true;
}

/* Reads the arguments and checks that the caller may use the folder.  NULL: the call was
 * refused. */
static struct finding *finding_begin(struct tool_call *t)
{
    struct finding *f = arena_new_of(t->call->mem, struct finding);
    struct str folder, prefix;

    t->arg = f;
    if (!tool_string(t, "pattern", &f->pattern) || !tool_maybe_string(t, "path", &f->path) ||
        !tool_session(t, "call again"))
        return NULL;
    docs_begin(t->server->docs, &t->docs);
    while (f->path.n && f->path.p[f->path.n - 1] == '/')
        f->path.n--;
    return split_path(t, f->path, &folder, &prefix) ? f : NULL;
}

void docs_tool_glob(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct finding *f = finding_begin(t);
    struct error err;

    if (!f)
        return;
    if (!glob_compile(f->pattern, call->mem, &f->glob, &err)) {
        tool_fail(t, &err);
        return;
    }
    t->docs.work = glob_work;
    docs_work(tool_wait(t), &t->docs);
}

/* Searches the accepted view of a document, so that line numbers are those of the tool read. */
static bool grep_one(struct tool_call *t, const struct docs_folder *folder, struct str path,
                     struct str full)
{
    struct finding *f = t->arg;
    struct arena *mem;
    struct vault_file file;
    struct critic critic;
    struct error err;
    bool more;

    f->all++;
    f->is_late = f->is_late || clock_mono_us() / 1000 > f->until_ms || docs_is_stopping(&t->docs);
    f->is_stopped = f->is_late || f->slow == GREP_SLOW_MAX;
    if (f->is_stopped)
        return true; /* the rest is counted */
    if (grep_is_full(f->grep, &more) && more)
        return false;
    f->looked_at++;
    mem = arena_new(64u * 1024 * 1024);
    if (!vault_read(folder->vault, path, mem, &file, &err)) {
        f->unread += err.code != ERR_NOT_FOUND; /* not found: deleted after the listing */
    } else {
        struct str text = file.bytes;
        if (!critic_is_plain(text)) {
            critic_parse(text, mem, &critic);
            text = critic_accepted(&critic, mem);
        }
        f->slow += !grep_document(f->grep, full, text, &f->out, &err);
    }
    arena_free(mem);
    return true;
}

/* Says which documents the search did not cover. */
static void add_how_far(struct tool_call *t, const struct finding *f)
{
    const char *s = f->slow == 1 ? "" : "s";

    if (f->is_late)
        buf_addf(&t->text,
                 "\n\n[Stopped after %d seconds: %zu of %zu documents were searched. "
                 "Narrow path or pattern.]",
                 GREP_MAX_MS / 1000, f->looked_at, f->all);
    else if (f->is_stopped)
        buf_addf(&t->text,
                 "\n\n[Stopped: the pattern takes too long in %zu documents; %zu of %zu "
                 "documents were searched. Make the pattern simpler.]",
                 f->slow, f->looked_at, f->all);
    if (f->slow && !(f->is_stopped && !f->is_late))
        buf_addf(&t->text, "\n\n[The pattern takes too long in %zu document%s; make it simpler.]",
                 f->slow, s);
}

static bool grep_work(struct docs_call *c, struct error *err)
{
    struct tool_call *t = c->user;
    struct finding *f = t->arg;
    bool more = false;

    fault_hold("docs.grep", f->pattern);
    if (!grep_compile(f->pattern, &f->options, &f->grep, err))
        return false;
    f->until_ms = clock_mono_us() / 1000 + GREP_MAX_MS;
    if (!walk(t, grep_one, err))
        return false;
    buf_addstr(&t->text, buf_str(&f->out));
    if (t->text.n == 0)
        buf_addz(&t->text, "No matches found.");
    (void)grep_is_full(f->grep, &more);
    if (more)
        buf_addz(&t->text, "\n\n[There are more matches; raise head_limit, or narrow pattern or "
                           "path.]");
    add_how_far(t, f);
    if (f->unread)
        buf_addf(&t->text, "\n\n[%zu document%s not searched: not UTF-8 text, or too large.]",
                 f->unread, f->unread == 1 ? " was" : "s were");
    return true;
}

static void free_grep(void *arg)
{
    struct finding *f = arg;

    grep_free(f->grep);
    buf_release(&f->out);
}

static bool grep_arguments(struct tool_call *t, struct finding *f)
{
    struct str mode;
    int64_t both = -1, before = 0, after = 0, head = 0;

    if (!tool_maybe_string(t, "output_mode", &mode) ||
        !tool_maybe_bool(t, "-i", &f->options.ignore_case) ||
        !tool_maybe_int(t, "-C", 0, 50, &both) || !tool_maybe_int(t, "-B", 0, 50, &before) ||
        !tool_maybe_int(t, "-A", 0, 50, &after) ||
        !tool_maybe_int(t, "head_limit", 1, 10000, &head))
        return false;
    f->options.before = (unsigned)(both > before ? both : before);
    f->options.after = (unsigned)(both > after ? both : after);
    f->options.head_limit = (size_t)head;
    if (!mode.p || str_eq(mode, STR("files_with_matches")))
        f->options.mode = GREP_FILES;
    else if (str_eq(mode, STR("content")))
        f->options.mode = GREP_CONTENT;
    else if (str_eq(mode, STR("count")))
        f->options.mode = GREP_COUNT;
    else {
        tool_refuse(t, "Parameter output_mode must be files_with_matches, content or count.");
        return false;
    }
    return true;
}

void docs_tool_grep(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct finding *f = finding_begin(t);

    if (!f || !grep_arguments(t, f))
        return;
    buf_init(&f->out, GREP_BYTES_MAX);
    arena_on_free(call->mem, free_grep, f);
    t->docs.work = grep_work;
    docs_long_work(tool_wait(t), &t->docs);
}

static bool search_work(struct docs_call *c, struct error *err)
{
    struct tool_call *t = c->user;
    struct finding *f = t->arg;
    const struct docs_folder **folders;
    size_t n = docs_visible(c, &folders), m = 0;
    struct str *names = arena_zalloc(c->mem, (n + 1) * sizeof(*names));
    struct index_hit *hits;
    bool more = false;

    for (size_t i = 0; i < n; i++)
        names[i] = folders[i]->name;
    if (!docs_index(c))
        return error_set(err, ERR_UNAVAILABLE, "There is no index; use grep instead.");
    if (n && !index_search(docs_index(c), f->pattern, names, n, (unsigned)f->limit, c->mem, &hits,
                           &m, &more, err))
        return false;
    for (size_t i = 0; i < m; i++)
        buf_addf(&t->text, "%s%.*s/%.*s: %.*s\n  %.*s", i ? "\n" : "", STR_ARG(hits[i].folder),
                 STR_ARG(hits[i].path), STR_ARG(hits[i].title), STR_ARG(hits[i].snippet));
    if (m == 0)
        buf_addz(&t->text, "No matches found.");
    if (more)
        buf_addf(&t->text, "\n\n[There are more; these are the best %zu.]", m);
    return true;
}

void docs_tool_search(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct finding *f = arena_new_of(call->mem, struct finding);

    t->arg = f;
    f->limit = 20;
    if (!tool_string(t, "query", &f->pattern) || !tool_maybe_int(t, "limit", 1, 100, &f->limit) ||
        !tool_session(t, "search again"))
        return;
    docs_begin(t->server->docs, &t->docs);
    t->docs.work = search_work;
    docs_work(tool_wait(t), &t->docs);
}

static void add_links(struct tool_call *t, const char *title, const struct str *paths, size_t n,
                      bool more)
{
    buf_addf(&t->text, "%s\n", title);
    for (size_t i = 0; i < n; i++)
        buf_addf(&t->text, "- %.*s/%.*s\n", STR_ARG(t->docs.place.folder->name), STR_ARG(paths[i]));
    if (n == 0)
        buf_addz(&t->text, "- (none)\n");
    if (more)
        buf_addz(&t->text, "- ... and more\n");
}

static bool links_work(struct docs_call *c, struct error *err)
{
    struct tool_call *t = c->user;
    struct str folder = c->place.folder->name, *paths, *others;
    struct vault_file file;
    size_t n = 0, m = 0;
    bool more = false, also = false;

    if (!vault_read(c->place.folder->vault, c->place.path, c->mem, &file, err))
        return false;
    if (!docs_index(c))
        return error_set(err, ERR_UNAVAILABLE, "There is no index of links; use grep instead.");
    if (!index_backlinks(docs_index(c), folder, c->place.path, c->mem, &paths, &n, &more, err) ||
        !index_forward_links(docs_index(c), folder, c->place.path, c->mem, &others, &m, &also, err))
        return false;
    add_links(t, "Backlinks (documents linking to this):", paths, n, more);
    buf_addc(&t->text, '\n');
    add_links(t, "Forward links (documents this links to):", others, m, also);
    t->text.n--;
    return true;
}

void docs_tool_get_links(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);

    if (!tool_string(t, "file_path", &t->file_path) || !tool_session(t, "call again") ||
        !tool_place(t))
        return;
    t->docs.work = links_work;
    docs_work(tool_wait(t), &t->docs);
}
