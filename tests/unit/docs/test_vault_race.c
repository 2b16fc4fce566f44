/* SPDX-License-Identifier: Apache-2.0 */
/* A person who saves at random moments, in both ways of editors, beside changes of ours; and our
 * process killed at random moments.  Every save is a text of its own that shows when it is not
 * whole.  What the person themselves overwrites they see (they exchange or read before they
 * write), so each save must turn up: overwritten by them, in the file, in `versions`, told by
 * vault_late(), or left for vault_recover().
 *
 * The moments are drawn from the vault's open hook, so that saves fall between its steps. */
#include "docs/vault.h"
#include "test.h"
#include "vault_dir.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#define SAVES_MAX 4096
#define LINES_MAX 400
#define CHUNKS 3
#define DOC "notes/doc.md"

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t seed_of_test(const char *what)
{
    const char *given = getenv("VAULT_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;

    print_message("%s: VAULT_SEED=%llu\n", what, (unsigned long long)seed);
    return seed;
}

/* "save 7 of 30 lines", its lines, "end 7". */
static void text_of_save(unsigned k, struct buf *out)
{
    unsigned lines = k * 7919 % LINES_MAX;

    buf_reset(out);
    buf_addf(out, "save %u of %u lines\n", k, lines);
    for (unsigned i = 0; i < lines; i++)
        buf_addf(out, "line %u of save %u, written by a person\n", i, k);
    buf_addf(out, "end %u\n", k);
}

/* Is it one whole save, followed by nothing but lines of ours?  Which? */
static bool whole(struct str text, unsigned *ret_k)
{
    struct buf expected;
    unsigned k, lines;
    char head[64] = "";
    bool ok = false;

    memcpy(head, text.p, text.n < 63 ? text.n : 63);
    if (sscanf(head, "save %u of %u lines", &k, &lines) != 2 || k >= SAVES_MAX)
        return false;
    buf_init(&expected, 1 << 20);
    text_of_save(k, &expected);
    if (str_starts(text, buf_str(&expected))) {
        struct str rest = str_n(text.p + expected.n, text.n - expected.n);
        ok = rest.n == 0 || rest.p[rest.n - 1] == '\n';
        while (ok && rest.n > 0)
            ok = str_starts(str_split(&rest, '\n'), STR("agent "));
    }
    buf_release(&expected);
    *ret_k = k;
    return ok;
}

struct person {
    const struct dir *d;
    uint64_t random;
    bool only_rename;
    sem_t go;
    atomic_uint asked, saved; /* saves 1 to `saved` are done */
    atomic_bool quit;
    pthread_mutex_t lock; /* of `seen` */
    bool seen[SAVES_MAX];
};

static void see(struct person *p, struct str text)
{
    unsigned k;

    if (!whole(text, &k))
        return;
    pthread_mutex_lock(&p->lock);
    p->seen[k] = true;
    pthread_mutex_unlock(&p->lock);
}

static void see_fd(struct person *p, int fd)
{
    struct buf b;
    ssize_t got = 1;

    buf_init(&b, 1 << 22);
    for (off_t at = 0; got > 0; at += got) {
        got = pread(fd, buf_room(&b, 65536), 65536, at);
        buf_grown(&b, got > 0 ? (size_t)got : 0);
    }
    see(p, buf_str(&b));
    buf_release(&b);
}

static void write_in_chunks(struct person *p, int fd, struct str text)
{
    for (size_t i = 0, at = 0; i < CHUNKS; i++) {
        size_t n = i + 1 == CHUNKS ? text.n - at : text.n / CHUNKS;
        if (write(fd, text.p + at, n) != (ssize_t)n)
            abort();
        at += n;
        if (next_random(&p->random) % 4 == 0)
            sched_yield();
    }
}

/* Most saves look old at once, or else each of our reads would wait for the file to settle. */
static void look_old(struct person *p, int fd)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};

    times[1].tv_nsec = (long)(next_random(&p->random) % 1000000000);
    if (next_random(&p->random) % 64 != 0)
        futimens(fd, times);
}

static void save_in_place(struct person *p, struct str text)
{
    char path[256], again[64];

    snprintf(path, sizeof path, "%s/" DOC, p->d->path);
    int old = open(path, O_RDONLY | O_CLOEXEC);
    if (old < 0)
        abort();
    see_fd(p, old);
    snprintf(again, sizeof again, "/proc/self/fd/%d", old);
    int fd = open(again, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        abort();
    write_in_chunks(p, fd, text);
    look_old(p, fd);
    close(fd);
    close(old);
}

static void save_by_rename(struct person *p, struct str text)
{
    char path[256], temp[256];

    snprintf(path, sizeof path, "%s/" DOC, p->d->path);
    snprintf(temp, sizeof temp, "%s/.temp", p->d->path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        abort();
    write_in_chunks(p, fd, text);
    look_old(p, fd);
    close(fd);
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_EXCHANGE) != 0)
        abort();
    fd = open(temp, O_RDONLY | O_CLOEXEC);
    see_fd(p, fd);
    close(fd);
    unlink(temp);
}

