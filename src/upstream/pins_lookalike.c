/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, and one pass over the name: each character is replaced by its look-alike. */
#include "upstream/pins_lookalike.h"

#include "base/utf8.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/* Invisible characters, and characters that look like a blank. */
static const struct range {
    uint32_t from, to;
} unseen[] = {
    {0x0000, 0x001f},   {0x007f, 0x00a0}, {0x00ad, 0x00ad}, {0x034f, 0x034f},   {0x061c, 0x061c},
    {0x115f, 0x1160},   {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f},   {0x2028, 0x202f},
    {0x205f, 0x206f},   {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
};

/* Characters that look like an ASCII character, given in lower case. */
static const struct twin {
    uint32_t is;
    char like;
} twins[] = {
    {0x00b5, 'u'}, {0x00b7, '.'}, {0x0131, 'i'}, {0x017f, 's'}, {0x01c0, 'l'}, {0x0251, 'a'},
    {0x0261, 'g'}, {0x0269, 'i'}, {0x02cd, '_'}, {0x0391, 'a'}, {0x0392, 'b'}, {0x0395, 'e'},
    {0x0396, 'z'}, {0x0397, 'h'}, {0x0399, 'i'}, {0x039a, 'k'}, {0x039c, 'm'}, {0x039d, 'n'},
    {0x039f, 'o'}, {0x03a1, 'p'}, {0x03a4, 't'}, {0x03a5, 'y'}, {0x03a7, 'x'}, {0x03b1, 'a'},
    {0x03b2, 'b'}, {0x03b3, 'y'}, {0x03b5, 'e'}, {0x03b6, 'z'}, {0x03b7, 'n'}, {0x03b9, 'i'},
    {0x03ba, 'k'}, {0x03bc, 'u'}, {0x03bd, 'v'}, {0x03bf, 'o'}, {0x03c1, 'p'}, {0x03c3, 'o'},
    {0x03c4, 't'}, {0x03c5, 'u'}, {0x03c7, 'x'}, {0x03c9, 'w'}, {0x03dc, 'f'}, {0x03f2, 'c'},
    {0x03f3, 'j'}, {0x03f9, 'c'}, {0x0405, 's'}, {0x0406, 'i'}, {0x0408, 'j'}, {0x0410, 'a'},
    {0x0412, 'b'}, {0x0415, 'e'}, {0x041a, 'k'}, {0x041c, 'm'}, {0x041d, 'h'}, {0x041e, 'o'},
    {0x0420, 'p'}, {0x0421, 'c'}, {0x0422, 't'}, {0x0423, 'y'}, {0x0425, 'x'}, {0x042c, 'b'},
    {0x0430, 'a'}, {0x0432, 'b'}, {0x0435, 'e'}, {0x043a, 'k'}, {0x043c, 'm'}, {0x043d, 'h'},
    {0x043e, 'o'}, {0x0440, 'p'}, {0x0441, 'c'}, {0x0442, 't'}, {0x0443, 'y'}, {0x0445, 'x'},
    {0x044c, 'b'}, {0x0455, 's'}, {0x0456, 'i'}, {0x0458, 'j'}, {0x0474, 'v'}, {0x0475, 'v'},
    {0x0492, 'f'}, {0x04ae, 'y'}, {0x04af, 'y'}, {0x04ba, 'h'}, {0x04bb, 'h'}, {0x04c0, 'l'},
    {0x04cf, 'l'}, {0x0500, 'd'}, {0x0501, 'd'}, {0x050c, 'g'}, {0x050d, 'g'}, {0x051a, 'q'},
    {0x051b, 'q'}, {0x051c, 'w'}, {0x051d, 'w'}, {0x0570, 'h'}, {0x0578, 'n'}, {0x057d, 'u'},
    {0x0581, 'g'}, {0x0585, 'o'}, {0x2010, '-'}, {0x2011, '-'}, {0x2012, '-'}, {0x2013, '-'},
    {0x2014, '-'}, {0x2015, '-'}, {0x2024, '.'}, {0x2044, '/'}, {0x2113, 'l'}, {0x212a, 'k'},
    {0x2160, 'i'}, {0x2164, 'v'}, {0x2169, 'x'}, {0x216c, 'l'}, {0x216d, 'c'}, {0x216e, 'd'},
    {0x216f, 'm'}, {0x2170, 'i'}, {0x2174, 'v'}, {0x2179, 'x'}, {0x217c, 'l'}, {0x217d, 'c'},
    {0x217e, 'd'}, {0x217f, 'm'}, {0x2212, '-'}, {0x2215, '/'}, {0x2236, ':'}, {0xa789, ':'},
    {0xfe58, '-'}, {0xfe63, '-'},
};

/* One character that is a letter with a mark (canonical decomposition, Latin-1 and Latin
 * Extended-A). */
static const struct marked {
    uint32_t is;
    char letter;
    uint16_t mark;
} marked[] = {
    {0x00c0, 'a', 0x0300}, {0x00c1, 'a', 0x0301}, {0x00c2, 'a', 0x0302}, {0x00c3, 'a', 0x0303},
    {0x00c4, 'a', 0x0308}, {0x00c5, 'a', 0x030a}, {0x00c7, 'c', 0x0327}, {0x00c8, 'e', 0x0300},
    {0x00c9, 'e', 0x0301}, {0x00ca, 'e', 0x0302}, {0x00cb, 'e', 0x0308}, {0x00cc, 'i', 0x0300},
    {0x00cd, 'i', 0x0301}, {0x00ce, 'i', 0x0302}, {0x00cf, 'i', 0x0308}, {0x00d1, 'n', 0x0303},
    {0x00d2, 'o', 0x0300}, {0x00d3, 'o', 0x0301}, {0x00d4, 'o', 0x0302}, {0x00d5, 'o', 0x0303},
    {0x00d6, 'o', 0x0308}, {0x00d9, 'u', 0x0300}, {0x00da, 'u', 0x0301}, {0x00db, 'u', 0x0302},
    {0x00dc, 'u', 0x0308}, {0x00dd, 'y', 0x0301}, {0x00e0, 'a', 0x0300}, {0x00e1, 'a', 0x0301},
    {0x00e2, 'a', 0x0302}, {0x00e3, 'a', 0x0303}, {0x00e4, 'a', 0x0308}, {0x00e5, 'a', 0x030a},
    {0x00e7, 'c', 0x0327}, {0x00e8, 'e', 0x0300}, {0x00e9, 'e', 0x0301}, {0x00ea, 'e', 0x0302},
    {0x00eb, 'e', 0x0308}, {0x00ec, 'i', 0x0300}, {0x00ed, 'i', 0x0301}, {0x00ee, 'i', 0x0302},
    {0x00ef, 'i', 0x0308}, {0x00f1, 'n', 0x0303}, {0x00f2, 'o', 0x0300}, {0x00f3, 'o', 0x0301},
    {0x00f4, 'o', 0x0302}, {0x00f5, 'o', 0x0303}, {0x00f6, 'o', 0x0308}, {0x00f9, 'u', 0x0300},
    {0x00fa, 'u', 0x0301}, {0x00fb, 'u', 0x0302}, {0x00fc, 'u', 0x0308}, {0x00fd, 'y', 0x0301},
    {0x00ff, 'y', 0x0308}, {0x0100, 'a', 0x0304}, {0x0101, 'a', 0x0304}, {0x0102, 'a', 0x0306},
    {0x0103, 'a', 0x0306}, {0x0104, 'a', 0x0328}, {0x0105, 'a', 0x0328}, {0x0106, 'c', 0x0301},
    {0x0107, 'c', 0x0301}, {0x0108, 'c', 0x0302}, {0x0109, 'c', 0x0302}, {0x010a, 'c', 0x0307},
    {0x010b, 'c', 0x0307}, {0x010c, 'c', 0x030c}, {0x010d, 'c', 0x030c}, {0x010e, 'd', 0x030c},
    {0x010f, 'd', 0x030c}, {0x0112, 'e', 0x0304}, {0x0113, 'e', 0x0304}, {0x0114, 'e', 0x0306},
    {0x0115, 'e', 0x0306}, {0x0116, 'e', 0x0307}, {0x0117, 'e', 0x0307}, {0x0118, 'e', 0x0328},
    {0x0119, 'e', 0x0328}, {0x011a, 'e', 0x030c}, {0x011b, 'e', 0x030c}, {0x011c, 'g', 0x0302},
    {0x011d, 'g', 0x0302}, {0x011e, 'g', 0x0306}, {0x011f, 'g', 0x0306}, {0x0120, 'g', 0x0307},
    {0x0121, 'g', 0x0307}, {0x0122, 'g', 0x0327}, {0x0123, 'g', 0x0327}, {0x0124, 'h', 0x0302},
    {0x0125, 'h', 0x0302}, {0x0128, 'i', 0x0303}, {0x0129, 'i', 0x0303}, {0x012a, 'i', 0x0304},
    {0x012b, 'i', 0x0304}, {0x012c, 'i', 0x0306}, {0x012d, 'i', 0x0306}, {0x012e, 'i', 0x0328},
    {0x012f, 'i', 0x0328}, {0x0130, 'i', 0x0307}, {0x0134, 'j', 0x0302}, {0x0135, 'j', 0x0302},
    {0x0136, 'k', 0x0327}, {0x0137, 'k', 0x0327}, {0x0139, 'l', 0x0301}, {0x013a, 'l', 0x0301},
    {0x013b, 'l', 0x0327}, {0x013c, 'l', 0x0327}, {0x013d, 'l', 0x030c}, {0x013e, 'l', 0x030c},
    {0x0143, 'n', 0x0301}, {0x0144, 'n', 0x0301}, {0x0145, 'n', 0x0327}, {0x0146, 'n', 0x0327},
    {0x0147, 'n', 0x030c}, {0x0148, 'n', 0x030c}, {0x014c, 'o', 0x0304}, {0x014d, 'o', 0x0304},
    {0x014e, 'o', 0x0306}, {0x014f, 'o', 0x0306}, {0x0150, 'o', 0x030b}, {0x0151, 'o', 0x030b},
    {0x0154, 'r', 0x0301}, {0x0155, 'r', 0x0301}, {0x0156, 'r', 0x0327}, {0x0157, 'r', 0x0327},
    {0x0158, 'r', 0x030c}, {0x0159, 'r', 0x030c}, {0x015a, 's', 0x0301}, {0x015b, 's', 0x0301},
    {0x015c, 's', 0x0302}, {0x015d, 's', 0x0302}, {0x015e, 's', 0x0327}, {0x015f, 's', 0x0327},
    {0x0160, 's', 0x030c}, {0x0161, 's', 0x030c}, {0x0162, 't', 0x0327}, {0x0163, 't', 0x0327},
    {0x0164, 't', 0x030c}, {0x0165, 't', 0x030c}, {0x0168, 'u', 0x0303}, {0x0169, 'u', 0x0303},
    {0x016a, 'u', 0x0304}, {0x016b, 'u', 0x0304}, {0x016c, 'u', 0x0306}, {0x016d, 'u', 0x0306},
    {0x016e, 'u', 0x030a}, {0x016f, 'u', 0x030a}, {0x0170, 'u', 0x030b}, {0x0171, 'u', 0x030b},
    {0x0172, 'u', 0x0328}, {0x0173, 'u', 0x0328}, {0x0174, 'w', 0x0302}, {0x0175, 'w', 0x0302},
    {0x0176, 'y', 0x0302}, {0x0177, 'y', 0x0302}, {0x0178, 'y', 0x0308}, {0x0179, 'z', 0x0301},
    {0x017a, 'z', 0x0301}, {0x017b, 'z', 0x0307}, {0x017c, 'z', 0x0307}, {0x017d, 'z', 0x030c},
    {0x017e, 'z', 0x030c},
};

/* Ranges that repeat a whole alphabet. */
static const struct alphabet {
    uint32_t from, to;
    const char *letters;
} alphabets[] = {
    {0xff01, 0xff5e,
     "!\"#$%&'()*+,-./"
     "0123456789:;<=>?@abcdefghijklmnopqrstuvwxyz[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"},
    {0x24b6, 0x24e9, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"},
    {0x1d400, 0x1d6a3, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"},
    {0x1d7ce, 0x1d7ff, "0123456789"},
};

/* One character for several letters. */
static const struct ligature {
    uint32_t is;
    const char *letters;
} ligatures[] = {
    {0x0132, "ij"},  {0x0133, "ij"}, {0x01c7, "lj"}, {0x01c8, "lj"}, {0x01c9, "lj"},
    {0x01ca, "nj"},  {0x01cb, "nj"}, {0x01cc, "nj"}, {0x01f1, "dz"}, {0x01f2, "dz"},
    {0x01f3, "dz"},  {0xfb00, "ff"}, {0xfb01, "fi"}, {0xfb02, "fl"}, {0xfb03, "ffi"},
    {0xfb04, "ffl"}, {0xfb05, "st"}, {0xfb06, "st"},
};

#define MARKS_MAX 8       /* on one letter; more only hide the letter, and sorting them is slow */
#define MARK_FIRST 0x0300 /* combining marks: two bytes each, sorted by code */
#define MARK_LAST 0x036f

bool lookalike_is_unseen(uint32_t code)
{
    for (size_t i = 0; i < countof(unseen); i++)
        if (code >= unseen[i].from && code <= unseen[i].to)
            return true;
    return false;
}

/* Lower case for Greek, Cyrillic and Latin-1 letters. */
static uint32_t small(uint32_t c)
{
    if ((c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f) ||
        (c >= 0xc0 && c <= 0xde && c != 0xd7))
        return c + 32;
    return c >= 0x400 && c <= 0x40f ? c + 80 : c;
}

/* Every table is sorted by its first member, the character. */
static int by_code(const void *key, const void *row)
{
    uint32_t code = *(const uint32_t *)key, is = *(const uint32_t *)row;
    return code < is ? -1 : code > is;
}

/* The look-alike of a character.  All zero: the character itself. */
struct like {
    char text[4];
    uint8_t n;     /* bytes of text */
    bool is_mark;  /* the text is a mark on the letter before */
    bool has_mark; /* the text is a letter and a mark */
    bool is_unseen;
};

static bool is_mark(uint32_t c)
{
    return c >= MARK_FIRST && c <= MARK_LAST;
}

static bool find_listed(uint32_t c, struct like *ret)
{
    const struct twin *twin = bsearch(&c, twins, countof(twins), sizeof(*twins), by_code);
    const struct marked *mark = bsearch(&c, marked, countof(marked), sizeof(*marked), by_code);
    const struct ligature *several =
        bsearch(&c, ligatures, countof(ligatures), sizeof(*ligatures), by_code);

    for (size_t i = 0; i < countof(alphabets); i++)
        if (c >= alphabets[i].from && c <= alphabets[i].to) {
            size_t at = (c - alphabets[i].from) % strlen(alphabets[i].letters);
            *ret = (struct like){.n = 1, .text = {alphabets[i].letters[at]}};
            return true;
        }
    if (twin) {
        *ret = (struct like){.n = 1, .text = {twin->like}};
    } else if (mark) {
        *ret = (struct like){.text = {mark->letter}, .has_mark = true};
        ret->n = (uint8_t)(1 + utf8_encode(mark->mark, ret->text + 1));
    } else if (several) {
        ret->n = (uint8_t)strlen(several->letters);
        memcpy(ret->text, several->letters, ret->n);
    }
    return twin || mark || several;
}

static struct like find_like(uint32_t c)
{
    struct like like = {0};
    uint32_t lower = small(c);

    if (lookalike_is_unseen(c))
        like.is_unseen = true;
    else if (is_mark(c) || (!find_listed(c, &like) && lower != c && !find_listed(lower, &like)))
        like.n = (uint8_t)utf8_encode(lower, like.text); /* two bytes */
    like.is_mark = is_mark(c) && !like.is_unseen;
    return like;
}

/* A server chooses its names, and may have very many long ones, so a character must cost one
 * lookup: the tables above are spread over pages of 256 characters.  Most pages of Unicode have no
 * entry. */
#define PAGE 256
#define PAGES (0x110000 / PAGE)
#define PAGES_LISTED 64 /* more than the tables use */

static uint8_t page_of[PAGES]; /* index in `pages` plus one; 0: all characters look like
                                * themselves */
static struct like pages[PAGES_LISTED][PAGE];

/* Fills every page that the range overlaps. */
static void fill_range(uint32_t from, uint32_t to, size_t *n)
{
    for (uint32_t page = from / PAGE; page <= to / PAGE; page++) {
        if (page_of[page])
            continue;
        assert(*n < PAGES_LISTED);
        for (uint32_t i = 0; i < PAGE; i++)
            pages[*n][i] = find_like(page * PAGE + i);
        page_of[page] = (uint8_t)++ * n;
    }
}

static void fill_pages(void)
{
    size_t n = 0;

    fill_range(0, 0x4ff, &n); /* all characters that small() changes */
    fill_range(MARK_FIRST, MARK_LAST, &n);
    for (size_t i = 0; i < countof(unseen); i++)
        fill_range(unseen[i].from, unseen[i].to, &n);
    for (size_t i = 0; i < countof(twins); i++)
        fill_range(twins[i].is, twins[i].is, &n);
    for (size_t i = 0; i < countof(marked); i++)
        fill_range(marked[i].is, marked[i].is, &n);
    for (size_t i = 0; i < countof(alphabets); i++)
        fill_range(alphabets[i].from, alphabets[i].to, &n);
    for (size_t i = 0; i < countof(ligatures); i++)
        fill_range(ligatures[i].is, ligatures[i].is, &n);
}

static const struct like *like_of(uint32_t c)
{
    static const struct like itself;
    unsigned page = page_of[c / PAGE];

    return page ? &pages[page - 1][c % PAGE] : &itself;
}

/* The fold of a name, while it is written. */
struct folding {
    char *to;
    unsigned marks; /* on the last letter */
};

/* Keeps the marks of one letter sorted, because they may be written in any order. */
static void add_mark(struct folding *f, const char *mark)
{
    char *at = f->to;

    memcpy(at, mark, 2);
    f->to += 2;
    for (unsigned i = f->marks++; i > 0 && memcmp(at - 2, at, 2) > 0; i--, at -= 2) {
        char moved[2];
        memcpy(moved, at, 2);
        memcpy(at, at - 2, 2);
        memcpy(at - 2, moved, 2);
    }
}

/* There is always room for four bytes, so a copy of fixed length suffices. */
static inline void add_like(struct folding *f, const struct like *like, const char *raw, size_t n)
{
    if (unlikely(like->is_mark)) {
        add_mark(f, like->text);
    } else if (like->n) {
        memcpy(f->to, like->text, sizeof(like->text));
        f->to += like->n;
        f->marks = like->has_mark;
    } else {
        for (size_t i = 0; i < n; i++)
            *f->to++ = raw[i];
        f->marks = 0;
    }
}

static char small_ascii(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool has_odd_blanks(struct str name)
{
    return name.n && (name.p[0] == ' ' || name.p[name.n - 1] == ' ' ||
                      memmem(name.p, name.n, "  ", 2) != NULL);
}

/* Two bytes become at most a letter and a mark of two bytes, so a fold is less than twice as
 * long. */
static bool begin(struct folding *f, struct str name, struct buf *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_pages);
    *f = (struct folding){.to = buf_room(out, 2 * name.n + 8)};
    return f->to != NULL;
}

bool lookalike_fold(struct str name, struct buf *out, const char **ret_why)
{
    const char *p = name.p, *end = name.p + name.n;
    struct folding f;
    uint32_t c = 0;

    if (name.n > LOOKALIKE_MAX || !begin(&f, name, out)) {
        *ret_why = "is longer than any call may name";
        return false;
    }
    if (has_odd_blanks(name)) {
        *ret_why = "has blanks at an end or side by side";
        return false;
    }
    const char *from = f.to;
    while (p < end) {
        if (*p >= ' ' && *p < 0x7f) {
            *f.to++ = small_ascii(*p++);
            f.marks = 0;
            continue;
        }
        size_t n = utf8_decode(p, end, &c);
        const struct like *like = n ? like_of(c) : NULL;
        if (!like || like->is_unseen) {
            *ret_why = n ? "has blank or invisible characters" : "is not UTF-8";
            return false;
        }
        add_like(&f, like, p, n);
        if (f.marks > MARKS_MAX) {
            *ret_why = "has more than eight marks on one letter";
            return false;
        }
        p += n;
    }
    buf_grown(out, (size_t)(f.to - from));
    return true;
}

void lookalike_fold_loosely(struct str name, struct buf *out)
{
    const char *p = name.p, *end = name.p + name.n;
    struct folding f;
    uint32_t c = 0;

    if (!begin(&f, name, out))
        return;
    char *from = f.to;
    for (size_t n; p < end && (n = utf8_decode(p, end, &c)); p += n)
        if (c < 0x80) {
            *f.to++ = *p == 'I' ? 'l' : small_ascii(*p);
            f.marks = 0;
        } else {
            add_like(&f, like_of(c), p, n);
        }
    for (char *at = from; at < f.to; at++)
        *at = *at == '1' || *at == '|' ? 'l' : *at == '0' ? 'o' : *at;
    buf_grown(out, (size_t)(f.to - from));
}

bool lookalike_is_ascii(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] >= 0x80)
            return false;
    return true;
}
