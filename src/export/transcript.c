/* SPDX-License-Identifier: Apache-2.0 */
/* Exported sessions as a transcript in Markdown.  Every text of a peer is code, in a line or in a
 * block (md.h); all else is ours. */
#include "export/export.h"

#include "audit/redact.h"
#include "base/clock.h"
#include "crypto/hash.h"
#include "export/md.h"
#include "export/origin.h"
#include "json/read.h"
#include "session/lineage.h"
#include "session/setup.h"

#include <stdio.h>

#define NAME_MAX_SHOWN 200
#define SENTENCE_MAX 1000
#define URI_MAX 500

/* The head. */

static struct str time_text(int64_t ms, struct arena *mem)
{
    char text[CLOCK_TEXT];

    clock_format(ms, text);
    return arena_printf(mem, "%.10s %.8s", text, text + 11);
}

static void item(struct buf *out, const char *name)
{
    buf_addf(out, "- **%s:** ", name);
}

static void write_who(struct export_writer *w, struct buf *out)
{
    const struct export_session *s = w->session;

    item(out, "Who");
    md_code(out, s->user.n ? s->user : s->key.n ? s->key : s->row->owner, NAME_MAX_SHOWN);
    if (s->user.n && s->key.n) {
        buf_addz(out, " with the key ");
        md_code(out, s->key, NAME_MAX_SHOWN);
    }
    buf_addz(out, "\n");
}

static void write_client(const struct session_row *row, struct buf *out)
{
    if (!row->client_name.n && !row->client_type.n)
        return;
    item(out, "Client");
    md_code(out, row->client_name.n ? row->client_name : row->client_type, NAME_MAX_SHOWN);
    if (row->client_version.n) {
        buf_addc(out, ' ');
        md_code(out, row->client_version, NAME_MAX_SHOWN);
    }
    buf_addz(out, "\n");
}

static void write_when(struct export_writer *w, const struct export_origin *o, struct buf *out)
{
    const struct session_row *row = w->session->row;

    item(out, "When");
    buf_addf(out, "%.*s to %.*s (UTC)\n", STR_ARG(time_text(o->created_ms, w->scratch)),
             STR_ARG(time_text(o->last_activity_ms, w->scratch)));
    item(out, "Status");
    buf_addz(out, session_status_name(o->status));
    if (row->termination_reason.n) {
        buf_addz(out, ", ");
        md_code(out, row->termination_reason, SENTENCE_MAX);
    }
    buf_addz(out, "\n");
}

static void write_servers(const struct export_session *s, struct buf *out)
{
    if (!s->n_servers)
        return;
    item(out, "Servers");
    for (size_t i = 0; i < s->n_servers; i++) {
        buf_addz(out, i ? ", " : "");
        md_code(out, s->servers[i], NAME_MAX_SHOWN);
    }
    buf_addz(out, "\n");
}

static void write_lineage(struct export_writer *w, struct buf *out)
{
    static const char *const words[] = {[LINEAGE_FORK] = "Forked from",
                                        [LINEAGE_IMPORT] = "Imported from",
                                        [LINEAGE_REPLAY] = "Replay of"};
    struct lineage l;

    if (!lineage_read(w->session->row->lineage, w->scratch, &l))
        return;
    struct str handle = lineage_text(&l, STR("handle"), w->scratch);
    item(out, words[l.kind]);
    buf_addz(out, "session ");
    md_code(out, handle.n ? handle : l.session, NAME_MAX_SHOWN);
    struct str key = lineage_text(&l, STR("key"), w->scratch);
    if (key.n) {
        buf_addz(out, ", signed by the key ");
        md_code(out, key, NAME_MAX_SHOWN);
    }
    buf_addz(out, "\n");
}

/* Warns the reader that the bodies below are not redacted, before the transcript is passed on. */
static void write_completeness(struct export_writer *w, struct buf *out)
{
    struct session_setup setup;

    if (!session_setup_parse(w->session->row->setup, w->scratch, &setup) ||
        setup.audit != SETUP_AUDIT_FULL)
        return;
    item(out, "Bodies");
    buf_addz(out, "recorded completely (`audit: full`), with the secrets in them\n");
}

/* The document is stored as its clients wrote it.  A transcript is for others to read, so it holds no
 * more secrets than a record. */
