/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: every event once, in the order of each writer, whatever they meet on the way. */
#include "audit_db.h"

#include "audit/audit.h"
#include "audit/event_id.h"
#include "base/log.h"
#include "feeds/page.h"
#include "feeds/reader.h"
#include "feeds/store/family.h"
#include "retention/store/family.h"
#include "store/memory_impl.h"
#include "store/store_impl.h"

#define SEEN_MAX 20000
#define WRITERS_MAX 120

__attribute__((constructor)) static void register_feeds(void)
{
    store_family_add(&feeds_store);
    memory_family_add(&feeds_memory);
    store_family_add(&retention_store);
    memory_family_add(&retention_memory);
}

/* A node with real lanes on a memory store, which other writers use too. */
struct rig {
    struct audit_db db;
    struct store *failing;
    struct loop *loop;
    struct lanes *lanes;
    struct audit *audit;
    struct feed *feed;
    int jobs;
};

static void rig_start(struct rig *r, bool is_shared)
{
    *r = (struct rig){0};
    log_setup(LOG_ERROR + 1, 0);
    audit_db_open(&r->db, true);
    r->failing = store_failing(r->db.store);
    r->loop = loop_new();
    struct lanes_config lanes = {.write = r->failing,
                                 .lookup = r->failing,
                                 .query = r->failing,
                                 .hook = chain_hook(r->db.chain),
                                 .batch_fill_us = 1000};
    r->lanes = lanes_new(r->loop, &lanes);
    struct audit_config config = {.lanes = r->lanes,
                                  .loop = r->loop,
                                  .chain = r->db.chain,
                                  .writer = r->db.writer,
                                  .max_body = 16384};
    r->audit = audit_new(&config);
    struct feed_config feed = {.loop = r->loop,
                               .lanes = r->lanes,
                               .audit = r->audit,
                               .writer = r->db.writer,
                               .is_shared = is_shared};
    r->feed = feed_new(&feed);
}

static void rig_stop(struct rig *r)
{
    lanes_free(r->lanes);
    feed_free(r->feed);
    audit_free(r->audit);
    loop_free(r->loop);
    r->db.store = NULL; /* closed with the lanes */
    audit_db_close(&r->db);
}

struct own_write {
    struct write_job job;
    struct rig *rig;
    struct event_row rows[8];
    struct store_op ops[8];
};

static void on_written(struct write_job *job)
{
    struct own_write *w = container_of(job, struct own_write, job);
    assert_true(job->ok);
    w->rig->jobs--;
    free(w);
}

static void write_own(struct rig *r, size_t n, struct str tenant, struct str body)
{
    struct own_write *w = calloc(1, sizeof(*w));
    assert_true(n <= countof(w->rows));
    w->rig = r;
    for (size_t i = 0; i < n; i++) {
        w->rows[i] = audit_db_event(i % 2 ? EVENT_OUTCOME : EVENT_NOTE, tenant);
        if (body.p)
            audit_db_body(&w->rows[i], body);
        w->ops[i] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &w->rows[i]};
    }
    w->job = (struct write_job){.ops = w->ops, .n = n, .done = on_written};
    r->jobs++;
    assert_true(lane_write(r->lanes, &w->job));
}

static void write_many(struct rig *r, size_t n)
{
    for (; n > 0; n -= n < 8 ? n : 8)
        write_own(r, n < 8 ? n : 8, STR("default"), STR_NONE);
    while (r->jobs)
        loop_turn(r->loop);
}

/* A writer of another node. */
struct other {
    struct rig *rig;
    struct audit_db db;
};

static void other_start(struct other *o, struct rig *r)
{
    char path[128], uuid[37];
    static int starts;
    *o = (struct other){.rig = r, .db = r->db};
    snprintf(uuid, sizeof(uuid), "11111111-0000-7000-8000-%012d", ++starts);
    struct writer_row row = {.uuid = str_of(uuid),
                             .node = STR("other"),
                             .started_ms = clock_life_ms(),
                             .lease_until_ms = clock_life_ms() + 15000};
    must(store_writer_start(r->failing, &row, false, &must_err));
    o->db.store = r->failing;
    o->db.writer = row.number;
    must(chain_open(audit_db_path(&o->db, "audit.key", path), true, row.number, &o->db.chain,
                    &must_err));
    must(chain_load(o->db.chain, o->db.store, &must_err));
}

