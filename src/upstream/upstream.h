/* SPDX-License-Identifier: Apache-2.0 */
/* Upstreams: the configured servers, the live links to them, and the one function that sends to
 * them.
 *
 *   upstreams ── one per configured server ──> upstream ── one per session (or shared) ──> link
 *
 * A link is one live end: a child process, a remote session, or a built-in's state.  Only a call
 * (or the probe that fills the catalog) opens one.  Loop thread only. */
#ifndef HOLDFAST_UPSTREAM_UPSTREAM_H
#define HOLDFAST_UPSTREAM_UPSTREAM_H

#include "audit/audit.h"
#include "config/config.h"
#include "io/deadline.h"
#include "io/loop.h"
#include "mcp/message.h"
#include "upstream/catalog.h"

struct upstreams;
struct upstream;
struct link;
struct known;
struct pending;
struct keeper;
struct builtin;
struct stderr_log;

/* The receiver of messages from upstreams: set once, by delivery. */
struct upstream_sink {
    /* `about`: the pending on whose own stream the message came (HTTP), or NULL.  `text` lives only
     * for the call. */
    void (*on_message)(void *arg, struct link *l, struct pending *about, struct str text);
    /* A list of this server changed; its catalog is already marked stale.  May be NULL. */
    void (*on_changed)(void *arg, struct upstream *u, enum catalog_kind kind);
    /* The server offers the session of this link another list than the catalog's, without having
     * announced it.  May be NULL. */
    void (*on_session_catalog)(void *arg, struct link *l, enum catalog_kind kind);
    /* True when a client is connected whose session uses links of this key.  Such links are not
     * ended for being idle.  or_expected: a client whose stream broke less than five minutes ago
     * counts too.  May be NULL: never true. */
    bool (*is_attended)(void *arg, struct str key, bool or_expected);
    void *arg;
};

/* A slot for a process, taken from the quotas of a tenant and of a key.  held 0: no slot. */
struct process_slot {
    void *of[2];
    unsigned held;
};
struct process_quota {
    /* False: a limit was reached, and *ret_exhausted names it (one of a slot's `of`). */
    bool (*take)(void *arg, const struct principal *who, struct process_slot *ret,
                 const void **ret_exhausted);
    void (*release)(void *arg, struct process_slot *slot);
    /* No slot became free in time: writes the error text for the caller. */
    void (*refuse)(void *arg, const struct principal *who, struct error *err);
    void *arg;
};

/* Sees every list of tools before it is used: the server's (is_whole), or one session's.  May
 * remove items, and hold some. */
struct catalog_guard {
    void (*look)(void *arg, struct upstream *u, struct catalog *c, bool is_whole);
    void *arg;
};

struct upstreams_config {
    struct loop *loop;
    struct keeper *keeper;
    struct upstream_sink sink;
    struct process_quota quota; /* take NULL: no quota beside the limits here */
    struct catalog_guard guard; /* look NULL: no guard */
    struct str eras_file;       /* remembers the eras of servers; absent: not remembered */
};
struct upstreams *upstreams_new(const struct upstreams_config *config) must_check;
/* Applies a configuration, the first or a new one.  Servers with the same definition stay
 * untouched.  Changed and removed servers finish their calls (at most 30 s) and end. */
void upstreams_apply(struct upstreams *s, struct config *config);
void upstreams_free(struct upstreams *s);
/* A built-in server beside the configured ones, for one owner: only upstreams_find_private() finds it,
 * no list shows it, and nothing about it outlives it.  `config` has `server`.  on_freed is called
 * when nobody uses it any more, and upstreams_free() ends it too. */
struct upstream_private {
    struct config *config;
    const struct server_config *server;
    const struct principal *owner;
    void (*on_freed)(void *arg);
    void *arg;
};
struct upstream *upstreams_add_private(struct upstreams *s, const struct upstream_private *p);
/* NULL: this caller has none of this name. */
struct upstream *upstreams_find_private(struct upstreams *s, struct str name,
                                        const struct principal *who);
