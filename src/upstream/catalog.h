/* SPDX-License-Identifier: Apache-2.0 */
/* What one upstream offers, kept as bytes: filled by one probe, immutable, counted, swapped whole
 * when the upstream says its list changed.  Lists, initialize and discover are answered from here,
 * so none of them starts a child. */
#ifndef HOLDFAST_UPSTREAM_CATALOG_H
#define HOLDFAST_UPSTREAM_CATALOG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "json/read.h"
#include "mcp/version.h"

struct catalog_tool {
    struct str name;      /* unescaped */
    struct str raw;       /* the definition, exactly as it came */
    bool read_only;       /* annotations.readOnlyHint */
    bool owns_session_id; /* its own schema has a property session_id: never injected */
    bool mirrors;         /* its schema speaks of x-mcp-header somewhere */
};

struct catalog {
    unsigned refs;
    struct arena *mem;
    enum mcp_era era;
    struct str version;      /* the upstream's negotiated protocol version */
    struct str capabilities; /* raw JSON object */
    struct str server_info;  /* raw JSON object */
    struct str instructions; /* raw JSON string, or absent */
    bool offers_tools;       /* capabilities.tools is there */
    struct catalog_tool *tools;
    size_t n_tools, room;
    struct map by_name;
    int64_t filled_ms; /* monotonic */
};

struct catalog *catalog_new(enum mcp_era era) must_check; /* one reference */
struct catalog *catalog_ref(struct catalog *c);
void catalog_unref(struct catalog *c);
/* From an initialize result (legacy) or a discover result (modern). */
must_check bool catalog_take_server(struct catalog *c, const struct js_doc *doc,
                                    const struct js_node *result, struct error *err);
/* One page of a tools/list result; *ret_cursor is the raw next cursor (a JSON string) or absent. */
must_check bool catalog_take_tools(struct catalog *c, const struct js_doc *doc,
                                   const struct js_node *result, struct str *ret_cursor,
                                   struct error *err);
const struct catalog_tool *catalog_tool(const struct catalog *c, struct str name);
/* Only "tools" is asked about so far. */
bool catalog_offers(const struct catalog *c, const char *capability);
/* `[tool,tool]`; with_handles adds the optional session_id property where it is injected. */
void catalog_write_tools(const struct catalog *c, bool with_handles, struct buf *out);

#endif
