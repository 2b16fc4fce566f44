/* SPDX-License-Identifier: Apache-2.0 */
/* GET: a legacy transport's standalone stream, or the rest of one of its streams after a dropped
 * connection.  The stream takes over the request; the exchange ends without a reply. */
#include "exchange/exchange.h"

enum step_result exchange_answer_stream(struct exchange *x)
{
    struct str last = http_header_get(x->head, STR("last-event-id"));
    struct error err;

    if (!x->transport || !x->http)
        return exchange_refuse(x, 400, -32600,
                               "GET opens the stream of a session; send its Mcp-Session-Id");
    if (!http_takes_events(x->head, true))
        return exchange_refuse(x, 406, -32000, "GET gives text/event-stream; accept that");
    if (x->sv->front->draining)
        return exchange_refuse(x, 503, -32000, "Holdfast is stopping; try again in a moment");
    x->http->who = &x->caller.who; /* the stream ends with the credential */
    bool taken = last.n ? streams_resume(x->sv->streams, x->transport, last, x->http, &err)
                        : streams_open(x->sv->streams, x->transport, x->http, &err);
    if (!taken)
        return exchange_fail(x, &err);
    struct listener_scope scope = exchange_listener_scope(x);
    hub_set_listener_scope(x->sv->hub, x->transport, &scope);
    x->status = 200;
    x->handed_over = true;
    return STEP_REPLY;
}
