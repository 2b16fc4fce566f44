/* SPDX-License-Identifier: Apache-2.0 */
/* Kept events: a client that lost its connection may ask for them again.
 *
 * Every event is kept, written or not, because clients do not acknowledge events.  Three things end
 * that: age, the transport's budget, and the budget of the process.  Within a transport progress
 * and logs are dropped first, then the oldest event, and never its newest result.  The budget of
 * the process drops the oldest event of all transports.  A dropped result or request leaves a mark
 * in its stream (`lost`), so that a client that resumes before it gets an error.  Progress and logs
 * leave no mark, because they are not guaranteed to arrive.
 *
 * Invariant: stored_bytes of a home is the sum over its events, that of the process the sum over
 * homes. */
#include "delivery/stream_impl.h"

#include "http/sse.h"
#include "json/write.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert(sizeof(struct stream) + sizeof(struct stream_event) <= STREAM_EVENT_COST,
               "what an event costs beside its text");

void stream_write_event(struct buf *out, struct str type, struct str json)
{
    struct buf flat;

    buf_init(&flat, SIZE_MAX);
    if (memchr(json.p, '\n', json.n) || memchr(json.p, '\r', json.n)) {
        buf_addstr(&flat, json);
        js_flatten(flat.p, flat.n);
        json = buf_str(&flat);
    }
    sse_write(out, type, STR_NONE, json);
    buf_release(&flat);
}

struct stream_text *stream_text_new(struct streams *s, struct str json)
{
    struct stream_text *text;

    buf_reset(&s->out);
    stream_write_event(&s->out, STR_NONE, json);
    text = xmalloc(sizeof(*text) + s->out.n);
    text->refs = 1;
    text->n = s->out.n;
    memcpy(text->p, s->out.p, s->out.n);
    return text;
}

void stream_text_unref(struct stream_text *text)
{
    if (--text->refs == 0)
        free(text);
}

static size_t cost_of(const struct stream_event *e)
{
    return STREAM_EVENT_COST + e->text->n;
}

static void count(struct stream_event *e, bool is_stored)
{
    size_t n = cost_of(e);
    struct stream *st = e->stream;

    st->home->stored_bytes = is_stored ? st->home->stored_bytes + n : st->home->stored_bytes - n;
    st->all->stored_bytes = is_stored ? st->all->stored_bytes + n : st->all->stored_bytes - n;
}

void stream_event_drop(struct stream_event *e, bool is_lost)
{
    struct stream *st = e->stream;

    count(e, false);
    if (is_lost && e->weight == STREAM_MUST && e->number > st->lost)
        st->lost = e->number;
    if (st->unsent == e)
        st->unsent = NULL;
    if (st->home->newest_result == e)
        st->home->newest_result = NULL;
    deadline_clear(&e->age);
    list_remove(&e->in_stream);
    list_remove(&e->in_home);
    stream_text_unref(e->text);
    free(e);
}

static void drop_event(struct stream_event *e)
{
    struct stream *st = e->stream;

    stream_event_drop(e, true);
    stream_free_if_unused(st);
}

static void on_old(struct deadline *d)
{
    drop_event(container_of(d, struct stream_event, age));
}

struct stream_event *stream_keep(struct stream *st, struct stream_text *text,
                                 enum stream_weight weight)
{
    struct stream_event *e = xmalloc(sizeof(*e));

    *e = (struct stream_event){
        .stream = st, .text = text, .number = ++st->last, .weight = weight, .has_id = true};
    text->refs++;
    list_push(&st->events, &e->in_stream);
    list_push(weight == STREAM_MUST ? &st->home->major : &st->home->minor, &e->in_home);
    deadline_init(&e->age, on_old);
    deadline_set(&st->all->keep, &e->age);
    count(e, true);
    return e;
}

/* The next event to drop for the transport's budget; NULL when only its newest result is left. */
static struct stream_event *least_of(struct stream_home *home)
{
    struct list *first = list_first(&home->minor);

    if (!first)
        first = list_first(&home->major);
    if (first && list_entry(first, struct stream_event, in_home) == home->newest_result)
        first = first->next == &home->major ? NULL : first->next;
    return first ? list_entry(first, struct stream_event, in_home) : NULL;
}

void stream_keep_trim(struct stream *st)
{
    struct streams *all = st->all;
    struct stream_home *home = st->home;
    struct stream_event *e;
    struct deadline *oldest;

    st->refs++; /* keeps the home alive meanwhile */
    while (home->stored_bytes > STREAM_STORED_PER_TRANSPORT && (e = least_of(home)))
        drop_event(e);
    while (all->stored_bytes > STREAM_STORED_IN_ALL && (oldest = deadline_first(&all->keep)))
        drop_event(container_of(oldest, struct stream_event, age));
    st->refs--;
    stream_free_if_unused(st);
}
