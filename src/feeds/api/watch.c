/* SPDX-License-Identifier: Apache-2.0 */
#include "feeds/api/watch.h"

#include "api/job.h"
#include "base/utf8.h"
#include "feeds/api/watchers.h"

static const char *const filters[] = {"types", "session", "server", "tool", "outcome"};

/* The decoded values of every ?name=, joined by commas; absent: there is none.  false: the refusal
 * was sent. */
static bool read_all(struct api_call *c, const char *name, struct str *ret)
{
    struct str query = c->http->head->query;
    struct buf all;
    bool ok = true;

    *ret = STR_NONE;
    buf_init(&all, 64 << 10); /* a head is smaller */
    while (query.p && ok) {
        struct str value = str_split(&query, '&'), key = str_split(&value, '=');
        if (!str_eq(key, str_of(name)))
            continue;
        char *text = arena_alloc(c->mem, value.n + 1);
        int n = http_percent_decode(value.p ? value : STR(""), text, false);
        ok = n >= 0;
        if (ret->p)
            buf_addc(&all, ',');
        buf_add(&all, text, ok ? (size_t)n : 0);
        *ret = STR("");
    }
    if (ret->p)
        *ret = arena_dup(c->mem, buf_str(&all));
    buf_release(&all);
    if (!ok)
        api_refuse(c, ERR_BAD_INPUT, "?%s= cannot be read; send it percent-encoded", name);
    return ok;
}

static bool read_filters(struct api_call *c, struct selection *ret)
{
    struct str value;
    struct error err;

    for (size_t i = 0; i < countof(filters); i++) {
        if (!read_all(c, filters[i], &value))
            return false;
        if (value.p && !selection_set(ret, str_of(filters[i]), value, c->mem, &err)) {
            api_refuse(c, err.code, "%s", err.text);
            return false;
        }
    }
    return true;
}

void watch_refuse(struct api_call *c, const struct error *err)
{
    if (err->code == ERR_LIMIT)
        api_problem(c, err->code, err->text, err->text, STR("Retry-After: 5\r\n"));
    else
        api_refuse(c, err->code, "%s", err->text);
}

bool watch_position_parse(struct str text, struct position *ret, struct error *err)
{
    return position_parse(text, ret) ||
           error_set(err, ERR_BAD_INPUT,
                     "\"%.*s\" is no position; give the id that came with an event, such as "
                     "7.120, or 0 for all events",
                     STR_ARG(str_cut(text, 64)));
}

/* A client that connects again has the same URL as before, so the header says more than ?after=. */
static bool read_position(struct api_call *c, struct watch_request *ret)
{
    struct str text, last = http_header_get(c->http->head, STR("last-event-id"));
    struct error err;

    if (!api_query(c, "after", &text))
        return false;
    if (http_header_count(c->http->head, STR("last-event-id")) > 1) {
        api_refuse(c, ERR_BAD_INPUT, "send Last-Event-ID once");
        return false;
    }
    if (last.n)
        text = last;
    ret->has_from = text.p != NULL;
    if (!text.p || watch_position_parse(text, &ret->from, &err))
        return true;
    api_refuse(c, err.code, "%s", err.text);
    return false;
}

bool watch_request_visibility(struct api_call *c, struct visibility *ret)
{
    struct str asked, tenant;

    if (!api_query(c, "tenant", &asked) || !api_tenant(c, asked, &tenant))
        return false;
    *ret = api_is_local(c) ? visibility_of_tenant(tenant) : visibility_of(&c->who, false);
    return true;
}

bool watch_request_read(struct api_call *c, struct watch_request *ret)
{
    *ret = (struct watch_request){.has_from = false};
    return watch_request_visibility(c, &ret->visibility) && read_filters(c, &ret->selection) &&
           read_position(c, ret);
}

static const struct {
    const char *reason, *detail;
} gaps[] = {
    [WATCH_SLOW] =
        {"slow", "This client took too long for the events that it was sent, so the stream ends. "
                 "Nothing is lost: begin again after this position to get every event, or "
                 "without a position to go on with new ones."},
    [WATCH_REMOVED] =
        {"removed", "Events after the position where this stream began were removed by the rules "
                    "of retention. The stream goes on with those that exist: take the present "
                    "state from the API."},
    [WATCH_LOST] = {"lost", NULL},
};

void watch_gap_write(enum watch_gap gap, const struct position *at, const struct error *err,
                     struct js_writer *w)
{
    char text[POSITION_TEXT];

    watchers_count_resync(gaps[gap].reason);
    js_kv_string(w, "reason", str_of(gaps[gap].reason));
    if (at)
        js_kv_string(w, "position", str_of(position_format(at, text)));
    js_kv_bool(w, "ends", gap != WATCH_REMOVED);
    js_kv_string(w, "detail", str_of(err ? err->text : gaps[gap].detail));
}
