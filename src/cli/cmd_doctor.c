/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast doctor: runs the table of checks and prints what they found.  Exit status 1 when a
 * finding is a failure. */
#include "cli/doctor.h"
#include "cli/table.h"

#include "base/log.h"
#include "json/write.h"

#include <stdarg.h>
#include <stdio.h>

const struct doctor_check doctor_checks[] = {
    {"configuration", "the file, its warnings, and the programs and folders that it names",
     doctor_config},
    {"port", "the address to listen on, and which process holds it", doctor_port},
    {"programs", "npx, node and uvx on the PATH that servers get", doctor_path},
    {"disk", "free space in the data directory", doctor_disk},
    {"limits", "inotify watches and instances, and open files", doctor_limits},
    {"store", "time of a read, size, and WAL", doctor_store},
    {"clock", "the clock of this machine against the newest event on record", doctor_clock},
    {"schema", "migrations that are not applied", doctor_schema},
    {"keys", "the key files, their modes, and whether they were backed up", doctor_keys},
    {"redis", "REDIS_URL, if it is set", doctor_redis},
    {"servers", "state, protocol version and start time of each server", doctor_servers},
    {"eras", "a handshake with each server in both protocol eras, and the time that each took",
     doctor_eras},
    {"sinks", "whether each sink delivers, and its last error", doctor_sinks},
    {"sessions", "how clients name their sessions (carriers), and the _meta keys that they send",
     doctor_sessions},
    {"clients", "configuration files of MCP clients, and whether their entries lead to Holdfast",
     doctor_clients},
    {"certificate", "expiry and names of the certificate", doctor_certificate},
    {"proxy", "public_url, whether it leads here, and the headers of a proxy", doctor_proxy},
    {0},
};

void doctor_say(struct doctor *d, enum doctor_level level, const char *fix, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    if (d->n == DOCTOR_FINDINGS_MAX)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    d->found[d->n++] = (struct doctor_finding){
        .level = level,
        .check = d->check,
        .what = arena_dup(d->mem, str_of(text)),
        .fix = fix ? arena_dup(d->mem, str_of(fix)) : STR_NONE,
    };
}

static const char *const words[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning", [DOCTOR_FAILURE] = "failure"};

static size_t count(const struct doctor *d, enum doctor_level level)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n; i++)
        n += d->found[i].level == level;
    return n;
}

static void add_json(const struct doctor *d, struct buf *out)
{
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_kv_bool(&w, "ok", !count(d, DOCTOR_FAILURE));
    js_kv_string(&w, "version", STR(HOLDFAST_VERSION));
    js_key(&w, STR("findings"));
    js_array(&w);
    for (size_t i = 0; i < d->n; i++) {
        js_object(&w);
        js_kv_string(&w, "check", str_of(d->found[i].check));
        js_kv_string(&w, "level", str_of(words[d->found[i].level]));
        js_kv_string(&w, "what", d->found[i].what);
        if (d->found[i].fix.p)
            js_kv_string(&w, "fix", d->found[i].fix);
        js_object_end(&w);
    }
    js_array_end(&w);
    js_object_end(&w);
}

#define TEXT_COLUMN 25

static void add_text(const struct doctor *d, struct buf *out)
{
    static const char *const marks[] = {"\xe2\x9c\x94", "!", "\xe2\x9c\x98"};
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    bool colour = cli_colour(1);

    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->found[i];
        buf_addf(out, "%s%s %-7s%s  %-13s ", colour ? colours[f->level] : "", marks[f->level],
                 words[f->level], colour ? "\033[0m" : "", f->check);
        text_wrap(out, TEXT_COLUMN, f->what, TEXT_COLUMN);
        if (f->fix.p) {
            buf_addf(out, "%*s", TEXT_COLUMN, "");
            text_wrap(out, TEXT_COLUMN, f->fix, TEXT_COLUMN);
        }
    }
    buf_addf(out, "%zu ok, %zu warning%s, %zu failure%s\n", count(d, DOCTOR_OK),
             count(d, DOCTOR_WARNING), count(d, DOCTOR_WARNING) == 1 ? "" : "s",
             count(d, DOCTOR_FAILURE), count(d, DOCTOR_FAILURE) == 1 ? "" : "s");
}

bool doctor_load(const struct doctor *d, struct config **ret, struct error *err)
{
    const char *file = cli_flag(d->cli, "--config");
    struct config_source from = {.file = str_of(file), .must_exist = file != NULL};

    return config_load(&from, ret, err);
}

static void examine(struct doctor *d)
{
    if (!doctor_load(d, &d->config, &d->config_err))
        d->config = NULL;
    doctor_try_servers(d);
    d->source_err.code = ERR_NONE;
    if (!source_open(d->cli, SOURCE_LOOKS, &d->source, &d->source_err))
        d->source.control = NULL;
    else
        control_set_deadline(d->source.control, 10000);
    for (const struct doctor_check *c = doctor_checks; c->name; c++) {
        d->check = c->name;
        c->run(d);
    }
}

static int keys_backed_up(struct cli *cli)
{
    struct place place = {0};
    struct error err;

    if (!place_find(cli, &place, &err) || !doctor_keys_backed_up(place.data_dir, cli->mem, &err))
        return cli_fail(cli, &err);
    fprintf(stderr, "recorded: the key files of %.*s are backed up as of now\n",
            STR_ARG(place.data_dir));
    return 0;
}

static int print_findings(struct doctor *d)
{
    const char *bundle = cli_flag(d->cli, "--bundle");
    struct error err;
    struct buf out;
    int status = 0;

    buf_init(&out, 16u * 1024 * 1024);
    add_json(d, &out);
    if (bundle && !doctor_bundle(d, buf_str(&out), bundle, &err))
        status = cli_fail(d->cli, &err);
    if (!cli_flag(d->cli, "--json")) {
        buf_reset(&out);
        add_text(d, &out);
    }
    if (!status)
        status = cli_print(d->cli, &out);
    if (!status && bundle)
        fprintf(stderr, "written: %s; look through it before you pass it on\n", bundle);
    buf_release(&out);
    return status ? status : count(d, DOCTOR_FAILURE) > 0;
}

int cmd_doctor(struct cli *cli)
{
    struct doctor *d;
    int status;

    if (cli->n_args)
        return cli_usage(cli, "doctor takes flags only");
    if (cli_flag(cli, "--keys-backed-up"))
        return keys_backed_up(cli);
    d = arena_new_of(cli->mem, struct doctor);
    d->cli = cli;
    d->mem = cli->mem;
    examine(d);
    status = print_findings(d);
    source_close(&d->source);
    config_unref(d->config);
    return status;
}
