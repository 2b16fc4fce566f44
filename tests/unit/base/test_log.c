/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: form, escaping, masking, and that a blocked reader costs lines and no time. */
#include "test.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/log_text.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static char got[65536];

static void redirect(enum log_level threshold, int json)
{
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    fcntl(ends[1], F_SETFL, 0);
    log_set_fd(ends[1]);
    log_setup(threshold, json);
    clock_set_fake(1794733323456, 0);
}

static const char *restore(void)
{
    ssize_t n = read(ends[0], got, sizeof(got) - 1);

    got[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    close(ends[1]);
    log_set_fd(STDERR_FILENO);
    log_setup(LOG_INFO, 0);
    clock_set_real();
    return got;
}

TEST(test_log__human_form)
{
    redirect(LOG_INFO, 0);
    log_info("listening", LZ("address", "127.0.0.1:4653"), LI("n", -3), LZ("why", "two words"));
    assert_string_equal(restore(), "09:02:03 info  listening: two words address=127.0.0.1:4653 "
                                   "n=-3\n");
}

TEST(test_log__human_form_has_the_local_time)
{
    setenv("TZ", "XYZ-2", 1);
    redirect(LOG_INFO, 0);
    log_info("here");
    assert_string_equal(restore(), "11:02:03 info  here\n");
    unsetenv("TZ");
    tzset();
}

/* JOURNAL_STREAM names the device and inode of the stream. */
TEST(test_log__to_the_journal_begins_with_the_priority)
{
    char stream[64];
    struct stat st;

    redirect(LOG_DEBUG, 0);
    assert_int_equal(fstat(ends[1], &st), 0);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_setup(LOG_DEBUG, 0);
    log_error("it broke", LZ("why", "no disk"), LI("n", 1));
    log_debug("small");
    unsetenv("JOURNAL_STREAM");
    assert_string_equal(restore(), "<3>it broke: no disk n=1\n<7>small\n");
}

TEST(test_log_format__is_human_or_json)
{
    int json = -1;

    assert_true(log_format_parse(STR("human"), &json));
    assert_int_equal(json, 0);
    assert_true(log_format_parse(STR("json"), &json));
    assert_int_equal(json, 1);
    assert_false(log_format_parse(STR("JSON"), &json));
}

TEST(test_log__json_form)
{
    redirect(LOG_INFO, -1); /* a pipe is no terminal */
    log_warn("a \"b\"", LS("text", STR("x\\y")), LI("n", 42));
    assert_string_equal(restore(), "{\"time\":\"2026-11-15T09:02:03.456Z\",\"level\":\"warn\","
                                   "\"msg\":\"a \\\"b\\\"\",\"text\":\"x\\\\y\",\"n\":42}\n");
}

TEST(test_log__below_the_threshold_is_nothing)
{
    redirect(LOG_WARN, 0);
    log_info("quiet");
    log_debug("quieter", LI("n", 1));
    assert_string_equal(restore(), "");
}

TEST(test_log__hostile_values_stay_inside_one_json_line)
{
    redirect(LOG_INFO, 1);
    log_info("m", LS("v", STR("\x1b]52;c;..\a\n{\"fake\":\"log\"}\x7f\xc2\x9b\xe2\x80\xae\xff")));
    assert_string_equal(restore() + strlen("{\"time\":\"2026-11-15T09:02:03.456Z\","),
                        "\"level\":\"info\",\"msg\":\"m\",\"v\":\"\\u001b]52;c;..\\u0007\\n"
                        "{\\\"fake\\\":\\\"log\\\"}\\u007f\\u009b\\u202e\\ufffd\"}\n");
}

TEST(test_log_escape__leaves_nothing_a_terminal_obeys)
{
    struct buf out;

    buf_init(&out, 1000);
    log_escape(&out, STR("\x1b[31m\r\n\t\x7f\xc2\x9b\xe2\x80\xae\xff \xc3\xa4"), 100);
    assert_str(buf_str(&out), "\\x1b[31m\\r\\n\\t\\x7f\\u009b\\u202e\\xff \xc3\xa4");
    buf_reset(&out);
    log_escape(&out, STR("abcdef"), 6);
    assert_str(buf_str(&out), "abcdef");
    buf_reset(&out);
    log_escape(&out, STR("abcdef"), 5);
    assert_str(buf_str(&out), "abcde…");
    buf_reset(&out);
    log_escape(&out, STR("a\xc3\xa4z"), 2); /* a character is never cut in two */
    assert_str(buf_str(&out), "a\xc3\xa4…");
    buf_release(&out);
}

TEST(test_log__secrets_are_masked_by_key)
{
    static const char *const secret[] = {"token",     "Access-Token",  "client_secret",
                                         "PASSWORD",  "authorization", "Cookie",
                                         "x_api_key", "key",           "master_key"};
    static const char *const open[] = {"address", "key_id", "keys", "monkey", "name"};

    for (size_t i = 0; i < countof(secret); i++)
        assert_true(log_key_is_secret(secret[i]));
    for (size_t i = 0; i < countof(open); i++)
        assert_false(log_key_is_secret(open[i]));
    redirect(LOG_INFO, 0);
    log_info("m", LZ("token", "hunter2"), LI("password", 1234));
    assert_string_equal(restore(), "09:02:03 info  m token=*** password=***\n");
}

TEST(test_log__no_line_is_longer_than_one_pipe_write)
{
    static char big[3000];
    struct buf out;

    memset(big, 1, sizeof(big) - 1); /* six bytes each once escaped */
    buf_init(&out, 1 << 20);
    log_text_json(&out, LOG_INFO, 0, big,
                  (struct log_field[]){LZ("a", "kept"), LZ("b", big), LZ("c", "kept")}, 3);
    assert_true(out.n <= LOG_LINE_LONGEST);
    assert_non_null(strstr(out.p, "\"a\":\"kept\",\"c\":\"kept\"}\n"));
    buf_release(&out);
}

TEST(test_log_stop__everything_queued_is_written_in_order)
{
    redirect(LOG_INFO, 0);
    log_start();
    for (int i = 0; i < 100; i++)
        log_info("line", LI("i", i));
    log_stop();
    restore();
    for (int i = 0, at = 0; i < 100; i++) {
        char expected[64];
        int n = snprintf(expected, sizeof(expected), "09:02:03 info  line i=%d\n", i);
        assert_memory_equal(got + at, expected, n);
        at += n;
    }
}

TEST(test_log__a_blocked_reader_costs_lines_and_never_a_wait)
{
    static char filler[4096];
    uint64_t before = log_dropped();

    redirect(LOG_INFO, 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], filler, sizeof(filler)) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
    log_start();
    for (int i = 0; i < 3000; i++)
        log_info("line", LI("i", i)); /* hangs here when lines are waited for */
    assert_true(log_dropped() - before >= 3000 - 1024 - 1);
    log_stop();
    assert_int_equal(log_dropped() - before, 3000);
    restore();
}

