/* SPDX-License-Identifier: Apache-2.0 */
/* Region allocator: holds everything that belongs to one exchange, and frees it at once.  Freed
 * memory is poisoned under ASan.  Not thread-safe: an arena belongs to the owner of the object it
 * serves. */
#ifndef HOLDFAST_BASE_ARENA_H
#define HOLDFAST_BASE_ARENA_H

#include "base/str.h"

struct arena;

/* `max` is the limit for arena_try_alloc(); arena_alloc() is for sizes that no peer chooses. */
struct arena *arena_new(size_t max) must_check;
/* For numerous long-lived arenas: the first page has room for exactly this many bytes in this many
 * pieces. */
struct arena *arena_new_for(size_t max, size_t bytes, unsigned pieces) must_check;
/* For secrets that are held: its memory comes from base/secret.h. */
struct arena *arena_new_hidden(size_t max) must_check;
/* For arenas through which secrets pass: the memory is zeroed at the next arena_free() or
 * arena_reset(), including allocations from before this call, but not memory that
 * arena_try_resize() moved before it. */
void arena_wipe_later(struct arena *a);
void arena_free(struct arena *a); /* NULL is fine; runs clean-up hooks, last added first */
/* Like freeing and making it anew, but keeps its first page: for objects that are recycled. */
void arena_reset(struct arena *a);
void *arena_alloc(struct arena *a, size_t n) must_check;     /* aligned to 16, not zeroed */
void *arena_zalloc(struct arena *a, size_t n) must_check;    /* zeroed */
void *arena_try_alloc(struct arena *a, size_t n) must_check; /* NULL beyond the limit */
/* Grows or shrinks an allocation of old_n bytes, in place if it is the newest one; p may be NULL.
 * The first min(old_n, n) bytes are kept.  Returns NULL, with nothing changed, beyond the limit. */
void *arena_try_resize(struct arena *a, void *p, size_t old_n, size_t n) must_check;
#define arena_new_of(a, type) ((type *)arena_zalloc((a), sizeof(type)))
struct str arena_dup(struct arena *a, struct str s); /* also NUL-terminated; absent stays absent */
struct str arena_printf(struct arena *a, const char *fmt, ...) printf_like(2, 3);
void arena_on_free(struct arena *a, void (*hook)(void *arg), void *arg);
size_t arena_used(const struct arena *a);

#endif
