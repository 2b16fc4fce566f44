/* SPDX-License-Identifier: Apache-2.0 */
/* Links and the ledger: one live end of an upstream, its requests under way, and the handshake that
 * opens a legacy link.
 *
 * Invariants: a pending is in the ledger exactly while it is on its link's list.  It leaves both
 * with its first answer, its failure, its timeout or its cancellation, whichever comes first.  Then
 * exactly one of its callbacks runs (none for a cancellation).  A link that has ended is in no map
 * and is freed at the end of the turn. */
#include "upstream/upstream_impl.h"

#include "audit/redact.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "json/write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define LRU_STEP_MS 1000
#define MAX_TIMEOUTS_IN_A_ROW 3
#define CANCEL_REASON_MAX 512 /* bytes of the reason that are forwarded */

static struct str pending_key(const struct pending *p)
{
    return str_n((const char *)&p->id, sizeof(p->id));
}

static void take_credential(struct link *l, const struct link_credential *c)
{
    if (!c->value.p)
        return;
    secret_set(&l->secret, c->value);
    l->credential =
        (struct link_credential){c->as, arena_dup(l->mem, c->name), secret_view(&l->secret)};
}

/* Hex digits of a server's definition in link_resume(). */
#define DEFINITION_BYTES 8
#define DEFINITION_DIGITS (2 * DEFINITION_BYTES)

struct str link_resume(const struct link *l, char *buf)
{
    char definition[DEFINITION_DIGITS + 1];

    if (l->up->ops != &upstream_remote || l->up->sse || !l->remote_id.p || !l->version)
        return STR_NONE;
    hex_encode(l->up->config->definition, DEFINITION_BYTES, definition);
    int n = snprintf(buf, LINK_RESUME_MAX, "%.*s %s %.*s", STR_ARG(l->version->name), definition,
                     STR_ARG(l->remote_id));
    return n > 0 && n < LINK_RESUME_MAX ? str_n(buf, (size_t)n) : STR_NONE;
}

/* The reverse: the link begins with the existing session, unless that session was ended
 * meanwhile. */
static void take_resume(struct link *l, struct str text)
{
    char definition[DEFINITION_DIGITS + 1];
    struct str version = str_split(&text, ' '), made_for = str_split(&text, ' ');
    const struct mcp_version *known = version.n ? mcp_version_find(version) : NULL;

    if (!text.n || l->past != PAST_NONE || !mcp_era(l->era)->is_stateful || l->up->sse ||
        l->up->ops != &upstream_remote || !known || known->era != l->era)
        return;
    hex_encode(l->up->config->definition, DEFINITION_BYTES, definition);
    if (!str_eq(made_for, str_of(definition)))
        return;
    l->version = known;
    l->remote_id = arena_dup(l->mem, text);
    l->is_resumed = true;
}

const char *link_lost_reason(const struct link *l)
{
    if (l->past == PAST_RECYCLED)
        return "child_recycled";
    return l->remote_id.p ? "remote_session_lost" : "child_restarted";
}

struct known *link_known(const struct link *l)
{
    return l->own.known;
}

struct known *upstream_link_known(const struct upstream *u, struct str key)
{
    const struct link *l = map_get(&u->links, key);
    return l ? l->own.known : NULL;
}

static void clean_error(const struct link *l, struct error *err)
{
    if (l->own.known || l->own.session)
        redact_cut(&l->own, err->text, err->text, sizeof(err->text));
}

struct link *link_new(struct upstream *u, const struct link_identity *who, enum mcp_era era,
                      bool is_probe)
{
    struct link *l = xcalloc_line(sizeof(*l));
    l->up = u;
    l->era = era;
    l->is_probe = is_probe;
    l->mem = arena_new(8u * 1024 * 1024);
    l->generation = ++u->set->next_generation;
    l->key = arena_dup(l->mem, who->key);
    l->owner = arena_dup(l->mem, who->owner);
    l->initialize_params = arena_dup(l->mem, who->initialize_params);
    take_credential(l, &who->credential);
    link_fill(l, who);
    l->past = is_probe ? PAST_NONE : past_take(u, l->key);
    take_resume(l, who->resume);
    l->own.known = upstream_secrets(u, who);
    l->own.session = known_ref(who->session_secrets);
    l->last_used_ms = l->moved_ms = loop_now_ms(u->set->loop);
    list_init(&l->waiters);
    list_init(&l->pendings);
    list_init(&l->lru);
    u->set->links++;
    if (!is_probe) {
        map_put(&u->links, l->key, l);
        list_push(&u->lru, &l->lru);
        l->counts = u->ops->has_process;
        u->processes += l->counts;
        u->set->processes += l->counts;
    }
    upstream_ref(u);
    return l;
}

