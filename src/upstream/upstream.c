/* SPDX-License-Identifier: Apache-2.0 */
/* The set of upstreams: applies a configuration, backs off after failed starts, ends idle links,
 * and hands out catalogs.  Links are handed out by process_slot.c. */
#include "upstream/upstream_impl.h"

#include "upstream/keeper.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "upstream/builtin.h"

#include <stdlib.h>

#define TICK_MS 1000
#define BACKOFF_FIRST_MS 200
#define BACKOFF_LAST_MS 30000
#define CATALOG_FRESH_MS (10 * 60 * 1000)
#define REFRESH_EVERY_MS (10 * 1000)
#define CATALOG_WAIT_MS 8000
#define RETRY_FIRST_MS (30 * 1000)
#define RETRY_LAST_MS (10 * 60 * 1000)
#define NOTIFY_EVERY_MS 100 /* at most one notification of the same change in this time */

static void on_tick(void *arg);

struct upstreams *upstreams_new(const struct upstreams_config *config)
{
    struct upstreams *s = xcalloc(1, sizeof(*s));
    s->refs = 1;
    s->loop = config->loop;
    s->keeper = config->keeper;
    s->sink = config->sink;
    s->quota = config->quota;
    s->guard = config->guard;
    s->eras = eras_open(config->eras_file);
    list_init(&s->all);
    list_init(&s->privates);
    list_init(&s->retired);
    map_init(&s->ledger);
    watches_init(s);
    deadline_class_init(&s->wait_deadlines, s->loop, LINK_WAIT_MS);
    deadline_class_init(&s->notify_deadlines, s->loop, NOTIFY_EVERY_MS);
    s->tick = loop_timer_new(s->loop, on_tick, s);
    loop_timer_start(s->tick, TICK_MS, TICK_MS);
    return s;
}

static const struct upstream_ops *ops_for(const struct server_config *server)
{
    static const struct upstream_ops *const table[] = {
        [SERVER_STDIO] = &upstream_stdio,
        [SERVER_HTTP] = &upstream_remote,
        [SERVER_BUILTIN] = &upstream_builtin,
    };
    return server->refusal.p ? &upstream_refused : table[server->kind];
}

/* The set outlives its upstreams, and an upstream outlives its links.  Links are freed at the end
 * of a turn. */
void upstreams_unref(struct upstreams *s)
{
    if (--s->refs)
        return;
    deadline_class_release(&s->wait_deadlines);
    deadline_class_release(&s->notify_deadlines);
    map_release(&s->ledger);
    tallies_release(s);
    watches_release(s);
    eras_free(s->eras);
    free(s);
}

static void on_notify(struct deadline *d)
{
    upstream_notify_held_back(container_of(d, struct upstream, notify));
}

struct upstream *upstream_new(struct upstreams *s, struct config *config,
                              const struct server_config *server)
{
    struct upstream *u = xcalloc(1, sizeof(*u));
    u->set = s;
    s->refs++;
    u->refs = 1;
    u->config_ref = config_ref(config);
    u->config = server;
    u->ops = ops_for(server);
    u->sse = server->sse;
    u->stderr_log = stderr_log_new();
    u->refreshed_ms = -REFRESH_EVERY_MS;
    for (int kind = 0; kind < CATALOG_KINDS; kind++)
        u->notified_ms[kind] = -NOTIFY_EVERY_MS;
    deadline_init(&u->notify, on_notify);
    map_init(&u->links);
    map_init(&u->past);
    map_init(&u->crashes_of);
    list_init(&u->crashes);
    list_init(&u->pasts);
    list_init(&u->lru);
    list_init(&u->queue);
    list_init(&u->catalog_wants);
    deadline_class_init(&u->call_deadlines, s->loop, server->timeout_ms);
    list_push(&s->all, &u->node);
    return u;
}

static struct upstream *add(struct upstreams *s, struct config *config,
                            const struct server_config *server)
{
    struct upstream *u = upstream_new(s, config, server);

    u->tally = upstreams_tally(s, server->name);
    return u;
}

