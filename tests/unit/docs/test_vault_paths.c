/* SPDX-License-Identifier: Apache-2.0 */
/* Ways out of a folder, each tried by every verb that takes a path.  What was opened is seen by the
 * vault's open hook, which tells where the kernel says an opened descriptor is. */
#include "docs/vault.h"
#include "test.h"
#include "vault_dir.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SECRET "secret, not for agents\n"

struct fixture {
    struct dir d; /* root/ is served; outside/, root-evil/ and secret.md are not */
    struct arena *mem;
    struct vault *v;
    char root[96];
    size_t opens;
};

static void on_open(void *arg, const char *path, uint64_t flags unused_arg)
{
    struct fixture *f = arg;
    size_t n = strlen(f->root);

    f->opens++;
    if (strncmp(path, f->root, n) != 0 || (path[n] != '\0' && path[n] != '/'))
        fail_msg("opened outside the root: %s", path);
}

static void set_up(struct fixture *f)
{
    struct error err;

    *f = (struct fixture){.mem = arena_new(1 << 26)};
    dir_make(&f->d);
    snprintf(f->root, sizeof f->root, "%s/root", f->d.path);
    dir_write(&f->d, "root/doc.md", STR("doc"));
    dir_write(&f->d, "root/sub/in.md", STR("in"));
    dir_write(&f->d, "outside/secret.md", STR(SECRET));
    dir_write(&f->d, "outside/in.md", STR(SECRET));
    dir_write(&f->d, "outside/sub/deep.md", STR(SECRET));
    dir_write(&f->d, "root-evil/secret.md", STR(SECRET));
    dir_write(&f->d, "secret.md", STR(SECRET));
    assert_true(vault_open(str_of(f->root), &f->v, &err));
    vault_on_open(f->v, on_open, f);
}

static const char *const outside[] = {"outside/secret.md", "outside/in.md", "outside/sub/deep.md",
                                      "root-evil/secret.md", "secret.md"};

static size_t counted;

static int count_one(const char *path unused_arg, const struct stat *st unused_arg,
                     int type unused_arg, struct FTW *at unused_arg)
{
    counted++;
    return 0;
}

static size_t count_below(struct fixture *f, const char *folder)
{
    counted = 0;
    assert_int_equal(nftw(dir_str(&f->d, folder).p, count_one, 16, FTW_PHYS), 0);
    return counted;
}

static void assert_outside_untouched(struct fixture *f)
{
    for (size_t i = 0; i < countof(outside); i++)
        if (!dir_holds(&f->d, outside[i], STR(SECRET)))
            fail_msg("%s was changed", outside[i]);
    assert_int_equal(count_below(f, "outside"), 5);
    assert_int_equal(count_below(f, "root-evil"), 2);
}

static void tear_down(struct fixture *f)
{
    assert_outside_untouched(f);
    vault_close(f->v);
    arena_free(f->mem);
    dir_drop(&f->d);
}

static bool overwrite(void *arg unused_arg, struct str bytes unused_arg,
                      struct arena *mem unused_arg, struct str *ret_fresh,
                      struct error *err unused_arg)
{
    *ret_fresh = STR("owned");
    return true;
}

/* All verbs; what is there must not be reached, what is made must be inside. */
static void try_path(struct fixture *f, struct str path)
{
    struct vault_file file;
    struct vault_published done;
    struct error err = {0};

    arena_reset(f->mem);
    if (vault_read(f->v, path, f->mem, &file, &err))
        fail_msg("read %.*s", STR_ARG(path));
    assert_true(err.code == ERR_BAD_INPUT || err.code == ERR_NOT_FOUND);
    if (vault_change(f->v, path, overwrite, NULL, f->mem, &done, &err))
        fail_msg("changed %.*s", STR_ARG(path));
    assert_true(err.code == ERR_BAD_INPUT || err.code == ERR_NOT_FOUND);
    if (vault_move(f->v, path, STR("got.md"), &err))
        fail_msg("moved %.*s", STR_ARG(path));
    assert_true(err.code == ERR_BAD_INPUT || err.code == ERR_NOT_FOUND);
    if (vault_move(f->v, STR("doc.md"), path, &err))
        assert_true(vault_move(f->v, path, STR("doc.md"), &err));
    if (vault_create(f->v, path, STR("owned"), &err))
        assert_true(vault_move(f->v, path, STR("got.md"), &err));
    remove(dir_str(&f->d, "root/got.md").p);
    assert_true(dir_holds(&f->d, "root/doc.md", STR("doc")));
}

