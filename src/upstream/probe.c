/* SPDX-License-Identifier: Apache-2.0 */
/* The probe: finds out the era of an upstream, and reads its catalog.  One per upstream, on a link
 * of its own that counts against no limit and ends with the probe.
 *
 *   DISCOVER ──discover result──────────────────> LISTS ──last page of the last──> catalog
 *      └──any other answer, silence──> SHAKE ───────^
 *                                        └──-32022 naming a modern version──> DISCOVER, patiently
 *
 * A server on a pipe is started once: SHAKE sends initialize to the process that got the discover.
 * Only a process that exits, or then refuses initialize, is replaced by a fresh one.  After a
 * silence both requests wait in the pipe of a server that may only be slow to start; the first
 * result decides.
 *
 * Over HTTP, 401, 403, 5xx and broken connections are failures, not evidence of an era.
 *
 * If the server refuses a list, or the list cannot be read, the last known list is used, or an
 * empty one.  Tools can be called without having been listed, so the server stays usable: the list
 * is requested again later, and until then its fault is shown.  After a list_changed only the lists
 * that changed are read; the others are copied from the present catalog. */
#include "upstream/upstream_impl.h"

#include "base/log.h"
#include "crypto/hash.h"
#include "mcp/mirror.h"

#include <stdio.h>
#include <stdlib.h>

#define DISCOVER_PIPE_MS 2000
#define DISCOVER_HTTP_MS 10000
#define PATIENT_MS 30000
#define PROBE_MS 90000
#define MAX_PAGES 100 /* per list */
#define MAX_ROUNDS 3  /* for lists that change while they are read */

enum probe_state { PROBE_DISCOVER, PROBE_SHAKE, PROBE_LISTS };

struct probe {
    struct upstream *up;
    enum probe_state state;
    struct link *link;
    struct link_wait wait;
    struct pending ask;
    bool asking;
    bool patient;     /* legacy was refused already: silence does not decide any more */
    bool recalled;    /* the era was remembered: discover is skipped, or has a longer timeout */
    bool reused;      /* SHAKE uses the process that got the discover */
    bool asked_twice; /* discover was repeated with the version that -32022 named */
    struct catalog *catalog;
    unsigned stale;         /* bits by kind: lists announced as changed; 0: unknown, read all */
    unsigned todo;          /* bits: lists still to be read */
    unsigned again;         /* bits: lists that changed while or after they were read */
    enum catalog_kind kind; /* the list being read */
    unsigned pages, rounds;
    bool tools_failed; /* tools/list failed, the rest of the probe did not … */
    struct error tools_error;
    struct loop_timer *timer; /* timeout of a discover */
    struct loop_timer *limit; /* timeout of the whole probe */
    struct loop_task reap;
};

static void probe_open(struct probe *p, enum probe_state state);

static void probe_close_link(struct probe *p)
{
    static const struct error quiet = {.code = ERR_NONE};
    if (p->asking) {
        p->asking = false;
        pending_cancel(&p->ask, STR("probe ended"));
    }
    loop_timer_stop(p->timer);
    link_wait_cancel(&p->wait);
    if (p->link && p->link->state != LINK_ENDED) {
        p->link->fill = NULL;
        link_end(p->link, &quiet);
    }
    p->link = NULL;
}

static void reap_probe(struct loop_task *task)
{
    struct probe *p = container_of(task, struct probe, reap);
    loop_timer_free(p->timer);
    loop_timer_free(p->limit);
    free(p);
}

/* The catalog is known at last: clients that got a list without this server are notified. */
static void announce_catalog(struct upstream *u)
{
    const struct upstream_sink *sink = &u->set->sink;

    if (!u->was_left_out || !u->catalog || u->catalog->tools_fault.p)
        return;
    u->was_left_out = false;
    for (enum catalog_kind kind = 0; kind < CATALOG_KINDS && sink->on_changed; kind++)
        if (kind != CATALOG_TEMPLATES && catalog_offers(u->catalog, catalog_kinds[kind].capability))
            sink->on_changed(sink->arg, u, kind);
}

