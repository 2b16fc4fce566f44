/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of documents: read, listed, made, moved and changed, at its limits and beside somebody
 * who saves at a chosen moment (inside apply, which runs between reading and publishing). */
#include "base/buf.h"
#include "crypto/hash.h"
#include "docs/vault.h"
#include "test.h"
#include "vault_dir.h"

#include <errno.h>
#include <sys/xattr.h>

static const struct str no_text = {"", 0};

static struct vault *open_vault(const struct dir *d)
{
    struct vault *v = NULL;
    struct error err;

    assert_true(vault_open(str_of(d->path), &v, &err));
    return v;
}

static struct str must_read(struct vault *v, const char *path, struct arena *mem)
{
    struct vault_file f = {0};
    struct error err;

    if (!vault_read(v, str_of(path), mem, &f, &err))
        fail_msg("%s: %s", path, err.text);
    uint8_t digest[32];
    sha256(f.bytes, digest);
    assert_memory_equal(digest, f.sha256, 32);
    return f.bytes;
}

static enum err_code read_code(struct vault *v, const char *path, struct arena *mem)
{
    struct vault_file f;
    struct error err = {0};

    return vault_read(v, str_of(path), mem, &f, &err) ? ERR_NONE : err.code;
}

TEST(test_vault_open__is_a_config_error_without_a_directory)
{
    struct dir d;
    struct vault *v = NULL;
    struct error err;

    dir_make(&d);
    dir_write(&d, "file", STR("x"));
    assert_false(vault_open(dir_str(&d, "missing"), &v, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_false(vault_open(dir_str(&d, "file"), &v, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_null(v);
    dir_drop(&d);
}

TEST(test_vault_read__keeps_every_byte)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 24);
    struct str text = STR("\xef\xbb\xbf# T\xc3\xa9xt\r\nline\r\nlast, NUL \0 inside");

    dir_make(&d);
    dir_write(&d, "a/b/c.MD", text);
    dir_write(&d, "empty.md", no_text);
    struct vault *v = open_vault(&d);
    assert_true(str_eq(must_read(v, "a/b/c.MD", mem), text));
    assert_int_equal(must_read(v, "empty.md", mem).n, 0);
    assert_int_equal(read_code(v, "a/b/none.md", mem), ERR_NOT_FOUND);
    assert_int_equal(read_code(v, "a/b.md/c.md", mem), ERR_NOT_FOUND);
    vault_close(v);
    arena_free(mem);
    dir_drop(&d);
}

TEST(test_vault_read__ends_at_its_size_limit_and_at_utf8)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 26);
    char *big = xmalloc(VAULT_FILE_MAX + 1);

    memset(big, 'a', VAULT_FILE_MAX + 1);
    dir_make(&d);
    dir_write(&d, "most.md", str_n(big, VAULT_FILE_MAX));
    dir_write(&d, "more.md", str_n(big, VAULT_FILE_MAX + 1));
    dir_write(&d, "latin1.md", STR("caf\xe9"));
    struct vault *v = open_vault(&d);
    assert_int_equal(must_read(v, "most.md", mem).n, VAULT_FILE_MAX);
    assert_int_equal(read_code(v, "more.md", mem), ERR_BAD_INPUT);
    assert_int_equal(read_code(v, "latin1.md", mem), ERR_BAD_INPUT);
    struct error err;
    assert_true(vault_create(v, STR("new.md"), str_n(big, VAULT_FILE_MAX), &err));
    assert_false(vault_create(v, STR("new2.md"), str_n(big, VAULT_FILE_MAX + 1), &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_false(vault_create(v, STR("new3.md"), STR("caf\xe9"), &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_false(dir_has(&d, "new2.md") || dir_has(&d, "new3.md") || dir_has(&d, ".holdfast"));
    vault_close(v);
    free(big);
    arena_free(mem);
    dir_drop(&d);
}

TEST(test_vault_list__is_sorted_and_shows_documents_only)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 20);
    struct vault_entry *entries;
    size_t n;
    bool cut;
    struct error err;
    const char *shown[] = {"Z.md", "a/deep/er/x.md", "a/y.Md", "b.md", "linked.md"};

    dir_make(&d);
    for (size_t i = 0; i + 1 < countof(shown); i++)
        dir_write(&d, shown[i], STR("1234"));
    dir_write(&d, ".hidden.md", STR("x"));
    dir_write(&d, ".git/x.md", STR("x"));
    dir_write(&d, "a/text.txt", STR("x"));
    dir_write(&d, "bad\xff.md", STR("x"));
    dir_symlink(&d, "b.md", "sym.md");
    dir_symlink(&d, "a", "symdir");
    dir_mkdir(&d, "folder.md");
    dir_mkfifo(&d, "fifo.md");
    dir_hardlink(&d, "b.md", "linked.md");
    struct vault *v = open_vault(&d);
    assert_true(vault_list(v, mem, &entries, &n, &cut, &err));
    assert_int_equal(n, countof(shown));
    for (size_t i = 0; i < n; i++)
        assert_str(entries[i].path, shown[i]);
    assert_int_equal(entries[0].size, 4);
    assert_true(entries[3].inode == entries[4].inode && entries[0].modified_ms > 0);
    assert_false(cut);
    vault_close(v);
    arena_free(mem);
    dir_drop(&d);
}

TEST(test_vault_list__ends_at_its_depth_and_so_do_paths)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 20);
    struct buf path;
    struct vault_entry *entries;
    size_t n;
    bool cut;
    struct error err;

    dir_make(&d);
    buf_init(&path, 4096);
    for (int i = 0; i < VAULT_DEPTH_MAX - 1; i++)
        buf_addz(&path, "d/");
    size_t deepest = path.n;
    buf_addz(&path, "x.md");
    dir_write(&d, path.p, STR("deepest"));
    assert_true(vault_path_check(buf_str(&path), &err));
    path.n = deepest;
    buf_addz(&path, "d/x.md");
    dir_write(&d, path.p, STR("too deep"));
    assert_false(vault_path_check(buf_str(&path), &err));
    struct vault *v = open_vault(&d);
    assert_true(vault_list(v, mem, &entries, &n, &cut, &err));
    assert_int_equal(n, 1);
    vault_close(v);
    buf_release(&path);
    arena_free(mem);
    dir_drop(&d);
}