static void reap_link(struct loop_task *task)
{
    struct link *l = container_of(task, struct link, reap);
    link_forget_session_catalogs(l);
    upstream_unref(l->up);
    secret_release(&l->secret);
    own_secrets_unref(&l->own);
    arena_free(l->hidden);
    arena_free(l->mem);
    free(l);
}

static void wake_waiters(struct link *l, const struct error *err)
{
    struct list waiters;
    list_init(&waiters);
    list_move_all(&waiters, &l->waiters);
    for (struct list *n = list_pop(&waiters); n; n = list_pop(&waiters)) {
        struct link_wait *w = list_entry(n, struct link_wait, link);
        w->done(w, err ? NULL : l, err);
    }
}

void link_opened(struct link *l)
{
    assert(l->state == LINK_OPENING);
    l->state = LINK_OPEN;
    link_listen_for_session(l);
    wake_waiters(l, NULL);
    if (!l->is_resumed)
        link_check_tools(l); /* after the call that opened the link */
}

static void forget(struct pending *p)
{
    struct link *l = p->link;
    map_remove(&l->up->set->ledger, pending_key(p));
    if (p->waited)
        *p->waited = false;
    p->waited = NULL;
    list_remove(&p->node);
    deadline_clear(&p->deadline);
    l->in_flight--;
    l->up->calls--;
    l->last_used_ms = loop_now_ms(l->up->set->loop);
}

/* Excludes probes and handshakes, which count as starts, and subscriptions. */
static bool is_request(const struct pending *p)
{
    return !p->link->is_probe && p != &p->link->handshake && !p->patient;
}

void pending_fail(struct pending *p, const struct error *err)
{
    bool left = p->left;
    struct error clean = *err;
    clean_error(p->link, &clean);
    if (is_request(p))
        upstream_failed(p->link->up, &clean);
    forget(p);
    p->on_fail(p, &clean, left);
}

/* If the session brought values of its own, they may be the reason.  Then the failure says nothing
 * about other sessions, and the server's error text is not shown to them. */
static void note_failed_start(struct link *l, const struct error *why)
{
    if (!l->has_context_values && !l->credential.value.p)
        upstream_note_failure(l->up, why);
    else
        log_warn(
            "a server could not be started with the context values and credential of a session",
            LS("server", l->up->config->name), LZ("why", why->text));
}

void link_end(struct link *l, const struct error *why)
{
    struct upstream *u = l->up;
    struct error err = *why;

    if (l->state == LINK_ENDED)
        return;
    clean_error(l, &err);
    /* A modern link opens without a handshake.  So a process that never answered counts as a failed
     * start. */
    bool failed_start = l->state == LINK_OPENING || (l->counts && !l->has_answered);
    l->state = LINK_ENDED;
    if (!l->is_probe) {
        map_remove(&u->links, l->key);
        u->processes -= l->counts;
        u->set->processes -= l->counts;
        if (l->slot.held)
            u->set->quota.release(u->set->quota.arg, &l->slot);
        past_note(l, why);
    }
    list_remove(&l->lru);
    u->set->links--;
    u->ops->close(l);
    if (err.code == ERR_NONE)
        error_set(&err, ERR_UNREACHABLE, "%.*s was ended while idle", STR_ARG(u->config->name));
    else if (failed_start && !l->is_probe)
        note_failed_start(l, &err);
    else if (l->counts && !u->retired && why->code != ERR_CANCELLED)
        crashes_note(l, &err);
    for (struct list *n = list_first(&l->pendings); n; n = list_first(&l->pendings))
        pending_fail(list_entry(n, struct pending, node), &err);
    wake_waiters(l, &err);
    l->reap.fn = reap_link;
    loop_defer(u->set->loop, &l->reap);
    upstream_slot_freed(u->set);
}

void link_note_odd(struct link *l, const char *what)
{
    l->n_odd++;
    snprintf(l->odd, sizeof(l->odd), " (%.120s)", what);
}

const char *pending_odd(const struct pending *p)
{
    return p->link->n_odd != p->odd_before ? p->link->odd : "";
}

