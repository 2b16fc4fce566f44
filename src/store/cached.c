/* SPDX-License-Identifier: Apache-2.0 */
/* Writes through the cache, and creating and freeing the cache. */
#include "store/cached_impl.h"

#include "base/random.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name, *help;
    size_t at;
} counters[] = {
    {"holdfast_cache_hits_total", "Sessions that were read from the cache.",
     offsetof(struct cache, hits)},
    {"holdfast_cache_misses_total", "Sessions that were not in the cache, and read from the store.",
     offsetof(struct cache, misses)},
    {"holdfast_cache_errors_total", "Exchanges with the cache that failed.",
     offsetof(struct cache, errors)},
};

/* Writes. */

/* The id of the session whose row the op writes; absent when the op writes no session row.  The
 * fold writes the row for a use that an event records.  A session that is just being created has no
 * entry yet. */
static struct str written_session(const struct store_op *op)
{
    switch (op->kind) {
    case OP_SESSION_USE:
        return op->is_in_event ? STR_NONE : op->session->id;
    case OP_SESSION_PROMOTE:
    case OP_SESSION_END:
    case OP_SESSION_PATCH:
    case OP_SESSION_REFRESH:
    case OP_SESSION_RESEAL:
        return op->session->id;
    case OP_CONTEXT_PUT:
        return op->context->session_id;
    default:
        return store_op_infos[op->kind].session ? store_op_infos[op->kind].session(op) : STR_NONE;
    }
}

static struct str tenant_of(const struct store_op *op)
{
    return op->kind == OP_SESSION_RESEAL ? op->session->tenant : op->who->tenant;
}

/* True when store_changes() has a row for the op. */
static bool is_change(const struct store_op *op)
{
    switch (op->kind) {
    case OP_SESSION_END:
    case OP_KEY_REVOKE:
    case OP_USER_PASSWORD:
    case OP_USER_END:
    case OP_LOGIN_CREATE: /* may revoke the oldest login */
    case OP_LOGIN_REVOKE:
    case OP_LOGINS_REVOKE:
    case OP_TRANSPORT_END:
        return op->verdict == VERDICT_OK;
    case OP_LOGIN_ROTATE:
        return op->verdict == VERDICT_STALE; /* this verdict revoked the family */
    case OP_SESSION_PATCH:
        return op->verdict == VERDICT_OK &&
               (op->fields & (FIELD_SEALED_AUTH | FIELD_TOOLSETS | FIELD_SETUP));
    default:
        return op->verdict == VERDICT_OK && store_op_infos[op->kind].session;
    }
}

/* Names the sessions whose rows the ops write, those that end first. */
static void name_written(struct cached_store *s, const struct store_op *ops, size_t n,
                         struct cache_message *message)
{
    for (unsigned ends = 2; ends-- > 0;)
        for (size_t i = 0; i < n; i++) {
            struct str id = written_session(&ops[i]);
            if (!id.p || (ops[i].kind == OP_SESSION_END) != (ends == 1))
                continue;
            cache_session_name(s->cache, tenant_of(&ops[i]), id, &message->names[message->n++]);
            message->n_ended += ends;
        }
}

static bool writes_sessions(const struct store_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (written_session(&ops[i]).p)
            return true;
    return false;
}

static void unfolded_add(struct cached_store *s, const struct store_op *op)
{
    struct entry_name name;
    if (op->kind != OP_EVENT_APPEND || !op->event->session_id.p || s->overflowed)
        return;
    cache_session_name(s->cache, op->event->tenant, op->event->session_id, &name);
    for (size_t i = s->n_unfolded; i > 0 && s->n_unfolded - i < 16; i--)
        if (memcmp(&s->unfolded[i - 1], &name, sizeof(name)) == 0)
            return;
    if (s->n_unfolded == FORGET_MAX) {
        s->overflowed = true;
        return;
    }
    if (!s->unfolded)
        s->unfolded = xcalloc(FORGET_MAX, sizeof(*s->unfolded));
    s->unfolded[s->n_unfolded++] = name;
}

