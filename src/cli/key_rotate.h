/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast key rotate-master: a new master key for stored credentials. */
#ifndef HOLDFAST_CLI_KEY_ROTATE_H
#define HOLDFAST_CLI_KEY_ROTATE_H

#include "base/buf.h"
#include "cli/cli.h"

must_check bool key_rotate(struct cli *cli, bool json, struct buf *out, struct error *err);

/* holdfast key rotate-token: a new key that signs access tokens. */
must_check bool key_rotate_token(struct cli *cli, bool json, struct buf *out, struct error *err);

#endif