static void on_deadline(struct deadline *d)
{
    struct pending *p = container_of(d, struct pending, deadline);
    struct link *l = p->link;
    struct error err;

    long long ms = l->up->config->timeout_ms;
    error_set(&err, ERR_TIMEOUT,
              "%.*s did not answer within %lld %s%s; try again, or raise its \"timeout\"",
              STR_ARG(l->up->config->name), ms % 1000 ? ms : ms / 1000, ms % 1000 ? "ms" : "s",
              pending_odd(p));
    clean_error(l, &err);
    l->timeouts++;
    if (is_request(p))
        upstream_failed(l->up, &err);
    pending_cancel(p, STR("timeout"));
    p->on_fail(p, &err, true);
    if (l->timeouts >= MAX_TIMEOUTS_IN_A_ROW && l->state == LINK_OPEN && l->counts) {
        log_warn("ending a server that stopped answering", LS("server", l->up->config->name));
        link_end(l, &err);
    }
}

void pending_hold(struct pending *p, bool held)
{
    if (held || p->patient)
        deadline_clear(&p->deadline);
    else
        deadline_set(&p->link->up->call_deadlines, &p->deadline);
}

/* Links without a process are many, and their neighbours in the list are not in the CPU cache.  So
 * their order is kept to the second only. */
static void note_use(struct link *l)
{
    int64_t now = loop_now_ms(l->up->set->loop);

    if (!l->counts && now - l->moved_ms < LRU_STEP_MS)
        return;
    l->moved_ms = now;
    list_remove(&l->lru);
    list_push(&l->up->lru, &l->lru);
}

bool upstream_send(struct link *l, const struct exec *token, struct pending *p,
                   const struct outgoing *m, struct error *err)
{
    assert(exec_is_open(token));
    if (l->state == LINK_ENDED)
        return error_set(err, ERR_UNREACHABLE, "%.*s has ended", STR_ARG(l->up->config->name));
    if (!p)
        return l->up->ops->send(l, NULL, m, err);
    p->link = l;
    p->wire = NULL;
    p->waited = NULL;
    p->left = false;
    p->odd_before = l->n_odd;
    deadline_init(&p->deadline, on_deadline);
    list_init(&p->node);
    map_put(&l->up->set->ledger, pending_key(p), p);
    list_push(&l->pendings, &p->node);
    pending_hold(p, false);
    l->in_flight++;
    l->up->calls++;
    note_use(l);
    if (l->up->ops->send(l, p, m, err))
        return true;
    forget(p);
    return false;
}

struct pending *pending_find(struct link *l, uint64_t id)
{
    struct pending *p = map_get(&l->up->set->ledger, str_n((const char *)&id, sizeof(id)));
    return p && p->link == l ? p : NULL;
}

struct pending *link_only(struct link *l)
{
    return l->in_flight == 1 ? link_newest(l) : NULL;
}

struct pending *link_newest(struct link *l)
{
    for (struct list *n = l->pendings.prev; n != &l->pendings; n = n->prev) {
        struct pending *p = list_entry(n, struct pending, node);
        if (p->on_message)
            return p;
    }
    return NULL;
}

void pending_take(struct pending *p)
{
    struct link *l = p->link;
    bool is_first = !l->has_answered;
    if (is_first && !l->is_probe)
        upstream_note_success(l->up);
    l->has_answered = true;
    l->timeouts = 0;
    if (is_request(p))
        upstream_answered(l->up);
    forget(p);
    if (is_first && l->is_resumed)
        link_check_tools(l);
}

/* Legacy servers, and every server on a pipe, get a notification.  A modern HTTP server sees its
 * stream close. */
static void send_cancelled(struct link *l, uint64_t id, struct str reason)
{
    struct exec token = exec_housekeeping(EXEC_CANCEL);
    struct error ignored;
    struct buf text;

    if (l->state != LINK_OPEN || (mcp_era(l->era)->disconnect_cancels && !l->up->ops->has_process))
        return;
    buf_init(&text, 256 + 6 * CANCEL_REASON_MAX);
    buf_addf(&text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
             "{\"requestId\":%llu,\"reason\":",
             (unsigned long long)id);
    js_quote(&text, str_n(reason.p, reason.n < CANCEL_REASON_MAX ? reason.n : CANCEL_REASON_MAX));
    buf_addz(&text, "}}");
    struct outgoing m = {.method = STR("notifications/cancelled"), .text = buf_str(&text)};
    if (!upstream_send(l, &token, NULL, &m, &ignored))
        log_debug("a cancellation could not be passed on", LS("server", l->up->config->name));
    buf_release(&text);
}

