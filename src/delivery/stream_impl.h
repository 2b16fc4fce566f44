/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of delivery/stream: stream.c (the functions of stream.h), stream_keep.c (kept
 * events and their budgets), stream_conn.c (connections), stream_id.c (event ids), stream_resume.c.
 * Private to them and their tests. */
#ifndef HOLDFAST_DELIVERY_STREAM_IMPL_H
#define HOLDFAST_DELIVERY_STREAM_IMPL_H

#include "base/buf.h"
#include "crypto/hash.h"
#include "delivery/stream.h"
#include "io/deadline.h"

#define STREAM_KEEP_MS (5 * 60 * 1000)
#define STREAM_QUIET_MS (15 * 1000) /* silence after which a connection gets a comment */
#define STREAM_RETRY_MS 1000
#define STREAM_STORED_PER_TRANSPORT ((size_t)256 * 1024)
#define STREAM_STORED_IN_ALL ((size_t)64 * 1024 * 1024)
#define STREAM_MAX_QUEUE ((size_t)256 * 1024) /* bytes per connection */
/* Bytes counted for an event beside its text: its own struct and its stream's. */
#define STREAM_EVENT_COST 512

struct streams {
    struct loop *loop;
    struct hmac_key *key;
    struct identity *identity;
    uint64_t writer, last_number;
    struct map homes; /* by id_hash */
    struct list all_homes;
    struct list standing; /* standalone streams, connected or expected back */
    void (*on_standing)(void *arg, struct transport *t, bool is_there);
    void *on_standing_arg;
    void (*on_undelivered_sent)(void *arg, int64_t id);
    void *on_undelivered_sent_arg;
    unsigned n_connected;
    bool is_draining;
    struct deadline_class keep; /* for events; its FIFO also orders them by age in the process */
    struct deadline_class away; /* for standalone streams without a connection */
    struct deadline_class quiet;
    struct list behind; /* connections with a broadcast still to be written */
    struct loop_timer *pump;
    size_t stored_bytes;
    struct buf out; /* shared buffer for writes */
};

/* The streams of a transport; freed with its last stream. */
struct stream_home {
    uint8_t id_hash[32];
    struct list link;
    struct list streams;
    struct list minor, major; /* kept events, oldest first; progress and logs are minor */
    size_t stored_bytes;
    struct stream_event *newest_result;
    struct stream *standalone;
};

/* The lines of an event except its id; shared by the streams of a broadcast. */
struct stream_text {
    unsigned refs;
    size_t n;
    char p[];
};

struct stream_event {
    struct list in_stream; /* by number */
    struct list in_home;
    struct deadline age;
    struct stream *stream;
    struct stream_text *text;
    uint64_t number;
    enum stream_weight weight;
    bool has_id; /* written with its id */
};

/* Numbers of events begin at 1; 0 means "nothing seen yet". */
struct stream {
    struct loop *loop;
    struct streams *all;      /* NULL: forgotten, a shell */
    struct stream_home *home; /* NULL when `all` is NULL */
    struct transport *transport;
    unsigned refs;    /* by owners; connections and kept events also keep it alive */
    unsigned n_conns; /* connections that still point here */
    struct stream_conn *conn;
    struct list link;            /* in its home */
    struct list standing;        /* in streams.standing, if standalone */
    struct list events;          /* kept, by number */
    struct stream_event *unsent; /* progress that may still be replaced */
    struct deadline away;
    uint64_t number;
    uint64_t last;    /* number of the newest event */
    uint64_t written; /* … of the newest event written to a connection */
    uint64_t lost;    /* … of the newest event that should be kept but is not */
    bool is_standalone, is_finished;
    int64_t undelivered_id; /* id of its result stored as undelivered; 0: not stored */
    void (*on_gone)(void *arg, bool aborted);
    void *on_gone_arg;
    void (*on_connected)(void *arg, bool is_connected);
    void *on_connected_arg;
    struct str request_id; /* absent: standalone */
    char request_id_bytes[];
};

/* One attach: from stream_attach() until its end was reported. */
struct stream_conn {
    struct stream *stream;
    struct http_request *r;
    struct list behind;
    struct deadline quiet;
    struct loop_task gone, slim;
    struct identity_watch watch;
    bool is_closed; /* `gone` is scheduled */
    bool breaks_off;
    bool is_reported; /* its end is reported to the stream's on_gone */
};

/* stream_id.c */
#define STREAM_ID_REQUEST 64 /* longest request id that fits, in bytes */
#define STREAM_ID_TEXT (3 * 17 + (STREAM_ID_REQUEST * 4 + 2) / 3 + 1 + 16 + 1)
struct stream_id {
    uint64_t writer, stream, number;
    bool is_standalone;
    size_t n_request; /* 0 on a request's stream: its id was too long */
    char request[STREAM_ID_REQUEST];
};
/* NUL-terminated; returns the length. */
size_t stream_id_format(const struct stream *st, uint64_t number, char ret_text[STREAM_ID_TEXT]);
/* False: not ours, or not for this transport. */
must_check bool stream_id_parse(struct streams *s, const struct transport *t, struct str text,
                                struct stream_id *ret);

/* stream_keep.c */
struct stream_text *stream_text_new(struct streams *s, struct str json); /* one reference */
void stream_text_unref(struct stream_text *text);
/* Appends and keeps the next event of st.  May drop other events for it, never the new one: call
 * stream_keep_trim() after it has been written. */
struct stream_event *stream_keep(struct stream *st, struct stream_text *text,
                                 enum stream_weight weight);
void stream_keep_trim(struct stream *st); /* drops events until the budgets are met */
/* `is_lost`: a client that resumes before it must get an error. */
void stream_event_drop(struct stream_event *e, bool is_lost);

/* stream_conn.c */
/* Takes over r; begins with the events after number `after`. */
struct stream_conn *stream_conn_open(struct stream *st, struct http_request *r, uint64_t after);
/* For a shell: the connection is ended without an event. */
struct stream_conn *stream_conn_open_shut(struct stream *st, struct http_request *r);
/* Writes e with all older unsent events; false: no room, and e was not written.  If there is no
 * room even for the older ones, the connection is closed, and that counts as written. */
must_check bool stream_conn_write(struct stream_conn *c, struct stream_event *e);
/* Writes all kept events that the connection did not get yet, from the loop, a few connections per
 * turn. */
void stream_conn_write_later(struct stream_conn *c);
void stream_conn_pump(void *streams);
void stream_conn_close(struct stream_conn *c, bool breaks_off);
/* Only the stream uses r: releases the memory that a stream does not need at the end of the
 * turn. */
void stream_conn_slim(struct stream_conn *c);
void stream_http_begin(struct http_request *r);

/* stream.c */
struct stream_home *stream_home_of(struct streams *s, const struct transport *t); /* or NULL */
struct stream *stream_make(struct streams *s, struct transport *t, struct str request_id);
void stream_free_if_unused(struct stream *st); /* frees it when nothing uses it any more */

#endif
