/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a replay: find the new session, read pages of the recording, run one call after the
 * other, write a line for each, end the session.
 *
 * go_on() is the one place that decides what comes next.  Everything that waits comes back to it
 * through the loop: a page (on_page), a settled call (replay_settled), a reader that was too slow
 * (on_drained).  A replay counts as a request under way, so a stop of the process waits until its
 * present call is over. */
#include "replay/impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "identity/identity.h"
#include "identity/scopes.h"

#include <stdlib.h>

#define PAGE 100
#define REPLAY_BYTES (8u * 1024 * 1024) /* beside the pages and the results */
#define QUEUE_PAUSE ((size_t)256 << 10) /* bytes that wait for the reader: no further call */
#define QUIET_MS 15000

const char *const replay_stop_names[] = {"never", "difference", NULL};

struct replays *replays_new(struct services *sv)
{
    struct replays *home = xcalloc(1, sizeof(*home));

    home->sv = sv;
    list_init(&home->all);
    list_init(&home->served);
    list_init(&home->rooms);
    return home;
}

void replays_stop(struct replays *home)
{
    if (home && !list_empty(&home->served))
        audit_unsubscribe(home->sv->audit, &home->erasures);
    if (home && home->worker)
        worker_free(home->worker);
    if (home)
        home->worker = NULL;
}

void replays_free(struct replays *home)
{
    if (home) /* what was served is freed with the last link to it, in loop_free() */
        list_each(&home->served, n) list_remove(n);
    free(home);
}

bool replays_have_room(const struct replays *home, struct str tenant, struct error *err)
{
    unsigned of_tenant = 0;

    list_each(&home->all, n)
    {
        const struct replay *r = list_entry(n, struct replay, node);
        of_tenant += str_eq(r->who.tenant, tenant);
    }
    if (of_tenant < REPLAYS_PER_TENANT && home->n < REPLAYS_PER_NODE)
        return true;
    return error_set(err, ERR_LIMIT,
                     "%u replays run at once already (at most %d of a tenant and %d in all); try "
                     "again when one is over",
                     of_tenant < REPLAYS_PER_TENANT ? home->n : of_tenant, REPLAYS_PER_TENANT,
                     REPLAYS_PER_NODE);
}

/* The end. */

static void replay_free(struct replay *r)
{
    struct replays *home = r->home;

    list_remove(&r->node);
    home->n--;
    home->sv->front->under_way--;
    loop_timer_free(r->quiet);
    identity_unwatch(&r->credential);
    session_unref(r->session);
    buf_release(&r->line);
    arena_free(r->call_mem);
    arena_free(r->page);
    arena_free(r->mem);
    free(r);
}

/* False: the reader has left, or reads too slowly even for one line. */
static bool write_line(struct replay *r)
{
    struct http_request *http = r->http;

    if (!http)
        return false;
    loop_timer_start(r->quiet, QUIET_MS, QUIET_MS);
    if (http_stream_write(http, buf_str(&r->line)))
        return true;
    r->http = NULL;
    http->on_abort = NULL;
    http->on_drained = NULL;
    http_stream_abort(http);
    return false;
}

static void on_ended(struct registry_call *reg)
{
    struct replay *r = container_of(reg, struct replay, reg);

    if (reg->result == REGISTRY_FAILED)
        log_warn("the session of a replay could not be ended; it expires by itself",
                 LS("session", r->id), LZ("why", reg->err.text));
    replay_write_summary(r);
    if (write_line(r)) {
        r->http->on_abort = NULL;
        r->http->on_drained = NULL;
        http_stream_end(r->http);
    }
    replay_free(r);
}

