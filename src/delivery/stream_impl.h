/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of delivery/stream share: stream.c (the verbs), stream_keep.c (kept events and
 * their budgets), stream_conn.c (connections), stream_id.c (event ids), stream_resume.c.  Private
 * to them and their tests. */
#ifndef HOLDFAST_DELIVERY_STREAM_IMPL_H
#define HOLDFAST_DELIVERY_STREAM_IMPL_H

#include "base/buf.h"
#include "crypto/hash.h"
#include "delivery/stream.h"
#include "io/deadline.h"

#define STREAM_KEEP_MS (5 * 60 * 1000)
#define STREAM_QUIET_MS (15 * 1000) /* until a silent connection gets a comment */
#define STREAM_RETRY_MS 1000
#define STREAM_KEPT_PER_TRANSPORT ((size_t)256 * 1024)
#define STREAM_KEPT_IN_ALL ((size_t)64 * 1024 * 1024)
#define STREAM_MAX_QUEUE ((size_t)256 * 1024) /* of one connection */
/* Counted for an event beside its text: its own struct and its stream's. */
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
    struct deadline_class keep; /* events; its FIFO is also their order of age in the process */
    struct deadline_class away; /* standalone streams without a connection */
    struct deadline_class quiet;
    struct list behind; /* connections that have yet to be given a broadcast */
    struct loop_timer *pump;
    size_t kept_bytes;
    struct buf out; /* what is being written */
};

/* What a transport has here; freed with its last stream. */
struct stream_home {
    uint8_t id_hash[32];
    struct list link;
    struct list streams;
    struct list minor, major; /* kept events, oldest first; progress and logs are minor */
    size_t kept_bytes;
    struct stream_event *newest_result;
    struct stream *standalone;
};

/* The lines of an event but for its id; shared by the streams of a broadcast. */
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
    bool has_id; /* on the wire */
};

/* Numbers of events begin at 1; 0 stands for "nothing seen yet". */
struct stream {
    struct loop *loop;
    struct streams *all;      /* NULL: forgotten, a shell */
    struct stream_home *home; /* with all */
    struct transport *transport;
    unsigned refs;    /* of owners; connections and kept events keep it alive as well */
    unsigned n_conns; /* connections that still point here */
    struct stream_conn *conn;
    struct list link;            /* in its home */
    struct list standing;        /* standalone ones */
    struct list events;          /* kept, by number */
    struct stream_event *unsent; /* progress that may yet be replaced */
    struct deadline away;
    uint64_t number;
    uint64_t last;    /* number of the newest event */
    uint64_t written; /* … of the newest that a connection was given */
    uint64_t lost;    /* … of the newest that ought to be kept and is not */
    bool is_standalone, is_finished;
    int64_t undelivered_id; /* its result is also stored as undelivered; 0: it is not */
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
    bool is_closed; /* `gone` is on its way */
    bool breaks_off;
    bool is_reported; /* to the stream's on_gone */
};

/* stream_id.c */
#define STREAM_ID_REQUEST 64 /* bytes of a request id that fit */
#define STREAM_ID_TEXT (3 * 17 + (STREAM_ID_REQUEST * 4 + 2) / 3 + 1 + 16 + 1)
struct stream_id {
    uint64_t writer, stream, number;
    bool is_standalone;
    size_t n_request; /* 0 with a request's stream: its id was too long */
    char request[STREAM_ID_REQUEST];
};
/* NUL-terminated; returns the length. */
size_t stream_id_format(const struct stream *st, uint64_t number, char ret_text[STREAM_ID_TEXT]);
/* false: not ours, or not for this transport. */
must_check bool stream_id_parse(struct streams *s, const struct transport *t, struct str text,
                                struct stream_id *ret);

/* stream_keep.c */
struct stream_text *stream_text_new(struct streams *s, struct str json); /* one reference */
void stream_text_unref(struct stream_text *text);
/* The next event of st.  Others may be dropped for it, never itself: call stream_keep_trim() when
 * it has been written. */
struct stream_event *stream_keep(struct stream *st, struct stream_text *text,
                                 enum stream_weight weight);
void stream_keep_trim(struct stream *st); /* back within the budgets */
/* `is_lost`: whoever resumes before it has to be told. */
void stream_event_drop(struct stream_event *e, bool is_lost);

/* stream_conn.c */
/* Takes r; begins with what comes after number `after`. */
struct stream_conn *stream_conn_open(struct stream *st, struct http_request *r, uint64_t after);
/* On a shell: nothing comes but the end. */
struct stream_conn *stream_conn_open_shut(struct stream *st, struct http_request *r);
/* With everything older that is still unsent; false: no room, and e was not written.  When even
 * what had to go before it has no room the connection is closed, and that counts as written. */
must_check bool stream_conn_write(struct stream_conn *c, struct stream_event *e);
/* A few at a time, from the loop: everything kept that it was not given yet. */
void stream_conn_write_later(struct stream_conn *c);
void stream_conn_pump(void *streams);
void stream_conn_close(struct stream_conn *c, bool breaks_off);
/* r is ours alone: what of it a stream does not need is given back at the end of the turn. */
void stream_conn_slim(struct stream_conn *c);
void stream_http_begin(struct http_request *r);

/* stream.c */
struct stream_home *stream_home_of(struct streams *s, const struct transport *t); /* or NULL */
struct stream *stream_make(struct streams *s, struct transport *t, struct str request_id);
void stream_free_if_unused(struct stream *st); /* frees it when nothing needs it any more */

#endif
