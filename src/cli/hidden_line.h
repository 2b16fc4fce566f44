/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines from a terminal without showing them.  The terminal gets its settings back also if a
 * signal ends or stops the process: it is restored first, then the signal takes effect. */
#ifndef HOLDFAST_CLI_HIDDEN_LINE_H
#define HOLDFAST_CLI_HIDDEN_LINE_H

#include "base/buf.h"
#include "base/error.h"

#include <signal.h>
#include <termios.h>

struct hidden_line {
    int tty;
    int signals; /* readable when a signal of `caught` waits */
    sigset_t caught, mask_before;
    struct termios before, quiet;
};

/* Turns echo off and discards what was typed so far.  The process has one thread while it is open.
 * ERR_BAD_INPUT: there is no terminal. */
must_check bool hidden_line_open(struct hidden_line *ret, struct error *err);
void hidden_line_close(struct hidden_line *h);
/* Shows `prompt` and adds a line without its end to `out`, which was made with buf_init_secret().
 * Backspace, Ctrl-U and Ctrl-D work.  A line has any length up to the limit of `out`; ERR_TOO_LARGE
 * beyond it. */
must_check bool hidden_line_ask(struct hidden_line *h, struct str prompt, struct buf *out,
                                struct error *err);

#endif