/* A digest of its serverInfo: a new version may speak another era. */
static uint64_t identity_of(const struct catalog *c)
{
    uint8_t digest[SHA256_BYTES];
    uint64_t identity;

    sha256(c->server_info.p ? c->server_info : STR(""), digest);
    memcpy(&identity, digest, sizeof(identity));
    return identity;
}

/* Over HTTP a refused discover costs nothing, and servers change without notice. */
static bool remembers_era(const struct upstream *u)
{
    return u->ops->has_process && u->config->era == ERA_AUTO;
}

void probe_remember_era(struct upstream *u)
{
    struct era_entry entry = {.identity = identity_of(u->catalog),
                              .era = u->catalog->era,
                              .refuses_initialize = u->refuses_initialize};

    memcpy(entry.definition, u->config->definition, sizeof(entry.definition));
    if (remembers_era(u))
        eras_put(u->set->eras, u->config->name, &entry);
}

/* True when the server is not the one whose era was remembered.  If a legacy server was not asked
 * to discover, its era has to be decided anew. */
static bool outgrew_memory(const struct probe *p)
{
    struct upstream *u = p->up;
    const struct era_entry *old =
        remembers_era(u) ? eras_find(u->set->eras, u->config->name, u->config->definition) : NULL;

    if (!old || old->identity == identity_of(p->catalog))
        return false;
    u->refuses_initialize = false;
    return p->recalled && p->catalog->era == MCP_LEGACY;
}

static void probe_finish(struct probe *p, const struct error *err)
{
    struct upstream *u = p->up;
    struct list wants;
    bool decides_anew = !err && outgrew_memory(p);

    probe_close_link(p);
    loop_timer_stop(p->limit);
    u->probe = NULL;
    u->catalog_refreshing = 0;
    if (!err) {
        upstream_note_success(u);
        if (p->tools_failed)
            upstream_tools_unread(u, &p->tools_error);
        else
            u->unread = 0;
        u->waited_until_ms = u->unread ? u->waited_until_ms : 0;
        catalog_unref(u->catalog);
        u->catalog = p->catalog;
        u->catalog->took_ms = loop_now_ms(u->set->loop) - u->probed_since_ms;
        u->n_same = 0;
        if (decides_anew)
            eras_forget(u->set->eras, u->config->name);
        else
            probe_remember_era(u);
        log_info("server probed", LS("server", u->config->name),
                 LZ("era", mcp_era(p->catalog->era)->name), LS("version", p->catalog->version),
                 LI("tools", p->catalog->lists[CATALOG_TOOLS].n),
                 LI("prompts", p->catalog->lists[CATALOG_PROMPTS].n),
                 LI("resources", p->catalog->lists[CATALOG_RESOURCES].n));
    } else {
        catalog_unref(p->catalog);
        u->catalog_stale |= p->stale;
        if (p->recalled && !u->retired)
            eras_forget(u->set->eras, u->config->name);
        if (!u->retired)
            upstream_note_failure(u, err);
    }
    list_init(&wants);
    list_move_all(&wants, &u->catalog_wants);
    for (struct list *n = list_pop(&wants); n; n = list_pop(&wants)) {
        struct catalog_want *w = list_entry(n, struct catalog_want, link);
        w->done(w, u->catalog, u->catalog ? NULL : err);
    }
    announce_catalog(u);
    p->reap.fn = reap_probe;
    loop_defer(u->set->loop, &p->reap);
    if (decides_anew && !u->probe && !u->retired)
        probe_start(u);
}

static void probe_fail(struct probe *p, enum err_code code, const char *what)
{
    struct error err;
    error_set(&err, code, "%.*s %s", STR_ARG(p->up->config->name), what);
    probe_finish(p, &err);
}