static void write_context(struct str context, struct buf *out)
{
    struct redactor *r;

    if (!context.n)
        return;
    r = redactor_new();
    buf_addz(out, "\nContext document:\n\n");
    md_json_block(out, redact_body(r, NULL, context, true, SIZE_MAX / 4));
    redactor_free(r);
}

static void md_begin(struct export_writer *w, struct buf *out)
{
    const struct export_session *s = w->session;
    struct export_origin o = export_origin_of(s->row, w->scratch);

    buf_addz(out, "# Session ");
    md_code(out, s->row->handle, 255);
    buf_addz(out, "\n\n");
    write_who(w, out);
    write_client(s->row, out);
    write_when(w, &o, out);
    write_servers(s, out);
    item(out, "Calls that ran"); /* the record also has calls that were refused, and reads */
    buf_addf(out, "%lld", (long long)o.calls);
    if (o.tokens)
        buf_addf(out, ", %lld tokens", (long long)o.tokens);
    buf_addz(out, "\n");
    write_lineage(w, out);
    write_completeness(w, out);
    write_context(s->context, out);
}

/* Bodies. */

static struct str size_text(int64_t n, struct arena *mem)
{
    if (n < 1024)
        return arena_printf(mem, "%lld bytes", (long long)n);
    if (n < 1024 * 1024)
        return arena_printf(mem, "%.1f KiB", (double)n / 1024);
    return arena_printf(mem, "%.1f MiB", (double)n / (1024 * 1024));
}

/* A sentence of ours about a body. */
static void say(struct buf *out, struct str text)
{
    buf_addf(out, "*%.*s*\n", STR_ARG(text));
}

/* What is left of a body that was cut is not JSON. */
static void write_cut(const struct recorded_body *b, struct arena *mem, struct buf *out)
{
    struct js_doc doc;

    if (js_parse(b->bytes, &js_limits_upstream, mem, &doc, NULL)) {
        struct str head = js_text(&doc, js_get(&doc, js_root(&doc), STR("head")), mem);
        if (head.n)
            md_block(out, head, NULL);
    }
    buf_addz(out, "\n");
}

/* A body that is not complete says so.  True: nothing else is there to be shown. */
static bool write_lack(const struct recorded_body *b, const char *what, struct arena *mem,
                       struct buf *out)
{
    char hex[2 * SHA256_BYTES + 1];
    const char *lack = recorded_body_lack(b, mem);

    if (!lack)
        return false;
    if (b->state == RECORDED_NONE)
        return true;
    if (b->state == RECORDED_CUT)
        write_cut(b, mem, out);
    hex_encode(b->sha, sizeof(b->sha), hex);
    if (b->state == RECORDED_DIGEST || b->state == RECORDED_REMOVED)
        say(out, arena_printf(mem, "%s %s. SHA-256: %s", what, lack, hex));
    else
        say(out, arena_printf(mem, "%s %s.", what, lack));
    return b->state != RECORDED_REDACTED;
}

static struct str text_of(const struct js_doc *doc, const struct js_node *object, const char *name,
                          struct arena *mem)
{
    return js_text(doc, js_get(doc, object, str_of(name)), mem);
}

/* An image, a sound or a blob, by its type and size. */
static void write_binary(const char *what, struct str type, struct str base64, struct arena *mem,
                         struct buf *out)
{
    buf_addf(out, "*%s", what);
    if (type.n) {
        buf_addz(out, ", ");
        md_code(out, type, NAME_MAX_SHOWN);
    }
    buf_addf(out, ", %.*s*\n", STR_ARG(size_text((int64_t)(base64.n / 4 * 3), mem)));
}

static void write_resource(const struct js_doc *doc, const struct js_node *resource,
                           struct arena *mem, struct buf *out)
{
    struct str text = text_of(doc, resource, "text", mem),
               blob = text_of(doc, resource, "blob", mem), uri = text_of(doc, resource, "uri", mem);

    buf_addz(out, "*Resource* ");
    md_code(out, uri.p ? uri : STR(""), URI_MAX);
    buf_addz(out, "\n\n");
    if (text.p)
        md_block(out, text, NULL);
    else if (blob.p)
        write_binary("Data", text_of(doc, resource, "mimeType", mem), blob, mem, out);
}

