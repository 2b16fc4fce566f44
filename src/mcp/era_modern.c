/* SPDX-License-Identifier: Apache-2.0 */
/* 2026-07-28. */
#include "mcp/era.h"

#define COMPLETE ",\"resultType\":\"complete\"}"

/* Some codes have an HTTP status of their own. */
static int error_status(int64_t code)
{
    return code == -32601 ? 404 : code <= -32020 && code >= -32022 ? 400 : 200;
}

const struct mcp_era_rules mcp_era_modern = {
    .name = "modern",
    .has_envelope = true,
    .mirrors_body = true,
    .stamps_results = true,
    .disconnect_cancels = true,
    .has_listen = true,
    .no_method_status = 404,
    .no_resource_code = -32602,
    .result_end = {COMPLETE, sizeof(COMPLETE) - 1},
    .error_status = error_status,
};
