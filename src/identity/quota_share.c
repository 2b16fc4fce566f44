/* SPDX-License-Identifier: Apache-2.0 */
/* Shares quotas with other nodes through Redis, by report and correction.
 *
 *   loop    uses its own buckets, and queues the quotas that changed
 *   thread  a few milliseconds later: sends all reports to Redis in one exchange
 *   Redis   one script: refills the shared bucket by its own clock, subtracts the usage, stores the
 *           counts of this node, and replies with the levels and the counts of other nodes
 *   loop    continues from the reply, minus the usage since the report
 *
 * So requests never wait for Redis.  Together, nodes may exceed a limit by their usage within one
 * exchange.  That becomes a debt that all nodes see.  After a failed report a node uses its own
 * counts, and logs this, until a report succeeds.  It then reports its usage up to one burst, which
 * never leaves a debt.  If Redis lost a bucket, it restarts from the level of the first node that
 * reports it.
 *
 * One batch is in progress at a time.  The thread owns it from `wake` until `task` has run. */
#include "identity/quota_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "crypto/hash.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BATCH_MAX 128
#define GATHER_MS 5        /* between two exchanges */
#define TICK_MS 1000       /* interval of on_tick() */
#define HELD_EVERY_MS 3000 /* interval of reports about held counts … */
#define HELD_TTL_MS 10000  /* … and the time after which Redis drops them */
#define KEY_TTL_MAX_MS (INT64_C(7) * 24 * 3600 * 1000)
#define NAME_DIGITS 32

/* KEYS: the limit's key.  ARGV: node, calls, children, their ttl, the key's ttl; then for requests
 * and bytes: amount, per_ms, burst, usage, level of this node before the usage, maximum debt.
 * Returns levels, and calls and children of other nodes. */
static const char script[] =
    "local k,t=KEYS[1],redis.call('TIME')\n"
    "local now=t[1]*1000+math.floor(t[2]/1000)\n"
    "local out={}\n"
    "for i=0,1 do\n"
    "local p={} for j=0,5 do p[j]=tonumber(ARGV[6+i*6+j]) end\n"
    "local f,l=i==0 and 'r' or 'b',0\n"
    "if p[0]>0 then\n"
    "local v=redis.call('HMGET',k,f,f..'t')\n"
    "l=tonumber(v[1])\n"
    "if l then l=l+math.max(0,now-tonumber(v[2]))*p[0]/p[1] else l=p[4] end\n"
    "l=math.min(p[2],l)\n"
    "l=math.max(l-p[3],math.min(l,p[5]))\n"
    "redis.call('HSET',k,f,string.format('%.17g',l),f..'t',string.format('%.0f',now))\n"
    "end\n"
    "out[i+1]=string.format('%.3f',l)\n"
    "end\n"
    "local me='n'..ARGV[1]\n"
    "if ARGV[2]=='0' and ARGV[3]=='0' then redis.call('HDEL',k,me)\n"
    "else redis.call('HSET',k,me,ARGV[2]..' '..ARGV[3]..' '..string.format('%.0f',now+ARGV[4])) "
    "end\n"
    "local all,calls,children=redis.call('HGETALL',k),0,0\n"
    "for j=1,#all,2 do\n"
    "if string.sub(all[j],1,1)=='n' and all[j]~=me then\n"
    "local c,h,till=string.match(all[j+1],'^(%d+) (%d+) (%d+)$')\n"
    "if not till or tonumber(till)<now then redis.call('HDEL',k,all[j])\n"
    "else calls=calls+c children=children+h end\n"
    "end end\n"
    "redis.call('PEXPIRE',k,ARGV[5])\n"
    "out[3]=calls out[4]=children\n"
    "return out";

struct report {
    struct quota *of; /* a reference; the thread does not use it */
    uint64_t epoch;   /* epoch of `limits` */
    struct limits limits;
    struct str name;
    int64_t used[LIMIT_RATES];
    int64_t level[LIMIT_RATES]; /* before the usage of this report */
    int64_t held[LIMIT_KINDS];
    bool is_back; /* the previous report failed */
    /* The reply. */
    double left[LIMIT_RATES];
    int64_t elsewhere[LIMIT_KINDS];
};

