/* SPDX-License-Identifier: Apache-2.0 */
/* Writes through the cache, and creating and freeing the cache. */
#include "store/cached_impl.h"

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
        return STR_NONE;
    }
}

static struct str tenant_of(const struct store_op *op)
{
    return op->kind == OP_SESSION_RESEAL ? op->session->tenant : op->who->tenant;
}

/* The names of ended sessions come first. */
struct touched {
    struct entry_name *names;
    size_t n_ended, n;
};

static struct touched find_touched(struct cached_store *s, const struct store_op *ops, size_t n)
{
    struct touched t = {0};
    for (unsigned ends = 2; ends-- > 0;)
        for (size_t i = 0; i < n; i++) {
            struct str id = written_session(&ops[i]);
            if (!id.p || (ops[i].kind == OP_SESSION_END) != (ends == 1))
                continue;
            if (!t.names)
                t.names = xcalloc(n, sizeof(*t.names));
            cache_session_name(s->cache, tenant_of(&ops[i]), id, &t.names[t.n++]);
            t.n_ended += ends;
        }
    return t;
}

static void distrust_unless(struct cached_store *s, bool done)
{
    if (!done)
        atomic_store(&s->cache->is_distrusted, true);
}

/* Call after the write.  If an announcement failed earlier, deletes the epoch, so that all
 * processes ignore the existing entries. */
static void trust_again(struct cached_store *s)
{
    if (atomic_load(&s->cache->is_distrusted) && cache_forget_all(s))
        atomic_store(&s->cache->is_distrusted, false);
}

static void announce(struct cached_store *s, const struct touched *t, bool committed)
{
    if (committed && t->n_ended)
        distrust_unless(s, cache_bury(s, t->names, t->n_ended, s->cache->config.ttl_ms));
    if (committed && t->n > t->n_ended)
        distrust_unless(s, cache_lift(s, t->names + t->n_ended, t->n - t->n_ended));
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
        return op->verdict == VERDICT_OK && (op->fields & (FIELD_SEALED_AUTH | FIELD_TOOLSETS));
    default:
        return false;
    }
}

static void publish(struct cached_store *s, const struct store_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_change(&ops[i])) {
            cache_publish(s);
            return;
        }
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

static bool cached_write(struct store *store, struct store_op *ops, size_t n, struct error *err)
{
    struct cached_store *s = cached_of(store);
    struct touched t = find_touched(s, ops, n);

    if (t.n) {
        cache_new_tombstone(s);
        distrust_unless(s, cache_bury(s, t.names, t.n, CACHE_TOMBSTONE_MS));
    }
    bool ok = store_write(s->inner, ops, n, err);
    announce(s, &t, ok);
    free(t.names);
    for (size_t i = 0; ok && i < n; i++)
        unfolded_add(s, &ops[i]);
    trust_again(s);
    if (ok)
        publish(s, ops, n);
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
            rows[i].kind == CHANGE_SESSION_TOOLSETS)
            cache_session_name(s->cache, rows[i].tenant, rows[i].name, &names[n++]);
    if (n) {
        cache_new_tombstone(s);
        distrust_unless(s, cache_bury(s, names, n, s->cache->config.ttl_ms));
    }
}

/* Drops the entries of sessions with events that may have been folded: their rows have changed. */
static void forget_folded(struct cached_store *s, bool all)
{
    if (s->overflowed)
        distrust_unless(s, cache_forget_all(s));
    else if (s->n_unfolded)
        distrust_unless(s, cache_drop(s, s->unfolded, s->n_unfolded));
    if (all) {
        s->n_unfolded = 0;
        s->overflowed = false;
    }
    trust_again(s);
}

/* The reaper does not say which rows it wrote, and it runs seldom: all entries are dropped. */
static void forget_reaped(struct cached_store *s, bool ok, const struct reaped *reaped)
{
    if (!ok || reaped->expired || reaped->idled || reaped->pulled_back)
        distrust_unless(s, cache_forget_all(s));
    forget_folded(s, ok);
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
            forget_folded(s, !*(bool *)c->ret);
        break;
    case VERB_OPEN_INTENTS: /* folds an unknown number of events */
        forget_folded(s, ok);
        break;
    case VERB_REAP:
        forget_reaped(s, ok, c->ret);
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

void cache_free(struct cache *c)
{
    if (!c)
        return;
    hmac_key_free(c->key);
    free(c);
}

static void cached_close(struct store *store)
{
    struct cached_store *s = cached_of(store);
    store_close(s->inner);
    redis_free(s->redis);
    arena_free(s->mem);
    free(s->unfolded);
    free(s);
}

static const struct store_ops cached_ops = {
    .name = "cached",
    .close = cached_close,
    .write = cached_write,
    .call = cached_call,
};

bool store_cached(struct cache *c, struct store *inner, struct store **ret, struct error *err)
{
    struct redis_config how = {.target = c->config.target,
                               .ca_file = c->config.ca_file,
                               .deadline_ms = c->config.deadline_ms};
    struct redis *redis = NULL;
    if (!redis_new(&how, &redis, err))
        return false;
    struct cached_store *s = xcalloc(1, sizeof(*s));
    s->base.ops = &cached_ops;
    s->inner = inner;
    s->cache = c;
    s->redis = redis;
    s->mem = arena_new((size_t)64 << 20);
    *ret = &s->base;
    return true;
}
