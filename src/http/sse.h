/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, both ways.  Reader: CRLF, LF and CR line ends, comments, several data lines,
 * BOM, fields without colon; event size bounded.  Writer: data is split on CR, LF and CRLF, so no
 * payload can forge a field. */
#ifndef HOLDFAST_HTTP_SSE_H
#define HOLDFAST_HTTP_SSE_H

#include "base/buf.h"

struct sse_event {
    struct str type; /* "message" when none was given */
    struct str data; /* lines joined by LF */
    struct str id;   /* absent when the event had no id field */
    bool has_retry;
    uint64_t retry_ms;
};

struct sse_reader {
    struct buf line, data, type, id; /* partial state between feeds */
    bool has_id, has_data, saw_cr, started, has_retry;
    uint64_t retry_ms;
    size_t
        max; /* ceiling for one event's data; a line may be 16 bytes longer, for its field name */
};
void sse_reader_init(struct sse_reader *r, size_t max_event);
void sse_reader_release(struct sse_reader *r);
/* Feeds bytes; calls `on_event` for each complete event with data (the spans live only for the
 * call). Events with empty data are reported too when they carry an id (priming).  A retry outside
 * of such an event comes with the next one.  false when the ceiling is passed or on_event returned
 * false; the reader is then finished and only fit for release. */
must_check bool sse_feed(struct sse_reader *r, struct str bytes,
                         bool (*on_event)(void *arg, const struct sse_event *e), void *arg);

/* id and type may be absent; neither may hold CR, LF or NUL (asserted: they are ours). */
void sse_write(struct buf *out, struct str type, struct str id, struct str data);
/* A "retry:" line for the event that the next sse_write() completes. */
void sse_write_retry(struct buf *out, uint64_t ms);
void sse_write_comment(struct buf *out, struct str text);

#endif
