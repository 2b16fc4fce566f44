/* SPDX-License-Identifier: Apache-2.0 */
/* A path that does not exist is usually a small mistake.  The error names the nearest path that the
 * caller may see. */
#include "docs/docs_impl.h"

#include "base/unicode.h"

#define FAR 1000
#define COMPARED_MAX 20000 /* entries that are compared by edit distance */

bool docs_is_under(struct str path, struct str prefix)
{
    return prefix.n == 0 ||
           (str_starts(path, prefix) && (path.n == prefix.n || path.p[prefix.n] == '/'));
}

struct nearest {
    struct str wanted, found;
    unsigned distance;
};

static struct str last_name(struct str path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return str_n(path.p + at, path.n - at);
}

/* Without ".md", which people may leave out. */
static struct str bare(struct str path)
{
    bool has_end = path.n > 3 && str_ieq(str_n(path.p + path.n - 3, 3), STR(".md"));
    return has_end ? str_n(path.p, path.n - 3) : path;
}

static void offer(struct nearest *near, struct str path, bool may_compare)
{
    unsigned far = (unsigned)near->wanted.n / 3 + 2, distance = FAR;

    if (unicode_same_name(bare(path), bare(near->wanted)))
        distance = 0;
    else if (unicode_same_name(last_name(bare(path)), last_name(bare(near->wanted))))
        distance = 1;
    else if (may_compare && path.n < near->wanted.n + far && near->wanted.n < path.n + far)
        distance = str_distance(path, near->wanted, far) < far
                       ? 1 + str_distance(path, near->wanted, far)
                       : FAR;
    if (distance < near->distance) {
        near->distance = distance;
        near->found = path;
    }
}

/* Offers the document and its folders. */
static void offer_all(struct nearest *near, struct str path, bool may_compare)
{
    offer(near, path, may_compare);
    for (size_t i = path.n; i-- > 0;)
        if (path.p[i] == '/')
            offer(near, str_n(path.p, i), may_compare);
}

bool docs_check_path(const struct docs_folder *f, const struct vault_entry *entries, size_t n,
                     struct str path, struct error *err)
{
    struct nearest near = {.wanted = path, .distance = FAR};
    struct str name = f->name;

    if (path.n == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (docs_is_under(entries[i].path, path))
            return true;
    for (size_t i = 0; i < n; i++)
        offer_all(&near, entries[i].path, i < COMPARED_MAX);
    if (near.found.p)
        return error_set(err, ERR_NOT_FOUND,
                         "Error: Path not found: %.*s/%.*s. Did you mean %.*s/%.*s?", STR_ARG(name),
                         STR_ARG(path), STR_ARG(name), STR_ARG(near.found));
    return error_set(err, ERR_NOT_FOUND,
                     "Error: Path not found: %.*s/%.*s. There is no such document, and no folder "
                     "with documents.",
                     STR_ARG(name), STR_ARG(path));
}

void docs_no_folder(const struct docs_call *call, struct str name, struct error *err)
{
    struct nearest near = {.wanted = name, .distance = FAR};
    const struct docs_folder **folders;
    size_t n = docs_visible(call, &folders);

    for (size_t i = 0; i < n; i++)
        offer(&near, folders[i]->name, true);
    if (near.found.p)
        error_set(err, ERR_NOT_FOUND, "Error: Folder not found: %.*s. Did you mean %.*s?",
                  STR_ARG(name), STR_ARG(near.found));
    else
        error_set(err, ERR_NOT_FOUND, "Error: Folder not found: %.*s", STR_ARG(name));
}
