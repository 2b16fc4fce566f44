/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog of one session's own child.  A legacy server keeps a session per link, and may offer
 * one session what it does not offer another: tools that need a client's capability, resources that
 * a call has made.  It says so with list_changed on that link.  From then on this session's lists
 * are read from its link, once per change.  Other sessions use the catalog of the server.
 *
 * A server that chooses its tools by the capabilities in initialize may send no list_changed.  The
 * catalog holds its offer to the probe, which declares everything.  So the first link that opens
 * with other capabilities reads the tools once, after its first call.  If they differ from the
 * catalog's, the session has a list of its own and its client gets list_changed.  If they are the
 * same, that is remembered for the catalog and these capabilities. */
#include "upstream/upstream_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define MAX_PAGES 100
#define MAX_CURSOR 2048
#define OLD_MS 30000 /* an older catalog may itself be outdated */

void link_changed(struct link *l, enum catalog_kind kind)
{
    struct upstream *u = l->up;

    if (l->is_probe)
        return; /* the probe is about to read it anyway */
    if (link_is_shared(l)) {
        upstream_changed(u, kind);
        return;
    }
    for (enum catalog_kind k = 0; k < CATALOG_KINDS; k++)
        if (catalog_bits(kind) & 1u << k) {
            catalog_unref(l->session_catalogs[k]);
            l->session_catalogs[k] = NULL;
        }
    l->has_session_catalog |= catalog_bits(kind);
    l->session_catalog_changes++;
    if (u->catalog && clock_mono_ms() - u->catalog->filled_ms > OLD_MS)
        u->catalog_stale |= catalog_bits(kind);
}

bool link_has_session_catalog(const struct link *l, enum catalog_kind kind)
{
    return (l->has_session_catalog & 1u << kind) != 0;
}

bool link_session_catalog_has(const struct link *l, enum catalog_kind kind, struct str name)
{
    return l->session_catalogs[kind] && catalog_find(l->session_catalogs[kind], kind, name);
}

/* A modern server on a pipe notifies only subscribers.  A legacy client cannot subscribe, so the
 * link does.  The answer is not awaited, and the changes concern only this session. */
void link_listen_for_session(struct link *l)
{
    if (mcp_era(l->era)->has_listen && l->counts && l->initialize_params.p && l->up->catalog &&
        l->up->catalog->announces && !link_subscribe(l, upstream_next_id(l->up->set), NULL))
        log_debug("a server could not be listened to", LS("server", l->up->config->name));
}

void link_forget_session_catalogs(struct link *l)
{
    for (enum catalog_kind k = 0; k < CATALOG_KINDS; k++)
        catalog_unref(l->session_catalogs[k]);
}

static void finish(struct list_want *w, bool ok)
{
    struct link *l = w->pending.link;
    struct catalog *c = w->catalog;

    w->catalog = NULL;
    if (ok && w->kind == CATALOG_TOOLS)
        upstream_filter_tools(l->up, c);
    if (ok && w->kind == CATALOG_TOOLS && l->up->set->guard.look)
        l->up->set->guard.look(l->up->set->guard.arg, l->up, c, false);
    /* A list that changed while it was read is read again when it is needed. */
    if (ok && l->state == LINK_OPEN && !l->session_catalogs[w->kind] &&
        w->changes == l->session_catalog_changes)
        l->session_catalogs[w->kind] = catalog_ref(c);
    w->done(w, ok ? c : NULL);
    catalog_unref(c);
}

static bool ask(struct list_want *w, struct link *l, struct str cursor)
{
    struct exec token = exec_housekeeping(EXEC_LIST);
    struct error err;
    struct buf text;

    if (++w->pages > MAX_PAGES || cursor.n > MAX_CURSOR)
        return false;
    w->pending.id = upstream_next_id(l->up->set);
    buf_init(&text, 64 * 1024);
    bool has_envelope = mcp_era(l->era)->has_envelope;
    buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%.*s\",\"params\":{%s%.*s%s%s}}",
             (unsigned long long)w->pending.id, STR_ARG(catalog_kinds[w->kind].method),
             cursor.p ? "\"cursor\":" : "", STR_ARG(cursor), cursor.p && has_envelope ? "," : "",
             has_envelope ? MCP_OUR_ENVELOPE : "");
    struct outgoing m = {.method = catalog_kinds[w->kind].method, .text = buf_str(&text)};
    bool sent = upstream_send(l, &token, &w->pending, &m, &err);
    buf_release(&text);
    return sent;
}

static void on_reply(struct pending *p, struct mcp_message *m, struct arena *mem)
{
    struct list_want *w = container_of(p, struct list_want, pending);
    struct str cursor = STR_NONE;
    struct error err;
    bool ok =
        !m->error && catalog_take_page(w->catalog, w->kind, &m->doc, m->result, &cursor, &err);

    if (!ok)
        log_debug("a session's own list could not be read",
                  LS("server", p->link->up->config->name));
    if (!ok || !cursor.p)
        finish(w, ok);
    else if (!ask(w, p->link, cursor))
        finish(w, false);
    arena_free(mem);
}

