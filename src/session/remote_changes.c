/* SPDX-License-Identifier: Apache-2.0 */
/* One query at a time, on the lookup lane.  If the store does not answer, the position stays, so no
 * change is skipped.  If a change says that credentials or toolsets of a session changed, the same
 * job reads its row.  On the node that made the change, the row holds nothing new.
 *
 * Toolsets change in memory before they are stored.  A row that was read before such a change may
 * lack it, so it is read again with the next query. */
#include "session/remote_changes.h"

#include "base/log.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define PAGE 200

struct remote_changes {
    struct remote_changes_config config;
    struct loop_timer *timer;
    struct read_job job;
    bool busy, again;
    bool failing; /* already logged */
    struct arena *mem;
    struct change_row *rows;
    struct session_row **found; /* the row of the session of each change, or NULL */
    size_t n;
    struct session **late; /* references; their toolsets are to be read again */
    size_t n_late, room_late;
    size_t n_again; /* the first n_again of `late` are read by the running query */
    struct session_row **found_again;
    uint64_t moves; /* sessions_toolset_moves() when the query started */
};

bool remote_changes_position(struct store *store, int64_t *ret, struct error *err)
{
    struct arena *mem = arena_new(1 << 20);
    struct change_row *rows = NULL;
    size_t n = 0;
    bool ok = store_changes(store, -1, 1, mem, &rows, &n, err);
    if (ok)
        *ret = n ? rows[0].id : 0;
    arena_free(mem);
    return ok;
}

static bool read_session(struct remote_changes *f, struct store *store, struct str tenant,
                         struct str id, struct session_row **ret, struct error *err)
{
    const struct principal who = {.tenant = tenant, .role = ROLE_ADMIN, .tenant_wide = true};

    return store_session_by_id(store, &who, id, f->mem, ret, err);
}

static bool run(struct read_job *job, struct store *store)
{
    struct remote_changes *f = container_of(job, struct remote_changes, job);
    bool ok = store_changes(store, f->config.after, PAGE, f->mem, &f->rows, &f->n, &job->err);

    f->found = arena_zalloc(f->mem, (PAGE + 1) * sizeof(struct session_row *));
    f->found_again = arena_zalloc(f->mem, (PAGE + 1) * sizeof(struct session_row *));
    for (size_t i = 0; ok && i < f->n; i++)
        if (f->rows[i].kind == CHANGE_SESSION_SEALED || f->rows[i].kind == CHANGE_SESSION_TOOLSETS)
            ok =
                read_session(f, store, f->rows[i].tenant, f->rows[i].name, &f->found[i], &job->err);
    for (size_t i = 0; ok && i < f->n_again; i++)
        ok = read_session(f, store, f->late[i]->tenant, f->late[i]->id, &f->found_again[i],
                          &job->err);
    return ok;
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

static void read_later(struct remote_changes *f, struct session *s)
{
    for (size_t i = f->n_again; i < f->n_late; i++)
        if (f->late[i] == s)
            return;
    if (f->n_late == f->room_late) {
        f->room_late = f->room_late ? 2 * f->room_late : 16;
        f->late = xrealloc(f->late, f->room_late * sizeof(struct session *));
    }
    session_ref(s);
    f->late[f->n_late++] = s;
}

static void take_toolsets(struct remote_changes *f, struct session *s,
                          const struct session_row *row)
{
    if (!s || !row)
        return;
    if (session_toolsets_moved(s, f->moves)) {
        read_later(f, s);
        return;
    }
    if (str_eq(s->toolsets, row->toolsets))
        return;
    session_take_toolsets(s, row->toolsets);
    if (f->config.toolsets_changed)
        f->config.toolsets_changed(f->config.arg, s);
}

/* Applies the rows that were read again.  Sessions that changed once more are at the end of the
 * list. */
static void take_late(struct remote_changes *f)
{
    for (size_t i = 0; i < f->n_again; i++) {
        struct session *s = f->late[i];
        take_toolsets(f, s, f->found_again[i]);
        session_unref(s);
    }
    f->n_late -= f->n_again;
    memmove(f->late, f->late + f->n_again, f->n_late * sizeof(struct session *));
    f->n_again = 0;
}

static void take(struct remote_changes *f, const struct change_row *change,
                 const struct session_row *row)
{
    f->config.after = change->id;
    if (change->kind == CHANGE_SESSION_SEALED)
        sessions_sealed(f->config.sessions, change->tenant, change->name,
                        row ? row->sealed_auth : STR_NONE);
    if (change->kind == CHANGE_SESSION_TOOLSETS)
        take_toolsets(f, sessions_by_id(f->config.sessions, change->tenant, change->name), row);
    if (change->kind == CHANGE_TRANSPORT_ENDED)
        take_transport(f, change);
    if (change->kind != CHANGE_SESSION_ENDED)
        return;
    sessions_ended(f->config.sessions, change->tenant, change->name);
    if (f->config.ended)
        f->config.ended(f->config.arg, change->tenant, change->name);
}

static void ask(struct remote_changes *f);

static void done(struct read_job *job)
{
    struct remote_changes *f = container_of(job, struct remote_changes, job);
    bool more = job->ok && f->n == PAGE;
    f->busy = false;
    if (!job->ok && !f->failing)
        log_warn("what other nodes ended is not known just now", LZ("why", job->err.text));
    f->failing = !job->ok;
    for (size_t i = 0; job->ok && i < f->n; i++)
        take(f, &f->rows[i], f->found[i]);
    if (job->ok && f->n_again)
        take_late(f);
    arena_reset(f->mem);
    if (more || f->again)
        ask(f);
}

static void ask(struct remote_changes *f)
{
    if (f->busy || !f->timer)
        return;
    f->again = false;
    f->n = 0;
    f->n_again = f->n_late < PAGE ? f->n_late : PAGE;
    f->moves = sessions_toolset_moves(f->config.sessions);
    f->job = (struct read_job){.run = run, .done = done};
    f->busy = lane_lookup(f->config.lanes, &f->job);
}

static void on_timer(void *arg)
{
    ask(arg);
}

struct remote_changes *remote_changes_new(const struct remote_changes_config *config)
{
    struct remote_changes *f = xcalloc(1, sizeof(*f));
    f->config = *config;
    f->mem = arena_new(1 << 20);
    f->timer = loop_timer_new(config->loop, on_timer, f);
    loop_timer_start(f->timer, REMOTE_CHANGES_MS, REMOTE_CHANGES_MS);
    return f;
}

/* The running query may have read before the change. */
void remote_changes_nudge(struct remote_changes *f)
{
    f->again = f->busy;
    ask(f);
}

void remote_changes_stop(struct remote_changes *f)
{
    if (!f)
        return;
    loop_timer_free(f->timer);
    f->timer = NULL;
}

void remote_changes_free(struct remote_changes *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n_late; i++)
        session_unref(f->late[i]);
    free(f->late);
    arena_free(f->mem);
    free(f);
}
