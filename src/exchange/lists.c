/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes and lists, answered from catalogs: of one server, or of all servers merged.  In merged
 * lists tools and prompts are named "server__name" and come in configuration order.  A resource
 * that two servers list is the first server's. */
#include "exchange/exchange.h"

#include "base/log.h"
#include "exchange/profile_tools.h"
#include "identity/scopes.h"
#include "json/splice.h"
#include "json/write.h"

#define LIST_TTL_MS 30000
#define PAGE_ITEMS 1000
#define PAGE_BYTES (4u * 1024 * 1024)      /* a page ends with the item that exceeds this */
#define MERGED_INSTRUCTIONS (16u * 1024)   /* bytes of one server's instructions */
#define MERGED_INSTRUCTIONS_ALL (1u << 20) /* bytes of all servers' instructions */
#define ABSENT_NAMED 20                    /* unavailable servers that the instructions name */
#define ABSENT_WHY 160                     /* bytes of each reason */

#define SEARCH_INSTRUCTIONS                                                                        \
    "The tools here are behind two: find says which there are for what you want to do, run "       \
    "calls "                                                                                       \
    "one by the name that find gave."
#define DYNAMIC_INSTRUCTIONS                                                                       \
    "The tools here come in toolsets: list_toolsets says which there are and enable_toolset "      \
    "makes "                                                                                       \
    "the tools of one available."

/* One server of the reply. */
struct part {
    struct upstream *up;
    struct catalog *catalog;
    const struct builtin *builtin; /* set where it is needed; NULL: not a built-in */
};

/* The catalogs of this session's own children (upstream/session_catalog.c). */
struct session_catalog {
    struct exchange *x;
    struct list_want want;
    struct catalog *catalog; /* a reference; NULL: the server's catalog is used */
};
struct session_catalogs {
    unsigned waiting;
    struct session_catalog of[];
};

static uint64_t hash_add(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return hash;
}

static size_t part_count(const struct exchange *x)
{
    return x->has_plan ? x->plan.n : x->up != NULL;
}

static struct part part_at(const struct exchange *x, size_t i)
{
    return x->has_plan ? (struct part){x->plan.parts[i].up, x->plan.parts[i].catalog, NULL}
                       : (struct part){x->up, x->catalog, NULL};
}

static void write_server_info(const struct exchange *x, struct buf *out)
{
    if (!x->has_plan && x->catalog && x->catalog->server_info.p)
        buf_addstr(out, x->catalog->server_info);
    else
        buf_addz(out, "{\"name\":\"holdfast\",\"version\":\"" HOLDFAST_VERSION "\"}");
}

/* An endpoint of several servers offers every capability, also while servers are down: clients read
 * the capabilities once, and servers may come up later. */
static bool any_offers(const struct exchange *x, const char *capability)
{
    if (x->has_plan)
        return true;
    for (size_t i = 0; i < part_count(x); i++) {
        struct part p = part_at(x, i);
        if (p.catalog && catalog_offers(p.catalog, capability))
            return true;
    }
    return false;
}

/* A legacy server on a pipe notifies only its own sessions.  Other listeners do not learn of its
 * changes. */
static bool can_watch(const struct exchange *x, const struct upstream *up, const struct catalog *c,
                      enum catalog_kind kind)
{
    bool own_child = upstream_config(up)->kind == SERVER_STDIO && mcp_era(c->era)->is_stateful;
    return catalog_announces(c, kind) && !(own_child && mcp_era(x->era)->has_listen);
}

static bool any_announces(const struct exchange *x, enum catalog_kind kind)
{
    for (size_t i = 0; i < part_count(x); i++) {
        struct part p = part_at(x, i);
        if (p.catalog && can_watch(x, p.up, p.catalog, kind))
            return true;
    }
    return false;
}

/* Subscriptions are forwarded only if both sides speak the same era. */
static bool any_subscribes(const struct exchange *x)
{
    if (x->has_plan)
        return true;
    for (size_t i = 0; i < part_count(x); i++) {
        struct part p = part_at(x, i);
        if (p.catalog && upstream_era_for(p.up, p.catalog, x->era) == x->era &&
            catalog_subscribes(p.catalog))
            return true;
    }
    return false;
}

