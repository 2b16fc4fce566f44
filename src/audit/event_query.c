/* SPDX-License-Identifier: Apache-2.0 */
/* Query strings for pages of events: one table of names, used by both directions. */
#include "audit/event_query.h"

#include "audit/event_id.h"
#include "audit/event_json.h"

#include <inttypes.h>
#include <stdio.h>

enum param_type {
    PARAM_ID,
    PARAM_MS,
    PARAM_TEXT,
    PARAM_KIND,
    PARAM_ORDER,
    PARAM_FLAG,
    PARAM_LIMIT,
    PARAM_CURSOR /* read by the API */
};

static const struct param {
    struct str name;
    enum param_type type;
    size_t offset;
} params[] = {
#define IN_FILTER(member) offsetof(struct event_filter, member)
    {STR("after"), PARAM_ID, IN_FILTER(after)},
    {STR("before"), PARAM_ID, IN_FILTER(before)},
    {STR("exec"), PARAM_ID, IN_FILTER(exec)},
    {STR("since"), PARAM_MS, IN_FILTER(since_ms)},
    {STR("tenant"), PARAM_TEXT, IN_FILTER(tenant)},
    {STR("session"), PARAM_TEXT, IN_FILTER(session_id)},
    {STR("server"), PARAM_TEXT, IN_FILTER(server)},
    {STR("tool"), PARAM_TEXT, IN_FILTER(tool)},
    {STR("outcome"), PARAM_TEXT, IN_FILTER(outcome)},
    {STR("session_prefix"), PARAM_TEXT, IN_FILTER(session_prefix)},
    {STR("open"), PARAM_FLAG, IN_FILTER(open)},
    {STR("kind"), PARAM_KIND, IN_FILTER(kind)},
    {STR("order"), PARAM_ORDER, IN_FILTER(newest_first)},
    {STR("bodies"), PARAM_FLAG, IN_FILTER(with_bodies)},
    {STR("limit"), PARAM_LIMIT, 0},
    {STR("cursor"), PARAM_CURSOR, 0},
#undef IN_FILTER
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Decodes %XX and '+'.  Returns STR_NONE when a % is not followed by two hex digits. */
static struct str percent_decode(struct str s, struct arena *mem)
{
    char *out = arena_alloc(mem, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%') {
            int high = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1;
            int low = i + 2 < s.n ? hex_digit(s.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return STR_NONE;
            c = (char)(high << 4 | low);
            i += 2;
        }
        out[n++] = s.p[i] == '+' && c == '+' ? ' ' : c;
    }
    return str_n(out, n);
}

/* Reads one of two words. */
static bool read_choice(struct str value, struct str no, struct str yes, bool *ret)
{
    if (!str_eq(value, no) && !str_eq(value, yes))
        return false;
    *ret = str_eq(value, yes);
    return true;
}

static bool read_param(const struct param *p, struct str value, void *at, unsigned *ret_limit)
{
    uint64_t number;
    switch (p->type) {
    case PARAM_ID:
        return event_id_parse(value, at);
    case PARAM_MS:
        return str_to_u64(value, INT64_MAX, at);
    case PARAM_TEXT:
        *(struct str *)at = value;
        return true;
    case PARAM_KIND:
        return event_kind_parse(value, at);
    case PARAM_ORDER:
        return read_choice(value, STR("oldest"), STR("newest"), at);
    case PARAM_FLAG:
        return read_choice(value, STR("0"), STR("1"), at);
    case PARAM_LIMIT:
        if (!str_to_u64(value, EVENTS_PAGE_MAX, &number) || number == 0)
            return false;
        *ret_limit = (unsigned)number;
        return true;
    case PARAM_CURSOR:
        return true;
    }
    return false;
}

static const struct param *find_param(struct str name)
{
    for (size_t i = 0; i < countof(params); i++)
        if (str_eq(params[i].name, name))
            return &params[i];
    return NULL;
}

bool audit_events_query_parse(struct str query, struct event_filter *ret, unsigned *ret_limit,
                              struct arena *mem, struct error *err)
{
    struct event_filter filter = {.kind = -1};
    unsigned limit = EVENTS_PAGE_DEFAULT;
    while (query.n > 0) {
        struct str value = str_split(&query, '&');
        struct str name = str_split(&value, '=');
        if (name.n == 0 && value.n == 0)
            continue;
        const struct param *p = find_param(name);
        if (!p)
            return error_set(
                err, ERR_BAD_INPUT,
                "there is no parameter of that name; use after, before, exec, since, "
                "session, session_prefix, server, tool, outcome, open, kind, order, bodies or "
                "limit");
        struct str text = percent_decode(value.p ? value : STR(""), mem);
        if (!text.p || !read_param(p, text, (char *)&filter + p->offset, &limit))
            return error_set(err, ERR_BAD_INPUT,
                             "the value of %.*s is not valid; see /api/v1/openapi.json",
                             STR_ARG(p->name));
    }
    *ret = filter;
    *ret_limit = limit;
    return true;
}

void audit_query_encode(struct str s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' ||
                     c == '_' || c == '.';
        if (plain)
            buf_addc(out, (char)c);
        else
            buf_addf(out, "%%%02X", c);
    }
}

static void add_name(struct buf *out, size_t start, struct str name)
{
    if (out->n > start)
        buf_addc(out, '&');
    buf_addstr(out, name);
    buf_addc(out, '=');
}

/* Returns the value as text; absent when it equals the default of a missing parameter. */
static struct str value_text(const struct param *p, const void *at, unsigned limit,
                             char room[EVENT_ID_TEXT])
{
    switch (p->type) {
    case PARAM_ID:
        return *(const int64_t *)at > 0 ? str_of(event_id_format(*(const int64_t *)at, room))
                                        : STR_NONE;
    case PARAM_MS:
        snprintf(room, EVENT_ID_TEXT, "%" PRId64, *(const int64_t *)at);
        return *(const int64_t *)at > 0 ? str_of(room) : STR_NONE;
    case PARAM_TEXT:
        return *(const struct str *)at;
    case PARAM_KIND:
        return str_of(event_kind_name(*(const int *)at));
    case PARAM_ORDER:
        return *(const bool *)at ? STR("newest") : STR_NONE;
    case PARAM_FLAG:
        return *(const bool *)at ? STR("1") : STR_NONE;
    case PARAM_LIMIT:
        snprintf(room, EVENT_ID_TEXT, "%u", limit);
        return str_of(room);
    case PARAM_CURSOR:
        break;
    }
    return STR_NONE;
}

void audit_events_query_format(const struct event_filter *filter, unsigned limit, struct buf *out)
{
    size_t start = out->n;
    for (size_t i = 0; i < countof(params); i++) {
        char room[EVENT_ID_TEXT];
        struct str value =
            value_text(&params[i], (const char *)filter + params[i].offset, limit, room);
        if (!value.p)
            continue;
        add_name(out, start, params[i].name);
        audit_query_encode(value, out);
    }
}
