/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a document by its path, and writing it as a person.  A write needs If-Match with the ETag
 * of the text that was read, or If-None-Match: * for a new document, so that a client does not
 * overwrite a change it has not seen. */
#include "docs/api/bodies.h"
#include "docs/api/request.h"
#include "docs/api/table.h"

#include "crypto/hash.h"
#include "docs/critic/critic.h"
#include "api/tags.h"
#include "session/session_json.h"

#include <stdlib.h>

/* Reading. */

struct reading {
    bool with_accepted;
    struct buf content, accepted; /* as JSON strings, made on a worker */
};

static bool work_quote(struct docs_call *call, struct error *err unused_arg)
{
    struct docs_request *q = call->user;
    struct reading *r = q->args;
    struct critic critic;

    buf_reset(&r->content);
    buf_reset(&r->accepted);
    js_quote(&r->content, call->file.bytes);
    if (r->with_accepted) {
        critic_parse(call->file.bytes, call->mem, &critic);
        js_quote(&r->accepted, critic_accepted(&critic, call->mem));
    }
    return true;
}

static void release_reading(void *arg)
{
    struct reading *r = arg;
    buf_release(&r->content);
    buf_release(&r->accepted);
}

static void reply_document(struct docs_request *q, const struct reading *r, struct str tag)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "path", docs_request_path(q));
    js_kv_int(&w, "revision", q->call.document.revision);
    js_kv_string(&w, "etag", tag);
    js_kv_int(&w, "size", (int64_t)q->call.file.bytes.n);
    json_kv_time(&w, "modified_at", q->call.file.modified_ms);
    js_kv_raw(&w, "content", buf_str(&r->content));
    if (r->with_accepted)
        js_kv_raw(&w, "accepted", buf_str(&r->accepted));
    js_object_end(&w);
    docs_request_reply(q, 200, arena_printf(q->mem, "ETag: %.*s\r\n", STR_ARG(tag)),
                       docs_take(&out, q->mem));
}

static void on_read(struct docs_call *call)
{
    struct docs_request *q = call->user;
    struct str known = http_header_get(q->api->http->head, STR("if-none-match"));
    char text[DOCS_TAG_TEXT];

    if (!call->ok) {
        docs_request_fail(q);
        return;
    }
    struct str tag = docs_tag(call->file.sha256, text);
    if (known.p && tags_have(known, tag))
        docs_request_reply(q, 304, arena_printf(q->mem, "ETag: %.*s\r\n", STR_ARG(tag)), STR(""));
    else
        reply_document(q, q->args, tag);
}

void api_get_document(struct api_call *c)
{
    bool with_accepted;

    if (!docs_query_bool(c, "accepted", &with_accepted))
        return;
    struct docs_request *q = docs_request_new(c, false);
    if (!q || !docs_request_place(q))
        return;
    struct reading *r = arena_new_of(q->mem, struct reading);
    r->with_accepted = with_accepted;
    buf_init(&r->content, SIZE_MAX / 4);
    buf_init(&r->accepted, SIZE_MAX / 4);
    arena_on_free(q->mem, release_reading, r);
    q->args = r;
    q->call.work = work_quote;
    q->call.done = on_read;
    docs_read(c->sv->docs, &q->call);
}

/* Writing. */

struct put_change {
    struct docs_change base;
    struct arena *mem;
    struct str if_match, content;
};

static bool run_put(struct docs_change *base, struct str bytes, struct arena *mem, struct str *ret,
                    struct error *err)
{
    struct put_change *p = container_of(base, struct put_change, base);
    uint8_t sha[SHA256_BYTES];
    char text[DOCS_TAG_TEXT];

    sha256(bytes, sha);
    if (!docs_tag_matches(p->if_match, docs_tag(sha, text)))
        return error_set(err, ERR_PRECONDITION_FAILED,
                         "the document has changed since it was read");
    *ret = arena_dup(mem, p->content);
    return true;
}

static void free_put(struct docs_change *base)
{
    arena_free(container_of(base, struct put_change, base)->mem);
}

