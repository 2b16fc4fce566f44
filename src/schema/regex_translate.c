/* SPDX-License-Identifier: Apache-2.0 */
/* Translates ECMA 262 patterns for PCRE2.  Every literal becomes a code point, every class its
 * ranges and every group a plain one, so that no other construct of PCRE2 can be reached.  Not
 * supported, so refused: back references (ECMA resets captures in each iteration of a loop, PCRE2
 * does not), named properties other than general categories, modifiers, and constructs that only
 * one of the two languages has. */
#include "schema/regex.h"

#include "base/utf8.h"

#define NESTING_MAX 64

struct reader {
    const char *p, *end;
    struct buf *out;
    const char *reason;
    unsigned depth;
    bool repeatable;        /* the item before may take a quantifier */
    bool unicode;           /* an item requires ECMA's flag "u" */
    bool lenient;           /* an item is allowed only without that flag */
    bool look[NESTING_MAX]; /* by depth: the group is a look-around */
};

/* Ranges without brackets, for use in a class. */
#define DIGIT "0-9"
#define NOT_DIGIT "\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}"
#define WORD "0-9A-Za-z_"
#define NOT_WORD "\\x{0}-\\x{2f}\\x{3a}-\\x{40}\\x{5b}-\\x{5e}\\x{60}\\x{7b}-\\x{10ffff}"
#define SPACE                                                                                      \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"           \
    "\\x{205f}\\x{3000}\\x{feff}"
#define NOT_SPACE                                                                                  \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"               \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"                 \
    "\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

static const struct {
    char letter;
    const char *ranges;
} classes[] = {
    {'d', DIGIT}, {'D', NOT_DIGIT}, {'w', WORD}, {'W', NOT_WORD}, {'s', SPACE}, {'S', NOT_SPACE},
};
static const struct {
    char letter;
    uint32_t code;
} controls[] = {{'t', '\t'}, {'n', '\n'}, {'v', '\v'}, {'f', '\f'}, {'r', '\r'}};

static const struct {
    const char *name, *category;
} categories[] = {
    {"Letter", "L"},
    {"Cased_Letter", "L&"},
    {"LC", "L&"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Symbol", "S"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
};

static bool refuse(struct reader *r, const char *reason)
{
    r->reason = reason;
    return false;
}

static bool at(const struct reader *r, char c)
{
    return r->p < r->end && *r->p == c;
}

static bool take(struct reader *r, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(r->end - r->p) < n || memcmp(r->p, text, n) != 0)
        return false;
    r->p += n;
    return true;
}

