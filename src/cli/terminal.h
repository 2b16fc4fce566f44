/* SPDX-License-Identifier: Apache-2.0 */
/* Input from a person at a terminal: single keys, a line, the editor.  The terminal has its own
 * settings except while terminal_key() waits. */
#ifndef HOLDFAST_CLI_TERMINAL_H
#define HOLDFAST_CLI_TERMINAL_H

#include "base/arena.h"
#include "base/error.h"

enum { KEY_NEXT = 0x100, KEY_PREVIOUS, KEY_INTERRUPT, KEY_END };

/* Standard input and output are a terminal. */
bool terminal_is_there(void);
/* Prints `prompt` and waits for a key.  Returns its byte, or one of the above: an arrow; Ctrl-C;
 * Ctrl-D or a terminal that is gone. */
int terminal_key(struct str prompt);
/* Prints `prompt` and reads a line, in mem, without its end; bytes past 4,000 are dropped.  Absent
 * at the end of the input. */
struct str terminal_line(const char *prompt, struct arena *mem);
/* Opens `text` in the editor ($VISUAL, $EDITOR or vi, without a shell); *ret is the edited text, in
 * mem.  A final line end that the editor added is removed.  ERR_CANCELLED: the editor failed;
 * ERR_BAD_INPUT: more than 4 MiB. */
must_check bool terminal_edit(struct str text, struct arena *mem, struct str *ret,
                              struct error *err);

#endif
