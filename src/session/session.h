/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and transports in memory: a bounded cache of rows in use.  The store is authoritative.
 * Entries without references may be dropped and are loaded again at the next use.  It is the only
 * cache of session rows: REST reads use it too (resident.h).
 *
 * Cache keys are (kind, tenant, owner, name).  Handles and row ids are unique in their tenant, and
 * cached by tenant alone; a lookup compares the owner, so another owner's session is a miss, like
 * an unknown name. */
#ifndef HOLDFAST_SESSION_SESSION_H
#define HOLDFAST_SESSION_SESSION_H

#include "base/random.h"
#include "base/list.h"
#include "base/map.h"
#include "config/config.h"
#include "mcp/version.h"
#include "session/read_your_writes.h"
#include "session/token.h"
#include "store/lanes.h"

struct binding_row;
struct session_setup;
struct sessions;

/* The link that a session last used at a server.  A different link now means that state was
 * lost. */
struct session_link {
    struct session_link *next;
    struct str server;
    uint64_t generation; /* 0: known only from the store */
    bool stored;         /* a row says that this process serves it */
    /* An earlier process or another node used it, and this process has not used it yet. */
    bool is_old;
    bool lost;          /* state was lost and no result has reported it yet */
    const char *reason; /* reason of the loss: a static name */
    /* link_resume() of the link last used; absent: none.  Owned by this struct. */
    struct str resume;
};

/* Context values of a client (profile_context.h), fixed when the session begins. */
struct session_context {
    uint8_t mac[32];
    struct str sealed; /* absent: not sealed yet, so the row cannot be created */
};

struct session_first {
    char context_id[UUID_TEXT];
    struct str context, metadata;
};
void session_first_free(struct session_first *f); /* NULL is fine */

struct session {
    struct sessions *home;
    unsigned refs;
    struct arena *mem;
    struct str id, handle, tenant, owner;
    struct str carrier, carrier_key;
    struct str key_by_id, key_by_handle, key_by_key; /* its keys in the cache */
    struct str link_key;                             /* key of its own links: "s:<id>" */
    struct str owner_key; /* key of links shared by its owner: "o:<tenant>/<owner>" */
    struct touch_slots handle_slots, id_slots; /* set by the first touch, with is_named */
    uint64_t touch_mark;                       /* mark of the last touch */
    enum session_origin origin;
    bool provisional, counted, is_named;
    bool stored; /* the row is committed */
    /* False: loaded by its row alone (resident.h); an MCP lookup loads it again. */
    bool links_known;
    bool has_core; /* the client or a server has set its core_session_id */
    bool ended;
    int64_t created_ms, last_used_ms, expires_ms, ttl_ms;
    struct str client_name, client_type, client_version;
    /* Credentials for other services (sealed.h); absent: none.  Owned by the session. */
    struct str sealed_auth;
    /* Keys of enabled toolsets, separated by commas; absent: none.  Owned by the session. */
    struct str toolsets;
    /* What a template or an administrator laid down (JSON; rows.h).  Owned by the session. */
    struct str setup;
    /* The same, parsed (setup.h); NULL: none.  A change of the session replaces it, so a reader
     * keeps no pointer into it while it waits. */
    struct session_setup *rules;
    /* What its template adds to its first row; NULL: nothing, or the row is stored. */
    struct session_first *first;
    struct str lineage;      /* the session it was made from (JSON; rows.h); absent: none */
    unsigned toolset_writes; /* changes of `toolsets` with a pending write */
    /* The last of sessions_toolset_moves() that changed this session. */
    uint64_t toolset_move;
    struct session_context *context; /* context values of its client; NULL: none */
    struct session_link *links;
    struct session_snapshot *snapshot; /* resident.h; NULL: none */
    struct list lru;                   /* on an idle list while refs == 0 */
};

