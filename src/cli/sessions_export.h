/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast sessions export: the streams of GET /api/v1/sessions/{id}/export, one after the other, on
 * standard output or in a file. */
#ifndef HOLDFAST_CLI_SESSIONS_EXPORT_H
#define HOLDFAST_CLI_SESSIONS_EXPORT_H

#include "cli/audit_view.h"
#include "cli/cli.h"
#include "cli/control.h"

struct sessions_export {
    const struct cli *cli; /* --format, -o, --since, --until */
    struct control *control;
    struct str name; /* session_id, row id, or the beginning of one; absent: --since is given */
    struct str tenant;
    struct audit_when when;
};
must_check bool sessions_export(const struct sessions_export *e, struct error *err);

#endif
