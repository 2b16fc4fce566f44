/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each session, and all that is known of one. */
#include "cli/sessions_view.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/source.h"
#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>

#define HANDLE_SHOWN 12 /* "ses_" and 48 random bits, on a terminal */
#define LONGEST_TEXT 4096

static const struct table_column columns[] = {
    {"SESSION", 8, false}, {"STATUS", 0, false}, {"CLIENT", 6, false},    {"USER", 5, false},
    {"SERVERS", 7, false}, {"CALLS", 0, true},   {"LAST USED", 0, false}, {"AGE", 0, true},
};

static const char *colour_of(struct str status)
{
    return str_eq(status, STR("active")) ? "32" : str_eq(status, STR("idle")) ? "33" : "2";
}

void sessions_view_begin(struct table *t, size_t width, bool colour)
{
    table_init(t, columns, countof(columns), width, colour);
    if (!width) /* rows that come later stay aligned whatever becomes of a session */
        t->natural[1] = strlen("terminated");
}

struct str sessions_view_who(const struct js_doc *doc, const struct js_node *session,
                             struct arena *mem)
{
    struct str user = source_text(doc, session, "user_name", mem),
               key = source_text(doc, session, "key_name", mem),
               rest = source_text(doc, session, "owner", mem), owner = rest;

    if (user.n || key.n)
        return user.n ? user : key;
    str_split(&rest, ':');
    return rest.n ? rest : owner;
}

/* The texts of an array, separated by commas. */
static struct str list_of(const struct js_doc *doc, const struct js_node *session, const char *name,
                          struct arena *mem)
{
    const struct js_node *array = js_get(doc, session, str_of(name));
    struct str text = STR("");

    if (!js_type_is(array, JS_ARRAY))
        return text;
    for (const struct js_node *v = js_first(doc, array); v; v = js_next(doc, array, v))
        text = arena_printf(mem, "%.*s%s%.*s", STR_ARG(text), text.n ? ", " : "",
                            STR_ARG(js_text(doc, v, mem)));
    return text;
}

static int64_t number_of(const struct js_doc *doc, const struct js_node *session, const char *name)
{
    int64_t number;

    return js_to_i64(doc, js_get(doc, session, str_of(name)), &number) ? number : 0;
}

/* "12s", "5m", "3h" or "2d". */
static const char *age_text(int64_t seconds, char ret[24])
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;

    while (i + 1 < countof(units) && seconds < units[i].seconds)
        i++;
    snprintf(ret, 24, "%" PRId64 "%c", seconds / units[i].seconds, units[i].unit);
    return ret;
}

/* A time of today, else the day. */
static struct str short_time(struct str text, struct audit_when when, struct arena *mem)
{
    char shown[WHEN_TEXT];
    int64_t ms;

    if (!clock_parse(text, &ms))
        return STR("");
    struct str time = str_of(when_format(ms, when.now_ms, when.utc, shown));
    return arena_dup(mem, str_n(time.p, time.n < 10 ? time.n : 10));
}

static struct str short_handle(const struct table *t, struct str handle)
{
    bool is_ours = str_starts(handle, STR("ses_")) && handle.n > HANDLE_SHOWN;

    return t->width && is_ours ? str_n(handle.p, HANDLE_SHOWN) : handle;
}

static struct str client_of(const struct js_doc *doc, const struct js_node *session,
                            struct arena *mem)
{
    struct str name = source_text(doc, session, "client_name", mem);

    return name.n ? name : source_text(doc, session, "client_type", mem);
}

void sessions_view_row(struct table *t, const struct js_doc *doc, const struct js_node *session,
                       struct audit_when when)
{
    struct str status = source_text(doc, session, "status", t->mem);
    char age[24], calls[24];

    snprintf(calls, sizeof(calls), "%" PRId64, number_of(doc, session, "tool_execution_count"));
    table_add(t, short_handle(t, source_text(doc, session, "session_id", t->mem)));
    table_add_coloured(t, status, colour_of(status));
    table_add(t, client_of(doc, session, t->mem));
    table_add(t, sessions_view_who(doc, session, t->mem));
    table_add(t, list_of(doc, session, "servers", t->mem));
    table_add(t, str_of(calls));
    table_add(t, short_time(source_text(doc, session, "last_activity_at", t->mem), when, t->mem));
    table_add(t, str_of(age_text(number_of(doc, session, "session_age"), age)));
}

/* One session. */

struct one {
    struct buf *out;
    const struct js_doc *doc;
    const struct js_node *session;
    struct audit_when when;
    struct arena *mem;
};

static struct str text_of(const struct one *o, const char *name)
{
    return source_text(o->doc, o->session, name, o->mem);
}

static void add_line(const struct one *o, const char *name, struct str value)
{
    if (!value.n)
        return;
    buf_addf(o->out, "%-11s", name);
    log_escape(o->out, value, LONGEST_TEXT);
    buf_addc(o->out, '\n');
}

static struct str time_of(const struct one *o, const struct js_node *object, const char *name)
{
    char shown[WHEN_TEXT];
    int64_t ms;

    if (!clock_parse(source_text(o->doc, object, name, o->mem), &ms))
        return STR("");
    return arena_dup(o->mem, str_of(when_format(ms, o->when.now_ms, o->when.utc, shown)));
}

