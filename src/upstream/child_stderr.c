/* SPDX-License-Identifier: Apache-2.0 */
/* The ring is a plain buffer of twice its size.  When it is full, the older half is dropped: each
 * byte is moved at most once, and the newest bytes are always in one piece.
 *
 * At most CHILD_LOG_LINES_PER_S lines per second go to the log.  Further lines are counted, and the
 * count is logged at the end of that second.  A line is cut at STDERR_LOG_LINE bytes, which also
 * bounds a line that never ends. */
#include "upstream/child_stderr.h"

#include "audit/redact.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "upstream/child.h"
#include "upstream/stderr_log.h"

#include <stdio.h>
#include <stdlib.h>

#define STDERR_LOG_LINE 1000
#define STDERR_WINDOW_MS 1000
#define SUMMARY_WINDOW 30 /* lines that a summary considers */
#define SUMMARY_LINES 3
#define SUMMARY_LINE 80 /* bytes of each line except the first */

struct child_stderr {
    const char *server;
    struct buf ring;   /* newest CHILD_STDERR_RING to 2 × CHILD_STDERR_RING bytes */
    struct buf line;   /* the unfinished line, cut */
    int64_t window_ms; /* start of the present second */
    unsigned in_window;
    uint64_t left_out; /* lines in the present second */
    uint64_t logged, suppressed;
    struct own_secrets own; /* secrets beside the published ones; holds references */
    struct loop_timer *window_end;
    struct stderr_log *log; /* NULL: lines are only logged */
    char session[64];       /* whose lines they are in `log` */
};

static void log_left_out(struct child_stderr *s)
{
    char text[64];

    if (s->left_out)
        log_info("server stderr: more lines left out", LZ("server", s->server),
                 LI("lines", s->left_out));
    if (s->left_out && s->log) {
        snprintf(text, sizeof(text), "[holdfast: %llu more lines left out]",
                 (unsigned long long)s->left_out);
        stderr_log_add(s->log, clock_wall_ms(), str_of(s->session), str_of(text));
    }
    s->left_out = 0;
}

static void on_window_end(void *arg)
{
    log_left_out(arg);
}

struct child_stderr *child_stderr_new(struct loop *loop, const char *server)
{
    struct child_stderr *s = xcalloc(1, sizeof(*s));
    s->server = server;
    buf_init(&s->ring, 2 * CHILD_STDERR_RING);
    buf_init(&s->line, STDERR_LOG_LINE);
    s->window_end = loop_timer_new(loop, on_window_end, s);
    return s;
}

void child_stderr_free(struct child_stderr *s)
{
    if (!s)
        return;
    log_left_out(s);
    loop_timer_free(s->window_end);
    own_secrets_unref(&s->own);
    stderr_log_unref(s->log);
    buf_release(&s->ring);
    buf_release(&s->line);
    free(s);
}

void child_stderr_set_secrets(struct child_stderr *s, const struct own_secrets *own)
{
    own_secrets_ref(own);
    own_secrets_unref(&s->own);
    s->own = (struct own_secrets){.known = own->known, .session = own->session};
}

void child_stderr_set_log(struct child_stderr *s, struct stderr_log *log, struct str session)
{
    stderr_log_unref(s->log);
    s->log = stderr_log_ref(log);
    snprintf(s->session, sizeof(s->session), "%.*s", STR_ARG(session));
}

static void log_clean(const struct child_stderr *s, struct str line)
{
    struct buf clean;

    buf_init_secret(&clean, SIZE_MAX);
    if (redact_line(&s->own, line, &clean))
        line = buf_str(&clean);
    log_info("server stderr", LZ("server", s->server), LS("line", line));
    if (s->log)
        stderr_log_add(s->log, clock_wall_ms(), str_of(s->session), line);
    buf_release(&clean);
}

static void log_stderr_line(struct child_stderr *s, int64_t now_ms)
{
    if (now_ms - s->window_ms >= STDERR_WINDOW_MS) {
        log_left_out(s);
        s->window_ms = now_ms;
        s->in_window = 0;
    }
    if (s->in_window < CHILD_LOG_LINES_PER_S) {
        s->in_window++;
        s->logged++;
        log_clean(s, buf_str(&s->line));
        return;
    }
    if (s->left_out++ == 0)
        loop_timer_start(s->window_end, s->window_ms + STDERR_WINDOW_MS - now_ms, 0);
    s->suppressed++;
}

