/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast import [CLIENT…]: takes the servers of MCP clients over into Holdfast's configuration.
 * The files of the clients are only read.  Secrets are never printed: entries are shown with
 * references in their place. */
#include "cli/cli.h"

#include "cli/add_entry.h"
#include "cli/clients.h"
#include "cli/config_file.h"
#include "cli/terminal.h"
#include "config/edit.h"
#include "config/snippet.h"
#include "json/read.h"
#include "json/write.h"

#include <stdio.h>

#define FOUND_MAX 1000

enum fate { FATE_NEW, FATE_SAME, FATE_DIFFERS, FATE_SECRET };
static const char *const fates[] = {"new", "present", "conflict", "secret"};

struct found {
    const struct client *client;
    struct snippet_server server;
    struct str shown, ours; /* without secrets; `ours` is absent unless the two differ */
    enum fate fate;
    bool taken;
};

struct import {
    struct cli *cli;
    struct config_file file;
    struct found *found;
    size_t n;
};

/* Whether the entry starts Holdfast itself, as connect writes it. */
static bool is_ours(struct str json, struct arena *mem)
{
    struct js_doc doc;
    struct str command, first;

    if (!js_parse(json, &js_limits_request, mem, &doc, NULL))
        return false;
    command = js_text(&doc, js_get(&doc, js_root(&doc), STR("command")), mem);
    first = STR_NONE;
    if (js_type_is(js_get(&doc, js_root(&doc), STR("args")), JS_ARRAY))
        first = js_text(&doc, js_first(&doc, js_get(&doc, js_root(&doc), STR("args"))), mem);
    return command.p && str_ends(command, STR("holdfast")) && first.p &&
           str_eq(first, STR("stdio"));
}

static void write_compact(struct js_writer *w, const struct js_doc *d, const struct js_node *v)
{
    bool is_object = v->type == JS_OBJECT;

    if (!is_object && v->type != JS_ARRAY) {
        js_raw_value(w, js_raw(d, v));
        return;
    }
    if (is_object)
        js_object(w);
    else
        js_array(w);
    for (const struct js_node *k = js_first(d, v); k; k = js_next(d, v, k)) {
        if (is_object) {
            struct str raw = js_raw(d, k);
            js_key(w, str_n(raw.p + 1, raw.n - 2)); /* only compared and shown */
            k = js_value_of(k);
        }
        write_compact(w, d, k);
    }
    if (is_object)
        js_object_end(w);
    else
        js_array_end(w);
}

/* The entry of that name in our file, without blanks and comments; absent: there is none. */
static struct str our_entry(struct import *im, struct str name)
{
    struct arena *mem = im->cli->mem;
    const struct js_node *v;
    struct js_writer w;
    struct js_doc doc;
    struct buf out;
    struct str text = im->file.text, json;

    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = str_n(text.p + 3, text.n - 3);
    if (!text.n || !js_parse(text, &js_limits_config, mem, &doc, NULL))
        return STR_NONE;
    v = js_get(&doc, js_get(&doc, js_root(&doc), STR("mcpServers")), name);
    if (!v)
        return STR_NONE;
    buf_init_secret(&out, SIZE_MAX);
    js_begin(&w, &out);
    write_compact(&w, &doc, v);
    json = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return json;
}

static struct str compact(struct str json, struct arena *mem)
{
    struct js_writer w;
    struct js_doc doc;
    struct buf out;

    if (!js_parse(json, &js_limits_config, mem, &doc, NULL))
        return json;
    buf_init_secret(&out, SIZE_MAX);
    js_begin(&w, &out);
    write_compact(&w, &doc, js_root(&doc));
    json = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return json;
}

static bool judge(struct import *im, struct found *f, struct error *err)
{
    struct arena *mem = im->cli->mem;
    struct str entry = compact(f->server.json, mem), ours = our_entry(im, f->server.name);
    struct add_secret *secrets;
    size_t n = 0, ignored;

    if (!add_entry_seal(entry, f->server.name, mem, &f->shown, &secrets, &n, err))
        return false;
    f->fate = FATE_NEW;
    if (ours.p && str_eq(ours, entry))
        f->fate = FATE_SAME;
    else if (ours.p) {
        f->fate = FATE_DIFFERS;
        if (!add_entry_seal(ours, f->server.name, mem, &f->ours, &secrets, &ignored, err))
            return false;
    } else if (n && !cli_flag(im->cli, "--plain"))
        f->fate = FATE_SECRET;
    return true;
}

static bool is_known(const struct import *im, struct str name)
{
    for (size_t i = 0; i < im->n; i++)
        if (str_eq(im->found[i].server.name, name))
            return true;
    return false;
}

/* A file that cannot be read is reported and passed over: the others are still useful. */
static bool read_client(struct import *im, const struct client *client, struct error *err)
{
    struct snippet_server *servers = NULL;
    struct str path = STR_NONE;
    struct buf text;
    bool exists = false;
    size_t n = 0;

    if (!client_file(client, im->cli->mem, &path, err))
        return false;
    buf_init_secret(&text, SIZE_MAX);
    if (!config_edit_read(path.p, &text, &exists, err) ||
        (text.n && !snippet_read(buf_str(&text), im->cli->mem, &servers, &n, err)))
        fprintf(stderr, "holdfast: %s was passed over: %s\n", path.p, err->text);
    buf_release(&text);
    for (size_t i = 0; i < n && im->n < FOUND_MAX; i++) {
        struct found *f = &im->found[im->n];
        if (!servers[i].name.p || is_ours(servers[i].json, im->cli->mem) ||
            is_known(im, servers[i].name))
            continue;
        *f = (struct found){.client = client, .server = servers[i]};
        if (!judge(im, f, err))
            return false;
        im->n++;
    }
    return true;
}

