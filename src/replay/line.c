/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that a client of a replay reads: the head, one for each call, the summary. */
#include "replay/impl.h"

#include "json/write.h"

const char *const replay_status_names[] = {"same",    "different", "unknown", "skipped",
                                           "refused", "failed",    NULL};

#define ADVICE                                                                                     \
    "To record a session completely, so that it can be replayed, let an administrator set "        \
    "\"audit\":\"full\" for it: by a template, a profile, or PATCH /api/v1/sessions/{id} with "    \
    "{\"setup\":{\"audit\":\"full\"}} before its calls. See docs/replay.md."

static void begin(struct replay *r, struct js_writer *w, const char *name)
{
    buf_reset(&r->line);
    js_begin(w, &r->line);
    js_object(w);
    js_key(w, str_of(name));
    js_object(w);
}

static void end(struct replay *r, struct js_writer *w)
{
    js_object_end(w);
    js_object_end(w);
    buf_addc(&r->line, '\n');
}

void replay_write_head(struct replay *r)
{
    struct js_writer w;

    begin(r, &w, "replay");
    js_kv_string(&w, "of", r->origin);
    js_kv_string(&w, "session_id", r->handle);
    js_kv_string(&w, "against", r->options.against);
    js_kv_bool(&w, "writes", r->options.writes);
    end(r, &w);
}

static void write_differences(struct js_writer *w, const struct diff *d)
{
    js_key(w, STR("differences"));
    js_array(w);
    for (size_t i = 0; i < d->n; i++) {
        const struct difference *f = &d->list[i];
        js_object(w);
        js_kv_string(w, "path", f->path);
        js_kv_string(w, "kind", str_of(diff_kind_names[f->kind]));
        js_kv_string(w, "recorded", f->before);
        js_kv_string(w, "now", f->after);
        js_object_end(w);
    }
    js_array_end(w);
    js_kv_int(w, "n_differences", (int64_t)d->total);
}

static void write_side(struct js_writer *w, const char *name, struct str outcome, int64_t took_us)
{
    js_key(w, str_of(name));
    js_object(w);
    js_kv_string(w, "outcome", outcome);
    if (took_us >= 0)
        js_kv_int(w, "duration_ms", took_us / 1000);
    js_object_end(w);
}

void replay_write_call(struct replay *r)
{
    const struct recorded_call *c = r->call;
    struct js_writer w;
    char id[EXECUTION_UUID_TEXT];

    begin(r, &w, "call");
    js_kv_int(&w, "number", c->number);
    execution_uuid(c->id, id);
    js_kv_string(&w, "id", str_of(id));
    js_kv_string(&w, "method", c->method);
    js_kv_string(&w, "server", c->server);
    js_kv_string(&w, "tool", c->tool);
    js_kv_string(&w, "status", str_of(replay_status_names[r->verdict.status]));
    js_kv_string(&w, "reason", r->verdict.reason);
    write_side(&w, "recorded", c->outcome, c->duration_us);
    if (r->answer.outcome.p)
        write_side(&w, "now", r->answer.outcome, r->answer.took_us);
    if (r->verdict.status == REPLAY_DIFFERENT)
        write_differences(&w, &r->verdict.diff);
    end(r, &w);
}

void replay_write_summary(struct replay *r)
{
    struct js_writer w;
    int64_t calls = 0;

    for (int i = 0; i < REPLAY_STATUSES; i++)
        calls += r->counts[i];
    begin(r, &w, "summary");
    js_kv_int(&w, "calls", calls);
    for (int i = 0; i < REPLAY_STATUSES; i++)
        js_kv_int(&w, replay_status_names[i], r->counts[i]);
    js_kv_string(&w, "session_id", r->handle);
    js_kv_string(&w, "stopped", str_of(r->stopped));
    if (r->n_bodies)
        js_kv_string(&w, "advice", STR(ADVICE));
    end(r, &w);
}
