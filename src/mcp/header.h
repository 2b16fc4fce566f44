/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrored header values of the modern era: plain when they can be, else `=?base64?…?=`. */
#ifndef HOLDFAST_MCP_HEADER_H
#define HOLDFAST_MCP_HEADER_H

#include "base/arena.h"
#include "base/buf.h"

/* Appends the header value that stands for `value`. */
void mcp_header_encode(struct buf *out, struct str value);
/* The value a header stands for; false when it is a complete sentinel around bad base64. */
must_check bool mcp_header_decode(struct str header, struct arena *mem, struct str *ret);

#endif
