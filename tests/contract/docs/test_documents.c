/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about documents and their history. */
#include "document_contract.h"

static void first_revision(struct fixture *f)
{
    struct revise *r = revise(f, 1, "a.md", STR("one\n"));
    r->revision.reason = STR("because");
    assert_null(document(f, "a.md"));
    assert_null(revision(f, DOC "000001", 0));
    assert_int_equal(revised(f, r), 1);
    assert_str(r->revision.document_id, DOC "000001");
    assert_str(r->revision.path, "a.md");
    assert_int_equal(r->revision.size, 4);
    assert_str(r->document.id, DOC "000001");
    assert_int_equal(r->document.revision, 1);

    struct document_row *d = document(f, "a.md");
    assert_str(d->id, DOC "000001");
    assert_str(d->folder, "notes");
    assert_str(d->path, "a.md");
    assert_int_equal(d->revision, 1);
    assert_memory_equal(d->sha256, r->revision.sha256, 32);
    assert_int_equal(d->created_ms, NOW + 1);
    assert_int_equal(d->changed_ms, NOW + 1);
    assert_int_equal(d->ended_ms, 0);

    struct revision_row *got = revision(f, DOC "000001", 1);
    assert_str(got->document_id, DOC "000001");
    assert_int_equal(got->revision, 1);
    assert_int_equal(got->at_ms, NOW + 1);
    assert_str(got->author, "Ada");
    assert_str(got->kind, "outside");
    assert_str(got->reason, "because");
    assert_str(got->path, "a.md");
    assert_memory_equal(got->sha256, r->revision.sha256, 32);
    assert_int_equal(got->size, 4);
    assert_str(got->content, "one\n");
}
TEST(test_document_revise__makes_the_document_with_its_first_revision)
{
    on_every_store(first_revision);
}

static void next_revisions(struct fixture *f)
{
    assert_int_equal(put(f, 1, "a.md", "one"), 1);
    struct revise *r = revise(f, 2, "a.md", STR("two"));
    r->revision.author = STR_NONE;
    assert_int_equal(revised(f, r), 2);
    assert_str(r->document.id, DOC "000001"); /* the one that is there, not the one offered */
    assert_str(r->revision.document_id, DOC "000001");
    struct document_row *d = document(f, "a.md");
    assert_int_equal(d->revision, 2);
    assert_int_equal(d->created_ms, NOW + 1);
    assert_int_equal(d->changed_ms, NOW + 2);
    assert_memory_equal(d->sha256, r->revision.sha256, 32);
    assert_str(revision(f, DOC "000001", 1)->content, "one");
    assert_str(revision(f, DOC "000001", 0)->content, "two");
    assert_null(revision(f, DOC "000001", 0)->author.p);
    assert_null(revision(f, DOC "000001", 0)->reason.p);
    assert_null(revision(f, DOC "000001", 3));
    assert_null(revision(f, DOC "000002", 1));
}
TEST(test_document_revise__adds_one_to_what_is_there)
{
    on_every_store(next_revisions);
}

static void same_digest(struct fixture *f)
{
    struct revision_row *rows = NULL;
    assert_int_equal(put(f, 1, "a.md", "one"), 1);
    struct revise *r = revise(f, 2, "a.md", STR("one"));
    assert_int_equal(revised(f, r), 1);
    assert_str(r->document.id, DOC "000001");
    assert_int_equal(document(f, "a.md")->changed_ms, NOW + 1);
    r = revise(f, 3, "a.md", STR("one"));
    r->revision.kind = STR("restore");
    r->rows.even_if_same = true;
    assert_int_equal(revised(f, r), 2);
    assert_int_equal(history(f, DOC "000001", 0, 10, &rows), 2);
    assert_str(rows[0].kind, "restore");
    assert_int_equal(put(f, 4, "a.md", "two"), 3);
    assert_int_equal(put(f, 5, "a.md", "one"), 4); /* same as an older one, not as the newest */
}
TEST(test_document_revise__the_same_again_is_told_the_number_unless_it_is_an_event)
{
    on_every_store(same_digest);
}

