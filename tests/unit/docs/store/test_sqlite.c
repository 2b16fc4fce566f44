/* SPDX-License-Identifier: Apache-2.0 */
/* Documents in SQLite as the file has them: what is looked at for what, and what is left of a
 * session that is gone. */
#include "../../store/store_files.h"

#include "reap.h"

#include "base/clock.h"
#include "docs/store/family.h"
#include "store/sqlite_impl.h"
#include "docs/store/verbs.h"

/* What SQLite does for a statement, a line a step. */
static void explain(sqlite3 *db, const char *text, char *ret, size_t size)
{
    char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", text);
    sqlite3_stmt *st = NULL;
    size_t n = 0;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    ret[0] = '\0';
    while (sqlite3_step(st) == SQLITE_ROW)
        n += (size_t)snprintf(ret + n, size - n, "%s\n", (const char *)sqlite3_column_text(st, 3));
    assert_true(n < size);
    sqlite3_finalize(st);
    sqlite3_free(sql);
}

TEST(test_sqlite_documents__every_statement_finds_by_an_index)
{
    char plan[2048];
    struct files f;
    sqlite3 *db = NULL;
    store_family_add(&docs_store);
    files_init(&f);
    store_close(files_open(&f, false));
    assert_int_equal(sqlite3_open(f.db, &db), SQLITE_OK);
    for (unsigned i = 0; i < SQ_ALL; i++) {
        char *text = sq_statement_text(i);
        if (text && strstr(text, "document")) {
            explain(db, text, plan, sizeof(plan));
            if (strstr(plan, "SCAN d") || strstr(plan, "SCAN r") || strstr(plan, "TEMP B-TREE"))
                fail_msg("%s\n%s", plan, text);
        }
        free(text);
    }
    sqlite3_close(db);
    files_release(&f);
}

TEST(test_sqlite_documents__pages_of_the_history_leave_contents_alone)
{
    char plan[2048];
    struct files f;
    sqlite3 *db = NULL;
    store_family_add(&docs_store);
    files_init(&f);
    store_close(files_open(&f, false));
    assert_int_equal(sqlite3_open(f.db, &db), SQLITE_OK);
    const char *page = sql_statement_text(VERB_DOCUMENT_HISTORY * SQL_VARIANTS_MAX, SQL_SQLITE);
    explain(db, page, plan, sizeof(plan));
    assert_non_null(strstr(plan, "PRIMARY KEY (document_id=? AND revision<?)"));
    assert_null(strstr(page, "c.content")); /* has_text looks at keys alone */
    assert_non_null(strstr(plan, "SEARCH w USING "));
    sqlite3_close(db);
    files_release(&f);
}

TEST(test_sqlite_documents__reads_of_a_session_that_is_gone_go)
{
    static const char count[] = "SELECT count(*) FROM document_reads";
    struct files f;
    struct error err;
    size_t n = 0;
    store_family_add(&docs_store);
    files_init(&f);
    struct store *s = files_open(&f, false);
    files_exec(&f, "INSERT INTO document_reads VALUES ('gone', 'd', 1, 1, 1, 9, 5), "
                   "('gone', 'e', 1, 1, 1, 9, 5)");
    assert_int_equal(files_ask(&f, count), 2);
    assert_true(reap_at(s, clock_life_ms(), 100, &n, &err));
    assert_int_equal(files_ask(&f, count), 0);
    store_close(s);
    files_release(&f);
}
