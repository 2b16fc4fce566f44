/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that aborts the process on failure.  Bottom of the tree: uses nothing but libc, and
 * die() never allocates. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void die(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("holdfast: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

void *xmalloc(size_t n)
{
    void *p = malloc(n ? n : 1);

    if (unlikely(!p))
        die("out of memory for %zu bytes; give the process more memory", n);
    return p;
}

void *xcalloc(size_t count, size_t n)
{
    void *p = calloc(count ? count : 1, n ? n : 1);

    if (unlikely(!p))
        die("out of memory for %zu times %zu bytes; give the process more memory", count, n);
    return p;
}

#define CACHE_LINE 64

void *xcalloc_line(size_t n)
{
    size_t lines = (n + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *p = aligned_alloc(CACHE_LINE, lines);

    if (unlikely(!p))
        die("out of memory for %zu bytes; give the process more memory", n);
    return memset(p, 0, lines);
}

void *xrealloc(void *p, size_t n)
{
    void *grown = realloc(p, n ? n : 1);

    if (unlikely(!grown))
        die("out of memory for %zu bytes; give the process more memory", n);
    return grown;
}
