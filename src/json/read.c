/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: bytes to a tape of spans.  One pass, no recursion, nothing copied.  With SSE2,
 * strings are skipped sixteen bytes at a time; bytes that are not plain ASCII leave that loop and
 * are checked byte by byte.
 *
 * Flow: value() takes one value or opens a container; after_value() closes containers and takes
 * commas until the next value is due.  Invariants: p <= end; stack[0 .. depth-1] are the open
 * containers, outermost first; nodes[0 .. n-1] are complete, except `end` and `next` of the open
 * containers.  A failed step has set `reason` and left p at the offending byte. */
#include "json/read_impl.h"

#include "base/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define DEEPEST 256 /* hard limit: the size of the stack below */
#define FIRST_NODES 96

struct level {
    uint64_t filter; /* one bit per kind of key seen: duplicates always collide */
    uint32_t node;
    uint32_t keys;
    bool suspicious;
};

struct parser {
    const char *p, *end;
    struct js_node *nodes;
    uint32_t n, cap;
    unsigned depth;
    unsigned deepest;
    unsigned flags;
    bool duplicate, limit;
    const char *reason;
    struct str text;
    struct arena *mem;
    const struct js_limits *limits;
    struct level stack[DEEPEST]; /* last: not initialised */
};

const struct js_limits js_limits_request = {
    .depth = 64, .keys = 10000, .nodes = 1 << 20, .flags = JS_NO_DUPLICATES};
/* Half of 16 MiB: a document of 16 MiB cannot have more nodes. */
const struct js_limits js_limits_upstream = {.depth = 64, .keys = 10000, .nodes = 8 << 20};
const struct js_limits js_limits_config = {
    .depth = 64, .keys = 10000, .nodes = 1 << 20, .flags = JS_NO_DUPLICATES | JS_RELAXED};

static bool fail(struct parser *ps, const char *at, const char *reason)
{
    ps->p = at;
    ps->reason = at >= ps->end ? "the text ends too early" : reason;
    return false;
}

static bool fail_limit(struct parser *ps, const char *at, const char *reason)
{
    ps->p = at;
    ps->reason = reason;
    ps->limit = true;
    return false;
}

/* Returns 0 at the end, which no rule accepts. */
static inline unsigned char peek(const struct parser *ps)
{
    return likely(ps->p < ps->end) ? (unsigned char)*ps->p : 0;
}

static inline void skip_blanks(struct parser *ps)
{
    while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\n' || *ps->p == '\r' || *ps->p == '\t'))
        ps->p++;
}

/* Skips one comment.  Returns false when no comment begins here, or when it is not closed; the
 * slash then fails as a stray byte. */
static bool skip_comment(struct parser *ps)
{
    size_t left = (size_t)(ps->end - ps->p);
    const char *close;

    if (left < 2 || ps->p[0] != '/')
        return false;
    if (ps->p[1] == '/') {
        close = memchr(ps->p, '\n', left);
        ps->p = close ? close + 1 : ps->end;
        return true;
    }
    close = ps->p[1] == '*' ? memmem(ps->p + 2, left - 2, "*/", 2) : NULL;
    if (close)
        ps->p = close + 2;
    return close != NULL;
}

static __attribute__((noinline)) void skip_what_is_there(struct parser *ps)
{
    skip_blanks(ps);
    if (ps->flags & JS_RELAXED)
        while (skip_comment(ps))
            skip_blanks(ps);
}

/* Most messages have no blanks: only this test is inline. */
static inline void skip_space(struct parser *ps)
{
    if (unlikely(peek(ps) <= ' ' || (ps->flags & JS_RELAXED)))
        skip_what_is_there(ps);
}

