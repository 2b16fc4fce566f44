/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast config check|show: reads the configuration as `up` would, and says what came of it. What
 * is accepted without effect is talk, so it goes to stderr, but for the JSON of check. */
#include "cli/cli.h"
#include "config/config.h"
#include "gateway.h"
#include "json/write.h"

#include <stdio.h>

static void add_check_json(struct buf *out, const struct config *c)
{
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_kv_bool(&w, "ok", true);
    js_kv_string(&w, "file", c->file);
    js_kv_int(&w, "servers", (int64_t)c->n_servers);
    js_key(&w, STR("notes"));
    js_array(&w);
    for (size_t i = 0; i < c->n_notes; i++)
        js_string(&w, c->notes[i]);
    js_array_end(&w);
    if (c->warning.p)
        js_kv_string(&w, "warning", c->warning);
    js_object_end(&w);
}

static void add_check(struct buf *out, const struct config *c)
{
    if (c->file.p)
        buf_addf(out, "%.*s is fine: %zu server%s", STR_ARG(c->file), c->n_servers,
                 c->n_servers == 1 ? "" : "s");
    else
        buf_addz(out, "no configuration file: the built-in defaults are used");
}

static void say_notes(const struct config *c)
{
    if (c->warning.p)
        fprintf(stderr, "warning: %.*s\n", STR_ARG(c->warning));
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
    struct config *config;
    struct error err;
    struct buf out;

    if (!check && strcmp(verb, "show") != 0)
        return cli_usage(cli, "say config check or config show");
    if (!config_load(&source, &config, &err))
        return cli_fail(cli, &err);
    if (check && !gateway_check_files(config, &err)) {
        config_unref(config);
        return cli_fail(cli, &err);
    }
    buf_init(&out, 64u * 1024 * 1024);
    if (!check)
        config_write(config, &out);
    else if (json)
        add_check_json(&out, config);
    else
        add_check(&out, config);
    if (!check || !json)
        say_notes(config);
    int status = cli_print(cli, &out);
    buf_release(&out);
    config_unref(config);
    return status;
}
