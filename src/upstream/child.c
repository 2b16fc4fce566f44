/* SPDX-License-Identifier: Apache-2.0 */
/* One stdio child as the loop sees it: lines from its stdout, a bounded queue to its stdin, its
 * stderr always drained, its end reported once.
 *
 *   STARTING ──on_started──▶ UP ──child_end, stdout or stdin closed──▶ ENDING
 *       └──────────────┬─────┴──exit, failure, nonsense──────┬────────────┘
 *                      └───────────────▶ ENDED ◀─────────────┘
 *
 * STARTING: the keeper was asked; messages queue.  UP: three pipes on the loop.  ENDING: stdin is
 * closed or about to be, signals follow by timer.  ENDED: on_end was called or child_free() was;
 * nothing is on the loop.  The keeper reports `exited` after every descendant of the child is gone,
 * so the pipes then hold the last bytes; they are read before on_end is called.
 *
 * The cost of a child is bounded: one line (4 MiB), one queue, 128 KiB of stderr, and
 * CHILD_READS_PER_TURN reads of 64 KiB in one turn.  Memory is freed at the end of the turn, so
 * callbacks may call anything. */
#include "upstream/child.h"

#include "base/buf.h"
#include "base/log.h"
#include "json/write.h"
#include "upstream/child_stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_READ 65536
#define CHILD_READS_PER_TURN 4
#define CHILD_START_MS 10000
#define CHILD_STEP_MS 5000
#define CHILD_KEEP_LINE 65536 /* a longer line buffer is freed after use */
#define CHILD_MAX_MESSAGE (2 * CHILD_MAX_LINE)

enum child_state { CHILD_STARTING, CHILD_UP, CHILD_ENDING, CHILD_ENDED };
enum child_step { STEP_START, STEP_NONSENSE, STEP_TERM, STEP_KILL, STEP_GIVE_UP };

struct child_message {
    struct list link;
    size_t n, sent;
    char bytes[];
};

struct child_pipe {
    int fd; /* -1 when closed */
    struct loop_fd *watch;
};

struct child {
    struct loop *loop;
    struct keeper *keeper;
    unsigned id;
    int pid;
    enum child_state state;
    bool keeper_has_child; /* the keeper will still call us */
    struct child_events events;
    void *arg;
    char *name;
    struct child_pipe in, out, err;
    struct list messages;
    size_t queued;   /* bytes of `messages` not yet written */
    struct buf line; /* the unfinished line so far */
    uint64_t dropped;
    char nonsense[120]; /* the first line that was not JSON, escaped; "" if none … */
    bool has_spoken;    /* … or once a JSON line came */
    unsigned bad_in_a_row;
    struct child_stderr *words;
    struct loop_timer *timer;
    enum child_step step; /* the timer's next action */
    int64_t term_ms, kill_ms;
    bool signalled;      /* SIGTERM was sent */
    struct error ending; /* why ENDING, "closed its stdout"; code ERR_NONE until then */
    struct loop_task freeing;
};

static void pipe_close(struct child_pipe *p)
{
    if (p->watch)
        loop_fd_free(p->watch);
    if (p->fd >= 0)
        close(p->fd);
    p->watch = NULL;
    p->fd = -1;
}

static bool pipe_open(struct child_pipe *p, int fd, struct child *c,
                      void (*fn)(void *arg, int events), int want)
{
    int flags = fcntl(fd, F_GETFL);
    p->fd = fd;
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
        return false;
    p->watch = loop_fd_new(c->loop, fd, fn, c);
    if (!p->watch)
        return false;
    loop_fd_want(p->watch, want);
    return true;
}

/* A message may carry a credential in its _meta. */
static void message_free(struct child_message *m)
{
    explicit_bzero(m->bytes, m->n);
    free(m);
}

static void messages_free(struct child *c)
{
    struct list *node;
    while ((node = list_pop(&c->messages)))
        message_free(list_entry(node, struct child_message, link));
    c->queued = 0;
}

