/* SPDX-License-Identifier: Apache-2.0 */
/* POST /sessions/import: a session of another Holdfast, from the file of an export.
 *
 *   query lane: read and check the whole file; was it imported before?
 *   → [ query lane: the next calls → write lane: redact them, append them ]…
 *   → write lane: the session with its context, and an event
 *
 * Nothing is written before the whole file was checked.  The row of the session is written last, so
 * a session that is seen is whole.  Each import has a row id of its own: calls of an import that did
 * not come to its end belong to no session, and nothing shows them but the audit.  The handle is
 * derived from owner and file, so the same file again finds the session of the first time.
 *
 * A file that is longer than a request comes in pieces (upload.h); the last one is the import. */
#include "export/api/impl.h"

#include "api/bodies.h"
#include "api/page.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/random.h"
#include "crypto/base64.h"
#include "crypto/hash.h"
#include "export/api/source.h"
#include "export/api/upload.h"
#include "export/read.h"
#include "front/front.h"
#include "json/write.h"
#include "recording/imported.h"
#include "session/lineage.h"
#include "session/plan.h"
#include "session/setup.h"
#include "session/token.h"

#include <stdlib.h>
#include <unistd.h>

#define MEM_MAX ((size_t)64 << 20) /* of the session, and of one batch */
#define SLICE_MS 100               /* of the query lane at a time */
#define BATCH_CALLS 100
#define SERVERS_MAX 16 /* that are noted, for transcripts */
#define SERVER_NAME_MAX 64
#define BATCH_BYTES ((size_t)1 << 20)

/* Calls on their way to the store. */
struct batch {
    struct arena *mem; /* NULL: none */
    struct recorded_call calls[BATCH_CALLS];
    struct event_row events[BATCH_CALLS];
    struct store_op ops[BATCH_CALLS];
    size_t n;
    bool is_sealed;
};

struct importing {
    struct api_call *call;
    struct arena *mem;
    struct import_source source;
    struct export_read lines;
    struct str pinned; /* public key in hex digits; absent: any */
    bool again;        /* also if the file was imported before */
    bool as_recorded;  /* bodies stay as the origin recorded them */
    int64_t first_line, began_ms;
    struct export_about about;
    char id[UUID_TEXT], handle[HANDLE_LENGTH + 1], context_id[UUID_TEXT], key[65], file[65];
    struct str servers[SERVERS_MAX]; /* that its calls name */
    size_t n_servers;
    struct session_row *before; /* of an earlier import of this file */
    bool is_checked;            /* the first reading has come to the end of the file */
    bool is_at_end;             /* the second one likewise */
    struct str upload;          /* name of an upload; absent: the request has the whole file */
    int64_t at, length;         /* of the piece, and of the upload behind it */
    bool is_last;
    struct read_job read;
    struct write_job write;
    struct batch batch;
    struct session_row row, over;
    struct context_row context;
    struct session_plan plan;
    struct event_row event;
    struct str busy; /* key in the registry; absent: not taken */
};

static void importing_free(struct importing *i)
{
    struct api_services *sv = i->call->sv;

    if (i->busy.p)
        registry_drop_key(sv->registry, i->busy);
    if (i->source.fd >= 0)
        close(i->source.fd);
    import_source_release(&i->source);
    arena_free(i->batch.mem);
    arena_free(i->mem);
    sv->imports--;
    free(i);
}

/* `err` may be that of a job in `i`. */
static void refuse(struct importing *i, const struct error *err)
{
    const struct error why = *err;
    struct api_call *c = i->call;

    importing_free(i);
    api_refuse(c, why.code, "%s", why.text);
}

static void fail(struct importing *i, enum err_code code, const char *text)
{
    struct error err;

    error_set(&err, code, "%s", text);
    refuse(i, &err);
}

/* A stop does not wait for a long file. */
static void query(struct importing *i, bool (*run)(struct read_job *job, struct store *store),
                  void (*done)(struct read_job *job))
{
    i->read = (struct read_job){.run = run, .done = done};
    if (i->call->sv->front->draining)
        fail(i, ERR_UNAVAILABLE, "Holdfast is stopping; import the file again later");
    else if (!lane_query(i->call->sv->lanes, &i->read))
        fail(i, ERR_UNAVAILABLE, "too many requests are waiting for the store; try again shortly");
}

/* The answer. */

