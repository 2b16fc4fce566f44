/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the transports (stdio.c, remote.c, builtin.c), the probe and link.c. */
#ifndef HOLDFAST_UPSTREAM_UPSTREAM_IMPL_H
#define HOLDFAST_UPSTREAM_UPSTREAM_IMPL_H

#include "audit/known.h"
#include "base/map.h"
#include "base/metric.h"
#include "base/secret.h"
#include "io/deadline.h"
#include "upstream/eras.h"
#include "upstream/stderr_log.h"
#include "upstream/upstream.h"

/*   OPENING ──link_opened()──> OPEN ──link_end()──> ENDED (freed at the end of the turn)
 *      └──────────link_end(why)─────────────────────^                                     */
enum link_state { LINK_OPENING, LINK_OPEN, LINK_ENDED };
/* How the previous link of the same key ended (past.c). */
enum link_past {
    PAST_NONE,      /* no previous link, or its process or server ended it */
    PAST_RECYCLED,  /* Holdfast ended it while it was idle */
    PAST_FORGOTTEN, /* the server no longer knew its session */
    PAST_ENDED,     /* Holdfast ended it for another reason, such as a changed credential */
};

/* The members that each call touches come first: with a link per session, not all links stay in the
 * CPU cache. */
struct link {
    struct upstream *up;
    enum link_state state;
    enum mcp_era era;
    uint64_t generation;
    void *wire; /* owned by the transport */
    unsigned in_flight;
    unsigned timeouts;                 /* in a row */
    bool has_answered;                 /* it has sent at least one answer: the start worked */
    bool is_probe;                     /* not counted against limits, never shared */
    bool counts;                       /* has a process: counted against the limits */
    bool has_context_values;           /* `pairs` holds values of its session */
    bool is_resumed;                   /* opened with the id of an existing session */
    enum link_past past;               /* how the previous link ended */
    uint64_t n_odd;                    /* messages that belonged to no request */
    const struct mcp_version *version; /* negotiated (legacy) */
    struct str remote_id;              /* the session id of an HTTP upstream, in mem */
    struct list pendings;              /* struct pending, oldest first */
    int64_t last_used_ms;
    int64_t moved_ms;      /* when it moved to the end of `lru` */
    const char *log_level; /* last level sent, a static name */
    /* Env or headers with placeholders filled; NULL: as configured. */
    const struct config_pair *pairs;
    size_t n_pairs;                    /* their number … */
    struct arena *hidden;              /* … and their memory; NULL: none */
    struct link_credential credential; /* its name is in mem, its value … */
    struct secret secret;              /* … here */
    struct own_secrets own;            /* secrets of its session; holds references */
    struct str key, owner;             /* owned, in mem */
    struct str initialize_params;
    struct arena *mem;
    struct list waiters;      /* struct link_wait */
    struct list lru;          /* in its upstream, least recently used first; see upstream_send() */
    struct pending handshake; /* initialize */
    struct loop_task start, reap;
    struct catalog *fill;         /* of a probe: filled from the handshake; borrowed */
    bool refused_as_modern;       /* refused initialize, naming modern versions */
    bool says_sse;                /* refused initialize, but has a channel of 2024 */
    struct process_slot slot;     /* held 0: none */
    unsigned has_session_catalog; /* bits: kinds with a catalog of its session's own … */
    struct catalog *session_catalogs[CATALOG_KINDS]; /* … and those already read */
    unsigned session_catalog_changes;                /* number of list_changed received */
    char odd[128];                                   /* the last odd message */
};

struct upstream_ops {
    const char *name;
    bool has_process;
    /* Starts opening; link_up() or link_end() follow from the loop. */
    void (*open)(struct link *l);
    /* The handshake is done.  True: the transport prepares something before the first call, and
     * link_opened() follows soon from the loop.  NULL: nothing to prepare. */
    bool (*prepare)(struct link *l);
    /* p NULL for notifications.  Later failures are reported by pending_fail(). */
    bool (*send)(struct link *l, struct pending *p, const struct outgoing *m, struct error *err);
    /* p left the ledger without an answer: drop its wire. */
    void (*abandon)(struct link *l, struct pending *p);
    void (*close)(struct link *l);      /* drop l->wire; no callbacks afterwards */
    void (*forget)(struct upstream *u); /* drop u->wire; may be NULL */
};
extern const struct upstream_ops upstream_stdio, upstream_remote, upstream_builtin,
    upstream_refused;

