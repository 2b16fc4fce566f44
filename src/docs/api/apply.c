/* SPDX-License-Identifier: Apache-2.0 */
/* People decide about suggestions.  A batch for one document is one change and one revision; the
 * answer has a result for each item. */
#include "docs/api/bodies.h"
#include "docs/api/request.h"
#include "docs/api/table.h"

#include "base/clock.h"
#include "crypto/hash.h"
#include "docs/decide.h"

struct applying {
    struct apply_body body;
    struct decide_request request;
    enum decide_result *results;
    size_t remaining;
    /* The document after the change. */
    int64_t revision;
    char tag[DOCS_TAG_TEXT];
    bool is_removed;
};

/* Runs on the worker that made the change: copies the results and counts the suggestions left. */
static bool work_count(struct docs_call *call, struct error *err unused_arg)
{
    struct docs_request *q = call->user;
    struct applying *a = q->args;
    struct critic_suggestion *list;
    struct critic critic;

    memcpy(a->results, decide_change_results(call->change), a->request.n * sizeof(*a->results));
    critic_parse(call->bytes, call->mem, &critic);
    a->remaining = critic_suggestions(&critic, call->mem, &list);
    return true;
}

static void write_results(struct js_writer *w, const struct applying *a)
{
    js_key(w, STR("applied"));
    js_array(w);
    for (size_t i = 0; i < a->request.n; i++)
        if (a->results[i] == DECIDE_DONE)
            js_int(w, (int64_t)i);
    js_array_end(w);
    js_key(w, STR("failed"));
    js_array(w);
    for (size_t i = 0; i < a->request.n; i++) {
        if (a->results[i] == DECIDE_DONE)
            continue;
        js_object(w);
        js_kv_int(w, "index", (int64_t)i);
        js_kv_string(w, "reason", str_of(decide_reason(a->results[i])));
        js_object_end(w);
    }
    js_array_end(w);
    js_kv_int(w, "remaining_suggestions", (int64_t)a->remaining);
}

static void reply(struct docs_request *q)
{
    struct applying *a = q->args;
    struct js_writer w;
    struct buf out;

    buf_init(&out, 1024 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    write_results(&w, a);
    js_kv_string(&w, "path", docs_request_path(q));
    js_kv_int(&w, "revision", a->revision);
    js_kv_string(&w, "etag", str_of(a->tag));
    js_kv_bool(&w, "removed", a->is_removed);
    js_object_end(&w);
    docs_request_reply(q, 200, arena_printf(q->mem, "ETag: %s\r\n", a->tag),
                       docs_take(&out, q->mem));
}

static void on_removed(struct docs_call *call)
{
    struct docs_request *q = call->user;

    ((struct applying *)q->args)->is_removed = call->ok;
    reply(q);
}

/* The rejection has left the document empty.  If its first revision is a non-empty `create`, the
 * document counts as an agent's proposal that was never accepted, and is removed. */
static void on_first(struct docs_call *call)
{
    struct docs_request *q = call->user;

    if (!call->ok || !str_eq(call->revisions->kind, STR("create")) || call->revisions->size == 0) {
        reply(q);
        return;
    }
    docs_request_again(q, on_removed);
    docs_remove_empty(q->api->sv->docs, call);
}

static void on_applied(struct docs_call *call)
{
    struct docs_request *q = call->user;
    struct applying *a = q->args;

    if (!call->ok) {
        docs_request_fail(q);
        return;
    }
    a->revision = call->document.revision;
    docs_tag(call->sha256, a->tag);
    if (a->request.action != DECIDE_REJECT || !call->changed || call->bytes.n > 0) {
        reply(q);
        return;
    }
    docs_request_again(q, on_first);
    docs_revision(q->api->sv->docs, call, 1);
}

static void apply_now(struct docs_request *q)
{
    static const char *const kinds[] = {
        [DECIDE_ACCEPT] = "accept", [DECIDE_REJECT] = "reject", [DECIDE_REPLY] = "comment"};
    struct applying *a = q->args;

    a->request.author =
        (struct critic_author){.name = q->call.author, .time_s = clock_wall_ms() / 1000};
    q->call.kind = str_of(kinds[a->request.action]);
    q->call.reason = a->body.reason;
    q->call.change = decide_change_new(&a->request);
    q->call.work = work_count;
    q->call.done = on_applied;
    docs_change(q->api->sv->docs, &q->call);
}

/* Resolves the document before decide_check(): a caller who may not use the document learns nothing
 * from the other errors. */
static bool read_request(struct docs_request *q, struct applying *a)
{
    struct error err;

    if (!api_bind(q->api, js_root(&q->api->doc), &body_apply, &a->body, &a->body, NULL)) {
        docs_request_drop(q);
        return false;
    }
    if (!docs_request_at(q, a->body.path))
        return false;
    a->request = (struct decide_request){
        .action = a->body.action,
        .items = a->body.items,
        .n = a->body.n_items,
        .text = a->body.text,
    };
    if (decide_check(&a->request, &err))
        return true;
    docs_request_refuse(q, err.code, err.text, err.text, STR_NONE);
    return false;
}

void api_apply_suggestions(struct api_call *c)
{
    struct docs_request *q = docs_request_new(c, true);

    if (!q)
        return;
    struct applying *a = arena_new_of(q->mem, struct applying);
    q->args = a;
    if (!read_request(q, a))
        return;
    a->results = arena_zalloc(q->mem, a->request.n * sizeof(*a->results));
    docs_request_author(q, a->body.author, apply_now);
}
