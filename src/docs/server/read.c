/* SPDX-License-Identifier: Apache-2.0 */
/* The tool read: the accepted view with line numbers, the pending suggestions, and the session to
 * pass to edit.  The line with the session is always the last one, so that no document can forge
 * it; structuredContent has it too. */
#include "docs/server/tools.h"

#include "base/clock.h"
#include "docs/text.h"
#include "json/write.h"

#define READ_LINES_MAX 100000
#define READ_BYTES_MAX (1u << 20) /* of one answer */
#define READ_LINE_MAX 65536       /* bytes; of a longer line only the beginning is shown */
#define PENDING_MAX 50
#define WORDS_MAX 10  /* of one side of a suggestion; a longer side is shown by its ends */
#define WORD_SHOWN 80 /* bytes of a word or a name there */

struct reading {
    int64_t offset, limit;
    size_t lines; /* of the document */
};

/* Adds a word, cut after WORD_SHOWN bytes. */
static void add_cut(struct buf *out, struct str word)
{
    size_t n = word.n;

    if (n > WORD_SHOWN)
        for (n = WORD_SHOWN; n > 0 && (word.p[n] & 0xc0) == 0x80;)
            n--;
    buf_add(out, word.p, n);
    if (n < word.n)
        buf_addz(out, "...");
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* "first three ... last three" of more than ten words, on one line. */
static void add_side(struct buf *out, const char *open, struct str text, const char *close)
{
    size_t words = 0, at = 0, shown = 0;

    for (size_t i = 0; i < text.n; i++)
        words += !is_blank(text.p[i]) && (i == 0 || is_blank(text.p[i - 1]));
    buf_addz(out, open);
    while (at < text.n) {
        size_t end = at;
        while (end < text.n && !is_blank(text.p[end]))
            end++;
        bool is_word = end > at, in_middle = words > WORDS_MAX && shown >= 3 && shown + 3 < words;
        if (is_word && !in_middle)
            add_cut(out, str_n(text.p + at, end - at));
        if (is_word && in_middle && shown == 3)
            buf_addz(out, "...");
        shown += is_word;
        if (end < text.n && (!in_middle || shown == 4) && out->p[out->n - 1] != ' ')
            buf_addc(out, ' ');
        at = end + 1;
    }
    buf_addz(out, close);
}

static void add_age(struct buf *out, int64_t then_s)
{
    int64_t age = clock_wall_ms() / 1000 - then_s;

    if (then_s <= 0)
        return;
    if (age < 60)
        buf_addz(out, " just now");
    else if (age < 3600)
        buf_addf(out, " %lldm ago", (long long)(age / 60));
    else if (age < 86400)
        buf_addf(out, " %lldh ago", (long long)(age / 3600));
    else
        buf_addf(out, " %lldd ago", (long long)(age / 86400));
}

static void add_pending(struct tool_call *t, const struct critic *c)
{
    struct critic_suggestion *all;
    size_t n = critic_suggestions(c, t->call->mem, &all), shown = 0, changes = 0;
    struct buf *out = &t->text;

    for (size_t i = 0; i < n; i++)
        changes += c->spans[all[i].span].kind == CRITIC_CHANGE;
    if (changes == 0)
        return;
    buf_addz(out, "\n\n[Pending suggestions]");
    for (size_t i = 0; i < n && shown < PENDING_MAX; i++) {
        const struct critic_span *s = &c->spans[all[i].span];
        if (s->kind != CRITIC_CHANGE)
            continue;
        shown++;
        buf_addf(out, "\n  L%zu: ", all[i].line);
        if (s->deleted.p)
            add_side(out, "{--", s->deleted, "--}");
        if (s->inserted.p)
            add_side(out, "{++", s->inserted, "++}");
        if (s->meta.author.p) {
            buf_addz(out, " (");
            add_cut(out, s->meta.author);
            buf_addc(out, ')');
        }
        add_age(out, s->meta.time_s);
    }
    if (changes > shown)
        buf_addf(out, "\n  ... and %zu more", changes - shown);
}

/* How many bytes of a line are shown: whole characters. */
static size_t shown_of(struct str line)
{
    size_t n = line.n;

    if (n > READ_LINE_MAX)
        for (n = READ_LINE_MAX; n > 0 && (line.p[n] & 0xc0) == 0x80;)
            n--;
    return n;
}

/* Returns the index after the last line that is shown. */
static size_t last_line(const struct reading *r, const struct str *lines, size_t first)
{
    size_t last = first, bytes = 0;

    while (last < r->lines && last < first + (size_t)r->limit &&
           (last == first || bytes + shown_of(lines[last]) <= READ_BYTES_MAX))
        bytes += shown_of(lines[last++]) + 8;
    return last;
}

/* Cuts lines that are too long and appends the number of missing bytes.  *ret_cut is the first cut
 * line, counted from 1, or 0. */
static void cut_lines(struct str *lines, size_t first, size_t last, struct arena *mem,
                      size_t *ret_cut)
{
    *ret_cut = 0;
    for (size_t i = first; i < last; i++) {
        size_t n = shown_of(lines[i]);
        if (n == lines[i].n)
            continue;
        lines[i] = arena_printf(mem, "%.*s [%zu bytes more]", (int)n, lines[i].p, lines[i].n - n);
        *ret_cut = *ret_cut ? *ret_cut : i + 1;
    }
}

/* On a worker. */
static bool show(struct docs_call *c, struct error *err unused_arg)
{
    struct tool_call *t = c->user;
    struct reading *r = t->arg;
    struct critic critic;
    struct str *lines;
    size_t first = (size_t)r->offset - 1, last, cut;

    critic_parse(c->file.bytes, c->mem, &critic);
    r->lines = text_lines(critic_accepted(&critic, c->mem), c->mem, &lines);
    last = last_line(r, lines, first);
    cut_lines(lines, first, last, c->mem, &cut);
    buf_reset(&t->text);
    text_number(&t->text, lines, r->lines, (size_t)r->offset, last - first);
    if (first >= r->lines && first > 0)
        buf_addf(&t->text, "[The document has %zu lines; read from a smaller offset.]", r->lines);
    else if (last < r->lines)
        buf_addf(&t->text, "\n\n[Lines %zu to %zu of %zu. Read on with offset %zu.]", first + 1,
                 last, r->lines, last + 1);
    if (cut)
        buf_addf(
            &t->text,
            "\n\n[Line %zu is longer than %d bytes and shown in part. To see other parts, call "
            "grep with path: \"%.*s\" and output_mode: \"content\".]",
            cut, READ_LINE_MAX, STR_ARG(t->file_path));
    add_pending(t, &critic);
    /* Reading an empty document counts as reading line 1. */
    c->from_line = first < r->lines || r->lines == 0 ? (int64_t)first + 1 : 0;
    c->to_line = last > first ? (int64_t)last : c->from_line;
    return true;
}

static void on_read(struct docs_call *c)
{
    struct tool_call *t = c->user;
    struct builtin_call *call = t->call;

    if (!c->ok) {
        tool_fail(t, &c->err);
        return;
    }
    buf_addf(&t->text, "\n\n[session: %.*s]", STR_ARG(call->handle));
    buf_addz(call->result, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(call->result, buf_str(&t->text));
    buf_addz(call->result, "}],\"structuredContent\":{\"session_id\":");
    js_quote(call->result, call->handle);
    buf_addf(call->result, ",\"revision\":%lld,\"lines\":%zu},\"isError\":false}",
             (long long)c->document.revision, ((struct reading *)t->arg)->lines);
    docs_end(c);
    builtin_finish(call);
}

void docs_tool_read(struct builtin_call *call)
{
    struct tool_call *t = tool_begin(call);
    struct reading *r = arena_new_of(call->mem, struct reading);

    r->offset = 1;
    r->limit = READ_LINES;
    t->arg = r;
    if (!tool_string(t, "file_path", &t->file_path) ||
        !tool_maybe_int(t, "offset", 0, INT32_MAX, &r->offset) ||
        !tool_maybe_int(t, "limit", 1, READ_LINES_MAX, &r->limit) ||
        !tool_session(t, "read again") || !tool_place(t))
        return;
    if (r->offset == 0)
        r->offset = 1;
    t->docs.work = show;
    t->docs.done = on_read;
    docs_read(tool_wait(t), &t->docs);
}
