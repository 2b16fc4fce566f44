/* SPDX-License-Identifier: Apache-2.0 */
/* Keywords for arrays. */
#include "schema/schema_impl.h"

#include <stdlib.h>

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

enum schema_answer check_max_items(struct check *c, const struct frame *f, const struct rule *r)
{
    if (f->n <= r->count)
        return SCHEMA_VALID;
    return report(c, f->place, r->keyword, "must have at most %llu item%s, not %u",
                  (unsigned long long)r->count, plural(r->count), (unsigned)f->n);
}

enum schema_answer check_min_items(struct check *c, const struct frame *f, const struct rule *r)
{
    if (f->n >= r->count)
        return SCHEMA_VALID;
    return report(c, f->place, r->keyword, "must have at least %llu item%s, not %u",
                  (unsigned long long)r->count, plural(r->count), (unsigned)f->n);
}

struct hashed {
    uint64_t hash;
    uint32_t index;
    const struct js_node *v;
};

static int compare_hashed(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The cost of a sort in steps: its comparisons, four per step. */
static size_t sort_cost(size_t n)
{
    size_t levels = 0;

    for (size_t rest = n; rest > 1; rest /= 2)
        levels++;
    return n * levels / 4;
}

static struct hashed *hash_items(struct check *c, const struct frame *f)
{
    struct hashed *items;
    uint32_t n = 0;

    if (!check_spend(c, sort_cost(f->n)))
        return NULL;
    items = arena_alloc(c->mem, (f->n + 1u) * sizeof(*items));
    for (const struct js_node *v = js_first(c->doc, f->v); v; v = js_next(c->doc, f->v, v), n++)
        items[n] = (struct hashed){equal_hash(c, v), n, v};
    qsort(items, n, sizeof(*items), compare_hashed);
    return c->stopped ? NULL : items;
}

enum schema_answer check_unique(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID, same;
    struct hashed *items;

    if (!r->count)
        return SCHEMA_VALID;
    c->blind = false;
    items = hash_items(c, f);
    if (!items)
        return SCHEMA_UNSURE;
    if (c->blind)
        answer = check_unsure(c, r->keyword, "the exponent of a number is too large");
    for (uint32_t i = 1; i < f->n && !c->stopped; i++) {
        if (items[i].hash != items[i - 1].hash)
            continue;
        same = equal_values(c, c->doc, items[i - 1].v, c->doc, items[i].v);
        if (same == SCHEMA_VALID)
            return report(c, f->place, r->keyword, "must not have equal items, but %u and %u are",
                          (unsigned)items[i - 1].index, (unsigned)items[i].index);
        /* Different values with one hash are too rare to compare all pairs, so the answer is
         * unsure. */
        answer = check_unsure(c, r->keyword, "its items could not be compared");
    }
    return answer;
}

enum schema_answer check_contains(struct check *c, const struct frame *f, const struct rule *r)
{
    bool marks = f->sub->resource->dialect & DIALECTS_2020;
    uint64_t sure = 0, perhaps = 0;
    uint32_t i = 0;

    for (const struct js_node *v = js_first(c->doc, f->v); v && !c->stopped;
         v = js_next(c->doc, f->v, v), i++) {
        struct place place = {f->place, STR_NONE, i};
        enum schema_answer one = check_quietly(c, f, r->sub, v, &place, false);

        if (one == SCHEMA_INVALID)
            continue;
        sure += one == SCHEMA_VALID;
        perhaps++;
        if (marks)
            check_seen(f, i, one);
    }
    if (c->stopped)
        return SCHEMA_UNSURE;
    if (perhaps < r->count)
        return report(c, f->place, r->keyword,
                      "must contain at least %llu item%s of the kind asked for",
                      (unsigned long long)r->count, plural(r->count));
    if (sure > r->most)
        return report(c, f->place, r->keyword,
                      "must contain at most %llu item%s of the kind asked for",
                      (unsigned long long)r->most, plural(r->most));
    return sure >= r->count && perhaps <= r->most ? SCHEMA_VALID : SCHEMA_UNSURE;
}

static enum schema_answer check_item(struct check *c, const struct frame *f, const struct rule *r,
                                     const struct js_node *v, uint32_t i)
{
    const struct array_rules *a = r->array;
    const struct sub *sub = i < a->n_prefix ? a->prefix[i] : a->rest;
    struct place place = {f->place, STR_NONE, i};

    if (!sub)
        return SCHEMA_VALID;
    check_seen(f, i, SCHEMA_VALID);
    if (i >= a->n_prefix && sub->kind == SUB_FALSE)
        return report(c, f->place, a->rest_keyword, "must have at most %u item%s, not %u",
                      a->n_prefix, plural(a->n_prefix), (unsigned)f->n);
    return check_sub(c, f, sub, v, &place, false);
}

enum schema_answer check_items(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID;
    bool closed = r->array->rest && r->array->rest->kind == SUB_FALSE;
    uint32_t i = 0;

    for (const struct js_node *v = js_first(c->doc, f->v); v && !c->stopped;
         v = js_next(c->doc, f->v, v), i++) {
        answer = answer_and(answer, check_item(c, f, r, v, i));
        if (answer == SCHEMA_INVALID && (c->quiet || (closed && i >= r->array->n_prefix)))
            break;
    }
    return answer;
}

enum schema_answer check_other_items(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID, one;
    uint32_t i = 0;

    for (const struct js_node *v = js_first(c->doc, f->v); v && !c->stopped;
         v = js_next(c->doc, f->v, v), i++) {
        struct place place = {f->place, STR_NONE, i};
        uint8_t seen = f->seen ? f->seen[i] : SEEN_NO;

        if (seen == SEEN_YES)
            continue;
        one = seen == SEEN_NO ? check_sub(c, f, r->sub, v, &place, false)
                              : check_quietly(c, f, r->sub, v, &place, false);
        if (seen == SEEN_MAYBE && one == SCHEMA_INVALID)
            one = check_unsure(c, r->keyword, "what else looked at an item is not known");
        check_seen(f, i, SCHEMA_VALID);
        answer = answer_and(answer, one);
    }
    return answer;
}
