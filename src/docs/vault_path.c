/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths may name a document.  The kernel keeps every open beneath the root whatever the name
 * is (vault.c).  This check comes first, and its errors say how to correct the path.  Names are
 * taken as bytes: "%2e%2e" and "..\" are odd names and do not lead out of the root. */
#include "base/unicode.h"
#include "base/utf8.h"
#include "docs/vault_impl.h"

static bool check_part(struct str part, struct error *err)
{
    if (part.n == 0)
        return error_set(err, ERR_BAD_INPUT,
                         "the path has an empty part; write it as folder/name.md, relative, with "
                         "single slashes");
    if (part.p[0] == '.')
        return error_set(err, ERR_BAD_INPUT,
                         "no part of a path may begin with a dot; name the document by its path "
                         "from the top of its folder");
    if (part.n > VAULT_NAME_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "a part of the path is longer than %d bytes; choose a shorter name",
                         VAULT_NAME_MAX);
    return true;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

/* A name is copied into links of other documents and shown in review.  There these characters would
 * be read as markup: CriticMarkup and its metadata, wiki links, anchors, code, HTML. */
#define NAME_MARKUP "{}<>&\"[]|#^`\\"

bool vault_name_check(struct str path, struct error *err)
{
    uint32_t code;

    for (size_t i = 0, n; i < path.n; i += n) {
        n = utf8_decode(path.p + i, path.p + path.n, &code);
        if (n == 0)
            return error_set(err, ERR_BAD_INPUT,
                             "the name is not UTF-8 at byte %zu; send it as UTF-8", i);
        if (unicode_is_invisible(code))
            return error_set(err, ERR_BAD_INPUT,
                             "the name holds the invisible character U+%04X; choose a name without "
                             "control, zero-width and direction characters",
                             code);
        if (code < 0x80 && strchr(NAME_MARKUP, (int)code))
            return error_set(err, ERR_BAD_INPUT,
                             "the name holds '%c' (U+%04X), which is markup in documents that link "
                             "to it; choose a name without any of %s",
                             (char)code, code, NAME_MARKUP);
    }
    return true;
}

bool vault_path_check(struct str path, struct error *err)
{
    struct str rest = path;
    size_t depth = 0;

    if (path.n == 0)
        return error_set(err, ERR_BAD_INPUT, "the path is empty; name a document, as in notes.md");
    if (path.n > VAULT_PATH_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "the path is longer than %d bytes; choose a shorter one", VAULT_PATH_MAX);
    if (!utf8_is_valid(path) || has_control(path))
        return error_set(err, ERR_BAD_INPUT,
                         "the path is not plain UTF-8 text; leave out control characters");
    while (rest.p) {
        if (!check_part(str_split(&rest, '/'), err))
            return false;
        if (++depth > VAULT_DEPTH_MAX)
            return error_set(err, ERR_BAD_INPUT,
                             "the path is deeper than %d folders; choose a shallower one",
                             VAULT_DEPTH_MAX);
    }
    if (path.n < 3 || !str_ieq(str_n(path.p + path.n - 3, 3), STR(".md")))
        return error_set(err, ERR_BAD_INPUT,
                         "documents end in .md; name one that does, as in notes.md");
    return true;
}
