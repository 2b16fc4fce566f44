/* SPDX-License-Identifier: Apache-2.0 */
/* Recovers the files that a crash, or a time without the store, left in .holdfast: displaced texts
 * that the history may not have.  Each text is looked up in the history of its document and added
 * if it is missing.  Then it is watched like every displaced file, because an editor may still have
 * it open.  A text whose document is gone stays in .holdfast, and the log says so.
 *
 * If recovery fails, the folder gets is_owing, and recovery is tried again. */
#include "docs/docs_impl.h"

#include "base/log.h"

#include <stdlib.h>

struct recovery {
    struct docs_call call;
    struct principal who;
    struct vault_leftover *left;
    size_t n, at;
    bool is_known;
    bool is_more; /* `mem` had no room for all texts */
};

static void next_left(struct docs_call *c);

static bool find_left(struct docs_call *c, struct error *err)
{
    struct recovery *r = container_of(c, struct recovery, call);
    return vault_recover(c->place.folder->vault, c->mem, &r->left, &r->n, err);
}

static void on_recorded(struct docs_call *c)
{
    struct recovery *r = container_of(c, struct recovery, call);

    if (!r->is_known)
        log_info("a text that was left by a crash is now in the history",
                 LS("folder", c->place.folder->name), LS("document", r->left[r->at - 1].path));
    late_add_left(c->home, c, &r->left[r->at - 1]);
    next_left(c);
}

static bool is_in_history(struct docs_call *c, struct store *store, struct error *err)
{
    struct recovery *r = container_of(c, struct recovery, call);
    const struct vault_leftover *left = &r->left[r->at - 1];
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
    const struct vault_leftover *left = &r->left[r->at - 1];

    c->n_ops = 0;
    if (r->is_known) {
        on_recorded(c);
        return;
    }
    call_revise(c, left->path, &left->version, NULL, &how);
    call_write(c, on_recorded);
}

/* Skips files that are already watched, files without a document, and texts that need another
 * run. */
static bool is_passed_over(struct docs_call *c, const struct vault_leftover *left)
{
    struct recovery *r = container_of(c, struct recovery, call);

    if (late_has(c->home, left->staged))
        return true;
    if (!left->path.p) {
        log_warn("a text in .holdfast belongs to no document; move it out by hand",
                 LS("folder", c->place.folder->name), LS("file", left->staged));
        return true;
    }
    r->is_more = r->is_more || !left->version.bytes.p;
    return !left->version.bytes.p;
}

static void next_left(struct docs_call *c)
{
    struct recovery *r = container_of(c, struct recovery, call);

    while (c->ok && r->at < r->n && is_passed_over(c, &r->left[r->at]))
        r->at++;
    if (!c->ok || r->at == r->n) {
        call_finish(c);
        return;
    }
    r->at++;
    call_lookup(c, is_in_history, on_looked);
}

static void on_done(struct docs_call *c)
{
    struct recovery *r = container_of(c, struct recovery, call);
    struct open_folder *f = open_folder_of(c->place.folder);
    struct arena *mem = c->mem;

    f->is_recovering = false;
    f->is_owing = f->is_owing || r->is_more || !c->ok;
    if (!c->ok && !f->home->stopping)
        log_warn("texts in .holdfast could not be added to the history yet; Holdfast tries again",
                 LS("folder", f->shown.name), LZ("why", c->err.text));
    docs_end(c);
    arena_free(mem);
}

static void recover_begin(struct docs_call *c)
{
    call_submit(c, c->home->changes, find_left, next_left);
}

/* In line with changes, because changes add files to .holdfast. */
void recover_folder(struct docs *d, struct open_folder *f)
{
    struct arena *mem = arena_new(DOCS_ARENA);
    struct recovery *r = arena_new_of(mem, struct recovery);

    f->is_owing = false;
    f->is_recovering = true;
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

void recover_owed(struct docs *d)
{
    for (size_t i = 0; d->set && i < d->set->n; i++) {
        struct open_folder *f = d->set->folders[i];
        if (f->is_owing && !f->is_recovering)
            recover_folder(d, f);
    }
}