/* Afterwards nothing of the child is on the loop or with the keeper. */
static void child_dispose(struct child *c)
{
    c->state = CHILD_ENDED;
    loop_timer_stop(c->timer);
    pipe_close(&c->in);
    pipe_close(&c->out);
    pipe_close(&c->err);
    messages_free(c);
    if (c->keeper_has_child)
        keeper_forget(c->keeper, c->id);
    c->keeper_has_child = false;
}

static void child_finish(struct child *c, const struct error *why)
{
    child_stderr_flush(c->words, loop_now_ms(c->loop));
    child_dispose(c);
    c->events.on_end(c->arg, why);
}

static void child_step_after(struct child *c, enum child_step step, int64_t ms)
{
    c->step = step;
    loop_timer_start(c->timer, ms, 0);
}

/* Begins the steps of child_end(), for the reason in c->ending. */
static void child_begin_end(struct child *c)
{
    bool was_up = c->state == CHILD_UP;
    c->state = CHILD_ENDING;
    if (!was_up)
        return; /* still starting: on_started continues the end */
    if (list_empty(&c->messages))
        pipe_close(&c->in);
    child_step_after(c, STEP_TERM, c->term_ms);
}

static void child_end_because(struct child *c, enum err_code code, const char *what)
{
    if (c->state != CHILD_UP && c->state != CHILD_STARTING)
        return;
    error_set(&c->ending, code, "%s", what);
    child_begin_end(c);
}

static void on_timer(void *arg)
{
    struct child *c = arg;
    struct error why;
    switch (c->step) {
    case STEP_TERM:
        c->signalled = true;
        pipe_close(&c->in);
        keeper_kill(c->keeper, c->id, SIGTERM);
        child_step_after(c, STEP_KILL, c->kill_ms);
        return;
    case STEP_KILL:
        keeper_kill(c->keeper, c->id, SIGKILL);
        child_step_after(c, STEP_GIVE_UP, 2 * CHILD_STEP_MS);
        return;
    case STEP_START:
        error_set(&why, ERR_TIMEOUT,
                  "the server \"%.64s\" did not start within %d s; check the file system its "
                  "command lies on",
                  c->name, CHILD_START_MS / 1000);
        break;
    case STEP_NONSENSE:
        error_set(&why, ERR_UPSTREAM,
                  "the server \"%.64s\" writes text that is not MCP to stdout: \"%s\"; check that "
                  "its command speaks MCP on stdin and stdout, and make it log to stderr",
                  c->name, c->nonsense);
        break;
    case STEP_GIVE_UP:
        error_set(&why, ERR_TIMEOUT,
                  "the server \"%.64s\" did not end after SIGKILL; it waits inside the kernel, see "
                  "its state with ps",
                  c->name);
        break;
    }
    child_finish(c, &why);
}

