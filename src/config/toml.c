/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive parser that builds a tree of tables, then writes the tree.  Depth, number of values
 * and size are limited.  A table knows how it was made, because TOML allows some tables to be
 * continued and others not:
 *
 *   [a.b]      makes a (TABLE_IMPLIED) and b (TABLE_HEADER)
 *   a.b = 1    makes a (TABLE_DOTTED); a header cannot reopen it
 *   a = {}     makes a (TABLE_CLOSED); nothing can be added
 *   [[a]]      adds a table to the array a */
#include "config/toml.h"

#include "base/utf8.h"
#include "json/read.h"
#include "json/write.h"

#define DEEPEST 32
#define VALUES_MAX 100000

enum toml_kind { TOML_PLAIN, TOML_ARRAY, TOML_TABLES, TOML_TABLE };
enum table_made { TABLE_IMPLIED, TABLE_HEADER, TABLE_DOTTED, TABLE_CLOSED };

struct value {
    struct value *next; /* in its table or array */
    struct value *first, *last;
    struct str key;
    struct str json; /* TOML_PLAIN */
    enum toml_kind kind;
    enum table_made made;
};

struct reader {
    struct str text;
    size_t at;
    unsigned depth, values;
    struct arena *mem;
    struct error *err;
};

static bool fail_at(struct reader *r, size_t at, const char *reason)
{
    unsigned line, column;

    js_position(r->text, at, &line, &column);
    return error_set(r->err, ERR_CONFIG, "line %u, column %u: %s", line, column,
                     at >= r->text.n ? "the text ends too early" : reason);
}

static bool fail(struct reader *r, const char *reason)
{
    return fail_at(r, r->at, reason);
}

/* 0 at the end, which no rule accepts. */
static char peek(const struct reader *r)
{
    return r->at < r->text.n ? r->text.p[r->at] : '\0';
}

static bool has(const struct reader *r, const char *word)
{
    return str_starts(str_n(r->text.p + r->at, r->text.n - r->at), str_of(word));
}

static void skip_blanks(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->at++;
}

static bool at_line_end(const struct reader *r)
{
    return r->at >= r->text.n || peek(r) == '\n' || has(r, "\r\n");
}

/* Moves past the character at `at`; control bytes and bad UTF-8 are errors. */
static bool take_char(struct reader *r)
{
    uint32_t code;
    size_t n;

    if (r->at >= r->text.n)
        return fail(r, "");
    n = utf8_decode(r->text.p + r->at, r->text.p + r->text.n, &code);
    if (n == 0)
        return fail(r, "these bytes are not UTF-8");
    if ((code < 0x20 && code != '\t') || code == 0x7f)
        return fail(r, "control bytes must be escaped in a string");
    r->at += n;
    return true;
}

static bool skip_comment(struct reader *r)
{
    if (peek(r) != '#')
        return true;
    while (!at_line_end(r))
        if (!take_char(r))
            return false;
    return true;
}

/* Blanks, comments and line ends. */
static bool skip_lines(struct reader *r)
{
    for (;;) {
        skip_blanks(r);
        if (!skip_comment(r))
            return false;
        if (r->at >= r->text.n || !at_line_end(r))
            return true;
        r->at += peek(r) == '\r' ? 2 : 1;
    }
}

static bool end_line(struct reader *r)
{
    skip_blanks(r);
    return skip_comment(r) && (at_line_end(r) || fail(r, "a new line is expected here"));
}

static struct value *new_value(struct reader *r, enum toml_kind kind)
{
    struct value *v;

    if (++r->values > VALUES_MAX) {
        fail(r, "there are too many values in this file");
        return NULL;
    }
    v = arena_new_of(r->mem, struct value);
    v->kind = kind;
    return v;
}

static void append(struct value *to, struct value *v)
{
    if (to->last)
        to->last->next = v;
    else
        to->first = v;
    to->last = v;
}

static struct value *find(const struct value *table, struct str key)
{
    struct value *v = table->first;

    while (v && !str_eq(v->key, key))
        v = v->next;
    return v;
}

