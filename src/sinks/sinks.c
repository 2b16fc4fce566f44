/* SPDX-License-Identifier: Apache-2.0 */
/* All sinks of the configuration. */
#include "sinks/sinks.h"

#include "sinks/impl.h"

#include <stdlib.h>

#define FILE_THREADS 4 /* a file system that hangs occupies one of them */

static void on_tick(void *arg)
{
    struct sinks *s = arg;

    for (size_t i = 0; i < s->n; i++)
        sink_tick(s->list[i]);
}

struct sinks *sinks_new(const struct sinks_config *config)
{
    struct sinks *s = xcalloc(1, sizeof(*s));

    sink_meters_start();
    s->config = *config;
    s->node = strndup(config->node.p, config->node.n);
    s->config.node = str_of(s->node);
    s->tick = loop_timer_new(config->loop, on_tick, s);
    return s;
}

static bool is_a_file(const struct config *c)
{
    for (size_t i = 0; i < c->n_sinks; i++)
        if (c->sinks[i].type == SINK_FILE)
            return true;
    return false;
}

/* Removes the sink of the same definition from the list; NULL: there is none. */
static struct sink *keep(struct sink **list, size_t *n, const struct sink_config *c)
{
    for (size_t i = 0; i < *n; i++) {
        struct sink *s = list[i];
        if (!sink_config_equal(s->config, c))
            continue;
        list[i] = list[--*n];
        s->config = c;
        return s;
    }
    return NULL;
}

/* A changed sink gives its lease back before it takes it again: the write lane keeps the order. */
void sinks_apply(struct sinks *s, const struct config *c)
{
    struct sink *kept[CONFIG_SINKS_MAX] = {NULL};

    if (!s->files && is_a_file(c))
        s->files = worker_new_threads(s->config.loop, FILE_THREADS);
    for (size_t i = 0; i < c->n_sinks; i++)
        kept[i] = keep(s->list, &s->n, &c->sinks[i]);
    while (s->n > 0)
        sink_free(s->list[--s->n]);
    for (size_t i = 0; i < c->n_sinks; i++)
        s->list[s->n++] = kept[i] ? kept[i] : sink_new(s, &c->sinks[i]);
    if (s->n)
        loop_timer_start(s->tick, 1000, 1000);
    else
        loop_timer_stop(s->tick);
}

void sinks_flush(struct sinks *s)
{
    for (size_t i = 0; i < s->n; i++)
        sink_flush(s->list[i]);
}

bool sinks_are_flushed(const struct sinks *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i]->state == SINK_SENDING && s->list[i]->batch.n)
            return false;
    return true;
}

void sinks_stop(struct sinks *s)
{
    if (!s)
        return;
    loop_timer_stop(s->tick);
    while (s->n > 0)
        sink_free(s->list[--s->n]);
}

void sinks_free(struct sinks *s)
{
    if (!s)
        return;
    if (s->files)
        worker_free(s->files);
    loop_timer_free(s->tick);
    free(s->node);
    free(s);
}

const char *sink_state_name(enum sink_state state)
{
    static const char *const names[] = {"starting", "standby", "sending", "failing"};
    return names[state];
}

void sinks_each(const struct sinks *s, void (*fn)(void *arg, const struct sink_status *status),
                void *arg)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct sink *one = s->list[i];
        fn(arg, &(struct sink_status){.name = one->name,
                                      .type = one->config->type,
                                      .state = one->state,
                                      .why = one->why,
                                      .delivered = one->meter.n_delivered,
                                      .failures = one->meter.n_failures,
                                      .last_delivery_ms = one->meter.last_delivery_ms,
                                      .lag_ms = sink_lag_ms(one)});
    }
}
