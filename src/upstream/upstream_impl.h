/* SPDX-License-Identifier: Apache-2.0 */
/* What the transports (stdio.c, remote.c, builtin.c), the probe and link.c share. */
#ifndef HOLDFAST_UPSTREAM_UPSTREAM_IMPL_H
#define HOLDFAST_UPSTREAM_UPSTREAM_IMPL_H

#include "base/map.h"
#include "base/metric.h"
#include "base/secret.h"
#include "io/deadline.h"
#include "upstream/eras.h"
#include "upstream/upstream.h"

/*   OPENING ──link_opened()──> OPEN ──link_end()──> ENDED (freed at the end of the turn)
 *      └──────────link_end(why)─────────────────────^                                     */
enum link_state { LINK_OPENING, LINK_OPEN, LINK_ENDED };
/* How the link before this one of the same key ended (past.c). */
enum link_past {
    PAST_NONE,      /* there was none, or it ended by itself: its process or its server did */
    PAST_RECYCLED,  /* we ended it while it was idle */
    PAST_FORGOTTEN, /* the server no longer knew its session */
    PAST_ENDED,     /* we ended it, because what it was opened with had changed */
};

/* What each call touches comes first: a link for every session is more than stays warm. */
struct link {
    struct upstream *up;
    enum link_state state;
    enum mcp_era era;
    uint64_t generation;
    void *wire; /* the transport's */
    unsigned in_flight;
    unsigned timeouts;                 /* in a row */
    bool has_answered;                 /* anything at all: the start worked */
    bool is_probe;                     /* counts against no limit, never shared */
    bool counts;                       /* holds a process: counts against the limits */
    bool has_context_values;           /* of its session, in `pairs` */
    bool is_resumed;                   /* opened with the id of a session that stands already */
    enum link_past past;               /* how the one before it ended */
    uint64_t n_odd;                    /* messages that belonged to nobody */
    const struct mcp_version *version; /* negotiated (legacy) */
    struct str remote_id;              /* an HTTP upstream's own session, in mem */
    struct list pendings;              /* struct pending, oldest first */
    int64_t last_used_ms;
    int64_t moved_ms;                  /* to the end of `lru` */
    const char *log_level;             /* what it was told, a static name */
    const struct config_pair *pairs;   /* env or headers, filled; NULL: as configured */
    size_t n_pairs;                    /* … and … */
    struct arena *hidden;              /* … their memory; NULL: none */
    struct link_credential credential; /* its name is in mem, its value … */
    struct secret secret;              /* … here */
    struct known *known;               /* what only this session has of these; NULL: nothing */
    struct str key, owner;             /* owned, in mem */
    struct str initialize_params;
    struct arena *mem;
    struct list waiters;      /* struct link_wait */
    struct list lru;          /* in its upstream, least recently used first; see upstream_send() */
    struct pending handshake; /* initialize */
    struct loop_task start, reap;
    struct catalog *fill;         /* a probe's: takes what the handshake says; borrowed */
    bool says_modern;             /* refused initialize, naming modern versions */
    bool says_sse;                /* refused initialize, but has a channel of 2024 */
    struct process_slot slot;     /* of the quota; held 0: none */
    unsigned has_session_catalog; /* bits: kinds of which its session has a catalog … */
    struct catalog *session_catalogs[CATALOG_KINDS]; /* … and those already read */
    unsigned session_catalog_changes;                /* list_changed that it has heard */
    char odd[128];                                   /* what the last odd message was */
};

struct upstream_ops {
    const char *name;
    bool has_process;
    /* Starts opening; link_up() or link_end() follow from the loop. */
    void (*open)(struct link *l);
    /* The handshake is done.  True: the transport has something to prepare before the first call,
     * and link_opened() follows from the loop, soon.  NULL: nothing to prepare. */
    bool (*prepare)(struct link *l);
    /* p NULL for notifications.  Failures after this are reported by pending_fail(). */
    bool (*send)(struct link *l, struct pending *p, const struct outgoing *m, struct error *err);
    /* p was taken out of the ledger without an answer: drop its wire. */
    void (*abandon)(struct link *l, struct pending *p);
    void (*close)(struct link *l);      /* drop l->wire; no callbacks afterwards */
    void (*forget)(struct upstream *u); /* drop u->wire; may be NULL */
};
extern const struct upstream_ops upstream_stdio, upstream_remote, upstream_builtin;

