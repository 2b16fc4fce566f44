/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrored header values of the modern era: plain if possible, else `=?base64?…?=`. */
#ifndef HOLDFAST_MCP_HEADER_H
#define HOLDFAST_MCP_HEADER_H

#include "base/arena.h"
#include "base/buf.h"

/* Appends the header form of `value`. */
void mcp_header_encode(struct buf *out, struct str value);
/* The value of a header; false for a complete sentinel with bad base64. */
must_check bool mcp_header_decode(struct str header, struct arena *mem, struct str *ret);

#endif
