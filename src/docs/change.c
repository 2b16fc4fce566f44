/* SPDX-License-Identifier: Apache-2.0 */
/* Changing documents, one after another: published by the vault on a worker, then told to the
 * history in one commit, then to the index.
 *
 * The displaced file stays on disk until the history has it, so a crash at any point loses nothing:
 * what is neither committed nor in the file lies in .holdfast and is found at the next start. */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "crypto/hash.h"

static const struct revision_row outside = {.kind = STR("outside")};

bool change_concerns(const struct docs_call *running, const struct docs_place *place)
{
    if (running->place.folder != place->folder)
        return false;
    return running->to_path.p || str_eq(running->place.path, place->path);
}

static void start_next(struct docs *d)
{
    struct list *first;
    struct docs_call *c;

    if (d->running || !(first = list_pop(&d->line)))
        return;
    c = list_entry(first, struct docs_call, node);
    d->running = c;
    d->changes++;
    c->begin(c);
}

void change_enter(struct docs_call *c)
{
    if (!c->begin)
        c->begin = read_start;
    list_push(&c->home->line, &c->node);
    start_next(c->home);
}

void change_ended(struct docs *d)
{
    struct list *first;

    d->running = NULL;
    while ((first = list_pop(&d->readers)))
        read_start(list_entry(first, struct docs_call, node));
    start_next(d);
}

void change_stop(struct docs *d)
{
    struct list *first;

    while ((first = list_pop(&d->readers)) || (first = list_pop(&d->line)))
        call_stopped(list_entry(first, struct docs_call, node));
}

static bool apply(void *arg, struct str bytes, struct arena *mem, struct str *ret,
                  struct error *err)
{
    struct docs_change *change = arg;
    return change->run(change, bytes, mem, ret, err);
}

static bool publish(struct docs_call *c, struct error *err)
{
    if (!vault_change(c->place.folder->vault, c->place.path, apply, c->change, c->mem,
                      &c->published, err))
        return false;
    c->changed = c->published.changed;
    c->bytes = c->published.versions[c->published.n - 1].bytes;
    return !c->work || c->work(c, err);
}

static void tell_before(struct docs_call *c, struct str path)
{
    struct vault_version v = {.bytes = c->before};

    if (!c->before.p)
        return;
    sha256(c->before, v.sha256);
    call_revise(c, path, &v, &outside);
}

/* Every text that was in the file, in order, each with who wrote it; `before` follows the one that
 * was there, which the history most likely ends with. */
void change_tell(struct docs_call *c, struct str path, const struct vault_published *p)
{
    struct revision_row ours = {.author = c->author, .kind = c->kind, .reason = c->reason};

    if (p->n == 0)
        tell_before(c, path);
    for (size_t i = 0; i < p->n; i++) {
        call_revise(c, path, &p->versions[i], p->versions[i].is_ours ? &ours : &outside);
        if (i == 0)
            tell_before(c, path);
    }
}

static void on_told(struct docs_call *c)
{
    if (c->newest)
        c->document = *c->newest;
    c->is_told = true;
    keep_path(c->home, open_folder_of(c->place.folder), c->place.path);
    late_add(c->home, c, c->place.path);
    call_finish(c);
}

static void on_published(struct docs_call *c)
{
    if (c->published.n == 0 && !c->before.p) {
        late_add(c->home, c, c->place.path);
        call_finish(c);
        return;
    }
    c->n_ops = 0;
    change_tell(c, c->place.path, &c->published);
    if (c->ok && c->published.n > 0)
        call_note_lines(c, c->place.path);
    call_write(c, on_told);
}

static void change_begin(struct docs_call *c)
{
    call_submit(c, c->home->files, publish, on_published);
}

void docs_change(struct docs *d, struct docs_call *c)
{
    c->home = d;
    c->in_line = true;
    c->begin = change_begin;
    change_enter(c);
}

/* A new document. */

static bool create(struct docs_call *c, struct error *err)
{
    return vault_create(c->place.folder->vault, c->place.path, c->content, err);
}

static void on_created_told(struct docs_call *c)
{
    c->document = *c->newest;
    c->bytes = c->content;
    c->changed = c->ok = true;
    keep_path(c->home, open_folder_of(c->place.folder), c->place.path);
    call_finish(c);
}

static void on_created(struct docs_call *c)
{
    struct vault_version v = {.bytes = c->content};
    struct revision_row ours = {.author = c->author, .kind = c->kind, .reason = c->reason};

    if (!c->ok) {
        call_finish(c);
        return;
    }
    sha256(c->content, v.sha256);
    c->n_ops = 0;
    call_revise(c, c->place.path, &v, &ours);
    call_note_lines(c, c->place.path);
    call_write(c, on_created_told);
}

static void create_begin(struct docs_call *c)
{
    call_submit(c, c->home->files, create, on_created);
}

void docs_create(struct docs *d, struct docs_call *c, struct str bytes)
{
    c->home = d;
    c->content = bytes;
    c->in_line = true;
    c->begin = create_begin;
    change_enter(c);
}
