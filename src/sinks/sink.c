/* SPDX-License-Identifier: Apache-2.0 */
/* One sink.
 *
 *   take() adds an event to the batch ──full, or LINGER_MS old──▶ send ──taken──▶ `done` moves on,
 *      ▲                                                          │ ▲              is saved
 *      └──────── reader_resume() ◀────────────────────────────────┘ └─later─┘
 *
 * While a batch is on its way, or fails, the reader waits and holds nothing.  The position that is
 * saved is `done`: behind the last batch that was taken, or, while there is no batch, where the reader
 * is (events that the sink does not want move it too). */
#include "base/clock.h"
#include "base/log.h"
#include "http/target.h"
#include "io/tls.h"
#include "sinks/impl.h"
#include "sinks/syslog.h"
#include "sinks/webhook.h"

#include <stdio.h>
#include <stdlib.h>

#define LINGER_MS 100   /* events gather this long */
#define REMAKE_MS 30000 /* between attempts to make a way out */

/* The state, for people. */

static void set_up(struct sink *s, bool up)
{
    metric_set(s->meter.up, up);
}

static void fail(struct sink *s, const char *why)
{
    if (s->state != SINK_FAILING || strcmp(s->why, why) != 0)
        log_warn("a sink does not take events", LS("sink", s->name), LZ("why", why));
    snprintf(s->why, sizeof(s->why), "%s", why);
    s->state = SINK_FAILING;
    s->meter.n_failures++;
    metric_add(s->meter.failures, 1);
    set_up(s, false);
}

static void succeed(struct sink *s)
{
    if (s->state == SINK_FAILING)
        log_info("the sink takes events again", LS("sink", s->name));
    s->state = SINK_SENDING;
    s->why[0] = '\0';
    set_up(s, true);
}

int64_t sink_lag_ms(const struct sink *s)
{
    int64_t lag = s->batch.n ? clock_wall_ms() - s->batch.at_ms : 0;

    return lag > 0 ? lag : 0;
}

/* The batch. */

static void batch_empty(struct sink *s)
{
    struct buf bytes = s->batch.bytes;

    buf_reset(&bytes);
    if (bytes.cap > 4 * SINK_BATCH_BYTES) { /* large bodies are rare */
        buf_release(&bytes);
        buf_init(&bytes, SIZE_MAX);
    }
    s->is_sealed = false;
    s->batch = (struct sink_batch){.bytes = bytes};
}

static bool is_full(const struct sink *s)
{
    return s->batch.n >= s->most || s->batch.bytes.n >= SINK_BATCH_BYTES;
}

static void add(struct sink *s, const struct sink_item *item, int64_t at_ms)
{
    struct sink_batch *b = &s->batch;

    if (!b->n) {
        b->at_ms = at_ms;
        b->made_ms = clock_wall_ms();
    }
    s->out->type->add(s->out, item, &b->bytes);
    b->n++;
    if (item->row) {
        b->first_id = b->first_id ? b->first_id : item->row->id;
        b->last_id = item->row->id;
    }
}

static void send_batch(struct sink *s)
{
    loop_timer_stop(s->next);
    s->is_lingering = false;
    s->is_sending = s->is_sealed = true;
    s->out->type->send(s->out, &s->batch);
}

static void on_next(void *arg)
{
    struct sink *s = arg;

    if (s->out && s->batch.n && !s->is_sending)
        send_batch(s);
}

static void start_reader(struct sink *s, const struct position *from);

/* The receiver takes no batch of this size: the events come again in smaller ones, and one that is too
 * large alone without its body. */
static void send_less(struct sink *s, const char *why)
{
    struct position from = s->before;

    if (s->batch.n == 1 && (s->leaves_body || !s->config->bodies)) {
        fail(s, "one event alone is larger than the receiver takes; raise its limit");
        loop_timer_start(s->next, http_target_wait_ms(++s->tries, 0), 0);
        return;
    }
    log_info("a sink sends smaller batches", LS("sink", s->name), LZ("why", why ? why : ""));
    s->leaves_body = s->batch.n == 1;
    s->most = s->leaves_body ? 1 : s->batch.n / 2;
    batch_empty(s);
    start_reader(s, &from);
}