static void ids_once(struct fixture *f)
{
    assert_int_equal(put(f, 1, "a.md", "one"), 1);
    struct revise *r = revise(f, 1, "b.md", STR("two"));
    assert_int_equal(write_one(f, r->op), VERDICT_DUPLICATE);
    assert_null(document(f, "b.md"));
    r->document.folder = STR("other");
    assert_int_equal(write_one(f, r->op), VERDICT_DUPLICATE);
    assert_int_equal(r->document.revision, 0); /* nothing was filled in */
    r = revise(f, 2, "a.md", STR("elsewhere"));
    r->document.folder = STR("other");
    assert_int_equal(revised(f, r), 1); /* another folder, another document */
    assert_str(revision(f, DOC "000001", 0)->content, "one");
}
TEST(test_document_revise__an_id_names_one_document)
{
    on_every_store(ids_once);
}

static void one_batch(struct fixture *f)
{
    struct revise *a = revise(f, 1, "a.md", STR("one"));
    struct revise *b = revise(f, 2, "a.md", STR("two"));
    struct revise *c = revise(f, 3, "a.md", STR("two"));
    struct document_row moved = {
        .folder = STR("notes"), .path = STR("a.md"), .new_path = STR("b.md")};
    struct revise *d = revise(f, 4, "b.md", STR("three"));
    struct document_row ended = {.folder = STR("notes"), .path = STR("b.md"), .ended_ms = NOW + 9};
    struct revise *e = revise(f, 5, "b.md", STR("three"));
    struct store_op ops[] = {
        a->op, b->op, c->op, op_document_move(&moved), d->op, op_document_end(&ended), e->op,
    };
    check(f, store_write(f->store, ops, countof(ops), &f->err));
    for (size_t i = 0; i < countof(ops); i++)
        assert_int_equal(ops[i].verdict, VERDICT_OK);
    assert_int_equal(a->revision.revision, 1);
    assert_int_equal(b->revision.revision, 2);
    assert_int_equal(c->revision.revision, 2);
    assert_str(d->document.id, DOC "000001");
    assert_int_equal(d->revision.revision, 3);
    assert_str(e->document.id, DOC "000005");
    assert_int_equal(e->revision.revision, 1);
}
TEST(test_document_ops__a_batch_sees_its_own)
{
    on_every_store(one_batch);
}

static void rolled_back(struct fixture *f)
{
    struct revise *there = revise(f, 1, "a.md", STR("one"));
    assert_int_equal(revised(f, there), 1);
    struct revise *r = revise(f, 2, "a.md", STR("two"));
    struct revise *made = revise(f, 3, "b.md", STR("new"));
    struct document_row gone = {.folder = STR("notes"), .path = STR("x.md"), .ended_ms = NOW};
    struct store_op ops[] = {r->op, made->op, op_document_end(&gone)};
    ops[2].required = true;
    assert_false(store_write(f->store, ops, countof(ops), &f->err));
    assert_int_equal(f->err.code, ERR_CONFLICT);
    assert_int_equal(ops[2].verdict, VERDICT_MISSING);
    assert_str(r->document.id, DOC "000002"); /* what came in is there for another try */
    assert_int_equal(document(f, "a.md")->revision, 1);
    assert_null(document(f, "b.md"));
    check(f, store_write(f->store, ops, 2, &f->err));
    assert_int_equal(r->revision.revision, 2);
    assert_int_equal(made->revision.revision, 1);
}
TEST(test_document_ops__a_refused_batch_leaves_nothing_and_can_be_written_again)
{
    on_every_store(rolled_back);
}

