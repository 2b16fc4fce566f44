/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/our_entry.h"

#include "cli/source.h"
#include "config/datadir.h"

#include <limits.h>
#include <unistd.h>

#define ANSWER_MS 2000

/* The addresses */

static struct str url_of_listen(struct str listen, bool is_tls, struct arena *mem)
{
    return arena_printf(mem, "http%s://%.*s", is_tls ? "s" : "", STR_ARG(listen));
}

struct our_addresses our_addresses_of(const struct config *config, struct arena *mem)
{
    struct our_addresses ours = {0};
    struct str shown = config ? config->public_url : STR_NONE;

    while (str_ends(shown, STR("/")))
        shown.n--;
    ours.public_url = shown.n ? arena_dup(mem, shown) : STR_NONE;
    ours.listen = config ? url_of_listen(config->listen, config->tls_cert.p, mem)
                         : STR("http://127.0.0.1:4653");
    return ours;
}

struct str our_running_url(struct control *control, struct arena *mem)
{
    struct error ignored;
    struct js_doc doc;
    struct str json;

    if (!control_get(control, STR("/api/v1/system"), mem, &json, &ignored) ||
        !source_parse(json, mem, &doc, &ignored))
        return STR_NONE;
    return source_text(&doc, js_root(&doc), "url", mem);
}

struct our_addresses our_addresses_find(struct cli *cli)
{
    struct config_source source = {.file = str_of(cli_flag(cli, "--config"))};
    struct our_addresses ours;
    struct control *control;
    struct config *config = NULL;
    struct str data_dir = STR_NONE;
    struct error ignored;

    if (!config_load(&source, &config, &ignored))
        config = NULL;
    ours = our_addresses_of(config, cli->mem);
    config_unref(config);
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &data_dir, &ignored) ||
        datadir_owner(data_dir) == 0 || !control_open_socket(data_dir, &control, &ignored))
        return ours;
    control_set_deadline(control, ANSWER_MS);
    ours.running = our_running_url(control, cli->mem);
    control_close(control);
    return ours;
}

/* The entry */

/* Host and port of an address, and what follows.  Names of this machine become 127.0.0.1, so does
 * the address on which all interfaces are listened to. */
static struct str place_of(struct str url, struct arena *mem)
{
    static const char *const here[] = {"localhost:", "[::1]:", "0.0.0.0:", "[::]:"};

    str_split(&url, '/'), str_split(&url, '/');
    for (size_t i = 0; i < countof(here); i++)
        if (str_starts(url, str_of(here[i])))
            return arena_printf(mem, "127.0.0.1:%.*s", (int)(url.n - strlen(here[i])),
                                url.p + strlen(here[i]));
    return url;
}

static bool leads_to(struct str url, struct str ours, struct arena *mem)
{
    struct str a = place_of(url, mem), b = place_of(ours, mem);

    return b.n && str_starts(a, b) && (a.n == b.n || a.p[b.n] == '/');
}

struct str our_entry_url(const struct js_doc *entry, struct arena *mem)
{
    static const char *const names[] = {"url", "httpUrl", "serverUrl"};
    struct str url = STR_NONE;

    for (size_t i = 0; i < countof(names) && !url.p; i++)
        url = js_text(entry, js_get(entry, js_root(entry), str_of(names[i])), mem);
    return url;
}

static bool is_our_program(struct str command)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
    const char *slash = memrchr(command.p, '/', command.n);
    struct str base =
        slash ? str_n(slash + 1, command.n - (size_t)(slash + 1 - command.p)) : command;

    return str_eq(base, STR("holdfast")) || (n > 0 && str_eq(command, str_n(self, (size_t)n)));
}

bool our_entry_runs(const struct js_doc *entry, struct arena *mem)
{
    struct str command = js_text(entry, js_get(entry, js_root(entry), STR("command")), mem);
    const struct js_node *args = js_get(entry, js_root(entry), STR("args"));
    const struct js_node *first = js_type_is(args, JS_ARRAY) ? js_first(entry, args) : NULL;

    return command.p && is_our_program(command) && js_type_is(first, JS_STRING) &&
           js_is(entry, first, STR("stdio"));
}

bool our_entry_is(const struct js_doc *entry, const struct our_addresses *ours, struct arena *mem)
{
    struct str url = our_entry_url(entry, mem);

    return our_entry_runs(entry, mem) ||
           (url.p && (leads_to(url, ours->listen, mem) || leads_to(url, ours->public_url, mem) ||
                      leads_to(url, ours->running, mem)));
}
