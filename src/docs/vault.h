/* SPDX-License-Identifier: Apache-2.0 */
/* One folder of documents on disk.  Only the vault's files (vault*.c) open anything in the folder:
 * beneath its root, by openat2 (RESOLVE_BENEATH, no symlinks, no magic links, same device not
 * required), regular files only.  Calls block; any thread may make them.  A path is relative to the
 * root, UTF-8, with '/' between names.  It ends in .md (any case), and has no empty, "." or ".."
 * part and no part that begins with '.'.
 *
 * Publishing never loses a person's save that happens at the same time:
 *
 *   base read ─> fresh text to ROOT/.holdfast/NAME, synced ─> RENAME_EXCHANGE ─> displaced file
 *     displaced == base:  done
 *     displaced != base:  a person saved in between: the change is applied again to the saved text
 *                         and exchanged; if it does not apply, the saved text goes back, and the
 *                         call reports it
 *
 * The displaced file stays in .holdfast until vault_release(), because an editor may still have it
 * open.  A write to it within that time is a person's save like any other (vault_late()).  A crash
 * leaves such files behind; vault_recover() returns them at the next start.  The directory
 * .holdfast exists only while it holds a file. */
#ifndef HOLDFAST_DOCS_VAULT_H
#define HOLDFAST_DOCS_VAULT_H

#include "base/arena.h"
#include "base/error.h"

#define VAULT_FILE_MAX (4u * 1024 * 1024) /* bytes of a document */
#define VAULT_FILES_MAX 200000            /* documents in a folder; a longer listing is cut */
#define VAULT_PATH_MAX 1024
#define VAULT_DEPTH_MAX 32
#define VAULT_LATE_MS 60000 /* how long a displaced file is watched */

struct vault;
/* ERR_CONFIG: not a directory, or it may not be read. */
must_check bool vault_open(struct str root, struct vault **ret, struct error *err);
void vault_close(struct vault *v);
/* The identity of the opened directory, "DEVICE:INODE".  All vaults of the same directory return
 * the same value. */
struct str vault_root(const struct vault *v);
/* Checks that the path given to vault_open() still leads to the opened directory.  ERR_UNAVAILABLE:
 * another directory is there, or none.  Writes to this vault would then go to a directory that no
 * person sees.  vault_list() makes this check itself; before a change the caller makes it. */
must_check bool vault_is_current(struct vault *v, struct error *err);
bool vault_is_lost(const struct vault *v); /* the last result of vault_is_current(); any thread */

must_check bool vault_path_check(struct str path, struct error *err); /* ERR_BAD_INPUT */
/* For a path that an agent chooses: ERR_BAD_INPUT names the first character that is invisible or is
 * markup in CriticMarkup, links or HTML.  Existing documents with such names stay readable. */
must_check bool vault_name_check(struct str path, struct error *err);

struct vault_file {
    struct str bytes; /* unchanged: BOM and CRLF are kept */
    uint8_t sha256[32];
    int64_t modified_ms;
    bool is_read_only; /* its mode has no write permission for any user */
};
/* ERR_NOT_FOUND: there is no document (a directory, symlink, FIFO or device is not one).
 * ERR_BAD_INPUT: the path is not valid, or the bytes are not a document (not UTF-8, too large).  A
 * file that was modified a moment ago is read again until it stops changing, for at most 250 ms. */
must_check bool vault_read(struct vault *v, struct str path, struct arena *mem,
                           struct vault_file *ret, struct error *err);

struct vault_entry {
    struct str path;
    int64_t size, modified_ms;
    uint64_t inode;
};
/* Every document, sorted by path, in mem.  *ret_cut: the folder has more than VAULT_FILES_MAX. */
must_check bool vault_list(struct vault *v, struct arena *mem, struct vault_entry **ret,
                           size_t *ret_n, bool *ret_cut, struct error *err);

/* Makes the new text of a document from `bytes`, its present text.  The vault calls it again, with
 * other bytes, when a person saved meanwhile.  False: the change does not apply (err says why;
 * nothing is written). */
