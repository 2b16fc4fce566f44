/* SPDX-License-Identifier: Apache-2.0 */
/* What every backend does the same way with an event: copy it, filter it, refuse a second one under
 * its id. */
#include "store/store_impl.h"

#include <inttypes.h>

void event_row_keep(struct arena *mem, const struct event_row *from, struct event_row *to)
{
    struct str *const texts[] = {&to->tenant,  &to->owner,   &to->session_id, &to->transport,
                                 &to->carrier, &to->server,  &to->method,     &to->tool,
                                 &to->era,     &to->outcome, &to->error,      &to->tool_id,
                                 &to->body};
    *to = *from;
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(mem, *texts[i]);
}

static bool text_matches(struct str want, struct str have)
{
    return !want.p || (have.p && str_eq(want, have));
}

bool event_filter_matches(const struct event_filter *f, const struct event_row *e)
{
    return e->id > f->after && (!f->before || e->id < f->before) && e->at_ms >= f->since_ms &&
           (!f->exec || e->exec == f->exec) && (f->kind < 0 || (int)e->kind == f->kind) &&
           text_matches(f->tenant, e->tenant) && text_matches(f->session_id, e->session_id) &&
           text_matches(f->server, e->server) && text_matches(f->tool, e->tool) &&
           text_matches(f->outcome, e->outcome);
}

bool event_id_is_taken(const struct event_row *e, struct error *err)
{
    return error_set(err, ERR_INTERNAL,
                     "Event id %" PRId64 ".%" PRId64
                     " is taken by another event; restart holdfast to "
                     "begin a new writer.",
                     e->id >> EVENT_WRITER_SHIFT, e->id & EVENT_COUNT_MASK);
}
