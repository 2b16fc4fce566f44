/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of redaction:
 *
 *   redact_table.c   the tables of token shapes and of names; the reference page is printed from it
 *   redact_shape.c   does a token of the table stand here?
 *   redact_key.c     does a name speak of a secret?
 *   redact_scan.c    where is it worth looking?
 *   known.c          values that are known to be secret
 *   redact_needle.c  the credential that a request came with
 *   redact.c         walks from one such place to the next and replaces */
#ifndef HOLDFAST_AUDIT_REDACT_IMPL_H
#define HOLDFAST_AUDIT_REDACT_IMPL_H

#include "audit/known.h"
#include "base/str.h"

/* The tables. */

enum shape_chars {
    CHARS_WORD = 1,   /* letters and digits */
    CHARS_URL = 2,    /* and - _ */
    CHARS_BASE64 = 4, /* and . ~ + / = */
    CHARS_DOT = 8,    /* and . */
    CHARS_HEX = 16,   /* 0-9 a-f, nothing else */
    CHARS_UPPER = 32, /* 0-9 A-Z, nothing else */
    CHARS_PERCENT = 64,
};
/* What one body has been found not to hold: spares a second look, so that a body of nothing but
 * beginnings stays linear.  Start it zeroed. */
struct shape_memo {
    size_t no_jwt_before;
};
struct redact_shape;
/* The token whose prefix stands at in[at]: [*ret_from, *ret_to) is the secret part of it. */
typedef bool (*shape_match)(const struct redact_shape *shape, struct str in, size_t at,
                            struct shape_memo *memo, size_t *ret_from, size_t *ret_to);
struct redact_shape {
    const char *whose;
    struct str prefix;
    unsigned char keep;  /* bytes of the prefix that stay, for the reader */
    unsigned char least; /* characters that must follow */
    unsigned char most;  /* no more than these may follow; 0: any number */
    unsigned char then;  /* behind these a dot and at least so many more; 0: no dot */
    unsigned char chars; /* enum shape_chars */
    bool any_case;
    bool anywhere;     /* a letter or digit may stand right before it */
    shape_match match; /* NULL: a prefix and a run of characters */
    const char *looks; /* for the reference page; NULL: the prefix and "…" */
    const char *example;
};
extern const struct redact_shape redact_shapes[];
extern const size_t redact_n_shapes;

enum key_class {
    KEY_PLAIN,
    KEY_SECRET,
    KEY_COUNT, /* "max_tokens": a number is kept, an object is looked into, anything else is secret
                */
};
enum name_how {
    NAME_PART, /* anywhere in the name, once case and separators are taken away */
    NAME_WORD, /* one whole word of the name: "db_pwd", "dbPwd", not "pwdump" */
};
struct redact_name {
    struct str word;
    enum name_how how;
    enum key_class class;
    const char *example; /* a name that it finds */
};
extern const struct redact_name redact_names[];
extern const size_t redact_n_names;
/* Four bytes, one of which every name of the table has however it is spelt; '?' is any byte. */
extern const char *const redact_name_windows[];
extern const size_t redact_n_name_windows;

/* Judging. */

/* `key` is a string's inside, escapes and all. */
enum key_class redact_key_class(struct str key);
/* The same with "pwd" apart: its value may be the working directory. */
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
/* Does this token of the table begin at in[at]? */
bool redact_shape_at(const struct redact_shape *shape, struct str in, size_t at,
                     struct shape_memo *memo, size_t *ret_from, size_t *ret_to);

/* Scanning.
 *
 * A scanner knows windows: four bytes that stand at a fixed distance from the beginning of
 * something.  It finds the places at which one of them stands, 32 places at a time where the
 * processor has AVX2, byte by byte elsewhere. */

#define SCAN_LETTERS 4
#define SCAN_GROUPS 2
#define SCAN_BUCKETS (8 * SCAN_GROUPS)
#define SCAN_SEEN_BITS 8192