#define SAME_TOOLS_MAX 16 /* kinds of clients remembered for one server: session_catalog.c */
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
    struct map crashes_of;     /* whose processes crashed → struct crashes … */
    struct list crashes;       /* … by the last one's time */
    int64_t crashing_until_ms; /* somebody's are not started again before */
    struct error last_crash;
    struct list lru;    /* struct link */
    unsigned processes; /* links that count */
    unsigned calls;     /* pendings of all links */
    bool retired;
    bool guarded;
    struct list node;                     /* in the set */
    struct list queue;                    /* struct link_wait: waits for a slot */
    struct deadline_class call_deadlines; /* config->timeout_ms */
    /* probe */
    struct catalog *catalog;
    uint64_t same[SAME_TOOLS_MAX];  /* digests of capabilities that do not change its tools … */
    size_t n_same;                  /* … so many were found, the oldest are replaced */
    unsigned catalog_stale;         /* bits by kind: what has changed since it was read */
    unsigned catalog_refreshing;    /* what of that the probe under way reads */
    int64_t told_ms[CATALOG_KINDS]; /* when listeners were last told of a change */
    unsigned untold;                /* bits: changes since then … */
    struct deadline tell;           /* … told when it is due */
    struct list catalog_wants;
    struct probe *probe;
    int64_t probed_since_ms; /* with `probe` */
    int64_t waited_until_ms; /* by lists, for its first answer or the next; 0: no list has waited */
    bool owes_news;          /* somebody's list was answered without it */
    struct error last_error; /* code ERR_NONE when the last thing went well */
    unsigned failures;       /* starts that failed in a row */
    unsigned unread;         /* probes in a row whose tools/list failed */
    int64_t retry_at_ms;
    struct upstream_tally *tally; /* of the set */
    uint32_t recent;              /* the last requests, a bit each: it failed */
    unsigned n_recent, failed_in_row;
    void *wire;              /* the transport's: a connection pool, a built-in's table */
    bool refuses_initialize; /* it answers server/discover and nothing older */
    bool sse; /* speaks the HTTP transport of 2024: configured, or found out by a probe */
    int64_t refreshed_ms;
    struct watcher *watcher; /* NULL: never needed */
};

struct upstreams {
    unsigned refs;
    struct loop *loop;
    struct keeper *keeper;
    struct upstream_sink sink;
    struct process_quota quota;
    struct catalog_guard guard;
    struct eras *eras;
    struct list all; /* struct upstream, current ones */
    struct list retired;
    struct map tallies; /* name → struct upstream_tally */
    struct map ledger;  /* our id → struct pending */
    uint64_t next_id, next_generation;
    unsigned processes, links;
    bool is_stopping; /* sessions at servers stay, for the Holdfast that is started next */
    struct deadline_class wait_deadlines; /* 5 s in the queue for a slot */
    struct deadline_class tell_deadlines; /* changes held back */
    struct loop_timer *tick;              /* idle links, retired upstreams, back-off */
    struct loop_task serve; /* gives freed slots to the queue, at the end of the turn */
    bool serve_queued;
    struct map watches;      /* server name → struct watch */
    unsigned watches_all;    /* listeners to every server */
    struct list watch_wants; /* struct watch_want */
    struct loop_task tell_watched;
    bool tell_watched_queued;
};

#define LINK_KEY_WATCH "watch"
/* What our own initialize declares, a probe's among others. */
#define OUR_CAPABILITIES                                                                           \
    "{\"roots\":{\"listChanged\":true},\"sampling\":{},\"elicitation\":{\"form\":{},\"url\":{}}}"
/* The envelope of our own modern requests. */
#define MCP_OUR_ENVELOPE                                                                           \
    "\"_meta\":{\"" MCP_KEY_VERSION "\":\"2026-07-28\",\"" MCP_KEY_CAPABILITIES                    \
    "\":{},\"" MCP_KEY_CLIENT_INFO "\":{\"name\":\"holdfast\",\"version\":\"" HOLDFAST_VERSION     \
    "\"}}"
/* Processes: of one server for one owner (on loopback everybody is one), of one server, in all. */
#define LINK_PER_OWNER 16
#define LINK_PER_UPSTREAM 64
#define LINK_PER_NODE 128
#define LINK_IDLE_MINUTES 30 /* without a call and without a client that is connected */
#define LINK_IDLE_MS (LINK_IDLE_MINUTES * 60 * 1000)
#define LINK_LIGHT_MAX 4096 /* of one upstream that needs no process */
#define LINK_LIGHT_IDLE_MS (24 * 3600 * 1000)
#define LINK_WAIT_MS 5000
#define RETIRE_MS 30000