struct quota_share {
    struct quotas *home;
    struct redis *redis;
    struct hmac_key *key;
    struct str prefix, node;
    /* For the lifetime; for one batch; for one exchange, used by the thread. */
    struct arena *own, *names, *mem;
    pthread_t thread;
    int wake, stop;
    struct loop_task task;
    struct loop_timer *gather, *tick;
    struct list dirty;
    bool is_up, was_up, stopped;
    bool is_waiting; /* `gather` is started */
    bool is_busy;    /* the thread owns the batch */
    atomic_int
        is_posted; /* an int: gcc reads the flags above as one word, which must not hold it */
    int64_t sent_ms, not_before_ms;
    /* The batch. */
    struct report reports[BATCH_MAX];
    size_t n;
    bool ok;
    struct error err;
};

/* The thread. */

static struct str number(struct quota_share *s, int64_t n)
{
    return arena_printf(s->mem, "%lld", (long long)n);
}

static int64_t ttl_of(const struct limits *limits)
{
    int64_t ttl = HELD_TTL_MS;

    for (unsigned k = 0; k < LIMIT_RATES; k++) {
        const struct limit *l = &limits->of[k];
        int64_t full = limit_is_set(l) ? bucket_capacity(l) / l->amount : 0;
        if (full > KEY_TTL_MAX_MS / 2)
            full = KEY_TTL_MAX_MS / 2;
        ttl = 2 * full > ttl ? 2 * full : ttl; /* time to refill from the maximum debt */
    }
    return ttl + 1000;
}

static struct redis_command command_of(struct quota_share *s, const struct report *r)
{
    enum { FIXED = 9, EACH = 6 };
    struct str *args = arena_alloc(s->mem, (FIXED + LIMIT_RATES * EACH) * sizeof(*args)), *a = args;

    *a++ = STR("EVAL");
    *a++ = str_of(script);
    *a++ = STR("1");
    *a++ = r->name;
    *a++ = s->node;
    *a++ = number(s, r->held[LIMIT_CALLS]);
    *a++ = number(s, r->held[LIMIT_CHILDREN]);
    *a++ = number(s, HELD_TTL_MS);
    *a++ = number(s, ttl_of(&r->limits));
    for (unsigned k = 0; k < LIMIT_RATES; k++) {
        const struct limit *l = &r->limits.of[k];
        bool is_set = limit_is_set(l);
        *a++ = number(s, is_set ? l->amount : 0);
        *a++ = number(s, is_set ? l->per_ms : 1);
        *a++ = number(s, l->burst);
        *a++ = number(s, r->used[k]);
        *a++ = arena_printf(s->mem, "%.3f", is_set ? (double)r->level[k] / (double)l->per_ms : 0.0);
        *a++ = number(s, r->is_back ? 0 : -l->burst);
    }
    return (struct redis_command){args, (size_t)(a - args)};
}

static bool take_answer(const struct redis_reply *reply, struct report *r)
{
    if (reply->kind != REDIS_LIST || reply->n != 4)
        return false;
    for (unsigned k = 0; k < LIMIT_RATES; k++) {
        if (reply->items[k]->kind != REDIS_TEXT)
            return false;
        r->left[k] = strtod(reply->items[k]->text.p, NULL);
        if (!isfinite(r->left[k]))
            return false;
    }
    for (unsigned k = LIMIT_RATES; k < LIMIT_KINDS; k++) {
        if (reply->items[k]->kind != REDIS_NUMBER || reply->items[k]->number < 0)
            return false;
        r->elsewhere[k] = reply->items[k]->number;
    }
    return true;
}

