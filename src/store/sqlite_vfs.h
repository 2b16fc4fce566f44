/* SPDX-License-Identifier: Apache-2.0 */
/* A layer between SQLite and the disk that stops a connection from writing after a failed sync. */
#ifndef HOLDFAST_STORE_SQLITE_VFS_H
#define HOLDFAST_STORE_SQLITE_VFS_H

#define SQ_VFS_NAME "holdfast"

/* For sqlite3_file_control() on a connection that holds the write lock: writes all committed frames
 * of the WAL once more, syncs them, and makes the next checkpoint copy all of them again.  A new
 * connection needs this, because it cannot know whether an earlier sync failed. */
#define SQ_VFS_WRITE_WAL_AGAIN 0x48460001

/* Registers the VFS `name` on top of the VFS `beneath` (NULL: SQLite's default), for the life of
 * the process.  A connection that uses it must run with synchronous=FULL: below that a commit is
 * acknowledged without the sync whose failure this layer watches for.
 * `beneath` must have version 3 and keep its own data behind pAppData. */
void sq_vfs_register(const char *name, const char *beneath);

#endif
