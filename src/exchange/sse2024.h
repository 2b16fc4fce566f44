/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP+SSE transport of 2024-11-05: one event stream (GET /sse) carries every answer, and posts
 * (POST /mcp/messages?session_id=X) carry the client's messages.  It serves the same requests as
 * /mcp. */
#ifndef HOLDFAST_EXCHANGE_SSE2024_H
#define HOLDFAST_EXCHANGE_SSE2024_H

#include "exchange/exchange.h"

#define SSE2024_MAX_STREAMS 1024
/* … of which one owner may have a quarter and one tenant three quarters, so that others have
 * room. */
#define SSE2024_MAX_OF_OWNER (SSE2024_MAX_STREAMS / 4)
#define SSE2024_MAX_OF_TENANT (SSE2024_MAX_STREAMS / 4 * 3)
#define SSE2024_MAX_MESSAGES 64                /* under way on one stream; beyond it: 503 */
#define SSE2024_MAX_BYTES (16u << 20)          /* bytes of those messages; likewise */
#define SSE2024_MAX_QUEUE ((size_t)256 * 1024) /* bytes that the client has not read */
#define SSE2024_QUIET_MS (15 * 1000)           /* silence after which a stream gets a comment */

struct sse2024;

struct sse2024 *sse2024_new(struct services *sv) must_check;
/* Accepts NULL.  Closes open streams.  Call it before http_server_free(). */
void sse2024_free(struct sse2024 *all);
/* At stop: each stream ends when it has no message under way. */
void sse2024_stop(struct sse2024 *all);

/* Handlers of GET /sse and POST /mcp/messages, and of their refusals; `arg` is the services. */
admitted_fn sse2024_open, sse2024_post;
refused_fn sse2024_refuse, sse2024_post_unknown;

#endif
