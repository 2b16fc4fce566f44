/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of the lines of POST /api/v1/sessions/{id}/replay (replay/line.c).  Calls that were
 * skipped for the same reason are printed as one line at the end. */
#include "cli/sessions_replay.h"

#include "base/log.h"
#include "cli/confirm.h"
#include "cli/control.h"
#include "cli/source.h"
#include "cli/table.h"
#include "json/write.h"

#include <stdio.h>

#define LINE_MAX_BYTES (4u << 20)
#define SILENCE_MS 60000 /* Holdfast sends an empty line every 15 seconds */
#define REASONS_MAX 32
#define NAME_MAX_SHOWN 200

struct reason {
    struct str text;
    int64_t n;
};
struct reading {
    struct sessions_replay *of;
    struct buf line, out;
    struct reason reasons[REASONS_MAX];
    size_t n_reasons;
    bool shows_values, has_summary;
    int64_t n_same, n_sent, n_not_same;
};

static const struct {
    const char *status, *colour;
} colours[] = {{"different", "31"}, {"failed", "31"}, {"refused", "33"}, {"unknown", "33"}};

static const char *colour_of(struct str status)
{
    for (size_t i = 0; i < countof(colours); i++)
        if (str_eq(status, str_of(colours[i].status)))
            return colours[i].colour;
    return NULL;
}

static void add_coloured(struct reading *r, struct str text, const char *colour)
{
    if (r->of->colour && colour)
        buf_addf(&r->out, "\033[%sm", colour);
    buf_addstr(&r->out, text);
    if (r->of->colour && colour)
        buf_addz(&r->out, "\033[0m");
}

static void add_escaped(struct reading *r, struct str text)
{
    log_escape(&r->out, text, NAME_MAX_SHOWN);
}

static int64_t number(const struct js_doc *d, const struct js_node *object, const char *name)
{
    int64_t n = 0;

    return js_to_i64(d, js_get(d, object, str_of(name)), &n) ? n : 0;
}

/* One call. */

static void count_reason(struct reading *r, struct str text)
{
    size_t i = 0;

    while (i < r->n_reasons && !str_eq(r->reasons[i].text, text))
        i++;
    if (i == r->n_reasons && i == REASONS_MAX)
        i--; /* many different reasons: the last one stands for the others */
    else if (i == r->n_reasons)
        r->reasons[r->n_reasons++].text = arena_dup(r->of->cli->mem, text);
    r->reasons[i].n++;
}

static void add_value(struct reading *r, char sign, const char *colour, const struct js_doc *d,
                      const struct js_node *difference, const char *name, struct arena *mem)
{
    const struct js_node *value = js_get(d, difference, str_of(name));
    char head[] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', sign, ' '};

    if (!value)
        return;
    if (r->of->colour)
        buf_addf(&r->out, "\033[%sm", colour);
    buf_add(&r->out, head, sizeof(head));
    text_wrap(&r->out, sizeof(head), js_text(d, value, mem), sizeof(head));
    if (r->of->colour)
        buf_addz(&r->out, "\033[0m");
}

static void add_differences(struct reading *r, const struct js_doc *d, const struct js_node *call,
                            struct arena *mem)
{
    const struct js_node *list = js_get(d, call, STR("differences"));
    int64_t shown = 0, total = number(d, call, "n_differences");

    for (const struct js_node *v = js_type_is(list, JS_ARRAY) ? js_first(d, list) : NULL; v;
         v = js_next(d, list, v), shown++) {
        struct str path = source_text(d, v, "path", mem);
        buf_addz(&r->out, "      ");
        text_wrap(&r->out, 6,
                  arena_printf(mem, "%.*s %.*s", STR_ARG(path.n ? path : STR("(the whole answer)")),
                               STR_ARG(source_text(d, v, "kind", mem))),
                  6);
        if (r->shows_values) {
            add_value(r, '-', "31", d, v, "recorded", mem);
            add_value(r, '+', "32", d, v, "now", mem);
        }
    }
    if (total > shown)
        buf_addf(&r->out, "      and %lld more\n", (long long)(total - shown));
}

