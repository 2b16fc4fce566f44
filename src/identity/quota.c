/* SPDX-License-Identifier: Apache-2.0 */
/* Counts usage.  quota_take() finds the quotas of tenant and key by name, updates them to the
 * current limits and time, and takes from both only if both allow it. */
#include "identity/quota_impl.h"

#include "base/clock.h"
#include "config/limits.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_ROOM 512

/* Buckets. */

int64_t bucket_capacity(const struct limit *l)
{
    return l->burst * l->per_ms;
}

void bucket_fill(struct bucket *b, const struct limit *l, int64_t now_ms)
{
    int64_t room = bucket_capacity(l) - b->level, passed = now_ms - b->at_ms;

    if (passed <= 0)
        return;
    b->at_ms = now_ms;
    b->level += passed > room / l->amount ? room : passed * l->amount;
}

/* The debt is at most one burst, which bounds the time until the next token. */
void bucket_spend(struct bucket *b, const struct limit *l, int64_t tokens)
{
    int64_t least = -bucket_capacity(l);

    if (tokens > (b->level - least) / l->per_ms)
        b->level = b->level < least ? b->level : least;
    else
        b->level -= tokens * l->per_ms;
}

/* Time until the next token; 0: a token is available. */
static int64_t bucket_wait_ms(const struct bucket *b, const struct limit *l)
{
    int64_t lacks = l->per_ms - b->level;
    return lacks <= 0 ? 0 : (lacks + l->amount - 1) / l->amount;
}

/* Used tokens stay used when the limit changes. */
static void bucket_change(struct bucket *b, const struct limit *from, const struct limit *to,
                          int64_t now_ms)
{
    int64_t used = 0, part = 0; /* whole tokens, and the remainder in 1/per_ms */

    if (limit_is_set(from)) {
        bucket_fill(b, from, now_ms);
        used = (bucket_capacity(from) - b->level) / from->per_ms;
        part = (bucket_capacity(from) - b->level) % from->per_ms;
    }
    *b = (struct bucket){.at_ms = now_ms};
    if (!limit_is_set(to))
        return;
    b->level = bucket_capacity(to) - (part ? part * to->per_ms / from->per_ms : 0);
    bucket_spend(b, to, used);
}

/* Quotas. */

static void quota_update(struct quota *q, int64_t now_ms)
{
    const struct config *c = q->home->config;
    struct limits now;

    if (q->epoch != q->home->epoch) {
        q->epoch = q->home->epoch;
        now = q->is_session     ? q->own
              : q->credential.p ? config_key_limits(c, q->tenant, &q->own)
                                : config_limits(c, q->tenant);
        for (unsigned k = 0; k < LIMIT_RATES; k++)
            bucket_change(&q->buckets[k], &q->limits.of[k], &now.of[k], now_ms);
        q->limits = now;
        q->is_limited = false;
        for (unsigned k = 0; k < LIMIT_KINDS; k++)
            q->is_limited = q->is_limited || limit_is_set(&now.of[k]);
    }
    for (unsigned k = 0; k < LIMIT_RATES; k++)
        if (limit_is_set(&q->limits.of[k]))
            bucket_fill(&q->buckets[k], &q->limits.of[k], now_ms);
}

static void quota_drop(struct quota *q)
{
    map_remove(&q->home->by_name, q->name);
    q->home->n_sessions -= q->is_session;
    list_remove(&q->lru);
    list_remove(&q->dirty);
    free(q);
}

void quota_unref(struct quota *q)
{
    q->refs--;
}

/* Quotas in use are never evicted, however many: calls and processes have their own limits. */
static void make_room(struct quotas *all, bool is_session)
{
    size_t n_others = all->by_name.n - all->n_sessions;

    if ((is_session ? all->n_sessions : n_others) < all->max_quotas)
        return;
    list_each(&all->lru[is_session], n)
    {
        struct quota *q = list_entry(n, struct quota, lru);
        if (q->refs)
            continue;
        quota_drop(q);
        return;
    }
}

