/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a session: in memory, else on the lookup lane.
 *
 * A resident session (session.h) says which row its name has, whose it is, and which credentials it
 * has.  Its other columns come from its snapshot (resident.h), and only while that is up to date.
 * Only principals that may see a session get it from memory; others ask the store, which reports
 * the name as unknown. */
#include "session/registry_impl.h"
#include "session/resident.h"
#include "session/session_impl.h"
#include "session/share_store/verbs.h"

#include "base/clock.h"

#include <stdlib.h>

#define JSON_BYTES (1024 * 1024)
/* The reaper writes rows without notifying the loop. */
#define FRESH_MS 1000

struct registry *registry_new(const struct registry_config *config)
{
    struct registry *r = xcalloc(1, sizeof(*r));
    r->config = *config;
    r->writes = read_your_writes_new(config->loop, config->lanes);
    map_init(&r->keys);
    sessions_set_read_your_writes(config->sessions, r->writes);
    return r;
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    map_release(&r->keys);
    read_your_writes_free(r->writes);
    free(r);
}

bool registry_take_key(struct registry *r, struct str key)
{
    if (map_get(&r->keys, key))
        return false;
    map_put(&r->keys, key, r);
    return true;
}

void registry_drop_key(struct registry *r, struct str key)
{
    map_remove(&r->keys, key);
}

void registry_finish(struct registry_call *c, enum registry_result result)
{
    c->result = result;
    c->done(c);
}

static void finish_task(struct loop_task *task)
{
    struct registry_call *c = container_of(task, struct registry_call, task);
    c->done(c);
}

void registry_fail(struct registry_call *c, const char *text)
{
    error_set(&c->err, ERR_UNAVAILABLE, "%s", text);
    c->result = REGISTRY_FAILED;
    c->task.fn = finish_task;
    loop_defer(c->home->config.loop, &c->task);
}

static bool is_fresh(const struct registry *r, struct session *s)
{
    const struct session_snapshot *k = s->snapshot;

    return k && clock_mono_ms() - k->read_ms < FRESH_MS &&
           k->stamp == read_your_writes_stamp_at(r->writes, s->id_slots);
}

/* The row is current, and stays so until its session is touched. */
static struct session_snapshot *keep(struct registry *r, struct session *s,
                                     const struct session_row *row)
{
    session_name_slots(s);
    return session_keep_snapshot(s, row, read_your_writes_stamp_at(r->writes, s->id_slots));
}

void registry_remember(struct registry_call *c, const struct session_row *row)
{
    struct sessions *sessions = c->home->config.sessions;
    struct session *s = sessions_know_row(sessions, row, sessions_changes(sessions));

    if (s && !c->home->config.is_shared)
        keep(c->home, s, row);
}

void registry_touch(struct registry_call *c, const struct session_row *row, bool by_event)
{
    struct touch_scope scope = {row->tenant, row->owner};
    read_your_writes_touch(c->home->writes, touch_slots_of(scope, row->handle), by_event);
    read_your_writes_touch(c->home->writes, touch_slots_of(scope, row->id), by_event);
}

/* Sets the current status of the row.  Returns the time until which it is valid. */
static int64_t apply_status(struct session_row *row, int64_t idle_ms)
{
    int64_t now = clock_life_ms(), until, due = session_refresh_due_ms(row);

    session_row_apply_expiry(row, now);
    session_row_apply_idle(row, now, idle_ms);
    if (row->status != SESSION_ACTIVE && row->status != SESSION_IDLE)
        return INT64_MAX;
    until = row->expires_ms ? row->expires_ms : INT64_MAX;
    if (row->status == SESSION_ACTIVE && row->last_activity_ms + idle_ms < until)
        until = row->last_activity_ms + idle_ms;
    return due > now && due < until ? due : until;
}

static void write_json(struct session_snapshot *k, int64_t idle_ms)
{
    struct session_row row = k->row;
    struct js_writer w;

    k->valid_ms = apply_status(&row, idle_ms);
    k->idle_ms = idle_ms;
    buf_reset(&k->json);
    js_begin(&w, &k->json);
    session_to_json(&row, &w);
    session_tag(row.version, buf_str(&k->json), k->tag);
}

/* Fills the call from a snapshot. */
static void show(struct registry_call *c, struct session_snapshot *k)
{
    c->found = k->row;
    apply_status(&c->found, c->idle_ms);
    c->row = &c->found;
    if (!k->json.n || k->idle_ms != c->idle_ms || clock_life_ms() >= k->valid_ms)
        write_json(k, c->idle_ms);
    snapshot_used(k);
    c->json = buf_str(&k->json);
    c->tag = str_of(k->tag);
}

/* Fills the call with the columns that a resident session has. */
static void identify_row(struct registry_call *c, const struct session *s)
{
    c->found = (struct session_row){
        .id = s->id,
        .handle = s->handle,
        .tenant = s->tenant,
        .owner = s->owner,
        .sealed_auth = s->sealed_auth,
        .sealed_context = s->context ? s->context->sealed : STR_NONE,
        .created_ms = s->created_ms,
    };
    c->row = &c->found;
}

/* Fills the call from its own row. */
static void show_own(struct registry_call *c)
{
    struct js_writer w;
    struct buf out;
    char tag[SESSION_TAG_TEXT];

    c->found = *c->read_row;
    apply_status(&c->found, c->idle_ms);
    c->row = &c->found;
    buf_init(&out, JSON_BYTES);
    js_begin(&w, &out);
    session_to_json(&c->found, &w);
    session_tag(c->found.version, buf_str(&out), tag);
    c->json = arena_dup(c->mem, buf_str(&out));
    c->tag = arena_dup(c->mem, str_of(tag));
    buf_release(&out);
}