static bool probe_ask(struct probe *p, struct str method, struct str params)
{
    struct exec token = exec_housekeeping(p->state == PROBE_LISTS ? EXEC_LIST : EXEC_PROBE);
    struct error err;
    struct buf text;
    bool sent;

    p->ask.id = upstream_next_id(p->up->set);
    buf_init(&text, 1024 * 1024);
    buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%.*s\",\"params\":%.*s}",
             (unsigned long long)p->ask.id, STR_ARG(method), STR_ARG(params));
    struct outgoing m = {.method = method, .text = buf_str(&text)};
    p->asking = sent = upstream_send(p->link, &token, &p->ask, &m, &err);
    buf_release(&text);
    if (!sent)
        probe_finish(p, &err);
    return sent;
}

/* At a modern server over HTTP, a tool is usable only if its mirrored arguments are valid. */
static bool mirrors_well(void *arg, const struct catalog_item *tool)
{
    const struct probe *p = arg;
    const char *fault = "it cannot be read";
    struct js_doc doc;

    if (!tool->mirrors)
        return true;
    struct arena *mem = arena_new(4 * CATALOG_MAX_BYTES);
    if (js_parse(tool->raw, &js_limits_upstream, mem, &doc, NULL))
        fault = mcp_mirror_fault(&doc, js_get(&doc, js_root(&doc), STR("inputSchema")), mem);
    arena_free(mem);
    if (fault)
        log_warn("left out a tool with invalid mirrored arguments",
                 LS("server", p->up->config->name), LS("tool", tool->name), LZ("why", fault));
    return !fault;
}

static void log_note(void *arg, const char *note)
{
    const struct probe *p = arg;
    log_warn("the lists of a server have a mistake", LS("server", p->up->config->name),
             LZ("note", note));
}

static void probe_finish_lists(struct probe *p)
{
    catalog_each_note(p->catalog, log_note, p);
    if (mcp_era(p->catalog->era)->mirrors_body && !p->up->ops->has_process)
        catalog_filter(p->catalog, CATALOG_TOOLS, mirrors_well, p);
    upstream_filter_tools(p->up, p->catalog);
    if (p->up->set->guard.look && !p->tools_failed && !p->up->own)
        p->up->set->guard.look(p->up->set->guard.arg, p->up, p->catalog, true);
    probe_finish(p, NULL);
}

static void next_list(struct probe *p);

/* Uses the tools of the last catalog, if there is one. */
static void do_without_tools(struct probe *p, const struct error *err)
{
    struct error ignored;

    p->tools_failed = true;
    p->tools_error = *err;
    catalog_note_fault(p->catalog, err->text);
    if (p->up->catalog && !catalog_copy_list(p->catalog, p->up->catalog, CATALOG_TOOLS, &ignored))
        catalog_clear_list(p->catalog, CATALOG_TOOLS);
}

static void list_failed(struct probe *p, const struct error *err)
{
    log_warn("a list of a server could not be read", LS("server", p->up->config->name),
             LS("list", catalog_kinds[p->kind].method), LZ("why", err->text));
    catalog_clear_list(p->catalog, p->kind);
    if (p->kind == CATALOG_TOOLS)
        do_without_tools(p, err);
    if (p->link->state == LINK_ENDED)
        probe_finish_lists(p);
    else
        next_list(p);
}

static void ask_page(struct probe *p, struct str cursor)
{
    const struct catalog_kind_info *info = &catalog_kinds[p->kind];
    bool has_envelope = mcp_era(p->catalog->era)->has_envelope;
    char params[4096];

    if (++p->pages > MAX_PAGES || cursor.n > 2048) {
        struct error err;
        error_set(&err, ERR_UPSTREAM, "%.*s has more pages of %.*s than Holdfast reads (%d)",
                  STR_ARG(p->up->config->name), STR_ARG(info->method), MAX_PAGES);
        list_failed(p, &err);
        return;
    }
    int n = snprintf(params, sizeof(params), "{%s%.*s%s%s}", cursor.p ? "\"cursor\":" : "",
                     STR_ARG(cursor), cursor.p && has_envelope ? "," : "",
                     has_envelope ? MCP_OUR_ENVELOPE : "");
    probe_ask(p, info->method, str_n(params, (size_t)n));
}