/* Strings */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void add_utf8(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_addc(out, (char)c);
        return;
    }
    if (c < 0x800) {
        buf_addc(out, (char)(0xc0 | c >> 6));
    } else {
        if (c < 0x10000) {
            buf_addc(out, (char)(0xe0 | c >> 12));
        } else {
            buf_addc(out, (char)(0xf0 | c >> 18));
            buf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
    }
    buf_addc(out, (char)(0x80 | (c & 0x3f)));
}

/* \uXXXX and \UXXXXXXXX; `at` is after the letter. */
static bool take_unicode(struct reader *r, int digits, struct buf *out)
{
    uint32_t code = 0;

    for (int i = 0; i < digits; i++) {
        int digit = hex_value(peek(r));
        if (digit < 0)
            return fail(r, "a hexadecimal digit is expected here");
        code = code << 4 | (uint32_t)digit;
        r->at++;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return fail_at(r, r->at - 1, "this is not a Unicode character");
    add_utf8(out, code);
    return true;
}

static bool take_escape(struct reader *r, struct buf *out)
{
    static const char letters[] = "btnfre\"\\", bytes[] = "\b\t\n\f\r\x1b\"\\";
    const char *found;
    char c;

    r->at++;
    c = peek(r);
    if (c == 'u' || c == 'U') {
        r->at++;
        return take_unicode(r, c == 'u' ? 4 : 8, out);
    }
    found = c ? strchr(letters, c) : NULL;
    if (!found)
        return fail(r, "this escape sequence is not valid");
    buf_addc(out, bytes[found - letters]);
    r->at++;
    return true;
}

/* A backslash at the end of a line removes the line end and the blanks after it. */
static bool take_folded(struct reader *r, bool *ret_folded)
{
    size_t at = r->at + 1;

    while (at < r->text.n && (r->text.p[at] == ' ' || r->text.p[at] == '\t'))
        at++;
    *ret_folded = at < r->text.n && (r->text.p[at] == '\n' || r->text.p[at] == '\r');
    if (!*ret_folded)
        return true;
    while (at < r->text.n && strchr(" \t\r\n", r->text.p[at]))
        at++;
    r->at = at;
    return true;
}

/* One character of a string, or one escape. */
static bool take_string_char(struct reader *r, bool literal, bool lines, struct buf *out)
{
    size_t start = r->at;
    bool folded = false;

    if (lines && at_line_end(r) && r->at < r->text.n) {
        buf_addc(out, '\n');
        r->at += peek(r) == '\r' ? 2 : 1;
        return true;
    }
    if (!literal && peek(r) == '\\') {
        if (lines && !take_folded(r, &folded))
            return false;
        return folded || take_escape(r, out);
    }
    if (!take_char(r))
        return false;
    buf_add(out, r->text.p + start, r->at - start);
    return true;
}

static bool take_lines_string(struct reader *r, char quote, struct buf *out)
{
    const char close[] = {quote, quote, quote, '\0'};

    r->at += 3;
    if (r->at < r->text.n && at_line_end(r))
        r->at += peek(r) == '\r' ? 2 : 1;
    while (!has(r, close))
        if (!take_string_char(r, quote == '\'', true, out))
            return false;
    r->at += 3;
    /* Up to two quotes before the closing ones belong to the text. */
    for (int i = 0; i < 2 && peek(r) == quote; i++) {
        buf_addc(out, quote);
        r->at++;
    }
    return true;
}

static bool take_line_string(struct reader *r, char quote, struct buf *out)
{
    r->at++;
    while (peek(r) != quote || r->at >= r->text.n) {
        if (at_line_end(r))
            return fail(r, "a string ends on its line; write \"\"\" for one with several lines");
        if (!take_string_char(r, quote == '\'', false, out))
            return false;
    }
    r->at++;
    return true;
}

/* Any of the four kinds; *ret is in r->mem. */
static bool take_string(struct reader *r, bool may_have_lines, struct str *ret)
{
    char quote = peek(r);
    bool lines = may_have_lines && has(r, quote == '"' ? "\"\"\"" : "'''"), ok;
    struct buf out;

    buf_init_secret(&out, SIZE_MAX);
    ok = lines ? take_lines_string(r, quote, &out) : take_line_string(r, quote, &out);
    if (ok)
        *ret = arena_dup(r->mem, buf_str(&out));
    buf_release(&out);
    return ok;
}

/* Keys */

static bool is_bare(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '-';
}

static bool take_key(struct reader *r, struct str *ret)
{
    size_t start = r->at;

    if (peek(r) == '"' || peek(r) == '\'')
        return take_string(r, false, ret);
    while (is_bare(peek(r)))
        r->at++;
    if (r->at == start)
        return fail(r, "a key is expected here: letters, digits, _ and -, or a text in quotes");
    *ret = str_n(r->text.p + start, r->at - start);
    return true;
}

/* The next part of a dotted key, if there is one. */
static bool take_dot(struct reader *r, bool *ret)
{
    skip_blanks(r);
    *ret = peek(r) == '.';
    if (*ret) {
        r->at++;
        skip_blanks(r);
    }
    return true;
}

/* Values */

static bool take_value(struct reader *r, struct value **ret);

static bool add_json(struct reader *r, struct str json, struct value **ret)
{
    struct value *v = new_value(r, TOML_PLAIN);

    if (!v)
        return false;
    v->json = arena_dup(r->mem, json);
    *ret = v;
    return true;
}

static bool add_text(struct reader *r, struct str text, struct value **ret)
{
    struct buf out;
    bool ok;

    buf_init_secret(&out, SIZE_MAX);
    js_quote(&out, text);
    ok = add_json(r, buf_str(&out), ret);
    buf_release(&out);
    return ok;
}

static bool is_date_or_time(struct str w)
{
    return (w.n >= 10 && w.p[4] == '-' && w.p[7] == '-') ||
           (w.n >= 5 && w.p[2] == ':' && w.p[0] >= '0' && w.p[0] <= '2');
}

/* 0x1F, 0o17, 0b11 to decimal. */
static bool take_based(struct reader *r, struct str word, unsigned base, struct value **ret)
{
    uint64_t sum = 0;
    struct str out;

    for (size_t i = 2; i < word.n; i++) {
        int digit = hex_value(word.p[i]);
        if (word.p[i] == '_' && i > 2 && i + 1 < word.n && word.p[i - 1] != '_')
            continue;
        if (digit < 0 || (unsigned)digit >= base || sum > (uint64_t)INT64_MAX / base)
            return fail(r, "this is not a number that TOML knows");
        sum = sum * base + (unsigned)digit;
    }
    if (word.n == 2 || sum > INT64_MAX)
        return fail(r, "this is not a number that TOML knows");
    out = arena_printf(r->mem, "%llu", (unsigned long long)sum);
    return add_json(r, out, ret);
}

/* Decimal integers and floats differ from those of JSON by a plus sign and underscores. */
static bool take_number(struct reader *r, struct str word, struct value **ret)
{
    static const struct js_limits limits = {.depth = 1, .keys = 1, .nodes = 4};
    struct buf out;
    struct js_doc doc;
    bool ok = true;

    if (word.n > 2 && word.p[0] == '0' && strchr("xob", word.p[1]))
        return take_based(r, word, word.p[1] == 'x' ? 16 : word.p[1] == 'o' ? 8 : 2, ret);
    buf_init(&out, SIZE_MAX);
    for (size_t i = word.p[0] == '+'; i < word.n; i++) {
        bool between = i > 0 && i + 1 < word.n && word.p[i - 1] >= '0' && word.p[i - 1] <= '9' &&
                       word.p[i + 1] >= '0' && word.p[i + 1] <= '9';
        if (word.p[i] == '_' && between)
            continue;
        buf_addc(&out, word.p[i]);
    }
    ok = js_parse(buf_str(&out), &limits, r->mem, &doc, NULL) && js_root(&doc)->type == JS_NUMBER;
    ok = ok ? add_json(r, buf_str(&out), ret)
            : fail(r, "a value is expected here: a text in quotes, a number, true, false, an "
                      "array or a table");
    buf_release(&out);
    return ok;
}

static bool take_word(struct reader *r, struct value **ret)
{
    size_t start = r->at, end = start;
    struct str word;
    bool ok;

    while (end < r->text.n && (is_bare(r->text.p[end]) || strchr("+.:", r->text.p[end])))
        end++;
    word = str_n(r->text.p + start, end - start);
    if (is_date_or_time(word) && end + 1 < r->text.n && r->text.p[end] == ' ' &&
        r->text.p[end + 1] >= '0' && r->text.p[end + 1] <= '9') { /* date, blank, time */
        end++;
        while (end < r->text.n && (is_bare(r->text.p[end]) || strchr("+.:", r->text.p[end])))
            end++;
        word = str_n(r->text.p + start, end - start);
    }
    if (str_eq(word, STR("true")) || str_eq(word, STR("false")))
        ok = add_json(r, word, ret);
    else if (str_ends(word, STR("inf")) || str_ends(word, STR("nan")))
        ok = fail(r, "inf and nan cannot be taken over");
    else if (word.n == 0)
        ok = fail(r, "a value is expected here");
    else
        ok = is_date_or_time(word) ? add_text(r, word, ret) : take_number(r, word, ret);
    if (ok)
        r->at = end;
    return ok;
}

static bool take_array(struct reader *r, struct value **ret)
{
    struct value *array = new_value(r, TOML_ARRAY), *item;

    if (!array)
        return false;
    r->at++;
    for (;;) {
        if (!skip_lines(r))
            return false;
        if (peek(r) == ']')
            break;
        if (!take_value(r, &item))
            return false;
        append(array, item);
        if (!skip_lines(r))
            return false;
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != ']')
            return fail(r, "a comma or ] is expected here");
    }
    r->at++;
    *ret = array;
    return true;
}

