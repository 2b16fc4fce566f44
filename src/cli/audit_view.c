/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and pages for `holdfast audit`.  An outcome is a symbol and a word, so it can be read
 * without colour. */
#include "cli/audit_view.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/read.h"

#include <inttypes.h>
#include <stdio.h>

#define LONGEST_CELL 40
#define LONGEST_TEXT 4096
#define WIDE 110 /* columns from which on a call and its details share a line */
/* The first two groups of a UUIDv7 hold its timestamp in milliseconds, so neighbours differ. */
#define SESSION_SHOWN 13

static const struct look {
    struct str outcome;
    const char *symbol, *colour;
} looks[] = {
    {STR("ok"), "✔", "32"},
    {STR("tool_error"), "✘", "33"},
    {STR("error"), "✘", "31"},
    {STR("timeout"), "✘", "31"},
    {STR("cancelled"), "–", "2"},
    {STR("refused"), "✘", "31"},
    {STR("upstream_lost"), "✘", "31"},
    {STR("indeterminate"), "?", "35"},
    {STR("redelivered"), "✔", "2"},
    {STR("open"), "…", "36"},
};
static const struct look unknown_look = {STR_NONE, "?", "35"};

static const struct look *look_of(struct str outcome)
{
    for (size_t i = 0; i < countof(looks); i++)
        if (str_eq(looks[i].outcome, outcome))
            return &looks[i];
    return &unknown_look;
}

static struct str what_of(const struct event_row *e)
{
    return e->tool.n ? e->tool : e->method;
}

static void add_outcome(struct buf *out, struct str outcome, bool colour)
{
    const struct look *look = look_of(outcome);
    if (colour)
        buf_addf(out, "\033[%sm", look->colour);
    buf_addf(out, "%s ", look->symbol);
    log_escape(out, outcome, LONGEST_CELL);
    if (colour)
        buf_addz(out, "\033[0m");
}

static const char *duration_text(int64_t us, char ret[24])
{
    if (us < 0)
        snprintf(ret, 24, "-");
    else if (us < 1000)
        snprintf(ret, 24, "%d us", (int)us);
    else if (us < 1000000)
        snprintf(ret, 24, "%.1f ms", (double)us / 1e3);
    else
        snprintf(ret, 24, "%.1f s", (double)us / 1e6);
    return ret;
}

/* "✔ ok", in mem. */
static struct str outcome_text(struct str outcome, struct arena *mem)
{
    return arena_printf(mem, "%s %.*s", look_of(outcome)->symbol, STR_ARG(outcome));
}

struct str audit_view_who(const struct execution *x)
{
    struct str rest = x->event.owner;

    if (x->user.n || x->key.n)
        return x->user.n ? x->user : x->key;
    str_split(&rest, ':');
    return rest.n ? rest : x->event.owner;
}

static const struct table_column list_columns[] = {
    {"TIME", 8, false}, {"ID", 0, false},      {"WHO", 5, false},     {"SERVER", 6, false},
    {"TOOL", 8, false}, {"OUTCOME", 6, false}, {"DURATION", 0, true}, {"SESSION", 7, false},
};
static const struct table_column story_columns[] = {
    {"TIME", 0, false},    {"WHO", 5, false}, {"CLIENT", 6, false},
    {"OUTCOME", 0, false}, {"TOOK", 0, true}, {"CALL", 20, false},
};
static const struct table_column event_columns[] = {
    {"TIME", 0, false}, {"ID", 0, false}, {"EVENT", 0, false}, {"WHAT", 20, false}};

void audit_view_begin(struct table *t, enum audit_view_kind kind, size_t width, bool colour)
{
    if (kind == AUDIT_VIEW_LIST)
        table_init(t, list_columns, countof(list_columns), width, colour);
    else if (kind == AUDIT_VIEW_STORY)
        table_init(t, story_columns, countof(story_columns), width, colour);
    else
        table_init(t, event_columns, countof(event_columns), width, colour);
}

void audit_view_list_row(struct table *t, const struct execution *x, struct audit_when when)
{
    const struct event_row *e = &x->event;
    char time[WHEN_TEXT], id[EVENT_ID_TEXT], duration[24];
    struct str session =
        e->session_id.n > SESSION_SHOWN ? str_n(e->session_id.p, SESSION_SHOWN) : e->session_id;

    table_add(t, str_of(when_format(e->at_ms, when.now_ms, when.utc, time)));
    table_add(t, str_of(event_id_format(e->id, id)));
    table_add(t, audit_view_who(x));
    table_add(t, e->server);
    table_add(t, what_of(e));
    table_add_coloured(t, outcome_text(x->outcome, t->mem), look_of(x->outcome)->colour);
    table_add(t, str_of(duration_text(x->duration_us, duration)));
    table_add(t, session);
}

/* The error or the reply to a failed call, then the arguments: the end may be cut, and an error
 * matters more. */
static struct str call_details(const struct execution *x, struct arena *mem)
{
    struct str error = x->error.n ? x->error : x->reply;

    if (error.n && x->arguments.n)
        return arena_printf(mem, "%.*s  %.*s", STR_ARG(error), STR_ARG(x->arguments));
    return error.n ? error : x->arguments;
}

/* server.tool and the details.  On a narrow terminal the details have a line of their own, because
 * beside the other columns nothing of them would be left. */
static void add_call(struct table *t, const struct execution *x)
{
    const struct event_row *e = &x->event;
    struct str details = call_details(x, t->mem);
    struct str call = arena_printf(t->mem, "%.*s%s%.*s", STR_ARG(e->server), e->server.n ? "." : "",
                                   STR_ARG(what_of(e)));
    bool is_narrow = t->width && t->width < WIDE;

    if (details.n && !is_narrow)
        call = arena_printf(t->mem, "%.*s%s%.*s", STR_ARG(call),
                            x->error.n || x->reply.n ? ": " : "  ", STR_ARG(details));
    table_add(t, call);
    if (details.n && is_narrow)
        table_note(t, details);
}

