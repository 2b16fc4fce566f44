/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of an import: the row of the session with its context, and an event, in one commit. */
#include "export/api/import_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "json/write.h"
#include "session/lineage.h"
#include "session/setup.h"

static void write_servers(const struct importing *i, struct js_writer *w)
{
    js_key(w, STR("servers"));
    js_array(w);
    for (size_t k = 0; k < i->n_servers; k++)
        js_string(w, i->servers[k]);
    js_array_end(w);
}

static struct str original(struct importing *i)
{
    const struct export_about *a = &i->about;
    struct js_writer w;
    struct buf out;

    buf_init(&out, IMPORT_MEM_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "handle", a->handle);
    js_kv_string(&w, "key", str_of(i->key));
    js_kv_string(&w, "file", str_of(i->file));
    js_kv_string(&w, "origin", a->origin);
    js_kv_string(&w, "carrier", a->carrier);
    js_kv_int(&w, "created_ms", a->created_ms);
    js_kv_int(&w, "last_activity_ms", a->last_activity_ms);
    if (a->terminated_ms)
        js_kv_int(&w, "terminated_ms", a->terminated_ms);
    js_kv_int(&w, "calls", a->calls);
    js_kv_int(&w, "tokens", a->tokens);
    write_servers(i, &w);
    if (a->lineage.n && a->lineage.n <= LINEAGE_BYTES_MAX / 2)
        js_kv_raw(&w, "before", a->lineage);
    js_object_end(&w);
    struct str text = arena_dup(i->mem, buf_str(&out));
    buf_release(&out);
    return text;
}

/* A complete record is for an administrator to decide, not for a file. */
static struct str setup_of(struct importing *i)
{
    struct session_setup setup;

    if (i->as_recorded || !i->about.setup.p || !session_setup_parse(i->about.setup, i->mem, &setup))
        return i->about.setup;
    setup.audit = SETUP_AUDIT_REDACTED;
    setup.audit_body = 0;
    return session_setup_write(&setup, i->mem);
}

static void fill_row(struct importing *i)
{
    const struct export_about *a = &i->about;
    const struct principal *who = &i->call->who;

    i->row = (struct session_row){
        .id = str_of(i->id),
        .handle = str_of(i->handle),
        .tenant = who->tenant,
        .owner = who->owner,
        .user_id = who->user_id,
        .edge_mcp_id = a->edge_mcp_id.p ? a->edge_mcp_id : STR(""),
        .client_name = a->client_name,
        .client_type = a->client_type,
        .client_version = a->client_version,
        .status = SESSION_ACTIVE,
        .origin = ORIGIN_REST,
        .initialized = a->initialized,
        .counted = a->status == SESSION_ACTIVE, /* that one can be used */
        .carrier = STR("import"),
        .core_session_id = a->core_session_id,
        .connection_metadata = a->connection_metadata,
        .setup = setup_of(i),
        .toolsets = a->toolsets,
        .lineage = lineage_write(LINEAGE_IMPORT, a->id, original(i), i->mem),
        .created_ms = i->began_ms,
        .last_activity_ms = i->began_ms,
        .expires_ms = clock_life_ms() + api_default_ttl_ms(i->call),
        .version = 1,
    };
    if (a->context.p) {
        random_uuid7(i->context_id);
        i->row.context_id = str_of(i->context_id);
    }
}

static void fill_event(struct importing *i)
{
    i->event = (struct event_row){
        .tenant = i->row.tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = i->row.owner,
        .session_id = i->row.id,
        .method = STR("session/import"),
        .outcome = STR("ok"),
        .error = api_by(i->call, i->mem),
        .body = i->row.lineage,
        .body_len = (int64_t)i->row.lineage.n,
    };
    sha256(i->event.body, i->event.body_sha);
    memcpy(i->event.stored_sha, i->event.body_sha, sizeof(i->event.stored_sha));
}

static void refuse_limit(struct importing *i)
{
    struct api_call *c = i->call;

    import_free(i);
    c->reg.result = REGISTRY_LIMIT;
    api_refuse_result(c);
}

static void on_created(struct write_job *job)
{
    struct importing *i = container_of(job, struct importing, write);
    struct session_row row = i->row;

    (void)session_plan_committed(&i->plan, job->ops, 1, job->ok);
    if (!job->ok && job->ops[0].verdict == VERDICT_DUPLICATE) {
        import_fail(i, ERR_CONFLICT,
                    "this file was imported a moment ago; see `holdfast sessions list`");
    } else if (!job->ok && job->ops[0].verdict == VERDICT_LIMIT) {
        refuse_limit(i);
    } else if (!job->ok) {
        import_refuse(i, &job->err);
    } else {
        log_info("a session was imported", LS("session_id", row.id), LI("calls", i->lines.calls),
                 LZ("signed_by", i->key));
        row.status = i->about.status;
        import_reply(i, &row);
    }
}

/* A session that had ended is ended in the same commit, because only a live one takes a context. */
static size_t fill_ops(struct importing *i, struct store_op *ops)
{
    const struct principal *who = &i->call->who;
    size_t n;

    i->plan = (struct session_plan){.who = who,
                                    .creates = &i->row,
                                    .home = i->call->sv->sessions,
                                    .max_counted = api_max_sessions(i->call)};
    n = session_plan_ops(&i->plan, i->mem, ops);
    if (i->about.context.p) {
        i->context = (struct context_row){.id = i->row.context_id,
                                          .tenant = who->tenant,
                                          .session_id = i->row.id,
                                          .document = i->about.context,
                                          .created_ms = i->row.created_ms,
                                          .updated_ms = i->row.created_ms};
        ops[n++] = (struct store_op){.kind = OP_CONTEXT_PUT, .who = who, .context = &i->context};
    }
    if (i->about.status != SESSION_ACTIVE) {
        i->over = (struct session_row){.id = i->row.id,
                                       .status = i->about.status,
                                       .termination_reason = i->about.termination_reason,
                                       .terminated_ms = clock_life_ms()};
        ops[n++] = (struct store_op){.kind = OP_SESSION_END, .who = who, .session = &i->over};
    }
    for (size_t k = 0; k < n; k++)
        ops[k].required = true;
    ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &i->event};
    return n;
}

void import_create(struct importing *i)
{
    struct store_op *ops = arena_zalloc(i->mem, (SESSION_PLAN_OPS + 3) * sizeof(*ops));

    fill_row(i);
    if (!i->row.lineage.p) {
        import_fail(i, ERR_BAD_INPUT,
                    "the names in the first line are too long; nothing was imported");
        return;
    }
    fill_event(i);
    i->write =
        (struct write_job){.ops = ops, .n = fill_ops(i, ops), .grows = true, .done = on_created};
    if (!lane_write(i->call->sv->lanes, &i->write))
        import_fail(i, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
}
