/* SPDX-License-Identifier: Apache-2.0 */
/* Writes findings to the store.  The query lane reads the previous definition and makes the diff.
 * Then rows and events are written, a bounded number per transaction.  Findings are recorded one
 * after the other, so that each sees the rows of the one before.  If a write fails, the server's
 * next list gives the same findings again. */
#include "upstream/pins_impl.h"

#include "audit/redact.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/write.h"
#include "upstream/pins_diff.h"
#include "upstream/pins_json.h"

#include <stdlib.h>

#define OPS_MAX 200
#define BODY_MAX (16u * 1024)
#define TENANT STR("default") /* servers belong to the operator */

static void record_next(struct pins *p);

void findings_free(struct findings *f)
{
    free(f->of);
    arena_free(f->mem);
}

/* Marks uncommitted findings, so that the next list gives them again. */
static void lose(struct findings *f)
{
    struct watched_server *s = pins_server(f->pins, f->server);

    for (size_t i = f->committed; i < f->n; i++) {
        const struct finding *one = &f->of[i];
        struct watched_tool *t = one->row.server.p ? map_get(&s->tools, one->tool) : NULL;
        struct refused_name *r =
            one->kind == FOUND_REFUSED ? map_get(&s->refused, one->tool) : NULL;
        if (r)
            r->unrecorded = true;
        s->is_full = s->is_full && one->kind != FOUND_BEYOND;
        if (!t)
            continue;
        memset(t->raw, 0, sizeof(t->raw));
        t->gone = t->gone && one->kind != FOUND_REMOVED;
        t->unrecorded = one->kind != FOUND_REMOVED;
        t->unrecorded_as = one->kind;
    }
}

void pins_record(struct findings *f)
{
    struct pins *p = f->pins;

    if (p->n_queue == PINS_MAX_QUEUE) {
        log_warn("tools change faster than the changes can be recorded; the rest is recorded with "
                 "the next list",
                 LS("server", f->server), LI("waiting", PINS_MAX_QUEUE));
        lose(f);
        findings_free(f);
        return;
    }
    list_push(&p->queue, &f->node);
    if (++p->n_queue == 1)
        record_next(p);
}

void pins_event_body(struct event_row *e, struct str json)
{
    e->body = json;
    e->body_len = (int64_t)json.n;
    sha256(json, e->body_sha);
    memcpy(e->stored_sha, e->body_sha, sizeof(e->stored_sha));
}

/* On the query lane. */

/* The definition that an event is compared with, and in *ret its digest: the one seen before, or
 * the approved one if changes in between had no event.  *ret is unchanged if there is none. */
static struct str definition_before(struct findings *f, const struct finding *one,
                                    struct store *store, struct tool_row *ret)
{
    static const uint8_t never[SHA256_BYTES];
    struct tool_filter filter = {.server = f->server, .name = one->tool, .with_definitions = true};
    struct tool_row *rows = NULL;
    struct error ignored;
    size_t n = 0;

    if (!store_tools_page(store, &filter, 1, f->mem, &rows, &n, &ignored) || !n)
        return STR_NONE;
    if (!one->before) {
        *ret = rows[0];
        return rows[0].definition;
    }
    if (memcmp(rows[0].approved, never, sizeof(never)) == 0)
        return STR_NONE;
    *ret = rows[0];
    memcpy(ret->digest, rows[0].approved, sizeof(ret->digest));
    return rows[0].approved_definition;
}

static void write_digest(struct js_writer *w, const char *key, const uint8_t digest[SHA256_BYTES])
{
    char hex[2 * SHA256_BYTES + 1];
    hex_encode(digest, SHA256_BYTES, hex);
    js_kv_string(w, key, str_of(hex));
}

static struct str diff_of(const struct finding *one, const struct tool_row *was, struct str before,
                          struct buf *out)
{
    if (one->kind == FOUND_REMOVED)
        return STR_NONE;
    if (!one->row.definition.p || (!before.p && was->server.p))
        return STR(TOOL_TOO_LONG);
    tool_diff(before, one->row.definition, PINS_MAX_DIFF, out);
    if (str_ends(buf_str(out), STR(TOOL_DIFF_MORE)))
        buf_addz(out, " (`holdfast servers diff` shows it)\n");
    return buf_str(out);
}

