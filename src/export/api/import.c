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
#include "export/api/import_impl.h"

#include "api/bodies.h"
#include "base/clock.h"
#include "base/fault.h"
#include "crypto/base64.h"
#include "crypto/hash.h"
#include "export/api/upload.h"
#include "front/front.h"
#include "json/write.h"
#include "recording/imported.h"

#include <stdlib.h>
#include <unistd.h>

#define SLICE_MS 100 /* of the query lane at a time */
#define SERVER_NAME_MAX 64
#define BATCH_BYTES ((size_t)1 << 20)

void import_free(struct importing *i)
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

void import_refuse(struct importing *i, const struct error *err)
{
    const struct error why = *err;
    struct api_call *c = i->call;

    import_free(i);
    api_refuse(c, why.code, "%s", why.text);
}

void import_fail(struct importing *i, enum err_code code, const char *text)
{
    struct error err;

    error_set(&err, code, "%s", text);
    import_refuse(i, &err);
}

/* A stop does not wait for a long file. */
static void query(struct importing *i, bool (*run)(struct read_job *job, struct store *store),
                  void (*done)(struct read_job *job))
{
    i->read = (struct read_job){.run = run, .done = done};
    if (i->call->sv->front->draining)
        import_fail(i, ERR_UNAVAILABLE, "Holdfast is stopping; import the file again later");
    else if (!lane_query(i->call->sv->lanes, &i->read))
        import_fail(i, ERR_UNAVAILABLE,
                    "too many requests are waiting for the store; try again shortly");
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

void import_reply(struct importing *i, const struct session_row *row)
{
    struct api_call *c = i->call;
    bool is_new = row != i->before;
    struct js_writer w;
    struct buf out;

    buf_init(&out, IMPORT_MEM_MAX);
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
    import_free(i);
    api_reply(c, is_new ? 201 : 200, is_new ? headers : STR_NONE, text);
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
        import_refuse(i, &job->err);
        return;
    }
    arena_free(i->batch.mem);
    i->batch.mem = NULL;
    if (i->is_at_end)
        import_create(i);
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
        import_fail(i, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
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
        import_refuse(i, &job->err);
    else if (i->batch.n)
        write_batch(i);
    else if (i->is_at_end)
        import_create(i);
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
        import_fail(i, ERR_CONFLICT,
                    "this file is being imported by another request; wait for its end");
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
        import_refuse(i, &job->err);
    else if (!i->is_checked)
        query(i, run_check, on_checked);
    else if (i->before)
        import_reply(i, i->before);
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

    import_free(i);
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
        import_refuse(i, &job->err);
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
    i->mem = arena_new(IMPORT_MEM_MAX);
    i->lines.first_line = i->first_line;
    c->sv->imports++;
    if (i->upload.p)
        query(i, run_piece, on_piece);
    else
        query(i, run_check, on_checked);
}
