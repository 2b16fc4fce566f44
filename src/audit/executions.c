/* SPDX-License-Identifier: Apache-2.0 */
/* Joins intents with outcomes on a walk from the newest event back.  The walk meets an outcome
 * before its intent, so the map never holds more outcomes than calls were in flight at one time
 * (plus outcomes of intents from before the filter's start). */
#include "audit/executions.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "base/clock.h"
#include "base/map.h"

#include <stdlib.h>

struct outcome {
    int64_t exec, id, duration_us;
    struct str outcome, error;
    char bytes[];
};

struct join {
    const struct execution_filter *filter;
    struct event_source *source;
    struct arena *mem;
    struct map outcomes; /* exec → struct outcome */
    struct execution *rows;
    size_t n;
};

static struct str exec_key(const int64_t *exec)
{
    return str_n((const char *)exec, sizeof(*exec));
}

static void remember_outcome(struct join *j, const struct event_row *e)
{
    struct outcome *o = xmalloc(sizeof(*o) + e->outcome.n + e->error.n);
    *o = (struct outcome){.exec = e->exec, .id = e->id, .duration_us = e->duration_us};
    o->outcome = str_n(o->bytes, e->outcome.n);
    memcpy(o->bytes, e->outcome.n ? e->outcome.p : "", e->outcome.n);
    if (e->error.p) {
        o->error = str_n(o->bytes + e->outcome.n, e->error.n);
        memcpy(o->bytes + e->outcome.n, e->error.p, e->error.n);
    }
    free(map_remove(&j->outcomes, exec_key(&o->exec)));
    map_put(&j->outcomes, exec_key(&o->exec), o);
}

static void copy_texts(struct event_row *e, struct arena *mem)
{
    struct str *const texts[] = {&e->tenant,  &e->owner,   &e->session_id, &e->transport,
                                 &e->carrier, &e->server,  &e->method,     &e->tool,
                                 &e->era,     &e->outcome, &e->error,      &e->tool_id,
                                 &e->client,  &e->origin,  &e->body};
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(mem, *texts[i]);
}

/* When an imported call began, at its origin. */
static int64_t origin_time(const struct event_row *e)
{
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    int64_t ms = e->at_ms;
    struct js_doc doc;

    if (!js_parse(e->origin, &js_limits_upstream, scratch, &doc, NULL) ||
        !js_to_i64(&doc, js_get(&doc, js_root(&doc), STR("at_ms")), &ms))
        ms = e->at_ms;
    arena_free(scratch);
    return ms;
}

static struct execution execution_of(const struct event_row *e, const struct outcome *o)
{
    struct execution x = {.event = *e, .outcome = STR("open"), .duration_us = -1};
    if (e->kind == EVENT_NOTE || e->kind == EVENT_RECORD || e->kind == EVENT_IMPORT) {
        x.outcome = e->outcome;
        x.error = e->error;
        x.duration_us = e->duration_us;
        if (e->kind == EVENT_IMPORT) {
            x.outcome_id = e->id;
            x.event.at_ms = origin_time(e);
        }
    } else if (o) {
        x.outcome_id = o->id;
        x.outcome = o->outcome;
        x.error = o->error;
        x.duration_us = o->duration_us;
    }
    return x;
}

bool execution_failed(struct str outcome)
{
    return !str_eq(outcome, STR("ok")) && !str_eq(outcome, STR("redelivered")) &&
           !str_eq(outcome, STR("cancelled")) && !str_eq(outcome, STR("open"));
}

static bool matches(const struct execution_filter *f, const struct execution *x)
{
    return (!f->errors || execution_failed(x->outcome)) &&
           (!f->begun_before_ms || x->event.at_ms < f->begun_before_ms) &&
           (!f->fits || f->fits(f->fits_arg, x)) &&
           (!f->outcome.p || str_eq(f->outcome, x->outcome)) &&
           (!f->session.p || str_starts(x->event.session_id, f->session));
}

/* The outcome of an intent whose outcome is in an earlier page; *ret is NULL while it is open. */
static bool look_up_outcome(struct join *j, int64_t exec, struct outcome **ret, struct error *err)
{
    struct event_filter filter = {.exec = exec, .kind = EVENT_OUTCOME};
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_row *rows;
    size_t n = 0;
    bool ok = event_source_page(j->source, &filter, 1, mem, &rows, &n, err);
    if (ok && n) {
        remember_outcome(j, &rows[0]);
        *ret = map_remove(&j->outcomes, exec_key(&exec));
    }
    arena_free(mem);
    return ok;
}

/* Imported calls are no calls of this Holdfast, so they are listed with their session alone. */
static bool is_listed(const struct execution_filter *f, const struct event_row *e)
{
    return e->kind == EVENT_INTENT || e->kind == EVENT_NOTE || e->kind == EVENT_RECORD ||
           (e->kind == EVENT_IMPORT && f->session.n);
}