static void save_one(struct person *p)
{
    struct buf text;
    unsigned k = p->saved + 1;

    buf_init(&text, 1 << 20);
    text_of_save(k, &text);
    if (p->only_rename || next_random(&p->random) % 2)
        save_by_rename(p, buf_str(&text));
    else
        save_in_place(p, buf_str(&text));
    buf_release(&text);
    p->saved = k;
}

static void *person_lives(void *arg)
{
    struct person *p = arg;

    for (;;) {
        sem_wait(&p->go);
        if (p->quit)
            return NULL;
        for (unsigned spin = next_random(&p->random) % 3000; spin > 0; spin--)
            __asm__ volatile("");
        save_one(p);
    }
}

static void person_init(struct person *p, const struct dir *d, uint64_t seed)
{
    struct buf text;

    *p = (struct person){.d = d, .random = seed | 1};
    sem_init(&p->go, 0, 0);
    pthread_mutex_init(&p->lock, NULL);
    buf_init(&text, 1 << 20);
    text_of_save(0, &text);
    dir_write(d, DOC, buf_str(&text));
    buf_release(&text);
}

/* The changes beside: each adds a line, to whole texts only, as a real one finds its place only in
 * a text that has it. */
struct agent {
    struct person *person;
    struct vault *v;
    uint64_t random;
    unsigned n, published, refused, overtaken, late;
    unsigned last_late; /* the save that was told late, last */
    unsigned one_in;    /* how often an open is a moment for the person to save */
};

static void on_open(void *arg, const char *path unused_arg, uint64_t flags unused_arg)
{
    struct agent *a = arg;

    if (next_random(&a->random) % a->one_in != 0 || a->person->asked + 1 >= SAVES_MAX)
        return;
    a->person->asked++;
    sem_post(&a->person->go);
    if (next_random(&a->random) % 2)
        sched_yield();
}

static bool add_line(void *arg, struct str bytes, struct arena *mem, struct str *ret_fresh,
                     struct error *err)
{
    struct agent *a = arg;
    unsigned k;

    if (!whole(bytes, &k))
        return error_set(err, ERR_BAD_INPUT, "the place is not there; read it again");
    *ret_fresh = arena_printf(mem, "%.*sagent %u\n", STR_ARG(bytes), a->n);
    return true;
}

static void change_once(struct agent *a, struct arena *mem, struct buf *staged)
{
    struct vault_published done;
    struct error err;

    a->n++;
    if (vault_change(a->v, STR(DOC), add_line, a, mem, &done, &err))
        a->published++;
    else if (err.code == ERR_CONFLICT || err.code == ERR_BAD_INPUT)
        a->refused++;
    else
        fail_msg("%s", err.text);
    a->overtaken += done.n > 2;
    for (size_t i = 0; i < done.n; i++)
        see(a->person, done.versions[i].bytes);
    if (done.staged.n > 0)
        buf_addf(staged, "%.*s\n", STR_ARG(done.staged));
}

/* The person rests: all they saved is somewhere, and then nothing of ours lies about. */
static void check(struct agent *a, struct arena *mem, struct buf *staged)
{
    struct person *p = a->person;
    struct vault_version *late;
    struct vault_file file;
    size_t n;
    struct error err;
    unsigned k;

    while (p->saved != p->asked)
        sched_yield();
    assert_true(vault_late(a->v, buf_str(staged), mem, &late, &n, &err));
    a->late += (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        see(p, late[i].bytes);
        if (whole(late[i].bytes, &k))
            a->last_late = k;
    }
    assert_true(vault_read(a->v, STR(DOC), mem, &file, &err));
    if (!whole(file.bytes, &k))
        fail_msg("the file is not one whole version");
    see(p, file.bytes);
    if (k != p->saved && a->last_late != p->saved)
        fail_msg("the file holds save %u of %u, and that was not told late", k, p->saved);
    for (unsigned i = 0; i <= p->saved; i++)
        if (!p->seen[i])
            fail_msg("save %u of %u is lost", i, p->saved);
    vault_release(a->v, buf_str(staged));
    buf_reset(staged);
    assert_false(dir_has(p->d, ".holdfast"));
}

static void race(const char *what, bool only_rename, unsigned saves, unsigned one_in)
{
    struct dir d;
    static struct person p;
    struct arena *mem = arena_new((size_t)1 << 30);
    struct agent a = {.person = &p, .one_in = one_in};
    struct buf staged;
    struct error err;
    pthread_t thread;

    dir_make(&d);
    a.random = seed_of_test(what) | 1;
    person_init(&p, &d, a.random);
    p.only_rename = only_rename;
    buf_init(&staged, 1 << 20);
    assert_true(vault_open(str_of(d.path), &a.v, &err));
    assert_int_equal(pthread_create(&thread, NULL, person_lives, &p), 0);
    /* On a busy machine the saves may all fall between two changes: then it goes on. */
    while (p.asked < saves || (a.overtaken == 0 && p.asked + 1 < SAVES_MAX)) {
        vault_on_open(a.v, on_open, &a);
        for (int i = 0; i < 60; i++)
            change_once(&a, mem, &staged);
        vault_on_open(a.v, NULL, NULL);
        check(&a, mem, &staged);
        arena_reset(mem);
    }
    p.quit = true;
    sem_post(&p.go);
    pthread_join(thread, NULL);
    print_message("%u saves, %u changes: %u published, %u refused, %u overtaken, %u late\n",
                  (unsigned)p.saved, a.n, a.published, a.refused, a.overtaken, a.late);
    assert_true(a.published > 0 && a.overtaken > 0);
    vault_close(a.v);
    buf_release(&staged);
    arena_free(mem);
    dir_drop(&d);
}