static bool take_pair(struct reader *r, struct value *table);

static void close_tables(struct value *v)
{
    v->made = TABLE_CLOSED;
    for (struct value *c = v->first; c; c = c->next)
        if (c->kind == TOML_TABLE)
            close_tables(c);
}

static bool take_inline_table(struct reader *r, struct value **ret)
{
    struct value *table = new_value(r, TOML_TABLE);

    if (!table)
        return false;
    table->made = TABLE_DOTTED;
    r->at++;
    skip_blanks(r);
    while (peek(r) != '}') {
        if (table->first) {
            if (peek(r) != ',')
                return fail(r, "a comma or } is expected here");
            r->at++;
            skip_blanks(r);
        }
        if (!take_pair(r, table))
            return false;
        skip_blanks(r);
    }
    r->at++;
    close_tables(table);
    *ret = table;
    return true;
}

static bool take_value(struct reader *r, struct value **ret)
{
    struct str text = STR_NONE;
    bool ok;

    if (r->depth == DEEPEST)
        return fail(r, "this is nested too deeply");
    r->depth++;
    switch (peek(r)) {
    case '"':
    case '\'':
        ok = take_string(r, true, &text) && add_text(r, text, ret);
        break;
    case '[':
        ok = take_array(r, ret);
        break;
    case '{':
        ok = take_inline_table(r, ret);
        break;
    default:
        ok = take_word(r, ret);
    }
    r->depth--;
    return ok;
}

