/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that a server reports with a result.  MCP has no member for them; these are the ones that
 * servers use. */
#ifndef HOLDFAST_MCP_USAGE_H
#define HOLDFAST_MCP_USAGE_H

#include "json/read.h"

/* A larger number counts as not reported. */
#define MCP_TOKENS_MAX INT64_C(1000000000000)

/* From `usage` of the result, of its `_meta` or of its structuredContent, or from a number of tokens
 * in `_meta`; names in `_meta` may have a prefix ("example.com/usage").  `usage` has total_tokens, or
 * input_tokens and output_tokens, or prompt_tokens and completion_tokens, also in camelCase.
 * 0: nothing is reported. */
int64_t mcp_result_tokens(const struct js_doc *doc, const struct js_node *result);

#endif
