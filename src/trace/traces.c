/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of batches and its one sender.
 *
 *   traces_add() ──▶ open batch ──full, or a second old──▶ queue ──▶ POST ──2xx──▶ freed
 *                                                            ▲          │
 *                                                            └──wait────┘ 429, 502, 503, 504,
 *                                                                         no answer
 *
 * Any other status drops the batch, because another try would get the same answer (OTLP/HTTP
 * Response).  A partial success is never tried again either: its rejected spans count as dropped. */
#include "trace/traces.h"

#include "base/clock.h"
#include "base/log_quiet.h"
#include "base/metric.h"
#include "base/secret.h"
#include "config/config.h"
#include "http/target.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH "/v1/traces"
#define CLOCK_SLACK_US 20000

struct batch {
    struct buf spans;
    unsigned n;
};

struct traces {
    struct loop *loop;
    struct str instance;
    bool is_on;
    uint8_t definition[32];
    struct http_target *target;          /* NULL: off, or its secret is missing */
    struct str path;                     /* the target of the requests */
    struct batch *queue[TRACES_BATCHES]; /* oldest first; the last one is open */
    size_t n_queue;
    bool last_is_open;
    struct loop_timer *timer; /* runs while there is a span to send and no request under way */
    unsigned tries;           /* of the oldest batch */
    bool is_flushing;
    char why[sizeof(((struct error *)0)->text)]; /* empty: the last batch was taken */
    int64_t wall_offset_us;
    struct metric_cell *cells[3], *waiting; /* by enum fate */
};

enum fate { FATE_SENT, FATE_REJECTED, FATE_DROPPED };

static void count(struct traces *t, enum fate fate, uint64_t n)
{
    metric_add(t->cells[fate], (int64_t)n);
}

static void on_timer(void *arg);

struct traces *traces_new(struct loop *loop, struct str instance)
{
    static const char *const fates[] = {"sent", "rejected", "dropped"};
    struct traces *t = xcalloc(1, sizeof(*t));
    struct metric *spans =
        metric_register(METRIC_COUNTER, "holdfast_trace_spans_total",
                        "Spans that the collector took (sent), that it rejected, and that were "
                        "dropped because it did not answer or the queue was full.",
                        "outcome", 4);
    struct metric *waiting = metric_register(METRIC_GAUGE, "holdfast_trace_queue_spans",
                                             "Spans that wait for the collector.", "", 1);

    t->loop = loop;
    t->instance = str_of(strndup(instance.p, instance.n));
    t->timer = loop_timer_new(loop, on_timer, t);
    for (size_t i = 0; i < countof(fates); i++) {
        struct str label = str_of(fates[i]);
        t->cells[i] = metric_cell(spans, &label, 1);
    }
    t->waiting = metric_cell(waiting, NULL, 0);
    return t;
}

static void batch_free(struct batch *b)
{
    buf_release(&b->spans);
    free(b);
}

static void drop_batch(struct traces *t, size_t i)
{
    struct batch *b = t->queue[i];

    t->n_queue--;
    memmove(t->queue + i, t->queue + i + 1, (t->n_queue - i) * sizeof(struct batch *));
    if (i == t->n_queue)
        t->last_is_open = false;
    metric_add(t->waiting, -(int64_t)b->n);
    batch_free(b);
}

static void lose_batch(struct traces *t, size_t i, enum fate fate)
{
    count(t, fate, t->queue[i]->n);
    drop_batch(t, i);
}

static void set_path(struct traces *t)
{
    struct str path = t->target ? http_target_path(t->target) : STR_NONE;

    free((char *)t->path.p);
    t->path = STR_NONE;
    if (!path.p || str_ends(path, STR(PATH)))
        return;
    char *whole = xmalloc(path.n + sizeof(PATH));
    size_t n = path.n - (path.n && path.p[path.n - 1] == '/');
    memcpy(whole, path.p, n);
    memcpy(whole + n, PATH, sizeof(PATH));
    t->path = str_of(whole);
}

void traces_free(struct traces *t)
{
    if (!t)
        return;
    while (t->n_queue)
        drop_batch(t, 0);
    http_target_free(t->target);
    t->target = NULL;
    set_path(t);
    loop_timer_free(t->timer);
    free((char *)t->instance.p);
    free(t);
}

static void say_why(struct traces *t, const char *why)
{
    static struct log_quiet quiet;

    snprintf(t->why, sizeof(t->why), "%s", why);
    log_warn_quietly(&quiet, "the collector of traces does not take spans", LZ("why", t->why));
}

static struct http_target *target_of(struct traces *t, const struct server_config *to)
{
    struct http_target_config config = {.url = to->url, .ca = to->tls_ca};
    struct http_target *target = NULL;
    struct error err;
    struct buf lines;

    buf_init_secret(&lines, 64 * 1024);
    for (size_t i = 0; i < to->n_headers; i++) {
        buf_addstr(&lines, to->headers[i].name);
        buf_addz(&lines, ": ");
        buf_addstr(&lines, to->headers[i].value);
        buf_addz(&lines, "\r\n");
    }
    buf_addz(&lines, "Content-Type: application/x-protobuf\r\n");
    config.lines = buf_str(&lines);
    if (to->refusal.p) {
        snprintf(t->why, sizeof(t->why), "%.*s", STR_ARG(to->refusal));
        log_warn("traces are not sent", LS("why", to->refusal));
    } else if (!http_target_new(t->loop, &config, &target, &err)) {
        snprintf(t->why, sizeof(t->why), "%s", err.text);
        log_warn("traces are not sent", LZ("why", err.text));
    }
    buf_release(&lines);
    return target;
}

