/* SPDX-License-Identifier: Apache-2.0 */
/* Segments.  The write lane writes them once per transaction; every reader of events walks them. */
#include "store/segment.h"

#include <stdlib.h>

#include "store/record.h"

#define SEAL 32
#define FRAME (4 + 4 + SEAL)
_Static_assert(FRAME == SEGMENT_FRAME, "segment.h says so");

void segment_init(struct segment *s)
{
    *s = (struct segment){0};
    buf_init(&s->records, SIZE_MAX / 4); /* the size of a row bounds both */
    buf_init(&s->bodies, SIZE_MAX / 4);
}

void segment_release(struct segment *s)
{
    buf_release(&s->records);
    buf_release(&s->bodies);
}

void segment_reset(struct segment *s)
{
    buf_reset(&s->records);
    buf_reset(&s->bodies);
    s->n = 0;
}

static void put_u32(char *to, size_t value)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (char)(value >> 8 * i);
}

static size_t get_u32(const char *from)
{
    size_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= (size_t)(unsigned char)from[i] << 8 * i;
    return value;
}

void segment_add(struct segment *s, const struct event_row *e)
{
    size_t n = e->record.p ? e->record.n : record_room(e);
    char *frame = buf_room(&s->records, FRAME + n);
    if (e->record.p)
        memcpy(frame + FRAME, e->record.p, n);
    else
        n = record_write(e, frame + FRAME);
    put_u32(frame, n);
    put_u32(frame + 4, e->body.p ? e->body.n + 1 : 0);
    memcpy(frame + 8, e->mac, SEAL);
    buf_grown(&s->records, FRAME + n);
    if (e->body.p)
        buf_addstr(&s->bodies, e->body);
    s->n++;
}

bool segment_is_full(const struct segment *s)
{
    return s->records.n + s->bodies.n >= SEGMENT_BYTES;
}

/* Moves the first n bytes out of *s, or as many as there are. */
static struct str take(struct str *s, size_t n)
{
    struct str head = str_n(s->p, n < s->n ? n : s->n);
    s->p += head.n;
    s->n -= head.n;
    return head;
}

/* Takes the event's body, if any; false when the bodies are not as long as the events say. */
static bool take_body(struct segment_walk *w, size_t length, struct event_row *e)
{
    size_t claimed = length ? length - 1 : 0;
    bool is_last = w->records.n == 0;
    if (!w->bodies.p)
        return true;
    if (is_last ? claimed != w->bodies.n : claimed > w->bodies.n)
        return false;
    struct str body = take(&w->bodies, claimed);
    e->body = length ? body : STR_NONE;
    return true;
}

/* The record of the next event; STR("") when the lengths do not add up: the length exceeds the
 * remaining bytes, or leaves a remainder that is too short for another event.  The remainder is
 * dropped and not added to this record; otherwise a reduced length would go unnoticed. */
static struct str take_record(struct segment_walk *w, size_t length)
{
    struct str record = take(&w->records, length);
    if (record.n == length && (w->records.n == 0 || w->records.n >= FRAME))
        return record;
    w->records.n = 0;
    return STR("");
}

bool segment_next(struct segment_walk *w, struct event_row *ret)
{
    int64_t id = w->id++;
    if (w->records.n == 0)
        return false;
    struct str frame = take(&w->records, FRAME);
    bool whole = frame.n == FRAME;
    struct str record = whole ? take_record(w, get_u32(frame.p)) : STR("");
    if (!record_read(id, record, ret) || !take_body(w, get_u32(frame.p + 4), ret))
        *ret = (struct event_row){.id = id, .tenant = STR("")};
    if (whole)
        memcpy(ret->mac, frame.p + 8, SEAL);
    return true;
}

static bool is_asked_for(const struct segment_scan *s, const struct event_row *e)
{
    return e->id >= s->from && e->id <= s->upto;
}

/* Collects the requested events of a segment, so that they can be returned in reverse order. */
static void turn_round(struct segment_scan *s)
{
    struct event_row e;
    while (segment_next(&s->walk, &e)) {
        if (!is_asked_for(s, &e))
            continue;
        if (s->n_aside == s->cap_aside) {
            s->cap_aside = s->cap_aside ? 2 * s->cap_aside : 64;
            s->aside = xrealloc(s->aside, s->cap_aside * sizeof(*s->aside));
        }
        s->aside[s->n_aside++] = e;
    }
}

bool segment_scan_next(struct segment_scan *s, struct event_row *ret)
{
    if (!s->down) {
        while (segment_next(&s->walk, ret) && ret->id <= s->upto)
            if (is_asked_for(s, ret))
                return true;
        return false;
    }
    if (s->n_aside == 0)
        turn_round(s);
    if (s->n_aside == 0)
        return false;
    *ret = s->aside[--s->n_aside];
    return true;
}

void segment_scan_release(struct segment_scan *s)
{
    free(s->aside);
    s->aside = NULL;
    s->n_aside = s->cap_aside = 0;
}
