/* SPDX-License-Identifier: Apache-2.0 */
/* Exported sessions as a table (RFC 4180): one row per call, with its bodies as recorded.
 *
 * A spreadsheet takes a cell for a formula when it begins with one of = + - @ (also in their
 * full-width forms), a tab or a line break, some also behind blanks.  Such a cell gets an apostrophe
 * in front.  Numbers of our own need none. */
#include "export/export.h"

#include "audit/event_id.h"
#include "base/clock.h"
#include "base/utf8.h"

static const char *const columns[] = {
    "session_id",   "number",  "id",    "time",        "kind",      "server",          "tool",
    "method",       "outcome", "error", "duration_ms", "tokens",    "arguments_state", "arguments",
    "result_state", "result",  "owner", "client",      "transport", "carrier",         "era",
};

static bool is_formula_sign(uint32_t c)
{
    return c == '=' || c == '+' || c == '-' || c == '@' || c == '\t' || c == '\r' || c == '\n' ||
           c == 0xff1d || c == 0xff0b || c == 0xff0d || c == 0xff20;
}

/* Blanks of any width, and characters that nobody sees. */
static bool is_skipped(uint32_t c)
{
    return c == ' ' || c == 0xa0 || (c >= 0x2000 && c <= 0x200f) || c == 0x3000 || c == 0xfeff ||
           utf8_is_bidi_control(c);
}

static bool is_formula(struct str text)
{
    uint32_t code;

    for (size_t i = 0, n; i < text.n; i += n) {
        n = utf8_decode(text.p + i, text.p + text.n, &code);
        if (!n || !(is_skipped(code) || (code < ' ' && !is_formula_sign(code))))
            return n && is_formula_sign(code);
    }
    return false;
}

/* Control characters mean nothing in a table, and something to a terminal. */
static bool is_control(uint32_t c)
{
    return (c < ' ' && c != '\t' && c != '\r' && c != '\n') || (c >= 0x7f && c <= 0x9f);
}

/* A text that a peer may have chosen.  NUL bytes are left out.  Bytes that are not UTF-8 become
 * U+FFFD, because no reader of tables takes them, and so do control characters. */
static void add_cell(struct buf *out, struct str text)
{
    uint32_t code;

    buf_addz(out, is_formula(text) ? "\"'" : "\"");
    for (size_t i = 0, n; i < text.n; i += n ? n : 1) {
        n = utf8_decode(text.p + i, text.p + text.n, &code);
        if (!n || (code && is_control(code)))
            buf_addz(out, "\xef\xbf\xbd");
        else if (code == '"')
            buf_addz(out, "\"\"");
        else if (code)
            buf_add(out, text.p + i, n);
    }
    buf_addc(out, '"');
}

static void next_cell(struct buf *out, struct str text)
{
    buf_addc(out, ',');
    if (text.n)
        add_cell(out, text);
}

static void next_number(struct buf *out, int64_t number)
{
    buf_addc(out, ',');
    if (number >= 0)
        buf_addf(out, "%lld", (long long)number);
}

static void csv_begin(struct export_writer *w unused_arg, struct buf *out)
{
    for (size_t i = 0; i < countof(columns); i++)
        buf_addf(out, "%s%s", i ? "," : "", columns[i]);
    buf_addz(out, "\r\n");
}

static void csv_call(struct export_writer *w, const struct recorded_call *c, struct buf *out)
{
    char id[EVENT_ID_TEXT], time[CLOCK_TEXT];

    clock_format(c->at_ms, time);
    add_cell(out, w->session->row->handle);
    next_number(out, c->number);
    next_cell(out, str_of(event_id_format(c->origin_id, id)));
    buf_addf(out, ",%s,%s", time, recorded_kind_name(c->kind));
    next_cell(out, c->server);
    next_cell(out, c->tool);
    next_cell(out, c->method);
    next_cell(out, c->outcome);
    next_cell(out, c->error);
    buf_addc(out, ',');
    if (c->duration_us >= 0)
        buf_addf(out, "%lld.%03d", (long long)(c->duration_us / 1000),
                 (int)(c->duration_us % 1000));
    next_number(out, c->tokens);
    next_cell(out, str_of(recorded_state_name(c->params.state)));
    next_cell(out, c->arguments.p ? c->arguments : c->params.bytes);
    next_cell(out, str_of(recorded_state_name(c->result.state)));
    next_cell(out, c->result.bytes);
    next_cell(out, c->owner);
    next_cell(out, c->client);
    next_cell(out, c->transport);
    next_cell(out, c->carrier);
    next_cell(out, c->era);
    buf_addz(out, "\r\n");
}

static void csv_end(struct export_writer *w unused_arg, struct buf *out unused_arg)
{
}

const struct export_format export_csv = {
    .name = "csv",
    .type = "text/csv; charset=utf-8",
    .begin = csv_begin,
    .call = csv_call,
    .end = csv_end,
    .has_head = true,
};
