/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the name: each character is replaced by its look-alike.
 *
 *   character ── itself a twin, or decomposed (NFKD) ── each code a twin, or in lower case ── each
 *   of those a twin, or itself
 *
 * Unicode's tables (base/unicode.h) know letters with marks, ligatures, full-width letters and
 * case.  They do not know which letters of other scripts look alike: that is the table here. */
#include "upstream/pins_lookalike.h"

#include "base/unicode.h"
#include "base/utf8.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Characters that look like an ASCII character, given in lower case.  A capital letter has a row
 * only if it looks like another letter than its small form does. */
static const struct twin {
    uint32_t is;
    char like;
} twins[] = {
    {0x00b7, '.'}, {0x0131, 'i'}, {0x01c0, 'l'}, {0x0251, 'a'}, {0x0261, 'g'}, {0x0269, 'i'},
    {0x02cd, '_'}, {0x0397, 'h'}, {0x039c, 'm'}, {0x039d, 'n'}, {0x03a5, 'y'}, {0x03b1, 'a'},
    {0x03b2, 'b'}, {0x03b3, 'y'}, {0x03b5, 'e'}, {0x03b6, 'z'}, {0x03b7, 'n'}, {0x03b9, 'i'},
    {0x03ba, 'k'}, {0x03bc, 'u'}, {0x03bd, 'v'}, {0x03bf, 'o'}, {0x03c1, 'p'}, {0x03c3, 'o'},
    {0x03c4, 't'}, {0x03c5, 'u'}, {0x03c7, 'x'}, {0x03c9, 'w'}, {0x03dd, 'f'}, {0x03f2, 'c'},
    {0x03f3, 'j'}, {0x03f9, 'c'}, {0x0430, 'a'}, {0x0432, 'b'}, {0x0435, 'e'}, {0x043a, 'k'},
    {0x043c, 'm'}, {0x043d, 'h'}, {0x043e, 'o'}, {0x0440, 'p'}, {0x0441, 'c'}, {0x0442, 't'},
    {0x0443, 'y'}, {0x0445, 'x'}, {0x044c, 'b'}, {0x0455, 's'}, {0x0456, 'i'}, {0x0458, 'j'},
    {0x0475, 'v'}, {0x0493, 'f'}, {0x04af, 'y'}, {0x04bb, 'h'}, {0x04cf, 'l'}, {0x0501, 'd'},
    {0x050d, 'g'}, {0x051b, 'q'}, {0x051d, 'w'}, {0x0570, 'h'}, {0x0578, 'n'}, {0x057d, 'u'},
    {0x0581, 'g'}, {0x0585, 'o'}, {0x2010, '-'}, {0x2012, '-'}, {0x2013, '-'}, {0x2014, '-'},
    {0x2015, '-'}, {0x2044, '/'}, {0x2212, '-'}, {0x2215, '/'}, {0x2236, ':'}, {0xa789, ':'},
};

#define MARKS_MAX 8 /* on one letter; more only hide the letter */

bool lookalike_is_unseen(uint32_t code)
{
    return unicode_is_invisible(code) || (code != ' ' && unicode_is_blank(code));
}

static int by_code(const void *key, const void *row)
{
    uint32_t code = *(const uint32_t *)key, is = ((const struct twin *)row)->is;
    return code < is ? -1 : code > is;
}

static bool find_twin(uint32_t *code)
{
    const struct twin *twin = bsearch(code, twins, countof(twins), sizeof(*twins), by_code);

    if (twin)
        *code = (unsigned char)twin->like;
    return twin != NULL;
}

/* Some signs decompose to a blank with a mark, or to words.  They look like themselves. */
static bool has_blank(const uint32_t *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (codes[i] == ' ' || lookalike_is_unseen(codes[i]))
            return true;
    return false;
}

