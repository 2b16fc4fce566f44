/* SPDX-License-Identifier: Apache-2.0 */
/* W3C Trace Context: the position of a request in a distributed trace, as `traceparent` carries it.
 * Pure; texts from clients are checked strictly, because they are sent on to servers. */
#ifndef HOLDFAST_TRACE_CONTEXT_H
#define HOLDFAST_TRACE_CONTEXT_H

#include "base/str.h"

#define TRACE_PARENT_TEXT 56 /* "00-<32 hex>-<16 hex>-<2 hex>" + NUL */
#define TRACE_STATE_MAX 512
#define TRACE_SAMPLED 1

struct trace_context {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t flags; /* TRACE_SAMPLED */
};

/* False for anything that the specification calls invalid: then there is no parent. */
must_check bool trace_context_parse(struct str text, struct trace_context *ret);
void trace_context_format(const struct trace_context *c, char ret_text[TRACE_PARENT_TEXT]);
/* Whether a tracestate may be sent on: printable ASCII, at most TRACE_STATE_MAX bytes. */
bool trace_state_is_valid(struct str text);
/* A new sampled trace. */
struct trace_context trace_context_new(void);
/* Another span of the same trace. */
struct trace_context trace_context_child(const struct trace_context *of);

/* The trace of one request of a client.  Both texts are absent, or are valid and live as long as
 * the request. */
struct trace {
    struct str parent_text;      /* the traceparent of the client */
    struct str state;            /* … and the tracestate beside it */
    struct trace_context parent; /* of parent_text */
    struct trace_context linked; /* of the HTTP request, if params._meta named the parent */
    struct trace_context own;    /* of Holdfast's span; only with is_recorded */
    bool is_linked;
    bool is_recorded; /* traces are exported, and the client does not forbid it */
    bool is_read;     /* the members above are filled in */
};

#endif
