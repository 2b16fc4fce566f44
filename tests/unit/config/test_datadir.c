/* SPDX-License-Identifier: Apache-2.0 */
/* One owner per data directory: a second process, forked here, meets the lock of the first. */
#include "config/datadir.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
    char top[64];
    struct arena *mem;
    struct str dir;
};

static void place_init(struct place *p)
{
    snprintf(p->top, sizeof(p->top), "/tmp/holdfast-datadir-XXXXXX");
    assert_non_null(mkdtemp(p->top));
    p->mem = arena_new(1 << 20);
    p->dir = arena_printf(p->mem, "%s/a/b", p->top);
}

static int remove_one(const char *path, const struct stat *st unused_arg, int type unused_arg,
                      struct FTW *ftw unused_arg)
{
    return remove(path);
}

static void place_release(struct place *p)
{
    nftw(p->top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_free(p->mem);
}

/* Owns the directory in a process of its own until *ret_gate is closed. */
static pid_t start_owner(struct str dir, int *ret_gate)
{
    int ready[2], gate[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(gate), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct datadir *owned;
        struct error err;
        close(gate[1]);
        byte = datadir_own(dir, &owned, &err) ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1 || read(gate[0], &byte, 1) < 0)
            _exit(2);
        _exit(0); /* without a release: the lock must go with the process */
    }
    close(ready[1]);
    close(gate[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    assert_int_equal(byte, 'y');
    *ret_gate = gate[1];
    return pid;
}

static void end_owner(pid_t pid, int gate)
{
    int status;
    close(gate);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

TEST(test_datadir_own__makes_every_directory_for_its_owner_alone)
{
    struct place p;
    struct datadir *owned;
    struct error err;
    struct stat st;

    place_init(&p);
    mode_t before = umask(0);
    assert_true(datadir_own(p.dir, &owned, &err));
    umask(before);
    assert_int_equal(stat(p.dir.p, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(arena_printf(p.mem, "%s/a", p.top).p, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(datadir_path(p.dir, "lock", p.mem).p, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(datadir_owner(p.dir), getpid());
    datadir_release(owned);
    place_release(&p);
}

TEST(test_datadir_own__refuses_a_second_owner_and_names_the_first)
{
    struct place p;
    struct datadir *owned = NULL;
    struct error err = {0};
    char expected[200];
    int gate;

    place_init(&p);
    pid_t first = start_owner(p.dir, &gate);
    assert_false(datadir_own(p.dir, &owned, &err));
    assert_null(owned);
    assert_int_equal(err.code, ERR_CONFIG);
    snprintf(expected, sizeof(expected),
             "another Holdfast (pid %d) uses this data directory; stop it, or give another --data",
             (int)first);
    assert_string_equal(err.text, expected);
    assert_int_equal(datadir_owner(p.dir), first);
    end_owner(first, gate);
    place_release(&p);
}

TEST(test_datadir_own__a_dead_owner_leaves_nothing_to_clean_up)
{
    struct place p;
    struct datadir *owned;
    struct error err;
    int gate;

    place_init(&p);
    pid_t first = start_owner(p.dir, &gate);
    end_owner(first, gate);
    assert_int_equal(datadir_owner(p.dir), 0);
    assert_true(datadir_own(p.dir, &owned, &err));
    assert_int_equal(datadir_owner(p.dir), getpid());
    datadir_release(owned);
    assert_int_equal(datadir_owner(p.dir), 0);
    place_release(&p);
}

static void *let_go(void *arg)
{
    int *fd = arg;
    sched_yield();
    close(*fd);
    return NULL;
}

TEST(test_datadir_own__waits_out_a_command_that_only_asks)
{
    struct place p;
    struct datadir *owned;
    struct error err;
    pthread_t thread;

    place_init(&p);
    assert_true(datadir_own(p.dir, &owned, &err));
    datadir_release(owned);
    int asking = open(datadir_path(p.dir, "lock", p.mem).p, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(asking, LOCK_SH), 0);
    assert_int_equal(pthread_create(&thread, NULL, let_go, &asking), 0);
    assert_true(datadir_own(p.dir, &owned, &err));
    pthread_join(thread, NULL);
    datadir_release(owned);
    place_release(&p);
}

TEST(test_datadir_owner__tells_a_starting_owner_from_none)
{
    struct place p;
    struct datadir *owned;
    struct error err;

    place_init(&p);
    assert_int_equal(datadir_owner(p.dir), 0);
    assert_true(datadir_own(p.dir, &owned, &err));
    assert_int_equal(truncate(datadir_path(p.dir, "lock", p.mem).p, 0), 0);
    assert_int_equal(datadir_owner(p.dir), -1);
    datadir_release(owned);
    datadir_release(NULL);
    place_release(&p);
}

TEST(test_datadir_own__refuses_what_others_may_write_to)
{
    struct place p;
    struct datadir *owned = NULL;
    struct error err = {0};

    place_init(&p);
    assert_int_equal(chmod(p.top, 0703), 0);
    assert_false(datadir_own(str_of(p.top), &owned, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "chmod go-w"));
    assert_int_equal(chmod(p.top, 0755), 0);
    assert_true(datadir_own(str_of(p.top), &owned, &err));
    datadir_release(owned);
    place_release(&p);
}

TEST(test_datadir_own__refuses_files_and_nothing_at_all)
{
    struct place p;
    struct datadir *owned = NULL;
    struct error err = {0};

    place_init(&p);
    struct str file = arena_printf(p.mem, "%s/file", p.top);
    close(open(file.p, O_CREAT | O_WRONLY, 0600));
    assert_false(datadir_own(file, &owned, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "is not a directory"));
    assert_false(datadir_own(arena_printf(p.mem, "%s/file/inside", p.top), &owned, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_false(datadir_own(STR(""), &owned, &err));
    assert_non_null(strstr(err.text, "is empty"));
    place_release(&p);
}

TEST(test_datadir_own__does_not_follow_a_planted_lock)
{
    struct place p;
    struct datadir *owned = NULL;
    struct error err = {0};

    place_init(&p);
    struct str target = arena_printf(p.mem, "%s/precious", p.top);
    int fd = open(target.p, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "kept", 4), 4);
    close(fd);
    assert_int_equal(symlink(target.p, arena_printf(p.mem, "%s/lock", p.top).p), 0);
    assert_false(datadir_own(str_of(p.top), &owned, &err));
    struct stat st;
    assert_int_equal(stat(target.p, &st), 0);
    assert_int_equal(st.st_size, 4);
    place_release(&p);
}

TEST(test_datadir_socket__fits_its_address_or_is_refused)
{
    struct arena *mem = arena_new(1 << 20);
    struct str dir = STR_NONE, path;
    struct error err = {0};
    char text[200];

    /* 107 bytes and a NUL fill sun_path; "/holdfast.sock" takes 14 of them. */
    memset(text, 'd', sizeof(text));
    text[0] = '/';
    dir = str_n(text, 93);
    assert_true(datadir_socket(dir, mem, &path, &err));
    assert_int_equal(path.n, 107);
    dir = str_n(text, 94);
    assert_false(datadir_socket(dir, mem, &path, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "shorter --data"));
    arena_free(mem);
}

#define UNIX_TABLE                                                                                 \
    "Num       RefCount Protocol Flags    Type St Inode Path\n"                                    \
    "0000000000000000: 00000003 00000000 00000000 0001 03 401 /srv/a/holdfast.sock\n"              \
    "0000000000000000: 00000002 00000000 00010000 0001 01   402 /run/other.sock\n"                 \
    "0000000000000000: 00000002 00000000 00010000 0001 01 403\n"                                   \
    "0000000000000000: 00000002 00000000 00010000 0001 01 404 /holdfast.sock\n"                    \
    "0000000000000000: 00000002 00000000 00010000 0001 01 405 /home/me/data/holdfast.sock\n"

TEST(test_datadir_of_another__finds_a_control_socket_that_listens)
{
    struct str own = STR("/home/me/data");
    struct str more =
        STR(UNIX_TABLE "0000000000000000: 00000002 00000000 00010000 0001 01 5 rel/holdfast.sock\n"
                       "0000000000000000: 00000002 00000000 00010000 0001 01 6 /a b/holdfast.sock");

    assert_null(datadir_of_another(STR(""), own).p);
    assert_null(datadir_of_another(STR("garbage\n\n   \n"), own).p);
    assert_null(datadir_of_another(STR(UNIX_TABLE), own).p);
    assert_true(str_eq(datadir_of_another(more, own), STR("rel")));
    assert_true(str_eq(datadir_of_another(more, STR("elsewhere")), own));
    assert_true(str_eq(datadir_of_another(str_n(more.p + more.n - 75, 75), own), STR("/a b")));
}