static void take_log_lines(struct child_stderr *s, struct str bytes, int64_t now_ms)
{
    while (bytes.n) {
        size_t n = str_find(bytes, '\n');
        size_t room = STDERR_LOG_LINE - s->line.n;
        buf_add(&s->line, bytes.p, n < room ? n : room);
        if (n == bytes.n)
            return;
        if (s->line.n && s->line.p[s->line.n - 1] == '\r')
            s->line.n--;
        if (s->line.n)
            log_stderr_line(s, now_ms);
        buf_reset(&s->line);
        bytes = str_n(bytes.p + n + 1, bytes.n - n - 1);
    }
}

void child_stderr_take(struct child_stderr *s, struct str bytes, int64_t now_ms)
{
    take_log_lines(s, bytes, now_ms);
    if (bytes.n > CHILD_STDERR_RING)
        bytes = str_n(bytes.p + bytes.n - CHILD_STDERR_RING, CHILD_STDERR_RING);
    if (s->ring.n + bytes.n > 2 * CHILD_STDERR_RING)
        buf_consume(&s->ring, s->ring.n + bytes.n - CHILD_STDERR_RING);
    buf_add(&s->ring, bytes.p, bytes.n);
}

void child_stderr_flush(struct child_stderr *s, int64_t now_ms)
{
    if (s->line.n)
        log_stderr_line(s, now_ms);
    buf_reset(&s->line);
}

struct str child_stderr_newest(const struct child_stderr *s, size_t max)
{
    struct str all = buf_str(&s->ring);
    if (max > CHILD_STDERR_RING)
        max = CHILD_STDERR_RING;
    return all.n > max ? str_n(all.p + all.n - max, max) : all;
}

/* Words in the last output of failing programs.  Lower case matches both cases. */
static const char *const error_words[] = {
    "error:",  "error -",       " error ",   "err!",         "exception", "fatal",
    "panic",   "cannot find",   "not found", "no such file", "no module", "denied",
    "refused", "not permitted", "unable to", "failed",       "usage:",    "missing",
};

static bool looks_like_error(struct str line)
{
    char text[256];
    size_t n = line.n < sizeof(text) - 1 ? line.n : sizeof(text) - 1;

    for (size_t i = 0; i < n; i++) {
        char c = line.p[i];
        text[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c ? c : ' ');
    }
    text[n] = '\0';
    for (size_t i = 0; i < countof(error_words); i++)
        if (strstr(text, error_words[i]))
            return true;
    return false;
}

/* Stack frames say where, not why. */
static bool is_frame(struct str line)
{
    struct str text = str_trim(line);
    return line.n > text.n && (str_starts(text, STR("at ")) || str_starts(text, STR("File \"")));
}

/* The newest lines with content, oldest first. */
static size_t last_lines(struct str all, struct str *lines, size_t max)
{
    size_t n = 0;

    while (all.n) {
        size_t start = all.n;
        while (start && all.p[start - 1] != '\n')
            start--;
        struct str line = str_n(all.p + start, all.n - start);
        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        all.n = start ? start - 1 : 0;
        if (!str_trim(line).n || is_frame(line))
            continue;
        if (n == max)
            break;
        lines[n++] = str_trim(line);
    }
    for (size_t i = 0; i < n / 2; i++) {
        struct str swapped = lines[i];
        lines[i] = lines[n - 1 - i];
        lines[n - 1 - i] = swapped;
    }
    return n;
}

/* Without secrets: the summary is recorded. */
static void escape_clean(const struct child_stderr *s, char *ret_text, size_t size, struct str line)
{
    struct buf clean;

    buf_init_secret(&clean, SIZE_MAX);
    if (redact_line(&s->own, line, &clean))
        line = buf_str(&clean);
    log_escape_cut(ret_text, size, line);
    buf_release(&clean);
}

void child_stderr_summary(const struct child_stderr *s, char *ret_text, size_t size)
{
    struct str lines[SUMMARY_WINDOW];
    size_t n = last_lines(child_stderr_newest(s, CHILD_STDERR_RING), lines, countof(lines));
    size_t first = 0, at = 0;

    while (first < n && !looks_like_error(lines[first]))
        first++;
    if (first == n)
        first = n > SUMMARY_LINES ? n - SUMMARY_LINES : 0;
    ret_text[0] = '\0';
    for (size_t i = first; i < n && at + 8 < size; i++) {
        if (i >= first + SUMMARY_LINES && i != n - 1)
            continue;
        if (i > first)
            at += (size_t)snprintf(ret_text + at, size - at, " | ");
        /* The first line gets most of the room. */
        size_t room = size - at < SUMMARY_LINE || i == first ? size - at : SUMMARY_LINE;
        escape_clean(s, ret_text + at, room, lines[i]);
        at += strlen(ret_text + at);
    }
}

uint64_t child_stderr_logged(const struct child_stderr *s)
{
    return s->logged;
}

uint64_t child_stderr_suppressed(const struct child_stderr *s)
{
    return s->suppressed;
}
