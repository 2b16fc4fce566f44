/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache says to Redis.  What must not be torn apart is a script there: looking and leaving
 * a lease, and filling in where the lease still stands.
 *
 * Nobody waits for Redis longer than one deadline per exchange, and whatever goes wrong is told as
 * "not done". */
#include "store/cached_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

#include <stdio.h>

#define WARN_EVERY_MS 30000
#define KEY_ROOM (CACHE_PREFIX_MAX + ENTRY_DIGITS + 1)

/* epoch, entry | a new epoch, token, lease_ms → epoch, what the entry holds.  A lease counts only
 * in its epoch; a tombstone in every one. */
static const char look_script[] =
    "local e=redis.call('GET',KEYS[1])\n"
    "if not e then e=ARGV[1] redis.call('SET',KEYS[1],e) end\n"
    "local v=redis.call('GET',KEYS[2])\n"
    "if v and (string.sub(v,1,1)=='T' or string.sub(v,2,17)==e) then return {e,v} end\n"
    "redis.call('SET',KEYS[2],'L'..e..ARGV[2],'PX',ARGV[3])\n"
    "return {e}";
/* epoch, entry | epoch, lease, value, ttl_ms → 1: filled in. */
static const char fill_script[] = "if redis.call('GET',KEYS[1])~=ARGV[1] or "
                                  "redis.call('GET',KEYS[2])~=ARGV[2] then return 0 end\n"
                                  "redis.call('SET',KEYS[2],ARGV[3],'PX',ARGV[4])\n"
                                  "return 1";
/* entry | tombstone.  That of another writer stays: its commit may be still to come. */
static const char lift_script[] =
    "local v=redis.call('GET',KEYS[1])\n"
    "if v and (v==ARGV[1] or string.sub(v,1,1)~='T') then redis.call('DEL',KEYS[1]) end\n"
    "return 1";

static bool not_done(struct cached_store *s, const char *why)
{
    int64_t now = clock_mono_ms(), last = atomic_load(&s->cache->warned_ms);
    metric_add(s->cache->errors, 1);
    if ((last == 0 || now - last >= WARN_EVERY_MS) &&
        atomic_compare_exchange_strong(&s->cache->warned_ms, &last, now ? now : 1))
        log_warn("the cache is not used just now; sessions are read from the database",
                 LZ("why", why));
    return false;
}

static struct str key_of(struct cached_store *s, const struct entry_name *name)
{
    return arena_printf(s->mem, "%.*s%.*s", STR_ARG(s->cache->config.prefix), ENTRY_DIGITS,
                        name->digits);
}

static struct str epoch_key(struct cached_store *s)
{
    return arena_printf(s->mem, "%.*sepoch", STR_ARG(s->cache->config.prefix));
}

/* All or nothing: a refusal of one is a failure. */
static bool call(struct cached_store *s, const struct redis_command *commands, size_t n,
                 struct redis_reply **ret)
{
    struct error err;
    if (!redis_call(s->redis, commands, n, s->mem, ret, &err))
        return not_done(s, err.text);
    for (size_t i = 0; i < n; i++)
        if (ret[i]->kind == REDIS_REFUSAL) {
            char why[128];
            log_escape_cut(why, sizeof(why), ret[i]->text);
            return not_done(s, why);
        }
    return true;
}

static bool delete_epoch(struct cached_store *s)
{
    struct str args[] = {STR("DEL"), epoch_key(s)};
    struct redis_command command = {args, 2};
    struct redis_reply *reply;
    return call(s, &command, 1, &reply);
}

/* Connected, and all of before forgotten when this connection is a new one. */
static bool begin(struct cached_store *s)
{
    struct error err;
    arena_reset(s->mem);
    if (!redis_ready(s->redis, &err))
        return not_done(s, err.text);
    if (s->connects == redis_connects(s->redis))
        return true;
    if (!delete_epoch(s))
        return false;
    s->connects = redis_connects(s->redis);
    return true;
}

bool cache_forget_all(struct cached_store *s)
{
    return begin(s) && delete_epoch(s);
}

void cache_publish(struct cached_store *s)
{
    struct redis_reply *reply;
    struct str args[] = {STR("PUBLISH"), cache_channel(s->cache), STR("ask")};
    struct redis_command command = {args, countof(args)};
    if (begin(s))
        (void)!call(s, &command, 1, &reply);
}

/* Random, and as text, so that it never looks like another. */
static void new_token(char ret[EPOCH_BYTES])
{
    char text[EPOCH_BYTES + 1];
    uint8_t bytes[EPOCH_BYTES / 2];
    random_bytes(bytes, sizeof(bytes));
    hex_encode(bytes, sizeof(bytes), text);
    memcpy(ret, text, EPOCH_BYTES);
}

void cache_new_tombstone(struct cached_store *s)
{
    s->tombstone[0] = 'T';
    new_token(s->tombstone + 1);
}

