/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast add: connects to servers, and writes them to the configuration file.
 *
 *   command line or stdin ─> entry ─> trial ─> secrets ─> file ─> reload
 *
 * The file gets the absolute path of a command and the PATH of this shell, because programs that are
 * not started from a shell (desktop applications, services) often have another PATH. */
#include "cli/cli.h"

#include "base/log.h"
#include "cli/add_entry.h"
#include "cli/add_secrets.h"
#include "cli/config_file.h"
#include "cli/trial.h"
#include "config/config.h"
#include "config/snippet.h"
#include "json/write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SNIPPET_MAX (1u << 20) /* bytes; as long as a configuration may be */
#define SHOWN_MAX 4096         /* bytes of a path */

struct add {
    struct cli *cli;
    const char *name;
    struct config_file file;
    struct str entry;   /* JSON, as it was given */
    struct str program; /* absolute path; absent: the server has a URL */
    struct str note;    /* what the snippet said and Holdfast does not use; absent: nothing */
    struct add_secrets secrets;
    struct trial found;
    bool was_tried;
};

/* The entry. */

/* NAME=VALUE of every -e, as a member of the entry. */
static bool write_env(struct add *a, struct js_writer *w, struct error *err)
{
    bool is_open = false;

    for (int i = 0; i < a->cli->n_given; i++) {
        struct str value = str_of(a->cli->given[i].value);
        if (strcmp(a->cli->given[i].name, "-e") != 0 && strcmp(a->cli->given[i].name, "--env") != 0)
            continue;
        struct str name = str_split(&value, '=');
        if (!value.p || !name.n)
            return error_set(err, ERR_USAGE, "-e is written NAME=VALUE");
        if (!is_open) {
            js_key(w, STR("env"));
            js_object(w);
        }
        is_open = true;
        js_key(w, name);
        js_string(w, value);
    }
    if (is_open)
        js_object_end(w);
    return true;
}

static bool write_headers(struct add *a, struct js_writer *w, struct error *err)
{
    bool is_open = false;

    for (int i = 0; i < a->cli->n_given; i++) {
        struct str value = str_of(a->cli->given[i].value);
        if (strcmp(a->cli->given[i].name, "-H") != 0 &&
            strcmp(a->cli->given[i].name, "--header") != 0)
            continue;
        struct str name = str_trim(str_split(&value, ':'));
        if (!value.p || !name.n)
            return error_set(err, ERR_USAGE, "-H is written 'NAME: VALUE'");
        if (!is_open) {
            js_key(w, STR("headers"));
            js_object(w);
        }
        is_open = true;
        js_key(w, name);
        js_string(w, str_trim(value));
    }
    if (is_open)
        js_object_end(w);
    return true;
}

static const char *transport_of(const struct cli *cli)
{
    const char *short_form = cli_flag(cli, "-t");

    return short_form ? short_form : cli_flag(cli, "--transport");
}

static bool write_remote(struct add *a, struct js_writer *w, struct error *err)
{
    const char *transport = transport_of(a->cli);

    if (transport && strcmp(transport, "http") != 0 && strcmp(transport, "sse") != 0)
        return error_set(err, ERR_USAGE,
                         "-t is http or sse for a URL; a command needs no -t: write it behind --");
    if (cli_flag(a->cli, "-e") || cli_flag(a->cli, "--env"))
        return error_set(err, ERR_USAGE, "-e is for commands; a URL takes headers (-H)");
    if (transport && strcmp(transport, "sse") == 0)
        js_kv_string(w, "type", STR("sse"));
    js_kv_string(w, "url", str_of(a->cli->args[1]));
    return write_headers(a, w, err);
}

