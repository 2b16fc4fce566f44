/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded checker of JSON Schema 2020-12, and of the forms of draft-06, draft-07 and 2019-09 that
 * tools still use.  It has three answers.  A construct that is outside the subset, malformed, or
 * past a limit is listed, and gives SCHEMA_UNSURE if it decides; the checker never guesses.
 * Nothing is fetched; `format` and the like are annotations, as the specification says.
 * docs/schema-subset.md lists what is checked.
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
#define SCHEMA_STEPS_MAX 1000000        /* steps of one check */
#define SCHEMA_STEP_BYTES 16            /* bytes of text that one step pays for */
#define SCHEMA_FINDINGS_MAX 16          /* reported for one instance */
#define SCHEMA_GAPS_MAX 32              /* listed for one schema */
#define SCHEMA_PATTERN_MAX 4096         /* bytes of a regular expression */
#define SCHEMA_PATTERNS_MAX (1u << 20)  /* bytes of all compiled expressions of a schema */
#define SCHEMA_PATTERN_STEPS_MAX 250000 /* steps of one match */
#define SCHEMA_URI_MAX 2048             /* bytes of $id, $ref and the resolved URI */
#define SCHEMA_LINK_MAX 4000000         /* members and items passed while resolving $refs */
#define SCHEMA_EXPONENT_MAX 999999999   /* of a number, positive or negative */
#define SCHEMA_DIVISOR_MAX 19           /* significant digits of multipleOf */

/* Ordered so that "all of" is the maximum of the answers and "any of" the minimum. */
enum schema_answer { SCHEMA_VALID, SCHEMA_UNSURE, SCHEMA_INVALID };

struct schema;

struct schema_finding {
    struct str path;     /* JSON pointer into the instance, long keys cut; "" is the root */
    struct str name;     /* of the missing or unknown property; else absent */
    const char *keyword; /* a literal */
    struct str sentence; /* for an agent: "parameters.limit must be at most 100" */
};
/* Texts are in the arena of the check, or literals. */
struct schema_report {
    unsigned n;
    bool more; /* further findings were left out */
    struct schema_finding findings[SCHEMA_FINDINGS_MAX];
    /* For SCHEMA_UNSURE: the keyword that was not checked, and why. */
    const char *unsure_keyword;
    const char *unsure_reason;
};
/* A construct in a schema that is not checked. */
struct schema_gap {
    struct str path; /* JSON pointer into the schema's document */
    const char *keyword;
    const char *reason;
};

/* *ret borrows `doc` and its text; all else is in `mem` and freed with it.  Fails if `root` is not
 * a schema (neither an object nor true or false) and past the size limits; an invalid keyword value
 * is a gap instead.  One thread at a time. */
must_check bool schema_compile(const struct js_doc *doc, const struct js_node *root,
                               struct arena *mem, struct schema **ret, struct error *err);
/* `instance` must come from a reader that refuses duplicate keys.  *ret is always filled. */
enum schema_answer schema_check(const struct schema *s, const struct js_doc *doc,
                                const struct js_node *instance, struct arena *mem,
                                struct schema_report *ret);
/* The first SCHEMA_GAPS_MAX constructs that are not checked; *ret_total counts all. */
const struct schema_gap *schema_unsupported(const struct schema *s, unsigned *ret_n,
                                            unsigned *ret_total);
/* Writes the findings as text: "Missing required parameters: …\nReceived parameters: …" if
 * top-level parameters are missing, then one line for each other finding. */
void schema_report_write(const struct schema_report *r, const struct js_doc *doc,
                         const struct js_node *instance, struct buf *out);

#endif