static bool take_hex(struct reader *r, unsigned digits, uint32_t *ret)
{
    uint32_t code = 0;

    if ((size_t)(r->end - r->p) < digits)
        return refuse(r, "an escape in the regular expression is cut off");
    for (unsigned i = 0; i < digits; i++) {
        char c = r->p[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F'))
            return refuse(r, "an escape in the regular expression has no hexadecimal digits");
        code = code * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    r->p += digits;
    *ret = code;
    return true;
}

/* After "\u": four digits, two such escapes that form a surrogate pair, or {…}. */
static bool take_unicode(struct reader *r, uint32_t *ret)
{
    uint32_t code = 0, low;
    unsigned digits = 0;

    if (take(r, "{")) {
        r->unicode = true;
        while (r->p + digits < r->end && r->p[digits] != '}')
            digits++;
        if (digits == 0 || digits > 6 || !take_hex(r, digits, &code) || !take(r, "}"))
            return refuse(r, "an escape in the regular expression is wrong");
    } else if (!take_hex(r, 4, &code)) {
        return false;
    }
    if (code >= 0xd800 && code < 0xdc00 && take(r, "\\u") && take_hex(r, 4, &low) &&
        low >= 0xdc00 && low < 0xe000)
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    r->unicode = r->unicode || code > 0xffff;
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return refuse(r, "half of a surrogate pair in a regular expression is not supported");
    *ret = code;
    return true;
}

/* After a backslash: an escape for one character. */
static bool take_escape(struct reader *r, uint32_t *ret)
{
    char c;

    if (r->p == r->end)
        return refuse(r, "the regular expression ends in a backslash");
    c = *r->p++;
    for (size_t i = 0; i < countof(controls); i++)
        if (controls[i].letter == c) {
            *ret = controls[i].code;
            return true;
        }
    if (c == 'x')
        return take_hex(r, 2, ret);
    if (c == 'u')
        return take_unicode(r, ret);
    if (c == '0' && !(r->p < r->end && *r->p >= '0' && *r->p <= '9')) {
        *ret = 0;
        return true;
    }
    if (c == 'c' && r->p < r->end && ((*r->p | 32) >= 'a' && (*r->p | 32) <= 'z')) {
        *ret = (uint32_t)(*r->p++ & 31);
        return true;
    }
    if ((c >= '0' && c <= '9') || c == 'k')
        return refuse(r, "back references in regular expressions are not supported");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80)
        return refuse(r, "an escape in the regular expression is not one of ECMA 262");
    r->lenient = r->lenient || !strchr("^$\\.*+?()[]{}|/", c);
    *ret = (unsigned char)c;
    return true;
}

static bool take_character(struct reader *r, uint32_t *ret)
{
    size_t n = utf8_decode(r->p, r->end, ret);

    if (n == 0)
        return refuse(r, "the regular expression is not UTF-8");
    r->p += n;
    r->unicode = r->unicode || n == 4;
    return true;
}

/* \d and the like, and \p{…}: writes the ranges; *ret_found is false when the escape is not a
 * class. */
static bool take_class(struct reader *r, bool *ret_found)
{
    char c = r->p < r->end ? *r->p : '\0';
    const char *close;
    struct str name;

    *ret_found = true;
    for (size_t i = 0; i < countof(classes); i++)
        if (classes[i].letter == c) {
            r->p++;
            buf_addz(r->out, classes[i].ranges);
            return true;
        }
    *ret_found = false;
    if (c != 'p' && c != 'P')
        return true;
    close = memchr(r->p, '}', (size_t)(r->end - r->p));
    if (r->end - r->p < 2 || r->p[1] != '{' || !close)
        return refuse(r, "an escape in the regular expression is wrong");
    name = str_n(r->p + 2, (size_t)(close - r->p) - 2);
    r->p = close + 1;
    for (size_t i = 0; i < countof(categories); i++)
        if (str_eq(name, str_of(categories[i].name)))
            name = str_of(categories[i].category);
    if (name.n == 0 || name.n > 2 || !strchr("LMNPSZC", name.p[0]) ||
        (name.n == 2 && !strchr("ultmoncedfspikb&", name.p[1])))
        return refuse(r, "only general categories are supported in \\p{…}");
    *ret_found = true;
    r->unicode = true;
    buf_addf(r->out, "\\%c{%.*s}", c, STR_ARG(name));
    return true;
}

static void add_code(struct reader *r, uint32_t code)
{
    buf_addf(r->out, "\\x{%x}", (unsigned)code);
}

/* One member of […]: a character, or a class. */
static bool take_member(struct reader *r, uint32_t *ret_code, bool *ret_class)
{
    *ret_class = false;
    if (!take(r, "\\"))
        return take_character(r, ret_code);
    if (take(r, "b")) {
        *ret_code = '\b';
        return true;
    }
    if (take(r, "-")) {
        *ret_code = '-';
        return true;
    }
    if (!take_class(r, ret_class))
        return false;
    return *ret_class || take_escape(r, ret_code);
}

static bool take_members(struct reader *r)
{
    uint32_t low = 0, high = 0;
    bool class;

    while (!at(r, ']')) {
        if (r->p == r->end)
            return refuse(r, "a class in the regular expression is not closed");
        if (!take_member(r, &low, &class))
            return false;
        if (!class)
            add_code(r, low);
        if (!at(r, '-') || (r->p + 1 < r->end && r->p[1] == ']'))
            continue;
        if (class)
            return refuse(r, "a range in the regular expression begins with a class");
        r->p++;
        buf_addc(r->out, '-');
        if (r->p == r->end || !take_member(r, &high, &class) || class || high < low)
            return refuse(r, "a range in the regular expression is wrong");
        add_code(r, high);
    }
    r->p++;
    return true;
}

static bool take_set(struct reader *r)
{
    bool negated = take(r, "^");

    if (take(r, "]")) {
        buf_addz(r->out, negated ? "[\\x{0}-\\x{10ffff}]" : "[^\\x{0}-\\x{10ffff}]");
    } else {
        buf_addz(r->out, negated ? "[^" : "[");
        if (!take_members(r))
            return false;
        buf_addc(r->out, ']');
    }
    r->repeatable = true;
    return true;
}

static bool take_group(struct reader *r)
{
    static const struct {
        const char *opens;
        bool look;
    } kinds[] = {{"?:", false}, {"?=", true}, {"?!", true}, {"?<=", true}, {"?<!", true}};
    const char *open = "?:";
    bool look = false;

    if (r->depth + 1 >= NESTING_MAX)
        return refuse(r, "groups in the regular expression are nested too deep");
    if (at(r, '?')) {
        size_t i = 0;
        while (i < countof(kinds) && !take(r, kinds[i].opens))
            i++;
        if (i < countof(kinds)) {
            open = kinds[i].opens;
            look = kinds[i].look;
        } else if (take(r, "?<")) {
            while (r->p < r->end && *r->p != '>')
                r->p++;
            if (!take(r, ">"))
                return refuse(r, "the name of a group in the regular expression is not closed");
        } else {
            return refuse(r, "this kind of group is not supported in regular expressions");
        }
    }
    buf_addc(r->out, '(');
    buf_addz(r->out, open);
    r->look[++r->depth] = look;
    r->repeatable = false;
    return true;
}

static bool take_digits(struct reader *r, unsigned *ret)
{
    unsigned value = 0, n = 0;

    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++, n++)
        value = value > 65535 ? value : value * 10 + (unsigned)(*r->p - '0');
    *ret = value;
    return n > 0;
}

