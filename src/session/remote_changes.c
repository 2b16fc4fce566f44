/* SPDX-License-Identifier: Apache-2.0 */
/* The list of sessions whose rows are to be read again, and one query for them at a time, on the
 * lookup lane.  If the store does not answer, the sessions stay on the list until the next poll.  On
 * the node that made the change, the row holds nothing new.
 *
 * This process may change a session while its row is read.  Toolsets even change in memory before
 * they are stored.  Such a row may lack the change, so it is read again after the next poll. */
#include "session/remote_changes.h"

#include "base/log.h"
#include "crypto/hash.h"
#include "session/setup.h"

#include <stdlib.h>

#define PAGE 200
#define SESSION_CARRIER_MAX 1024 /* bytes */
#define PAGE_BYTES (1u << 20)

struct remote_changes {
    struct remote_changes_config config;
    struct read_job job;
    bool busy, stopped;
    bool failing; /* already logged */
    struct arena *mem;
    struct session **late; /* references; their rows are to be read again */
    size_t n_late, room_late;
    struct session *reading[PAGE];  /* references; read by the running query */
    struct session_row *rows[PAGE]; /* of these; NULL: the row is gone */
    size_t n_reading;
    uint64_t moves, changes; /* sessions_toolset_moves(), sessions_changes() before the query */
};

static bool run(struct read_job *job, struct store *store)
{
    struct remote_changes *f = container_of(job, struct remote_changes, job);

    for (size_t i = 0; i < f->n_reading; i++) {
        const struct session *s = f->reading[i];
        const struct principal who = {.tenant = s->tenant, .role = ROLE_ADMIN, .tenant_wide = true};
        f->rows[i] = NULL;
        if (!store_session_by_id(store, &who, s->id, f->mem, &f->rows[i], &job->err))
            return false;
    }
    return true;
}

static void read_later(struct remote_changes *f, struct session *s)
{
    for (size_t i = 0; i < f->n_late; i++)
        if (f->late[i] == s)
            return;
    if (f->n_late == f->room_late) {
        f->room_late = f->room_late ? 2 * f->room_late : 16;
        f->late = xrealloc(f->late, f->room_late * sizeof(struct session *));
    }
    session_ref(s);
    f->late[f->n_late++] = s;
}

static void take_row(struct remote_changes *f, struct session *s, const struct session_row *row)
{
    struct str sealed = row ? row->sealed_auth : STR_NONE;

    if (s->ended)
        return;
    if (row && row->owner.p && !str_eq(s->owner, row->owner)) {
        sessions_handed_over(f->config.sessions, row->tenant, row->id, false);
        return;
    }
    if (session_toolsets_moved(s, f->moves) ||
        sessions_changed_since(f->config.sessions, s->id, f->changes)) {
        read_later(f, s);
        return;
    }
    if (!str_eq(s->sealed_auth, sealed))
        sessions_sealed(f->config.sessions, s->tenant, s->id, sealed);
    if (row && !str_eq(s->setup, row->setup))
        session_take_setup(s, row->setup);
    if (!row || str_eq(s->toolsets, row->toolsets))
        return;
    session_take_toolsets(s, row->toolsets);
    if (f->config.toolsets_changed)
        f->config.toolsets_changed(f->config.arg, s);
}

static void done(struct read_job *job)
{
    struct remote_changes *f = container_of(job, struct remote_changes, job);

    f->busy = false;
    if (!job->ok && !f->failing)
        log_warn("what other nodes changed in sessions is not known just now",
                 LZ("why", job->err.text));
    f->failing = !job->ok;
    for (size_t i = 0; i < f->n_reading; i++) {
        struct session *s = f->reading[i];
        if (!job->ok)
            read_later(f, s);
        else if (!f->stopped)
            take_row(f, s, f->rows[i]);
        session_unref(s);
    }
    f->n_reading = 0;
    arena_reset(f->mem);
}

