/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: apart from everything else, gone when they are let go. */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/secret.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

TEST(test_secret__is_what_was_set_until_it_is_released)
{
    struct secret s = {0};

    assert_null(secret_view(&s).p);
    secret_set(&s, STR("open sesame"));
    assert_true(str_eq(secret_view(&s), STR("open sesame")));
    assert_int_equal(secret_view(&s).p[11], 0);
    secret_set(&s, str_n(secret_view(&s).p + 5, 6)); /* from itself */
    assert_true(str_eq(secret_view(&s), STR("sesame")));
    secret_set(&s, STR_NONE);
    assert_null(secret_view(&s).p);
    secret_release(&s);
    secret_release(&s);
}

TEST(test_secret__of_any_size_is_wiped_when_released)
{
    static const size_t sizes[] = {1, 63, 64, 65, 4095, 4096, 4097, 100000};

    for (size_t i = 0; i < countof(sizes); i++) {
        char *p = secret_alloc(sizes[i]);
        assert_true(is_zero(p, sizes[i]));
        memset(p, 'x', sizes[i]);
        secret_free(p, sizes[i]);
        if (sizes[i] <= 4096) /* the mapping of a larger one is gone */
            assert_true(is_zero(p + sizeof(void *), sizes[i] > 8 ? sizes[i] - 8 : 0));
        p = secret_alloc(sizes[i]);
        assert_true(is_zero(p, sizes[i]));
        secret_free(p, sizes[i]);
    }
}

/* The flags that the kernel shows for the mapping of an address: "dd" is left out of core images,
 * "wf" is empty after a fork. */
static bool mapping_has(const void *address, const char *flag)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[1024];
    unsigned long from, to;
    bool is_here = false, found = false;

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            is_here = from <= (unsigned long)address && (unsigned long)address < to;
        else if (is_here && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    fclose(maps);
    return found;
}

TEST(test_secret__is_in_no_core_image)
{
    struct secret small = {0}, large = {0};
    char long_text[8192];

    memset(long_text, 'y', sizeof(long_text));
    secret_set(&small, STR("small"));
    secret_set(&large, str_n(long_text, sizeof(long_text)));
    assert_true(mapping_has(small.p, " dd"));
    assert_true(mapping_has(large.p, " dd"));
    secret_release(&small);
    secret_release(&large);
}

TEST(test_secret__is_unknown_to_a_forked_process)
{
    struct secret s = {0};
    int status;

    secret_set(&s, STR("not for children"));
    pid_t child = fork();
    if (child == 0)
        _exit(is_zero(s.p, s.n) ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(str_eq(secret_view(&s), STR("not for children")));
    secret_release(&s);
}

/* Is the text anywhere in writable memory?  Read through the kernel, so freed memory counts. */
static bool is_in_memory(const char *reversed)
{
    size_t n = strlen(reversed);
    char *text = malloc(n + 1), line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    unsigned long from, to;
    bool found = false;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        text[i] = reversed[n - 1 - i];
    assert_non_null(maps);
    assert_true(memory >= 0);
    while (!found && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx rw", &from, &to) != 2 || to - from > 64ul * 1024 * 1024 ||
            !strstr(line, " rw"))
            continue;
        char *copy = malloc(to - from);
        ssize_t got = pread(memory, copy, to - from, (off_t)from);
        for (char *at = copy; !found && got > 0; at++) {
            at = memmem(at, (size_t)(got - (at - copy)), text, n);
            if (!at)
                break;
            /* our own three copies do not count */
            unsigned long address = from + (unsigned long)(at - copy);
            found = address != (unsigned long)text &&
                    (address < (unsigned long)copy || address >= (unsigned long)copy + (to - from));
        }
        explicit_bzero(copy, to - from);
        free(copy);
    }
    close(memory);
    fclose(maps);
    explicit_bzero(text, n);
    free(text);
    return found;
}

static void spell(char *out, const char *reversed)
{
    size_t n = strlen(reversed);
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
}

TEST(test_arena__that_wipes_leaves_nothing_behind)
{
    static const char word[] = "f00d-7c1e-anera-gnippiw-a-ni-terces";
    size_t n = sizeof(word) - 1;
    struct arena *a = arena_new(1 << 20);

    arena_wipe_later(a);
    char *p = arena_alloc(a, n);
    spell(p, word);
    for (size_t size = n; size < 20000; size *= 3) { /* moved from chunk to chunk */
        char *moved = arena_try_resize(a, p, size, size * 3);
        assert_non_null(moved);
        p = moved;
        spell(p + size * 3 - n, word);
    }
    char *big = arena_alloc(a, 50000);
    spell(big + 40000, word);
    assert_true(is_in_memory(word));
    arena_free(a);
    assert_false(is_in_memory(word));
}

TEST(test_arena__wipes_once_when_it_is_reset)
{
    struct arena *a = arena_new(1 << 20);
    char *p = arena_alloc(a, 64);

    memset(p, 'x', 64);
    arena_wipe_later(a);
    arena_reset(a);
    char *again = arena_alloc(a, 64);
    assert_ptr_equal(again, p);
    assert_true(is_zero(again, 64));
    memset(again, 'y', 64);
    arena_reset(a);
    assert_ptr_equal(arena_alloc(a, 64), p);
    assert_int_equal(p[0], 'y'); /* asked for once */
    arena_free(a);
}

TEST(test_arena__hidden_is_in_no_core_image_and_grows)
{
    struct arena *a = arena_new_hidden(1 << 20);
    char *p = NULL;

    for (size_t n = 1; n < 200000; n *= 5) {
        p = arena_alloc(a, n);
        memset(p, 'z', n);
        assert_true(mapping_has(p, " dd"));
    }
    p = arena_try_resize(a, p, 78125, 100000);
    assert_non_null(p);
    assert_int_equal(p[78124], 'z');
    assert_true(mapping_has(p, " dd"));
    arena_reset(a);
    assert_true(mapping_has(arena_alloc(a, 100), " dd"));
    arena_free(a);
}

TEST(test_buf__that_wipes_leaves_nothing_behind_as_it_grows_and_goes)
{
    static const char word[] = "dead-51ab-reffub-gniworg-a-ni-terces";
    size_t n = sizeof(word) - 1;
    struct buf b;

    buf_init_secret(&b, 1 << 20);
    char *room = buf_room(&b, n);
    spell(room, word);
    buf_grown(&b, n);
    for (int i = 0; i < 1000; i++)
        buf_addz(&b, "0123456789");
    assert_memory_equal(b.p + n, "0123456789", 10);
    buf_consume(&b, n); /* what was moved over its place ends elsewhere */
    buf_reset(&b);
    assert_false(is_in_memory(word));
    spell(buf_room(&b, n), word);
    buf_grown(&b, n);
    buf_release(&b);
    assert_false(is_in_memory(word));
}
