/* SPDX-License-Identifier: Apache-2.0 */
/* Event streams towards legacy clients: numbered, kept for a while, resumable on another
 * connection.
 *
 * A stream belongs to one transport.  A POST's stream carries the messages of one request and ends
 * with its result.  The transport's standalone stream (GET) carries the messages that belong to no
 * request.  A stream outlives its connection: events sent meanwhile are kept (256 KiB and 5 minutes
 * per transport, a budget for the whole process) and replayed to a client that resumes with the id
 * of the last event it saw.  Event ids name writer, stream, number and request and carry a MAC over
 * these and the transport, so forged ids and ids of other transports are unknown.  Loop thread
 * only. */
#ifndef HOLDFAST_DELIVERY_STREAM_H
#define HOLDFAST_DELIVERY_STREAM_H

#include "http/server.h"
#include "identity/identity.h"
#include "io/loop.h"
#include "session/session.h"

struct streams; /* all streams of the process */
struct stream;

struct streams_config {
    struct loop *loop;
    uint8_t key[32]; /* survives restarts, so that ids of an earlier process are recognised */
    int64_t writer;  /* identifies this process; ids of another writer are valid but not found */
    /* May be NULL.  A connection opened or resumed by a request with r->who ends when that
     * credential does. */
    struct identity *identity;
};
struct streams *streams_new(const struct streams_config *config) must_check;
/* Sets the function that is called when a transport gets a standalone stream (is_there), and when
 * that stream is given up, some time after its connection was lost. */
void streams_on_standing(struct streams *s,
                         void (*fn)(void *arg, struct transport *t, bool is_there), void *arg);
/* Closes every connection.  Call it before http_server_free() and sessions_free().  Streams with
 * references stay as empty shells, on which every function is a no-op. */
void streams_free(struct streams *s);
/* At stop: ends standalone connections cleanly and refuses new ones (ERR_UNAVAILABLE). */
void streams_drain(struct streams *s);
unsigned streams_connected(const struct streams *s);

/* A stream for one request (its id's raw bytes) of this transport, without a connection.  One
 * reference. */
struct stream *stream_new(struct streams *s, struct transport *t, struct str request_id) must_check;
/* Accepts NULL; kept events stay until they expire.  If the last reference goes before
 * stream_finish(), the connection ends, because nothing more can be sent. */
void stream_unref(struct stream *st);
/* Answers r with 200 text/event-stream and writes this stream to it from now on.  First comes the
 * priming event (id, retry, empty data) if the transport's version has it, then the events sent
 * without a connection.  The stream owns r from now on, with its user and callbacks.  One
 * exception: r->mem must live until the stream has let go of r, see on_gone. */
void stream_attach(struct stream *st, struct http_request *r);
/* fn is called once per attach, from the loop, when the connection is gone (client left, stream
 * ended, stream closed by us, resumed on another connection).  aborted: the client left, and the
 * owner of fn calls http_request_done(); otherwise r and its mem are freed as soon as fn returns.
 * May be NULL: then the stream does all of it.  Connections made by streams_resume() are not
 * reported. */
void stream_on_gone(struct stream *st, void (*fn)(void *arg, bool aborted), void *arg);

enum stream_weight {
    STREAM_MUST,     /* results, server requests: never dropped; a full connection is closed */
    STREAM_PROGRESS, /* may replace an older unsent one of the same stream */
    STREAM_MAY,      /* logs: dropped and counted when the reader is slow */
};
/* Writes JSON as one event without an id.  Line ends between its tokens become blanks, so that it
 * is one data line: each further line would cost six bytes more, and not every client joins
 * several. */
void stream_write_event(struct buf *out, struct str type, struct str json);
/* Sends one JSON-RPC message. */
void stream_send(struct stream *st, struct str json, enum stream_weight weight);
/* Sends the result (or error) as the last event; the connection ends after it.  An error is written
 * without an id (1.x clients reconnect otherwise), but is kept for resumption. */
void stream_finish(struct stream *st, struct str json, bool is_error);
/* fn is called whenever the connection is lost, and when there is one again.  NULL: no function. */
void stream_on_connected(struct stream *st, void (*fn)(void *arg, bool is_connected), void *arg);
/* The result is also stored as undelivered, under this id.  If a connection gets the result from
 * this stream after all, the function of streams_on_undelivered_sent() is called with the id.  Set
 * before stream_finish(). */
void stream_set_undelivered(struct stream *st, int64_t id);
void streams_on_undelivered_sent(struct streams *s, void (*fn)(void *arg, int64_t id), void *arg);
bool stream_is_connected(const struct stream *st);
struct transport *stream_transport(const struct stream *st);

/* Opens the transport's standalone stream on r.  Fails with ERR_CONFLICT if that stream is
 * connected.  Takes over r on success, as streams_resume() does: do not touch it or its mem
 * afterwards. */
must_check bool streams_open(struct streams *s, struct transport *t, struct http_request *r,
                             struct error *err);
/* GET with Last-Event-ID: replays the later events of that stream and stays on it; takes over r on
 * success.  ERR_NOT_FOUND: the id is forged, malformed or of another transport.  For an id of an
 * earlier process, or if later events are no longer kept, the stream gets an error response that
 * says so, for the request that the id names.  The standalone stream begins anew instead, as by
 * streams_open(). */
must_check bool streams_resume(struct streams *s, struct transport *t, struct str last_event_id,
                               struct http_request *r, struct error *err);
/* The standalone stream of t if it is connected, or was less than 5 minutes ago (then messages are
 * kept for its return); else NULL.  Borrowed: valid until control returns to the loop. */
struct stream *streams_standalone(struct streams *s, const struct transport *t);
/* Sends to every standalone stream, connected or expected back, for which `wants` returns true
 * (list_changed).  The message is formatted once, only the ids differ.  Returns how many.  The loop
 * writes to some connections per turn, in order with other messages on them. */
size_t streams_broadcast(struct streams *s, bool (*wants)(void *arg, const struct transport *t),
                         void *arg, struct str json);
/* The transport ended (DELETE, expiry): its streams close and are forgotten. */
void streams_forget(struct streams *s, const struct transport *t);

#endif