static struct quota *quota_new(struct quotas *all, struct str name, size_t tenant_n,
                               const struct limits *own, bool is_session)
{
    struct quota *q = xcalloc(1, sizeof(*q) + name.n + 1);
    char *text = (char *)(q + 1);

    make_room(all, is_session);
    memcpy(text, name.p, name.n);
    q->home = all;
    q->name = str_n(text, name.n);
    q->tenant = str_n(text, tenant_n);
    if (name.n > tenant_n)
        q->credential = str_n(text + tenant_n + 1, name.n - tenant_n - 1);
    if (own)
        q->own = *own;
    list_init(&q->dirty);
    q->is_session = is_session;
    all->n_sessions += is_session;
    map_put(&all->by_name, q->name, q);
    list_push(&all->lru[is_session], &q->lru);
    return q;
}

static struct quota *quota_find_any(struct quotas *all, struct str name, size_t tenant_n,
                                    const struct limits *own, bool is_session)
{
    struct quota *q = map_get(&all->by_name, name);

    if (!q)
        return quota_new(all, name, tenant_n, own, is_session);
    list_remove(&q->lru);
    list_push(&all->lru[is_session], &q->lru);
    return q;
}

static struct quota *quota_find(struct quotas *all, struct str name, size_t tenant_n,
                                const struct limits *own, int64_t now_ms)
{
    struct quota *q = quota_find_any(all, name, tenant_n, own, false);

    quota_update(q, now_ms);
    return q;
}

/* An administrator may have changed the limits since the last request. */
static struct quota *quota_find_session(struct quotas *all, const struct quota_session *s,
                                        int64_t now_ms)
{
    static const struct str mark = {"\0session:", 9};
    size_t n = s->tenant.n + mark.n + s->id.n;
    char name[NAME_ROOM];

    if (n > sizeof(name))
        return NULL;
    memcpy(name, s->tenant.p, s->tenant.n);
    memcpy(name + s->tenant.n, mark.p, mark.n);
    memcpy(name + s->tenant.n + mark.n, s->id.p, s->id.n);
    struct quota *q = quota_find_any(all, str_n(name, n), s->tenant.n, s->limits, true);
    if (memcmp(&q->own, s->limits, sizeof(q->own)) != 0) {
        q->own = *s->limits;
        q->epoch = 0;
    }
    quota_update(q, now_ms);
    return q;
}

/* Each key counts by itself.  Tokens are short-lived, so they count by their user. */
static struct str credential_of(const struct principal *who)
{
    if (!who->credential.p)
        return STR_NONE;
    return str_starts(who->credential, STR("key:")) ? who->credential : who->owner;
}

static void find_both(struct quotas *all, const struct principal *who, int64_t now_ms,
                      struct quota *ret[2])
{
    const struct limits *own = who->scopes ? who->scopes->limits : NULL;
    struct str credential = credential_of(who);
    size_t n = who->tenant.n + 1 + credential.n;
    char name[NAME_ROOM];

    ret[0] =
        all->config->is_limited ? quota_find(all, who->tenant, who->tenant.n, NULL, now_ms) : NULL;
    ret[1] = NULL;
    if (!credential.p || n > sizeof(name))
        return;
    memcpy(name, who->tenant.p, who->tenant.n);
    name[who->tenant.n] = '\0';
    memcpy(name + who->tenant.n + 1, credential.p, credential.n);
    if (ret[0])
        ret[0]->refs++; /* quota_find() may evict others, but not this one */
    ret[1] = quota_find(all, str_n(name, n), who->tenant.n, own, now_ms);
    if (ret[0])
        ret[0]->refs--;
}

/* Checking. */

static int64_t wait_of(const struct quota *q, enum limit_kind kind)
{
    const struct limit *l = &q->limits.of[kind];

    if (!limit_is_set(l))
        return 0;
    if (kind < LIMIT_RATES)
        return bucket_wait_ms(&q->buckets[kind], l);
    if (q->held[kind] + q->elsewhere[kind] < l->amount)
        return 0;
    return 1000 * (kind == LIMIT_CALLS ? QUOTA_CALL_RETRY_S : QUOTA_CHILD_RETRY_S);
}

static void describe_who(const struct quota *q, struct buf *out)
{
    if (q->is_session)
        buf_addz(out, "this session");
    else if (!q->credential.p)
        buf_addf(out, "tenant '%.*s'", STR_ARG(q->tenant));
    else if (str_starts(q->credential, STR("key:")))
        buf_addf(out, "key '%.*s'", (int)q->credential.n - 4, q->credential.p + 4);
    else
        buf_addz(out, "this user");
}

