/* SPDX-License-Identifier: Apache-2.0 */
/* The index of all folders: words (FTS5, BM25) and links, in a SQLite file of its own beside the
 * data (docs-index.db).  Derived: it may be deleted at any time, is made again when it is missing,
 * damaged or of another format, and is never the truth about a document.  Calls block and belong to
 * the workers; they take a lock, so any thread may make them.  Reading does not wait for writing
 * and sees what was committed.  Damage that shows while it is in use is ERR_UNAVAILABLE; the next
 * call finds it empty, and a scan fills it.
 *
 * Kept of each document: folder, path, size, modification time, digest, the accepted view's words,
 * its title (first heading, else the file's name) and where its links lead. */
#ifndef HOLDFAST_DOCS_INDEX_H
#define HOLDFAST_DOCS_INDEX_H

#include "base/arena.h"
#include "base/error.h"

struct index;
/* ":memory:" for tests. */
must_check bool index_open(struct str path, struct index **ret, struct error *err);
void index_close(struct index *x);
/* Whether it was begun anew since `*seen` (at first 0), or is about to be: then it is to be filled
 * by a scan. */
bool index_is_empty_again(struct index *x, unsigned *seen);

struct index_document {
    struct str folder, path; /* path as in docs/vault.h, relative to the folder */
    int64_t size, modified_ms;
    uint64_t inode;
    uint8_t sha256[32];
};
/* `accepted` is the document's accepted view.  Replaces what was there; where the digest is the
 * same, words and links are left as they are. */
must_check bool index_put(struct index *x, const struct index_document *d, struct str accepted,
                          struct error *err);
must_check bool index_remove(struct index *x, struct str folder, struct str path,
                             struct error *err);
/* A folder is no longer configured. */
must_check bool index_remove_folder(struct index *x, struct str folder, struct error *err);
/* Several puts and removes as one: faster, and seen at once.  What others put or remove meanwhile
 * belongs to it too; of two that overlap, the last to end commits. */
must_check bool index_begin(struct index *x, struct error *err);
must_check bool index_commit(struct index *x, struct error *err);

/* What the index knows of a folder, sorted by path, in mem: a rescan compares it with the disk. */
must_check bool index_known(struct index *x, struct str folder, struct arena *mem,
                            struct index_document **ret, size_t *ret_n, struct error *err);
/* A document's true path, whatever the case of `path`; absent: none. */
must_check bool index_find_path(struct index *x, struct str folder, struct str path,
                                struct arena *mem, struct str *ret, struct error *err);

struct index_hit {
    struct str folder, path, title;
    struct str snippet; /* one line, matches between ** and ** */
    double score;       /* higher is better */
};
/* Ranked by BM25 (title over path over text).  Words all must match; "quoted phrases", prefix* and
 * -word are understood, everything else of FTS5's syntax is taken as words.  Only in `folders`,
 * when n_folders > 0.  *ret_more: there are more than `limit` (≤ 100; 0: 20).  ERR_BAD_INPUT: no
 * word in it (-word alone is none), more than 64 words, or longer than 1,024 bytes.  ERR_TIMEOUT:
 * it took longer than 2 s. */
must_check bool index_search(struct index *x, struct str query, const struct str *folders,
                             size_t n_folders, unsigned limit, struct arena *mem,
                             struct index_hit **ret, size_t *ret_n, bool *ret_more,
                             struct error *err);

/* Paths inside the folder, sorted, once each: who links to it, and what it links to.  At most
 * 1,000; *ret_more.  A link that leads nowhere yet is kept and counts as soon as the document is
 * there; asked about a path without a document, backlinks are those that would lead there, which
 * are the ones to look at before a document moves to it.  Where two paths differ only in case a
 * link counts for both. */
must_check bool index_backlinks(struct index *x, struct str folder, struct str path,
                                struct arena *mem, struct str **ret, size_t *ret_n, bool *ret_more,
                                struct error *err);
must_check bool index_forward_links(struct index *x, struct str folder, struct str path,
                                    struct arena *mem, struct str **ret, size_t *ret_n,
                                    bool *ret_more, struct error *err);

#endif
