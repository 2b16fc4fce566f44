/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches key sets and checks files for changes.  `good_ms` is the last time the current keys were
 * confirmed: fetched, read, or seen unchanged.  `tried_ms` is the last attempt.  Keys are replaced
 * as a whole and only from the loop, so a check never sees a partial set. */
#include "identity/jwks_source.h"

#include "base/clock.h"
#include "base/log.h"
#include "http/client.h"
#include "io/tls.h"

#include <stdlib.h>

#define NEVER INT64_MIN

struct jwks_source {
    struct loop *loop;
    const struct issuer_config *c;
    struct jwt_keys *keys;
    unsigned version;
    int64_t good_ms, tried_ms, looked_ms;
    uint64_t mark; /* issuer_keys_mark() at the last look */
    /* For a URL. */
    struct http_url url;
    struct tls_context *tls;
    struct http_pool *pool;
    struct http_call *call; /* NULL: no fetch is running */
    struct loop_timer *timer;
    int status;
    struct buf set; /* the last fetched set; empty: never fetched */
    struct list waiting;
};

static bool has_passed(int64_t since_ms, int64_t ms)
{
    return since_ms == NEVER || clock_mono_ms() - since_ms >= ms;
}

/* Loads the keys and replaces the current ones. */
static bool put_in_use(struct jwks_source *s, struct str set, struct error *err)
{
    struct jwt_keys *keys;

    if (!issuer_keys_make(s->c, set, &keys, err))
        return false;
    jwt_keys_free(s->keys);
    s->keys = keys;
    s->version++;
    return true;
}

static void keep_set(struct jwks_source *s, struct str set)
{
    buf_reset(&s->set);
    buf_addstr(&s->set, set);
}

static bool take_set(struct jwks_source *s, struct str set, struct error *err)
{
    bool same = s->set.n && str_eq(set, buf_str(&s->set));

    if (s->status != 200)
        return error_set(err, ERR_UPSTREAM, "the server answered %d; check the URL", s->status);
    if (!same && !put_in_use(s, set, err))
        return false;
    if (!same) {
        keep_set(s, set);
        log_info("keys of an issuer fetched", LS("issuer", s->c->issuer), LI("keys", s->keys->n));
    }
    s->good_ms = clock_mono_ms();
    return true;
}

static bool on_head(void *arg, const struct http_head *head)
{
    ((struct jwks_source *)arg)->status = head->status;
    return false;
}

static void on_done(void *arg, struct str body, const struct error *failed, bool sent unused_arg)
{
    struct jwks_source *s = arg;
    struct list answered;
    struct list *first;
    struct error err;

    s->call = NULL;
    if (failed)
        err = *failed;
    if (failed || !take_set(s, body, &err))
        log_warn("keys of an issuer cannot be fetched", LS("issuer", s->c->issuer),
                 LZ("why", err.text));
    list_init(&answered);
    list_move_all(&answered, &s->waiting);
    while ((first = list_pop(&answered))) {
        struct jwks_waiter *w = list_entry(first, struct jwks_waiter, node);
        w->fn(w);
    }
}

static const struct http_call_events fetch_events = {.on_head = on_head, .on_done = on_done};

static void fetch(struct jwks_source *s)
{
    s->tried_ms = clock_mono_ms();
    s->status = 0;
    s->call = http_call_start(s->pool, "GET", s->url.target,
                              STR("Accept: application/jwk-set+json, application/json\r\n"
                                  "User-Agent: holdfast/" HOLDFAST_VERSION "\r\n"),
                              NULL, 0, JWKS_FETCH_MS, &fetch_events, s);
}

/* Once the keys are old, each timer tick retries, but no more often than for unknown keys. */
static void fetch_when_due(struct jwks_source *s)
{
    if (s->pool && !s->call && has_passed(s->good_ms, JWKS_REFRESH_MS) &&
        has_passed(s->tried_ms, s->good_ms == NEVER ? JWKS_RETRY_MS : JWKS_UNKNOWN_MS))
        fetch(s);
}

static void on_timer(void *arg)
{
    fetch_when_due(arg);
}