void pending_cancel(struct pending *p, struct str reason)
{
    struct link *l = p->link;
    forget(p);
    l->up->ops->abandon(l, p);
    if (p != &l->handshake)
        send_cancelled(l, p->id, reason);
}

/* Many servers announce changed lists whenever a session starts.  If the announcements to the probe
 * were forwarded, clients would list, and thereby probe, for ever. */
static bool probe_keeps(struct link *l, struct str text)
{
    struct mcp_message m;
    struct error ignored;
    unsigned kinds = 0;

    if (!memmem(text.p, text.n, "/list_changed", 13))
        return false;
    struct arena *mem = arena_new(4 * CATALOG_MAX_BYTES);
    if (mcp_parse_upstream(text, mem, &m, &ignored) && m.kind == MCP_NOTIFICATION)
        for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
            if (str_eq(m.method, catalog_kinds[kind].changed))
                kinds |= 1u << kind;
    arena_free(mem);
    if (kinds)
        probe_notice(l->up, kinds);
    return kinds != 0;
}

/* Handles the messages of a batch (2025-03-26) one after the other. */
static void receive_batch(struct link *l, struct pending *about, struct str text)
{
    uint64_t id = about ? about->id : 0;
    struct arena *mem = arena_new(8 * CATALOG_MAX_BYTES);
    struct js_doc doc;

    if (!js_parse(text, &js_limits_upstream, mem, &doc, NULL)) {
        l->up->set->sink.on_message(l->up->set->sink.arg, l, about, text);
    } else {
        for (const struct js_node *v = js_first(&doc, js_root(&doc)); v && l->state != LINK_ENDED;
             v = js_next(&doc, js_root(&doc), v))
            if (v->type == JS_OBJECT) /* batches do not nest */
                link_receive(l, about && pending_find(l, id) == about ? about : NULL,
                             js_raw(&doc, v));
    }
    arena_free(mem);
}

void link_receive(struct link *l, struct pending *about, struct str text)
{
    if (str_trim(text).n && str_trim(text).p[0] == '[') {
        receive_batch(l, about, text);
        return;
    }
    if (l->is_probe && probe_keeps(l, text))
        return;
    l->up->set->sink.on_message(l->up->set->sink.arg, l, about, text);
}

/* The handshake of a legacy upstream. */

bool link_send_initialized(struct link *l, struct error *err)
{
    struct exec token = exec_housekeeping(EXEC_INITIALIZE);
    struct outgoing m = {
        .method = STR("notifications/initialized"),
        .text = STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"),
    };
    return upstream_send(l, &token, NULL, &m, err);
}

static void send_initialized(struct link *l)
{
    struct error err;

    if (!link_send_initialized(l, &err)) {
        link_end(l, &err);
        return;
    }
    if (!l->up->ops->prepare || !l->up->ops->prepare(l))
        link_opened(l);
}

/* A server of 2026-07-28 was tried with a legacy client's initialize and refused it.  This link and
 * all later ones use the server's era. */
static bool continues_modern(struct link *l)
{
    if (l->is_probe || !l->up->catalog || l->up->catalog->era != MCP_MODERN)
        return false;
    l->up->refuses_initialize = true;
    probe_remember_era(l->up);
    l->era = MCP_MODERN;
    link_opened(l);
    return true;
}

static void on_handshake_reply(struct pending *p, struct mcp_message *m, struct arena *mem)
{
    struct link *l = container_of(p, struct link, handshake);
    struct error err;
    struct str version = js_text(&m->doc, js_get(&m->doc, m->result, STR("protocolVersion")), mem);
    const struct mcp_version *known = version.p ? mcp_version_find(version) : NULL;

    if (l->fill && m->result && !catalog_take_server(l->fill, &m->doc, m->result, &err)) {
        link_end(l, &err);
    } else if (m->error) {
        l->refused_as_modern = mcp_names_modern(m);
        if (continues_modern(l)) {
            arena_free(mem);
            return;
        }
        if (l->refused_as_modern && !l->is_probe)
            upstream_refresh(l->up, CATALOG_ALL);
        struct str why = js_text(&m->doc, js_get(&m->doc, m->error, STR("message")), mem);
        char shown[200];
        log_escape_cut(shown, sizeof(shown), why);
        error_set(&err, ERR_UPSTREAM, "%.*s refused to start a session: %s",
                  STR_ARG(l->up->config->name), shown);
        link_end(l, &err);
    } else if (!known || known->era != MCP_LEGACY) {
        error_set(&err, ERR_UPSTREAM, "%.*s chose a protocol version that Holdfast does not speak",
                  STR_ARG(l->up->config->name));
        link_end(l, &err);
    } else {
        l->version = known;
        send_initialized(l);
    }
    arena_free(mem);
}