static void other_write(struct other *o, size_t n)
{
    struct event_row events[8], *list[8];
    for (size_t i = 0; i < n; i++) {
        events[i] = audit_db_event(EVENT_NOTE, STR("default"));
        list[i] = &events[i];
    }
    audit_db_write(&o->db, list, n);
    feed_nudge(o->rig->feed);
}

static void other_end(struct other *o, int64_t ended_ms)
{
    struct writer_row row = {.number = o->db.writer, .ended_ms = ended_ms};
    struct store_op op = {.kind = OP_WRITER_END, .writer = &row};
    must(store_write(o->db.store, &op, 1, &must_err));
    chain_free(o->db.chain);
    o->db.chain = NULL;
}

/* A consumer that checks the order of what it takes. */
struct consumer {
    struct reader reader;
    struct rig *rig;
    struct position at; /* after the last event */
    int64_t last[WRITERS_MAX];
    size_t n, room; /* room: takes this many more, then refuses */
    size_t flushes, refused, removed, bodies;
    bool acks, is_lost, stops;
    unsigned since_flush;
};

static bool take(struct reader *r, const struct event_row *e, const struct position *at)
{
    struct consumer *c = container_of(r, struct consumer, reader);
    int64_t writer = event_id_writer(e->id);
    if (c->room == 0) {
        c->refused++;
        return false;
    }
    assert_true(writer < WRITERS_MAX);
    assert_int_equal(event_id_count(e->id), event_id_count(c->last[writer]) + 1);
    c->last[writer] = e->id;
    assert_true(position_is_before(&c->at, e->id));
    assert_false(position_is_before(at, e->id));
    c->at = *at;
    c->since_flush++;
    if (e->kind == EVENT_ANCHOR) /* comes once a second, also into a test that takes long */
        return true;
    c->n++;
    c->room--;
    c->bodies += e->body.p != NULL;
    if (c->stops)
        reader_stop(r);
    return true;
}

static bool flush(struct reader *r)
{
    struct consumer *c = container_of(r, struct consumer, reader);
    assert_true(c->since_flush > 0);
    c->since_flush = 0;
    c->flushes++;
    return !c->acks;
}

static void removed(struct reader *r)
{
    container_of(r, struct consumer, reader)->removed++;
}

static void lost(struct reader *r, const struct error *err)
{
    struct consumer *c = container_of(r, struct consumer, reader);
    assert_int_equal(err->code, ERR_BAD_INPUT);
    c->is_lost = true;
    reader_stop(r);
}

static const struct reader_events events = {take, flush, removed, lost};

static struct consumer *consumer_new(struct rig *r)
{
    struct consumer *c = calloc(1, sizeof(*c));
    c->rig = r;
    c->room = SIZE_MAX;
    return c;
}

static void consumer_start(struct consumer *c, const struct position *from)
{
    struct reader_config config = {.events = &events};
    c->since_flush = 0;
    reader_start(&c->reader, c->rig->feed, &config, from);
}

static void consumer_free(struct consumer *c)
{
    reader_stop(&c->reader);
    free(c);
}

