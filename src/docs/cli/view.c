/* SPDX-License-Identifier: Apache-2.0 */
/* A suggestion as text: type, author and age in words, and the change in its surroundings. */
#include "docs/cli/view.h"

#include "base/unicode.h"
#include "base/utf8.h"

/* An emoji may be followed by the selector of its coloured form (U+FE0F), or by the joiner with the
 * next emoji (U+200D). */
static bool is_emoji_part(uint32_t previous, uint32_t code)
{
    bool is_emoji =
        (previous >= 0x2190 && previous <= 0x2bff) || (previous >= 0x1f000 && previous <= 0x1faff);
    return is_emoji && (code == 0xfe0f || code == 0x200d);
}

void docs_view_text(struct buf *out, struct str text, const char *indent)
{
    uint32_t code, previous = 0;

    for (size_t i = 0, n; i < text.n; i += n, previous = code) {
        bool is_line_end = text.p[i] == '\r' && (i + 1 == text.n || text.p[i + 1] == '\n');
        n = utf8_decode(text.p + i, text.p + text.n, &code);
        if (n == 0) {
            buf_addf(out, "\\x%02x", (unsigned char)text.p[i]);
            code = 0;
            n = 1;
        } else if (code == '\n') {
            buf_addc(out, '\n');
            buf_addz(out, indent);
        } else if (is_line_end) {
            continue;
        } else if (code == '\t' || !unicode_is_invisible(code) || is_emoji_part(previous, code)) {
            buf_add(out, text.p + i, n);
        } else {
            buf_addf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
        }
    }
}

void docs_view_json(struct buf *out, struct str json)
{
    uint32_t code;

    for (size_t i = 0, n; i < json.n; i += n) {
        n = utf8_decode(json.p + i, json.p + json.n, &code);
        if (n <= 1 || !unicode_is_invisible(code))
            buf_add(out, json.p + i, n = n ? n : 1);
        else if (code < 0x10000)
            buf_addf(out, "\\u%04x", code);
        else
            buf_addf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                     0xdc00 + ((code - 0x10000) & 0x3ff));
    }
}

void docs_view_ago(struct buf *out, int64_t time_ms, int64_t now_ms)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    int64_t age = (now_ms - time_ms) / 1000;
    size_t i = 0;

    if (!time_ms)
        return;
    if (age < 1) {
        buf_addz(out, "now");
        return;
    }
    while (age < units[i].seconds)
        i++;
    buf_addf(out, "%lld %s ago", (long long)(age / units[i].seconds), units[i].name);
}

void docs_view_about(struct buf *out, const struct docs_item *i, int64_t now_ms)
{
    buf_addstr(out, i->type);
    if (i->author.n) {
        buf_addz(out, " by ");
        docs_view_text(out, i->author, "");
    }
    if (i->time_ms) {
        buf_addz(out, ", ");
        docs_view_ago(out, i->time_ms, now_ms);
    }
}

static void add_marked(struct buf *out, struct str text, const char *indent, const char *open,
                       const char *close)
{
    if (!text.p)
        return;
    buf_addz(out, open);
    docs_view_text(out, text, indent);
    buf_addz(out, close);
}

void docs_view_change(struct buf *out, const struct docs_item *i, const char *indent, bool colour)
{
    bool is_comment = str_eq(i->type, STR("comment"));
    bool is_highlight = str_eq(i->type, STR("highlight"));

    buf_addz(out, indent);
    docs_view_text(out, i->before, indent);
    if (is_comment)
        add_marked(out, i->fresh, indent, colour ? "\033[33;3m{>>" : "{>>",
                   colour ? "<<}\033[0m" : "<<}");
    else if (is_highlight)
        add_marked(out, i->old, indent, colour ? "\033[7m" : "{==", colour ? "\033[0m" : "==}");
    else {
        add_marked(out, i->old, indent, colour ? "\033[31;9m" : "[-", colour ? "\033[0m" : "-]");
        add_marked(out, i->fresh, indent, colour ? "\033[32;4m" : "{+", colour ? "\033[0m" : "+}");
    }
    docs_view_text(out, i->after, indent);
    buf_addc(out, '\n');
}
