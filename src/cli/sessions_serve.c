/* SPDX-License-Identifier: Apache-2.0 */
/* The recording is read before anything is served, so the Holdfast that has it may end meanwhile.
 * Calls are printed as they come. */
#include "cli/sessions_serve.h"

#include "base/log.h"
#include "cli/control.h"
#include "cli/scratch.h"
#include "cli/source.h"
#include "gateway.h"
#include "json/write.h"
#include "replay/mock_lines.h"
#include "replay/mock_server.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define IDLE_MS 120000
#define RECORDING_MAX ((size_t)256 << 20)
#define PART ((size_t)64 << 10)
#define NAME_SHOWN 200
#define UNREAD_MAX ((size_t)4 << 20) /* of lines that nobody reads */
#define LAST_MS 2000
#define LISTEN_DEFAULT "127.0.0.1:0"

struct serving {
    const struct sessions_serve *of;
    struct mock_servers *servers;
    int64_t n[MOCK_RULES];
    uint8_t *was_used; /* by recorded call */
    struct buf out;
};

/* Reading. */

bool sessions_serve_is_file(struct str name)
{
    return str_ends(name, STR(".jsonl")) || str_find(name, '/') < name.n;
}

/* The patterns of --only. */
static void choose(struct mock_lines *l, struct cli *cli)
{
    struct str *list = arena_zalloc(cli->mem, (size_t)(cli->n_given + 1) * sizeof(*list));

    for (int i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].name, "--only") == 0)
            list[l->n_only++] = str_of(cli->given[i].value);
    l->only = list;
}

static void begin(struct sessions_serve *s, struct mock_lines *l)
{
    s->mock = mock_new(RECORDING_MAX);
    mock_lines_begin(l, s->mock);
    choose(l, s->cli);
}

static bool end(struct sessions_serve *s, struct mock_lines *l, bool ok, struct error *err)
{
    ok = ok && mock_lines_end(l, err);
    memcpy(s->session, l->session, sizeof(s->session));
    mock_lines_release(l);
    if (ok && !s->mock->n_tools)
        return error_set(err, ERR_BAD_INPUT,
                         "the recording has no call of a tool%s, so there is nothing to serve",
                         l->n_only ? " that --only names" : "");
    return ok;
}

static bool read_parts(FILE *file, const char *name, struct mock_lines *l, struct error *err)
{
    char *part = xmalloc(PART);
    bool ok = true;
    size_t n;

    while (ok && (n = fread(part, 1, PART, file)) > 0)
        ok = mock_lines_take(l, str_n(part, n), err);
    if (ok && ferror(file))
        ok = error_sys(err, ERR_CONFIG, errno, "cannot read %s", name);
    free(part);
    return ok;
}

bool sessions_serve_file(struct sessions_serve *s, struct error *err)
{
    const char *name = s->cli->args[1];
    FILE *file = fopen(name, "re");
    struct mock_lines l;

    if (!file)
        return error_sys(err, ERR_CONFIG, errno, "cannot read %s", name);
    begin(s, &l);
    bool ok = read_parts(file, name, &l, err);
    fclose(file);
    return end(s, &l, ok, err) || error_wrap(err, "%s", name);
}

static bool take(void *arg, struct str bytes, struct error *err)
{
    return mock_lines_take(arg, bytes, err);
}

/* Definitions, as the Holdfast with the recording has seen them last.  Only those who may read every
 * session may read them; without them the tools have the parameters of the recorded calls. */

static void take_definitions(struct mock *m, struct str server, const struct js_doc *d,
                             struct arena *mem)
{
    const struct js_node *list = js_get(d, js_root(d), STR("tools"));

    for (const struct js_node *v = js_type_is(list, JS_ARRAY) ? js_first(d, list) : NULL; v;
         v = js_next(d, list, v)) {
        const struct js_node *definition = js_get(d, v, STR("definition"));
        struct mock_tool *t = mock_tool(m, server, source_text(d, v, "name", mem));
        if (t && js_type_is(definition, JS_OBJECT))
            t->definition = arena_dup(m->mem, js_raw(d, definition));
    }
}

static void read_definitions(struct mock *m, struct control *control, struct str server)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct str cursor = STR(""), json;
    struct js_doc d;
    struct error ignored;

    do {
        struct str path =
            arena_printf(mem, "/api/v1/servers/%.*s/tools?definitions=1&limit=50%s%.*s",
                         STR_ARG(source_encoded(server, mem)), cursor.n ? "&cursor=" : "",
                         STR_ARG(source_encoded(cursor, mem)));
        if (!control_get(control, path, mem, &json, &ignored) ||
            !source_parse(json, mem, &d, &ignored))
            break;
        take_definitions(m, server, &d, mem);
        cursor = source_text(&d, js_root(&d), "next_cursor", mem);
    } while (cursor.n);
    arena_free(mem);
}