void upstream_ref(struct upstream *u)
{
    u->refs++;
}

void upstream_unref(struct upstream *u)
{
    if (--u->refs)
        return;
    list_remove(&u->node);
    deadline_class_release(&u->call_deadlines);
    deadline_clear(&u->notify);
    if (u->ops->forget)
        u->ops->forget(u);
    catalog_unref(u->catalog);
    stderr_log_unref(u->stderr_log);
    free(u->watcher);
    private_release(u->own);
    map_release(&u->links);
    past_release(u);
    crashes_release(u);
    config_unref(u->config_ref);
    upstreams_unref(u->set);
    free(u);
}

static void end_links(struct upstream *u, bool idle_only, const struct error *why)
{
    list_each(&u->lru, n)
    {
        struct link *l = list_entry(n, struct link, lru);
        if (!idle_only || (l->in_flight == 0 && list_empty(&l->waiters)))
            link_end(l, why);
    }
}

const char *upstream_retired_text(const struct upstream *u)
{
    if (u->own)
        return "is not served any more";
    return u->is_restarted ? "was restarted by an administrator; try again"
                           : "was removed from the configuration";
}

void upstream_retire(struct upstream *u)
{
    u->retired = true;
    u->retry_at_ms = loop_now_ms(u->set->loop) + RETIRE_MS;
    probe_cancel(u);
    watch_stop(u);
    list_remove(&u->node);
    list_push(&u->set->retired, &u->node);
}

void upstream_finish_retired(struct upstream *u, bool now)
{
    struct error why = {0};
    bool late = now || loop_now_ms(u->set->loop) >= u->retry_at_ms;
    if (late)
        error_set(&why, ERR_UNREACHABLE, "%.*s %s", STR_ARG(u->config->name),
                  upstream_retired_text(u));
    end_links(u, !late, &why);
    if (u->calls == 0 && u->links.n == 0) {
        list_remove(&u->node); /* the set drops its reference; others may remain */
        upstream_unref(u);
    }
}

bool upstream_restart(struct upstream *u, struct error *err)
{
    struct upstreams *s = u->set;
    struct list *next = u->node.next;
    struct upstream *fresh;

    if (u->config->kind == SERVER_BUILTIN)
        return error_set(err, ERR_BAD_INPUT,
                         "%.*s is part of Holdfast and has no process; restart Holdfast instead",
                         STR_ARG(u->config->name));
    fresh = add(s, u->config_ref, u->config);
    list_remove(&fresh->node); /* the place of the old one, in configuration order */
    list_push(next, &fresh->node);
    stderr_log_unref(fresh->stderr_log);
    fresh->stderr_log = stderr_log_ref(u->stderr_log);
    fresh->was_left_out = true; /* listeners hear of its lists, which may be others now */
    u->is_restarted = true;
    upstream_retire(u);
    probe_start(fresh);
    upstream_finish_retired(u, false);
    return true;
}

const struct stderr_log *upstream_stderr(const struct upstream *u)
{
    return u->stderr_log;
}

/* Built-in servers come after all others. */
static void apply_builtins(struct upstreams *s, struct config *config)
{
    for (size_t i = 0; i < config->n_builtins; i++) {
        struct upstream *u = upstreams_find(s, config->builtins[i].name);
        if (u) {
            list_remove(&u->node);
            list_push(&s->all, &u->node);
        } else if (builtin_find(config->builtins[i].name)) {
            add(s, config, &config->builtins[i]);
        }
    }
}

void upstreams_apply(struct upstreams *s, struct config *config)
{
    list_each(&s->all, n)
    {
        struct upstream *u = list_entry(n, struct upstream, node);
        const struct server_config *now = config_server(config, u->config->name);
        if (!now || memcmp(now->definition, u->config->definition, sizeof(now->definition)) != 0)
            upstream_retire(u);
    }
    for (size_t i = 0; i < config->n_servers; i++)
        if (!upstreams_find(s, config->servers[i].name))
            add(s, config, &config->servers[i]);
    apply_builtins(s, config);
    list_each(&s->retired, r) upstream_finish_retired(list_entry(r, struct upstream, node), false);
}