/* "{n}", "{n,}" or "{n,m}"; any other brace is a literal. */
static bool take_braces(struct reader *r)
{
    const char *from = r->p;
    unsigned least, most;
    bool ok = take_digits(r, &least);

    most = least;
    if (ok && take(r, ","))
        most = take_digits(r, &most) ? most : least;
    if (!ok || !take(r, "}")) {
        r->p = from;
        r->lenient = true;
        add_code(r, '{');
        r->repeatable = true;
        return true;
    }
    if (!r->repeatable || least > 65535 || most > 65535 || most < least)
        return refuse(r, "a quantifier in the regular expression is wrong or too large");
    buf_addc(r->out, '{');
    buf_add(r->out, from, (size_t)(r->p - from));
    if (take(r, "?"))
        buf_addc(r->out, '?');
    r->repeatable = false;
    return true;
}

static bool take_quantifier(struct reader *r, char c)
{
    if (!r->repeatable)
        return refuse(r, "a quantifier in the regular expression has nothing to repeat");
    buf_addc(r->out, c);
    if (take(r, "?"))
        buf_addc(r->out, '?');
    r->repeatable = false;
    return true;
}

/* After a backslash outside […]. */
static bool take_backslash(struct reader *r)
{
    size_t mark = r->out->n;
    uint32_t code = 0;
    bool class;

    r->repeatable = false;
    if (at(r, 'b') || at(r, 'B')) {
        buf_addc(r->out, '\\');
        buf_addc(r->out, *r->p++);
        return true;
    }
    r->repeatable = true;
    buf_addc(r->out, '[');
    if (!take_class(r, &class))
        return false;
    if (class) {
        buf_addc(r->out, ']');
        return true;
    }
    r->out->n = mark;
    if (!take_escape(r, &code))
        return false;
    add_code(r, code);
    return true;
}

static bool take_close(struct reader *r)
{
    if (r->depth == 0)
        return refuse(r, "a group in the regular expression is closed but not open");
    /* The two languages differ on the meaning of a repeated look-around. */
    r->repeatable = !r->look[r->depth--];
    buf_addc(r->out, ')');
    return true;
}

static bool take_plain(struct reader *r)
{
    uint32_t code = 0;

    r->lenient = r->lenient || at(r, ']') || at(r, '}');
    if (!take_character(r, &code))
        return false;
    add_code(r, code);
    r->repeatable = true;
    return true;
}

static bool take_item(struct reader *r)
{
    char c = *r->p;

    if (!strchr("\\[(){*+?.^$|", c) || c == '\0')
        return take_plain(r);
    r->p++;
    switch (c) {
    case '\\':
        return take_backslash(r);
    case '[':
        return take_set(r);
    case '(':
        return take_group(r);
    case ')':
        return take_close(r);
    case '{':
        return take_braces(r);
    case '.':
        buf_addz(r->out, "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]");
        r->repeatable = true;
        return true;
    case '^':
    case '$':
    case '|':
        buf_addc(r->out, c);
        r->repeatable = false;
        return true;
    default:
        return take_quantifier(r, c);
    }
}

bool regex_translate(struct str pattern, struct buf *out, bool *ret_lenient,
                     const char **ret_reason)
{
    struct reader r = {.p = pattern.p, .end = pattern.p + pattern.n, .out = out};
    bool ok = true;

    if (pattern.n > SCHEMA_PATTERN_MAX)
        ok = refuse(&r, "the regular expression is too long");
    while (ok && r.p < r.end)
        ok = take_item(&r);
    if (ok && r.depth)
        ok = refuse(&r, "a group in the regular expression is not closed");
    if (ok && r.unicode && r.lenient)
        ok = refuse(
            &r, "the regular expression is not valid, neither with the flag \"u\" nor without it");
    if (!ok)
        *ret_reason = r.reason;
    *ret_lenient = r.lenient;
    return ok;
}
