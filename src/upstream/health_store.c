/* SPDX-License-Identifier: Apache-2.0 */
/* Saves tallies as rows and loads them.  A tally counts as saved when its write is queued.  If the
 * write fails, that is undone. */
#include "upstream/health_store.h"

#include "base/log.h"

#include <stdlib.h>

#define MOST_ROWS 400 /* in one write; the remaining rows follow with the next */

struct health {
    struct lanes *lanes;
    struct upstreams *upstreams; /* NULL: stopped */
    struct loop_timer *timer;
};

struct saved {
    struct upstream_tally *tally;
    struct server_row row;
};
struct saving {
    struct health *health;
    struct arena *mem;
    struct write_job job;
    struct saved of[MOST_ROWS];
    struct store_op ops[MOST_ROWS];
    size_t n;
};

bool health_load(struct store *store, struct arena *mem, struct server_row **ret_rows,
                 size_t *ret_n, struct error *err)
{
    struct server_row *rows = NULL, *page = NULL;
    size_t n = 0, got = STORE_PAGE_MAX;

    while (got == STORE_PAGE_MAX) {
        if (!store_servers_page(store, n ? rows[n - 1].name : STR_NONE, STORE_PAGE_MAX, mem, &page,
                                &got, err))
            return error_wrap(err, "reading the request counts of servers");
        struct server_row *all = arena_alloc(mem, (n + got + 1) * sizeof(*all));
        if (n)
            memcpy(all, rows, n * sizeof(*all));
        if (got)
            memcpy(all + n, page, got * sizeof(*all));
        rows = all;
        n += got;
    }
    *ret_rows = rows;
    *ret_n = n;
    return true;
}

static void on_saved(struct write_job *job)
{
    struct saving *s = container_of(job, struct saving, job);

    for (size_t i = 0; !job->ok && s->health->upstreams && i < s->n; i++) {
        s->of[i].tally->saved_calls -= s->of[i].row.calls;
        s->of[i].tally->saved_failures -= s->of[i].row.failures;
    }
    if (!job->ok)
        log_debug("how servers do is not saved yet", LZ("why", job->err.text));
    arena_free(s->mem);
}

static void add(void *arg, struct upstream_tally *t)
{
    struct saving *s = arg;
    struct saved *one = &s->of[s->n];

    if (s->n == MOST_ROWS || (t->calls == t->saved_calls && t->failures == t->saved_failures))
        return;
    one->tally = t;
    one->row = (struct server_row){
        .name = arena_dup(s->mem, t->name),
        .calls = t->calls - t->saved_calls,
        .failures = t->failures - t->saved_failures,
        .last_ok_ms = tally_last_ok_ms(t),
        .last_failed_ms = tally_last_failed_ms(t),
        .last_error = t->last_error[0] ? arena_dup(s->mem, str_of(t->last_error)) : STR_NONE,
    };
    t->saved_calls = t->calls;
    t->saved_failures = t->failures;
    s->ops[s->n++] = (struct store_op){.kind = OP_SERVER_COUNT, .server = &one->row};
}

static void health_save(struct health *h)
{
    struct arena *mem = arena_new(4u * 1024 * 1024);
    struct saving *s = arena_new_of(mem, struct saving);
    s->health = h;
    s->mem = mem;
    upstreams_each_tally(h->upstreams, add, s);
    s->job = (struct write_job){.ops = s->ops, .n = s->n, .done = on_saved};
    if (!s->n || !lane_write(h->lanes, &s->job)) {
        s->job.ok = !s->n;
        on_saved(&s->job);
    }
}

static void on_timer(void *arg)
{
    health_save(arg);
}

struct health *health_new(struct loop *loop, struct lanes *lanes, struct upstreams *upstreams,
                          const struct server_row *rows, size_t n)
{
    struct health *h = xcalloc(1, sizeof(*h));

    h->lanes = lanes;
    h->upstreams = upstreams;
    for (size_t i = 0; i < n; i++) {
        struct upstream_tally *t = upstreams_tally(upstreams, rows[i].name);
        t->calls = t->saved_calls = rows[i].calls;
        t->failures = t->saved_failures = rows[i].failures;
        t->last_ok_ms = rows[i].last_ok_ms;
        t->last_failed_ms = rows[i].last_failed_ms;
        size_t length = rows[i].last_error.n < sizeof(t->last_error) - 1
                            ? rows[i].last_error.n
                            : sizeof(t->last_error) - 1;
        if (length)
            memcpy(t->last_error, rows[i].last_error.p, length);
    }
    h->timer = loop_timer_new(loop, on_timer, h);
    loop_timer_start(h->timer, HEALTH_SAVE_MS, HEALTH_SAVE_MS);
    return h;
}

void health_stop(struct health *h)
{
    if (!h)
        return;
    loop_timer_free(h->timer);
    health_save(h);
    h->upstreams = NULL;
}

void health_free(struct health *h)
{
    free(h);
}

void health_write(struct js_writer *w, const struct upstream_health *h)
{
    js_kv_string(w, "state", str_of(health_state_name(h->state)));
    if (h->reason[0])
        js_kv_string(w, "reason", str_of(h->reason));
    if (h->last_error[0])
        js_kv_string(w, "last_error", str_of(h->last_error));
    js_kv_int(w, "calls", h->calls);
    js_kv_int(w, "failures", h->failures);
    js_kv_time(w, "last_ok_at", h->last_ok_ms);
    js_kv_time(w, "last_failed_at", h->last_failed_ms);
}