void audit_view_story_row(struct table *t, const struct execution *x, struct audit_when when)
{
    char time[WHEN_TEXT], duration[24];

    table_add(t, str_of(when_format(x->event.at_ms, when.now_ms, when.utc, time)));
    table_add(t, audit_view_who(x));
    table_add(t, x->client);
    table_add_coloured(t, outcome_text(x->outcome, t->mem), look_of(x->outcome)->colour);
    table_add(t, str_of(duration_text(x->duration_us, duration)));
    add_call(t, x);
}

void audit_view_event(struct table *t, const struct event_row *e, struct audit_when when)
{
    char time[WHEN_TEXT], id[EVENT_ID_TEXT];

    table_add(t, str_of(when_format(e->at_ms, when.now_ms, when.utc, time)));
    table_add(t, str_of(event_id_format(e->id, id)));
    table_add(t, e->method);
    table_add(t, e->error);
}

static void indent(struct buf *out, unsigned depth)
{
    buf_addc(out, '\n');
    for (unsigned i = 0; i < depth; i++)
        buf_addz(out, "  ");
}

/* Recursive; the parser bounds the depth. */
static void add_value(struct buf *out, const struct js_doc *doc, const struct js_node *v,
                      unsigned depth)
{
    bool object = v->type == JS_OBJECT;
    const struct js_node *child = object || v->type == JS_ARRAY ? js_first(doc, v) : NULL;
    if (!child) {
        struct str raw = js_raw(doc, v);
        log_escape(out, raw, raw.n);
        return;
    }
    buf_addc(out, object ? '{' : '[');
    while (child) {
        indent(out, depth + 1);
        if (object) {
            struct str key = js_raw(doc, child);
            log_escape(out, key, key.n);
            buf_addz(out, ": ");
            child = js_value_of(child);
        }
        add_value(out, doc, child, depth + 1);
        child = js_next(doc, v, child);
        if (child)
            buf_addc(out, ',');
    }
    indent(out, depth);
    buf_addc(out, object ? '}' : ']');
}

void audit_view_json(struct buf *out, struct str json)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    if (js_parse(json, &js_limits_upstream, mem, &doc, NULL))
        add_value(out, &doc, js_root(&doc), 0);
    else
        log_escape(out, json, json.n);
    buf_addc(out, '\n');
    arena_free(mem);
}

static void add_line(struct buf *out, const char *name, struct str value)
{
    if (!value.p)
        return;
    buf_addf(out, "%-10s", name);
    log_escape(out, value, LONGEST_TEXT);
    buf_addc(out, '\n');
}

/* It was, whether or not it still is. */
static bool is_stored(const struct event_row *e)
{
    static const uint8_t none[sizeof(e->stored_sha)];
    return memcmp(e->stored_sha, none, sizeof(none)) != 0;
}

static void add_body(struct buf *out, const char *name, const struct event_row *e)
{
    if (e->body_len < 0)
        return;
    buf_addf(out, "\n%s (%" PRId64 " bytes", name, e->body_len);
    buf_addz(out, e->body.p      ? ")\n"
                  : is_stored(e) ? ", removed by retention or an erasure)\n"
                                 : ", not kept)\n");
    if (e->body.p)
        audit_view_json(out, e->body);
}

void audit_view_execution(struct buf *out, const struct execution *x,
                          const struct event_row *events, size_t n, bool colour)
{
    const struct event_row *e = &x->event;
    char id[EVENT_ID_TEXT], time[CLOCK_TEXT], duration[24];
    clock_format(e->at_ms, time);
    add_line(out, "id", str_of(event_id_format(e->id, id)));
    add_line(out, "time", str_of(time));
    add_line(out, "kind", str_of(event_kind_name((int)e->kind)));
    add_line(out, "tenant", e->tenant);
    add_line(out, "owner", e->owner);
    add_line(out, "user", x->user);
    add_line(out, "key", x->key);
    add_line(out, "client", x->client);
    add_line(out, "session", e->session_id);
    add_line(out, "transport", e->transport);
    add_line(out, "carrier", e->carrier);
    add_line(out, "server", e->server);
    add_line(out, "method", e->method);
    add_line(out, "tool", e->tool);
    add_line(out, "era", e->era);
    if (e->parent)
        add_line(out, "retry of", str_of(event_id_format(e->parent, id)));
    add_line(out, "tool id", e->tool_id);
    if (e->tokens)
        buf_addf(out, "%-10s%" PRId64 "\n", "tokens", e->tokens);
    add_line(out, "origin", e->origin);
    if (e->kind == EVENT_INTENT || e->kind == EVENT_NOTE || e->kind == EVENT_RECORD ||
        e->kind == EVENT_IMPORT) {
        buf_addf(out, "%-10s", "outcome");
        add_outcome(out, x->outcome, colour);
        buf_addf(out, "\n%-10s%s\n", "duration", duration_text(x->duration_us, duration));
    }
    add_line(out, "error", x->error);
    if (e->kind == EVENT_SYSTEM)
        add_line(out, "what", e->error);
    for (size_t i = 0; i < n; i++)
        add_body(out,
                 events[i].kind == EVENT_OUTCOME ? "result"
                 : e->kind == EVENT_ANCHOR       ? "heads"
                 : e->kind == EVENT_RECORD       ? "record"
                 : e->kind == EVENT_IMPORT       ? "bodies"
                 : e->kind == EVENT_SYSTEM       ? "details"
                                                 : "params",
                 &events[i]);
}
