/* SPDX-License-Identifier: Apache-2.0 */
/* The text of log lines.  All text from outside is escaped, so that a line stays one line, a
 * terminal executes nothing in it, and the JSON form is valid for any bytes. */
#include "base/log_text.h"

#include "base/clock.h"
#include "base/unicode.h"
#include "base/utf8.h"

#define LONGEST_VALUE 1024

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};
static const char *const level_colours[] = {[LOG_DEBUG] = "\033[2m",
                                            [LOG_INFO] = "\033[32m",
                                            [LOG_WARN] = "\033[33m",
                                            [LOG_ERROR] = "\033[31m"};

bool log_level_parse(struct str s, enum log_level *ret)
{
    for (size_t i = 0; i < countof(level_names); i++) {
        if (!str_eq(s, str_of(level_names[i])))
            continue;
        *ret = (enum log_level)i;
        return true;
    }
    return false;
}

bool log_format_parse(struct str s, int *ret_json)
{
    bool is_json = str_eq(s, STR("json"));

    if (!is_json && !str_eq(s, STR("human")))
        return false;
    *ret_json = is_json;
    return true;
}

bool log_key_is_secret(const char *key)
{
    static const char *const words[] = {"token",         "secret",     "password",    "passwd",
                                        "authorization", "cookie",     "api_key",     "apikey",
                                        "api-key",       "credential", "key_material"};
    struct str k = str_of(key);

    for (size_t i = 0; i < countof(words); i++)
        if (str_icontains(k, str_of(words[i])))
            return true;
    /* "key", "master_key", "tls-key" hold a key; "key_id" only names one. */
    if (k.n < 3 || !str_ieq(str_n(k.p + k.n - 3, 3), STR("key")))
        return false;
    return k.n == 3 || k.p[k.n - 4] == '_' || k.p[k.n - 4] == '-';
}

/* Whether a valid character may be shown unescaped. */
static bool is_harmless(uint32_t code)
{
    return !unicode_is_invisible(code);
}

static const char *short_escape(uint32_t code)
{
    return code == '\n' ? "\\n" : code == '\r' ? "\\r" : code == '\t' ? "\\t" : NULL;
}

void log_escape(struct buf *out, struct str s, size_t max)
{
    const char *p = s.p, *end = s.p + (s.n > max ? max : s.n), *all = s.p + s.n;

    while (p < end) {
        uint32_t code;
        size_t n = utf8_decode(p, all, &code);
        if (n == 0)
            buf_addf(out, "\\x%02x", (unsigned char)*p);
        else if (is_harmless(code))
            buf_add(out, p, n);
        else if (short_escape(code))
            buf_addz(out, short_escape(code));
        else
            buf_addf(out, code < 0x80 ? "\\x%02x" : "\\u%04x", code);
        p += n ? n : 1;
    }
    if (s.n > max)
        buf_addz(out, "…");
}

void log_escape_cut(char *ret, size_t size, struct str s)
{
    struct buf escaped;
    struct str text;

    buf_init(&escaped, 16 * size); /* one byte may become "\u202e" */
    log_escape(&escaped, s, size);
    text = buf_str(&escaped);
    if (text.n >= size) {
        text.n = size - 1;
        while (text.n && ((unsigned char)text.p[text.n] & 0xc0) == 0x80)
            text.n--; /* not through the middle of a character */
    }
    if (text.n)
        memcpy(ret, text.p, text.n);
    ret[text.n] = '\0';
    buf_release(&escaped);
}

static void add_json_string(struct buf *out, struct str s, size_t max)
{
    const char *p = s.p, *end = s.p + (s.n > max ? max : s.n), *all = s.p + s.n;

    buf_addc(out, '"');
    while (p < end) {
        uint32_t code;
        size_t n = utf8_decode(p, all, &code);
        if (n == 0)
            buf_addz(out, "\\ufffd");
        else if (code == '"' || code == '\\')
            buf_addf(out, "\\%c", (char)code);
        else if (is_harmless(code))
            buf_add(out, p, n);
        else if (short_escape(code))
            buf_addz(out, short_escape(code));
        else
            buf_addf(out, "\\u%04x", code);
        p += n ? n : 1;
    }
    if (s.n > max)
        buf_addz(out, "…");
    buf_addc(out, '"');
}

