/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of ECMA 262, run by PCRE2: the pattern is read by us and written anew in the
 * part of PCRE2's language that means the same; what has no such part is refused, not approximated.
 */
#ifndef HOLDFAST_SCHEMA_REGEX_H
#define HOLDFAST_SCHEMA_REGEX_H

#include "schema/schema.h"

struct regex;
struct regex_run; /* what matching needs; one for a whole check */

/* NULL, and *ret_reason a literal, when the pattern is not understood.  Freed with `mem`. */
must_check struct regex *regex_compile(struct str pattern, struct arena *mem,
                                       const char **ret_reason);
size_t regex_size(const struct regex *re); /* bytes it takes */
/* `pattern` in PCRE2's words; false as above.  *ret_lenient: it is only right without ECMA's flag
 * "u", where characters past U+FFFF are two. */
must_check bool regex_translate(struct str pattern, struct buf *out, bool *ret_lenient,
                                const char **ret_reason);
struct regex_run *regex_run_new(void);
void regex_run_free(struct regex_run *run); /* NULL is fine */
/* Whether `re` matches somewhere in `text`, which is UTF-8.  Unsure past SCHEMA_PATTERN_STEPS_MAX
 * or *steps, and where the answer depends on ECMA's flag "u"; *steps loses what was used. */
enum schema_answer regex_match(struct regex_run *run, const struct regex *re, struct str text,
                               uint32_t *steps);

#endif
