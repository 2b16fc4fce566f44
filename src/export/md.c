/* SPDX-License-Identifier: Apache-2.0 */
#include "export/md.h"

#include "base/unicode.h"
#include "base/utf8.h"

#define INDENT_MAX 8
#define PRETTY_MAX ((size_t)64 << 10) /* longer values are shown as they are */

static size_t longest_run(struct str text)
{
    size_t longest = 0, run = 0;

    for (size_t i = 0; i < text.n; i++) {
        run = text.p[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void add_run(struct buf *out, size_t n)
{
    while (n--)
        buf_addc(out, '`');
}

/* Invisible characters by their numbers, bytes that are not UTF-8 as U+FFFD.  `keeps` lists control
 * characters that stay as they are; with any, a line may end with CR LF. */
static void add_visible(struct buf *out, struct str text, const char *keeps)
{
    uint32_t code;

    for (size_t i = 0, n; i < text.n; i += n) {
        n = utf8_decode(text.p + i, text.p + text.n, &code);
        if (!n) {
            buf_addz(out, "\xef\xbf\xbd");
            n = 1;
        } else if (code == '\r' && *keeps && i + 1 < text.n && text.p[i + 1] == '\n') {
            continue; /* the line ends with it */
        } else if (code && code < 0x80 && strchr(keeps, (int)code)) {
            buf_addc(out, (char)code);
        } else if (unicode_is_invisible(code) && !(code >= 0xfe00 && code <= 0xfe0f) &&
                   code != 0x200d) {
            buf_addf(out, "<U+%04X>", (unsigned)code);
        } else {
            buf_add(out, text.p + i, n);
        }
    }
}

void md_code(struct buf *out, struct str text, size_t max)
{
    struct str shown = str_cut(text, max);
    size_t ticks = longest_run(shown) + 1;
    bool pads = shown.n == 0 || shown.p[0] == '`' || shown.p[shown.n - 1] == '`' ||
                shown.p[0] == ' ' || shown.p[shown.n - 1] == ' ';

    add_run(out, ticks);
    if (pads)
        buf_addc(out, ' ');
    add_visible(out, shown, "");
    if (shown.n < text.n)
        buf_addz(out, "…");
    if (pads)
        buf_addc(out, ' ');
    add_run(out, ticks);
}

void md_block(struct buf *out, struct str text, const char *language)
{
    size_t ticks = longest_run(text) + 1;

    ticks = ticks < 3 ? 3 : ticks;
    add_run(out, ticks);
    buf_addf(out, "%s\n", language ? language : "");
    add_visible(out, text, "\n\t");
    if (!text.n || text.p[text.n - 1] != '\n')
        buf_addc(out, '\n');
    add_run(out, ticks);
    buf_addz(out, "\n");
}

/* Deep values are indented no further: else a small body could become a very long text. */
static void indent(struct buf *out, unsigned depth)
{
    buf_addc(out, '\n');
    for (unsigned i = 0; i < 2 * (depth < INDENT_MAX ? depth : INDENT_MAX); i++)
        buf_addc(out, ' ');
}

/* Returns the offset behind the string that begins at `i`. */
static size_t string_end(struct str json, size_t i)
{
    for (i++; i < json.n && json.p[i] != '"'; i++)
        i += json.p[i] == '\\';
    return i + 1 < json.n ? i + 1 : json.n;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next character that is not a blank, from `i` on; NUL at the end. */
static char next_token(struct str json, size_t i)
{
    while (i < json.n && is_blank(json.p[i]))
        i++;
    return i < json.n ? json.p[i] : '\0';
}

void md_json(struct buf *out, struct str json)
{
    unsigned depth = 0;

    for (size_t i = 0, end; i < json.n; i = end) {
        char c = json.p[i];
        end = i + 1;
        if (c == '"') {
            end = string_end(json, i);
            buf_add(out, json.p + i, end - i);
        } else if (c == '{' || c == '[') {
            char next = next_token(json, i + 1);
            buf_addc(out, c);
            depth++;
            if (next != '}' && next != ']')
                indent(out, depth);
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
            if (out->n && out->p[out->n - 1] != '{' && out->p[out->n - 1] != '[')
                indent(out, depth);
            buf_addc(out, c);
        } else if (c == ',') {
            buf_addc(out, c);
            indent(out, depth);
        } else if (c == ':') {
            buf_addz(out, ": ");
        } else if (!is_blank(c)) {
            buf_addc(out, c);
        }
    }
}

void md_json_block(struct buf *out, struct str json)
{
    struct buf text;

    if (json.n > PRETTY_MAX) {
        md_block(out, json, "json");
        return;
    }
    buf_init(&text, SIZE_MAX / 4);
    md_json(&text, json);
    md_block(out, buf_str(&text), "json");
    buf_release(&text);
}
