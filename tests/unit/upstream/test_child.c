/* SPDX-License-Identifier: Apache-2.0 */
/* Stdio children against peers that misbehave: framing, queues, stderr, and how they end. */
#include "process.h"

#include "base/buf.h"
#include "upstream/child.h"

#include <signal.h>

struct world {
    struct loop *loop;
    struct keeper *keeper;
};

/* A child and what it told. */
struct talk {
    struct world *w;
    struct child *child;
    struct buf lines; /* short ones, each with its LF */
    size_t n_lines, longest;
    int ends;
    struct error why;
    bool free_on_line, free_on_end;
};

static void world_open(struct world *w)
{
    struct error err;
    w->loop = loop_new();
    assert_true(keeper_start(&w->keeper, &err));
    keeper_attach(w->keeper, w->loop);
}

static void world_close(struct world *w)
{
    keeper_stop(w->keeper);
    loop_free(w->loop);
}

static void on_line(void *arg, struct str line)
{
    struct talk *t = arg;
    assert_int_equal(t->ends, 0);
    t->n_lines++;
    if (line.n > t->longest)
        t->longest = line.n;
    if (line.n < 1000) {
        buf_addstr(&t->lines, line);
        buf_addc(&t->lines, '\n');
    }
    if (t->free_on_line) {
        child_free(t->child);
        t->child = NULL;
    }
}

static void on_end(void *arg, const struct error *why)
{
    struct talk *t = arg;
    t->ends++;
    t->why = *why;
    if (t->free_on_end) {
        child_free(t->child);
        t->child = NULL;
    }
}

static const struct child_events events = {.on_line = on_line, .on_end = on_end};

/* A peer that ends by itself at the end of its input is given the time for it. */
static void talk_begin(struct world *w, struct talk *t, const char *mode, const char *arg)
{
    bool ends_itself = strcmp(mode, "echo") == 0 || strcmp(mode, "garbage") == 0;
    int64_t step_ms = ends_itself ? PEER_WAIT_MS : 100;

    memset(t, 0, sizeof(*t));
    t->w = w;
    buf_init(&t->lines, 16 * 1024 * 1024);
    t->child = child_start(w->loop, w->keeper, peer_server(mode, arg), &events, t);
    child_set_end_steps(t->child, step_ms, step_ms);
}

static void talk_close(struct talk *t)
{
    child_free(t->child);
    buf_release(&t->lines);
}

static bool has_line(void *arg)
{
    struct talk *t = arg;
    return t->n_lines || t->ends;
}

static bool has_ended(void *arg)
{
    return ((struct talk *)arg)->ends > 0;
}

static bool is_up(void *arg)
{
    struct talk *t = arg;
    return child_is_up(t->child) || t->ends;
}

static void wait_line(struct talk *t)
{
    assert_true(wait_for(t->w->loop, has_line, t, PEER_WAIT_MS));
    assert_true(t->n_lines > 0);
}

static void wait_end(struct talk *t)
{
    assert_true(wait_for(t->w->loop, has_ended, t, PEER_WAIT_MS));
    assert_int_equal(t->ends, 1);
    assert_false(child_write(t->child, NULL, 0));
}

static void wait_up(struct talk *t)
{
    assert_true(wait_for(t->w->loop, is_up, t, PEER_WAIT_MS));
    assert_int_equal(t->ends, 0);
}

static bool write_text(struct talk *t, const char *text)
{
    struct iovec part = {.iov_base = (void *)text, .iov_len = strlen(text)};
    return child_write(t->child, &part, 1);
}

static bool write_bytes(struct talk *t, size_t n)
{
    static char bytes[2 * CHILD_MAX_LINE + 1];
    struct iovec part = {.iov_base = bytes, .iov_len = n};
    memset(bytes, '[', sizeof(bytes));
    return child_write(t->child, &part, 1);
}

static void assert_text(const struct error *e, enum err_code code, const char *text)
{
    assert_int_equal(e->code, code);
    if (!strstr(e->text, text))
        fail_msg("\"%s\" lacks \"%s\"", e->text, text);
}

