/* SPDX-License-Identifier: Apache-2.0 */
/* The chunked coding (RFC 9112 §7.1) as one table: state and kind of byte give the next state; a
 * byte without an entry is an error.  Only CR LF ends a line.  Extensions follow the grammar
 * without its optional blanks and are ignored.  Trailers are checked and dropped, so that they
 * never act as headers.  Outside of data the decoder sees one byte at a time, so the result does
 * not depend on how a body is split into reads. */
#include "http/codec.h"

#define MAX_SIZE_LINE 256
#define MAX_TRAILERS (8 * 1024)

enum kind {
    KIND_CONTROL,
    KIND_HEX,
    KIND_TOKEN, /* the other token bytes */
    KIND_BLANK,
    KIND_SEMICOLON,
    KIND_EQUALS,
    KIND_QUOTE,
    KIND_BACKSLASH,
    KIND_COLON,
    KIND_OTHER, /* visible but not a token byte, or above ASCII */
    KIND_CR,
    KIND_LF,
    KIND_COUNT
};

static const uint8_t kinds[256] = {
    ['\t'] = KIND_BLANK,          ['\n'] = KIND_LF,           ['\r'] = KIND_CR,
    [' '] = KIND_BLANK,           ['!'] = KIND_TOKEN,         ['"'] = KIND_QUOTE,
    ['#' ... '\''] = KIND_TOKEN,  ['(' ... ')'] = KIND_OTHER, ['*' ... '+'] = KIND_TOKEN,
    [','] = KIND_OTHER,           ['-' ... '.'] = KIND_TOKEN, ['/'] = KIND_OTHER,
    ['0' ... '9'] = KIND_HEX,     [':'] = KIND_COLON,         [';'] = KIND_SEMICOLON,
    ['<'] = KIND_OTHER,           ['='] = KIND_EQUALS,        ['>' ... '@'] = KIND_OTHER,
    ['A' ... 'F'] = KIND_HEX,     ['G' ... 'Z'] = KIND_TOKEN, ['['] = KIND_OTHER,
    ['\\'] = KIND_BACKSLASH,      [']'] = KIND_OTHER,         ['^' ... '`'] = KIND_TOKEN,
    ['a' ... 'f'] = KIND_HEX,     ['g' ... 'z'] = KIND_TOKEN, ['{'] = KIND_OTHER,
    ['|'] = KIND_TOKEN,           ['}'] = KIND_OTHER,         ['~'] = KIND_TOKEN,
    [0x80 ... 0xff] = KIND_OTHER,
};

enum state {
    FAILED,
    SIZE_FIRST,
    SIZE,
    NAME_FIRST, /* of an extension */
    NAME,
    VALUE_FIRST,
    VALUE,
    QUOTED,
    QUOTED_PAIR,
    QUOTED_END,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    COMPLETE,
    STATE_COUNT
};

#define ANY_TEXT(to)                                                                               \
    [KIND_HEX] = (to), [KIND_TOKEN] = (to), [KIND_BLANK] = (to), [KIND_SEMICOLON] = (to),          \
    [KIND_EQUALS] = (to), [KIND_COLON] = (to), [KIND_OTHER] = (to)
#define ANY_TOKEN(to) [KIND_HEX] = (to), [KIND_TOKEN] = (to)

static const uint8_t next_state[STATE_COUNT][KIND_COUNT] = {
    [SIZE_FIRST] = {[KIND_HEX] = SIZE},
    [SIZE] = {[KIND_HEX] = SIZE, [KIND_SEMICOLON] = NAME_FIRST, [KIND_CR] = SIZE_LF},
    [NAME_FIRST] = {ANY_TOKEN(NAME)},
    [NAME] = {ANY_TOKEN(NAME), [KIND_EQUALS] = VALUE_FIRST, [KIND_SEMICOLON] = NAME_FIRST,
              [KIND_CR] = SIZE_LF},
    [VALUE_FIRST] = {ANY_TOKEN(VALUE), [KIND_QUOTE] = QUOTED},
    [VALUE] = {ANY_TOKEN(VALUE), [KIND_SEMICOLON] = NAME_FIRST, [KIND_CR] = SIZE_LF},
    [QUOTED] = {ANY_TEXT(QUOTED), [KIND_BACKSLASH] = QUOTED_PAIR, [KIND_QUOTE] = QUOTED_END},
    [QUOTED_PAIR] = {ANY_TEXT(QUOTED), [KIND_BACKSLASH] = QUOTED, [KIND_QUOTE] = QUOTED},
    [QUOTED_END] = {[KIND_SEMICOLON] = NAME_FIRST, [KIND_CR] = SIZE_LF},
    [SIZE_LF] = {[KIND_LF] = DATA}, /* TRAILER_FIRST after the last chunk */
    [DATA_CR] = {[KIND_CR] = DATA_LF},
    [DATA_LF] = {[KIND_LF] = SIZE_FIRST},
    [TRAILER_FIRST] = {ANY_TOKEN(TRAILER_NAME), [KIND_CR] = LAST_LF},
    [TRAILER_NAME] = {ANY_TOKEN(TRAILER_NAME), [KIND_COLON] = TRAILER_VALUE},
    [TRAILER_VALUE] = {ANY_TEXT(TRAILER_VALUE), [KIND_QUOTE] = TRAILER_VALUE,
                       [KIND_BACKSLASH] = TRAILER_VALUE, [KIND_CR] = TRAILER_LF},
    [TRAILER_LF] = {[KIND_LF] = TRAILER_FIRST},
    [LAST_LF] = {[KIND_LF] = COMPLETE},
};