/* Adds what a decomposed code looks like, after the n codes of `ret`. */
static size_t add_folded(uint32_t code, uint32_t *ret, size_t n)
{
    uint32_t folded[UNICODE_CODES_MAX];

    if (find_twin(&code)) {
        ret[n] = code;
        return n + 1;
    }
    size_t more = unicode_decompose(code, true, folded);
    for (size_t i = 0; i < more && n < UNICODE_CODES_MAX; i++) {
        (void)find_twin(&folded[i]);
        ret[n++] = folded[i];
    }
    return n;
}

static size_t find_like(uint32_t code, uint32_t ret[UNICODE_CODES_MAX])
{
    uint32_t parts[UNICODE_CODES_MAX];
    size_t n_parts = 1, n = 0;

    ret[0] = code;
    if (find_twin(ret))
        return 1;
    n_parts = unicode_decompose(code, false, parts);
    if (has_blank(parts, n_parts))
        return 1;
    for (size_t i = 0; i < n_parts; i++)
        n = add_folded(parts[i], ret, n);
    return n;
}

/* A server chooses its names, and may have very many long ones, so a character must cost one
 * lookup.  Pages of 256 characters are filled when one of them first occurs, and are kept. */
#define PAGE 256
#define PAGES (0x110000 / PAGE)
/* The code that a character looks like, with MARK if that is a mark; or else: */
#define MARK 0x20000000u
#define UNSEEN 0x40000000u
#define SEVERAL 0x80000000u /* | index in `more` << SEVERAL_SHIFT | number of codes */
#define SEVERAL_SHIFT 8
#define SEVERAL_N 0xffu

struct page {
    uint32_t like[PAGE];
    uint32_t more[];
};
static _Atomic(struct page *) pages[PAGES];

static uint32_t with_mark(uint32_t code)
{
    return unicode_is_mark(code) ? code | MARK : code;
}

static struct page *page_new(uint32_t first)
{
    struct page *p = xmalloc(sizeof(*p) + PAGE * UNICODE_CODES_MAX * sizeof(p->more[0]));
    uint32_t codes[UNICODE_CODES_MAX];
    size_t used = 0;

    for (uint32_t i = 0; i < PAGE; i++) {
        size_t n = find_like(first + i, codes);
        if (lookalike_is_unseen(first + i)) {
            p->like[i] = UNSEEN;
        } else if (n == 1) {
            p->like[i] = with_mark(codes[0]);
        } else {
            p->like[i] = SEVERAL | (uint32_t)(used << SEVERAL_SHIFT) | (uint32_t)n;
            for (size_t k = 0; k < n; k++)
                p->more[used++] = with_mark(codes[k]);
        }
    }
    return xrealloc(p, sizeof(*p) + used * sizeof(p->more[0]));
}

/* If two threads fill a page, one of them frees its copy. */
static const struct page *page_of(uint32_t code)
{
    _Atomic(struct page *) *slot = &pages[code / PAGE];
    struct page *page = atomic_load_explicit(slot, memory_order_acquire), *other = NULL;

    if (likely(page != NULL))
        return page;
    page = page_new(code / PAGE * PAGE);
    if (atomic_compare_exchange_strong(slot, &other, page))
        return page;
    free(page);
    return other;
}

/* The fold of a name, while it is written. */
struct folding {
    char *to;         /* in the room that begin() made */
    unsigned n_marks; /* on the last letter, which are not written yet */
    uint32_t marks[MARKS_MAX];
};

/* No character becomes more than six times as long. */
static bool begin(struct folding *f, struct str name, struct buf *out)
{
    *f = (struct folding){.to = buf_room(out, unicode_is_ascii(name) ? name.n : 6 * name.n)};
    return f->to != NULL;
}

static void add_marks(struct folding *f)
{
    for (unsigned i = 0; i < f->n_marks; i++)
        f->to += utf8_encode(f->marks[i], f->to);
    f->n_marks = 0;
}

/* Keeps the marks of one letter sorted, because they may be written in any order.  False: too
 * many. */
