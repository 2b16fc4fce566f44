/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a session or transport by name: first in the cache, then on the lookup lane.  This also
 * resumes sessions after a restart: the lookup loads the row and its links.
 *
 * This is the one place that decides whether a caller of MCP may use a session: its owner may, and
 * whoever has a live share of it that permits use.  A session of another owner is never taken from
 * the cache alone, so the end of a share is effective at the next call, on every node.
 *
 * The reaper runs only periodically, so the store may still hold ended rows.  An expired session or
 * transport reads as missing. */
#include "session/carrier.h"
#include "session/resident.h"
#include "session/session_impl.h"
#include "session/share_store/verbs.h"

#include "base/clock.h"
#include "crypto/hash.h"

#include <stddef.h>
#include <stdlib.h>

#define LOOKUP_BYTES (16u * 1024 * 1024)
#define LOOKUP_TRIES 8 /* lookups of a session that is changed each time meanwhile */

static struct str cache_key(const struct session_query *q, char *room, size_t n)
{
    struct str tenant = q->who->tenant, owner = q->who->owner;
    switch (q->by) {
    case BY_TRANSPORT:
        return sessions_key_in(room, n, 't', tenant, owner,
                               str_n((const char *)q->hash, sizeof(q->hash)), STR_NONE);
    case BY_HANDLE:
        return sessions_key_in(room, n, 'h', tenant, STR_NONE, q->name, STR_NONE);
    case BY_KEY:
    case BY_BINDING: /* looked up by bindings.c */
        break;
    }
    return sessions_key_in(room, n, 'k', tenant, owner, q->carrier, q->name);
}

static bool read_session_and_links(struct session_query *q, struct store *store)
{
    const struct session_row *row = q->session_row;

    if (!row)
        return true;
    const struct principal owner = {.tenant = row->tenant, .owner = row->owner};
    return store_links_of(store, &owner, row->id, q->mem, &q->links, &q->n_links, &q->job.err);
}

/* A session of another owner that is shared with the caller. */
static bool read_shared(struct session_query *q, struct store *store, struct error *err)
{
    struct session_row *row = NULL;
    struct share_row *share = NULL;

    if (!store_shared_session(store, q->who, q->name, false, q->mem, &row, err))
        return false;
    if (!row)
        return true;
    if (!store_share_of(store, q->who, row->id, q->mem, &share, err))
        return false;
    if (share && share->may >= SHARE_USE)
        q->session_row = row;
    else if (share)
        q->denied = DENIED_READ_ONLY;
    return true;
}

static bool read_by_handle(struct session_query *q, struct store *store, struct error *err)
{
    return store_session_by_handle(store, q->who, q->name, q->mem, &q->session_row, err) &&
           (q->session_row || read_shared(q, store, err));
}

/* The carriers of a former owner are bound to the share that handed the session over, which is for
 * another owner. */
static enum session_denied why_over(const struct binding_row *b)
{
    if (str_eq(b->end_reason, STR("handed_over")) ||
        (b->may == SHARE_HAND_OVER && !b->end_reason.p))
        return DENIED_HANDED_OVER;
    return b->end_reason.p ? DENIED_REVOKED : DENIED_EXPIRED;
}

/* A session that was handed over to the caller, perhaps in another client, goes on in this one. */
static bool read_handed_over(struct session_query *q, struct store *store, struct error *err)
{
    if (!store_session_by_id(store, q->who, q->binding_row->session_id, q->mem, &q->session_row,
                             err))
        return false;
    if (q->session_row)
        q->denied = NOT_DENIED;
    return true;
}

static bool read_binding(struct session_query *q, struct store *store, struct error *err)
{
    const struct principal wide = {.tenant = q->who->tenant, .tenant_wide = true};
    struct binding_row *b = NULL;

    if (!store_binding(store, q->who, q->carrier, q->name, q->mem, &b, err))
        return false;
    q->binding_row = b;
    if (!b)
        return true;
    if (b->is_live && b->may >= SHARE_USE)
        return store_session_by_id(store, &wide, b->session_id, q->mem, &q->session_row, err);
    q->denied = b->is_live ? DENIED_READ_ONLY : why_over(b);
    return q->denied != DENIED_HANDED_OVER || read_handed_over(q, store, err);
}

static bool read_by_key(struct session_query *q, struct store *store, struct error *err)
{
    struct str label = q->carrier;

    for (size_t i = 0; label.p && !q->session_row; i++) {
        if (!store_session_by_key(store, q->who, label, q->name, q->mem, &q->session_row, err))
            return false;
        label = q->former ? carrier_former_label(q->former, i) : STR_NONE;
    }
    return q->session_row || !q->or_handle || read_by_handle(q, store, err);
}