static void next_list(struct probe *p)
{
    if (!p->todo && p->again && ++p->rounds < MAX_ROUNDS) {
        p->todo = p->again;
        p->again = 0;
        for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
            if (p->todo & 1u << kind)
                catalog_clear_list(p->catalog, kind);
    }
    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++) {
        if (!(p->todo & 1u << kind))
            continue;
        p->todo &= ~(1u << kind);
        p->kind = kind;
        p->pages = 0;
        ask_page(p, STR_NONE);
        return;
    }
    probe_finish_lists(p);
}

static void begin_lists(struct probe *p)
{
    struct error ignored;

    p->state = PROBE_LISTS;
    p->todo = p->up->catalog && p->stale ? p->stale : CATALOG_ALL;
    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++) {
        if (!catalog_offers(p->catalog, catalog_kinds[kind].capability)) {
            p->todo &= ~(1u << kind);
        } else if (!(p->todo & 1u << kind) &&
                   !catalog_copy_list(p->catalog, p->up->catalog, kind, &ignored)) {
            catalog_clear_list(p->catalog, kind);
            p->todo |= 1u << kind;
        }
    }
    next_list(p);
}

/* `err`: why the modern way failed, or NULL when the server refused it. */
static void go_legacy(struct probe *p, const struct error *err)
{
    if (p->up->config->era == ERA_MODERN || p->patient) {
        if (err)
            probe_finish(p, err);
        else
            probe_fail(p, ERR_UPSTREAM,
                       "does not answer server/discover, though its era is modern");
        return;
    }
    catalog_unref(p->catalog);
    p->catalog = catalog_new(MCP_LEGACY);
    if (p->link && p->link->state == LINK_OPEN && p->up->ops->has_process) {
        loop_timer_stop(p->timer);
        p->state = PROBE_SHAKE;
        p->reused = true;
        p->link->fill = p->catalog;
        list_push(&p->link->waiters, &p->wait.link);
        link_shake(p->link);
        return;
    }
    probe_close_link(p);
    probe_open(p, PROBE_SHAKE);
}

/* The process that got the discover does not accept initialize: a fresh one may. */
static void shake_afresh(struct probe *p)
{
    probe_close_link(p);
    catalog_unref(p->catalog);
    p->catalog = catalog_new(MCP_LEGACY);
    probe_open(p, PROBE_SHAKE);
}

/* Both requests were sent, and discover has a result.  The process may have taken the initialize
 * behind it as the beginning of a legacy session, so the lists are read from a fresh process. */
static void discover_afresh(struct probe *p)
{
    probe_close_link(p);
    catalog_unref(p->catalog);
    p->catalog = catalog_new(MCP_MODERN);
    p->patient = true;
    probe_open(p, PROBE_DISCOVER);
}

static bool is_discover_result(const struct mcp_message *m)
{
    const struct js_node *versions = js_get(&m->doc, m->result, STR("supportedVersions"));
    if (!js_type_is(versions, JS_ARRAY))
        return false;
    for (const struct js_node *v = js_first(&m->doc, versions); v;
         v = js_next(&m->doc, versions, v))
        if (js_is(&m->doc, v, mcp_version_latest(MCP_MODERN)->name))
            return true;
    return false;
}

