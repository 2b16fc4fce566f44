/* SPDX-License-Identifier: Apache-2.0 */
/* GET /sessions/{id}/export: the recording of a session as a stream.
 *
 *   wait for the fold → query lane: find the session, first page → [ write → drained → query lane:
 *   next page ]… → end
 *
 * One page is in memory at a time.  The next one is read when the client has taken the last, so a
 * slow reader waits for itself alone.  The reading ends when the client leaves or its credential is
 * revoked.  Before the first byte every failure is a refusal; later the stream is cut off, which
 * every format shows by its missing end. */
#include "export/api/impl.h"

#include "api/bodies.h"
#include "api/who.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "export/origin.h"
#include "front/front.h"
#include "identity/identity.h"
#include "session/share_store/verbs.h"

#include <stdlib.h>

/* Calls of one page; recording.h bounds their bytes. */
#define PAGE 100
/* A page of RECORDING_PAGE_BYTES and one call, in any format.  The queue takes one at a time. */
#define QUEUE_MAX ((size_t)64 << 20)
#define MEM_MAX ((size_t)64 << 20)

struct sending {
    struct api_call *call;
    struct arena *mem; /* of the session */
    struct buf out;
    struct write_job fold;
    struct read_job read;
    struct recording recording;
    struct export_session session;
    struct export_writer writer;
    const struct export_format *format;
    struct identity_watch credential;
    bool began;   /* the head of the answer is sent */
    bool reading; /* `read` is on the lane */
    bool is_gone; /* the client has left, or its credential was revoked; waits for `read` */
};

static void sending_free(struct sending *s)
{
    s->call->sv->exports--;
    identity_unwatch(&s->credential);
    export_release(&s->writer);
    buf_release(&s->out);
    arena_free(s->mem);
    free(s);
}

static void refuse(struct sending *s, const struct error *err)
{
    struct api_call *c = s->call;
    const struct error why = *err; /* it may be in *s */

    sending_free(s);
    c->reg.result = REGISTRY_MISSING;
    if (why.code == ERR_SESSION_NOT_FOUND)
        api_refuse_result(c);
    else
        api_refuse(c, why.code, "%s", why.text);
}

/* Cuts the answer off. */
static void break_off(struct sending *s)
{
    struct api_call *c = s->call;

    sending_free(s);
    api_stream_abort(c);
}

/* On the query lane. */

static bool find_session(struct sending *s, struct store *store, struct session_row **ret,
                         struct error *err)
{
    struct api_call *c = s->call;
    struct str name = c->match.params[0], id = uuid_lower(name, s->mem);

    *ret = NULL;
    if (!store_session_by_handle(store, &c->who, name, s->mem, ret, err) ||
        (!*ret && text_is_uuid(id) && !store_session_by_id(store, &c->who, id, s->mem, ret, err)))
        return false;
    /* Whoever may read a session by a share, may export it. */
    if (!*ret && !store_shared_session(store, &c->who, name, false, s->mem, ret, err))
        return false;
    return *ret || error_set(err, ERR_SESSION_NOT_FOUND, "there is no session with this name");
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Those of an imported session at its origin, and those that it has used here, by name. */
static void name_servers(struct sending *s, const struct link_row *links, size_t n_links)
{
    size_t n_before = 0, n = 0;
    struct str *before = export_origin_servers(s->session.row, s->mem, &n_before),
               *all = arena_zalloc(s->mem, (n_before + n_links + 1) * sizeof(*all));

    for (size_t i = 0; i < n_before; i++)
        all[n++] = before[i];
    for (size_t i = 0; i < n_links; i++)
        all[n++] = links[i].server;
    qsort(all, n, sizeof(*all), by_name);
    s->session.servers = all;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !str_eq(all[i], all[i - 1]))
            all[s->session.n_servers++] = all[i];
}

static bool read_about(struct sending *s, struct store *store, struct session_row *row,
                       struct error *err)
{
    const struct principal owner = {.tenant = row->tenant, .owner = row->owner};
    struct export_session *e = &s->session;
    struct context_row *context = NULL;
    struct link_row *links = NULL;
    struct who_names names;
    size_t n = 0;

    if (!store_links_of(store, &owner, row->id, s->mem, &links, &n, err) ||
        (row->context_id.p &&
         !store_context_get(store, &owner, row->context_id, s->mem, &context, err)))
        return false;
    e->row = row;
    name_servers(s, links, n);
    if (context)
        e->context = context->document;
    who_init(&names, store, s->mem);
    who_owner(&names, row->tenant, row->owner, &e->user, &e->key);
    who_release(&names);
    return true;
}

