/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a compiled schema to a value: the walk, its limits, and the keywords that combine
 * schemas.  All answers are three-valued, so an unsure branch matters only if it decides.  The
 * members and items that a branch evaluated (for `unevaluated…`) count as seen if the branch is
 * valid, as perhaps seen if it is unsure, and not at all if it is invalid. */
#include "schema/schema_impl.h"

static enum schema_answer stop(struct check *c, const char *keyword, const char *reason)
{
    if (!c->stopped) {
        c->stopped = true;
        c->unsure_keyword = keyword;
        c->unsure_reason = reason;
    }
    return SCHEMA_UNSURE;
}

bool check_spend(struct check *c, size_t n)
{
    if (n <= c->steps) {
        c->steps -= (uint32_t)n;
        return true;
    }
    c->steps = 0;
    stop(c, "schema", "the check took more steps than it may");
    return false;
}

enum schema_answer check_unsure(struct check *c, const char *keyword, const char *reason)
{
    if (!c->unsure_keyword) {
        c->unsure_keyword = keyword;
        c->unsure_reason = reason;
    }
    return SCHEMA_UNSURE;
}

struct str check_text_of(struct check *c, const struct js_doc *doc, const struct js_node *v)
{
    if (!check_spend(c, (v->end - v->start) / SCHEMA_STEP_BYTES))
        return STR("");
    return js_text(doc, v, c->mem);
}

struct str check_text(struct check *c, const struct js_node *v)
{
    return check_text_of(c, c->doc, v);
}

static uint32_t count_children(const struct check *c, const struct js_node *v)
{
    uint32_t n = 0;

    for (const struct js_node *at = js_first(c->doc, v); at; n++)
        at = js_next(c->doc, v, v->type == JS_OBJECT ? js_value_of(at) : at);
    return n;
}

static void count_frame(struct check *c, struct frame *f)
{
    if (f->v->type < JS_ARRAY || f->sub->n_rules == 0)
        return;
    f->n = count_children(c, f->v);
    if (!check_spend(c, f->n / 16) || !c->s->tracks)
        return;
    f->seen = arena_zalloc(c->mem, f->n + 1u);
}

static void see_all_perhaps(const struct frame *f)
{
    for (uint32_t i = 0; f->seen && i < f->n; i++)
        check_seen(f, i, SCHEMA_UNSURE);
}

/* Marks the members and items that the sub saw as seen by its caller. */
static void merge_seen(const struct frame *into, const struct frame *from, enum schema_answer as)
{
    if (!into->seen || !from->seen)
        return;
    for (uint32_t i = 0; i < from->n; i++)
        if (from->seen[i] != SEEN_NO)
            check_seen(into, i, from->seen[i] == SEEN_YES ? as : SCHEMA_UNSURE);
}

static bool is_shallow(const struct rule *r)
{
    return r->check == check_type || r->check == check_enum || r->check == check_const;
}

static enum schema_answer run_rules(struct check *c, const struct frame *f)
{
    enum schema_answer answer = SCHEMA_VALID, one;
    bool shallow = false;

    for (unsigned i = 0; i < f->sub->n_rules && !c->stopped; i++) {
        const struct rule *r = &f->sub->rules[i];

        if (!(r->types & TYPE_BIT(f->v->type)))
            continue;
        if (!check_spend(c, 1))
            break;
        one = r->check(c, f, r);
        if (one == SCHEMA_INVALID && answer != SCHEMA_INVALID)
            shallow = is_shallow(r);
        answer = answer_and(answer, one);
        /* Findings are not reported, and an invalid sub marks nothing as seen, so the rest has no
         * effect. */
        if (answer == SCHEMA_INVALID && (c->quiet || shallow))
            break;
    }
    c->shallow = shallow;
    return c->stopped ? SCHEMA_UNSURE : answer;
}

static enum schema_answer run_sub(struct check *c, struct frame *f)
{
    switch (f->sub->kind) {
    case SUB_TRUE:
        return SCHEMA_VALID;
    case SUB_FALSE:
        c->shallow = true;
        return report(c, f->place, "false schema", "is not allowed");
    case SUB_GAP:
        see_all_perhaps(f->up);
        return check_unsure(c, f->sub->gap->keyword, f->sub->gap->reason);
    default:
        count_frame(c, f);
        return run_rules(c, f);
    }
}