static bool run_batch(struct quota_share *s, struct error *err)
{
    struct redis_command commands[BATCH_MAX];
    struct redis_reply *replies[BATCH_MAX] = {NULL};
    struct str ping[] = {STR("PING")};
    size_t n = s->n;

    arena_reset(s->mem);
    for (size_t i = 0; i < n; i++)
        commands[i] = command_of(s, &s->reports[i]);
    if (n == 0)
        commands[n++] = (struct redis_command){ping, 1};
    if (!redis_call(s->redis, commands, n, s->mem, replies, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (replies[i]->kind == REDIS_REFUSAL || (s->n && !take_answer(replies[i], &s->reports[i])))
            return error_set(err, ERR_UNAVAILABLE, "Redis answered: %.*s",
                             replies[i]->text.n < 100 ? (int)replies[i]->text.n : 100,
                             replies[i]->text.p ? replies[i]->text.p : "something else");
    return true;
}

static void *run(void *arg)
{
    struct quota_share *s = arg;
    struct pollfd fds[] = {{.fd = s->stop, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
    eventfd_t n;

    while (poll(fds, countof(fds), -1) >= 0 && !fds[0].revents) {
        if (!fds[1].revents || eventfd_read(s->wake, &n) < 0)
            continue;
        s->ok = run_batch(s, &s->err);
        atomic_store(&s->is_posted, true);
        loop_post(s->home->loop, &s->task);
    }
    return NULL;
}

/* The loop: sending reports. */

static struct str name_of(struct quota_share *s, const struct quota *q)
{
    uint8_t mac[32];
    char digits[2 * sizeof(mac) + 1];

    hmac_sha256(s->key, &q->name, 1, mac);
    hex_encode(mac, NAME_DIGITS / 2, digits);
    return arena_printf(s->names, "%.*slimit:%.*s", STR_ARG(s->prefix), NAME_DIGITS, digits);
}

static void fill_report(struct quota_share *s, struct quota *q, struct report *r)
{
    *r = (struct report){.of = q,
                         .epoch = q->epoch,
                         .limits = q->limits,
                         .name = name_of(s, q),
                         .is_back = q->is_away};
    q->refs++;
    q->reported_ms = clock_mono_ms();
    for (unsigned k = 0; k < LIMIT_RATES; k++) {
        r->used[k] = q->unreported[k];
        r->level[k] = q->buckets[k].level + q->unreported[k] * q->limits.of[k].per_ms;
        q->unreported[k] = 0;
    }
    for (unsigned k = LIMIT_RATES; k < LIMIT_KINDS; k++)
        r->held[k] = q->held[k];
}

static void send(struct quota_share *s)
{
    s->n = 0;
    arena_reset(s->names);
    for (struct list *n = list_first(&s->dirty); n && s->n < BATCH_MAX; n = list_first(&s->dirty)) {
        struct quota *q = list_entry(n, struct quota, dirty);
        list_remove(n);
        fill_report(s, q, &s->reports[s->n++]);
    }
    s->is_busy = true;
    s->sent_ms = clock_mono_ms();
    (void)!eventfd_write(s->wake, 1);
}

static void send_soon(struct quota_share *s)
{
    int64_t now = clock_mono_ms(), at = s->sent_ms + GATHER_MS;

    if (s->is_busy || s->is_waiting)
        return;
    if (at < s->not_before_ms)
        at = s->not_before_ms;
    s->is_waiting = true;
    loop_timer_start(s->gather, at > now ? at - now : 0, 0);
}

static void on_gathered(void *arg)
{
    struct quota_share *s = arg;
    s->is_waiting = false;
    if (!s->is_busy)
        send(s);
}

void quota_share_touch(struct quota_share *s, struct quota *q)
{
    if (list_empty(&q->dirty))
        list_push(&s->dirty, &q->dirty);
    send_soon(s);
}

/* The loop: applying replies. */

static int64_t clamped(double left, const struct limit *l)
{
    double burst = (double)l->burst;

    if (left >= burst)
        return bucket_capacity(l);
    return left <= -burst ? -bucket_capacity(l) : (int64_t)(left * (double)l->per_ms);
}

static void correct(const struct report *r)
{
    struct quota *q = r->of;

    q->is_away = false;
    for (unsigned k = LIMIT_RATES; k < LIMIT_KINDS; k++)
        q->elsewhere[k] = r->elsewhere[k];
    if (q->epoch != r->epoch)
        return; /* the limits changed; the next report uses the new ones */
    for (unsigned k = 0; k < LIMIT_RATES; k++) {
        const struct limit *l = &q->limits.of[k];
        if (!limit_is_set(l))
            continue;
        q->buckets[k] = (struct bucket){.level = clamped(r->left[k], l), .at_ms = clock_mono_ms()};
        bucket_spend(&q->buckets[k], l, q->unreported[k]);
    }
}

static void keep(const struct report *r)
{
    struct quota *q = r->of;

    q->is_away = true;
    for (unsigned k = 0; k < LIMIT_RATES; k++) {
        q->unreported[k] += r->used[k];
        if (q->unreported[k] > q->limits.of[k].burst)
            q->unreported[k] = q->limits.of[k].burst;
    }
}

/* The counts of other nodes are no longer known. */
static void go_alone(struct quota_share *s)
{
    for (size_t i = 0; i < countof(s->home->lru); i++)
        list_each(&s->home->lru[i], n)
        {
            struct quota *q = list_entry(n, struct quota, lru);
            q->is_away = true;
            memset(q->elsewhere, 0, sizeof(q->elsewhere));
        }
}

static void set_up(struct quota_share *s, bool is_up)
{
    if (is_up == s->is_up && (is_up || s->was_up))
        return;
    if (is_up)
        log_info("limits are counted together with other nodes");
    else
        log_warn("limits are counted on this node alone, because Redis does not answer",
                 LZ("why", s->err.text));
    s->is_up = is_up;
    s->was_up = true; /* the state has been logged */
    metric_set(s->home->shared, is_up);
    if (!is_up)
        go_alone(s);
}

static void release(struct quota_share *s)
{
    arena_free(s->own);
    arena_free(s->names);
    arena_free(s->mem);
    hmac_key_free(s->key);
    free(s);
}

static void on_posted(struct loop_task *task)
{
    struct quota_share *s = container_of(task, struct quota_share, task);

    atomic_store(&s->is_posted, false);
    if (s->stopped) {
        release(s);
        return;
    }
    s->is_busy = false;
    set_up(s, s->ok);
    s->not_before_ms = s->ok ? 0 : clock_mono_ms() + REDIS_PAUSE_MIN_MS;
    for (size_t i = 0; i < s->n; i++) {
        if (s->ok)
            correct(&s->reports[i]);
        else
            keep(&s->reports[i]);
        if (!s->ok && list_empty(&s->reports[i].of->dirty))
            list_push(&s->dirty, &s->reports[i].of->dirty);
        quota_unref(s->reports[i].of);
    }
    if (!list_empty(&s->dirty))
        send_soon(s);
}

static void report_held(struct quota_share *s, struct quota *q, int64_t now_ms)
{
    if ((q->held[LIMIT_CALLS] || q->held[LIMIT_CHILDREN]) &&
        now_ms - q->reported_ms >= HELD_EVERY_MS)
        quota_share_touch(s, q);
}

/* Repeats reports of held counts before they expire.  Without other traffic, also checks that Redis
 * is reachable. */
static void on_tick(void *arg)
{
    struct quota_share *s = arg;
    int64_t now = clock_mono_ms();

    for (size_t i = 0; i < countof(s->home->lru); i++)
        list_each(&s->home->lru[i], n) report_held(s, list_entry(n, struct quota, lru), now);
    if (now - s->sent_ms >= HELD_EVERY_MS || !s->is_up)
        send_soon(s);
}

bool quota_share_is_up(const struct quota_share *s)
{
    return s->is_up;
}

bool quota_share_new(struct quotas *home, const struct quotas_config *config,
                     struct quota_share **ret, struct error *err)
{
    struct redis_config how = {.target = config->redis, .ca_file = config->ca_file};
    struct redis *redis = NULL;

    if (!redis_new(&how, &redis, err))
        return false;
    struct quota_share *s = xcalloc(1, sizeof(*s));
    s->home = home;
    s->redis = redis;
    s->key = hmac_key_new(config->key, sizeof(config->key));
    s->mem = arena_new(REDIS_REPLY_BYTES_MAX);
    s->names = arena_new(1 << 20);
    s->own = arena_new(4096);
    s->prefix = arena_dup(s->own, config->prefix);
    s->node = arena_dup(s->own, config->node);
    list_init(&s->dirty);
    s->task.fn = on_posted;
    s->gather = loop_timer_new(home->loop, on_gathered, s);
    s->tick = loop_timer_new(home->loop, on_tick, s);
    s->wake = eventfd(0, EFD_CLOEXEC);
    s->stop = eventfd(0, EFD_CLOEXEC);
    if (s->wake < 0 || s->stop < 0 || !thread_start(&s->thread, "shared-limits", run, s))
        die("cannot start a thread for shared limits");
    loop_timer_start(s->tick, 0, TICK_MS);
    *ret = s;
    return true;
}

void quota_share_free(struct quota_share *s)
{
    if (!s)
        return;
    loop_timer_free(s->gather);
    loop_timer_free(s->tick);
    (void)!eventfd_write(s->stop, 1);
    pthread_join(s->thread, NULL);
    redis_free(s->redis);
    close(s->wake);
    close(s->stop);
    s->stopped = true;
    if (!atomic_load(&s->is_posted))
        release(s);
}
