/* SPDX-License-Identifier: Apache-2.0 */
/* Writes of the store to the disk: gathers SQLite's small writes into large ones, and stops a
 * connection from writing after a failed sync. */
#ifndef HOLDFAST_STORE_SQLITE_VFS_H
#define HOLDFAST_STORE_SQLITE_VFS_H

#define SQ_VFS_NAME "holdfast"
/* Maximum of gathered bytes.  SQLite's unix VFS writes a length modulo 128 KiB, so a write of 128
 * KiB would silently be cut.  The value must stay below that. */
#define SQ_VFS_ROOM (15 * 8192)

/* For sqlite3_file_control() on a connection that holds the write lock: writes all committed frames
 * of the WAL once more, syncs them, and makes the next checkpoint copy all of them again.  A new
 * connection needs this, because it cannot know whether an earlier sync failed. */
#define SQ_VFS_WRITE_WAL_AGAIN 0x48460001

/* Registers the VFS `name` on top of the VFS `beneath` (NULL: SQLite's default), for the life of
 * the process.  A connection that uses it must run with synchronous=FULL (sqlite_vfs.c says why).
 * `beneath` must have version 3 and keep its own data behind pAppData. */
void sq_vfs_register(const char *name, const char *beneath);

#endif
