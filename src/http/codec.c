/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of requests and responses: bytes in, spans out.
 *
 * One pass, left to right.  The first byte that makes an error certain decides it.  So a head that
 * arrives in pieces gets the same result as a head that arrives whole: a prefix of a good head is
 * MORE, a prefix of a bad head is MORE or already the same BAD.  Limits belong to that order too,
 * so nothing beyond HTTP_MAX_HEAD is read.
 *
 * Where RFC 9112 lets a recipient be lenient (empty lines before a request, bare LF, folded lines,
 * equal Content-Length twice, blanks around a colon), this parser rejects: a proxy in front or a
 * server behind may be lenient in another way, and the difference allows request smuggling.
 * Chunked bodies are in chunks.c, percent-encoding and small lists in fields.c. */
#include "http/codec.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MAX_METHOD 20
#define MAX_HOST 261 /* a name of 255 bytes, a colon and a port */
#define MAX_LENGTH ((uint64_t)INT64_MAX)

enum {
    BYTE_TOKEN = 1,      /* header names, except '_' */
    BYTE_UNDERSCORE = 2, /* separate, so that dropping such names costs nothing */
    BYTE_TARGET = 4,     /* visible bytes that honest clients do not encode; no '#' */
    BYTE_HOST = 8,       /* names and IPv4 numbers */
    BYTE_METHOD = 16,
};
#define WORD (BYTE_TOKEN | BYTE_TARGET | BYTE_HOST)
#define MARK (BYTE_TOKEN | BYTE_TARGET)

static const uint8_t byte_kinds[256] = {
    ['!'] = MARK,
    ['#'] = BYTE_TOKEN,
    ['$' ... '\''] = MARK,
    ['('] = BYTE_TARGET,
    [')'] = BYTE_TARGET,
    ['*'] = MARK,
    ['+'] = MARK,
    [','] = BYTE_TARGET,
    ['-'] = WORD | BYTE_METHOD,
    ['.'] = WORD,
    ['/'] = BYTE_TARGET,
    ['0' ... '9'] = WORD,
    [':'] = BYTE_TARGET,
    [';'] = BYTE_TARGET,
    ['='] = BYTE_TARGET,
    ['?'] = BYTE_TARGET,
    ['@'] = BYTE_TARGET,
    ['A' ... 'Z'] = WORD | BYTE_METHOD,
    ['['] = BYTE_TARGET,
    ['\\'] = BYTE_TARGET,
    [']'] = BYTE_TARGET,
    ['^'] = MARK,
    ['_'] = BYTE_UNDERSCORE | BYTE_TARGET | BYTE_HOST,
    ['`'] = MARK,
    ['a' ... 'z'] = WORD,
    ['{'] = BYTE_TARGET,
    ['|'] = MARK,
    ['}'] = BYTE_TARGET,
    ['~'] = MARK,
};

/* The state of one pass; `p` is the first byte not yet accepted. */
struct scan {
    const char *p, *end;
    struct http_fault *fault;
    struct str authority; /* of an absolute-form target */
    unsigned n_specials;  /* how many rows of `specials` apply */
    unsigned lines;       /* header lines, dropped ones included */
    bool says_close, says_keep_alive;
};

static enum http_parse refuse(struct scan *s, int status, const char *reason)
{
    *s->fault = (struct http_fault){.status = status, .reason = reason};
    return HTTP_PARSE_BAD;
}

static inline bool byte_is(char c, unsigned kinds)
{
    return byte_kinds[(unsigned char)c] & kinds;
}

/* Skips letters, digits and '-', which make up nearly all names, in steps of 16.  The table then
 * judges the byte at which it stops. */
static inline const char *skip_words(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i small = _mm_set1_epi8(0x20), a = _mm_set1_epi8('a'), z = _mm_set1_epi8('z' - 'a'),
                  zero = _mm_set1_epi8('0'), nine = _mm_set1_epi8(9), dash = _mm_set1_epi8('-');
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        __m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, small), a);
        __m128i digit = _mm_sub_epi8(bytes, zero);
        /* x <= limit, unsigned, is min(x, limit) == x. */
        letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, z), letter);
        digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, nine), digit);
        __m128i word = _mm_or_si128(_mm_or_si128(letter, digit), _mm_cmpeq_epi8(bytes, dash));
        unsigned others = (unsigned)_mm_movemask_epi8(word) ^ 0xffff;
        if (others)
            return p + __builtin_ctz(others);
        p += 16;
    }
