/* SPDX-License-Identifier: Apache-2.0 */
#include "export/origin.h"

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
