/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for one database, and the few words its tests share. */
#ifndef HOLDFAST_TESTS_STORE_FILES_H
#define HOLDFAST_TESTS_STORE_FILES_H

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#include "store/store.h"

struct files {
    char dir[64];
    char db[96];
};

static inline void files_init(struct files *f)
{
    snprintf(f->dir, sizeof(f->dir), "/tmp/holdfast-files-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->db, sizeof(f->db), "%s/holdfast.db", f->dir);
}

static inline void files_release(struct files *f)
{
    char path[128];
    unlink(f->db);
    snprintf(path, sizeof(path), "%s-wal", f->db);
    unlink(path);
    snprintf(path, sizeof(path), "%s-shm", f->db);
    unlink(path);
    rmdir(f->dir);
}

static inline struct store *files_open(const struct files *f, bool read_only)
{
    struct store *s = NULL;
    struct error err;
    struct store_config config = {.path = str_of(f->db), .read_only = read_only};
    if (!store_open_sqlite(&config, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

/* The first column of the only row, on a connection of its own; -1 when that fails. */
static inline int64_t files_ask(const struct files *f, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t answer = -1;
    assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        answer = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return answer;
}

static inline void files_exec(const struct files *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

#endif
