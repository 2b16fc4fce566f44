/* SPDX-License-Identifier: Apache-2.0 */
/* A vault of names only, for tests of links: paths separated by blanks ('+' stands for a blank
 * inside a name). */
#ifndef HOLDFAST_TESTS_DOC_NAMES_H
#define HOLDFAST_TESTS_DOC_NAMES_H

#include "docs/links.h"

struct doc_names {
    struct str paths[16];
    size_t n;
    struct arena *mem;
};

static inline void doc_names_init(struct doc_names *d, const char *list, struct arena *mem)
{
    *d = (struct doc_names){.mem = mem};
    for (struct str rest = str_of(list); rest.p;) {
        struct str path = arena_dup(mem, str_split(&rest, ' '));
        for (size_t i = 0; i < path.n; i++)
            if (path.p[i] == '+')
                ((char *)path.p)[i] = ' ';
        d->paths[d->n++] = path;
    }
}

static inline bool doc_names_exist(void *arg, struct str path, struct str *ret_path)
{
    struct doc_names *d = arg;
    struct str key = links_fold(path, d->mem);

    for (size_t i = 0; i < d->n; i++)
        if (str_eq(links_fold(d->paths[i], d->mem), key)) {
            *ret_path = d->paths[i];
            return true;
        }
    return false;
}

#endif
