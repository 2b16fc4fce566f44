/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on a terminal.  Columns fit the widest cell; on a terminal a table that is wider than it
 * is cut to its width (COLUMNS, else the terminal's own, else 80), with "…" where text is missing.
 * Into a file or pipe every cell is written in full, so that no script loses text.  All texts are
 * escaped. */
#ifndef HOLDFAST_CLI_TABLE_H
#define HOLDFAST_CLI_TABLE_H

#include "base/arena.h"
#include "base/buf.h"

#define TABLE_COLUMNS 12

struct table_column {
    const char *head;
    unsigned least; /* columns of the terminal that remain when it is cut; 0: never cut */
    bool right;     /* aligned to the right */
};
struct table_cell {
    struct str text;    /* escaped */
    struct str note;    /* escaped; printed on a line of its own below the row */
    const char *colour; /* "31"; NULL: none.  The text says the same in words */
};
struct table {
    const struct table_column *columns;
    size_t n;
    size_t width; /* 0: no limit */
    bool colour, has_head;
    size_t natural[TABLE_COLUMNS]; /* the widest cell so far */
    struct arena *mem;
    struct table_cell *cells; /* of the rows that were not printed yet */
    size_t n_cells, cap;
};

/* Width of the terminal behind fd; 0: it is not a terminal. */
size_t table_terminal_width(int fd);
/* Its lines; 24 where that is not known. */
size_t table_terminal_height(int fd);
void table_init(struct table *t, const struct table_column *columns, size_t n, size_t width,
                bool colour);
void table_release(struct table *t);
/* The next cell, row by row; an empty text is shown as "-". */
void table_add(struct table *t, struct str text);
void table_add_coloured(struct table *t, struct str text, const char *colour);
/* A second line below the row whose last cell was just added, cut to the width of the table. */
void table_note(struct table *t, struct str text);
/* Appends the rows since the last call to `out`, after the head the first time.  Columns never get
 * narrower than the cells before need, so that a stream of rows stays aligned. */
void table_print(struct table *t, struct buf *out);

/* Appends escaped text and a newline.  It begins at `column` (0: the first), and breaks at blanks
 * before column 80; the next lines begin at `indent`. */
void text_wrap(struct buf *out, size_t column, struct str text, size_t indent);

/* If stdout is a terminal, sends it through $PAGER (less -FRX), without a shell, until pager_end().
 * Without a pager, or with an empty PAGER, the output goes to the terminal. */
void pager_begin(void);
void pager_end(void);

#endif