bool cache_look(struct cached_store *s, const struct entry_name *name, struct str *ret_value,
                struct lease *ret_lease)
{
    struct lease lease = {.is_ours = true};
    char epoch[EPOCH_BYTES];
    struct redis_reply *reply;
    if (!begin(s))
        return false;
    new_token(epoch);
    new_token(lease.token);
    struct str args[] = {
        STR("EVAL"),
        str_of(look_script),
        STR("2"),
        epoch_key(s),
        key_of(s, name),
        str_n(epoch, EPOCH_BYTES),
        str_n(lease.token, EPOCH_BYTES),
        arena_printf(s->mem, "%d", CACHE_LEASE_MS),
    };
    struct redis_command command = {args, countof(args)};
    if (!call(s, &command, 1, &reply))
        return false;
    if (reply->kind != REDIS_LIST || reply->n < 1 || reply->items[0]->kind != REDIS_TEXT ||
        reply->items[0]->text.n != EPOCH_BYTES)
        return not_done(s, "an entry of the cache is not ours; give it a prefix of its own");
    memcpy(lease.epoch, reply->items[0]->text.p, EPOCH_BYTES);
    lease.is_ours = reply->n == 1;
    *ret_value = reply->n > 1 ? reply->items[1]->text : STR_NONE;
    *ret_lease = lease;
    return true;
}

bool cache_fill(struct cached_store *s, const struct entry_name *name, const struct lease *lease,
                struct str value, int64_t ttl_ms)
{
    struct redis_reply *reply;
    if (!lease->is_ours || ttl_ms <= 0 || !begin(s))
        return false;
    struct str epoch = str_n(lease->epoch, EPOCH_BYTES);
    struct str args[] = {
        STR("EVAL"),
        str_of(fill_script),
        STR("2"),
        epoch_key(s),
        key_of(s, name),
        epoch,
        arena_printf(s->mem, "L%.*s%.*s", STR_ARG(epoch), EPOCH_BYTES, lease->token),
        arena_printf(s->mem, "R%.*s", STR_ARG(epoch)),
        arena_printf(s->mem, "%lld", (long long)ttl_ms),
    };
    char *bytes = arena_alloc(s->mem, 1 + EPOCH_BYTES + value.n);
    memcpy(bytes, args[7].p, 1 + EPOCH_BYTES);
    memcpy(bytes + 1 + EPOCH_BYTES, value.p, value.n);
    args[7] = str_n(bytes, 1 + EPOCH_BYTES + value.n);
    struct redis_command command = {args, countof(args)};
    return call(s, &command, 1, &reply) && reply->number == 1;
}

/* The same command for each name, its key being the argument at `at`. */
static bool call_for_each(struct cached_store *s, const struct entry_name *names, size_t n,
                          const struct str *args, size_t n_args, size_t at)
{
    struct redis_command *commands = arena_alloc(s->mem, n * sizeof(*commands));
    struct redis_reply **replies = arena_alloc(s->mem, n * sizeof(struct redis_reply *));
    for (size_t i = 0; i < n; i++) {
        struct str *own = arena_alloc(s->mem, n_args * sizeof(*own));
        memcpy(own, args, n_args * sizeof(*own));
        own[at] = key_of(s, &names[i]);
        commands[i] = (struct redis_command){own, n_args};
    }
    return call(s, commands, n, replies);
}

bool cache_bury(struct cached_store *s, const struct entry_name *names, size_t n, int64_t ttl_ms)
{
    if (!begin(s))
        return false;
    struct str args[] = {STR("SET"), STR_NONE, str_n(s->tombstone, sizeof(s->tombstone)), STR("PX"),
                         arena_printf(s->mem, "%lld", (long long)ttl_ms)};
    return call_for_each(s, names, n, args, countof(args), 1);
}

bool cache_lift(struct cached_store *s, const struct entry_name *names, size_t n)
{
    if (!begin(s))
        return false;
    struct str args[] = {STR("EVAL"), str_of(lift_script), STR("1"), STR_NONE,
                         str_n(s->tombstone, sizeof(s->tombstone))};
    return call_for_each(s, names, n, args, countof(args), 3);
}

bool cache_drop(struct cached_store *s, const struct entry_name *names, size_t n)
{
    if (!begin(s))
        return false;
    struct str args[] = {STR("DEL"), STR_NONE};
    return call_for_each(s, names, n, args, countof(args), 1);
}

bool cache_get_name(struct cached_store *s, const struct entry_name *name, struct str *ret_value)
{
    struct redis_reply *reply;
    if (!begin(s))
        return false;
    struct str args[] = {STR("GET"), key_of(s, name)};
    struct redis_command command = {args, 2};
    if (!call(s, &command, 1, &reply))
        return false;
    *ret_value = reply->kind == REDIS_TEXT ? reply->text : STR_NONE;
    return true;
}

void cache_put_name(struct cached_store *s, const struct entry_name *name, struct str value,
                    int64_t ttl_ms)
{
    struct redis_reply *reply;
    if (ttl_ms <= 0 || !begin(s))
        return;
    struct str args[] = {STR("SET"), key_of(s, name), value, STR("PX"),
                         arena_printf(s->mem, "%lld", (long long)ttl_ms)};
    struct redis_command command = {args, countof(args)};
    (void)!call(s, &command, 1, &reply);
}
