/* SPDX-License-Identifier: Apache-2.0 */
/* Equality of JSON values as the specification defines it: numbers by value, strings after
 * unescaping, objects without regard to the order of members. */
#include "schema/schema_impl.h"

static enum schema_answer as_answer(bool same)
{
    return same ? SCHEMA_VALID : SCHEMA_INVALID;
}

static enum schema_answer equal_numbers(struct check *c, struct str a, struct str b)
{
    struct decimal x, y;

    if (!check_spend(c, b.n / SCHEMA_STEP_BYTES)) /* the caller has paid for `a` */
        return SCHEMA_UNSURE;
    if (!decimal_read(a, &x) || !decimal_read(b, &y))
        return str_eq(a, b) ? SCHEMA_VALID
                            : check_unsure(c, "const", "the exponent of a number is too large");
    return as_answer(decimal_compare(&x, &y) == 0);
}

static enum schema_answer equal_arrays(struct check *c, const struct js_doc *da,
                                       const struct js_node *a, const struct js_doc *db,
                                       const struct js_node *b)
{
    const struct js_node *x = js_first(da, a), *y = js_first(db, b);
    enum schema_answer answer = SCHEMA_VALID;

    for (; x && y && answer != SCHEMA_INVALID; x = js_next(da, a, x), y = js_next(db, b, y))
        answer = answer_and(answer, equal_values(c, da, x, db, y));
    return x || y ? SCHEMA_INVALID : answer;
}

static uint32_t count_members(const struct js_doc *d, const struct js_node *v)
{
    uint32_t n = 0;

    for (const struct js_node *key = js_first(d, v); key; n++)
        key = js_next(d, v, js_value_of(key));
    return n;
}

static enum schema_answer equal_objects(struct check *c, const struct js_doc *da,
                                        const struct js_node *a, const struct js_doc *db,
                                        const struct js_node *b)
{
    uint32_t n = count_members(da, a);
    enum schema_answer answer = SCHEMA_VALID;

    if (n != count_members(db, b))
        return SCHEMA_INVALID;
    for (const struct js_node *key = js_first(da, a); key && answer != SCHEMA_INVALID;
         key = js_next(da, a, js_value_of(key))) {
        const struct js_node *other;
        struct str name = check_text_of(c, da, key);

        if (!check_spend(c, 1 + check_lookup_cost(n, name)))
            return SCHEMA_UNSURE;
        other = js_get(db, b, name);
        answer = answer_and(answer, other ? equal_values(c, da, js_value_of(key), db, other)
                                          : SCHEMA_INVALID);
    }
    return answer;
}

enum schema_answer equal_values(struct check *c, const struct js_doc *da, const struct js_node *a,
                                const struct js_doc *db, const struct js_node *b)
{
    if (!check_spend(c, 1 + (a->type < JS_ARRAY ? (a->end - a->start) / SCHEMA_STEP_BYTES : 0)))
        return SCHEMA_UNSURE;
    if (a->type != b->type)
        return SCHEMA_INVALID;
    switch (a->type) {
    case JS_NUMBER:
        return equal_numbers(c, js_raw(da, a), js_raw(db, b));
    case JS_STRING:
        return as_answer(js_is(db, b, js_text(da, a, c->mem)));
    case JS_ARRAY:
        return equal_arrays(c, da, a, db, b);
    case JS_OBJECT:
        return equal_objects(c, da, a, db, b);
    default:
        return SCHEMA_VALID;
    }
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t both[2] = {a, b};

    return map_hash(str_n((const char *)both, sizeof(both)));
}

uint64_t equal_hash(struct check *c, const struct js_node *v)
{
    uint64_t hash = v->type;
    struct decimal d;

    if (!check_spend(c, 1 + (v->type < JS_ARRAY ? (v->end - v->start) / SCHEMA_STEP_BYTES : 0)))
        return 0;
    switch (v->type) {
    case JS_NUMBER:
        if (decimal_read(js_raw(c->doc, v), &d))
            return mix(hash, decimal_hash(&d));
        c->blind = true;
        return hash;
    case JS_STRING:
        return mix(hash, map_hash(js_text(c->doc, v, c->mem)));
    case JS_ARRAY:
        for (const struct js_node *at = js_first(c->doc, v); at; at = js_next(c->doc, v, at))
            hash = mix(hash, equal_hash(c, at));
        return hash;
    case JS_OBJECT:
        for (const struct js_node *key = js_first(c->doc, v); key;
             key = js_next(c->doc, v, js_value_of(key)))
            hash += mix(map_hash(check_text(c, key)), equal_hash(c, js_value_of(key)));
        return hash;
    default:
        return hash;
    }
}