void upstream_end_private(struct upstream *u); /* calls under way fail */
/* Starts the processes and remote sessions of a server anew, as if its definition had changed, and
 * probes it at once.  Back-off after failures begins anew too.  ERR_BAD_INPUT for a built-in
 * server. */
must_check bool upstream_restart(struct upstream *u, struct error *err);
/* The newest stderr lines of its processes (upstream/stderr_log.h). */
const struct stderr_log *upstream_stderr(const struct upstream *u);
struct upstream *upstreams_find(struct upstreams *s, struct str name); /* NULL: not configured */
/* Calls fn for every current upstream, in configuration order. */
void upstreams_each(struct upstreams *s, void (*fn)(void *arg, struct upstream *u), void *arg);
/* Live links of all kinds, for metrics and tests. */
unsigned upstreams_links(const struct upstreams *s);
/* False while servers run by command cannot be started: the keeper died and was not replaced. */
bool upstreams_can_start(const struct upstreams *s);

struct str upstream_name(const struct upstream *u);
const struct server_config *upstream_config(const struct upstream *u);
/* The health of a server, from its starts, its lists and the last requests to it. */
enum health_state {
    HEALTH_UNKNOWN, /* not needed since the start */
    HEALTH_HEALTHY,
    HEALTH_DEGRADED, /* it answers, but some requests, starts or lists fail */
    HEALTH_DOWN
};
struct upstream_health {
    enum health_state state;
    char reason[96]; /* one sentence; empty when healthy */
    /* The text of the last failure, however long ago; empty: no failure yet (borrowed). */
    const char *last_error;
    int64_t calls, failures; /* over all starts; a result with isError is not a failure */
    int64_t last_ok_ms, last_failed_ms; /* clock_life_ms(); 0: never */
};
struct upstream_health upstream_health(const struct upstream *u);
/* Whether its last start failed, and the log has said why. */
bool upstream_has_failed_start(const struct upstream *u);
const char *health_state_name(enum health_state state); /* "healthy" … */

/* The part of the health that survives restarts, kept by server name.  upstreams_tally() creates a
 * missing one. */
struct upstream_tally {
    int64_t calls, failures;
    int64_t last_ok_ms, last_failed_ms; /* before this start */
    int64_t last_ok_mono_ms, last_failed_mono_ms;
    char last_error[256];
    int64_t saved_calls, saved_failures; /* for the code that saves them */
    struct str name;
    char text[];
};
struct upstream_tally *upstreams_tally(struct upstreams *s, struct str name);
void upstreams_each_tally(struct upstreams *s, void (*fn)(void *arg, struct upstream_tally *t),
                          void *arg);
int64_t tally_last_ok_ms(const struct upstream_tally *t);
int64_t tally_last_failed_ms(const struct upstream_tally *t);
/* The era of a link for this client.  Legacy for a legacy client if the server may accept
 * initialize: it has a link per session, its era is not configured, and it has not refused
 * initialize.  Otherwise the era of its catalog. */
enum mcp_era upstream_era_for(const struct upstream *u, const struct catalog *c,
                              enum mcp_era client);
/* True when links of this era hold no state of a session. */
bool upstream_is_stateless(const struct upstream *u, enum mcp_era era);
void upstream_ref(struct upstream *u); /* keeps the memory past a reload */
void upstream_unref(struct upstream *u);

/* Sets *ret to the catalog if it is known (borrowed until the end of this turn).  Otherwise sets
 * *ret to NULL, and `want` is called from the loop once a probe has ended.  fresh: do not accept a
 * list that the upstream has announced as changed.  False: refused now, the server is in back-off
 * after failures. */
