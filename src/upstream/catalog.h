/* SPDX-License-Identifier: Apache-2.0 */
/* The offer of one upstream, kept as bytes: filled by one probe, counted by references, and
 * replaced whole when the upstream announces a change.  Lists, initialize and discover are answered
 * from here, so none of them starts a child. */
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

/* The properties of each kind of list. */
struct catalog_kind_info {
    struct str method;    /* "tools/list" */
    struct str array_key; /* of its result: "tools" */
    struct str changed;   /* "notifications/tools/list_changed"; templates use that of resources */
    const char *capability; /* "tools" */
    struct str name_key;    /* of an item: "name", "uri", "uriTemplate" */
};
extern const struct catalog_kind_info catalog_kinds[CATALOG_KINDS];
/* The kind that this notification announces as changed (resources also for templates);
 * CATALOG_KINDS: it announces no list. */
enum catalog_kind catalog_kind_changed(struct str method);

struct catalog_item {
    struct str name;   /* tools, prompts: name; resources: uri; templates: uriTemplate; unescaped */
    struct str raw;    /* the object, exactly as received */
    struct str mended; /* `raw` corrected to follow the specification; absent: `raw` follows it */
    /* Tools only. */
    struct str untasked;  /* `raw` without execution.taskSupport; absent: `raw` has none */
    struct str held;      /* listed instead of `raw` until a person approves `raw`; or absent */
    bool read_only;       /* annotations.readOnlyHint */
    bool owns_session_id; /* its own schema has a property session_id: Holdfast adds none */
    bool mirrors;         /* its schema contains x-mcp-header */
    /* The object has the key "name" twice; parsers differ on which one counts. */
    bool has_two_names;
};

struct catalog_list {
    struct catalog_item *items;
    size_t n, room;
    size_t n_mended;    /* items with `mended` */
    size_t n_nameless;  /* entries left out for lack of a name */
    struct map by_name; /* → position + 1 */
};

struct catalog {
    unsigned refs;
    struct arena *mem;
    enum mcp_era era;
    struct str version;      /* the negotiated protocol version */
    struct str capabilities; /* raw JSON object */
    struct str server_info;  /* raw JSON object */
    struct str instructions; /* raw JSON string, or absent */
    struct str tools_fault;  /* why its tools could not be listed, a sentence; or absent */
    unsigned offers;         /* bits: known capabilities that the upstream has */
    unsigned announces;      /* bits: kinds with listChanged in their capability */
    bool subscribes;         /* resources.subscribe */
    struct catalog_list lists[CATALOG_KINDS];
    struct map task_tools;       /* names of tools that run only as a task; they are in no list */
    struct catalog_words *words; /* index of its tools for ranking (profile/rank_index.c) … */
    void (*free_words)(struct catalog_words *w); /* … and the function that frees it */
    int64_t filled_ms;                           /* monotonic */
    int64_t took_ms;                             /* duration of the probe */
    char fault[256];                             /* the text of tools_fault */
    unsigned edition; /* number of changes since then in how tools are shown */
};

#define CATALOG_MAX_BYTES (16u * 1024 * 1024)
#define CATALOG_MAX_ITEMS 10000 /* per kind */

struct catalog *catalog_new(enum mcp_era era) must_check; /* one reference */
struct catalog *catalog_ref(struct catalog *c);
void catalog_unref(struct catalog *c);
/* From an initialize result (legacy) or a discover result (modern). */
must_check bool catalog_take_server(struct catalog *c, const struct js_doc *doc,
                                    const struct js_node *result, struct error *err);
/* Takes one page of a list's result; *ret_cursor is the raw next cursor (a JSON string) or
 * absent. */
must_check bool catalog_take_page(struct catalog *c, enum catalog_kind kind,
                                  const struct js_doc *doc, const struct js_node *result,
                                  struct str *ret_cursor, struct error *err);
/* Removes the items of one list. */
void catalog_clear_list(struct catalog *c, enum catalog_kind kind);
/* Appends that list of `from` to this catalog's. */
must_check bool catalog_copy_list(struct catalog *c, const struct catalog *from,
                                  enum catalog_kind kind, struct error *err);
/* The tools are shown differently now: their words are indexed again when needed. */
void catalog_forget_words(struct catalog *c);
/* The tools could not be listed; tools already known stay. */
void catalog_note_fault(struct catalog *c, const char *why);
/* Removes the items for which `stays` returns false. */
void catalog_filter(struct catalog *c, enum catalog_kind kind,
                    bool (*stays)(void *arg, const struct catalog_item *item), void *arg);

/* From now on this tool is listed as `definition` (a JSON object, copied).  If the catalog is full,
 * it is listed as a bare definition with the name "held". */
void catalog_hold(struct catalog *c, struct catalog_item *tool, struct str definition);
/* The definition to show: everything that lists or searches tools uses this. */
struct str catalog_shown(const struct catalog_item *item);

const struct catalog_item *catalog_find(const struct catalog *c, enum catalog_kind kind,
                                        struct str name); /* or NULL */
const struct catalog_item *catalog_tool(const struct catalog *c, struct str name);
/* Holdfast does not support tasks: a tool that runs only as a task is not listed and cannot be
 * called. */
bool catalog_needs_task(const struct catalog *c, struct str tool);
/* capability: "tools", "prompts", "resources", "completions", "logging". */
bool catalog_offers(const struct catalog *c, const char *capability);
/* True when the upstream announces changes of this list. */
bool catalog_announces(const struct catalog *c, enum catalog_kind kind);
bool catalog_subscribes(const struct catalog *c); /* resources.subscribe */
/* True when an entry breaks the specification's schema; *out is then a copy that follows it. */
must_check bool catalog_mend(enum catalog_kind kind, const struct js_doc *doc,
                             const struct js_node *item, struct buf *out);
/* Calls `say` with a sentence for each defect of its lists and how it was handled. */
void catalog_each_note(const struct catalog *c, void (*say)(void *arg, const char *note),
                       void *arg);
/* True when this template (RFC 6570) could have produced this uri.  {x} matches one or more
 * characters without "/"; {+x}, {#x}, {.x}, {/x}, {;x}, {?x}, {&x} match anything. */
bool catalog_template_matches(struct str uri_template, struct str uri);

/* The items to write, and their form. */
struct catalog_writing {
    struct str prefix;  /* "files__", put before the names of tools and prompts; or absent */
    bool with_handles;  /* tools: add the optional property session_id */
    bool short_handles; /* … with a shorter description, for many tools together */
    bool mended;        /* write `mended` where an item has it */
    size_t from, max;
};
/* Writes items [from, from + max) with commas between them, no brackets; returns how many. */
size_t catalog_write_items(const struct catalog *c, enum catalog_kind kind,
                           const struct catalog_writing *w, struct buf *out);

#endif
