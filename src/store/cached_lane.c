/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis lane: a thread that announces the writes of the write lane, in their order.  Each
 * exchange has the deadline of the cache, and after a failure the connection's back-off makes the
 * exchanges fail at once.  So the queue empties quickly even while Redis hangs. */
#include "store/cached_impl.h"

#include "base/clock.h"
#include "base/thread.h"

#include <stdlib.h>
#include <time.h>

/* News that wait while one exchange reaches its deadline. */
#define QUEUE_MAX 256
/* Nodes are told of committed events at most this often; the last commit is always told of. */
#define EVENTS_GATHER_US 10000

struct cache_lane {
    struct cached_store *redis; /* used by the thread only */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct cache_message *first, **end;
    size_t n;
    bool has_events;       /* events were committed that no message tells of yet */
    int64_t events_due_us; /* clock_mono_us(): not before then */
    bool is_stopping;
};

static bool events_are_due(const struct cache_lane *lane)
{
    return lane->has_events && clock_mono_us() >= lane->events_due_us;
}

static void wait_for_news(struct cache_lane *lane)
{
    if (!lane->has_events) {
        pthread_cond_wait(&lane->wake, &lane->lock);
        return;
    }
    struct timespec until = {.tv_sec = lane->events_due_us / 1000000,
                             .tv_nsec = lane->events_due_us % 1000000 * 1000};
    pthread_cond_clockwait(&lane->wake, &lane->lock, CLOCK_MONOTONIC, &until);
}

/* The oldest news.  NULL: *ret_events, or the lane stops and all were sent. */
static struct cache_message *take(struct cache_lane *lane, bool *ret_events)
{
    pthread_mutex_lock(&lane->lock);
    while (!lane->first && !lane->is_stopping && !events_are_due(lane))
        wait_for_news(lane);
    struct cache_message *message = lane->first;
    *ret_events = !message && !lane->is_stopping;
    if (*ret_events) {
        lane->has_events = false;
        lane->events_due_us = clock_mono_us() + EVENTS_GATHER_US;
    }
    if (message) {
        lane->first = message->next;
        lane->n--;
        if (!lane->first)
            lane->end = &lane->first;
    }
    pthread_mutex_unlock(&lane->lock);
    return message;
}

static void *lane_main(void *arg)
{
    struct cache_lane *lane = arg;
    for (;;) {
        bool events;
        struct cache_message *message = take(lane, &events);
        if (events)
            cache_publish(lane->redis, cache_events_text(lane->redis->cache));
        else if (!message)
            return NULL;
        else
            cache_message_publish(lane->redis, message);
        free(message);
    }
}

void cache_lane_tell_events(struct cache_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    bool is_new = !lane->has_events;
    lane->has_events = true;
    if (is_new)
        pthread_cond_signal(&lane->wake);
    pthread_mutex_unlock(&lane->lock);
}

bool cache_lane_put(struct cache_lane *lane, struct cache_message *message)
{
    pthread_mutex_lock(&lane->lock);
    bool fits = lane->n < QUEUE_MAX;
    if (fits) {
        message->next = NULL;
        *lane->end = message;
        lane->end = &message->next;
        lane->n++;
        pthread_cond_signal(&lane->wake);
    }
    pthread_mutex_unlock(&lane->lock);
    return fits;
}

bool cache_lane_new(struct cache *c, struct cache_lane **ret, struct error *err)
{
    struct cached_store *redis = NULL;
    if (!cached_store_new(c, &redis, err))
        return false;
    struct cache_lane *lane = xcalloc(1, sizeof(*lane));
    lane->redis = redis;
    lane->end = &lane->first;
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->wake, NULL);
    if (!thread_start(&lane->thread, "store-redis", lane_main, lane))
        die("cannot start the thread store-redis; raise the limit of processes (ulimit -u)");
    *ret = lane;
    return true;
}

void cache_lane_free(struct cache_lane *lane)
{
    if (!lane)
        return;
    pthread_mutex_lock(&lane->lock);
    lane->is_stopping = true;
    pthread_cond_signal(&lane->wake);
    pthread_mutex_unlock(&lane->lock);
    pthread_join(lane->thread, NULL);
    pthread_mutex_destroy(&lane->lock);
    pthread_cond_destroy(&lane->wake);
    cached_store_free(lane->redis);
    free(lane);
}
