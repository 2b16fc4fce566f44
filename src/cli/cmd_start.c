/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast start, stop and status: the daemon of a data directory (daemon.h). */
#include "base/log.h"
#include "cli/cli.h"
#include "cli/control.h"
#include "cli/daemon.h"
#include "cli/source.h"
#include "gateway_show.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* What a running Holdfast says about itself. */
struct daemon_state {
    struct str system, ready; /* JSON */
    struct js_doc system_doc, ready_doc;
    int pid;
};

static bool ask(struct cli *cli, struct str data_dir, struct daemon_state *s, struct error *err)
{
    struct control *control;
    struct error unready;

    if (!control_open_socket(data_dir, &control, err))
        return false;
    bool ok = control_get(control, STR("/api/v1/system"), cli->mem, &s->system, err) &&
              source_parse(s->system, cli->mem, &s->system_doc, err);
    if (ok &&
        (!control_get(control, STR("/api/v1/servers?limit=200"), cli->mem, &s->ready, &unready) ||
         !source_parse(s->ready, cli->mem, &s->ready_doc, &unready)))
        s->ready = STR_NONE;
    control_close(control);
    return ok;
}

static struct str system_text(const struct daemon_state *s, const char *name, struct arena *mem)
{
    return source_text(&s->system_doc, js_root(&s->system_doc), name, mem);
}

static int64_t system_number(const struct daemon_state *s, const char *name)
{
    int64_t n = -1;

    (void)!js_to_i64(&s->system_doc, js_get(&s->system_doc, js_root(&s->system_doc), str_of(name)),
                     &n);
    return n;
}

/* "2 healthy, 1 down" */
static struct str servers_by_state(const struct daemon_state *s, struct arena *mem)
{
    static const char *const states[] = {"healthy", "degraded", "down", "unknown"};
    struct buf out;

    buf_init(&out, 1024);
    for (size_t i = 0; s->ready.p && i < countof(states); i++) {
        const struct js_node *list = js_get(&s->ready_doc, js_root(&s->ready_doc), STR("servers"));
        size_t n = 0;
        for (const struct js_node *v = list ? js_first(&s->ready_doc, list) : NULL; v;
             v = js_next(&s->ready_doc, list, v))
            n += str_eq(source_text(&s->ready_doc, v, "state", mem), str_of(states[i]));
        if (n)
            buf_addf(&out, "%s%zu %.*s", out.n ? ", " : "", n,
                     STR_ARG(source_state_word(str_of(states[i]))));
    }
    struct str text = arena_dup(mem, out.n ? buf_str(&out) : STR("none"));
    buf_release(&out);
    return text;
}

static int64_t live_sessions(struct cli *cli, struct str data_dir)
{
    struct control *control;
    struct js_doc doc;
    struct error err;
    struct str body;
    int64_t n = -1;

    if (!control_open_socket(data_dir, &control, &err))
        return -1;
    if (control_get(control, STR("/api/v1/sessions/metrics"), cli->mem, &body, &err) &&
        source_parse(body, cli->mem, &doc, &err))
        (void)!js_to_i64(&doc, js_get(&doc, js_root(&doc), STR("active_sessions")), &n);
    control_close(control);
    return n;
}

/* Bytes of the database files in the data directory; 0: it is elsewhere. */
static int64_t database_size(struct str data_dir, struct arena *mem)
{
    static const char *const names[] = {"holdfast.db", "holdfast.db-wal"};
    int64_t size = 0;
    struct stat st;

    for (size_t i = 0; i < countof(names); i++)
        if (stat(datadir_path(data_dir, names[i], mem).p, &st) == 0)
            size += st.st_size;
    return size;
}

static void add_size(struct buf *out, int64_t bytes)
{
    if (bytes < 1024 * 1024)
        buf_addf(out, "%lld KiB", (long long)((bytes + 1023) / 1024));
    else
        buf_addf(out, "%.1f MiB", (double)bytes / (1024 * 1024));
}

static void add_row(struct buf *out, const char *name, struct str text)
{
    buf_addf(out, "  %-9s ", name);
    show_cut(out, text, 400, false);
    buf_addc(out, '\n');
}

/* start */

/* In short what `up` shows. */
static void print_start(struct cli *cli, const struct daemon_state *s, struct str data_dir)
{
    struct str url = system_text(s, "url", cli->mem), file = system_text(s, "config", cli->mem);
    const struct js_node *auth =
        js_get(&s->system_doc, js_root(&s->system_doc), STR("auth_required"));
    struct buf out;

    buf_init(&out, 256 * 1024);
    if (url.n)
        add_row(&out, "address", arena_printf(cli->mem, "%.*s/mcp", STR_ARG(url)));
    else
        add_row(&out, "address", STR("none: it was started by holdfast stdio and serves pipes"));
    add_row(&out, "servers", servers_by_state(s, cli->mem));
    if (url.n) {
        buf_addz(&out, "  connect   ");
        show_connect(&out, url, js_type_is(auth, JS_TRUE), data_dir, "            ");
    }
    add_row(&out, "data", data_dir);
    add_row(&out, "config", file.n ? file : STR("none"));
    fputs(out.p, stderr);
    buf_release(&out);
}

