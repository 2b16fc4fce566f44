/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast key list, and the key that a name means. */
#ifndef HOLDFAST_CLI_KEY_LIST_H
#define HOLDFAST_CLI_KEY_LIST_H

#include "cli/cli.h"
#include "cli/control.h"

/* Prints the keys of the tenant (absent: of all that may be seen) to `out`. */
must_check bool key_list(const struct cli *cli, struct control *control, struct str tenant,
                         struct buf *out, struct error *err);
/* *ret_id, in cli->mem, is the key with this id, else the only key with this name that is not
 * revoked.  ERR_CONFLICT with the ids if several have the name; ERR_NOT_FOUND if none has. */
must_check bool key_find(const struct cli *cli, struct control *control, struct str tenant,
                         struct str name, struct str *ret_id, struct error *err);

#endif