static void on_done(void *arg, const struct sink_answer *a)
{
    struct sink *s = arg;

    s->is_sending = false;
    if (a->result == SINK_TOO_LARGE) {
        send_less(s, a->why);
        return;
    }
    if (a->result == SINK_LATER) {
        fail(s, a->why);
        loop_timer_start(s->next, http_target_wait_ms(++s->tries, a->wait_ms), 0);
        return;
    }
    succeed(s);
    s->tries = 0;
    s->leaves_body = false;
    s->meter.n_delivered += s->batch.n;
    s->meter.last_delivery_ms = clock_wall_ms();
    metric_add(s->meter.delivered, s->batch.n);
    metric_set(s->meter.last, s->meter.last_delivery_ms / 1000);
    s->most = s->most < SINK_BATCH_EVENTS / 2 ? 2 * s->most : SINK_BATCH_EVENTS;
    s->done = s->upto;
    s->has_done = true;
    batch_empty(s);
    sink_save(s);
    reader_resume(&s->reader);
}

/* The reader. */

static bool wants(const struct sink *s, const struct event_row *e)
{
    const struct sink_config *c = s->config;

    for (size_t i = 0; i < c->n_tenants; i++)
        if (str_eq(c->tenants[i], e->tenant))
            return true;
    return c->n_tenants == 0;
}

static void add_removed(struct sink *s)
{
    char after[POSITION_TEXT];
    struct sink_item item = {.sink = s->name,
                             .position = str_of(position_format(&s->removed_after, after)),
                             .at_ms = clock_wall_ms()};

    s->has_removed = false;
    add(s, &item, item.at_ms);
}

static bool take(struct reader *r, const struct event_row *e, const struct position *at)
{
    struct sink *s = container_of(r, struct sink, reader);

    if (s->is_sealed || is_full(s))
        return false;
    if (!s->batch.n)
        s->before = *reader_position(r);
    if (wants(s, e)) {
        struct event_row row = *e;
        if (s->has_removed)
            add_removed(s);
        if (s->leaves_body)
            row.body = STR_NONE;
        add(s, &(struct sink_item){.row = &row}, e->at_ms);
    }
    s->upto = *at;
    return true;
}

static bool flush(struct reader *r)
{
    struct sink *s = container_of(r, struct sink, reader);

    if (s->is_sealed)
        return false;
    if (!s->batch.n)
        return true;
    if (is_full(s) || s->is_flushing) {
        send_batch(s);
        return false;
    }
    if (!s->is_lingering)
        loop_timer_start(s->next, LINGER_MS, 0);
    s->is_lingering = true;
    return true;
}

static void removed(struct reader *r)
{
    struct sink *s = container_of(r, struct sink, reader);

    if (s->has_removed || !reader_position(r))
        return;
    s->removed_after = *reader_position(r);
    s->has_removed = true;
    metric_add(s->meter.removed, 1);
    log_warn("retention removed events before a sink had read them", LS("sink", s->name));
}

/* The store was exchanged for another one: everything in it is new to the receiver. */
static void lost(struct reader *r, const struct error *err)
{
    struct sink *s = container_of(r, struct sink, reader);
    const struct position oldest = {.n = 0};

    log_error("the position of a sink is not one of this database; it begins with the oldest event",
              LS("sink", s->name), LZ("why", err->text));
    start_reader(s, &oldest);
}

static const struct reader_events reader_events = {take, flush, removed, lost};

static bool selection_of(const struct sink_config *c, struct arena *mem, struct selection *ret,
                         struct error *err)
{
    static const char *const names[] = {"types", "session", "server", "tool", "outcome"};
    const struct sink_words *words[] = {&c->types, &c->session, &c->server, &c->tool, &c->outcome};

    for (size_t i = 0; i < countof(names); i++) {
        struct str list = STR_NONE;
        for (size_t k = 0; k < words[i]->n; k++)
            list = arena_printf(mem, "%.*s%s%.*s", STR_ARG(list), k ? "," : "",
                                STR_ARG(words[i]->items[k]));
        if (list.n && !selection_set(ret, str_of(names[i]), list, mem, err))
            return false;
    }
    return true;
}

