/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keywords: the dialects that define each keyword, the types of values it applies to,
 * how its own value is read, and its check.  Rules run in the order of the rows, so `unevaluated…`
 * come last.  Keywords that are read together (properties, patternProperties, additionalProperties)
 * make one rule, and an error in one of them is a gap for all. */
#include "schema/schema_impl.h"

#include <stdlib.h>

enum word {
    W_REF,
    W_DYNAMIC_REF,
    W_RECURSIVE_REF,
    W_TYPE,
    W_ENUM,
    W_CONST,
    W_MULTIPLE_OF,
    W_MAXIMUM,
    W_BELOW,
    W_MINIMUM,
    W_ABOVE,
    W_MAX_LENGTH,
    W_MIN_LENGTH,
    W_PATTERN,
    W_MAX_ITEMS,
    W_MIN_ITEMS,
    W_UNIQUE,
    W_CONTAINS,
    W_MIN_CONTAINS,
    W_MAX_CONTAINS,
    W_PREFIX_ITEMS,
    W_ITEMS,
    W_ADDITIONAL_ITEMS,
    W_MAX_PROPERTIES,
    W_MIN_PROPERTIES,
    W_REQUIRED,
    W_DEPENDENT_REQUIRED,
    W_DEPENDENT_SCHEMAS,
    W_DEPENDENCIES,
    W_PROPERTY_NAMES,
    W_PROPERTIES,
    W_PATTERN_PROPERTIES,
    W_ADDITIONAL_PROPERTIES,
    W_ALL_OF,
    W_ANY_OF,
    W_ONE_OF,
    W_NOT,
    W_IF,
    W_THEN,
    W_ELSE,
    W_UNEVALUATED_ITEMS,
    W_UNEVALUATED_PROPERTIES,
    W_DEFS,
    W_DEFINITIONS,
    W_CONTENT_SCHEMA,
    W_COUNT
};

/* One schema being read. */
struct reading {
    struct compile *c;
    struct sub *s;
    const struct js_node *values[W_COUNT]; /* NULL: not given, or not defined in this dialect */
    bool twice[W_COUNT];
};
struct keyword;
/* Fills the rule; false: the value is invalid. */
typedef bool (*keyword_read)(struct reading *r, const struct keyword *k,
                             const struct js_node *value, struct rule *rule);
struct keyword {
    const char *name;
    unsigned dialects;
    unsigned types;    /* bits of the value types it applies to; 0: it makes no rule */
    keyword_read read; /* NULL: read together with another keyword */
    rule_check check;
    unsigned with[2]; /* read together with this one; each alone also makes this rule */
};

static struct sub *sub_of(struct reading *r, const struct js_node *value)
{
    return compile_sub(r->c, value, r->s->resource);
}

static uint32_t count_children(const struct js_doc *d, const struct js_node *v)
{
    uint32_t n = 0;

    for (const struct js_node *at = js_first(d, v); at; n++)
        at = js_next(d, v, v->type == JS_OBJECT ? js_value_of(at) : at);
    return n;
}

static bool read_any(struct reading *r unused_arg, const struct keyword *k unused_arg,
                     const struct js_node *value unused_arg, struct rule *rule unused_arg)
{
    return true;
}

static bool read_nothing(struct reading *r unused_arg, const struct keyword *k unused_arg,
                         const struct js_node *value unused_arg, struct rule *rule unused_arg)
{
    return false;
}

static bool read_ref(struct reading *r, const struct keyword *k, const struct js_node *value,
                     struct rule *rule)
{
    struct pending *p;

    if (value->type != JS_STRING)
        return false;
    p = arena_new_of(r->c->mem, struct pending);
    *p = (struct pending){r->c->pending, r->s, rule,
                          k->check == check_ref && strcmp(k->name, "$dynamicRef") == 0};
    r->c->pending = p;
    return true;
}

