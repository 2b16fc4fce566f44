/* SPDX-License-Identifier: Apache-2.0 */
/* Keywords for a single value: its type, equality, numbers and strings. */
#include "schema/schema_impl.h"

#include "base/utf8.h"

static const char too_far[] = "the exponent of a number is too large to reckon with";

/* Reads a number of the instance.  The cost includes `more` digits that it is compared with. */
static enum schema_answer read_number(struct check *c, const struct js_node *v, size_t more,
                                      const char *keyword, struct decimal *ret)
{
    if (!check_spend(c, (v->end - v->start + more) / SCHEMA_STEP_BYTES))
        return SCHEMA_UNSURE;
    return decimal_read(js_raw(c->doc, v), ret) ? SCHEMA_VALID : check_unsure(c, keyword, too_far);
}

/* A number with a zero fraction is an integer in any notation. */
static enum schema_answer is_integer(struct check *c, const struct js_node *v, const char *keyword)
{
    struct decimal d;

    if (read_number(c, v, 0, keyword, &d) != SCHEMA_VALID)
        return SCHEMA_UNSURE;
    return decimal_is_integer(&d) ? SCHEMA_VALID : SCHEMA_INVALID;
}

static struct str type_names(struct check *c, unsigned mask)
{
    static const struct {
        unsigned bits;
        const char *name;
    } names[] = {
        {TYPE_BIT(JS_STRING), "a string"},  {TYPE_BIT(JS_NUMBER), "a number"},
        {TYPE_INTEGER, "an integer"},       {TYPE_BOOLEAN, "true or false"},
        {TYPE_BIT(JS_OBJECT), "an object"}, {TYPE_BIT(JS_ARRAY), "an array"},
        {TYPE_BIT(JS_NULL), "null"},
    };
    struct str text = STR("");

    for (size_t i = 0; i < countof(names); i++)
        if ((mask & names[i].bits) == names[i].bits)
            text = arena_printf(c->mem, "%.*s%s%s", STR_ARG(text), text.n ? " or " : "",
                                names[i].name);
    return text;
}

enum schema_answer check_type(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = SCHEMA_INVALID;

    if (r->type_mask & TYPE_BIT(f->v->type))
        return SCHEMA_VALID;
    if (f->v->type == JS_NUMBER && (r->type_mask & TYPE_INTEGER))
        answer = is_integer(c, f->v, r->keyword);
    if (answer != SCHEMA_INVALID || c->quiet)
        return answer;
    if (f->v->type == JS_NUMBER && (r->type_mask & TYPE_INTEGER))
        return report(c, f->place, r->keyword, "must be %.*s, not %.*s",
                      STR_ARG(type_names(c, r->type_mask)),
                      STR_ARG(str_cut(js_raw(c->doc, f->v), 40)));
    return report(c, f->place, r->keyword, "must be %.*s, not %s",
                  STR_ARG(type_names(c, r->type_mask)), js_type_name(f->v->type));
}

/* The raw values of an enum, cut after about 300 bytes. */
static struct str list_values(struct check *c, const struct js_node *list)
{
    const struct js_doc *d = c->s->doc;
    struct str text = STR("");

    for (const struct js_node *v = js_first(d, list); v; v = js_next(d, list, v)) {
        if (text.n > 300)
            return arena_printf(c->mem, "%.*s, …", STR_ARG(text));
        text = arena_printf(c->mem, "%.*s%s%.*s", STR_ARG(text), text.n ? ", " : "",
                            STR_ARG(str_cut(js_raw(d, v), 60)));
    }
    return text;
}

enum schema_answer check_enum(struct check *c, const struct frame *f, const struct rule *r)
{
    const struct js_doc *d = c->s->doc;
    enum schema_answer answer = SCHEMA_INVALID, one;

    for (const struct js_node *v = js_first(d, r->value); v && !c->stopped;
         v = js_next(d, r->value, v)) {
        one = equal_values(c, c->doc, f->v, d, v);
        if (one == SCHEMA_VALID)
            return one;
        answer = one < answer ? one : answer;
    }
    if (answer == SCHEMA_INVALID && !c->quiet)
        report(c, f->place, r->keyword, "must be one of %.*s", STR_ARG(list_values(c, r->value)));
    return answer;
}

