/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of lines.  Each line is one allocation, so that dropping the oldest costs no move. */
#include "upstream/stderr_log.h"

#include "base/base.h"

#include <stdlib.h>

struct kept_line {
    struct stderr_line line;
    char bytes[]; /* the session, then the text */
};

struct stderr_log {
    unsigned refs;
    struct kept_line *lines[STDERR_LOG_LINES]; /* a ring: the oldest is at `first` */
    size_t first, n, bytes;
    uint64_t total;
};

struct stderr_log *stderr_log_new(void)
{
    struct stderr_log *log = xcalloc(1, sizeof(*log));
    log->refs = 1;
    return log;
}

struct stderr_log *stderr_log_ref(struct stderr_log *log)
{
    log->refs++;
    return log;
}

static void drop_oldest(struct stderr_log *log)
{
    struct kept_line *oldest = log->lines[log->first];

    log->bytes -= oldest->line.text.n;
    log->first = (log->first + 1) % STDERR_LOG_LINES;
    log->n--;
    free(oldest);
}

void stderr_log_unref(struct stderr_log *log)
{
    if (!log || --log->refs)
        return;
    while (log->n)
        drop_oldest(log);
    free(log);
}

void stderr_log_add(struct stderr_log *log, int64_t at_ms, struct str session, struct str text)
{
    text = str_cut(text, STDERR_LOG_BYTES);
    while (log->n && (log->n == STDERR_LOG_LINES || log->bytes + text.n > STDERR_LOG_BYTES))
        drop_oldest(log);
    struct kept_line *k = xcalloc(1, sizeof(*k) + session.n + text.n + 1);
    if (session.n)
        memcpy(k->bytes, session.p, session.n);
    if (text.n)
        memcpy(k->bytes + session.n, text.p, text.n);
    k->line = (struct stderr_line){
        .at_ms = at_ms,
        .number = ++log->total,
        .session = session.n ? str_n(k->bytes, session.n) : STR_NONE,
        .text = str_n(k->bytes + session.n, text.n),
    };
    log->lines[(log->first + log->n++) % STDERR_LOG_LINES] = k;
    log->bytes += text.n;
}

void stderr_log_each(const struct stderr_log *log, size_t max, uint64_t after,
                     void (*fn)(void *arg, const struct stderr_line *line), void *arg)
{
    for (size_t i = log->n > max ? log->n - max : 0; i < log->n; i++) {
        const struct kept_line *k = log->lines[(log->first + i) % STDERR_LOG_LINES];
        if (k->line.number > after)
            fn(arg, &k->line);
    }
}