/* Writes as much as the pipe takes; false when the child has closed its stdin. */
static bool messages_write(struct child *c)
{
    struct list *node;
    while ((node = list_first(&c->messages))) {
        struct child_message *m = list_entry(node, struct child_message, link);
        ssize_t n = write(c->in.fd, m->bytes + m->sent, m->n - m->sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        m->sent += (size_t)n;
        c->queued -= (size_t)n;
        if (m->sent == m->n) {
            list_remove(&m->link);
            message_free(m);
        }
    }
    return true;
}

static void child_flush(struct child *c)
{
    if (!messages_write(c)) {
        messages_free(c);
        pipe_close(&c->in);
        child_end_because(c, ERR_UNREACHABLE, "closed its stdin");
        return;
    }
    loop_fd_want(c->in.watch, list_empty(&c->messages) ? 0 : LOOP_WRITE);
    if (c->state == CHILD_ENDING && list_empty(&c->messages))
        pipe_close(&c->in);
}

static void on_stdin_ready(void *arg, int events unused_arg)
{
    child_flush(arg);
}

static void take_bad_line(struct child *c, struct str line)
{
    struct error why;
    c->dropped++;
    if (c->dropped == 1)
        log_warn("server writes text that is not JSON to stdout; it should log to stderr",
                 LZ("server", c->name), LS("line", str_n(line.p, line.n < 200 ? line.n : 200)));
    if (c->dropped == 1 && !c->has_spoken) {
        log_escape_cut(c->nonsense, sizeof(c->nonsense), line);
        if (c->state == CHILD_UP) /* some servers print a greeting and then speak MCP */
            child_step_after(c, STEP_NONSENSE, CHILD_NONSENSE_MS);
    }
    if (++c->bad_in_a_row < CHILD_MAX_BAD_LINES)
        return;
    error_set(&why, ERR_UPSTREAM,
              "the server \"%.64s\" wrote %d lines in a row to stdout that are not JSON; make it "
              "log to stderr and speak MCP on stdout",
              c->name, CHILD_MAX_BAD_LINES);
    child_finish(c, &why);
}

static void child_line_too_long(struct child *c)
{
    struct error why;
    error_set(&why, ERR_UPSTREAM,
              "the server \"%.64s\" wrote a line longer than %d bytes; make it answer in pages",
              c->name, CHILD_MAX_LINE);
    child_finish(c, &why);
}

/* A whole line without its LF. */
static void take_line(struct child *c, struct str line)
{
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (line.n > CHILD_MAX_LINE) {
        child_line_too_long(c);
    } else if (line.n && (line.p[0] == '{' || line.p[0] == '[')) {
        c->bad_in_a_row = 0;
        if (!c->has_spoken && c->state == CHILD_UP)
            loop_timer_stop(c->timer);
        c->has_spoken = true;
        c->events.on_line(c->arg, line);
    } else if (str_trim(line).n) {
        take_bad_line(c, line);
    }
}

/* Adds to the unfinished line.  Its last byte may be the CR of a CRLF, which does not count. */
static bool line_grow(struct child *c, struct str part)
{
    if (!buf_try_add(&c->line, part.p, part.n))
        return false;
    return c->line.n <= CHILD_MAX_LINE || c->line.p[c->line.n - 1] == '\r';
}

static void line_reset(struct child *c)
{
    if (c->line.cap > CHILD_KEEP_LINE)
        buf_release(&c->line);
    buf_reset(&c->line);
}

static void take_stdout(struct child *c, struct str bytes)
{
    while (bytes.n && c->state != CHILD_ENDED) {
        size_t n = str_find(bytes, '\n');
        struct str part = str_n(bytes.p, n);
        bool whole = n < bytes.n;
        bytes = whole ? str_n(bytes.p + n + 1, bytes.n - n - 1) : str_n(bytes.p + n, 0);
        if (whole && c->line.n == 0) { /* the usual case: no copy */
            take_line(c, part);
        } else if (!line_grow(c, part)) {
            child_line_too_long(c);
        } else if (whole) {
            take_line(c, buf_str(&c->line));
            line_reset(c);
        }
    }
}

static void take_stderr(struct child *c, struct str bytes)
{
    child_stderr_take(c->words, bytes, loop_now_ms(c->loop));
}

/* Reads at most `reads` times; closes the pipe at its end. */
static void pipe_read(struct child *c, struct child_pipe *p, unsigned reads,
                      void (*take)(struct child *c, struct str bytes))
{
    char scratch[CHILD_READ];
    while (reads-- && p->fd >= 0) {
        ssize_t n = read(p->fd, scratch, sizeof(scratch));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            pipe_close(p);
            return;
        }
        take(c, str_n(scratch, (size_t)n));
    }
}

static void on_stdout_ready(void *arg, int events unused_arg)
{
    struct child *c = arg;
    pipe_read(c, &c->out, CHILD_READS_PER_TURN, take_stdout);
    if (c->out.fd < 0)
        child_end_because(c, ERR_UNREACHABLE, "closed its stdout");
}

