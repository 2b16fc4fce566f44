/* SPDX-License-Identifier: Apache-2.0 */
/* The file of anchors: what a shortened one still proves, and what stays if it cannot be shortened. */
#include "audit_db.h"

#include "audit/anchor_file.h"
#include "audit/source.h"

#include <sqlite3.h>
#include <sys/stat.h>

struct world {
    struct audit_db db;
    struct anchor_file file;
    char path[128];
};

static struct str next_line(struct world *w)
{
    struct event_row e = audit_db_event(EVENT_NOTE, STR("acme"));
    audit_db_write(&w->db, (struct event_row *[]){&e}, 1);
    w->db.last_ms += 1000;
    buf_reset(&w->db.anchor_lines);
    audit_db_anchor(&w->db);
    return buf_str(&w->db.anchor_lines);
}

static void append_some(struct world *w, int n)
{
    for (int i = 0; i < n; i++)
        must(anchor_file_append(&w->file, next_line(w), &must_err));
}

static void open_world(struct world *w)
{
    audit_db_open(&w->db, false);
    audit_db_path(&w->db, "anchors.jsonl", w->path);
    anchor_file_init(&w->file, w->path);
    append_some(w, 5); /* of a writer that has ended */
    audit_db_start(&w->db);
    append_some(w, 20);
}

static char *text_of(const struct world *w, size_t *ret_lines)
{
    static char text[1 << 16];
    FILE *f = fopen(w->path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = 0;
    fclose(f);
    *ret_lines = 0;
    for (size_t i = 0; i < n; i++)
        *ret_lines += text[i] == '\n';
    return text;
}

static int64_t size_of(const struct world *w)
{
    struct stat st;
    assert_int_equal(stat(w->path, &st), 0);
    return st.st_size;
}

static enum event_walk verify_one(void *arg, const struct event_row *e, struct error *err)
{
    return chain_verify_event(arg, e, err) ? EVENT_WALK_ON : EVENT_WALK_FAIL;
}

static bool verify(struct world *w, struct error *err)
{
    size_t lines;
    struct str text = str_of(text_of(w, &lines));
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    struct event_source *source = event_source_borrowing(w->db.store);
    struct chain_verifier *v = chain_verifier_new(w->db.chain);
    bool ok =
        event_source_walk(source, &filter, verify_one, v, err) && chain_verify_end(v, text, err);
    chain_verifier_free(v);
    event_source_close(source);
    return ok;
}

TEST(test_anchor_file__keeps_the_newest_line_of_each_chain_and_those_that_are_stored)
{
    struct world w;
    size_t lines;
    open_world(&w);
    w.file.removed_before_ms = w.db.last_ms - 3000; /* the last four lines are younger */
    w.file.shrink_from = size_of(&w) - 1;
    append_some(&w, 1);
    const char *text = text_of(&w, &lines);
    assert_int_equal(lines, 1 + 4 + 1);
    assert_non_null(strstr(text, "\"writer\":1"));
    assert_int_equal(w.file.shrink_from, ANCHOR_FILE_SHRINK_FROM);
    must(verify(&w, &must_err));
    audit_db_close(&w.db);
}

TEST(test_anchor_file__that_is_not_longer_than_its_limit_or_has_nothing_removed_stays)
{
    struct world w;
    size_t lines;
    open_world(&w);
    w.file.removed_before_ms = INT64_MAX;
    w.file.shrink_from = size_of(&w);
    append_some(&w, 1);
    text_of(&w, &lines);
    assert_int_equal(lines, 26);
    w.file.removed_before_ms = 0;
    append_some(&w, 1);
    text_of(&w, &lines);
    assert_int_equal(lines, 27);
    audit_db_close(&w.db);
}

TEST(test_anchor_file__that_was_shortened_shows_a_cut_end)
{
    struct world w;
    struct error err;
    sqlite3 *db = NULL;
    char path[128];
    open_world(&w);
    w.file.removed_before_ms = INT64_MAX;
    w.file.shrink_from = 1;
    append_some(&w, 1);
    store_close(w.db.store);
    assert_int_equal(sqlite3_open(audit_db_path(&w.db, "holdfast.db", path).p, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM events WHERE id = (SELECT max(id) FROM events)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    struct store_config config = {.path = audit_db_path(&w.db, "holdfast.db", path)};
    must(store_open_sqlite(&config, &w.db.store, &must_err));
    assert_false(verify(&w, &err));
    assert_non_null(strstr(err.text, "is missing"));
    audit_db_close(&w.db);
}

TEST(test_anchor_file__torn_lines_are_ended_and_a_shortened_file_has_none)
{
    struct world w;
    size_t lines;
    open_world(&w);
    FILE *f = fopen(w.path, "a");
    fputs("{\"id\":\"2.9\",\"ten", f);
    fclose(f);
    append_some(&w, 1);
    assert_non_null(strstr(text_of(&w, &lines), "ten\n{\"id\""));
    assert_int_equal(lines, 27);
    w.file.removed_before_ms = INT64_MAX;
    w.file.shrink_from = 1;
    append_some(&w, 1);
    assert_null(strstr(text_of(&w, &lines), "ten\n"));
    assert_int_equal(lines, 1 + 1 + 1);
    must(verify(&w, &must_err));
    audit_db_close(&w.db);
}

TEST(test_anchor_file__that_cannot_be_shortened_grows_on)
{
    struct world w;
    size_t lines;
    char beside[160];
    open_world(&w);
    snprintf(beside, sizeof(beside), "%s.new", w.path);
    assert_int_equal(mkdir(beside, 0700), 0);
    w.file.removed_before_ms = INT64_MAX;
    w.file.shrink_from = 1;
    append_some(&w, 1);
    text_of(&w, &lines);
    assert_int_equal(lines, 26);
    assert_int_equal(rmdir(beside), 0);
    audit_db_close(&w.db);
}