/* The children of the session end with it.  The event says what came of the replay. */
static void finish(struct replay *r)
{
    const int64_t *n = r->counts;

    log_debug("replay is over", LS("session", r->id));
    r->event = (struct event_row){
        .tenant = r->who.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = r->who.owner,
        .session_id = r->id,
        .method = STR("session/replayed"),
        .outcome = STR("ok"),
        .error = arena_printf(
            r->mem,
            "session %.*s: %lld same, %lld different, %lld unknown, %lld skipped, "
            "%lld refused, %lld failed%s%s",
            STR_ARG(r->origin_id), (long long)n[REPLAY_SAME], (long long)n[REPLAY_DIFFERENT],
            (long long)n[REPLAY_UNKNOWN], (long long)n[REPLAY_SKIPPED],
            (long long)n[REPLAY_REFUSED], (long long)n[REPLAY_FAILED], r->stopped ? "; " : "",
            r->stopped ? r->stopped : ""),
        .body_len = -1,
    };
    r->reg = (struct registry_call){.who = &r->who,
                                    .mem = r->mem,
                                    .name = r->id,
                                    .by_id = true,
                                    .event = &r->event,
                                    .done = on_ended};
    registry_end(r->home->sv->registry, &r->reg, STR("its replay is over"));
}

/* The course. */

static void go_on(struct replay *r);

static bool run_page(struct read_job *job, struct store *store)
{
    struct replay *r = container_of(job, struct replay, read);

    return recording_page(&r->recording, store, PAGE, r->page, &r->calls, &r->n, &job->err);
}

static void on_page(struct read_job *job)
{
    struct replay *r = container_of(job, struct replay, read);

    r->next = 0;
    if (!job->ok) {
        r->n = 0;
        r->recording.at_end = true;
        r->stopped = arena_printf(r->mem, "the recording cannot be read: %s", job->err.text).p;
    }
    go_on(r);
}

static void read_page(struct replay *r)
{
    arena_free(r->page);
    r->page = arena_new(SIZE_MAX / 4);
    r->n = r->next = 0;
    r->read = (struct read_job){.run = run_page, .done = on_page};
    if (lane_query(r->home->sv->lanes, &r->read))
        return;
    r->stopped = "too much is waiting for the store; try again";
    finish(r);
}

static bool is_wanted(const struct replay *r, const struct recorded_call *c)
{
    struct str name = arena_printf(r->call_mem, "%.*s__%.*s", STR_ARG(c->server), STR_ARG(c->tool));

    for (size_t i = 0; i < r->options.n_only; i++)
        if (scope_matches(r->options.only[i], name))
            return true;
    return r->options.n_only == 0;
}

const char *replay_reason_to_stop(const struct replay *r)
{
    if (r->stopped)
        return r->stopped;
    if (!r->http)
        return "the client left";
    if (r->home->sv->front->draining)
        return "Holdfast is stopping";
    return NULL;
}

static void go_on_later(struct loop_task *task)
{
    go_on(container_of(task, struct replay, again));
}

/* Turns of the loop between calls, so that a recording of skipped calls does not hold it. */
void replay_settled(struct replay *r)
{
    enum replay_status status = r->verdict.status;

    r->counts[status]++;
    if ((status == REPLAY_SKIPPED && replay_lacks_body(r->call)) ||
        (status == REPLAY_UNKNOWN && r->call->result.state != RECORDED_COMPLETE))
        r->n_bodies++;
    replay_write_call(r);
    (void)!write_line(r);
    if (r->options.stop_on == REPLAY_STOP_DIFFERENCE && status != REPLAY_SAME &&
        status != REPLAY_SKIPPED)
        r->stopped = "the first call that was not the same";
    r->again.fn = go_on_later;
    loop_defer(r->home->sv->loop, &r->again);
}

static void go_on(struct replay *r)
{
    r->stopped = replay_reason_to_stop(r);
    while (!r->stopped && r->next < r->n) {
        arena_free(r->call_mem);
        r->call_mem = arena_new(SIZE_MAX / 4);
        if (http_stream_queued(r->http) > QUEUE_PAUSE) {
            r->waits_for_reader = true;
            return;
        }
        r->call = &r->calls[r->next++];
        if (is_wanted(r, r->call)) {
            replay_run_call(r);
            return;
        }
    }
    if (r->stopped || r->recording.at_end)
        finish(r);
    else
        read_page(r);
}