struct catalog_want {
    struct list link;
    void (*done)(struct catalog_want *w, struct catalog *c, const struct error *err);
};
must_check bool upstream_catalog(struct upstream *u, bool fresh, struct catalog_want *want,
                                 struct catalog **ret, struct error *err);
void catalog_want_cancel(struct catalog_want *w);
/* The known catalog at any age (borrowed until the end of this turn); NULL: not known. */
struct catalog *upstream_known(const struct upstream *u);
/* Starts the first probe of every server that was not probed yet, all at the same time. */
void upstreams_probe(struct upstreams *s);
/* How long a list of several servers may wait for this one, in ms.  The first list that has to wait
 * starts a period of 8 s for all lists.  After it the result is 0, until the server has
 * answered. */
int64_t upstream_patience_ms(struct upstream *u);
/* Why the catalog of a server is not known; *ret_why is the error of the last start (borrowed), or
 * empty. */
enum upstream_absence { ABSENCE_STARTING, ABSENCE_FAILED };
enum upstream_absence upstream_absence(const struct upstream *u, const char **ret_why);
/* How long the present probe has been running; 0: no probe is running. */
int64_t upstream_probing_ms(const struct upstream *u);
/* Marks the upstream as guarded: its tool calls are checked from now on (for the life of this
 * definition of the server). */
void upstream_guard(struct upstream *u);
bool upstream_is_guarded(const struct upstream *u);
/* Holdfast now shows its tools differently: drops the sessions' own lists of tools, to be read
 * again, and notifies all listeners. */
void upstream_shown_anew(struct upstream *u);
/* A list was answered without this server: listeners are notified once its catalog is known. */
void upstream_left_out(struct upstream *u);
/* A link has announced a change: marks the catalog stale and calls sink.on_changed. */
void upstream_changed(struct upstream *u, enum catalog_kind kind);
/* Changes by +1 or -1 the number of listeners for this server's lists (`server` absent: for all
 * servers).  They are counted by name, so a reload keeps the count.  While the count is above zero
 * a "watch" link is kept if the server can notify without a process: legacy HTTP (our own
 * initialize, GET stream), modern HTTP (subscriptions/listen for the announced list kinds).  Stdio
 * servers are not started for it.  Watch links reconnect with back-off (1 s … 60 s) and end 30 s
 * after the last listener. */
void upstreams_watch(struct upstreams *s, struct str server, int by);
/* After upstreams_watch(): true when every list that can be watched is watched.  False: `done` is
 * called from the loop once they are, or cannot be.  The caller needs a timeout of its own. */
struct watch_want {
    struct list node;
    struct str server;
    void (*done)(struct watch_want *w);
};
must_check bool upstreams_watched(struct upstreams *s, struct str server, struct watch_want *w);
void watch_want_cancel(struct watch_want *w);

/* The credential that a session's calls carry to a server; value absent: none. */
enum credential_as { CREDENTIAL_HEADER, CREDENTIAL_ENV, CREDENTIAL_META };
struct link_credential {
    enum credential_as as;
    struct str name, value;
};

/* Limit on the context values of a session, counted at each use in the server's env or headers.  A
 * request head and the environment of a child have room for this beside everything else. */
#define UPSTREAM_CONTEXT_BYTES_MAX (32u * 1024)

/* Whether the context values of a session fit where the server's configuration uses them. */
must_check bool upstream_check_context_values(const struct upstream *u,
                                              const struct config_pair *context_values, size_t n,
                                              struct error *err);

