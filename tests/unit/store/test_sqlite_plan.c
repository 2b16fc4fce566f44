/* SPDX-License-Identifier: Apache-2.0 */
/* No statement goes through all sessions: what SQLite makes of each text is looked at, so that a
 * new index cannot lead an old statement astray. */
#include "store_files.h"

#include "store/sqlite_impl.h"

/* Those that count or add up whatever there is. */
static bool may_scan(size_t which)
{
    static const enum sq_statement those[] = {SQ_COUNTS};
    for (size_t i = 0; i < countof(those); i++)
        if (those[i] == which)
            return true;
    return false;
}

static void assert_plan(sqlite3 *db, size_t which)
{
    char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sq_texts[which]);
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(st, 3);
        /* Every live session has one of two statuses: alone they find nothing. */
        if (strncmp(step, "SCAN edge_mcp_sessions", 22) == 0 || strstr(step, "used (status=?)"))
            fail_msg("%s\n%s", step, sq_texts[which]);
    }
    sqlite3_finalize(st);
    sqlite3_free(sql);
}

TEST(test_sqlite__no_statement_goes_through_all_sessions)
{
    struct files f;
    sqlite3 *db = NULL;
    files_init(&f);
    store_close(files_open(&f, false));
    assert_int_equal(sqlite3_open(f.db, &db), SQLITE_OK);
    for (size_t i = 0; i < SQ_COUNT; i++) {
        assert_non_null(sq_texts[i]);
        if (!may_scan(i))
            assert_plan(db, i);
    }
    sqlite3_close(db);
    files_release(&f);
}
