/* SPDX-License-Identifier: Apache-2.0 */
/* The publish point.  The write lane makes batches and posts them; the loop runs posted tasks in
 * posting order and hands each batch to the subscribers.  The memory of posted batches is bounded
 * by the write jobs in flight: they are copies of rows whose jobs finish on the same loop.
 *
 * The chain has a pointer to the publish point only while there are subscribers. */
#include "audit/publish.h"

#include "audit/audit_impl.h"

#include <stdatomic.h>
#include <stdlib.h>

#define PAGE 200

struct publish_point {
    struct chain *chain;
    struct loop *loop;
    struct list subscribers;
    struct list *next;      /* while a batch is handed out: the subscriber after this one */
    uint64_t n_delivered;   /* batches handed to the subscribers */
    atomic_size_t n_posted; /* batches that the loop has not run yet */
    atomic_uint_fast64_t n_batches;
    bool orphaned; /* freed by its last posted batch */
};

/* Lies in its own arena. */
struct batch {
    struct loop_task task;
    struct publish_point *point;
    struct arena *mem;
    struct event_row *rows;
    size_t n;
};

struct publish_point *publish_point_new(struct chain *chain, struct loop *loop)
{
    struct publish_point *p = xcalloc(1, sizeof(*p));
    p->chain = chain;
    p->loop = loop;
    list_init(&p->subscribers);
    return p;
}

void publish_point_free(struct publish_point *p)
{
    if (!p)
        return;
    chain_publish_to(p->chain, NULL);
    while (list_pop(&p->subscribers))
        ;
    if (atomic_load(&p->n_posted) > 0)
        p->orphaned = true;
    else
        free(p);
}

void publish_subscribe(struct publish_point *p, struct audit_subscriber *s)
{
    s->since = p->n_delivered;
    list_push(&p->subscribers, &s->link);
    chain_publish_to(p->chain, p);
}

void publish_unsubscribe(struct publish_point *p, struct audit_subscriber *s)
{
    if (p->next == &s->link)
        p->next = s->link.next;
    list_remove(&s->link);
    if (list_empty(&p->subscribers))
        chain_publish_to(p->chain, NULL);
}

void audit_subscribe(struct audit *a, struct audit_subscriber *s)
{
    publish_subscribe(a->publish, s);
}

void audit_unsubscribe(struct audit *a, struct audit_subscriber *s)
{
    publish_unsubscribe(a->publish, s);
}

uint64_t publish_count_batches(struct publish_point *p)
{
    return atomic_load(&p->n_batches);
}

/* Subscribers that a callback adds are at the end of the list with since == n_delivered. */
static void deliver(struct publish_point *p, const struct batch *b)
{
    uint64_t batch = p->n_delivered++;
    for (struct list *node = p->subscribers.next; node != &p->subscribers; node = p->next) {
        struct audit_subscriber *s = list_entry(node, struct audit_subscriber, link);
        p->next = node->next;
        if (s->since <= batch)
            s->on_events(s, b->rows, b->n);
    }
    p->next = NULL;
}

static void on_posted(struct loop_task *task)
{
    struct batch *b = container_of(task, struct batch, task);
    struct publish_point *p = b->point;
    if (!p->orphaned)
        deliver(p, b);
    arena_free(b->mem);
    if (atomic_fetch_sub(&p->n_posted, 1) == 1 && p->orphaned)
        free(p);
}

/* Takes over `mem`, which holds the rows. */
static void post_rows(struct publish_point *p, struct arena *mem, struct event_row *rows, size_t n)
{
    struct batch *b = arena_new_of(mem, struct batch);
    *b = (struct batch){.task = {.fn = on_posted}, .point = p, .mem = mem, .rows = rows, .n = n};
    atomic_fetch_add(&p->n_batches, 1);
    atomic_fetch_add(&p->n_posted, 1);
    loop_post(p->loop, &b->task);
}

static void copy_row(struct event_row *to, const struct event_row *from, struct arena *mem)
{
    *to = *from;
    struct str *const texts[] = {&to->tenant,  &to->owner,   &to->session_id, &to->transport,
                                 &to->carrier, &to->server,  &to->method,     &to->tool,
                                 &to->era,     &to->outcome, &to->error,      &to->tool_id,
                                 &to->client,  &to->origin,  &to->body};
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(mem, *texts[i]);
    to->record = STR_NONE;
}

static bool is_published(const struct store_op *op, int64_t after)
{
    return op->kind == OP_EVENT_APPEND && op->verdict == VERDICT_OK && op->event->id > after;
}

void publish_committed(struct publish_point *p, const struct store_op *ops, size_t n, int64_t after)
{
    size_t n_rows = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        n_rows += is_published(&ops[i], after);
    if (n_rows == 0)
        return;
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_row *rows = arena_alloc(mem, n_rows * sizeof(*rows));
    for (size_t i = 0; i < n; i++)
        if (is_published(&ops[i], after))
            copy_row(&rows[at++], ops[i].event, mem);
    post_rows(p, mem, rows, n_rows);
}

/* Publishes one page.  Returns the id up to which all events are published. */
static int64_t publish_page(struct publish_point *p, struct store *store, int64_t after,
                            int64_t until)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    int64_t scanned = 0;
    struct event_filter filter = {.kind = -1,
                                  .after = after,
                                  .before = until + 1,
                                  .with_bodies = true,
                                  .ret_scanned = &scanned};
    struct event_row *rows = NULL;
    struct error err;
    size_t n = 0;
    bool ok = store_events_page(store, &filter, PAGE, mem, &rows, &n, &err);
    bool is_last = ok && !scanned && n < PAGE;
    if (ok && n > 0) {
        after = rows[n - 1].id;
        post_rows(p, mem, rows, n);
    } else {
        arena_free(mem);
    }
    return is_last ? until : after;
}

int64_t publish_stored(struct publish_point *p, struct store *store, int64_t after, int64_t until)
{
    for (int64_t last; after < until; after = last) {
        last = publish_page(p, store, after, until);
        if (last == after)
            break;
    }
    return after;
}
