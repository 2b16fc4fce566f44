/* SPDX-License-Identifier: Apache-2.0 */
/* Region allocator.  A chain of chunks, newest first.  An allocation advances a mark in the newest
 * chunk; an allocation that does not fit gets a new chunk.  Under ASan, unallocated bytes are
 * poisoned and allocations are a gap apart, so an overrun inside a chunk is detected.
 *
 * Invariant: `last` is the newest allocation, and only it can be resized in place.
 *
 * An arena with `wipes` zeroes the used part of its chunks before it frees them; other arenas pay
 * one branch. */
#include "base/arena.h"

#include "base/secret.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

#ifdef UNDER_ASAN
#include <sanitizer/asan_interface.h>
#define GAP 16
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define GAP 0
#endif

#define ALIGN 16
#define CHUNK_FIRST 4080 /* with malloc's own header: one page */
#define CHUNK_LARGEST (64 * 1024)
#define MAX_SPARE 128

struct chunk {
    struct chunk *older;
    size_t size; /* bytes of data */
    size_t used;
    size_t peak; /* highest `used` before an allocation shrank or moved out of this chunk */
    char data[];
};

#define FIRST_DATA (CHUNK_FIRST - sizeof(struct chunk))

/* First chunks are too large for malloc's per-thread cache, so each thread keeps some spare
 * ones. */
static _Thread_local struct {
    struct chunk *first; /* linked by `older` */
    unsigned n;
    bool is_watched; /* drop_spare() runs when the thread ends */
} spare;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;

struct hook {
    struct hook *older;
    void (*run)(void *arg);
    void *arg;
};

struct arena {
    struct chunk *newest;
    struct hook *hooks;
    void *last;
    size_t used;
    size_t max;
    size_t next_size;
    bool wipes;
    bool is_hidden; /* chunks come from secret_alloc(); implies `wipes` */
};

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static void drop_spare(void *arg unused_arg)
{
    while (spare.first) {
        struct chunk *c = spare.first;
        spare.first = c->older;
        ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
        free(c);
    }
    spare.n = MAX_SPARE; /* chunks that this thread still frees go to malloc */
}

static void make_key(void)
{
    if (pthread_key_create(&at_thread_end, drop_spare) != 0)
        die("no key for what threads leave behind; this is a bug, please report it");
}

static bool chunk_keep(struct chunk *c)
{
    if (c->size != FIRST_DATA || spare.n >= MAX_SPARE)
        return false;
    if (unlikely(!spare.is_watched)) {
        pthread_once(&once, make_key);
        spare.is_watched = pthread_setspecific(at_thread_end, &spare) == 0;
        if (!spare.is_watched)
            return false;
    }
    ASAN_POISON_MEMORY_REGION(c->data, c->size);
    c->older = spare.first;
    spare.first = c;
    spare.n++;
    return true;
}

static struct chunk *chunk_new(size_t size, bool is_hidden)
{
    struct chunk *c = size == FIRST_DATA && !is_hidden ? spare.first : NULL;

    if (unlikely(is_hidden)) {
        c = secret_alloc(sizeof(*c) + size);
    } else if (c) {
        spare.first = c->older;
        spare.n--;
    } else {
        c = xmalloc(sizeof(*c) + size);
    }
    c->older = NULL;
    c->size = size;
    c->used = c->peak = 0;
    ASAN_POISON_MEMORY_REGION(c->data, size);
    return c;
}

static void chunk_wipe(struct chunk *c, size_t from)
{
    size_t end = c->peak > c->used ? c->peak : c->used;

    ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
    explicit_bzero(c->data + from, end - from);
    c->peak = 0;
}

static void chunk_free(struct chunk *c, bool wipes, bool is_hidden)
{
    if (unlikely(is_hidden)) {
        ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
        secret_free(c, sizeof(*c) + c->size);
        return;
    }
    if (unlikely(wipes))
        chunk_wipe(c, 0);
    if (chunk_keep(c))
        return;
    ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
    free(c);
}

/* The arena is the first object in its first chunk, so a small exchange is one malloc. */
static struct arena *arena_begin(size_t max, size_t first, bool is_hidden)
{
    struct chunk *c = chunk_new(first, is_hidden);
    struct arena *a = (struct arena *)c->data;

    ASAN_UNPOISON_MEMORY_REGION(a, sizeof(*a));
    c->used = round_up(sizeof(*a)) + GAP;
    *a = (struct arena){.newest = c,
                        .max = max,
                        .next_size = 2 * CHUNK_FIRST,
                        .wipes = is_hidden,
                        .is_hidden = is_hidden};
    return a;
}

struct arena *arena_new(size_t max)
{
    return arena_begin(max, FIRST_DATA, false);
}

struct arena *arena_new_hidden(size_t max)
{
    return arena_begin(max, FIRST_DATA, true);
}

void arena_wipe_later(struct arena *a)
{
    a->wipes = true;
}

struct arena *arena_new_for(size_t max, size_t bytes, unsigned pieces)
{
    return arena_begin(max,
                       round_up(sizeof(struct arena)) + GAP + round_up(bytes) +
                           (size_t)pieces * (ALIGN + GAP),
                       false);
}

static void run_hooks(struct arena *a)
{
    while (a->hooks) {
        struct hook *hook = a->hooks;
        a->hooks = hook->older;
        hook->run(hook->arg);
    }
}

