/* SPDX-License-Identifier: Apache-2.0 */
/* Changing documents: the vault publishes a change on a worker, then one commit writes the history,
 * then the index is updated.  Changes of one document keep their order; a slow change delays no
 * other document.
 *
 * The displaced file stays on disk until the history has its text, so a crash at any point loses
 * nothing: a text that is neither committed nor in the file is in .holdfast, and is found at the
 * next start. */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/map.h"
#include "crypto/hash.h"

static const struct revision_row outside = {.kind = STR("outside")};

/* A move, and the recovery after a crash, concern many documents of a folder. */
static bool takes_folder(const struct docs_call *c)
{
    return c->to_path.p || c->place.path.n == 0;
}

static struct str root_key(const struct docs_call *c)
{
    return str_n(c->line_key.p, c->root_n);
}

/* Two configured folders may be the same directory on disk, so the key is the opened directory. */
void change_name_place(struct docs_call *c)
{
    struct str root = vault_root(c->place.folder->vault);

    c->root_n = root.n;
    c->line_key = arena_printf(c->mem, "%.*s/%.*s", STR_ARG(root), STR_ARG(c->place.path));
}

static bool concerns(const struct docs_call *running, const struct docs_call *read)
{
    if (running == read || running->begin == read_start)
        return false;
    return running->to_path.p ? str_eq(root_key(running), root_key(read))
                              : str_eq(running->line_key, read->line_key);
}

bool change_runs(const struct docs_call *c)
{
    list_each(&c->home->running, node)
    {
        if (concerns(list_entry(node, struct docs_call, run_node), c))
            return true;
    }
    return false;
}

/* The places of calls that run or are earlier in line: whole folders, documents, and all folders
 * with one of either. */
struct holds {
    struct map folders, documents, any;
};

static void holds_add(struct holds *h, struct docs_call *c)
{
    map_put(takes_folder(c) ? &h->folders : &h->documents,
            takes_folder(c) ? root_key(c) : c->line_key, c);
    map_put(&h->any, root_key(c), c);
}

static bool is_held(const struct holds *h, const struct docs_call *c)
{
    if (takes_folder(c))
        return map_get(&h->any, root_key(c)) != NULL;
    return map_get(&h->folders, root_key(c)) || map_get(&h->documents, c->line_key);
}

/* Moves the calls that have their turn now to `ready`. */
static void choose(struct docs *d, struct list *ready)
{
    struct holds h = {0};

    list_each(&d->running, node)
    {
        holds_add(&h, list_entry(node, struct docs_call, run_node));
    }
    list_each(&d->line, node)
    {
        struct docs_call *c = list_entry(node, struct docs_call, node);
        if (!is_held(&h, c)) {
            list_remove(&c->node);
            list_push(ready, &c->node);
            list_push(&d->running, &c->run_node);
            c->is_running = true;
        }
        holds_add(&h, c);
    }
    map_release(&h.folders);
    map_release(&h.documents);
    map_release(&h.any);
}

static void begin(struct docs_call *c)
{
    list_each(&c->home->reading, node)
    {
        struct docs_call *read = list_entry(node, struct docs_call, node);
        read->is_overtaken = read->is_overtaken || concerns(c, read);
    }
    c->begin(c);
}

static void start_ready(struct docs *d)
{
    struct list ready, *first;

    if (list_empty(&d->line))
        return;
    list_init(&ready);
    choose(d, &ready);
    while ((first = list_pop(&ready)))
        begin(list_entry(first, struct docs_call, node));
}

void change_enter(struct docs_call *c)
{
    if (!c->begin)
        c->begin = read_start;
    change_name_place(c);
    list_push(&c->home->line, &c->node);
    start_ready(c->home);
}

static void read_after(struct docs *d)
{
    struct list waiting, *first;

    list_init(&waiting);
    list_move_all(&waiting, &d->readers);
    while ((first = list_pop(&waiting))) {
        struct docs_call *read = list_entry(first, struct docs_call, node);
        if (change_runs(read))
            list_push(&d->readers, &read->node);
        else
            read_start(read);
    }
}

