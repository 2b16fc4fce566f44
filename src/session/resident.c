/* SPDX-License-Identifier: Apache-2.0 */
/* Resident sessions by their rows, and their snapshots; see resident.h. */
#include "session/resident.h"
#include "session/session_impl.h"

#include "base/clock.h"

#include <stdlib.h>

#define ROW_BYTES (1024 * 1024)

struct session *sessions_known(struct sessions *home, const struct principal *who, struct str name,
                               bool by_id)
{
    char room[KEY_ROOM];
    struct str key = sessions_key_in(room, sizeof(room), by_id ? 'i' : 'h', who->tenant, STR_NONE,
                                     name, STR_NONE);
    struct session *s = key.p ? map_get(&home->names, key) : NULL;

    if (!s || !s->stored || !(who->tenant_wide || str_eq(s->owner, who->owner)) ||
        session_is_over(s, clock_life_ms()))
        return NULL;
    if (s->refs == 0) {
        list_remove(&s->lru);
        list_push(s->links_known ? &home->idle_sessions : &home->idle_rows, &s->lru);
    }
    return s;
}

/* A last use in the future was written with a wrong clock, and counts as now.  The reaper corrects
 * the row later; until then this keeps the session from living longer. */
static void take_times(struct session *s, const struct session_row *row)
{
    int64_t ahead = row->last_activity_ms - clock_life_ms();

    if (ahead < 0)
        ahead = 0;
    s->created_ms = row->created_ms - ahead;
    s->last_used_ms = row->last_activity_ms - ahead;
    s->expires_ms = row->expires_ms ? row->expires_ms - ahead : 0;
    s->ttl_ms = row->ttl_ms;
}

void session_take_row(struct session *s, const struct session_row *row)
{
    s->provisional = row->provisional;
    s->counted = row->counted;
    s->has_core = row->core_session_id.n > 0;
    if (!str_eq(s->sealed_auth, row->sealed_auth))
        session_take_sealed(s, row->sealed_auth);
    if (!str_eq(s->toolsets, row->toolsets))
        session_take_toolsets(s, row->toolsets);
    if (!str_eq(s->setup, row->setup))
        session_take_setup(s, row->setup);
    take_times(s, row);
}

struct session *session_of_row(struct sessions *home, const struct session_row *row)
{
    struct session *s = xcalloc(1, sizeof(*s));

    s->home = home;
    s->refs = 1;
    s->mem = session_arena(row->tenant, row->owner, row->carrier_key, row->client_name);
    list_init(&s->lru);
    s->id = arena_dup(s->mem, row->id);
    s->handle = arena_dup(s->mem, row->handle);
    s->tenant = arena_dup(s->mem, row->tenant);
    s->owner = arena_dup(s->mem, row->owner);
    s->carrier = arena_dup(s->mem, row->carrier);
    s->carrier_key = arena_dup(s->mem, row->carrier_key);
    s->client_name = arena_dup(s->mem, row->client_name);
    s->client_version = arena_dup(s->mem, row->client_version);
    s->lineage = arena_dup(s->mem, row->lineage);
    s->client_type = client_type_of(s->client_name);
    s->origin = row->origin;
    s->stored = true;
    session_load_context(s, row->sealed_context);
    session_take_row(s, row);
    session_enter_cache(s);
    return s;
}

/* The handle of a session that is over may name a new session. */
static void forget_former(struct sessions *home, const struct session_row *row)
{
    char room[KEY_ROOM];
    struct str key =
        sessions_key_in(room, sizeof(room), 'h', row->tenant, STR_NONE, row->handle, STR_NONE);
    struct session *former = key.p ? map_get(&home->names, key) : NULL;

    if (!former)
        return;
    session_ref(former);
    session_forget(former);
    session_unref(former);
}

struct session *sessions_know_row(struct sessions *home, const struct session_row *row,
                                  uint64_t since)
{
    struct session *s = sessions_by_id(home, row->tenant, row->id);

    if (!session_row_is_live(row, clock_life_ms()) || sessions_changed_since(home, row->id, since))
        return NULL;
    if (s) {
        if (!s->links_known)
            session_take_row(s, row);
        return s;
    }
    forget_former(home, row);
    if (!sessions_make_room(home))
        return NULL;
    s = session_of_row(home, row);
    session_unref(s);
    return s;
}

/* Snapshots. */

struct session_row session_row_dup(const struct session_row *row, struct arena *mem)
{
    struct session_row copy = *row;
    struct str *const spans[] = {
        &copy.id,
        &copy.handle,
        &copy.tenant,
        &copy.owner,
        &copy.user_id,
        &copy.edge_mcp_id,
        &copy.client_name,
        &copy.client_type,
        &copy.client_version,
        &copy.carrier,
        &copy.carrier_key,
        &copy.core_session_id,
        &copy.context_id,
        &copy.sealed_auth,
        &copy.sealed_context,
        &copy.toolsets,
        &copy.setup,
        &copy.lineage,
        &copy.connection_metadata,
        &copy.termination_reason,
    };
    for (size_t i = 0; i < countof(spans); i++)
        *spans[i] = arena_dup(mem, *spans[i]);
    return copy;
}

void session_drop_snapshot(struct session *s)
{
    struct session_snapshot *k = s->snapshot;

    if (!k)
        return;
    s->snapshot = NULL;
    s->home->snapshot_bytes -= k->bytes;
    list_remove(&k->node);
    buf_release(&k->json);
    arena_free(k->mem);
    free(k);
}

void snapshot_used(struct session_snapshot *k)
{
    struct sessions *home = k->of->home;
    size_t bytes = sizeof(*k) + arena_used(k->mem) + k->json.n;

    home->snapshot_bytes += bytes - k->bytes;
    k->bytes = bytes;
    list_remove(&k->node);
    list_push(&home->snapshots, &k->node);
    while (home->snapshot_bytes > home->max_snapshot_bytes) {
        struct list *oldest = list_first(&home->snapshots);
        if (oldest == &k->node) /* this one is in use */
            return;
        session_drop_snapshot(list_entry(oldest, struct session_snapshot, node)->of);
    }
}

struct session_snapshot *session_keep_snapshot(struct session *s, const struct session_row *row,
                                               uint64_t stamp)
{
    struct session_snapshot *k = xcalloc(1, sizeof(*k));

    session_drop_snapshot(s);
    k->of = s;
    k->mem = arena_new_for(ROW_BYTES, 512 + row->connection_metadata.n, 20);
    k->row = session_row_dup(row, k->mem);
    k->stamp = stamp;
    k->read_ms = clock_mono_ms();
    buf_init(&k->json, ROW_BYTES);
    list_init(&k->node);
    s->snapshot = k;
    snapshot_used(k);
    return k;
}

size_t sessions_snapshot_bytes(const struct sessions *s)
{
    return s->snapshot_bytes;
}