#endif
    (void)end;
    return p;
}

/* Takes the longest run of `kinds`; if s->p == s->end afterwards, the run may continue. */
static inline struct str take(struct scan *s, unsigned kinds)
{
    const char *from = s->p, *p = from;
    while (p < s->end && byte_is(*p, kinds))
        p++;
    s->p = p;
    return str_n(from, (size_t)(p - from));
}

static inline struct str take_token(struct scan *s)
{
    const char *from = s->p;
    s->p = skip_words(from, s->end);
    take(s, BYTE_TOKEN);
    return str_n(from, (size_t)(s->p - from));
}

/* Returns the first byte that a header value may not contain: a control byte other than HTAB, or
 * DEL.  CR is one, so this also finds the end of the line. */
static const char *skip_value(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(0x1f), tab = _mm_set1_epi8('\t'), del = _mm_set1_epi8(0x7f);
    for (; end - p >= 16; p += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, space), bytes);
        control = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, tab), control);
        control = _mm_or_si128(control, _mm_cmpeq_epi8(bytes, del));
        int mask = _mm_movemask_epi8(control);
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
#endif
    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            break;
    }
    return p;
}

/* Compares without case.  `word` is small letters and '-', of a.n bytes; `a` has no CR, the one
 * byte that setting the lower-case bit would turn into '-'. */
static inline bool is_word(struct str a, const char *word)
{
    for (size_t i = 0; i < a.n; i++) {
        if ((a.p[i] | 0x20) != word[i])
            return false;
    }
    return true;
}

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static enum http_parse take_line_end(struct scan *s, const char *reason)
{
    if (s->p == s->end)
        return HTTP_PARSE_MORE;
    if (*s->p != '\r')
        return refuse(s, 400, *s->p == '\n' ? "A line must end with CR LF, not LF alone." : reason);
    if (s->p + 1 == s->end)
        return HTTP_PARSE_MORE;
    if (s->p[1] != '\n')
        return refuse(s, 400, "CR is allowed only before LF.");
    s->p += 2;
    return HTTP_PARSE_OK;
}

