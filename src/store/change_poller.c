/* SPDX-License-Identifier: Apache-2.0 */
/* One query at a time, on the lookup lane.  A full page is followed by the next one at once. */
#include "store/change_poller.h"

#include "base/log.h"

#include <assert.h>
#include <stdlib.h>

#define PAGE 200
#define PAGE_BYTES (1u << 20)

struct change_poller {
    struct change_poller_config config;
    struct change_listener listeners[CHANGE_LISTENERS_MAX];
    size_t n_listeners;
    struct loop_timer *timer; /* NULL: stopped */
    struct read_job job;
    bool busy;
    bool again;   /* the running query may have read before the change */
    bool failing; /* already logged */
    struct arena *mem;
    struct change_row *rows;
    size_t n;
};

bool change_poller_position(struct store *store, int64_t *ret, struct error *err)
{
    struct arena *mem = arena_new(PAGE_BYTES);
    struct change_row *rows = NULL;
    size_t n = 0;
    bool ok = store_changes(store, -1, 1, mem, &rows, &n, err);

    if (ok)
        *ret = n ? rows[0].id : 0;
    arena_free(mem);
    return ok;
}

static bool run(struct read_job *job, struct store *store)
{
    struct change_poller *p = container_of(job, struct change_poller, job);
    return store_changes(store, p->config.after, PAGE, p->mem, &p->rows, &p->n, &job->err);
}

static void ask(struct change_poller *p);

static void take_page(struct change_poller *p)
{
    for (size_t i = 0; i < p->n; i++) {
        p->config.after = p->rows[i].id;
        for (size_t j = 0; j < p->n_listeners; j++)
            p->listeners[j].take(p->listeners[j].arg, &p->rows[i]);
    }
    for (size_t j = 0; j < p->n_listeners; j++)
        if (p->listeners[j].polled)
            p->listeners[j].polled(p->listeners[j].arg);
}

static void done(struct read_job *job)
{
    struct change_poller *p = container_of(job, struct change_poller, job);
    bool more = job->ok && p->n == PAGE;

    p->busy = false;
    if (!job->ok && !p->failing)
        log_warn("what other nodes changed is not known just now", LZ("why", job->err.text));
    p->failing = !job->ok;
    if (job->ok && p->timer)
        take_page(p);
    arena_reset(p->mem);
    if (more || p->again)
        ask(p);
}

static void ask(struct change_poller *p)
{
    if (p->busy || !p->timer)
        return;
    p->again = false;
    p->n = 0;
    p->job = (struct read_job){.run = run, .done = done};
    p->busy = lane_lookup(p->config.lanes, &p->job);
}

static void on_timer(void *arg)
{
    ask(arg);
}

struct change_poller *change_poller_new(const struct change_poller_config *config)
{
    struct change_poller *p = xcalloc(1, sizeof(*p));

    p->config = *config;
    p->mem = arena_new(PAGE_BYTES);
    p->timer = loop_timer_new(config->loop, on_timer, p);
    loop_timer_start(p->timer, CHANGE_POLL_MS, CHANGE_POLL_MS);
    return p;
}

void change_poller_add(struct change_poller *p, const struct change_listener *listener)
{
    assert(p->n_listeners < CHANGE_LISTENERS_MAX);
    p->listeners[p->n_listeners++] = *listener;
}

void change_poller_nudge(struct change_poller *p)
{
    if (!p)
        return;
    p->again = p->busy;
    ask(p);
}

void change_poller_stop(struct change_poller *p)
{
    if (!p)
        return;
    loop_timer_free(p->timer);
    p->timer = NULL;
}

void change_poller_free(struct change_poller *p)
{
    if (!p)
        return;
    arena_free(p->mem);
    free(p);
}
