/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of links.  The first byte chooses a move, the rest is a text.  Whatever it holds:
 * what is found lies inside it, in order; after a rewrite the same links are found, each in its
 * style, and each means what it meant, or where that went, unless a wiki link cannot say so. */
#include "docs/links.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "doc_names.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static const char *const moves[][3] = {
    /* source, from, to */
    {"s.md", "a.md", "x/a.md"},       {"x/s.md", "a.md", "x/a.md"},
    {"x/s.md", "x/s.md", "y/z/t.md"}, {"s.md", "x/a.md", "b c(1)#%.md"},
    {"x/s.md", "x/a.md", "X/A.md"},   {"x/y/s.md", "x/a.md", "a: b.md.md"},
};

static void check_find(struct str text, struct arena *mem, struct link_found **ret, size_t *ret_n)
{
    size_t end = 0;

    *ret_n = links_find(text, mem, ret);
    check(*ret_n <= LINKS_MAX);
    for (size_t i = 0; i < *ret_n; i++) {
        const struct link_found *l = &(*ret)[i];
        check(l->at >= end && l->n > 0 && l->at + l->n <= text.n);
        check(l->target.n > 0 && utf8_is_valid(l->target));
        end = l->at + l->n;
    }
}

static void check_rewrite(struct str text, const char *const *move, struct arena *mem)
{
    struct doc_names before, after;
    struct link_found *old = NULL, *now = NULL;
    size_t n_old = 0, n_now = 0, n = 0;
    struct str source = str_of(move[0]), from = str_of(move[1]), to = str_of(move[2]);
    struct str source_to = str_eq(source, from) ? to : source;

    doc_names_init(&before, "s.md a.md x/s.md x/a.md x/y/s.md x/y/b.md y/a.md", mem);
    after = before;
    for (size_t i = 0; i < after.n; i++)
        if (str_eq(after.paths[i], from))
            after.paths[i] = to;
    struct str out =
        links_rewrite(text, source, source_to, from, to, doc_names_exist, &before, mem, &n);
    check_find(text, mem, &old, &n_old);
    check_find(out, mem, &now, &n_now);
    check(n_old == n_now && n <= n_old && (n > 0 || out.p == text.p));
    for (size_t i = 0; i < n_old; i++) {
        struct str meant = links_resolve(source, old[i].target, doc_names_exist, &before, mem);
        struct str means = links_resolve(source_to, now[i].target, doc_names_exist, &after, mem);
        check(old[i].is_wiki == now[i].is_wiki);
        if (!meant.p)
            check(str_eq(old[i].target, now[i].target));
        else if (!now[i].is_wiki || !memchr(to.p, '#', to.n))
            check(str_eq(str_eq(meant, from) ? to : meant, means));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1 || n > 4096)
        return 0;
    struct arena *mem = arena_new(1 << 30);
    check_rewrite(str_n((const char *)data + 1, n - 1), moves[data[0] % countof(moves)], mem);
    arena_free(mem);
    return 0;
}