static bool type_bit(const struct js_doc *d, const struct js_node *v, unsigned *mask)
{
    static const struct {
        const char *name;
        unsigned bits;
    } types[] = {
        {"null", TYPE_BIT(JS_NULL)},     {"boolean", TYPE_BOOLEAN},
        {"number", TYPE_BIT(JS_NUMBER)}, {"integer", TYPE_INTEGER},
        {"string", TYPE_BIT(JS_STRING)}, {"array", TYPE_BIT(JS_ARRAY)},
        {"object", TYPE_BIT(JS_OBJECT)},
    };
    for (size_t i = 0; i < countof(types); i++)
        if (js_is(d, v, str_of(types[i].name))) {
            *mask |= types[i].bits;
            return true;
        }
    return false;
}

static bool read_type(struct reading *r, const struct keyword *k unused_arg,
                      const struct js_node *value, struct rule *rule)
{
    const struct js_doc *d = r->c->doc;

    if (value->type != JS_ARRAY)
        return type_bit(d, value, &rule->type_mask);
    for (const struct js_node *v = js_first(d, value); v; v = js_next(d, value, v))
        if (!type_bit(d, v, &rule->type_mask))
            return false;
    return rule->type_mask != 0;
}

static bool read_list(struct reading *r unused_arg, const struct keyword *k unused_arg,
                      const struct js_node *value, struct rule *rule unused_arg)
{
    return value->type == JS_ARRAY;
}

static bool read_number(struct reading *r, const struct keyword *k unused_arg,
                        const struct js_node *value, struct rule *rule)
{
    return value->type == JS_NUMBER && decimal_read(js_raw(r->c->doc, value), &rule->number);
}

static bool read_divisor(struct reading *r, const struct keyword *k, const struct js_node *value,
                         struct rule *rule)
{
    return read_number(r, k, value, rule) && rule->number.n && !rule->number.negative;
}

static bool to_count(struct reading *r, const struct js_node *value, uint64_t *ret)
{
    struct decimal d;

    return value->type == JS_NUMBER && decimal_read(js_raw(r->c->doc, value), &d) &&
           decimal_to_count(&d, ret);
}

static bool read_count(struct reading *r, const struct keyword *k unused_arg,
                       const struct js_node *value, struct rule *rule)
{
    return to_count(r, value, &rule->count);
}

static struct regex *compile_pattern(struct reading *r, struct str text, const char **reason)
{
    struct regex *re;

    *reason = "the regular expressions of the schema are too large together";
    if (r->c->pattern_bytes > SCHEMA_PATTERNS_MAX)
        return NULL;
    re = regex_compile(text, r->c->mem, reason);
    r->c->pattern_bytes += re ? regex_size(re) : 0;
    return re;
}

static bool read_pattern(struct reading *r, const struct keyword *k unused_arg,
                         const struct js_node *value, struct rule *rule)
{
    const char *reason;

    if (value->type != JS_STRING)
        return false;
    rule->regex = compile_pattern(r, js_text(r->c->doc, value, r->c->mem), &reason);
    if (!rule->regex) {
        rule->check = check_gap;
        rule->gap = compile_gap(r->c, value, "pattern", reason);
    }
    return true;
}

static bool read_flag(struct reading *r unused_arg, const struct keyword *k unused_arg,
                      const struct js_node *value, struct rule *rule)
{
    rule->count = value->type == JS_TRUE;
    return value->type == JS_TRUE || value->type == JS_FALSE;
}

static bool read_sub(struct reading *r, const struct keyword *k unused_arg,
                     const struct js_node *value, struct rule *rule)
{
    rule->sub = sub_of(r, value);
    return true;
}

/* Turns on tracking of the members and items that were seen. */
static bool read_unevaluated(struct reading *r, const struct keyword *k,
                             const struct js_node *value, struct rule *rule)
{
    r->c->s->tracks = true;
    return read_sub(r, k, value, rule);
}