struct docs_change *docs_replace_new(struct str if_match, struct str content)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct put_change *p = arena_new_of(mem, struct put_change);

    p->base = (struct docs_change){.run = run_put, .free = free_put};
    p->mem = mem;
    p->if_match = if_match.p ? arena_dup(mem, if_match) : STR("*");
    p->content = arena_dup(mem, content);
    return &p->base;
}

static void reply_state(struct docs_request *q, int status)
{
    char text[DOCS_TAG_TEXT];
    struct js_writer w;
    struct buf out;

    struct str tag = docs_tag(q->call.sha256, text), path = docs_request_path(q);
    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "path", path);
    js_kv_int(&w, "revision", q->call.document.revision);
    js_kv_string(&w, "etag", tag);
    js_kv_bool(&w, "changed", q->call.changed);
    js_object_end(&w);
    struct str headers = arena_printf(q->mem, "ETag: %.*s\r\n", STR_ARG(tag));
    if (status == 201)
        headers = arena_printf(q->mem, "%.*sLocation: %.*s\r\n", STR_ARG(headers),
                               STR_ARG(q->api->http->head->path));
    docs_request_reply(q, status, headers, docs_take(&out, q->mem));
}

/* Refuses the change, with the ETag of the current text. */
static void on_current(struct docs_call *call)
{
    struct docs_request *q = call->user;
    struct str headers = STR_NONE;
    char text[DOCS_TAG_TEXT];

    if (call->ok)
        headers =
            arena_printf(q->mem, "ETag: %.*s\r\n", STR_ARG(docs_tag(call->file.sha256, text)));
    docs_request_refuse(q, ERR_PRECONDITION_FAILED, "changed since it was read",
                        "The document does not have the ETag of the condition; the ETag of this "
                        "answer is the current one: read the document again and repeat the change.",
                        headers);
}

void docs_on_changed(struct docs_call *call)
{
    struct docs_request *q = call->user;

    if (call->ok) {
        reply_state(q, 200);
    } else if (call->err.code == ERR_PRECONDITION_FAILED) {
        docs_request_again(q, on_current);
        docs_read(q->api->sv->docs, call);
    } else {
        docs_request_fail(q);
    }
}

static void on_created(struct docs_call *call)
{
    struct docs_request *q = call->user;

    if (call->ok) {
        reply_state(q, 201);
        return;
    }
    if (call->err.code == ERR_CONFLICT)
        call->err.code = ERR_PRECONDITION_FAILED;
    docs_on_changed(call);
}

static void put_now(struct docs_request *q)
{
    const struct document_body *b = q->args;
    struct str if_match = http_header_get(q->api->http->head, STR("if-match"));

    q->call.reason = b->reason;
    if (if_match.p) {
        q->call.kind = STR("write");
        q->call.change = docs_replace_new(if_match, b->content);
        q->call.done = docs_on_changed;
        docs_change(q->api->sv->docs, &q->call);
    } else {
        q->call.kind = STR("create");
        q->call.done = on_created;
        docs_create(q->api->sv->docs, &q->call, b->content);
    }
}

static bool check_condition(struct api_call *c)
{
    struct str if_match = http_header_get(c->http->head, STR("if-match"));
    struct str if_none_match = http_header_get(c->http->head, STR("if-none-match"));

    if (if_match.p || str_eq(if_none_match, STR("*")))
        return true;
    api_refuse(
        c, ERR_PRECONDITION_MISSING,
        "read the document and send its ETag as If-Match, or If-None-Match: * for a new one");
    return false;
}

void api_put_document(struct api_call *c)
{
    struct docs_request *q = docs_request_new(c, true);

    if (!q)
        return;
    struct document_body *b = arena_new_of(q->mem, struct document_body);
    q->args = b;
    if (!api_bind(c, js_root(&c->doc), &body_document, b, NULL, NULL) || !check_condition(c)) {
        docs_request_drop(q);
        return;
    }
    if (b->content.n > VAULT_FILE_MAX)
        docs_request_refuse(q, ERR_TOO_LARGE, "the document is too large",
                            "A document has at most 4 MiB; split it.", STR_NONE);
    else if (docs_request_place(q))
        docs_request_author(q, b->author, put_now);
}
