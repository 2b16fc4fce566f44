/* SPDX-License-Identifier: Apache-2.0 */
/* Positions: parse, print, compare, advance.  `last` is sorted, because ids sort by writer first. */
#include "audit/position.h"

#include <string.h>

bool position_parse(struct str text, struct position *ret)
{
    struct position p = {.n = 0};

    if (str_eq(text, STR("0"))) {
        *ret = p;
        return true;
    }
    if (text.n == 0)
        return false;
    while (text.p) {
        int64_t id;
        if (p.n == POSITION_WRITERS_MAX || !event_id_parse(str_split(&text, ','), &id) ||
            event_id_writer(id) == 0)
            return false;
        if (p.n > 0 && event_id_writer(id) <= event_id_writer(p.last[p.n - 1]))
            return false;
        p.last[p.n++] = id;
    }
    *ret = p;
    return true;
}

const char *position_format(const struct position *p, char ret_text[POSITION_TEXT])
{
    char *at = ret_text;

    if (p->n == 0)
        return memcpy(ret_text, "0", 2);
    for (size_t i = 0; i < p->n; i++) {
        if (i > 0)
            *at++ = ',';
        event_id_format(p->last[i], at);
        at += strlen(at);
    }
    return ret_text;
}

/* The index of the first named writer that is not lower than `writer`. */
static size_t index_of(const struct position *p, int64_t writer)
{
    size_t i = p->n;

    while (i > 0 && event_id_writer(p->last[i - 1]) >= writer)
        i--;
    return i;
}

static bool names(const struct position *p, size_t i, int64_t writer)
{
    return i < p->n && event_id_writer(p->last[i]) == writer;
}

bool position_is_before(const struct position *p, int64_t id)
{
    size_t i = index_of(p, event_id_writer(id));

    if (names(p, i, event_id_writer(id)))
        return id > p->last[i];
    return i == p->n;
}

static void push(struct position *p, int64_t id)
{
    if (p->n == POSITION_WRITERS_MAX) {
        p->n--;
        memmove(p->last, p->last + 1, p->n * sizeof(p->last[0]));
    }
    p->last[p->n++] = id;
}

void position_advance(struct position *p, int64_t id)
{
    int64_t writer = event_id_writer(id);
    size_t i = index_of(p, writer);

    if (names(p, i, writer)) {
        if (id > p->last[i])
            p->last[i] = id;
        return;
    }
    if (i < p->n) /* read to its end already */
        return;
    if (p->n > 0) {
        int64_t next = event_id_writer(p->last[p->n - 1]) + 1;
        if (writer - next > POSITION_WRITERS_MAX)
            next = writer - POSITION_WRITERS_MAX;
        for (; next < writer; next++)
            push(p, event_id_make(next, 0));
    }
    push(p, id);
}

void position_forget(struct position *p, int64_t writer)
{
    size_t i = index_of(p, writer);

    if (!names(p, i, writer) || i + 1 == p->n)
        return;
    p->n--;
    memmove(&p->last[i], &p->last[i + 1], (p->n - i) * sizeof(p->last[0]));
}

/* The count up to which the events of this writer are read. */
static int64_t read_of(const struct position *p, int64_t writer)
{
    size_t i = index_of(p, writer);

    if (names(p, i, writer))
        return event_id_count(p->last[i]);
    return i == p->n ? 0 : EVENT_COUNT_MASK;
}

/* Some event of a writer that `a` names, or of one below those, is read at `a` and not at `b`.
 * Writers that neither names matter only when they are above all that one of the two names. */
static bool is_ahead(const struct position *a, const struct position *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (event_id_count(a->last[i]) > read_of(b, event_id_writer(a->last[i])))
            return true;
    for (size_t i = 0; i < b->n; i++)
        if (read_of(a, event_id_writer(b->last[i])) > event_id_count(b->last[i]))
            return true;
    if (a->n == 0)
        return false;
    /* Writers below the highest of `a` and above the highest of `b` that `a` does not name. */
    int64_t high = b->n ? event_id_writer(b->last[b->n - 1]) : 0;
    int64_t named = 0, top = event_id_writer(a->last[a->n - 1]);
    for (size_t i = 0; i < a->n; i++)
        named += event_id_writer(a->last[i]) > high;
    return top > high && top - high > named;
}

enum position_order position_compare(const struct position *a, const struct position *b)
{
    bool ahead = is_ahead(a, b), behind = is_ahead(b, a);

    if (ahead)
        return behind ? POSITION_APART : POSITION_AFTER;
    return behind ? POSITION_BEFORE : POSITION_SAME;
}

int64_t position_lowest(const struct position *p)
{
    return p->n ? p->last[0] : 0;
}