static void stop_waiting(struct replay *r)
{
    if (!r->waits_for_reader)
        return; /* the present call or page comes to its end */
    r->waits_for_reader = false;
    r->again.fn = go_on_later;
    loop_defer(r->home->sv->loop, &r->again);
}

static void on_drained(struct http_request *http)
{
    stop_waiting(http->user);
}

static void on_revoked(struct identity_watch *w)
{
    struct replay *r = container_of(w, struct replay, credential);

    r->stopped = "the credential was revoked or has expired";
    stop_waiting(r);
}

static void on_abort(struct http_request *http)
{
    struct replay *r = http->user;

    http_request_done(http);
    r->http = NULL;
    stop_waiting(r);
}

/* An empty line is a sign of life during a long call. */
static void on_quiet(void *arg)
{
    struct replay *r = arg;

    buf_reset(&r->line);
    buf_addc(&r->line, '\n');
    if (r->http && http_stream_queued(r->http) == 0)
        (void)!write_line(r);
}

/* The beginning. */

static void on_session(struct session_query *q)
{
    struct replay *r = container_of(q, struct replay, query);

    transport_unref(q->transport);
    r->session = q->session;
    replay_write_head(r);
    (void)!write_line(r);
    if (!r->session)
        r->stopped = "the session of the replay was not found again";
    go_on(r);
}

static void copy_options(struct replay *r, const struct replay_options *o)
{
    struct str *ignore = arena_zalloc(r->mem, (o->ignore.n + 1) * sizeof(*ignore)),
               *only = arena_zalloc(r->mem, (o->n_only + 1) * sizeof(*only));

    for (size_t i = 0; i < o->ignore.n; i++)
        ignore[i] = arena_dup(r->mem, o->ignore.patterns[i]);
    for (size_t i = 0; i < o->n_only; i++)
        only[i] = arena_dup(r->mem, o->only[i]);
    r->options = *o;
    r->options.against = arena_dup(r->mem, o->against);
    r->options.ignore.patterns = ignore;
    r->options.only = only;
}

static struct replay *replay_new(struct replays *home, const struct replay_args *args)
{
    struct replay *r = xcalloc(1, sizeof(*r));

    r->home = home;
    r->mem = arena_new(REPLAY_BYTES);
    r->http = args->http;
    r->who = principal_dup(args->who, r->mem);
    r->who.tenant_wide = false;
    r->origin = arena_dup(r->mem, args->origin->handle);
    r->origin_id = arena_dup(r->mem, args->origin->id);
    r->handle = arena_dup(r->mem, args->handle);
    r->id = arena_dup(r->mem, args->id);
    copy_options(r, args->options);
    buf_init(&r->line, SIZE_MAX / 4); /* DIFF_SHOWN differences bound it */
    recording_begin(&r->recording, args->origin, clock_wall_ms());
    r->quiet = loop_timer_new(home->sv->loop, on_quiet, r);
    list_push(&home->all, &r->node);
    home->n++;
    home->sv->front->under_way++;
    r->credential.on_revoked = on_revoked;
    identity_watch(home->sv->front->identity, &r->credential, &r->who);
    return r;
}

void replay_start(struct replays *home, const struct replay_args *args)
{
    struct replay *r = replay_new(home, args);

    if (!home->worker)
        home->worker = worker_new_threads(home->sv->loop, 1);
    r->http->user = r;
    r->http->on_abort = on_abort;
    r->http->on_drained = on_drained;
    session_query_init(&r->query);
    r->query.by = BY_HANDLE;
    r->query.who = &r->who;
    r->query.name = r->handle;
    r->query.done = on_session;
    if (session_find(home->sv->sessions, &r->query))
        on_session(&r->query);
}