#define SESSION_CLIENT_NAME_MAX 255
/* Live transports; a new one above that ends the least recently used one. */
#define TRANSPORTS_PER_OWNER 4096
struct transport {
    struct sessions *home;
    unsigned refs;
    struct arena *mem;
    uint8_t id_hash[32];
    struct str key;
    struct str tenant, owner, endpoint;
    const struct mcp_version *version;
    struct str initialize_params; /* as sent by the client */
    struct str client;            /* name in clientInfo of initialize, if it is known already */
    char shown[9];                /* first digits of the hash, for messages */
    struct session *session;      /* linked; NULL until the first call */
    bool link_stored;             /* the row has this link too */
    bool ended;
    const char *log_level; /* level set by logging/setLevel, a static name; NULL: not set */
    unsigned questions;    /* requests of servers that the client has not answered yet */
    /* Sends messages to the client outside of requests; see delivery/hub.h. */
    struct listener *listener;
    int64_t last_used_ms, touched_ms;
    struct list lru;
};

struct sessions_config {
    struct lanes *lanes;
    struct str node; /* edge_mcp_id of sessions that MCP requests create; copied */
    int64_t writer;
    unsigned max_resident;     /* sessions; and as many transports */
    bool has_bindings;         /* store_has_bindings() at the start */
    size_t max_snapshot_bytes; /* 0: SNAPSHOT_BYTES_MAX */
    bool is_shared;            /* other nodes use the store */
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

/* A new session in the cache, not stored yet, with one reference.  The caller commits the row of
 * session_fill_row(). */
struct session_new_args {
    const struct principal *who;
    enum session_origin origin;
    /* carrier_key is absent for sessions found only by handle or transport. */
    struct str carrier, carrier_key;
    struct str client_name, client_version;
    bool provisional, counted;
    int64_t life_ms;            /* lifetime after the last use, unless provisional */
    const uint8_t *context_mac; /* MAC of the client's context values; NULL: none */
};
struct session *session_new(struct sessions *s, const struct session_new_args *args) must_check;
/* The row to create; its spans borrow from the session. */
void session_fill_row(const struct session *s, struct session_row *ret);
void session_used(struct session *s); /* records a use; moves a sliding expiry */
bool session_is_over(const struct session *s, int64_t now_ms);
void session_forget(struct session *s); /* it ended: removes its names from the cache */
/* Removes an ended session by its row id.  A session that is not resident is fine. */
void sessions_ended(struct sessions *s, struct str tenant, struct str id);
/* Frees ended sessions and transports without references, least recently used first, at most `most`
 * of each.  Stops at the first that has not ended. */
void sessions_drop_over(struct sessions *s, int64_t now_ms, unsigned most);
/* Call it when a change of the row is queued on the write lane: cached reads of the row become
 * stale. */
void session_touch(struct session *s);
struct read_your_writes;
/* The target of session_touch(); NULL: none. */
void sessions_set_read_your_writes(struct sessions *s, struct read_your_writes *writes);
/* Another part of the process has moved the row (last_activity_ms; expires_ms and ttl_ms if not 0);
 * updates the session in memory. */
void sessions_moved(struct sessions *s, struct str tenant, struct str id,
                    const struct session_row *to);

/* The credentials changed (absent: removed).  Updates the session in memory and calls the function
 * of sessions_on_sealed(), because links with the old credentials must end. */
void sessions_sealed(struct sessions *s, struct str tenant, struct str id, struct str sealed_auth);
/* The client has set its core_session_id, so a server's session no longer sets it. */
void sessions_core_changed(struct sessions *s, struct str tenant, struct str id);
void sessions_on_sealed(struct sessions *s, void (*fn)(void *arg, struct str link_key), void *arg);

/* Sets the enabled toolsets as stored (absent: none); copied.  Memory only. */
void session_take_toolsets(struct session *s, struct str toolsets);
/* Likewise its setup, and `rules` with it. */
void session_take_setup(struct session *s, struct str setup);
/* For a session that has no row yet: its lifetime from its creation (0: as it is), its first context
 * document and its metadata (JSON objects, or absent); copied. */
void session_begin_with(struct session *s, int64_t ttl_ms, struct str context, struct str metadata);
/* This process has stored another setup (absent: none). */
void sessions_setup_changed(struct sessions *s, struct str tenant, struct str id, struct str setup);
/* The same for a change that is queued for the store now.  Call session_toolsets_write_done() once
 * for each. */
void session_change_toolsets(struct session *s, struct str toolsets);
/* The store has replied.  After a refusal the caller has already undone the change. */
void session_toolsets_write_done(struct session *s);
/* Counts the calls of session_change_toolsets() and session_toolsets_write_done().  A row that was
 * read before such a call, or while a write is pending, may be older than memory. */
uint64_t sessions_toolset_moves(const struct sessions *s);
bool session_toolsets_moved(const struct session *s, uint64_t since);
/* The row of this session, resident or not, was changed by another part of the process or by
 * another node.  The functions above report their own changes. */
void sessions_changed(struct sessions *s, struct str id);
/* Counts the changes so far.  A row that was read before a later change of its session must not
 * become resident, because the change found no session in memory to apply to. */
uint64_t sessions_changes(const struct sessions *s);
bool sessions_changed_since(const struct sessions *s, struct str id, uint64_t since);
/* The resident session with this row id, borrowed; NULL: not resident. */
struct session *sessions_by_id(struct sessions *s, struct str tenant, struct str id);

/* The session will get context values with this MAC; they are sealed later. */
void session_expect_context(struct session *s, const uint8_t mac[32]);
/* Sets the sealed context values (copied); only the first call has an effect. */
void session_seal_context(struct session *s, struct str sealed);

/* Returns one reference.  Lookups find it from now on; its row is committed already. */
struct transport *transport_new(struct sessions *s, const struct transport_row *row) must_check;
void transport_fill_row(const struct transport *t, struct transport_row *ret);
/* Links in memory, so that concurrent calls share the session.  The code that commits the link sets
 * link_stored. */
void transport_link(struct transport *t, struct session *session);
void transport_forget(struct transport *t);
/* Call it before creating a transport: if the owner is at the limit, ends the least recently used
 * one.  That end is committed before any later write. */
void transports_make_room(struct sessions *s, const struct principal *who);
void transport_ended(struct transport *t); /* its client ended it: also no longer counted */
/* The resident transport, borrowed; NULL: not resident. */
struct transport *sessions_transport(struct sessions *s, struct str tenant, struct str owner,
                                     const uint8_t id_hash[32]);
/* Records the use, and writes it to the store at most every five minutes. */
void transport_used(struct transport *t);
bool transport_is_over(const struct transport *t, int64_t now_ms);

/* Records that the session uses `server` through this link, and returns whether state was lost.  A
 * session that was dropped from memory knows no generation; then a link of this process that is
 * still open is the same link.  Two links that resume the same remote session count as the same. */
struct link_seen {
    uint64_t generation;
    bool was_open;      /* open before this call */
    struct str resume;  /* link_resume(); absent: not resumable */
    const char *reason; /* reason if state was lost: a static name */
};
enum link_change { LINK_FIRST, LINK_SAME, LINK_STATE_LOST };
enum link_change session_note_link(struct session *s, struct str server,
                                   const struct link_seen *seen);
/* Records the remote session that the link uses, and writes it to the store, so that the next
 * process can resume it.  Does not wait for the store: later writes are committed after this
 * one. */
void session_keep_resume(struct session *s, struct str server, struct str resume);
struct session_link *session_link_of(struct session *s, struct str server); /* NULL: never used */

/* Bindings of carriers to shared sessions (share_store/rows.h).  The cache knows which carriers are
 * bound and which are not, as far as it has asked; whether a binding still holds is asked of the
 * store at each use, so that a share which ends on another node is refused at the next call. */

/* Whether this carrier of `who` may be bound: then look it up with BY_BINDING. */
bool sessions_may_be_bound(struct sessions *s, const struct principal *who, struct str carrier,
                           struct str key);
/* The carrier was bound, here or on another node. */
void sessions_bound(struct sessions *s, struct str tenant, struct str owner, struct str carrier,
                    struct str key);
/* The client was told that its share is over: the carrier is bound no longer.  Does not wait for the
 * store. */
void sessions_unbind(struct sessions *s, const struct principal *who, struct str carrier,
                     struct str key, struct str share_id);
/* Another node has changed shares: what is known of free carriers may be wrong. */
void sessions_recheck_bindings(struct sessions *s);
/* Another owner has the session now: it is loaded anew at its next use, and the function of
 * sessions_on_handed_over() is called.  had_secrets: the row held credentials or context values of its
 * former owner; what the resident session held counts too. */
void sessions_handed_over(struct sessions *s, struct str tenant, struct str id, bool had_secrets);
/* The former owner gets no more messages of the session's servers; with had_secrets its links may hold
 * the secrets of the former owner, so they must end. */
void sessions_on_handed_over(struct sessions *s,
                             void (*fn)(void *arg, struct str link_key, bool had_secrets),
                             void *arg);
/* The owner of the session, as a principal for ops on its rows.  Borrows from the session. */
struct principal session_owner(const struct session *s);

/* What a lookup of a shared session was refused for. */
enum session_denied {
    NOT_DENIED,
    DENIED_READ_ONLY, /* the share is for reading */
    DENIED_REVOKED,
    DENIED_EXPIRED,
    DENIED_HANDED_OVER, /* another owner has the session now */
};

/* A lookup: in the cache first, then on the lookup lane.  The caller embeds it.
 *
 * BY_HANDLE also finds a session of another owner of the tenant that is shared with `who`, always by
 * asking the store.  BY_BINDING finds the session that a carrier is bound to. */
enum session_by { BY_TRANSPORT, BY_HANDLE, BY_KEY, BY_BINDING };
struct session_query {
    enum session_by by;
    const struct principal *who;
    struct str name;    /* Mcp-Session-Id, handle, or the key of `carrier` */
    struct str carrier; /* with BY_KEY and BY_BINDING */
    bool or_handle;     /* with BY_KEY: if no session has this key, try the name as a handle */
    /* With BY_KEY, or NULL: if no session has this key, try the labels that were used before
     * carriers.client_ids.  Borrowed until `done`. */
    const struct config *former;
    void (*done)(struct session_query *q);
    /* Output; absent results are NULL.  The caller owns the references. */
    struct session *session;
    struct transport *transport;
    bool is_over; /* a session of this name existed and has ended */
    /* The transport was resident, and the lookup found its session just now. */
    bool is_linked;
    bool ok; /* false: the store failed, see job.err */
    /* A share names the session, or named it, and does not permit this use: `session` is absent. */
    enum session_denied denied;
    char share_id[37]; /* with BY_BINDING, when denied: that of the binding */
    /* private */
    struct sessions *home;
    struct arena *mem;
    uint64_t since;          /* sessions_changes() when the store was asked */
    uint64_t bindings_since; /* the same of bindings */
    unsigned tries;
    uint8_t hash[32];
    struct session_row *session_row;
    struct binding_row *binding_row;
    struct transport_row *transport_row;
    struct link_row *links;
    size_t n_links;
    struct read_job job; /* large; written only when the store is queried */
};
/* Zeroes all but `job`. */
void session_query_init(struct session_query *q);
/* Returns true when answered at once, false when `done` will be called from the loop. */
must_check bool session_find(struct sessions *s, struct session_query *q);

/* The error text for MCP when the tenant has reached its limit of sessions. */
#define SESSION_LIMIT_TEXT "session limit exceeded for tenant"
#define SESSION_LIMIT_WAY_OUT                                                                      \
    "Go on with the session_id of a session that you have, or end one that is not needed any "     \
    "more: end_session of the docs server, or DELETE /api/v1/sessions/{id}. A session that a "     \
    "call began by itself stops counting 30 minutes after its last use. The operator can raise "   \
    "session.limits.max_per_tenant."

#define SESSION_PROVISIONAL_MS (INT64_C(3600) * 1000)
#define TRANSPORT_IDLE_END_MS (INT64_C(24) * 3600 * 1000)

#endif