/* The user of a link.  Users with the same key share the link. */
struct link_identity {
    struct str key;   /* "s:<session row>", "o:<tenant>/<owner>", "all" */
    struct str owner; /* tenant/owner, for LINK_PER_OWNER */
    /* The process counts against this principal's quota; NULL: not counted. */
    const struct principal *principal;
    struct str
        initialize_params; /* the client's own, for opening a legacy upstream; absent: ours */
    struct link_credential credential;        /* kept by the link for its life */
    const struct config_pair *context_values; /* of the session, for ${context:KEY}; likewise */
    size_t n_context_values;
    /* All secrets of the session that alone uses the link, for its log lines and errors; the link
     * takes a reference.  NULL: none. */
    struct known *session_secrets;
    struct str resume; /* link_resume() of the session's previous link; or absent */
};
struct link_wait {
    struct list link;         /* in a link's waiters, or in the queue for a slot */
    struct deadline deadline; /* set while in the queue */
    struct upstream *up;
    struct link_identity who; /* the caller keeps its spans valid while it waits */
    void (*done)(struct link_wait *w, struct link *l, const struct error *err);
};
/* Sets *ret to the open link.  Otherwise sets *ret to NULL, and wait->done is called from the loop:
 * the link is open (err NULL), it cannot be opened, or no slot came free within 5 s.  False:
 * refused now (back-off). */
must_check bool upstream_link(struct upstream *u, const struct link_identity *who,
                              struct link_wait *wait, struct link **ret, struct error *err);
void link_wait_cancel(struct link_wait *w);
struct upstream *link_upstream(const struct link *l);
/* Secrets that the link was opened with, which the audit and the log must redact; NULL: none.  To
 * keep them longer than the link lives, take a reference (audit/known.h). */
struct known *link_known(const struct link *l);
/* The same before a link for `who` is opened: finished, and owned by the caller; NULL: the session
 * has no secret. */
must_check struct known *upstream_secrets(const struct upstream *u,
                                          const struct link_identity *who);
struct known *upstream_link_known(const struct upstream *u,
                                  struct str key); /* of the existing link */
uint64_t link_generation(const struct link *l);    /* unique among all links ever opened */
enum mcp_era link_era(const struct link *l);
/* True when this link holds state that would be lost with it. */
bool link_is_stateful(const struct link *l);
/* A text with which another process of ours can resume this link's session at an HTTP server.  It
 * has no control characters and is written to `buf` of LINK_RESUME_MAX bytes; absent: the session
 * cannot be resumed.  It names the server's definition, so the id is never sent to another
 * server. */
#define LINK_RESUME_MAX 4224
struct str link_resume(const struct link *l, char *buf);
/* Why a session that used another link before has lost its state: the `reason` of state-lost. */
const char *link_lost_reason(const struct link *l);
/* The open link of this key if it still has that generation; else NULL. */
struct link *upstream_find_link(struct upstream *u, struct str key, uint64_t generation);
/* True when a link of this key is open or opening. */
bool upstream_has_link(const struct upstream *u, struct str key);
/* The credential that goes into each request's _meta; value absent: none. */
struct link_credential link_meta_credential(const struct link *l);
/* True when this level (a static name) differs from the last one sent on this link.  The link then
 * remembers it as sent. */
bool link_takes_level(struct link *l, const char *level);
struct str link_key(const struct link *l);
/* Ends the links of this key to every server.  Their requests fail with `why`. */
void upstreams_end_links(struct upstreams *s, struct str key, const char *why);
/* A session that used this HTTP server by links of this key is over; does nothing without `resume`
 * (link_resume()).  The session's link is ended unless it is in use.  If another process of ours
 * opened the session there (is_ours false), a DELETE is sent once; its answer is not awaited. */
void upstreams_session_over(struct upstreams *s, struct str server, struct str key,
                            struct str resume, bool is_ours);
/* True when several sessions may use the link: key "all", "o:…", or a watch. */
bool link_is_shared(const struct link *l);

/* One request under way, embedded in its sender.  Ids are ours and single-use: the first answer
 * takes the entry out of the ledger. */
