/* SPDX-License-Identifier: Apache-2.0 */
#include "erasure/impl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "json/read.h"

#define STEP_BYTES (256u << 20) /* a page of segments, twice */
#define JOB_BYTES (1u << 20)
#define LOOK_MS 3000
#define AGAIN_MS 1000 /* calls of the person are under way, or a hold was made */
/* An erasure of another process that did not move for so long has lost it. */
#define LOST_MS 6000
#define CLEAN_MS 100
#define CLEAN_TRIES 50

static void step(struct erasures *e);

static void query(struct erasures *e, bool (*run)(struct read_job *job, struct store *store),
                  void (*done)(struct read_job *job))
{
    arena_free(e->mem);
    e->mem = arena_new(STEP_BYTES);
    e->read = (struct read_job){.run = run, .done = done};
    e->busy = !e->stopping && lane_query(e->config.lanes, &e->read);
}

static void write_ops(struct erasures *e, struct store_op *ops, size_t n,
                      void (*done)(struct write_job *job))
{
    e->write = (struct write_job){.ops = ops, .n = n, .done = done};
    e->busy = !e->stopping && lane_write(e->config.lanes, &e->write);
}

static void drop_job(struct erasures *e)
{
    arena_free(e->job_mem);
    e->job_mem = NULL;
    e->job = (struct erasure_row){0};
}

/* The row is read again at the next look: it says what remains. */
static void give_up(struct erasures *e, const struct error *err)
{
    e->busy = false;
    if (err->code != ERR_CONFLICT)
        log_warn("erasing a person failed; it is tried again", LS("user", e->job.user_id),
                 LZ("why", err->text));
    drop_job(e);
}

static bool go_on(struct erasures *e, bool ok, const struct error *err)
{
    e->busy = false;
    if (!ok && !e->stopping)
        give_up(e, err);
    return ok && !e->stopping;
}

static void next_phase(struct erasures *e)
{
    e->phase++;
    e->tries = 0;
    e->at_folder = 0;
    e->after_document = STR_NONE;
    step(e);
}

/* Sessions end as if their owner ended them, so their links end on every node. */

static void end_next(struct erasures *e);

static void on_ended(struct registry_call *call)
{
    struct erasures *e = call->user;

    e->busy = false;
    if (call->result == REGISTRY_FAILED)
        give_up(e, &call->err);
    else if (!e->stopping)
        end_next(e);
}

static void end_next(struct erasures *e)
{
    if (e->at_session == e->n_sessions) {
        step(e);
        return;
    }
    const struct session_row *row = &e->sessions[e->at_session++];
    e->owner = (struct principal){.tenant = e->job.tenant, .owner = row->owner};
    e->call = (struct registry_call){.who = &e->owner,
                                     .mem = e->mem,
                                     .name = row->id,
                                     .by_id = true,
                                     .done = on_ended,
                                     .user = e};
    e->busy = true;
    registry_end(e->config.registry, &e->call, STR("erased"));
}

static bool run_find_sessions(struct read_job *job, struct store *store)
{
    struct erasures *e = container_of(job, struct erasures, read);
    fault_hold("erasure.sessions", e->job.user_id);
    return erasure_find_sessions(e, store, &job->err);
}

static void on_sessions(struct read_job *job)
{
    struct erasures *e = container_of(job, struct erasures, read);

    if (!go_on(e, job->ok, &job->err))
        return;
    e->at_session = 0;
    if (e->n_sessions && e->tries++ < 10000)
        end_next(e);
    else
        next_phase(e);
}

/* Walks. */

static void on_walk_restarted(struct write_job *job)
{
    struct erasures *e = container_of(job, struct erasures, write);

    if (!go_on(e, job->ok, &job->err))
        return;
    e->job.next_id = 0;
    if (e->open)
        loop_timer_start(e->timer, AGAIN_MS, LOOK_MS);
    else
        step(e);
}

static void end_of_walk(struct erasures *e)
{
    bool again = e->found || e->open;

    if (!again) {
        next_phase(e);
        return;
    }
    e->found = false;
    e->page.move.to = 0;
    e->ops[0] = op_erasure_move(&e->page.move);
    write_ops(e, e->ops, 1, on_walk_restarted);
}

static void on_walked(struct write_job *job)
{
    struct erasures *e = container_of(job, struct erasures, write);
    bool stale = !job->ok && job->err.code == ERR_CONFLICT &&
                 job->ops[0].verdict == VERDICT_STALE && e->page.removal.changes;

    if (stale) { /* something else was removed or held meanwhile: plan this page again */
        e->busy = false;
        step(e);
        return;
    }
    if (!go_on(e, job->ok, &job->err))
        return;
    e->damaged = (e->page.move.from ? e->damaged : 0) + e->page.damaged;
    e->job.next_id = e->page.move.to;
    e->job.bodies += e->page.move.bodies;
    e->job.body_bytes += e->page.move.body_bytes;
    step(e);
}

