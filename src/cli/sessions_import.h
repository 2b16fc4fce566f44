/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast sessions import: the sessions of a file, each with POST /api/v1/sessions/import. */
#ifndef HOLDFAST_CLI_SESSIONS_IMPORT_H
#define HOLDFAST_CLI_SESSIONS_IMPORT_H

#include "cli/cli.h"
#include "cli/control.h"

struct sessions_import {
    const struct cli *cli; /* --key, --again, --as-recorded */
    struct control *control;
    const char *file; /* "-": standard input */
    struct str tenant;
    bool json;
};
must_check bool sessions_import(const struct sessions_import *i, struct error *err);

#endif
