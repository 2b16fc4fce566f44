/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and transports as the loop holds them: a bounded cache of rows in use.  The store is the
 * truth; anything here may be dropped while nobody refers to it and is loaded again on first use.
 * Entries are kept by (kind, tenant, owner, name), so another's name is a miss like an unknown one;
 * row ids, which no client names, by tenant alone.
 */
#ifndef HOLDFAST_SESSION_SESSION_H
#define HOLDFAST_SESSION_SESSION_H

#include "base/list.h"
#include "base/map.h"
#include "config/config.h"
#include "crypto/token.h"
#include "mcp/version.h"
#include "session/read_your_writes.h"
#include "store/lanes.h"

struct sessions;

/* (session, server): which live end it last used.  A different one now means that state was lost.
 */
struct session_link {
    struct session_link *next;
    struct str server;
    uint64_t generation; /* 0: only the store remembers it */
    bool stored;         /* a row says that we serve it, this process and no earlier one */
    bool is_old;         /* an earlier process (or another node) used it, and we have not yet */
    bool lost;           /* state went with an earlier one, and no result has said so yet … */
    const char *reason;  /* … and why: a static name */
    struct str resume;   /* link_resume() of the link it last used; absent: none; its own */
};

/* What a client told its session at its begin (profile_context.h); fixed from then on. */
struct session_context {
    uint8_t mac[32];
    struct str sealed; /* absent: not sealed yet, so the row cannot be made */
};

struct session {
    struct sessions *home;
    unsigned refs;
    struct arena *mem;
    struct str id, handle, tenant, owner;
    struct str carrier, carrier_key;
    struct str key_by_id, key_by_handle, key_by_key; /* its names in the cache */
    struct str link_key;  /* under which it has links of its own: "s:<id>" */
    struct str owner_key; /* under which its owner shares links: "o:<tenant>/<owner>" */
    struct touch_slots handle_slots, id_slots; /* once is_named: by its first touch */
    uint64_t touch_mark;                       /* when they were touched last */
    enum session_origin origin;
    bool provisional, counted, is_named;
    bool stored;   /* the row is committed */
    bool has_core; /* its core_session_id is known, by its client or by a server */
    bool ended;
    int64_t created_ms, last_used_ms, expires_ms, ttl_ms;
    struct str client_name, client_type, client_version;
    struct str
        sealed_auth;     /* credentials for other services, see sealed.h; absent: none; its own */
    struct str toolsets; /* keys of those enabled in it, a comma between; absent: none; its own */
    unsigned toolset_writes; /* changes of it that the store has not answered yet */
    uint64_t toolset_move;   /* of sessions_toolset_moves(), the last that was this session's */
    struct session_context *context; /* what its client told it; NULL: nothing */
    struct session_link *links;
    struct list lru; /* on the idle list while refs == 0 */
};

#define TRANSPORTS_PER_OWNER 4096 /* live; for one more the one unused for longest ends */
struct transport {
    struct sessions *home;
    unsigned refs;
    struct arena *mem;
    uint8_t id_hash[32];
    struct str key;
    struct str tenant, owner, endpoint;
    const struct mcp_version *version;
    struct str initialize_params; /* the client's bytes */
    char shown[9];                /* first digits of the hash, for people */
    struct session *session;      /* linked; NULL until the first call */
    bool link_stored;             /* the row says so too */
    bool ended;
    const char *log_level; /* what logging/setLevel asked for, a static name; NULL: nothing */
    unsigned questions;    /* of servers, that its client has not answered yet */
    struct listener
        *listener; /* who tells its client things outside of requests; see delivery/hub.h */
    int64_t last_used_ms, touched_ms;
    struct list lru;
};

