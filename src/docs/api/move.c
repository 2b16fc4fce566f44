/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a document, by a person: the links in other documents are rewritten without review. */
#include "docs/api/bodies.h"
#include "docs/api/request.h"
#include "docs/api/table.h"

static void on_moved(struct docs_call *call)
{
    struct docs_request *q = call->user;
    struct js_writer w;
    struct buf out;

    if (!call->ok && call->err.code == ERR_CONFLICT) {
        docs_request_refuse(q, ERR_CONFLICT, "the new path exists",
                            "A document or folder is at new_path already; choose another path.",
                            STR_NONE);
        return;
    }
    if (!call->ok) {
        docs_request_fail(q);
        return;
    }
    call->place.path = call->to_path;
    buf_init(&out, 64 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "path", docs_request_path(q));
    js_kv_int(&w, "links_rewritten", call->number);
    js_object_end(&w);
    docs_request_reply(q, 200, STR_NONE, docs_take(&out, q->mem));
}

static void move_now(struct docs_request *q)
{
    const struct move_body *b = q->args;
    struct str folder = q->call.place.folder->name, to = b->new_path;
    struct error err;

    if (to.n <= folder.n + 1 || !str_starts(to, folder) || to.p[folder.n] != '/') {
        docs_request_refuse(q, ERR_BAD_INPUT, "new_path is in another folder",
                            "A document stays in its folder; give a new_path that begins with the "
                            "folder's name.",
                            STR_NONE);
        return;
    }
    to = str_n(to.p + folder.n + 1, to.n - folder.n - 1);
    if (!vault_path_check(to, &err)) {
        docs_request_refuse(q, ERR_BAD_INPUT, err.text, err.text, STR_NONE);
        return;
    }
    q->call.kind = STR("move");
    q->call.reason = b->reason;
    q->call.done = on_moved;
    docs_move(q->api->sv->docs, &q->call, to);
}

void api_move_document(struct api_call *c)
{
    struct docs_request *q = docs_request_new(c, true);

    if (!q)
        return;
    struct move_body *b = arena_new_of(q->mem, struct move_body);
    q->args = b;
    if (!api_bind(c, js_root(&c->doc), &body_move, b, NULL, NULL))
        docs_request_drop(q);
    else if (docs_request_place(q))
        docs_request_author(q, b->author, move_now);
}