void change_ended(struct docs_call *c)
{
    list_remove(&c->run_node);
    c->is_running = false;
    read_after(c->home);
    start_ready(c->home);
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
    fault_hold("docs.change", c->place.path);
    if (!vault_is_current(c->place.folder->vault, err) ||
        !vault_change(c->place.folder->vault, c->place.path, apply, c->change, c->mem,
                      &c->published, err))
        return false;
    const struct vault_version *now = &c->published.versions[c->published.n - 1];
    c->changed = c->published.changed;
    c->bytes = now->bytes;
    memcpy(c->sha256, now->sha256, sizeof(c->sha256));
    return !c->work || c->work(c, err);
}

static void record_before(struct docs_call *c, struct str path)
{
    struct vault_version v = {.bytes = c->before};

    if (!c->before.p)
        return;
    memcpy(v.sha256, c->before_sha256, sizeof(v.sha256));
    call_revise(c, path, &v, NULL, &outside);
}

/* Adds every text that was in the file to the history, in order, each with its author.  c->before
 * comes after the first version, because the history most likely ends with that version. */
void change_record(struct docs_call *c, struct str path, const struct vault_published *p)
{
    struct revision_row ours = {.author = c->author, .kind = c->kind, .reason = c->reason};

    if (p->n == 0)
        record_before(c, path);
    for (size_t i = 0; i < p->n; i++) {
        call_revise(c, path, &p->versions[i], i ? &p->versions[i - 1] : NULL,
                    p->versions[i].is_ours ? &ours : &outside);
        if (i == 0)
            record_before(c, path);
    }
}

static void on_recorded(struct docs_call *c)
{
    if (c->newest)
        c->document = *c->newest;
    c->is_recorded = true;
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
    change_record(c, c->place.path, &c->published);
    if (c->ok && c->published.n > 0)
        call_note_lines(c, c->place.path);
    call_write(c, on_recorded);
}

void change_begin(struct docs_call *c)
{
    call_submit(c, c->home->changes, publish, on_published);
}

static void change_begin_with_lines(struct docs_call *c)
{
    lines_look(c, change_begin);
}

void docs_change(struct docs *d, struct docs_call *c)
{
    c->home = d;
    c->in_line = true;
    c->begin = c->lines ? change_begin_with_lines : change_begin;
    change_enter(c);
}

/* Removing an empty document. */

static bool remove_empty(struct docs_call *c, struct error *err)
{
    return vault_is_current(c->place.folder->vault, err) &&
           vault_remove_empty(c->place.folder->vault, c->place.path, c->mem, &c->published.staged,
                              err);
}

static void on_removed(struct docs_call *c)
{
    keep_path(c->home, open_folder_of(c->place.folder), c->place.path);
    if (c->published.staged.n > 0)
        late_add(c->home, c, c->place.path);
    call_finish(c);
}

static void remove_begin(struct docs_call *c)
{
    call_submit(c, c->home->changes, remove_empty, on_removed);
}

void docs_remove_empty(struct docs *d, struct docs_call *c)
{
    c->home = d;
    c->in_line = true;
    c->begin = remove_begin;
    change_enter(c);
}

/* Creating a document. */

static bool create(struct docs_call *c, struct error *err)
{
    fault_hold("docs.create", c->place.path);
    if (!vault_is_current(c->place.folder->vault, err))
        return false;
    if (c->change && !c->change->run(c->change, STR(""), c->mem, &c->content, err))
        return false;
    sha256(c->content, c->sha256);
    return vault_create(c->place.folder->vault, c->place.path, c->content, err);
}

static void on_creation_recorded(struct docs_call *c)
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
    memcpy(v.sha256, c->sha256, sizeof(v.sha256));
    c->n_ops = 0;
    call_revise(c, c->place.path, &v, NULL, &ours);
    call_note_lines(c, c->place.path);
    call_write(c, on_creation_recorded);
}

static void create_begin(struct docs_call *c)
{
    call_submit(c, c->home->changes, create, on_created);
}

void docs_create(struct docs *d, struct docs_call *c, struct str bytes)
{
    c->home = d;
    c->content = bytes;
    c->in_line = true;
    c->begin = create_begin;
    change_enter(c);
}