static void ask_discover(struct probe *p)
{
    bool patient = p->patient || p->recalled || p->up->config->era == ERA_MODERN;
    int64_t ms = p->up->ops->has_process ? DISCOVER_PIPE_MS : DISCOVER_HTTP_MS;

    if (probe_ask(p, STR("server/discover"), STR("{" MCP_OUR_ENVELOPE "}")))
        loop_timer_start(p->timer, patient ? PATIENT_MS : ms, 0);
}

static void on_discovered(struct probe *p, const struct mcp_message *m)
{
    struct error err;
    loop_timer_stop(p->timer);
    if (p->state == PROBE_SHAKE) {
        if (is_discover_result(m))
            discover_afresh(p);
        /* else initialize decides */
    } else if (mcp_names_modern(m) && !p->asked_twice) {
        p->asked_twice = true;
        ask_discover(p);
    } else if (!is_discover_result(m)) {
        go_legacy(p, NULL);
    } else if (!catalog_take_server(p->catalog, &m->doc, m->result, &err)) {
        probe_finish(p, &err);
    } else {
        begin_lists(p);
    }
}

/* The refusal, with the server's own message. */
static void refusal_of(const struct probe *p, const struct mcp_message *m, struct error *ret)
{
    struct arena *mem = arena_new(4 * CATALOG_MAX_BYTES);
    struct str words = js_text(&m->doc, js_get(&m->doc, m->error, STR("message")), mem);
    char shown[200];

    log_escape_cut(shown, sizeof(shown), words.n ? words : STR("it gives no reason"));
    error_set(ret, ERR_UPSTREAM, "%.*s refused %.*s: %s", STR_ARG(p->up->config->name),
              STR_ARG(catalog_kinds[p->kind].method), shown);
    arena_free(mem);
}

static void on_page(struct probe *p, const struct mcp_message *m)
{
    int64_t code = 0;
    struct str cursor;
    struct error err;

    if (m->error) {
        /* Many servers have resources without templates and refuse the list in this way. */
        if (p->kind == CATALOG_TEMPLATES &&
            js_to_i64(&m->doc, js_get(&m->doc, m->error, STR("code")), &code) && code == -32601) {
            next_list(p);
            return;
        }
        refusal_of(p, m, &err);
        list_failed(p, &err);
    } else if (!catalog_take_page(p->catalog, p->kind, &m->doc, m->result, &cursor, &err)) {
        list_failed(p, &err);
    } else if (cursor.p) {
        ask_page(p, cursor);
    } else {
        next_list(p);
    }
}

static void on_reply(struct pending *ask, struct mcp_message *m, struct arena *mem)
{
    struct probe *p = container_of(ask, struct probe, ask);
    p->asking = false;
    if (p->state != PROBE_LISTS)
        on_discovered(p, m);
    else
        on_page(p, m);
    arena_free(mem);
}

static void on_fail(struct pending *ask, const struct error *err, bool left unused_arg)
{
    struct probe *p = container_of(ask, struct probe, ask);
    p->asking = false;
    if (p->state == PROBE_SHAKE)
        return; /* the handshake on the same process decides */
    /* On a pipe, some legacy servers exit on an unknown first message.  Over HTTP only a plain
     * refusal (ERR_NO_METHOD) means legacy; see remote_post.c. */
    if (p->state == PROBE_DISCOVER && (p->up->ops->has_process || err->code == ERR_NO_METHOD))
        go_legacy(p, err);
    else if (p->state == PROBE_LISTS && p->kind != CATALOG_TOOLS)
        list_failed(p, err);
    else
        probe_finish(p, err);
}

static void on_silence(void *arg)
{
    struct probe *p = arg;
    if (!p->up->ops->has_process) {
        probe_fail(p, ERR_TIMEOUT, "did not answer server/discover in time");
        return;
    }
    log_info("a server is slow to answer server/discover; initialize is sent as well",
             LS("server", p->up->config->name));
    go_legacy(p, NULL);
}

