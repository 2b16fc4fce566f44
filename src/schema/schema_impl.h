/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the checker, and included nowhere else: the compiled form and the state of
 * one check.
 *
 * A schema becomes a tree of subs, one per place where a schema may be, each with its rules in the
 * order in which they run.  References are pointers from rule to sub. */
#ifndef HOLDFAST_SCHEMA_SCHEMA_IMPL_H
#define HOLDFAST_SCHEMA_SCHEMA_IMPL_H

#include "base/map.h"
#include "schema/number.h"
#include "schema/regex.h"

/* Bits, so that one mask gives the dialects that define a keyword. */
enum dialect {
    DIALECT_2020 = 1,
    DIALECT_2019 = 2,
    DIALECT_7 = 4,
    DIALECT_6 = 8,
    DIALECT_UNSAID = 16, /* no $schema: 2020-12, and the forms of draft-07 are accepted */
};
#define DIALECTS_OLD (DIALECT_7 | DIALECT_6)
#define DIALECTS_2020 (DIALECT_2020 | DIALECT_UNSAID)
#define DIALECTS_2019_ON (DIALECTS_2020 | DIALECT_2019)
#define DIALECTS_ALL (DIALECTS_2019_ON | DIALECTS_OLD)

/* A document, or a part of it with its own $id. */
struct resource {
    struct str uri; /* resolved, without fragment; empty for a root without $id */
    const struct js_node *root;
    unsigned dialect; /* one bit */
    bool twice;       /* another resource has the same uri, so references to it are gaps */
};
struct anchor {
    struct str key; /* uri#name */
    struct sub *sub;
    bool dynamic;
    bool twice;
};

struct check;
struct frame;
struct rule;
typedef enum schema_answer (*rule_check)(struct check *c, const struct frame *f,
                                         const struct rule *r);

enum sub_kind { SUB_RULES, SUB_TRUE, SUB_FALSE, SUB_GAP };
struct sub {
    enum sub_kind kind;
    const struct js_node *node;
    const struct resource *resource;
    struct rule *rules;
    unsigned n_rules;
    const struct object_rules *object; /* for suggestions of property names; may be NULL */
    const struct schema_gap *gap;      /* SUB_GAP */
};

struct entry {
    struct str name;
    struct sub *sub;
    struct regex *regex; /* patternProperties; NULL: not supported */
    struct str *needs;   /* dependentRequired */
    unsigned n_needs;
};
struct object_rules {
    struct entry *properties; /* sorted by name */
    unsigned n_properties;
    struct entry *patterns;
    unsigned n_patterns;
    struct sub *rest; /* NULL: any value */
};
struct array_rules {
    struct sub **prefix;
    unsigned n_prefix;
    struct sub *rest; /* NULL: any value */
    const char *rest_keyword;
};

struct rule {
    const char *keyword;
    rule_check check;
    unsigned types;              /* bit per enum js_type; values of other types pass */
    const struct js_node *value; /* in the schema's document */
    uint64_t count;              /* a length; for contains, the minimum */
    uint64_t most;               /* for contains, the maximum */
    struct decimal number;
    struct regex *regex;
    struct sub *sub;              /* the applied schema; for `if`, the condition */
    struct sub *then, *otherwise; /* for `if`; may be NULL */
    struct sub **subs;
    unsigned n;
    struct entry *entries; /* n entries */
    struct str *names;     /* n names */
    struct object_rules *object;
    struct array_rules *array;
    unsigned type_mask;           /* bits of TYPE_… */
    const struct anchor *dynamic; /* $dynamicRef to a $dynamicAnchor: searched from the outermost
                                   * in */
    struct str anchor_name;
    const struct schema_gap *gap;
};

struct schema {
    const struct js_doc *doc;
    struct sub *root;
    struct map anchors;   /* uri#name to struct anchor */
    struct map resources; /* uri to struct resource */
    bool tracks;          /* `unevaluated…` is used, so seen members and items are tracked */
    struct schema_gap gaps[SCHEMA_GAPS_MAX];
    unsigned n_gaps, total_gaps;
};

#define TYPE_INTEGER (1u << 7)
#define TYPE_BIT(js_type) (1u << (js_type))
#define TYPE_ANY 0xffu
#define TYPE_BOOLEAN (TYPE_BIT(JS_FALSE) | TYPE_BIT(JS_TRUE))

/* compile.c */
struct compile {
    struct schema *s;
    const struct js_doc *doc;
    struct arena *mem;
    struct error *err;
    const struct js_node *root;
    struct sub **subs; /* by node index, from the root */
    unsigned n_subs;
    size_t pattern_bytes;
    size_t passed; /* members and items, while references are resolved */
    bool failed;   /* past a limit; err says which */
    struct pending {
        struct pending *next;
        struct sub *sub;
        struct rule *rule;
        bool dynamic;
    } * pending;
};
struct sub *compile_sub(struct compile *c, const struct js_node *node, const struct resource *in);
const struct schema_gap *compile_gap(struct compile *c, const struct js_node *at,
                                     const char *keyword, const char *reason);
