/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast config check|show: reads the configuration as `up` does, and prints the result.  Notes
 * about settings without effect go to stderr; `check --json` has them in its JSON. */
#include "cli/cli.h"
#include "config/config.h"
#include "gateway.h"
#include "json/write.h"

#include <stdio.h>

/* Programs, directories and folders that the configuration names and this machine lacks. */
struct findings {
    struct config_finding *list;
    size_t n, n_errors;
};

static struct findings look(const struct config *c, struct arena *mem)
{
    struct findings f = {0};

    f.n = config_check_machine(c, true, mem, &f.list);
    for (size_t i = 0; i < f.n; i++)
        f.n_errors += f.list[i].is_error;
    return f;
}

static void add_texts(struct js_writer *w, const char *key, const struct findings *f, bool errors)
{
    js_key(w, str_of(key));
    js_array(w);
    for (size_t i = 0; i < f->n; i++)
        if (f->list[i].is_error == errors)
            js_string(w, f->list[i].text);
    js_array_end(w);
}

static void add_check_json(struct buf *out, const struct config *c, const struct findings *f)
{
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_kv_bool(&w, "ok", f->n_errors == 0);
    js_kv_string(&w, "file", c->file);
    js_kv_int(&w, "servers", (int64_t)c->n_servers);
    js_key(&w, STR("notes"));
    js_array(&w);
    for (size_t i = 0; i < c->n_notes; i++)
        js_string(&w, c->notes[i]);
    js_array_end(&w);
    if (c->warning.p)
        js_kv_string(&w, "warning", c->warning);
    add_texts(&w, "errors", f, true);
    add_texts(&w, "warnings", f, false);
    js_object_end(&w);
}

static void add_check(struct buf *out, const struct config *c, const struct findings *f)
{
    if (c->file.p && f->n_errors)
        buf_addf(out, "%.*s has %zu error%s", STR_ARG(c->file), f->n_errors,
                 f->n_errors == 1 ? "" : "s");
    else if (c->file.p)
        buf_addf(out, "%.*s is fine: %zu server%s", STR_ARG(c->file), c->n_servers,
                 c->n_servers == 1 ? "" : "s");
    else
        buf_addz(out, "no configuration file: the built-in defaults are used");
}

static void print_notes(const struct config *c, const struct findings *f)
{
    if (c->warning.p)
        fprintf(stderr, "warning: %.*s\n", STR_ARG(c->warning));
    for (size_t i = 0; i < f->n; i++)
        fprintf(stderr, "%s: %.*s\n", f->list[i].is_error ? "error" : "warning",
                STR_ARG(f->list[i].text));
    for (size_t i = 0; i < c->n_notes; i++)
        fprintf(stderr, "note: %.*s\n", STR_ARG(c->notes[i]));
}

int cmd_config(struct cli *cli)
{
    struct config_source source = {
        .file = str_of(cli_flag(cli, "--config")),
        .must_exist = cli_flag(cli, "--config") != NULL,
    };
    const char *verb = cli->n_args == 1 ? cli->args[0] : "";
    bool check = strcmp(verb, "check") == 0, json = cli_flag(cli, "--json") != NULL;
    struct findings found = {0};
    struct config *config;
    struct error err;
    struct buf out;

    if (!check && strcmp(verb, "show") != 0) {
        struct cli_nearest near = cli_nearest_to(str_of(verb));
        cli_nearest_offer(&near, "check");
        cli_nearest_offer(&near, "show");
        return cli_unknown_verb(cli, &near, "config needs check or show");
    }
    if (!config_load(&source, &config, &err))
        return cli_fail(cli, &err);
    if (check && !gateway_check_files(config, &err)) {
        config_unref(config);
        return cli_fail(cli, &err);
    }
    if (check)
        found = look(config, cli->mem);
    buf_init(&out, 64u * 1024 * 1024);
    if (!check)
        config_write(config, &out);
    else if (json)
        add_check_json(&out, config, &found);
    else
        add_check(&out, config, &found);
    if (!check || !json)
        print_notes(config, &found);
    int status = cli_print(cli, &out);
    if (!status && found.n_errors)
        status = error_info(ERR_CONFIG)->exit_status;
    buf_release(&out);
    config_unref(config);
    return status;
}