/* Goes into the table `key` of `table`, and makes it if it is missing.  Of an array of tables, the
 * last one is meant. */
static bool descend(struct reader *r, size_t at, struct value *table, struct str key,
                    enum table_made made, struct value **ret)
{
    struct value *v = find(table, key);

    if (!v) {
        v = new_value(r, TOML_TABLE);
        if (!v)
            return false;
        v->key = key;
        v->made = made;
        append(table, v);
    }
    if (v->kind == TOML_TABLES && made == TABLE_IMPLIED)
        v = v->last;
    if (v->kind != TOML_TABLE || v->made == TABLE_CLOSED ||
        (made == TABLE_DOTTED && v->made != TABLE_DOTTED))
        return fail_at(r, at, "this key has a value already");
    *ret = v;
    return true;
}

/* key = value */
static bool take_pair(struct reader *r, struct value *table)
{
    struct str key = STR_NONE;
    struct value *v = NULL;
    size_t start = r->at;
    unsigned parts = 1;
    bool more = false;

    if (!take_key(r, &key) || !take_dot(r, &more))
        return false;
    while (more) {
        if (++parts > DEEPEST)
            return fail(r, "this key has too many parts");
        if (!descend(r, start, table, key, TABLE_DOTTED, &table) || !take_key(r, &key) ||
            !take_dot(r, &more))
            return false;
    }
    if (find(table, key))
        return fail_at(r, start, "this key occurs twice in one table");
    if (peek(r) != '=')
        return fail(r, "an = is expected after the key");
    r->at++;
    skip_blanks(r);
    if (!take_value(r, &v))
        return false;
    v->key = key;
    append(table, v);
    return true;
}

