/* SPDX-License-Identifier: Apache-2.0 */
/* A text is mapped run by run.  A run is a stretch of characters beyond ASCII together with the
 * ASCII character before it, on which its first mark may stand:
 *
 *   Caf e◌́ 中文 ok  ─>  "Caf", run "e◌́", run " 中文", " ok"
 *
 * No ASCII character composes with the character before it, so runs are independent. */
#include "base/unicode.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

#define FEW 128 /* codes of most runs */
#define ACCENT_FIRST 0x0300
#define ACCENT_LAST 0x036f

static const utf8proc_property_t *property(uint32_t code)
{
    return utf8proc_get_property((utf8proc_int32_t)code);
}

static char small_ascii(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Returns the length of the text up to its first byte beyond ASCII. */
static size_t ascii_length(struct str s)
{
    uint64_t word;
    size_t i = 0;

    for (; s.n - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, s.p + i, sizeof(word));
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (i < s.n && (unsigned char)s.p[i] < 0x80)
        i++;
    return i;
}

bool unicode_is_ascii(struct str text)
{
    return ascii_length(text) == text.n;
}

/* Characters. */

/* Characters that draw nothing and that the tables do not call so: reserved for the purpose, or
 * blank in all fonts. */
static const struct {
    uint32_t first, last;
} reserved[] = {
    {0x2065, 0x2065},   /* beside invisible operators */
    {0x2800, 0x2800},   /* Braille blank */
    {0xfff0, 0xfff8},   /* specials */
    {0x13440, 0x1345f}, /* hieroglyph modifiers */
    {0xe0000, 0xe0fff}, /* tags, more variation selectors */
};

bool unicode_is_invisible_slowly(uint32_t code)
{
    const utf8proc_property_t *of = property(code);

    switch (of->category) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return true;
    case UTF8PROC_CATEGORY_CF: /* except signs that are drawn around the next digits */
        return of->boundclass != UTF8PROC_BOUNDCLASS_PREPEND;
    default:
        break;
    }
    for (size_t i = 0; i < countof(reserved); i++)
        if (code >= reserved[i].first && code <= reserved[i].last)
            return true;
    return of->ignorable;
}

bool unicode_is_blank(uint32_t code)
{
    return property(code)->category == UTF8PROC_CATEGORY_ZS;
}

bool unicode_is_mark(uint32_t code)
{
    unsigned category = (unsigned)property(code)->category;
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME;
}

bool unicode_is_word_slowly(uint32_t code)
{
    unsigned category = (unsigned)property(code)->category;

    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
           category == UTF8PROC_CATEGORY_CO;
}

size_t unicode_decompose(uint32_t code, bool folded, uint32_t ret[UNICODE_CODES_MAX])
{
    int options = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | (folded ? UTF8PROC_CASEFOLD : 0);
    utf8proc_int32_t codes[UNICODE_CODES_MAX];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)code, codes, UNICODE_CODES_MAX,
                                                 (utf8proc_option_t)options, &boundary);

    if (n < 1 || n > UNICODE_CODES_MAX) { /* not reached: the longest has 18 */
        ret[0] = code;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < n; i++)
        ret[i] = (uint32_t)codes[i];
    return (size_t)n;
}

/* Lower case, one code for one.  Marks stay: U+0345 would become a letter. */
static utf8proc_int32_t fold_one(utf8proc_int32_t code)
{
    utf8proc_int32_t folded[4];
    int boundary = 0;

    if (code < 0x80)
        return small_ascii((char)code);
    if (unicode_is_mark((uint32_t)code))
        return code;
    utf8proc_ssize_t n =
        utf8proc_decompose_char(code, folded, countof(folded), UTF8PROC_CASEFOLD, &boundary);
    return n == 1 ? folded[0] : utf8proc_tolower(code);
}

/* Mapping. */

static const utf8proc_option_t decomposing[] = {
    [UNICODE_NFC] = UTF8PROC_DECOMPOSE,
    [UNICODE_NAME] = UTF8PROC_DECOMPOSE,
    [UNICODE_SEARCH] = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD,
};

/* Adds the UTF-8 of `codes`, which are decomposed and in canonical order, composed and in the
 * form. */
static bool add_codes(utf8proc_int32_t *codes, size_t n, enum unicode_form form, struct buf *out)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        bool is_accent = codes[i] >= ACCENT_FIRST && codes[i] <= ACCENT_LAST;
        if (form != UNICODE_SEARCH || !is_accent)
            codes[kept++] = form == UNICODE_NAME ? fold_one(codes[i]) : codes[i];
    }
    utf8proc_ssize_t composed =
        utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)kept, UTF8PROC_COMPOSE | UTF8PROC_STABLE);

    for (utf8proc_ssize_t i = 0; i < composed; i++) {
        char bytes[4];
        if (!buf_try_add(out, bytes, utf8_encode((uint32_t)codes[i], bytes)))
            return false;
    }
    return composed >= 0;
}

