/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a document: the list of revisions, newest first; one revision with its text; the
 * restore of a revision.  The list reads the file first, so that a text which an editor has saved
 * and Holdfast has not read yet is listed as a revision too. */
#include "docs/api/bodies.h"
#include "docs/api/request.h"
#include "docs/api/table.h"

#include "session/session_json.h"

#include <stdio.h>

static bool read_number(struct str text, int64_t *ret)
{
    uint64_t number;

    if (!str_to_u64(text, INT64_MAX, &number))
        return false;
    *ret = (int64_t)number;
    return true;
}

static void write_revision(struct js_writer *w, const struct docs_request *q,
                           const struct revision_row *r, bool with_content)
{
    char tag[DOCS_TAG_TEXT];

    js_object(w);
    js_kv_int(w, "revision", r->revision);
    json_kv_time(w, "at", r->at_ms);
    js_kv_string(w, "kind", r->kind);
    js_kv_string(w, "author", r->author);
    js_kv_string(w, "reason", r->reason);
    js_kv_string(
        w, "path",
        arena_printf(q->mem, "%.*s/%.*s", STR_ARG(q->call.place.folder->name), STR_ARG(r->path)));
    js_kv_int(w, "size", r->size);
    js_kv_string(w, "etag", docs_tag(r->sha256, tag));
    js_kv_bool(w, "has_text", r->has_text);
    if (with_content)
        js_kv_string(w, "content", r->content.p ? r->content : STR(""));
    js_object_end(w);
}

/* The list. */

static void on_history(struct docs_call *call)
{
    struct docs_request *q = call->user;
    const struct docs_page *p = q->args;
    struct js_writer w;
    struct buf out;
    char last[24];

    if (!call->ok) {
        docs_request_fail(q);
        return;
    }
    bool more = p->limit < STORE_PAGE_MAX ? call->n_revisions > (size_t)p->limit
                                          : call->n_revisions == (size_t)p->limit;
    size_t n = call->n_revisions < (size_t)p->limit ? call->n_revisions : (size_t)p->limit;
    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "path", docs_request_path(q));
    js_key(&w, STR("revisions"));
    js_array(&w);
    for (size_t i = 0; i < n; i++)
        write_revision(&w, q, &call->revisions[i], false);
    js_array_end(&w);
    if (more)
        snprintf(last, sizeof(last), "%lld", (long long)call->revisions[n - 1].revision);
    struct str path = arena_dup(q->mem, q->api->http->head->path);
    struct str link = docs_page_end(q, p, &w, n, more ? str_of(last) : STR_NONE, path.p);
    docs_request_reply(q, 200, link, docs_take(&out, q->mem));
}

static void ask_history(struct docs_call *call)
{
    struct docs_request *q = call->user;
    const struct docs_page *p = q->args;
    int64_t before = 0;

    if (!call->ok && call->err.code != ERR_NOT_FOUND) {
        docs_request_fail(q);
        return;
    }
    if (p->after.p && !read_number(p->after, &before))
        before = 0;
    docs_request_again(q, on_history);
    docs_history(q->api->sv->docs, call, before, (unsigned)p->limit + (p->limit < STORE_PAGE_MAX));
}

void api_list_revisions(struct api_call *c)
{
    struct docs_page page = {0};
    struct str about =
        arena_printf(c->mem, "%.*s/%.*s", STR_ARG(c->match.params[0]), STR_ARG(c->match.params[1]));

    if (!docs_page_read(c, "history", about, &page))
        return;
    struct docs_request *q = docs_request_new(c, false);
    if (!q || !docs_request_place(q))
        return;
    struct docs_page *p = arena_new_of(q->mem, struct docs_page);
    *p = page;
    p->folder = STR_NONE; /* the path of the URL names the folder */
    q->args = p;
    q->call.done = ask_history;
    docs_read(c->sv->docs, &q->call);
}

/* One revision. */

/* A caller who may not use the document gets the same answer as for an unknown one. */
static void refuse_revision(struct docs_request *q)
{
    const struct docs_call *call = &q->call;

    if (call->n_revisions && !call->revisions->content.p) {
        docs_request_refuse(q, ERR_NOT_FOUND, "text not stored", call->err.text, STR_NONE);
        return;
    }
    docs_request_refuse(q, ERR_NOT_FOUND, "revision not found",
                        "There is no such document that you may use, or it has no such revision; "
                        "see its history.",
                        STR_NONE);
}

static void on_revision(struct docs_call *call)
{
    struct docs_request *q = call->user;
    struct js_writer w;
    struct buf out;
    char tag[DOCS_TAG_TEXT];

    if (!call->ok && call->err.code == ERR_NOT_FOUND) {
        refuse_revision(q);
        return;
    }
    if (!call->ok) {
        docs_request_fail(q);
        return;
    }
    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    write_revision(&w, q, call->revisions, true);
    docs_request_reply(
        q, 200,
        arena_printf(q->mem, "ETag: %.*s\r\n", STR_ARG(docs_tag(call->revisions->sha256, tag))),
        docs_take(&out, q->mem));
}

void api_get_revision(struct api_call *c)
{
    struct docs_request *q = docs_request_new(c, false);
    int64_t number = 0;

    if (!q || !docs_request_place(q))
        return;
    if (!read_number(c->match.params[2], &number) || number == 0) {
        refuse_revision(q);
        return;
    }
    q->call.done = on_revision;
    docs_revision(c->sv->docs, &q->call, number);
}

/* Restore. */

struct restoring {
    struct restore_body body;
    struct str content, reason;
};

/* If the document no longer exists, it is created again. */
static void on_restored(struct docs_call *call)
{
    struct docs_request *q = call->user;
    const struct restoring *r = q->args;

    if (call->ok || call->err.code != ERR_NOT_FOUND) {
        docs_on_changed(call);
        return;
    }
    docs_request_again(q, docs_on_changed);
    call->kind = STR("restore");
    call->reason = r->reason;
    docs_create(q->api->sv->docs, call, r->content);
}

static void on_to_restore(struct docs_call *call)
{
    struct docs_request *q = call->user;
    struct restoring *r = q->args;

    if (!call->ok && call->err.code == ERR_NOT_FOUND) {
        refuse_revision(q);
        return;
    }
    if (!call->ok) {
        docs_request_fail(q);
        return;
    }
    r->content = call->revisions->content.p ? call->revisions->content : STR("");
    r->reason = r->body.reason.n
                    ? r->body.reason
                    : arena_printf(q->mem, "restored revision %lld", (long long)r->body.revision);
    docs_request_again(q, on_restored);
    call->kind = STR("restore");
    call->reason = r->reason;
    call->change =
        docs_replace_new(http_header_get(q->api->http->head, STR("if-match")), r->content);
    docs_change(q->api->sv->docs, call);
}

static void restore_now(struct docs_request *q)
{
    const struct restoring *r = q->args;

    q->call.done = on_to_restore;
    docs_revision(q->api->sv->docs, &q->call, r->body.revision);
}

void api_restore_document(struct api_call *c)
{
    struct docs_request *q = docs_request_new(c, true);

    if (!q)
        return;
    struct restoring *r = arena_new_of(q->mem, struct restoring);
    q->args = r;
    if (!api_bind(c, js_root(&c->doc), &body_restore, &r->body, NULL, NULL))
        docs_request_drop(q);
    else if (docs_request_place(q))
        docs_request_author(q, r->body.author, restore_now);
}