static void take_call(struct reading *r, const struct js_doc *d, const struct js_node *call,
                      struct arena *mem)
{
    struct str status = source_text(d, call, "status", mem),
               reason = source_text(d, call, "reason", mem);

    if (str_eq(status, STR("skipped"))) {
        count_reason(r, reason);
        return;
    }
    if (str_eq(status, STR("same")))
        return;
    buf_addf(&r->out, "%5lld ", (long long)number(d, call, "number"));
    add_coloured(r, arena_printf(mem, "%-9.*s", STR_ARG(status)), colour_of(status));
    buf_addc(&r->out, ' ');
    add_escaped(r, arena_printf(mem, "%.*s/%.*s", STR_ARG(source_text(d, call, "server", mem)),
                                STR_ARG(source_text(d, call, "tool", mem))));
    buf_addc(&r->out, '\n');
    if (reason.n) {
        buf_addz(&r->out, "      ");
        text_wrap(&r->out, 6, reason, 6);
    }
    add_differences(r, d, call, mem);
}

/* The summary. */

static const char *const statuses[] = {"same",    "different", "unknown",
                                       "skipped", "refused",   "failed"};

static void print_reasons(const struct reading *r)
{
    for (size_t i = 0; i < r->n_reasons; i++) {
        struct buf text;
        buf_init(&text, SIZE_MAX / 4);
        text_wrap(&text, 0,
                  arena_printf(r->of->cli->mem, "skipped %lld: %.*s", (long long)r->reasons[i].n,
                               STR_ARG(r->reasons[i].text)),
                  9);
        fprintf(stderr, "%.*s", STR_ARG(buf_str(&text)));
        buf_release(&text);
    }
}

static void print_wrapped(struct str text)
{
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    text_wrap(&out, 0, text, 0);
    fprintf(stderr, "%.*s", STR_ARG(buf_str(&out)));
    buf_release(&out);
}

static void take_summary(struct reading *r, const struct js_doc *d, const struct js_node *s,
                         struct arena *mem)
{
    struct str stopped = source_text(d, s, "stopped", mem),
               advice = source_text(d, s, "advice", mem);
    const char *before = ": ";

    r->has_summary = true;
    r->n_same = number(d, s, "same");
    r->n_not_same = number(d, s, "different") + number(d, s, "unknown") + number(d, s, "refused") +
                    number(d, s, "failed");
    r->n_sent = r->n_same + r->n_not_same;
    if (r->of->json)
        return;
    buf_addf(&r->out, "%lld calls", (long long)number(d, s, "calls"));
    for (size_t i = 0; i < countof(statuses); i++) {
        int64_t n = number(d, s, statuses[i]);
        if (n)
            buf_addf(&r->out, "%s%lld %s", before, (long long)n, statuses[i]);
        before = n ? ", " : before;
    }
    buf_addc(&r->out, '\n');
    cli_write_part(&r->out);
    print_reasons(r);
    if (stopped.n)
        print_wrapped(arena_printf(mem, "stopped early: %.*s", STR_ARG(stopped)));
    if (advice.n)
        print_wrapped(advice);
}

/* Lines. */

static bool take_line(struct reading *r, struct str line, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc d;

    bool ok = source_parse(line, mem, &d, err);
    if (ok) {
        const struct js_node *root = js_root(&d), *call = js_get(&d, root, STR("call")),
                             *summary = js_get(&d, root, STR("summary"));
        if (r->of->json) {
            buf_addstr(&r->out, line);
            buf_addc(&r->out, '\n');
        } else if (call) {
            take_call(r, &d, call, mem);
        }
        if (summary)
            take_summary(r, &d, summary, mem);
        if (r->out.n && !cli_write_part(&r->out))
            ok = error_set(err, ERR_CANCELLED, "the reader of the output has gone");
    }
    arena_free(mem);
    return ok;
}