static struct str shown(const struct log_field *f)
{
    return log_key_is_secret(f->key) ? STR("***") : f->text;
}

static void json_field(struct buf *out, const struct log_field *f)
{
    struct str value = shown(f);

    buf_addc(out, ',');
    add_json_string(out, str_of(f->key), LONGEST_VALUE);
    buf_addc(out, ':');
    if (value.p)
        add_json_string(out, value, LONGEST_VALUE);
    else
        buf_addf(out, "%lld", (long long)f->number);
}

/* A value is quoted unless it reads back as one word. */
static bool wants_quotes(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ' ' || s.p[i] == '"' || s.p[i] == '=')
            return true;
    return s.n == 0;
}

static void human_field(struct buf *out, const struct log_field *f)
{
    struct str value = shown(f);

    buf_addc(out, ' ');
    log_escape(out, str_of(f->key), LONGEST_VALUE);
    buf_addc(out, '=');
    if (!value.p)
        buf_addf(out, "%lld", (long long)f->number);
    else if (wants_quotes(value)) {
        buf_addc(out, '"');
        log_escape(out, value, LONGEST_VALUE);
        buf_addc(out, '"');
    } else
        log_escape(out, value, LONGEST_VALUE);
}

/* Adds the field, and removes it again if the line, with `tail` bytes to come, would be too
 * long. */
static void add_field(struct buf *out, size_t start, const struct log_field *f, size_t tail,
                      void (*add)(struct buf *out, const struct log_field *f))
{
    size_t before = out->n;

    add(out, f);
    if (out->n - start + tail > LOG_LINE_LONGEST) {
        out->n = before;
        out->p[before] = '\0';
    }
}

void log_text_json(struct buf *out, enum log_level level, int64_t wall_ms, const char *message,
                   const struct log_field *fields, size_t n)
{
    size_t start = out->n;
    char time[CLOCK_TEXT];

    clock_format(wall_ms, time);
    buf_addf(out, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", time, level_names[level]);
    add_json_string(out, str_of(message), LONGEST_VALUE / 2);
    for (size_t i = 0; i < n; i++)
        add_field(out, start, &fields[i], 2, json_field);
    buf_addz(out, "}\n");
}

/* The field whose text continues the message as a sentence. */
static bool is_reason(const struct log_field *f)
{
    return f->text.p && (strcmp(f->key, "why") == 0 || strcmp(f->key, "warning") == 0 ||
                         strcmp(f->key, "note") == 0);
}

static void add_reason(struct buf *out, const struct log_field *f)
{
    buf_addz(out, ": ");
    log_escape(out, shown(f), LONGEST_VALUE);
}

/* Message, reason, other fields, newline; the line began at `start`. */
static void add_sentence(struct buf *out, size_t start, const char *message,
                         const struct log_field *fields, size_t n)
{
    log_escape(out, str_of(message), LONGEST_VALUE / 2);
    for (size_t i = 0; i < n; i++)
        if (is_reason(&fields[i]))
            add_field(out, start, &fields[i], 1, add_reason);
    for (size_t i = 0; i < n; i++)
        if (!is_reason(&fields[i]))
            add_field(out, start, &fields[i], 1, human_field);
    buf_addc(out, '\n');
}

void log_text_human(struct buf *out, enum log_level level, int64_t wall_ms, const char *message,
                    const struct log_field *fields, size_t n, bool colour)
{
    size_t start = out->n;
    char time[CLOCK_LOCAL_TEXT];

    clock_format_local(wall_ms, time);
    buf_addf(out, "%s %s%-5s%s ", time, colour ? level_colours[level] : "", level_names[level],
             colour ? "\033[0m" : "");
    add_sentence(out, start, message, fields, n);
}

void log_text_journal(struct buf *out, enum log_level level, const char *message,
                      const struct log_field *fields, size_t n)
{
    static const char priorities[] = {
        [LOG_DEBUG] = '7', [LOG_INFO] = '6', [LOG_WARN] = '4', [LOG_ERROR] = '3'};
    size_t start = out->n;

    buf_addf(out, "<%c>", priorities[level]);
    add_sentence(out, start, message, fields, n);
}
