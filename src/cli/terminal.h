/* SPDX-License-Identifier: Apache-2.0 */
/* A person at a terminal: single keys, a line, and their editor.  The terminal is as it was found
 * whenever nobody is waited for. */
#ifndef HOLDFAST_CLI_TERMINAL_H
#define HOLDFAST_CLI_TERMINAL_H

#include "base/arena.h"
#include "base/error.h"

enum { KEY_NEXT = 0x100, KEY_PREVIOUS, KEY_INTERRUPT, KEY_END };

/* Standard input and output are a terminal. */
bool terminal_is_there(void);
/* The next key after `prompt`: its byte, or one of the above (arrows; Ctrl-C; Ctrl-D or a terminal
 * that is gone).
 */
int terminal_key(struct str prompt);
/* A line, without its end, in mem; absent when there is none.  At most 4,000 bytes of it. */
struct str terminal_line(const char *prompt, struct arena *mem);
/* `text` in the person's editor ($VISUAL, $EDITOR, vi; no shell); what they made of it, in mem.  A
 * line end that `text` did not end with and the editor added is taken off.  ERR_CANCELLED: the
 * editor failed; ERR_BAD_INPUT: more than 4 MiB. */
must_check bool terminal_edit(struct str text, struct arena *mem, struct str *ret,
                              struct error *err);

#endif
