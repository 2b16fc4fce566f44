/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect_entry.h"

#include "json/write.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* Absolute, because the client starts the command elsewhere.  The directory may not exist yet. */
static struct str whole_path(struct arena *mem, const char *path)
{
    char *real = realpath(path, NULL), *here = real ? NULL : getcwd(NULL, 0);
    struct str whole = here && path[0] != '/' ? arena_printf(mem, "%s/%s", here, path)
                                              : arena_dup(mem, str_of(real ? real : path));

    free(real);
    free(here);
    return whole;
}

static void add_arg(struct connect_entry *e, const char *flag, const char *value)
{
    if (value && e->n_args + 2 < CONNECT_ARGS_MAX) {
        e->args[e->n_args++] = flag;
        e->args[e->n_args++] = value;
    }
}

bool connect_entry_command(struct cli *cli, struct connect_entry *e, struct error *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    const char *config = cli_flag(cli, "--config"), *data = cli_flag(cli, "--data");

    if (n <= 0)
        return error_sys(err, ERR_INTERNAL, errno, "cannot find the path of this program");
    if (!config || !*config)
        config = getenv("HOLDFAST_CONFIG");
    /* This directory's own file comes first here, but not where the client starts the command. */
    if ((!config || !*config) && access("holdfast.json", F_OK) == 0)
        config = "holdfast.json";
    e->args[e->n_args++] = arena_dup(cli->mem, str_n(self, (size_t)n)).p;
    e->args[e->n_args++] = "stdio";
    add_arg(e, "--server", cli_flag(cli, "--server"));
    add_arg(e, "--profile", cli_flag(cli, "--profile"));
    add_arg(e, "--config", config && *config ? whole_path(cli->mem, config).p : NULL);
    add_arg(e, "--data", data && *data ? whole_path(cli->mem, data).p : NULL);
    return true;
}

struct str connect_entry_json(const struct client *client, const struct connect_entry *e,
                              struct arena *mem)
{
    struct js_writer w;
    struct str json;
    struct buf out;

    buf_init(&out, SIZE_MAX);
    js_begin(&w, &out);
    js_object(&w);
    if (e->address.url.p) {
        if (client->url_type)
            js_kv_string(&w, "type", str_of(client->url_type));
        js_kv_string(&w, client->url_key, e->address.url);
        if (e->address.has_key) {
            js_key(&w, STR("headers"));
            js_object(&w);
            js_kv_string(&w, "Authorization", str_of(client->auth));
            js_object_end(&w);
        }
    } else {
        js_kv_string(&w, "command", str_of(e->args[0]));
        js_key(&w, STR("args"));
        js_array(&w);
        for (size_t i = 1; i < e->n_args; i++)
            js_string(&w, str_of(e->args[i]));
        js_array_end(&w);
    }
    js_object_end(&w);
    json = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return json;
}

/* Strings of JSON are strings of TOML too. */
struct str connect_entry_toml(const struct client *client, const struct connect_entry *e,
                              struct arena *mem)
{
    struct buf out;
    struct str block;

    buf_init(&out, SIZE_MAX);
    buf_addz(&out, "[mcp_servers.");
    js_quote(&out, e->name);
    buf_addz(&out, e->address.url.p ? "]\nurl = " : "]\ncommand = ");
    js_quote(&out, e->address.url.p ? e->address.url : str_of(e->args[0]));
    for (size_t i = 1; i < e->n_args && !e->address.url.p; i++) {
        buf_addz(&out, i == 1 ? "\nargs = [" : ", ");
        js_quote(&out, str_of(e->args[i]));
    }
    buf_addz(&out, e->address.url.p ? "\n" : "]\n");
    if (e->address.has_key)
        buf_addf(&out, "%s = \"HOLDFAST_KEY\"\n", client->auth_variable);
    block = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return block;
}
