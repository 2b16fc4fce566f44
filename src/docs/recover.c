/* SPDX-License-Identifier: Apache-2.0 */
/* What a crash left in .holdfast: texts displaced from documents that the history may not have.
 * Each is looked for in its document's history, told to it where it is missing, and only then
 * removed.  A text whose document is gone stays where it is, and the log says so. */
#include "docs/docs_impl.h"

#include "base/log.h"

#include <stdlib.h>

struct recovery {
    struct docs_call call;
    struct principal who;
    struct vault_left *left;
    size_t n, at;
    bool is_known;
};

static void next_left(struct docs_call *c);

static bool find_left(struct docs_call *c, struct error *err)
{
    struct recovery *r = container_of(c, struct recovery, call);
    return vault_recover(c->place.folder->vault, c->mem, &r->left, &r->n, err);
}

static bool release(struct docs_call *c, struct error *err unused_arg)
{
    struct recovery *r = container_of(c, struct recovery, call);
    vault_release(c->place.folder->vault, r->left[r->at - 1].staged);
    return true;
}

static void on_told(struct docs_call *c)
{
    struct recovery *r = container_of(c, struct recovery, call);

    if (!r->is_known)
        log_info("a text that a crash had left behind is in the history now",
                 LS("folder", c->place.folder->name), LS("document", r->left[r->at - 1].path));
    call_submit(c, c->home->files, release, next_left);
}

static bool is_in_history(struct docs_call *c, struct store *store, struct error *err)
{
    struct recovery *r = container_of(c, struct recovery, call);
    const struct vault_left *left = &r->left[r->at - 1];
    struct document_row *row;
    struct revision_row *rows;
    size_t n = 0;

    r->is_known = false;
    if (!store_document(store, c->place.folder->name, left->path, c->mem, &row, err))
        return false;
    if (!row)
        return true;
    if (!store_document_history(store, row->id, 0, STORE_PAGE_MAX, c->mem, &rows, &n, err))
        return false;
    for (size_t i = 0; i < n && !r->is_known; i++)
        r->is_known = memcmp(rows[i].sha256, left->version.sha256, sizeof(rows[i].sha256)) == 0;
    return true;
}

static void on_looked(struct docs_call *c)
{
    static const struct revision_row how = {.kind = STR("recovered"),
                                            .reason = STR("found after a crash")};
    struct recovery *r = container_of(c, struct recovery, call);
    const struct vault_left *left = &r->left[r->at - 1];

    c->n_ops = 0;
    if (r->is_known) {
        on_told(c);
        return;
    }
    call_revise(c, left->path, &left->version, &how);
    call_write(c, on_told);
}

static void next_left(struct docs_call *c)
{
    struct recovery *r = container_of(c, struct recovery, call);

    while (c->ok && r->at < r->n && !r->left[r->at].path.p)
        log_warn("a text in .holdfast belongs to no document; move it out by hand",
                 LS("folder", c->place.folder->name), LS("file", r->left[r->at++].staged));
    if (!c->ok || r->at == r->n) {
        call_finish(c);
        return;
    }
    r->at++;
    call_lookup(c, is_in_history, on_looked);
}

static void on_done(struct docs_call *c)
{
    struct arena *mem = c->mem;

    if (!c->ok)
        log_warn("what a crash may have left of documents was not taken up",
                 LS("folder", c->place.folder->name), LZ("why", c->err.text));
    docs_end(c);
    arena_free(mem);
}

static void recover_begin(struct docs_call *c)
{
    call_submit(c, c->home->files, find_left, next_left);
}

/* In line with changes, which add to what lies there. */
void recover_folder(struct docs *d, struct open_folder *f)
{
    struct arena *mem = arena_new(DOCS_ARENA);
    struct recovery *r = arena_new_of(mem, struct recovery);

    r->who = (struct principal){.tenant = STR("default"), .owner = STR("local")};
    r->call.who = &r->who;
    r->call.mem = mem;
    r->call.done = on_done;
    docs_begin(d, &r->call);
    r->call.place.folder = &f->shown;
    r->call.place.path = STR("");
    r->call.in_line = true;
    r->call.begin = recover_begin;
    change_enter(&r->call);
}
