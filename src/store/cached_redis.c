/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis commands of the cache.  Two steps must be atomic and are scripts: look up an entry and
 * leave a lease; fill in a row if the lease is still there.
 *
 * Each exchange with Redis has a deadline.  Every failure is reported as "not done". */
#include "store/cached_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

#include <stdio.h>

#define WARN_EVERY_MS 30000
#define KEY_ROOM (CACHE_PREFIX_MAX + ENTRY_DIGITS + 1)

/* KEYS: epoch, entry.  ARGV: a new epoch, token, lease_ms.  Returns the epoch and the entry's
 * value.  A row or a lease counts only in its own epoch, a tombstone in every epoch.  Without a
 * value the script sets a lease and returns only the epoch. */
static const char look_script[] =
    "local e=redis.call('GET',KEYS[1])\n"
    "if not e then e=ARGV[1] redis.call('SET',KEYS[1],e) end\n"
    "local v=redis.call('GET',KEYS[2])\n"
    "if v and (string.sub(v,1,1)=='T' or string.sub(v,2,17)==e) then return {e,v} end\n"
    "redis.call('SET',KEYS[2],'L'..e..ARGV[2],'PX',ARGV[3])\n"
    "return {e}";
/* KEYS: epoch, entry.  ARGV: epoch, lease, value, ttl_ms.  Returns 1 when it filled in the
 * value. */
static const char fill_script[] = "if redis.call('GET',KEYS[1])~=ARGV[1] or "
                                  "redis.call('GET',KEYS[2])~=ARGV[2] then return 0 end\n"
                                  "redis.call('SET',KEYS[2],ARGV[3],'PX',ARGV[4])\n"
                                  "return 1";
/* KEYS: entry.  ARGV: tombstone.  The tombstone of another writer stays: that writer may not have
 * committed yet. */
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
        log_warn("the cache is not used at the moment; sessions are read from the database",
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

/* Fails if Redis refuses any of the commands. */
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

/* Connects if necessary.  On a new connection deletes the epoch, which voids all earlier
 * entries. */
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

void cache_publish(struct cached_store *s, struct str what)
{
    struct redis_reply *reply;
    struct str args[] = {STR("PUBLISH"), cache_channel(s->cache), what};
    struct redis_command command = {args, countof(args)};
    if (begin(s))
        (void)!call(s, &command, 1, &reply);
}

/* Random hex digits, so that no two tokens are equal. */
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

static struct redis_command look_command(struct cached_store *s, struct entry *e)
{
    char epoch[EPOCH_BYTES];
    new_token(epoch);
    new_token(e->token);
    struct str args[] = {
        STR("EVAL"),
        str_of(look_script),
        STR("2"),
        epoch_key(s),
        key_of(s, &e->name),
        arena_dup(s->mem, str_n(epoch, EPOCH_BYTES)),
        str_n(e->token, EPOCH_BYTES),
        arena_printf(s->mem, "%d", CACHE_LEASE_MS),
    };
    struct str *own = arena_alloc(s->mem, sizeof(args));
    memcpy(own, args, sizeof(args));
    return (struct redis_command){own, countof(args)};
}

static bool look_answer(struct cached_store *s, const struct redis_reply *reply, struct entry *e)
{
    if (reply->kind != REDIS_LIST || reply->n < 1 || reply->items[0]->kind != REDIS_TEXT ||
        reply->items[0]->text.n != EPOCH_BYTES)
        return not_done(s, "an entry of the cache is not ours; give it a prefix of its own");
    memcpy(e->epoch, reply->items[0]->text.p, EPOCH_BYTES);
    e->is_leased = reply->n == 1;
    e->value = reply->n > 1 ? reply->items[1]->text : STR_NONE;
    return true;
}

bool cache_look(struct cached_store *s, struct entry **entries, size_t n)
{
    if (!begin(s))
        return false;
    struct redis_command *commands = arena_alloc(s->mem, n * sizeof(*commands));
    struct redis_reply **replies = arena_alloc(s->mem, n * sizeof(struct redis_reply *));
    for (size_t i = 0; i < n; i++)
        commands[i] = look_command(s, entries[i]);
    bool ok = call(s, commands, n, replies);
    for (size_t i = 0; ok && i < n; i++)
        ok = look_answer(s, replies[i], entries[i]);
    return ok;
}

static struct str joined(struct cached_store *s, char kind, const struct entry *e, struct str rest)
{
    char *bytes = arena_alloc(s->mem, 1 + EPOCH_BYTES + rest.n);
    bytes[0] = kind;
    memcpy(bytes + 1, e->epoch, EPOCH_BYTES);
    memcpy(bytes + 1 + EPOCH_BYTES, rest.p, rest.n);
    return str_n(bytes, 1 + EPOCH_BYTES + rest.n);
}

static struct redis_command keep_command(struct cached_store *s, const struct keep *k)
{
    const struct entry *e = k->entry;
    struct str ttl = arena_printf(s->mem, "%lld", (long long)k->ttl_ms);
    struct str *args = arena_alloc(s->mem, 9 * sizeof(*args));
    if (!e) {
        struct str set[] = {STR("SET"), key_of(s, k->name), k->value, STR("PX"), ttl};
        memcpy(args, set, sizeof(set));
        return (struct redis_command){args, countof(set)};
    }
    struct str fill[] = {STR("EVAL"),
                         str_of(fill_script),
                         STR("2"),
                         epoch_key(s),
                         key_of(s, &e->name),
                         str_n(e->epoch, EPOCH_BYTES),
                         joined(s, 'L', e, str_n(e->token, EPOCH_BYTES)),
                         joined(s, 'R', e, k->value),
                         ttl};
    memcpy(args, fill, sizeof(fill));
    return (struct redis_command){args, countof(fill)};
}

void cache_keep(struct cached_store *s, const struct keep *keeps, size_t n)
{
    if (n == 0 || !begin(s))
        return;
    struct redis_command *commands = arena_alloc(s->mem, n * sizeof(*commands));
    struct redis_reply **replies = arena_alloc(s->mem, n * sizeof(struct redis_reply *));
    for (size_t i = 0; i < n; i++)
        commands[i] = keep_command(s, &keeps[i]);
    (void)!call(s, commands, n, replies);
}

/* Sends the same command for each name.  The key is the argument at index `at`. */
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

bool cache_get_names(struct cached_store *s, const struct entry_name *names, size_t n,
                     struct str *ret_values)
{
    struct redis_reply *reply;
    if (!begin(s))
        return false;
    struct str *args = arena_alloc(s->mem, (n + 1) * sizeof(*args));
    struct redis_command command = {args, n + 1};
    args[0] = STR("MGET");
    for (size_t i = 0; i < n; i++)
        args[i + 1] = key_of(s, &names[i]);
    if (!call(s, &command, 1, &reply))
        return false;
    if (reply->kind != REDIS_LIST || reply->n != n)
        return not_done(s, "Redis gave another number of values than it was asked for");
    for (size_t i = 0; i < n; i++)
        ret_values[i] = reply->items[i]->kind == REDIS_TEXT ? reply->items[i]->text : STR_NONE;
    return true;
}