static void define_tools(struct mock *m, struct control *control)
{
    for (size_t i = 0; i < m->n_tools; i++) {
        size_t before = 0;
        while (before < i && !str_eq(m->tools[before].server, m->tools[i].server))
            before++;
        if (before == i)
            read_definitions(m, control, m->tools[i].server);
    }
}

bool sessions_serve_session(struct sessions_serve *s, struct control *control, struct str handle,
                            struct str tenant, struct error *err)
{
    struct arena *mem = s->cli->mem;
    struct str path = arena_printf(mem, "/api/v1/sessions/%.*s/export?format=jsonl%s%.*s",
                                   STR_ARG(source_encoded(handle, mem)), tenant.p ? "&tenant=" : "",
                                   STR_ARG(source_encoded(tenant, mem)));
    struct mock_lines l;

    begin(s, &l);
    control_set_deadline(control, IDLE_MS);
    bool ok = control_download(control, path, mem, take, &l, err);
    ok = end(s, &l, ok, err);
    if (ok)
        define_tools(s->mock, control);
    return ok;
}

/* What is printed. */

static const char *const json_names[MOCK_RULES] = {"exact", "again", "in_order", "unknown"};

/* Writes as much as the reader takes, waiting up to `wait_ms` for each part: nobody has to read the
 * lines for the servers to go on.  The rest stays for the next time. */
static void print_within(struct serving *v, int wait_ms)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    while (v->out.n && poll(&out, 1, wait_ms) == 1) {
        ssize_t n = write(STDOUT_FILENO, v->out.p, v->out.n < PIPE_BUF ? v->out.n : PIPE_BUF);
        if (n <= 0) {
            buf_reset(&v->out); /* the reader has gone */
            return;
        }
        buf_consume(&v->out, (size_t)n);
    }
}

static void print(struct serving *v)
{
    print_within(v, 0);
}

static void add_text(struct serving *v, struct str text)
{
    log_escape(&v->out, text, NAME_SHOWN);
}

static void write_servers(struct serving *v, struct str url)
{
    struct js_writer w;

    js_begin(&w, &v->out);
    js_object(&w);
    js_key(&w, STR("serving"));
    js_object(&w);
    js_kv_string(&w, "url", arena_printf(v->of->cli->mem, "%.*s/mcp", STR_ARG(url)));
    js_kv_string(&w, "session_id", str_of(v->of->session));
    js_key(&w, STR("servers"));
    js_array(&w);
    for (size_t i = 0; i < v->servers->n; i++) {
        const struct mock_server *s = &v->servers->list[i];
        js_object(&w);
        js_kv_string(&w, "name", s->name);
        js_kv_string(
            &w, "url",
            arena_printf(v->of->cli->mem, "%.*s/mcp/%.*s", STR_ARG(url), STR_ARG(s->name)));
        js_kv_int(&w, "tools", (int64_t)s->n_tools);
        js_kv_int(&w, "calls", s->calls);
        js_object_end(&w);
    }
    js_array_end(&w);
    js_object_end(&w);
    js_object_end(&w);
    buf_addc(&v->out, '\n');
}

/* The recorded calls that can answer nothing, by tool. */
static void add_lacks(struct serving *v)
{
    const struct mock *m = v->of->mock;

    for (size_t i = 0; i < m->n_tools; i++) {
        const struct mock_tool *t = &m->tools[i];
        if (!t->lacking)
            continue;
        buf_addf(&v->out, "%lld of %lld calls of ", (long long)t->lacking, (long long)t->recorded);
        add_text(v, t->name);
        buf_addz(&v->out, " cannot be answered: ");
        add_text(v, t->lack);
        buf_addc(&v->out, '\n');
    }
}

static void on_ready(void *arg, struct str url)
{
    struct serving *v = arg;

    if (v->of->json) {
        write_servers(v, url);
        print(v);
        return;
    }
    buf_addf(&v->out, "%zu recorded answers of session ", v->of->mock->n);
    add_text(v, str_of(v->of->session));
    buf_addz(&v->out, "; Ctrl-C ends\n");
    for (size_t i = 0; i < v->servers->n; i++) {
        const struct mock_server *s = &v->servers->list[i];
        buf_addf(&v->out, "%.*s/mcp/%.*s  %zu tool%s\n", STR_ARG(url), STR_ARG(s->name), s->n_tools,
                 s->n_tools == 1 ? "" : "s");
    }
    add_lacks(v);
    print(v);
}

