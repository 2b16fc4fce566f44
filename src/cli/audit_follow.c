/* SPDX-License-Identifier: Apache-2.0 */
/* A client of server-sent events. */
#include "cli/audit_follow.h"
#include "cli/cli.h"

#include "audit/event_json.h"
#include "http/sse.h"
#include "json/read.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define EVENT_MAX_BYTES (1u << 20)
#define AGAIN_MS 500

struct follow {
    struct position *at;
    bool (*each)(void *arg, const struct event_row *e); /* NULL: the position alone is wanted */
    void *arg;
    struct sse_reader sse;
    bool is_enough;
};

/* False: the text is no event, or the caller wants no more. */
static bool take_row(struct follow *f, struct str text)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    struct event_row e;
    struct error err;
    bool ok = js_parse(text, &js_limits_upstream, mem, &doc, NULL) &&
              event_from_json(&doc, js_root(&doc), mem, &e, &err);

    if (ok) {
        ok = f->each(f->arg, &e);
        f->is_enough = !ok;
    }
    arena_free(mem);
    return ok;
}

/* False ends the stream. */
static bool take_event(void *arg, const struct sse_event *e)
{
    struct follow *f = arg;
    struct position at;

    if (!e->id.p || !position_parse(e->id, &at))
        return false;
    *f->at = at;
    if (!f->each) {
        f->is_enough = true;
        return false;
    }
    return !str_eq(e->type, STR("message")) || e->data.n == 0 || take_row(f, e->data);
}

static bool is_output_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP));
}

/* Bytes come at least every 15 s, so that a reader that has gone is noticed. */
static bool take_bytes(void *arg, struct str bytes, struct error *err)
{
    struct follow *f = arg;

    f->is_enough |= is_output_gone();
    if (!f->is_enough && sse_feed(&f->sse, bytes, take_event, f))
        return true;
    return error_set(err, ERR_UNREACHABLE, "the stream of events ended");
}

/* One connection, to its end. */
static void follow_once(struct control *c, struct follow *f, struct str path, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);

    sse_reader_init(&f->sse, EVENT_MAX_BYTES);
    if (control_download(c, path, mem, take_bytes, f, err))
        error_set(err, ERR_UNREACHABLE, "the stream of events ended");
    sse_reader_release(&f->sse);
    arena_free(mem);
    f->is_enough |= f->each && is_output_gone();
}

bool audit_follow_now(struct control *c, struct position *ret, struct error *err)
{
    struct follow f = {.at = ret};

    follow_once(c, &f, STR("/api/v1/events"), err);
    return f.is_enough;
}

bool audit_follow(struct control *c, struct str filters, struct position *at,
                  bool (*each)(void *arg, const struct event_row *e), void *arg, struct error *err)
{
    struct follow f = {.at = at, .each = each, .arg = arg};
    struct position before = *at;
    bool is_waiting = false, ok = true;

    control_watch_output(c, true);
    while (ok && !f.is_enough) {
        char text[POSITION_TEXT];
        struct buf path;
        buf_init(&path, 64 << 10);
        buf_addf(&path, "/api/v1/events?after=%s&%.*s", position_format(at, text),
                 STR_ARG(filters));
        err->code = ERR_NONE;
        follow_once(c, &f, buf_str(&path), err);
        buf_release(&path);
        ok = err->code == ERR_UNREACHABLE || err->code == ERR_UNAVAILABLE || f.is_enough;
        bool moved = position_compare(at, &before) != POSITION_SAME;
        if (ok && !f.is_enough && !moved && !is_waiting)
            fprintf(stderr, "holdfast: no Holdfast answers there; waiting for it to come back\n");
        is_waiting = !moved;
        before = *at;
        if (ok && !f.is_enough)
            f.is_enough = !cli_pause(AGAIN_MS);
    }
    control_watch_output(c, false);
    return ok;
}