/* Reads until `text` came by; false when nothing comes for long. */
static bool read_until(const char *text)
{
    size_t kept = 0;

    for (;;) {
        struct pollfd ready = {.fd = ends[0], .events = POLLIN};
        ssize_t n;
        if (poll(&ready, 1, 10000) != 1)
            return false;
        n = read(ends[0], got + kept, sizeof(got) - 1 - kept);
        if (n <= 0)
            return false;
        kept += (size_t)n;
        if (memmem(got, kept, text, strlen(text)))
            return true;
        if (kept > sizeof(got) / 2) { /* the end may be half of it */
            memmove(got, got + kept - 1024, 1024);
            kept = 1024;
        }
    }
}

TEST(test_log__drops_are_told_once_the_reader_is_back)
{
    static char filler[4096];

    redirect(LOG_INFO, 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], filler, sizeof(filler)) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
    log_start();
    for (int i = 0; i < 3000; i++)
        log_info("line", LI("i", i));
    assert_true(read_until("warn  log lines were dropped"));
    log_stop();
    restore();
}

TEST(test_log_level_parse__knows_four_names)
{
    enum log_level level = LOG_ERROR;

    assert_true(log_level_parse(STR("debug"), &level));
    assert_int_equal(level, LOG_DEBUG);
    assert_false(log_level_parse(STR("loud"), &level));
    assert_int_equal(level, LOG_DEBUG);
}
