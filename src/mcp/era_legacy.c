/* SPDX-License-Identifier: Apache-2.0 */
/* The versions before 2026-07-28. */
#include "mcp/era.h"

/* JSON-RPC errors are answers like any other. */
static int error_status(int64_t code)
{
    (void)code;
    return 200;
}

const struct mcp_era_rules mcp_era_legacy = {
    .name = "legacy",
    .is_stateful = true,
    .resumes_streams = true,
    .asks_by_requests = true,
    .no_method_status = 200, /* a client takes 404 for the end of its session */
    .no_resource_code = -32002,
    .result_end = {"}", 1},
    .error_status = error_status,
};
