/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast add: connects to a server, and writes it to the configuration file.
 *
 *   command line ─> entry ─> trial ─> file ─> reload
 *
 * The file gets the absolute path of a command and the PATH of this shell, because programs that are
 * not started from a shell (desktop applications, services) often have another PATH. */
#include "cli/cli.h"

#include "base/log.h"
#include "cli/add_entry.h"
#include "cli/config_file.h"
#include "cli/trial.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct add {
    struct cli *cli;
    const char *name;
    struct config_file file;
    struct str entry;   /* JSON, for the trial and for the file */
    struct str program; /* absolute path; absent: the server has a URL */
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

    if (cli->n_args < 2)
        return error_set(
            err, ERR_USAGE,
            "add takes a name, and a URL or a command behind --: holdfast add files -- "
            "npx -y @modelcontextprotocol/server-filesystem ~/notes");
    a->name = cli->args[0];
    bool is_remote = cli->n_before_dashes < 0 && is_url(cli->args[1]);
    if (is_remote && cli->n_args > 2)
        return error_set(err, ERR_USAGE, "add takes one URL; \"%.100s\" is too much", cli->args[2]);
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
    return ok && add_entry_locate(a->entry, str_of(getenv("PATH")), cli->mem, &a->entry,
                                  &a->program, err);
}

/* A secret in clear would be readable by every program that reads the file. */
static bool check_secrets(struct add *a, struct error *err)
{
    struct add_secret *secrets;
    struct str sealed;
    size_t n;

    if (!add_entry_seal(a->entry, str_of(a->name), a->cli->mem, &sealed, &secrets, &n, err))
        return false;
    if (n == 0 || cli_flag(a->cli, "--plain"))
        return true;
    return error_set(err, ERR_BAD_INPUT,
                     "a value of this server looks like a secret (%.*s); write it as a variable of "
                     "Holdfast's environment, such as '${NAME}', or store it in clear with --plain",
                     (int)(secrets[0].name.n - strlen(a->name) - 1),
                     secrets[0].name.p + strlen(a->name) + 1);
}

static bool check_name(struct add *a, struct error *err)
{
    struct str path[] = {STR("mcpServers"), str_of(a->name)};

    return !config_file_has(a->cli, &a->file, path, 2) || cli_flag(a->cli, "--replace") ||
           error_set(err, ERR_CONFLICT,
                     "%.*s has a server \"%.64s\" already; replace it with --replace, or take it "
                     "out with `holdfast remove %.64s`",
                     STR_ARG(a->file.path), a->name, a->name);
}

static struct str trial_config(struct add *a)
{
    struct js_writer w;
    struct buf out;

    buf_init_secret(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("mcpServers"));
    js_object(&w);
    js_key(&w, str_of(a->name));
    js_raw_value(&w, a->entry);
    js_object_end(&w);
    js_object_end(&w);
    struct str text = arena_dup(a->cli->mem, buf_str(&out));
    buf_release(&out);
    return text;
}

static bool try_server(struct add *a, struct error *err)
{
    if (cli_flag(a->cli, "--no-check"))
        return true;
    a->was_tried = true;
    if (trial_run(a->cli, str_of(a->name), trial_config(a), &a->found, err))
        return true;
    if (err->code != ERR_UNREACHABLE)
        return false;
    return error_wrap(err, "%.64s was not added (add it all the same with --no-check)", a->name);
}

static bool write_file(struct add *a, struct error *err)
{
    struct str path[] = {STR("mcpServers"), str_of(a->name)};

    return config_file_change(a->cli, &a->file, path, 2, a->entry, err);
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
    js_object_end(&w);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_found(const struct add *a, struct buf *out, struct str reload)
{
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
    if (a->program.p && !str_eq(a->program, str_of(a->cli->args[1])))
        buf_addf(out, "  %s → %.*s\n", a->cli->args[1], STR_ARG(a->program));
    buf_addf(out, "  written to %.*s\n", STR_ARG(a->file.path));
    if (reload.p)
        buf_addf(out, "  %.*s\n", STR_ARG(reload));
}

int cmd_add(struct cli *cli)
{
    struct add a = {.cli = cli};
    struct error err;
    struct buf out;

    arena_wipe_later(cli->mem);
    if (!make_entry(&a, &err) || !config_file_open(cli, &a.file, &err) || !check_name(&a, &err) ||
        !check_secrets(&a, &err) || !try_server(&a, &err) || !write_file(&a, &err))
        return cli_refuse(cli, &err);
    struct str reload = config_file_reload(cli, &a.file);
    buf_init(&out, 64 * 1024);
    if (cli_flag(cli, "--json"))
        print_json(&a, &out);
    else
        print_found(&a, &out, reload);
    int status = cli_print(cli, &out);
    buf_release(&out);
    return status;
}
