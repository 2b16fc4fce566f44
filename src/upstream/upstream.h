/* SPDX-License-Identifier: Apache-2.0 */
/* Upstreams: the configured servers, the live links to them, and the one function through which
 * anything leaves for them.
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

/* Where messages from upstreams go: set once, by delivery. */
struct upstream_sink {
    /* `about`: the pending whose own stream carried it (HTTP), or NULL.  `text` lives only for the
     * call. */
    void (*on_message)(void *arg, struct link *l, struct pending *about, struct str text);
    /* A list of this server changed (its catalog is stale already); may be NULL. */
    void (*on_changed)(void *arg, struct upstream *u, enum catalog_kind kind);
    /* A server offers the session behind this link another list than everybody, without having said
     * so; may be NULL. */
    void (*on_session_catalog)(void *arg, struct link *l, enum catalog_kind kind);
    /* Is a client connected whose session uses links of this key?  Those are not ended for being
     * idle.  or_expected: one whose stream broke less than five minutes ago counts too.  May be
     * NULL: none is. */
    bool (*is_attended)(void *arg, struct str key, bool or_expected);
    void *arg;
};

/* A slot for a process, taken from the quotas of a tenant and of a key.  held 0: none was taken. */
struct process_slot {
    void *of[2];
    unsigned held;
};
struct process_quota {
    /* false: a limit was reached, and *ret_exhausted names it (one of a slot's `of`). */
    bool (*take)(void *arg, const struct principal *who, struct process_slot *ret,
                 const void **ret_exhausted);
    void (*release)(void *arg, struct process_slot *slot);
    /* No slot came free in time: *err gets the text for the caller. */
    void (*refuse)(void *arg, const struct principal *who, struct error *err);
    void *arg;
};

/* Sees every list of tools before anybody else does: of the server (is_whole), or of one session.
 * May take items out of it, and hold some. */
struct catalog_guard {
    void (*look)(void *arg, struct upstream *u, struct catalog *c, bool is_whole);
    void *arg;
};

struct upstreams_config {
    struct loop *loop;
    struct keeper *keeper;
    struct upstream_sink sink;
    struct process_quota quota; /* take NULL: no quota beside the limits here */
    struct catalog_guard guard; /* look NULL: nobody looks */
    struct str eras_file;       /* what servers were found to speak; absent: not kept */
};
struct upstreams *upstreams_new(const struct upstreams_config *config) must_check;
/* Starts from nothing or swaps: servers with the same definition stay untouched, changed and
 * removed ones finish their calls (at most 30 s) and end. */
void upstreams_apply(struct upstreams *s, struct config *config);
void upstreams_free(struct upstreams *s);
struct upstream *upstreams_find(struct upstreams *s, struct str name); /* NULL: not configured */
/* Visits every current upstream, in configuration order. */
void upstreams_each(struct upstreams *s, void (*fn)(void *arg, struct upstream *u), void *arg);
/* Live links of all kinds, for metrics and tests. */
unsigned upstreams_links(const struct upstreams *s);
/* False while servers run by command cannot be started: their keeper died and has no successor. */
bool upstreams_can_start(const struct upstreams *s);

struct str upstream_name(const struct upstream *u);
const struct server_config *upstream_config(const struct upstream *u);
/* How it does, from its starts, its lists and the last requests to it. */
enum health_state {
    HEALTH_UNKNOWN, /* nobody has needed it yet */
    HEALTH_HEALTHY,
    HEALTH_DEGRADED, /* it answers, but not always */
    HEALTH_DOWN
};
struct upstream_health {
    enum health_state state;
    char reason[96];         /* one sentence; empty when healthy */
    const char *last_error;  /* of the last failure, however long ago; empty: none (borrowed) */
    int64_t calls, failures; /* over all starts; answers that say isError are no failures */
    int64_t last_ok_ms, last_failed_ms; /* clock_life_ms(); 0: never */
};
struct upstream_health upstream_health(const struct upstream *u);
const char *health_state_name(enum health_state state); /* "healthy" … */