void upstreams_free(struct upstreams *s)
{
    s->is_stopping = true;
    loop_timer_free(s->tick);
    list_each(&s->all, n) upstream_retire(list_entry(n, struct upstream, node));
    list_each(&s->privates, n) upstream_retire(list_entry(n, struct upstream, node));
    list_each(&s->retired, r) upstream_finish_retired(list_entry(r, struct upstream, node), true);
    upstreams_unref(s);
}

struct upstream *upstreams_find(struct upstreams *s, struct str name)
{
    list_each(&s->all, n)
    {
        struct upstream *u = list_entry(n, struct upstream, node);
        if (str_eq(u->config->name, name))
            return u;
    }
    return NULL;
}

void upstreams_each(struct upstreams *s, void (*fn)(void *arg, struct upstream *u), void *arg)
{
    list_each(&s->all, n) fn(arg, list_entry(n, struct upstream, node));
}

static void end_link(struct upstream *u, struct str key, const char *why)
{
    struct link *l = map_get(&u->links, key);
    struct error err;

    error_set(&err, ERR_CANCELLED, "%.*s was ended: %s", STR_ARG(u->config->name), why);
    if (l)
        link_end(l, &err);
}

void upstreams_end_links(struct upstreams *s, struct str key, const char *why)
{
    list_each(&s->all, n) end_link(list_entry(n, struct upstream, node), key, why);
    list_each(&s->privates, n) end_link(list_entry(n, struct upstream, node), key, why);
}

void upstreams_session_over(struct upstreams *s, struct str server, struct str key,
                            struct str resume, bool is_ours)
{
    struct upstream *u = upstreams_find(s, server);
    struct link *l = u ? map_get(&u->links, key) : NULL;
    struct error why;

    if (!u || u->ops != &upstream_remote || u->config->share != SHARE_SESSION || !resume.p)
        return;
    if (!l && !is_ours)
        remote_end_session(u, resume);
    if (l && !l->in_flight && list_empty(&l->waiters)) {
        error_set(&why, ERR_CANCELLED, "%.*s was ended: its session is over", STR_ARG(server));
        link_end(l, &why);
    }
}

bool upstreams_can_start(const struct upstreams *s)
{
    return !s->keeper || keeper_is_up(s->keeper);
}

unsigned upstreams_links(const struct upstreams *s)
{
    return s->links;
}

struct str upstream_name(const struct upstream *u)
{
    return u->config->name;
}

const struct server_config *upstream_config(const struct upstream *u)
{
    return u->config;
}

bool upstream_is_stateless(const struct upstream *u, enum mcp_era era)
{
    const struct builtin *b;

    if (u->config->kind != SERVER_BUILTIN)
        return u->config->kind == SERVER_HTTP && !mcp_era(era)->is_stateful;
    b = builtin_find(u->config->name);
    return b && !b->free_state;
}

enum mcp_era upstream_era_for(const struct upstream *u, const struct catalog *c,
                              enum mcp_era client)
{
    bool may_be_older = u->config->kind != SERVER_BUILTIN && u->config->era == ERA_AUTO &&
                        u->config->share == SHARE_SESSION && !u->refuses_initialize;
    return client == MCP_LEGACY && may_be_older ? MCP_LEGACY : c->era;
}

uint64_t upstream_next_id(struct upstreams *s)
{
    return ++s->next_id;
}

uint64_t upstream_next_id_for(struct upstream *u)
{
    return upstream_next_id(u->set);
}

/* Back-off: after n failed starts in a row the next waits 0.2 s, 0.4 s … 30 s. */

static void back_off(struct upstream *u, unsigned failures)
{
    int64_t wait = BACKOFF_FIRST_MS << (failures < 8 ? failures : 8);
    u->retry_at_ms = loop_now_ms(u->set->loop) + (wait < BACKOFF_LAST_MS ? wait : BACKOFF_LAST_MS);
}