static void format_refusal(struct quota_refusal *r, struct str template)
{
    struct buf text;

    buf_init(&text, 2048);
    buf_addz(&text, r->kind < LIMIT_RATES ? "Rate limit of " : "Limit of ");
    describe_who(r->who, &text);
    buf_addz(&text, " reached");
    if (!quotas_are_shared(r->who->home))
        buf_addz(&text, " on this node");
    buf_addz(&text, ": ");
    limit_describe(r->kind, &r->limit, &text);
    if (template.p)
        buf_addf(&text, ", set by its template %.*s", STR_ARG(template));
    else if (r->scope == QUOTA_OF_SESSION)
        buf_addz(&text, ", set by an administrator");
    buf_addf(&text, ". Try again in %lld second%s.", (long long)r->retry_s,
             r->retry_s == 1 ? "" : "s");
    error_set(&r->err, ERR_QUOTA, "%.*s", STR_ARG(buf_str(&text)));
    buf_release(&text);
}

static bool is_enough(const struct quota *q, unsigned what, int64_t *longest,
                      struct quota_refusal *ret)
{
    bool ok = true;

    for (unsigned k = 0; q && k < LIMIT_KINDS; k++) {
        int64_t wait = what & 1u << k ? wait_of(q, (enum limit_kind)k) : 0;
        ok = ok && !wait;
        if (wait <= *longest)
            continue;
        *longest = wait;
        *ret = (struct quota_refusal){.kind = (enum limit_kind)k,
                                      .limit = q->limits.of[k],
                                      .retry_s = (wait + 999) / 1000,
                                      .scope = q->is_session     ? QUOTA_OF_SESSION
                                               : q->credential.p ? QUOTA_OF_KEY
                                                                 : QUOTA_OF_TENANT,
                                      .who = (struct quota *)q};
    }
    return ok;
}

static void spend(struct quota *q, enum limit_kind kind, int64_t n)
{
    if (!limit_is_set(&q->limits.of[kind]))
        return;
    bucket_spend(&q->buckets[kind], &q->limits.of[kind], n);
    q->unreported[kind] += n;
    /* Larger values cannot increase the debt. */
    if (q->unreported[kind] > 2 * q->limits.of[kind].burst)
        q->unreported[kind] = 2 * q->limits.of[kind].burst;
}

static void take(struct quota *q, unsigned what, size_t bytes)
{
    if (what & 1u << LIMIT_REQUESTS)
        spend(q, LIMIT_REQUESTS, 1);
    if (what & 1u << LIMIT_BYTES)
        spend(q, LIMIT_BYTES, (int64_t)bytes);
    for (unsigned k = LIMIT_RATES; k < LIMIT_KINDS; k++)
        q->held[k] += (what & 1u << k) != 0;
    q->refs++;
}

static void touch(struct quota *q)
{
    if (q->home->share && q->is_limited)
        quota_share_touch(q->home->share, q);
}

bool quota_take(struct quotas *all, const struct principal *who, unsigned what, size_t bytes,
                struct quota_use *use, struct quota_refusal *ret)
{
    int64_t now_ms = clock_mono_ms(), longest = 0;
    struct quota *both[2];
    bool ok = true;

    find_both(all, who, now_ms, both);
    for (unsigned i = 0; i < 2; i++)
        ok = is_enough(both[i], what, &longest, ret) && ok;
    if (!ok && !(what & QUOTA_ALWAYS)) {
        for (unsigned i = 0; i < 2; i++)
            if (both[i])
                touch(both[i]);
        format_refusal(ret, STR_NONE);
        return false;
    }
    use->held = what;
    for (unsigned i = 0; i < 2; i++) {
        use->of[i] = both[i];
        if (!both[i])
            continue;
        take(both[i], what, bytes);
        touch(both[i]);
    }
    return true;
}

bool quota_take_session(struct quotas *all, const struct quota_session *s, unsigned what,
                        size_t bytes, struct quota_use *use, struct quota_refusal *ret)
{
    struct quota *q = quota_find_session(all, s, clock_mono_ms());
    int64_t longest = 0;

    if (!q)
        return true;
    if (!is_enough(q, what, &longest, ret) && !(what & QUOTA_ALWAYS)) {
        touch(q);
        format_refusal(ret, s->from);
        return false;
    }
    use->held = what;
    use->of[2] = q;
    take(q, what, bytes);
    touch(q);
    return true;
}

