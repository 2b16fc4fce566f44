/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's way to the disk: SQLite's small writes gathered into large ones. */
#ifndef HOLDFAST_STORE_SQLITE_VFS_H
#define HOLDFAST_STORE_SQLITE_VFS_H

#define SQ_VFS_NAME "holdfast"
/* Bytes gathered at most.  SQLite's own unix VFS writes a length modulo 128 KiB, so that a write of
 * that much would be cut without a word: this must stay below. */
#define SQ_VFS_ROOM (15 * 8192)

/* Registers the VFS `name` on top of the VFS `beneath` (NULL: SQLite's default), for the life of
 * the process.  A connection that uses it must run with synchronous=FULL (sqlite_vfs.c says why).
 * `beneath` has to be of version 3 and to keep what is its own behind pAppData. */
void sq_vfs_register(const char *name, const char *beneath);

#endif
