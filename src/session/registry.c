/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a session: in the cached rows, else on the lookup lane.
 *
 * A cached row has two uses.  The row id and owner of a name never change, and a change of the
 * credentials drops the row, so these columns are valid as long as the row is cached.  Its other
 * columns are valid only while the row is up to date.  Rows are cached by tenant and name.  Only
 * principals that may see a row get it from the cache; others ask the store, which reports the name
 * as unknown. */
#include "session/registry_impl.h"

#include "base/clock.h"

#include <stdlib.h>

#define ROWS_MAX 4096
#define ROW_BYTES (1024 * 1024)
/* The reaper writes rows without notifying the loop. */
#define FRESH_MS 1000

struct cached_row {
    struct list node;
    struct arena *mem;
    struct str by_handle, by_id; /* keys in `names` */
    struct session_row row;      /* as read */
    uint64_t stamp;              /* stamp of the name used for the read */
    bool stamped_by_id;
    int64_t read_ms; /* monotonic */
    struct buf json; /* JSON of the row, valid until valid_ms; empty: not written yet */
    int64_t valid_ms, idle_ms;
    char tag[SESSION_TAG_TEXT];
};

static void cached_row_free(struct registry *r, struct cached_row *k);
static struct cached_row *cached_row_by_id(struct registry *r, struct str tenant, struct str id);

/* Drops the cached row, because registry_find() trusts its sealed_auth.  A row that was read before
 * this change and arrives later is not cached (take_row()). */
static void on_credentials_changed(void *arg, struct str tenant, struct str id)
{
    struct registry *r = arg;
    struct cached_row *k = cached_row_by_id(r, tenant, id);

    r->credential_changes++;
    if (k)
        cached_row_free(r, k);
}

struct registry *registry_new(const struct registry_config *config)
{
    struct registry *r = xcalloc(1, sizeof(*r));
    r->config = *config;
    r->writes = read_your_writes_new(config->loop, config->lanes);
    map_init(&r->names);
    map_init(&r->keys);
    list_init(&r->rows);
    sessions_set_read_your_writes(config->sessions, r->writes);
    sessions_on_credentials(config->sessions, on_credentials_changed, r);
    return r;
}

static void cached_row_free(struct registry *r, struct cached_row *k)
{
    list_remove(&k->node);
    if (map_get(&r->names, k->by_handle) == k)
        map_remove(&r->names, k->by_handle);
    if (map_get(&r->names, k->by_id) == k)
        map_remove(&r->names, k->by_id);
    buf_release(&k->json);
    arena_free(k->mem);
    free(k);
    r->n_rows--;
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    list_each(&r->rows, node) cached_row_free(r, list_entry(node, struct cached_row, node));
    map_release(&r->names);
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

/* Keys of cached rows. */

#define KEY_ROOM 640
static struct str key_in(char room[KEY_ROOM], char kind, struct str tenant, struct str name)
{
    if (tenant.n + name.n + 2 > KEY_ROOM)
        return STR_NONE;
    room[0] = kind;
    memcpy(room + 1, tenant.p, tenant.n);
    room[1 + tenant.n] = '\0';
    memcpy(room + 2 + tenant.n, name.p, name.n);
    return str_n(room, tenant.n + name.n + 2);
}

static struct cached_row *cached_row_by_id(struct registry *r, struct str tenant, struct str id)
{
    char room[KEY_ROOM];
    struct str key = key_in(room, 'i', tenant, id);

    return key.p ? map_get(&r->names, key) : NULL;
}

static struct cached_row *cached_row_find(struct registry *r, const struct principal *who,
                                          struct str name, bool by_id)
{
    char room[KEY_ROOM];
    struct str key = key_in(room, by_id ? 'i' : 'h', who->tenant, name);
    struct cached_row *k = key.p ? map_get(&r->names, key) : NULL;

    return k && (who->tenant_wide || str_eq(k->row.owner, who->owner)) ? k : NULL;
}

static bool is_fresh(const struct registry *r, const struct cached_row *k)
{
    struct str name = k->stamped_by_id ? k->row.id : k->row.handle;
    return !r->config.is_shared &&
           k->stamp == read_your_writes_stamp(r->writes, k->row.tenant, name) &&
           clock_mono_ms() - k->read_ms < FRESH_MS;
}

/* Copies every span of a row. */
static struct session_row row_dup(const struct session_row *row, struct arena *mem)
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
        &copy.connection_metadata,
        &copy.termination_reason,
    };
    for (size_t i = 0; i < countof(spans); i++)
        *spans[i] = arena_dup(mem, *spans[i]);
    return copy;
}

