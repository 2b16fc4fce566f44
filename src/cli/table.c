/* SPDX-License-Identifier: Apache-2.0 */
/* Widths first, then rows. */
#include "cli/table.h"

#include "base/log.h"
#include "base/unicode.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TEXT_MAX 4096
#define GAP 2
#define NOTE_INDENT 10

size_t table_terminal_width(int fd)
{
    struct str columns = str_of(getenv("COLUMNS"));
    struct winsize size = {0};
    uint64_t n;

    if (!isatty(fd))
        return 0;
    if (columns.n && str_to_u64(columns, 10000, &n) && n >= 20)
        return (size_t)n;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

size_t table_terminal_height(int fd)
{
    struct winsize size = {0};

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row >= 5 ? size.ws_row : 24;
}

void table_init(struct table *t, const struct table_column *columns, size_t n, size_t width,
                bool colour)
{
    *t = (struct table){.columns = columns,
                        .n = n,
                        .width = width,
                        .colour = colour,
                        .mem = arena_new(SIZE_MAX / 4)};
    for (size_t i = 0; i < n; i++)
        t->natural[i] = strlen(columns[i].head);
}

void table_release(struct table *t)
{
    arena_free(t->mem);
    free(t->cells);
    *t = (struct table){0};
}

/* In the memory of the table. */
static struct str escaped(struct table *t, struct str text)
{
    struct buf b;

    buf_init(&b, 16 * TEXT_MAX);
    log_escape(&b, text, TEXT_MAX);
    struct str copy = arena_dup(t->mem, buf_str(&b));
    buf_release(&b);
    return copy;
}

void table_add_coloured(struct table *t, struct str text, const char *colour)
{
    size_t column = t->n_cells % t->n;

    if (t->n_cells == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->cells = xrealloc(t->cells, t->cap * sizeof(*t->cells));
    }
    struct table_cell cell = {.text = escaped(t, text.n ? text : STR("-")), .colour = colour};
    t->cells[t->n_cells++] = cell;
    size_t width = unicode_columns(cell.text);
    if (width > t->natural[column])
        t->natural[column] = width;
}

void table_add(struct table *t, struct str text)
{
    table_add_coloured(t, text, NULL);
}

void table_note(struct table *t, struct str text)
{
    t->cells[t->n_cells - 1].note = escaped(t, text);
}

/* Cuts the widest column that may be cut, one step at a time, until the table fits. */
static void fit(const struct table *t, size_t widths[TABLE_COLUMNS])
{
    size_t total = GAP * (t->n - 1);

    for (size_t i = 0; i < t->n; i++)
        total += widths[i] = t->natural[i];
    while (t->width && total > t->width) {
        size_t widest = t->n;
        for (size_t i = 0; i < t->n; i++)
            if (t->columns[i].least && widths[i] > t->columns[i].least &&
                (widest == t->n || widths[i] > widths[widest]))
                widest = i;
        if (widest == t->n)
            return;
        widths[widest]--;
        total--;
    }
}

/* The longest beginning of `text` that takes at most `width` columns. */
static struct str cut(struct str text, size_t width)
{
    size_t at = 0, n;
    uint32_t code;

    while (at < text.n && (n = utf8_decode(text.p + at, text.p + text.n, &code)) > 0 &&
           unicode_columns(str_n(text.p, at + n)) <= width)
        at += n;
    return str_n(text.p, at);
}

static void add_cell(const struct table *t, struct buf *out, size_t column, struct table_cell cell,
                     size_t width)
{
    size_t has = unicode_columns(cell.text);
    bool is_cut = has > width && t->columns[column].least, is_last = column + 1 == t->n;
    struct str text = is_cut ? cut(cell.text, width - 1) : cell.text;

    if (is_cut)
        has = unicode_columns(text) + 1;
    if (t->columns[column].right)
        for (size_t i = has; i < width; i++)
            buf_addc(out, ' ');
    if (t->colour && cell.colour)
        buf_addf(out, "\033[%sm", cell.colour);
    buf_addstr(out, text);
    if (is_cut)
        buf_addz(out, "…");
    if (t->colour && cell.colour)
        buf_addz(out, "\033[0m");
    if (!t->columns[column].right && !is_last)
        for (size_t i = has; i < width; i++)
            buf_addc(out, ' ');
    buf_addz(out, is_last ? "\n" : "  ");
}

static void add_note(const struct table *t, struct buf *out, struct str note)
{
    size_t room = t->width ? t->width - NOTE_INDENT : SIZE_MAX;
    bool is_cut = unicode_columns(note) > room;

    for (size_t i = 0; i < NOTE_INDENT; i++)
        buf_addc(out, ' ');
    buf_addz(out, t->colour ? "\033[2m" : "");
    buf_addstr(out, is_cut ? cut(note, room - 1) : note);
    buf_addz(out, is_cut ? "…" : "");
    buf_addz(out, t->colour ? "\033[0m\n" : "\n");
}

void table_print(struct table *t, struct buf *out)
{
    size_t widths[TABLE_COLUMNS];

    fit(t, widths);
    for (size_t i = 0; !t->has_head && i < t->n; i++)
        add_cell(t, out, i, (struct table_cell){.text = str_of(t->columns[i].head), .colour = "1"},
                 widths[i]);
    t->has_head = true;
    for (size_t row = 0; row + t->n <= t->n_cells; row += t->n) {
        for (size_t i = 0; i < t->n; i++)
            add_cell(t, out, i, t->cells[row + i], widths[i]);
        if (t->cells[row + t->n - 1].note.n)
            add_note(t, out, t->cells[row + t->n - 1].note);
    }
    t->n_cells = 0;
    arena_reset(t->mem);
}

void text_wrap(struct buf *out, size_t column, struct str text, size_t indent)
{
    bool is_first = true;

    while (text.n) {
        struct str word = str_split(&text, ' ');
        if (!is_first && column + 1 + unicode_columns(word) > 79) {
            buf_addf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!is_first) {
            buf_addc(out, ' ');
            column++;
        }
        size_t before = out->n;
        log_escape(out, word, TEXT_MAX);
        column += unicode_columns(str_n(out->p + before, out->n - before));
        is_first = false;
    }
    buf_addc(out, '\n');
}