struct sessions_config {
    struct lanes *lanes;
    struct str node; /* edge_mcp_id of sessions that MCP requests create; copied */
    int64_t writer;
    unsigned max_resident; /* of each kind */
    bool is_shared;        /* other nodes use the store too */
};
struct sessions *sessions_new(const struct sessions_config *config) must_check;
void sessions_free(struct sessions *s);
struct str sessions_node(const struct sessions *s);
int64_t sessions_writer(const struct sessions *s);
unsigned sessions_resident(const struct sessions *s);

void session_ref(struct session *s);
void session_unref(struct session *s); /* NULL is fine */
void transport_ref(struct transport *t);
void transport_unref(struct transport *t); /* NULL is fine */

/* A new session in the cache, not stored yet: one reference.  The caller commits session_row(). */
struct session_new_args {
    const struct principal *who;
    enum session_origin origin;
    struct str carrier, carrier_key; /* key absent for sessions found only by handle or transport */
    struct str client_name, client_version;
    bool provisional, counted;
    int64_t life_ms;            /* after its last use, unless it is provisional */
    const uint8_t *context_mac; /* of what its client tells it; NULL: nothing */
};
struct session *session_new(struct sessions *s, const struct session_new_args *args) must_check;
/* The row to create; spans borrow from the session. */
void session_fill_row(const struct session *s, struct session_row *ret);
void session_used(struct session *s); /* now; a sliding end moves along */
bool session_is_over(const struct session *s, int64_t now_ms);
void session_forget(struct session *s); /* it ended: no name finds it any more */
/* The same by its row id, whoever ended it; one that is not resident is fine. */
void sessions_ended(struct sessions *s, struct str tenant, struct str id);
/* Lets go of sessions and transports that nobody uses and that are over, of those used longest ago
 * at most `most` each. */
void sessions_drop_over(struct sessions *s, int64_t now_ms, unsigned most);
/* Something that changes its row is handed to the write lane now: what was read of it is old. */
void session_touch(struct session *s);
struct read_your_writes;
/* Whom session_touch() tells; NULL: nobody. */
void sessions_set_read_your_writes(struct sessions *s, struct read_your_writes *writes);
/* The row was moved on (last_activity_ms; expires_ms and ttl_ms where not 0) by somebody who does
 * not hold the session: what is in memory follows. */
void sessions_moved(struct sessions *s, struct str tenant, struct str id,
                    const struct session_row *to);

/* Its credentials were changed (absent: taken away): what is in memory follows, and whom
 * sessions_on_sealed() named is told, for links that use the old ones must end. */
void sessions_sealed(struct sessions *s, struct str tenant, struct str id, struct str sealed_auth);
/* Its client said what its core_session_id is: a server's session no longer fills it in. */
void sessions_core_said(struct sessions *s, struct str tenant, struct str id);
void sessions_on_sealed(struct sessions *s, void (*fn)(void *arg, struct str link_key), void *arg);

/* Other toolsets are enabled in it (absent: none); copied.  In memory: it is what the store has. */
void session_take_toolsets(struct session *s, struct str toolsets);
/* The same, and handed to the store now; each is followed by one session_toolsets_write_done(). */
void session_change_toolsets(struct session *s, struct str toolsets);
/* The store has answered; where it has refused, the caller has undone the change by then. */
void session_toolsets_write_done(struct session *s);
/* How often one of these two was called.  What was read of a session's row before such a move, or
 * while the store is about to answer, may be older than what is in memory. */
uint64_t sessions_toolset_moves(const struct sessions *s);
bool session_toolsets_moved(const struct session *s, uint64_t since);
/* The one with this row id, borrowed; NULL: it is not resident. */
struct session *sessions_by_id(struct sessions *s, struct str tenant, struct str id);

/* It is to be told something of that MAC, which is yet to be sealed. */
void session_expect_context(struct session *s, const uint8_t mac[32]);
/* What it was told is sealed now (copied); the first of several counts. */
void session_seal_context(struct session *s, struct str sealed);

