/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of redaction:
 *
 *   redact_table.c   the tables of token shapes and of names; the reference page is printed from it
 *   redact_shape.c   whether a token of the table is at a position
 *   redact_key.c     whether a name denotes a secret
 *   redact_scan.c    finds candidate positions
 *   known.c          known secret values
 *   redact_needle.c  the credential of a request
 *   redact.c         walks from one candidate to the next and replaces */
#ifndef HOLDFAST_AUDIT_REDACT_IMPL_H
#define HOLDFAST_AUDIT_REDACT_IMPL_H

#include "audit/known.h"
#include "base/str.h"

/* The tables. */

enum shape_chars {
    CHARS_WORD = 1,   /* letters and digits */
    CHARS_URL = 2,    /* letters, digits, - and _ */
    CHARS_BASE64 = 4, /* and . ~ + / = */
    CHARS_DOT = 8,    /* and . */
    CHARS_HEX = 16,   /* 0-9 a-f, nothing else */
    CHARS_UPPER = 32, /* 0-9 A-Z, nothing else */
    CHARS_PERCENT = 64,
};
/* Negative results for one body.  They spare a second search, so that a body full of token
 * beginnings stays linear.  Initialise it to zero. */
struct shape_memo {
    size_t no_jwt_before;
};
struct redact_shape;
/* Matches the token with its prefix at in[at]; [*ret_from, *ret_to) is its secret part. */
typedef bool (*shape_match)(const struct redact_shape *shape, struct str in, size_t at,
                            struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
struct redact_shape {
    const char *vendor;
    struct str prefix;
    unsigned char keep;  /* bytes of the prefix that are kept, for the reader */
    unsigned char least; /* fewest characters that must follow */
    unsigned char most;  /* most characters that may follow; 0: any number */
    unsigned char then;  /* after these a dot and at least this many more; 0: no dot */
    unsigned char chars; /* enum shape_chars */
    bool any_case;
    bool anywhere;     /* a letter or digit may precede it */
    shape_match match; /* NULL: a prefix and a run of characters */
    const char *looks; /* for the reference page; NULL: the prefix and "…" */
    const char *example;
};
extern const struct redact_shape redact_shapes[];
extern const size_t redact_n_shapes;

enum key_class {
    KEY_PLAIN,
    KEY_SECRET,
    KEY_COUNT, /* "max_tokens": numbers are kept, objects searched, other values secret */
};
enum name_how {
    NAME_PART, /* anywhere in the name, ignoring case and separators */
    NAME_WORD, /* one whole word of the name: "db_pwd", "dbPwd", not "pwdump" */
};
struct redact_name {
    struct str word;
    enum name_how how;
    enum key_class class;
    const char *example; /* a name that it matches */
};
extern const struct redact_name redact_names[];
extern const size_t redact_n_names;
/* Four-byte windows; every spelling of every name in the table contains one of them; '?' matches
 * any byte. */
extern const char *const redact_name_windows[];
extern const size_t redact_n_name_windows;

/* Matching. */

/* `key` is the inside of a JSON string, with its escapes. */
enum key_class redact_key_class(struct str key);
/* Whether the name is "pwd" or "oldpwd": its value may be the working directory. */
bool redact_key_may_be_directory(struct str key);

bool shape_match_prefix(const struct redact_shape *shape, struct str in, size_t at,
                        struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
bool shape_match_jwt(const struct redact_shape *shape, struct str in, size_t at,
                     struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
bool shape_match_pem(const struct redact_shape *shape, struct str in, size_t at,
                     struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
bool shape_match_basic(const struct redact_shape *shape, struct str in, size_t at,
                       struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
bool shape_match_url(const struct redact_shape *shape, struct str in, size_t at,
                     struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
bool shape_match_telegram(const struct redact_shape *shape, struct str in, size_t at,
                          struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
bool shape_match_azure(const struct redact_shape *shape, struct str in, size_t at,
                       struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
/* Whether this token of the table begins at in[at]. */
bool redact_shape_at(const struct redact_shape *shape, struct str in, size_t at,
                     struct shape_memo *memo, size_t *ret_from, size_t *ret_to);

/* Scanning.
 *
 * A scanner holds windows: four bytes at a fixed distance from the beginning of an item.  It finds
 * the positions of these windows, 32 positions at a time on processors with AVX2, byte by byte on
 * others. */

#define SCAN_LETTERS 4
#define SCAN_GROUPS 2
#define SCAN_BUCKETS (8 * SCAN_GROUPS)
#define SCAN_SEEN_BITS 8192

enum window_kind { WINDOW_NAME, WINDOW_SHAPE, WINDOW_VALUE };
struct window {
    uint32_t key, mask; /* the four bytes, without case; mask: the bits that count */
    uint32_t item;      /* a row of a table, or a known value */
    uint32_t next;      /* next window of the same hash, plus one; 0: end */
    uint16_t offset;    /* from the beginning of the item */
    uint8_t kind;       /* enum window_kind */
    uint8_t class;
};
struct scanner {
    /* Buckets by half byte (nibble), eight in a group. */
    uint8_t low[SCAN_GROUPS][SCAN_LETTERS][16], high[SCAN_GROUPS][SCAN_LETTERS][16];
    uint32_t by_byte[SCAN_LETTERS][256]; /* the same by byte, for all groups */
    /* The half bytes that each bucket accepts at each letter. */
    uint16_t lows[SCAN_BUCKETS][SCAN_LETTERS], highs[SCAN_BUCKETS][SCAN_LETTERS];
    float passing[SCAN_BUCKETS]; /* share of ordinary text that each bucket lets pass */
    /* A bit for each hash of the first three letters of a window.  Windows with a wildcard as first
     * letter have a bit for the hash of their last three letters. */
    uint32_t heads_seen[SCAN_SEEN_BITS / 32], tails_seen[SCAN_SEEN_BITS / 32];
    struct window *windows;
    size_t n, room;
    uint32_t *heads; /* by hash: index of a window plus one; 0: empty */
    unsigned shift;
};
/* The result for the block in which the last position was found.  Initialise it to zero. */
struct scan_cursor {
    size_t block;
    uint32_t places;
    bool is_filled;
};
void scanner_init(struct scanner *s);
void scanner_copy(struct scanner *s, const struct scanner *from); /* before scanner_finish() */
void scanner_release(struct scanner *s);
/* `bytes`: four; '?' where `wild` has a bit (only the first or the last letter may be wild). */
void scanner_add(struct scanner *s, const char *bytes, unsigned wild, bool any_case, size_t offset,
                 enum window_kind kind, size_t item);
/* Returns the offset of the window that is rarest in ordinary text.  The text has at least four
 * bytes; only its first SCAN_OFFSET_MAX bytes are considered. */
#define SCAN_OFFSET_MAX 60
size_t scanner_rarest(struct str text);
void scanner_finish(struct scanner *s);
/* Returns the next position of a window in [at, end), or `end`.  `wide` false: without wide
 * registers, for tests. */
size_t scanner_next(const struct scanner *s, struct str in, size_t at, size_t end,
                    struct scan_cursor *c, bool wide);
/* Calls take() for every window of that kind at this position, until take() returns true. */
bool scanner_each(const struct scanner *s, struct str in, size_t at, enum window_kind kind,
                  bool (*take)(void *arg, const struct window *w), void *arg);
/* The windows of the tables, built once. */
const struct scanner *redact_table_scanner(void);

/* Known values. */

const struct scanner *known_scanner(const struct known *k);
/* Whether the known value is at in[at]; returns its length and its replacement. */
bool known_matches(const struct known *k, size_t value, struct str in, size_t at, size_t *ret_n,
                   struct str *ret_marker);

/* The credential of one request.  Its bytes are borrowed. */

#define NEEDLE_WINDOWS 4 /* plain, and base64 in three alignments */
struct needle_window {
    uint32_t bytes; /* four of them */
    size_t offset;  /* from the beginning of the encoded form */
    uint8_t form;
};
struct needle {
    struct str value;
    struct needle_window windows[NEEDLE_WINDOWS];
    size_t n; /* 0: nothing to search for */
};
void needle_init(struct needle *n, struct str value); /* absent is fine */
/* Returns the next position of one of its windows in [at, end), or `end`. */
size_t needle_next(const struct needle *n, struct str in, size_t at, size_t end, bool wide);
/* Whether the window at this position belongs to the credential, in any form. */
bool needle_at(const struct needle *n, struct str in, size_t at, size_t *ret_from, size_t *ret_to);

#endif