TEST(test_child__lines_come_back_in_order_also_those_written_before_it_is_up)
{
    struct iovec parts[] = {{.iov_base = "{\"a\":", .iov_len = 5},
                            {.iov_base = "1}", .iov_len = 2}};
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "echo", NULL);
    assert_false(child_is_up(t.child));
    assert_int_equal(child_pid(t.child), 0);
    assert_true(child_write(t.child, parts, 2));
    assert_true(write_text(&t, "[2]"));
    wait_up(&t);
    assert_true(child_pid(t.child) > 0);
    assert_true(write_text(&t, "[3]\r"));
    assert_true(write_text(&t, "[4]"));
    child_end(t.child);
    assert_false(child_is_up(t.child));
    assert_false(write_text(&t, "[5]"));
    wait_end(&t);
    assert_str(buf_str(&t.lines), "{\"a\":1}\n[2]\n[3] \n[4]\n");
    assert_text(&t.why, ERR_CANCELLED, "was ended by Holdfast and exited with status 0");
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__line_ends_between_tokens_do_not_make_a_second_message)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "echo", NULL);
    assert_true(write_text(&t, "[1,\n{\"method\":\"smuggled\"}\r\n]"));
    child_end(t.child);
    wait_end(&t);
    assert_int_equal(t.n_lines, 1);
    assert_str(buf_str(&t.lines), "[1, {\"method\":\"smuggled\"}  ]\n");
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__a_thousand_messages_of_every_size_come_back_whole)
{
    struct world w;
    struct talk t;
    struct buf sent;
    world_open(&w);
    buf_init(&sent, 16 * 1024 * 1024);
    talk_begin(&w, &t, "echo", NULL);
    for (int i = 0; i < 1000; i++) {
        char text[1000];
        int n = snprintf(text, sizeof(text), "[%d,\"%0*d\"]", i, i % 900 + 1, 0);
        struct iovec part = {.iov_base = text, .iov_len = (size_t)n};
        assert_true(child_write(t.child, &part, 1));
        buf_add(&sent, text, (size_t)n);
        buf_addc(&sent, '\n');
    }
    child_set_end_steps(t.child, PEER_WAIT_MS, PEER_WAIT_MS);
    child_end(t.child);
    wait_end(&t);
    assert_int_equal(t.n_lines, 1000);
    assert_int_equal(t.lines.n, sent.n);
    assert_memory_equal(t.lines.p, sent.p, sent.n);
    buf_release(&sent);
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__line_may_be_as_long_as_the_limit_and_not_longer)
{
    static const struct {
        const char *mode;
        size_t n;
        bool accepted;
    } cases[] = {{"long", CHILD_MAX_LINE, true},
                 {"long-crlf", CHILD_MAX_LINE, true},
                 {"long", CHILD_MAX_LINE + 1, false},
                 {"long-crlf", CHILD_MAX_LINE + 1, false},
                 {"long", 3 * CHILD_MAX_LINE, false}};
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < countof(cases); i++) {
        struct talk t;
        char n[32];
        snprintf(n, sizeof(n), "%zu", cases[i].n);
        talk_begin(&w, &t, cases[i].mode, n);
        assert_true(wait_for(w.loop, has_line, &t, PEER_WAIT_MS));
        if (cases[i].accepted) {
            assert_int_equal(t.longest, CHILD_MAX_LINE);
            assert_int_equal(t.ends, 0);
        } else {
            assert_int_equal(t.n_lines, 0);
            assert_text(&t.why, ERR_UPSTREAM, "a line longer than 4194304 bytes");
        }
        talk_close(&t);
    }
    world_close(&w);
}

TEST(test_child__lines_that_are_not_json_are_dropped_until_there_are_too_many)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "garbage", "99"); /* and blank lines, which do not count */
    wait_line(&t);
    assert_str(buf_str(&t.lines), "{\"ready\":true}\n");
    assert_int_equal(child_dropped_lines(t.child), 99);
    assert_true(write_text(&t, "garbage after a message counts from one again"));
    assert_true(write_text(&t, "{}"));
    child_end(t.child);
    wait_end(&t);
    assert_int_equal(t.n_lines, 2);
    assert_int_equal(child_dropped_lines(t.child), 100);
    assert_int_equal(t.why.code, ERR_CANCELLED);
    talk_close(&t);
    talk_begin(&w, &t, "garbage", "100");
    wait_end(&t);
    assert_int_equal(t.n_lines, 0);
    assert_text(&t.why, ERR_UPSTREAM, "wrote 100 lines in a row to stdout that are not JSON");
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__binary_before_a_message_is_one_dropped_line)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "binary", "1000000");
    wait_line(&t);
    assert_str(buf_str(&t.lines), "{\"ready\":true}\n");
    assert_int_equal(child_dropped_lines(t.child), 1);
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__stderr_never_blocks_the_answer)
{
    static const struct {
        const char *mode, *n;
    } cases[] = {{"stderr", "262144"}, {"stderr", "52428800"}, {"stderr-endless", "52428800"}};
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < countof(cases); i++) {
        struct talk t;
        talk_begin(&w, &t, cases[i].mode, cases[i].n);
        wait_line(&t);
        struct str tail = child_stderr_tail(t.child, SIZE_MAX);
        assert_true(tail.n > 0 && tail.n <= CHILD_STDERR_RING);
        assert_int_equal(child_stderr_tail(t.child, 10).n, 10);
        talk_close(&t);
    }
    world_close(&w);
}