static bool start_fetching(struct jwks_source *s, struct error *err)
{
    if (!http_url_parse(s->c->jwks, &s->url, err) ||
        (s->url.is_tls && !tls_client_new(NULL, &s->tls, err))) {
        err->code = ERR_CONFIG;
        return error_wrap(err, "%.*s", STR_ARG(s->c->jwks_at));
    }
    s->pool = http_pool_new(s->loop, &(struct http_pool_config){
                                         .host = s->url.host,
                                         .port = s->url.port,
                                         .tls = s->tls,
                                         .max_connections = 1,
                                         .connect_ms = JWKS_FETCH_MS,
                                         .idle_ms = 1000,
                                         .max_body = JWKS_BYTES_MAX,
                                     });
    s->timer = loop_timer_new(s->loop, on_timer, s);
    loop_timer_start(s->timer, JWKS_UNKNOWN_MS, JWKS_UNKNOWN_MS);
    fetch(s);
    return true;
}

bool jwks_source_new(struct loop *loop, const struct issuer_config *c, struct jwks_source **ret,
                     struct error *err)
{
    struct jwks_source *s = xcalloc(1, sizeof(*s));

    s->loop = loop;
    s->c = c;
    s->good_ms = s->tried_ms = NEVER;
    s->looked_ms = clock_mono_ms();
    s->mark = issuer_keys_mark(c);
    buf_init(&s->set, JWKS_BYTES_MAX);
    list_init(&s->waiting);
    if (!put_in_use(s, STR_NONE, err) || (c->jwks_is_url && !start_fetching(s, err))) {
        jwks_source_free(s);
        return false;
    }
    if (!c->jwks_is_url)
        s->good_ms = s->looked_ms;
    *ret = s;
    return true;
}

void jwks_source_free(struct jwks_source *s)
{
    if (!s)
        return;
    if (s->call)
        http_call_cancel(s->call);
    http_pool_free(s->pool);
    loop_timer_free(s->timer);
    tls_free(s->tls);
    jwt_keys_free(s->keys);
    buf_release(&s->set);
    free(s);
}

void jwks_source_inherit(struct jwks_source *s, const struct jwks_source *before)
{
    struct error err;

    if (!s->pool || !before->set.n || !str_eq(s->c->jwks, before->c->jwks))
        return;
    if (!put_in_use(s, buf_str(&before->set), &err))
        return; /* the next fetch will report the error */
    keep_set(s, buf_str(&before->set));
    s->good_ms = before->good_ms;
}

/* Logs unusable files once per change. */
static void look_at_files(struct jwks_source *s)
{
    uint64_t mark;
    struct error err;

    if (!has_passed(s->looked_ms, JWKS_LOOK_MS))
        return;
    s->looked_ms = clock_mono_ms();
    mark = issuer_keys_mark(s->c);
    if (mark == s->mark)
        return;
    s->mark = mark;
    if (put_in_use(s, s->set.n ? buf_str(&s->set) : STR_NONE, &err))
        log_info("keys of an issuer read again", LS("issuer", s->c->issuer),
                 LI("keys", s->keys->n));
    else
        log_warn("keys of an issuer cannot be read, so the old ones stay",
                 LS("issuer", s->c->issuer), LZ("why", err.text));
}

/* Drops fetched keys after a day without a successful fetch: the issuer may have withdrawn them.
 * Keys of the configuration stay. */
static void forget_when_stale(struct jwks_source *s)
{
    struct error err;

    if (!s->set.n || !has_passed(s->good_ms, JWKS_STALE_MS) || !put_in_use(s, STR_NONE, &err))
        return;
    buf_reset(&s->set);
    s->good_ms = NEVER;
    log_warn("keys of an issuer could not be fetched for a day and are dropped",
             LS("issuer", s->c->issuer));
}

const struct jwt_keys *jwks_source_keys(struct jwks_source *s)
{
    look_at_files(s);
    forget_when_stale(s);
    fetch_when_due(s);
    return s->keys->n ? s->keys : NULL;
}

unsigned jwks_source_version(const struct jwks_source *s)
{
    return s->version;
}

bool jwks_source_wait(struct jwks_source *s, struct jwks_waiter *w)
{
    list_init(&w->node);
    if (!s->pool)
        return false;
    if (!s->call && has_passed(s->tried_ms, s->good_ms == NEVER ? JWKS_RETRY_MS : JWKS_UNKNOWN_MS))
        fetch(s);
    if (!s->call)
        return false;
    list_push(&s->waiting, &w->node);
    return true;
}

void jwks_waiter_cancel(struct jwks_waiter *w)
{
    list_remove(&w->node);
}

void jwks_source_take_waiters(struct jwks_source *s, struct list *to)
{
    list_move_all(to, &s->waiting);
}
