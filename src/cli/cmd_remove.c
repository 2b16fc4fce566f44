/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast remove NAME: takes a server out of the configuration file, and its sealed secrets out of
 * the store. */
#include "cli/cli.h"

#include "base/log.h"
#include "cli/config_file.h"
#include "cli/secret.h"
#include "config/config.h"
#include "json/write.h"

#include <stdio.h>

#define NAME_SHOWN_MAX 64

/* ERR_NOT_FOUND, with the nearest server of the file. */
static bool no_such_server(struct cli *cli, const struct config_file *f, const char *name,
                           struct error *err)
{
    struct cli_nearest near = cli_nearest_to(str_of(name));
    struct config *config = NULL;
    struct error ignored;

    if (f->text.p && config_file_parse(f, &config, &ignored))
        for (size_t i = 0; i < config->n_servers; i++)
            if (config->servers[i].kind != SERVER_BUILTIN)
                cli_nearest_offer(&near, arena_dup(cli->mem, config->servers[i].name).p);
    config_unref(config);
    if (near.name)
        return error_set(err, ERR_NOT_FOUND, "%.*s has no server \"%.64s\"; did you mean \"%s\"?",
                         STR_ARG(f->path), name, near.name);
    return error_set(err, ERR_NOT_FOUND,
                     "%.*s has no server \"%.64s\"; see `holdfast servers list`", STR_ARG(f->path),
                     name);
}

static bool is_used(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->n_servers; i++)
        for (size_t k = 0; k < c->servers[i].n_secrets; k++)
            if (str_eq(c->servers[i].secrets[k].name, name))
                return true;
    return false;
}

/* The secrets that `add` made for the server (NAME.VARIABLE) and that `after` does not use.  Returns
 * their number. */
static size_t orphans(struct cli *cli, const struct config *before, const struct config *after,
                      struct str **ret)
{
    struct str prefix = arena_printf(cli->mem, "%s.", cli->args[0]);
    size_t n = 0;

    for (size_t i = 0; i < before->n_servers; i++) {
        const struct server_config *s = &before->servers[i];
        if (!str_eq(s->name, str_of(cli->args[0])))
            continue;
        *ret = arena_zalloc(cli->mem, (s->n_secrets + 1) * sizeof(**ret));
        for (size_t k = 0; k < s->n_secrets; k++)
            if (str_starts(s->secrets[k].name, prefix) && !is_used(after, s->secrets[k].name))
                (*ret)[n++] = arena_dup(cli->mem, s->secrets[k].name);
    }
    return n;
}

/* A secret that is not there, because it was never set, is no error. */
static bool remove_secrets(struct cli *cli, const struct str *names, size_t n, struct error *err)
{
    struct source source = {0};

    if (n == 0)
        return true;
    bool ok = source_open(cli, SOURCE_CHANGES, &source, err);
    for (size_t i = 0; i < n && ok; i++)
        ok = secret_remove(cli, &source, names[i], err) || err->code == ERR_NOT_FOUND;
    source_close(&source);
    return ok ||
           error_wrap(err, "the secrets of the server are still in the store; remove them with "
                           "`holdfast secret remove`");
}

static struct config *parsed(const struct config_file *f)
{
    struct config *config = NULL;
    struct error ignored;

    if (!f->text.p || !config_file_parse(f, &config, &ignored))
        return NULL;
    return config;
}

static int report(struct cli *cli, const struct config_file *f, struct str reload,
                  bool has_removed_secrets)
{
    struct js_writer w;
    struct buf out;
    int status = 0;

    buf_init(&out, SIZE_MAX / 4);
    if (cli_flag(cli, "--json")) {
        js_begin(&w, &out);
        js_object(&w);
        js_kv_string(&w, "server", str_of(cli->args[0]));
        js_kv_bool(&w, "removed", true);
        js_object_end(&w);
        status = cli_print(cli, &out);
    } else {
        buf_addz(&out, "removed ");
        log_escape(&out, str_of(cli->args[0]), NAME_SHOWN_MAX);
        buf_addf(&out, " from %.*s%s%s%.*s", STR_ARG(f->path),
                 has_removed_secrets ? ", and its secrets from the store" : "",
                 reload.p ? "; " : "", STR_ARG(reload));
        fprintf(stderr, "%s\n", out.p);
    }
    buf_release(&out);
    return status;
}

/* The running Holdfast stops the server before its secrets go, and also if they cannot be removed. */
static int finish(struct cli *cli, const struct config_file *f, const struct str *secrets, size_t n)
{
    struct str reload = config_file_reload(cli, f);
    struct error err;
    bool ok = remove_secrets(cli, secrets, n, &err);
    int status = report(cli, f, reload, ok && n);

    return ok ? status : cli_fail(cli, &err);
}

int cmd_remove(struct cli *cli)
{
    struct config *before, *after;
    struct str *secrets = NULL;
    size_t n = 0;
    struct config_file file;
    struct error err;

    if (cli->n_args != 1)
        return cli_usage(cli, "remove takes the name of one server");
    if (!config_file_open(cli, &file, &err))
        return cli_fail(cli, &err);
    struct str path[] = {config_file_servers(cli, &file), str_of(cli->args[0])};
    if (!config_file_has(cli, &file, path, 2)) {
        (void)no_such_server(cli, &file, cli->args[0], &err);
        return cli_fail(cli, &err);
    }
    before = parsed(&file);
    if (!config_file_change(cli, &file, path, 2, STR_NONE, &err)) {
        config_unref(before);
        return cli_fail(cli, &err);
    }
    after = parsed(&file);
    if (before && after)
        n = orphans(cli, before, after, &secrets);
    config_unref(before);
    config_unref(after);
    return finish(cli, &file, secrets, n);
}