static const char *signer_of(const struct importing *i)
{
    const struct export_key *own = i->call->sv->export_key;

    if (i->pinned.p)
        return "named";
    return own && memcmp(export_key_public(own), i->lines.key, EXPORT_KEY_BYTES) == 0 ? "this"
                                                                                      : "unknown";
}

static void reply(struct importing *i, const struct session_row *row)
{
    struct api_call *c = i->call;
    bool is_new = row != i->before;
    struct js_writer w;
    struct buf out;

    buf_init(&out, MEM_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "id", row->id);
    js_kv_string(&w, "session_id", row->handle);
    js_kv_string(&w, "status", str_of(session_status_name(row->status)));
    js_kv_bool(&w, "is_new", is_new);
    js_kv_int(&w, "calls", i->lines.calls);
    js_kv_string(&w, "from_session", i->about.handle);
    js_kv_string(&w, "key", str_of(i->key));
    js_kv_string(&w, "signer", str_of(signer_of(i)));
    js_object_end(&w);
    struct str text = arena_dup(c->mem, buf_str(&out));
    struct str headers = arena_printf(c->mem, "Location: /api/v1/sessions/%.*s\r\n",
                                      STR_ARG(api_in_path(c, row->handle)));
    buf_release(&out);
    importing_free(i);
    api_reply(c, is_new ? 201 : 200, is_new ? headers : STR_NONE, text);
}

/* The session, last. */

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

    buf_init(&out, MEM_MAX);
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

static void on_created(struct write_job *job)
{
    struct importing *i = container_of(job, struct importing, write);
    struct session_row row = i->row;

    (void)session_plan_committed(&i->plan, job->ops, 1, job->ok);
    if (!job->ok && job->ops[0].verdict == VERDICT_DUPLICATE) {
        fail(i, ERR_CONFLICT, "this file was imported a moment ago; see `holdfast sessions list`");
    } else if (!job->ok) {
        refuse(i, &job->err);
    } else {
        log_info("a session was imported", LS("session_id", row.id), LI("calls", i->lines.calls),
                 LZ("signed_by", i->key));
        row.status = i->about.status;
        reply(i, &row);
    }
}

