/* SPDX-License-Identifier: Apache-2.0 */
/* The writer.  Bit `depth` of `first` says that nothing was written at that level yet; after a key
 * the value follows without a comma.  Nesting beyond 63 levels is a bug and aborts. */
#include "json/write.h"

#include "base/clock.h"
#include "base/utf8.h"

#define DEEPEST 63

void js_begin(struct js_writer *w, struct buf *out)
{
    *w = (struct js_writer){.out = out, .first = 1};
}

static void new_line(struct js_writer *w)
{
    if (!w->pretty)
        return;
    buf_addc(w->out, '\n');
    for (unsigned i = 0; i < w->depth; i++)
        buf_add(w->out, "  ", 2);
}

/* Writes the separator before a key or value: a comma, a new line, or nothing. */
static void separate(struct js_writer *w)
{
    uint64_t bit = 1ull << w->depth;

    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (!(w->first & bit))
        buf_addc(w->out, ',');
    w->first &= ~bit;
    if (w->depth > 0)
        new_line(w);
}

static void open_level(struct js_writer *w, char c)
{
    if (w->depth == DEEPEST)
        die("JSON is written too deep; this is a bug, please report it");
    separate(w);
    buf_addc(w->out, c);
    w->depth++;
    w->first |= 1ull << w->depth;
}

static void close_level(struct js_writer *w, char c)
{
    bool empty = w->first >> w->depth & 1;

    if (w->depth == 0 || w->after_key)
        die("JSON is closed where nothing is open; this is a bug, please report it");
    w->depth--;
    if (!empty)
        new_line(w);
    buf_addc(w->out, c);
}

void js_object(struct js_writer *w)
{
    open_level(w, '{');
}

void js_object_end(struct js_writer *w)
{
    close_level(w, '}');
}

void js_array(struct js_writer *w)
{
    open_level(w, '[');
}

void js_array_end(struct js_writer *w)
{
    close_level(w, ']');
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

#define EACH_BYTE(byte) (UINT64_MAX / 255 * (byte))

/* Whether eight bytes are plain: no byte below 0x20 or above 0x7f, no quote and no backslash. */
static bool are_plain(uint64_t bytes)
{
    uint64_t quote = bytes ^ EACH_BYTE('"'), backslash = bytes ^ EACH_BYTE('\\');

    return !(
        (bytes | (bytes - EACH_BYTE(0x20)) | (quote - EACH_BYTE(1)) | (backslash - EACH_BYTE(1))) &
        EACH_BYTE(0x80));
}

/* The first byte of p..end that is not plain, or `end`. */
static const char *plain_end(const char *p, const char *end)
{
    for (uint64_t bytes; end - p >= 8; p += 8) {
        memcpy(&bytes, p, 8);
        if (!are_plain(bytes))
            break;
    }
    while (p < end && is_plain((unsigned char)*p))
        p++;
    return p;
}

static bool is_plain_text(struct str s)
{
    uint64_t bytes = EACH_BYTE('a');

    if (s.n > 8)
        return plain_end(s.p, s.p + s.n) == s.p + s.n;
    if (s.n)
        memcpy(&bytes, s.p, s.n);
    return are_plain(bytes);
}

/* Adds the text in quotes, without escapes, and `after` unless it is NUL.  False: there is no room. */
static bool add_plain(struct buf *out, struct str s, char after)
{
    size_t n = s.n + 2 + (after != 0);
    char *to = likely(out->cap - out->n > n) ? out->p + out->n : buf_room(out, n);

    if (!to)
        return false;
    to[0] = '"';
    if (s.n)
        memcpy(to + 1, s.p, s.n);
    to[s.n + 1] = '"';
    to[s.n + 2] = after; /* or the NUL behind the text */
    to[n] = '\0';
    out->n += n;
    return true;
}

static const char *escape_of(unsigned char c)
{
    static const char *const table[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t",
    };

    return c < countof(table) ? table[c] : NULL;
}

void js_quote(struct buf *out, struct str s)
{
    const char *p = s.p, *end = s.p + s.n;
    uint32_t code;

    if (is_plain_text(s) && add_plain(out, s, 0))
        return;
    buf_addc(out, '"');
    while (p < end) {
        const char *plain = p;
        size_t n;
        p = plain_end(p, end);
        buf_add(out, plain, (size_t)(p - plain));
        if (p == end)
            break;
        n = utf8_decode(p, end, &code);
        if (n > 1)
            buf_add(out, p, n);
        else if (n == 0)
            buf_addz(out, "\xef\xbf\xbd");
        else if (escape_of((unsigned char)*p))
            buf_addz(out, escape_of((unsigned char)*p));
        else
            buf_addf(out, "\\u%04x", (unsigned)code);
        p += n ? n : 1;
    }
    buf_addc(out, '"');
}

void js_key(struct js_writer *w, struct str key)
{
    separate(w);
    w->after_key = true;
    if (!w->pretty && is_plain_text(key) && add_plain(w->out, key, ':'))
        return;
    js_quote(w->out, key);
    buf_add(w->out, ": ", w->pretty ? 2 : 1);
}

void js_string(struct js_writer *w, struct str s)
{
    separate(w);
    js_quote(w->out, s);
}

void js_int(struct js_writer *w, int64_t v)
{
    separate(w);
    if (v < 0)
        buf_addc(w->out, '-');
    buf_addu(w->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void js_bool(struct js_writer *w, bool v)
{
    js_raw_value(w, v ? STR("true") : STR("false"));
}

void js_null(struct js_writer *w)
{
    js_raw_value(w, STR("null"));
}

void js_raw_value(struct js_writer *w, struct str json)
{
    separate(w);
    buf_addstr(w->out, json);
}

void js_kv_string(struct js_writer *w, const char *key, struct str s)
{
    if (!s.p)
        return;
    js_key(w, str_of(key));
    js_string(w, s);
}

void js_kv_int(struct js_writer *w, const char *key, int64_t v)
{
    js_key(w, str_of(key));
    js_int(w, v);
}

void js_kv_time(struct js_writer *w, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT];

    if (!wall_ms)
        return;
    clock_format(wall_ms, text);
    js_kv_string(w, key, str_of(text));
}

void js_kv_bool(struct js_writer *w, const char *key, bool v)
{
    js_key(w, str_of(key));
    js_bool(w, v);
}

void js_kv_raw(struct js_writer *w, const char *key, struct str json)
{
    if (!json.p)
        return;
    js_key(w, str_of(key));
    js_raw_value(w, json);
}

void js_flatten(char *json, size_t n)
{
    static const char line_ends[] = {'\n', '\r'};

    for (size_t i = 0; i < countof(line_ends); i++)
        for (char *p = json; (p = memchr(p, line_ends[i], (size_t)(json + n - p))); p++)
            *p = ' ';
}