static void on_handshake_fail(struct pending *p, const struct error *why, bool left unused_arg)
{
    struct link *l = container_of(p, struct link, handshake);
    struct error err = *why;

    if (l->state == LINK_OPENING && !l->up->ops->has_process && why->code == ERR_UPSTREAM &&
        continues_modern(l))
        return;
    if (!l->is_probe && l->up->catalog && l->up->catalog->era == MCP_MODERN)
        /* The server exited or did not answer: the next link skips initialize. */
        l->up->refuses_initialize = true;
    error_wrap(&err, "starting a session with %.*s", STR_ARG(l->up->config->name));
    link_end(l, &err);
}

/* All capabilities are declared, so that a server offers everything.  A request that the client
 * cannot serve is refused when it comes. */
#define OUR_INITIALIZE_PARAMS                                                                      \
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":" OUR_CAPABILITIES ",\"clientInfo\":"    \
    "{\"name\":\"holdfast\",\"version\":\"" HOLDFAST_VERSION "\"}}"

void link_up(struct link *l)
{
    struct exec token = exec_housekeeping(EXEC_INITIALIZE);
    struct error err;
    struct buf text;

    if (!mcp_era(l->era)->is_stateful) {
        link_opened(l);
        return;
    }
    if (l->is_resumed) {
        if (!l->up->ops->prepare || !l->up->ops->prepare(l))
            link_opened(l);
        return;
    }
    l->handshake.id = upstream_next_id(l->up->set);
    l->handshake.on_reply = on_handshake_reply;
    l->handshake.on_fail = on_handshake_fail;
    buf_init(&text, 8u * 1024 * 1024);
    buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"initialize\",\"params\":",
             (unsigned long long)l->handshake.id);
    buf_addstr(&text, l->initialize_params.p ? l->initialize_params : STR(OUR_INITIALIZE_PARAMS));
    buf_addc(&text, '}');
    struct outgoing m = {.method = STR("initialize"), .text = buf_str(&text)};
    if (!upstream_send(l, &token, &l->handshake, &m, &err))
        link_end(l, &err);
    buf_release(&text);
}

void link_shake(struct link *l)
{
    assert(l->state == LINK_OPEN && l->era == MCP_MODERN);
    l->era = MCP_LEGACY;
    l->state = LINK_OPENING;
    link_up(l);
}

static void up_later(struct loop_task *task)
{
    struct link *l = container_of(task, struct link, start);
    if (l->state == LINK_OPENING)
        link_up(l);
}

void link_up_later(struct link *l)
{
    l->start.fn = up_later;
    loop_defer(l->up->set->loop, &l->start);
}

struct upstream *link_upstream(const struct link *l)
{
    return l->up;
}

uint64_t link_generation(const struct link *l)
{
    return l->generation;
}

enum mcp_era link_era(const struct link *l)
{
    return l->era;
}

bool link_is_stateful(const struct link *l)
{
    return l->counts || l->remote_id.p ||
           (l->up->config->kind == SERVER_BUILTIN && !upstream_is_stateless(l->up, l->era));
}

struct str link_key(const struct link *l)
{
    return l->key;
}

bool link_is_attended(const struct link *l, bool or_expected)
{
    const struct upstream_sink *sink = &l->up->set->sink;
    return sink->is_attended && sink->is_attended(sink->arg, l->key, or_expected);
}

bool link_is_shared(const struct link *l)
{
    return str_eq(l->key, STR("all")) || str_starts(l->key, STR("o:")) ||
           str_eq(l->key, STR(LINK_KEY_WATCH));
}

struct link *upstream_find_link(struct upstream *u, struct str key, uint64_t generation)
{
    struct link *l = map_get(&u->links, key);
    return l && l->generation == generation && l->state == LINK_OPEN ? l : NULL;
}

bool upstream_has_link(const struct upstream *u, struct str key)
{
    return map_get(&u->links, key) != NULL;
}

struct link_credential link_meta_credential(const struct link *l)
{
    return l->credential.as == CREDENTIAL_META ? l->credential : (struct link_credential){0};
}

bool link_takes_level(struct link *l, const char *level)
{
    bool news = l->log_level != level;
    l->log_level = level;
    return news;
}