struct pending {
    uint64_t id;
    struct link *link;
    struct list node; /* in its link's list */
    struct deadline deadline;
    void *wire;          /* owned by the transport */
    bool *waited;        /* the transport's flag, cleared when the pending ends; or NULL */
    bool left;           /* bytes may have reached the upstream */
    bool patient;        /* no timeout: a subscription */
    uint64_t odd_before; /* odd messages of the link when this was sent */
    /* The callee takes over `m` and its memory. */
    void (*on_reply)(struct pending *p, struct mcp_message *m, struct arena *mem);
    /* `left` false: not one byte was sent, so the request may be sent again. */
    void (*on_fail)(struct pending *p, const struct error *err, bool left);
    void (*on_progress)(struct pending *p, const struct mcp_message *m); /* may be NULL */
    /* A message other than progress, from this pending's own stream or attributed to it.  Returns
     * true when the message was taken.  May be NULL. */
    bool (*on_message)(struct pending *p, const struct mcp_message *m);
};
/* A list_changed that came on this link. */
void link_changed(struct link *l, enum catalog_kind kind);
/* True when the session of this link has a catalog of its own for this kind: see
 * session_catalog.c. */
bool link_has_session_catalog(const struct link *l, enum catalog_kind kind);
/* Whether that catalog, as far as it was read, has this item. */
bool link_session_catalog_has(const struct link *l, enum catalog_kind kind, struct str name);
struct list_want {
    /* Borrowed; NULL: the list could not be read. */
    void (*done)(struct list_want *w, struct catalog *c);
    /* private */
    struct pending pending;
    struct catalog *catalog;
    enum catalog_kind kind;
    unsigned pages;
    unsigned changes; /* session_catalog_changes of the link when the request was sent */
};
/* True: *ret is that list (borrowed; NULL: it cannot be read).  False: `done` is called from the
 * loop. */
must_check bool link_list(struct link *l, enum catalog_kind kind, struct list_want *w,
                          struct catalog **ret);

uint64_t upstream_next_id(struct upstreams *s);
uint64_t upstream_next_id_for(struct upstream *u);

struct outgoing {
    struct str method;
    struct str name; /* mirrored in Mcp-Name towards modern HTTP; or absent */
    struct str text; /* the whole JSON-RPC message */
    struct str
        header_lines; /* further headers towards modern HTTP, "Name: value\r\n…"; or absent */
    struct str trace_lines; /* … towards HTTP of any era; or absent */
    /* For a call to a built-in server: the caller, the row id and handle of its session, the name
     * given to create_session, and the result of looking up the session_id it named (enum
     * builtin_named). */
    const struct principal *who;
    struct str session_id, session_owner, handle, person;
    int session_named;
    /* … the carrier by which the client can keep a session that it joins, and its own name. */
    struct str carrier, carrier_key, client;
};
/* Every message to a server passes here; asserts that the token may leave.  `p` is NULL for
 * notifications.  Otherwise the caller sets p->id and the callbacks, and `text` has the same id.
 * False: nothing was sent, and p is untouched. */
must_check bool upstream_send(struct link *l, const struct exec *token, struct pending *p,
                              const struct outgoing *m, struct error *err);
/* Stops waiting: the entry leaves the ledger and no callback follows.  The upstream is notified
 * (legacy: notifications/cancelled; modern HTTP: the stream is closed). */
void pending_cancel(struct pending *p, struct str reason);
/* Stops the timeout of a pending while its client is asked a question, and restarts it
 * afterwards. */
void pending_hold(struct pending *p, bool held);
/* The newest pending of this link that has on_message, or NULL. */
struct pending *link_newest(struct link *l);
/* The link's only pending, if it has on_message; NULL with several. */
struct pending *link_only(struct link *l);
/* Records a message that belongs to no request (a sentence, copied).  Requests that fail later
 * mention it. */
void link_note_odd(struct link *l, const char *what);
/* The entry for `id` on this link, or NULL (unknown, of another link, already answered). */
struct pending *pending_find(struct link *l, uint64_t id);
/* Takes an answered entry out of the ledger.  The caller then calls on_reply. */
void pending_take(struct pending *p);

#endif