/* Encoded forms and foreign separators are odd names here: they may be made, inside. */
static const char *const ways[] = {
    "../",
    "..//",
    "../../",
    "./../",
    "a/../../",
    "sub/../../",
    "sub/./../../",
    "sub//../../",
    "sub/../../root/../",
    ".//..//",
    "..\\",
    "..\\..\\",
    "sub\\..\\..\\",
    "..%2f",
    "%2e%2e/",
    "%2e%2e%2f",
    "..%252f",
    "%252e%252e%252f",
    "%c0%ae%c0%ae/",
    "\xc0\xae\xc0\xae/",
    "..\xc0\xaf",
    "..\xef\xbc\x8f",
    "\xef\xbc\x8e\xef\xbc\x8e/",
    "\xe2\x80\xa5/",
    "....//",
    "..../",
    "..;/",
    ".../",
    "~/",
    "~root/",
    "/",
    "//",
    "///",
    "\\\\host\\share\\",
    "C:\\",
    "C:/",
    "file://",
    "file:///",
    "/proc/self/root/",
    "proc/self/root/",
    "/proc/self/cwd/",
    "/proc/thread-self/root/",
    "/dev/fd/3/",
    " ../",
    "../ ",
    ".. /",
    "..\t/",
    "..\n/",
    "..\r/",
    "../root-evil/",
    "-evil/",
    "root-evil/",
    ".holdfast/",
    ".git/../../",
    "$HOME/",
    "`pwd`/",
    "\xff/",
    "\xed\xa0\x80/",
    "up/",
    "abs/",
    "chain/",
    "proc/",
    "loop/",
};
static const char *const goals[] = {
    "secret.md",  "outside/secret.md", "outside/sub/deep.md", "root-evil/secret.md",
    "etc/passwd", "secret.md/",        "secret.md/.",         "secret.md."};

TEST(test_vault__no_form_of_path_leads_outside)
{
    struct fixture f;
    size_t forms = 0;

    set_up(&f);
    dir_symlink(&f.d, "..", "root/up");
    dir_symlink(&f.d, f.d.path, "root/abs");
    dir_symlink(&f.d, "up", "root/chain");
    dir_symlink(&f.d, "/proc/self/root", "root/proc");
    dir_symlink(&f.d, "loop", "root/loop");
    for (size_t i = 0; i < countof(ways); i++) {
        for (size_t j = 0; j < countof(goals); j++, forms++) {
            char path[256];
            snprintf(path, sizeof path, "%s%s", ways[i], goals[j]);
            try_path(&f, str_of(path));
        }
        assert_outside_untouched(&f);
    }
    assert_true(forms >= 200);
    assert_true(f.opens > forms);
    print_message("%zu forms, %zu opens seen by the vault's open hook\n", forms, f.opens);
    tear_down(&f);
}

TEST(test_vault__no_absolute_path_of_what_is_there_is_taken)
{
    struct fixture f;

    set_up(&f);
    for (size_t i = 0; i < countof(outside); i++)
        try_path(&f, dir_str(&f.d, outside[i]));
    try_path(&f, STR(""));
    try_path(&f, STR("."));
    try_path(&f, STR(".."));
    try_path(&f, STR(".md"));
    try_path(&f, STR("sub/.md"));
    try_path(&f, STR("md"));
    try_path(&f, STR("sub"));
    try_path(&f, STR("sub/"));
    try_path(&f, STR("none.md\0/../../secret.md"));
    try_path(&f, STR("../secret.md\0.md"));
    try_path(&f, STR_NONE);
    tear_down(&f);
}

