/* SPDX-License-Identifier: Apache-2.0 */
/* The descendants of a process, read from /proc, so that no process started by a child outlives it.
 *
 * A process group is not enough: npx starts sh, which starts node, and any of them may have called
 * setsid().  Keeper and minders are subreapers, so a process whose parent died becomes their child,
 * and every descendant is reachable by parent links at every moment.  /proc is read while the
 * processes run and may miss one just being forked; callers repeat until nothing is found.  A
 * process that is alive when a pass begins has an ancestor that is our direct child, and only we
 * reap that ancestor.  So the ancestor exists during the whole pass, alive or as a zombie, and is
 * found. */
#include "upstream/keeper_wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tree {
    struct tree_process *all;
    size_t n, cap;
};

/* "123 (name) S 1 …": the name may contain anything, also ") S 1", so the last ')' counts. */
static bool tree_parse_stat(const char *text, struct tree_process *ret)
{
    const char *after = strrchr(text, ')');
    char state;
    int parent;
    if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2)
        return false;
    ret->parent = parent;
    ret->living = state != 'Z' && state != 'X';
    ret->chosen = false;
    return true;
}

static bool tree_read_process(int proc, const char *name, struct tree_process *ret)
{
    char path[32], text[512];
    char *end;
    long pid = strtol(name, &end, 10);
    if (*end || pid <= 0 || strlen(name) > 12)
        return false;
    snprintf(path, sizeof(path), "%s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    ret->pid = (pid_t)pid;
    return tree_parse_stat(text, ret);
}

static int tree_compare(const void *a, const void *b)
{
    pid_t x = ((const struct tree_process *)a)->pid, y = ((const struct tree_process *)b)->pid;
    return (x > y) - (x < y);
}

static void tree_read(struct tree *t)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return;
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        struct tree_process p;
        if (!tree_read_process(dirfd(dir), d->d_name, &p))
            continue;
        if (t->n == t->cap) {
            t->cap = t->cap ? t->cap * 2 : 256;
            t->all = xrealloc(t->all, t->cap * sizeof(t->all[0]));
        }
        t->all[t->n++] = p;
    }
    closedir(dir);
    if (t->n)
        qsort(t->all, t->n, sizeof(t->all[0]), tree_compare);
}

static bool tree_has_chosen(const struct tree *t, pid_t pid)
{
    struct tree_process key = {.pid = pid};
    const struct tree_process *found = bsearch(&key, t->all, t->n, sizeof(t->all[0]), tree_compare);
    return found && found->chosen;
}

/* Parents usually have the lower pid and come first, so few rounds are needed. */
static void tree_choose_descendants(struct tree *t)
{
    for (bool grew = true; grew;) {
        grew = false;
        for (size_t i = 0; i < t->n; i++) {
            if (!t->all[i].chosen && tree_has_chosen(t, t->all[i].parent)) {
                t->all[i].chosen = true;
                grew = true;
            }
        }
    }
}

size_t tree_kill(bool (*is_root)(void *arg, const struct tree_process *p), void *arg)
{
    struct tree t = {0};
    size_t roots = 0;
    tree_read(&t);
    for (size_t i = 0; i < t.n; i++) {
        t.all[i].chosen = is_root(arg, &t.all[i]);
        roots += t.all[i].chosen;
    }
    if (roots)
        tree_choose_descendants(&t);
    for (size_t i = 0; i < t.n; i++)
        if (t.all[i].chosen && t.all[i].living)
            kill(t.all[i].pid, SIGKILL);
    free(t.all);
    return roots;
}

static bool tree_is_child_of(void *arg, const struct tree_process *p)
{
    return p->parent == *(const pid_t *)arg;
}

void tree_kill_descendants(void)
{
    pid_t self = getpid();
    tree_kill(tree_is_child_of, &self);
}