static must_check bool grow(struct parser *ps)
{
    uint32_t cap = ps->cap ? ps->cap * 2 : FIRST_NODES;
    void *grown;

    if (ps->cap >= ps->limits->nodes)
        return fail_limit(ps, ps->p, "there are too many values in this message");
    if (!ps->cap && ps->text.n / 4 < FIRST_NODES)
        cap = (uint32_t)ps->text.n / 4 + 4;
    if (cap > ps->limits->nodes)
        cap = ps->limits->nodes;
    grown = arena_try_resize(ps->mem, ps->nodes, ps->cap * sizeof(*ps->nodes),
                             cap * sizeof(*ps->nodes));
    if (!grown)
        return fail_limit(ps, ps->p, "this message needs more memory than the limit");
    ps->nodes = grown;
    ps->cap = cap;
    return true;
}

static inline bool add_node(struct parser *ps, enum js_type type, const char *start,
                            const char *past, bool escaped)
{
    struct js_node *node;

    if (unlikely(ps->n == ps->cap) && !grow(ps))
        return false;
    node = &ps->nodes[ps->n++];
    node->start = (uint32_t)(start - ps->text.p);
    node->end = (uint32_t)(past - ps->text.p);
    node->next = ps->n;
    node->type = (uint8_t)type;
    node->escaped = escaped;
    return true;
}

/* Returns the first byte from p on that is not a plain string byte: a quote, a backslash, a control
 * byte or any byte beyond ASCII. */
static inline const char *skip_plain(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'),
                  space = _mm_set1_epi8(' ');
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* In a signed comparison, bytes from 0x80 on are below the blank too. */
        __m128i odd = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
            _mm_cmplt_epi8(bytes, space));
        unsigned mask = (unsigned)_mm_movemask_epi8(odd);
        if (mask)
            return p + __builtin_ctz(mask);
        p += 16;
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && (signed char)*p >= ' ')
        p++;
    return p;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the value of four hex digits at p, or -1. */