#define turn_until(r, condition)                                                                   \
    do {                                                                                           \
        int64_t until_ = clock_mono_ms() + 20000;                                                  \
        while (!(condition)) {                                                                     \
            if (clock_mono_ms() > until_)                                                          \
                fail_msg("waited for %s", #condition);                                             \
            loop_turn((r)->loop);                                                                  \
        }                                                                                          \
    } while (0)

static const struct position start = {.n = 0};

TEST(test_reader__pages_and_live_events_meet_without_gap_or_repeat)
{
    struct rig r;
    rig_start(&r, false);
    write_many(&r, 1000);
    struct consumer *c = consumer_new(&r);
    consumer_start(c, &start);
    for (int i = 0; i < 200; i++) { /* commits go on while pages are read */
        write_own(&r, 5, STR("default"), STR_NONE);
        loop_turn(r.loop);
    }
    turn_until(&r, c->n == 2000 && r.jobs == 0);
    assert_int_equal(reader_state(&c->reader), READER_LIVE);
    assert_true(c->flushes < c->n);
    struct feed_counts before = feed_counts(r.feed);
    write_many(&r, 3);
    turn_until(&r, c->n == 2003);
    assert_int_equal(feed_counts(r.feed).polls, before.polls); /* no tail without other nodes */
    consumer_free(c);
    rig_stop(&r);
}

TEST(test_reader__from_now_on_and_from_a_position)
{
    struct rig r;
    rig_start(&r, false);
    write_many(&r, 40);
    struct consumer *c = consumer_new(&r), *d = consumer_new(&r);
    consumer_start(c, NULL);
    assert_null(reader_position(&c->reader));
    turn_until(&r, reader_state(&c->reader) == READER_LIVE);
    c->last[r.db.writer] = event_id_make(r.db.writer, 40);
    write_many(&r, 10);
    turn_until(&r, c->n == 10);
    struct position at = c->at;
    consumer_free(c);
    write_many(&r, 300);
    d->last[r.db.writer] = event_id_make(r.db.writer, 50);
    consumer_start(d, &at);
    turn_until(&r, d->n == 300);
    consumer_free(d);
    rig_stop(&r);
}

TEST(test_reader__a_consumer_without_room_gets_the_rest_later)
{
    struct rig r;
    rig_start(&r, false);
    struct consumer *c = consumer_new(&r);
    consumer_start(c, NULL);
    turn_until(&r, reader_state(&c->reader) == READER_LIVE);
    c->room = 7;
    write_many(&r, 500);
    turn_until(&r, reader_state(&c->reader) == READER_WAITING);
    write_many(&r, 500);
    assert_int_equal(c->n, 7);
    assert_int_equal(c->refused, 1); /* and it is not asked again */
    c->room = 300;
    reader_resume(&c->reader);
    turn_until(&r, c->n == 307 && reader_state(&c->reader) == READER_WAITING);
    c->room = SIZE_MAX;
    reader_resume(&c->reader);
    turn_until(&r, c->n == 1000);
    turn_until(&r, reader_state(&c->reader) == READER_LIVE);
    consumer_free(c);
    rig_stop(&r);
}

TEST(test_reader__batches_are_acknowledged_before_the_next)
{
    struct rig r;
    rig_start(&r, false);
    struct consumer *c = consumer_new(&r);
    c->acks = true;
    write_many(&r, 450);
    consumer_start(c, &start);
    for (size_t n = 1; n <= 3; n++) {
        turn_until(&r, c->flushes == n && reader_state(&c->reader) == READER_WAITING);
        assert_int_equal(c->n, n < 3 ? 200 * n : 450);
        reader_resume(&c->reader);
    }
    turn_until(&r, reader_state(&c->reader) == READER_LIVE);
    write_many(&r, 2);
    turn_until(&r, c->n == 452 && reader_state(&c->reader) == READER_WAITING);
    reader_resume(&c->reader); /* nothing was missed: live at once */
    assert_int_equal(reader_state(&c->reader), READER_LIVE);
    consumer_free(c);
    rig_stop(&r);
}

TEST(test_reader__a_callback_may_stop_its_reader)
{
    struct rig r;
    rig_start(&r, false);
    struct consumer *c = consumer_new(&r);
    write_many(&r, 10);
    c->stops = true;
    consumer_start(c, &start);
    turn_until(&r, c->n == 1);
    assert_int_equal(reader_state(&c->reader), READER_STOPPED);
    c->stops = false;
    consumer_start(c, NULL);
    turn_until(&r, reader_state(&c->reader) == READER_LIVE);
    c->stops = true;
    c->last[r.db.writer] = event_id_make(r.db.writer, 10);
    write_many(&r, 10);
    turn_until(&r, c->n == 2);
    c->last[r.db.writer] = 0;
    c->at = start;
    consumer_start(c, &start); /* stopped while its page is read, or by its first event */
    loop_turn(r.loop);
    reader_stop(&c->reader);
    assert_int_equal(feed_counts(r.feed).subscribers, 0);
    consumer_free(c);
    rig_stop(&r);
}

TEST(test_reader__an_unreadable_store_delays_events)
{
    struct rig r;
    rig_start(&r, false);
    struct consumer *c = consumer_new(&r);
    write_many(&r, 300);
    store_failing_set(r.failing, 1, false);
    consumer_start(c, &start);
    for (int i = 0; i < 3; i++)
        loop_turn(r.loop);
    assert_int_equal(c->n, 0);
    store_failing_set(r.failing, 0, false);
    turn_until(&r, c->n == 300);
    consumer_free(c);
    rig_stop(&r);
}

TEST(test_reader__a_position_of_another_store_is_lost)
{
    struct rig r;
    rig_start(&r, false);
    struct consumer *c = consumer_new(&r);
    struct position at = {.n = 1, .last = {event_id_make(99, 5)}};
    consumer_start(c, &at);
    turn_until(&r, c->is_lost);
    consumer_free(c);
    rig_stop(&r);
}

/* As after a restore: the position names events that this process has not written yet. */
TEST(test_reader__a_position_behind_the_end_of_our_writer_is_lost)
{
    struct rig r;
    rig_start(&r, false);
    write_many(&r, 10);
    struct consumer *c = consumer_new(&r), *d = consumer_new(&r);
    struct position behind = {.n = 1, .last = {event_id_make(r.db.writer, 11)}};
    struct position end = {.n = 1, .last = {event_id_make(r.db.writer, 10)}};
    consumer_start(c, &behind);
    consumer_start(d, &end);
    d->last[r.db.writer] = end.last[0];
    turn_until(&r, c->is_lost && reader_state(&d->reader) == READER_LIVE);
    assert_false(d->is_lost);
    write_many(&r, 8);
    turn_until(&r, d->n == 8);
    consumer_free(c);
    consumer_free(d);
    rig_stop(&r);
}

/* A store that takes longer for one answer than a page may take. */
struct slow_store {
    struct store base;
    struct store *inner;
};

static bool slow_call(struct store *s, struct store_call *c, struct error *err)
{
    clock_advance_fake(1000);
    return store_call(container_of(s, struct slow_store, base)->inner, c, err);
}

TEST(test_page__of_a_slow_store_has_events)
{
    static const struct store_ops ops = {.name = "slow", .call = slow_call};
    const struct selection all = {.kinds = 0};
    const struct visibility every = visibility_of_tenant(STR_NONE);
    struct rig r;
    struct error err;
    rig_start(&r, false);
    write_many(&r, 16);
    struct slow_store slow = {.base = {.ops = &ops}, .inner = r.db.store};
    struct page page = {.config = feed_config(r.feed),
                        .selection = &all,
                        .visibility = &every,
                        .mem = arena_new(1 << 20)};
    size_t rows = 0;
    clock_set_fake(clock_wall_ms(), clock_mono_ms());
    assert_true(page_read(&page, &slow.base, &err));
    for (size_t i = 0; i < page.n; i++)
        rows += page.items[i].row != NULL;
    assert_int_equal(rows, 16);
    clock_set_real();
    arena_free(page.mem);
    rig_stop(&r);
}

TEST(test_reader__events_of_other_nodes_come_through_one_tail)
{
    struct rig r;
    struct other o, p;
    rig_start(&r, true);
    other_start(&o, &r);
    other_write(&o, 3);
    struct consumer *c = consumer_new(&r), *d = consumer_new(&r);
    consumer_start(c, &start);
    consumer_start(d, NULL);
    d->last[o.db.writer] = event_id_make(o.db.writer, 3);
    turn_until(&r, c->n == 3 && reader_state(&c->reader) == READER_LIVE &&
                       reader_state(&d->reader) == READER_LIVE);
    other_write(&o, 5);
    write_many(&r, 4);
    turn_until(&r, c->n == 12 && d->n == 9);
    other_start(&p, &r); /* a node that appears */
    for (int i = 0; i < 100; i++)
        other_write(&p, 8);
    turn_until(&r, c->n == 812 && d->n == 809);
    assert_int_equal(feed_counts(r.feed).events, 5 + 800);
    assert_int_equal(feed_counts(r.feed).writers, 2);
    other_write(&p, 1);
    other_end(&p, clock_life_ms() - 2 * FEED_ENDED_MS);
    turn_until(&r, feed_counts(r.feed).writers == 1); /* by the poll */
    assert_int_equal(c->n, 813);
    char text[POSITION_TEXT];
    assert_non_null(reader_position(&c->reader));
    other_write(&o, 1);
    turn_until(&r, c->n == 814);
    position_format(&c->at, text);
    assert_null(strstr(text, "1.,")); /* well formed; the lapsed node's last event was read */
    consumer_free(c);
    consumer_free(d);
    chain_free(o.db.chain);
    rig_stop(&r);
}

TEST(test_reader__many_ended_writers_do_not_hide_a_running_one)
{
    struct rig r;
    struct other o, p;
    struct position at;
    rig_start(&r, true);
    other_start(&o, &r);
    other_write(&o, 3);
    struct consumer *c = consumer_new(&r);
    consumer_start(c, &start);
    turn_until(&r, c->n == 3);
    at = c->at;
    reader_stop(&c->reader);
    for (int i = 0; i < POSITION_WRITERS_MAX + 20; i++) {
        other_start(&p, &r);
        if (i % 3)
            other_write(&p, 1 + (size_t)i % 4);
        other_end(&p, clock_life_ms() - 2 * FEED_ENDED_MS);
    }
    other_write(&o, 7); /* it still runs */
    consumer_start(c, &at);
    turn_until(&r, event_id_count(c->last[o.db.writer]) == 10);
    turn_until(&r, reader_state(&c->reader) == READER_LIVE);
    other_write(&o, 1);
    turn_until(&r, event_id_count(c->last[o.db.writer]) == 11);
    assert_true(c->at.n <= 4);
    consumer_free(c);
    chain_free(o.db.chain);
    rig_stop(&r);
}

TEST(test_reader__bodies_only_if_wanted)
{
    struct rig r;
    rig_start(&r, false);
    struct consumer *c = consumer_new(&r);
    write_own(&r, 4, STR("default"), STR("{\"a\":1}"));
    turn_until(&r, r.jobs == 0);
    struct reader_config config = {.events = &events, .with_bodies = true};
    reader_start(&c->reader, r.feed, &config, &start);
    turn_until(&r, c->n == 4);
    assert_int_equal(c->bodies, 4);
    reader_stop(&c->reader);
    memset(c->last, 0, sizeof(c->last));
    c->at = start;
    consumer_start(c, &start);
    turn_until(&r, c->n == 8);
    write_own(&r, 1, STR("default"), STR("{\"a\":1}"));
    turn_until(&r, c->n == 9);
    assert_int_equal(c->bodies, 4);
    consumer_free(c);
    rig_stop(&r);
}

/* Random commits of three nodes, and consumers that refuse, stop and start again at their position. */
TEST(test_reader__random_consumers_see_every_event_once)
{
    struct rig r;
    struct other o[2];
    struct consumer *c[6];
    unsigned seed = 7;
    rig_start(&r, true);
    for (size_t i = 0; i < countof(o); i++)
        other_start(&o[i], &r);
    for (size_t i = 0; i < countof(c); i++) {
        c[i] = consumer_new(&r);
        consumer_start(c[i], &start);
    }
    size_t total = 0;
    for (int i = 0; i < 1500; i++) {
        int what = rand_r(&seed) % 12;
        struct consumer *one = c[(size_t)rand_r(&seed) % countof(c)];
        size_t n = 1 + (size_t)rand_r(&seed) % 8;
        if (what < 3) {
            write_own(&r, n, STR("default"), STR_NONE);
            total += n;
        } else if (what < 6) {
            other_write(&o[(size_t)what % 2], n);
            total += n;
        } else if (what == 6) {
            one->room = n * 10;
        } else if (what == 7) {
            one->acks = !one->acks;
        } else if (what == 8) {
            reader_stop(&one->reader);
            consumer_start(one, &one->at);
        } else if (what == 9) {
            one->room = SIZE_MAX;
            reader_resume(&one->reader);
        } else {
            loop_turn(r.loop);
        }
    }
    for (size_t i = 0; i < countof(c); i++) {
        c[i]->room = SIZE_MAX;
        c[i]->acks = false;
    }
    for (size_t i = 0; i < countof(c); i++) {
        reader_resume(&c[i]->reader);
        turn_until(&r, c[i]->n == total && r.jobs == 0);
    }
    for (size_t i = 0; i < countof(c); i++)
        consumer_free(c[i]);
    for (size_t i = 0; i < countof(o); i++)
        chain_free(o[i].db.chain);
    rig_stop(&r);
}
