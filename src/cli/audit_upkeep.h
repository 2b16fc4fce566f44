/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `holdfast audit` that show how large the record is and decide what of it stays: clients of /api/v1/audit. */
#ifndef HOLDFAST_CLI_AUDIT_UPKEEP_H
#define HOLDFAST_CLI_AUDIT_UPKEEP_H

#include "cli/cli.h"

/* Whether the first argument is one of these verbs. */
bool audit_is_upkeep(const struct cli *cli);
/* Runs it; the exit status. */
int audit_upkeep(struct cli *cli);
/* Offers their names for "did you mean". */
void audit_upkeep_offer(struct cli_nearest *near);

#endif