static const char *const complaints[STATE_COUNT] = {
    [FAILED] = "The chunked body was refused before.",
    [SIZE_FIRST] = "A chunk must begin with its size in hexadecimal digits.",
    [SIZE] = "A chunk size must be hexadecimal digits, then an extension or CR LF.",
    [NAME_FIRST] = "A chunk extension must have a name.",
    [NAME] = "A chunk extension's name contains a byte that is not allowed.",
    [VALUE_FIRST] = "A chunk extension's value is missing.",
    [VALUE] = "A chunk extension's value contains a byte that is not allowed.",
    [QUOTED] = "A quoted chunk extension holds a control byte.",
    [QUOTED_PAIR] = "A quoted chunk extension holds a control byte.",
    [QUOTED_END] = "After a quoted chunk extension only a semicolon or CR LF may follow.",
    [SIZE_LF] = "CR is allowed only before LF.",
    [DATA_CR] = "A chunk's data must be followed by CR LF.",
    [DATA_LF] = "A chunk's data must be followed by CR LF.",
    [TRAILER_FIRST] = "A trailer must begin with a name.",
    [TRAILER_NAME] = "A trailer's name contains a byte that is not allowed.",
    [TRAILER_VALUE] = "A trailer holds a control byte.",
    [TRAILER_LF] = "CR is allowed only before LF.",
    [LAST_LF] = "CR is allowed only before LF.",
};

static unsigned hex_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
}

static enum http_parse refuse(struct http_chunks *c, int status, const char *reason,
                              struct http_fault *ret_fault)
{
    c->state = FAILED;
    *ret_fault = (struct http_fault){.status = status, .reason = reason};
    return HTTP_PARSE_BAD;
}

/* Handles one byte outside of data. */
static enum http_parse step(struct http_chunks *c, char byte, struct http_fault *ret_fault)
{
    unsigned was = c->state;
    unsigned now = next_state[was][kinds[(unsigned char)byte]];
    if (now == FAILED)
        return refuse(c, 400, complaints[was], ret_fault);
    if (now == SIZE) {
        if (c->left > (uint64_t)INT64_MAX >> 4)
            return refuse(c, 400, "A chunk size must be below 2^63.", ret_fault);
        c->left = c->left << 4 | hex_value(byte);
    }
    bool is_size_line = now >= SIZE && now <= QUOTED_END;
    if (is_size_line && ++c->line > MAX_SIZE_LINE)
        return refuse(c, 400, "A chunk's size line is longer than 256 bytes.", ret_fault);
    bool is_trailer = was >= TRAILER_FIRST;
    if (is_trailer && now != LAST_LF && now != COMPLETE && ++c->trailer > MAX_TRAILERS)
        return refuse(c, 431, "The trailers are longer than 8 KiB.", ret_fault);
    if (was == SIZE_LF) {
        c->line = 0;
        now = c->left ? DATA : TRAILER_FIRST;
    }
    c->state = now;
    return now == COMPLETE ? HTTP_PARSE_OK : HTTP_PARSE_MORE;
}

void http_chunks_init(struct http_chunks *c)
{
    *c = (struct http_chunks){.state = SIZE_FIRST};
}

enum http_parse http_chunks_feed(struct http_chunks *c, struct str bytes, size_t *ret_used,
                                 struct str *ret_data, struct http_fault *ret_fault)
{
    if (!bytes.p)
        bytes = STR("");
    *ret_used = 0;
    *ret_data = str_n(bytes.p, 0);
    if (c->state == FAILED)
        return refuse(c, 400, complaints[FAILED], ret_fault);
    enum http_parse verdict = c->state == COMPLETE ? HTTP_PARSE_OK : HTTP_PARSE_MORE;
    size_t i = 0;
    while (verdict == HTTP_PARSE_MORE && c->state != DATA && i < bytes.n)
        verdict = step(c, bytes.p[i++], ret_fault);
    if (c->state == DATA && i < bytes.n) {
        size_t n = bytes.n - i < c->left ? bytes.n - i : (size_t)c->left;
        *ret_data = str_n(bytes.p + i, n);
        i += n;
        c->left -= n;
        if (c->left == 0)
            c->state = DATA_CR;
    }
    *ret_used = i;
    return verdict;
}