static void every_byte(struct fixture *f)
{
    char all[512];
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)i;
    struct str contents[] = {str_n(all, sizeof(all)), str_n("", 0), STR("\0\xff\xfe{++x\r\n"),
                             STR("\xef\xbb\xbf# BOM\r\n")};
    for (size_t i = 0; i < countof(contents); i++) {
        struct revise *r = revise(f, 1, "a.md", contents[i]);
        r->rows.even_if_same = true;
        assert_int_equal(revised(f, r), i + 1);
        struct revision_row *got = revision(f, DOC "000001", (int64_t)i + 1);
        assert_non_null(got->content.p);
        assert_int_equal(got->size, contents[i].n);
        assert_int_equal(got->content.n, contents[i].n);
        assert_memory_equal(got->content.p, contents[i].p, contents[i].n);
    }
}
TEST(test_document_revision__content_is_bytes)
{
    on_every_store(every_byte);
}

static void largest(struct fixture *f)
{
    char *bytes = calloc(1, DOCUMENT_CONTENT_MAX + 1);
    assert_non_null(bytes);
    bytes[DOCUMENT_CONTENT_MAX - 1] = 'z';
    assert_int_equal(revised(f, revise(f, 1, "a.md", str_n(bytes, DOCUMENT_CONTENT_MAX))), 1);
    struct revision_row *got = revision(f, DOC "000001", 1);
    assert_int_equal(got->content.n, DOCUMENT_CONTENT_MAX);
    assert_memory_equal(got->content.p, bytes, DOCUMENT_CONTENT_MAX);
    struct revise *r = revise(f, 2, "a.md", str_n(bytes, DOCUMENT_CONTENT_MAX + 1));
    assert_false(store_write(f->store, &r->op, 1, &f->err));
    assert_int_equal(f->err.code, ERR_TOO_LARGE);
    assert_int_equal(r->op.verdict, VERDICT_FAILED);
    assert_int_equal(document(f, "a.md")->revision, 1);
    free(bytes);
}
TEST(test_document_revise__no_content_is_larger_than_the_limit)
{
    on_every_store(largest);
}

static void moves(struct fixture *f)
{
    struct revision_row *rows = NULL;
    assert_int_equal(move(f, "a.md", "b.md"), VERDICT_MISSING);
    put(f, 1, "a.md", "one");
    put(f, 2, "taken.md", "other");
    assert_int_equal(move(f, "a.md", "taken.md"), VERDICT_DUPLICATE);
    assert_int_equal(move(f, "a.md", "a.md"), VERDICT_DUPLICATE);
    assert_int_equal(move(f, "a.md", "sub/b.md"), VERDICT_OK);
    assert_null(document(f, "a.md"));
    struct document_row *d = document(f, "sub/b.md");
    assert_str(d->id, DOC "000001");
    assert_int_equal(d->revision, 1);
    struct revise *r = revise(f, 3, "sub/b.md", STR("one"));
    r->revision.kind = STR("move");
    r->rows.even_if_same = true;
    assert_int_equal(revised(f, r), 2);
    assert_int_equal(history(f, DOC "000001", 0, 10, &rows), 2);
    assert_str(rows[0].path, "sub/b.md");
    assert_str(rows[1].path, "a.md");
    assert_int_equal(end_document(f, "taken.md", NOW), VERDICT_OK);
    assert_int_equal(move(f, "sub/b.md", "taken.md"), VERDICT_OK); /* free now */
    assert_int_equal(move(f, "sub/b.md", "x.md"), VERDICT_MISSING);
}
TEST(test_document_move__id_and_history_stay)
{
    on_every_store(moves);
}

static struct document_row *last_ended(struct fixture *f, const char *path)
{
    struct document_row *row = NULL;
    check(f, store_document_ended(f->store, STR("notes"), str_of(path), f->mem, &row, &f->err));
    return row;
}

