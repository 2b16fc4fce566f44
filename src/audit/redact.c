/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a body, on the write lane, between the digest of the original and its storage.
 *
 * The walk is lexical: in JSON a string followed by a colon is a name, and that is all that has to
 * be known.  So there is no tree, no depth and no memory beyond the output, a body of any size
 * costs only as much as is kept of it, and bytes that are no JSON at all are walked just as well.
 * Whether the result is JSON is asked of the parser at the end, when it is no longer than the cap.
 *
 * Invariants: emitted(w) bytes of output are decided and clean; everything before w->at has been
 * judged; nothing is copied before the first replacement. */
#include "audit/redact.h"

#include "audit/redact_impl.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "json/read.h"

#include <stdlib.h>

struct redactor {
    struct buf text;     /* the body with its secrets replaced */
    struct buf out;      /* what is stored, when that is neither the body nor `text` */
    struct arena *nodes; /* the parser's, while it is asked whether the result is JSON */
    bool trusts;         /* an untouched body is JSON already */
};

struct walk {
    struct str in;
    size_t at;     /* everything before has been judged */
    size_t copied; /* everything before stands in `out` */
    size_t cap;
    size_t no_jwt_before;
    struct buf *out;
};

#define REPLACEMENT "[redacted]"
/* Longest {"holdfast/cut":{"length":N,"kept":M},"head":""}: two numbers of 20 digits. */
#define CUT_WORDS 96
#define NESTED_KEY_MAX 64

static size_t emitted(const struct walk *w)
{
    return w->out->n + (w->at - w->copied);
}

static void replace(struct walk *w, size_t from, size_t to, const char *text)
{
    buf_add(w->out, w->in.p + w->copied, from - w->copied);
    buf_addz(w->out, text);
    w->copied = w->at = to;
}

static size_t skip_space(struct str s, size_t at)
{
    while (at < s.n && (s.p[at] == ' ' || s.p[at] == '\t' || s.p[at] == '\n' || s.p[at] == '\r'))
        at++;
    return at;
}

/* Past the closing quote of the string whose opening quote is at `at`. */
static size_t skip_string(struct str s, size_t at)
{
    for (at++; at < s.n; at++) {
        if (s.p[at] == '"')
            return at + 1;
        if (s.p[at] == '\\')
            at++;
    }
    return s.n;
}

