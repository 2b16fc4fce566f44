/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing stopped at each of its steps, as a crash would: the next start finds every text that
 * is not in the file, and tidies up when it is told to. */
#include "base/fault.h"
#include "docs/vault.h"
#include "test.h"
#include "vault_dir.h"

struct plan {
    const struct dir *d;
    const char *saves[4];
    int calls, refuse_at;
};

static bool add_mark(void *arg, struct str bytes, struct arena *mem, struct str *ret_fresh,
                     struct error *err)
{
    struct plan *p = arg;
    const char *save = p->saves[p->calls < 3 ? p->calls : 3];

    p->calls++;
    if (p->calls == p->refuse_at)
        return error_set(err, ERR_BAD_INPUT, "it does not apply; read it again");
    if (save)
        dir_save_by_rename(p->d, "sub/doc.md", str_of(save));
    *ret_fresh = arena_printf(mem, "%.*s!", STR_ARG(bytes));
    return true;
}

static bool is_left(const struct vault_leftover *left, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(left[i].version.bytes, str_of(text)))
            return true;
    return false;
}

/* What a person saved: in the file, with or without our mark, or among what was left. */
static void assert_kept(const struct dir *d, const struct vault_leftover *left, size_t n,
                        const char *text)
{
    char marked[64];

    snprintf(marked, sizeof marked, "%s!", text);
    if (!dir_holds(d, "sub/doc.md", str_of(text)) && !dir_holds(d, "sub/doc.md", str_of(marked)) &&
        !is_left(left, n, text))
        fail_msg("\"%s\" is lost", text);
}

/* True when the fault point was passed often enough to stop it. */
static bool stop_at(const char *point, int pass, struct plan plan, const char *last)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 24);
    struct vault_published done;
    struct vault_leftover *left;
    size_t n;
    struct error err = {0};
    char spec[64];

    dir_make(&d);
    dir_write(&d, "sub/doc.md", STR("text"));
    dir_write(&d, "other.md", STR("other"));
    struct vault *v = open_vault(&d);
    plan.d = &d;
    snprintf(spec, sizeof spec, "%s:%d", point, pass);
    fault_load(spec);
    bool ok = vault_change(v, STR("sub/doc.md"), add_mark, &plan, mem, &done, &err);
    fault_load("");
    bool stopped = !ok && err.code == ERR_INTERNAL;
    vault_close(v);

    v = open_vault(&d);
    assert_true(vault_recover(v, mem, &left, &n, &err));
    assert_kept(&d, left, n, last);
    if (str_eq(str_of(last), STR("text")))
        assert_true(dir_holds(&d, "sub/doc.md", STR("text")) ||
                    dir_holds(&d, "sub/doc.md", STR("text!")));
    for (size_t i = 0; i < n; i++) {
        assert_str(left[i].path, "sub/doc.md");
        vault_release(v, left[i].staged);
    }
    assert_false(dir_has(&d, ".holdfast"));
    assert_true(vault_recover(v, mem, &left, &n, &err));
    assert_int_equal(n, 0);
    vault_close(v);
    arena_free(mem);
    dir_drop(&d);
    return stopped;
}

static int stops(const char *point, struct plan plan, const char *last)
{
    int n = 0;

    while (stop_at(point, n + 1, plan, last))
        n++;
    return n;
}

TEST(test_vault_recover__finds_all_wherever_publishing_stopped)
{
    struct plan quiet = {0};
    struct plan saved = {.saves = {"theirs", "theirs 2"}};
    struct plan refused = {.saves = {"theirs"}, .refuse_at = 2};

    assert_int_equal(stops("vault.writing", quiet, "text"), 1);
    assert_int_equal(stops("vault.staged", quiet, "text"), 1);
    assert_int_equal(stops("vault.exchanged", quiet, "text"), 1);
    assert_int_equal(stops("vault.overtaken", quiet, "text"), 0);
    assert_int_equal(stops("vault.back", quiet, "text"), 0);

    assert_true(stop_at("vault.writing", 2, saved, "theirs 2"));
    assert_true(stop_at("vault.writing", 3, saved, "theirs 2"));
    assert_int_equal(stops("vault.exchanged", refused, "theirs"), 1);
    assert_int_equal(stops("vault.back", refused, "theirs"), 1);
    for (int pass = 2; pass <= 3; pass++) {
        assert_true(stop_at("vault.staged", pass, saved, "theirs 2"));
        assert_true(stop_at("vault.exchanged", pass, saved, "theirs 2"));
        assert_true(stop_at("vault.overtaken", pass - 1, saved, pass == 2 ? "theirs" : "theirs 2"));
    }
    assert_false(stop_at("vault.exchanged", 4, saved, "theirs 2"));
}

TEST(test_vault_recover__says_which_texts_were_never_published)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 24);
    struct plan plan = {0};
    struct vault_published done;
    struct vault_leftover *left;
    size_t n;
    struct error err;

    dir_make(&d);
    dir_write(&d, "sub/doc.md", STR("text"));
    struct vault *v = open_vault(&d);
    plan.d = &d;
    fault_load("vault.staged:1,vault.exchanged:1");
    assert_false(vault_change(v, STR("sub/doc.md"), add_mark, &plan, mem, &done, &err));
    assert_false(vault_change(v, STR("sub/doc.md"), add_mark, &plan, mem, &done, &err));
    fault_load("");
    vault_close(v);
    v = open_vault(&d);
    assert_true(vault_recover(v, mem, &left, &n, &err));
    assert_int_equal(n, 2);
    assert_str(left[0].version.bytes, "text!");
    assert_true(left[0].version.is_ours);
    assert_str(left[1].version.bytes, "text");
    assert_false(left[1].version.is_ours);
    vault_close(v);
    arena_free(mem);
    dir_drop(&d);
}

TEST(test_vault_recover__tells_texts_of_a_document_that_is_gone_without_a_path)
{
    struct dir d;
    struct arena *mem = arena_new(1 << 24);
    struct plan plan = {0};
    struct vault_published done;
    struct vault_leftover *left;
    size_t n;
    struct error err;

    dir_make(&d);
    dir_write(&d, "sub/doc.md", STR("text"));
    struct vault *v = open_vault(&d);
    plan.d = &d;
    assert_true(vault_change(v, STR("sub/doc.md"), add_mark, &plan, mem, &done, &err));
    vault_close(v);
    dir_remove(&d, "sub/doc.md");
    dir_write(&d, ".holdfast/something-else", STR("x"));
    v = open_vault(&d);
    assert_true(vault_recover(v, mem, &left, &n, &err));
    assert_int_equal(n, 1);
    assert_null(left[0].path.p);
    assert_str(left[0].version.bytes, "text");
    vault_release(v, left[0].staged);
    assert_true(vault_recover(v, mem, &left, &n, &err));
    assert_int_equal(n, 0);
    assert_true(dir_holds(&d, ".holdfast/something-else", STR("x")));
    vault_close(v);
    arena_free(mem);
    dir_drop(&d);
}