static void on_limit(void *arg)
{
    struct probe *p = arg;
    if (p->state == PROBE_LISTS && p->kind != CATALOG_TOOLS) {
        log_warn(
            "a server took more than 90 s to send its lists; the missing lists are served empty",
            LS("server", p->up->config->name));
        catalog_clear_list(p->catalog, p->kind);
        probe_finish_lists(p);
        return;
    }
    probe_fail(p, ERR_TIMEOUT, "did not finish starting within 90 s; see its log lines");
}

static void on_link(struct link_wait *w, struct link *l unused_arg, const struct error *err)
{
    struct probe *p = container_of(w, struct probe, wait);

    if (err && p->state == PROBE_SHAKE && p->link->refused_as_modern &&
        p->up->config->era == ERA_AUTO && !p->patient) {
        p->link = NULL;
        discover_afresh(p);
    } else if (err && p->state == PROBE_SHAKE && p->reused) {
        p->link = NULL;
        p->reused = false;
        shake_afresh(p);
    } else if (err && p->state == PROBE_SHAKE && p->link->says_sse) {
        p->link = NULL;
        catalog_unref(p->catalog);
        p->catalog = catalog_new(MCP_LEGACY);
        probe_open(p, PROBE_SHAKE);
    } else if (err) {
        p->link = NULL;
        if (p->state == PROBE_DISCOVER && p->up->ops->has_process)
            go_legacy(p, err);
        else
            probe_finish(p, err);
    } else if (p->state == PROBE_SHAKE) {
        if (p->asking) {
            p->asking = false;
            pending_cancel(&p->ask, STR("an older session was begun"));
        }
        begin_lists(p);
    } else {
        ask_discover(p);
    }
}

static void probe_open(struct probe *p, enum probe_state state)
{
    struct link_identity who = {.key = STR("probe"), .owner = STR("probe")};
    p->state = state;
    p->link = link_new(p->up, &who, state == PROBE_SHAKE ? MCP_LEGACY : MCP_MODERN, true);
    p->link->fill = state == PROBE_SHAKE ? p->catalog : NULL;
    list_push(&p->link->waiters, &p->wait.link);
    p->up->ops->open(p->link);
}

void probe_start(struct upstream *u)
{
    struct probe *p = xcalloc(1, sizeof(*p));
    const struct era_entry *known =
        remembers_era(u) ? eras_find(u->set->eras, u->config->name, u->config->definition) : NULL;
    bool legacy = u->config->era == ERA_LEGACY || u->sse || (known && known->era == MCP_LEGACY);

    p->recalled = known != NULL;
    if (known)
        u->refuses_initialize = known->refuses_initialize;

    p->up = u;
    u->probed_since_ms = loop_now_ms(u->set->loop);
    p->stale = u->catalog_refreshing = u->catalog_stale;
    u->catalog_stale = 0; /* later changes count anew */
    u->probe = p;
    p->wait.done = on_link;
    list_init(&p->wait.link);
    deadline_init(&p->wait.deadline, NULL);
    p->ask.on_reply = on_reply;
    p->ask.on_fail = on_fail;
    p->timer = loop_timer_new(u->set->loop, on_silence, p);
    p->limit = loop_timer_new(u->set->loop, on_limit, p);
    loop_timer_start(p->limit, PROBE_MS, 0);
    p->catalog = catalog_new(legacy ? MCP_LEGACY : MCP_MODERN);
    probe_open(p, legacy ? PROBE_SHAKE : PROBE_DISCOVER);
}

void probe_cancel(struct upstream *u)
{
    if (u->probe)
        probe_fail(u->probe, ERR_UNREACHABLE, upstream_retired_text(u));
}

void probe_notice(struct upstream *u, unsigned kinds)
{
    struct probe *p = u->probe;
    if (!p || p->state != PROBE_LISTS)
        return;
    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
        if (kinds & ~p->todo & 1u << kind &&
            catalog_offers(p->catalog, catalog_kinds[kind].capability))
            p->again |= 1u << kind;
}
