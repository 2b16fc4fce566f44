/* SPDX-License-Identifier: Apache-2.0 */
/* Where a command gets a password from: the terminal, without showing it, or a file. */
#ifndef HOLDFAST_CLI_PASSWORD_H
#define HOLDFAST_CLI_PASSWORD_H

#include "base/error.h"
#include "base/str.h"
#include "identity/password.h"

struct password_text {
    char text[PASSWORD_MAX + 4]; /* wipe it */
    size_t n;
};
/* `file`: its first line, "-" for standard input; NULL: asked for twice on the terminal, or, where
 * there is none, the first line of standard input. */
must_check bool password_read(const char *file, struct password_text *ret, struct error *err);

#endif