static void ends(struct fixture *f)
{
    struct revision_row *rows = NULL;
    struct document_row *row = NULL;
    assert_int_equal(end_document(f, "a.md", NOW), VERDICT_MISSING);
    put(f, 1, "a.md", "one");
    assert_null(last_ended(f, "a.md"));
    assert_int_equal(end_document(f, "a.md", NOW + 5), VERDICT_OK);
    assert_int_equal(end_document(f, "a.md", NOW + 6), VERDICT_MISSING);
    assert_null(document(f, "a.md"));
    assert_str(last_ended(f, "a.md")->id, DOC "000001");
    check(f, store_document_by_id(f->store, STR(DOC "000001"), f->mem, &row, &f->err));
    assert_int_equal(row->ended_ms, NOW + 5);
    assert_int_equal(history(f, DOC "000001", 0, 10, &rows), 1);

    assert_int_equal(put(f, 2, "a.md", "one"), 1); /* another, from its first revision */
    assert_str(document(f, "a.md")->id, DOC "000002");
    assert_str(last_ended(f, "a.md")->id, DOC "000001");
    assert_int_equal(end_document(f, "a.md", NOW + 9), VERDICT_OK);
    assert_str(last_ended(f, "a.md")->id, DOC "000002");
    struct revise *again = revise(f, 1, "a.md", STR("one"));
    assert_int_equal(write_one(f, again->op), VERDICT_DUPLICATE); /* the id stays taken */
    check(f, store_document_by_id(f->store, STR("no id"), f->mem, &row, &f->err));
    assert_null(row);
}
TEST(test_document_end__what_comes_later_is_another_document)
{
    on_every_store(ends);
}