/* The news before the commit; NULL when the ops write no session. */
static struct cache_message *announce(struct cached_store *s, const struct store_op *ops, size_t n)
{
    if (!writes_sessions(ops, n))
        return NULL;
    struct cache_message *begun = cache_message_new(s, NEWS_BEGUN, n);
    struct cache_message *written = cache_message_new(s, NEWS_WRITTEN, n);
    name_written(s, ops, n, begun);
    memcpy(written->names, begun->names, begun->n * sizeof(*begun->names));
    memcpy(written->tombstone, begun->tombstone, sizeof(begun->tombstone));
    written->n = begun->n;
    written->n_ended = begun->n_ended;
    cache_message_send(s, begun);
    return written;
}

/* Sends the news after the commit.  After a commit that failed the tombstones stay until they
 * expire. */
static void report(struct cached_store *s, struct cache_message *written,
                   const struct store_op *ops, size_t n, bool committed)
{
    bool publishes = false;
    for (size_t i = 0; committed && i < n; i++)
        publishes = publishes || is_change(&ops[i]);
    if (!written && (publishes || atomic_load(&s->cache->distrusted)))
        written = cache_message_new(s, NEWS_WRITTEN, 0);
    if (!written)
        return;
    if (!committed)
        written->n = written->n_ended = 0;
    written->publishes = publishes;
    cache_message_send(s, written);
}

static bool has_events(const struct store_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ops[i].kind == OP_EVENT_APPEND)
            return true;
    return false;
}

static bool cached_write(struct store *store, struct store_op *ops, size_t n, struct error *err)
{
    struct cached_store *s = cached_of(store);
    atomic_fetch_add(&s->cache->began, 1);
    struct cache_message *written = announce(s, ops, n);
    bool ok = store_write(s->inner, ops, n, err);
    for (size_t i = 0; ok && i < n; i++)
        unfolded_add(s, &ops[i]);
    report(s, written, ops, n, ok);
    if (ok && s->lane && s->cache->config.tells_events && has_events(ops, n))
        cache_lane_tell_events(s->lane);
    return ok;
}

/* A node that ended or changed a session may have lost Redis.  So every node that reads the change
 * in the database also puts a tombstone in place of the entry. */
static void bury_changed(struct cached_store *s, const struct change_row *rows, size_t n_rows)
{
    struct entry_name names[STORE_PAGE_MAX];
    size_t n = 0;
    for (size_t i = 0; i < n_rows && n < countof(names); i++)
        if (rows[i].kind == CHANGE_SESSION_ENDED || rows[i].kind == CHANGE_SESSION_SEALED ||
            rows[i].kind == CHANGE_SESSION_TOOLSETS || rows[i].kind == CHANGE_SESSION_SETUP ||
            rows[i].kind == CHANGE_SESSION_SHARED)
            cache_session_name(s->cache, rows[i].tenant, rows[i].name, &names[n++]);
    if (n) {
        cache_new_tombstone(s);
        if (!cache_bury(s, names, n, s->cache->config.ttl_ms))
            cache_distrust(s->cache, atomic_load(&s->cache->began));
    }
}

/* Drops the entries of sessions with events that may have been folded, because their rows have
 * changed.  After the reaper all entries are dropped: it does not say which rows it wrote, and it
 * runs seldom. */
static void forget_changed(struct cached_store *s, bool folded_all, bool reaped)
{
    atomic_fetch_add(&s->cache->began, 1);
    struct cache_message *message = cache_message_new(s, NEWS_CHANGED, s->n_unfolded);
    message->forgets_all = reaped || s->overflowed;
    message->n = message->forgets_all ? 0 : s->n_unfolded;
    if (message->n)
        memcpy(message->names, s->unfolded, message->n * sizeof(*message->names));
    if (folded_all) {
        s->n_unfolded = 0;
        s->overflowed = false;
    }
    if (message->n || message->forgets_all || atomic_load(&s->cache->distrusted))
        cache_message_send(s, message);
    else
        free(message);
}

static bool changed_any(const struct reaped *r)
{
    return r->expired || r->idled || r->clamped || r->deleted;
}