/* One that refers to a stored secret is checked when the sink begins. */
static bool check_secret(const struct sink_config *s, struct error *err)
{
    const struct server_config *to = &s->target;

    return !to->secret.p || to->n_secrets > 0 || webhook_secret_check(to->secret, err);
}

bool sinks_check(const struct config *c, struct error *err)
{
    struct arena *mem = arena_new(1 << 20);
    bool ok = true;

    for (size_t i = 0; i < c->n_sinks && ok; i++) {
        const struct sink_config *s = &c->sinks[i];
        struct selection selection = {.kinds = 0};
        struct tls_context *tls = NULL;
        ok = selection_of(s, mem, &selection, err) &&
             (s->type != SINK_SYSLOG || syslog_url_check(s->target.url, err)) &&
             check_secret(s, err) &&
             (!s->target.tls_ca.p || tls_client_new(s->target.tls_ca.p, &tls, err));
        tls_free(tls);
        if (!ok)
            (void)error_wrap(err, "%.*s%sthe sink \"%.*s\"", STR_ARG(s->at), s->at.p ? ": " : "",
                             STR_ARG(s->name));
    }
    arena_free(mem);
    return ok;
}

static void start_reader(struct sink *s, const struct position *from)
{
    struct arena *mem = arena_new(1 << 20);
    struct reader_config config = {.events = &reader_events,
                                   .visibility = visibility_of_tenant(STR_NONE),
                                   .with_bodies = s->config->bodies};
    struct error err;

    s->has_removed = false;
    if (s->config->n_tenants == 1)
        config.visibility = visibility_of_tenant(s->config->tenants[0]);
    if (selection_of(s->config, mem, &config.selection, &err))
        reader_start(&s->reader, s->home->config.feed, &config, from);
    else
        fail(s, err.text);
    arena_free(mem);
}

/* Beginning and ending. */

static bool make_out(struct sink *s)
{
    static const struct sink_out_type *const types[] = {
        [SINK_FILE] = &sink_file, [SINK_WEBHOOK] = &sink_webhook, [SINK_SYSLOG] = &sink_syslog};
    struct sink_out_config config = {.loop = s->home->config.loop,
                                     .files = s->home->files,
                                     .config = s->config,
                                     .node = str_of(s->home->node),
                                     .done = on_done,
                                     .arg = s};
    struct error err;

    if (types[s->config->type]->make(&config, &s->out, &err))
        return true;
    fail(s, err.text);
    return false;
}

static void ask(struct sink *s)
{
    int64_t now_ms = clock_mono_ms();

    if (s->job || now_ms < s->ask_ms)
        return;
    s->ask_ms = now_ms + sink_lease_ms() / 5;
    if (s->out || make_out(s))
        sink_take(s);
    else
        s->ask_ms = now_ms + REMAKE_MS;
}

void sink_begin(struct sink *s, struct str text)
{
    struct position from = {.n = 0};
    bool is_known = text.p && position_parse(text, &from);

    if (text.p && !is_known)
        log_error("the position of a sink cannot be read; it begins as a new one",
                  LS("sink", s->name));
    s->state = SINK_SENDING;
    s->most = SINK_BATCH_EVENTS;
    s->tries = 0;
    s->leaves_body = false;
    s->done = from;
    s->has_done = is_known || s->config->from == SINK_FROM_START;
    set_up(s, true);
    log_info("the sink sends from here", LS("sink", s->name),
             LS("from", is_known      ? text
                        : s->has_done ? STR("the oldest event")
                                      : STR("now")));
    start_reader(s, s->has_done ? &from : NULL);
    loop_timer_start(s->home->tick, 1, 1000);
}

static void halt(struct sink *s)
{
    reader_stop(&s->reader);
    loop_timer_stop(s->next);
    if (s->out)
        s->out->type->free(s->out);
    s->out = NULL;
    s->is_sending = s->is_lingering = false;
    s->is_taken = false;
    s->has_done = false;
    batch_empty(s);
}

