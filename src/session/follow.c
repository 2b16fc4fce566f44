/* SPDX-License-Identifier: Apache-2.0 */
/* One question at a time, on the lookup lane.  What is asked for stays where it was when the store
 * does not answer, so nothing is passed over.  Of a session with other credentials the row is read
 * in the same go: who has made the change knows it already, and finds nothing new there. */
#include "session/follow.h"

#include "base/log.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define PAGE 200

struct follow {
    struct follow_config config;
    struct loop_timer *timer;
    struct read_job job;
    bool busy, again;
    bool failing; /* said already */
    struct arena *mem;
    struct change_row *rows;
    struct str *sealed; /* for each of them that has other credentials: those; absent: none */
    size_t n;
};

bool follow_position(struct store *store, int64_t *ret, struct error *err)
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

static bool read_sealed(struct follow *f, struct store *store, const struct change_row *change,
                        struct str *ret, struct error *err)
{
    const struct principal who = {
        .tenant = change->tenant, .role = ROLE_ADMIN, .tenant_wide = true};
    struct session_row *row = NULL;

    if (!store_session_by_id(store, &who, change->name, f->mem, &row, err))
        return false;
    *ret = row ? row->sealed_auth : STR_NONE;
    return true;
}

static bool run(struct read_job *job, struct store *store)
{
    struct follow *f = container_of(job, struct follow, job);
    bool ok = store_changes(store, f->config.after, PAGE, f->mem, &f->rows, &f->n, &job->err);

    f->sealed = arena_zalloc(f->mem, (PAGE + 1) * sizeof(*f->sealed));
    for (size_t i = 0; ok && i < f->n; i++)
        if (f->rows[i].kind == CHANGE_SESSION_SEALED)
            ok = read_sealed(f, store, &f->rows[i], &f->sealed[i], &job->err);
    return ok;
}

static void take_transport(struct follow *f, const struct change_row *change)
{
    struct str owner = change->name, hex = str_split(&owner, ' ');
    uint8_t hash[32];
    struct transport *t = NULL;

    if (owner.p && hex_decode(hex, hash, sizeof(hash)))
        t = sessions_transport(f->config.sessions, change->tenant, owner, hash);
    if (t && f->config.transport_ended)
        f->config.transport_ended(f->config.arg, t);
}

static void take(struct follow *f, const struct change_row *change, struct str sealed)
{
    f->config.after = change->id;
    if (change->kind == CHANGE_SESSION_SEALED)
        sessions_sealed(f->config.sessions, change->tenant, change->name, sealed);
    if (change->kind == CHANGE_TRANSPORT_ENDED)
        take_transport(f, change);
    if (change->kind != CHANGE_SESSION_ENDED)
        return;
    sessions_ended(f->config.sessions, change->tenant, change->name);
    if (f->config.ended)
        f->config.ended(f->config.arg, change->tenant, change->name);
}

static void ask(struct follow *f);

static void done(struct read_job *job)
{
    struct follow *f = container_of(job, struct follow, job);
    bool more = job->ok && f->n == PAGE;
    f->busy = false;
    if (!job->ok && !f->failing)
        log_warn("what other nodes ended is not known just now", LZ("why", job->err.text));
    f->failing = !job->ok;
    for (size_t i = 0; job->ok && i < f->n; i++)
        take(f, &f->rows[i], f->sealed[i]);
    arena_reset(f->mem);
    if (more || f->again)
        ask(f);
}

static void ask(struct follow *f)
{
    if (f->busy || !f->timer)
        return;
    f->again = false;
    f->n = 0;
    f->job = (struct read_job){.run = run, .done = done};
    f->busy = lane_lookup(f->config.lanes, &f->job);
}

static void on_timer(void *arg)
{
    ask(arg);
}

struct follow *follow_new(const struct follow_config *config)
{
    struct follow *f = xcalloc(1, sizeof(*f));
    f->config = *config;
    f->mem = arena_new(1 << 20);
    f->timer = loop_timer_new(config->loop, on_timer, f);
    loop_timer_start(f->timer, FOLLOW_MS, FOLLOW_MS);
    return f;
}

/* What is under way may have been answered before the change. */
void follow_nudge(struct follow *f)
{
    f->again = f->busy;
    ask(f);
}

void follow_stop(struct follow *f)
{
    if (!f)
        return;
    loop_timer_free(f->timer);
    f->timer = NULL;
}

void follow_free(struct follow *f)
{
    if (!f)
        return;
    arena_free(f->mem);
    free(f);
}