static bool begin(struct sending *s, struct store *store, struct error *err)
{
    struct session_row *row;

    if (!find_session(s, store, &row, err) || !read_about(s, store, row, err))
        return false;
    recording_begin(&s->recording, row, clock_wall_ms());
    export_begin(&s->writer, &s->session, s->format, s->call->sv->export_key, &s->out);
    return true;
}

static bool run_page(struct read_job *job, struct store *store)
{
    struct sending *s = container_of(job, struct sending, read);
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct recorded_call *calls = NULL;
    size_t n = 0;
    bool ok = (s->session.row || begin(s, store, &job->err)) &&
              recording_page(&s->recording, store, PAGE, mem, &calls, &n, &job->err);

    if (ok) {
        export_calls(&s->writer, calls, n, &s->out);
        if (s->recording.at_end)
            export_end(&s->writer, &s->out);
    }
    arena_free(mem);
    return ok;
}

/* On the loop. */

static void on_page(struct read_job *job);

static void read_page(struct sending *s)
{
    struct error err;

    buf_reset(&s->out);
    s->read = (struct read_job){.run = run_page, .done = on_page};
    s->reading = lane_query(s->call->sv->lanes, &s->read);
    if (s->reading)
        return;
    error_set(&err, ERR_UNAVAILABLE,
              "too many requests are waiting for the store; try again shortly");
    if (s->began)
        break_off(s);
    else
        refuse(s, &err);
}

static void on_abort(struct http_request *r)
{
    struct sending *s = r->user;

    s->is_gone = true;
    if (!s->reading)
        break_off(s);
}

static void on_revoked(struct identity_watch *w)
{
    struct sending *s = container_of(w, struct sending, credential);

    s->is_gone = true;
    if (!s->reading)
        break_off(s);
}

static void on_drained(struct http_request *r)
{
    struct sending *s = r->user;

    if (!s->reading)
        read_page(s);
}

static void begin_stream(struct sending *s)
{
    struct http_request *r = s->call->http;

    s->began = true;
    s->credential.on_revoked = on_revoked;
    identity_watch(s->call->sv->front->identity, &s->credential, &s->call->who);
    r->user = s;
    r->on_abort = on_abort;
    r->on_drained = on_drained;
    api_stream_begin(s->call, s->format->type, STR_NONE, QUEUE_MAX);
}

static void finish(struct sending *s)
{
    struct api_call *c = s->call;

    sending_free(s);
    api_stream_end(c);
}

static void on_page(struct read_job *job)
{
    struct sending *s = container_of(job, struct sending, read);
    struct api_call *c = s->call;
    bool is_head = str_eq(c->http->head->method, STR("HEAD"));

    s->reading = false;
    if (!job->ok && !s->began) {
        refuse(s, &job->err);
        return;
    }
    if (!job->ok)
        log_info("an export was cut off", LZ("why", job->err.text));
    if (!job->ok || s->is_gone || (s->began && c->sv->front->draining)) {
        break_off(s);
        return;
    }
    if (!s->began)
        begin_stream(s);
    if (!api_stream_write(c, buf_str(&s->out)))
        break_off(s);
    else if (s->recording.at_end || is_head)
        finish(s);
    else if (http_stream_queued(c->http) == 0)
        read_page(s);
}

/* The counters of the session include every call that was answered. */
static void on_folded(struct write_job *job)
{
    read_page(container_of(job, struct sending, fold));
}

static bool read_format(struct api_call *c, const struct export_format **ret)
{
    struct str name;

    if (!api_query(c, "format", &name))
        return false;
    *ret = name.p ? export_format_named(name) : export_formats[0];
    if (!*ret)
        api_refuse(c, ERR_BAD_INPUT, "there is no format \"%.*s\"; ?format= takes jsonl, md or csv",
                   STR_ARG(str_cut(name, 64)));
    return *ret != NULL;
}

void api_export_session(struct api_call *c)
{
    const struct export_format *format;

    if (!read_format(c, &format) || !api_own_tenant(c))
        return;
    if (c->sv->exports >= EXPORTS_MAX) {
        api_refuse(c, ERR_UNAVAILABLE, "%d exports are under way; try again when one has ended",
                   EXPORTS_MAX);
        return;
    }
    struct sending *s = xcalloc(1, sizeof(*s));
    s->call = c;
    s->format = format;
    s->mem = arena_new(MEM_MAX);
    buf_init(&s->out, QUEUE_MAX);
    c->sv->exports++;
    s->fold = (struct write_job){.done = on_folded};
    if (!lane_write(c->sv->lanes, &s->fold)) /* a command that only reads has no write lane */
        read_page(s);
}