static void sleep_ms(struct traces *t, int64_t ms)
{
    loop_timer_start(t->timer, ms > 0 ? ms : 1, 0);
}

void traces_apply(struct traces *t, const struct server_config *to)
{
    if (to && t->is_on && t->target &&
        memcmp(to->definition, t->definition, sizeof(t->definition)) == 0)
        return;
    http_target_free(t->target);
    loop_timer_stop(t->timer);
    t->target = NULL;
    t->is_on = to != NULL;
    t->tries = 0;
    t->why[0] = '\0';
    while (!to && t->n_queue)
        lose_batch(t, 0, FATE_DROPPED);
    if (to) {
        t->target = target_of(t, to);
        memcpy(t->definition, to->definition, sizeof(t->definition));
    }
    set_path(t);
    if (t->target && t->n_queue)
        sleep_ms(t, 0);
}

bool traces_are_on(const struct traces *t)
{
    return t && t->target;
}

/* Spans of one trace must agree, so the offset is kept until the clock was set. */
int64_t traces_wall_us(struct traces *t, int64_t mono_us)
{
    int64_t offset = clock_wall_us() - clock_mono_us(), moved = offset - t->wall_offset_us;

    if (moved > CLOCK_SLACK_US || moved < -CLOCK_SLACK_US)
        t->wall_offset_us = offset;
    return mono_us + t->wall_offset_us;
}

/* The open batch.  In a full queue it takes the place of the oldest batch that is not on its way. */
static struct batch *open_batch(struct traces *t)
{
    if (t->last_is_open)
        return t->queue[t->n_queue - 1];
    if (t->n_queue == TRACES_BATCHES)
        lose_batch(t, http_target_is_busy(t->target), FATE_DROPPED);
    struct batch *b = xcalloc(1, sizeof(*b));
    buf_init(&b->spans, SIZE_MAX);
    t->queue[t->n_queue++] = b;
    t->last_is_open = true;
    return b;
}

void traces_add(struct traces *t, const struct span *s)
{
    struct batch *b = open_batch(t);

    if (!b->n && t->n_queue == 1)
        sleep_ms(t, t->is_flushing ? 0 : TRACES_DELAY_MS);
    span_write(s, &b->spans);
    b->n++;
    metric_add(t->waiting, 1);
    if (b->n < TRACES_BATCH_SPANS && b->spans.n < TRACES_BATCH_BYTES)
        return;
    t->last_is_open = false;
    if (t->n_queue == 1)
        sleep_ms(t, 0);
}

/* A partial success is final.  The message of the collector goes to the log, which escapes it. */
static void take_success(struct traces *t, const struct target_answer *a)
{
    static struct log_quiet quiet;
    int64_t rejected = 0, n = t->queue[0]->n;
    struct str message = STR_NONE;

    if (!a->body.p || !span_read_response(a->body, &rejected, &message))
        rejected = 0;
    rejected = rejected < n ? rejected : n;
    if (rejected || message.n)
        log_warn_quietly(&quiet, "the collector of traces rejected spans", LI("spans", rejected),
                         LS("message", str_cut(message, SPAN_TEXT_MAX)));
    count(t, FATE_REJECTED, (uint64_t)rejected);
    count(t, FATE_SENT, (uint64_t)(n - rejected));
    t->why[0] = '\0';
    drop_batch(t, 0);
}

/* The statuses after which OTLP allows another try. */
static bool may_try_again(const struct target_answer *a)
{
    return a->status == 0 || a->status == 429 || (a->status >= 502 && a->status <= 504);
}

static void on_answer(void *arg, const struct target_answer *a)
{
    struct traces *t = arg;
    int64_t wait = 0;

    if (a->result == TARGET_TAKEN) {
        take_success(t, a);
        t->tries = 0;
    } else if (may_try_again(a)) {
        say_why(t, a->why);
        wait = http_target_wait_ms(++t->tries, a->retry_after_ms);
    } else {
        say_why(t, a->why);
        lose_batch(t, 0, FATE_DROPPED);
        t->tries = 0;
    }
    if (!t->n_queue)
        return;
    if (!wait && t->n_queue == 1 && t->last_is_open && !t->is_flushing)
        wait = TRACES_DELAY_MS;
    sleep_ms(t, wait);
}

static void on_timer(void *arg)
{
    struct traces *t = arg;
    struct buf head;

    if (!t->n_queue || !t->target || http_target_is_busy(t->target))
        return;
    if (t->n_queue == 1)
        t->last_is_open = false;
    struct batch *b = t->queue[0];
    buf_init(&head, 4096);
    span_write_head(STR(HOLDFAST_VERSION), t->instance, b->spans.n, &head);
    struct iovec parts[] = {{head.p, head.n}, {b->spans.p, b->spans.n}};
    http_target_post(t->target, t->path, STR_NONE, parts, countof(parts), on_answer, t);
    buf_release(&head);
}

void traces_flush(struct traces *t)
{
    t->is_flushing = true;
    if (t->target && t->n_queue && !t->why[0])
        sleep_ms(t, 0);
}

bool traces_are_flushed(const struct traces *t)
{
    return !t->target || !t->n_queue || t->why[0];
}
