/* SPDX-License-Identifier: Apache-2.0 */
/* The store's way to the disk: SQLite's small writes gathered into large ones, and a connection
 * that stops writing once a sync has failed. */
#ifndef HOLDFAST_STORE_SQLITE_VFS_H
#define HOLDFAST_STORE_SQLITE_VFS_H

#define SQ_VFS_NAME "holdfast"
/* Bytes gathered at most.  SQLite's own unix VFS writes a length modulo 128 KiB, so that a write of
 * that much would be cut without a word: this must stay below. */
#define SQ_VFS_ROOM (15 * 8192)

/* For sqlite3_file_control() on a connection that holds the write lock: writes all committed frames
 * of the WAL once more and syncs them, and has the next checkpoint copy all of them again.  A
 * connection that is new needs it, because it cannot know whether a sync failed before it came. */
#define SQ_VFS_WRITE_WAL_AGAIN 0x48460001

/* Registers the VFS `name` on top of the VFS `beneath` (NULL: SQLite's default), for the life of
 * the process.  A connection that uses it must run with synchronous=FULL (sqlite_vfs.c says why).
 * `beneath` has to be of version 3 and to keep what is its own behind pAppData. */
void sq_vfs_register(const char *name, const char *beneath);

#endif
