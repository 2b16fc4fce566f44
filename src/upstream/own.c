/* SPDX-License-Identifier: Apache-2.0 */
/* A session's own lists.  A legacy server keeps a session per link, and may offer one session what
 * it does not offer another: tools that need a client's capability, resources a call has made.  It
 * says so with list_changed on that link; from then on that session's lists are asked of the link
 * itself, once per change, and everybody else's stay as they are. */
#include "upstream/upstream_impl.h"

#include "base/clock.h"
#include "base/log.h"

#define MAX_PAGES 100
#define MAX_CURSOR 2048
#define OLD_MS 30000 /* a catalog older than this may have changed for everybody */

void link_changed(struct link *l, enum catalog_kind kind)
{
    struct upstream *u = l->up;

    if (l->is_probe)
        return; /* it is about to be asked anyway */
    if (link_is_shared(l)) {
        upstream_changed(u, kind);
        return;
    }
    for (enum catalog_kind k = 0; k < CATALOG_KINDS; k++)
        if (catalog_bits(kind) & 1u << k) {
            catalog_unref(l->own[k]);
            l->own[k] = NULL;
        }
    l->has_own |= catalog_bits(kind);
    if (u->catalog && clock_mono_ms() - u->catalog->filled_ms > OLD_MS)
        u->catalog_stale |= catalog_bits(kind);
}

bool link_has_own(const struct link *l, enum catalog_kind kind)
{
    return (l->has_own & 1u << kind) != 0;
}

bool link_own_has(const struct link *l, enum catalog_kind kind, struct str name)
{
    return l->own[kind] && catalog_find(l->own[kind], kind, name);
}

/* A modern server on a pipe tells only those who listen.  An older client cannot ask it to, so the
 * link does; nobody waits for an answer, and the changes are the session's own. */
void link_listen_own(struct link *l)
{
    if (l->era == MCP_MODERN && l->counts && l->initialize_params.p && l->up->catalog &&
        l->up->catalog->announces && !link_subscribe(l, upstream_next_id(l->up->set), NULL))
        log_debug("a server could not be listened to", LS("server", l->up->config->name));
}

void link_forget_own(struct link *l)
{
    for (enum catalog_kind k = 0; k < CATALOG_KINDS; k++)
        catalog_unref(l->own[k]);
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
    if (ok && l->state == LINK_OPEN && !l->own[w->kind])
        l->own[w->kind] = catalog_ref(c);
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
    bool modern = l->era == MCP_MODERN;
    buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%.*s\",\"params\":{%s%.*s%s%s}}",
             (unsigned long long)w->pending.id, STR_ARG(catalog_kinds[w->kind].method),
             cursor.p ? "\"cursor\":" : "", STR_ARG(cursor), cursor.p && modern ? "," : "",
             modern ? MCP_OUR_ENVELOPE : "");
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
    *ret = l->own[kind];
    if (*ret)
        return true;
    w->kind = kind;
    w->pages = 0;
    w->catalog = catalog_new(l->era);
    w->pending = (struct pending){.on_reply = on_reply, .on_fail = on_fail};
    if (ask(w, l, STR_NONE))
        return false;
    catalog_unref(w->catalog);
    return true; /* as it is, then: everybody's list */
}