static void write_answered(struct serving *v, const struct mock_answered *a)
{
    struct js_writer w;

    js_begin(&w, &v->out);
    js_object(&w);
    js_key(&w, STR("call"));
    js_object(&w);
    js_kv_string(&w, "server", a->server);
    js_kv_string(&w, "tool", a->tool);
    js_kv_string(&w, "rule", str_of(json_names[a->rule]));
    if (a->call)
        js_kv_int(&w, "number", a->call->number);
    js_kv_string(&w, "why", a->why);
    js_object_end(&w);
    js_object_end(&w);
    buf_addc(&v->out, '\n');
}

static void on_answered(void *arg, const struct mock_answered *a)
{
    struct serving *v = arg;
    bool red = v->of->colour && a->rule == MOCK_UNKNOWN;

    v->n[a->rule]++;
    if (a->call)
        v->was_used[a->call - v->of->mock->calls] = 1;
    if (v->out.n > UNREAD_MAX)
        return; /* its line is left out; the summary counts it */
    if (v->of->json) {
        write_answered(v, a);
        print(v);
        return;
    }
    buf_addf(&v->out, "%s%-8s%s ", red ? "\033[31m" : "", mock_rule_names[a->rule],
             red ? "\033[0m" : "");
    if (a->call)
        buf_addf(&v->out, "%5lld ", (long long)a->call->number);
    else
        buf_addz(&v->out, "      ");
    add_text(v, a->server);
    buf_addc(&v->out, '/');
    add_text(v, a->tool);
    buf_addc(&v->out, '\n');
    if (a->why.p) {
        buf_addz(&v->out, "         ");
        log_escape(&v->out, a->why, 1000);
        buf_addc(&v->out, '\n');
    }
    print(v);
}

static void print_summary(struct serving *v)
{
    const struct mock *m = v->of->mock;
    long long exact = v->n[MOCK_EXACT], again = v->n[MOCK_AGAIN], ordered = v->n[MOCK_IN_ORDER],
              unknown = v->n[MOCK_UNKNOWN], used = 0;

    for (size_t i = 0; i < m->n; i++)
        used += v->was_used[i];
    if (v->of->json)
        buf_addf(&v->out,
                 "{\"summary\":{\"calls\":%lld,\"exact\":%lld,\"again\":%lld,\"in_order\":%lld,"
                 "\"unknown\":%lld,\"recorded\":%zu,\"used\":%lld}}\n",
                 exact + again + ordered + unknown, exact, again, ordered, unknown, m->n, used);
    else
        buf_addf(&v->out,
                 "%lld calls: %lld exact, %lld again, %lld in order, %lld unknown; %lld of %zu "
                 "recorded answers were used\n",
                 exact + again + ordered + unknown, exact, again, ordered, unknown, used, m->n);
    print_within(v, LAST_MS);
}

/* Serving. */

static bool make_options(const struct sessions_serve *s, struct serving *v, const char *dir,
                         struct gateway_options *ret, struct error *err)
{
    const char *listen = cli_flag(s->cli, "--listen");
    struct arena *mem = s->cli->mem;
    struct str *names = arena_zalloc(mem, (v->servers->n + 1) * sizeof(*names));

    for (size_t i = 0; i < v->servers->n; i++)
        names[i] = v->servers->list[i].name;
    *ret = (struct gateway_options){
        .source = {.listen = listen ? str_of(listen) : STR(LISTEN_DEFAULT)},
        .data_dir = str_of(dir),
        .has_no_file = true,
        .on_ready = on_ready,
        .ready_arg = v,
    };
    if (!database_choose(STR_NONE, ret->data_dir, mem, &ret->database, err) ||
        !config_parse(STR("{}"), STR_NONE, &ret->source, &ret->config, err))
        return false;
    config_serve_builtins(ret->config, names, v->servers->n);
    return true;
}

bool sessions_serve(struct sessions_serve *s, int *ret_status, struct error *err)
{
    struct serving v = {.of = s, .servers = mock_servers_new(s->mock)};
    struct gateway_options options;
    char dir[SCRATCH_TEXT];

    v.servers->on_answered = on_answered;
    v.servers->arg = &v;
    v.was_used = xcalloc(s->mock->n + 1, 1);
    buf_init(&v.out, SIZE_MAX / 4);
    bool ok = scratch_make("replay", s->cli->mem, dir, err);
    if (ok && (ok = make_options(s, &v, dir, &options, err))) {
        mock_servers_register(v.servers);
        log_setup(LOG_WARN, 0);
        *ret_status = gateway_run(&options);
        if (!*ret_status) {
            print_summary(&v);
            *ret_status = v.n[MOCK_UNKNOWN] > 0;
        }
    }
    scratch_remove(dir);
    buf_release(&v.out);
    free(v.was_used);
    mock_servers_free(v.servers);
    return ok;
}

void sessions_serve_release(struct sessions_serve *s)
{
    mock_free(s->mock);
    s->mock = NULL;
}
