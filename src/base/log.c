/* SPDX-License-Identifier: Apache-2.0 */
/* The destination of log lines.  Before log_start() and after log_stop() the calling thread writes
 * the line.  In between it puts the line into a bounded ring, under a lock held for a few stores,
 * and one thread writes the ring to the descriptor.  If stderr blocks, lines are dropped and
 * counted, and no caller waits.
 *
 * The writer polls before it writes, and no line is longer than PIPE_BUF.  So write(2) does not
 * block even on a blocking pipe, and log_stop() keeps its time limit. */
#include "base/log.h"

#include "base/clock.h"
#include "base/log_file.h"
#include "base/log_text.h"
#include "base/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RING 1024 /* lines; a power of two */
#define RING_BYTES (1024 * 1024)
#define STOP_WAIT_MS 1000
#define POLL_MS 100

struct line {
    size_t n;
    char text[];
};

enum log_level log_threshold = LOG_INFO;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    pthread_t writer;
    struct line *ring[RING];
    size_t head, tail; /* lines head .. tail-1 are waiting */
    size_t bytes;
    bool running; /* lines go through the ring */
    bool stopping;
    int64_t give_up_ms; /* real monotonic time; meaningful once stopping */
} log_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static _Atomic uint64_t dropped;
static uint64_t dropped_logged;
static int out_fd = STDERR_FILENO;
static bool as_json, in_colour, to_journal;
static log_filter filter;

#define FILTERED_MOST 16 /* most fields in a line that are filtered */

void log_setup(enum log_level threshold, int json)
{
    bool tty = isatty(out_fd);

    log_threshold = threshold;
    as_json = json < 0 ? !tty : json > 0;
    in_colour = tty && !as_json && !getenv("NO_COLOR");
    to_journal = log_fd_is_journal(out_fd, getenv("JOURNAL_STREAM"));
    tzset(); /* localtime_r() does not read TZ */
}

bool log_is_human(void)
{
    return !as_json;
}

bool log_in_colour(void)
{
    return in_colour;
}

void log_set_fd(int fd)
{
    out_fd = fd;
}

uint64_t log_dropped(void)
{
    return dropped;
}

/* Real waits must not depend on the fake clock. */
static int64_t real_mono_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool past_deadline(void)
{
    bool past;

    pthread_mutex_lock(&log_state.lock);
    past = log_state.stopping && real_mono_ms() >= log_state.give_up_ms;
    pthread_mutex_unlock(&log_state.lock);
    return past;
}

/* Returns false when the line was dropped. */
static bool write_out(const char *p, size_t n)
{
    while (n > 0) {
        struct pollfd ready = {.fd = out_fd, .events = POLLOUT};
        ssize_t done;
        int polled = poll(&ready, 1, POLL_MS);
        if (polled == 0 && !past_deadline())
            continue;
        if (polled == 0)
            return false;
        done = polled < 0 ? -1 : write(out_fd, p, n);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return true;
}

static void write_line(struct str line)
{
    if (!write_out(line.p, line.n))
        dropped++;
    else
        log_file_grew(line.n);
}

static void format_line(struct buf *out, enum log_level level, const char *message,
                        const struct log_field *fields, size_t n)
{
    if (as_json)
        log_text_json(out, level, clock_wall_ms(), message, fields, n);
    else if (to_journal)
        log_text_journal(out, level, message, fields, n);
    else
        log_text_human(out, level, clock_wall_ms(), message, fields, n, in_colour);
}

void log_set_filter(log_filter f)
{
    filter = f;
}

/* Filters the fields; the text of changed fields is in `bytes`. */
static void filter_fields(const struct log_field *fields, size_t n, struct log_field *ret,
                          struct buf *bytes)
{
    size_t begins[FILTERED_MOST];
    bool changes[FILTERED_MOST];

    for (size_t i = 0; i < n; i++) {
        ret[i] = fields[i];
        begins[i] = bytes->n;
        changes[i] = fields[i].text.n > 0 && filter(fields[i].text, bytes);
    }
    for (size_t i = 0; i < n; i++)
        if (changes[i])
            ret[i].text =
                str_n(bytes->p + begins[i], (i + 1 < n ? begins[i + 1] : bytes->n) - begins[i]);
}

/* Called with the lock held.  Returns false when the ring is full. */
static bool ring_put(struct str text)
{
    struct line *line;

    if (log_state.tail - log_state.head == RING || log_state.bytes + text.n > RING_BYTES)
        return false;
    line = xmalloc(sizeof(*line) + text.n);
    line->n = text.n;
    memcpy(line->text, text.p, text.n);
    log_state.ring[log_state.tail++ % RING] = line;
    log_state.bytes += text.n;
    pthread_cond_signal(&log_state.filled);
    return true;
}

static void put_line(struct str line)
{
    bool through_ring;

    pthread_mutex_lock(&log_state.lock);
    through_ring = log_state.running;
    if (through_ring && !ring_put(line))
        dropped++;
    pthread_mutex_unlock(&log_state.lock);
    if (!through_ring)
        write_line(line);
}

void log_show(struct str line)
{
    put_line(line);
}

void log_line(enum log_level level, const char *message, const struct log_field *fields, size_t n)
{
    struct log_field clean[FILTERED_MOST];
    struct buf line, bytes;

    buf_init(&line, SIZE_MAX);
    buf_init_secret(&bytes, SIZE_MAX);
    if (filter && n <= FILTERED_MOST) {
        filter_fields(fields, n, clean, &bytes);
        fields = clean;
    }
    format_line(&line, level, message, fields, n);
    buf_release(&bytes);
    put_line(buf_str(&line));
    buf_release(&line);
}

static void write_dropped(void)
{
    uint64_t now = dropped;
    struct log_field lines = LI("lines", now - dropped_logged);
    struct buf line;

    if (now == dropped_logged)
        return;
    dropped_logged = now;
    buf_init(&line, SIZE_MAX);
    format_line(&line, LOG_WARN, "log lines were dropped because stderr did not take them", &lines,
                1);
    write_line(buf_str(&line));
    buf_release(&line);
}

/* NULL when stopping and empty. */
static struct line *ring_take(void)
{
    struct line *line = NULL;

    pthread_mutex_lock(&log_state.lock);
    while (log_state.head == log_state.tail && !log_state.stopping)
        pthread_cond_wait(&log_state.filled, &log_state.lock);
    if (log_state.head != log_state.tail) {
        line = log_state.ring[log_state.head++ % RING];
        log_state.bytes -= line->n;
    }
    pthread_mutex_unlock(&log_state.lock);
    return line;
}

static void *writer_main(void *arg unused_arg)
{
    struct line *line;

    while ((line = ring_take())) {
        if (past_deadline() || !write_out(line->text, line->n))
            dropped++;
        else {
            log_file_grew(line->n);
            write_dropped();
        }
        free(line);
    }
    return NULL;
}

void log_start(void)
{
    if (log_state.running)
        return;
    log_state.stopping = false;
    if (thread_start(&log_state.writer, "log", writer_main, NULL))
        log_state.running = true;
}

void log_stop(void)
{
    if (!log_state.running)
        return;
    pthread_mutex_lock(&log_state.lock);
    log_state.running = false;
    log_state.stopping = true;
    log_state.give_up_ms = real_mono_ms() + STOP_WAIT_MS;
    pthread_cond_signal(&log_state.filled);
    pthread_mutex_unlock(&log_state.lock);
    pthread_join(log_state.writer, NULL);
}
