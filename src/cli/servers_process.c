/* SPDX-License-Identifier: Apache-2.0 */
/* A restart is asked for, and then the state of the server is read until its probe has ended.  New
 * log lines are read by their numbers, twice a second. */
#include "cli/servers_process.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <time.h>

#define POLL_MS 500
#define RESTART_POLL_MS 100
#define RESTART_MS 60000
#define LINES_DEFAULT 50
#define LINES_MAX 200

static struct str server_path(struct str server, const char *verb, struct arena *mem)
{
    return arena_printf(mem, "/api/v1/servers/%.*s%s", STR_ARG(source_encoded(server, mem)), verb);
}

static void pause_ms(int ms)
{
    struct timespec pause = {.tv_nsec = ms * 1000000L};
    nanosleep(&pause, NULL);
}

/* Restart. */

struct restarted {
    struct str state, reason, last_error;
    int64_t tools;
};

static bool read_state(struct source *s, struct str server, struct arena *mem,
                       struct restarted *ret, struct error *err)
{
    struct js_doc doc;
    struct str json;

    if (!control_get(s->control, server_path(server, "", mem), mem, &json, err) ||
        !source_parse(json, mem, &doc, err))
        return false;
    const struct js_node *root = js_root(&doc);
    *ret = (struct restarted){
        .state = source_text(&doc, root, "state", mem),
        .reason = source_text(&doc, root, "reason", mem),
        .last_error = source_text(&doc, root, "last_error", mem),
    };
    if (!js_to_i64(&doc, js_get(&doc, root, STR("tools")), &ret->tools))
        ret->tools = -1; /* the probe has not ended */
    return true;
}

static bool wait_probed(struct source *s, struct str server, struct arena *mem,
                        struct restarted *ret, struct error *err)
{
    int64_t until = clock_mono_ms() + RESTART_MS;

    do {
        if (!read_state(s, server, mem, ret, err))
            return false;
        if (ret->tools >= 0)
            return true;
        if (str_eq(ret->state, STR("down")) || str_eq(ret->state, STR("degraded")))
            return error_set(err, ERR_UPSTREAM, "%.*s did not come up: %.*s", STR_ARG(server),
                             STR_ARG(ret->last_error.n ? ret->last_error : ret->reason));
        pause_ms(RESTART_POLL_MS);
    } while (clock_mono_ms() < until);
    return error_set(err, ERR_TIMEOUT,
                     "%.*s is still starting after %d s; see `holdfast servers logs %.*s`",
                     STR_ARG(server), RESTART_MS / 1000, STR_ARG(server));
}

bool servers_restart(struct source *s, struct str server, bool json, struct arena *mem,
                     struct buf *out, struct error *err)
{
    int64_t begun = clock_mono_ms();
    struct restarted now;
    struct str answer;

    if (!control_ask(s->control, "POST", server_path(server, "/restart", mem), STR_NONE, mem,
                     &answer, err) ||
        !wait_probed(s, server, mem, &now, err))
        return false;
    int64_t took = clock_mono_ms() - begun;
    if (json)
        buf_addf(out, "{\"server\":\"%.*s\",\"state\":\"%.*s\",\"tools\":%lld,\"ms\":%lld}",
                 STR_ARG(server), STR_ARG(now.state), (long long)now.tools, (long long)took);
    else
        fprintf(stderr, "restarted: %.*s, %lld tool%s, first reply after %lld ms\n",
                STR_ARG(server), (long long)now.tools, now.tools == 1 ? "" : "s", (long long)took);
    return true;
}

/* Logs. */

bool servers_logs_flags(struct servers_logs *l, struct error *err)
{
    unsigned limit;

    if (!cli_number_flag(l->cli, "-n", LINES_DEFAULT, LINES_MAX, &limit, err))
        return false;
    l->limit = limit;
    l->follows = cli_flag(l->cli, "-f");
    l->json = cli_flag(l->cli, "--json");
    return true;
}

static void add_line(struct servers_logs *l, const struct js_doc *doc, const struct js_node *line,
                     struct arena *mem)
{
    struct str at = source_text(doc, line, "at", mem);

    if (l->json) {
        buf_addstr(l->out, js_raw(doc, line));
    } else {
        if (at.n >= 19)
            at = str_n(at.p + 11, 8);
        buf_addf(l->out, "%.*s  ", STR_ARG(at));
        log_escape(l->out, source_text(doc, line, "text", mem), 2000);
    }
    buf_addc(l->out, '\n');
}

/* Adds the lines after the last one to `out`. */
static bool read_lines(struct servers_logs *l, struct arena *mem, struct error *err)
{
    struct str path = server_path(str_of(l->cli->args[1]), "/logs", mem);
    struct js_doc doc;
    struct str json;

    if (!control_get(l->source->control,
                     arena_printf(mem, "%.*s?limit=%lld&after=%lld", STR_ARG(path),
                                  (long long)(l->last ? LINES_MAX : l->limit), (long long)l->last),
                     mem, &json, err) ||
        !source_parse(json, mem, &doc, err))
        return false;
    const struct js_node *lines = js_get(&doc, js_root(&doc), STR("lines"));
    for (const struct js_node *line = lines ? js_first(&doc, lines) : NULL; line;
         line = js_next(&doc, lines, line)) {
        add_line(l, &doc, line, mem);
        if (!js_to_i64(&doc, js_get(&doc, line, STR("number")), &l->last))
            return error_set(err, ERR_INTERNAL,
                             "the answer of Holdfast has lines without numbers; "
                             "is it an older version?");
    }
    return true;
}

bool servers_logs(struct servers_logs *l, struct error *err)
{
    struct arena *mem = arena_new(16u * 1024 * 1024);
    bool ok = read_lines(l, mem, err);

    arena_free(mem);
    if (ok && !l->out->n && !l->follows && !l->json)
        fprintf(stderr, "%s has written nothing to its stderr since Holdfast started\n",
                l->cli->args[1]);
    while (ok && l->follows) {
        struct str text = buf_str(l->out);
        if (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0)
            return error_set(err, ERR_INTERNAL, "the lines could not be written to stdout");
        buf_reset(l->out);
        if (!cli_pause(POLL_MS))
            return true;
        mem = arena_new(16u * 1024 * 1024);
        ok = read_lines(l, mem, err);
        arena_free(mem);
    }
    return ok;
}
