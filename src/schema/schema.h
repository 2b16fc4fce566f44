/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded checker of JSON Schema 2020-12, and of the forms of draft-06, draft-07 and 2019-09 that
 * tools still carry.  It answers in three ways: what is outside the subset, malformed, or past a
 * limit is listed and answered with SCHEMA_UNSURE where it decides, never guessed.  Nothing is
 * fetched; `format` and its like are notes, as the specification has it.  docs/schema-subset.md
 * says what is checked.
 *
 *   if (!schema_compile(&tool, js_get(&tool, js_root(&tool), STR("inputSchema")), mem, &s, err))
 *       return false;
 *   if (schema_check(s, &call, arguments, mem, &report) == SCHEMA_INVALID)
 *       schema_report_write(&report, &call, arguments, &text); */
#ifndef HOLDFAST_SCHEMA_SCHEMA_H
#define HOLDFAST_SCHEMA_SCHEMA_H

#include "base/buf.h"
#include "json/read.h"

#define SCHEMA_TEXT_MAX (256u << 10)    /* bytes of a schema */
#define SCHEMA_SUBSCHEMAS_MAX 10000     /* schemas inside a schema */
#define SCHEMA_DEPTH_MAX 256            /* schemas applied inside one another */
#define SCHEMA_STEPS_MAX 1000000        /* work of one check */
#define SCHEMA_STEP_BYTES 16            /* of a text that is looked through for one step */
#define SCHEMA_FINDINGS_MAX 16          /* told of one instance */
#define SCHEMA_GAPS_MAX 32              /* listed of one schema */
#define SCHEMA_PATTERN_MAX 4096         /* bytes of a regular expression */
#define SCHEMA_PATTERNS_MAX (1u << 20)  /* bytes that all of a schema take when compiled */
#define SCHEMA_PATTERN_STEPS_MAX 250000 /* work of one match */
#define SCHEMA_URI_MAX 2048             /* bytes of $id, $ref and what they resolve to */
#define SCHEMA_LINK_MAX 4000000         /* members and items passed to find what $refs mean */
#define SCHEMA_EXPONENT_MAX 999999999   /* of a number, either way */
#define SCHEMA_DIVISOR_MAX 19           /* significant digits of multipleOf */

/* Ordered so that "all of" is the largest answer and "any of" the smallest. */
enum schema_answer { SCHEMA_VALID, SCHEMA_UNSURE, SCHEMA_INVALID };

struct schema;

struct schema_finding {
    struct str path;     /* JSON pointer into the instance, long keys cut; "" is the whole */
    struct str name;     /* of the property that is missing or unknown; else absent */
    const char *keyword; /* a literal */
    struct str sentence; /* for an agent: "parameters.limit must be at most 100" */
};
/* Texts are in the arena of the check, or literals. */
struct schema_report {
    unsigned n;
    bool more; /* there were more than could be told */
    struct schema_finding findings[SCHEMA_FINDINGS_MAX];
    /* Of SCHEMA_UNSURE: what was not checked and why. */
    const char *unsure_keyword;
    const char *unsure_reason;
};
/* Something in a schema that we do not check. */
struct schema_gap {
    struct str path; /* JSON pointer into the schema's document */
    const char *keyword;
    const char *reason;
};

/* `doc` and its text are borrowed as long as *ret is used; all else is in `mem` and goes with it.
 * Fails on what is no schema at all (neither an object nor true or false) and past the limits of
 * size; a keyword that makes no sense is a gap instead.  One thread at a time. */
must_check bool schema_compile(const struct js_doc *doc, const struct js_node *root,
                               struct arena *mem, struct schema **ret, struct error *err);
/* `instance` must come from a reader that refuses duplicate keys.  *ret is always filled. */
enum schema_answer schema_check(const struct schema *s, const struct js_doc *doc,
                                const struct js_node *instance, struct arena *mem,
                                struct schema_report *ret);
/* The first SCHEMA_GAPS_MAX of what is not checked; *ret_total counts them all. */
const struct schema_gap *schema_unsupported(const struct schema *s, unsigned *ret_n,
                                            unsigned *ret_total);
/* The findings as text: "Missing required parameters: …\nReceived parameters: …" where top-level
 * ones are missing, then one line for each other finding. */
void schema_report_write(const struct schema_report *r, const struct js_doc *doc,
                         const struct js_node *instance, struct buf *out);

#endif
