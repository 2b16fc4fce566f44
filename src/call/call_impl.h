/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by call.c (the life of a call), call_result.c (its answer) and call_measure.c. */
#ifndef HOLDFAST_CALL_CALL_IMPL_H
#define HOLDFAST_CALL_CALL_IMPL_H

#include "call/call.h"

#define CALLS_SPARE 64

struct calls {
    struct loop *loop;
    struct audit *audit;
    struct lanes *lanes;
    struct keyring *keyring;
    struct undelivered *undelivered;
    struct traces *traces;
    struct config *const *config;
    struct map by_client_id; /* (transport, client's id) → struct call, for cancellation */
    unsigned in_flight;
    struct buf text; /* buffer for the next request; see borrow_text() */
    /* Memory of calls that are over, for the next ones: still in the processor's cache. */
    struct arena *spare[CALLS_SPARE];
    size_t n_spare;
};

/* The session belongs to another owner, who shares it with the caller. */
static inline bool call_is_shared(const struct call *c)
{
    return !str_eq(c->session->owner, c->who.owner);
}
/* True while a reply can reach the client of at least one listener. */
bool call_has_client(const struct call *c);
/* The call has its answer, or was refused.  If no client is connected, the result is sealed to be
 * committed with the outcome. */
void call_keep_result(struct call *c);

/* call_measure.c: the call has its answer or its error.  Sets c->outcome and updates the metrics:
 * how long servers take, and what was executed. */
void call_measure_answered(struct call *c);

/* call_trace.c: an attempt is sent.  Returns the header lines with the trace for an HTTP server;
 * absent: the client named no trace, or the server is no HTTP server. */
struct str call_trace_send(struct call *c);
/* The attempt is over: exports its span, if traces are on.  error_type is absent without an
 * error. */
void call_trace_end(struct call *c, struct str error_type);

#endif