/* Runs on the lookup lane. */
static bool run_lookup(struct read_job *job, struct store *store)
{
    struct session_query *q = container_of(job, struct session_query, job);
    struct error *err = &job->err;

    if (q->by == BY_HANDLE)
        return read_by_handle(q, store, err) && read_session_and_links(q, store);
    if (q->by == BY_BINDING)
        return read_binding(q, store, err) && read_session_and_links(q, store);
    if (q->by == BY_KEY)
        return read_by_key(q, store, err) && read_session_and_links(q, store);
    if (!store_transport_get(store, q->who, q->hash, q->mem, &q->transport_row, err))
        return false;
    if (!q->transport_row || !q->transport_row->session_id.p)
        return true;
    return store_session_by_id(store, q->who, q->transport_row->session_id, q->mem, &q->session_row,
                               err) &&
           read_session_and_links(q, store);
}

/* The resident session of the row, with its links.  A session that this process uses is newer than
 * the row. */
static struct session *session_from_row(struct session_query *q)
{
    const struct session_row *row = q->session_row;
    struct session *s = sessions_by_id(q->home, row->tenant, row->id);

    if (s && !str_eq(s->owner, row->owner)) { /* handed over just now, perhaps on another node */
        sessions_handed_over(q->home, row->tenant, row->id, false);
        s = NULL;
    }
    if (s)
        session_ref(s);
    else
        s = session_of_row(q->home, row);
    if (s->links_known)
        return s;
    session_take_row(s, row);
    for (size_t i = 0; i < q->n_links; i++) {
        struct session_link *l = session_add_link(s, q->links[i].server);
        l->stored = q->links[i].writer == q->home->writer;
        l->is_old = !l->stored;
        session_link_take_resume(l, q->links[i].remote_id);
    }
    session_links_are_known(s);
    return s;
}

static bool has_live_session(const struct transport *t)
{
    return t->session && !session_is_over(t->session, clock_life_ms());
}

/* The transport is resident: another call used it during the lookup, or it had no session here and
 * another node has linked one. */
static void take_resident_transport(struct session_query *q, struct transport *t)
{
    transport_ref(t);
    q->transport = t;
    if (q->session && !has_live_session(t)) {
        transport_link(t, q->session);
        t->link_stored = true;
        q->is_linked = true;
    } else if (t->session) {
        session_ref(t->session);
        session_unref(q->session);
        q->session = t->session;
    }
}

static void take_transport(struct session_query *q)
{
    char room[KEY_ROOM];
    struct transport *t = map_get(&q->home->names, cache_key(q, room, sizeof(room)));
    if (t) {
        take_resident_transport(q, t);
    } else {
        t = transport_new(q->home, q->transport_row);
        if (q->session) {
            transport_link(t, q->session);
            t->link_stored = true;
        }
        q->transport = t;
    }
}

/* The store does not answer, so the resident transport is used. */
static bool do_without_store(struct session_query *q)
{
    char room[KEY_ROOM];
    struct transport *t =
        q->by == BY_TRANSPORT ? map_get(&q->home->names, cache_key(q, room, sizeof(room))) : NULL;
    if (t)
        take_resident_transport(q, t);
    return t != NULL;
}

/* Another owner's session and one without its links are misses. */
static bool is_usable(const struct session_query *q, const struct session *s)
{
    return s->links_known && str_eq(s->owner, q->who->owner);
}

/* The session is resident: another call created it during the lookup. */
static void take_resident(struct session_query *q)
{
    char room[KEY_ROOM];
    struct session *s = map_get(&q->home->names, cache_key(q, room, sizeof(room)));

    if (!s || !is_usable(q, s))
        return;
    session_ref(s);
    q->session = s;
}

/* An ended session or transport reads as missing. */
static void drop_what_is_over(struct session_query *q, int64_t now)
{
    if (q->session && session_is_over(q->session, now)) {
        q->is_over = true;
        session_forget(q->session);
        session_unref(q->session);
        q->session = NULL;
    }
    if (q->transport && transport_is_over(q->transport, now)) {
        transport_forget(q->transport);
        transport_unref(q->transport);
        q->transport = NULL;
    }
}

static void lookup_done(struct read_job *job);

/* Asks the store.  Returns false when the lane is full. */
static bool look_up(struct session_query *q)
{
    q->session_row = NULL;
    q->binding_row = NULL;
    q->transport_row = NULL;
    q->denied = NOT_DENIED;
    q->n_links = 0;
    q->since = sessions_changes(q->home);
    q->bindings_since = bindings_changes(q->home->bindings);
    q->job = (struct read_job){.run = run_lookup, .done = lookup_done};
    return lane_lookup(q->home->lanes, &q->job) ||
           error_set(&q->job.err, ERR_UNAVAILABLE,
                     "too many lookups are waiting; try again shortly");
}