static void on_stderr_ready(void *arg, int events unused_arg)
{
    struct child *c = arg;
    pipe_read(c, &c->err, CHILD_READS_PER_TURN, take_stderr);
}

static void on_started(void *arg, const struct keeper_child *process)
{
    struct child *c = arg;
    struct error why;
    bool end_now = c->state == CHILD_ENDING;
    bool in = pipe_open(&c->in, process->in, c, on_stdin_ready, 0);
    bool out = pipe_open(&c->out, process->out, c, on_stdout_ready, LOOP_READ);
    bool err = pipe_open(&c->err, process->err, c, on_stderr_ready, LOOP_READ);
    if (!in || !out || !err) {
        error_set(&why, ERR_INTERNAL,
                  "cannot watch the pipes of the server \"%.64s\"; raise the limit of open files",
                  c->name);
        child_finish(c, &why);
        return;
    }
    c->pid = process->pid;
    c->state = CHILD_UP;
    loop_timer_stop(c->timer);
    if (end_now)
        child_begin_end(c);
    if (!list_empty(&c->messages))
        child_flush(c);
}

static void on_failed(void *arg, const struct error *err)
{
    struct child *c = arg;
    c->keeper_has_child = false;
    child_finish(c, err);
}

/* The last output of the child before its end. */
static void last_output(const struct child *c, char *ret_text, size_t size)
{
    static const char before[] = "it wrote to stderr: ";

    memcpy(ret_text, before, sizeof(before));
    child_stderr_summary(c->words, ret_text + sizeof(before) - 1, size - sizeof(before) + 1);
    if (ret_text[sizeof(before) - 1])
        return;
    if (*c->nonsense && !c->has_spoken)
        snprintf(ret_text, size, "it wrote text that is not MCP to stdout: \"%s\"", c->nonsense);
    else
        snprintf(ret_text, size, "it wrote nothing to stderr, run its command by hand to see why");
}