static bool run_walk(struct read_job *job, struct store *store)
{
    struct erasures *e = container_of(job, struct erasures, read);
    return erasure_walk(e, store, &job->err);
}

static void on_page(struct read_job *job)
{
    struct erasures *e = container_of(job, struct erasures, read);
    struct erasure_page *page = &e->page;

    if (!go_on(e, job->ok, &job->err))
        return;
    e->open = e->job.next_id ? e->open : page->is_open;
    e->found |= page->is_found;
    if (page->is_end) {
        end_of_walk(e);
        return;
    }
    struct removal *r = &page->removal;
    if (!r->changes) { /* without op_retention_begin(): nothing is removed */
        e->ops[0] = op_erasure_move(&page->move);
        write_ops(e, e->ops, 1, on_walked);
        return;
    }
    removal_add(r, op_erasure_move(&page->move));
    write_ops(e, r->ops, r->n, on_walked);
}

/* Rows. */

static bool run_left(struct read_job *job, struct store *store)
{
    struct erasures *e = container_of(job, struct erasures, read);
    fault_hold("erasure.rows", e->job.user_id);
    return store_erasure_left(store, e->job.tenant, e->job.user_id, e->mem, &e->left, &job->err);
}

/* A hold that was made meanwhile stops the erasure until its release. */
static bool is_held(struct erasures *e)
{
    if (!e->left->is_held)
        return false;
    log_info("erasing a person waits, because the user is held", LS("user", e->job.user_id));
    drop_job(e);
    return true;
}

static void drop_some(struct erasures *e);

static void on_left(struct read_job *job)
{
    struct erasures *e = container_of(job, struct erasures, read);

    if (!go_on(e, job->ok, &job->err))
        return;
    e->job.held = e->left->held;
    if (is_held(e))
        return;
    if (e->tries++ && e->left->live + e->left->over == 0)
        next_phase(e);
    else
        drop_some(e);
}

static void on_rows(struct write_job *job)
{
    struct erasures *e = container_of(job, struct erasures, write);

    if (go_on(e, job->ok, &job->err))
        step(e);
}

static void drop_some(struct erasures *e)
{
    e->rows = (struct erasure_rows){.id = e->job.id,
                                    .tenant = e->job.tenant,
                                    .user_id = e->job.user_id,
                                    .most = ERASURE_SESSIONS};
    e->ops[0] = op_erasure_rows(&e->rows);
    write_ops(e, e->ops, 1, on_rows);
}

/* Authors, in the folders that the tenant may use. */

static const struct folder_config *folder_at(const struct erasures *e)
{
    const struct config *c = *e->config.config;
    return e->at_folder < c->n_folders ? &c->folders[e->at_folder] : NULL;
}

static bool is_of_tenant(const struct folder_config *f, struct str tenant)
{
    for (size_t i = 0; i < f->n_tenants; i++)
        if (str_eq(f->tenants[i], tenant))
            return true;
    return f->n_tenants == 0;
}

static bool run_documents(struct read_job *job, struct store *store)
{
    struct erasures *e = container_of(job, struct erasures, read);
    return store_erasure_documents(store, e->authors->folder, e->after_document, STORE_PAGE_MAX,
                                   e->mem, &e->documents, &e->n_documents, &job->err);
}

static void on_authors(struct write_job *job)
{
    struct erasures *e = container_of(job, struct erasures, write);

    if (go_on(e, job->ok, &job->err))
        step(e);
}

/* One op for each name. */
static size_t author_ops(struct erasures *e)
{
    struct str folder = e->authors->folder;
    struct js_doc doc;
    struct js_fault fault;
    size_t n = 0;

    if (!js_parse(e->job.names, &js_limits_request, e->mem, &doc, &fault))
        return 0;
    const struct js_node *names = js_root(&doc);
    e->authors = arena_zalloc(e->mem, countof(e->ops) * sizeof(*e->authors));
    for (const struct js_node *v = js_first(&doc, names); v && n < countof(e->ops);
         v = js_next(&doc, names, v)) {
        e->authors[n] = (struct erasure_authors){.author = js_text(&doc, v, e->mem),
                                                 .folder = folder,
                                                 .from = e->documents[0].id,
                                                 .upto = e->documents[e->n_documents - 1].id};
        e->ops[n] = op_erasure_authors(&e->authors[n]);
        n++;
    }
    return n;
}

