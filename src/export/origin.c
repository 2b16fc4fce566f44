/* SPDX-License-Identifier: Apache-2.0 */
#include "export/origin.h"

#include "json/read.h"
#include "session/lineage.h"

static void take_lineage(const struct session_row *row, const struct lineage *l, struct arena *mem,
                         struct export_origin *o)
{
    bool is_used = row->last_activity_ms > row->created_ms;

    o->origin = lineage_text(l, STR("origin"), mem);
    o->carrier = lineage_text(l, STR("carrier"), mem);
    o->created_ms = lineage_number(l, STR("created_ms"), row->created_ms);
    if (!is_used)
        o->last_activity_ms = lineage_number(l, STR("last_activity_ms"), row->last_activity_ms);
    o->terminated_ms = lineage_number(l, STR("terminated_ms"), row->terminated_ms);
    o->calls += lineage_number(l, STR("calls"), 0);
    o->tokens += lineage_number(l, STR("tokens"), 0);
}

struct export_origin export_origin_of(const struct session_row *row, struct arena *mem)
{
    struct export_origin o = {
        .status = row->status == SESSION_IDLE ? SESSION_ACTIVE : row->status,
        .origin = str_of(session_origin_name(row->origin)),
        .carrier = row->carrier,
        .created_ms = row->created_ms,
        .last_activity_ms = row->last_activity_ms,
        .terminated_ms = row->terminated_ms,
        .calls = row->tool_count,
        .tokens = row->tokens_used,
    };
    struct lineage l;

    if (lineage_is(row->lineage, LINEAGE_IMPORT) && lineage_read(row->lineage, mem, &l))
        take_lineage(row, &l, mem, &o);
    return o;
}

struct str *export_origin_servers(const struct session_row *row, struct arena *mem, size_t *ret_n)
{
    const struct js_node *list;
    struct str *ret = NULL;
    struct js_doc doc;

    *ret_n = 0;
    if (!lineage_is(row->lineage, LINEAGE_IMPORT) ||
        !js_parse(row->lineage, &js_limits_upstream, mem, &doc, NULL))
        return NULL;
    list = js_get(&doc, js_root(&doc), STR("servers"));
    if (!js_type_is(list, JS_ARRAY))
        return NULL;
    ret = arena_alloc(mem, (doc.n + 1) * sizeof(*ret));
    for (const struct js_node *v = js_first(&doc, list); v; v = js_next(&doc, list, v)) {
        struct str name = js_text(&doc, v, mem);
        if (name.n)
            ret[(*ret_n)++] = name;
    }
    return ret;
}
