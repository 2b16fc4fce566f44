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

struct link_found {
    size_t at, n;      /* the target text inside the source: what a rewrite replaces */
    struct str target; /* decoded, without anchor and alias */
    bool is_wiki;
};
/* In order; in mem.  At most 10,000. */
size_t links_find(struct str text, struct arena *mem, struct link_found **ret);

/* The document a link means, in mem; absent: none.  `exists` tells a document by its path without
 * regard to case and gives its true path. */
struct str links_resolve(struct str source_path, struct str target,
                         bool (*exists)(void *arg, struct str path, struct str *ret_path),
                         void *arg, struct arena *mem);

/* `text` of the document at `source_path` (which itself may move to `source_to`, else the same),
 * with every link to `from` now meaning `to`, and its own relative links still meaning what they
 * meant; anchors, aliases, and the style of each link (wiki or not, with .md or without, relative
 * or from the root) are kept.  *ret_n: how many were rewritten.  In mem; the text itself when
 * none. */
struct str links_rewrite(struct str text, struct str source_path, struct str source_to,
                         struct str from, struct str to,
                         bool (*exists)(void *arg, struct str path, struct str *ret_path),
                         void *arg, struct arena *mem, size_t *ret_n);

#endif