/* What of that outlives a process: one for each name, made where there is none. */
struct upstream_tally {
    int64_t calls, failures;
    int64_t last_ok_ms, last_failed_ms; /* before this start */
    int64_t last_ok_mono_ms, last_failed_mono_ms;
    char last_error[256];
    int64_t saved_calls, saved_failures; /* of whoever saves them */
    struct str name;
    char text[];
};
struct upstream_tally *upstreams_tally(struct upstreams *s, struct str name);
void upstreams_each_tally(struct upstreams *s, void (*fn)(void *arg, struct upstream_tally *t),
                          void *arg);
int64_t tally_last_ok_ms(const struct upstream_tally *t);
int64_t tally_last_failed_ms(const struct upstream_tally *t);
/* The era of a link for a client of that era that has begun a session with initialize: the client's
 * own where the server speaks both, or is not known not to; else the server's. */
enum mcp_era upstream_era_for(const struct upstream *u, const struct catalog *c,
                              enum mcp_era client);
/* Does nothing of a session live in a link to it? */
bool upstream_is_stateless(const struct upstream *u, enum mcp_era era);
void upstream_ref(struct upstream *u); /* keeps the memory past a reload */
void upstream_unref(struct upstream *u);

/* Sets *ret to the catalog (borrowed until the end of this turn) when it is known; else to NULL,
 * and `want` is called from the loop once a probe has ended.  fresh: a list the upstream said has
 * changed will not do.  false: refused now, the server is in back-off after failures. */
struct catalog_want {
    struct list link;
    void (*done)(struct catalog_want *w, struct catalog *c, const struct error *err);
};
must_check bool upstream_catalog(struct upstream *u, bool fresh, struct catalog_want *want,
                                 struct catalog **ret, struct error *err);
void catalog_want_cancel(struct catalog_want *w);
/* What is known of it, however old (borrowed until the end of this turn); NULL: nothing. */
struct catalog *upstream_known(const struct upstream *u);
/* Starts to ask each server that has not been asked yet what it offers, all at the same time. */
void upstreams_probe(struct upstreams *s);
/* How long a list of several servers may wait for this one, in ms.  The first list that has to wait
 * begins 8 s for all of them; afterwards 0, until the server has answered. */
int64_t upstream_patience_ms(struct upstream *u);
/* Why nothing is known of a server; *ret_why is the error of the last start (borrowed), or empty.
 */
enum upstream_absence { ABSENCE_STARTING, ABSENCE_FAILED };
enum upstream_absence upstream_absence(const struct upstream *u, const char **ret_why);
/* How long it has been asked by now what it offers; 0: it is not being asked. */
int64_t upstream_probing_ms(const struct upstream *u);
/* Calls to its tools are to be asked about from now on (for the life of this definition of it). */
void upstream_guard(struct upstream *u);
bool upstream_is_guarded(const struct upstream *u);
/* What is shown of its tools has changed here: sessions' own lists are read again, everybody who
 * listens is told. */
void upstream_shown_anew(struct upstream *u);
/* A list was answered without this server: everybody is told once it is known after all. */
void upstream_left_out(struct upstream *u);
/* Any link said so: marks the catalog stale and calls sink.on_changed. */
void upstream_changed(struct upstream *u, enum catalog_kind kind);
/* Somebody listens for changes of this server's lists (`server` absent: of all servers'): by +1 or
 * -1, counted by name so that a reload keeps it.  While the count is above zero a "watch" link is
 * kept where the server can tell and needs no process for it: legacy HTTP (our own initialize, GET
 * stream), modern HTTP (subscriptions/listen for the announced list kinds).  Stdio servers are not
 * started for it.  Watch links reconnect with back-off (1 s … 60 s) and end 30 s after the last
 * listener. */
void upstreams_watch(struct upstreams *s, struct str server, int by);
/* After it: true when what can be watched is; false: `done` comes from the loop once it is, or
 * cannot be.  Whoever waits has a deadline of its own. */
struct watch_want {
    struct list node;
    struct str server;
    void (*done)(struct watch_want *w);
};
must_check bool upstreams_watched(struct upstreams *s, struct str server, struct watch_want *w);
void watch_want_cancel(struct watch_want *w);

