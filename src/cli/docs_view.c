/* SPDX-License-Identifier: Apache-2.0 */
/* What a suggestion looks like: type, author and age in words, the change in its surroundings. */
#include "cli/docs_view.h"

static void add_hidden(struct buf *out, unsigned char c)
{
    buf_addf(out, "\\x%02x", c);
}

void docs_view_text(struct buf *out, struct str text, const char *indent)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        /* U+0080 to U+009F are controls too. */
        bool is_c1 = c == 0xc2 && i + 1 < text.n && (unsigned char)text.p[i + 1] < 0xa0;
        if (c == '\n') {
            buf_addc(out, '\n');
            buf_addz(out, indent);
        } else if (c == '\r') {
            continue; /* of a CRLF, or nothing to see */
        } else if ((c < ' ' && c != '\t') || c == 0x7f) {
            add_hidden(out, c);
        } else if (is_c1) {
            add_hidden(out, (unsigned char)text.p[++i]);
        } else {
            buf_addc(out, (char)c);
        }
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