/* Passes the verb on to the inner store, then brings the cache up to date. */
static bool pass_on(struct cached_store *s, struct store_call *c, struct error *err)
{
    bool ok = store_call(s->inner, c, err);
    switch (c->verb) {
    case VERB_CHANGES:
        if (ok && c->after_id >= 0)
            bury_changed(s, c->rows, c->n);
        break;
    case VERB_FOLD:
        if (ok)
            forget_changed(s, !*(bool *)c->ret, false);
        break;
    case VERB_OPEN_INTENTS: /* folds an unknown number of events */
        forget_changed(s, ok, false);
        break;
    case VERB_REAP:
        forget_changed(s, ok, !ok || changed_any(c->ret));
        break;
    default:
        break;
    }
    return ok;
}

static bool cached_call(struct store *store, struct store_call *c, struct error *err)
{
    struct cached_store *s = cached_of(store);
    switch (c->verb) {
    case VERB_SESSION_BY_HANDLE:
        return cached_session_find(s, c, false, err);
    case VERB_SESSION_BY_ID:
        return cached_session_find(s, c, true, err);
    case VERB_SESSIONS_FIND:
        return cached_sessions_find(s, c->finds, c->n, err);
    default:
        return pass_on(s, c, err);
    }
}

/* Creating and freeing. */

bool cache_new(const struct cache_config *config, struct cache **ret, struct error *err)
{
    if (config->prefix.n > CACHE_PREFIX_MAX)
        return error_set(err, ERR_CONFIG,
                         "session.cache.prefix is longer than %d bytes; shorten it",
                         CACHE_PREFIX_MAX);
    struct cache *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    memcpy(c->prefix, config->prefix.p, config->prefix.n);
    c->config.prefix = str_n(c->prefix, config->prefix.n);
    snprintf(c->channel, sizeof(c->channel), "%.*schanges", STR_ARG(config->prefix));
    snprintf(c->events_text, sizeof(c->events_text), REDIS_SAYS_EVENTS " %016llx",
             (unsigned long long)random_u64());
    atomic_store(&c->began, 1);
    c->key = hmac_key_new(config->key, sizeof(config->key));
    crypto_wipe(c->config.key, sizeof(c->config.key));
    for (size_t i = 0; i < countof(counters); i++) {
        struct metric *m =
            metric_register(METRIC_COUNTER, counters[i].name, counters[i].help, "", 1);
        *(struct metric_cell **)((char *)c + counters[i].at) = metric_cell(m, NULL, 0);
    }
    *ret = c;
    return true;
}

struct str cache_channel(const struct cache *c)
{
    return str_of(c->channel);
}

struct str cache_events_text(const struct cache *c)
{
    return str_of(c->events_text);
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    hmac_key_free(c->key);
    free(c);
}

bool cached_store_new(struct cache *c, struct cached_store **ret, struct error *err)
{
    struct redis_config how = {.target = c->config.target,
                               .ca_file = c->config.ca_file,
                               .deadline_ms = c->config.deadline_ms};
    struct redis *redis = NULL;
    if (!redis_new(&how, &redis, err))
        return false;
    struct cached_store *s = xcalloc(1, sizeof(*s));
    s->cache = c;
    s->redis = redis;
    s->mem = arena_new((size_t)64 << 20);
    *ret = s;
    return true;
}

void cached_store_free(struct cached_store *s)
{
    redis_free(s->redis);
    arena_free(s->mem);
    free(s->unfolded);
    free(s);
}

static void cached_close(struct store *store)
{
    struct cached_store *s = cached_of(store);
    store_close(s->inner);
    cache_lane_free(s->lane);
    cached_store_free(s);
}

static const struct store_ops cached_ops = {
    .name = "cached",
    .close = cached_close,
    .write = cached_write,
    .call = cached_call,
};

bool store_cached(struct cache *c, struct store *inner, struct store **ret, struct error *err)
{
    struct cached_store *s = NULL;
    if (!cached_store_new(c, &s, err))
        return false;
    s->base.ops = &cached_ops;
    s->inner = inner;
    *ret = &s->base;
    return true;
}

bool store_cached_with_lane(struct cache *c, struct store *inner, struct store **ret,
                            struct error *err)
{
    struct cache_lane *lane = NULL;
    if (!cache_lane_new(c, &lane, err))
        return false;
    if (!store_cached(c, inner, ret, err)) {
        cache_lane_free(lane);
        return false;
    }
    cached_of(*ret)->lane = lane;
    return true;
}
