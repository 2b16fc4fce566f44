/* SPDX-License-Identifier: Apache-2.0 */
/* One span as the bytes of OTLP (opentelemetry/proto/trace/v1/trace.proto), and the few other
 * messages of the export.  Pure. */
#ifndef HOLDFAST_TRACE_SPAN_H
#define HOLDFAST_TRACE_SPAN_H

#include "base/arena.h"
#include "base/buf.h"
#include "trace/context.h"

#define SPAN_ATTRIBUTES_MAX 20
#define SPAN_TEXT_MAX 256 /* bytes of a name or value; longer ones are cut */

struct span_attribute {
    const char *key; /* a literal */
    struct str text; /* absent: `number` is the value */
    int64_t number;
};
enum span_kind { SPAN_SERVER = 2, SPAN_CLIENT = 3 };

/* Texts are borrowed until the span is written. */
struct span {
    enum span_kind kind;
    struct trace_context context;
    const struct trace_context *parent; /* NULL: the root of its trace */
    bool parent_is_remote;
    const struct trace_context *link; /* NULL: none */
    struct str state;                 /* tracestate; absent: none */
    struct str method, target;        /* the name is "method target"; target may be absent */
    int64_t start_us, end_us;         /* since 1970 */
    bool is_error; /* the status; its message is left out, because it may hold values of a call */
    struct span_attribute attributes[SPAN_ATTRIBUTES_MAX];
    size_t n_attributes;
};
/* An absent text adds nothing. */
void span_text(struct span *s, const char *key, struct str text);
void span_number(struct span *s, const char *key, int64_t number);
/* A URI as it may leave: without its query, its fragment, and the user and password before its host,
 * because each of them may be a credential.  In `mem`, or part of `uri`; absent stays absent. */
struct str span_uri(struct str uri, struct arena *mem);

/* Appends one element of ScopeSpans.spans. */
void span_write(const struct span *s, struct buf *out);
/* Writes all of an ExportTraceServiceRequest that precedes `spans` bytes of span_write(). */
void span_write_head(struct str version, struct str instance, size_t spans, struct buf *out);
/* Reads an ExportTraceServiceResponse.  False: it is malformed.  *ret_message is in `body`, and
 * absent without a partial success. */
must_check bool span_read_response(struct str body, int64_t *ret_rejected, struct str *ret_message);

#endif