TEST(test_child__queue_holds_its_limit_beyond_the_first_message)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "deaf", NULL);
    assert_false(write_bytes(&t, 2 * CHILD_MAX_LINE));
    assert_true(write_bytes(&t, 2 * CHILD_MAX_LINE - 1)); /* and its LF */
    assert_false(write_bytes(&t, CHILD_MAX_QUEUE));
    assert_true(write_bytes(&t, CHILD_MAX_QUEUE - 1));
    assert_false(write_bytes(&t, 0));
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__that_does_not_read_fills_a_bounded_queue_and_still_ends)
{
    struct world w;
    struct talk t;
    size_t accepted = 0;
    world_open(&w);
    talk_begin(&w, &t, "deaf", NULL);
    wait_line(&t);
    while (write_bytes(&t, 1023))
        accepted += 1024;
    assert_true(accepted >= CHILD_MAX_QUEUE);
    assert_true(accepted <= CHILD_MAX_QUEUE + 1024 * 1024); /* and the pipe itself */
    child_end(t.child);
    wait_end(&t);
    assert_text(&t.why, ERR_CANCELLED, "was killed by signal 15");
    talk_close(&t);
    world_close(&w);
}

static int grandchild_of(const struct talk *t)
{
    const char *colon = strchr(t->lines.p, ':');
    assert_non_null(colon);
    return atoi(colon + 1);
}

TEST(test_child__that_ignores_everything_is_killed_with_its_grandchild)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "stubborn", NULL);
    wait_line(&t);
    int child = process_watch(child_pid(t.child)), grandchild = process_watch(grandchild_of(&t));
    child_end(t.child);
    child_end(t.child);
    wait_end(&t);
    assert_text(&t.why, ERR_CANCELLED, "was killed by signal 9");
    assert_true(process_ended(&child, 0));
    assert_true(process_ended(&grandchild, 0));
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__that_stopped_itself_can_be_ended)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "stop", NULL);
    wait_line(&t);
    child_end(t.child);
    wait_end(&t);
    assert_text(&t.why, ERR_CANCELLED, "was killed by signal 9");
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__end_before_it_is_up_still_delivers_what_was_written)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "echo", NULL);
    child_set_end_steps(t.child, PEER_WAIT_MS, PEER_WAIT_MS);
    assert_true(write_text(&t, "[1]"));
    child_end(t.child);
    wait_end(&t);
    assert_str(buf_str(&t.lines), "[1]\n");
    assert_text(&t.why, ERR_CANCELLED, "exited with status 0");
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__exit_tells_status_and_last_words)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "exit", "3");
    child_set_end_steps(t.child, PEER_WAIT_MS,
                        PEER_WAIT_MS); /* however slowly it dies, by itself */
    wait_end(&t);
    assert_text(&t.why, ERR_UNREACHABLE,
                "the server \"peer\" exited with status 3; it wrote to stderr: ");
    assert_text(&t.why, ERR_UNREACHABLE, "cannot go on: \\x1b[31mno license");
    talk_close(&t);
    talk_begin(&w, &t, "crash", NULL);
    child_set_end_steps(t.child, PEER_WAIT_MS, PEER_WAIT_MS);
    wait_end(&t);
    assert_text(&t.why, ERR_UNREACHABLE, "was killed by signal 6");
    assert_text(&t.why, ERR_UNREACHABLE, "run its command by hand");
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__last_message_comes_before_the_end_and_a_torn_one_not_at_all)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "last-words", NULL);
    wait_end(&t);
    assert_str(buf_str(&t.lines), "{\"last\":true}\n");
    assert_int_equal(child_dropped_lines(t.child), 1);
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__that_closes_a_pipe_is_ended)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "close-stdout", NULL);
    wait_end(&t);
    assert_int_equal(t.n_lines, 1);
    assert_text(&t.why, ERR_UNREACHABLE, "closed its stdout and was killed by signal 15");
    talk_close(&t);
    talk_begin(&w, &t, "close-stdin", NULL);
    wait_line(&t);
    assert_true(write_text(&t, "{}"));
    assert_false(write_text(&t, "{}"));
    wait_end(&t);
    assert_text(&t.why, ERR_UNREACHABLE, "closed its stdin and was killed by signal 15");
    talk_close(&t);
    world_close(&w);
}