/* Frees all chunks but the oldest, which holds the arena itself. */
static struct chunk *drop_newer(struct arena *a)
{
    struct chunk *c = a->newest;

    while (c->older) {
        struct chunk *older = c->older;
        chunk_free(c, a->wipes, a->is_hidden);
        c = older;
    }
    return c;
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    run_hooks(a);
    bool wipes = a->wipes, is_hidden = a->is_hidden; /* read before its chunk is freed */
    chunk_free(drop_newer(a), wipes, is_hidden);
}

void arena_reset(struct arena *a)
{
    struct chunk *c;

    run_hooks(a);
    c = drop_newer(a);
    if (unlikely(a->wipes))
        chunk_wipe(c, sizeof(*a));
    c->used = round_up(sizeof(*a)) + GAP;
    c->peak = 0;
    ASAN_POISON_MEMORY_REGION(c->data + sizeof(*a), c->size - sizeof(*a));
    *a = (struct arena){.newest = c,
                        .max = a->max,
                        .next_size = 2 * CHUNK_FIRST,
                        .wipes = a->is_hidden,
                        .is_hidden = a->is_hidden};
}

static void chunk_add(struct arena *a, size_t need)
{
    size_t size = a->next_size - sizeof(struct chunk);
    struct chunk *c;

    if (a->next_size < CHUNK_LARGEST)
        a->next_size *= 2;
    c = chunk_new(need > size ? need : size, a->is_hidden);
    c->older = a->newest;
    a->newest = c;
}

void *arena_alloc(struct arena *a, size_t n)
{
    size_t need;
    struct chunk *c = a->newest;
    void *p;

    if (unlikely(n > SIZE_MAX / 2))
        die("%zu bytes asked of an arena; this is a bug, please report it", n);
    need = round_up(n ? n : 1) + GAP;
    if (unlikely(need > c->size - c->used)) {
        chunk_add(a, need);
        c = a->newest;
    }
    p = c->data + c->used;
    c->used += need;
    a->used += n;
    a->last = p;
    ASAN_UNPOISON_MEMORY_REGION(p, n);
    return p;
}

void *arena_zalloc(struct arena *a, size_t n)
{
    return memset(arena_alloc(a, n), 0, n);
}

void *arena_try_alloc(struct arena *a, size_t n)
{
    if (n > a->max || a->used > a->max - n)
        return NULL;
    return arena_alloc(a, n);
}

/* A big array has its own chunk; realloc() then moves pages instead of bytes.  An array that must
 * be wiped is copied instead, because realloc() would not wipe the old bytes. */
static void *grow_own_chunk(struct arena *a, size_t need)
{
    struct chunk *c = a->newest, *old = c;

    ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
    if (unlikely(a->wipes)) {
        c = chunk_new(need, a->is_hidden);
        ASAN_UNPOISON_MEMORY_REGION(c->data, need);
        memcpy(c->data, old->data, old->used < need ? old->used : need);
        c->older = old->older;
        chunk_free(old, true, a->is_hidden);
    } else {
        c = xrealloc(c, sizeof(*c) + need);
    }
    c->size = c->used = need;
    a->newest = c;
    a->last = c->data;
    return c->data;
}

static void *resize_last(struct arena *a, void *p, size_t old_n, size_t n)
{
    struct chunk *c = a->newest;
    size_t at = (size_t)((char *)p - c->data);
    size_t need = round_up(n ? n : 1) + GAP;
    void *moved;

    if (need <= c->size - at) {
        c->peak = c->peak > c->used ? c->peak : c->used; /* the allocation may shrink */
        c->used = at + need;
    } else if (at == 0) {
        p = grow_own_chunk(a, need);
    } else {
        c->peak = c->peak > c->used ? c->peak : c->used;
        c->used = at;
        moved = arena_alloc(a, n);
        memcpy(moved, p, old_n < n ? old_n : n);
        a->used -= n;
        ASAN_POISON_MEMORY_REGION(p, old_n);
        return moved;
    }
    ASAN_UNPOISON_MEMORY_REGION(p, n);
    ASAN_POISON_MEMORY_REGION((char *)p + n, a->newest->size - at - n);
    return p;
}

void *arena_try_resize(struct arena *a, void *p, size_t old_n, size_t n)
{
    void *moved;

    if (n > old_n && (n - old_n > a->max || a->used > a->max - (n - old_n)))
        return NULL;
    if (p && p == a->last) {
        p = resize_last(a, p, old_n, n);
        a->used = a->used - old_n + n;
        return p;
    }
    moved = arena_alloc(a, n);
    if (p)
        memcpy(moved, p, old_n < n ? old_n : n);
    return moved;
}

struct str arena_dup(struct arena *a, struct str s)
{
    char *copy;

    if (!s.p)
        return STR_NONE;
    copy = arena_alloc(a, s.n + 1);
    memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return str_n(copy, s.n);
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        die("a malformed format string; this is a bug, please report it");
    text = arena_alloc(a, (size_t)n + 1);
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    if (unlikely(a->wipes))
        secret_wipe_stack();
    return str_n(text, (size_t)n);
}

void arena_on_free(struct arena *a, void (*run)(void *arg), void *arg)
{
    struct hook *hook = arena_alloc(a, sizeof(*hook));

    *hook = (struct hook){.older = a->hooks, .run = run, .arg = arg};
    a->hooks = hook;
}

size_t arena_used(const struct arena *a)
{
    return a->used;
}