TEST(test_vault_list__says_when_there_are_more_than_it_shows)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 26);
    struct vault_entry *entries;
    size_t n;
    bool cut;
    struct error err;
    char name[32];

    dir_make(&d);
    for (int i = 0; i < VAULT_FILES_MAX; i++) {
        snprintf(name, sizeof name, "%d/%d.md", i % 20, i);
        if (i < 20 || i % 30000 == 0)
            dir_write(&d, name, STR("x"));
        else
            dir_hardlink(&d, dir_last, name);
    }
    struct vault *v = open_vault(&d);
    assert_true(vault_list(v, mem, &entries, &n, &cut, &err));
    assert_true(n == VAULT_FILES_MAX && !cut);
    dir_write(&d, "one-more.md", STR("x"));
    assert_true(vault_list(v, mem, &entries, &n, &cut, &err));
    assert_true(n == VAULT_FILES_MAX && cut);
    vault_close(v);
    arena_free(mem);
    dir_drop(&d);
}

TEST(test_vault_create__makes_parents_and_replaces_nothing)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 20);
    struct error err;

    dir_make(&d);
    dir_write(&d, "there.md", STR("mine"));
    dir_write(&d, "file", STR("x"));
    dir_symlink(&d, "/tmp", "out");
    struct vault *v = open_vault(&d);
    assert_true(vault_create(v, STR("x/y/z.md"), STR("new"), &err));
    assert_str(must_read(v, "x/y/z.md", mem), "new");
    assert_false(vault_create(v, STR("there.md"), STR("new"), &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_str(must_read(v, "there.md", mem), "mine");
    assert_false(vault_create(v, STR("file/a.md"), STR("new"), &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_false(vault_create(v, STR("out/a.md"), STR("new"), &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_false(dir_has(&d, ".holdfast"));
    vault_close(v);
    arena_free(mem);
    dir_drop(&d);
}

TEST(test_vault_move__makes_parents_and_replaces_nothing)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 20);
    struct error err;

    dir_make(&d);
    dir_write(&d, "a.md", STR("a"));
    dir_write(&d, "b.md", STR("b"));
    dir_symlink(&d, "a.md", "s.md");
    struct vault *v = open_vault(&d);
    assert_false(vault_move(v, STR("a.md"), STR("b.md"), &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_false(vault_move(v, STR("none.md"), STR("c.md"), &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_false(vault_move(v, STR("s.md"), STR("c.md"), &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_false(vault_move(v, STR("a.md"), STR("../c.md"), &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_true(vault_move(v, STR("a.md"), STR("n/m/c.md"), &err));
    assert_int_equal(read_code(v, "a.md", mem), ERR_NOT_FOUND);
    assert_str(must_read(v, "n/m/c.md", mem), "a");
    assert_str(must_read(v, "b.md", mem), "b");
    vault_close(v);
    arena_free(mem);
    dir_drop(&d);
}

/* Adds "!" to whatever is there; before that does what a person does in the meantime. */
struct plan {
    const struct dir *d;
    const char *saves[8]; /* of each call, in turn; NULL: nothing */
    bool in_place;        /* how they save */
    bool remove;          /* the file goes at the first call */
    int refuse_at;        /* this call refuses, counted from 1 */
    int calls;
};

static bool add_mark(void *arg, struct str bytes, struct arena *mem, struct str *ret_fresh,
                     struct error *err)
{
    struct plan *p = arg;
    const char *save = p->saves[p->calls < 7 ? p->calls : 7];

    p->calls++;
    if (p->calls == p->refuse_at)
        return error_set(err, ERR_BAD_INPUT, "it does not apply; read it again");
    if (save && p->in_place)
        dir_save_in_place(p->d, "doc.md", str_of(save));
    else if (save)
        dir_save_by_rename(p->d, "doc.md", str_of(save));
    if (p->remove && p->calls == 1)
        dir_remove(p->d, "doc.md");
    *ret_fresh = arena_printf(mem, "%.*s!", STR_ARG(bytes));
    return true;
}

static bool leave_alone(void *arg unused_arg, struct str bytes, struct arena *mem unused_arg,
                        struct str *ret_fresh, struct error *err unused_arg)
{
    *ret_fresh = bytes;
    return true;
}

static void assert_versions(const struct vault_published *done, const char *const *texts, size_t n)
{
    assert_int_equal(done->n, n);
    for (size_t i = 0; i < n; i++) {
        uint8_t digest[32];
        bool ours = texts[i][0] == '+';
        assert_str(done->versions[i].bytes, texts[i] + ours);
        assert_int_equal(done->versions[i].is_ours, ours);
        sha256(done->versions[i].bytes, digest);
        assert_memory_equal(digest, done->versions[i].sha256, 32);
    }
}

/* The history has it all: nothing of it stays on disk. */
static void settle(struct vault *v, const struct dir *d, const struct vault_published *done,
                   struct arena *mem)
{
    struct vault_version *late;
    size_t n;
    struct error err;

    assert_true(vault_late(v, done->staged, mem, &late, &n, &err));
    assert_int_equal(n, 0);
    vault_release(v, done->staged);
    assert_false(dir_has(d, ".holdfast"));
}

struct fixture {
    struct dir d;
    struct arena *mem;
    struct vault *v;
    struct vault_published done;
    struct error err;
};

static void set_up(struct fixture *f, const char *text)
{
    *f = (struct fixture){.mem = arena_new(1 << 26)};
    dir_make(&f->d);
    dir_write(&f->d, "doc.md", str_of(text));
    f->v = open_vault(&f->d);
}

static void tear_down(struct fixture *f)
{
    vault_close(f->v);
    arena_free(f->mem);
    dir_drop(&f->d);
}

static bool change(struct fixture *f, struct plan *p)
{
    p->d = &f->d;
    return vault_change(f->v, STR("doc.md"), add_mark, p, f->mem, &f->done, &f->err);
}

TEST(test_vault_change__publishes_and_tells_both_versions)
{
    struct fixture f;
    struct plan plan = {0};

    set_up(&f, "text");
    assert_true(change(&f, &plan));
    assert_true(f.done.changed);
    assert_versions(&f.done, (const char *[]){"text", "+text!"}, 2);
    assert_str(must_read(f.v, "doc.md", f.mem), "text!");
    assert_true(dir_has(&f.d, ".holdfast"));
    settle(f.v, &f.d, &f.done, f.mem);
    tear_down(&f);
}

TEST(test_vault_change__writes_nothing_when_nothing_changes_or_it_is_refused)
{
    struct fixture f;
    struct plan plan = {.refuse_at = 1};
    struct stat before, after;

    set_up(&f, "text");
    dir_stat(&f.d, "doc.md", &before);
    assert_true(vault_change(f.v, STR("doc.md"), leave_alone, NULL, f.mem, &f.done, &f.err));
    assert_false(f.done.changed);
    assert_versions(&f.done, (const char *[]){"text"}, 1);
    assert_false(change(&f, &plan));
    assert_int_equal(f.err.code, ERR_BAD_INPUT);
    dir_stat(&f.d, "doc.md", &after);
    assert_true(before.st_ino == after.st_ino);
    assert_false(dir_has(&f.d, ".holdfast"));
    tear_down(&f);
}

TEST(test_vault_change__keeps_mode_owner_and_attributes)
{
    struct fixture f;
    struct plan plan = {0};
    struct stat st;
    char value[8];

    set_up(&f, "text");
    struct str path = dir_str(&f.d, "doc.md");
    assert_int_equal(chmod(path.p, 0640), 0);
    bool owner = geteuid() == 0 && chown(path.p, 1234, 4321) == 0;
    bool attr = setxattr(path.p, "user.mood", "fine", 4, 0) == 0;
    assert_true(change(&f, &plan));
    dir_stat(&f.d, "doc.md", &st);
    assert_int_equal(st.st_mode & 07777, 0640);
    if (owner)
        assert_true(st.st_uid == 1234 && st.st_gid == 4321);
    path = dir_str(&f.d, "doc.md");
    if (attr)
        assert_int_equal(getxattr(path.p, "user.mood", value, sizeof value), 4);
    tear_down(&f);
}

TEST(test_vault_change__is_made_again_on_what_a_person_saved_meanwhile)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        struct fixture f;
        struct plan plan = {.saves = {"theirs", NULL, NULL}, .in_place = in_place};

        set_up(&f, "text");
        assert_true(change(&f, &plan));
        assert_int_equal(plan.calls, 2);
        assert_versions(&f.done, (const char *[]){"text", "theirs", "+text!", "+theirs!"}, 4);
        assert_str(must_read(f.v, "doc.md", f.mem), "theirs!");
        settle(f.v, &f.d, &f.done, f.mem);
        tear_down(&f);
    }
}

TEST(test_vault_change__puts_their_save_back_where_the_change_does_not_apply)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        struct fixture f;
        struct plan plan = {.saves = {"theirs"}, .refuse_at = 2, .in_place = in_place};

        set_up(&f, "text");
        assert_false(change(&f, &plan));
        assert_int_equal(f.err.code, ERR_BAD_INPUT);
        assert_versions(&f.done, (const char *[]){"text", "theirs", "+text!", "theirs"}, 4);
        assert_str(must_read(f.v, "doc.md", f.mem), "theirs");
        settle(f.v, &f.d, &f.done, f.mem);
        tear_down(&f);
    }
}

TEST(test_vault_change__gives_up_after_five_saves_and_the_last_one_is_the_file)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        struct fixture f;
        struct plan four = {.saves = {"1", "2", "3", "4"}, .in_place = in_place};
        struct plan five = {.saves = {"1", "2", "3", "4", "5"}, .in_place = in_place};
        struct plan six = {.saves = {"1", "2", "3", "4", "5", "6"}, .in_place = in_place};

        set_up(&f, "0");
        assert_true(change(&f, &four));
        assert_str(must_read(f.v, "doc.md", f.mem), "4!");
        settle(f.v, &f.d, &f.done, f.mem);
        assert_false(change(&f, &five));
        assert_int_equal(f.err.code, ERR_CONFLICT);
        assert_str(must_read(f.v, "doc.md", f.mem), "5");
        settle(f.v, &f.d, &f.done, f.mem);
        /* The sixth is saved over our text, just before theirs goes back. */
        assert_false(change(&f, &six));
        assert_int_equal(f.err.code, ERR_CONFLICT);
        assert_str(must_read(f.v, "doc.md", f.mem), "6");
        settle(f.v, &f.d, &f.done, f.mem);
        tear_down(&f);
    }
}

TEST(test_vault_change__leaves_a_deleted_document_deleted)
{
    struct fixture f;
    struct plan plan = {.remove = true};

    set_up(&f, "text");
    assert_false(change(&f, &plan));
    assert_int_equal(f.err.code, ERR_NOT_FOUND);
    assert_versions(&f.done, (const char *[]){"text"}, 1);
    assert_false(dir_has(&f.d, "doc.md") || dir_has(&f.d, ".holdfast"));
    tear_down(&f);
}

static bool too_much(void *arg, struct str bytes unused_arg, struct arena *mem,
                     struct str *ret_fresh, struct error *err unused_arg)
{
    size_t n = *(size_t *)arg;
    char *p = arena_alloc(mem, n);

    memset(p, 'x', n);
    *ret_fresh = str_n(p, n);
    return true;
}

TEST(test_vault_change__ends_at_the_size_limit)
{
    struct fixture f;
    size_t most = VAULT_FILE_MAX, more = VAULT_FILE_MAX + 1;

    set_up(&f, "text");
    assert_false(vault_change(f.v, STR("doc.md"), too_much, &more, f.mem, &f.done, &f.err));
    assert_int_equal(f.err.code, ERR_BAD_INPUT);
    assert_true(vault_change(f.v, STR("doc.md"), too_much, &most, f.mem, &f.done, &f.err));
    assert_int_equal(must_read(f.v, "doc.md", f.mem).n, VAULT_FILE_MAX);
    tear_down(&f);
}

static bool save_latin1(void *arg, struct str bytes, struct arena *mem, struct str *ret_fresh,
                        struct error *err unused_arg)
{
    dir_save_by_rename(arg, "doc.md", STR("caf\xe9"));
    *ret_fresh = arena_printf(mem, "%.*s!", STR_ARG(bytes));
    return true;
}

TEST(test_vault_change__puts_back_a_save_that_is_no_document)
{
    struct fixture f;

    set_up(&f, "text");
    assert_false(vault_change(f.v, STR("doc.md"), save_latin1, &f.d, f.mem, &f.done, &f.err));
    assert_int_equal(f.err.code, ERR_BAD_INPUT);
    assert_true(dir_holds(&f.d, "doc.md", STR("caf\xe9")));
    settle(f.v, &f.d, &f.done, f.mem);
    tear_down(&f);
}

TEST(test_vault_late__tells_a_write_to_a_displaced_file_once)
{
    struct fixture f;
    struct plan plan = {0};
    struct vault_version *late;
    size_t n;

    set_up(&f, "text");
    int editor = open(dir_str(&f.d, "doc.md").p, O_WRONLY | O_CLOEXEC);
    assert_true(editor >= 0);
    assert_true(change(&f, &plan));
    assert_true(vault_late(f.v, f.done.staged, f.mem, &late, &n, &f.err));
    assert_int_equal(n, 0);
    assert_int_equal(pwrite(editor, "late", 4, 0), 4);
    vault_release(f.v, f.done.staged); /* too early: it has not been told */
    assert_true(vault_late(f.v, f.done.staged, f.mem, &late, &n, &f.err));
    assert_int_equal(n, 1);
    assert_str(late[0].bytes, "late");
    assert_false(late[0].is_ours);
    assert_int_equal(pwrite(editor, "more", 4, 4), 4);
    assert_true(vault_late(f.v, f.done.staged, f.mem, &late, &n, &f.err));
    assert_int_equal(n, 1);
    assert_str(late[0].bytes, "latemore");
    close(editor);
    settle(f.v, &f.d, &f.done, f.mem);
    assert_str(must_read(f.v, "doc.md", f.mem), "text!");
    tear_down(&f);
}

TEST(test_vault_release__takes_names_only_of_its_own_making)
{
    struct fixture f;
    struct vault_version *late;
    size_t n;

    set_up(&f, "text");
    struct str odd = STR("../doc.md\n../../etc/passwd\n\n0123456789abcdef-0123456789abcdef-"
                         "../../../doc.md\ndoc.md");
    vault_release(f.v, odd);
    assert_true(vault_late(f.v, odd, f.mem, &late, &n, &f.err));
    assert_int_equal(n, 0);
    assert_true(dir_holds(&f.d, "doc.md", STR("text")));
    tear_down(&f);
}
