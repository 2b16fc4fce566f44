/* SPDX-License-Identifier: Apache-2.0 */
/* A VFS that stands beneath the one under test: it counts what reaches the disk, keeps it when
 * asked, and lets one write or sync of the main database or its WAL fail.  Nothing is really
 * synced: what a sync promises is played from what was kept.  A sync that failed behaves as on
 * Linux: the writes before it count as clean, so that no later sync brings them to the disk. */
#ifndef HOLDFAST_TESTS_RECORDING_VFS_H
#define HOLDFAST_TESTS_RECORDING_VFS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define RECORDING_VFS "recording"

enum recorded_file { RECORDED_DB, RECORDED_WAL, RECORDED_FILES };
enum recorded_deed {
    RECORDED_WRITE,
    RECORDED_TRUNCATE,
    RECORDED_SYNC,
    RECORDED_FAILED_SYNC,
    RECORDED_ACK
};

struct recorded {
    enum recorded_file file;
    enum recorded_deed deed;
    sqlite3_int64 at; /* of a write; the new size of a truncate; the number of an ack */
    char *bytes;
    size_t n;
};

struct recording {
    sqlite3_vfs base;
    int writes[RECORDED_FILES], syncs[RECORDED_FILES];
    int fail_in, fail_with;            /* the n-th write or sync from now; 0 is none */
    int fail_syncs_of[RECORDED_FILES]; /* the n-th sync of that file from now; 0 is none */
    int read_errors;                   /* so many reads fail as those of a bad disk */
    bool wal_write_failed, sync_failed;
    bool keeping;
    struct recorded *kept;
    size_t n_kept, cap_kept;
};

struct recorded_handle {
    sqlite3_file base;
    enum recorded_file file;
};

static struct recording recording;

static inline sqlite3_file *recording_beneath(sqlite3_file *f)
{
    return (sqlite3_file *)((struct recorded_handle *)f + 1);
}

static inline void recording_keep(struct recorded r, const void *bytes)
{
    struct recording *rec = &recording;
    if (!rec->keeping)
        return;
    if (rec->n_kept == rec->cap_kept) {
        rec->cap_kept = rec->cap_kept ? 2 * rec->cap_kept : 256;
        rec->kept = xrealloc(rec->kept, rec->cap_kept * sizeof(*rec->kept));
    }
    if (bytes && r.n > 0) {
        r.bytes = xmalloc(r.n);
        memcpy(r.bytes, bytes, r.n);
    }
    rec->kept[rec->n_kept++] = r;
}

static inline void recording_ack(int64_t number)
{
    recording_keep((struct recorded){.deed = RECORDED_ACK, .at = number}, NULL);
}

static inline void recording_reset(void)
{
    for (size_t i = 0; i < recording.n_kept; i++)
        free(recording.kept[i].bytes);
    free(recording.kept);
    recording = (struct recording){.base = recording.base};
}

/* SQLITE_OK, or what this write or sync is to fail with. */
static inline int recording_fails(void)
{
    return recording.fail_in > 0 && --recording.fail_in == 0 ? recording.fail_with : SQLITE_OK;
}

static inline int recording_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    struct recorded_handle *h = (struct recorded_handle *)f;
    sqlite3_file *real = recording_beneath(f);
    int rc = recording_fails();
    recording.writes[h->file]++;
    if (rc != SQLITE_OK) { /* half of it arrives */
        recording.wal_write_failed = h->file == RECORDED_WAL;
        if (n > 1)
            real->pMethods->xWrite(real, p, n / 2, at);
        return rc;
    }
    recording_keep((struct recorded){h->file, RECORDED_WRITE, at, NULL, (size_t)n}, p);
    return real->pMethods->xWrite(real, p, n, at);
}

static inline int recording_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct recorded_handle *h = (struct recorded_handle *)f;
    sqlite3_file *real = recording_beneath(f);
    recording_keep((struct recorded){.file = h->file, .deed = RECORDED_TRUNCATE, .at = size}, NULL);
    return real->pMethods->xTruncate(real, size);
}

