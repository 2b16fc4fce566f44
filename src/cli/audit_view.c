/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and pages for `holdfast audit`.  An outcome is a symbol and a word, so it can be read
 * without colour. */
#include "cli/audit_view.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/unicode.h"
#include "json/read.h"

#include <inttypes.h>
#include <stdio.h>

#define LONGEST_CELL 40
#define LONGEST_TEXT 4096
/* The first two groups of a UUIDv7 hold its timestamp in milliseconds, so neighbours differ. */
#define SESSION_SHOWN 13
#define OUTCOME_WIDTH 15

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

/* Adds the text escaped, cut and padded, then two blanks. */
static void add_cell(struct buf *out, struct str text, size_t width)
{
    size_t from = out->n;
    if (text.n == 0)
        buf_addc(out, '-');
    log_escape(out, text, LONGEST_CELL);
    unicode_pad(out, from, width);
    buf_addz(out, "  ");
}

static size_t cell_width(struct str text)
{
    struct buf b;
    buf_init(&b, 16 * LONGEST_CELL);
    log_escape(&b, text, LONGEST_CELL);
    size_t n = unicode_columns(buf_str(&b));
    buf_release(&b);
    return n;
}

static struct str what_of(const struct event_row *e)
{
    return e->tool.n ? e->tool : e->method;
}

static void add_outcome(struct buf *out, struct str outcome, size_t width, bool colour)
{
    const struct look *look = look_of(outcome);
    if (colour)
        buf_addf(out, "\033[%sm", look->colour);
    size_t from = out->n;
    buf_addf(out, "%s ", look->symbol);
    log_escape(out, outcome, LONGEST_CELL);
    unicode_pad(out, from, width);
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

static void grow(size_t *width, size_t n)
{
    if (n > *width)
        *width = n;
}

static void fit(struct audit_widths *w, const struct execution *rows, size_t n)
{
    char id[EVENT_ID_TEXT];
    grow(&w->server, 6);
    grow(&w->tool, 4);
    grow(&w->id, 6);
    for (size_t i = 0; i < n; i++) {
        grow(&w->server, cell_width(rows[i].event.server));
        grow(&w->tool, cell_width(what_of(&rows[i].event)));
        grow(&w->id, strlen(event_id_format(rows[i].event.id, id)));
    }
}

static void add_head(struct buf *out, const struct audit_widths *w, bool colour)
{
    if (colour)
        buf_addz(out, "\033[1m");
    add_cell(out, STR("TIME (UTC)"), 19);
    add_cell(out, STR("ID"), w->id);
    add_cell(out, STR("SERVER"), w->server);
    add_cell(out, STR("TOOL"), w->tool);
    add_cell(out, STR("OUTCOME"), OUTCOME_WIDTH);
    buf_addz(out, "  DURATION  SESSION");
    buf_addz(out, colour ? "\033[0m\n" : "\n");
}

static void add_row(struct buf *out, const struct execution *x, const struct audit_widths *w,
                    bool colour)
{
    const struct event_row *e = &x->event;
    char time[CLOCK_TEXT], id[EVENT_ID_TEXT], duration[24];
    clock_format(e->at_ms, time);
    buf_addf(out, "%.10s %.8s  ", time, time + 11);
    add_cell(out, str_of(event_id_format(e->id, id)), w->id);
    add_cell(out, e->server, w->server);
    add_cell(out, what_of(e), w->tool);
    add_outcome(out, x->outcome, OUTCOME_WIDTH, colour);
    buf_addf(out, "  %10s  ", duration_text(x->duration_us, duration));
    struct str session =
        e->session_id.n > SESSION_SHOWN ? str_n(e->session_id.p, SESSION_SHOWN) : e->session_id;
    log_escape(out, session.n ? session : STR("-"), SESSION_SHOWN);
    buf_addc(out, '\n');
}

void audit_view_rows(struct buf *out, const struct execution *rows, size_t n,
                     struct audit_widths *widths, bool head, bool colour)
{
    fit(widths, rows, n);
    if (head)
        add_head(out, widths, colour);
    for (size_t i = 0; i < n; i++)
        add_row(out, &rows[i], widths, colour);
}

void audit_view_event(struct buf *out, const struct event_row *e, bool head)
{
    char time[CLOCK_TEXT], id[EVENT_ID_TEXT];

    if (head)
        buf_addf(out, "%-19s  %-7s  %-14s  %s\n", "TIME (UTC)", "ID", "EVENT", "WHAT");
    clock_format(e->at_ms, time);
    buf_addf(out, "%.10s %.8s  ", time, time + 11);
    add_cell(out, str_of(event_id_format(e->id, id)), 7);
    add_cell(out, e->method, 14);
    log_escape(out, e->error, LONGEST_TEXT);
    buf_addc(out, '\n');
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

static void add_body(struct buf *out, const char *name, const struct event_row *e)
{
    if (e->body_len < 0)
        return;
    buf_addf(out, "\n%s (%" PRId64 " bytes", name, e->body_len);
    buf_addz(out, e->body.p ? ")\n" : ", not kept)\n");
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
    if (e->kind == EVENT_INTENT || e->kind == EVENT_NOTE || e->kind == EVENT_RECORD) {
        buf_addf(out, "%-10s", "outcome");
        add_outcome(out, x->outcome, 0, colour);
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
                 : e->kind == EVENT_SYSTEM       ? "details"
                                                 : "params",
                 &events[i]);
}
