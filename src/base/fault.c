/* SPDX-License-Identifier: Apache-2.0 */
/* Named fault points of the test build: counts passes and decides which of them fails.  "point:3"
 * fails the third pass, "point:3+" the third and every later pass. */
#include "base/fault.h"

#ifdef HOLDFAST_FAULTS
#include "base/str.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_POINTS 16
#define LONGEST_NAME 63

struct point {
    char name[LONGEST_NAME + 1];
    uint64_t at;
    uint64_t passes;
    bool onwards;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct point points[MOST_POINTS];
static size_t n_points;
static bool loaded;

static bool parse_point(struct str text, struct point *ret)
{
    struct str name = str_split(&text, ':');

    *ret = (struct point){0};
    if (text.n > 0 && text.p[text.n - 1] == '+') {
        ret->onwards = true;
        text.n--;
    }
    if (name.n == 0 || name.n > LONGEST_NAME || !str_to_u64(text, UINT32_MAX, &ret->at))
        return false;
    memcpy(ret->name, name.p, name.n);
    return ret->at > 0;
}

static void load_locked(const char *spec)
{
    struct str rest = str_of(spec);

    n_points = 0;
    loaded = true;
    while (rest.n > 0) {
        struct str one = str_split(&rest, ',');
        if (n_points == MOST_POINTS || !parse_point(one, &points[n_points]))
            die("HOLDFAST_FAULT has a bad part \"%.*s\"; write POINT:N[+],...", STR_ARG(one));
        n_points++;
    }
}

void fault_load(const char *spec)
{
    pthread_mutex_lock(&lock);
    load_locked(spec);
    pthread_mutex_unlock(&lock);
}

bool fault_hits(const char *name)
{
    bool hit = false;

    pthread_mutex_lock(&lock);
    if (!loaded)
        load_locked(getenv("HOLDFAST_FAULT"));
    for (size_t i = 0; i < n_points; i++) {
        struct point *p = &points[i];
        if (strcmp(p->name, name) != 0)
            continue;
        p->passes++;
        hit = hit || p->passes == p->at || (p->onwards && p->passes > p->at);
    }
    pthread_mutex_unlock(&lock);
    return hit;
}

static bool holds(const char *path, struct str about)
{
    char text[256];
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof(text), file) : 0;

    if (!file)
        return false;
    fclose(file);
    return n == 0 || (about.n >= n && memmem(about.p, about.n, text, n));
}

void fault_hold(const char *point, struct str about)
{
    const char *folder = getenv("HOLDFAST_FAULT_HOLD");
    const struct timespec pause = {.tv_nsec = 2000000};
    char path[512], held_path[520];
    FILE *file;

    if (!folder)
        return;
    snprintf(path, sizeof(path), "%s/%s", folder, point);
    snprintf(held_path, sizeof(held_path), "%s.held", path);
    if (!holds(path, about))
        return;
    file = fopen(held_path, "we");
    if (file)
        fclose(file);
    while (holds(path, about))
        nanosleep(&pause, NULL);
    unlink(held_path);
}
#endif