static struct cached_row *cache_row(struct registry *r, const struct session_row *row,
                                    uint64_t stamp, bool stamped_by_id)
{
    char room[KEY_ROOM];
    struct str key = key_in(room, 'h', row->tenant, row->handle);
    struct cached_row *k = map_get(&r->names, key);

    if (!key.p)
        return NULL;
    if (k)
        cached_row_free(r, k);
    while (r->n_rows >= ROWS_MAX)
        cached_row_free(r, list_entry(list_first(&r->rows), struct cached_row, node));
    k = xcalloc(1, sizeof(*k));
    k->mem = arena_new_for(ROW_BYTES, 512 + row->connection_metadata.n, 20);
    k->row = row_dup(row, k->mem);
    k->stamp = stamp;
    k->stamped_by_id = stamped_by_id;
    k->read_ms = clock_mono_ms();
    k->by_handle = arena_dup(k->mem, key);
    k->by_id = arena_dup(k->mem, key_in(room, 'i', row->tenant, row->id));
    buf_init(&k->json, ROW_BYTES);
    map_put(&r->names, k->by_handle, k);
    map_put(&r->names, k->by_id, k);
    list_push(&r->rows, &k->node);
    r->n_rows++;
    return k;
}

void registry_remember(struct registry_call *c, const struct session_row *row)
{
    if (!c->home->config.is_shared)
        cache_row(c->home, row, read_your_writes_stamp(c->home->writes, row->tenant, row->handle),
                  false);
}

void registry_touch(struct registry_call *c, const struct session_row *row, bool by_event)
{
    struct touch_scope whose = {row->tenant, row->owner};
    read_your_writes_touch(c->home->writes, touch_slots_of(whose, row->handle), by_event);
    read_your_writes_touch(c->home->writes, touch_slots_of(whose, row->id), by_event);
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

static void write_json(struct cached_row *k, int64_t idle_ms)
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

/* Fills the call from a cached row. */
static void show(struct registry_call *c, struct cached_row *k)
{
    c->found = k->row;
    apply_status(&c->found, c->idle_ms);
    c->row = &c->found;
    if (!k->json.n || k->idle_ms != c->idle_ms || clock_life_ms() >= k->valid_ms)
        write_json(k, c->idle_ms);
    c->json = buf_str(&k->json);
    c->tag = str_of(k->tag);
}

/* Fills the call from its own row, which is not cached. */
static void show_own(struct registry_call *c)
{
    struct js_writer w;
    struct buf out;
    char tag[SESSION_TAG_TEXT];

    c->found = *c->read_row;
    apply_status(&c->found, c->idle_ms);
    c->row = &c->found;
    buf_init(&out, ROW_BYTES);
    js_begin(&w, &out);
    session_to_json(&c->found, &w);
    session_tag(c->found.version, buf_str(&out), tag);
    c->json = arena_dup(c->mem, buf_str(&out));
    c->tag = arena_dup(c->mem, str_of(tag));
    buf_release(&out);
}

void registry_hold_row(struct registry_call *c)
{
    c->found = row_dup(c->row, c->mem);
    c->row = &c->found;
}

static bool run_find(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    return c->by_id
               ? store_session_by_id(store, c->who, c->name, c->mem, &c->read_row, &job->err)
               : store_session_by_handle(store, c->who, c->name, c->mem, &c->read_row, &job->err);
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
        if (ok)
            c->read_row = finds[i].row;
        else if (err.code == ERR_UNAVAILABLE)
            jobs[i]->err = err;
        else
            jobs[i]->ok = run_find(jobs[i], store);
    }
}

/* If other nodes write to the store, a cached row gives only the owner of the name. */
static void take_row(struct registry_call *c)
{
    struct registry *r = c->home;
    struct cached_row *k =
        r->config.is_shared ? cached_row_find(r, c->who, c->name, c->by_id) : NULL;

    if (!k && c->credential_changes == r->credential_changes)
        k = cache_row(r, c->read_row, c->stamp, c->by_id);
    if (k && !r->config.is_shared)
        show(c, k);
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
    c->credential_changes = c->home->credential_changes;
    c->stamp = read_your_writes_stamp(c->home->writes, c->who->tenant, c->name);
    c->read = (struct read_job){.run = run_find, .run_many = run_finds, .done = on_found};
    if (!lane_lookup(c->home->config.lanes, &c->read))
        registry_fail(c, "too many lookups are waiting; try again shortly");
}

static struct touch_scope whose_of(const struct registry_call *c)
{
    return (struct touch_scope){c->who->tenant, c->who->tenant_wide ? STR_NONE : c->who->owner};
}

static void on_folded(struct fold_wait *w)
{
    look_up(container_of(w, struct registry_call, fold));
}

bool registry_find(struct registry *r, struct registry_call *c, bool whole)
{
    struct cached_row *k = cached_row_find(r, c->who, c->name, c->by_id);

    c->home = r;
    c->result = REGISTRY_OK;
    if (k && (!whole || is_fresh(r, k))) {
        list_remove(&k->node);
        list_push(&r->rows, &k->node);
        show(c, k);
        return true;
    }
    c->fold.done = on_folded;
    if (!whole || read_your_writes_await(r->writes, &c->fold, whose_of(c), c->name))
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
    if (read_your_writes_await(c->home->writes, &c->fold, whose_of(c), name))
        c->next(c);
}
