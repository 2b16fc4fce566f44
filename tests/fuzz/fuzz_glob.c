/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of globs: a pattern, a NUL, a path.  Whatever they are, compiling and matching end
 * within their bounds, and two things hold that need no second matcher: what fits a pattern fits it
 * as one alternative of two, and one level further down behind a "**". */
#include "docs/text.h"

#include <stdlib.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool matches(struct str pattern, struct str path, bool *ret_compiled)
{
    struct arena *mem = arena_new(1 << 26);
    struct glob *g = NULL;
    struct error err;
    bool ok = glob_compile(pattern, mem, &g, &err);
    bool fits = ok && glob_matches(g, path);

    check(ok || err.code == ERR_BAD_INPUT);
    check(arena_used(mem) < 16u << 20);
    arena_free(mem);
    *ret_compiled = ok;
    return fits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str path = str_n((const char *)data, n > 2048 ? 2048 : n);
    struct str pattern = str_split(&path, '\0');
    struct arena *mem = arena_new(1 << 20);
    bool compiled, again;

    if (!path.p)
        path = STR("a/b.md");
    bool fits = matches(pattern, path, &compiled);
    if (compiled && pattern.n < 512 && !memchr(path.p, '\0', path.n) &&
        !memchr(pattern.p, '\\', pattern.n)) {
        bool one = matches(arena_printf(mem, "{%.*s,x}", STR_ARG(pattern)), path, &again);
        check(!again || one == fits || str_eq(path, STR("x")) || memchr(pattern.p, ',', pattern.n));
        bool below = matches(arena_printf(mem, "**/%.*s", STR_ARG(pattern)),
                             arena_printf(mem, "q/%.*s", STR_ARG(path)), &again);
        check(!again || below || !fits);
    }
    arena_free(mem);
    return 0;
}
