/* SPDX-License-Identifier: Apache-2.0 */
/* `holdfast audit stats`: an answer of /api/v1/audit/stats as people read it. */
#ifndef HOLDFAST_CLI_AUDIT_STATS_H
#define HOLDFAST_CLI_AUDIT_STATS_H

#include "base/buf.h"
#include "cli/cli.h"
#include "json/read.h"

void audit_stats_print(struct cli *cli, const struct js_doc *doc, struct buf *out);

#endif