/* What a session's calls take along to a server; value absent: nothing. */
enum credential_as { CREDENTIAL_HEADER, CREDENTIAL_ENV, CREDENTIAL_META };
struct link_credential {
    enum credential_as as;
    struct str name, value;
};

/* The context values of a session, counted wherever the server's env or headers use them.  A header
 * head and the environment of a child have room for that beside everything else. */
#define UPSTREAM_CONTEXT_BYTES_MAX (32u * 1024)

/* Whether the context values of a session fit where the server's configuration uses them. */
must_check bool upstream_check_context_values(const struct upstream *u,
                                              const struct config_pair *context_values, size_t n,
                                              struct error *err);

/* Whose link: the key decides who shares it. */
struct link_identity {
    struct str key;   /* "s:<session row>", "o:<tenant>/<owner>", "all" */
    struct str owner; /* tenant/owner, for LINK_PER_OWNER */
    /* Whose process it is, for the quota; NULL: not counted. */
    const struct principal *principal;
    struct str
        initialize_params; /* the client's own, to open a legacy upstream with; absent: ours */
    struct link_credential credential;        /* a link opened for `key` has it for its life */
    const struct config_pair *context_values; /* of its session, for ${context:KEY}; likewise */
    size_t n_context_values;
    struct str resume; /* link_resume() of the link it had before; absent: none */
};
struct link_wait {
    struct list link;         /* on a link's waiters, or in the queue for a slot */
    struct deadline deadline; /* set while in line */
    struct upstream *up;
    struct link_identity who; /* spans kept by the caller while it waits */
    void (*done)(struct link_wait *w, struct link *l, const struct error *err);
};
/* Sets *ret to the open link; else to NULL, and wait->done is called from the loop when it is open
 * (err NULL), cannot be opened, or no slot came free within 5 s.  false: refused now (back-off).
 */
must_check bool upstream_link(struct upstream *u, const struct link_identity *who,
                              struct link_wait *wait, struct link **ret, struct error *err);
void link_wait_cancel(struct link_wait *w);
struct upstream *link_upstream(const struct link *l);
/* Secrets that the session brought, to be replaced in what is recorded; NULL: none.  Whoever needs
 * them longer than the link lives takes a reference (audit/known.h). */
struct known *link_known(const struct link *l);
/* The same before there is a link, which would be opened for `who`: finished, and the caller's;
 * NULL: the session brings no secret. */
must_check struct known *upstream_secrets(const struct upstream *u,
                                          const struct link_identity *who);
struct known *upstream_link_known(const struct upstream *u,
                                  struct str key); /* of the link that stands */
uint64_t link_generation(const struct link *l);    /* unlike for every link ever opened */
enum mcp_era link_era(const struct link *l);
/* True when this link holds state that would be lost with it. */
bool link_is_stateful(const struct link *l);
/* What another process of ours needs to go on with this link's session at an HTTP server, as a text
 * without control characters, written to `buf` of LINK_RESUME_MAX bytes; absent: it cannot be gone
 * on with.  It names the server's definition, so the id is never shown to another server. */
#define LINK_RESUME_MAX 4224
struct str link_resume(const struct link *l, char *buf);
/* Why a session that used another link before has lost its state: the `reason` of state-lost. */
const char *link_lost_reason(const struct link *l);
/* The open link of this key, if it is still the one of that generation. */
struct link *upstream_find_link(struct upstream *u, struct str key, uint64_t generation);
/* Is there a link of this key, open or opening? */
bool upstream_has_link(const struct upstream *u, struct str key);
/* The credential that goes into each request's _meta; value absent: none. */
struct link_credential link_meta_credential(const struct link *l);
/* true: this link was not told this log level yet (a static name), and is taken to be from now on.
 */
bool link_takes_level(struct link *l, const char *level);
struct str link_key(const struct link *l);
/* Ends the links of this key with every server: whatever runs on them fails, `why` says why. */
void upstreams_end_links(struct upstreams *s, struct str key, const char *why);
/* A session is over that used this server by links of this key.  Its link is ended unless it is in
 * use.  Where another process of ours opened the session at an HTTP server that `resume` is about
 * (link_resume(); absent: none), that is deleted there: a DELETE, once, that nobody waits for. */
