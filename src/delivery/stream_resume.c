/* SPDX-License-Identifier: Apache-2.0 */
/* GET with Last-Event-ID: continues the stream that the id names, after the event that it names.
 *
 *     not ours, or of another transport ─▶ ERR_NOT_FOUND
 *     its stream is here ───────────────▶ what came after it, then the rest as it comes
 *     of the standalone stream ─────────▶ otherwise a new one
 *     of a request ─────────────────────▶ otherwise an error response that says what is not known
 *
 * Resuming takes the stream from its present connection: the client knows that its connection is
 * dead long before we do.  Only a valid id can do that. */
#include "delivery/stream_impl.h"

#include "http/sse.h"

#include <stdlib.h>

#define RESTARTED                                                                                  \
    "Holdfast was restarted while this request was under way; its outcome is in the audit log, "   \
    "look it up before sending it again"
#define NO_LONGER_KEPT                                                                             \
    "Some messages of this request are no longer stored; look its outcome up in the audit, or "    \
    "send "                                                                                        \
    "it again"

static struct stream *find(struct streams *s, const struct transport *t, const struct stream_id *id)
{
    struct stream_home *home = id->writer == s->writer ? stream_home_of(s, t) : NULL;

    if (!home)
        return NULL;
    list_each(&home->streams, it)
    {
        struct stream *st = list_entry(it, struct stream, link);
        if (st->number == id->stream)
            return st;
    }
    return NULL;
}

/* Ends the request at the end of the turn: the caller still uses its memory. */
struct farewell {
    struct loop_task task;
    struct http_request *r;
};

static void on_farewell(struct loop_task *task)
{
    struct farewell *f = container_of(task, struct farewell, task);

    if (http_request_aborted(f->r))
        http_request_done(f->r);
    else
        http_stream_end(f->r);
    free(f);
}

static void end_later(struct streams *s, struct http_request *r)
{
    struct farewell *f = xcalloc(1, sizeof(*f));

    f->r = r;
    f->task.fn = on_farewell;
    r->on_abort = NULL;
    r->on_drained = NULL;
    loop_defer(s->loop, &f->task);
}

/* The bytes of the id are those of its request: raw JSON. */
static bool answer_lost(struct streams *s, struct http_request *r, struct str request_id,
                        const char *message)
{
    struct buf json;

    buf_init(&json, 1024 + request_id.n);
    buf_addz(&json, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addstr(&json, request_id.n ? request_id : STR("null"));
    buf_addz(&json, ",\"error\":{\"code\":-32000,\"message\":\"");
    buf_addz(&json, message);
    buf_addz(&json, "\"}}");
    buf_reset(&s->out);
    sse_write(&s->out, STR_NONE, STR_NONE, buf_str(&json));
    buf_release(&json);
    stream_http_begin(r);
    bool is_taken = http_stream_write(r, buf_str(&s->out)); /* false: the client has gone */
    (void)is_taken;
    end_later(s, r);
    return true;
}

bool streams_resume(struct streams *s, struct transport *t, struct str last_event_id,
                    struct http_request *r, struct error *err)
{
    struct stream_id id;
    struct stream *st;

    if (!stream_id_parse(s, t, last_event_id, &id))
        return error_set(err, ERR_NOT_FOUND,
                         "no stream of this session has that Last-Event-ID; send the request "
                         "again, or open the stream without it");
    st = find(s, t, &id);
    if (id.is_standalone && (!st || s->is_draining))
        return streams_open(s, t, r, err);
    if (!st)
        return answer_lost(s, r, str_n(id.request, id.n_request),
                           id.writer == s->writer ? NO_LONGER_KEPT : RESTARTED);
    if (!id.is_standalone && id.number < st->lost)
        return answer_lost(s, r, st->request_id, NO_LONGER_KEPT);
    stream_conn_slim(stream_conn_open(st, r, id.number));
    return true;
}