static void on_polled(void *arg)
{
    struct remote_changes *f = arg;
    size_t n = f->n_late < PAGE ? f->n_late : PAGE;

    if (f->busy || f->stopped || !n)
        return;
    memcpy(f->reading, f->late, n * sizeof(struct session *));
    f->n_reading = n;
    f->moves = sessions_toolset_moves(f->config.sessions);
    f->changes = sessions_changes(f->config.sessions);
    f->job = (struct read_job){.run = run, .done = done};
    f->busy = lane_lookup(f->config.lanes, &f->job);
    if (!f->busy) {
        f->n_reading = 0;
        return;
    }
    f->n_late -= n;
    memmove(f->late, f->late + n, f->n_late * sizeof(struct session *));
}

static void take_transport(struct remote_changes *f, const struct change_row *change)
{
    struct str owner = change->name, hex = str_split(&owner, ' ');
    uint8_t hash[32];
    struct transport *t = NULL;

    if (owner.p && hex_decode(hex, hash, sizeof(hash)))
        t = sessions_transport(f->config.sessions, change->tenant, owner, hash);
    if (t && f->config.transport_ended)
        f->config.transport_ended(f->config.arg, t);
}

static void take_end(struct remote_changes *f, const struct change_row *change)
{
    sessions_ended(f->config.sessions, change->tenant, change->name);
    if (f->config.ended)
        f->config.ended(f->config.arg, change->tenant, change->name);
}

static void take_binding(struct remote_changes *f, const struct change_row *change)
{
    struct str carrier = change->name, key = str_split(&carrier, ' '), owner = carrier;
    uint8_t bytes[2][SESSION_CARRIER_MAX];

    carrier = owner.p ? str_split(&owner, ' ') : STR_NONE;
    if (owner.p && key.n <= 2 * sizeof(bytes[0]) && carrier.n <= 2 * sizeof(bytes[1]) &&
        hex_decode(key, bytes[0], key.n / 2) && hex_decode(carrier, bytes[1], carrier.n / 2))
        sessions_bound(f->config.sessions, change->tenant, owner,
                       str_n((const char *)bytes[1], carrier.n / 2),
                       str_n((const char *)bytes[0], key.n / 2));
    else
        sessions_recheck_bindings(f->config.sessions);
}

/* Credentials, toolsets, setup, owner.  Of a session that MCP does not use only links with its old credentials
 * matter; its next lookup reads the new row. */
static void take_change(struct remote_changes *f, const struct change_row *change)
{
    struct session *s = sessions_by_id(f->config.sessions, change->tenant, change->name);

    if (s && s->links_known) {
        read_later(f, s);
        return;
    }
    if (s)
        sessions_ended(f->config.sessions, change->tenant, change->name);
    if (change->kind == CHANGE_SESSION_SEALED)
        sessions_sealed(f->config.sessions, change->tenant, change->name, STR_NONE);
    else
        sessions_changed(f->config.sessions, change->name);
}

static void on_change(void *arg, const struct change_row *change)
{
    struct remote_changes *f = arg;

    if (f->stopped)
        return;
    if (change->kind == CHANGE_SESSION_SEALED || change->kind == CHANGE_SESSION_TOOLSETS ||
        change->kind == CHANGE_SESSION_SETUP || change->kind == CHANGE_SESSION_SHARED) {
        if (change->kind == CHANGE_SESSION_SHARED)
            sessions_recheck_bindings(f->config.sessions);
        take_change(f, change);
    } else if (change->kind == CHANGE_CARRIER_BOUND)
        take_binding(f, change);
    else if (change->kind == CHANGE_TRANSPORT_ENDED)
        take_transport(f, change);
    else if (change->kind == CHANGE_SESSION_ENDED)
        take_end(f, change);
}

struct remote_changes *remote_changes_new(const struct remote_changes_config *config)
{
    struct remote_changes *f = xcalloc(1, sizeof(*f));
    struct change_listener listener = {.take = on_change, .polled = on_polled, .arg = f};

    f->config = *config;
    f->mem = arena_new(PAGE_BYTES);
    change_poller_add(config->poller, &listener);
    return f;
}

void remote_changes_stop(struct remote_changes *f)
{
    if (f)
        f->stopped = true;
}

void remote_changes_free(struct remote_changes *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n_late; i++)
        session_unref(f->late[i]);
    for (size_t i = 0; i < f->n_reading; i++)
        session_unref(f->reading[i]);
    free(f->late);
    arena_free(f->mem);
    free(f);
}
