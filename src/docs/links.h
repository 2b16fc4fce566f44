/* SPDX-License-Identifier: Apache-2.0 */
/* Links between documents: [[wiki]], [[wiki|alias]], [[wiki#anchor]], ![[embed]] and
 * [text](path.md). Pure functions over text.  Code spans and fences hold none.
 *
 * Resolution: relative to the source's own folder, then from the root of its vault; without regard
 * to case; markdown only (".md" may be left out); never by file name alone.  Anchor and alias are
 * stripped; %20 and the like decoded in [text](…); http:, mailto: and the like are no links. */
#ifndef HOLDFAST_DOCS_LINKS_H
#define HOLDFAST_DOCS_LINKS_H

#include "base/arena.h"
#include "base/str.h"

#define LINKS_MAX 10000

struct link_found {
    size_t at, n;      /* the target text inside the source: what a rewrite replaces */
    struct str target; /* decoded, without anchor and alias */
    bool is_wiki;
};
/* In order; in mem.  At most LINKS_MAX; linear in the text, whatever it holds. */
size_t links_find(struct str text, struct arena *mem, struct link_found **ret);

/* The paths a link may mean, in the order in which they are tried; a path is one of a document
 * (docs/vault.h), its end ".md" added where it was left out.  0 to 2; in mem.  What begins with
 * "./" or "../" is only relative, what begins with "/" only from the root. */
size_t links_candidates(struct str source_path, struct str target, struct arena *mem,
                        struct str ret[2]);
/* The key under which paths that differ only in case are one.  In mem. */
struct str links_fold(struct str path, struct arena *mem);

/* The document a link means, in mem; absent: none.  `exists` tells a document by its path without
 * regard to case and gives its true path. */
struct str links_resolve(struct str source_path, struct str target,
                         bool (*exists)(void *arg, struct str path, struct str *ret_path),
                         void *arg, struct arena *mem);

/* `text` of the document at `source_path` (which itself may move to `source_to`, else the same),
 * with every link to `from` now meaning `to`, and its own relative links still meaning what they
 * meant; anchors, aliases, and the style of each link (wiki or not, with .md or without, relative
 * or from the root) are kept where that still means the document.  `exists` knows the documents as
 * they were before the move.  A wiki link is left alone when the new path cannot be written in one
 * (it has a '#', '|', '[' or the like).  *ret_n: how many were rewritten.  In mem; the text itself
 * when none. */
struct str links_rewrite(struct str text, struct str source_path, struct str source_to,
                         struct str from, struct str to,
                         bool (*exists)(void *arg, struct str path, struct str *ret_path),
                         void *arg, struct arena *mem, size_t *ret_n);

#endif
