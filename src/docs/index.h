/* SPDX-License-Identifier: Apache-2.0 */
/* The index of all folders: words (FTS5, BM25) and links, in a SQLite file of its own beside the
 * data (docs-index.db).  The index is derived: it may be deleted at any time.  It is made again
 * when it is missing, damaged or of another format, and it is never authoritative about a document.
 * Calls block and belong to the workers; they take a lock, so any thread may make them.  Reads do
 * not wait for writes and see committed data.  Damage found during a call is ERR_UNAVAILABLE; the
 * next call makes an empty index, and a scan fills it.
 *
 * Stored per document: folder, path, size, modification time, digest, the words of the accepted
 * view, the title (first heading, else the file's name) and the targets of its links. */
#ifndef HOLDFAST_DOCS_INDEX_H
#define HOLDFAST_DOCS_INDEX_H

#include "base/arena.h"
#include "base/error.h"

struct index;
/* ":memory:" for tests. */
must_check bool index_open(struct str path, struct index **ret, struct error *err);
void index_close(struct index *x);
/* Whether the index was made anew since `*seen` (at first 0), or is damaged and will be: then a
 * scan must fill it. */
bool index_is_empty_again(struct index *x, unsigned *seen);

struct index_document {
    struct str folder, path; /* path as in docs/vault.h, relative to the folder */
    int64_t size, modified_ms;
    uint64_t inode;
    uint8_t sha256[32];
};
/* `accepted` is the document's accepted view.  Replaces the document's entry; if the digest is the
 * same, words and links stay unchanged. */
must_check bool index_put(struct index *x, const struct index_document *d, struct str accepted,
                          struct error *err);
must_check bool index_remove(struct index *x, struct str folder, struct str path,
                             struct error *err);
/* For a folder that is no longer configured. */
must_check bool index_remove_folder(struct index *x, struct str folder, struct error *err);
/* Groups several puts and removes into one transaction: faster, and visible at once.  Puts and
 * removes of other threads meanwhile belong to it too.  If two groups overlap, the last
 * index_commit() commits. */
must_check bool index_begin(struct index *x, struct error *err);
must_check bool index_commit(struct index *x, struct error *err);

/* The indexed documents of a folder, sorted by path, in mem: a rescan compares them with the
 * disk. */
must_check bool index_known(struct index *x, struct str folder, struct arena *mem,
                            struct index_document **ret, size_t *ret_n, struct error *err);
/* Finds a document without regard to case; *ret is its true path, absent when there is none. */
must_check bool index_find_path(struct index *x, struct str folder, struct str path,
                                struct arena *mem, struct str *ret, struct error *err);

struct index_hit {
    struct str folder, path, title;
    struct str snippet; /* one line, matches between ** and ** */
    double score;       /* higher is better */
};
/* Ranked by BM25 (title over path over text).  All words must match.  "quoted phrases", prefix* and
 * -word are understood; other FTS5 syntax is taken as words.  With n_folders > 0, searches only in
 * `folders`.  *ret_more: there are more than `limit` hits (≤ 100; 0: 20).  ERR_BAD_INPUT: the query
 * has no word (-word alone does not count), more than 64 words, or more than 1,024 bytes.
 * ERR_TIMEOUT: the search took longer than 2 s. */
must_check bool index_search(struct index *x, struct str query, const struct str *folders,
                             size_t n_folders, unsigned limit, struct arena *mem,
                             struct index_hit **ret, size_t *ret_n, bool *ret_more,
                             struct error *err);

/* Paths inside the folder, sorted, without duplicates: documents that link to `path`, and documents
 * that `path` links to.  At most 1,000; *ret_more.  A link to a missing document is stored, and
 * counts as soon as the document exists.  For a path without a document, backlinks are the links
 * that would lead there; check these before a document moves to the path.  If two paths differ only
 * in case, a link counts for both. */
must_check bool index_backlinks(struct index *x, struct str folder, struct str path,
                                struct arena *mem, struct str **ret, size_t *ret_n, bool *ret_more,
                                struct error *err);
must_check bool index_forward_links(struct index *x, struct str folder, struct str path,
                                    struct arena *mem, struct str **ret, size_t *ret_n,
                                    bool *ret_more, struct error *err);

#endif
