/* SPDX-License-Identifier: Apache-2.0 */
/* Lists over folders: of documents, and of the suggestions in them.  A worker walks the files in
 * the order of folder and path, from the end of the previous page.  The search for suggestions
 * reads files, so a page also ends after PAGE_MS or PAGE_BYTES.  Such a page may be short or empty,
 * and it has a next_cursor. */
#include "docs/api/request.h"
#include "docs/api/table.h"

#include "base/clock.h"
#include "docs/critic/critic.h"
#include "crypto/hash.h"
#include "docs/api/suggestion.h"
#include "session/session_json.h"

#define PAGE_MS 1000
#define PAGE_BYTES (8u * 1024 * 1024)
#define FILE_MEMORY (512u * 1024 * 1024)

struct walk {
    struct docs_page page;
    struct str path; /* only this document, or the documents below this path; absent: all */
    /* Adds an entry for the document if it belongs on the list. */
    bool (*visit)(struct docs_call *call, struct walk *w, const struct docs_folder *folder,
                  const struct vault_entry *entry, struct error *err);
    struct buf out;
    struct js_writer json;
    size_t count;
    int64_t until_ms;
    /* The document visited last; the same again, set when the page is full and more follow. */
    struct str previous, last;
};

static void release_walk(void *arg)
{
    buf_release(&((struct walk *)arg)->out);
}

static bool is_before(const struct walk *w, const struct docs_folder *folder, struct str path)
{
    struct str rest = w->page.after, name = str_split(&rest, '/');
    int order = str_cmp(folder->name, name);

    return w->page.after.p && (order < 0 || (order == 0 && str_cmp(path, rest) <= 0));
}

static bool is_full(const struct walk *w)
{
    return w->previous.p && (w->count == (size_t)w->page.limit || w->out.n >= PAGE_BYTES ||
                             clock_mono_ms() >= w->until_ms);
}

static bool walk_folder(struct docs_call *call, struct walk *w, const struct docs_folder *folder,
                        struct error *err)
{
    struct vault_entry *entries = NULL;
    size_t n = 0;
    bool is_cut;

    if (!vault_list(folder->vault, call->mem, &entries, &n, &is_cut, err) ||
        (w->path.p && !docs_check_path(folder, entries, n, w->path, err)))
        return false;
    for (size_t i = 0; i < n && !w->last.p; i++) {
        if (is_before(w, folder, entries[i].path) ||
            (w->path.p && !docs_is_under(entries[i].path, w->path)))
            continue;
        if (is_full(w)) {
            w->last = w->previous;
            break;
        }
        if (!w->visit(call, w, folder, &entries[i], err))
            return false;
        w->previous =
            arena_printf(call->mem, "%.*s/%.*s", STR_ARG(folder->name), STR_ARG(entries[i].path));
    }
    return true;
}

static bool run_walk(struct docs_call *call, struct error *err)
{
    struct docs_request *q = call->user;
    struct walk *w = q->args;
    const struct docs_folder **folders;
    size_t n = docs_visible(call, &folders);

    w->until_ms = clock_mono_ms() + PAGE_MS;
    js_array(&w->json);
    for (size_t i = 0; i < n && !w->last.p; i++) {
        if (w->page.folder.p && !str_eq(folders[i]->name, w->page.folder))
            continue;
        if (!walk_folder(call, w, folders[i], err))
            return false;
    }
    js_array_end(&w->json);
    return true;
}

static void on_walked(struct docs_call *call)
{
    struct docs_request *q = call->user;
    struct walk *w = q->args;

    if (!call->ok && call->err.code == ERR_NOT_FOUND && w->path.p) {
        docs_request_not_found(q, "document not found");
        return;
    }
    if (!call->ok) {
        docs_request_fail(q);
        return;
    }
    struct str link = docs_page_end(q, &w->page, &w->json, w->count, w->last, q->api->op->pattern);
    docs_request_reply(q, 200, link, buf_str(&w->out));
}

/* Without any folder there are no workers, so the empty list is answered here. */
static void walk_begin(struct docs_request *q)
{
    struct walk *w = q->args;
    struct docs *d = q->api->sv->docs;

    if (docs_any(d)) {
        docs_work(d, &q->call);
        return;
    }
    js_array(&w->json);
    js_array_end(&w->json);
    q->call.ok = true;
    on_walked(&q->call);
}

