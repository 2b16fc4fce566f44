/* SPDX-License-Identifier: Apache-2.0 */
/* A VFS on top of SQLite's own, for the connections of the main store.  It passes every call on, and
 * changes what two failures mean.
 *
 * A sync that fails.  Linux then counts the pages as clean: they may never reach the disk, although
 * the next sync succeeds.  SQLite believes that success.  A checkpoint that a reader held back has
 * raised nBackfill without a sync.  If the sync of the next checkpoint fails, the one after it
 * copies only later frames and succeeds, and the WAL is written from its start again.  A power
 * failure then loses the pages that the first checkpoint copied.  So after a failed sync of either
 * file, every call on both files fails until they are closed, and nBackfill is set to 0 at once:
 * readers look in the WAL again instead of in a file that may lack pages.  The next connection does
 * not trust the files: SQ_VFS_WRITE_WAL_AGAIN makes the pages of the WAL dirty again and syncs
 * them, and a checkpoint then copies all of them.  nBackfill may be lowered at any time, because
 * all frames up to it are still in the WAL.  Only the holder of the checkpoint lock may change
 * nBackfill, and only the writer takes that lock.
 *
 * A read that fails with EIO.  SQLite's unix VFS returns SQLITE_IOERR_CORRUPTFS, which reaches the
 * application as SQLITE_CORRUPT: a damaged database.  The disk failed, not the database, so this
 * VFS returns SQLITE_IOERR_READ instead. */
#include "store/sqlite_vfs.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/fault.h"

/* Offsets in the wal-index, which has native byte order: the page size, the last committed frame
 * and the last copied frame (nBackfill). */
#define INDEX_PAGE_SIZE 14 /* 16 bits; 1 is 65,536 */
#define INDEX_LAST_FRAME 16
#define INDEX_BACKFILLED 96
#define WAL_HEADER 32
#define FRAME_HEADER 24
/* SQLite's unix VFS writes a length modulo 128 KiB, so a copy must be smaller than that. */
#define COPY_ROOM (15 * 8192)

struct vfs {
    sqlite3_vfs base;
    sqlite3_vfs *beneath;
};

/* The file of the VFS beneath follows in the same memory. */
struct file {
    sqlite3_file base;
    int failed;              /* after a failed sync every call fails with this code */
    volatile uint8_t *index; /* database: the first region of its wal-index */
    struct file *wal;        /* database: its WAL, while open */
    struct file *database;   /* WAL: its database */
};

static struct file *file_of(sqlite3_file *f)
{
    return (struct file *)f;
}

static sqlite3_file *beneath(struct file *f)
{
    return (sqlite3_file *)(f + 1);
}

static const sqlite3_io_methods *methods(sqlite3_file *f)
{
    return beneath(file_of(f))->pMethods;
}

static int on_write(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
    struct file *f = file_of(file);
    return f->failed ? f->failed : methods(file)->xWrite(beneath(f), p, n, at);
}

static int on_read(sqlite3_file *file, void *p, int n, sqlite3_int64 at)
{
    struct file *f = file_of(file);
    int rc = f->failed ? f->failed : methods(file)->xRead(beneath(f), p, n, at);
    return rc == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : rc;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct file *f = file_of(file);
    return f->failed ? f->failed : methods(file)->xTruncate(beneath(f), size);
}

static uint32_t index_field(const struct file *f, size_t at)
{
    return *(const volatile uint32_t *)(f->index + at);
}

static void copied_is_unknown(struct file *database)
{
    if (database->index)
        *(volatile uint32_t *)(database->index + INDEX_BACKFILLED) = 0;
}

static void sync_failed(struct file *f, int rc)
{
    struct file *database = f->database ? f->database : f;
    database->failed = rc;
    if (database->wal)
        database->wal->failed = rc;
    copied_is_unknown(database);
}

static int on_sync(sqlite3_file *file, int flags)
{
    struct file *f = file_of(file);
    int rc = SQLITE_OK;
    if (f->failed)
        return f->failed;
    if (fault_hits(f->database ? "store.sync_wal" : "store.sync_db"))
        rc = SQLITE_IOERR_FSYNC;
    else
        rc = methods(file)->xSync(beneath(f), flags);
    if (rc != SQLITE_OK)
        sync_failed(f, rc);
    return rc;
}