TEST(test_vault_change__loses_nothing_beside_a_person_who_saves_at_any_moment)
{
    race("both ways, often", false, 900, 8);
    race("both ways, now and then", false, 200, 40);
    race("by rename", true, 900, 8);
}

/* Somebody else's reader sees whole versions only, as long as the person saves whole ones. */
struct observer {
    const struct dir *d;
    atomic_bool quit;
    atomic_ulong looks, torn;
};

static void *observe(void *arg)
{
    struct observer *o = arg;
    struct buf b;
    unsigned k;

    buf_init(&b, 1 << 22);
    while (!o->quit) {
        buf_reset(&b);
        if (!dir_load(o->d, DOC, &b) || !whole(buf_str(&b), &k))
            o->torn++;
        o->looks++;
    }
    buf_release(&b);
    return NULL;
}

TEST(test_vault_change__shows_readers_whole_versions_only)
{
    struct dir d;
    static struct person p;
    struct observer o = {.d = &d};
    struct agent a = {.person = &p, .one_in = 1u << 30, .random = 1};
    struct arena *mem = arena_new((size_t)1 << 30);
    struct buf staged;
    struct error err;
    pthread_t thread;

    dir_make(&d);
    person_init(&p, &d, 1);
    buf_init(&staged, 1 << 20);
    assert_true(vault_open(str_of(d.path), &a.v, &err));
    assert_int_equal(pthread_create(&thread, NULL, observe, &o), 0);
    for (int i = 0; i < 300; i++) {
        change_once(&a, mem, &staged);
        arena_reset(mem);
    }
    check(&a, mem, &staged);
    while (o.looks == 0)
        sched_yield();
    o.quit = true;
    pthread_join(thread, NULL);
    assert_int_equal(a.published, 300);
    assert_int_equal(o.torn, 0);
    vault_close(a.v);
    buf_release(&staged);
    arena_free(mem);
    dir_drop(&d);
}

/* The child changes on and on, and releases nothing: what it displaced lies in the stage. */
static _Noreturn void child_changes(const struct dir *d, struct person *p, int ready)
{
    struct agent a = {.person = p};
    struct arena *mem = arena_new((size_t)1 << 30);
    struct vault_published done;
    struct error err;

    if (!vault_open(str_of(d->path), &a.v, &err))
        _exit(1);
    for (;; a.n++) {
        bool ok = vault_change(a.v, STR(DOC), add_line, &a, mem, &done, &err);
        if (!ok && err.code != ERR_CONFLICT && err.code != ERR_BAD_INPUT)
            _exit(2);
        if (a.n % 8 == 0 && write(ready, "c", 1) != 1)
            _exit(3);
        arena_reset(mem);
    }
}

static void recover_all(const struct dir *d, struct person *p)
{
    struct arena *mem = arena_new((size_t)1 << 30);
    struct vault *v;
    struct vault_leftover *left;
    struct vault_file file;
    size_t n;
    struct error err;
    unsigned k;

    assert_true(vault_open(str_of(d->path), &v, &err));
    assert_true(vault_recover(v, mem, &left, &n, &err));
    for (size_t i = 0; i < n; i++) {
        see(p, left[i].version.bytes);
        assert_str(left[i].path, DOC);
        vault_release(v, left[i].staged);
    }
    assert_false(dir_has(d, ".holdfast"));
    assert_true(vault_read(v, STR(DOC), mem, &file, &err));
    assert_true(whole(file.bytes, &k));
    see(p, file.bytes);
    for (unsigned i = 0; i <= p->saved; i++)
        if (!p->seen[i])
            fail_msg("save %u of %u is lost", i, (unsigned)p->saved);
    vault_close(v);
    arena_free(mem);
}

TEST(test_vault_recover__loses_nothing_when_killed_at_any_moment)
{
    struct dir d;
    static struct person p;
    int ready[2];
    char byte;

    dir_make(&d);
    person_init(&p, &d, seed_of_test("kill"));
    for (int round = 0; round < 40; round++) {
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            child_changes(&d, &p, ready[1]);
        close(ready[1]);
        for (uint64_t i = next_random(&p.random) % 8; i > 0; i--) {
            assert_int_equal(read(ready[0], &byte, 1), 1);
            save_one(&p);
        }
        for (uint64_t spin = next_random(&p.random) % 100000; spin > 0; spin--)
            __asm__ volatile("");
        assert_int_equal(kill(child, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        close(ready[0]);
        recover_all(&d, &p);
    }
    print_message("%u saves, 40 kills\n", (unsigned)p.saved);
    dir_drop(&d);
}
