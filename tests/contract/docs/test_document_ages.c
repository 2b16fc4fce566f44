/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about the age of revisions: their texts go, they themselves stay. */
#include "document_contract.h"

static struct documents_age aged(struct fixture *f, int64_t before_ms, struct str after,
                                 unsigned limit)
{
    struct documents_age row = {
        .folder = STR("notes"), .before_ms = before_ms, .after = after, .limit = limit};
    assert_int_equal(write_one(f, op_documents_age(&row)), VERDICT_OK);
    return row;
}

/* A revision of a.md that changes one byte in the middle of a long text. */
static struct str change(struct fixture *f, int n, struct str before)
{
    struct str text = arena_dup(f->mem, before);
    ((char *)text.p)[text.n / 2] = (char)('a' + n);
    struct revise *r = revise(f, n, "a.md", text);
    r->revision.prefix = text.n / 2;
    r->revision.suffix = text.n - text.n / 2 - 1;
    digest(before, r->revision.follows);
    assert_int_equal(revised(f, r), n);
    return text;
}

#define TEXTS 6
/* Revisions 1 to TEXTS at NOW + 1, NOW + 2 … */
static void write_texts(struct fixture *f, struct str texts[TEXTS + 1])
{
    char *text = arena_alloc(f->mem, 401);
    memset(text, '-', 400);
    text[400] = '\0';
    texts[1] = str_n(text, 400);
    assert_int_equal(revised(f, revise(f, 1, "a.md", texts[1])), 1);
    for (int n = 2; n <= TEXTS; n++)
        texts[n] = change(f, n, texts[n - 1]);
}

static void has_texts(struct fixture *f, const char *id, const struct str *texts, int from, int n)
{
    struct revision_row *rows = NULL;
    assert_int_equal(history(f, id, 0, 50, &rows), n);
    for (int i = 1; i <= n; i++) {
        struct revision_row *r = revision(f, id, i);
        assert_non_null(r);
        assert_int_equal(rows[n - i].has_text, i >= from);
        assert_str(rows[n - i].author, "Ada");
        if (i < from)
            assert_null(r->content.p);
        else
            assert_true(str_eq(r->content, texts[i]));
    }
}

static void replaced_texts(struct fixture *f)
{
    struct str texts[TEXTS + 1];
    write_texts(f, texts);
    /* Revision 4 was made at NOW + 4, so it was current then; a millisecond before, 3 was. */
    struct documents_age row = aged(f, NOW + 3, STR_NONE, 10);
    assert_int_equal(row.documents, 1);
    assert_int_equal(row.texts, 2);
    assert_true(row.bytes >= 400 + 2 * HISTORY_ROW_BYTES);
    has_texts(f, DOC "000001", texts, 3, TEXTS);
    assert_int_equal(aged(f, NOW + 3, STR_NONE, 10).texts, 0);
    row = aged(f, NOW + 4, STR_NONE, 10);
    assert_int_equal(row.texts, 1);
    has_texts(f, DOC "000001", texts, 4, TEXTS);
    /* Changes go on from there. */
    texts[TEXTS] = change(f, TEXTS + 1, texts[TEXTS]);
    assert_true(str_eq(revision(f, DOC "000001", 0)->content, texts[TEXTS]));
}
TEST(test_documents_age__texts_go_once_they_were_replaced_long_ago)
{
    on_every_store(replaced_texts);
}

static void newest_text(struct fixture *f)
{
    struct str texts[TEXTS + 1];
    write_texts(f, texts);
    assert_int_equal(aged(f, NOW, STR_NONE, 10).texts, 0);
    assert_int_equal(aged(f, NOW + 1000, STR_NONE, 10).texts, TEXTS - 1);
    has_texts(f, DOC "000001", texts, TEXTS, TEXTS);
    assert_true(str_eq(revision(f, DOC "000001", 0)->content, texts[TEXTS]));
    assert_int_equal(document(f, "a.md")->revision, TEXTS);
}
TEST(test_documents_age__the_newest_text_stays)
{
    on_every_store(newest_text);
}