typedef bool vault_apply(void *arg, struct str bytes, struct arena *mem, struct str *ret_fresh,
                         struct error *err);

/* A text that the file held, or that was displaced from it.  Versions belong into the history in
 * the order given.  The last version is the file's present text, unless a person saved again. */
struct vault_version {
    struct str bytes;
    uint8_t sha256[32];
    bool is_ours; /* made by apply */
    /* In vault_published: the first `prefix` and last `suffix` bytes equal the version before. */
    size_t prefix, suffix;
};
struct vault_published {
    struct vault_version *versions;
    size_t n;
    struct str
        staged;   /* names for vault_late() and vault_release(); separated by '\n', may be "" */
    bool changed; /* false: apply returned the text unchanged, and nothing was written */
};
/* Reads, applies, publishes; versions[0] is the text that was read.  On failure the file holds the
 * person's last save.  *ret is filled on failure too (n may be 0), for the history.  Two calls for
 * one path must not run at once.  ERR_DENIED: the file is read-only.  ERR_CONFLICT: people saved in
 * every round. */
must_check bool vault_change(struct vault *v, struct str path, vault_apply *apply, void *arg,
                             struct arena *mem, struct vault_published *ret, struct error *err);
/* Creates a document and its parent folders.  ERR_CONFLICT: the path exists already. */
must_check bool vault_create(struct vault *v, struct str path, struct str bytes, struct error *err);
/* Moves a document and creates parent folders; folders that become empty stay.  ERR_NOT_FOUND,
 * ERR_CONFLICT (RENAME_NOREPLACE). */
must_check bool vault_move(struct vault *v, struct str from, struct str to, struct error *err);

/* Removes the document if it is empty.  ERR_CONFLICT: it is not empty, and stays.  *ret_staged is
 * as in vault_published, because an editor may have the file open. */
must_check bool vault_remove_empty(struct vault *v, struct str path, struct arena *mem,
                                   struct str *ret_staged, struct error *err);

/* Returns the texts that were written to displaced files since the last call: one per file that
 * changed, in the order of `staged`.  Each text is returned once. */
must_check bool vault_late(struct vault *v, struct str staged, struct arena *mem,
                           struct vault_version **ret, size_t *ret_n, struct error *err);
/* Whether a process has one of the displaced files open, and so may still write to it.  The answer
 * is not certain if the folder is also served over a network by a server that keeps no file
 * open. */
enum vault_holder { VAULT_HELD_BY_NONE, VAULT_HELD, VAULT_HELD_UNKNOWN };
enum vault_holder vault_held(struct vault *v, struct str staged);
/* Call it once the history has the texts.  Removes the displaced files, except a file that was
 * written to after its text was returned last. */
void vault_release(struct vault *v, struct str staged);
/* A file that a crash, or a time without the history, left in .holdfast.  `path` is absent when its
 * document is gone.  version.is_ours: our text, never published or taken back.  version.bytes is
 * absent when `mem` has no room for it: process the others, then call again.  Oldest first.
 * Nothing is removed until vault_release(). */
struct vault_leftover {
    struct str path, staged;
    struct vault_version version;
};
must_check bool vault_recover(struct vault *v, struct arena *mem, struct vault_leftover **ret,
                              size_t *ret_n, struct error *err);

/* Reports changes on disk, by inotify.  vault_watch() returns a descriptor for the loop to poll;
 * when it is readable, vault_changed() returns the changed paths.  *ret_rescan: list again, because
 * the queue overflowed, a directory came or went, or not every directory is watched. */
must_check bool vault_watch(struct vault *v, int *ret_fd, struct error *err);
void vault_changed(struct vault *v, struct arena *mem, struct str **ret_paths, size_t *ret_n,
                   bool *ret_rescan);

/* For tests: `fn` sees every open that succeeded; NULL for no hook.  `path` is the absolute path
 * that the kernel reports for the descriptor; `flags` are those given to openat2. */
void vault_on_open(struct vault *v, void (*fn)(void *arg, const char *path, uint64_t flags),
                   void *arg);

#endif
