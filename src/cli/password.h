/* SPDX-License-Identifier: Apache-2.0 */
/* A command reads a password from the terminal, without showing it, or from a file. */
#ifndef HOLDFAST_CLI_PASSWORD_H
#define HOLDFAST_CLI_PASSWORD_H

#include "base/error.h"
#include "base/str.h"
#include "identity/password.h"

struct password_text {
    char text[PASSWORD_MAX + 4]; /* the caller wipes it */
    size_t n;
};
/* Reads the first line of `file`; "-" is standard input.  NULL: asks twice on the terminal or, if
 * standard input is not a terminal, reads its first line. */
must_check bool password_read(const char *file, struct password_text *ret, struct error *err);

#endif
