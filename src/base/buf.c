/* SPDX-License-Identifier: Apache-2.0 */
/* Growable bytes.  Invariants: n <= max; once p is set, max >= cap - 1 >= n and p[n] == 0. */
#include "base/buf.h"

#include "base/secret.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALLEST 64

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_init_secret(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max, .wipes = true};
}

void buf_release(struct buf *b)
{
    if (b->wipes && b->p)
        explicit_bzero(b->p, b->cap);
    free(b->p);
    *b = (struct buf){.max = b->max, .wipes = b->wipes};
}

/* realloc() would leave the old bytes behind. */
static void move_wiping(struct buf *b, size_t cap)
{
    char *p = xmalloc(cap);

    if (b->p) {
        memcpy(p, b->p, b->n);
        explicit_bzero(b->p, b->cap);
        free(b->p);
    }
    b->p = p;
}

char *buf_room(struct buf *b, size_t n)
{
    size_t cap;

    if (unlikely(n > b->max || b->n > b->max - n || n > SIZE_MAX / 4))
        return NULL;
    if (likely(b->cap > b->n + n))
        return b->p + b->n;
    cap = b->cap ? b->cap : SMALLEST;
    while (cap <= b->n + n)
        cap *= 2;
    /* Doubling never allocates more than the limit. */
    if (cap > b->max + 1 && b->max + 1 > b->n + n)
        cap = b->max + 1;
    if (unlikely(b->wipes))
        move_wiping(b, cap);
    else
        b->p = xrealloc(b->p, cap);
    b->cap = cap;
    b->p[b->n] = '\0';
    return b->p + b->n;
}

void buf_grown(struct buf *b, size_t n)
{
    if (unlikely(b->n + n >= b->cap))
        die("a buffer grew past its room; this is a bug, please report it");
    b->n += n;
    b->p[b->n] = '\0';
}

bool buf_try_add(struct buf *b, const void *p, size_t n)
{
    char *room = buf_room(b, n);

    if (!room)
        return false;
    if (n)
        memcpy(room, p, n);
    buf_grown(b, n);
    return true;
}

static never_returns void past_ceiling(const struct buf *b, size_t n)
{
    die("%zu bytes more than the ceiling of %zu; this is a bug, please report it", b->n + n,
        b->max);
}

void buf_add_slowly(struct buf *b, const void *p, size_t n)
{
    if (unlikely(!buf_try_add(b, p, n)))
        past_ceiling(b, n);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    char *room;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        die("a malformed format string; this is a bug, please report it");
    room = buf_room(b, (size_t)n);
    if (!room)
        past_ceiling(b, (size_t)n);
    va_start(args, fmt);
    vsnprintf(room, (size_t)n + 1, fmt, args);
    va_end(args);
    if (unlikely(b->wipes))
        secret_wipe_stack();
    buf_grown(b, (size_t)n);
}

void buf_addu(struct buf *b, uint64_t value)
{
    char digits[20];

    buf_add(b, digits, (size_t)(str_put_u64(digits, value) - digits));
}

void buf_consume(struct buf *b, size_t n)
{
    if (n > b->n)
        die("consuming %zu of %zu bytes; this is a bug, please report it", n, b->n);
    if (n == 0)
        return;
    memmove(b->p, b->p + n, b->n - n + 1);
    b->n -= n;
}

void buf_reset(struct buf *b)
{
    if (b->wipes && b->p)
        explicit_bzero(b->p, b->cap);
    b->n = 0;
    if (b->p)
        b->p[0] = '\0';
}

char *buf_steal(struct buf *b, size_t *ret_n)
{
    char *p = b->p ? b->p : xcalloc(1, 1);

    if (ret_n)
        *ret_n = b->n;
    *b = (struct buf){.max = b->max, .wipes = b->wipes};
    return p;
}