/* keywords.c: fills the rules of `s` from the members of its node. */
void compile_rules(struct compile *c, struct sub *s);
/* resource.c */
/* The resource that `object` is in: `in`, or a new one if it has an $id.  NULL: a gap; *ret_reason
 * says why. */
const struct resource *resource_of(struct compile *c, const struct js_node *object,
                                   const struct resource *in, const char **ret_reason);
void resource_add_anchors(struct compile *c, struct sub *s);
struct str resource_anchor_key(struct str uri, struct str name, struct arena *mem);
/* Resolves all references; compiles targets that were not known to be schemas before. */
void resource_link(struct compile *c);
/* uri.c: RFC 3986 section 5.2; false when too long. */
must_check bool uri_resolve(struct str base, struct str reference, struct arena *mem,
                            struct str *ret);
must_check bool uri_decode(struct str text, struct arena *mem, struct str *ret);

/* A step of the path into the instance. */
struct place {
    const struct place *up;
    struct str key; /* absent: an index */
    uint32_t index;
};
enum { SEEN_NO, SEEN_MAYBE, SEEN_YES };
/* One sub applied to one value; the chain of frames is the dynamic scope. */
struct frame {
    const struct frame *up;
    const struct sub *sub;
    const struct js_node *v;
    const struct place *place;
    uint8_t *seen; /* one SEEN_… per member or item; NULL when not tracked */
    uint32_t n;    /* number of members or items */
};
struct check {
    const struct schema *s;
    const struct js_doc *doc;
    struct arena *mem;
    struct schema_report *report;
    struct regex_run *run;
    uint32_t steps; /* steps left */
    unsigned depth;
    unsigned quiet; /* > 0: findings are not reported, because a failure may be intended */
    bool shallow;   /* the last failure was of type, enum or const of the value itself */
    bool blind;     /* equal_hash() met a number that it could not read */
    bool stopped;   /* a limit was passed, so the answer is unsure */
    const char *unsure_keyword, *unsure_reason;
};

/* check.c */
/* `in_place`: v is f's own value, and the members that the sub sees count as seen by f too. */
enum schema_answer check_sub(struct check *c, const struct frame *f, const struct sub *sub,
                             const struct js_node *v, const struct place *place, bool in_place);
enum schema_answer check_quietly(struct check *c, const struct frame *f, const struct sub *sub,
                                 const struct js_node *v, const struct place *place, bool in_place);
bool check_spend(struct check *c, size_t n); /* false: no steps are left */
enum schema_answer check_unsure(struct check *c, const char *keyword, const char *reason);
struct str check_text(struct check *c, const struct js_node *v); /* costs steps */
struct str check_text_of(struct check *c, const struct js_doc *doc, const struct js_node *v);
/* Steps for a lookup of a name among n members: the name is compared with each, as far as both
 * agree. */
static inline size_t check_lookup_cost(uint32_t n, struct str name)
{
    return n / 8 + n * (name.n / 64);
}
static inline void check_seen(const struct frame *f, uint32_t i, enum schema_answer answer)
{
    uint8_t as = answer == SCHEMA_VALID ? SEEN_YES : SEEN_MAYBE;

    if (f->seen && i < f->n && f->seen[i] < as)
        f->seen[i] = as;
}
static inline enum schema_answer answer_and(enum schema_answer a, enum schema_answer b)
{
    return a > b ? a : b;
}

enum schema_answer check_gap(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_ref(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_all_of(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_any_of(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_one_of(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_not(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_if(struct check *c, const struct frame *f, const struct rule *r);
/* check_value.c */
enum schema_answer check_type(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_enum(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_const(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_multiple(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_maximum(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_minimum(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_below(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_above(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_max_length(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_min_length(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_pattern(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_matches(struct check *c, const struct regex *re, struct str text,
                                 const char *keyword);
/* check_array.c */
enum schema_answer check_max_items(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_min_items(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_unique(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_contains(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_items(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_other_items(struct check *c, const struct frame *f, const struct rule *r);
/* check_object.c */
enum schema_answer check_max_members(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_min_members(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_required(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_needs(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_names(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_members(struct check *c, const struct frame *f, const struct rule *r);
enum schema_answer check_other_members(struct check *c, const struct frame *f,
                                       const struct rule *r);
/* equal.c */
enum schema_answer equal_values(struct check *c, const struct js_doc *da, const struct js_node *a,
                                const struct js_doc *db, const struct js_node *b);
/* Equal values have equal hashes, unless the call set c->blind. */
uint64_t equal_hash(struct check *c, const struct js_node *v);

/* report.c: reports a finding unless the check is quiet; returns SCHEMA_INVALID.  `fmt` continues
 * after the name of the place: "must be …". */
enum schema_answer report(struct check *c, const struct place *at, const char *keyword,
                          const char *fmt, ...) printf_like(4, 5);
enum schema_answer report_missing(struct check *c, const struct place *at, const char *keyword,
                                  struct str name, struct str because);
enum schema_answer report_unknown(struct check *c, const struct place *at, const char *keyword,
                                  struct str name, const struct object_rules *known);

#endif