static inline int recording_sync(sqlite3_file *f, int flags)
{
    struct recorded_handle *h = (struct recorded_handle *)f;
    int rc = recording_fails();
    (void)flags;
    recording.syncs[h->file]++;
    if (recording.fail_syncs_of[h->file] > 0 && --recording.fail_syncs_of[h->file] == 0)
        rc = SQLITE_IOERR_FSYNC;
    recording.sync_failed = recording.sync_failed || rc != SQLITE_OK;
    recording_keep(
        (struct recorded){.file = h->file,
                          .deed = rc == SQLITE_OK ? RECORDED_SYNC : RECORDED_FAILED_SYNC},
        NULL);
    return rc == SQLITE_OK || rc == SQLITE_FULL ? rc : SQLITE_IOERR_FSYNC;
}

static inline int recording_close(sqlite3_file *f)
{
    return recording_beneath(f)->pMethods->xClose(recording_beneath(f));
}

static inline int recording_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    if (recording.read_errors > 0 && recording.read_errors--)
        return SQLITE_IOERR_CORRUPTFS; /* what SQLite's own VFS makes of EIO */
    return recording_beneath(f)->pMethods->xRead(recording_beneath(f), p, n, at);
}

static inline int recording_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return recording_beneath(f)->pMethods->xFileSize(recording_beneath(f), ret);
}

static inline int recording_lock(sqlite3_file *f, int level)
{
    return recording_beneath(f)->pMethods->xLock(recording_beneath(f), level);
}

static inline int recording_unlock(sqlite3_file *f, int level)
{
    return recording_beneath(f)->pMethods->xUnlock(recording_beneath(f), level);
}

static inline int recording_reserved(sqlite3_file *f, int *ret)
{
    return recording_beneath(f)->pMethods->xCheckReservedLock(recording_beneath(f), ret);
}

static inline int recording_control(sqlite3_file *f, int op, void *arg)
{
    return recording_beneath(f)->pMethods->xFileControl(recording_beneath(f), op, arg);
}

static inline int recording_sector(sqlite3_file *f)
{
    return recording_beneath(f)->pMethods->xSectorSize(recording_beneath(f));
}

static inline int recording_device(sqlite3_file *f)
{
    return recording_beneath(f)->pMethods->xDeviceCharacteristics(recording_beneath(f));
}

static inline int recording_map(sqlite3_file *f, int i, int n, int extend, void volatile **ret)
{
    return recording_beneath(f)->pMethods->xShmMap(recording_beneath(f), i, n, extend, ret);
}

static inline int recording_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return recording_beneath(f)->pMethods->xShmLock(recording_beneath(f), at, n, flags);
}

static inline void recording_barrier(sqlite3_file *f)
{
    recording_beneath(f)->pMethods->xShmBarrier(recording_beneath(f));
}

static inline int recording_unmap(sqlite3_file *f, int delete)
{
    return recording_beneath(f)->pMethods->xShmUnmap(recording_beneath(f), delete);
}

static inline int recording_fetch(sqlite3_file *f, sqlite3_int64 at, int n, void **ret)
{
    return recording_beneath(f)->pMethods->xFetch(recording_beneath(f), at, n, ret);
}

static inline int recording_unfetch(sqlite3_file *f, sqlite3_int64 at, void *p)
{
    return recording_beneath(f)->pMethods->xUnfetch(recording_beneath(f), at, p);
}

static const sqlite3_io_methods recording_file_methods = {
    .iVersion = 3,
    .xClose = recording_close,
    .xRead = recording_read,
    .xWrite = recording_write,
    .xTruncate = recording_truncate,
    .xSync = recording_sync,
    .xFileSize = recording_size,
    .xLock = recording_lock,
    .xUnlock = recording_unlock,
    .xCheckReservedLock = recording_reserved,
    .xFileControl = recording_control,
    .xSectorSize = recording_sector,
    .xDeviceCharacteristics = recording_device,
    .xShmMap = recording_map,
    .xShmLock = recording_shm_lock,
    .xShmBarrier = recording_barrier,
    .xShmUnmap = recording_unmap,
    .xFetch = recording_fetch,
    .xUnfetch = recording_unfetch,
};

