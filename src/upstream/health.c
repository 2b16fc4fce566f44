/* SPDX-License-Identifier: Apache-2.0 */
/* The health of a server, from its starts and its last requests.  A result with isError is an
 * answer like any other.  Only a request without an answer counts as a failure, unless Holdfast
 * ended it.  Counts are kept by name, so that a reload continues them. */
#include "upstream/upstream_impl.h"

#include "audit/redact.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define RECENT 20u /* last requests that decide the state */
#define RECENT_MASK ((1u << RECENT) - 1)
#define MANY_FAILED 4                /* failures among them: degraded … */
#define FORGIVEN_MS (10 * 60 * 1000) /* … until the last failure is so long ago */
/* Failed requests in a row: down.  A call that was not sent is tried twice and counts twice. */
#define IN_ROW_DOWN 4

struct upstream_tally *upstreams_tally(struct upstreams *s, struct str name)
{
    struct upstream_tally *t = map_get(&s->tallies, name);

    if (t)
        return t;
    t = xcalloc(1, sizeof(*t) + name.n + 1);
    memcpy(t->text, name.p, name.n);
    t->name = str_n(t->text, name.n);
    map_put(&s->tallies, t->name, t);
    return t;
}

void tallies_release(struct upstreams *s)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&s->tallies, &at, &key, &value);)
        free(value);
    map_release(&s->tallies);
}

void upstreams_each_tally(struct upstreams *s, void (*fn)(void *arg, struct upstream_tally *t),
                          void *arg)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&s->tallies, &at, &key, &value);)
        fn(arg, value);
}

void upstream_answered(struct upstream *u)
{
    struct upstream_tally *t = u->tally;

    t->calls++;
    t->last_ok_mono_ms = loop_now_ms(u->set->loop);
    u->recent = u->recent << 1;
    u->n_recent += u->n_recent < RECENT;
    u->failed_in_row = 0;
}

void upstream_failed(struct upstream *u, const struct error *err)
{
    struct upstream_tally *t = u->tally;

    if (u->retired || err->code == ERR_CANCELLED)
        return;
    t->calls++;
    t->failures++;
    t->last_failed_mono_ms = loop_now_ms(u->set->loop);
    redact_cut(NULL, err->text, t->last_error, sizeof(t->last_error));
    u->recent = u->recent << 1 | 1;
    u->n_recent += u->n_recent < RECENT;
    u->failed_in_row++;
}

void upstream_start_failed(struct upstream *u, const struct error *err)
{
    struct upstream_tally *t = u->tally;

    t->failures++;
    t->last_failed_mono_ms = loop_now_ms(u->set->loop);
    redact_cut(NULL, err->text, t->last_error, sizeof(t->last_error));
}

bool upstream_has_failed_start(const struct upstream *u)
{
    return u->failures > 0;
}

const char *health_state_name(enum health_state state)
{
    static const char *const names[] = {[HEALTH_UNKNOWN] = "unknown",
                                        [HEALTH_HEALTHY] = "healthy",
                                        [HEALTH_DEGRADED] = "degraded",
                                        [HEALTH_DOWN] = "down"};
    return names[state];
}

/* Sets ret->state and ret->reason. */
static void judge(const struct upstream *u, struct upstream_health *ret)
{
    int failed = __builtin_popcount(u->recent & RECENT_MASK);
    int64_t now = loop_now_ms(u->set->loop);

    ret->state = HEALTH_DEGRADED;
    if (u->failures && !u->links.n) {
        ret->state = HEALTH_DOWN;
        snprintf(ret->reason, sizeof(ret->reason), "it could not be started (%u in a row)%s",
                 u->failures, u->retry_at_ms > now ? "" : "; the next request tries again");
    } else if (u->failed_in_row >= IN_ROW_DOWN) {
        ret->state = HEALTH_DOWN;
        snprintf(ret->reason, sizeof(ret->reason), "the last %u requests failed", u->failed_in_row);
    } else if (u->failures) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "its last start failed; earlier processes still run");
    } else if (u->failed_in_row) {
        snprintf(ret->reason, sizeof(ret->reason), "the last %u requests failed", u->failed_in_row);
    } else if (u->crashing_until_ms > now) {
        snprintf(ret->reason, sizeof(ret->reason), "its process ended again and again");
    } else if (failed >= MANY_FAILED && now - u->tally->last_failed_mono_ms < FORGIVEN_MS) {
        snprintf(ret->reason, sizeof(ret->reason), "%d of the last %u requests failed", failed,
                 u->n_recent);
    } else if (u->catalog && u->catalog->tools_fault.p) {
        snprintf(ret->reason, sizeof(ret->reason), "its tools cannot be listed; calls go through");
    } else if (u->catalog || u->links.n || u->n_recent) {
        ret->state = HEALTH_HEALTHY;
    } else {
        ret->state = HEALTH_UNKNOWN;
        snprintf(ret->reason, sizeof(ret->reason), "%s",
                 upstream_probing_ms(u) > 0 ? "its first probe has not ended yet"
                                            : "no request has needed it since the start");
    }
}

static int64_t as_life_ms(int64_t base_ms, int64_t mono_ms)
{
    return mono_ms ? clock_life_ms() - (clock_mono_ms() - mono_ms) : base_ms;
}

int64_t tally_last_ok_ms(const struct upstream_tally *t)
{
    return as_life_ms(t->last_ok_ms, t->last_ok_mono_ms);
}

int64_t tally_last_failed_ms(const struct upstream_tally *t)
{
    return as_life_ms(t->last_failed_ms, t->last_failed_mono_ms);
}

struct upstream_health upstream_health(const struct upstream *u)
{
    const struct upstream_tally *t = u->tally;
    struct upstream_health h = {
        .calls = t->calls,
        .failures = t->failures,
        .last_ok_ms = tally_last_ok_ms(t),
        .last_failed_ms = tally_last_failed_ms(t),
        .last_error = t->last_error,
    };

    judge(u, &h);
    return h;
}
