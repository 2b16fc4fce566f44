/* SPDX-License-Identifier: Apache-2.0 */
#include "export/read.h"

#include "base/clock.h"
#include "crypto/hash.h"
#include "export/line.h"
#include "json/read.h"
#include "recording/bytes.h"
#include "session/setup.h"

#include <stdarg.h>
#include <stdio.h>

/* A line may be as deep as a body in it, and this much more. */
static const struct js_limits limits_call = {.depth = 72, .keys = 10000, .nodes = 8 << 20};
static const struct js_limits limits_other = {
    .depth = 72, .keys = 10000, .nodes = 8 << 20, .flags = JS_NO_DUPLICATES};

#define COUNT_MAX (INT64_C(1) << 53)

struct reading {
    struct export_read *r;
    struct str line;
    struct js_doc doc;
    struct arena *mem;
    struct export_line *ret;
    struct error *err;
};

static int64_t line_number(const struct export_read *r)
{
    return r->first_line + r->line;
}

static bool refuse(struct reading *g, const char *fmt, ...) printf_like(2, 3);
static bool refuse(struct reading *g, const char *fmt, ...)
{
    char why[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return error_set(g->err, ERR_BAD_INPUT, "line %lld %s; nothing was imported",
                     (long long)line_number(g->r), why);
}

/* The bytes of a line. */

/* Ways in which files are changed on their way. */
static bool check_bytes(struct reading *g)
{
    struct str l = g->line;

    if (l.n > EXPORT_LINE_MAX)
        return refuse(g, "is longer than %zu bytes", EXPORT_LINE_MAX);
    if (str_starts(l, STR("\x1f\x8b")))
        return refuse(g, "is compressed: unpack the file first (gunzip)");
    if (str_starts(l, STR("\xef\xbb\xbf")))
        return refuse(g, "begins with a byte order mark: an editor has changed the file");
    if (l.n && l.p[l.n - 1] == '\r')
        return refuse(g, "ends with a carriage return: the file was changed to line ends of "
                         "Windows");
    if (!l.n)
        return refuse(g, "is empty");
    return l.p[0] == '{' || refuse(g, "is not a line of an exported session");
}

/* Moves the chain on. */
static bool check_chain(struct reading *g)
{
    static const struct str head = {",\"chain\":\"", 10};
    struct str l = g->line, tail;
    uint8_t want[SHA256_BYTES], link[SHA256_BYTES];

    if (l.n < EXPORT_LINE_TAIL)
        return refuse(g, "has no \"chain\" at its end: it was cut or edited");
    tail = str_n(l.p + l.n - EXPORT_LINE_TAIL, EXPORT_LINE_TAIL);
    if (!str_starts(tail, head) || !str_ends(tail, STR("\"}")) ||
        !hex_decode(str_n(tail.p + head.n, 2 * SHA256_BYTES), want, SHA256_BYTES))
        return refuse(g, "has no \"chain\" at its end: it was cut or edited");
    const struct str parts[] = {str_n((const char *)g->r->chain.link, SHA256_BYTES),
                                str_n(l.p, l.n - EXPORT_LINE_TAIL)};
    sha256_parts(parts, countof(parts), link);
    if (!crypto_equal(link, want, SHA256_BYTES))
        return refuse(g, "does not follow the line before it: it was edited, or lines before it "
                         "were edited, moved or left out");
    memcpy(g->r->chain.link, link, sizeof(link));
    return true;
}

/* Members. */

static const struct js_node *member(struct reading *g, const struct js_node *object,
                                    const char *name)
{
    return js_get(&g->doc, object, str_of(name));
}

static bool read_text(struct reading *g, const struct js_node *object, const char *name,
                      struct str *ret)
{
    const struct js_node *v = member(g, object, name);

    *ret = js_text(&g->doc, v, g->mem);
    if (v && !ret->p)
        return refuse(g, "has a \"%s\" that is not a text", name);
    if (ret->n && memchr(ret->p, '\0', ret->n))
        return refuse(g, "has a \"%s\" with a NUL character", name);
    return ret->n <= EXPORT_TEXT_MAX ||
           refuse(g, "has a \"%s\" longer than %d bytes", name, EXPORT_TEXT_MAX);
}

static bool read_number(struct reading *g, const struct js_node *object, const char *name,
                        int64_t *ret)
{
    const struct js_node *v = member(g, object, name);

    return !v || (js_to_i64(&g->doc, v, ret) && *ret >= 0 && *ret <= COUNT_MAX) ||
           refuse(g, "has a \"%s\" that is not a number of 0 or more", name);
}

static bool read_time(struct reading *g, const struct js_node *object, const char *name,
                      int64_t *ret)
{
    struct str text;

    if (!read_text(g, object, name, &text))
        return false;
    return !text.p || (clock_parse(text, ret) && *ret > 0) ||
           refuse(g, "has a \"%s\" that is not a time", name);
}

/* As strict as for a request, so that whoever reads the session can read it. */
static bool is_plain_object(struct str json)
{
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    bool ok = js_parse(json, &js_limits_request, scratch, &doc, NULL) &&
              js_type_is(js_root(&doc), JS_OBJECT);

    arena_free(scratch);
    return ok;
}

static bool read_object(struct reading *g, const struct js_node *object, const char *name,
                        struct str *ret)
{
    const struct js_node *v = member(g, object, name);

    *ret = v ? js_raw(&g->doc, v) : STR_NONE;
    return !v || (ret->n <= EXPORT_JSON_MAX && is_plain_object(*ret)) ||
           refuse(g, "has a \"%s\" that is not an object of at most %zu bytes and 64 levels", name,
                  EXPORT_JSON_MAX);
}

/* The session. */

static bool read_toolsets(struct reading *g, const struct js_node *session)
{
    const struct js_node *list = member(g, session, "toolsets");
    struct str all = STR_NONE;

    if (!list)
        return true;
    if (!js_type_is(list, JS_ARRAY))
        return refuse(g, "has \"toolsets\" that are not a list");
    for (const struct js_node *v = js_first(&g->doc, list); v; v = js_next(&g->doc, list, v)) {
        struct str key = js_text(&g->doc, v, g->mem);
        if (!key.n || key.n > 255 || str_find(key, ',') != key.n || all.n > EXPORT_TOOLSETS_MAX)
            return refuse(g, "has \"toolsets\" that are not a list of names");
        all = arena_printf(g->mem, "%.*s%s%.*s", STR_ARG(all.p ? all : STR("")), all.n ? "," : "",
                           STR_ARG(key));
    }
    g->ret->about.toolsets = all;
    return true;
}

static bool read_setup(struct reading *g, const struct js_node *session)
{
    struct export_about *a = &g->ret->about;
    struct session_setup setup;

    if (!read_object(g, session, "setup", &a->setup))
        return false;
    if (!a->setup.p)
        return true;
    if (!session_setup_parse(a->setup, g->mem, &setup))
        return refuse(g, "has a \"setup\" that this version of Holdfast does not know");
    a->setup = session_setup_for_copy(a->setup, g->mem);
    return true;
}

static bool read_context(struct reading *g, const struct js_node *session)
{
    const struct js_node *v = member(g, session, "context");

    if (!v)
        return true;
    if (!recorded_bytes_read(&g->doc, v, g->mem, &g->ret->about.context))
        return refuse(g, "has a \"context\" that cannot be read");
    if (g->ret->about.context.n > EXPORT_CONTEXT_MAX)
        return refuse(g, "has a \"context\" longer than %zu bytes", EXPORT_CONTEXT_MAX);
    return is_plain_object(g->ret->about.context) ||
           refuse(g, "has a \"context\" that is not a JSON object of at most 64 levels");
}

static bool read_status(struct reading *g, const struct js_node *session)
{
    struct export_about *a = &g->ret->about;
    struct str name;

    if (!read_text(g, session, "status", &name))
        return false;
    if (!session_status_parse(name, &a->status) || a->status == SESSION_IDLE)
        return refuse(g, "has a \"status\" that is not active, expired or terminated");
    return true;
}

static bool read_client_type(struct reading *g)
{
    static const char *const types[] = {"claude-code", "ide", "agent", "cli"};
    struct str type = g->ret->about.client_type;

    for (size_t i = 0; i < countof(types); i++)
        if (!type.p || str_eq(type, str_of(types[i])))
            return true;
    return refuse(g, "has a \"client_type\" that is not claude-code, ide, agent or cli");
}

static bool read_key(struct reading *g)
{
    struct str hex = js_text(&g->doc, member(g, js_root(&g->doc), "key"), g->mem);

    return (hex.p && hex_decode(hex, g->r->key, sizeof(g->r->key))) ||
           refuse(g, "has no \"key\": the file is not signed");
}

static bool read_texts(struct reading *g, const struct js_node *s)
{
    struct export_about *a = &g->ret->about;
    const struct {
        const char *name;
        struct str *ret;
    } texts[] = {
        {"id", &a->id},
        {"session_id", &a->handle},
        {"edge_mcp_id", &a->edge_mcp_id},
        {"client_name", &a->client_name},
        {"client_type", &a->client_type},
        {"client_version", &a->client_version},
        {"termination_reason", &a->termination_reason},
        {"origin", &a->origin},
        {"carrier", &a->carrier},
        {"core_session_id", &a->core_session_id},
    };

    for (size_t i = 0; i < countof(texts); i++)
        if (!read_text(g, s, texts[i].name, texts[i].ret))
            return false;
    if (!a->id.n || a->id.n > 64 || !a->handle.n || a->handle.n > 255)
        return refuse(g, "has no \"id\" and \"session_id\" of a session");
    return true;
}

static bool read_session(struct reading *g)
{
    struct export_about *a = &g->ret->about;
    const struct js_node *s = member(g, js_root(&g->doc), "session");
    int64_t format = 0;

    if (!read_number(g, js_root(&g->doc), "format", &format))
        return false;
    if (format != EXPORT_FORMAT_VERSION)
        return refuse(g,
                      "has \"format\" %lld; this version of Holdfast reads format %d: use the "
                      "version that wrote the file, or a later one",
                      (long long)format, EXPORT_FORMAT_VERSION);
    if (!js_type_is(s, JS_OBJECT))
        return refuse(g, "has no \"session\"");
    a->initialized = js_type_is(member(g, s, "initialized"), JS_TRUE);
    return read_key(g) && read_texts(g, s) && read_status(g, s) && read_client_type(g) &&
           read_object(g, s, "connection_metadata", &a->connection_metadata) &&
           read_object(g, s, "lineage", &a->lineage) && read_setup(g, s) && read_toolsets(g, s) &&
           read_context(g, s) && read_time(g, s, "created_at", &a->created_ms) &&
           read_time(g, s, "last_activity_at", &a->last_activity_ms) &&
           read_time(g, s, "terminated_at", &a->terminated_ms) &&
           read_number(g, s, "tool_execution_count", &a->calls) &&
           read_number(g, s, "total_tokens_used", &a->tokens);
}

/* A call. */

static bool is_same_line(struct reading *g)
{
    struct str l = str_n(g->line.p, g->line.n - EXPORT_LINE_TAIL);
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    export_write_call(&out, &g->ret->call, g->mem);
    bool is_same = str_eq(buf_str(&out), l);
    buf_release(&out);
    return is_same;
}

static bool read_call(struct reading *g)
{
    struct recorded_call *c = &g->ret->call;

    if (g->r->calls >= EXPORT_CALLS_MAX)
        return refuse(g, "is a call after %lld others; a session with more is not imported",
                      (long long)EXPORT_CALLS_MAX);
    if (!export_parse_call(&g->doc, g->mem, c))
        return refuse(g, "is not a call of a session");
    if (c->number != g->r->calls + 1)
        return refuse(g, "has the number %lld, but call %lld is next", (long long)c->number,
                      (long long)g->r->calls + 1);
    if (!is_same_line(g))
        return refuse(g, "is not written as Holdfast writes a call: another program made it, or "
                         "a version of Holdfast that this one does not know");
    g->r->calls++;
    return true;
}

/* The end. */

static bool read_end(struct reading *g, const struct export_chain *before)
{
    uint8_t signature[EXPORT_SIGNATURE_BYTES];
    char text[EXPORT_SIGNED_TEXT];
    const struct js_node *root = js_root(&g->doc);
    struct str hex = js_text(&g->doc, member(g, root, "signature"), g->mem);
    int64_t calls = -1;

    if (!read_number(g, root, "calls", &calls))
        return false;
    if (calls != g->r->calls)
        return refuse(g, "says that there are %lld calls, but there are %lld", (long long)calls,
                      (long long)g->r->calls);
    if (!hex.p || !hex_decode(hex, signature, sizeof(signature)))
        return refuse(g, "has no \"signature\"");
    if (!export_signature_is_of(g->r->key, export_signed_text(before, calls, text), signature))
        return refuse(g, "has a \"signature\" that is not of these lines by the key of the first "
                         "line: the file was changed");
    g->r->is_whole = true;
    return true;
}

static bool read_by_type(struct reading *g, const struct export_chain *before)
{
    struct str type = js_text(&g->doc, member(g, js_root(&g->doc), "type"), g->mem);
    bool is_first = g->r->line == 0;

    if (str_eq(type, STR("session")) && is_first) {
        g->ret->type = EXPORT_LINE_SESSION;
        return read_session(g);
    }
    if (str_eq(type, STR("session")))
        return refuse(g, "begins a session inside of another one");
    if (is_first)
        return refuse(g, "is not the first line of a session: the file was cut");
    if (str_eq(type, STR("call"))) {
        g->ret->type = EXPORT_LINE_CALL;
        return read_call(g);
    }
    g->ret->type = EXPORT_LINE_END;
    return str_eq(type, STR("end")) ? read_end(g, before)
                                    : refuse(g, "is neither a session, a call nor an end");
}

bool export_read_line(struct export_read *r, struct str line, struct arena *mem,
                      struct export_line *ret, struct error *err)
{
    struct reading g = {.r = r, .line = line, .mem = mem, .ret = ret, .err = err};
    const struct export_chain before = r->chain;
    struct js_fault fault;
    bool is_call = str_starts(line, STR("{\"type\":\"call\","));

    *ret = (struct export_line){0};
    if (r->is_whole)
        return refuse(&g, "comes after the end of the session");
    if (!check_bytes(&g))
        return false;
    if (!js_parse(line, is_call ? &limits_call : &limits_other, mem, &g.doc, &fault))
        return refuse(&g, "is not JSON (%s at byte %zu): it was cut or edited", fault.reason,
                      fault.offset + 1);
    if (!check_chain(&g) || !read_by_type(&g, &before))
        return false;
    r->line++;
    return true;
}

bool export_read_end(const struct export_read *r, struct error *err)
{
    if (r->is_whole)
        return true;
    if (!r->line)
        return error_set(err, ERR_BAD_INPUT, "the file is empty; nothing was imported");
    return error_set(err, ERR_BAD_INPUT,
                     "the file ends after line %lld, without the end of the session: it was cut; "
                     "nothing was imported",
                     (long long)line_number(r) - 1);
}