static int copy_in_place(struct file *f, char *room, sqlite3_int64 size)
{
    for (sqlite3_int64 at = 0; at < size; at += COPY_ROOM) {
        int n = size - at < COPY_ROOM ? (int)(size - at) : COPY_ROOM;
        int rc = on_read(&f->base, room, n, at);
        if (rc == SQLITE_OK)
            rc = beneath(f)->pMethods->xWrite(beneath(f), room, n, at);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

static int write_wal_again(struct file *database)
{
    struct file *wal = database->wal;
    copied_is_unknown(database);
    if (!wal || !database->index || index_field(database, INDEX_LAST_FRAME) == 0)
        return SQLITE_OK;
    uint16_t page = *(const volatile uint16_t *)(database->index + INDEX_PAGE_SIZE);
    sqlite3_int64 frame = FRAME_HEADER + (page == 1 ? 65536 : page);
    char *room = sqlite3_malloc(COPY_ROOM);
    if (!room)
        return SQLITE_NOMEM;
    int rc = copy_in_place(wal, room, WAL_HEADER + frame * index_field(database, INDEX_LAST_FRAME));
    sqlite3_free(room);
    return rc == SQLITE_OK ? on_sync(&wal->base, SQLITE_SYNC_NORMAL) : rc;
}

static int on_file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    struct file *f = file_of(file);
    return f->failed ? f->failed : methods(file)->xFileSize(beneath(f), ret_size);
}

static int on_close(sqlite3_file *file)
{
    struct file *f = file_of(file);
    int rc = methods(file)->xClose(beneath(f));
    if (f->database)
        f->database->wal = NULL;
    return f->failed ? f->failed : rc;
}

static int on_lock(sqlite3_file *file, int level)
{
    return methods(file)->xLock(beneath(file_of(file)), level);
}

static int on_unlock(sqlite3_file *file, int level)
{
    return methods(file)->xUnlock(beneath(file_of(file)), level);
}

static int on_check_reserved(sqlite3_file *file, int *ret)
{
    return methods(file)->xCheckReservedLock(beneath(file_of(file)), ret);
}

static int on_file_control(sqlite3_file *file, int op, void *arg)
{
    struct file *f = file_of(file);
    return op == SQ_VFS_WRITE_WAL_AGAIN ? write_wal_again(f)
                                        : methods(file)->xFileControl(beneath(f), op, arg);
}

static int on_sector_size(sqlite3_file *file)
{
    return methods(file)->xSectorSize(beneath(file_of(file)));
}

static int on_device_characteristics(sqlite3_file *file)
{
    return methods(file)->xDeviceCharacteristics(beneath(file_of(file)));
}

static int on_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
    struct file *f = file_of(file);
    int rc = methods(file)->xShmMap(beneath(f), region, size, extend, ret);
    if (region == 0 && rc == SQLITE_OK)
        f->index = *ret;
    return rc;
}

static int on_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    struct file *f = file_of(file);
    if (f->failed && (flags & SQLITE_SHM_LOCK))
        return f->failed; /* but an unlock must go through */
    return methods(file)->xShmLock(beneath(f), at, n, flags);
}

static void on_shm_barrier(sqlite3_file *file)
{
    methods(file)->xShmBarrier(beneath(file_of(file)));
}

static int on_shm_unmap(sqlite3_file *file, int delete)
{
    file_of(file)->index = NULL;
    return methods(file)->xShmUnmap(beneath(file_of(file)), delete);
}

static int on_fetch(sqlite3_file *file, sqlite3_int64 at, int n, void **ret)
{
    struct file *f = file_of(file);
    return f->failed ? f->failed : methods(file)->xFetch(beneath(f), at, n, ret);
}

static int on_unfetch(sqlite3_file *file, sqlite3_int64 at, void *p)
{
    return methods(file)->xUnfetch(beneath(file_of(file)), at, p);
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 3,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_file_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_reserved,
    .xFileControl = on_file_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_device_characteristics,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
    .xFetch = on_fetch,
    .xUnfetch = on_unfetch,
};

/* The VFS beneath opens files of any other kind directly, in the same memory. */
static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                   int *ret_flags)
{
    sqlite3_vfs *real = ((struct vfs *)vfs)->beneath;
    struct file *f = file_of(file);
    if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
        return real->xOpen(real, name, file, flags, ret_flags);
    memset(f, 0, sizeof(*f));
    int rc = real->xOpen(real, name, beneath(f), flags, ret_flags);
    if (!beneath(f)->pMethods)
        return rc;
    f->base.pMethods = &file_methods;
    if (flags & SQLITE_OPEN_WAL) {
        f->database = file_of(sqlite3_database_file_object(name));
        f->database->wal = f;
    }
    return rc;
}

void sq_vfs_register(const char *name, const char *real_name)
{
    sqlite3_vfs *real = sqlite3_vfs_find(real_name);
    if (!real)
        return; /* opening with `name` then fails */
    struct vfs *v = xcalloc(1, sizeof(*v));
    v->base = *real;
    v->base.pNext = NULL;
    v->base.zName = name;
    v->base.szOsFile = (int)sizeof(struct file) + real->szOsFile;
    v->base.xOpen = on_open;
    v->beneath = real;
    if (sqlite3_vfs_register(&v->base, 0) != SQLITE_OK)
        free(v);
}