enum window_kind { WINDOW_NAME, WINDOW_SHAPE, WINDOW_VALUE };
struct window {
    uint32_t key, mask; /* of the four bytes, without case; mask: those that count */
    uint32_t item;      /* a row of a table, or a known value */
    uint32_t next;      /* of the same hash, plus one; 0: none */
    uint16_t offset;    /* from the beginning of the item */
    uint8_t kind;       /* enum window_kind */
    uint8_t class;
};
struct scanner {
    /* Buckets by half bytes, eight in a group. */
    uint8_t low[SCAN_GROUPS][SCAN_LETTERS][16], high[SCAN_GROUPS][SCAN_LETTERS][16];
    uint32_t by_byte[SCAN_LETTERS][256]; /* the same by bytes, all groups */
    /* Which half bytes each bucket takes at each letter. */
    uint16_t lows[SCAN_BUCKETS][SCAN_LETTERS], highs[SCAN_BUCKETS][SCAN_LETTERS];
    float passing[SCAN_BUCKETS]; /* how much of ordinary text each lets pass */
    /* A bit for each hash of the first three letters of a window, and of the last three of those
     * whose first letter may be any byte. */
    uint32_t heads_seen[SCAN_SEEN_BITS / 32], tails_seen[SCAN_SEEN_BITS / 32];
    struct window *windows;
    size_t n, room;
    uint32_t *heads; /* by hash: a window plus one; 0: none */
    unsigned shift;
};
/* What is known of the block at which the last place was found.  Start it zeroed. */
struct scan_cursor {
    size_t block;
    uint32_t places;
    bool is_filled;
};
void scanner_init(struct scanner *s);
void scanner_copy(struct scanner *s, const struct scanner *from); /* before scanner_finish() */
void scanner_release(struct scanner *s);
/* `bytes`: four, '?' where `wild` has a bit (the first or the last letter only). */
void scanner_add(struct scanner *s, const char *bytes, unsigned wild, bool any_case, size_t offset,
                 enum window_kind kind, size_t item);
/* The rarest window of a text of at least four bytes, as far as ordinary text goes, within its
 * first SCAN_OFFSET_MAX bytes. */
#define SCAN_OFFSET_MAX 60
size_t scanner_rarest(struct str text);
void scanner_finish(struct scanner *s);
/* The next place in [at, end) at which a window stands; `end` when there is none.  `wide` false:
 * without the help of wide registers, for tests. */
size_t scanner_next(const struct scanner *s, struct str in, size_t at, size_t end,
                    struct scan_cursor *c, bool wide);
/* Every window of that kind at this place, until one is taken. */
bool scanner_each(const struct scanner *s, struct str in, size_t at, enum window_kind kind,
                  bool (*take)(void *arg, const struct window *w), void *arg);
/* The windows of the tables, made once. */
const struct scanner *redact_table_scanner(void);

/* Known values. */

const struct scanner *known_scanner(const struct known *k);
/* Does the known value stand at in[at]?  Its length and what is written in its place. */
bool known_matches(const struct known *k, size_t value, struct str in, size_t at, size_t *ret_n,
                   struct str *ret_marker);

/* The credential of one request.  Borrows its bytes. */

#define NEEDLE_WINDOWS 4 /* as it is, and in base64 by where it begins */
struct needle_window {
    uint32_t bytes; /* four of them */
    size_t offset;  /* from the beginning of the form */
    uint8_t form;
};
struct needle {
    struct str value;
    struct needle_window windows[NEEDLE_WINDOWS];
    size_t n; /* 0: there is nothing to look for */
};
void needle_init(struct needle *n, struct str value); /* absent is fine */
/* The next place in [at, end) at which one of its windows stands; `end` when there is none. */
size_t needle_next(const struct needle *n, struct str in, size_t at, size_t end, bool wide);
/* Does the credential stand around that place, in any form? */
bool needle_at(const struct needle *n, struct str in, size_t at, size_t *ret_from, size_t *ret_to);

#endif