void quota_spend(struct quota_use *use, size_t bytes)
{
    for (unsigned i = 0; i < countof(use->of); i++) {
        struct quota *q = use->of[i];
        if (!q || !limit_is_set(&q->limits.of[LIMIT_BYTES]))
            continue;
        spend(q, LIMIT_BYTES, (int64_t)bytes);
        touch(q);
    }
}

void quota_release(struct quota_use *use)
{
    for (unsigned i = 0; i < countof(use->of); i++) {
        struct quota *q = use->of[i];
        if (!q)
            continue;
        for (unsigned k = LIMIT_RATES; k < LIMIT_KINDS; k++)
            q->held[k] -= (use->held & 1u << k) != 0;
        if (use->held & (1u << LIMIT_CALLS | 1u << LIMIT_CHILDREN))
            touch(q);
        quota_unref(q);
    }
    *use = (struct quota_use){0};
}

/* The reply to a refused client; quota_refusals.c logs and records refusals. */

struct str quota_lines(const struct quota_refusal *r, struct arena *mem)
{
    static const char *const units[LIMIT_KINDS] = {
        [LIMIT_REQUESTS] = "",
        [LIMIT_BYTES] = ";qu=\"content-bytes\"",
        [LIMIT_CALLS] = ";qu=\"concurrent-requests\"",
        [LIMIT_CHILDREN] = "",
    };
    char window[32] = "";

    if (r->kind < LIMIT_RATES)
        snprintf(window, sizeof(window), ";w=%lld", (long long)(r->limit.per_ms / 1000));
    return arena_printf(mem,
                        "Retry-After: %lld\r\nRateLimit-Policy: \"%s\";q=%lld%s%s\r\n"
                        "RateLimit: \"%s\";r=0;t=%lld\r\n",
                        (long long)r->retry_s, limit_name(r->kind), (long long)r->limit.amount,
                        window, units[r->kind], limit_name(r->kind), (long long)r->retry_s);
}

/* The service. */

static void register_metrics(struct quotas *all)
{
    static const char *const scopes[QUOTA_SCOPES] = {"tenant", "key", "session"};
    struct metric *refused = metric_register(
        METRIC_COUNTER, "holdfast_limited_total",
        "Requests refused by a limit of a tenant, of a key or of a session.", "limit,scope", 16);
    struct metric *shared = metric_register(
        METRIC_GAUGE, "holdfast_limits_shared",
        "1: limits are counted together with other nodes; 0: on this node alone.", "", 1);

    for (unsigned k = 0; k < LIMIT_KINDS; k++)
        for (unsigned s = 0; s < QUOTA_SCOPES; s++) {
            struct str labels[] = {str_of(limit_name((enum limit_kind)k)), str_of(scopes[s])};
            all->refused[k][s] = metric_cell(refused, labels, countof(labels));
        }
    all->shared = metric_cell(shared, NULL, 0);
    metric_set(all->shared, 0);
}

bool quotas_new(const struct quotas_config *config, struct quotas **ret, struct error *err)
{
    struct quotas *all = xcalloc(1, sizeof(*all));

    all->loop = config->loop;
    all->lanes = config->lanes;
    all->config = config_ref(config->config);
    all->epoch = 1;
    all->max_quotas = config->max_quotas ? config->max_quotas : QUOTA_MAX;
    map_init(&all->by_name);
    list_init(&all->lru[0]);
    list_init(&all->lru[1]);
    register_metrics(all);
    if (config->redis && !quota_share_new(all, config, &all->share, err)) {
        quotas_free(all);
        return false;
    }
    *ret = all;
    return true;
}

void quotas_apply(struct quotas *all, struct config *config)
{
    config_ref(config);
    config_unref(all->config);
    all->config = config;
    all->epoch++;
}

void quotas_free(struct quotas *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < countof(all->lru); i++)
        for (struct list *n = list_first(&all->lru[i]); n; n = list_first(&all->lru[i]))
            quota_drop(list_entry(n, struct quota, lru)); /* also leaves the list of reports */
    quota_share_free(all->share);
    map_release(&all->by_name);
    config_unref(all->config);
    free(all);
}

bool quotas_are_shared(const struct quotas *all)
{
    return all->share && quota_share_is_up(all->share);
}

size_t quotas_count(const struct quotas *all)
{
    return all->by_name.n;
}