static void write_content(const struct js_doc *doc, const struct js_node *block, struct arena *mem,
                          struct buf *out)
{
    struct str type = text_of(doc, block, "type", mem), text = text_of(doc, block, "text", mem),
               data = text_of(doc, block, "data", mem), uri = text_of(doc, block, "uri", mem);

    buf_addz(out, "\n");
    if (str_eq(type, STR("text")) && text.p) {
        md_block(out, text, NULL);
    } else if (str_eq(type, STR("image")) || str_eq(type, STR("audio"))) {
        write_binary(type.p[0] == 'i' ? "Image" : "Audio", text_of(doc, block, "mimeType", mem),
                     data, mem, out);
    } else if (str_eq(type, STR("resource"))) {
        write_resource(doc, js_get(doc, block, STR("resource")), mem, out);
    } else if (str_eq(type, STR("resource_link")) && uri.p) {
        buf_addz(out, "*Link to* ");
        md_code(out, uri, URI_MAX);
        buf_addz(out, "\n");
    } else {
        md_json_block(out, js_raw(doc, block));
    }
}

/* Whether a text block already shows the structured content, as servers repeat it for older
 * clients. */
static bool is_shown(const struct js_doc *doc, const struct js_node *content, struct str structured,
                     struct arena *mem)
{
    const struct js_node *first = js_type_is(content, JS_ARRAY) ? js_first(doc, content) : NULL;
    struct buf a, b;

    if (!first || js_next(doc, content, first))
        return false;
    struct str text = text_of(doc, first, "text", mem);
    if (!text.n)
        return false;
    buf_init(&a, SIZE_MAX / 4);
    buf_init(&b, SIZE_MAX / 4);
    md_json(&a, text);
    md_json(&b, structured);
    bool is_same = str_eq(buf_str(&a), buf_str(&b));
    buf_release(&a);
    buf_release(&b);
    return is_same;
}

static void write_error(const struct js_doc *doc, const struct js_node *error, struct arena *mem,
                        struct buf *out)
{
    int64_t code;
    struct str message = text_of(doc, error, "message", mem);
    const struct js_node *data = js_get(doc, error, STR("data"));

    buf_addz(out, "\nError");
    if (js_to_i64(doc, js_get(doc, error, STR("code")), &code))
        buf_addf(out, " %lld", (long long)code);
    buf_addz(out, ": ");
    md_code(out, message.p ? message : STR(""), SENTENCE_MAX);
    buf_addz(out, "\n");
    if (data) {
        buf_addz(out, "\n");
        md_json_block(out, js_raw(doc, data));
    }
}

static void write_value(const struct recorded_call *c, const struct js_doc *doc, struct arena *mem,
                        struct buf *out)
{
    const struct js_node *root = js_root(doc), *content = js_get(doc, root, STR("content")),
                         *structured = js_get(doc, root, STR("structuredContent"));

    if (str_eq(c->outcome, STR("error")) && js_get(doc, root, STR("message"))) {
        write_error(doc, root, mem, out);
        return;
    }
    if (!js_type_is(content, JS_ARRAY) || !str_eq(c->method, STR("tools/call"))) {
        buf_addz(out, "\n");
        md_json_block(out, c->result.bytes);
        return;
    }
    for (const struct js_node *b = js_first(doc, content); b; b = js_next(doc, content, b))
        write_content(doc, b, mem, out);
    if (!js_first(doc, content) && !structured)
        buf_addz(out, "\n*empty*\n");
    if (structured && !is_shown(doc, content, js_raw(doc, structured), mem)) {
        buf_addz(out, "\nStructured content:\n\n");
        md_json_block(out, js_raw(doc, structured));
    }
}

static void write_result(const struct recorded_call *c, struct arena *mem, struct buf *out)
{
    struct js_doc doc;

    if (c->result.state == RECORDED_NONE)
        return;
    buf_addz(out, "\n**Result**\n");
    if (c->result.state != RECORDED_COMPLETE)
        buf_addz(out, "\n");
    if (write_lack(&c->result, "The bytes of the result", mem, out) || !c->result.bytes.p)
        return;
    if (js_parse(c->result.bytes, &js_limits_upstream, mem, &doc, NULL)) {
        write_value(c, &doc, mem, out);
        return;
    }
    buf_addz(out, "\n");
    md_block(out, c->result.bytes, NULL);
}

/* Calls. */