void upstream_tools_unread(struct upstream *u, const struct error *err)
{
    back_off(u, u->unread++);
    u->catalog_stale |= 1u << CATALOG_TOOLS;
    u->was_left_out = true;
    upstream_start_failed(u, err);
}

void upstream_note_failure(struct upstream *u, const struct error *err)
{
    back_off(u, u->failures++);
    u->last_error = *err;
    upstream_start_failed(u, err);
    log_warn("a server could not be started", LS("server", u->config->name), LZ("why", err->text),
             LI("failures", u->failures));
}

void upstream_note_success(struct upstream *u)
{
    u->failures = 0;
    u->last_error.code = ERR_NONE;
}

bool upstream_may_start(struct upstream *u, struct error *err)
{
    int64_t left = u->retry_at_ms - loop_now_ms(u->set->loop);
    if (u->retired)
        return error_set(err, ERR_UNREACHABLE, "%.*s %s", STR_ARG(u->config->name),
                         upstream_retired_text(u));
    if (u->failures == 0 || left <= 0)
        return true;
    *err = u->last_error;
    return error_wrap(err, "%.*s is down (next try in %lld ms)", STR_ARG(u->config->name),
                      (long long)left);
}

static void end_idle(struct upstream *u, int64_t now)
{
    static const struct error idle = {.code = ERR_NONE};
    bool is_impatient = u->ops->has_process && fault_hits("upstream.impatient");

    list_each(&u->lru, n)
    {
        struct link *l = list_entry(n, struct link, lru);
        int64_t patience = l->counts ? LINK_IDLE_MS : LINK_LIGHT_IDLE_MS;
        if (now - l->last_used_ms < (is_impatient ? 0 : patience))
            break; /* least recently used first: the others were used later */
        if (l->state == LINK_OPEN && !l->in_flight && !link_is_attended(l, true))
            link_end(l, &idle);
    }
}

static void on_tick(void *arg)
{
    struct upstreams *s = arg;
    int64_t now = loop_now_ms(s->loop);

    list_each(&s->all, n)
    {
        struct upstream *u = list_entry(n, struct upstream, node);
        end_idle(u, now);
        watch_tick(u, now);
        upstream_notify_held_back(u);
        upstream_retry_later(u, now);
    }
    list_each(&s->retired, r) upstream_finish_retired(list_entry(r, struct upstream, node), false);
    upstreams_serve(s);
    eras_save(s->eras);
}

/* Catalogs. */

bool upstream_catalog(struct upstream *u, bool fresh, struct catalog_want *want,
                      struct catalog **ret, struct error *err)
{
    int64_t now = loop_now_ms(u->set->loop);
    bool is_stale = u->catalog_stale | u->catalog_refreshing;
    bool is_resting = u->unread && !u->probe && now < u->retry_at_ms;

    if (u->catalog && !(fresh && is_stale && !is_resting)) {
        /* An old list is better than a wait: it is returned, and a probe runs in the background. */
        bool old = now - u->catalog->filled_ms > CATALOG_FRESH_MS;
        if (old && !u->probe && !u->retired && now >= u->retry_at_ms)
            probe_start(u);
        *ret = u->catalog;
        return true;
    }
    if (!u->probe && !upstream_may_start(u, err))
        return false;
    list_push(&u->catalog_wants, &want->link);
    if (!u->probe)
        probe_start(u);
    *ret = NULL;
    return true;
}

void catalog_want_cancel(struct catalog_want *w)
{
    list_remove(&w->link);
}

struct catalog *upstream_known(const struct upstream *u)
{
    return u->catalog;
}

void upstreams_probe(struct upstreams *s)
{
    list_each(&s->all, n)
    {
        struct upstream *u = list_entry(n, struct upstream, node);
        if (!u->catalog && !u->probe && !u->failures)
            probe_start(u);
    }
}

