/* SPDX-License-Identifier: Apache-2.0 */
/* Small secrets are slots of a few sizes, cut from regions that are never unmapped; each large
 * secret has its own mapping.
 *
 * Invariant: a free slot is zeroed except for the pointer to the next free slot. */
#include "base/secret.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define REGION (16u * 1024)
#define SLOT_LEAST 64u
#define N_SIZES 7 /* 64 bytes to one page */
#define SLOT_MOST (SLOT_LEAST << (N_SIZES - 1))

struct slot {
    struct slot *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *free_slots[N_SIZES];

static size_t to_pages(size_t n)
{
    return (n + SLOT_MOST - 1) & ~(size_t)(SLOT_MOST - 1);
}

/* madvise() and mlock() are best effort: they may fail on an old kernel or at a limit. */
static void *map_pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        die("out of memory: %zu bytes for a secret", n);
    (void)madvise(p, n, MADV_DONTDUMP);
    (void)madvise(p, n, MADV_WIPEONFORK);
    (void)mlock(p, n);
    return p;
}

static unsigned size_of(size_t n)
{
    unsigned i = 0;

    while ((size_t)SLOT_LEAST << i < n)
        i++;
    return i;
}

static void cut_region(unsigned i)
{
    char *region = map_pages(REGION);

    for (size_t at = 0; at < REGION; at += (size_t)SLOT_LEAST << i) {
        struct slot *s = (struct slot *)(region + at);
        s->next = free_slots[i];
        free_slots[i] = s;
    }
}

void *secret_alloc(size_t n)
{
    struct slot *s;

    if (n > SLOT_MOST)
        return map_pages(to_pages(n));
    pthread_mutex_lock(&lock);
    unsigned i = size_of(n);
    if (!free_slots[i])
        cut_region(i);
    s = free_slots[i];
    free_slots[i] = s->next;
    pthread_mutex_unlock(&lock);
    s->next = NULL;
    return s;
}

void secret_free(void *p, size_t n)
{
    struct slot *s = p;

    if (!p)
        return;
    explicit_bzero(p, n);
    if (n > SLOT_MOST) {
        munmap(p, to_pages(n));
        return;
    }
    pthread_mutex_lock(&lock);
    unsigned i = size_of(n);
    s->next = free_slots[i];
    free_slots[i] = s;
    pthread_mutex_unlock(&lock);
}

void secret_set(struct secret *s, struct str value)
{
    struct secret fresh = {0};

    if (value.p) {
        fresh = (struct secret){secret_alloc(value.n + 1), value.n};
        memcpy(fresh.p, value.p, value.n);
    }
    secret_release(s); /* last: `value` may point into the old secret */
    *s = fresh;
}

void secret_release(struct secret *s)
{
    secret_free(s->p, s->n + 1);
    *s = (struct secret){0};
}

struct str secret_view(const struct secret *s)
{
    return s->p ? str_n(s->p, s->n) : STR_NONE;
}

#define STACK_WIPED 4096 /* bytes; frames of vsnprintf() take about half of it */

__attribute__((noinline)) void secret_wipe_stack(void)
{
    char room[STACK_WIPED];

    explicit_bzero(room, sizeof(room));
}