static bool write_command(struct add *a, struct js_writer *w, struct error *err)
{
    const struct cli *cli = a->cli;
    const char *transport = transport_of(cli);

    if (transport && strcmp(transport, "stdio") != 0)
        return error_set(err, ERR_USAGE, "-t %s takes a URL, not a command", transport);
    if (cli_flag(cli, "-H") || cli_flag(cli, "--header"))
        return error_set(err, ERR_USAGE, "-H is for URLs; a command takes variables (-e)");
    js_kv_string(w, "command", str_of(cli->args[1]));
    js_key(w, STR("args"));
    js_array(w);
    for (int i = 2; i < cli->n_args; i++)
        js_string(w, str_of(cli->args[i]));
    js_array_end(w);
    return write_env(a, w, err);
}

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static bool make_entry(struct add *a, struct error *err)
{
    const struct cli *cli = a->cli;
    struct js_writer w;
    struct buf out;

    a->name = cli->args[0];
    bool is_remote = cli->n_before_dashes < 0 && is_url(cli->args[1]);
    if (is_remote && cli->n_args > 2)
        return error_set(err, ERR_USAGE, "add takes one URL; \"%.100s\" is too much", cli->args[2]);
    if (!is_remote && cli->n_before_dashes < 0 && strstr(cli->args[1], "://"))
        return error_set(
            err, ERR_USAGE,
            "\"%.100s\" is not the URL of a server; it begins with http:// or https://",
            cli->args[1]);
    if (!is_remote && cli->n_before_dashes != 1)
        return error_set(
            err, ERR_USAGE,
            "\"%.100s\" is not a URL; write a command behind --: holdfast add %.64s -- "
            "%.100s …",
            cli->args[1], a->name, cli->args[1]);
    buf_init_secret(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    bool ok = is_remote ? write_remote(a, &w, err) : write_command(a, &w, err);
    js_object_end(&w);
    a->entry = arena_dup(cli->mem, buf_str(&out));
    buf_release(&out);
    return ok;
}

static bool check_name(struct add *a, struct error *err)
{
    struct str path[] = {config_file_servers(a->cli, &a->file), str_of(a->name)};

    return !config_file_has(a->cli, &a->file, path, 2) || cli_flag(a->cli, "--replace") ||
           error_set(err, ERR_CONFLICT,
                     "%.*s has a server \"%.64s\" already; replace it with --replace, or take it "
                     "out with `holdfast remove %.64s`",
                     STR_ARG(a->file.path), a->name, a->name);
}

/* Whether this environment has the variables that the server uses. */
static bool is_complete(struct add *a, struct str entry, struct error *err)
{
    struct config *config;

    if (!add_secrets_parse(a->cli, a->name, entry, &config, err))
        return false;
    config_unref(config);
    return true;
}

static bool try_server(struct add *a, struct error *err)
{
    struct str entry = a->secrets.for_trial;

    if (cli_flag(a->cli, "--no-check") || !entry.p)
        return true;
    if (!is_complete(a, entry, err))
        return error_wrap(err, "%.64s was not added (add it all the same with --no-check)",
                          a->name);
    a->was_tried = true;
    if (trial_run(a->cli, str_of(a->name), add_secrets_config(a->cli, a->name, entry), &a->found,
                  err))
        return true;
    if (err->code != ERR_UNREACHABLE)
        return false;
    return error_wrap(err, "%.64s was not added (add it all the same with --no-check)", a->name);
}

/* The secrets first: a Holdfast that reads the file finds them. */
static bool add_server(struct add *a, struct error *err)
{
    struct str path[] = {config_file_servers(a->cli, &a->file), str_of(a->name)};

    return add_entry_locate(a->entry, str_of(getenv("PATH")), a->cli->mem, &a->entry, &a->program,
                            err) &&
           check_name(a, err) && add_secrets_take(a->cli, a->name, a->entry, &a->secrets, err) &&
           try_server(a, err) && add_secrets_store(a->cli, &a->secrets, err) &&
           config_file_change(a->cli, &a->file, path, 2, a->secrets.for_file, err);
}

/* What was found. */

static void print_json(const struct add *a, struct buf *out)
{
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_kv_string(&w, "server", str_of(a->name));
    js_kv_string(&w, "file", a->file.path);
    js_kv_string(&w, "program", a->program);
    if (a->was_tried) {
        js_kv_int(&w, "tools", a->found.tools);
        js_kv_int(&w, "prompts", a->found.prompts);
        js_kv_int(&w, "resources", a->found.resources);
        js_kv_string(&w, "protocol_version", a->found.version);
        js_kv_int(&w, "probe_ms", a->found.took_ms);
    }
    js_key(&w, STR("secrets"));
    js_array(&w);
    for (size_t i = 0; i < a->secrets.n; i++)
        js_string(&w, a->secrets.list[i].name);
    js_array_end(&w);
    js_object_end(&w);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_secrets(const struct add *a, struct buf *out)
{
    const struct add_secrets *s = &a->secrets;

    for (size_t i = 0; i < s->n; i++)
        buf_addf(out, "%s%.*s", i ? ", " : "  sealed in the store: ", STR_ARG(s->list[i].name));
    if (s->n)
        buf_addc(out, '\n');
    if (s->unknown.p && s->unknown_is_set)
        buf_addf(out,
                 "  not tried, because the secret %.*s is sealed; see `holdfast servers list`\n",
                 STR_ARG(s->unknown));
    else if (s->unknown.p)
        buf_addf(
            out,
            "  not tried, because the secret %.*s is not set; run `holdfast secret set %.*s`\n",
            STR_ARG(s->unknown), STR_ARG(s->unknown));
}

static void print_found(const struct add *a, struct buf *out)
{
    const struct cli *cli = a->cli;
    bool colour = cli_colour(STDOUT_FILENO);

    buf_addf(out, "%s✔%s %s  ", colour ? "\033[32m" : "", colour ? "\033[0m" : "", a->name);
    if (a->was_tried) {
        buf_addf(out, "%lld tool%s, %lld prompt%s, %lld resource%s   speaks ",
                 (long long)a->found.tools, plural(a->found.tools), (long long)a->found.prompts,
                 plural(a->found.prompts), (long long)a->found.resources,
                 plural(a->found.resources));
        log_escape(out, a->found.version, 32);
        buf_addf(out, "   connected in %.1f s\n", (double)a->found.took_ms / 1000);
    } else {
        buf_addz(out, "added without a trial\n");
    }
    if (a->program.p && cli->n_args > 1 && !str_eq(a->program, str_of(cli->args[1]))) {
        buf_addz(out, "  ");
        log_escape(out, str_of(cli->args[1]), SHOWN_MAX);
        buf_addz(out, " → ");
        log_escape(out, a->program, SHOWN_MAX);
        buf_addc(out, '\n');
    }
    if (a->note.p)
        buf_addf(out, "  %.*s\n", STR_ARG(a->note));
    print_secrets(a, out);
}

/* Adds one server, and adds what there is to say to `out`. */
static int add_and_print(struct add *a, struct buf *out)
{
    struct error err;

    if (!add_server(a, &err))
        return cli_refuse(a->cli, &err);
    if (cli_flag(a->cli, "--json")) {
        if (out->n)
            buf_addc(out, '\n');
        print_json(a, out);
    } else {
        print_found(a, out);
    }
    return 0;
}

/* From standard input. */

static bool read_input(struct cli *cli, struct str *ret, struct error *err)
{
    struct buf text;
    ssize_t n = 1;

    if (isatty(STDIN_FILENO))
        fputs("Paste the servers as JSON or TOML, then press Ctrl-D on a line of its own:\n",
              stderr);
    buf_init_secret(&text, SNIPPET_MAX + 65536);
    while (n != 0 && text.n <= SNIPPET_MAX) {
        n = read(STDIN_FILENO, buf_room(&text, 65536), 65536);
        if (n < 0 && errno != EINTR)
            break;
        buf_grown(&text, n > 0 ? (size_t)n : 0);
    }
    bool fits = text.n <= SNIPPET_MAX;
    *ret = str_trim(arena_dup(cli->mem, buf_str(&text)));
    buf_release(&text);
    if (n < 0)
        return error_sys(err, ERR_BAD_INPUT, errno, "standard input cannot be read");
    return fits || error_set(err, ERR_BAD_INPUT, "standard input has more than 1 MiB; shorten it");
}

static bool read_snippet(struct cli *cli, struct snippet_server **ret, size_t *ret_n,
                         struct error *err)
{
    struct str text = STR_NONE;

    if (cli_flag(cli, "-e") || cli_flag(cli, "--env") || cli_flag(cli, "-H") ||
        cli_flag(cli, "--header") || transport_of(cli))
        return error_set(err, ERR_USAGE, "-e, -H and -t go with a URL or a command; name one");
    if (!(cli->n_args == 1 && isatty(STDIN_FILENO)) && !read_input(cli, &text, err))
        return false;
    if (!text.n)
        return error_set(
            err, ERR_USAGE,
            "add takes a name, and a URL or a command behind --: holdfast add files -- "
            "npx -y @modelcontextprotocol/server-filesystem ~/notes; or JSON or TOML on standard "
            "input");
    if (!snippet_read(text, cli->mem, ret, ret_n, err))
        return error_wrap(err, "standard input");
    if (*ret_n == 0)
        return error_set(err, ERR_BAD_INPUT,
                         "standard input names no server; give \"mcpServers\", \"servers\" or "
                         "[mcp_servers.NAME]");
    if (cli->n_args == 1 && *ret_n > 1)
        return error_set(err, ERR_USAGE, "standard input has %zu servers; add them without a name",
                         *ret_n);
    return (*ret)[0].name.p || cli->n_args == 1 ||
           error_set(err, ERR_USAGE, "the server has no name; give one: holdfast add NAME");
}

/* Each server is added for itself.  Returns the exit status of the last that was refused. */
static int add_snippet(struct add *all, struct buf *out)
{
    struct cli *cli = all->cli;
    struct snippet_server *servers;
    struct error err;
    int status = 0;
    size_t n;

    if (!read_snippet(cli, &servers, &n, &err))
        return cli_refuse(cli, &err);
    for (size_t i = 0; i < n; i++) {
        struct add a = {.cli = cli, .file = all->file, .entry = servers[i].json};
        a.note = servers[i].note;
        a.name = cli->n_args ? cli->args[0] : arena_dup(cli->mem, servers[i].name).p;
        int one = add_and_print(&a, out);
        status = one ? one : status;
        all->file = a.file;
    }
    return status;
}

int cmd_add(struct cli *cli)
{
    struct add a = {.cli = cli};
    struct error err;
    struct buf out;
    int status;

    arena_wipe_later(cli->mem);
    if (!config_file_open(cli, &a.file, &err))
        return cli_refuse(cli, &err);
    buf_init(&out, SIZE_MAX / 4);
    if (cli->n_args < 2)
        status = add_snippet(&a, &out);
    else
        status = make_entry(&a, &err) ? add_and_print(&a, &out) : cli_refuse(cli, &err);
    if (out.n) {
        struct str reload = config_file_reload(cli, &a.file);
        if (!cli_flag(cli, "--json")) {
            buf_addz(&out, "  written to ");
            log_escape(&out, a.file.path, SHOWN_MAX);
            if (reload.p)
                buf_addf(&out, "\n  %.*s", STR_ARG(reload));
            buf_addz(&out, "\n  next: holdfast connect claude-code, or another client");
        }
        int printed = cli_print(cli, &out);
        status = status ? status : printed;
    }
    buf_release(&out);
    return status;
}