static void ended(struct fixture *f)
{
    assert_int_equal(put(f, 1, "a.md", "one"), 1);
    assert_int_equal(end_document(f, "a.md", NOW + 10), VERDICT_OK);
    assert_int_equal(aged(f, NOW + 9, STR_NONE, 10).texts, 0);
    assert_str(revision(f, DOC "000001", 1)->content, "one");
    assert_int_equal(aged(f, NOW + 10, STR_NONE, 10).texts, 1);
    assert_null(revision(f, DOC "000001", 1)->content.p);
}
TEST(test_documents_age__a_removed_document_keeps_no_text)
{
    on_every_store(ended);
}

static void slices(struct fixture *f)
{
    char path[16];
    for (int n = 1; n <= 5; n++) {
        snprintf(path, sizeof(path), "%d.md", n);
        assert_int_equal(put(f, n, path, "one"), 1);
        assert_int_equal(put(f, n + 10, path, "two"), 2);
    }
    struct revise *r = revise(f, 20, "a.md", STR("elsewhere"));
    r->document.folder = STR("other");
    assert_int_equal(revised(f, r), 1);
    r = revise(f, 21, "a.md", STR("changed"));
    r->document.folder = STR("other");
    assert_int_equal(revised(f, r), 2);
    struct documents_age row = aged(f, NOW + 100, STR_NONE, 2);
    assert_int_equal(row.documents, 2);
    assert_int_equal(row.texts, 2);
    assert_string_equal(row.last, DOC "000002");
    row = aged(f, NOW + 100, STR(DOC "000002"), 2);
    assert_string_equal(row.last, DOC "000004");
    row = aged(f, NOW + 100, STR(DOC "000004"), 2);
    assert_int_equal(row.documents, 1);
    row = aged(f, NOW + 100, STR(DOC "000005"), 2);
    assert_int_equal(row.documents, 0);
    assert_str(revision(f, DOC "000020", 1)->content, "elsewhere");
}
TEST(test_documents_age__goes_through_one_folder_in_slices)
{
    on_every_store(slices);
}

static void large_texts(struct fixture *f)
{
    char *text = arena_alloc(f->mem, DOCUMENTS_AGE_BYTES);
    memset(text, 'x', DOCUMENTS_AGE_BYTES);
    for (int n = 1; n <= 3; n++) {
        const char *path = arena_printf(f->mem, "%d.md", n).p;
        assert_int_equal(revised(f, revise(f, n, path, str_n(text, DOCUMENTS_AGE_BYTES))), 1);
        assert_int_equal(put(f, n + 10, path, "short"), 2);
    }
    if (strcmp(f->store->ops->name, "sqlite") == 0 || strcmp(f->store->ops->name, "postgres") == 0)
        assert_int_equal(aged(f, NOW + 100, STR_NONE, 10).documents, 1);
    assert_int_equal(aged(f, NOW + 100, STR(DOC "000001"), 1).texts, 1);
    assert_true(revision(f, DOC "000003", 1)->content.n == DOCUMENTS_AGE_BYTES);
}
TEST(test_documents_age__a_slice_of_large_texts_ends_early)
{
    on_every_store(large_texts);
}

static void quota_after(struct fixture *f)
{
    struct str texts[TEXTS + 1];
    write_texts(f, texts);
    assert_int_equal(aged(f, NOW + 4, STR_NONE, 10).texts, 3);
    char *text = arena_alloc(f->mem, 1000);
    memset(text, 'q', 1000);
    struct revise *r = revise(f, 7, "a.md", str_n(text, 1000));
    /* Room for the texts 4 to 6, whole, and for this one. */
    r->revision.history_max = 3 * 400 + 1000 + 4 * HISTORY_ROW_BYTES;
    assert_int_equal(revised(f, r), 7);
    assert_true(str_eq(revision(f, DOC "000001", 4)->content, texts[4]));
}
TEST(test_documents_age__what_was_deleted_does_not_count_for_the_quota)
{
    on_every_store(quota_after);
}
