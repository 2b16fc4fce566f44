/* SPDX-License-Identifier: Apache-2.0 */
/* Changes on disk: one inotify watch per directory.  A watch is set on the descriptor that was
 * opened beneath the root (through /proc/self/fd), never on a name.  A new directory is watched
 * from then on; because it may already have had entries, the caller lists again.  When a directory
 * is moved away, its paths change, so all watches are set anew.  Hidden directories, .holdfast
 * among them, are not watched.
 *
 * If watches run out (fs.inotify.max_user_watches, or WATCHES_MAX), every call of vault_changed()
 * answers "list again", and a warning is logged once. */
#include "base/fault.h"
#include "base/log.h"
#include "docs/vault_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WATCHES_MAX 65536
#define READS_MAX 64 /* per call; the descriptor stays readable for the rest */
#define EVENTS_READ (16 * 1024)
#define PATHS_MAX 1000 /* per call; past that listing again is cheaper */
#define WATCH_FOR                                                                                  \
    (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ONLYDIR |           \
     IN_EXCL_UNLINK)

struct watch {
    int wd;
    struct str path; /* malloc */
};
struct vault_watches {
    int fd;
    pthread_mutex_t lock;
    struct map by_wd; /* key: the bytes of watch.wd */
    bool blind;       /* not every directory is watched */
    bool warned;
};

/* One call of vault_changed(). */
struct question {
    struct vault *v;
    struct arena *mem;
    struct map seen;
    struct str *paths;
    size_t n;
    bool rescan, again; /* again: the watches no longer match the tree */
};

static struct str wd_key(const int *wd)
{
    return str_n((const char *)wd, sizeof *wd);
}

static void watch_free(struct watch *w)
{
    if (!w)
        return;
    free((char *)w->path.p);
    free(w);
}

static void go_blind(struct vault_watches *w, int errnum)
{
    w->blind = true;
    if (w->warned)
        return;
    w->warned = true;
    log_warn("not every folder of documents can be watched, so Holdfast lists them repeatedly; "
             "raise fs.inotify.max_user_watches",
             LI("watched", w->by_wd.n), LZ("why", strerror(errnum)));
}

static bool watch_dir(void *arg, const struct vault_visit *visit)
{
    struct vault_watches *w = arg;
    char name[64];

    if (!visit->is_dir)
        return true;
    snprintf(name, sizeof name, "/proc/self/fd/%d", visit->dir);
    bool full = w->by_wd.n >= WATCHES_MAX || fault_hits("vault.watch");
    int wd = full ? -1 : inotify_add_watch(w->fd, name, WATCH_FOR);
    if (wd < 0) {
        go_blind(w, full ? ENOSPC : errno);
        return false;
    }
    struct watch *one = xcalloc(1, sizeof *one);
    char *path = xmalloc(visit->path.n + 1);
    memcpy(path, visit->path.p, visit->path.n);
    *one = (struct watch){.wd = wd, .path = str_n(path, visit->path.n)};
    watch_free(map_remove(&w->by_wd, wd_key(&wd)));
    map_put(&w->by_wd, wd_key(&one->wd), one);
    return true;
}

static void forget_all(struct vault_watches *w)
{
    size_t at = 0;
    struct str key;
    void *one;

    while (map_next(&w->by_wd, &at, &key, &one)) {
        inotify_rm_watch(w->fd, ((struct watch *)one)->wd);
        watch_free(one);
    }
    map_release(&w->by_wd);
    map_init(&w->by_wd);
}

static bool watch_all(struct vault *v, struct error *err)
{
    v->watches->blind = false;
    return vault_walk(v, STR(""), watch_dir, v->watches, err);
}

void vault_watches_free(struct vault_watches *w)
{
    if (!w)
        return;
    forget_all(w);
    map_release(&w->by_wd);
    close(w->fd);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

bool vault_watch(struct vault *v, int *ret_fd, struct error *err)
{
    if (v->watches) {
        *ret_fd = v->watches->fd;
        return true;
    }
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return error_sys(err, ERR_UNAVAILABLE, errno,
                         "the folder cannot be watched; raise fs.inotify.max_user_instances");
    struct vault_watches *w = xcalloc(1, sizeof *w);
    w->fd = fd;
    pthread_mutex_init(&w->lock, NULL);
    map_init(&w->by_wd);
    v->watches = w;
    if (!watch_all(v, err)) {
        vault_watches_free(w);
        v->watches = NULL;
        return false;
    }
    *ret_fd = fd;
    return true;
}

static struct str path_below(struct question *q, struct str dir, const char *name)
{
    return dir.n > 0 ? arena_printf(q->mem, "%.*s/%s", STR_ARG(dir), name)
                     : arena_dup(q->mem, str_of(name));
}

static void add_path(struct question *q, struct str path)
{
    struct error ignored;

    if (!vault_path_check(path, &ignored) || map_get(&q->seen, path))
        return;
    if (q->n == PATHS_MAX) {
        q->rescan = true;
        return;
    }
    q->paths[q->n++] = path;
    map_put(&q->seen, path, q);
}

static void on_folder(struct question *q, uint32_t mask, struct str path)
{
    struct error gone_again;

    q->rescan = true;
    if (mask & IN_MOVED_FROM)
        q->again = true;
    else if (mask & (IN_CREATE | IN_MOVED_TO) &&
             !vault_walk(q->v, path, watch_dir, q->v->watches, &gone_again))
        return;
}

static void on_event(struct question *q, const struct inotify_event *e)
{
    struct vault_watches *w = q->v->watches;

    if (e->mask & IN_Q_OVERFLOW) {
        q->rescan = q->again = true;
        return;
    }
    if (e->mask & IN_IGNORED) {
        watch_free(map_remove(&w->by_wd, wd_key(&e->wd)));
        return;
    }
    struct watch *one = map_get(&w->by_wd, wd_key(&e->wd));
    if (!one || e->len == 0 || e->name[0] == '.')
        return;
    struct str path = path_below(q, one->path, e->name);
    if (e->mask & IN_ISDIR)
        on_folder(q, e->mask, path);
    else
        add_path(q, path);
}

static bool read_events(struct question *q)
{
    _Alignas(struct inotify_event) char events[EVENTS_READ];
    ssize_t n = read(q->v->watches->fd, events, sizeof events);

    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const struct inotify_event *)(events + at);
        on_event(q, e);
        at += (ssize_t)(sizeof *e + e->len);
    }
    return n > 0;
}

void vault_changed(struct vault *v, struct arena *mem, struct str **ret_paths, size_t *ret_n,
                   bool *ret_rescan)
{
    struct question q = {.v = v, .mem = mem};
    struct error err;

    pthread_mutex_lock(&v->watches->lock);
    q.paths = arena_alloc(mem, PATHS_MAX * sizeof *q.paths);
    map_init(&q.seen);
    for (int i = 0; i < READS_MAX && read_events(&q); i++)
        ;
    if (q.again) {
        forget_all(v->watches);
        if (!watch_all(v, &err))
            go_blind(v->watches, EIO);
    }
    *ret_paths = q.paths;
    *ret_n = q.n;
    *ret_rescan = q.rescan || v->watches->blind;
    map_release(&q.seen);
    pthread_mutex_unlock(&v->watches->lock);
}