/* Redacts secrets of the server's configuration that the server put into a definition.  In a
 * definition that a person is to approve, nothing else is replaced: redacting token-like strings
 * could hide text from the person that a model reads. */
static struct str hide_values(struct findings *f, struct str definition)
{
    struct buf clean;

    buf_init(&clean, SIZE_MAX / 4);
    if (definition.p && redact_unnamed(definition, false, &clean))
        definition = arena_dup(f->mem, buf_str(&clean));
    buf_release(&clean);
    return definition;
}

static void write_body(struct findings *f, struct finding *one, struct store *store)
{
    struct tool_row was = {.server = STR_NONE};
    struct str before =
        one->kind == FOUND_CHANGED ? definition_before(f, one, store, &was) : STR_NONE;
    struct buf out, diff, clean;
    struct js_writer w;

    buf_init(&out, 8 * BODY_MAX);
    buf_init(&diff, 2 * PINS_MAX_DIFF);
    buf_init(&clean, SIZE_MAX / 4);
    before = hide_values(f, before); /* an older version may have stored values */
    js_begin(&w, &out);
    js_object(&w);
    if (was.server.p)
        write_digest(&w, "was", was.digest);
    write_digest(&w, "now", one->row.digest);
    js_kv_bool(&w, "held", one->is_held);
    struct str words = diff_of(one, &was, before, &diff);
    if (words.p && redact_unnamed(words, true, &clean))
        words = buf_str(&clean);
    js_kv_string(&w, "diff", words);
    js_object_end(&w);
    if (out.n <= BODY_MAX)
        pins_event_body(&one->event, arena_dup(f->mem, buf_str(&out)));
    buf_release(&clean);
    buf_release(&diff);
    buf_release(&out);
}

/* The changes before that had no event, and a note if further ones will wait. */
static struct str aside(struct findings *f, const struct finding *one)
{
    struct str before =
        one->before
            ? arena_printf(f->mem, "; %u earlier changes have no event of their own", one->before)
            : STR("");
    const char *last =
        one->is_last ? "; further changes of this tool become one event in ten minutes" : "";
    return arena_printf(f->mem, "%.*s%s", STR_ARG(before), last);
}

static struct str sentence(struct findings *f, const struct finding *one)
{
    char shown[160], like[160];
    struct str more = aside(f, one);

    log_escape_cut(shown, sizeof(shown), one->tool);
    switch (one->kind) {
    case FOUND_TRUSTED:
        break;
    case FOUND_ADDED:
        return arena_printf(f->mem, "%.*s has a new tool, %s%.*s", STR_ARG(f->server), shown,
                            STR_ARG(more));
    case FOUND_CHANGED:
        return arena_printf(f->mem, "%.*s has changed its tool %s%.*s", STR_ARG(f->server), shown,
                            STR_ARG(more));
    case FOUND_REMOVED:
        return arena_printf(f->mem, "%.*s no longer lists its tool %s%.*s", STR_ARG(f->server),
                            shown, STR_ARG(more));
    case FOUND_REFUSED:
        log_escape_cut(like, sizeof(like), one->like.p ? one->like : STR(""));
        return arena_printf(f->mem, "a tool of %.*s is left out: its name %s%s%s",
                            STR_ARG(f->server), one->why, one->like.p ? ", " : "", like);
    case FOUND_REFUSED_REST:
        return arena_printf(f->mem,
                            "%.*s has more than %d names that are left out; the rest is left out "
                            "too, without events",
                            STR_ARG(f->server), PINS_MAX_REFUSED);
    case FOUND_BEYOND:
        return arena_printf(f->mem,
                            "%.*s has had more than %d tools, and the rest is not watched; give it "
                            "another name in the configuration to begin again",
                            STR_ARG(f->server), PINS_MAX_TOOLS);
    }
    return arena_printf(f->mem, "%.*s is seen for the first time; its %zu tools are approved",
                        STR_ARG(f->server), f->trusted);
}