/* What stands under a document's name and is none. */
TEST(test_vault__only_regular_files_are_documents)
{
    struct fixture f;
    const char *links[][2] = {
        {"doc.md", "root/inside.md"},
        {"../outside/secret.md", "root/rel.md"},
        {"/dev/zero", "root/zero.md"},
        {"/proc/self/environ", "root/environ.md"},
        {"/proc/self/root/etc/passwd", "root/passwd.md"},
        {"/proc/self/fd/0", "root/fd.md"},
        {"nowhere.md", "root/dangling.md"},
        {"self.md", "root/self.md"},
        {"rel.md", "root/two.md"},
        {"../outside", "root/folder"},
    };
    const char *names[] = {"inside.md", "rel.md",       "zero.md",          "environ.md",
                           "passwd.md", "fd.md",        "dangling.md",      "self.md",
                           "two.md",    "folder/in.md", "folder/secret.md", "fifo.md",
                           "dir.md",    "socket.md"};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    set_up(&f);
    for (size_t i = 0; i < countof(links); i++)
        dir_symlink(&f.d, links[i][0], links[i][1]);
    dir_mkfifo(&f.d, "root/fifo.md");
    dir_mkdir(&f.d, "root/dir.md");
    snprintf(at.sun_path, sizeof at.sun_path, "%s/root/socket.md", f.d.path);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    alarm(60); /* a FIFO that is waited for ends the test */
    for (size_t i = 0; i < countof(names); i++)
        try_path(&f, str_of(names[i]));
    alarm(0);
    close(s);
    tear_down(&f);
}

TEST(test_vault__a_hard_link_is_a_document_like_any_other)
{
    struct fixture f;
    struct vault_file file;
    struct error err;

    set_up(&f);
    dir_hardlink(&f.d, "root/doc.md", "root/twin.md");
    assert_true(vault_read(f.v, STR("twin.md"), f.mem, &file, &err));
    assert_str(file.bytes, "doc");
    tear_down(&f);
}

static bool path_fits(size_t n, size_t part)
{
    char path[VAULT_PATH_MAX + 2];
    struct error err;

    memset(path, 'p', sizeof path);
    for (size_t i = part; i + 3 < n; i += part + 1)
        path[i] = '/';
    memcpy(path + n - 3, ".md", 3);
    bool fits = vault_path_check(str_n(path, n), &err);
    assert_true(fits || err.code == ERR_BAD_INPUT);
    return fits;
}

TEST(test_vault_path_check__ends_at_its_limits)
{
    assert_true(path_fits(VAULT_PATH_MAX, 200));
    assert_false(path_fits(VAULT_PATH_MAX + 1, 200));
    assert_true(path_fits(255, 255));
    assert_false(path_fits(256, 256));
}

static bool swap_for_link(void *arg, struct str bytes unused_arg, struct arena *mem unused_arg,
                          struct str *ret_fresh, struct error *err unused_arg)
{
    struct fixture *f = arg;

    if (dir_has(&f->d, "root/doc.md")) {
        dir_remove(&f->d, "root/doc.md");
        dir_symlink(&f->d, "../outside/secret.md", "root/doc.md");
    }
    *ret_fresh = STR("owned");
    return true;
}

static bool swap_for_folder(void *arg, struct str bytes unused_arg, struct arena *mem unused_arg,
                            struct str *ret_fresh, struct error *err unused_arg)
{
    struct fixture *f = arg;

    dir_remove(&f->d, "root/doc.md");
    dir_mkdir(&f->d, "root/doc.md");
    *ret_fresh = STR("owned");
    return true;
}

static bool swap_parent(void *arg, struct str bytes unused_arg, struct arena *mem unused_arg,
                        struct str *ret_fresh, struct error *err unused_arg)
{
    struct fixture *f = arg;

    assert_int_equal(rename(dir_str(&f->d, "root/sub").p, dir_str(&f->d, "root/was").p), 0);
    dir_symlink(&f->d, "../outside", "root/sub");
    *ret_fresh = STR("owned");
    return true;
}

