/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of stderr and the rate at which its lines reach the log. */
#include "test.h"

#include "base/log.h"
#include "upstream/child.h"
#include "upstream/child_stderr.h"

#include <stdio.h>
#include <stdlib.h>

struct world {
    struct loop *loop;
    struct child_stderr *words;
};

static void world_open(struct world *w)
{
    log_setup(LOG_ERROR, 1);
    w->loop = loop_new();
    w->words = child_stderr_new(w->loop, "peer");
}

static void world_close(struct world *w)
{
    child_stderr_free(w->words);
    loop_free(w->loop);
}

static void take(struct world *w, const char *text, int64_t now_ms)
{
    child_stderr_take(w->words, str_of(text), now_ms);
}

TEST(test_child_stderr__logs_so_many_lines_a_second_and_counts_the_rest)
{
    struct world w;
    world_open(&w);
    for (int i = 0; i < CHILD_LOG_LINES_PER_S; i++)
        take(&w, "word\n\n\r\n", 5000 + i);
    assert_int_equal(child_stderr_logged(w.words), CHILD_LOG_LINES_PER_S);
    assert_int_equal(child_stderr_suppressed(w.words), 0);
    take(&w, "one too many\n", 5999);
    assert_int_equal(child_stderr_logged(w.words), CHILD_LOG_LINES_PER_S);
    assert_int_equal(child_stderr_suppressed(w.words), 1);
    take(&w, "next second\n", 6000);
    assert_int_equal(child_stderr_logged(w.words), CHILD_LOG_LINES_PER_S + 1);
    assert_int_equal(child_stderr_suppressed(w.words), 1);
    world_close(&w);
}

TEST(test_child_stderr__line_without_an_end_is_logged_when_the_child_is_over)
{
    struct world w;
    char *endless = calloc(1, 5001);
    memset(endless, 'x', 5000);
    world_open(&w);
    for (int i = 0; i < 100; i++)
        take(&w, endless, 5000);
    assert_int_equal(child_stderr_logged(w.words), 0);
    child_stderr_flush(w.words, 5000);
    assert_int_equal(child_stderr_logged(w.words), 1);
    child_stderr_flush(w.words, 5000);
    assert_int_equal(child_stderr_logged(w.words), 1);
    world_close(&w);
    free(endless);
}

/* Byte i of everything ever written is 'a' + i % 26. */
static void take_letters(struct world *w, size_t from, size_t n)
{
    char *bytes = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)('a' + (from + i) % 26);
    child_stderr_take(w->words, str_n(bytes, n), 0);
    free(bytes);
}

static void assert_newest(struct world *w, size_t total, size_t expected)
{
    struct str tail = child_stderr_newest(w->words, SIZE_MAX);
    assert_int_equal(tail.n, expected);
    for (size_t i = 0; i < tail.n; i++)
        if (tail.p[i] != (char)('a' + (total - tail.n + i) % 26))
            fail_msg("byte %zu of the tail is another", i);
}

TEST(test_child_stderr__newest_bytes_are_kept_up_to_the_ring)
{
    static const size_t sizes[] = {1, 1000, CHILD_STDERR_RING, CHILD_STDERR_RING + 1, 7};
    struct world w;
    size_t total = 0;
    world_open(&w);
    take_letters(&w, 0, CHILD_STDERR_RING - 1);
    assert_newest(&w, CHILD_STDERR_RING - 1, CHILD_STDERR_RING - 1);
    total = CHILD_STDERR_RING - 1;
    for (size_t i = 0; i < 50; i++) {
        take_letters(&w, total, sizes[i % countof(sizes)]);
        total += sizes[i % countof(sizes)];
        assert_newest(&w, total, CHILD_STDERR_RING);
    }
    assert_int_equal(child_stderr_newest(w.words, 0).n, 0);
    world_close(&w);
}

static void assert_summary(const struct world *w, size_t size, const char *expected)
{
    char text[512];
    child_stderr_summary(w->words, text, size);
    assert_string_equal(text, expected);
}

TEST(test_child_stderr__summary_is_escaped_and_fits)
{
    struct world w;
    world_open(&w);
    assert_summary(&w, 32, "");
    take(&w, "first\nsecond \x01\n \r\n\n", 0);
    assert_summary(&w, 32, "first | second \\x01");
    take(&w, "ten characters and ten more: \xc3\xa9\xc3\xa9\xc3\xa9", 0);
    assert_summary(&w, 64,
                   "first | second \\x01 | ten characters and ten more: \xc3\xa9\xc3\xa9\xc3\xa9");
    assert_summary(&w, 32, "first | second \\x01 | ten chara");
    world_close(&w);
}

TEST(test_child_stderr__summary_begins_with_the_error)
{
    struct world w;
    world_open(&w);
    take(&w,
         "node:internal/modules/cjs/loader:1247\n  throw err;\n  ^\n\n"
         "Error: Cannot find module '/srv/index.js'\n"
         "    at Module._resolveFilename (node:internal/modules/cjs/loader:1244:15)\n"
         "    at node:internal/main/run_main_module:28:49 {\n"
         "  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v24.21.0\n",
         0);
    assert_summary(&w, 256,
                   "Error: Cannot find module '/srv/index.js' | code: 'MODULE_NOT_FOUND', | "
                   "requireStack: [] | Node.js v24.21.0");
    world_close(&w);
}

TEST(test_child_stderr__summary_looks_at_the_last_thirty_lines)
{
    struct world w;
    world_open(&w);
    take(&w, "Error: long ago\n", 0);
    for (int i = 0; i < 29; i++)
        take(&w, "fine\n", 0);
    assert_summary(&w, 256, "Error: long ago | fine | fine | fine");
    take(&w, "bye\n", 0);
    assert_summary(&w, 256, "fine | fine | bye");
    world_close(&w);
}