static bool take_bytes(void *arg, struct str bytes, struct error *err)
{
    struct reading *r = arg;

    for (size_t end; (end = str_find(bytes, '\n')) < bytes.n;) {
        if (!buf_try_add(&r->line, bytes.p, end))
            return error_set(err, ERR_TOO_LARGE, "a line of the answer is too long");
        bool ok = r->line.n == 0 || take_line(r, buf_str(&r->line), err);
        buf_reset(&r->line);
        if (!ok)
            return false;
        bytes = str_n(bytes.p + end + 1, bytes.n - end - 1);
    }
    return buf_try_add(&r->line, bytes.p, bytes.n) ||
           error_set(err, ERR_TOO_LARGE, "a line of the answer is too long");
}

/* The request. */

/* Every value of a flag that may be given several times. */
static void add_list(struct js_writer *w, const struct cli *cli, const char *flag, const char *name)
{
    bool any = false;

    for (int i = 0; i < cli->n_given; i++) {
        if (strcmp(cli->given[i].name, flag) != 0)
            continue;
        if (!any) {
            js_key(w, str_of(name));
            js_array(w);
        }
        any = true;
        js_string(w, str_of(cli->given[i].value));
    }
    if (any)
        js_array_end(w);
}

static struct str request_body(const struct sessions_replay *r)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "against", str_of(cli_flag(r->cli, "--against")));
    js_kv_bool(&w, "writes", cli_flag(r->cli, "--writes") != NULL);
    if (cli_flag(r->cli, "--stop"))
        js_kv_string(&w, "stop_on", STR("difference"));
    add_list(&w, r->cli, "--ignore", "ignore");
    add_list(&w, r->cli, "--only", "only");
    js_object_end(&w);
    struct str text = arena_dup(r->cli->mem, buf_str(&out));
    buf_release(&out);
    return text;
}

static bool confirm_writes(struct sessions_replay *r, bool *ret_yes, struct error *err)
{
    *ret_yes = true;
    return !cli_flag(r->cli, "--writes") ||
           confirm(r->cli, "Send every call again, also those of tools that may change something?",
                   "to send calls of tools that may change something", false, ret_yes, err);
}

static bool receive(struct sessions_replay *r, struct reading *reading, struct error *err)
{
    struct arena *mem = r->cli->mem;
    struct control_request request = {
        .method = "POST",
        .path = arena_printf(mem, "/api/v1/sessions/%.*s/replay%s%.*s",
                             STR_ARG(source_encoded(r->handle, mem)), r->tenant.p ? "?tenant=" : "",
                             STR_ARG(source_encoded(r->tenant, mem))),
        .body = request_body(r),
    };

    control_set_deadline(r->control, SILENCE_MS);
    return control_receive(r->control, &request, mem, take_bytes, reading, err) &&
           (reading->has_summary ||
            error_set(err, ERR_UNREACHABLE, "Holdfast broke off the replay before its end"));
}

bool sessions_replay(struct sessions_replay *r, int *ret_status, struct error *err)
{
    struct reading reading = {.of = r, .shows_values = cli_flag(r->cli, "--diff") != NULL};
    bool yes = false;

    *ret_status = 0;
    if (!confirm_writes(r, &yes, err))
        return false;
    if (!yes) {
        fprintf(stderr, "nothing was sent\n");
        return true;
    }
    buf_init(&reading.line, LINE_MAX_BYTES);
    buf_init(&reading.out, SIZE_MAX / 4);
    bool ok = receive(r, &reading, err);
    buf_release(&reading.line);
    buf_release(&reading.out);
    if (ok && !reading.n_sent)
        fprintf(stderr, "no call was sent again, so nothing was compared\n");
    *ret_status = reading.n_not_same || !reading.n_sent;
    return ok;
}