void registry_hold_row(struct registry_call *c)
{
    c->found = session_row_dup(c->row, c->mem);
    c->row = &c->found;
}

/* The session is not the caller's own.  If it is shared with the caller, the call goes on in the name
 * of its owner. */
static bool find_shared(struct registry_call *c, struct store *store, struct error *err)
{
    struct session_row *row = NULL;
    struct share_row *share = NULL;

    if (c->read_row || c->reach == REACH_OWN)
        return true;
    if (!store_shared_session(store, c->who, c->name, c->by_id, c->mem, &row, err) ||
        (row && !store_share_of(store, c->who, row->id, c->mem, &share, err)))
        return false;
    if (!share || share->may < (c->reach == REACH_USE ? SHARE_USE : SHARE_READ))
        return true;
    c->read_row = row;
    c->owner = (struct principal){.tenant = row->tenant, .owner = row->owner, .role = c->who->role};
    c->who = &c->owner;
    return true;
}

bool registry_read_row(struct registry_call *c, struct store *store, struct error *err)
{
    bool ok = c->by_id ? store_session_by_id(store, c->who, c->name, c->mem, &c->read_row, err)
                       : store_session_by_handle(store, c->who, c->name, c->mem, &c->read_row, err);

    return ok && find_shared(c, store, err);
}

static bool run_find(struct read_job *job, struct store *store)
{
    return registry_read_row(container_of(job, struct registry_call, read), store, &job->err);
}

/* If the combined lookup fails, runs one by one, so that only the faulty lookup fails. */
static void run_finds(struct read_job **jobs, size_t n, struct store *store)
{
    struct session_find finds[READS_MAX];
    struct error err;

    for (size_t i = 0; i < n; i++) {
        struct registry_call *c = container_of(jobs[i], struct registry_call, read);
        finds[i] =
            (struct session_find){.who = c->who, .name = c->name, .by_id = c->by_id, .mem = c->mem};
    }
    bool ok = store_sessions_find(store, finds, n, &err);
    for (size_t i = 0; i < n; i++) {
        struct registry_call *c = container_of(jobs[i], struct registry_call, read);
        jobs[i]->ok = ok;
        if (ok) {
            c->read_row = finds[i].row;
            jobs[i]->ok = find_shared(c, store, &jobs[i]->err);
        } else if (err.code == ERR_UNAVAILABLE)
            jobs[i]->err = err;
        else
            jobs[i]->ok = run_find(jobs[i], store);
    }
}

/* The session may have been touched while its row was read. */
static void take_row(struct registry_call *c)
{
    struct registry *r = c->home;
    struct session *s = sessions_know_row(r->config.sessions, c->read_row, c->changes);

    if (s && !r->config.is_shared &&
        c->stamp == read_your_writes_stamp(r->writes, c->who->tenant, c->name))
        show(c, keep(r, s, c->read_row));
    else
        show_own(c);
}

static void on_found(struct read_job *job)
{
    struct registry_call *c = container_of(job, struct registry_call, read);

    if (!job->ok) {
        c->err = job->err;
        registry_finish(c, REGISTRY_FAILED);
    } else if (!c->read_row) {
        registry_finish(c, REGISTRY_MISSING);
    } else {
        take_row(c);
        c->next(c);
    }
}

static void look_up(struct registry_call *c)
{
    c->read_row = NULL;
    c->changes = sessions_changes(c->home->config.sessions);
    c->stamp = read_your_writes_stamp(c->home->writes, c->who->tenant, c->name);
    c->read = (struct read_job){.run = run_find, .run_many = run_finds, .done = on_found};
    if (!lane_lookup(c->home->config.lanes, &c->read))
        registry_fail(c, "too many lookups are waiting; try again shortly");
}

static struct touch_scope scope_of(const struct registry_call *c)
{
    return (struct touch_scope){c->who->tenant, c->who->tenant_wide ? STR_NONE : c->who->owner};
}

static void on_folded(struct fold_wait *w)
{
    look_up(container_of(w, struct registry_call, fold));
}

bool registry_find(struct registry *r, struct registry_call *c, bool whole)
{
    struct session *s = sessions_known(r->config.sessions, c->who, c->name, c->by_id);

    c->home = r;
    c->result = REGISTRY_OK;
    if (s && whole && is_fresh(r, s)) {
        show(c, s->snapshot);
        return true;
    }
    if (s && !whole) {
        identify_row(c, s);
        return true;
    }
    c->fold.done = on_folded;
    if (!whole || read_your_writes_await(r->writes, &c->fold, scope_of(c), c->name))
        look_up(c);
    return false;
}

static void on_got(struct registry_call *c)
{
    registry_finish(c, REGISTRY_OK);
}

bool registry_get(struct registry *r, struct registry_call *c)
{
    c->next = on_got;
    return registry_find(r, c, true);
}

static void on_due(struct fold_wait *w)
{
    struct registry_call *c = container_of(w, struct registry_call, fold);
    c->next(c);
}

void registry_after_fold(struct registry_call *c, struct str name)
{
    c->fold.done = on_due;
    if (read_your_writes_await(c->home->writes, &c->fold, scope_of(c), name))
        c->next(c);
}
