/* SPDX-License-Identifier: Apache-2.0 */
/* Changing documents, beside somebody who saves at a chosen moment: inside apply, which runs
 * between reading and publishing. */
#include "base/fault.h"
#include "crypto/hash.h"
#include "docs/vault.h"
#include "test.h"
#include "vault_dir.h"

#include <pthread.h>
#include <sys/xattr.h>

/* Adds "!" to whatever is there; before that does what a person does in the meantime. */
struct plan {
    const struct dir *d;
    const char *saves[8]; /* of each call, in turn; NULL: nothing */
    bool in_place;        /* how they save */
    int remove_at;        /* the file goes at this call, counted from 1 */
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
    if (p->calls == p->remove_at)
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
static void release_staged(struct vault *v, const struct dir *d, const struct vault_published *done,
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
    release_staged(f.v, &f.d, &f.done, f.mem);
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

/* An editor has cut the file, and writes it when somebody looks for the second time. */
struct slow_editor {
    const struct dir *d;
    int looks;
};

static void on_look(void *arg, const char *path, uint64_t flags unused_arg)
{
    struct slow_editor *e = arg;

    if (strstr(path, "/doc.md") && ++e->looks == 2)
        dir_write(e->d, "doc.md", STR("saved"));
}

TEST(test_vault_change__waits_a_little_for_the_text_of_a_file_that_is_empty)
{
    struct fixture f;
    struct plan plan = {0};

    set_up(&f, "");
    struct slow_editor editor = {.d = &f.d};
    vault_on_open(f.v, on_look, &editor);
    assert_true(change(&f, &plan));
    assert_versions(&f.done, (const char *[]){"saved", "+saved!"}, 2);
    vault_on_open(f.v, NULL, NULL);
    /* And one that stays empty is empty. */
    dir_write(&f.d, "doc.md", STR(""));
    assert_true(change(&f, &plan));
    assert_versions(&f.done, (const char *[]){"", "+!"}, 2);
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
        release_staged(f.v, &f.d, &f.done, f.mem);
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
        release_staged(f.v, &f.d, &f.done, f.mem);
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
        release_staged(f.v, &f.d, &f.done, f.mem);
        assert_false(change(&f, &five));
        assert_int_equal(f.err.code, ERR_CONFLICT);
        assert_str(must_read(f.v, "doc.md", f.mem), "5");
        release_staged(f.v, &f.d, &f.done, f.mem);
        /* The sixth is saved over our text, just before theirs goes back. */
        assert_false(change(&f, &six));
        assert_int_equal(f.err.code, ERR_CONFLICT);
        assert_str(must_read(f.v, "doc.md", f.mem), "6");
        release_staged(f.v, &f.d, &f.done, f.mem);
        tear_down(&f);
    }
}

TEST(test_vault_change__leaves_a_deleted_document_deleted)
{
    struct fixture f;
    struct plan plan = {.remove_at = 1};

    set_up(&f, "text");
    assert_false(change(&f, &plan));
    assert_int_equal(f.err.code, ERR_NOT_FOUND);
    assert_versions(&f.done, (const char *[]){"text"}, 1);
    assert_false(dir_has(&f.d, "doc.md") || dir_has(&f.d, ".holdfast"));
    tear_down(&f);
}

TEST(test_vault_change__tells_a_save_that_it_holds_when_the_document_is_deleted)
{
    struct fixture f;
    struct plan plan = {.saves = {"theirs"}, .remove_at = 2};

    set_up(&f, "text");
    assert_false(change(&f, &plan));
    assert_int_equal(f.err.code, ERR_NOT_FOUND);
    assert_versions(&f.done, (const char *[]){"text", "theirs", "+text!"}, 3);
    assert_false(dir_has(&f.d, "doc.md"));
    release_staged(f.v, &f.d, &f.done, f.mem);
    tear_down(&f);
}

TEST(test_vault_change__is_refused_where_files_cannot_be_exchanged)
{
    struct fixture f;
    struct plan plan = {0};
    struct plan overtaken = {.saves = {"theirs"}};

    set_up(&f, "text");
    fault_load("vault.exchange:1");
    assert_false(change(&f, &plan));
    assert_int_equal(f.err.code, ERR_UNAVAILABLE);
    assert_versions(&f.done, (const char *[]){"text"}, 1);
    assert_str(must_read(f.v, "doc.md", f.mem), "text");
    assert_false(dir_has(&f.d, ".holdfast"));
    /* In the second round: what the person saved before it goes back. */
    fault_load("vault.exchange:2");
    assert_false(change(&f, &overtaken));
    fault_load("");
    assert_int_equal(f.err.code, ERR_UNAVAILABLE);
    assert_versions(&f.done, (const char *[]){"text", "theirs", "+text!", "theirs"}, 4);
    assert_str(must_read(f.v, "doc.md", f.mem), "theirs");
    release_staged(f.v, &f.d, &f.done, f.mem);
    tear_down(&f);
}

struct writer {
    struct vault *v;
    char path[32];
    bool ok;
};

static void *change_many(void *arg)
{
    struct writer *w = arg;
    struct arena *mem = arena_new(1 << 26);
    struct plan plan = {0};
    struct vault_published done;
    struct error err;

    w->ok = true;
    for (int i = 0; i < 200 && w->ok; i++) {
        w->ok = vault_change(w->v, str_of(w->path), add_mark, &plan, mem, &done, &err);
        if (!w->ok)
            print_error("%s\n", err.text);
        vault_release(w->v, done.staged);
        arena_reset(mem);
    }
    arena_free(mem);
    return NULL;
}

TEST(test_vault_change__of_several_documents_at_once_do_not_hinder_each_other)
{
    struct fixture f;
    struct writer writers[4];
    pthread_t threads[4];

    set_up(&f, "text");
    for (int i = 0; i < 4; i++) {
        writers[i] = (struct writer){.v = f.v};
        snprintf(writers[i].path, sizeof writers[i].path, "%d/doc.md", i);
        dir_write(&f.d, writers[i].path, STR("text"));
        assert_int_equal(pthread_create(&threads[i], NULL, change_many, &writers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(writers[i].ok);
        assert_int_equal(must_read(f.v, writers[i].path, f.mem).n, 4 + 200);
    }
    assert_false(dir_has(&f.d, ".holdfast"));
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
    release_staged(f.v, &f.d, &f.done, f.mem);
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
    release_staged(f.v, &f.d, &f.done, f.mem);
    assert_str(must_read(f.v, "doc.md", f.mem), "text!");
    tear_down(&f);
}

TEST(test_vault_held__tells_whether_somebody_has_a_displaced_file_open)
{
    struct fixture f;
    struct plan plan = {0};

    set_up(&f, "text");
    int fd = open(dir_str(&f.d, "doc.md").p, O_RDWR | O_CLOEXEC);
    assert_true(change(&f, &plan));
    assert_int_equal(vault_held(f.v, f.done.staged), VAULT_HELD);
    close(fd);
    assert_int_equal(vault_held(f.v, f.done.staged), VAULT_HELD_BY_NONE);
    release_staged(f.v, &f.d, &f.done, f.mem);
    assert_int_equal(vault_held(f.v, f.done.staged), VAULT_HELD_BY_NONE);
    tear_down(&f);
}

/* A file that has kept still for long is known by its time; written to, it is read again. */
TEST(test_vault_late__notices_a_write_to_a_file_that_was_still_for_long)
{
    struct fixture f;
    struct plan plan = {0};
    struct vault_version *late;
    size_t n;

    set_up(&f, "text");
    int fd = open(dir_str(&f.d, "doc.md").p, O_RDWR | O_CLOEXEC);
    assert_int_equal(futimens(fd, (struct timespec[]){{1000, 0}, {1000, 0}}), 0);
    assert_true(change(&f, &plan));
    for (int i = 0; i < 2; i++) {
        assert_true(vault_late(f.v, f.done.staged, f.mem, &late, &n, &f.err));
        assert_int_equal(n, 0);
    }
    assert_int_equal(pwrite(fd, "TEXT", 4, 0), 4);
    assert_true(vault_late(f.v, f.done.staged, f.mem, &late, &n, &f.err));
    assert_int_equal(n, 1);
    assert_str(late[0].bytes, "TEXT");
    close(fd);
    release_staged(f.v, &f.d, &f.done, f.mem);
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