void sink_lose(struct sink *s, const char *why)
{
    log_info("another process may send to the sink now", LS("sink", s->name), LZ("why", why));
    halt(s);
    sink_forget_job(s);
    s->state = SINK_STANDBY;
    s->why[0] = '\0';
    set_up(s, true);
}

/* What the sink does not want moves the position too. */
static void follow_reader(struct sink *s)
{
    const struct position *at = reader_position(&s->reader);

    if (!at || s->batch.n || s->is_sending)
        return;
    if (s->has_done && position_compare(&s->done, at) == POSITION_SAME)
        return;
    s->is_saved = false;
    s->done = *at;
    if (!s->has_done) { /* where "now" is must survive a crash */
        s->has_done = true;
        sink_save(s);
    }
}

void sink_tick(struct sink *s)
{
    int64_t now_ms = clock_mono_ms();

    metric_set(s->meter.lag, sink_lag_ms(s) / 1000);
    if (!s->is_taken) {
        ask(s);
        return;
    }
    if (s->home->config.is_shared && now_ms >= s->lease_until_ms) {
        sink_lose(s, "the lease could not be prolonged in time");
        return;
    }
    follow_reader(s);
    if (!s->has_done) /* the reader looks for it */
        loop_timer_start(s->home->tick, 50, 1000);
    if (s->lease_until_ms - now_ms <= sink_lease_ms() * 2 / 3 && !s->job &&
        (s->home->config.is_shared || !s->is_saved))
        sink_save(s);
}

void sink_flush(struct sink *s)
{
    s->is_flushing = true;
    if (s->out && s->batch.n && !s->is_sending && s->state != SINK_FAILING)
        send_batch(s);
}

static const struct {
    enum metric_kind kind;
    const char *name, *help;
    size_t at;
} meter_rows[] = {
#define CELL(member) offsetof(struct sink_meter, member)
    {METRIC_COUNTER, "holdfast_sink_events_total", "Events that the receiver took.",
     CELL(delivered)},
    {METRIC_COUNTER, "holdfast_sink_failures_total", "Batches that it did not take, each try.",
     CELL(failures)},
    {METRIC_COUNTER, "holdfast_sink_gaps_total",
     "Times that retention removed events before the sink had read them.", CELL(removed)},
    {METRIC_GAUGE, "holdfast_sink_up",
     "0: the receiver did not take the last batch of this process.", CELL(up)},
    {METRIC_GAUGE, "holdfast_sink_lag_seconds",
     "Age of the oldest event that waits for the receiver.", CELL(lag)},
    {METRIC_GAUGE, "holdfast_sink_last_delivery_timestamp_seconds",
     "When this process last delivered, in seconds since 1970.", CELL(last)},
#undef CELL
};

static struct metric *meter_metric(size_t i)
{
    return metric_register(meter_rows[i].kind, meter_rows[i].name, meter_rows[i].help, "sink", 64);
}

void sink_meters_start(void)
{
    for (size_t i = 0; i < countof(meter_rows); i++)
        (void)meter_metric(i);
}

static void meter_start(struct sink *s)
{
    for (size_t i = 0; i < countof(meter_rows); i++)
        *(struct metric_cell **)(void *)((char *)&s->meter + meter_rows[i].at) =
            metric_cell(meter_metric(i), &s->name, 1);
    set_up(s, true);
}

struct sink *sink_new(struct sinks *home, const struct sink_config *config)
{
    struct sink *s = xcalloc(1, sizeof(*s));

    s->home = home;
    s->config = config;
    s->name = str_of(strndup(config->name.p, config->name.n));
    s->next = loop_timer_new(home->config.loop, on_next, s);
    buf_init(&s->batch.bytes, SIZE_MAX);
    meter_start(s);
    ask(s);
    return s;
}

void sink_free(struct sink *s)
{
    if (s->is_taken)
        sink_release(s);
    sink_forget_job(s);
    halt(s);
    metric_set(s->meter.lag, 0);
    set_up(s, true);
    loop_timer_free(s->next);
    buf_release(&s->batch.bytes);
    free((char *)s->name.p);
    free(s);
}
