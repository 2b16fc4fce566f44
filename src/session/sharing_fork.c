/* SPDX-License-Identifier: Apache-2.0 */
/* Forks a session: reads what it remembers, creates the copy with its context document and an event in
 * one commit, then copies the lines of documents that it has seen.  A process that dies in between
 * leaves a copy that has to read documents again before it changes them. */
#include "session/sharing_impl.h"

#include "base/clock.h"
#include "docs/store/ops.h"
#include "session/lineage.h"
#include "session/registry.h"
#include "session/resident.h"
#include "session/setup.h"
#include "session/token.h"

struct forking {
    struct registry_call registry;
    struct context_row *context;
    struct session_row origin, row;
    struct document_reads_copy reads;
    char handle[HANDLE_LENGTH + 1], context_id[UUID_TEXT];
};

static bool run_origin(struct read_job *job, struct store *store)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);
    struct error *err = &job->err;
    bool ok = c->by_id ? store_session_by_id(store, c->who, c->name, c->mem, &c->row, err)
                       : store_session_by_handle(store, c->who, c->name, c->mem, &c->row, err);

    if (!ok ||
        (!c->row && !store_shared_session(store, c->who, c->name, c->by_id, c->mem, &c->row, err)))
        return false;
    if (!c->row)
        return error_set(err, ERR_SESSION_NOT_FOUND,
                         "There is no session of this name that you may fork.");
    const struct principal owner = {.tenant = c->row->tenant, .owner = c->row->owner};
    return !c->row->context_id.p ||
           store_context_get(store, &owner, c->row->context_id, c->mem, &c->fork->context, err);
}

static void fill_row(struct sharing_call *c)
{
    struct forking *f = c->fork;
    const struct session_row *from = &f->origin;
    int64_t now = clock_life_ms();

    random_uuid7(c->id);
    token_handle(f->handle);
    f->row = (struct session_row){
        .id = str_of(c->id),
        .handle = str_of(f->handle),
        .tenant = c->who->tenant,
        .owner = c->who->owner,
        .user_id = c->who->user_id,
        .edge_mcp_id = from->edge_mcp_id,
        .client_name = c->client.n ? c->client : from->client_name,
        .status = SESSION_ACTIVE,
        .origin = ORIGIN_REST,
        .initialized = true,
        .counted = true,
        .carrier = STR("rest"),
        .setup = session_setup_for_copy(from->setup, c->mem),
        .toolsets = from->toolsets,
        .lineage = lineage_write(LINEAGE_FORK, from->id, STR_NONE, c->mem),
        .created_ms = now,
        .last_activity_ms = now,
        .expires_ms = now + (from->ttl_ms ? from->ttl_ms : c->life_ms),
        .ttl_ms = from->ttl_ms,
        .version = 1,
    };
    if (!f->context)
        return;
    random_uuid7(f->context_id);
    f->row.context_id = str_of(f->context_id);
    f->registry.first_context = f->context->document;
}

static void on_copied(struct write_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, write);

    if (!job->ok)
        c->err = job->err;
    c->row = &c->fork->row;
    sharing_finish(c);
}

static void on_created(struct registry_call *r)
{
    struct sharing_call *c = r->user;
    struct forking *f = c->fork;

    switch (r->result) {
    case REGISTRY_OK:
        f->reads = (struct document_reads_copy){.from = f->origin.id, .to = f->row.id};
        c->ops[0] = op_document_reads_copy(c->who, &f->reads);
        sharing_write(c, 1, on_copied);
        return;
    case REGISTRY_LIMIT:
        error_set(&c->err, ERR_SESSION_LIMIT, SESSION_LIMIT_TEXT ". " SESSION_LIMIT_WAY_OUT);
        break;
    default:
        c->err = r->err;
        if (c->err.code == ERR_NONE)
            error_set(&c->err, ERR_UNAVAILABLE, "the copy could not be stored; try again shortly");
    }
    sharing_finish(c);
}

static void on_origin(struct read_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);
    struct forking *f = c->fork;

    if (!job->ok) {
        c->err = job->err;
        sharing_finish(c);
        return;
    }
    f->origin = session_row_dup(c->row, c->mem);
    f->registry = (struct registry_call){
        .who = c->who, .mem = c->mem, .event = &c->event, .done = on_created, .user = c};
    fill_row(c);
    sharing_note(c, "session/fork", "ok",
                 arena_printf(c->mem, "by %.*s, in session %s", STR_ARG(c->who->owner), c->id));
    registry_create(c->home->config.registry, &f->registry, &f->row, c->max_counted);
}

void sharing_fork(struct sharing *s, struct sharing_call *c)
{
    c->home = s;
    c->err = (struct error){.code = ERR_NONE};
    c->row = NULL;
    c->fork = arena_new_of(c->mem, struct forking);
    sharing_read(c, run_origin, on_origin);
}
