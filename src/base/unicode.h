/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode: forms of a text in which equal names have equal bytes, kinds of characters, and the
 * width of a text on a terminal.  The tables are those of utf8proc; only unicode.c includes its
 * header.  Decoding stays in base/utf8.h.
 *
 * Most texts are ASCII, and cost one look at each byte here. */
#ifndef HOLDFAST_BASE_UNICODE_H
#define HOLDFAST_BASE_UNICODE_H

#include "base/arena.h"
#include "base/buf.h"

/* More marks in a row are no text (the limit of UAX #15 for streams); to sort them is slow. */
#define UNICODE_MARKS_MAX 30
/* Bytes without an ASCII character.  Text is mapped run by run, so this bounds the memory. */
#define UNICODE_RUN_MAX 65536u
/* A mapped text has at most this many times the bytes of the text (U+FDFA). */
#define UNICODE_GROWTH 11
/* The codes that one character may become. */
#define UNICODE_CODES_MAX 18

enum unicode_form {
    /* Composed letters, otherwise unchanged. */
    UNICODE_NFC,
    /* For names of files and the like: composed letters in lower case, one for one.  "MAẞE" is
     * "maße", not "masse"; "Σ" is "σ" everywhere; dotless "ı" is not "i". */
    UNICODE_NAME,
    /* For searching: also "ss" for "ß", "fi" for the ligature, "a" for a full-width "Ａ", and
     * letters without accents. */
    UNICODE_SEARCH,
};

/* Adds the form of `text` to `out`, whose limit should allow UNICODE_GROWTH.  Returns false, with
 * nothing added, when the text is not UTF-8, has more than UNICODE_MARKS_MAX marks in a row or more
 * than UNICODE_RUN_MAX bytes without ASCII, or is too long for `out`. */
must_check bool unicode_map(struct str text, enum unicode_form form, struct buf *out);
/* The same, in mem.  `text` itself when it is in that form; absent where unicode_map() returns
 * false. */
struct str unicode_mapped(struct str text, enum unicode_form form, struct arena *mem);
/* Whether two names have the same UNICODE_NAME.  Names without one are compared by str_ieq(). */
bool unicode_same_name(struct str a, struct str b);

/* Whether every byte is ASCII. */
bool unicode_is_ascii(struct str text);

/* The codes of a character without composed letters and other presentations (NFKD); with `folded`
 * in lower case too.  Returns their number. */
size_t unicode_decompose(uint32_t code, bool folded, uint32_t ret[UNICODE_CODES_MAX]);

/* The parts of the functions below for characters beyond ASCII. */
bool unicode_is_invisible_slowly(uint32_t code);
bool unicode_is_word_slowly(uint32_t code);

/* Whether the character draws nothing, or reorders the characters beside it: controls, bidi
 * controls, zero-width characters, fillers, variation selectors and tags.  A reader cannot see
 * them, so terminals show their numbers, and new names may not contain them. */
static inline bool unicode_is_invisible(uint32_t code)
{
    return code < 0x7f ? code < ' ' : unicode_is_invisible_slowly(code);
}
/* Whether the character is a letter, a mark on a letter, or a number, of any script, or for private
 * use. */
static inline bool unicode_is_word(uint32_t code)
{
    return code < 0x80 ? (code >= '0' && code <= '9') || ((code | 32) >= 'a' && (code | 32) <= 'z')
                       : unicode_is_word_slowly(code);
}
bool unicode_is_blank(uint32_t code); /* a space of any width */
bool unicode_is_mark(uint32_t code);  /* drawn on the character before it */

/* Columns of a terminal that the text takes: two for wide characters, none for marks.  A byte that
 * is not UTF-8 takes one. */
size_t unicode_columns(struct str text);
/* Adds blanks until the text from offset `from` on takes that many columns. */
void unicode_pad(struct buf *out, size_t from, size_t columns);

#endif
