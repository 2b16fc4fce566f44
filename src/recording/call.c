/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a recorded call from its events, and says what is left of each body. */
#include "recording/impl.h"

#include "json/read.h"
#include "recording/imported.h"

static bool is_zero(const uint8_t sha[32])
{
    static const uint8_t zero[32];
    return memcmp(sha, zero, 32) == 0;
}

/* A body that was cut when it was recorded (audit/redact.h). */
static bool is_cut(struct str body)
{
    return str_starts(body, STR("{\"holdfast/cut\":{\"length\":"));
}

static enum recorded_state state_of(const struct event_row *e)
{
    if (e->body_len < 0)
        return RECORDED_NONE;
    if (!e->body.p)
        return is_zero(e->stored_sha) ? RECORDED_DIGEST : RECORDED_REMOVED;
    if (memcmp(e->stored_sha, e->body_sha, sizeof(e->body_sha)) == 0)
        return RECORDED_COMPLETE;
    return is_cut(e->body) ? RECORDED_CUT : RECORDED_REDACTED;
}

static struct recorded_body body_of(const struct event_row *e)
{
    struct recorded_body b = {.state = state_of(e), .bytes = e->body, .length = e->body_len};

    if (b.state == RECORDED_NONE)
        b.bytes = STR_NONE;
    memcpy(b.sha, e->body_sha, sizeof(b.sha));
    return b;
}

struct str recorded_member(struct str json, struct str name, struct arena *mem)
{
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    struct str ret = STR_NONE;
    struct js_doc doc;

    if (json.p && js_parse(json, &js_limits_upstream, scratch, &doc, NULL)) {
        const struct js_node *v = js_get(&doc, js_root(&doc), name);
        if (v)
            ret = arena_dup(mem, js_raw(&doc, v));
    }
    arena_free(scratch);
    return ret;
}

/* One part of a reported execution.  Both parts share one digest, so a part of a changed body that
 * does not look cut counts as redacted. */
static struct recorded_body part_of(const struct event_row *e, struct str part)
{
    struct recorded_body b = {.state = state_of(e), .bytes = part, .length = -1};

    if (e->body.p && !part.p)
        b.state = RECORDED_NONE;
    else if (e->body.p && b.state != RECORDED_COMPLETE)
        b.state = is_cut(part) ? RECORDED_CUT : RECORDED_REDACTED;
    return b;
}

static void split_report(const struct event_row *e, struct arena *mem, struct recorded_call *ret)
{
    struct str arguments = recorded_member(e->body, STR("arguments"), mem);

    ret->params = part_of(e, arguments);
    ret->params.length = e->request_len > 0 ? e->request_len : -1;
    if (arguments.p && ret->params.state != RECORDED_CUT) {
        ret->arguments = arguments;
        ret->params.bytes = arena_printf(mem, "{\"arguments\":%.*s}", STR_ARG(arguments));
    }
    ret->result = part_of(e, recorded_member(e->body, STR("result"), mem));
}

static void join_end(const struct event_row *end, struct recorded_call *ret)
{
    ret->outcome = end && end->outcome.p ? end->outcome : end ? STR("ok") : STR("open");
    ret->error = end ? end->error : STR_NONE;
    ret->duration_us = end ? end->duration_us : -1;
    ret->tokens = end && end->tokens > 0 ? end->tokens : -1;
}

void recorded_call_join(const struct joined *j, struct arena *mem, struct recorded_call *ret)
{
    const struct event_row *b = j->begin;

    if (b->kind == EVENT_IMPORT) {
        imported_call_read(b, mem, ret);
        return;
    }
    *ret = (struct recorded_call){
        .id = b->id,
        .origin_id = b->id,
        .parent = b->parent,
        .kind = b->kind == EVENT_INTENT ? RECORDED_CALL
                : b->kind == EVENT_NOTE ? RECORDED_NOTE
                                        : RECORDED_REPORTED,
        .at_ms = b->at_ms,
        .owner = b->owner,
        .transport = b->transport,
        .carrier = b->carrier,
        .client = b->client,
        .server = b->server,
        .method = b->method,
        .tool = b->tool,
        .tool_id = b->tool_id,
        .era = b->era,
        .result = {.length = -1},
    };
    join_end(b->kind == EVENT_INTENT ? j->outcome : b, ret);
    if (b->kind == EVENT_RECORD) {
        split_report(b, mem, ret);
        return;
    }
    ret->params = body_of(b);
    if (ret->params.state == RECORDED_COMPLETE || ret->params.state == RECORDED_REDACTED)
        ret->arguments = recorded_member(b->body, STR("arguments"), mem);
    if (j->outcome)
        ret->result = body_of(j->outcome);
}