static bool hold_mark(struct folding *f, uint32_t mark)
{
    unsigned at = f->n_marks;

    if (at == MARKS_MAX)
        return false;
    for (; at > 0 && f->marks[at - 1] > mark; at--)
        f->marks[at] = f->marks[at - 1];
    f->marks[at] = mark;
    f->n_marks++;
    return true;
}

static inline bool add_like(struct folding *f, uint32_t like)
{
    if (like & MARK)
        return hold_mark(f, like & ~MARK);
    if (f->n_marks)
        add_marks(f);
    f->to += utf8_encode(like, f->to);
    return true;
}

/* False: too many marks. */
static inline bool add_likes(struct folding *f, const struct page *page, uint32_t like)
{
    if (!(like & SEVERAL))
        return add_like(f, like);
    const uint32_t *codes = page->more + ((like & ~SEVERAL) >> SEVERAL_SHIFT);
    for (uint32_t i = 0; i < (like & SEVERAL_N); i++)
        if (!add_like(f, codes[i]))
            return false;
    return true;
}

/* Adds the fold of a character beyond ASCII.  Returns its length; 0: it is refused. */
static size_t add_char(struct folding *f, const char *p, const char *end, const char **ret_why)
{
    uint32_t code = 0;
    size_t n = utf8_decode(p, end, &code);
    const struct page *page = n ? page_of(code) : NULL;
    uint32_t like = page ? page->like[code % PAGE] : UNSEEN;

    if (like == UNSEEN) {
        *ret_why = n ? "has blank or invisible characters" : "is not UTF-8";
        return 0;
    }
    if (!add_likes(f, page, like)) {
        *ret_why = "has more than eight marks on one letter";
        return 0;
    }
    return n;
}

static char small_ascii(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f;
}

/* Adds the plain characters at p in lower case, and returns their end. */
static const char *add_plain(struct folding *f, const char *p, const char *end)
{
    if (f->n_marks && p < end && is_plain(*p))
        add_marks(f);
    char *to = f->to;
    while (p < end && is_plain(*p))
        *to++ = small_ascii(*p++);
    f->to = to;
    return p;
}

static bool has_odd_blanks(struct str name)
{
    return name.n && (name.p[0] == ' ' || name.p[name.n - 1] == ' ' ||
                      memmem(name.p, name.n, "  ", 2) != NULL);
}

bool lookalike_fold(struct str name, struct buf *out, const char **ret_why)
{
    const char *p = name.p, *end = name.p + name.n;
    struct folding f;

    if (name.n > LOOKALIKE_MAX || !begin(&f, name, out)) {
        *ret_why = "is longer than any call may name";
        return false;
    }
    if (has_odd_blanks(name)) {
        *ret_why = "has blanks at an end or side by side";
        return false;
    }
    const char *from = f.to;
    for (p = add_plain(&f, p, end); p < end; p = add_plain(&f, p, end)) {
        size_t n = add_char(&f, p, end, ret_why);
        if (!n)
            return false;
        p += n;
    }
    add_marks(&f);
    buf_grown(out, (size_t)(f.to - from));
    return true;
}

void lookalike_fold_loosely(struct str name, struct buf *out)
{
    const char *p = name.p, *end = name.p + name.n, *why;
    struct folding f;

    if (!begin(&f, name, out))
        return;
    char *from = f.to;
    for (size_t n = 1; p < end && n; p += n) {
        if ((unsigned char)*p >= 0x80) {
            n = add_char(&f, p, end, &why);
            continue;
        }
        n = 1;
        add_marks(&f);
        *f.to++ = *p == 'I' ? 'l' : small_ascii(*p);
    }
    add_marks(&f);
    for (char *at = from; at < f.to; at++)
        *at = *at == '1' || *at == '|' ? 'l' : *at == '0' ? 'o' : *at;
    buf_grown(out, (size_t)(f.to - from));
}
