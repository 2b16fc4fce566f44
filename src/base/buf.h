/* SPDX-License-Identifier: Apache-2.0 */
/* Growable bytes with a limit given at init.  NUL-terminated once anything was added (`n` does not
 * count the NUL).  Keep offsets, not pointers, into a growing buf. */
#ifndef HOLDFAST_BASE_BUF_H
#define HOLDFAST_BASE_BUF_H

#include "base/str.h"

struct buf {
    char *p;
    size_t n;
    size_t cap;
    size_t max; /* limit on n */
    bool wipes; /* zeroes memory that it releases, moves from or resets */
};

void buf_init(struct buf *b, size_t max);
void buf_init_secret(struct buf *b, size_t max); /* for secrets: sets `wipes` */
void buf_release(struct buf *b);                 /* also fine on a zeroed buf, and twice */
/* Returns false, with nothing added, beyond the limit: for sizes that a peer controls. */
must_check bool buf_try_add(struct buf *b, const void *p, size_t n);
void buf_addf(struct buf *b, const char *fmt, ...) printf_like(2, 3);
void buf_addu(struct buf *b, uint64_t value); /* decimal */
/* For sizes that no peer controls: exceeding the limit is a bug and aborts. */
void buf_add_slowly(struct buf *b, const void *p, size_t n);
static inline void buf_add(struct buf *b, const void *p, size_t n)
{
    if (unlikely(n >= b->cap - b->n)) {
        buf_add_slowly(b, p, n);
        return;
    }
    if (n) /* p may be NULL when n is 0 */
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}
static inline void buf_addstr(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.n);
}
static inline void buf_addz(struct buf *b, const char *cstr)
{
    buf_add(b, cstr, strlen(cstr));
}
static inline void buf_addc(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}
/* Returns room for n more bytes at the end; buf_grown() then adds them to `n`.  NULL beyond the
 * limit. */
char *buf_room(struct buf *b, size_t n);
void buf_grown(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n); /* drops n bytes from the front */
void buf_reset(struct buf *b);             /* empties it, keeps the memory */
/* Hands the heap memory to the caller, who must free() it; leaves b empty. */
char *buf_steal(struct buf *b, size_t *ret_n);
static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p ? b->p : "", b->n};
}

#endif