static bool is_untranslated(void *arg unused_arg, struct str raw_key)
{
    return str_eq(raw_key, STR("\"tasks\"")) || str_eq(raw_key, STR("\"extensions\""));
}

/* The server's own capabilities, without those that Holdfast does not forward. */
static bool write_own_capabilities(const struct exchange *x, struct buf *out)
{
    struct js_doc doc;
    struct js_splice s;

    if (x->has_plan || x->catalog->era != x->era ||
        !js_parse(x->catalog->capabilities, &js_limits_upstream, x->mem, &doc, NULL))
        return false;
    js_splice_init(&s, &doc);
    js_splice_remove(&s, js_root(&doc), is_untranslated, NULL);
    js_splice_write(&s, js_root(&doc), out);
    return true;
}

static bool has_profile_tools(const struct exchange *x)
{
    return x->profile && x->profile->mode != PROFILE_ALL;
}

/* On an endpoint of several servers each list may change at any time, because a server that comes
 * up is added.  The two tools of a search profile never change. */
bool exchange_announces_changes(const struct exchange *x, enum catalog_kind kind)
{
    if (kind == CATALOG_TOOLS && x->profile && x->profile->mode == PROFILE_SEARCH)
        return false;
    return x->has_plan || any_announces(x, kind);
}

static void write_capabilities(const struct exchange *x, struct buf *out)
{
    static const enum catalog_kind kinds[] = {CATALOG_TOOLS, CATALOG_PROMPTS, CATALOG_RESOURCES};
    static const char *const plain[] = {"completions", "logging"};
    const char *comma = "";

    if (write_own_capabilities(x, out))
        return;
    buf_addc(out, '{');
    for (size_t i = 0; i < countof(kinds); i++) {
        const char *name = catalog_kinds[kinds[i]].capability;
        if (!any_offers(x, name))
            continue;
        bool tells = exchange_announces_changes(x, kinds[i]);
        bool subscribes = kinds[i] == CATALOG_RESOURCES && any_subscribes(x);
        buf_addf(out, "%s\"%s\":{%s%s%s}", comma, name, tells ? "\"listChanged\":true" : "",
                 tells && subscribes ? "," : "", subscribes ? "\"subscribe\":true" : "");
        comma = ",";
    }
    for (size_t i = 0; i < countof(plain); i++)
        if (any_offers(x, plain[i])) {
            buf_addf(out, "%s\"%s\":{}", comma, plain[i]);
            comma = ",";
        }
    buf_addc(out, '}');
}

/* Writes one line for an unavailable server: "- files: it is still starting". */
static void write_absent(struct upstream *up, struct str fault, struct buf *out)
{
    const char *why;
    enum upstream_absence absence = upstream_absence(up, &why);
    char shown[ABSENT_WHY];
    struct buf quoted;

    buf_addf(out, "\\n- %.*s: ", STR_ARG(upstream_name(up)));
    if (fault.p) {
        absence = ABSENCE_FAILED;
        why = fault.p;
    }
    if (absence == ABSENCE_STARTING || !why[0]) {
        buf_addz(out, "it is still starting");
        return;
    }
    log_escape_cut(shown, sizeof(shown), str_of(why));
    buf_init(&quoted, 8 * sizeof(shown));
    js_quote(&quoted, str_of(shown));
    buf_addf(out, "%s: %.*s",
             fault.p ? "its tools could not be listed, but can be called"
                     : "it could not be started",
             (int)quoted.n - 2, quoted.p + 1);
    buf_release(&quoted);
}

/* Lists the servers that are unavailable now, on an endpoint of several.  Returns whether it wrote
 * anything. */
static bool write_absences(const struct exchange *x, const char *before, struct buf *out)
{
    size_t n = 0;

    for (size_t i = 0; x->has_plan && i < x->plan.n; i++) {
        const struct catalog *c = x->plan.parts[i].catalog;
        if (c && !c->tools_fault.p)
            continue;
        if (!n++)
            buf_addf(out,
                     "%sNot available yet (their tools are listed, and a list_changed notification "
                     "is sent, as soon as they answer):",
                     before);
        if (n <= ABSENT_NAMED)
            write_absent(x->plan.parts[i].up, c ? c->tools_fault : STR_NONE, out);
    }
    if (n > ABSENT_NAMED)
        buf_addf(out, "\\n- and %zu more", n - ABSENT_NAMED);
    return n > 0;
}