static inline int recording_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
                                 int *ret_flags)
{
    sqlite3_vfs *real = sqlite3_vfs_find("unix");
    struct recorded_handle *h = (struct recorded_handle *)f;
    (void)vfs;
    if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
        return real->xOpen(real, name, f, flags, ret_flags);
    memset(h, 0, sizeof(*h));
    h->file = flags & SQLITE_OPEN_WAL ? RECORDED_WAL : RECORDED_DB;
    int rc = real->xOpen(real, name, recording_beneath(f), flags, ret_flags);
    if (recording_beneath(f)->pMethods)
        h->base.pMethods = &recording_file_methods;
    return rc;
}

/* As SQLite's default, so that a store opened after this stands on it. */
static inline void recording_register(void)
{
    if (recording.base.zName)
        return;
    recording.base = *sqlite3_vfs_find("unix");
    recording.base.pNext = NULL;
    recording.base.zName = RECORDING_VFS;
    recording.base.szOsFile += (int)sizeof(struct recorded_handle);
    recording.base.xOpen = recording_open;
    sqlite3_vfs_register(&recording.base, 1);
}

/* A file as the disk has it. */
struct image {
    char *p;
    size_t n, cap;
};

static inline void image_write(struct image *to, size_t at, const char *p, size_t n)
{
    if (at + n > to->n) {
        if (at + n > to->cap) {
            to->cap = 2 * (at + n);
            to->p = xrealloc(to->p, to->cap);
        }
        memset(to->p + to->n, 0, at + n - to->n);
        to->n = at + n;
    }
    memcpy(to->p + at, p, n);
}

static inline bool chance(uint64_t *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return *dice >> 63;
}

/* With dice only some sectors of it arrive. */
static inline void image_apply(struct image *to, const struct recorded *r, uint64_t *dice)
{
    if (r->deed == RECORDED_TRUNCATE) {
        if ((size_t)r->at < to->n && (!dice || chance(dice)))
            to->n = (size_t)r->at;
        return;
    }
    for (size_t i = 0, n; i < r->n; i += n) {
        size_t at = (size_t)r->at + i;
        n = 512 - at % 512 < r->n - i ? 512 - at % 512 : r->n - i;
        if (!dice || chance(dice))
            image_write(to, at, r->bytes + i, n);
    }
}

enum cut { CUT_DROPS, CUT_KEEPS, CUT_TEARS, CUT_WAYS };

/* Did a sync of its file that succeeded follow the deed at `i`, before any that failed? */
static inline bool image_is_synced(size_t i, size_t n)
{
    enum recorded_file file = recording.kept[i].file;
    while (i < n && (recording.kept[i].file != file || recording.kept[i].deed < RECORDED_SYNC ||
                     recording.kept[i].deed == RECORDED_ACK))
        i++;
    return i < n && recording.kept[i].deed == RECORDED_SYNC;
}

/* What the disk has of `file` when the power goes after `n` deeds. */
static inline struct image image_cut(const struct image *base, enum recorded_file file, size_t n,
                                     enum cut how)
{
    struct image to = {xmalloc(base->n + 1), base->n, base->n + 1};
    uint64_t dice = n * 2654435761u + file;
    memcpy(to.p, base->p, base->n);
    for (size_t i = 0; i < n; i++) {
        const struct recorded *r = &recording.kept[i];
        if (r->file != file || r->deed > RECORDED_TRUNCATE)
            continue;
        bool synced = image_is_synced(i, n);
        if (synced || how != CUT_DROPS)
            image_apply(&to, r, !synced && how == CUT_TEARS ? &dice : NULL);
    }
    return to;
}

#endif