static void on_fail(struct pending *p, const struct error *err unused_arg, bool left unused_arg)
{
    finish(container_of(p, struct list_want, pending), false);
}

bool link_list(struct link *l, enum catalog_kind kind, struct list_want *w, struct catalog **ret)
{
    *ret = l->session_catalogs[kind];
    if (*ret)
        return true;
    w->kind = kind;
    w->pages = 0;
    w->changes = l->session_catalog_changes;
    w->catalog = catalog_new(l->era);
    w->pending = (struct pending){.on_reply = on_reply, .on_fail = on_fail};
    if (ask(w, l, STR_NONE))
        return false;
    catalog_unref(w->catalog);
    return true; /* *ret is NULL: the server's catalog is used */
}

/* One reading of a session's tools, to compare them with the catalog's. */
struct tools_check {
    struct list_want want;
    uint64_t capabilities; /* digest of the client capabilities of the link */
};

static bool capabilities_of(const struct link *l, uint64_t *ret_digest, bool *ret_are_ours)
{
    uint8_t digest[SHA256_BYTES];
    struct js_doc doc;
    struct arena *mem = arena_new(8u * 1024 * 1024);
    bool ok = js_parse(l->initialize_params, &js_limits_request, mem, &doc, NULL);
    const struct js_node *can = ok ? js_get(&doc, js_root(&doc), STR("capabilities")) : NULL;
    struct str raw = can ? js_raw(&doc, can) : STR("{}");

    sha256(raw, digest);
    memcpy(ret_digest, digest, sizeof(*ret_digest));
    *ret_are_ours = str_eq(raw, STR(OUR_CAPABILITIES));
    arena_free(mem);
    return ok;
}

static bool is_known_same(const struct upstream *u, uint64_t capabilities)
{
    size_t n = u->n_same < SAME_TOOLS_MAX ? u->n_same : SAME_TOOLS_MAX;

    for (size_t i = 0; i < n; i++)
        if (u->same[i] == capabilities)
            return true;
    return false;
}

static bool same_tools(const struct catalog *a, const struct catalog *b)
{
    const struct catalog_list *list = &a->lists[CATALOG_TOOLS];

    if (list->n != b->lists[CATALOG_TOOLS].n)
        return false;
    for (size_t i = 0; i < list->n; i++) {
        const struct catalog_item *other = catalog_tool(b, list->items[i].name);
        if (!other || !str_eq(other->raw, list->items[i].raw))
            return false;
    }
    return true;
}

static void on_tools(struct list_want *w, struct catalog *c)
{
    struct tools_check *check = container_of(w, struct tools_check, want);
    struct link *l = w->pending.link;
    struct upstream *u = l->up;
    const struct upstream_sink *sink = &u->set->sink;

    if (!c || !u->catalog || u->catalog->tools_fault.p || l->state != LINK_OPEN ||
        w->changes != l->session_catalog_changes) {
        /* The list could not be read, or the server has announced the change itself. */
    } else if (same_tools(c, u->catalog)) {
        u->same[u->n_same++ % SAME_TOOLS_MAX] = check->capabilities;
        catalog_unref(l->session_catalogs[CATALOG_TOOLS]);
        l->session_catalogs[CATALOG_TOOLS] = NULL;
    } else {
        log_debug("a server offers a session other tools than it offered the probe",
                  LS("server", u->config->name), LI("tools", c->lists[CATALOG_TOOLS].n));
        l->has_session_catalog |= 1u << CATALOG_TOOLS;
        if (sink->on_session_catalog)
            sink->on_session_catalog(sink->arg, l, CATALOG_TOOLS);
    }
    free(check);
}

void link_check_tools(struct link *l)
{
    struct catalog *known = l->up->catalog, *ignored;
    struct tools_check *check;
    uint64_t capabilities;
    bool are_ours;

    if (!mcp_era(l->era)->is_stateful || l->is_probe || !l->initialize_params.p ||
        link_is_shared(l) || !link_is_stateful(l) || link_has_session_catalog(l, CATALOG_TOOLS) ||
        l->state != LINK_OPEN)
        return;
    if (!known || known->tools_fault.p || !catalog_offers(known, "tools") ||
        !capabilities_of(l, &capabilities, &are_ours) ||
        (are_ours && mcp_era(known->era)->is_stateful) || is_known_same(l->up, capabilities))
        return;
    check = xcalloc(1, sizeof(*check));
    check->want.done = on_tools;
    check->capabilities = capabilities;
    if (link_list(l, CATALOG_TOOLS, &check->want, &ignored))
        free(check); /* it cannot be read now */
}