#define SAME_TOOLS_MAX 16 /* capability digests remembered per server: session_catalog.c */
struct probe;
struct upstream {
    struct upstreams *set;
    unsigned refs;
    struct config *config_ref;
    const struct server_config *config;
    const struct upstream_ops *ops;
    struct map links;          /* key → struct link */
    struct map past;           /* key → struct past, how its last link ended … */
    struct list pasts;         /* … oldest first */
    struct map crashes_of;     /* owner or link key → struct crashes … */
    struct list crashes;       /* … ordered by the last crash */
    int64_t crashing_until_ms; /* until then some processes are not started again */
    struct error last_crash;
    struct list lru;    /* struct link */
    unsigned processes; /* links with `counts` */
    unsigned calls;     /* pendings of all links */
    bool retired;
    bool is_restarted; /* retired because its processes start anew, with the same definition */
    struct stderr_log *stderr_log;
    bool guarded;
    struct list node;                     /* in the set's list */
    struct list queue;                    /* struct link_wait: waiting for a slot */
    struct deadline_class call_deadlines; /* config->timeout_ms */
    /* probe */
    struct catalog *catalog;
    /* Digests of client capabilities that do not change its tools …. */
    uint64_t same[SAME_TOOLS_MAX];
    size_t n_same;                      /* … number found; the oldest are replaced */
    unsigned catalog_stale;             /* bits by kind: lists that changed since they were read */
    unsigned catalog_refreshing;        /* … those of them that the present probe reads */
    int64_t notified_ms[CATALOG_KINDS]; /* when listeners were last notified of a change */
    unsigned held_back;                 /* bits: changes since then … */
    struct deadline notify;             /* … sent when this fires */
    struct list catalog_wants;
    struct probe *probe;
    int64_t probed_since_ms; /* start of the last probe */
    /* End of the period in which lists wait for its answer; 0: not begun. */
    int64_t waited_until_ms;
    bool was_left_out;       /* a list was answered without this server */
    struct error last_error; /* code ERR_NONE when the last start or list worked */
    unsigned failures;       /* failed starts in a row */
    unsigned unread;         /* probes in a row with a failed tools/list */
    int64_t retry_at_ms;
    struct upstream_tally *tally; /* owned by the set */
    uint32_t recent;              /* the last requests, one bit each: 1 for a failure */
    unsigned n_recent, failed_in_row;
    void *wire;              /* the transport's: a connection pool, a built-in's table */
    bool refuses_initialize; /* answers server/discover but not initialize */
    bool sse; /* speaks the HTTP transport of 2024: configured, or found by a probe */
    int64_t refreshed_ms;
    struct private_server *own; /* NULL: a configured server */
    struct watcher *watcher;    /* NULL: not needed so far */
};

/* What a private server has beside the others (private.c). */
struct private_server {
    struct str tenant, owner;
    struct upstream_tally *tally;
    void (*on_freed)(void *arg);
    void *arg;
    struct arena *mem;
};

struct upstreams {
    unsigned refs;
    struct loop *loop;
    struct keeper *keeper;
    struct upstream_sink sink;
    struct process_quota quota;
    struct catalog_guard guard;
    struct eras *eras;
    struct list all;      /* struct upstream, current ones */
    struct list privates; /* likewise, upstreams_add_private() */
    struct list retired;
    struct map tallies; /* name → struct upstream_tally */
    struct map ledger;  /* our id → struct pending */
    uint64_t next_id, next_generation;
    unsigned processes, links;
    bool is_stopping; /* sessions at servers are kept for the next process of ours */
    struct deadline_class wait_deadlines;   /* 5 s in the queue for a slot */
    struct deadline_class notify_deadlines; /* for changes held back */
    struct loop_timer *tick;                /* idle links, retired upstreams, back-off */
    struct loop_task serve; /* at the end of the turn: gives freed slots to the queue */
    bool serve_queued;
    struct map watches;      /* server name → struct watch */
    unsigned watches_all;    /* listeners for every server */
    struct list watch_wants; /* struct watch_want */
    struct loop_task notify_watched;
    bool notify_watched_queued;
};

#define LINK_KEY_WATCH "watch"
/* The capabilities in our own initialize, also the probe's. */
#define OUR_CAPABILITIES                                                                           \
    "{\"roots\":{\"listChanged\":true},\"sampling\":{},\"elicitation\":{\"form\":{},\"url\":{}}}"
/* The envelope of our own modern requests. */
#define MCP_OUR_ENVELOPE                                                                           \
    "\"_meta\":{\"" MCP_KEY_VERSION "\":\"2026-07-28\",\"" MCP_KEY_CAPABILITIES                    \
    "\":{},\"" MCP_KEY_CLIENT_INFO "\":{\"name\":\"holdfast\",\"version\":\"" HOLDFAST_VERSION     \
    "\"}}"
/* Limits on processes: of one server for one owner (on loopback all callers are one owner), of one
 * server, in all. */
#define LINK_PER_OWNER 16
#define LINK_PER_UPSTREAM 64
#define LINK_PER_NODE 128
#define LINK_IDLE_MINUTES 30 /* without a call and without a connected client */
#define LINK_IDLE_MS (LINK_IDLE_MINUTES * 60 * 1000)
#define LINK_LIGHT_MAX 4096 /* links of one upstream without a process */
#define LINK_LIGHT_IDLE_MS (24 * 3600 * 1000)
#define LINK_WAIT_MS 5000
#define RETIRE_MS 30000

/* link.c */
struct link *link_new(struct upstream *u, const struct link_identity *who, enum mcp_era era,
                      bool is_probe);