int64_t upstream_patience_ms(struct upstream *u)
{
    int64_t now = loop_now_ms(u->set->loop);

    if (!u->waited_until_ms)
        u->waited_until_ms = now + CATALOG_WAIT_MS;
    return u->waited_until_ms > now ? u->waited_until_ms - now : 0;
}

enum upstream_absence upstream_absence(const struct upstream *u, const char **ret_why)
{
    *ret_why = u->last_error.code == ERR_NONE ? "" : u->last_error.text;
    return u->probe && !u->failures ? ABSENCE_STARTING : ABSENCE_FAILED;
}

/* A start costs a process, and a start that failed for minutes will mostly fail again: the
 * intervals double. */
void upstream_retry_later(struct upstream *u, int64_t now)
{
    unsigned failures = u->failures ? u->failures : u->unread;
    int64_t wait = (int64_t)RETRY_FIRST_MS << (failures < 6 ? failures : 6) >> 1;

    if (!u->was_left_out || (u->catalog && !u->unread) || u->probe || !failures)
        return;
    if (now - u->probed_since_ms >= (wait < RETRY_LAST_MS ? wait : RETRY_LAST_MS))
        probe_start(u);
}

int64_t upstream_probing_ms(const struct upstream *u)
{
    return u->probe ? loop_now_ms(u->set->loop) - u->probed_since_ms : 0;
}

static bool is_shown(void *arg, const struct catalog_item *tool)
{
    return config_shows_tool(arg, tool->name);
}

void upstream_filter_tools(struct upstream *u, struct catalog *c)
{
    if (config_limits_tools(u->config))
        catalog_filter(c, CATALOG_TOOLS, is_shown, (void *)u->config);
}

void upstream_guard(struct upstream *u)
{
    u->guarded = true;
}

bool upstream_is_guarded(const struct upstream *u)
{
    return u->guarded;
}

void upstream_left_out(struct upstream *u)
{
    u->was_left_out = true;
}

void upstream_refresh(struct upstream *u, unsigned kinds)
{
    int64_t now = loop_now_ms(u->set->loop);

    u->catalog_stale |= kinds;
    if (u->probe || u->retired || now < u->retry_at_ms || now - u->refreshed_ms < REFRESH_EVERY_MS)
        return;
    u->refreshed_ms = now;
    probe_start(u);
}

unsigned catalog_bits(enum catalog_kind kind)
{
    unsigned resources = 1u << CATALOG_RESOURCES | 1u << CATALOG_TEMPLATES;
    return 1u << kind & resources ? resources : 1u << kind;
}

/* A server may announce changes at any rate; listeners are notified at most every
 * NOTIFY_EVERY_MS. */
static void notify_changed(struct upstream *u, enum catalog_kind kind)
{
    const struct upstream_sink *sink = &u->set->sink;
    int64_t now = loop_now_ms(u->set->loop);

    if (now - u->notified_ms[kind] < NOTIFY_EVERY_MS) {
        u->held_back |= 1u << kind;
        if (!deadline_is_set(&u->notify))
            deadline_set(&u->set->notify_deadlines, &u->notify);
        return;
    }
    u->notified_ms[kind] = now;
    u->held_back &= ~(1u << kind);
    if (sink->on_changed)
        sink->on_changed(sink->arg, u, kind);
}

void upstream_changed(struct upstream *u, enum catalog_kind kind)
{
    u->catalog_stale |= catalog_bits(kind);
    notify_changed(u, kind);
}

void upstream_shown_anew(struct upstream *u)
{
    list_each(&u->lru, n)
    {
        struct link *l = list_entry(n, struct link, lru);
        catalog_unref(l->session_catalogs[CATALOG_TOOLS]);
        l->session_catalogs[CATALOG_TOOLS] = NULL;
    }
    if (u->catalog) {
        u->catalog->edition++;
        catalog_forget_words(u->catalog);
    }
    notify_changed(u, CATALOG_TOOLS);
}

void upstream_notify_held_back(struct upstream *u)
{
    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
        if (u->held_back & 1u << kind)
            notify_changed(u, kind);
}