/* False: not UTF-8, or too many marks in a row. */
static bool run_is_text(struct str run)
{
    unsigned marks = 0;
    uint32_t code;

    for (size_t i = 0, n; i < run.n; i += n) {
        if (!(n = utf8_decode(run.p + i, run.p + run.n, &code)))
            return false;
        bool is_mark = property(code)->combining_class != 0 || unicode_is_mark(code);
        marks = is_mark ? marks + 1 : 0;
        if (marks > UNICODE_MARKS_MAX)
            return false;
    }
    return true;
}

static bool map_run(struct str run, enum unicode_form form, struct buf *out)
{
    utf8proc_int32_t few[FEW], *codes = few;
    const utf8proc_uint8_t *p = (const utf8proc_uint8_t *)run.p;
    utf8proc_ssize_t length = (utf8proc_ssize_t)run.n;

    if (run.n > UNICODE_RUN_MAX || !run_is_text(run))
        return false;
    utf8proc_ssize_t n = utf8proc_decompose(p, length, few, FEW, decomposing[form]);
    if (n > FEW) {
        codes = xmalloc((size_t)n * sizeof(*codes));
        n = utf8proc_decompose(p, length, codes, n, decomposing[form]);
    }
    bool ok = n >= 0 && add_codes(codes, (size_t)n, form, out);
    if (codes != few)
        free(codes);
    return ok;
}

static bool add_ascii(struct str s, enum unicode_form form, struct buf *out)
{
    size_t from = out->n;

    if (!buf_try_add(out, s.p, s.n))
        return false;
    for (size_t i = from; i < out->n && form != UNICODE_NFC; i++)
        out->p[i] = small_ascii(out->p[i]);
    return true;
}

/* Returns the length of the bytes beyond ASCII at the start of the text. */
static size_t other_length(struct str s)
{
    size_t i = 0;

    while (i < s.n && (unsigned char)s.p[i] >= 0x80)
        i++;
    return i;
}

bool unicode_map(struct str text, enum unicode_form form, struct buf *out)
{
    size_t before = out->n;

    for (struct str rest = text; rest.n;) {
        size_t ascii = ascii_length(rest);
        size_t plain = ascii < rest.n && ascii ? ascii - 1 : ascii;
        size_t end = ascii + other_length(str_n(rest.p + ascii, rest.n - ascii));
        if (!add_ascii(str_n(rest.p, plain), form, out) ||
            !map_run(str_n(rest.p + plain, end - plain), form, out)) {
            out->n = before;
            if (out->p)
                out->p[before] = '\0';
            return false;
        }
        rest = str_n(rest.p + end, rest.n - end);
    }
    return true;
}

struct str unicode_mapped(struct str text, enum unicode_form form, struct arena *mem)
{
    struct str mapped = STR_NONE;
    struct buf out;

    if (form == UNICODE_NFC && unicode_is_ascii(text))
        return text;
    buf_init(&out, UNICODE_GROWTH * text.n + 8);
    if (unicode_map(text, form, &out))
        mapped = str_eq(buf_str(&out), text) ? text : arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return mapped;
}

/* Whether the names differ before either has a character beyond ASCII, as most do. */
static bool differ_early(struct str a, struct str b)
{
    for (size_t i = 0; i < a.n && i < b.n; i++) {
        if (((unsigned char)a.p[i] | (unsigned char)b.p[i]) >= 0x80)
            return false;
        if (small_ascii(a.p[i]) != small_ascii(b.p[i]))
            return true;
    }
    return false;
}

bool unicode_same_name(struct str a, struct str b)
{
    struct buf one, other;

    if (differ_early(a, b))
        return false;
    if (unicode_is_ascii(a) && unicode_is_ascii(b))
        return str_ieq(a, b);
    buf_init(&one, UNICODE_GROWTH * a.n + 8);
    buf_init(&other, UNICODE_GROWTH * b.n + 8);
    bool both = unicode_map(a, UNICODE_NAME, &one) && unicode_map(b, UNICODE_NAME, &other);
    bool same = both ? str_eq(buf_str(&one), buf_str(&other)) : str_ieq(a, b);
    buf_release(&one);
    buf_release(&other);
    return same;
}

/* Terminals. */

size_t unicode_columns(struct str text)
{
    size_t columns = ascii_length(text);

    for (size_t i = columns, n; i < text.n; i += n) {
        uint32_t code;
        n = utf8_decode(text.p + i, text.p + text.n, &code);
        columns += n ? (size_t)utf8proc_charwidth((utf8proc_int32_t)code) : 1;
        n = n ? n : 1;
    }
    return columns;
}

void unicode_pad(struct buf *out, size_t from, size_t columns)
{
    for (size_t n = unicode_columns(str_n(out->p + from, out->n - from)); n < columns; n++)
        buf_addc(out, ' ');
}