static void on_documents(struct read_job *job)
{
    struct erasures *e = container_of(job, struct erasures, read);

    if (!go_on(e, job->ok, &job->err))
        return;
    if (e->n_documents == 0) {
        e->at_folder++;
        e->after_document = STR_NONE;
        step(e);
        return;
    }
    e->after_document = arena_dup(e->job_mem, e->documents[e->n_documents - 1].id);
    write_ops(e, e->ops, author_ops(e), on_authors);
}

static void rename_authors(struct erasures *e)
{
    const struct folder_config *f = folder_at(e);

    while (f && !is_of_tenant(f, e->job.tenant)) {
        e->at_folder++;
        f = folder_at(e);
    }
    if (!f) {
        next_phase(e);
        return;
    }
    e->authors = arena_new_of(e->job_mem, struct erasure_authors);
    e->authors->folder = arena_dup(e->job_mem, f->name);
    query(e, run_documents, on_documents);
}

/* What stays. */

static bool run_count(struct read_job *job, struct store *store)
{
    struct erasures *e = container_of(job, struct erasures, read);
    return erasure_count_sealed(e, store, &job->err);
}

static void on_counted(struct read_job *job)
{
    struct erasures *e = container_of(job, struct erasures, read);

    if (!go_on(e, job->ok, &job->err))
        return;
    if (e->is_counted)
        next_phase(e);
    else
        step(e);
}

/* Names. */

static void on_written(struct write_job *job)
{
    struct erasures *e = container_of(job, struct erasures, write);

    if (go_on(e, job->ok, &job->err))
        next_phase(e);
}

static void drop_names(struct erasures *e)
{
    e->ops[0] = op_erasure_names(&e->job);
    write_ops(e, e->ops, 1, on_written);
}

static bool run_clean(struct read_job *job, struct store *store)
{
    struct erasures *e = container_of(job, struct erasures, read);
    fault_hold("erasure.clean", e->job.user_id);
    return store_erasure_clean(store, &e->is_clean, &job->err);
}

static void on_clean(struct read_job *job)
{
    struct erasures *e = container_of(job, struct erasures, read);

    if (!go_on(e, job->ok, &job->err))
        return;
    if (e->is_clean || e->tries++ >= CLEAN_TRIES)
        next_phase(e);
    else
        loop_timer_start(e->timer, CLEAN_MS, LOOK_MS); /* a reader is in the way */
}

static void clean(struct erasures *e)
{
    e->read = (struct read_job){.run = run_clean, .done = on_clean};
    e->busy = !e->stopping && lane_maintain(e->config.lanes, &e->read);
}

/* The end, and its event. */

static void on_done(struct write_job *job)
{
    struct erasures *e = container_of(job, struct erasures, write);

    if (!go_on(e, job->ok, &job->err))
        return;
    log_info("a person was erased", LS("user", e->job.user_id), LI("bodies", e->job.bodies),
             LI("sessions", e->job.sessions), LI("held", e->job.held),
             LI("damaged_segments", e->damaged));
    drop_job(e);
    loop_timer_start(e->timer, 0, LOOK_MS);
}

/* A clause of the event of the end. */
static struct str what_stays(struct erasures *e)
{
    struct str text = STR("");

    if (e->is_counted && e->sealed)
        text = arena_printf(e->job_mem, ", %" PRId64 " sealed events have the name", e->sealed);
    if (e->damaged)
        text = arena_printf(e->job_mem,
                            "%.*s, %zu damaged segments of events were left as evidence (see "
                            "`holdfast audit verify`)",
                            STR_ARG(text), e->damaged);
    return text;
}

