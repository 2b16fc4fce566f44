/* SPDX-License-Identifier: Apache-2.0 */
/* A VFS before SQLite's own, for the connections of the main store.  SQLite writes a
 * commit as two writes for each page and a checkpoint as one for each; here writes that continue
 * each other are gathered and leave as one.  All else passes straight through, after what was
 * gathered.  How often the disk is synced, and what a sync covers, does not change.
 *
 * The WAL.  Others read it through descriptors of their own, but only the frames that the header of
 * the wal-index names.  With synchronous=FULL sqlite3WalFrames() writes the frames of a commit,
 * syncs, and only then writes that header: xSync is where they leave, and where a failure is told.
 * The frames of a spilled transaction go into the hash of the wal-index without a sync, yet lie
 * beyond the header's last frame: only this connection looks for them, through xRead, which lets
 * them leave first.  A transaction that was rolled back may leave such frames gathered; they must
 * not be written once somebody else may be writing at their place, so every xShmLock, the release
 * of the write lock too, lets them leave.  Below FULL a commit would become visible without a
 * sync, and a failure would be told to nobody.
 *
 * The database file.  In a checkpoint nobody reads the pages that are being written: readers of the
 * file alone are locked out (WAL_READ_LOCK(0)), all others find those pages in the WAL until
 * nBackfill says that the file has them.  A checkpoint that reaches the end of the WAL calls
 * xTruncate and xSync before it raises nBackfill, and stops when they fail.  One that a reader
 * holds back raises it without any call whose failure counts, so nothing is gathered in it, nor
 * outside of checkpoints.  The two are told apart when it begins, by two fields of the wal-index
 * that its published format fixes; the store's rule of one writer sees to it that they stay so.
 *
 * A write that fails when it leaves is told by the call that let it leave, with the code it failed
 * with.  From then on every call on that WAL fails so until it is closed: neither may anything be
 * written behind the hole nor the hole be read.  A database has no such hole, for a checkpoint that
 * failed left nBackfill where it was: the pages are in the WAL and the next one copies them again.
 *
 * A sync that fails.  Linux then counts the pages as clean: they may never reach the disk, and the
 * next sync succeeds.  SQLite takes that success for the truth.  A checkpoint that a reader held
 * back has raised nBackfill without a sync; if the sync of the next one fails, the one after copies
 * only later frames, succeeds, and the WAL is written from its start again: what the first one had
 * copied is lost with the power.  So after a failed sync, of either file, every call on both files
 * fails until they are closed, and nBackfill is set to 0 at once: readers look in the WAL again
 * instead of in a file that may lack pages.  The next connection does not trust what it finds:
 * SQ_VFS_WRITE_WAL_AGAIN makes the pages of the WAL dirty again and syncs them, and a checkpoint
 * then copies all of them.  nBackfill may be lowered at any time, because all frames up to it still
 * stand in the WAL; it belongs to who holds the checkpoint lock, which only the writer takes.
 *
 * A read that fails with EIO.  SQLite's unix VFS calls that SQLITE_IOERR_CORRUPTFS, which reaches
 * the application as SQLITE_CORRUPT: a damaged database.  The disk failed, not the database, so it
 * becomes SQLITE_IOERR_READ here. */
#include "store/sqlite_vfs.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/fault.h"

/* Where the wal-index, which is of native byte order, has the size of a page, the last frame
 * committed, the last frame copied (nBackfill) and the last one that the checkpoint under way will
 * copy. */
#define INDEX_PAGE_SIZE 14 /* 16 bits; 1 is 65,536 */
#define INDEX_LAST_FRAME 16
#define INDEX_BACKFILLED 96
#define INDEX_LAST_COPIED 128
#define WAL_HEADER 32
#define FRAME_HEADER 24

struct vfs {
    sqlite3_vfs base;
    sqlite3_vfs *beneath;
};