static enum event_walk join_event(void *arg, const struct event_row *e, struct error *err)
{
    struct join *j = arg;
    if (e->kind == EVENT_OUTCOME)
        remember_outcome(j, e);
    if (!is_listed(j->filter, e))
        return EVENT_WALK_ON;
    struct outcome *o = map_remove(&j->outcomes, exec_key(&e->id));
    if (!o && e->kind == EVENT_INTENT && j->filter->ret_end && j->filter->events.before &&
        !look_up_outcome(j, e->id, &o, err))
        return EVENT_WALK_FAIL;
    struct execution x = execution_of(e, o);
    if (matches(j->filter, &x)) {
        copy_texts(&x.event, j->mem);
        x.outcome = arena_dup(j->mem, x.outcome);
        x.error = arena_dup(j->mem, x.error);
        j->rows[j->n++] = x;
    }
    free(o);
    if (j->n < j->filter->limit && (!j->filter->ret_end || clock_mono_ms() < j->filter->until_ms))
        return EVENT_WALK_ON;
    if (j->filter->ret_end)
        *j->filter->ret_end = e->id;
    return EVENT_WALK_STOP;
}

/* A session id made by Holdfast (UUIDv7) contains its creation time, so older events cannot belong
 * to the session.  The slack allows for a clock that was set back after the id was made. */