static bool open_table(struct reader *r, size_t at, struct value *in, struct str key,
                       struct value **ret)
{
    struct value *v = find(in, key);

    if (v && (v->kind != TOML_TABLE || v->made != TABLE_IMPLIED))
        return fail_at(r, at, "this table occurs twice, or its name has a value already");
    if (!v) {
        v = new_value(r, TOML_TABLE);
        if (!v)
            return false;
        v->key = key;
        append(in, v);
    }
    v->made = TABLE_HEADER;
    *ret = v;
    return true;
}

static bool open_item(struct reader *r, size_t at, struct value *in, struct str key,
                      struct value **ret)
{
    struct value *list = find(in, key), *item = new_value(r, TOML_TABLE);

    if (!item)
        return false;
    if (list && list->kind != TOML_TABLES)
        return fail_at(r, at, "this name has a value already that is not a list of tables");
    if (!list) {
        list = new_value(r, TOML_TABLES);
        if (!list)
            return false;
        list->key = key;
        append(in, list);
    }
    item->made = TABLE_HEADER;
    append(list, item);
    *ret = item;
    return true;
}

/* [a.b] or [[a.b]]; *ret is the table that the next lines fill. */
static bool take_header(struct reader *r, struct value *root, struct value **ret)
{
    bool is_item = has(r, "[["), more = false;
    struct value *in = root;
    struct str key = STR_NONE;
    size_t start = r->at;
    unsigned parts = 1;

    r->at += is_item ? 2 : 1;
    skip_blanks(r);
    if (!take_key(r, &key) || !take_dot(r, &more))
        return false;
    while (more) {
        if (++parts > DEEPEST)
            return fail(r, "this key has too many parts");
        if (!descend(r, start, in, key, TABLE_IMPLIED, &in) || !take_key(r, &key) ||
            !take_dot(r, &more))
            return false;
    }
    if (!has(r, is_item ? "]]" : "]"))
        return fail(r, is_item ? "]] is expected here" : "] is expected here");
    r->at += is_item ? 2 : 1;
    return is_item ? open_item(r, start, in, key, ret) : open_table(r, start, in, key, ret);
}

static bool take_document(struct reader *r, struct value *root)
{
    struct value *table = root;

    for (;;) {
        if (!skip_lines(r))
            return false;
        if (r->at >= r->text.n)
            return true;
        if (!(peek(r) == '[' ? take_header(r, root, &table) : take_pair(r, table)) || !end_line(r))
            return false;
    }
}

static void write_value(const struct value *v, struct buf *out)
{
    bool is_table = v->kind == TOML_TABLE;

    if (v->kind == TOML_PLAIN) {
        buf_addstr(out, v->json);
        return;
    }
    buf_addc(out, is_table ? '{' : '[');
    for (const struct value *c = v->first; c; c = c->next) {
        if (c != v->first)
            buf_addc(out, ',');
        if (is_table) {
            js_quote(out, c->key);
            buf_addc(out, ':');
        }
        write_value(c, out);
    }
    buf_addc(out, is_table ? '}' : ']');
}

bool toml_to_json(struct str text, struct arena *mem, struct buf *out, struct error *err)
{
    struct reader r = {.text = text.p ? text : STR(""), .mem = mem, .err = err};
    struct value root = {.kind = TOML_TABLE, .made = TABLE_HEADER};

    if (text.n > TOML_MAX)
        return error_set(err, ERR_TOO_LARGE, "the file is larger than %zu MiB", TOML_MAX >> 20);
    if (str_starts(r.text, STR("\xef\xbb\xbf")))
        r.at = 3;
    if (!take_document(&r, &root))
        return false;
    write_value(&root, out);
    return true;
}