static void pages_of_documents(struct fixture *f)
{
    static const char *const paths[] = {"b.md", "a/z.md", "Z.md", "a.md", "\xc3\xa9.md", "a b.md"};
    static const char *const sorted[] = {"Z.md", "a b.md", "a.md", "a/z.md", "\xc3\xa9.md"};
    struct document_row *rows = NULL;
    size_t n = 0;
    for (size_t i = 0; i < countof(paths); i++)
        put(f, (int)i + 1, paths[i], "x");
    assert_int_equal(end_document(f, "b.md", NOW), VERDICT_OK);
    struct revise *other = revise(f, 50, "a.md", STR("x"));
    other->document.folder = STR("other");
    revised(f, other);
    struct str after = STR_NONE;
    for (size_t at = 0; at < countof(sorted);) {
        check(f,
              store_documents_page(f->store, STR("notes"), after, 2, f->mem, &rows, &n, &f->err));
        assert_int_equal(n, at + 2 <= countof(sorted) ? 2 : 1);
        for (size_t i = 0; i < n; i++, at++)
            assert_str(rows[i].path, sorted[at]);
        after = rows[n - 1].path;
    }
    check(f, store_documents_page(f->store, STR("notes"), after, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 0);
    check(f, store_documents_page(f->store, STR("none"), STR_NONE, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 0);
    assert_false(
        store_documents_page(f->store, STR("notes"), STR_NONE, 0, f->mem, &rows, &n, &f->err));
    assert_false(store_documents_page(f->store, STR("notes"), STR_NONE, STORE_PAGE_MAX + 1, f->mem,
                                      &rows, &n, &f->err));
    assert_int_equal(f->err.code, ERR_BAD_INPUT);
}
TEST(test_documents_page__live_ones_by_path)
{
    on_every_store(pages_of_documents);
}

static void pages_of_history(struct fixture *f)
{
    struct revision_row *rows = NULL;
    size_t n = 0;
    for (int i = 1; i <= 5; i++)
        assert_int_equal(revised(f, revise(f, i, "a.md", arena_printf(f->mem, "%d", i))), i);
    put(f, 9, "b.md", "x");
    assert_int_equal(history(f, DOC "000001", 0, 2, &rows), 2);
    assert_int_equal(rows[0].revision, 5);
    assert_int_equal(rows[1].revision, 4);
    assert_null(rows[0].content.p);
    assert_int_equal(rows[0].size, 1);
    assert_int_equal(rows[0].at_ms, NOW + 5);
    assert_int_equal(history(f, DOC "000001", 4, STORE_PAGE_MAX, &rows), 3);
    assert_int_equal(rows[0].revision, 3);
    assert_int_equal(rows[2].revision, 1);
    assert_int_equal(history(f, DOC "000001", 1, 2, &rows), 0);
    assert_int_equal(history(f, DOC "000077", 0, 2, &rows), 0);
    assert_int_equal(history(f, "no id", 0, 2, &rows), 0);
    assert_false(store_document_history(f->store, STR(DOC "000001"), 0, STORE_PAGE_MAX + 1, f->mem,
                                        &rows, &n, &f->err));
    assert_int_equal(f->err.code, ERR_BAD_INPUT);
}
TEST(test_document_history__newest_first_without_content)
{
    on_every_store(pages_of_history);
}

/* A revision that says how much it shares with the one before. */
static struct revise *revise_after(struct fixture *f, int n, struct str before, struct str content)
{
    struct revise *r = revise(f, n, "a.md", content);
    size_t least = before.n < content.n ? before.n : content.n;

    while (r->revision.prefix < least &&
           before.p[r->revision.prefix] == content.p[r->revision.prefix])
        r->revision.prefix++;
    while (r->revision.suffix < least - r->revision.prefix &&
           before.p[before.n - r->revision.suffix - 1] ==
               content.p[content.n - r->revision.suffix - 1])
        r->revision.suffix++;
    digest(before, r->revision.follows);
    return r;
}

#define assert_same_text(a, b) assert_true(str_eq(a, b))

/* The text with `fresh` in place of `n` bytes at `at`. */
static struct str spliced(struct fixture *f, struct str text, size_t at, size_t n, struct str fresh)
{
    return arena_printf(f->mem, "%.*s%.*s%.*s", (int)at, text.p, STR_ARG(fresh),
                        (int)(text.n - at - n), text.p + at + n);
}

static void small_changes(struct fixture *f)
{
    struct str texts[120];
    char *first = arena_alloc(f->mem, 801);
    memset(first, 'x', 800);
    first[800] = '\0';
    texts[0] = str_n(first, 800);
    assert_int_equal(revised(f, revise(f, 1, "a.md", texts[0])), 1);
    for (size_t i = 1; i < countof(texts); i++) {
        struct str before = texts[i - 1];
        size_t places[] = {0, before.n, before.n / 2, (i * 997) % before.n};
        size_t at = places[i % 4], n = at + 30 <= before.n && i % 3 == 0 ? 30 : 0;
        struct str fresh = i % 5 == 4 ? STR("") : arena_printf(f->mem, "<%zu>", i);
        texts[i] = spliced(f, before, at, n, fresh);
        if (i % 40 == 39) /* nothing is known of what it follows */
            (void)revised(f, revise(f, (int)i + 1, "a.md", texts[i]));
        else if (!str_eq(texts[i], before))
            (void)revised(f, revise_after(f, (int)i + 1, before, texts[i]));
    }
    /* What says that it follows another text than the newest is whole. */
    struct revise *r = revise_after(f, 900, texts[3], texts[4]);
    (void)revised(f, r);
    assert_same_text(revision(f, DOC "000001", 0)->content, texts[4]);
    int64_t number = 1;
    for (size_t i = 0; i < countof(texts); i++) {
        if (i && str_eq(texts[i], texts[i - 1]))
            continue;
        struct revision_row *row = revision(f, DOC "000001", number++);
        assert_same_text(row->content, texts[i]);
        assert_int_equal(row->size, texts[i].n);
    }
}
TEST(test_document_revise__small_changes_are_read_as_they_were_written)
{
    on_every_store(small_changes);
}

#define ROOM(n, size) ((n) * ((size) + HISTORY_ROW_BYTES))

static int64_t put_within(struct fixture *f, int n, const char *path, size_t size, int64_t max)
{
    char *text = arena_alloc(f->mem, size + 1);
    memset(text, 'a' + n % 26, size);
    struct revise *r = revise(f, n, path, str_n(text, size));
    r->revision.history_max = max;
    return revised(f, r);
}

static void quota(struct fixture *f)
{
    struct revision_row *rows = NULL;
    /* At the limit everything stays, a byte more and the oldest goes. */
    assert_int_equal(put_within(f, 1, "a.md", 1000, ROOM(3, 1000)), 1);
    assert_int_equal(put_within(f, 2, "a.md", 1000, ROOM(3, 1000)), 2);
    assert_int_equal(put_within(f, 3, "a.md", 1000, ROOM(3, 1000)), 3);
    assert_int_equal(history(f, DOC "000001", 0, 10, &rows), 3);
    assert_int_equal(put_within(f, 4, "b.md", 1000, ROOM(3, 1000)), 1);
    assert_int_equal(put_within(f, 5, "b.md", 1000, ROOM(3, 1000)), 2);
    assert_int_equal(put_within(f, 6, "b.md", 1001, ROOM(3, 1000)), 3);
    assert_int_equal(history(f, DOC "000004", 0, 10, &rows), 2);
    assert_int_equal(rows[1].revision, 2);
    assert_null(revision(f, DOC "000004", 1));
    assert_int_equal(revision(f, DOC "000004", 0)->content.n, 1001);
    /* The newest stays, however large; others are not concerned. */
    assert_int_equal(put_within(f, 7, "b.md", 9000, ROOM(3, 1000)), 4);
    assert_int_equal(history(f, DOC "000004", 0, 10, &rows), 1);
    assert_int_equal(rows[0].size, 9000);
    assert_int_equal(history(f, DOC "000001", 0, 10, &rows), 3);
    assert_int_equal(put_within(f, 8, "b.md", 10, 0), 5);
    assert_int_equal(history(f, DOC "000004", 0, 10, &rows), 2);
}
TEST(test_document_revise__past_its_quota_the_oldest_go)
{
    on_every_store(quota);
}

static void quota_of_small_changes(struct fixture *f)
{
    char *text = arena_alloc(f->mem, 601);
    memset(text, 'x', 600);
    text[600] = '\0';
    struct str before = str_n(text, 600);
    int64_t last = revised(f, revise(f, 1, "a.md", before));
    for (int i = 2; i < 100; i++) {
        struct str next = spliced(f, before, 300, 10, arena_printf(f->mem, "%010d", i));
        struct revise *r = revise_after(f, i, before, next);
        r->revision.history_max = 1700;
        assert_int_equal(revised(f, r), ++last);
        assert_same_text(revision(f, DOC "000001", 0)->content, next);
        before = next;
    }
    struct revision_row *rows = NULL;
    size_t n = history(f, DOC "000001", 0, 100, &rows);
    assert_true(n < 40);
    assert_null(revision(f, DOC "000001", 1));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(revision(f, DOC "000001", rows[i].revision)->content.n, 600);
}
TEST(test_document_revise__the_quota_holds_for_small_changes_too)
{
    on_every_store(quota_of_small_changes);
}

static void unsound(struct fixture *f)
{
    struct revise *r = revise(f, 1, "a.md", STR("x"));
    struct store_op ops[4];
    struct document_row nameless = {.folder = STR("notes")};
    struct document_row endless = {.folder = STR("notes"), .path = STR("a.md")};
    struct document_revise bare = {.document = &r->document};
    struct document_revise unnamed = {.document = &endless, .revision = &r->revision};
    ops[0] = op_document_revise(&bare);
    ops[1] = op_document_revise(&unnamed); /* without an id */
    ops[2] = op_document_move(&nameless);
    ops[3] = op_document_end(&endless);
    for (size_t i = 0; i < countof(ops); i++) {
        assert_false(store_write(f->store, &ops[i], 1, &f->err));
        assert_int_equal(f->err.code, ERR_INTERNAL);
    }
    assert_null(document(f, "a.md"));
}
TEST(test_document_ops__those_that_name_nothing_are_refused)
{
    on_every_store(unsound);
}