/* In a merged reply each server's instructions stand under its name, within the limits above. */
static void write_instructions(const struct exchange *x, struct buf *out)
{
    bool is_search = x->profile && x->profile->mode == PROFILE_SEARCH;
    bool any = x->profile && x->profile->mode != PROFILE_ALL;

    if (any)
        buf_addf(out, ",\"instructions\":\"%s",
                 is_search ? SEARCH_INSTRUCTIONS : DYNAMIC_INSTRUCTIONS);
    if (write_absences(x, any ? "\\n\\n" : ",\"instructions\":\"", out))
        any = true;
    for (size_t i = 0; !is_search && i < part_count(x); i++) {
        struct part p = part_at(x, i);
        if (!p.catalog || p.catalog->instructions.n < 3)
            continue;
        struct str raw = p.catalog->instructions;
        if (x->has_plan && (raw.n > MERGED_INSTRUCTIONS || out->n > MERGED_INSTRUCTIONS_ALL))
            raw = STR("\"(Its instructions are too long to stand here; see its own path.)\"");
        buf_addz(out, any ? "\\n\\n" : ",\"instructions\":\"");
        if (x->has_plan)
            buf_addf(out, "# %.*s\\n", STR_ARG(upstream_name(p.up)));
        buf_addstr(out, str_n(raw.p + 1, raw.n - 2));
        const struct builtin *own = builtin_find(upstream_name(p.up));
        if (own)
            builtin_describe(own, &x->caller.who, out);
        any = true;
    }
    if (any)
        buf_addc(out, '"');
}

/* The last members of every modern result of a list or a discover. */
static void write_modern_tail(const struct exchange *x, struct buf *out)
{
    buf_addf(out,
             ",\"ttlMs\":%d,\"cacheScope\":\"private\",\"resultType\":\"complete\",\"_meta\":{"
             "\"" MCP_KEY_SERVER_INFO "\":",
             LIST_TTL_MS);
    write_server_info(x, out);
    buf_addz(out, "}}");
}

/* A client that speaks both eras begins with discover and falls back to initialize if discover is
 * refused.  Discover is refused for a legacy server alone: by initialize the client gets everything
 * that the server can do.  It is refused on the transport of 2024 too. */
static bool declines_discover(const struct exchange *x)
{
    return x->is_2024 || (!x->has_plan && mcp_era(x->catalog->era)->is_stateful &&
                          upstream_config(x->up)->kind != SERVER_BUILTIN);
}

enum step_result exchange_answer_discover(struct exchange *x)
{
    struct buf *out;

    if (declines_discover(x))
        return exchange_refuse(x, 404, -32601,
                               "Method not found: %s speaks MCP versions before 2026-07-28; begin "
                               "with initialize, or use /mcp, which translates",
                               x->is_2024 ? "the transport of 2024" : "this server");
    out = exchange_begin_result(x);
    buf_addz(out, "{\"supportedVersions\":" MCP_SUPPORTED_MODERN ",\"capabilities\":");
    write_capabilities(x, out);
    write_instructions(x, out);
    write_modern_tail(x, out);
    return exchange_end_result(x);
}

void exchange_write_initialized(struct exchange *x)
{
    struct buf *out = exchange_begin_result(x);
    buf_addf(out, "{\"protocolVersion\":\"%.*s\",\"capabilities\":", STR_ARG(x->version->name));
    write_capabilities(x, out);
    buf_addz(out, ",\"serverInfo\":");
    write_server_info(x, out);
    write_instructions(x, out);
    buf_addc(out, '}');
}

static struct part listed_at(const struct exchange *x, size_t i)
{
    struct part p = part_at(x, i);
    if (x->session_catalogs && x->session_catalogs->of[i].catalog)
        p.catalog = x->session_catalogs->of[i].catalog;
    return p;
}

struct catalog *exchange_listed_catalog(const struct exchange *x, size_t i)
{
    return listed_at(x, i).catalog;
}

/* A stamp that changes with any catalog behind the list and differs between lists, so that a cursor
 * of another list is refused. */