void upstreams_session_over(struct upstreams *s, struct str server, struct str key,
                            struct str resume, bool is_ours);
/* More than one session may be behind it: key "all", "o:…", or a watch. */
bool link_is_shared(const struct link *l);

/* One request on its way, embedded in whoever sent it.  Ids are ours and single-use: the first
 * answer takes the entry out of the ledger. */
struct pending {
    uint64_t id;
    struct link *link;
    struct list node; /* on its link */
    struct deadline deadline;
    void *wire;          /* the transport's own */
    bool *waited;        /* the transport's own, or NULL: cleared when this is over */
    bool left;           /* bytes may have reached the upstream */
    bool patient;        /* no deadline: a subscription */
    uint64_t odd_before; /* oddities of the link when this was sent */
    /* `m` and its memory are taken by the callee. */
    void (*on_reply)(struct pending *p, struct mcp_message *m, struct arena *mem);
    /* `left` false: not one byte left us, it may be sent again. */
    void (*on_fail)(struct pending *p, const struct error *err, bool left);
    void (*on_progress)(struct pending *p, const struct mcp_message *m); /* may be NULL */
    /* A message that is no progress, from this pending's own stream or judged to be about it; true
     * when it was taken.  May be NULL. */
    bool (*on_message)(struct pending *p, const struct mcp_message *m);
};
/* A server's list_changed, heard on this link. */
void link_changed(struct link *l, enum catalog_kind kind);
/* The session of this link has a catalog of its own for this kind: see session_catalog.c. */
bool link_has_session_catalog(const struct link *l, enum catalog_kind kind);
/* Whether that catalog, as far as it was read, has this item. */
bool link_session_catalog_has(const struct link *l, enum catalog_kind kind, struct str name);
struct list_want {
    void (*done)(struct list_want *w, struct catalog *c); /* borrowed; NULL: it could not be had */
    /* private */
    struct pending pending;
    struct catalog *catalog;
    enum catalog_kind kind;
    unsigned pages;
    unsigned changes; /* that the link had heard of before */
};
/* true: *ret is that list (borrowed; NULL: it cannot be had).  false: `done` comes from the loop.
 */
must_check bool link_list(struct link *l, enum catalog_kind kind, struct list_want *w,
                          struct catalog **ret);

uint64_t upstream_next_id(struct upstreams *s);
uint64_t upstream_next_id_for(struct upstream *u);

struct outgoing {
    struct str method;
    struct str name;         /* mirrored in Mcp-Name towards modern HTTP; absent for none */
    struct str text;         /* the whole JSON-RPC message */
    struct str header_lines; /* further headers towards HTTP, "Name: value\r\n…"; absent for none */
    /* Of a call, for built-in servers: whose it is, the row id and name of its session, what became
     * of the one it named (enum builtin_named), and whose it says it is. */
    const struct principal *who;
    struct str session_id, handle, person;
    int session_named;
};
/* Every message to a server passes here: asserts that the token may leave.  `p` NULL for
 * notifications; otherwise p->id, the callbacks, and an id in `text` that says the same.  false:
 * nothing left, p is untouched. */
must_check bool upstream_send(struct link *l, const struct exec *token, struct pending *p,
                              const struct outgoing *m, struct error *err);
/* Stop waiting: the entry leaves the ledger, no callback follows, the upstream is told (legacy:
 * notifications/cancelled; modern HTTP: the stream is closed). */
void pending_cancel(struct pending *p, struct str reason);
/* Stops the clock of a pending while the client is being asked something, and starts it afresh. */
void pending_hold(struct pending *p, bool held);
/* The newest pending of this link that has on_message, or NULL. */
struct pending *link_newest(struct link *l);
/* Its only pending, when that has on_message; NULL with several. */
struct pending *link_only(struct link *l);
/* Something came that belongs to nobody (a sentence, copied): told by requests that fail later. */
void link_note_odd(struct link *l, const char *what);
/* The entry that answers to `id` on this link, or NULL (unknown, foreign, answered before). */
struct pending *pending_find(struct link *l, uint64_t id);
/* It is answered: out of the ledger; on_reply is the caller's to call. */
void pending_take(struct pending *p);

#endif
