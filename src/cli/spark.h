/* SPDX-License-Identifier: Apache-2.0 */
/* Sparklines: a number for each column of the terminal, as the height of a block. */
#ifndef HOLDFAST_CLI_SPARK_H
#define HOLDFAST_CLI_SPARK_H

#include "base/arena.h"
#include "base/str.h"

/* Whether the locale (LC_ALL, LC_CTYPE or LANG) says that the terminal shows UTF-8. */
bool spark_has_blocks(void);
/* `n` numbers as one text, in mem.  The tallest block is the largest number, a number above 0 has at
 * least the lowest one, and 0 is a blank.  Without `blocks`, in ASCII. */
struct str spark_line(const int64_t *numbers, size_t n, bool blocks, struct arena *mem);

#endif