static unsigned stamp_of(const struct exchange *x)
{
    uint64_t stamp = hash_add(1469598103934665603u, x->endpoint.p, x->endpoint.n);

    stamp = hash_add(stamp, x->method->name.p, x->method->name.n);
    if (x->profile) {
        uint64_t toolsets = exchange_toolsets(x);
        stamp = hash_add(stamp, &toolsets, sizeof(toolsets));
    }
    for (size_t i = 0; i < part_count(x); i++) {
        struct part p = listed_at(x, i);
        int64_t filled = p.catalog ? p.catalog->filled_ms + p.catalog->edition : 0;
        stamp = hash_add(stamp, &filled, sizeof(filled));
    }
    return (unsigned)(stamp >> 32 ^ stamp);
}

static struct str cursor_at(const struct exchange *x, unsigned long from)
{
    return arena_printf(x->mem, "%lu.%08x", from, stamp_of(x));
}

/* Accepts only cursors that cursor_at() wrote for this list. */
static bool read_cursor(struct exchange *x, size_t *ret_from)
{
    const struct js_node *node = mcp_param(&x->msg, STR("cursor"));
    struct str text = js_text(&x->msg.doc, node, x->mem);
    unsigned long from = 0;

    *ret_from = 0;
    if (!node)
        return true;
    for (size_t i = 0; i < text.n && i < 9 && text.p[i] >= '0' && text.p[i] <= '9'; i++)
        from = from * 10 + (unsigned long)(text.p[i] - '0');
    *ret_from = from;
    return text.p && from > 0 && str_eq(text, cursor_at(x, from));
}

struct listing {
    struct exchange *x;
    enum catalog_kind kind;
    size_t seen, from, written;
    bool more;
    struct buf *out;
};

/* True when an earlier server lists the same uri. */
static bool is_shadowed(const struct listing *l, size_t part, struct str name)
{
    if (l->kind != CATALOG_RESOURCES && l->kind != CATALOG_TEMPLATES)
        return false;
    for (size_t i = 0; i < part; i++) {
        struct part p = listed_at(l->x, i);
        if (p.catalog && catalog_find(p.catalog, l->kind, name))
            return true;
    }
    return false;
}

static bool is_hidden(const struct listing *l, const struct part *p, struct str name)
{
    return l->kind == CATALOG_TOOLS &&
           (!principal_may_use_tool(&l->x->caller.who, upstream_name(p->up), name) ||
            (l->x->profile && !exchange_profile_shows(l->x, upstream_name(p->up), name)) ||
            !exchange_rules_show_tool(l->x, upstream_name(p->up), name) ||
            (p->builtin && builtin_hides(p->builtin, &l->x->caller.who, name)));
}

static void list_part(struct listing *l, size_t i)
{
    struct exchange *x = l->x;
    struct part p = listed_at(x, i);
    const struct catalog_list *list = &p.catalog->lists[l->kind];
    struct catalog_writing w = {
        .with_handles = l->kind == CATALOG_TOOLS && exchange_injects_handles(x, p.up, p.catalog),
        .mended = x->has_plan,
        .max = 1,
    };
    bool hides =
        principal_limits_tools(&x->caller.who) || x->profile || exchange_rules_profile(x).p != NULL;

    if (upstream_config(p.up)->kind == SERVER_BUILTIN)
        p.builtin = builtin_find(upstream_name(p.up));
    hides = hides || (p.builtin && p.builtin->hides);
    if (x->has_plan)
        w.prefix = arena_printf(x->mem, "%.*s" ROUTE_SEPARATOR, STR_ARG(upstream_name(p.up)));
    for (w.from = 0; w.from < list->n && !l->more; w.from++) {
        if (is_shadowed(l, i, list->items[w.from].name) ||
            (hides && is_hidden(l, &p, list->items[w.from].name)) || l->seen++ < l->from)
            continue;
        if (l->written == PAGE_ITEMS || l->out->n > PAGE_BYTES) {
            l->more = true;
            break;
        }
        if (l->written++)
            buf_addc(l->out, ',');
        catalog_write_items(p.catalog, l->kind, &w, l->out);
    }
}

/* The profile's own tools come before those of its servers. */
static void list_profile_tools(struct listing *l)
{
    const struct profile_config *p = l->x->profile;

    for (const struct profile_tool *t = profile_tool_next(p, NULL); t;
         t = profile_tool_next(p, t)) {
        if (l->seen++ < l->from)
            continue;
        if (l->written++)
            buf_addc(l->out, ',');
        buf_addz(l->out, t->definition);
    }
}