/* Reads "HTTP/1.1"; the digits are judged only when all eight bytes are there. */
static enum http_parse take_version(struct scan *s, struct http_head *h)
{
    static const char shape[] = "HTTP/0.0";
    size_t left = (size_t)(s->end - s->p);
    for (size_t i = 0; i < sizeof(shape) - 1; i++) {
        if (i == left)
            return HTTP_PARSE_MORE;
        bool is_good = shape[i] == '0' ? s->p[i] >= '0' && s->p[i] <= '9' : s->p[i] == shape[i];
        if (!is_good)
            return refuse(s, 400, "The version must be written HTTP/1.1 or HTTP/1.0.");
    }
    if (s->p[5] != '1' || s->p[7] > '1')
        return refuse(s, 505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
    h->minor = s->p[7] - '0';
    s->p += sizeof(shape) - 1;
    return HTTP_PARSE_OK;
}

static bool port_is_valid(struct str port)
{
    uint64_t value;
    return port.n <= 5 && str_to_u64(port, 65535, &value);
}

/* name, IPv4 or [IPv6], each with an optional port.  No user, no blanks, no encodings, no empty
 * label: nothing that another parser could interpret differently, or as the beginning of a path. */
static bool host_is_valid(struct str host)
{
    if (host.n == 0 || host.n > MAX_HOST)
        return false;
    size_t i = 0;
    if (host.p[0] == '[') {
        for (i = 1; i < host.n && host.p[i] != ']'; i++) {
            char c = host.p[i];
            bool is_hex = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
            if (!is_hex && c != ':' && c != '.')
                return false;
        }
        if (i < 3 || i == host.n)
            return false;
        i++;
    } else {
        for (; i < host.n && byte_is(host.p[i], BYTE_HOST); i++) {
            if (host.p[i] == '.' && (i == 0 || host.p[i - 1] == '.'))
                return false;
        }
        if (i == 0)
            return false;
    }
    if (i == host.n)
        return true;
    return host.p[i] == ':' && port_is_valid(str_n(host.p + i + 1, host.n - i - 1));
}

/* Reduces "http://host/path" to "/path"; the authority is kept for the comparison with Host. */
static enum http_parse reduce_absolute_form(struct scan *s, struct http_head *h)
{
    struct str target = h->target;
    size_t scheme = 0;
    if (target.n > 7 && str_ieq(str_n(target.p, 7), STR("http://")))
        scheme = 7;
    else if (target.n > 8 && str_ieq(str_n(target.p, 8), STR("https://")))
        scheme = 8;
    else
        return refuse(s, 400,
                      "The target must be a path that begins with a slash, or an http URL.");
    struct str rest = str_n(target.p + scheme, target.n - scheme);
    size_t host = str_find(rest, '/');
    s->authority = str_n(rest.p, host);
    if (!host_is_valid(s->authority))
        return refuse(s, 400, "The host in the target is not a valid host.");
    /* Without a path, the slash before the authority is used: spans stay inside the bytes. */
    h->target = host < rest.n ? str_n(rest.p + host, rest.n - host) : str_n(rest.p - 1, 1);
    return HTTP_PARSE_OK;
}

static enum http_parse check_target(struct scan *s, struct http_head *h)
{
    if (str_eq(h->method, STR("CONNECT")))
        return refuse(s, 405, "CONNECT is not offered: this is not a tunnel.");
    if (str_eq(h->target, STR("*")))
        return refuse(s, 400, "The target * is not offered: ask for a path.");
    if (h->target.p[0] != '/') {
        enum http_parse verdict = reduce_absolute_form(s, h);
        if (verdict != HTTP_PARSE_OK)
            return verdict;
    }
    size_t path = str_find(h->target, '?');
    h->path = str_n(h->target.p, path);
    if (path < h->target.n)
        h->query = str_n(h->target.p + path + 1, h->target.n - path - 1);
    return HTTP_PARSE_OK;
}

static enum http_parse parse_request_line(struct scan *s, struct http_head *h)
{
    h->method = take(s, BYTE_METHOD);
    if (h->method.n > MAX_METHOD)
        return refuse(s, 400, "The method is longer than 20 bytes.");
    if (s->p == s->end)
        return HTTP_PARSE_MORE;
    if (h->method.n == 0 || *s->p != ' ')
        return refuse(s, 400, "A request must begin with a method in capitals and one space.");
    s->p++;
    h->target = take(s, BYTE_TARGET);
    if (h->target.n > HTTP_MAX_TARGET)
        return refuse(s, 414, "The target is longer than 8 KiB.");
    if (s->p == s->end)
        return HTTP_PARSE_MORE;
    if (h->target.n == 0 || *s->p != ' ')
        return refuse(
            s, 400,
            "The target must be visible ASCII, percent-encoded, and followed by one space.");
    s->p++;
    enum http_parse verdict = take_version(s, h);
    if (verdict == HTTP_PARSE_OK)
        verdict = take_line_end(s, "The version must end the request line.");
    return verdict == HTTP_PARSE_OK ? check_target(s, h) : verdict;
}

static enum http_parse parse_status_line(struct scan *s, struct http_head *h)
{
    enum http_parse verdict = take_version(s, h);
    if (verdict != HTTP_PARSE_OK)
        return verdict;
    static const char shape[] = " 000";
    for (size_t i = 0; i < sizeof(shape) - 1; i++, s->p++) {
        if (s->p == s->end)
            return HTTP_PARSE_MORE;
        char c = *s->p;
        bool is_good =
            shape[i] == ' ' ? c == ' ' : c >= (i == 1 ? '1' : '0') && c <= (i == 1 ? '5' : '9');
        if (!is_good)
            return refuse(s, 400, "The status must be three digits from 100 to 599.");
    }
    h->status = (s->p[-3] - '0') * 100 + (s->p[-2] - '0') * 10 + (s->p[-1] - '0');
    /* Many servers leave out the space before an empty reason. */
    if (s->p < s->end && *s->p == ' ')
        s->p = skip_value(s->p, s->end);
    return take_line_end(s, "The reason holds a control byte.");
}

static enum http_parse note_content_length(struct scan *s, struct http_head *h, struct str value)
{
    if (h->framing == HTTP_CHUNKED)
        return refuse(s, 400, "Content-Length is not allowed with Transfer-Encoding.");
    if (h->framing == HTTP_LENGTH)
        return refuse(s, 400, "Content-Length may be given only once.");
    if (!str_to_u64(value, MAX_LENGTH, &h->content_length))
        return refuse(s, 400, "Content-Length must be decimal digits below 2^63.");
    h->framing = HTTP_LENGTH;
    return HTTP_PARSE_OK;
}

static enum http_parse note_transfer_encoding(struct scan *s, struct http_head *h, struct str value)
{
    if (h->framing == HTTP_LENGTH)
        return refuse(s, 400, "Transfer-Encoding is not allowed with Content-Length.");
    if (h->framing == HTTP_CHUNKED)
        return refuse(s, 400, "Transfer-Encoding may be given only once.");
    if (h->minor == 0)
        return refuse(s, 400, "Transfer-Encoding does not exist in HTTP/1.0.");
    if (!str_ieq(value, STR("chunked")))
        return refuse(s, 400, "The only Transfer-Encoding is chunked.");
    h->framing = HTTP_CHUNKED;
    return HTTP_PARSE_OK;
}

static enum http_parse note_connection(struct scan *s, unused_arg struct http_head *h,
                                       struct str value)
{
    if (value.n == 10 && is_word(value, "keep-alive")) {
        s->says_keep_alive = true; /* the most common value */
        return HTTP_PARSE_OK;
    }
    s->says_close |= http_list_has(value, STR("close"));
    s->says_keep_alive |= http_list_has(value, STR("keep-alive"));
    return HTTP_PARSE_OK;
}

static enum http_parse note_host(struct scan *s, struct http_head *h, struct str value)
{
    if (h->host.p)
        return refuse(s, 400, "Host may be given only once.");
    if (!host_is_valid(value))
        return refuse(s, 400, "Host must be a host name or address with an optional port.");
    h->host = value;
    return HTTP_PARSE_OK;
}

static enum http_parse note_expect(struct scan *s, struct http_head *h, struct str value)
{
    if (h->expect_continue || !str_ieq(value, STR("100-continue")))
        return refuse(s, 417, "The only expectation that can be met is 100-continue, once.");
    h->expect_continue = true;
    return HTTP_PARSE_OK;
}

/* Headers that affect the message itself; responses use only the first RESPONSE_SPECIALS.  Their
 * lengths alone tell most other headers apart. */
#define SPECIAL_LENGTHS (1u << 14 | 1u << 17 | 1u << 10 | 1u << 4 | 1u << 6)
#define RESPONSE_SPECIALS 3
static const struct special {
    struct str name;
    enum http_parse (*note)(struct scan *s, struct http_head *h, struct str value);
} specials[] = {
    {{"content-length", 14}, note_content_length},
    {{"transfer-encoding", 17}, note_transfer_encoding},
    {{"connection", 10}, note_connection},
    {{"host", 4}, note_host},
    {{"expect", 6}, note_expect},
};

/* The RFC allows tabs around a value as blanks, but some servers make them part of the value. */
static bool has_tab_around(struct str value)
{
    for (const char *p = value.p - 1; *p != ':'; p--) {
        if (*p == '\t')
            return true;
    }
    for (const char *p = value.p + value.n; *p != '\r'; p++) {
        if (*p == '\t')
            return true;
    }
    return false;
}

static enum http_parse note_header(struct scan *s, struct http_head *h, struct str name,
                                   struct str value)
{
    h->headers[h->n_headers++] = (struct http_header){name, value};
    h->marks |= http_header_mark(name);
    if (name.n >= 32 || !(SPECIAL_LENGTHS >> name.n & 1))
        return HTTP_PARSE_OK;
    for (unsigned i = 0; i < s->n_specials; i++) {
        if (specials[i].name.n != name.n || !is_word(name, specials[i].name.p))
            continue;
        if (has_tab_around(value))
            return refuse(s, 400, "Tabs may not surround the value of a framing header.");
        return specials[i].note(s, h, value);
    }
    return HTTP_PARSE_OK;
}

static enum http_parse parse_header_line(struct scan *s, struct http_head *h)
{
    struct str name = take_token(s);
    bool is_dropped = s->p < s->end && *s->p == '_';
    if (is_dropped)
        name.n += take(s, BYTE_TOKEN | BYTE_UNDERSCORE).n;
    if (s->p == s->end)
        return HTTP_PARSE_MORE;
    if (name.n == 0 && is_blank(*s->p))
        return refuse(s, 400, "A header may not be folded over several lines.");
    if (name.n == 0 || *s->p != ':')
        return refuse(s, 400,
                      "A header must be a name, a colon without blanks before it, and a value.");
    s->p++;
    while (s->p < s->end && is_blank(*s->p))
        s->p++;
    const char *from = s->p, *to = skip_value(from, s->end);
    s->p = to;
    enum http_parse verdict = take_line_end(s, "A header value holds a control byte.");
    if (verdict != HTTP_PARSE_OK || is_dropped)
        return verdict;
    while (to > from && is_blank(to[-1]))
        to--;
    return note_header(s, h, name, str_n(from, (size_t)(to - from)));
}

static enum http_parse parse_header_lines(struct scan *s, struct http_head *h)
{
    while (s->p < s->end && *s->p != '\r') {
        if (s->lines++ == HTTP_MAX_HEADERS)
            return refuse(s, 431, "There are more than 100 headers.");
        enum http_parse verdict = parse_header_line(s, h);
        if (verdict != HTTP_PARSE_OK)
            return verdict;
    }
    return take_line_end(s, NULL);
}

static enum http_parse finish(struct scan *s, struct http_head *h)
{
    h->keep_alive = !s->says_close && (h->minor == 1 || s->says_keep_alive);
    if (h->framing == HTTP_LENGTH && h->content_length == 0)
        h->framing = HTTP_NO_BODY;
    return HTTP_PARSE_OK;
}

static enum http_parse finish_request(struct scan *s, struct http_head *h)
{
    if (!h->host.p && h->minor == 1)
        return refuse(s, 400, "An HTTP/1.1 request must have a Host header.");
    if (h->host.p && s->authority.p && !str_ieq(h->host, s->authority))
        return refuse(s, 400, "Host and the host in the target must agree.");
    if (!h->host.p)
        h->host = s->authority;
    finish(s, h);
    /* Without a body there is nothing to continue with, and HTTP/1.0 has no 100-continue. */
    if (h->framing == HTTP_NO_BODY || h->minor == 0)
        h->expect_continue = false;
    return HTTP_PARSE_OK;
}

static enum http_parse finish_response(struct scan *s, struct http_head *h, bool to_head)
{
    enum http_framing said = h->framing;
    finish(s, h);
    if (to_head || h->status < 200 || h->status == 204 || h->status == 304) {
        h->framing = HTTP_NO_BODY;
    } else if (said == HTTP_NO_BODY) {
        h->framing = HTTP_UNTIL_CLOSE;
        h->keep_alive = false;
    }
    return HTTP_PARSE_OK;
}

/* Resets everything but the headers, of which n_headers are valid: clearing 3 KiB would cost more
 * than parsing. */
static void head_reset(struct http_head *h)
{
    h->method = h->target = h->path = h->query = h->host = STR_NONE;
    h->status = h->minor = 0;
    h->n_headers = 0;
    h->marks = 0;
    h->framing = HTTP_NO_BODY;
    h->content_length = 0;
    h->keep_alive = h->expect_continue = false;
}

static struct scan scan_begin(struct str bytes, unsigned n_specials, struct http_fault *fault)
{
    size_t n = bytes.n < HTTP_MAX_HEAD ? bytes.n : HTTP_MAX_HEAD;
    const char *p = bytes.p ? bytes.p : "";
    return (struct scan){.p = p, .end = p + n, .fault = fault, .n_specials = n_specials};
}

/* A head that is incomplete at the maximum length is an error. */
static enum http_parse scan_end(struct scan *s, struct str bytes, enum http_parse verdict,
                                size_t *ret_used)
{
    if (verdict == HTTP_PARSE_MORE && bytes.n >= HTTP_MAX_HEAD)
        return refuse(s, 431, "The head is longer than 32 KiB.");
    if (verdict == HTTP_PARSE_OK)
        *ret_used = (size_t)(s->p - bytes.p);
    return verdict;
}

enum http_parse http_parse_request(struct str bytes, struct http_head *ret, size_t *ret_used,
                                   struct http_fault *ret_fault)
{
    struct scan s = scan_begin(bytes, countof(specials), ret_fault);
    head_reset(ret);
    enum http_parse verdict = parse_request_line(&s, ret);
    if (verdict == HTTP_PARSE_OK)
        verdict = parse_header_lines(&s, ret);
    if (verdict == HTTP_PARSE_OK)
        verdict = finish_request(&s, ret);
    return scan_end(&s, bytes, verdict, ret_used);
}

enum http_parse http_parse_response(struct str bytes, bool to_head, struct http_head *ret,
                                    size_t *ret_used, struct http_fault *ret_fault)
{
    struct scan s = scan_begin(bytes, RESPONSE_SPECIALS, ret_fault);
    head_reset(ret);
    enum http_parse verdict = parse_status_line(&s, ret);
    if (verdict == HTTP_PARSE_OK)
        verdict = parse_header_lines(&s, ret);
    if (verdict == HTTP_PARSE_OK)
        verdict = finish_response(&s, ret, to_head);
    return scan_end(&s, bytes, verdict, ret_used);
}
