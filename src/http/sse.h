/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, both directions.  Reader: CRLF, LF and CR line ends, comments, several data
 * lines, BOM, fields without colon; the size of an event is bounded.  Writer: data is split at CR,
 * LF and CRLF, so that a payload cannot forge a field. */
#ifndef HOLDFAST_HTTP_SSE_H
#define HOLDFAST_HTTP_SSE_H

#include "base/buf.h"

struct sse_event {
    struct str type; /* "message" when the event has no type */
    struct str data; /* lines joined by LF */
    struct str id;   /* absent when the event had no id field */
    bool has_retry;
    uint64_t retry_ms;
};

struct sse_reader {
    struct buf line, data, type, id; /* partial state between feeds */
    bool has_id, has_data, saw_cr, started, has_retry;
    uint64_t retry_ms;
    size_t max; /* limit for one event's data; a line may be 16 bytes longer, for its field name */
};
void sse_reader_init(struct sse_reader *r, size_t max_event);
void sse_reader_release(struct sse_reader *r);
/* Feeds bytes; calls `on_event` for each complete event with data (the spans are valid only during
 * the call).  Events with empty data are reported too when they carry an id (priming).  A retry
 * outside of such an event comes with the next event.  Returns false when the limit is exceeded or
 * on_event returned false; the reader may then only be released. */
must_check bool sse_feed(struct sse_reader *r, struct str bytes,
                         bool (*on_event)(void *arg, const struct sse_event *e), void *arg);

/* id and type may be absent; neither may contain CR, LF or NUL (asserted: they never come from a
 * peer). */
void sse_write(struct buf *out, struct str type, struct str id, struct str data);
/* A "retry:" line for the event that the next sse_write() completes. */
void sse_write_retry(struct buf *out, uint64_t ms);
void sse_write_comment(struct buf *out, struct str text);

#endif