TEST(test_vault_change__puts_back_what_was_swapped_in_for_the_document)
{
    struct fixture f;
    struct vault_published done;
    struct error err;
    struct stat st;

    set_up(&f);
    assert_false(vault_change(f.v, STR("doc.md"), swap_for_link, &f, f.mem, &done, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    dir_stat(&f.d, "root/doc.md", &st);
    assert_true(S_ISLNK(st.st_mode));
    vault_release(f.v, done.staged);
    assert_false(dir_has(&f.d, "root/.holdfast"));

    dir_remove(&f.d, "root/doc.md");
    dir_write(&f.d, "root/doc.md", STR("doc"));
    assert_false(vault_change(f.v, STR("doc.md"), swap_for_folder, &f, f.mem, &done, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    dir_stat(&f.d, "root/doc.md", &st);
    assert_true(S_ISDIR(st.st_mode));
    vault_release(f.v, done.staged);
    assert_false(dir_has(&f.d, "root/.holdfast"));

    assert_false(vault_change(f.v, STR("sub/in.md"), swap_parent, &f, f.mem, &done, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_true(dir_holds(&f.d, "root/was/in.md", STR("in")));
    assert_false(dir_has(&f.d, "root/.holdfast"));
    tear_down(&f);
}

TEST(test_vault_change__does_not_stage_through_a_link)
{
    struct fixture f;
    struct vault_published done;
    struct vault_leftover *left;
    size_t n = 1;
    struct error err;

    set_up(&f);
    dir_symlink(&f.d, "../outside", "root/.holdfast");
    assert_false(vault_change(f.v, STR("doc.md"), overwrite, NULL, f.mem, &done, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_false(vault_create(f.v, STR("new.md"), STR("x"), &err));
    assert_false(vault_recover(f.v, f.mem, &left, &n, &err));
    assert_true(dir_holds(&f.d, "root/doc.md", STR("doc")));
    tear_down(&f);
}

/* root/sub is a folder at one moment and a link to outside/ at the next. */
struct swapper {
    struct fixture *f;
    volatile bool done;
    volatile unsigned long swaps;
};

static void *swap_on(void *arg)
{
    struct swapper *s = arg;
    char a[128], b[128];

    snprintf(a, sizeof a, "%s/root/sub", s->f->d.path);
    snprintf(b, sizeof b, "%s/root/.swap", s->f->d.path);
    for (; !s->done; s->swaps++)
        if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) != 0)
            break;
    return NULL;
}

TEST(test_vault__a_folder_swapped_for_a_link_all_the_time_never_leads_outside)
{
    struct fixture f;
    struct swapper s = {.f = &f};
    pthread_t thread;
    struct vault_file file;
    struct vault_published done;
    struct vault_entry *entries;
    size_t n, reached = 0;
    bool cut;
    struct error err;

    set_up(&f);
    dir_symlink(&f.d, "../outside", "root/.swap");
    assert_int_equal(pthread_create(&thread, NULL, swap_on, &s), 0);
    for (int i = 0; i < 2000 || (s.swaps <= 100 && i < 200000); i++) {
        arena_reset(f.mem);
        if (vault_read(f.v, STR("sub/in.md"), f.mem, &file, &err)) {
            assert_memory_not_equal(file.bytes.p, SECRET, 2);
            reached++;
        }
        if (vault_change(f.v, STR("sub/in.md"), overwrite, NULL, f.mem, &done, &err))
            vault_release(f.v, done.staged);
        if (vault_create(f.v, STR("sub/new.md"), STR("x"), &err) &&
            !vault_move(f.v, STR("sub/new.md"), STR("sub/newer.md"), &err))
            continue;
        assert_true(vault_list(f.v, f.mem, &entries, &n, &cut, &err));
        for (size_t j = 0; j < n; j++)
            assert_false(str_eq(entries[j].path, STR("sub/secret.md")));
    }
    s.done = true;
    pthread_join(thread, NULL);
    print_message("%lu swaps, %zu reads found the folder\n", s.swaps, reached);
    assert_true(s.swaps > 100);
    assert_true(s.swaps > 100);
    tear_down(&f);
}
