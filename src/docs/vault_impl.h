/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the vault share: how anything is opened (vault.c), walked (vault_list.c) and
 * kept in .holdfast (vault_stage.c).  Nobody else includes this. */
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
    char identity[48]; /* of root */
    char *path;        /* it was opened by */
    atomic_bool lost;
    pthread_mutex_t lock; /* what follows, and coming and going of the stage directory */
    struct map staged;    /* name -> struct vault_staged: what was told of displaced files */
    /* Files that we wrote whole: young they may be, half written they are not. */
    struct vault_own own[VAULT_OWN_MAX];
    size_t n_own;
    void (*on_open)(void *arg, const char *path, uint64_t flags);
    void *on_open_arg;
    struct vault_watches *watches; /* NULL before vault_watch() */
};

/* Opens `path` beneath `dir`; -1 and errno.  The one openat2 of the program. */
int vault_openat(struct vault *v, int dir, const char *path, uint64_t flags);
int vault_openat_new(struct vault *v, int dir, const char *path); /* O_EXCL, to write */
#define VAULT_OPEN_DIR (O_RDONLY | O_DIRECTORY)
#define VAULT_OPEN_FILE O_RDONLY

/* The directory that `path` is in, and its last name, which points into path's copy in `ret_name`.
 * The descriptor is the caller's; -1 and errno. */
struct vault_place {
    int dir;
    char name[VAULT_NAME_MAX + 1];
};
must_check bool vault_place_open(struct vault *v, struct str path, bool make_parents,
                                 struct vault_place *ret, struct error *err);
void vault_place_close(struct vault_place *p);

/* What errno means for a document: ERR_NOT_FOUND where none is there, ERR_UNAVAILABLE else. */
bool vault_sys(struct error *err, int errnum, const char *doing);

/* Reads a file whole, waiting a little while somebody is writing it.  `dir` and `name` are opened
 * anew each time, for it may be replaced meanwhile. */
enum vault_reading {
    VAULT_READ_TEXT = 0,
    VAULT_READ_ANY_BYTES = 1, /* UTF-8 or not */
    /* Emptiness is waited out too: a file system may show a file cut before it shows it young. */
    VAULT_READ_PATIENTLY = 2,
};
must_check bool vault_read_at(struct vault *v, int dir, const char *name, unsigned how,
                              struct arena *mem, struct vault_file *ret, struct error *err);
must_check bool vault_read_patiently(struct vault *v, struct str path, struct arena *mem,
                                     struct vault_file *ret, struct error *err);
/* Does the file hold just these bytes at this moment? */
bool vault_holds(struct vault *v, int dir, const char *name, struct str bytes);
void vault_remember_own(struct vault *v, const struct stat *st);

/* The stage.  A name is HASH OF THE PATH - HASH OF OUR TEXT - RANDOM, so that after a crash the
 * path is found, and a text of ours that never was published is told from one that was displaced.
 * While it is being written it is named "w-…" and worth nothing. */
int vault_stage_dir(struct vault *v); /* must be there; -1 and errno */
/* Whole, synced, with mode, owner and extended attributes of what `like` names (absent: new). */
must_check bool vault_stage(struct vault *v, struct str path, struct str bytes, bool is_new,
                            char ret_name[VAULT_STAGE_NAME], struct error *err);
void vault_stage_drop(struct vault *v, const char *name); /* was never exchanged */
/* From now on it is a displaced file, of which this much is known. */
void vault_stage_keep(struct vault *v, const char *name, const uint8_t sha256[32]);

/* Calls `each` for every directory and every document's name below `path` ("" is the root), parents
 * first; a false answer ends the walk, which is no failure.  Nothing hidden, no symlinks. */
struct vault_visit {
    struct str path; /* relative to the root; valid during the call */
    int dir;         /* directories: open; documents: the one it is in */
    bool is_dir;
    struct stat st; /* documents */
};
typedef bool vault_visitor(void *arg, const struct vault_visit *visit);
must_check bool vault_walk(struct vault *v, struct str path, vault_visitor *each, void *arg,
                           struct error *err);

void vault_watches_free(struct vault_watches *w); /* NULL is fine */

#endif