static size_t skip_nested(struct str s, size_t at)
{
    size_t depth = 0;
    while (at < s.n) {
        char c = s.p[at];
        if (c == '"') {
            at = skip_string(s, at);
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return at;
    }
    return s.n;
}

static bool is_delimiter(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_scalar(struct str s, size_t at)
{
    while (at < s.n && !is_delimiter(s.p[at]) && s.p[at] != '\\' && s.p[at] != '"')
        at++;
    return at;
}

static bool is_number_start(char c)
{
    return c == '-' || (c >= '0' && c <= '9');
}

static bool is_literal(struct str s, size_t at)
{
    struct str rest = str_n(s.p + at, s.n - at);
    return str_starts(rest, STR("true")) || str_starts(rest, STR("false")) ||
           str_starts(rest, STR("null"));
}

/* true, null and the like tell nothing. */
static bool is_telling(struct str s, size_t at, enum key_class class)
{
    if (class == KEY_PLAIN || at >= s.n || is_delimiter(s.p[at]) || is_literal(s, at))
        return false;
    return class == KEY_SECRET || !(is_number_start(s.p[at]) || s.p[at] == '{');
}

/* The member of a JSON object whose name ends before `colon`. */
static void walk_member(struct walk *w, struct str name, size_t colon)
{
    enum key_class class = redact_key_class(name);
    size_t from = skip_space(w->in, colon + 1);
    if (!is_telling(w->in, from, class))
        return;
    char c = w->in.p[from];
    size_t to = c == '"'               ? skip_string(w->in, from)
                : c == '{' || c == '[' ? skip_nested(w->in, from)
                                       : skip_scalar(w->in, from);
    replace(w, from, to, "\"" REPLACEMENT "\"");
}

static size_t backslashes(struct str s, size_t at)
{
    size_t n = 0;
    while (at + n < s.n && s.p[at + n] == '\\')
        n++;
    return n;
}

/* JSON quoted into a string has quotes of n backslashes, each level its own n; where does the next
 * quote of this level stand?  `end` when there is none. */
static size_t find_quote(struct str s, size_t at, size_t end, size_t n)
{
    while (at < end) {
        size_t run = backslashes(s, at);
        if (run == n && at + run < end && s.p[at + run] == '"')
            return at;
        at += run + 1;
    }
    return end;
}

/* A member of quoted JSON whose name's opening quote (n backslashes and ") stands at `at`.  true
 * when its value was replaced. */
static bool walk_quoted_member(struct walk *w, size_t at, size_t end, size_t n)
{
    size_t name = at + n + 1, stop = name;
    while (stop < end && stop - name < NESTED_KEY_MAX && w->in.p[stop] != '\\')
        stop++;
    if (backslashes(w->in, stop) != n || stop + n >= end || w->in.p[stop + n] != '"')
        return false;
    size_t from = skip_space(w->in, stop + n + 1);
    if (from >= end || w->in.p[from] != ':')
        return false;
    from = skip_space(w->in, from + 1);
    enum key_class class = redact_key_class(str_n(w->in.p + name, stop - name));
    if (from >= end || !is_telling(w->in, from, class))
        return false;
    bool quoted = backslashes(w->in, from) == n && from + n < end && w->in.p[from + n] == '"';
    size_t to = quoted ? find_quote(w->in, from + n + 1, end, n) : skip_scalar(w->in, from);
    if (to > end)
        to = end;
    replace(w, quoted ? from + n + 1 : from, to, REPLACEMENT);
    return true;
}

/* Past the backslashes at `at` and what the last of them escapes. */
static size_t skip_escape(struct str s, size_t at, size_t end)
{
    size_t run = backslashes(s, at);
    size_t next = at + run;
    if (run % 2 && next < end)
        next += s.p[next] == 'u' && end - next >= 5 ? 5 : 1;
    return next < end ? next : end;
}

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* The inside of a string, or text that is in no string. */
static void walk_text(struct walk *w, size_t end)
{
    bool boundary = true;
    struct str text = str_n(w->in.p, end);
    while (w->at < end && emitted(w) <= w->cap) {
        char c = w->in.p[w->at];
        size_t from, to;
        if (c == '\\') {
            size_t n = backslashes(w->in, w->at);
            bool quote = w->at + n < end && w->in.p[w->at + n] == '"';
            if (!quote || !walk_quoted_member(w, w->at, end, n))
                w->at = skip_escape(w->in, w->at, end);
            boundary = true;
        } else if (boundary && redact_shape_may_begin(c) &&
                   redact_shape_at(text, w->at, &w->no_jwt_before, &from, &to)) {
            replace(w, from, to, REPLACEMENT);
        } else {
            boundary = !is_word_char(c);
            w->at++;
        }
    }
}

static void walk_string(struct walk *w)
{
    size_t begin = w->at + 1, end = skip_string(w->in, w->at);
    bool closed = end > begin && w->in.p[end - 1] == '"';
    size_t inside = closed ? end - 1 : end;
    w->at = begin;
    walk_text(w, inside);
    if (emitted(w) > w->cap)
        return;
    w->at = end;
    size_t colon = skip_space(w->in, end);
    if (closed && colon < w->in.n && w->in.p[colon] == ':')
        walk_member(w, str_n(w->in.p + begin, inside - begin), colon);
}

/* Ends at the end of the body or once more than the cap has been emitted. */
static void walk_body(struct walk *w)
{
    while (w->at < w->in.n && emitted(w) <= w->cap) {
        if (w->in.p[w->at] == '"') {
            walk_string(w);
            continue;
        }
        const char *quote = memchr(w->in.p + w->at, '"', w->in.n - w->at);
        walk_text(w, quote ? (size_t)(quote - w->in.p) : w->in.n);
    }
}

/* What stands for s.p[0] inside a JSON string when it may not stand there itself; 0 when it may. */
static size_t escape_of(unsigned char c, bool valid, char ret[6])
{
    static const char hex[] = "0123456789abcdef";
    if (!valid)
        c = 0;
    else if (c != '"' && c != '\\' && c >= 0x20)
        return 0;
    else if (c >= 0x20) {
        ret[0] = '\\';
        ret[1] = (char)c;
        return 2;
    }
    static const char forms[2][6] = {{'\\', 'u', 'f', 'f', 'f', 'd'},
                                     {'\\', 'u', '0', '0', '0', '0'}};
    memcpy(ret, forms[valid], 6);
    if (valid) {
        ret[4] = hex[c >> 4];
        ret[5] = hex[c & 15];
    }
    return 6;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Is one of these eight bytes none that may stand in a JSON string as it is?  Looks only at ASCII
 * and at all eight at once: a byte is zero when taking one away borrows from its top bit. */
static bool has_unplain(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    uint64_t quote = x ^ EACH('"'), backslash = x ^ EACH('\\'), rubout = x ^ EACH(0x7f);
    uint64_t low = (x - EACH(0x20)) & ~x;
    uint64_t zero = ((quote - EACH(1)) & ~quote) | ((backslash - EACH(1)) & ~backslash) |
                    ((rubout - EACH(1)) & ~rubout);
    return ((x | low | zero) & EACH(0x80)) != 0;
}

/* How many bytes from `at` on may stand in a JSON string as they are, looking only at ASCII. */
static size_t plain_run(struct str s, size_t at, size_t most)
{
    size_t n = 0;
    if (most > s.n - at)
        most = s.n - at;
    while (most - n >= 8 && !has_unplain(s.p + at + n))
        n += 8;
    while (n < most) {
        unsigned char c = (unsigned char)s.p[at + n];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
            break;
        n++;
    }
    return n;
}

/* Appends `s` as the inside of a JSON string while it fits; returns how many bytes of it did. */
static size_t add_escaped(struct buf *out, struct str s, size_t room)
{
    size_t at = 0;
    char escape[6];
    while (at < s.n) {
        size_t run = plain_run(s, at, room); /* most text is copied in long pieces */
        buf_add(out, s.p + at, run);
        room -= run;
        at += run;
        if (at == s.n || room == 0)
            break;
        uint32_t code;
        size_t n = utf8_decode(s.p + at, s.p + s.n, &code);
        size_t length = escape_of((unsigned char)s.p[at], n > 0, escape);
        const char *piece = length ? escape : s.p + at;
        if (length == 0)
            length = n;
        if (length > room)
            break;
        buf_add(out, piece, length);
        room -= length;
        at += n ? n : 1;
    }
    return at;
}

/* The first words of a body that is too long. */
static struct str write_cut(struct redactor *r, struct str head, size_t length, size_t cap)
{
    struct buf quoted;
    buf_init(&quoted, cap);
    size_t kept = add_escaped(&quoted, head, cap - CUT_WORDS);
    buf_reset(&r->out);
    buf_addf(&r->out, "{\"holdfast/cut\":{\"length\":%zu,\"kept\":%zu},\"head\":\"", length, kept);
    buf_addstr(&r->out, buf_str(&quoted));
    buf_addz(&r->out, "\"}");
    buf_release(&quoted);
    return buf_str(&r->out);
}

static bool is_json(struct redactor *r, struct str s)
{
    struct js_doc doc;
    bool ok = s.n > 0 && js_parse(s, &js_limits_upstream, r->nodes, &doc, NULL);
    arena_reset(r->nodes);
    return ok;
}

/* Bytes that are no JSON, as a JSON string. */
static struct str write_string(struct redactor *r, struct str text, size_t length, size_t cap)
{
    buf_reset(&r->out);
    buf_addc(&r->out, '"');
    if (add_escaped(&r->out, text, cap - 2) < text.n)
        return write_cut(r, text, length, cap);
    buf_addc(&r->out, '"');
    return buf_str(&r->out);
}

/* The body without its secrets; of a long one only a little more than the cap, which will be cut.
 */
static struct str without_secrets(struct redactor *r, struct str body, size_t cap)
{
    struct str head = str_n(body.p, body.n <= cap ? body.n : cap + 1);
    struct walk w = {.in = body, .cap = cap, .out = &r->text};

    if (redact_is_plain(head))
        return head;
    buf_reset(&r->text);
    walk_body(&w);
    if (w.copied == 0)
        return str_n(body.p, w.at);
    buf_add(&r->text, body.p + w.copied, w.at - w.copied);
    return buf_str(&r->text);
}

struct str redact_body(struct redactor *r, struct str body, bool secrets, size_t cap)
{
    if (!body.p || cap < REDACT_LEAST_CAP)
        return STR_NONE;
    struct str kept = secrets ? without_secrets(r, body, cap) : body;
    if (kept.n > cap)
        return write_cut(r, kept, body.n, cap);
    bool untouched = kept.p == body.p && kept.n == body.n;
    return (r->trusts && untouched) || is_json(r, kept) ? kept : write_string(r, kept, body.n, cap);
}

struct redactor *redactor_new(void)
{
    struct redactor *r = xcalloc(1, sizeof(*r));
    buf_init(&r->text, SIZE_MAX / 4); /* bounded by the body and the cap */
    buf_init(&r->out, SIZE_MAX / 4);
    r->nodes = arena_new(SIZE_MAX / 4); /* the cap bounds what is parsed */
    return r;
}

void redactor_trust_json(struct redactor *r)
{
    r->trusts = true;
}

void redactor_free(struct redactor *r)
{
    if (!r)
        return;
    buf_release(&r->text);
    buf_release(&r->out);
    arena_free(r->nodes);
    free(r);
}