static void write_duration(int64_t us, struct buf *out)
{
    if (us < 0)
        return;
    if (us < 10 * 1000)
        buf_addf(out, ", %.1f ms", (double)us / 1e3);
    else if (us < 1000 * 1000)
        buf_addf(out, ", %lld ms", (long long)(us / 1000));
    else
        buf_addf(out, ", %.1f s", (double)us / 1e6);
}

/* One of our words; of an imported call another one may be on record. */
static void write_outcome(const struct recorded_call *c, struct buf *out)
{
    static const char *const rows[][2] = {
        {"ok", "ok"},
        {"tool_error", "the tool reported an error"},
        {"error", "the server answered with an error"},
        {"timeout", "no answer in time"},
        {"cancelled", "cancelled by the client"},
        {"refused", "refused by Holdfast"},
        {"upstream_lost", "the server was lost"},
        {"indeterminate", "outcome unknown: Holdfast ended before the answer"},
        {"redelivered", "the client got an earlier result; nothing ran"},
        {"open", "no outcome yet"},
    };

    if (c->kind == RECORDED_REPORTED && str_eq(c->outcome, STR("error"))) {
        buf_addz(out, "**failed**");
        return;
    }
    for (size_t i = 0; i < countof(rows); i++)
        if (str_eq(c->outcome, str_of(rows[i][0]))) {
            buf_addf(out, "**%s**", rows[i][1]);
            return;
        }
    md_code(out, c->outcome, NAME_MAX_SHOWN);
}

static void write_title(const struct recorded_call *c, struct buf *out)
{
    struct str what = c->tool.n ? c->tool : c->method;

    buf_addf(out, "\n---\n\n## %lld. ", (long long)c->number);
    if (c->server.n) {
        md_code(out, c->server, NAME_MAX_SHOWN);
        buf_addc(out, ' ');
    }
    md_code(out, what.p ? what : STR(""), NAME_MAX_SHOWN);
    buf_addz(out, "\n\n");
}

static void write_line(struct export_writer *w, const struct recorded_call *c, struct buf *out)
{
    buf_addf(out, "%.*s · ", STR_ARG(time_text(c->at_ms, w->scratch)));
    write_outcome(c, out);
    write_duration(c->duration_us, out);
    if (c->tokens >= 0)
        buf_addf(out, ", %lld tokens", (long long)c->tokens);
    if (c->kind == RECORDED_REPORTED)
        buf_addz(out, " · reported by the client");
    else if (c->parent && !str_eq(c->outcome, STR("redelivered")))
        buf_addz(out, " · tried again");
    if (!str_eq(c->method, STR("tools/call")) && c->tool.n) {
        buf_addz(out, " · ");
        md_code(out, c->method, NAME_MAX_SHOWN);
    }
    buf_addz(out, "\n");
    if (c->error.n) {
        buf_addz(out, "\n> ");
        md_code(out, c->error, SENTENCE_MAX);
        buf_addz(out, "\n");
    }
}

static void write_arguments(const struct recorded_call *c, struct arena *mem, struct buf *out)
{
    struct str shown = c->arguments.p                    ? c->arguments
                       : c->params.state == RECORDED_CUT ? STR_NONE
                                                         : c->params.bytes;

    if (c->params.state == RECORDED_NONE)
        return;
    buf_addz(out, "\n**Arguments**\n\n");
    if (write_lack(&c->params, "The arguments", mem, out))
        return;
    if (c->params.state == RECORDED_REDACTED)
        buf_addz(out, "\n");
    if (str_eq(c->method, STR("tools/call")) && !c->arguments.p)
        buf_addz(out, "*none*\n");
    else
        md_json_block(out, shown);
}

static void md_call(struct export_writer *w, const struct recorded_call *c, struct buf *out)
{
    write_title(c, out);
    write_line(w, c, out);
    write_arguments(c, w->scratch, out);
    write_result(c, w->scratch, out);
}

static void md_end(struct export_writer *w, struct buf *out)
{
    buf_addf(out, "\n---\n\n*End of the session's record: %lld call%s.*\n", (long long)w->calls,
             w->calls == 1 ? "" : "s");
}

const struct export_format export_md = {
    .name = "md",
    .type = "text/markdown; charset=utf-8",
    .begin = md_begin,
    .call = md_call,
    .end = md_end,
    .between = "\n\n",
};