TEST(test_child__failure_to_start_is_its_end)
{
    struct server_config server = {.name = STR("files"), .command = STR("no-such-command")};
    struct world w;
    struct talk t = {.w = &w};
    world_open(&w);
    t.child = child_start(w.loop, w.keeper, &server, &events, &t);
    assert_true(write_text(&t, "{}"));
    wait_end(&t);
    assert_text(&t.why, ERR_UNREACHABLE, "cannot start \"no-such-command\": not found in PATH");
    child_free(t.child);
    world_close(&w);
}

static bool keeper_is_idle(void *arg)
{
    char path[64], text[64];
    int pid = keeper_pid(((struct world *)arg)->keeper);
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    bool idle = fgets(text, sizeof(text), f) == NULL;
    fclose(f);
    return idle;
}

TEST(test_child__may_be_freed_at_any_time)
{
    struct world w;
    struct talk before, up, in_line, in_end;
    world_open(&w);
    talk_begin(&w, &up, "stubborn", NULL);
    wait_line(&up);
    talk_begin(&w, &in_line, "garbage", "5");
    in_line.free_on_line = true;
    talk_begin(&w, &in_end, "exit", "0");
    in_end.free_on_end = true;
    talk_begin(&w, &before, "stubborn", NULL);
    child_free(before.child);
    child_free(up.child);
    assert_true(wait_for(w.loop, has_line, &in_line, PEER_WAIT_MS));
    assert_true(wait_for(w.loop, has_ended, &in_end, PEER_WAIT_MS));
    assert_true(wait_for(w.loop, keeper_is_idle, &w, PEER_WAIT_MS));
    assert_int_equal(before.n_lines + (size_t)before.ends, 0);
    assert_int_equal(up.ends, 0);
    assert_int_equal(in_line.n_lines, 1);
    assert_int_equal(in_line.ends, 0);
    assert_int_equal(in_end.ends, 1);
    buf_release(&before.lines);
    buf_release(&up.lines);
    buf_release(&in_line.lines);
    buf_release(&in_end.lines);
    world_close(&w);
}

TEST(test_child__retired_ends_by_itself_without_a_word)
{
    struct world w;
    struct talk t, stubborn, late, over;
    world_open(&w);
    talk_begin(&w, &over, "exit", "0");
    wait_end(&over);
    child_retire(over.child);
    talk_begin(&w, &t, "echo", NULL);
    child_set_end_steps(t.child, PEER_WAIT_MS, PEER_WAIT_MS); /* EOF must do */
    wait_up(&t);
    talk_begin(&w, &stubborn, "stubborn", NULL);
    wait_line(&stubborn);
    assert_true(write_text(&t, "[1]"));
    child_retire(t.child);
    child_retire(stubborn.child);
    assert_true(wait_for(w.loop, keeper_is_idle, &w, PEER_WAIT_MS));
    talk_begin(&w, &late, "stubborn", NULL);
    wait_line(&late);
    int child = process_watch(child_pid(late.child));
    child_retire(late.child);
    world_close(&w); /* takes along what is still retiring */
    assert_true(process_ended(&child, 0));
    assert_int_equal(t.n_lines + (size_t)t.ends, 0);
    assert_int_equal(stubborn.ends + late.ends, 0);
    buf_release(&t.lines);
    buf_release(&over.lines);
    buf_release(&stubborn.lines);
    buf_release(&late.lines);
}

TEST(test_child__death_of_the_keeper_is_its_end)
{
    struct world w;
    struct talk t;
    world_open(&w);
    talk_begin(&w, &t, "deaf", NULL);
    wait_line(&t);
    kill(keeper_pid(w.keeper), SIGKILL);
    wait_end(&t);
    assert_text(&t.why, ERR_UNREACHABLE, "was killed by signal 9");
    talk_close(&t);
    world_close(&w);
}