static struct event_row event_of(struct findings *f, const struct finding *one)
{
    static const char *const methods[] = {
        [FOUND_TRUSTED] = "tool/trusted",  [FOUND_ADDED] = "tool/added",
        [FOUND_CHANGED] = "tool/changed",  [FOUND_REMOVED] = "tool/removed",
        [FOUND_REFUSED] = "tool/refused",  [FOUND_REFUSED_REST] = "tool/refused",
        [FOUND_BEYOND] = "tool/unwatched",
    };
    bool refused = one->is_held || one->kind == FOUND_REFUSED || one->kind == FOUND_REFUSED_REST;
    bool is_of_one =
        one->kind != FOUND_TRUSTED && one->kind != FOUND_REFUSED_REST && one->kind != FOUND_BEYOND;
    struct str tool = is_of_one ? one->tool : STR_NONE;

    return (struct event_row){
        .tenant = TENANT,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = STR("holdfast"),
        .server = f->server,
        .method = str_of(methods[one->kind]),
        .tool = name_cut(tool),
        .outcome = refused ? STR("refused") : STR_NONE, /* absent: the event has no outcome */
        .error = sentence(f, one),
        .body_len = -1,
    };
}

static bool run_read(struct read_job *job, struct store *store)
{
    struct findings *f = container_of(job, struct findings, read);
    bool trusted = false;

    for (size_t i = 0; i < f->n; i++) {
        struct finding *one = &f->of[i];
        one->row.definition = hide_values(f, one->row.definition);
        if (one->kind == FOUND_TRUSTED) {
            one->is_recorded = !trusted; /* one event for all trusted tools */
            trusted = true;
        }
        if (!one->is_recorded)
            continue;
        one->event = event_of(f, one);
        if (one->kind != FOUND_TRUSTED && one->row.server.p)
            write_body(f, one, store);
    }
    if (f->suppressed) {
        struct finding rest = {.kind = FOUND_CHANGED, .tool = STR("-")};
        f->rest = event_of(f, &rest);
        f->rest.tool = STR_NONE;
        f->rest.error = arena_printf(f->mem,
                                     "%.*s has %u more changes without events of their own; see "
                                     "`holdfast servers show %.*s`",
                                     STR_ARG(f->server), f->suppressed, STR_ARG(f->server));
    }
    return true;
}

/* On the loop. */

static void finish(struct findings *f)
{
    struct pins *p = f->pins;

    list_remove(&f->node);
    p->n_queue--;
    findings_free(f);
    if (p->n_queue)
        record_next(p);
}

static void finish_lost(struct findings *f, const char *why)
{
    log_error(
        "a change of tools could not be recorded in the audit; it is recorded with the next list",
        LS("server", f->server), LZ("why", why));
    lose(f);
    finish(f);
}

static void write_some(struct findings *f);

static void on_written(struct write_job *job)
{
    struct findings *f = container_of(job, struct findings, write);

    if (!job->ok) {
        finish_lost(f, job->err.text);
        return;
    }
    f->committed = f->written;
    if (f->written < f->n) {
        write_some(f);
    } else {
        finish(f);
    }
}

static void write_some(struct findings *f)
{
    size_t n = 0;

    for (; f->written < f->n && n + 3 <= OPS_MAX; f->written++) {
        struct finding *one = &f->of[f->written];
        if (one->row.server.p)
            f->ops[n++] = (struct store_op){.kind = OP_TOOL_SEEN, .tool = &one->row};
        if (one->is_recorded)
            f->ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &one->event};
    }
    if (f->written == f->n && f->suppressed)
        f->ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &f->rest};
    f->write = (struct write_job){.ops = f->ops, .n = n, .done = on_written};
    if (!n)
        finish(f);
    else if (!lane_write(f->pins->lanes, &f->write))
        finish_lost(f, "too much is waiting for the store");
}

static void on_read(struct read_job *job)
{
    struct findings *f = container_of(job, struct findings, read);

    f->ops = arena_alloc(f->mem, OPS_MAX * sizeof(*f->ops));
    write_some(f);
}

static void record_next(struct pins *p)
{
    struct findings *f = list_entry(p->queue.next, struct findings, node);

    f->read = (struct read_job){.run = run_read, .done = on_read};
    if (!lane_query(p->lanes, &f->read))
        finish_lost(f, "too much is waiting for the store");
}