/* One reference; visible to lookups from now on (its row is committed by then). */
struct transport *transport_new(struct sessions *s, const struct transport_row *row) must_check;
void transport_fill_row(const struct transport *t, struct transport_row *ret);
/* In memory, so that calls made at once share the session; whoever commits it sets link_stored. */
void transport_link(struct transport *t, struct session *session);
void transport_forget(struct transport *t);
/* Before one is made: where the owner has as many as it may, the one unused for longest ends.  That
 * is committed before whatever is written next. */
void transports_make_room(struct sessions *s, const struct principal *who);
void transport_ended(struct transport *t); /* its client did so: it no longer counts either */
/* The one that is resident, borrowed; NULL: none is. */
struct transport *sessions_transport(struct sessions *s, struct str tenant, struct str owner,
                                     const uint8_t id_hash[32]);
/* Notes the use, and writes it down at most every five minutes. */
void transport_used(struct transport *t);
bool transport_is_over(const struct transport *t, int64_t now_ms);

/* What using `server` through this link means for this session.  A session that was dropped from
 * memory meanwhile knows no generation, but a link of this very process that is still open is the
 * one it used.  Two links that go on with the same remote session are the same to it. */
struct link_seen {
    uint64_t generation;
    bool was_open;      /* it stood before this call */
    struct str resume;  /* link_resume(); absent: none */
    const char *reason; /* why state was lost, if it was: a static name */
};
enum link_news { LINK_NEWS_FIRST, LINK_NEWS_SAME, LINK_NEWS_STATE_LOST };
enum link_news session_note_link(struct session *s, struct str server,
                                 const struct link_seen *seen);
/* The remote session that it goes on with there: remembered, and written down, for the Holdfast
 * that is started after this one.  Nobody waits for the store: later writes come behind this one.
 */
void session_keep_resume(struct session *s, struct str server, struct str resume);
struct session_link *session_link_of(struct session *s,
                                     struct str server); /* NULL: never used it */

/* A lookup, resident first, then by the lookup lane.  Embedded in whoever asks. */
enum session_by { BY_TRANSPORT, BY_HANDLE, BY_KEY };
struct session_query {
    enum session_by by;
    const struct principal *who;
    struct str name;    /* Mcp-Session-Id, handle, or the key under `carrier` */
    struct str carrier; /* with BY_KEY */
    bool or_handle;     /* with BY_KEY: when there is none of this key, the name may be a handle */
    /* With BY_KEY, or NULL: when there is none of this key, the name is looked for under the labels
     * that it had before carriers.client_ids.  Borrowed until `done`. */
    const struct config *former;
    void (*done)(struct session_query *q);
    /* Out; absent things are NULL.  References are the caller's. */
    struct session *session;
    struct transport *transport;
    bool is_over;   /* there was one of this name; it has ended */
    bool is_linked; /* the transport was resident; that it has a session was found out now */
    bool ok;        /* false: the store failed, see job.err */
    /* private */
    struct sessions *home;
    struct arena *mem;
    uint8_t hash[32];
    struct session_row *session_row;
    struct transport_row *transport_row;
    struct link_row *links;
    size_t n_links;
    struct read_job job; /* large, last, and touched only when the store is asked */
};
/* Zeroes all but `job`. */
void session_query_init(struct session_query *q);
/* true: answered now.  false: `done` comes from the loop. */
must_check bool session_find(struct sessions *s, struct session_query *q);

/* What a caller over MCP is told when its tenant has as many sessions as it may. */
#define SESSION_LIMIT_TEXT "session limit exceeded for tenant"
#define SESSION_LIMIT_WAY_OUT                                                                      \
    "Go on with the session_id of a session that you have, or end one that is not needed any "     \
    "more: end_session of the docs server, or DELETE /api/v1/sessions/{id}. A session that a "     \
    "call began by itself stops counting 30 minutes after its last use. The operator can raise "   \
    "session.limits.max_per_tenant."

#define SESSION_PROVISIONAL_MS (INT64_C(3600) * 1000)
#define TRANSPORT_IDLE_END_MS (INT64_C(24) * 3600 * 1000)

#endif