/* link.c */
struct link *link_new(struct upstream *u, const struct link_identity *who, enum mcp_era era,
                      bool is_probe);
/* fill.c */
void link_fill(struct link *l, const struct link_identity *who);
/* Its env or headers, whichever its server uses. */
const struct config_pair *link_pairs(const struct link *l, size_t *ret_n);
/* link.c again */
void link_up(struct link *l);       /* the transport is there: shakes hands when legacy */
void link_up_later(struct link *l); /* the same at the end of this turn */
/* A link that was opened without a handshake (modern) begins an older session after all, on the
 * same process; its waiters are told when that is open or has failed. */
void link_shake(struct link *l);
void link_opened(struct link *l);
/* Ends it for every waiter and pending; why->code ERR_NONE: we ended it ourselves while idle. */
void link_end(struct link *l, const struct error *why);
/* A client of its session is connected, or (or_expected) was a moment ago. */
bool link_is_attended(const struct link *l, bool or_expected);
void link_forget_session_catalogs(struct link *l);
void link_listen_for_session(struct link *l);
/* Compares the tools of a link that has just opened with the catalog's, where they may differ.  A
 * link that goes on with a session at its server does so after its first answer: until then the
 * server may no longer know the session, and the call would be lost with the list. */
void link_check_tools(struct link *l);
void link_receive(struct link *l, struct pending *about, struct str text);
void pending_fail(struct pending *p, const struct error *err); /* from a transport */
/* " (it sent …)" when something odd came since the request was sent, else "". */
const char *pending_odd(const struct pending *p);
/* past.c */
void past_note(const struct link *l, const struct error *why); /* it ends, for this reason */
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
/* Deletes the session that `resume` is about, best effort; none that was opened with another
 * definition of the server. */
void remote_end_session(struct upstream *u, struct str resume);
/* upstream.c */
void upstreams_unref(struct upstreams *s);
/* false: it is in back-off after failures, or gone from the configuration. */
must_check bool upstream_may_start(struct upstream *u, struct error *err);
void upstream_note_failure(struct upstream *u, const struct error *err);
void upstream_note_success(struct upstream *u);
/* It is up, but its tools cannot be listed: asked for again after the back-off. */
void upstream_tools_unread(struct upstream *u, const struct error *err);
/* These lists (bits) turned out to be old: probed again, now unless that was done a moment ago. */
void upstream_refresh(struct upstream *u, unsigned kinds);
void upstream_tell_rest(struct upstream *u); /* changes that came too soon after the last */
/* health.c */
void tallies_release(struct upstreams *s);
void upstream_answered(struct upstream *u);
void upstream_failed(struct upstream *u, const struct error *err);
void upstream_start_failed(struct upstream *u, const struct error *err);
/* watch.c */
void watches_init(struct upstreams *s);
void watches_release(struct upstreams *s);
bool upstream_is_watched(const struct upstream *u);
void watch_tick(struct upstream *u, int64_t now_ms); /* opens, opens again, ends its watch link */
void watch_stop(struct upstream *u);
/* Asks a modern server to tell of what it announces; p NULL: nobody waits for an end. */
must_check bool link_subscribe(struct link *l, uint64_t id, struct pending *p);
void watch_is_deaf(struct link *l); /* the server has no standalone stream for this link */
/* Behind a list that had to do without it: probed again, less and less often. */
void upstream_retry_later(struct upstream *u, int64_t now_ms);
/* probe.c */
void probe_start(struct upstream *u);
/* What its catalog says of its era, and what has been found out since, for the next start. */
void probe_remember_era(struct upstream *u);
void probe_cancel(struct upstream *u);
/* The probe's own link says that these lists (bits) changed: read once more, told to nobody. */
void probe_notice(struct upstream *u, unsigned kinds);
#define CATALOG_ALL ((1u << CATALOG_KINDS) - 1)
/* The lists, as bits, that a list_changed about `kind` is about. */
unsigned catalog_bits(enum catalog_kind kind);

/* Takes the tools out that the configuration of the server does not show. */
void upstream_filter_tools(struct upstream *u, struct catalog *c);

#endif