/* The file of the VFS beneath follows in the same memory. */
struct file {
    sqlite3_file base;
    char *bytes; /* of SQ_VFS_ROOM, made at first use */
    int n;
    sqlite3_int64 at; /* where bytes belong in the file */
    bool gathering;
    int failed;              /* a sync, or what left for a WAL: every call fails with this code */
    int untold;              /* of a database: what left did not arrive, and nobody was told yet */
    volatile uint8_t *index; /* of a database: the first region of its wal-index */
    struct file *wal;        /* of a database, while it has one */
    struct file *database;   /* of a WAL */
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

/* Writes the gathered bytes to the file beneath. */
static int flush_gathered(struct file *f)
{
    if (f->n == 0 || f->failed)
        return f->failed;
    int rc = beneath(f)->pMethods->xWrite(beneath(f), f->bytes, f->n, f->at);
    f->n = 0;
    if (f->database)
        f->failed = rc;
    return rc;
}

static void forget_bytes(struct file *f)
{
    sqlite3_free(f->bytes);
    f->bytes = NULL;
    f->n = 0;
}

static int on_write(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
    struct file *f = file_of(file);
    bool fits = f->gathering && n <= SQ_VFS_ROOM;
    if (!fits || at != f->at + f->n || n > SQ_VFS_ROOM - f->n) {
        int rc = flush_gathered(f);
        if (rc != SQLITE_OK)
            return rc;
    }
    if (f->failed)
        return f->failed;
    if (fits && !f->bytes)
        f->bytes = sqlite3_malloc(SQ_VFS_ROOM);
    if (!fits || !f->bytes)
        return methods(file)->xWrite(beneath(f), p, n, at);
    if (f->n == 0)
        f->at = at;
    memcpy(f->bytes + f->n, p, (size_t)n);
    f->n += n;
    return SQLITE_OK;
}

static int on_read(sqlite3_file *file, void *p, int n, sqlite3_int64 at)
{
    int rc = flush_gathered(file_of(file));
    if (rc == SQLITE_OK)
        rc = methods(file)->xRead(beneath(file_of(file)), p, n, at);
    return rc == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : rc;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct file *f = file_of(file);
    int rc = f->untold ? f->untold : flush_gathered(f);
    f->untold = SQLITE_OK;
    return rc != SQLITE_OK ? rc : methods(file)->xTruncate(beneath(f), size);
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
    int rc = flush_gathered(f);
    if (rc != SQLITE_OK)
        return rc;
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
    for (sqlite3_int64 at = 0; at < size; at += SQ_VFS_ROOM) {
        int n = size - at < SQ_VFS_ROOM ? (int)(size - at) : SQ_VFS_ROOM;
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
    char *room = sqlite3_malloc(SQ_VFS_ROOM);
    if (!room)
        return SQLITE_NOMEM;
    int rc = copy_in_place(wal, room, WAL_HEADER + frame * index_field(database, INDEX_LAST_FRAME));
    sqlite3_free(room);
    return rc == SQLITE_OK ? on_sync(&wal->base, SQLITE_SYNC_NORMAL) : rc;
}

static int on_file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    int rc = flush_gathered(file_of(file));
    return rc != SQLITE_OK ? rc : methods(file)->xFileSize(beneath(file_of(file)), ret_size);
}

static int on_close(sqlite3_file *file)
{
    struct file *f = file_of(file);
    int flushed = flush_gathered(f);
    int closed = methods(file)->xClose(beneath(f));
    forget_bytes(f);
    if (f->database)
        f->database->wal = NULL;
    return flushed != SQLITE_OK ? flushed : closed;
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

/* Both are said of every checkpoint, and SQLite does not look at what they answer: a failure waits
 * for the xTruncate that follows. */
static int on_file_control(sqlite3_file *file, int op, void *arg)
{
    struct file *f = file_of(file);
    if (op == SQ_VFS_WRITE_WAL_AGAIN)
        return write_wal_again(f);
    if (op == SQLITE_FCNTL_CKPT_START) {
        f->untold = SQLITE_OK;
        f->gathering =
            f->index && index_field(f, INDEX_LAST_FRAME) == index_field(f, INDEX_LAST_COPIED);
    } else if (op == SQLITE_FCNTL_CKPT_DONE) {
        f->untold = flush_gathered(f);
        f->gathering = false;
        forget_bytes(f);
    }
    return methods(file)->xFileControl(beneath(f), op, arg);
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
    int rc = f->wal ? flush_gathered(f->wal) : SQLITE_OK;
    if (rc != SQLITE_OK && (flags & SQLITE_SHM_LOCK))
        return rc; /* but what was locked has to be released */
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
    int rc = flush_gathered(file_of(file));
    return rc != SQLITE_OK ? rc : methods(file)->xFetch(beneath(file_of(file)), at, n, ret);
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

/* Files of any other kind are opened as those of the VFS beneath, in the same memory. */
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
        f->gathering = true;
        f->database = file_of(sqlite3_database_file_object(name));
        f->database->wal = f;
    }
    return rc;
}

void sq_vfs_register(const char *name, const char *real_name)
{
    sqlite3_vfs *real = sqlite3_vfs_find(real_name);
    if (!real)
        return; /* opening with `name` will say so */
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
