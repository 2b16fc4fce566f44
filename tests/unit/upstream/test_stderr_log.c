/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "upstream/stderr_log.h"

struct seen {
    size_t n, bytes;
    uint64_t first, last;
};

static void count(void *arg, const struct stderr_line *line)
{
    struct seen *s = arg;

    s->first = s->n++ ? s->first : line->number;
    s->last = line->number;
    s->bytes += line->text.n;
}

TEST(test_stderr_log__keeps_the_newest_lines)
{
    struct stderr_log *log = stderr_log_new();
    struct seen s = {0};

    for (int i = 0; i < STDERR_LOG_LINES + 3; i++)
        stderr_log_add(log, 1, STR("s"), STR("line"));
    stderr_log_each(log, STDERR_LOG_LINES, 0, count, &s);
    assert_int_equal(s.n, STDERR_LOG_LINES);
    assert_int_equal(s.first, 4);
    assert_int_equal(s.last, STDERR_LOG_LINES + 3);
    s = (struct seen){0};
    stderr_log_each(log, 2, 0, count, &s);
    assert_int_equal(s.n, 2);
    s = (struct seen){0};
    stderr_log_each(log, STDERR_LOG_LINES, STDERR_LOG_LINES + 2, count, &s);
    assert_int_equal(s.n, 1);
    stderr_log_unref(log);
}

TEST(test_stderr_log__stays_within_its_bytes)
{
    static char text[1000];
    struct stderr_log *log = stderr_log_new();
    struct seen s = {0};

    memset(text, 'x', sizeof(text));
    for (int i = 0; i < STDERR_LOG_LINES; i++)
        stderr_log_add(log, 1, STR_NONE, str_n(text, sizeof(text)));
    stderr_log_each(log, STDERR_LOG_LINES, 0, count, &s);
    assert_true(s.bytes <= STDERR_LOG_BYTES && s.bytes + sizeof(text) > STDERR_LOG_BYTES);
    assert_int_equal(s.last, STDERR_LOG_LINES);
    stderr_log_unref(stderr_log_ref(log));
    stderr_log_unref(log);
}
