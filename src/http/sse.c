/* SPDX-License-Identifier: Apache-2.0 */
/* The event-stream format (WHATWG HTML, "Server-sent events"), both directions.
 *
 * Reader: bytes arrive split anywhere, so the reader keeps only the incomplete line and the fields
 * of the incomplete event.  A line that is whole in one feed is read in place.  The events do not
 * depend on how the stream was split.  Two departures, both needed by MCP: an id belongs to its own
 * event and is not remembered, and an event with empty data is skipped unless it has an id. */
#include "http/sse.h"

#include <assert.h>
#include <string.h>

#define FIELD_NAME_ROOM 16            /* so that data of exactly `max` bytes fits on one line */
#define KEEP_BYTES ((size_t)64 << 10) /* most memory that an idle stream keeps per buffer */

void sse_reader_init(struct sse_reader *r, size_t max_event)
{
    *r = (struct sse_reader){.max = max_event};
    buf_init(&r->line, max_event + FIELD_NAME_ROOM);
    buf_init(&r->data, max_event);
    buf_init(&r->type, max_event + FIELD_NAME_ROOM);
    buf_init(&r->id, max_event + FIELD_NAME_ROOM);
}

void sse_reader_release(struct sse_reader *r)
{
    buf_release(&r->line);
    buf_release(&r->data);
    buf_release(&r->type);
    buf_release(&r->id);
}

static void buf_forget(struct buf *b)
{
    if (b->cap > KEEP_BYTES) {
        size_t max = b->max;
        buf_release(b);
        buf_init(b, max);
    }
    buf_reset(b);
}

static bool set_data(struct sse_reader *r, struct str value)
{
    if (r->has_data && !buf_try_add(&r->data, "\n", 1))
        return false;
    r->has_data = true;
    return buf_try_add(&r->data, value.p, value.n);
}

static bool set_type(struct sse_reader *r, struct str value)
{
    buf_reset(&r->type);
    return buf_try_add(&r->type, value.p, value.n);
}

static bool set_id(struct sse_reader *r, struct str value)
{
    if (value.n > 0 && memchr(value.p, '\0', value.n))
        return true;
    buf_reset(&r->id);
    r->has_id = true;
    return buf_try_add(&r->id, value.p, value.n);
}

static bool set_retry(struct sse_reader *r, struct str value)
{
    if (str_to_u64(value, INT64_MAX, &r->retry_ms))
        r->has_retry = true;
    return true;
}

static const struct {
    struct str name;
    bool (*set)(struct sse_reader *r, struct str value); /* false beyond the limit */
} fields[] = {
    {{"data", 4}, set_data},
    {{"event", 5}, set_type},
    {{"id", 2}, set_id},
    {{"retry", 5}, set_retry},
};

static bool read_field(struct sse_reader *r, struct str line)
{
    size_t colon = str_find(line, ':');
    struct str name = str_n(line.p, colon);
    struct str value = str_n(line.p + colon, 0);
    if (colon < line.n)
        value = str_n(line.p + colon + 1, line.n - colon - 1);
    if (value.n > 0 && value.p[0] == ' ')
        value = str_n(value.p + 1, value.n - 1);
    for (size_t i = 0; i < countof(fields); i++) {
        if (str_eq(fields[i].name, name))
            return fields[i].set(r, value);
    }
    return true; /* a comment (empty name) or an unknown field */
}

/* An empty line ends the event.  A retry without an event is kept for the next event. */
static bool finish_event(struct sse_reader *r,
                         bool (*on_event)(void *arg, const struct sse_event *e), void *arg)
{
    bool go_on = true;
    if (r->data.n > 0 || r->has_id) {
        struct sse_event event = {
            .type = r->type.n > 0 ? buf_str(&r->type) : STR("message"),
            .data = buf_str(&r->data),
            .id = r->has_id ? buf_str(&r->id) : STR_NONE,
            .has_retry = r->has_retry,
            .retry_ms = r->has_retry ? r->retry_ms : 0,
        };
        r->has_retry = false;
        go_on = on_event(arg, &event);
    }
    buf_forget(&r->data);
    buf_forget(&r->type);
    buf_forget(&r->id);
    r->has_data = r->has_id = false;
    return go_on;
}