enum schema_answer check_const(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = equal_values(c, c->doc, f->v, c->s->doc, r->value);

    if (answer == SCHEMA_INVALID)
        report(c, f->place, r->keyword, "must be %.*s",
               STR_ARG(str_cut(js_raw(c->s->doc, r->value), 200)));
    return answer;
}

/* Compares with the bound of the rule.  `direction` is 1 for an upper bound and -1 for a lower one,
 * so that four keywords share this function. */
static enum schema_answer check_bound(struct check *c, const struct frame *f, const struct rule *r,
                                      int direction, bool inclusive, const char *words)
{
    struct decimal d;
    int side;

    if (read_number(c, f->v, r->number.n, r->keyword, &d) != SCHEMA_VALID)
        return SCHEMA_UNSURE;
    side = decimal_compare(&d, &r->number) * direction;
    if (side < 0 || (side == 0 && inclusive))
        return SCHEMA_VALID;
    return report(c, f->place, r->keyword, "must be %s %.*s", words,
                  STR_ARG(str_cut(js_raw(c->s->doc, r->value), 40)));
}

enum schema_answer check_maximum(struct check *c, const struct frame *f, const struct rule *r)
{
    return check_bound(c, f, r, 1, true, "at most");
}

enum schema_answer check_below(struct check *c, const struct frame *f, const struct rule *r)
{
    return check_bound(c, f, r, 1, false, "less than");
}

enum schema_answer check_minimum(struct check *c, const struct frame *f, const struct rule *r)
{
    return check_bound(c, f, r, -1, true, "at least");
}

enum schema_answer check_above(struct check *c, const struct frame *f, const struct rule *r)
{
    return check_bound(c, f, r, -1, false, "greater than");
}

enum schema_answer check_multiple(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer;
    struct decimal d;

    if (read_number(c, f->v, 0, r->keyword, &d) != SCHEMA_VALID)
        return SCHEMA_UNSURE;
    answer = decimal_divides(&r->number, &d);
    if (answer == SCHEMA_UNSURE)
        return check_unsure(c, r->keyword, "its value has too many digits to divide by");
    if (answer == SCHEMA_INVALID)
        report(c, f->place, r->keyword, "must be a multiple of %.*s",
               STR_ARG(str_cut(js_raw(c->s->doc, r->value), 40)));
    return answer;
}

/* In characters, not bytes. */
static uint64_t length_of(struct check *c, const struct js_node *v)
{
    return utf8_count(check_text(c, v));
}

enum schema_answer check_max_length(struct check *c, const struct frame *f, const struct rule *r)
{
    uint64_t n = length_of(c, f->v);

    if (n <= r->count)
        return SCHEMA_VALID;
    return report(c, f->place, r->keyword, "must be at most %llu characters long, not %llu",
                  (unsigned long long)r->count, (unsigned long long)n);
}

enum schema_answer check_min_length(struct check *c, const struct frame *f, const struct rule *r)
{
    uint64_t n = length_of(c, f->v);

    if (n >= r->count)
        return SCHEMA_VALID;
    return report(c, f->place, r->keyword, "must be at least %llu characters long, not %llu",
                  (unsigned long long)r->count, (unsigned long long)n);
}

enum schema_answer check_matches(struct check *c, const struct regex *re, struct str text,
                                 const char *keyword)
{
    enum schema_answer answer;

    if (!re)
        return check_unsure(c, keyword, "the regular expression is not supported");
    /* PCRE2 may scan the whole text before the first callout. */
    if (!check_spend(c, text.n / SCHEMA_STEP_BYTES))
        return SCHEMA_UNSURE;
    if (!c->run)
        c->run = regex_run_new();
    answer = regex_match(c->run, re, text, &c->steps);
    if (answer == SCHEMA_UNSURE)
        check_unsure(
            c, keyword,
            "matching the regular expression took more steps than it may, or has two answers");
    return answer;
}

enum schema_answer check_pattern(struct check *c, const struct frame *f, const struct rule *r)
{
    enum schema_answer answer = check_matches(c, r->regex, check_text(c, f->v), r->keyword);

    if (answer == SCHEMA_INVALID)
        report(c, f->place, r->keyword, "must match the pattern %.*s",
               STR_ARG(str_cut(js_raw(c->s->doc, r->value), 200)));
    return answer;
}
