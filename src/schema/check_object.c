/* SPDX-License-Identifier: Apache-2.0 */
/* Keywords for objects. */
#include "schema/schema_impl.h"

#include <stdlib.h>

enum schema_answer check_max_members(struct check *c, const struct frame *f, const struct rule *r)
{
    if (f->n <= r->count)
        return SCHEMA_VALID;
    return report(c, f->place, r->keyword, "must have at most %llu properties, not %u",
                  (unsigned long long)r->count, (unsigned)f->n);
}

enum schema_answer check_min_members(struct check *c, const struct frame *f, const struct rule *r)
{
    if (f->n >= r->count)
        return SCHEMA_VALID;
    return report(c, f->place, r->keyword, "must have at least %llu properties, not %u",
                  (unsigned long long)r->count, (unsigned)f->n);
}

/* Looks up a member, at a cost linear in the number of members. */
static bool has(struct check *c, const struct frame *f, struct str name)
{
    return check_spend(c, check_lookup_cost(f->n, name)) && js_get_key(c->doc, f->v, name) != NULL;
}

enum schema_answer check_required(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID;

    for (unsigned i = 0; i < r->n && check_spend(c, 1); i++)
        if (!has(c, f, r->names[i]) && !c->stopped)
            answer = report_missing(c, f->place, r->keyword, r->names[i], STR_NONE);
    return answer;
}

/* dependentRequired, dependentSchemas and dependencies: requirements that hold if a member is
 * present. */
enum schema_answer check_needs(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID;

    for (unsigned i = 0; i < r->n && check_spend(c, 1); i++) {
        const struct entry *e = &r->entries[i];

        if (!has(c, f, e->name))
            continue;
        for (unsigned j = 0; j < e->n_needs && check_spend(c, 1); j++)
            if (!has(c, f, e->needs[j]) && !c->stopped)
                answer = report_missing(c, f->place, r->keyword, e->needs[j], e->name);
        if (e->sub)
            answer = answer_and(answer, check_sub(c, f, e->sub, f->v, f->place, true));
    }
    return answer;
}

enum schema_answer check_names(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID, one;

    for (const struct js_node *key = js_first(c->doc, f->v); key && !c->stopped;
         key = js_next(c->doc, f->v, js_value_of(key))) {
        one = check_quietly(c, f, r->sub, key, f->place, false);
        if (one == SCHEMA_INVALID)
            report(c, f->place, r->keyword, "must not have a property named '%.*s'",
                   STR_ARG(str_cut(check_text(c, key), 64)));
        answer = answer_and(answer, one);
    }
    return answer;
}

static int compare_name(const void *name, const void *entry)
{
    return str_cmp(*(const struct str *)name, ((const struct entry *)entry)->name);
}

/* Applies a schema that may not apply: only a valid value is sure then. */
static enum schema_answer check_perhaps(struct check *c, const struct frame *f,
                                        const struct sub *sub, const struct js_node *v,
                                        const struct place *place, const char *keyword)
{
    enum schema_answer answer = check_quietly(c, f, sub, v, place, false);

    return answer == SCHEMA_VALID
               ? answer
               : check_unsure(c, keyword, "whether it applies to a property is not known");
}

/* Applies the schema of every pattern that matches the name.  *matched rises to SEEN_MAYBE or
 * SEEN_YES. */
static enum schema_answer check_patterns(struct check *c, const struct frame *f,
                                         const struct rule *r, const struct js_node *v,
                                         const struct place *place, uint8_t *matched)
{
    static const char keyword[] = "patternProperties";
    enum schema_answer answer = SCHEMA_VALID, match;

    for (unsigned i = 0; i < r->object->n_patterns && check_spend(c, 1); i++) {
        const struct entry *e = &r->object->patterns[i];

        match = check_matches(c, e->regex, place->key, keyword);
        if (match == SCHEMA_INVALID)
            continue;
        if (match == SCHEMA_VALID) {
            *matched = SEEN_YES;
            answer = answer_and(answer, check_sub(c, f, e->sub, v, place, false));
        } else {
            *matched = *matched == SEEN_YES ? SEEN_YES : SEEN_MAYBE;
            answer = answer_and(answer, check_perhaps(c, f, e->sub, v, place, keyword));
        }
    }
    return answer;
}

static enum schema_answer check_rest(struct check *c, const struct frame *f, const struct rule *r,
                                     const struct js_node *v, const struct place *place,
                                     uint8_t matched)
{
    static const char keyword[] = "additionalProperties";
    const struct sub *rest = r->object->rest;

    if (matched == SEEN_MAYBE)
        return check_perhaps(c, f, rest, v, place, keyword);
    if (rest->kind == SUB_FALSE)
        return report_unknown(c, f->place, keyword, place->key, r->object);
    return check_sub(c, f, rest, v, place, false);
}

static enum schema_answer check_member(struct check *c, const struct frame *f, const struct rule *r,
                                       const struct js_node *key, uint32_t i)
{
    const struct js_node *v = js_value_of(key);
    const struct object_rules *o = r->object;
    struct place place = {f->place, check_text(c, key), 0};
    enum schema_answer answer = SCHEMA_VALID;
    uint8_t matched = SEEN_NO;
    const struct entry *e;

    e = o->n_properties ? bsearch(&place.key, o->properties, o->n_properties,
                                  sizeof(*o->properties), compare_name)
                        : NULL;
    if (e) {
        matched = SEEN_YES;
        answer = check_sub(c, f, e->sub, v, &place, false);
    }
    answer = answer_and(answer, check_patterns(c, f, r, v, &place, &matched));
    if (matched != SEEN_YES && o->rest) {
        answer = answer_and(answer, check_rest(c, f, r, v, &place, matched));
        matched = SEEN_YES; /* by a pattern or by the rest */
    }
    if (matched != SEEN_NO)
        check_seen(f, i, matched == SEEN_YES ? SCHEMA_VALID : SCHEMA_UNSURE);
    return answer;
}

enum schema_answer check_members(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID;
    uint32_t i = 0;

    for (const struct js_node *key = js_first(c->doc, f->v); key && check_spend(c, 1);
         key = js_next(c->doc, f->v, js_value_of(key)), i++) {
        answer = answer_and(answer, check_member(c, f, r, key, i));
        if (answer == SCHEMA_INVALID && c->quiet)
            break;
    }
    return answer;
}

static enum schema_answer check_other_member(struct check *c, const struct frame *f,
                                             const struct rule *r, const struct js_node *key,
                                             uint8_t seen)
{
    const struct js_node *v = js_value_of(key);
    struct place place = {f->place, check_text(c, key), 0};

    if (seen == SEEN_MAYBE)
        return check_perhaps(c, f, r->sub, v, &place, r->keyword);
    if (r->sub->kind == SUB_FALSE)
        return report_unknown(c, f->place, r->keyword, place.key, f->sub->object);
    return check_sub(c, f, r->sub, v, &place, false);
}

enum schema_answer check_other_members(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID;
    uint32_t i = 0;

    for (const struct js_node *key = js_first(c->doc, f->v); key && check_spend(c, 1);
         key = js_next(c->doc, f->v, js_value_of(key)), i++) {
        uint8_t seen = f->seen ? f->seen[i] : SEEN_NO;

        if (seen == SEEN_YES)
            continue;
        answer = answer_and(answer, check_other_member(c, f, r, key, seen));
        check_seen(f, i, SCHEMA_VALID);
    }
    return answer;
}
