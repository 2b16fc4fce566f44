/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the index up to date with the files: changed documents are read and indexed again, on a
 * worker, one job at a time.  Changes are reported by inotify and by our own calls.  A folder is
 * listed whole when it is new, when events were missed, and every ten minutes as a precaution. */
#include "docs/docs_impl.h"

#include "base/log.h"
#include "docs/critic/critic.h"

#include <stdlib.h>

#define KEEP_TOGETHER 500   /* documents per transaction */
#define KEEP_DIRTY_MAX 5000 /* past that the folder is listed instead */
#define KEEP_LIST_MS 600000 /* period of the precautionary listing */

enum piece_kind { PIECE_PATH, PIECE_LIST, PIECE_FORGET, PIECE_EVENTS };

struct piece {
    struct list node;
    struct open_folder *folder; /* holds a reference */
    enum piece_kind kind;
    char path[]; /* of PIECE_PATH */
};

/* The pieces that a worker is processing. */
struct index_job {
    struct worker_job job;
    struct docs *home;
    struct list pieces;
    struct arena *mem;
    size_t put, failed;
};

static void piece_free(struct piece *p)
{
    list_remove(&p->node);
    folder_unref(p->folder);
    free(p);
}

/* On the worker. */

static bool put_document(struct index_job *j, struct open_folder *f, struct str path,
                         const struct vault_entry *entry)
{
    struct arena *mem = arena_new(DOCS_ARENA);
    struct index_document d = {.folder = f->shown.name, .path = path};
    struct vault_file file;
    struct critic critic;
    struct error err;
    bool ok;

    if (!vault_read(f->shown.vault, path, mem, &file, &err)) {
        ok = index_remove(j->home->index, f->shown.name, path, &err);
        arena_free(mem);
        return ok;
    }
    d.size = (int64_t)file.bytes.n;
    d.modified_ms = file.modified_ms;
    d.inode = entry ? entry->inode : 0;
    memcpy(d.sha256, file.sha256, sizeof(d.sha256));
    critic_parse(file.bytes, mem, &critic);
    ok = index_put(j->home->index, &d, critic_accepted(&critic, mem), &err);
    arena_free(mem);
    j->put++;
    return ok;
}

static int compare(const struct vault_entry *e, const struct index_document *k)
{
    return str_cmp(e->path, k->path);
}

static bool is_known(const struct vault_entry *e, const struct index_document *k)
{
    return e->size == k->size && e->modified_ms == k->modified_ms;
}

/* Long work is committed in parts, so that searches see it and other writers get a turn. */
static bool pause_commit(struct index_job *j, size_t done, struct error *err)
{
    return done % KEEP_TOGETHER != 0 ||
           (index_commit(j->home->index, err) && index_begin(j->home->index, err));
}

/* Both lists are sorted: an entry only on disk is new, an entry only in the index is gone. */
static bool list_folder(struct index_job *j, struct open_folder *f, struct error *err)
{
    struct vault_entry *found;
    struct index_document *known;
    size_t n = 0, m = 0, done = 0;
    bool cut;

    if (!vault_list(f->shown.vault, j->mem, &found, &n, &cut, err) ||
        !index_known(j->home->index, f->shown.name, j->mem, &known, &m, err))
        return false;
    if (cut)
        log_warn("a folder holds more documents than are served", LS("folder", f->shown.name));
    for (size_t i = 0, k = 0; (i < n || k < m) && !atomic_load(&j->home->stop);) {
        int order = i == n ? 1 : k == m ? -1 : compare(&found[i], &known[k]);
        bool ok = true;
        if (order > 0)
            ok = index_remove(j->home->index, f->shown.name, known[k].path, err);
        else if (order < 0 || !is_known(&found[i], &known[k]))
            ok = put_document(j, f, found[i].path, &found[i]) && pause_commit(j, ++done, err);
        if (!ok)
            return false;
        i += order <= 0;
        k += order >= 0;
    }
    return true;
}

/* Processes inotify events; some require a listing of the folder. */
static bool take_events(struct index_job *j, struct open_folder *f, struct error *err)
{
    struct str *paths;
    size_t n = 0;
    bool rescan = false, ok = true;

    vault_changed(f->shown.vault, j->mem, &paths, &n, &rescan);
    if (rescan)
        return list_folder(j, f, err);
    for (size_t i = 0; i < n && ok; i++)
        ok = put_document(j, f, paths[i], NULL);
    return ok;
}

static bool do_piece(struct index_job *j, struct piece *p, struct error *err)
{
    switch (p->kind) {
    case PIECE_LIST:
        return list_folder(j, p->folder, err);
    case PIECE_FORGET:
        return index_remove_folder(j->home->index, p->folder->shown.name, err);
    case PIECE_EVENTS:
        return take_events(j, p->folder, err);
    case PIECE_PATH:
        break;
    }
    return put_document(j, p->folder, str_of(p->path), NULL);
}

