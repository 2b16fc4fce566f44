/* SPDX-License-Identifier: Apache-2.0 */
/* What a folder tells of changes made by others: which paths, and when to list again. */
#include "base/fault.h"
#include "base/log.h"
#include "docs/vault.h"
#include "test.h"
#include "vault_dir.h"

#include <poll.h>

struct fixture {
    struct dir d;
    struct arena *mem;
    struct vault *v;
    int fd;
    struct str *paths;
    size_t n;
    bool rescan;
};

static void set_up(struct fixture *f)
{
    struct error err;

    *f = (struct fixture){.mem = arena_new(1 << 24)};
    dir_make(&f->d);
    dir_write(&f->d, "a.md", STR("a"));
    dir_write(&f->d, "sub/b.md", STR("b"));
    dir_write(&f->d, ".git/c.md", STR("c"));
    assert_true(vault_open(str_of(f->d.path), &f->v, &err));
    assert_true(vault_watch(f->v, &f->fd, &err));
}

static void tear_down(struct fixture *f)
{
    vault_close(f->v);
    arena_free(f->mem);
    dir_drop(&f->d);
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void ask(struct fixture *f)
{
    vault_changed(f->v, f->mem, &f->paths, &f->n, &f->rescan);
}

static bool told(const struct fixture *f, const char *path)
{
    size_t times = 0;

    for (size_t i = 0; i < f->n; i++)
        times += str_eq(f->paths[i], str_of(path));
    assert_true(times <= 1);
    return times == 1;
}

TEST(test_vault_watch__tells_saves_in_both_ways_once_each)
{
    struct fixture f;

    set_up(&f);
    assert_false(is_readable(f.fd));
    dir_save_in_place(&f.d, "a.md", STR("a2"));
    dir_save_in_place(&f.d, "a.md", STR("a3"));
    dir_save_by_rename(&f.d, "sub/b.md", STR("b2"));
    dir_write(&f.d, "sub/new.md", STR("n"));
    assert_true(is_readable(f.fd));
    ask(&f);
    assert_int_equal(f.n, 3);
    assert_true(told(&f, "a.md") && told(&f, "sub/b.md") && told(&f, "sub/new.md"));
    assert_false(f.rescan);
    ask(&f);
    assert_true(f.n == 0 && !f.rescan);
    tear_down(&f);
}

TEST(test_vault_watch__tells_removals_and_renames)
{
    struct fixture f;

    set_up(&f);
    assert_int_equal(rename(dir_str(&f.d, "a.md").p, dir_str(&f.d, "sub/c.md").p), 0);
    dir_remove(&f.d, "sub/b.md");
    ask(&f);
    assert_int_equal(f.n, 3);
    assert_true(told(&f, "a.md") && told(&f, "sub/b.md") && told(&f, "sub/c.md"));
    tear_down(&f);
}

TEST(test_vault_watch__is_silent_about_what_is_no_document)
{
    struct fixture f;

    set_up(&f);
    dir_write(&f.d, ".git/c.md", STR("c2"));
    dir_write(&f.d, ".hidden.md", STR("x"));
    dir_write(&f.d, "text.txt", STR("x"));
    ask(&f);
    assert_true(f.n == 0 && !f.rescan);
    tear_down(&f);
}

TEST(test_vault_watch__asks_to_list_again_when_folders_come_move_or_go)
{
    struct fixture f;

    set_up(&f);
    dir_write(&f.d, "x/y/deep.md", STR("1"));
    ask(&f);
    assert_true(f.rescan);
    dir_save_in_place(&f.d, "x/y/deep.md", STR("2"));
    ask(&f);
    assert_true(told(&f, "x/y/deep.md") && !f.rescan);

    assert_int_equal(rename(dir_str(&f.d, "x").p, dir_str(&f.d, "z").p), 0);
    ask(&f);
    assert_true(f.rescan);
    dir_save_in_place(&f.d, "z/y/deep.md", STR("3"));
    ask(&f);
    assert_true(told(&f, "z/y/deep.md") && f.n == 1 && !f.rescan);

    dir_remove(&f.d, "sub/b.md");
    dir_remove(&f.d, "sub");
    ask(&f);
    assert_true(f.rescan);
    tear_down(&f);
}

static bool add_mark(void *arg unused_arg, struct str bytes, struct arena *mem,
                     struct str *ret_fresh, struct error *err unused_arg)
{
    *ret_fresh = arena_printf(mem, "%.*s!", STR_ARG(bytes));
    return true;
}

TEST(test_vault_watch__tells_our_own_changes_but_nothing_of_the_stage)
{
    struct fixture f;
    struct vault_published done;
    struct error err;

    set_up(&f);
    assert_true(vault_change(f.v, STR("a.md"), add_mark, NULL, f.mem, &done, &err));
    vault_release(f.v, done.staged);
    ask(&f);
    assert_true(told(&f, "a.md") && f.n == 1 && !f.rescan);
    tear_down(&f);
}

static unsigned long kernel_limit(const char *name)
{
    char path[128], text[32] = "";

    snprintf(path, sizeof path, "/proc/sys/fs/inotify/%s", name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    return strtoul(text, NULL, 10);
}

TEST(test_vault_watch__asks_to_list_again_when_the_queue_overflowed)
{
    struct fixture f;
    unsigned long queue = kernel_limit("max_queued_events");

    if (queue > 200000)
        skip_because("the kernel queues more events than the test can make");
    set_up(&f);
    /* Two names in turn: equal neighbours would be told as one. */
    for (unsigned long i = 0; i <= queue / 2; i++) {
        assert_int_equal(rename(dir_str(&f.d, "a.md").p, dir_str(&f.d, "a2.md").p), 0);
        assert_int_equal(rename(dir_str(&f.d, "a2.md").p, dir_str(&f.d, "a.md").p), 0);
    }
    bool rescan = false;
    for (int i = 0; i < 100 && is_readable(f.fd); i++) {
        ask(&f);
        rescan = rescan || f.rescan;
    }
    assert_true(rescan);
    ask(&f);
    dir_save_in_place(&f.d, "sub/b.md", STR("b2"));
    ask(&f);
    assert_true(told(&f, "sub/b.md") && f.n == 1 && !f.rescan);
    tear_down(&f);
}

TEST(test_vault_watch__asks_to_list_again_each_time_when_watches_run_out_and_warns_once)
{
    struct fixture f = {.mem = arena_new(1 << 24)};
    struct error err;
    char log[4096] = "";
    int to[2];

    assert_int_equal(pipe2(to, O_CLOEXEC | O_NONBLOCK), 0);
    log_set_fd(to[1]);
    log_setup(LOG_WARN, 1);
    dir_make(&f.d);
    dir_write(&f.d, "a.md", STR("a"));
    dir_write(&f.d, "sub/b.md", STR("b"));
    assert_true(vault_open(str_of(f.d.path), &f.v, &err));
    fault_load("vault.watch:2+");
    assert_true(vault_watch(f.v, &f.fd, &err));
    for (int i = 0; i < 3; i++) {
        ask(&f);
        assert_true(f.n == 0 && f.rescan);
    }
    dir_save_in_place(&f.d, "a.md", STR("a2"));
    dir_mkdir(&f.d, "more");
    ask(&f);
    assert_true(told(&f, "a.md") && f.rescan);
    fault_load("");
    assert_true(read(to[0], log, sizeof log - 1) > 0);
    assert_non_null(strstr(log, "max_user_watches"));
    assert_int_equal(strchr(log, '\n') - log, strlen(log) - 1);
    log_set_fd(2);
    log_setup(LOG_INFO, -1);
    close(to[0]);
    close(to[1]);
    tear_down(&f);
}