static enum catalog_kind kind_of(const struct mcp_method *m)
{
    for (enum catalog_kind k = 0; k < CATALOG_KINDS; k++)
        if (str_eq(catalog_kinds[k].method, m->name))
            return k;
    return CATALOG_TOOLS;
}

static void on_session_catalog(struct list_want *w, struct catalog *c)
{
    struct session_catalog *one = container_of(w, struct session_catalog, want);
    struct exchange *x = one->x;

    if (c)
        one->catalog = catalog_ref(c);
    if (--x->session_catalogs->waiting == 0)
        exchange_resume(x);
}

struct link *exchange_session_catalog_link(const struct exchange *x, struct upstream *up,
                                           enum catalog_kind kind)
{
    struct session *s = x->transport ? x->transport->session : NULL;
    struct session_link *used = s ? session_link_of(s, upstream_name(up)) : NULL;
    struct link *l = used ? upstream_find_link(up, s->link_key, used->generation) : NULL;
    return l && link_has_session_catalog(l, kind) ? l : NULL;
}

enum step_result exchange_gather_session_catalogs(struct exchange *x, enum catalog_kind kind)
{
    size_t n = part_count(x);

    if (x->session_catalogs)
        return x->session_catalogs->waiting ? STEP_WAIT : STEP_NEXT;
    if (!x->transport || !x->transport->session)
        return STEP_NEXT;
    x->session_catalogs =
        arena_zalloc(x->mem, sizeof(*x->session_catalogs) + n * sizeof(x->session_catalogs->of[0]));
    for (size_t i = 0; i < n; i++) {
        struct session_catalog *one = &x->session_catalogs->of[i];
        struct link *l = exchange_session_catalog_link(x, part_at(x, i).up, kind);
        struct catalog *c = NULL;

        *one = (struct session_catalog){.x = x, .want = {.done = on_session_catalog}};
        if (l && !link_list(l, kind, &one->want, &c))
            x->session_catalogs->waiting++;
        else if (c)
            one->catalog = catalog_ref(c);
    }
    return x->session_catalogs->waiting ? STEP_WAIT : STEP_NEXT;
}

void exchange_release_session_catalogs(struct exchange *x)
{
    for (size_t i = 0; x->session_catalogs && i < part_count(x); i++)
        catalog_unref(x->session_catalogs->of[i].catalog);
}

static enum step_result refuse_cursor(struct exchange *x)
{
    return exchange_refuse(x, 200, -32602,
                           "Invalid cursor: the list has changed, or the cursor is not one of "
                           "ours; begin again without a cursor");
}

enum step_result exchange_answer_list(struct exchange *x)
{
    struct listing l = {.x = x, .kind = kind_of(x->method)};

    if (exchange_gather_session_catalogs(x, l.kind) == STEP_WAIT)
        return STEP_WAIT;
    if (!read_cursor(x, &l.from))
        return refuse_cursor(x);
    if (l.kind == CATALOG_TOOLS && !x->has_plan && x->catalog && x->catalog->tools_fault.p &&
        !listed_at(x, 0).catalog->lists[CATALOG_TOOLS].n)
        return exchange_refuse(x, 200, -32603, "%.*s", STR_ARG(x->catalog->tools_fault));
    l.out = exchange_begin_result(x);
    buf_addf(l.out, "{\"%.*s\":[", STR_ARG(catalog_kinds[l.kind].array_key));
    if (l.kind == CATALOG_TOOLS && has_profile_tools(x))
        list_profile_tools(&l);
    for (size_t i = 0; i < part_count(x) && !l.more; i++)
        if (listed_at(x, i).catalog)
            list_part(&l, i);
    buf_addc(l.out, ']');
    if (l.from && !l.written)
        return refuse_cursor(x);
    if (l.more)
        buf_addf(l.out, ",\"nextCursor\":\"%.*s\"", STR_ARG(cursor_at(x, l.from + l.written)));
    if (mcp_era(x->era)->stamps_results)
        write_modern_tail(x, l.out);
    else
        buf_addc(l.out, '}');
    return exchange_end_result(x);
}
