/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of the configuration, for commands: set one through /api/v1/secrets, or ask for one. */
#ifndef HOLDFAST_CLI_SECRET_H
#define HOLDFAST_CLI_SECRET_H

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/source.h"

/* `s` is open for SOURCE_CHANGES.  A running daemon uses the secret at once. */
must_check bool secret_put(struct cli *cli, struct source *s, struct str name, struct str value,
                           struct error *err);
/* Whether there is a terminal to ask on: standard input and standard error are one. */
bool secret_can_ask(void);
/* Asks for a value on the terminal without showing it.  `description` may be absent.  The value is
 * added to `out`, which the caller made with buf_init_secret(). */
must_check bool secret_read_terminal(struct str name, struct str description, struct buf *out,
                                     struct error *err);
/* Asks on the terminal and stores the value, in the daemon or in the data directory.  ERR_BAD_INPUT
 * without a terminal. */
must_check bool secret_ask(struct cli *cli, struct str name, struct str description,
                           struct error *err);
/* Whether the store has a secret of this name. */
must_check bool secret_is_set(struct cli *cli, struct str name, bool *ret, struct error *err);
/* `s` is open for SOURCE_CHANGES.  ERR_NOT_FOUND: there is no such secret. */
must_check bool secret_remove(struct cli *cli, struct source *s, struct str name,
                              struct error *err);
/* Asks for each ${input:NAME} of the configuration that is not set yet.  Does nothing without a
 * terminal. */
must_check bool secret_ask_inputs(struct cli *cli, const struct config *config, struct error *err);

#endif