static bool read_clients(struct import *im, struct error *err)
{
    for (const struct client *c = clients; c->name; c++) {
        bool wanted = im->cli->n_args == 0;
        for (int i = 0; i < im->cli->n_args; i++)
            wanted = wanted || strcmp(im->cli->args[i], c->name) == 0;
        if (wanted && !read_client(im, c, err))
            return false;
    }
    return true;
}

static bool will_take(const struct import *im, const struct found *f)
{
    return f->fate == FATE_NEW || (f->fate == FATE_DIFFERS && cli_flag(im->cli, "--replace"));
}

static void show(const struct import *im)
{
    static const char *const words[] = {
        [FATE_NEW] = "",
        [FATE_SAME] = " is configured already",
        [FATE_DIFFERS] = " is configured differently; --replace takes this one",
        [FATE_SECRET] = " holds a secret in clear; --plain takes it over as it is",
    };

    for (size_t i = 0; i < im->n; i++) {
        const struct found *f = &im->found[i];
        bool takes = will_take(im, f);
        fprintf(stderr, "%s %.*s (%s)%s%s%.*s\n", takes ? "+" : " ", STR_ARG(f->server.name),
                f->client->title, takes ? "" : words[f->fate], f->server.note.p ? "; " : "",
                STR_ARG(f->server.note));
        if (f->ours.p)
            fprintf(stderr, "    - %.*s\n", STR_ARG(f->ours));
        if (f->fate != FATE_SAME)
            fprintf(stderr, "    + %.*s\n", STR_ARG(f->shown));
    }
}

static size_t count(const struct import *im)
{
    size_t n = 0;

    for (size_t i = 0; i < im->n; i++)
        n += will_take(im, &im->found[i]);
    return n;
}

static bool confirm(struct import *im, bool *ret_yes, struct error *err)
{
    struct str answer;

    *ret_yes = true;
    if (cli_flag(im->cli, "--yes"))
        return true;
    if (!terminal_is_there())
        return error_set(err, ERR_USAGE,
                         "nobody can be asked here, because this is not a terminal; add --yes to "
                         "take the servers over");
    answer = terminal_line("Take these over? [Y/n] ", im->cli->mem);
    *ret_yes = answer.p && (answer.n == 0 || (answer.p[0] | 32) == 'y');
    return true;
}

/* A server that Holdfast cannot use is reported and passed over.  Returns the number taken. */
static size_t take_over(struct import *im)
{
    size_t n = 0;

    for (size_t i = 0; i < im->n; i++) {
        struct found *f = &im->found[i];
        struct str path[] = {STR("mcpServers"), f->server.name};
        struct error err;
        if (!will_take(im, f))
            continue;
        f->taken = config_file_change(im->cli, &im->file, path, 2, f->server.json, &err);
        if (f->taken)
            n++;
        else
            fprintf(stderr, "holdfast: %.*s of %s was passed over: %s\n", STR_ARG(f->server.name),
                    f->client->title, err.text);
    }
    return n;
}

static int report(struct import *im, size_t taken)
{
    struct js_writer w;
    struct buf out;
    int status;

    buf_init(&out, SIZE_MAX);
    for (size_t i = 0; i < im->n && cli_flag(im->cli, "--json"); i++) {
        const struct found *f = &im->found[i];
        js_begin(&w, &out);
        js_object(&w);
        js_kv_string(&w, "name", f->server.name);
        js_kv_string(&w, "client", str_of(f->client->name));
        js_kv_string(&w, "state", str_of(fates[f->fate]));
        js_kv_bool(&w, "taken", f->taken);
        js_kv_string(&w, "note", f->server.note);
        js_object_end(&w);
        buf_addc(&out, '\n');
    }
    if (!cli_flag(im->cli, "--json"))
        buf_addf(&out, "%zu of %zu servers taken over into %.*s", taken, im->n,
                 STR_ARG(im->file.path));
    status = out.n ? cli_print(im->cli, &out) : 0;
    buf_release(&out);
    return status;
}

static int check_names(struct cli *cli)
{
    for (int i = 0; i < cli->n_args; i++)
        if (!client_find(cli->args[i]))
            return cli_usage(cli,
                             "there is no client %.60s; name claude-code, claude-desktop, "
                             "cursor, vscode, codex or gemini",
                             cli->args[i]);
    return 0;
}

int cmd_import(struct cli *cli)
{
    struct import im = {.cli = cli};
    bool yes = false;
    struct error err;
    int status = check_names(cli);
    size_t n;

    if (status)
        return status;
    im.found = arena_zalloc(cli->mem, FOUND_MAX * sizeof(*im.found));
    if (!config_file_open(cli, &im.file, &err) || !read_clients(&im, &err))
        return cli_refuse(cli, &err);
    if (!cli_flag(cli, "--json"))
        show(&im);
    n = count(&im);
    if (n == 0 || cli_flag(cli, "--dry-run"))
        return report(&im, 0);
    if (!confirm(&im, &yes, &err))
        return cli_refuse(cli, &err);
    n = yes ? take_over(&im) : 0;
    if (n && !cli_flag(cli, "--json"))
        fprintf(stderr, "holdfast: %.*s\n", STR_ARG(config_file_reload(cli, &im.file)));
    return report(&im, n);
}