/* Checks the query and prepares the walk; NULL: the refusal was sent. */
static struct docs_request *walk_new(struct api_call *c, const char *list, struct str path,
                                     struct walk **ret)
{
    struct docs_page page = {0};

    if (!docs_page_read(c, list, path, &page))
        return NULL;
    struct docs_request *q = docs_request_new(c, false);
    if (!q)
        return NULL;
    docs_begin(c->sv->docs, &q->call);
    if (page.folder.p && !docs_folder(&q->call, page.folder)) {
        docs_no_folder(&q->call, page.folder, &q->call.err);
        docs_request_not_found(q, "folder not found");
        return NULL;
    }
    struct walk *w = arena_new_of(q->mem, struct walk);
    w->page = page;
    buf_init(&w->out, SIZE_MAX / 4);
    arena_on_free(q->mem, release_walk, w);
    js_begin(&w->json, &w->out);
    js_object(&w->json);
    js_key(&w->json, STR("files"));
    q->args = w;
    q->call.work = run_walk;
    q->call.done = on_walked;
    *ret = w;
    return q;
}

/* Documents. */

static void write_path(struct walk *w, const struct docs_folder *folder, struct str path,
                       struct arena *mem)
{
    js_kv_string(&w->json, "path",
                 arena_printf(mem, "%.*s/%.*s", STR_ARG(folder->name), STR_ARG(path)));
}

static bool visit_document(struct docs_call *call, struct walk *w, const struct docs_folder *folder,
                           const struct vault_entry *entry, struct error *err unused_arg)
{
    js_object(&w->json);
    write_path(w, folder, entry->path, call->mem);
    js_kv_int(&w->json, "size", entry->size);
    json_kv_time(&w->json, "modified_at", entry->modified_ms);
    js_object_end(&w->json);
    w->count++;
    return true;
}

void api_list_documents(struct api_call *c)
{
    struct walk *w;
    struct docs_request *q = walk_new(c, "documents", STR_NONE, &w);

    if (!q)
        return;
    w->visit = visit_document;
    walk_begin(q);
}

/* Suggestions. */

static void write_suggestions(struct walk *w, const struct docs_folder *folder, struct str path,
                              const struct vault_file *file, struct arena *mem)
{
    struct critic_suggestion *list;
    struct critic critic;
    char tag[DOCS_TAG_TEXT];

    critic_parse(file->bytes, mem, &critic);
    size_t n = critic_suggestions(&critic, mem, &list);
    if (n == 0)
        return;
    js_object(&w->json);
    write_path(w, folder, path, mem);
    js_kv_string(&w->json, "etag", docs_tag(file->sha256, tag));
    js_kv_int(&w->json, "total", (int64_t)n);
    js_key(&w->json, STR("suggestions"));
    suggestions_write(&w->json, list, n);
    js_object_end(&w->json);
    w->count++;
}

/* A file that was deleted meanwhile, or is not a document, has no suggestions. */
static bool visit_suggestions(struct docs_call *call unused_arg, struct walk *w,
                              const struct docs_folder *folder, const struct vault_entry *entry,
                              struct error *err unused_arg)
{
    struct arena *mem = arena_new(FILE_MEMORY);
    struct vault_file file;
    struct error why;

    if (vault_read(folder->vault, entry->path, mem, &file, &why) && !critic_is_plain(file.bytes))
        write_suggestions(w, folder, entry->path, &file, mem);
    arena_free(mem);
    return true;
}

void api_list_suggestions(struct api_call *c)
{
    struct docs_request *q;
    struct str path;
    struct walk *w;

    if (!api_query(c, "path", &path))
        return;
    q = walk_new(c, "suggestions", path, &w);
    if (!q)
        return;
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    w->visit = visit_suggestions;
    w->path = path;
    if (path.p && !w->page.folder.p)
        docs_request_refuse(q, ERR_BAD_INPUT, "?path= needs ?folder=",
                            "?path= is relative to a folder; send ?folder= as well.", STR_NONE);
    else
        walk_begin(q);
}