enum schema_answer check_sub(struct check *c, const struct frame *up, const struct sub *sub,
                             const struct js_node *v, const struct place *place, bool in_place)
{
    struct frame f = {.up = up, .sub = sub, .v = v, .place = place};
    const char *keyword = c->unsure_keyword, *reason = c->unsure_reason;
    enum schema_answer answer;

    if (c->stopped || !check_spend(c, 1))
        return SCHEMA_UNSURE;
    if (c->depth >= SCHEMA_DEPTH_MAX)
        return stop(c, "$ref", "schemas are applied inside one another without end or too deep");
    c->depth++;
    answer = run_sub(c, &f);
    c->depth--;
    if (in_place && answer != SCHEMA_INVALID)
        merge_seen(up, &f, answer);
    /* An unsure answer inside did not decide. */
    if (answer != SCHEMA_UNSURE && !c->stopped) {
        c->unsure_keyword = keyword;
        c->unsure_reason = reason;
    }
    return answer;
}

enum schema_answer check_quietly(struct check *c, const struct frame *f, const struct sub *sub,
                                 const struct js_node *v, const struct place *place, bool in_place)
{
    enum schema_answer answer;

    c->quiet++;
    answer = check_sub(c, f, sub, v, place, in_place);
    c->quiet--;
    return answer;
}

enum schema_answer check_gap(struct check *c, const struct frame *f, const struct rule *r)
{
    see_all_perhaps(f);
    return check_unsure(c, r->gap->keyword, r->gap->reason);
}

/* The target in the outermost schema in use with a dynamic anchor of this name, else the first
 * target. */
static const struct sub *dynamic_target(struct check *c, const struct frame *f,
                                        const struct rule *r)
{
    const struct sub *target = r->sub;
    const struct resource *last = NULL;

    for (; f && f->sub; f = f->up) {
        const struct anchor *a;

        if (f->sub->resource == last)
            continue;
        last = f->sub->resource;
        if (!check_spend(c, 1 + (last->uri.n + r->anchor_name.n) / SCHEMA_STEP_BYTES))
            break;
        a = map_get(&c->s->anchors, resource_anchor_key(last->uri, r->anchor_name, c->mem));
        if (a && a->dynamic)
            target = a->sub;
    }
    return target;
}

enum schema_answer check_ref(struct check *c, const struct frame *f, const struct rule *r)
{
    return check_sub(c, f, r->dynamic ? dynamic_target(c, f, r) : r->sub, f->v, f->place, true);
}

enum schema_answer check_all_of(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_VALID;

    for (unsigned i = 0; i < r->n; i++)
        answer = answer_and(answer, check_sub(c, f, r->subs[i], f->v, f->place, true));
    return answer;
}

/* The type mask of an alternative; 0 when it has no `type`. */
static unsigned type_of_alternative(const struct sub *s)
{
    for (unsigned i = 0; i < s->n_rules; i++)
        if (s->rules[i].check == check_type)
            return s->rules[i].type_mask;
    return 0;
}

/* Reports that no alternative matched.  If only one alternative passed the type, its findings are
 * reported.  If none did, the types that they require are reported. */
static enum schema_answer report_none(struct check *c, const struct frame *f, const struct rule *r,
                                      unsigned deep, const struct sub *only)
{
    struct rule types = {.keyword = r->keyword, .check = check_type};

    if (c->quiet)
        return SCHEMA_INVALID;
    if (deep == 1)
        return check_sub(c, f, only, f->v, f->place, false);
    for (unsigned i = 0; deep == 0 && i < r->n; i++) {
        unsigned mask = type_of_alternative(r->subs[i]);
        if (mask == 0) {
            types.type_mask = 0;
            break;
        }
        types.type_mask |= mask;
    }
    if (types.type_mask && check_type(c, f, &types) == SCHEMA_INVALID)
        return SCHEMA_INVALID;
    return report(c, f->place, r->keyword, "matches none of the %u alternatives", r->n);
}

