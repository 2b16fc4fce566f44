/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the vault's files: opening (vault.c), walking (vault_list.c) and the stage directory
 * .holdfast (vault_stage.c).  Only vault*.c includes this. */
#ifndef HOLDFAST_DOCS_VAULT_IMPL_H
#define HOLDFAST_DOCS_VAULT_IMPL_H

#include "base/map.h"
#include "docs/vault.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define VAULT_STAGE_DIR ".holdfast"
#define VAULT_STAGE_NAME 51 /* three times 16 hex digits, two '-', NUL */
#define VAULT_NAME_MAX 255
#define VAULT_OWN_MAX 32

struct vault_watches;
struct vault_own {
    uint64_t inode;
    struct timespec modified;
};
struct vault {
    int root;
    char identity[48]; /* of root, "DEVICE:INODE" */
    char *path;        /* the path that root was opened by */
    atomic_bool lost;
    pthread_mutex_t lock; /* guards the members below, and creation and removal of the stage
                           * directory */
    struct map staged;    /* name -> struct vault_staged: the last known text of a displaced file */
    /* Files that we wrote completely.  A recent mtime of such a file does not mean that it is half
     * written. */
    struct vault_own own[VAULT_OWN_MAX];
    size_t n_own;
    void (*on_open)(void *arg, const char *path, uint64_t flags);
    void *on_open_arg;
    struct vault_watches *watches; /* NULL before vault_watch() */
};

/* Opens `path` beneath `dir`; -1 and errno.  The only openat2 call of the program. */
int vault_openat(struct vault *v, int dir, const char *path, uint64_t flags);
int vault_openat_new(struct vault *v, int dir, const char *path); /* O_EXCL, for writing */
#define VAULT_OPEN_DIR (O_RDONLY | O_DIRECTORY)
#define VAULT_OPEN_FILE O_RDONLY

/* The directory that holds a document, opened, and the document's name in it.  The caller closes it
 * with vault_place_close(). */
struct vault_place {
    int dir;
    char name[VAULT_NAME_MAX + 1];
};
must_check bool vault_place_open(struct vault *v, struct str path, bool make_parents,
                                 struct vault_place *ret, struct error *err);
void vault_place_close(struct vault_place *p);

/* Translates errno of a call on a document: ERR_NOT_FOUND when there is no document, otherwise
 * ERR_UNAVAILABLE. */
bool vault_sys(struct error *err, int errnum, const char *doing);

/* Reads a whole file, and waits a little while another process is writing it.  Each attempt opens
 * `name` in `dir` again, because the file may be replaced meanwhile. */
enum vault_reading {
    VAULT_READ_TEXT = 0,
    VAULT_READ_ANY_BYTES = 1, /* need not be UTF-8 */
    /* Waits for an empty file too: a file system may show the truncation before the new mtime. */
    VAULT_READ_PATIENTLY = 2,
};
must_check bool vault_read_at(struct vault *v, int dir, const char *name, unsigned how,
                              struct arena *mem, struct vault_file *ret, struct error *err);
must_check bool vault_read_patiently(struct vault *v, struct str path, struct arena *mem,
                                     struct vault_file *ret, struct error *err);
/* Whether the file holds exactly these bytes at this moment. */
bool vault_holds(struct vault *v, int dir, const char *name, struct str bytes);
void vault_remember_own(struct vault *v, const struct stat *st);

/* The stage.  A name is HASH OF THE PATH - HASH OF OUR TEXT - RANDOM.  So after a crash the path
 * can be found, and our unpublished text can be told from a displaced one.  A file that is still
 * being written is named "w-…" and is discarded after a crash. */
int vault_stage_dir(struct vault *v); /* the directory must exist; -1 and errno */
/* Writes and syncs the whole text.  Unless is_new, the file gets mode, owner and extended
 * attributes of the document at `path`. */
must_check bool vault_stage(struct vault *v, struct str path, struct str bytes, bool is_new,
                            char ret_name[VAULT_STAGE_NAME], struct error *err);
void vault_stage_drop(struct vault *v, const char *name); /* for a file that was never exchanged */
/* The file is a displaced file from now on; `sha256` is its last known text. */
void vault_stage_keep(struct vault *v, const char *name, const uint8_t sha256[32]);

/* Calls `each` for every directory and every document below `path` ("" is the root), parents first.
 * If `each` returns false, the walk ends; that is not a failure.  Hidden names and symlinks are
 * skipped. */
struct vault_visit {
    struct str path; /* relative to the root; valid during the call */
    int dir;         /* a directory: itself, open; a document: the directory that holds it */
    bool is_dir;
    struct stat st; /* documents only */
};
typedef bool vault_visitor(void *arg, const struct vault_visit *visit);
must_check bool vault_walk(struct vault *v, struct str path, vault_visitor *each, void *arg,
                           struct error *err);

void vault_watches_free(struct vault_watches *w); /* NULL is fine */

#endif
