/* SPDX-License-Identifier: Apache-2.0 */
/* Language helpers that every file may use.  Keep it small: every file includes this header. */
#ifndef HOLDFAST_BASE_BASE_H
#define HOLDFAST_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define never_null __attribute__((returns_nonnull))
#define must_check __attribute__((warn_unused_result))
#define printf_like(fmt, first) __attribute__((format(printf, fmt, first)))
#define unused_arg __attribute__((unused))
#define never_returns __attribute__((noreturn))
#define rarely_called __attribute__((cold)) /* branches to it are laid out as unlikely */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define countof(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Small fixed allocations are assumed not to fail: on failure these abort with a line on stderr.
 * Use buf_try_add() or arena_try_alloc() for sizes that a peer chooses. */
void *xmalloc(size_t n) must_check never_null;
void *xcalloc(size_t count, size_t n) must_check never_null;
/* Zeroed, and aligned to a cache line: for numerous objects of which usually only the first lines
 * are touched. */
void *xcalloc_line(size_t n) must_check never_null;
void *xrealloc(void *p, size_t n) must_check never_null;
never_returns void die(const char *fmt, ...) printf_like(1, 2);

#endif