enum schema_answer check_any_of(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_INVALID, one;
    const struct sub *only = NULL;
    unsigned deep = 0;

    for (unsigned i = 0; i < r->n && !c->stopped; i++) {
        one = check_quietly(c, f, r->subs[i], f->v, f->place, true);
        if (one == SCHEMA_INVALID && !c->shallow) {
            only = r->subs[i];
            deep++;
        }
        answer = one < answer ? one : answer;
        if (answer == SCHEMA_VALID && !c->s->tracks)
            break;
    }
    return answer == SCHEMA_INVALID && !c->stopped ? report_none(c, f, r, deep, only) : answer;
}

enum schema_answer check_one_of(struct check *c, const struct frame *f, const struct rule *r)
{
    const struct sub *only = NULL;
    unsigned valid = 0, unsure = 0, deep = 0;

    for (unsigned i = 0; i < r->n && !c->stopped; i++) {
        enum schema_answer one = check_quietly(c, f, r->subs[i], f->v, f->place, true);

        valid += one == SCHEMA_VALID;
        unsure += one == SCHEMA_UNSURE;
        if (one == SCHEMA_INVALID && !c->shallow) {
            only = r->subs[i];
            deep++;
        }
    }
    if (c->stopped)
        return SCHEMA_UNSURE;
    if (valid > 1)
        return report(c, f->place, r->keyword,
                      "matches %u of the %u alternatives, but must match just one", valid, r->n);
    if (unsure)
        return SCHEMA_UNSURE;
    return valid ? SCHEMA_VALID : report_none(c, f, r, deep, only);
}

enum schema_answer check_not(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer one = check_quietly(c, f, r->sub, f->v, f->place, false);

    if (one == SCHEMA_VALID)
        return report(c, f->place, r->keyword, "is of the kind that the schema forbids");
    return one == SCHEMA_INVALID ? SCHEMA_VALID : SCHEMA_UNSURE;
}

static enum schema_answer check_branch(struct check *c, const struct frame *f,
                                       const struct sub *branch)
{
    return branch ? check_sub(c, f, branch, f->v, f->place, true) : SCHEMA_VALID;
}

/* An unsure condition does not matter if both branches agree.  The members that the branches saw
 * are unsure then, so they are collected in a copy of the frame. */
static enum schema_answer check_both(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer then, otherwise;
    struct frame copy = *f;

    if (f->seen) {
        copy.seen = arena_zalloc(c->mem, f->n + 1u);
        if (!check_spend(c, f->n / 16))
            return SCHEMA_UNSURE;
    }
    c->quiet++;
    then = check_branch(c, &copy, r->then);
    otherwise = check_branch(c, &copy, r->otherwise);
    c->quiet--;
    merge_seen(f, &copy, SCHEMA_UNSURE);
    if (then == SCHEMA_INVALID && otherwise == SCHEMA_INVALID)
        return report(c, f->place, r->keyword, "fits neither `then` nor `else`");
    return then == SCHEMA_VALID && otherwise == SCHEMA_VALID ? SCHEMA_VALID : SCHEMA_UNSURE;
}

enum schema_answer check_if(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer condition = check_quietly(c, f, r->sub, f->v, f->place, true);

    if (c->stopped)
        return SCHEMA_UNSURE;
    if (condition == SCHEMA_UNSURE)
        return check_both(c, f, r);
    return check_branch(c, f, condition == SCHEMA_VALID ? r->then : r->otherwise);
}

enum schema_answer schema_check(const struct schema *s, const struct js_doc *doc,
                                const struct js_node *instance, struct arena *mem,
                                struct schema_report *ret)
{
    struct check c = {.s = s, .doc = doc, .mem = mem, .report = ret, .steps = SCHEMA_STEPS_MAX};
    static const struct frame outside;
    enum schema_answer answer;

    *ret = (struct schema_report){0};
    answer = check_sub(&c, &outside, s->root, instance, NULL, false);
    regex_run_free(c.run);
    if (c.stopped)
        answer = SCHEMA_UNSURE;
    if (answer != SCHEMA_INVALID)
        ret->n = 0;
    if (answer == SCHEMA_UNSURE) {
        ret->unsure_keyword = c.unsure_keyword;
        ret->unsure_reason = c.unsure_reason;
    }
    return answer;
}