static void run_job(struct worker_job *job)
{
    struct index_job *j = container_of(job, struct index_job, job);
    struct error err;
    bool ok = index_begin(j->home->index, &err);

    list_each(&j->pieces, node)
    {
        struct piece *p = list_entry(node, struct piece, node);
        if (ok && !atomic_load(&j->home->stop))
            ok = do_piece(j, p, &err);
    }
    if (!index_commit(j->home->index, &err) || !ok)
        log_warn("documents could not be indexed; searches may miss them", LZ("why", err.text));
}

/* On the loop. */

static void start_job(struct docs *d);

static void on_job(struct worker_job *job, bool ran unused_arg)
{
    struct index_job *j = container_of(job, struct index_job, job);
    struct docs *d = j->home;

    while (!list_empty(&j->pieces)) {
        struct piece *p = list_entry(j->pieces.next, struct piece, node);
        if (p->kind == PIECE_EVENTS && p->folder->watch)
            loop_fd_want(p->folder->watch, LOOP_READ);
        piece_free(p);
    }
    arena_free(j->mem);
    free(j);
    d->indexing = NULL;
    start_job(d);
}

static void start_job(struct docs *d)
{
    struct index_job *j;
    struct list *first;

    if (d->indexing || d->stopping || !d->index || list_empty(&d->dirty))
        return;
    j = xcalloc(1, sizeof(*j));
    j->home = d;
    j->mem = arena_new(DOCS_ARENA);
    list_init(&j->pieces);
    while ((first = list_pop(&d->dirty))) {
        list_entry(first, struct piece, node)->folder->list_waits = false;
        list_push(&j->pieces, first);
    }
    d->n_dirty = 0;
    j->job.run = run_job;
    j->job.done = on_job;
    d->indexing = j;
    if (!worker_submit(pool_worker(d->find), &j->job))
        on_job(&j->job, false);
}

static void add_piece(struct docs *d, struct open_folder *f, enum piece_kind kind, struct str path)
{
    struct piece *p;

    if (!d->index || d->stopping)
        return;
    if (kind == PIECE_PATH && d->n_dirty >= KEEP_DIRTY_MAX)
        kind = PIECE_LIST;
    if (kind == PIECE_LIST && f->list_waits)
        return;
    f->list_waits = f->list_waits || kind == PIECE_LIST;
    p = xcalloc(1, sizeof(*p) + path.n + 1);
    memcpy(p->path, path.p ? path.p : "", path.n);
    p->folder = f;
    p->kind = kind;
    folder_ref(f);
    list_push(&d->dirty, &p->node);
    d->n_dirty++;
    start_job(d);
}

void keep_folder(struct docs *d, struct open_folder *f)
{
    add_piece(d, f, PIECE_LIST, STR_NONE);
}

void keep_path(struct docs *d, struct open_folder *f, struct str path)
{
    add_piece(d, f, PIECE_PATH, path);
}

void keep_forget(struct docs *d, struct open_folder *f)
{
    add_piece(d, f, PIECE_FORGET, STR_NONE);
}

/* The descriptor is not polled until a worker has read its events. */
static void on_event(void *arg, int events unused_arg)
{
    struct open_folder *f = arg;

    loop_fd_want(f->watch, 0);
    add_piece(f->home, f, PIECE_EVENTS, STR_NONE);
}

void keep_watch(struct open_folder *f)
{
    struct error err;
    int fd;

    if (!vault_watch(f->shown.vault, &fd, &err)) {
        log_warn("changes in a folder are not noticed at once", LS("folder", f->shown.name),
                 LZ("why", err.text));
        return;
    }
    f->watch = loop_fd_new(f->home->start.loop, fd, on_event, f);
    if (f->watch)
        loop_fd_want(f->watch, LOOP_READ);
}

void keep_unwatch(struct open_folder *f)
{
    if (f->watch)
        loop_fd_free(f->watch);
    f->watch = NULL;
}

void keep_tick(struct docs *d)
{
    int64_t now = loop_now_ms(d->start.loop);
    bool is_time = now - d->listed_ms >= KEEP_LIST_MS;

    if (!d->index || d->stopping || d->indexing)
        return;
    if (!index_is_empty_again(d->index, &d->index_made) && !is_time)
        return;
    d->listed_ms = now;
    for (size_t i = 0; d->set && i < d->set->n; i++)
        keep_folder(d, d->set->folders[i]);
}

void keep_free(struct docs *d)
{
    while (!list_empty(&d->dirty))
        piece_free(list_entry(d->dirty.next, struct piece, node));
}
