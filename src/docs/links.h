/* SPDX-License-Identifier: Apache-2.0 */
/* Links between documents: [[wiki]], [[wiki|alias]], [[wiki#anchor]], ![[embed]] and
 * [text](path.md).  Pure functions over text.  Code spans and fences hold no links.
 *
 * Resolution: relative to the folder of the source, then from the root of its vault; without regard
 * to case and to the encoding of accents; markdown only (".md" may be left out); never by file name alone.  Anchor and alias are
 * stripped; %20 and the like are decoded in [text](…); http:, mailto: and the like do not count. */
#ifndef HOLDFAST_DOCS_LINKS_H
#define HOLDFAST_DOCS_LINKS_H

#include "base/arena.h"
#include "base/str.h"

#define LINKS_MAX 10000

struct link_found {
    size_t at, n;      /* the target inside the source; a rewrite replaces these bytes */
    struct str target; /* decoded, without anchor and alias */
    bool is_wiki;
};
/* In order; in mem.  At most LINKS_MAX.  Linear in the length of any text. */
size_t links_find(struct str text, struct arena *mem, struct link_found **ret);

/* The paths that a link may mean, in the order in which they are tried.  Each is a document's path
 * (docs/vault.h), with ".md" added if it was left out.  0 to 2; in mem.  A target that begins with
 * "./" or "../" is only relative, a target that begins with "/" only from the root. */
size_t links_candidates(struct str source_path, struct str target, struct arena *mem,
                        struct str ret[2]);
/* The same key for all paths that differ only in case, or in how accents are encoded (UNICODE_NAME).
 * In mem, or `path` itself. */
struct str links_fold(struct str path, struct arena *mem);

/* The path of the document that a link means, in mem; absent when there is no such document.
 * `exists` finds a document by its path without regard to case and returns its true path. */
struct str links_resolve(struct str source_path, struct str target,
                         bool (*exists)(void *arg, struct str path, struct str *ret_path),
                         void *arg, struct arena *mem);

/* Rewrites `text` of the document at `source_path` for a move of `from` to `to`.  The document
 * itself may move to `source_to`, else that is absent or the same.  Afterwards every link to `from`
 * means `to`, and the document's own relative links mean the same documents as before.  Anchors,
 * aliases and the style of each link (wiki or not, with .md or without, relative or from the root)
 * are kept as long as the link still means the document.  `exists` knows the documents as they were
 * before the move.  A wiki link stays unchanged if it cannot hold the new path (with a '#', '|',
 * '[' or the like).  *ret_n: how many links were rewritten.  In mem; `text` itself when there were
 * none. */
struct str links_rewrite(struct str text, struct str source_path, struct str source_to,
                         struct str from, struct str to,
                         bool (*exists)(void *arg, struct str path, struct str *ret_path),
                         void *arg, struct arena *mem, size_t *ret_n);

#endif