static bool read_subs(struct reading *r, const struct keyword *k unused_arg,
                      const struct js_node *value, struct rule *rule)
{
    const struct js_doc *d = r->c->doc;

    if (value->type != JS_ARRAY || !js_first(d, value))
        return false;
    rule->subs = arena_alloc(r->c->mem, count_children(d, value) * sizeof(struct sub *));
    for (const struct js_node *v = js_first(d, value); v; v = js_next(d, value, v))
        rule->subs[rule->n++] = sub_of(r, v);
    return true;
}

static bool read_if(struct reading *r, const struct keyword *k, const struct js_node *value,
                    struct rule *rule)
{
    const struct js_node *then = r->values[W_THEN], *otherwise = r->values[W_ELSE];

    rule->then = then ? sub_of(r, then) : NULL;
    rule->otherwise = otherwise ? sub_of(r, otherwise) : NULL;
    if (!value) {
        rule->check = NULL; /* without `if` they are only targets of references */
        return true;
    }
    return read_sub(r, k, value, rule);
}

static bool read_contains(struct reading *r, const struct keyword *k, const struct js_node *value,
                          struct rule *rule)
{
    const struct js_node *least = r->values[W_MIN_CONTAINS], *most = r->values[W_MAX_CONTAINS];

    rule->count = 1;
    rule->most = UINT64_MAX;
    if (!value) {
        rule->check = NULL;
        return true;
    }
    read_sub(r, k, value, rule);
    return (!least || to_count(r, least, &rule->count)) &&
           (!most || to_count(r, most, &rule->most));
}

static bool read_strings(struct reading *r, const struct js_node *value, struct str **ret_names,
                         unsigned *ret_n)
{
    const struct js_doc *d = r->c->doc;
    struct str *names;
    unsigned n = 0;

    if (value->type != JS_ARRAY)
        return false;
    names = arena_alloc(r->c->mem, count_children(d, value) * sizeof(struct str));
    for (const struct js_node *v = js_first(d, value); v; v = js_next(d, value, v)) {
        names[n] = js_text(d, v, r->c->mem);
        if (!names[n++].p)
            return false;
    }
    *ret_names = names;
    *ret_n = n;
    return true;
}

static bool read_required(struct reading *r, const struct keyword *k unused_arg,
                          const struct js_node *value, struct rule *rule)
{
    return read_strings(r, value, &rule->names, &rule->n);
}

/* Reads the members of an object as entries, each with its name and its schema. */
static bool read_entries(struct reading *r, const struct js_node *value, struct entry **ret,
                         unsigned *ret_n)
{
    const struct js_doc *d = r->c->doc;
    struct entry *entries;
    unsigned n = 0;

    if (value->type != JS_OBJECT)
        return false;
    entries = arena_zalloc(r->c->mem, count_children(d, value) * sizeof(struct entry));
    for (const struct js_node *key = js_first(d, value); key;
         key = js_next(d, value, js_value_of(key))) {
        entries[n].name = js_text(d, key, r->c->mem);
        entries[n++].sub = sub_of(r, js_value_of(key));
    }
    *ret = entries;
    *ret_n = n;
    return true;
}

static bool read_map(struct reading *r, const struct keyword *k unused_arg,
                     const struct js_node *value, struct rule *rule)
{
    return read_entries(r, value, &rule->entries, &rule->n);
}

/* dependentRequired, and dependencies, whose members may be names or a schema. */
static bool read_needs(struct reading *r, const struct keyword *k, const struct js_node *value,
                       struct rule *rule)
{
    const struct js_doc *d = r->c->doc;
    bool only_names = strcmp(k->name, "dependentRequired") == 0;

    if (value->type != JS_OBJECT)
        return false;
    rule->entries = arena_zalloc(r->c->mem, count_children(d, value) * sizeof(struct entry));
    for (const struct js_node *key = js_first(d, value); key;
         key = js_next(d, value, js_value_of(key))) {
        struct entry *e = &rule->entries[rule->n++];
        const struct js_node *need = js_value_of(key);

        e->name = js_text(d, key, r->c->mem);
        if (only_names || need->type == JS_ARRAY) {
            if (!read_strings(r, need, &e->needs, &e->n_needs))
                return false;
        } else {
            e->sub = sub_of(r, need);
        }
    }
    return true;
}

