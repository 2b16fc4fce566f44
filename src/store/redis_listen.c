/* SPDX-License-Identifier: Apache-2.0 */
/* One thread with one connection: subscribes, waits for messages, and after a loss subscribes again
 * when the back-off of the connection is over.  An eventfd ends every wait. */
#include "store/redis_listen.h"

#include "base/log.h"
#include "base/thread.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct redis_listen {
    struct redis_listen_config config;
    struct redis *redis;
    struct arena *mem, *names;
    int stop_fd;
    pthread_t thread;
    /* While posted, the task belongs to the loop.  If stopped meanwhile, the loop frees the whole
     * struct. */
    struct loop_task task;
    atomic_bool posted;
    atomic_uint news; /* not handed over yet */
    bool stopped;     /* loop only */
};

static void release(struct redis_listen *l)
{
    arena_free(l->mem);
    arena_free(l->names);
    free(l);
}

static void on_posted(struct loop_task *task)
{
    struct redis_listen *l = container_of(task, struct redis_listen, task);
    atomic_store(&l->posted, false);
    if (l->stopped)
        release(l);
    else
        l->config.on_message(l->config.arg, atomic_exchange(&l->news, 0));
}

static void post(struct redis_listen *l, unsigned news)
{
    atomic_fetch_or(&l->news, news);
    if (!atomic_exchange(&l->posted, true))
        loop_post(l->config.loop, &l->task);
}

/* Returns true when the thread must end. */
static bool rest(struct redis_listen *l, int64_t ms)
{
    struct pollfd stop = {.fd = l->stop_fd, .events = POLLIN};
    return poll(&stop, 1, (int)ms) > 0;
}

static bool subscribe(struct redis_listen *l, struct error *err)
{
    struct str args[] = {STR("SUBSCRIBE"), l->config.channel};
    struct redis_command command = {args, countof(args)};
    struct redis_reply *reply = NULL;
    arena_reset(l->mem);
    return redis_call(l->redis, &command, 1, l->mem, &reply, err) &&
           (reply->kind != REDIS_REFUSAL ||
            error_set(err, ERR_DENIED, "Redis refuses SUBSCRIBE; allow it to this user"));
}

/* Waits for the next message.  Sends a PING on a quiet connection; without a reply the connection
 * is lost. */
static bool receive(struct redis_listen *l, struct redis_reply **ret, struct error *err)
{
    struct str args[] = {STR("PING")};
    struct redis_command ping = {args, 1};
    *ret = NULL;
    arena_reset(l->mem);
    if (!redis_receive(l->redis, l->stop_fd, REDIS_LISTEN_QUIET_MS, l->mem, ret, err))
        return false;
    if (*ret || rest(l, 0))
        return true;
    uint64_t connects = redis_connects(l->redis);
    if (!redis_call(l->redis, &ping, 1, l->mem, ret, err))
        return false;
    return connects == redis_connects(l->redis) ||
           error_set(err, ERR_UNREACHABLE, "the connection was lost");
}

static bool is_message(const struct redis_reply *said)
{
    return said && said->kind == REDIS_LIST && said->n == 3 && said->items[0]->kind == REDIS_TEXT &&
           str_eq(said->items[0]->text, STR("message")) && said->items[2]->kind == REDIS_TEXT;
}

static unsigned news_of(struct str text)
{
    return str_starts(text, STR(REDIS_SAYS_EVENTS)) ? REDIS_EVENTS : REDIS_CHANGES;
}

static void listen_until_lost(struct redis_listen *l, struct error *err)
{
    struct redis_reply *said;
    if (!subscribe(l, err))
        return;
    post(l, REDIS_CHANGES | REDIS_EVENTS);
    while (receive(l, &said, err) && !rest(l, 0)) {
        if (!is_message(said) || str_eq(said->items[2]->text, l->config.own))
            continue;
        post(l, news_of(said->items[2]->text));
        if (rest(l, REDIS_LISTEN_GATHER_MS))
            return;
    }
}

static void *run(void *arg)
{
    struct redis_listen *l = arg;
    bool said = false;
    while (!rest(l, 0)) {
        struct error err = {0};
        uint64_t connects = redis_connects(l->redis);
        listen_until_lost(l, &err);
        if (redis_connects(l->redis) != connects)
            said = false;
        if (!said && err.code)
            log_warn("messages of other nodes do not arrive; what they end is learned from the "
                     "store within a second",
                     LZ("why", err.text));
        said = true;
        int64_t pause = redis_pause_ms(l->redis);
        if (rest(l, pause > REDIS_PAUSE_MIN_MS ? pause : REDIS_PAUSE_MIN_MS))
            break;
    }
    return NULL;
}

bool redis_listen_new(const struct redis_listen_config *config, struct redis_listen **ret,
                      struct error *err)
{
    struct redis_config how = {.target = config->target, .ca_file = config->ca_file};
    struct redis *redis = NULL;
    if (!redis_new(&how, &redis, err))
        return false;
    struct redis_listen *l = xcalloc(1, sizeof(*l));
    l->config = *config;
    l->redis = redis;
    l->mem = arena_new(REDIS_REPLY_BYTES_MAX);
    l->names = arena_new(4096);
    l->config.channel = arena_dup(l->names, config->channel);
    l->config.own = arena_dup(l->names, config->own);
    l->task.fn = on_posted;
    l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->stop_fd < 0 || !thread_start(&l->thread, "redis-listen", run, l))
        die("cannot start a thread for Redis");
    *ret = l;
    return true;
}

void redis_listen_free(struct redis_listen *l)
{
    if (!l)
        return;
    (void)!eventfd_write(l->stop_fd, 1);
    pthread_join(l->thread, NULL);
    redis_free(l->redis);
    close(l->stop_fd);
    l->stopped = true;
    if (!atomic_load(&l->posted))
        release(l);
}
