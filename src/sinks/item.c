/* SPDX-License-Identifier: Apache-2.0 */
#include "sinks/out.h"

#include "audit/event_json.h"

void sink_item_write(const struct sink_item *item, struct buf *out)
{
    struct js_writer w;

    js_begin(&w, out);
    if (item->row) {
        event_to_json(item->row, &w);
        return;
    }
    js_object(&w);
    js_kv_string(&w, "kind", STR("removed"));
    js_kv_int(&w, "at_ms", item->at_ms);
    js_kv_time(&w, "time", item->at_ms);
    js_kv_string(&w, "sink", item->sink);
    js_kv_string(&w, "after", item->position);
    js_kv_string(&w, "why",
                 STR("retention removed events after this position before the sink had read them"));
    js_object_end(&w);
}