static void add_status(const struct one *o, bool colour)
{
    struct str status = text_of(o, "status"), reason = text_of(o, "termination_reason");

    buf_addf(o->out, "%-11s", "status");
    if (colour)
        buf_addf(o->out, "\033[%sm", colour_of(status));
    log_escape(o->out, status, LONGEST_TEXT);
    if (colour)
        buf_addz(o->out, "\033[0m");
    buf_addz(o->out, reason.n ? ": " : "");
    log_escape(o->out, reason, LONGEST_TEXT);
    buf_addc(o->out, '\n');
}

static void add_client(const struct one *o)
{
    struct str name = client_of(o->doc, o->session, o->mem), type = text_of(o, "client_type"),
               version = text_of(o, "client_version");
    bool has_type = type.n && !str_eq(type, name);

    add_line(o, "client",
             arena_printf(o->mem, "%.*s%s%.*s%s%.*s%s", STR_ARG(name), version.n ? " " : "",
                          STR_ARG(version), has_type ? " (" : "",
                          STR_ARG(has_type ? type : STR("")), has_type ? ")" : ""));
}

static void add_who(const struct one *o)
{
    struct str key = text_of(o, "key_name"), who = sessions_view_who(o->doc, o->session, o->mem);

    if (text_of(o, "user_name").n && key.n)
        who = arena_printf(o->mem, "%.*s (key %.*s)", STR_ARG(who), STR_ARG(key));
    else if (key.n)
        who = arena_printf(o->mem, "key %.*s", STR_ARG(who));
    add_line(o, "user", who);
}

static void add_links(const struct one *o)
{
    const struct js_node *links = js_get(o->doc, o->session, STR("links"));
    const char *name = "servers";

    if (!js_type_is(links, JS_ARRAY))
        return;
    for (const struct js_node *l = js_first(o->doc, links); l; l = js_next(o->doc, links, l)) {
        bool is_live = js_type_is(js_get(o->doc, l, STR("is_live")), JS_TRUE);
        struct str reason = source_text(o->doc, l, "end_reason", o->mem);
        add_line(o, name,
                 arena_printf(o->mem, "%.*s, %s %.*s%s%.*s",
                              STR_ARG(source_text(o->doc, l, "server", o->mem)),
                              is_live ? "open since" : "ended",
                              STR_ARG(time_of(o, l, is_live ? "opened_at" : "ended_at")),
                              reason.n ? ": " : "", STR_ARG(reason)));
        name = "";
    }
}

/* The session that this one was made from. */
static void add_lineage(const struct one *o)
{
    const struct js_node *l = js_get(o->doc, o->session, STR("lineage"));
    struct str kind = source_text(o->doc, l, "kind", o->mem),
               key = source_text(o->doc, l, "key", o->mem),
               handle = source_text(o->doc, l, "handle", o->mem);
    const char *name = str_eq(kind, STR("import"))   ? "import of"
                       : str_eq(kind, STR("replay")) ? "replay of"
                                                     : "fork of";

    if (!kind.n)
        return;
    add_line(o, name, handle.n ? handle : source_text(o->doc, l, "session", o->mem));
    if (str_eq(kind, STR("import")))
        buf_addf(o->out, "%-11s%" PRId64 " before the import\n", "", number_of(o->doc, l, "calls"));
    add_line(o, "signed by", key);
}

static void add_counts(const struct one *o)
{
    int64_t tokens = number_of(o->doc, o->session, "total_tokens_used"),
            context = number_of(o->doc, o->session, "context_bytes");

    buf_addf(o->out, "%-11s%" PRId64 "\n", "calls",
             number_of(o->doc, o->session, "tool_execution_count"));
    if (tokens)
        buf_addf(o->out, "%-11s%" PRId64 "\n", "tokens", tokens);
    if (context)
        buf_addf(o->out, "%-11s%" PRId64 " bytes\n", "context", context);
    add_line(o, "toolsets", list_of(o->doc, o->session, "toolsets", o->mem));
}

static void add_place(const struct one *o)
{
    const struct js_node *metadata = js_get(o->doc, o->session, STR("connection_metadata"));
    struct str carrier = text_of(o, "carrier"), origin = text_of(o, "origin");

    if (carrier.n && !str_eq(carrier, origin))
        origin = arena_printf(o->mem, "%.*s, created by %.*s", STR_ARG(carrier), STR_ARG(origin));
    add_line(o, "carrier", origin);
    if (js_type_is(metadata, JS_OBJECT)) {
        add_line(o, "address", source_text(o->doc, metadata, "ip_address", o->mem));
        add_line(o, "user agent", source_text(o->doc, metadata, "user_agent", o->mem));
    }
    add_line(o, "node", text_of(o, "edge_mcp_id"));
}

void sessions_view_one(struct buf *out, const struct js_doc *doc, const struct js_node *session,
                       struct audit_when when, bool colour)
{
    struct one o = {out, doc, session, when, arena_new(16u * 1024 * 1024)};

    add_line(&o, "session", text_of(&o, "session_id"));
    add_line(&o, "id", text_of(&o, "id"));
    add_status(&o, colour);
    add_client(&o);
    add_who(&o);
    add_line(&o, "tenant", text_of(&o, "tenant_id"));
    add_place(&o);
    add_links(&o);
    add_counts(&o);
    add_lineage(&o);
    add_line(&o, "created", time_of(&o, session, "created_at"));
    add_line(&o, "last used", time_of(&o, session, "last_activity_at"));
    if (text_of(&o, "terminated_at").n)
        add_line(&o, "ended", time_of(&o, session, "terminated_at"));
    else
        add_line(&o, "expires", time_of(&o, session, "expires_at"));
    arena_free(o.mem);
}