/* The session ended or got other credentials after its row was read, while it was not resident. */
static bool is_outdated(const struct session_query *q)
{
    const struct session_row *row = q->session_row;
    const struct session *s;

    if (!row || !sessions_changed_since(q->home, row->id, q->since))
        return false;
    s = sessions_by_id(q->home, row->tenant, row->id);
    return !s || !s->links_known;
}

/* Returns false when the lookup is over; job.ok then says how it ended. */
static bool look_again(struct session_query *q)
{
    if (++q->tries == LOOKUP_TRIES) {
        q->job.ok = error_set(&q->job.err, ERR_UNAVAILABLE,
                              "the session is changed too often; try again shortly");
        return false;
    }
    arena_reset(q->mem);
    return look_up(q);
}

static void take_binding(struct session_query *q)
{
    if (q->binding_row && q->binding_row->share_id.n < sizeof(q->share_id))
        memcpy(q->share_id, q->binding_row->share_id.p, q->binding_row->share_id.n);
    else if (!q->binding_row)
        bindings_none(q->home->bindings, q->who->tenant, q->who->owner, q->carrier, q->name,
                      q->bindings_since);
}

static void lookup_done(struct read_job *job)
{
    struct session_query *q = container_of(job, struct session_query, job);

    if (job->ok && is_outdated(q) && look_again(q))
        return;
    q->ok = job->ok || do_without_store(q);
    if (job->ok && q->session_row && q->session_row->status != SESSION_EXPIRED &&
        q->session_row->status != SESSION_TERMINATED)
        q->session = session_from_row(q);
    else if (job->ok && q->by != BY_TRANSPORT && q->by != BY_BINDING)
        take_resident(q);
    if (job->ok && q->by == BY_BINDING)
        take_binding(q);
    q->is_over = job->ok && q->session_row && !q->session;
    if (job->ok && q->transport_row && !q->transport_row->ended_ms)
        take_transport(q);
    drop_what_is_over(q, clock_life_ms());
    arena_free(q->mem);
    q->mem = NULL;
    q->done(q);
}

/* The cache entry of that name.  An ended entry is dropped and looked up again, because the store
 * may have a later expiry. */
static void *resident(struct session_query *q, struct str key, int64_t now)
{
    void *found = map_get(&q->home->names, key);

    if (!found || (q->by != BY_TRANSPORT && !is_usable(q, found)))
        return NULL;
    if (q->by == BY_TRANSPORT ? !transport_is_over(found, now) : !session_is_over(found, now))
        return found;
    if (q->by == BY_TRANSPORT) {
        transport_ref(found);
        transport_forget(found);
        transport_unref(found);
    } else {
        session_ref(found);
        session_forget(found);
        session_unref(found);
    }
    return NULL;
}

/* Another node may have linked the transport to a session, so the cache is not sufficient. */
static bool may_be_linked_elsewhere(const struct session_query *q, const void *found)
{
    return q->home->is_shared && q->by == BY_TRANSPORT && found && !has_live_session(found);
}

void session_query_init(struct session_query *q)
{
    memset(q, 0, offsetof(struct session_query, job));
}

bool session_find(struct sessions *home, struct session_query *q)
{
    char room[KEY_ROOM];
    int64_t now = clock_life_ms();

    q->home = home;
    q->session = NULL;
    q->transport = NULL;
    q->session_row = NULL;
    q->transport_row = NULL;
    q->n_links = 0;
    q->is_linked = false;
    q->denied = NOT_DENIED;
    q->share_id[0] = '\0';
    q->ok = true;
    if (q->by == BY_TRANSPORT)
        token_hash(q->name, q->hash);
    void *found = q->by == BY_BINDING ? NULL : resident(q, cache_key(q, room, sizeof(room)), now);
    if (!found && q->or_handle)
        found = resident(
            q,
            sessions_key_in(room, sizeof(room), 'h', q->who->tenant, STR_NONE, q->name, STR_NONE),
            now);
    if (may_be_linked_elsewhere(q, found))
        found = NULL;
    if (found && q->by == BY_TRANSPORT) {
        q->transport = found;
        transport_ref(q->transport);
        if (q->transport->session) {
            q->session = q->transport->session;
            session_ref(q->session);
        }
    } else if (found) {
        q->session = found;
        session_ref(q->session);
    } else {
        q->mem = arena_new(LOOKUP_BYTES);
        q->tries = 0;
        q->ok = false;
        if (look_up(q))
            return false;
        arena_free(q->mem);
        q->mem = NULL;
    }
    drop_what_is_over(q, now);
    return true;
}
