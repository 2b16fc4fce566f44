/* SPDX-License-Identifier: Apache-2.0 */
/* Region allocator: everything of one exchange, dropped whole.  Freed memory is poisoned under
 * ASan.  Not thread-safe: an arena belongs to whoever holds the object it serves. */
#ifndef HOLDFAST_BASE_ARENA_H
#define HOLDFAST_BASE_ARENA_H

#include "base/str.h"

struct arena;

/* `max` is the ceiling for arena_try_alloc(); arena_alloc() is for sizes we control. */
struct arena *arena_new(size_t max) must_check;
/* For what is kept long and in numbers: room for just so many bytes in so many pieces at first. */
struct arena *arena_new_for(size_t max, size_t bytes, unsigned pieces) must_check;
/* For secrets that are held: its memory is that of base/secret.h. */
struct arena *arena_new_hidden(size_t max) must_check;
/* Secrets pass through it, or have since it was made: what it held is zeroed when it is freed or
 * reset, once.  (Not what arena_try_resize() has moved before this was asked for.) */
void arena_wipe_later(struct arena *a);
void arena_free(struct arena *a); /* NULL is fine; runs clean-up hooks, last added first */
/* As if freed and made anew, but keeps its first page: for objects that are recycled. */
void arena_reset(struct arena *a);
void *arena_alloc(struct arena *a, size_t n) must_check;     /* aligned to 16, not zeroed */
void *arena_zalloc(struct arena *a, size_t n) must_check;    /* zeroed */
void *arena_try_alloc(struct arena *a, size_t n) must_check; /* NULL past the ceiling */
/* Grows or shrinks an allocation of old_n bytes, in place when it is the newest one; p may be NULL.
 * The first min(old_n, n) bytes are kept.  NULL, and nothing changed, past the ceiling. */
void *arena_try_resize(struct arena *a, void *p, size_t old_n, size_t n) must_check;
#define arena_new_of(a, type) ((type *)arena_zalloc((a), sizeof(type)))
struct str arena_dup(struct arena *a, struct str s); /* also NUL-terminated; absent stays absent */
struct str arena_printf(struct arena *a, const char *fmt, ...) printf_like(2, 3);
void arena_on_free(struct arena *a, void (*hook)(void *arg), void *arg);
size_t arena_used(const struct arena *a);

#endif