static int compare_entries(const void *a, const void *b)
{
    return str_cmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static bool sort_entries(struct entry *entries, unsigned n)
{
    if (n)
        qsort(entries, n, sizeof(*entries), compare_entries);
    for (unsigned i = 1; i < n; i++)
        if (str_eq(entries[i - 1].name, entries[i].name))
            return false;
    return true;
}

static void compile_patterns(struct reading *r, struct object_rules *o, const struct js_node *value)
{
    const char *reason;

    for (unsigned i = 0; i < o->n_patterns; i++) {
        o->patterns[i].regex = compile_pattern(r, o->patterns[i].name, &reason);
        if (!o->patterns[i].regex)
            compile_gap(r->c, value, "patternProperties", reason);
    }
}

static bool read_properties(struct reading *r, const struct keyword *k unused_arg,
                            const struct js_node *value unused_arg, struct rule *rule)
{
    const struct js_node *named = r->values[W_PROPERTIES];
    const struct js_node *patterns = r->values[W_PATTERN_PROPERTIES];
    const struct js_node *rest = r->values[W_ADDITIONAL_PROPERTIES];
    struct object_rules *o = arena_new_of(r->c->mem, struct object_rules);
    bool ok = true;

    if (named)
        ok = read_entries(r, named, &o->properties, &o->n_properties) &&
             sort_entries(o->properties, o->n_properties);
    if (patterns && read_entries(r, patterns, &o->patterns, &o->n_patterns))
        compile_patterns(r, o, patterns);
    else if (patterns)
        ok = false;
    if (rest)
        o->rest = sub_of(r, rest);
    rule->object = o;
    r->s->object = o;
    return ok;
}

static void read_prefix(struct reading *r, struct array_rules *a, const struct js_node *list)
{
    const struct js_doc *d = r->c->doc;

    a->prefix = arena_alloc(r->c->mem, count_children(d, list) * sizeof(struct sub *));
    for (const struct js_node *v = js_first(d, list); v; v = js_next(d, list, v))
        a->prefix[a->n_prefix++] = sub_of(r, v);
}

/* Two notations for the same: prefixItems and items, or items as a list and additionalItems. */
static bool read_items(struct reading *r, const struct keyword *k unused_arg,
                       const struct js_node *value unused_arg, struct rule *rule)
{
    const struct js_node *prefix = r->values[W_PREFIX_ITEMS], *items = r->values[W_ITEMS];
    const struct js_node *rest = items, *more = r->values[W_ADDITIONAL_ITEMS];
    struct array_rules *a = arena_new_of(r->c->mem, struct array_rules);

    rule->array = a;
    a->rest_keyword = "items";
    if (js_type_is(items, JS_ARRAY)) {
        if (prefix || r->s->resource->dialect == DIALECT_2020)
            return false;
        prefix = items;
        rest = more;
        a->rest_keyword = "additionalItems";
    } else if (more) {
        sub_of(r, more); /* has no effect here, but may be the target of a reference */
    }
    if (prefix && prefix->type != JS_ARRAY)
        return false;
    if (prefix)
        read_prefix(r, a, prefix);
    a->rest = rest ? sub_of(r, rest) : NULL;
    return true;
}

#define OF(type) TYPE_BIT(JS_##type)

static const struct keyword keywords[W_COUNT] = {
    [W_REF] = {"$ref", DIALECTS_ALL, TYPE_ANY, read_ref, check_ref},
    [W_DYNAMIC_REF] = {"$dynamicRef", DIALECTS_2020, TYPE_ANY, read_ref, check_ref},
    [W_RECURSIVE_REF] = {"$recursiveRef", DIALECT_2019, TYPE_ANY, read_nothing, check_gap},
    [W_TYPE] = {"type", DIALECTS_ALL, TYPE_ANY, read_type, check_type},
    [W_ENUM] = {"enum", DIALECTS_ALL, TYPE_ANY, read_list, check_enum},
    [W_CONST] = {"const", DIALECTS_ALL, TYPE_ANY, read_any, check_const},
    [W_MULTIPLE_OF] = {"multipleOf", DIALECTS_ALL, OF(NUMBER), read_divisor, check_multiple},
    [W_MAXIMUM] = {"maximum", DIALECTS_ALL, OF(NUMBER), read_number, check_maximum},
    [W_BELOW] = {"exclusiveMaximum", DIALECTS_ALL, OF(NUMBER), read_number, check_below},
    [W_MINIMUM] = {"minimum", DIALECTS_ALL, OF(NUMBER), read_number, check_minimum},
    [W_ABOVE] = {"exclusiveMinimum", DIALECTS_ALL, OF(NUMBER), read_number, check_above},
    [W_MAX_LENGTH] = {"maxLength", DIALECTS_ALL, OF(STRING), read_count, check_max_length},
    [W_MIN_LENGTH] = {"minLength", DIALECTS_ALL, OF(STRING), read_count, check_min_length},
    [W_PATTERN] = {"pattern", DIALECTS_ALL, OF(STRING), read_pattern, check_pattern},
    [W_MAX_ITEMS] = {"maxItems", DIALECTS_ALL, OF(ARRAY), read_count, check_max_items},
    [W_MIN_ITEMS] = {"minItems", DIALECTS_ALL, OF(ARRAY), read_count, check_min_items},
    [W_UNIQUE] = {"uniqueItems", DIALECTS_ALL, OF(ARRAY), read_flag, check_unique},
    [W_CONTAINS] = {"contains",
                    DIALECTS_ALL,
                    OF(ARRAY),
                    read_contains,
                    check_contains,
                    {W_MIN_CONTAINS, W_MAX_CONTAINS}},
    [W_MIN_CONTAINS] = {"minContains", DIALECTS_2019_ON},
    [W_MAX_CONTAINS] = {"maxContains", DIALECTS_2019_ON},
    [W_PREFIX_ITEMS] = {"prefixItems", DIALECTS_2020},
    [W_ITEMS] = {"items",
                 DIALECTS_ALL,
                 OF(ARRAY),
                 read_items,
                 check_items,
                 {W_PREFIX_ITEMS, W_ADDITIONAL_ITEMS}},
    [W_ADDITIONAL_ITEMS] = {"additionalItems", DIALECTS_ALL & ~DIALECT_2020},
    [W_MAX_PROPERTIES] = {"maxProperties", DIALECTS_ALL, OF(OBJECT), read_count, check_max_members},
    [W_MIN_PROPERTIES] = {"minProperties", DIALECTS_ALL, OF(OBJECT), read_count, check_min_members},
    [W_REQUIRED] = {"required", DIALECTS_ALL, OF(OBJECT), read_required, check_required},
    [W_DEPENDENT_REQUIRED] = {"dependentRequired", DIALECTS_2019_ON, OF(OBJECT), read_needs,
                              check_needs},
    [W_DEPENDENT_SCHEMAS] = {"dependentSchemas", DIALECTS_2019_ON, OF(OBJECT), read_map,
                             check_needs},
    [W_DEPENDENCIES] = {"dependencies", DIALECTS_OLD | DIALECT_UNSAID, OF(OBJECT), read_needs,
                        check_needs},
    [W_PROPERTY_NAMES] = {"propertyNames", DIALECTS_ALL, OF(OBJECT), read_sub, check_names},
    [W_PROPERTIES] = {"properties",
                      DIALECTS_ALL,
                      OF(OBJECT),
                      read_properties,
                      check_members,
                      {W_PATTERN_PROPERTIES, W_ADDITIONAL_PROPERTIES}},
    [W_PATTERN_PROPERTIES] = {"patternProperties", DIALECTS_ALL},
    [W_ADDITIONAL_PROPERTIES] = {"additionalProperties", DIALECTS_ALL},
    [W_ALL_OF] = {"allOf", DIALECTS_ALL, TYPE_ANY, read_subs, check_all_of},
    [W_ANY_OF] = {"anyOf", DIALECTS_ALL, TYPE_ANY, read_subs, check_any_of},
    [W_ONE_OF] = {"oneOf", DIALECTS_ALL, TYPE_ANY, read_subs, check_one_of},
    [W_NOT] = {"not", DIALECTS_ALL, TYPE_ANY, read_sub, check_not},
    [W_IF] = {"if", DIALECTS_ALL & ~DIALECT_6, TYPE_ANY, read_if, check_if, {W_THEN, W_ELSE}},
    [W_THEN] = {"then", DIALECTS_ALL & ~DIALECT_6},
    [W_ELSE] = {"else", DIALECTS_ALL & ~DIALECT_6},
    [W_UNEVALUATED_ITEMS] = {"unevaluatedItems", DIALECTS_2019_ON, OF(ARRAY), read_unevaluated,
                             check_other_items},
    [W_UNEVALUATED_PROPERTIES] = {"unevaluatedProperties", DIALECTS_2019_ON, OF(OBJECT),
                                  read_unevaluated, check_other_members},
    [W_DEFS] = {"$defs", DIALECTS_2019_ON, 0, read_map, NULL},
    [W_DEFINITIONS] = {"definitions", DIALECTS_ALL, 0, read_map, NULL},
    [W_CONTENT_SCHEMA] = {"contentSchema", DIALECTS_2019_ON, 0, read_sub, NULL},
};

static void note_member(struct reading *r, const struct js_node *key)
{
    unsigned dialect = r->s->resource->dialect;

    for (unsigned i = 0; i < W_COUNT; i++) {
        if (!(keywords[i].dialects & dialect) || !js_is(r->c->doc, key, str_of(keywords[i].name)))
            continue;
        r->twice[i] = r->values[i] != NULL;
        r->values[i] = js_value_of(key);
        return;
    }
}

static bool is_given(const struct reading *r, unsigned i)
{
    const unsigned *with = keywords[i].with;

    return r->values[i] || (with[0] && (r->values[with[0]] || r->values[with[1]]));
}

static bool is_twice(const struct reading *r, unsigned i)
{
    const unsigned *with = keywords[i].with;

    return r->twice[i] || (with[0] && (r->twice[with[0]] || r->twice[with[1]]));
}

static void add_rule(struct reading *r, unsigned i)
{
    const struct keyword *k = &keywords[i];
    const struct js_node *value = r->values[i];
    struct rule *rule = &r->s->rules[r->s->n_rules];
    const char *reason = NULL;

    *rule = (struct rule){.keyword = k->name, .check = k->check, .types = k->types, .value = value};
    if (is_twice(r, i))
        reason = "it is given twice";
    else if (!k->read(r, k, value, rule))
        reason = k->check == check_gap ? "it is not supported" : "its value makes no sense";
    if (reason) {
        rule->check = check_gap;
        rule->gap = compile_gap(r->c, value ? value : r->s->node, k->name, reason);
    }
    /* An error in a keyword that only holds definitions decides nothing by itself. */
    if (k->types && rule->check)
        r->s->n_rules++;
}

void compile_rules(struct compile *c, struct sub *s)
{
    struct reading r = {.c = c, .s = s};
    const struct js_doc *d = c->doc;
    unsigned n = 0;

    for (const struct js_node *key = js_first(d, s->node); key;
         key = js_next(d, s->node, js_value_of(key)))
        note_member(&r, key);
    if ((s->resource->dialect & DIALECTS_OLD) && r.values[W_REF])
        for (unsigned i = W_REF + 1; i < W_DEFS; i++)
            r.values[i] = NULL;
    for (unsigned i = 0; i < W_COUNT; i++)
        n += keywords[i].read && is_given(&r, i);
    if (n == 0)
        return;
    s->rules = arena_alloc(c->mem, n * sizeof(struct rule));
    for (unsigned i = 0; i < W_COUNT; i++)
        if (keywords[i].read && is_given(&r, i))
            add_rule(&r, i);
}