static long hex4(const char *p, const char *end)
{
    long value = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(p[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* p is at a backslash; returns the position after the escape, or NULL on failure. */
static const char *check_escape(struct parser *ps, const char *p)
{
    static const char simple[] = "\"\\/bfnrt";
    long unit;

    if (ps->end - p < 2)
        return fail(ps, ps->end, ""), NULL;
    if (p[1] != 'u')
        return p[1] && strchr(simple, p[1])
                   ? p + 2
                   : (fail(ps, p, "this escape sequence is not valid"), NULL);
    unit = hex4(p + 2, ps->end);
    if (unit < 0)
        return fail(ps, p, "\\u takes four hexadecimal digits"), NULL;
    if (unit < 0xd800 || unit > 0xdfff)
        return p + 6;
    if (unit <= 0xdbff && ps->end - p >= 12 && p[6] == '\\' && p[7] == 'u') {
        unit = hex4(p + 8, ps->end);
        if (unit >= 0xdc00 && unit <= 0xdfff)
            return p + 12;
    }
    return fail(ps, p, "one half of a surrogate pair is missing"), NULL;
}

/* Reads a string from `start` on; its first byte that is not plain is at p. */
static bool string_rest(struct parser *ps, const char *start, const char *p)
{
    bool escaped = false;
    uint32_t code;

    while (p == ps->end || *p != '"') {
        if (p == ps->end)
            return fail(ps, ps->end, "");
        if (*p == '\\') {
            escaped = true;
            p = check_escape(ps, p);
            if (!p)
                return false;
        } else if ((unsigned char)*p < 0x20) {
            return fail(ps, p, "control bytes in strings must be escaped");
        } else {
            size_t n = utf8_decode(p, ps->end, &code);
            if (n == 0)
                return fail(ps, p, "these bytes are not UTF-8");
            p += n;
            if (p < ps->end && (signed char)*p < 0)
                continue; /* usually more non-ASCII characters follow */
        }
        p = skip_plain(p, ps->end);
    }
    ps->p = p + 1;
    return add_node(ps, JS_STRING, start, p + 1, escaped);
}

/* ps->p is at the opening quote; adds the node and moves past the closing quote. */
static bool string(struct parser *ps)
{
    const char *start = ps->p, *p = skip_plain(start + 1, ps->end);

    if (unlikely(p == ps->end || *p != '"'))
        return string_rest(ps, start, p);
    ps->p = p + 1;
    return add_node(ps, JS_STRING, start, p + 1, false);
}

static inline const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

static bool number(struct parser *ps)
{
    const char *start = ps->p, *end = ps->end, *p = start + (*start == '-'), *digits = p;

    p = skip_digits(p, end);
    if (p == digits)
        return fail(ps, p, "a digit is expected here");
    if (*digits == '0' && p - digits > 1)
        return fail(ps, digits, "numbers have no leading zeros");
    if (p < end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        if (p == digits)
            return fail(ps, p, "a digit must follow the point");
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        digits = p;
        p = skip_digits(p, end);
        if (p == digits)
            return fail(ps, p, "a digit is expected in the exponent");
    }
    ps->p = p;
    return add_node(ps, JS_NUMBER, start, p, false);
}

static bool literal(struct parser *ps, const char *word, size_t n, enum js_type type)
{
    const char *start = ps->p;

    if ((size_t)(ps->end - start) < n || memcmp(start, word, n) != 0)
        return fail(ps, start,
                    "a value is expected here: object, array, string, number, true, false or null");
    ps->p += n;
    return add_node(ps, type, start, ps->p, false);
}

/* One bit out of 64 by length and outer bytes: equal keys have equal bits. */
static inline uint64_t key_bit(const char *start, size_t n)
{
    return 1ull << ((n * 7 + (unsigned char)start[1] * 5 + (unsigned char)start[n - 2] * 29) & 63);
}

/* Takes a key and its colon; the value comes next. */
static bool member(struct parser *ps, struct level *level)
{
    const char *start = ps->p;

    if (peek(ps) != '"')
        return fail(ps, ps->p, "a key in double quotes is expected here");
    if (++level->keys > ps->limits->keys)
        return fail_limit(ps, ps->p, "there are too many keys in this object");
    if (!string(ps))
        return false;
    if (ps->flags & JS_NO_DUPLICATES) {
        uint64_t bit = key_bit(start, (size_t)(ps->p - start));
        level->suspicious |= (level->filter & bit) || ps->nodes[ps->n - 1].escaped;
        level->filter |= bit;
    }
    skip_space(ps);
    if (peek(ps) != ':')
        return fail(ps, ps->p, "a colon must follow the key");
    ps->p++;
    skip_space(ps);
    return true;
}

static bool check_duplicates(struct parser *ps, const struct level *level)
{
    const struct js_doc doc = {.text = ps->text, .nodes = ps->nodes, .n = ps->n};
    const struct js_node *twin =
        js_find_duplicate(&doc, &ps->nodes[level->node + 1], &ps->nodes[ps->n], level->keys);

    if (!twin)
        return true;
    ps->duplicate = true;
    return fail(ps, ps->text.p + twin->start, "this key occurs twice in one object");
}

/* ps->p is at the closing bracket of the innermost container. */
static bool close_container(struct parser *ps)
{
    const struct level *level = &ps->stack[ps->depth - 1];
    struct js_node *node = &ps->nodes[level->node];

    if (level->suspicious && level->keys > 1 && !check_duplicates(ps, level))
        return false;
    ps->p++;
    ps->depth--;
    node->end = (uint32_t)(ps->p - ps->text.p);
    node->next = ps->n;
    return true;
}

static inline char closing_of(const struct parser *ps, const struct level *level)
{
    return ps->nodes[level->node].type == JS_OBJECT ? '}' : ']';
}

/* Opens a container; *ret_due says whether a value is due inside it. */
static bool open_container(struct parser *ps, enum js_type type, bool *ret_due)
{
    struct level *level;

    if (ps->depth == ps->deepest)
        return fail_limit(ps, ps->p, "this is nested too deeply");
    if (!add_node(ps, type, ps->p, ps->p, false))
        return false;
    level = &ps->stack[ps->depth++];
    *level = (struct level){.node = ps->n - 1};
    ps->p++;
    skip_space(ps);
    *ret_due = peek(ps) != closing_of(ps, level);
    if (!*ret_due)
        return close_container(ps);
    return type == JS_ARRAY || member(ps, level);
}

/* *ret_due: a container was opened and its first value is due. */
static bool value(struct parser *ps, bool *ret_due)
{
    *ret_due = false;
    switch (peek(ps)) {
    case '"':
        return string(ps);
    case '{':
        return open_container(ps, JS_OBJECT, ret_due);
    case '[':
        return open_container(ps, JS_ARRAY, ret_due);
    case 't':
        return literal(ps, "true", 4, JS_TRUE);
    case 'f':
        return literal(ps, "false", 5, JS_FALSE);
    case '-':
    case '0' ... '9':
        return number(ps);
    default:
        return literal(ps, "null", 4, JS_NULL);
    }
}

/* Closes the containers that end here and takes the comma; *ret_due says whether another value is
 * due. */
static bool after_value(struct parser *ps, bool *ret_due)
{
    *ret_due = false;
    while (ps->depth > 0) {
        struct level *level = &ps->stack[ps->depth - 1];
        char closing = closing_of(ps, level);
        skip_space(ps);
        if (peek(ps) == ',') {
            ps->p++;
            skip_space(ps);
            if (!(ps->flags & JS_RELAXED) || peek(ps) != closing) {
                *ret_due = true;
                return closing == ']' || member(ps, level);
            }
        }
        if (peek(ps) != closing)
            return fail(ps, ps->p,
                        closing == ']' ? "a comma or ] is expected here"
                                       : "a comma or } is expected here");
        if (!close_container(ps))
            return false;
    }
    return true;
}

static bool document(struct parser *ps)
{
    bool due = true;

    skip_space(ps);
    while (due) {
        if (!value(ps, &due))
            return false;
        if (!due && !after_value(ps, &due))
            return false;
    }
    skip_space(ps);
    if (ps->p != ps->end)
        return fail(ps, ps->p, "nothing may follow the value");
    return true;
}

static void describe(const struct parser *ps, struct js_fault *ret)
{
    struct js_fault fault = {
        .offset = (size_t)(ps->p - ps->text.p),
        .duplicate = ps->duplicate,
        .limit = ps->limit,
        .reason = ps->reason,
    };

    js_position(ps->text, fault.offset, &fault.line, &fault.column);
    *ret = fault;
}

bool js_parse(struct str text, const struct js_limits *limits, struct arena *mem,
              struct js_doc *ret_doc, struct js_fault *ret_fault)
{
    struct parser ps;
    bool ok;

    memset(&ps, 0, offsetof(struct parser, stack));
    ps.text = text.p ? text : STR("");
    ps.p = ps.text.p;
    ps.end = ps.text.p + text.n;
    ps.mem = mem;
    ps.limits = limits;
    ps.flags = limits->flags;
    ps.deepest = limits->depth < DEEPEST ? limits->depth : DEEPEST;
    ok = text.n < UINT32_MAX ? document(&ps)
                             : fail_limit(&ps, ps.p, "this message is longer than 4 GiB");
    if (!ok && ret_fault)
        describe(&ps, ret_fault);
    /* Returns unused memory to the arena: the tape is its newest allocation. */
    ps.nodes = arena_try_resize(mem, ps.nodes, ps.cap * sizeof(*ps.nodes),
                                (ok ? ps.n : 0) * sizeof(*ps.nodes));
    if (ok)
        *ret_doc = (struct js_doc){.text = ps.text, .nodes = ps.nodes, .n = ps.n};
    return ok;
}
