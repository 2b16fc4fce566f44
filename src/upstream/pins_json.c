/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/pins_json.h"

#include "crypto/hash.h"
#include "upstream/pins_diff.h"

static bool is_zero(const uint8_t digest[SHA256_BYTES])
{
    static const uint8_t zero[SHA256_BYTES];
    return memcmp(digest, zero, sizeof(zero)) == 0;
}

const char *tool_state(const struct tool_row *row)
{
    if (row->gone_ms)
        return "gone";
    if (is_zero(row->approved))
        return "new";
    return memcmp(row->approved, row->digest, sizeof(row->digest)) == 0 ? "approved" : "changed";
}

static void write_tool(struct js_writer *w, const struct tool_row *row)
{
    char hex[2 * SHA256_BYTES + 1];

    js_kv_string(w, "server", row->server);
    js_kv_string(w, "name", row->name);
    js_kv_string(w, "state", str_of(tool_state(row)));
    hex_encode(row->digest, SHA256_BYTES, hex);
    js_kv_string(w, "digest", str_of(hex));
    if (!is_zero(row->approved)) {
        hex_encode(row->approved, SHA256_BYTES, hex);
        js_kv_string(w, "approved_digest", str_of(hex));
    }
    js_kv_time(w, "first_seen_at", row->first_seen_ms);
    js_kv_time(w, "changed_at", row->changed_ms);
    js_kv_time(w, "gone_at", row->gone_ms);
    js_kv_time(w, "approved_at", row->approved_ms);
}

void tool_write(struct js_writer *w, const struct tool_row *row)
{
    js_object(w);
    write_tool(w, row);
    if (row->definition.p)
        js_kv_raw(w, "definition", row->definition);
    js_object_end(w);
}

void tool_diff_write(struct buf *out, const struct tool_row *row)
{
    bool kept = row->definition.p && (is_zero(row->approved) || row->approved_definition.p);
    struct js_writer w;
    struct buf diff;

    buf_init(&diff, 2 * TOOL_SHOWN_DIFF);
    if (kept)
        tool_diff(row->approved_definition, row->definition, TOOL_SHOWN_DIFF, &diff);
    else
        buf_addz(&diff, TOOL_TOO_LONG);
    if (str_ends(buf_str(&diff), STR(TOOL_DIFF_MORE)))
        buf_addz(&diff, " (read the rest at the server itself before you approve it)\n");
    js_begin(&w, out);
    js_object(&w);
    write_tool(&w, row);
    js_kv_string(&w, "diff", buf_str(&diff));
    js_object_end(&w);
    buf_release(&diff);
}
