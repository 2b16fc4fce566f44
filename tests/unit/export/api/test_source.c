/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a file in memory and on disk. */
#include "export/api/source.h"

#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#define MAX ((size_t)600000) /* several pieces of the window */

static int file_with(struct str bytes)
{
    char path[] = "/tmp/holdfast-source-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(write(fd, bytes.p, bytes.n), bytes.n);
    return fd;
}

/* The lengths of the lines, and the end. */
static void has_lines(struct str bytes, const size_t *lengths, size_t n)
{
    for (int i = 0; i < 2; i++) {
        struct import_source s = {.bytes = bytes, .fd = i ? file_with(bytes) : -1};
        for (int pass = 0; pass < 2; pass++) {
            struct str line;
            struct error err;
            bool is_end;
            for (size_t k = 0; k < n; k++) {
                assert_true(import_source_line(&s, MAX, &line, &is_end, &err));
                assert_false(is_end);
                assert_int_equal(line.n, lengths[k]);
            }
            if (!n || lengths[n - 1] <= MAX) {
                assert_true(import_source_line(&s, MAX, &line, &is_end, &err));
                assert_true(is_end);
            }
            import_source_rewind(&s);
        }
        import_source_release(&s);
        if (s.fd >= 0)
            close(s.fd);
    }
}

TEST(test_source__returns_lines_with_and_without_a_last_newline)
{
    has_lines(STR(""), NULL, 0);
    has_lines(STR("\n"), (const size_t[]){0}, 1);
    has_lines(STR("ab\n\nc"), (const size_t[]){2, 0, 1}, 3);
    has_lines(STR("ab\n\nc\n"), (const size_t[]){2, 0, 1}, 3);
}

TEST(test_source__cuts_a_line_that_is_too_long)
{
    for (size_t extra = 0; extra < 2; extra++) {
        struct buf b;
        buf_init(&b, SIZE_MAX / 4);
        buf_addz(&b, "first\n");
        char *room = buf_room(&b, MAX + extra);
        memset(room, 'x', MAX + extra);
        buf_grown(&b, MAX + extra);
        buf_addz(&b, "\nlast");
        if (extra)
            has_lines(buf_str(&b), (const size_t[]){5, MAX + 1}, 2);
        else
            has_lines(buf_str(&b), (const size_t[]){5, MAX, 4}, 3);
        buf_release(&b);
    }
}