/* A session that had ended is ended in the same commit, because only a live one takes a context. */
static size_t fill_ops(struct importing *i, struct store_op *ops)
{
    const struct principal *who = &i->call->who;
    size_t n;

    i->plan = (struct session_plan){
        .who = who, .creates = &i->row, .home = i->call->sv->sessions, .max_counted = -1};
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

static void create(struct importing *i)
{
    struct store_op *ops = arena_zalloc(i->mem, (SESSION_PLAN_OPS + 3) * sizeof(*ops));

    fill_row(i);
    if (!i->row.lineage.p) {
        fail(i, ERR_BAD_INPUT, "the names in the first line are too long; nothing was imported");
        return;
    }
    fill_event(i);
    i->write =
        (struct write_job){.ops = ops, .n = fill_ops(i, ops), .grows = true, .done = on_created};
    if (!lane_write(i->call->sv->lanes, &i->write))
        fail(i, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
}

/* The calls. */

static void read_batch(struct importing *i);

/* On the write lane. */
static void seal_batch(struct write_job *job)
{
    struct importing *i = container_of(job, struct importing, write);
    struct batch *b = &i->batch;

    for (size_t k = 0; k < b->n && !b->is_sealed; k++) {
        if (!i->as_recorded)
            import_redact(i->call->sv->audit, &b->calls[k], b->mem);
        imported_call_write(&b->calls[k], b->mem, &b->events[k]);
    }
    b->is_sealed = true;
}

static void on_batch(struct write_job *job)
{
    struct importing *i = container_of(job, struct importing, write);

    if (!job->ok) {
        refuse(i, &job->err);
        return;
    }
    arena_free(i->batch.mem);
    i->batch.mem = NULL;
    if (i->is_at_end)
        create(i);
    else
        read_batch(i);
}

static void write_batch(struct importing *i)
{
    struct batch *b = &i->batch;

    for (size_t k = 0; k < b->n; k++) {
        b->events[k] = (struct event_row){
            .tenant = i->call->who.tenant,
            .owner = i->call->who.owner,
            .session_id = str_of(i->id),
            .at_ms = clock_wall_ms(),
        };
        b->ops[k] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &b->events[k]};
    }
    i->write = (struct write_job){
        .ops = b->ops, .n = b->n, .grows = true, .prepare = seal_batch, .done = on_batch};
    if (!lane_write(i->call->sv->lanes, &i->write))
        fail(i, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
}

static bool run_batch(struct read_job *job, struct store *store unused_arg)
{
    struct importing *i = container_of(job, struct importing, read);
    struct batch *b = &i->batch;
    struct export_line what;
    struct str line;
    size_t from = i->source.at;

    fault_hold("import.batch", str_of(i->id));
    while (b->n < BATCH_CALLS && i->source.at - from < BATCH_BYTES) {
        if (!import_source_line(&i->source, EXPORT_LINE_MAX, &line, &i->is_at_end, &job->err))
            return false;
        if (i->is_at_end)
            return export_read_end(&i->lines, &job->err);
        if (!export_read_line(&i->lines, arena_dup(b->mem, line), b->mem, &what, &job->err))
            return false;
        if (what.type == EXPORT_LINE_CALL)
            b->calls[b->n++] = what.call;
    }
    return true;
}

static void on_batch_read(struct read_job *job)
{
    struct importing *i = container_of(job, struct importing, read);

    if (!job->ok)
        refuse(i, &job->err);
    else if (i->batch.n)
        write_batch(i);
    else if (i->is_at_end)
        create(i);
    else
        read_batch(i);
}

static void read_batch(struct importing *i)
{
    struct batch *b = &i->batch;

    arena_free(b->mem);
    b->mem = arena_new(SIZE_MAX / 4);
    b->n = 0;
    b->is_sealed = false;
    query(i, run_batch, on_batch_read);
}

/* The check. */

static void derive_handle(struct importing *i)
{
    const struct principal *who = &i->call->who;
    const struct str parts[] = {STR("holdfast-session-import"),
                                str_n("", 1),
                                who->tenant,
                                str_n("", 1),
                                who->owner,
                                str_n("", 1),
                                str_of(i->file)};
    uint8_t digest[SHA256_BYTES];

    sha256_parts(parts, countof(parts), digest);
    memcpy(i->handle, "ses_", 4);
    base64url_encode(digest, sizeof(digest), i->handle + 4);
}

static bool check_key(const struct importing *i, struct error *err)
{
    return !i->pinned.p || str_ieq(i->pinned, str_of(i->key)) ||
           error_set(err, ERR_DENIED,
                     "the file is signed by the key %s, not by %.*s; nothing was imported", i->key,
                     STR_ARG(i->pinned));
}

static void note_server(struct importing *i, struct str server)
{
    if (!server.n || server.n > SERVER_NAME_MAX)
        return;
    for (size_t k = 0; k < i->n_servers; k++)
        if (str_eq(i->servers[k], server))
            return;
    if (i->n_servers < SERVERS_MAX)
        i->servers[i->n_servers++] = arena_dup(i->mem, server);
}

static bool check_line(struct importing *i, struct str line, struct arena *mem, struct error *err)
{
    bool is_first = i->lines.line == 0;
    struct export_line what;

    if (is_first) /* its texts are kept */
        line = arena_dup(i->mem, line);
    if (!export_read_line(&i->lines, line, is_first ? i->mem : mem, &what, err))
        return false;
    if (is_first) {
        i->about = what.about;
        hex_encode(i->lines.key, sizeof(i->lines.key), i->key);
        return check_key(i, err);
    }
    if (what.type == EXPORT_LINE_CALL)
        note_server(i, what.call.server);
    return true;
}

static bool run_check(struct read_job *job, struct store *store)
{
    struct importing *i = container_of(job, struct importing, read);
    struct arena *mem = arena_new(SIZE_MAX / 4);
    int64_t until_ms = clock_mono_ms() + SLICE_MS;
    struct str line;
    bool ok = true, is_end = false;

    for (; ok && !is_end && clock_mono_ms() < until_ms; arena_reset(mem))
        ok = import_source_line(&i->source, EXPORT_LINE_MAX, &line, &is_end, &job->err) &&
             (is_end || check_line(i, line, mem, &job->err));
    arena_free(mem);
    if (!ok || !is_end)
        return ok;
    i->is_checked = true;
    if (!export_read_end(&i->lines, &job->err))
        return false;
    hex_encode(i->lines.chain.link, sizeof(i->lines.chain.link), i->file);
    if (i->again) {
        token_handle(i->handle);
        return true;
    }
    derive_handle(i);
    return store_session_by_handle(store, &i->call->who, str_of(i->handle), i->mem, &i->before,
                                   &job->err);
}

static void begin_writing(struct importing *i)
{
    struct str busy = arena_printf(i->mem, "import%c%s", 0, i->handle);

    if (!registry_take_key(i->call->sv->registry, busy)) {
        fail(i, ERR_CONFLICT, "this file is being imported by another request; wait for its end");
        return;
    }
    i->busy = busy;
    random_uuid7(i->id);
    i->began_ms = clock_life_ms();
    import_source_rewind(&i->source);
    i->lines = (struct export_read){.first_line = i->first_line};
    read_batch(i);
}

static void on_checked(struct read_job *job)
{
    struct importing *i = container_of(job, struct importing, read);

    if (!job->ok)
        refuse(i, &job->err);
    else if (!i->is_checked)
        query(i, run_check, on_checked);
    else if (i->before)
        reply(i, i->before);
    else
        begin_writing(i);
}

/* The request. */

static bool read_key(struct api_call *c, struct str *ret)
{
    uint8_t key[EXPORT_KEY_BYTES];

    if (!api_query(c, "key", ret))
        return false;
    if (!ret->p || hex_decode(*ret, key, sizeof(key)))
        return true;
    api_refuse(c, ERR_BAD_INPUT,
               "?key= takes the whole public key of the origin, 64 hex digits: \"key\" in the "
               "first line of one of its exports");
    return false;
}

static bool read_piece(struct api_call *c, struct importing *i)
{
    struct str last;

    if (!api_query(c, "upload", &i->upload) || !api_query(c, "last", &last) ||
        !api_query_number(c, "at", 0, UPLOAD_BYTES_MAX, 0, &i->at))
        return false;
    i->is_last = str_eq(last, STR("1"));
    if (i->upload.p || (!i->at && !last.p))
        return true;
    api_refuse(c, ERR_BAD_INPUT, "?at= and ?last= go with ?upload=, the name of the upload");
    return false;
}

static bool read_query(struct api_call *c, struct importing *i)
{
    struct str again, as_recorded;

    if (!read_piece(c, i) || !read_key(c, &i->pinned) || !api_query(c, "again", &again) ||
        !api_query(c, "as_recorded", &as_recorded) ||
        !api_query_number(c, "line", 1, INT32_MAX, 1, &i->first_line))
        return false;
    i->again = str_eq(again, STR("1"));
    i->as_recorded = str_eq(as_recorded, STR("1"));
    if (!i->as_recorded || api_is_local(c) || c->who.role == ROLE_ADMIN)
        return true;
    api_refuse(c, ERR_DENIED,
               "only an administrator may keep secrets that another Holdfast has recorded; leave "
               "out ?as_recorded=1, and they are replaced");
    return false;
}

/* A file in pieces. */

static void reply_piece(struct importing *i)
{
    struct api_call *c = i->call;

    importing_free(i);
    api_reply(c, 202, STR_NONE, STR_NONE);
}

static bool run_piece(struct read_job *job, struct store *store unused_arg)
{
    struct importing *i = container_of(job, struct importing, read);
    const struct upload u = {i->call->sv->data_dir, &i->call->who, i->upload};

    return upload_add(&u, i->at, i->source.bytes, &i->length, &job->err) &&
           (!i->is_last || upload_take(&u, &i->source.fd, &job->err));
}

static void on_piece(struct read_job *job)
{
    struct importing *i = container_of(job, struct importing, read);

    if (!job->ok)
        refuse(i, &job->err);
    else if (i->is_last)
        query(i, run_check, on_checked);
    else
        reply_piece(i);
}

void api_import_session(struct api_call *c)
{
    struct importing what = {.call = c, .source = {.bytes = c->http->body, .fd = -1}};
    struct error why;

    if (!read_query(c, &what) || !api_own_tenant(c))
        return;
    if (lanes_lack_room(c->sv->lanes, &why)) {
        api_refuse(c, why.code, "%s", why.text);
        return;
    }
    if (c->sv->imports >= IMPORTS_MAX) {
        api_refuse(c, ERR_UNAVAILABLE, "%d imports are under way; try again when one has ended",
                   IMPORTS_MAX);
        return;
    }
    struct importing *i = xcalloc(1, sizeof(*i));
    *i = what;
    i->mem = arena_new(MEM_MAX);
    i->lines.first_line = i->first_line;
    c->sv->imports++;
    if (i->upload.p)
        query(i, run_piece, on_piece);
    else
        query(i, run_check, on_checked);
}
