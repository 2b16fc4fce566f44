/* SPDX-License-Identifier: Apache-2.0 */
/* `holdfast user erase`: a client of /api/v1/audit/erasures. */
#ifndef HOLDFAST_CLI_USER_ERASE_H
#define HOLDFAST_CLI_USER_ERASE_H

#include "base/buf.h"
#include "cli/source.h"

/* Shows what there is of the person, asks, erases, and waits for the end.  The caller closes
 * `source`.  Appends the erasure as JSON to `out`, if --json is given. */
must_check bool user_erase(struct cli *cli, struct str tenant, struct str name,
                           struct source *source, struct buf *out, struct error *err);

#endif
