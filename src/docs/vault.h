/* SPDX-License-Identifier: Apache-2.0 */
/* One folder of documents on disk.  The only file that opens anything in it: beneath its root, by
 * openat2 (RESOLVE_BENEATH, no symlinks, no magic links, same device not required), regular files
 * only. Calls block; any thread may make them.  A path is relative to the root, UTF-8, '/' between
 * names, ends in .md (any case), and has no empty, "." or ".." part and no part beginning with '.'.
 *
 * Publishing never loses what a person saves meanwhile:
 *
 *   base read ─> fresh text to ROOT/.holdfast/NAME, synced ─> RENAME_EXCHANGE ─> displaced file
 *     displaced == base:  done
 *     displaced != base:  somebody saved between: the change is made again on what they saved and
 *                         exchanged; where it does not apply, their text goes back, and we say so
 *
 * What was displaced stays in .holdfast until vault_release(), because an editor may still hold it
 * open: written to within that time it is a person's save like any other (vault_late()).  A crash
 * leaves such files behind; vault_recover() hands them out at the next start.  The directory is
 * there only while it holds something. */
#ifndef HOLDFAST_DOCS_VAULT_H
#define HOLDFAST_DOCS_VAULT_H

#include "base/arena.h"
#include "base/error.h"

#define VAULT_FILE_MAX (4u * 1024 * 1024) /* bytes of a document */
#define VAULT_FILES_MAX 200000            /* of a folder; past that a listing says so */
#define VAULT_PATH_MAX 1024
#define VAULT_DEPTH_MAX 32
#define VAULT_LATE_MS 60000 /* how long a displaced file is watched */

struct vault;
/* ERR_CONFIG: not a directory, or it may not be read. */
must_check bool vault_open(struct str root, struct vault **ret, struct error *err);
void vault_close(struct vault *v);
/* The directory that was opened, the same however many vaults stand on it: "DEVICE:INODE". */
struct str vault_root(const struct vault *v);
/* The path it was opened by still leads to that directory; ERR_UNAVAILABLE when another is there,
 * or none: what is written to this vault then goes where nobody looks.  Lists and changes ask by
 * themselves. */
must_check bool vault_is_current(struct vault *v, struct error *err);
bool vault_is_lost(const struct vault *v); /* what vault_is_current() found last; any thread */

must_check bool vault_path_check(struct str path, struct error *err); /* ERR_BAD_INPUT */
/* For a path that an agent chooses: ERR_BAD_INPUT names the first character that means something in
 * CriticMarkup, links or HTML, or cannot be seen.  Documents that have such names stay readable. */
must_check bool vault_name_check(struct str path, struct error *err);

struct vault_file {
    struct str bytes; /* as they are: BOM and CRLF kept */
    uint8_t sha256[32];
    int64_t modified_ms;
    bool is_read_only; /* nobody may write to it, by its mode */
};
/* ERR_NOT_FOUND: none there (a directory, symlink, FIFO or device is none).  ERR_BAD_INPUT: path or
 * bytes that are no document (not UTF-8, too large).  One that was written to a moment ago is read
 * again until it keeps still, for at most 250 ms. */
must_check bool vault_read(struct vault *v, struct str path, struct arena *mem,
                           struct vault_file *ret, struct error *err);

struct vault_entry {
    struct str path;
    int64_t size, modified_ms;
    uint64_t inode;
};
/* Every document, sorted by path, in mem.  *ret_cut: there are more than VAULT_FILES_MAX. */
must_check bool vault_list(struct vault *v, struct arena *mem, struct vault_entry **ret,
                           size_t *ret_n, bool *ret_cut, struct error *err);

/* Makes the new text of a document out of what is there; called again, on other bytes, when
 * somebody saved meanwhile.  False: it does not apply (err says why; nothing is changed). */
typedef bool vault_apply(void *arg, struct str bytes, struct arena *mem, struct str *ret_fresh,
                         struct error *err);

/* A text that was in the file, or was displaced from it, and belongs into the history in this
 * order.  The last one is what the file holds now, unless a person saved again. */
struct vault_version {
    struct str bytes;
    uint8_t sha256[32];
    bool is_ours; /* made by apply */
    /* Of vault_published: so many bytes at either end are those of the version before. */
    size_t prefix, suffix;
};
struct vault_published {
    struct vault_version *versions;
    size_t n;
    struct str
        staged;   /* names for vault_late() and vault_release(); separated by '\n', may be "" */
    bool changed; /* false: apply gave back what was there, and nothing was written */
};
/* Reads, applies, publishes; versions[0] is what was read.  On failure the file is what the person
 * saved last; *ret is filled then too (n may be 0), for the history.  Two calls for one path must
 * not run at once.  ERR_DENIED: the file is read-only.  ERR_CONFLICT: it lost against a person's
 * saves several times over. */
must_check bool vault_change(struct vault *v, struct str path, vault_apply *apply, void *arg,
                             struct arena *mem, struct vault_published *ret, struct error *err);
/* A new document; parents are made.  ERR_CONFLICT: something is there. */
must_check bool vault_create(struct vault *v, struct str path, struct str bytes, struct error *err);
/* ERR_NOT_FOUND, ERR_CONFLICT (RENAME_NOREPLACE); parents are made, emptied ones are left. */
must_check bool vault_move(struct vault *v, struct str from, struct str to, struct error *err);

/* The document goes, if it is empty; ERR_CONFLICT when it is not, and it stays.  *ret_staged as in
 * vault_published, for somebody may have it open. */
must_check bool vault_remove_empty(struct vault *v, struct str path, struct arena *mem,
                                   struct str *ret_staged, struct error *err);

/* What has been written to displaced files since: one text per file that changed, oldest first.
 * Each is told once. */
must_check bool vault_late(struct vault *v, struct str staged, struct arena *mem,
                           struct vault_version **ret, size_t *ret_n, struct error *err);
/* Whether somebody has one of them open, and so may write to it yet.  Nobody's answer is sure where
 * the folder is also served over a network by something that holds no file open. */
enum vault_holder { VAULT_HELD_BY_NONE, VAULT_HELD, VAULT_HELD_UNKNOWN };
enum vault_holder vault_held(struct vault *v, struct str staged);
/* The history has them: they go, but for one that somebody wrote to after it was told last. */
void vault_release(struct vault *v, struct str staged);
/* After a crash, or when the history was away: what lies in .holdfast.  `path` is absent when the
 * document it belongs to is gone; version.is_ours: a text that had not been published, or was taken
 * back. Oldest first.  Nothing is removed until vault_release().  version.bytes is absent where
 * `mem` has no room for them: ask again when the others are dealt with. */
struct vault_left {
    struct str path, staged;
    struct vault_version version;
};
must_check bool vault_recover(struct vault *v, struct arena *mem, struct vault_left **ret,
                              size_t *ret_n, struct error *err);

/* Changes on disk, by inotify: a descriptor for the loop to poll; vault_changed() then tells the
 * paths.  *ret_rescan: the queue overflowed or a directory came or went: list again. */
must_check bool vault_watch(struct vault *v, int *ret_fd, struct error *err);
void vault_changed(struct vault *v, struct arena *mem, struct str **ret_paths, size_t *ret_n,
                   bool *ret_rescan);

/* Tests see every open that succeeded: NULL for none.  `path` is where the kernel says the opened
 * thing is, absolute; `flags` are openat2's. */
void vault_on_open(struct vault *v, void (*fn)(void *arg, const char *path, uint64_t flags),
                   void *arg);

#endif
