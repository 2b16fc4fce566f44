/* SPDX-License-Identifier: Apache-2.0 */
/* Differences between two JSON texts, as values: the order of keys does not count, numbers are
 * equal by value (1, 1.0, 10e-1), and text that holds a JSON object or array on both sides is
 * compared as JSON.
 *
 * A place is written like a JSON pointer (RFC 6901), and goes on into JSON inside of text:
 * /content/0/text/items/3/price.  Blocking and pure, so it may run on any thread. */
#ifndef HOLDFAST_REPLAY_DIFF_H
#define HOLDFAST_REPLAY_DIFF_H

#include "base/arena.h"
#include "base/error.h"

#define DIFF_SHOWN 20        /* differences that are returned; the others are counted */
#define DIFF_VALUE_MAX 200   /* bytes of a value that are returned … */
#define DIFF_SAME_SHOWN 40   /* … of them, before the first that differs in a long one */
#define DIFF_PATH_MAX 512    /* bytes of a path that are returned */
#define DIFF_IGNORE_MAX 64   /* patterns */
#define DIFF_PATTERN_MAX 512 /* bytes of one */
#define DIFF_TEXT_DEPTH 3    /* JSON in text in JSON in text … */

/* Places that do not count: "/content/0/text/time", with * for any one key or position.  What is
 * below such a place does not count either. */
struct diff_ignore {
    const struct str *patterns;
    size_t n;
};
/* Whether a pattern is one: it begins with /, and is not too long.  ERR_BAD_INPUT. */
must_check bool diff_pattern_check(struct str pattern, struct error *err);

enum diff_kind {
    DIFF_CHANGED,
    DIFF_ADDED,   /* not in the first text */
    DIFF_REMOVED, /* not in the second text */
};
extern const char *const diff_kind_names[]; /* NULL-terminated */

struct difference {
    enum diff_kind kind;
    struct str path; /* "" is the whole text */
    /* The two values as JSON.  Of a long one DIFF_VALUE_MAX bytes about the first that differs, with
     * "…" where it was cut.  Absent on the side that has none. */
    struct str before, after;
};
struct diff {
    struct difference list[DIFF_SHOWN]; /* in the order of the keys */
    size_t n;                           /* in `list` */
    size_t total;                       /* also those that are not in it */
};
/* Texts are in mem.  False: one of the two texts is not JSON (within the limits of results of
 * servers).
 *
 * At the top, a member of `_meta` whose name begins with "holdfast/" and a `resultType` of
 * "complete" do not count: the first is Holdfast's own, the second is what its absence means. */
must_check bool diff_json(struct str before, struct str after, const struct diff_ignore *ignore,
                          struct arena *mem, struct diff *ret);

#endif