static void begin_with_session(struct event_filter *f, struct str session)
{
    uint64_t ms = 0;
    if (session.n < 15 || session.p[8] != '-' || session.p[13] != '-' || session.p[14] != '7')
        return;
    for (size_t i = 0; i < 13; i++) {
        char c = session.p[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (i == 8)
            continue;
        if (digit < 0)
            return;
        ms = ms << 4 | (unsigned)digit;
    }
    int64_t since_ms = (int64_t)ms - EVENT_CLOCK_SLACK_MS;
    if (since_ms > f->since_ms)
        f->since_ms = since_ms;
}

bool executions_newest(struct event_source *source, const struct execution_filter *filter,
                       struct arena *mem, struct execution **ret_rows, size_t *ret_n,
                       struct error *err)
{
    struct join j = {.filter = filter, .source = source, .mem = mem};
    struct event_filter events = filter->events;
    events.kind = -1;
    events.newest_first = true;
    events.with_bodies = false;
    events.session_prefix = filter->session;
    events.open = str_eq(filter->outcome, STR("open"));
    begin_with_session(&events, filter->session);
    j.rows = arena_zalloc(j.mem, (filter->limit + 1) * sizeof(*j.rows));
    map_init(&j.outcomes);
    int64_t end = 0;
    int64_t until_ms = filter->ret_end ? filter->until_ms : INT64_MAX;
    bool ok = filter->limit == 0 ||
              event_source_walk_until(source, &events, until_ms, &end, join_event, &j, err);
    if (end && filter->ret_end)
        *filter->ret_end = end;
    size_t at = 0;
    struct str key;
    for (void *value; map_next(&j.outcomes, &at, &key, &value);)
        free(value);
    map_release(&j.outcomes);
    if (ok) {
        *ret_rows = j.rows;
        *ret_n = j.n;
    }
    return ok;
}

static bool find_event(struct event_source *source, int64_t id, struct arena *mem,
                       struct event_row **ret, struct error *err)
{
    struct event_filter filter = {
        .after = id - 1, .before = id + 1, .kind = -1, .with_bodies = true};
    size_t n;
    if (!event_source_page(source, &filter, 1, mem, ret, &n, err))
        return false;
    char text[EVENT_ID_TEXT];
    return n == 1 || error_set(err, ERR_NOT_FOUND,
                               "there is no event %s; `holdfast audit list` shows those there are",
                               event_id_format(id, text));
}

bool execution_get(struct event_source *source, int64_t id, struct arena *mem,
                   struct execution *ret, struct event_row **ret_events, size_t *ret_n,
                   struct error *err)
{
    struct event_row *events;
    size_t n = 1;
    if (!find_event(source, id, mem, &events, err))
        return false;
    if (events[0].exec) {
        struct event_filter filter = {.exec = events[0].exec, .kind = -1, .with_bodies = true};
        if (!event_source_page(source, &filter, 2, mem, &events, &n, err))
            return false;
    }
    struct outcome last = {0};
    bool closed = n == 2 && events[1].kind == EVENT_OUTCOME;
    if (closed)
        last = (struct outcome){.id = events[1].id,
                                .outcome = events[1].outcome,
                                .error = events[1].error,
                                .duration_us = events[1].duration_us};
    *ret = execution_of(&events[0], closed ? &last : NULL);
    *ret_events = events;
    *ret_n = n;
    return true;
}

/* The params or result: the body itself, or a part of the body of an imported call. */
static const struct js_node *recorded_part(const struct js_doc *doc, const char *name)
{
    const struct js_node *part = js_get(doc, js_root(doc), str_of(name)),
                         *json = js_get(doc, part, STR("json"));

    return json ? json : js_root(doc);
}

struct str execution_arguments(struct str body, struct arena *mem)
{
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    struct str ret = STR_NONE;
    struct js_doc doc;
    struct buf line;

    buf_init(&line, SIZE_MAX / 4);
    if (body.p && js_parse(body, &js_limits_upstream, scratch, &doc, NULL)) {
        const struct js_node *args = js_get(&doc, recorded_part(&doc, "params"), STR("arguments"));
        bool is_object = js_type_is(args, JS_OBJECT);
        for (const struct js_node *key = is_object ? js_first(&doc, args) : NULL;
             key && line.n < EXECUTION_ARGUMENTS;) {
            const struct js_node *value = js_value_of(key);
            buf_addz(&line, line.n ? ", " : "");
            buf_addstr(&line, js_text(&doc, key, scratch));
            buf_addc(&line, '=');
            buf_addstr(&line, js_raw(&doc, value));
            key = js_next(&doc, args, value);
        }
        if (line.n > EXECUTION_ARGUMENTS)
            ret = arena_printf(mem, "%.*s…",
                               STR_ARG(str_cut(buf_str(&line), EXECUTION_ARGUMENTS - 3)));
        else if (line.n)
            ret = arena_dup(mem, buf_str(&line));
    }
    buf_release(&line);
    arena_free(scratch);
    return ret;
}

struct str execution_reply_text(struct str body, struct arena *mem)
{
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    struct str ret = STR_NONE;
    struct js_doc doc;

    if (body.p && js_parse(body, &js_limits_upstream, scratch, &doc, NULL)) {
        const struct js_node *reply = recorded_part(&doc, "result");
        const struct js_node *content = js_get(&doc, reply, STR("content"));
        const struct js_node *said = js_type_is(content, JS_ARRAY)
                                         ? js_get(&doc, js_first(&doc, content), STR("text"))
                                         : js_get(&doc, reply, STR("message"));
        struct str rest = js_text(&doc, said, scratch), line = str_split(&rest, '\n');
        if (line.n)
            ret = arena_dup(mem, str_cut(line, EXECUTION_ARGUMENTS));
    }
    arena_free(scratch);
    return ret;
}

void execution_to_json(const struct execution *x, struct js_writer *w)
{
    const struct event_row *e = &x->event;
    char id[EVENT_ID_TEXT], time[CLOCK_TEXT];
    clock_format(e->at_ms, time);
    js_object(w);
    js_kv_string(w, "id", str_of(event_id_format(e->id, id)));
    js_kv_string(w, "time", str_of(time));
    js_kv_string(w, "tenant", e->tenant);
    js_kv_string(w, "owner", e->owner);
    js_kv_string(w, "session_id", e->session_id);
    js_kv_string(w, "carrier", e->carrier);
    js_kv_string(w, "server", e->server);
    js_kv_string(w, "method", e->method);
    js_kv_string(w, "tool", e->tool);
    js_kv_string(w, "era", e->era);
    if (e->parent)
        js_kv_string(w, "parent", str_of(event_id_format(e->parent, id)));
    js_kv_string(w, "outcome", x->outcome);
    js_kv_string(w, "error", x->error);
    if (x->duration_us >= 0)
        js_kv_int(w, "duration_us", x->duration_us);
    if (e->tokens)
        js_kv_int(w, "tokens", e->tokens);
    js_kv_string(w, "tool_id", e->tool_id);
    js_kv_string(w, "user_name", x->user);
    js_kv_string(w, "key_name", x->key);
    js_kv_string(w, "client_name", x->client);
    if (e->kind == EVENT_IMPORT)
        js_kv_bool(w, "is_imported", true);
    js_kv_string(w, "arguments_line", x->arguments);
    js_kv_string(w, "reply_line", x->reply);
    js_object_end(w);
}

bool execution_from_json(const struct js_doc *doc, const struct js_node *v, struct arena *mem,
                         struct execution *ret, struct error *err)
{
    struct execution x = {.duration_us = -1};
    struct str time;

    if (!event_from_json(doc, v, mem, &x.event, err)) /* the names of its members are the same */
        return false;
    time = js_text(doc, js_get(doc, v, STR("time")), mem);
    if (!clock_parse(time, &x.event.at_ms))
        return error_set(err, ERR_PARSE,
                         "the time of an execution cannot be read; is the other side the same "
                         "version of Holdfast?");
    x.outcome = x.event.outcome;
    x.error = x.event.error;
    x.user = js_text(doc, js_get(doc, v, STR("user_name")), mem);
    x.key = js_text(doc, js_get(doc, v, STR("key_name")), mem);
    x.client = js_text(doc, js_get(doc, v, STR("client_name")), mem);
    x.arguments = js_text(doc, js_get(doc, v, STR("arguments_line")), mem);
    x.reply = js_text(doc, js_get(doc, v, STR("reply_line")), mem);
    if (js_type_is(js_get(doc, v, STR("is_imported")), JS_TRUE))
        x.event.kind = EVENT_IMPORT;
    if (js_get(doc, v, STR("duration_us")))
        x.duration_us = x.event.duration_us;
    *ret = x;
    return true;
}