/* How the child ended, with its last output if any. */
static void exit_text(const struct child *c, int status, struct error *ret)
{
    char how[64], words[280];
    if (WIFEXITED(status))
        snprintf(how, sizeof(how), "exited with status %d", WEXITSTATUS(status));
    else
        snprintf(how, sizeof(how), "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    /* Every exit closes the pipes first.  The reason is mentioned only when Holdfast acted on
     * it. */
    bool has_reason = c->ending.code == ERR_CANCELLED || c->signalled;
    last_output(c, words, sizeof(words));
    error_set(ret, c->ending.code ? c->ending.code : ERR_UNREACHABLE,
              "the server \"%.64s\" %s%s%s; %s", c->name, has_reason ? c->ending.text : "",
              has_reason ? " and " : "", how, words);
}

/* All writers are gone, so reading ends.  If a process escaped the keeper with a pipe, reading
 * stops after the pipe's capacity. */
static void on_exited(void *arg, int wait_status)
{
    struct child *c = arg;
    struct error why;
    const unsigned pipe_capacity = 1024 * 1024 / CHILD_READ * 2;
    c->keeper_has_child = false;
    pipe_close(&c->in);
    pipe_read(c, &c->err, pipe_capacity, take_stderr);
    pipe_read(c, &c->out, pipe_capacity, take_stdout);
    if (c->state == CHILD_ENDED)
        return;
    if (c->line.n)
        c->dropped++;
    exit_text(c, wait_status, &why);
    child_finish(c, &why);
}

static const struct keeper_events keeper_events = {
    .on_started = on_started, .on_failed = on_failed, .on_exited = on_exited};

struct child *child_start(struct loop *loop, struct keeper *k, const struct server_config *server,
                          const struct child_events *events, void *arg)
{
    struct child *c = xcalloc(1, sizeof(*c));
    c->loop = loop;
    c->keeper = k;
    c->events = *events;
    c->arg = arg;
    c->name = xcalloc(1, server->name.n + 1);
    if (server->name.n)
        memcpy(c->name, server->name.p, server->name.n);
    c->in.fd = c->out.fd = c->err.fd = -1;
    list_init(&c->messages);
    buf_init(&c->line, CHILD_MAX_LINE + 1);
    c->words = child_stderr_new(loop, c->name);
    c->timer = loop_timer_new(loop, on_timer, c);
    c->term_ms = c->kill_ms = CHILD_STEP_MS;
    c->keeper_has_child = true;
    c->id = keeper_spawn(k, server, &keeper_events, c);
    child_step_after(c, STEP_START, CHILD_START_MS);
    return c;
}

/* The unwritten rest of the message being written does not count against the queue. */
static bool queue_has_room(struct child *c, size_t n)
{
    struct list *node = list_first(&c->messages);
    if (!node)
        return n <= CHILD_MAX_MESSAGE;
    const struct child_message *first = list_entry(node, struct child_message, link);
    size_t behind = c->queued - (first->n - first->sent);
    return n <= CHILD_MAX_QUEUE && behind + n <= CHILD_MAX_QUEUE;
}

bool child_write(struct child *c, const struct iovec *parts, int n)
{
    size_t size = 1;
    if (c->state != CHILD_STARTING && c->state != CHILD_UP)
        return false;
    for (int i = 0; i < n; i++)
        size += parts[i].iov_len;
    if (!queue_has_room(c, size))
        return false;
    struct child_message *m = xmalloc(sizeof(*m) + size);
    *m = (struct child_message){.n = 0};
    for (int i = 0; i < n; i++) {
        if (parts[i].iov_len)
            memcpy(m->bytes + m->n, parts[i].iov_base, parts[i].iov_len);
        m->n += parts[i].iov_len;
    }
    js_flatten(m->bytes, m->n);
    m->bytes[m->n++] = '\n';
    bool idle = list_empty(&c->messages);
    list_push(&c->messages, &m->link);
    c->queued += m->n;
    if (idle && c->in.fd >= 0)
        child_flush(c);
    return true;
}

void child_end(struct child *c)
{
    child_end_because(c, ERR_CANCELLED, "was ended by Holdfast");
}

void child_set_end_steps(struct child *c, int64_t term_ms, int64_t kill_ms)
{
    c->term_ms = term_ms;
    c->kill_ms = kill_ms;
}

static void child_release(struct loop_task *task)
{
    struct child *c = container_of(task, struct child, freeing);
    loop_timer_free(c->timer);
    child_stderr_free(c->words);
    buf_release(&c->line);
    free(c->name);
    free(c);
}

void child_free(struct child *c)
{
    if (!c)
        return;
    child_dispose(c);
    c->freeing.fn = child_release;
    loop_defer(c->loop, &c->freeing);
}

static void on_retired_line(void *arg unused_arg, struct str line unused_arg)
{
}

static void on_retired_end(void *arg, const struct error *why unused_arg)
{
    child_free(arg);
}

static const struct child_events retired_events = {.on_line = on_retired_line,
                                                   .on_end = on_retired_end};

void child_retire(struct child *c)
{
    if (!c || c->state == CHILD_ENDED) {
        child_free(c);
        return;
    }
    c->events = retired_events;
    c->arg = c;
    child_end(c);
}

int child_pid(const struct child *c)
{
    return c->pid;
}

void child_set_secrets(struct child *c, const struct own_secrets *own)
{
    child_stderr_set_secrets(c->words, own);
}

void child_set_log(struct child *c, struct stderr_log *log, struct str session)
{
    child_stderr_set_log(c->words, log, session);
}

struct str child_stderr_tail(const struct child *c, size_t max)
{
    return child_stderr_newest(c->words, max);
}

uint64_t child_dropped_lines(const struct child *c)
{
    return c->dropped;
}

bool child_is_up(const struct child *c)
{
    return c->state == CHILD_UP;
}
