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

enum catalog_kind {
    CATALOG_TOOLS,
    CATALOG_PROMPTS,
    CATALOG_RESOURCES,
    CATALOG_TEMPLATES,
    CATALOG_KINDS
};

/* Everything that tells one list from another. */
struct catalog_kind_info {
    struct str method;    /* "tools/list" */
    struct str array_key; /* of its result: "tools" */
    struct str changed; /* "notifications/tools/list_changed"; templates share that of resources */
    const char *capability; /* "tools" */
    struct str name_key;    /* of an item: "name", "uri", "uriTemplate" */
};
extern const struct catalog_kind_info catalog_kinds[CATALOG_KINDS];
/* The kind whose change this notification announces (templates go with resources); CATALOG_KINDS:
 * it is none of these. */
enum catalog_kind catalog_kind_changed(struct str method);

struct catalog_item {
    struct str name;   /* tools, prompts: name; resources: uri; templates: uriTemplate; unescaped */
    struct str raw;    /* the object, exactly as it came */
    struct str mended; /* likewise, made to follow the specification; absent: it does */
    /* Tools only. */
    struct str untasked; /* likewise, without execution.taskSupport; absent: it has none */
    struct str held; /* what is listed instead of `raw` while nobody has approved it; or absent */
    bool read_only;  /* annotations.readOnlyHint */
    bool owns_session_id; /* its own schema has a property session_id: never injected */
    bool mirrors;         /* its schema speaks of x-mcp-header somewhere */
    bool has_two_names;   /* readers differ about which of them counts */
};

struct catalog_list {
    struct catalog_item *items;
    size_t n, room;
    size_t n_mended;    /* of them */
    size_t n_nameless;  /* entries that were left out */
    struct map by_name; /* → position + 1 */
};

struct catalog {
    unsigned refs;
    struct arena *mem;
    enum mcp_era era;
    struct str version;      /* the upstream's negotiated protocol version */
    struct str capabilities; /* raw JSON object */
    struct str server_info;  /* raw JSON object */
    struct str instructions; /* raw JSON string, or absent */
    struct str tools_fault;  /* why its tools could not be listed, a sentence; absent: they were */
    unsigned offers;         /* a bit for each known capability that is there */
    unsigned announces;      /* a bit for each kind whose capability says listChanged */
    bool subscribes;         /* resources.subscribe */
    struct catalog_list lists[CATALOG_KINDS];
    struct map task_tools;       /* names of tools that run as a task only: they are in no list */
    struct catalog_words *words; /* of its tools, for whoever ranks them (route/rank_index.c) … */
    void (*free_words)(struct catalog_words *w); /* … and who frees them */
    int64_t filled_ms;                           /* monotonic */
    char fault[256];                             /* of tools_fault */
    unsigned edition; /* counts what changed of what is shown since then */
};

#define CATALOG_MAX_BYTES (16u * 1024 * 1024)
#define CATALOG_MAX_ITEMS 10000 /* of one kind */

struct catalog *catalog_new(enum mcp_era era) must_check; /* one reference */
struct catalog *catalog_ref(struct catalog *c);
void catalog_unref(struct catalog *c);
/* From an initialize result (legacy) or a discover result (modern). */
must_check bool catalog_take_server(struct catalog *c, const struct js_doc *doc,
                                    const struct js_node *result, struct error *err);
/* One page of a list's result; *ret_cursor is the raw next cursor (a JSON string) or absent. */
must_check bool catalog_take_page(struct catalog *c, enum catalog_kind kind,
                                  const struct js_doc *doc, const struct js_node *result,
                                  struct str *ret_cursor, struct error *err);
/* Forgets what was taken of one list. */
void catalog_clear_list(struct catalog *c, enum catalog_kind kind);
/* Appends the list of another catalog to this one's. */
must_check bool catalog_copy_list(struct catalog *c, const struct catalog *from,
                                  enum catalog_kind kind, struct error *err);
/* What is shown of its tools has changed: their words are read again when they are needed. */
void catalog_forget_words(struct catalog *c);
/* Its tools could not be listed: what of them is known stands in. */
void catalog_note_fault(struct catalog *c, const char *why);
/* Takes out the items that `stays` does not want. */
void catalog_filter(struct catalog *c, enum catalog_kind kind,
                    bool (*stays)(void *arg, const struct catalog_item *item), void *arg);

/* From now on this tool is listed as `definition` (a JSON object, copied); one that does not fit
 * any more is listed as a bare name. */
void catalog_hold(struct catalog *c, struct catalog_item *tool, struct str definition);
/* What is to be shown of it: everything that lists or searches tools uses this. */
struct str catalog_shown(const struct catalog_item *item);

const struct catalog_item *catalog_find(const struct catalog *c, enum catalog_kind kind,
                                        struct str name); /* NULL: none */
const struct catalog_item *catalog_tool(const struct catalog *c, struct str name);
/* Holdfast does not carry tasks: a tool that runs only as one is not listed, and cannot be called.
 */
bool catalog_needs_task(const struct catalog *c, struct str tool);
/* capability: "tools", "prompts", "resources", "completions", "logging". */
bool catalog_offers(const struct catalog *c, const char *capability);
/* The upstream says that it tells when this list changes. */
bool catalog_announces(const struct catalog *c, enum catalog_kind kind);
bool catalog_subscribes(const struct catalog *c); /* resources.subscribe */
/* Does an entry break the specification's schema?  Then *out is a copy that follows it. */
must_check bool catalog_mend(enum catalog_kind kind, const struct js_doc *doc,
                             const struct js_node *item, struct buf *out);
/* What was wrong with its lists and what became of it, in sentences, each given to `say`. */
void catalog_each_note(const struct catalog *c, void (*say)(void *arg, const char *note),
                       void *arg);
/* Could this template (RFC 6570) have produced this uri?  Matched conservatively: {x} is one or
 * more characters without "/"; {+x}, {#x}, {.x}, {/x}, {;x}, {?x}, {&x} are anything. */
bool catalog_template_matches(struct str uri_template, struct str uri);

/* Which items to write, and how. */
struct catalog_writing {
    struct str prefix;  /* "files__", put before the names of tools and prompts; absent for none */
    bool with_handles;  /* tools: the optional session_id property where it is injected */
    bool short_handles; /* … with a few words about it, where many tools stand together */
    bool mended;        /* definitions that break the specification in a form that follows it */
    size_t from, max;
};
/* Items [from, from + max) with commas between them, no brackets; returns how many. */
size_t catalog_write_items(const struct catalog *c, enum catalog_kind kind,
                           const struct catalog_writing *w, struct buf *out);

#endif
