/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of ECMA 262, run by PCRE2.  We parse the pattern and write it in the part of
 * PCRE2's language that means the same.  A construct without an equivalent is refused, not
 * approximated. */
#ifndef HOLDFAST_SCHEMA_REGEX_H
#define HOLDFAST_SCHEMA_REGEX_H

#include "schema/schema.h"

struct regex;
struct regex_run; /* matching state; one for a whole check */

/* NULL, and *ret_reason is a literal, when the pattern is not supported.  Freed with `mem`. */
must_check struct regex *regex_compile(struct str pattern, struct arena *mem,
                                       const char **ret_reason);
size_t regex_size(const struct regex *re); /* bytes of the compiled pattern */
/* `pattern` in PCRE2's syntax; false as above.  *ret_lenient: it is valid only without ECMA's flag
 * "u", where characters past U+FFFF count as two. */
must_check bool regex_translate(struct str pattern, struct buf *out, bool *ret_lenient,
                                const char **ret_reason);
struct regex_run *regex_run_new(void);
void regex_run_free(struct regex_run *run); /* NULL is fine */
/* Whether `re` matches anywhere in `text`, which is UTF-8.  Unsure past SCHEMA_PATTERN_STEPS_MAX or
 * *steps, and if the answer depends on ECMA's flag "u".  Subtracts the used steps from *steps. */
enum schema_answer regex_match(struct regex_run *run, const struct regex *re, struct str text,
                               uint32_t *steps);

#endif