static bool run_reread(struct read_job *job, struct store *store)
{
    struct erasures *e = container_of(job, struct erasures, read);
    struct erasure_row *rows = NULL;
    size_t n = 0;

    fault_hold("erasure.end", e->job.user_id);
    if (!store_erasures_page(store, e->job.tenant, true, STR_NONE, STORE_PAGE_MAX, e->mem, &rows,
                             &n, &job->err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (str_eq(rows[i].id, e->job.id)) {
            e->job.bodies = rows[i].bodies;
            e->job.body_bytes = rows[i].body_bytes;
            e->job.sessions = rows[i].sessions;
        }
    return store_erasure_left(store, e->job.tenant, e->job.user_id, e->mem, &e->left, &job->err);
}

static void on_reread(struct read_job *job)
{
    struct erasures *e = container_of(job, struct erasures, read);
    const struct erasure_row *row = &e->job;

    if (!go_on(e, job->ok, &job->err))
        return;
    e->job.held = e->left->held;
    struct str stays = what_stays(e);
    e->event = (struct event_row){
        .tenant = row->tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(e->job_mem, "user:%.*s", STR_ARG(row->user_id)),
        .method = STR("user/erased"),
        .outcome = STR("ok"),
        .error = arena_printf(
            e->job_mem,
            "by %.*s: %" PRId64 " bodies (%" PRId64 " bytes) and %" PRId64
            " sessions were removed, %" PRId64 " held sessions were left%.*s%s%.*s",
            STR_ARG(row->made_by), row->bodies, row->body_bytes, row->sessions, row->held,
            STR_ARG(stays), row->reason.n ? "; reason: " : "", STR_ARG(row->reason)),
        .body_len = -1,
    };
    e->ops[0] = op_erasure_done(&e->job);
    e->ops[1] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &e->event};
    write_ops(e, e->ops, 2, on_done);
}

static void step(struct erasures *e)
{
    switch (e->phase) {
    case ERASURE_ENDS_SESSIONS:
        query(e, run_find_sessions, on_sessions);
        break;
    case ERASURE_WALKS:
        query(e, run_walk, on_page);
        break;
    case ERASURE_DROPS_ROWS:
        query(e, run_left, on_left);
        break;
    case ERASURE_RENAMES_AUTHORS:
        rename_authors(e);
        break;
    case ERASURE_COUNTS_SEALED:
        query(e, run_count, on_counted);
        break;
    case ERASURE_DROPS_NAMES:
        drop_names(e);
        break;
    case ERASURE_CLEANS:
        clean(e);
        break;
    case ERASURE_ENDS:
        query(e, run_reread, on_reread);
        break;
    }
}

/* Looking for work. */

static bool may_take(const struct erasures *e, const struct erasure_row *row)
{
    return !e->config.is_shared || str_eq(row->id, str_of(e->wanted)) ||
           row->moved_ms + LOST_MS < clock_life_ms();
}

static void take(struct erasures *e, const struct erasure_row *row)
{
    struct arena *mem = arena_new(JOB_BYTES);
    struct str *texts[] = {&e->job.id,      &e->job.tenant, &e->job.user_id,
                           &e->job.made_by, &e->job.reason, &e->job.names};

    e->job_mem = mem;
    e->job = *row;
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(mem, *texts[i]);
    e->phase = row->names.p ? ERASURE_ENDS_SESSIONS : ERASURE_CLEANS;
    e->found = row->next_id != 0; /* the beginning of that walk is not known */
    e->open = e->is_counted = false;
    e->damaged = 0;
    e->sealed = e->sealed_next = 0;
    e->tries = 0;
}

static bool run_look(struct read_job *job, struct store *store)
{
    struct erasures *e = container_of(job, struct erasures, read);
    struct erasure_row *rows = NULL;
    size_t n = 0;

    if (!store_erasures_page(store, STR_NONE, true, STR_NONE, STORE_PAGE_MAX, e->mem, &rows, &n,
                             &job->err))
        return false;
    for (size_t i = n; i-- > 0 && !e->job_mem;)
        if (may_take(e, &rows[i]))
            take(e, &rows[i]);
    return true;
}

static void on_look(struct read_job *job)
{
    struct erasures *e = container_of(job, struct erasures, read);

    e->busy = false;
    if (job->ok && e->job_mem && !e->stopping)
        step(e);
}

static void on_timer(void *arg)
{
    struct erasures *e = arg;

    if (e->busy || e->stopping)
        return;
    if (e->job_mem)
        step(e);
    else
        query(e, run_look, on_look);
}

struct erasures *erasures_new(const struct erasures_config *config)
{
    struct erasures *e = xcalloc(1, sizeof(*e));

    e->config = *config;
    e->timer = loop_timer_new(config->loop, on_timer, e);
    loop_timer_start(e->timer, 0, LOOK_MS);
    return e;
}

void erasures_wake(struct erasures *e, struct str id)
{
    if (id.n < sizeof(e->wanted))
        memcpy(e->wanted, id.p, id.n);
    e->wanted[id.n < sizeof(e->wanted) ? id.n : 0] = '\0';
    loop_timer_start(e->timer, 0, LOOK_MS);
}

void erasures_stop(struct erasures *e)
{
    if (!e)
        return;
    e->stopping = true;
    loop_timer_stop(e->timer);
}

void erasures_free(struct erasures *e)
{
    if (!e)
        return;
    loop_timer_free(e->timer);
    arena_free(e->mem);
    drop_job(e);
    free(e);
}

bool erasure_names(struct str text, struct str name)
{
    return name.n > 0 && str_icontains(text, name);
}