int cmd_start(struct cli *cli)
{
    struct daemon_state s = {0};
    enum daemon_start how;
    struct str data_dir;
    struct error err;

    if (cli->n_args)
        return cli_usage(cli, "start takes no argument \"%.100s\"", cli->args[0]);
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &data_dir, &err) ||
        !daemon_start(cli, data_dir, &how, &err) || !ask(cli, data_dir, &s, &err))
        return cli_refuse(cli, &err);
    fprintf(stderr, "Holdfast %.*s %s%s (pid %lld).\n",
            STR_ARG(system_text(&s, "version", cli->mem)),
            how == DAEMON_RAN ? "runs already" : "has started",
            how == DAEMON_BY_UNIT ? " as the user unit holdfast.service" : "",
            (long long)system_number(&s, "pid"));
    print_start(cli, &s, data_dir);
    return 0;
}

/* stop */

int cmd_stop(struct cli *cli)
{
    struct str data_dir;
    struct error err;
    int pid;

    if (cli->n_args)
        return cli_usage(cli, "stop takes no argument \"%.100s\"", cli->args[0]);
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &data_dir, &err) ||
        !daemon_stop(data_dir, &pid, &err))
        return cli_refuse(cli, &err);
    if (pid)
        fprintf(stderr, "Holdfast (pid %d) has stopped.\n", pid);
    else
        fprintf(stderr, "No Holdfast runs on %.*s.\n", STR_ARG(data_dir));
    return 0;
}

/* status */

static int print_json(struct cli *cli, const struct daemon_state *s, struct str data_dir)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, 4u * 1024 * 1024);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_bool(&w, "running", s->pid != 0);
    js_kv_string(&w, "data_dir", data_dir);
    js_kv_int(&w, "database_bytes", database_size(data_dir, cli->mem));
    if (s->pid) {
        js_kv_int(&w, "pid", s->pid);
        js_kv_int(&w, "sessions", live_sessions(cli, data_dir));
        js_kv_raw(&w, "system", s->system);
        if (s->ready.p)
            js_kv_raw(&w, "servers",
                      js_raw(&s->ready_doc,
                             js_get(&s->ready_doc, js_root(&s->ready_doc), STR("servers"))));
    }
    js_object_end(&w);
    int status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}

static int print_status(struct cli *cli, const struct daemon_state *s, struct str data_dir)
{
    struct str url = system_text(s, "url", cli->mem), file = system_text(s, "config", cli->mem);
    int64_t sessions = live_sessions(cli, data_dir), size = database_size(data_dir, cli->mem);
    struct buf out;

    buf_init(&out, 256 * 1024);
    buf_addf(&out, "Holdfast %.*s runs (pid %d).\n", STR_ARG(system_text(s, "version", cli->mem)),
             s->pid);
    add_row(&out, "since", system_text(s, "started_at", cli->mem));
    add_row(&out, "address",
            url.n ? arena_printf(cli->mem, "%.*s/mcp", STR_ARG(url))
                  : STR("none: it serves pipes"));
    add_row(&out, "servers", servers_by_state(s, cli->mem));
    if (sessions >= 0)
        add_row(&out, "sessions", arena_printf(cli->mem, "%lld", (long long)sessions));
    buf_addz(&out, "  database  ");
    show_cut(&out, system_text(s, "database", cli->mem), 400, false);
    if (size) {
        buf_addz(&out, ", ");
        add_size(&out, size);
    }
    buf_addc(&out, '\n');
    add_row(&out, "data", data_dir);
    add_row(&out, "config", file.n ? file : STR("none"));
    int status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}

int cmd_status(struct cli *cli)
{
    struct daemon_state s = {0};
    struct str data_dir;
    struct error err;
    bool json = cli_flag(cli, "--json") != NULL, exists;

    if (cli->n_args)
        return cli_usage(cli, "status takes no argument \"%.100s\"", cli->args[0]);
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &data_dir, &err) ||
        !datadir_check_readable(data_dir, &exists, &err) || !daemon_pid(data_dir, &s.pid, &err) ||
        (s.pid && !ask(cli, data_dir, &s, &err)))
        return cli_refuse(cli, &err);
    int status = 0;
    if (json)
        status = print_json(cli, &s, data_dir);
    else if (s.pid)
        status = print_status(cli, &s, data_dir);
    else
        fprintf(stderr, "No Holdfast runs on %.*s; holdfast start starts one.\n",
                STR_ARG(data_dir));
    return status ? status : s.pid ? 0 : error_info(ERR_UNREACHABLE)->exit_status;
}
