/* SPDX-License-Identifier: Apache-2.0 */
/* Polls the store for keys and sign-ins that other processes have revoked; they take effect here
 * within a second.  (session/remote_changes.c polls for ended sessions.)  The polls run on the
 * lookup lane, one at a time. */
#include "identity/identity_impl.h"

#include "base/log.h"

#include <stdlib.h>

#define PAGE STORE_PAGE_MAX

struct changes {
    struct identity *id;
    struct loop_timer *timer;
    struct read_job job;
    struct arena *mem;
    struct change_row *rows;
    size_t n;
    int64_t after; /* -1: the position to start from is not read yet */
    bool asking, said;
    bool again; /* the running query may have started before a change */
};

static bool run(struct read_job *job, struct store *store)
{
    struct changes *c = container_of(job, struct changes, job);
    return store_changes(store, c->after, c->after < 0 ? 1 : PAGE, c->mem, &c->rows, &c->n,
                         &job->err);
}

static void apply(struct changes *c, const struct change_row *row)
{
    if (row->kind == CHANGE_KEY_REVOKED)
        identity_revoked(c->id, arena_printf(c->mem, "key:%.*s", STR_ARG(row->name)));
    else if (row->kind == CHANGE_LOGIN_ENDED)
        identity_revoked(c->id, arena_printf(c->mem, "session:%.*s", STR_ARG(row->name)));
    else if (row->kind == CHANGE_USER_CHANGED)
        identity_user_changed(c->id, row->name);
}

static void take(struct changes *c)
{
    if (c->after < 0) {
        c->after = c->n ? c->rows[0].id : 0;
        return;
    }
    for (size_t i = 0; i < c->n; i++) {
        apply(c, &c->rows[i]);
        c->after = c->rows[i].id;
    }
}

static void done(struct read_job *job)
{
    struct changes *c = container_of(job, struct changes, job);
    bool is_full = job->ok && c->n == PAGE && c->after >= 0;

    c->asking = false;
    if (job->ok)
        take(c);
    else if (!c->said)
        log_warn("what other processes revoke is not heard of for now", LZ("why", job->err.text));
    c->said = !job->ok;
    arena_free(c->mem);
    c->mem = NULL;
    if (c->timer)
        loop_timer_start(c->timer, is_full || c->again ? 1 : IDENTITY_CHANGES_MS, 0);
    c->again = false;
}

static void on_timer(void *arg)
{
    struct changes *c = arg;

    if (c->asking)
        return;
    c->mem = arena_new(4u * 1024 * 1024);
    c->job = (struct read_job){.run = run, .done = done};
    c->asking = lane_lookup(c->id->config.lanes, &c->job);
    if (c->asking)
        return;
    arena_free(c->mem);
    c->mem = NULL;
    loop_timer_start(c->timer, IDENTITY_CHANGES_MS, 0);
}

struct changes *changes_new(struct identity *id)
{
    struct changes *c = xcalloc(1, sizeof(*c));

    c->id = id;
    c->after = -1;
    c->timer = loop_timer_new(id->config.loop, on_timer, c);
    loop_timer_start(c->timer, 0, 0);
    return c;
}

void changes_nudge(struct changes *c)
{
    c->again = c->asking;
    if (!c->asking && c->timer)
        loop_timer_start(c->timer, 0, 0);
}

void changes_stop(struct changes *c)
{
    loop_timer_free(c->timer);
    c->timer = NULL;
}

void changes_free(struct changes *c)
{
    if (!c)
        return;
    changes_stop(c);
    free(c);
}
