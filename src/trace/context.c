/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes `traceparent`.  Versions above 00 may have further members, which are ignored, as
 * the specification says; uppercase digits, zero ids and version ff are invalid. */
#include "trace/context.h"

#include "base/random.h"

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *text, size_t n, uint8_t *ret)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool is_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

bool trace_context_parse(struct str text, struct trace_context *ret)
{
    struct trace_context c;
    uint8_t version;

    if (text.n < TRACE_PARENT_TEXT - 1 || text.n > TRACE_STATE_MAX || text.p[2] != '-' ||
        text.p[35] != '-' || text.p[52] != '-')
        return false;
    if (!read_hex(text.p, 1, &version) || version == 0xff ||
        !read_hex(text.p + 3, 16, c.trace_id) || !read_hex(text.p + 36, 8, c.span_id) ||
        !read_hex(text.p + 53, 1, &c.flags))
        return false;
    if (text.n > TRACE_PARENT_TEXT - 1 && (version == 0 || text.p[55] != '-'))
        return false;
    if (is_zero(c.trace_id, sizeof(c.trace_id)) || is_zero(c.span_id, sizeof(c.span_id)) ||
        !trace_state_is_valid(text))
        return false;
    c.flags &= TRACE_SAMPLED;
    *ret = c;
    return true;
}

static char *write_hex(char *to, const uint8_t *from, size_t n)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        *to++ = hex[from[i] >> 4];
        *to++ = hex[from[i] & 15];
    }
    return to;
}

void trace_context_format(const struct trace_context *c, char ret_text[TRACE_PARENT_TEXT])
{
    char *p = ret_text;

    memcpy(p, "00-", 3);
    p = write_hex(p + 3, c->trace_id, sizeof(c->trace_id));
    *p++ = '-';
    p = write_hex(p, c->span_id, sizeof(c->span_id));
    *p++ = '-';
    p = write_hex(p, &c->flags, 1);
    *p = '\0';
}

bool trace_state_is_valid(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || (unsigned char)text.p[i] >= 0x7f)
            return false;
    return text.n > 0 && text.n <= TRACE_STATE_MAX && str_trim(text).n == text.n;
}

/* Ids must not be zero. */
static void random_id(uint8_t *p, size_t n)
{
    do
        random_bytes(p, n);
    while (is_zero(p, n));
}

struct trace_context trace_context_new(void)
{
    struct trace_context c = {.flags = TRACE_SAMPLED};

    random_id(c.trace_id, sizeof(c.trace_id));
    random_id(c.span_id, sizeof(c.span_id));
    return c;
}

struct trace_context trace_context_child(const struct trace_context *of)
{
    struct trace_context c = *of;

    random_id(c.span_id, sizeof(c.span_id));
    return c;
}
