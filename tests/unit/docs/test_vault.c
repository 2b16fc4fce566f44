/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of documents: read, listed, made and moved, at its limits. */
#include "base/buf.h"
#include "docs/vault.h"
#include "test.h"
#include "vault_dir.h"

static const struct str no_text = {"", 0};

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
