/* SPDX-License-Identifier: Apache-2.0 */
/* Structured log lines on stderr: human on a TTY, JSON otherwise.  Lines go through a bounded ring
 * to one thread.  If stderr blocks, lines are dropped and counted; no caller waits.  Values are
 * escaped (no control bytes, no bidi), and secrets are masked by key name.
 *
 *   log_info("listening", LS("address", addr), LI("port", port), LZ("why", cstr));
 *
 * Handles and transport ids are logged at DEBUG only, cut at 128 bytes.  At higher levels a session
 * is named by its row's id, which grants no access. */
#ifndef HOLDFAST_BASE_LOG_H
#define HOLDFAST_BASE_LOG_H

#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct buf;

struct log_field {
    const char *key;
    struct str text; /* used when text.p != NULL, else `number` */
    int64_t number;
};
#define LS(k, s) ((struct log_field){(k), (s), 0})
#define LZ(k, z) ((struct log_field){(k), str_of(z), 0})
#define LI(k, i) ((struct log_field){(k), STR_NONE, (int64_t)(i)})

void log_line(enum log_level level, const char *message, const struct log_field *fields, size_t n);
#define LOG_FIELDS_(...)                                                                           \
    (const struct log_field[])                                                                     \
    {                                                                                              \
        {NULL, STR_NONE, 0}, ##__VA_ARGS__                                                         \
    }
#define LOG_COUNT_(...) (sizeof(LOG_FIELDS_(__VA_ARGS__)) / sizeof(struct log_field))
#define log_at_(level, message, ...)                                                               \
    do {                                                                                           \
        if ((level) >= log_threshold)                                                              \
            log_line((level), (message), LOG_FIELDS_(__VA_ARGS__) + 1,                             \
                     LOG_COUNT_(__VA_ARGS__) - 1);                                                 \
    } while (0)
#define log_debug(message, ...) log_at_(LOG_DEBUG, message, ##__VA_ARGS__)
#define log_info(message, ...) log_at_(LOG_INFO, message, ##__VA_ARGS__)
#define log_warn(message, ...) log_at_(LOG_WARN, message, ##__VA_ARGS__)
#define log_error(message, ...) log_at_(LOG_ERROR, message, ##__VA_ARGS__)

extern enum log_level log_threshold;
/* Before log_start() lines are written synchronously.  `json`: -1 decides by isatty(2). */
void log_setup(enum log_level threshold, int json);
/* "json" is 1, "human" is 0, for log_setup(). */
must_check bool log_format_parse(struct str s, int *ret_json);
bool log_is_human(void);  /* lines are written for people */
bool log_in_colour(void); /* … and in colour */
/* Writes a line of text for people, without level and fields, in order with the log lines.  The
 * caller has escaped it and ended it with a newline. */
void log_show(struct str line);
/* From now on lines go to `path` (0600), through standard error.  A file of more than LOG_FILE_MAX
 * bytes becomes PATH.1, now and while lines are written.  Call it before log_start(). */
#define LOG_FILE_MAX (10 * 1024 * 1024)
struct error;
must_check bool log_to_file(const char *path, struct error *err);
must_check bool log_level_parse(struct str s, enum log_level *ret);
void log_start(void); /* starts the writer thread; call it after the last fork */
void log_stop(void);  /* flushes (bounded wait) and joins */
uint64_t log_dropped(void);
/* Filters every text of a line, on the thread that logs.  Returns false to keep the text, true if
 * it added a replacement to `out`.  Set it before threads start; NULL: no filter. */
typedef bool (*log_filter)(struct str text, struct buf *out);
void log_set_filter(log_filter filter);
/* For tests: lines go there instead of stderr; call log_setup() afterwards. */
void log_set_fd(int fd);
/* Escapes control bytes, DEL, C1, bidi controls and invalid UTF-8 for terminals.  Commands use it
 * too. */
void log_escape(struct buf *out, struct str s, size_t max);
/* The same into ret[size], cut between characters; always ends with a NUL. */
void log_escape_cut(char *ret, size_t size, struct str s);

#endif