static bool read_line(struct sse_reader *r, struct str line,
                      bool (*on_event)(void *arg, const struct sse_event *e), void *arg)
{
    if (!r->started && str_starts(line, STR("\xef\xbb\xbf")))
        line = str_n(line.p + 3, line.n - 3);
    r->started = true;
    return line.n == 0 ? finish_event(r, on_event, arg) : read_field(r, line);
}

/* Ends one line; its first part may be in r->line. */
static bool end_line(struct sse_reader *r, struct str part,
                     bool (*on_event)(void *arg, const struct sse_event *e), void *arg)
{
    if (r->line.n == 0)
        return part.n <= r->line.max && read_line(r, part, on_event, arg);
    if (!buf_try_add(&r->line, part.p, part.n))
        return false;
    bool go_on = read_line(r, buf_str(&r->line), on_event, arg);
    buf_forget(&r->line);
    return go_on;
}

static const char *find_byte(const char *from, const char *end, char c)
{
    const char *found = memchr(from, c, (size_t)(end - from));
    return found ? found : end;
}

bool sse_feed(struct sse_reader *r, struct str bytes,
              bool (*on_event)(void *arg, const struct sse_event *e), void *arg)
{
    if (bytes.n == 0)
        return true;
    const char *p = bytes.p, *end = p + bytes.n;
    if (r->saw_cr && *p == '\n')
        p++;
    r->saw_cr = false;
    /* Both searches remember their last position: a stream with one kind of line end costs one
     * pass. */
    const char *lf = find_byte(p, end, '\n'), *cr = find_byte(p, end, '\r');
    while (p < end) {
        if (lf < p)
            lf = find_byte(p, end, '\n');
        if (cr < p)
            cr = find_byte(p, end, '\r');
        const char *stop = lf < cr ? lf : cr;
        struct str part = str_n(p, (size_t)(stop - p));
        if (stop == end)
            return buf_try_add(&r->line, part.p, part.n);
        if (!end_line(r, part, on_event, arg))
            return false;
        p = stop + 1;
        if (stop == cr && p == end)
            r->saw_cr = true;
        else if (stop == cr && *p == '\n')
            p++;
    }
    return true;
}

/* Cuts the next line off *rest, at CR, LF or CR LF; *rest is absent after the last. */
static struct str next_line(struct str *rest)
{
    size_t n = 0;
    while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
        n++;
    struct str line = str_n(rest->p, n);
    if (n == rest->n) {
        *rest = STR_NONE;
        return line;
    }
    n += rest->p[n] == '\r' && n + 1 < rest->n && rest->p[n + 1] == '\n' ? 2 : 1;
    *rest = str_n(rest->p + n, rest->n - n);
    return line;
}

static void write_lines(struct buf *out, const char *field, struct str text)
{
    struct str rest = text.p ? text : STR("");
    while (rest.p) {
        struct str line = next_line(&rest);
        buf_addz(out, field);
        buf_addstr(out, line);
        buf_addc(out, '\n');
    }
}

static bool is_one_line(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\r' || s.p[i] == '\n' || s.p[i] == '\0')
            return false;
    }
    return true;
}

void sse_write(struct buf *out, struct str type, struct str id, struct str data)
{
    assert(is_one_line(type) && is_one_line(id));
    if (type.p)
        write_lines(out, "event: ", type);
    if (id.p)
        write_lines(out, "id: ", id);
    write_lines(out, "data: ", data);
    buf_addc(out, '\n');
}

void sse_write_retry(struct buf *out, uint64_t ms)
{
    buf_addz(out, "retry: ");
    buf_addu(out, ms);
    buf_addc(out, '\n');
}

void sse_write_comment(struct buf *out, struct str text)
{
    write_lines(out, ": ", text);
    buf_addc(out, '\n');
}
