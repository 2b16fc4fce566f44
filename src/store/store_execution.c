/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an execution, as readers see it, from its events, and the public names of executions and
 * tools.  Every backend finds the events its own
 * way and joins them here, so that an execution looks the same in all backends. */
#include "store/store_impl.h"

#include <stdio.h>

#include "crypto/hash.h"
#include "json/read.h"

/* Memory bound for parsing one body; every body that Holdfast cut fits. */
#define BODY_NODES_BYTES (64 << 20)

void tool_uuid(struct str tenant, struct str server, struct str tool, char ret[TOOL_UUID_TEXT])
{
    const struct str nul = STR("\0");
    const struct str parts[] = {STR("tool"), nul, tenant, nul, server, nul, tool};
    uint8_t sha[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    sha256_parts(parts, countof(parts), sha);
    sha[6] = (uint8_t)((sha[6] & 0x0f) | 0x80); /* version 8 */
    sha[8] = (uint8_t)((sha[8] & 0x3f) | 0x80); /* variant */
    hex_encode(sha, sizeof(sha), hex);
    snprintf(ret, TOOL_UUID_TEXT, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}

/* Puts the 63 bits of an event id around the version and variant of a UUID. */
void execution_uuid(int64_t exec, char ret[EXECUTION_UUID_TEXT])
{
    uint64_t id = (uint64_t)exec;
    snprintf(ret, EXECUTION_UUID_TEXT, "%08x-%04x-8%03x-8000-00000000000%x", (unsigned)(id >> 32),
             (unsigned)(id >> 16 & 0xffff), (unsigned)(id >> 4 & 0xfff), (unsigned)(id & 0xf));
}

bool execution_uuid_parse(struct str uuid, int64_t *ret_exec)
{
    char again[EXECUTION_UUID_TEXT], text[EXECUTION_UUID_TEXT];
    unsigned high, middle, low, last;

    if (uuid.n != EXECUTION_UUID_TEXT - 1)
        return false;
    memcpy(text, uuid.p, uuid.n);
    text[uuid.n] = '\0';
    if (sscanf(text, "%8x-%4x-8%3x-8000-00000000000%1x", &high, &middle, &low, &last) != 4)
        return false;
    int64_t exec = (int64_t)((uint64_t)high << 32 | (uint64_t)middle << 16 | low << 4 | last);
    execution_uuid(exec, again);
    if (memcmp(again, text, sizeof(again)) != 0)
        return false;
    *ret_exec = exec;
    return true;
}

/* The member `name` of a body, or the whole body when `name` is absent, with the body's own
 * spelling.  Absent when the body has no such member or is not JSON. */
static struct str body_part(struct str body, struct str name, struct arena *mem)
{
    struct js_doc doc;
    struct str part = STR_NONE;
    if (!body.p)
        return part;
    struct arena *scratch = arena_new(BODY_NODES_BYTES);
    if (js_parse(body, &js_limits_upstream, scratch, &doc, NULL)) {
        const struct js_node *v = name.p ? js_get(&doc, js_root(&doc), name) : js_root(&doc);
        if (v)
            part = arena_dup(mem, js_raw(&doc, v));
    }
    arena_free(scratch);
    return part;
}

static void join_bodies(const struct event_row *first, const struct event_row *outcome,
                        struct arena *mem, struct execution_row *row)
{
    row->arguments = body_part(first->body, STR("arguments"), mem);
    if (first->kind == EVENT_RECORD)
        row->result = body_part(first->body, STR("result"), mem);
    else if (outcome)
        row->result = body_part(outcome->body, STR_NONE, mem);
}

static struct str tool_id_of(const struct event_row *e, struct arena *mem)
{
    char uuid[TOOL_UUID_TEXT];
    if (e->tool_id.p || !e->server.p || !e->tool.p)
        return arena_dup(mem, e->tool_id);
    tool_uuid(e->tenant, e->server, e->tool, uuid);
    return arena_dup(mem, str_of(uuid));
}

void store_execution_join(const struct event_row *first, const struct event_row *outcome,
                          bool with_bodies, struct arena *mem, struct execution_row *ret)
{
    const struct event_row *end = first->kind == EVENT_RECORD ? first : outcome;
    int64_t us = end ? end->duration_us : -1;
    *ret = (struct execution_row){
        .exec = first->id,
        .session_id = arena_dup(mem, first->session_id),
        .server = arena_dup(mem, first->server),
        .tool_name = arena_dup(mem, first->tool),
        .tool_id = tool_id_of(first, mem),
        .outcome = end ? arena_dup(mem, end->outcome) : STR("open"),
        .error = end ? arena_dup(mem, end->error) : STR_NONE,
        .duration_ms = us < 0 ? -1 : us / 1000 + (us % 1000 >= 500),
        .tokens = end && end->tokens > 0 ? end->tokens : -1,
        .executed_ms = first->at_ms,
    };
    if (with_bodies)
        join_bodies(first, outcome, mem, ret);
}
