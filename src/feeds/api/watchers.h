/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers: the open connections that get live events.  They count against three limits (of a key or
 * user, of a tenant, of the node), and end with their credential and with the process. */
#ifndef HOLDFAST_FEEDS_API_WATCHERS_H
#define HOLDFAST_FEEDS_API_WATCHERS_H

#include "feeds/feed.h"
#include "front/front.h"
#include "identity/identity.h"
#include "io/deadline.h"

struct watchers_config {
    struct loop *loop;
    struct front *front;
    struct feed *feed;
    struct deadline_class *quiet; /* silence after which a watcher gets a sign of life */
};
struct watchers;
struct watchers *watchers_new(const struct watchers_config *config) must_check;
/* Ends every watcher, and refuses new ones: the process stops.  NULL is fine. */
void watchers_stop(struct watchers *all);
/* After the last watcher is closed.  NULL is fine. */
void watchers_free(struct watchers *all);
const struct watchers_config *watchers_config(const struct watchers *all);
/* Memory that a watcher fills and sends before it returns to the loop, and memory for one text.  The
 * caller resets both. */
struct buf *watchers_scratch(struct watchers *all);
struct buf *watchers_text(struct watchers *all);

enum watcher_kind { WATCHER_SSE, WATCHER_WEBSOCKET };
enum watcher_end { WATCHER_REVOKED, WATCHER_STOPPING };
/* Embedded in the connection, zeroed. */
struct watcher {
    /* The watcher must be closed: its credential ended, or the process stops. */
    void (*on_end)(struct watcher *w, enum watcher_end why);
    /* private */
    struct watchers *home; /* NULL: not open */
    enum watcher_kind kind;
    struct list node;
    struct identity_watch watch;
    char *names; /* of tenant and owner */
    struct str tenant, owner;
    bool is_local;
};
/* Counts the watcher.  ERR_LIMIT: a limit is reached; ERR_UNAVAILABLE: the process stops. */
must_check bool watcher_open(struct watchers *all, struct watcher *w, enum watcher_kind kind,
                             const struct caller *c, struct error *err);
/* Also for a watcher that is not open. */
void watcher_close(struct watcher *w);

/* A watcher was told to resync: "slow", "removed" or "lost". */
void watchers_count_resync(const char *reason);

#endif