/* fill.c */
void link_fill(struct link *l, const struct link_identity *who);
/* The link's env or headers, whichever its server uses. */
const struct config_pair *link_pairs(const struct link *l, size_t *ret_n);
/* link.c again */
void link_up(struct link *l); /* the transport is ready: begins the handshake of a legacy link */
void link_up_later(struct link *l); /* the same at the end of this turn */
/* A link that was opened without a handshake (modern) begins a legacy session on the same process.
 * Its waiters are called when the session is open or has failed. */
void link_shake(struct link *l);
/* Sends notifications/initialized of a legacy handshake. */
must_check bool link_send_initialized(struct link *l, struct error *err);
void link_opened(struct link *l);
/* Ends the link for every waiter and pending.  why->code ERR_NONE: Holdfast ended it while idle. */
void link_end(struct link *l, const struct error *why);
/* True when a client of its session is connected, or (or_expected) was until recently. */
bool link_is_attended(const struct link *l, bool or_expected);
void link_forget_session_catalogs(struct link *l);
void link_listen_for_session(struct link *l);
/* Compares the tools of a link that has just opened with the catalog's, if they may differ.  A
 * resumed link is compared after its first answer: until then the server may have forgotten the
 * session, and the call would be lost with the list. */
void link_check_tools(struct link *l);
void link_receive(struct link *l, struct pending *about, struct str text);
void pending_fail(struct pending *p, const struct error *err); /* called by a transport */
/* " (it sent …)" when something odd came after the request was sent, else "". */
const char *pending_odd(const struct pending *p);
/* past.c */
void past_note(const struct link *l, const struct error *why); /* l ends for this reason */
enum link_past past_take(struct upstream *u, struct str key);
void past_release(struct upstream *u);
/* crashes.c */
void crashes_note(const struct link *l, const struct error *why); /* its process ended by itself */
must_check bool crashes_allow(const struct upstream *u, const struct link_identity *who,
                              struct error *err);
void crashes_release(struct upstream *u);
/* process_slot.c */
void upstreams_serve(struct upstreams *s);     /* gives free slots to the queue */
void upstream_slot_freed(struct upstreams *s); /* the same at the end of the turn */
/* remote.c */
/* Deletes the session named by `resume` at the server, best effort; does nothing if the server's
 * definition has changed since. */
void remote_end_session(struct upstream *u, struct str resume);
/* upstream.c */
void upstreams_unref(struct upstreams *s);
/* Without a tally. */
struct upstream *upstream_new(struct upstreams *s, struct config *config,
                              const struct server_config *server);
/* A changed or removed upstream finishes its calls and takes no new ones. */
void upstream_retire(struct upstream *u);
void upstream_finish_retired(struct upstream *u, bool now);
/* private.c: the upstream is being freed. */
void private_release(struct private_server *p);
/* What happened to a retired upstream, to follow its name in an error. */
const char *upstream_retired_text(const struct upstream *u);
/* False: the server is in back-off after failures, or removed from the configuration. */
must_check bool upstream_may_start(struct upstream *u, struct error *err);
void upstream_note_failure(struct upstream *u, const struct error *err);
void upstream_note_success(struct upstream *u);
/* The server is up, but its tools cannot be listed.  The list is requested again after the
 * back-off. */
void upstream_tools_unread(struct upstream *u, const struct error *err);
/* These lists (bits) are outdated: probes again, at once unless that was done a moment ago. */
void upstream_refresh(struct upstream *u, unsigned kinds);
void upstream_notify_held_back(struct upstream *u); /* notifies of changes held back */
/* health.c */
void tallies_release(struct upstreams *s);
void upstream_answered(struct upstream *u);
void upstream_failed(struct upstream *u, const struct error *err);
void upstream_start_failed(struct upstream *u, const struct error *err);
/* watch.c */
void watches_init(struct upstreams *s);
void watches_release(struct upstreams *s);
bool upstream_is_watched(const struct upstream *u);
void watch_tick(struct upstream *u, int64_t now_ms); /* opens, reopens or ends its watch link */
void watch_stop(struct upstream *u);
/* Subscribes to the lists that a modern server announces.  p NULL: the end of the subscription is
 * not awaited. */
must_check bool link_subscribe(struct link *l, uint64_t id, struct pending *p);
void watch_is_deaf(struct link *l); /* the server has no standalone stream for this link */
/* Probes a server again that a list was answered without, with growing intervals. */
void upstream_retry_later(struct upstream *u, int64_t now_ms);
/* probe.c */
void probe_start(struct upstream *u);
/* Stores the era of its catalog, and whether it refuses initialize, for the next start. */
void probe_remember_era(struct upstream *u);
void probe_cancel(struct upstream *u);
/* The probe's own link announced that these lists (bits) changed: the probe reads them once more,
 * without notifying listeners. */
void probe_notice(struct upstream *u, unsigned kinds);
#define CATALOG_ALL ((1u << CATALOG_KINDS) - 1)
/* The lists (bits) that a list_changed of `kind` concerns. */
unsigned catalog_bits(enum catalog_kind kind);

/* Removes the tools that the server's configuration does not show. */
void upstream_filter_tools(struct upstream *u, struct catalog *c);

#endif
