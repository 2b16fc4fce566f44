/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast import [CLIENT…]: takes the servers of MCP clients over into Holdfast's configuration.
 * The files of the clients (import_files.h) are only read.  As `holdfast add` does, it seals values
 * that look like secrets into the store and writes references.  Secrets are never printed. */
#include "cli/cli.h"

#include "base/log.h"
#include "cli/add_secrets.h"
#include "cli/config_file.h"
#include "cli/confirm.h"
#include "cli/entry_diff.h"
#include "cli/import_entry.h"
#include "cli/import_files.h"
#include "cli/our_entry.h"
#include "config/config.h"
#include "config/edit.h"
#include "config/snippet.h"
#include "json/read.h"
#include "json/write.h"

#include <stdio.h>

#define FOUND_MAX 1000

enum import_state {
    IMPORT_NEW,
    IMPORT_PRESENT,
    IMPORT_DIFFERS, /* from the server of this name that Holdfast has */
    IMPORT_TWICE,   /* another server of this name was found before */
    IMPORT_UNUSABLE,
};
static const char *const state_names[] = {"new", "present", "conflict", "twice", "unusable"};

struct found {
    const struct import_file *from;
    struct str name;
    struct str entry;       /* as the client has it, with values */
    struct str shown, ours; /* without secrets; `ours` is absent unless the two differ */
    struct str note;        /* what is left out, or why the entry cannot be used; absent: nothing */
    size_t n_secrets;
    enum import_state state;
    struct add_secrets secrets; /* after it was taken */
    bool taken;
};

struct import {
    struct cli *cli;
    struct config_file file;
    struct our_addresses ours;
    struct found *found;
    size_t n;
    int status; /* of the last file or server that was passed over; 0: none */
};

/* An error that does not end the command; it becomes its exit status. */
static void pass_over(struct import *im, struct str what, struct str where, const struct error *err)
{
    struct buf out;

    buf_init(&out, 8192);
    log_escape(&out, what, 4096);
    if (where.p)
        buf_addz(&out, " of ");
    log_escape(&out, where, 4096);
    fprintf(stderr, "holdfast: %.*s was passed over: ", STR_ARG(buf_str(&out)));
    buf_reset(&out);
    log_escape(&out, str_of(err->text), 4096);
    fprintf(stderr, "%.*s\n", STR_ARG(buf_str(&out)));
    buf_release(&out);
    im->status = error_info(err->code)->exit_status;
}

static bool is_holdfast(const struct import *im, struct str json)
{
    struct js_doc doc;

    return js_parse(json, &js_limits_request, im->cli->mem, &doc, NULL) &&
           our_entry_is(&doc, &im->ours, im->cli->mem);
}

static void write_compact(struct js_writer *w, const struct js_doc *d, const struct js_node *v,
                          struct arena *mem)
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
            js_key(w, js_text(d, k, mem));
            k = js_value_of(k);
        }
        write_compact(w, d, k, mem);
    }
    if (is_object)
        js_object_end(w);
    else
        js_array_end(w);
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
    write_compact(&w, &doc, js_root(&doc), mem);
    json = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return json;
}

/* The entry of that name in our file, without blanks and comments; absent: there is none. */
static struct str our_entry(struct import *im, struct str name)
{
    struct str path[] = {config_file_servers(im->cli, &im->file), name};
    struct str entry = config_file_member(im->cli, &im->file, path, 2);

    return entry.p ? compact(entry, im->cli->mem) : entry;
}

/* An entry without secrets, to be shown. */
static bool seal_for_show(struct str entry, struct str server, struct arena *mem, struct str *ret,
                          size_t *ret_n, struct error *err)
{
    struct add_secret *ignored;

    return add_entry_seal(entry, server, mem, ret, &ignored, ret_n, err);
}

/* The first server of this name among those found; NULL: none. */
static const struct found *earlier(const struct import *im, struct str name)
{
    for (size_t i = 0; i < im->n; i++)
        if (str_eq(im->found[i].name, name))
            return &im->found[i];
    return NULL;
}

/* Compared are the entry itself and the entry as import would write it. */
static bool compare_with_ours(struct import *im, struct found *f, struct error *err)
{
    struct arena *mem = im->cli->mem;
    const struct found *other = earlier(im, f->name);
    struct str ours = other ? other->entry : our_entry(im, f->name), why;
    struct config *config = NULL;
    struct error wrong;
    size_t ignored;

    if (!import_entry(f->from->client, f->entry, mem, &f->entry, &why, err) ||
        !seal_for_show(f->entry, f->name, mem, &f->shown, &f->n_secrets, err))
        return false;
    if (!why.p && !add_secrets_parse(im->cli, arena_dup(mem, f->name).p, f->entry, &config, &wrong))
        why = arena_dup(mem, str_of(wrong.text));
    config_unref(config);
    bool is_same = ours.p && (str_eq(ours, f->entry) || str_eq(ours, f->shown));
    if (is_same)
        f->state = IMPORT_PRESENT;
    else if (why.p)
        f->state = IMPORT_UNUSABLE;
    else if (ours.p)
        f->state = other ? IMPORT_TWICE : IMPORT_DIFFERS;
    else
        f->state = IMPORT_NEW;
    if (f->state == IMPORT_UNUSABLE)
        f->note = why;
    return !ours.p || is_same || why.p ||
           seal_for_show(ours, f->name, mem, &f->ours, &ignored, err);
}

/* The same server in two clients is listed once.  An entry that cannot be read is passed over. */
static bool take_found(struct import *im, const struct import_file *from,
                       const struct snippet_server *server, struct error *err)
{
    const struct found *other = earlier(im, server->name);
    struct found *f = &im->found[im->n];

    *f = (struct found){.from = from, .name = server->name, .note = server->note};
    f->entry = compact(server->json, im->cli->mem);
    if (!compare_with_ours(im, f, err)) {
        pass_over(im, server->name, from->path, err);
        return err->code == ERR_BAD_INPUT;
    }
    im->n += !(other && f->state == IMPORT_PRESENT);
    return true;
}

/* A file that cannot be read is reported and passed over: the others are still useful. */
static bool read_file(struct import *im, const struct import_file *from, struct error *err)
{
    struct snippet_server *servers = NULL;
    size_t n = 0;

    if (!import_file_read(from, im->cli->mem, &servers, &n, err))
        pass_over(im, from->path, STR_NONE, err);
    for (size_t i = 0; i < n && im->n < FOUND_MAX; i++)
        if (servers[i].name.p && !is_holdfast(im, servers[i].json) &&
            !take_found(im, from, &servers[i], err))
            return false;
    return true;
}

static bool read_clients(struct import *im, struct error *err)
{
    for (const struct client *c = clients; c->name; c++) {
        struct import_file *files;
        bool wanted = im->cli->n_args == 0;
        size_t n = 0;
        for (int i = 0; i < im->cli->n_args; i++)
            wanted = wanted || strcmp(im->cli->args[i], c->name) == 0;
        if (wanted && !import_files_of(c, im->cli->mem, &files, &n, err))
            return false;
        for (size_t i = 0; i < n; i++)
            if (!read_file(im, &files[i], err))
                return false;
    }
    return true;
}

/* --replace also stores the secrets of a present server again. */
static bool will_take(const struct import *im, const struct found *f)
{
    bool replaces = cli_flag(im->cli, "--replace") != NULL;

    return f->state == IMPORT_NEW || (f->state == IMPORT_DIFFERS && replaces) ||
           (f->state == IMPORT_PRESENT && f->n_secrets && replaces);
}

static void show_one(const struct import *im, const struct found *f, struct buf *out)
{
    static const char *const words[] = {
        [IMPORT_NEW] = "",
        [IMPORT_PRESENT] = ": configured already",
        [IMPORT_DIFFERS] = ": configured differently; --replace takes this one",
        [IMPORT_TWICE] = ": another server of this name was found before; import CLIENT takes this",
        [IMPORT_UNUSABLE] = ": cannot be taken over",
    };
    bool takes = will_take(im, f);

    buf_addf(out, "%s %.*s (%.*s)", takes ? "+" : " ", STR_ARG(f->name), STR_ARG(f->from->title));
    if (!takes)
        buf_addz(out, words[f->state]);
    if (f->note.p) {
        buf_addz(out, takes || f->state != IMPORT_UNUSABLE ? "; " : ": ");
        log_escape(out, f->note, 1024);
    }
    buf_addc(out, '\n');
    if (takes && f->n_secrets && !cli_flag(im->cli, "--plain"))
        buf_addf(out, "  %zu secret%s will be sealed in the store\n", f->n_secrets,
                 f->n_secrets == 1 ? "" : "s");
    else if (takes && f->n_secrets)
        buf_addf(out, "  %zu secret%s will be written in clear (--plain)\n", f->n_secrets,
                 f->n_secrets == 1 ? "" : "s");
}

static void show(const struct import *im)
{
    struct buf out, lines;

    buf_init(&out, SIZE_MAX / 4);
    for (size_t i = 0; i < im->n; i++) {
        const struct found *f = &im->found[i];
        show_one(im, f, &out);
        if (f->state == IMPORT_PRESENT || f->state == IMPORT_UNUSABLE)
            continue;
        buf_init(&lines, SIZE_MAX / 4);
        entry_diff(f->ours, f->shown, im->cli->mem, &lines);
        for (struct str rest = buf_str(&lines); rest.n;) {
            struct str line = str_split(&rest, '\n');
            buf_addf(&out, "    %.*s\n", STR_ARG(line));
        }
        buf_release(&lines);
    }
    fwrite(out.p, 1, out.n, stderr);
    buf_release(&out);
}

static size_t count(const struct import *im)
{
    size_t n = 0;

    for (size_t i = 0; i < im->n; i++)
        n += will_take(im, &im->found[i]);
    return n;
}

/* The secrets first: a Holdfast that reads the file finds them. */
static bool take_one(struct import *im, struct found *f, struct error *err)
{
    struct str path[] = {config_file_servers(im->cli, &im->file), f->name};

    return add_secrets_take(im->cli, arena_dup(im->cli->mem, f->name).p, f->entry, &f->secrets,
                            err) &&
           add_secrets_store(im->cli, &f->secrets, err) &&
           config_file_change(im->cli, &im->file, path, 2, f->secrets.for_file, err);
}

/* A server that Holdfast cannot use is reported and passed over.  Returns the number taken. */
static size_t take_over(struct import *im)
{
    size_t n = 0;

    for (size_t i = 0; i < im->n; i++) {
        struct found *f = &im->found[i];
        struct error err;
        if (!will_take(im, f))
            continue;
        f->taken = take_one(im, f, &err);
        if (f->taken) {
            n++;
            continue;
        }
        f->note = arena_dup(im->cli->mem, str_of(err.text));
        pass_over(im, f->name, f->from->title, &err);
    }
    return n;
}

static void add_json(const struct found *f, struct buf *out)
{
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_kv_string(&w, "name", f->name);
    js_kv_string(&w, "client", str_of(f->from->client->name));
    js_kv_string(&w, "file", f->from->path);
    js_kv_string(&w, "state", str_of(state_names[f->state]));
    js_kv_bool(&w, "taken", f->taken);
    js_kv_string(&w, "note", f->note);
    js_key(&w, STR("secrets"));
    js_array(&w);
    for (size_t i = 0; i < f->secrets.n && f->taken; i++)
        js_string(&w, f->secrets.list[i].name);
    js_array_end(&w);
    if (f->taken && f->secrets.unknown.p && !f->secrets.unknown_is_set)
        js_kv_string(&w, "missing_secret", f->secrets.unknown);
    js_object_end(&w);
    buf_addc(out, '\n');
}

static void add_text(const struct import *im, size_t taken, struct buf *out)
{
    for (size_t i = 0; i < im->n; i++) {
        const struct add_secrets *s = &im->found[i].secrets;
        if (!im->found[i].taken)
            continue;
        for (size_t k = 0; k < s->n; k++)
            buf_addf(out, "sealed in the store: %.*s\n", STR_ARG(s->list[k].name));
        if (s->unknown.p && !s->unknown_is_set)
            buf_addf(out, "%.*s needs a secret that is not set: run `holdfast secret set %.*s`\n",
                     STR_ARG(im->found[i].name), STR_ARG(s->unknown));
    }
    buf_addf(out, "%zu of %zu servers taken over into %.*s", taken, im->n, STR_ARG(im->file.path));
}

static int report(struct import *im, size_t taken)
{
    struct buf out;
    int status;

    buf_init(&out, SIZE_MAX / 4);
    for (size_t i = 0; i < im->n && cli_flag(im->cli, "--json"); i++)
        add_json(&im->found[i], &out);
    if (!cli_flag(im->cli, "--json"))
        add_text(im, taken, &out);
    status = out.n ? cli_print(im->cli, &out) : 0;
    buf_release(&out);
    return status ? status : im->status;
}

static int check_names(struct cli *cli)
{
    for (int i = 0; i < cli->n_args; i++)
        if (!client_find(cli->args[i]))
            return cli_usage(cli, "there is no client %.60s; name %s", cli->args[i],
                             client_names(cli->mem).p);
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
    arena_wipe_later(cli->mem);
    im.ours = our_addresses_find(cli);
    im.found = arena_zalloc(cli->mem, FOUND_MAX * sizeof(*im.found));
    if (!config_file_open(cli, &im.file, &err) || !read_clients(&im, &err))
        return cli_refuse(cli, &err);
    if (!cli_flag(cli, "--json"))
        show(&im);
    n = count(&im);
    if (n == 0 || cli_flag(cli, "--dry-run"))
        return report(&im, 0);
    if (!confirm(cli, "Take these over?", "to take the servers over", true, &yes, &err))
        return cli_refuse(cli, &err);
    n = yes ? take_over(&im) : 0;
    struct str reload = n ? config_file_reload(cli, &im.file) : STR_NONE;
    if (reload.p && !cli_flag(cli, "--json"))
        fprintf(stderr, "holdfast: %.*s\n", STR_ARG(reload));
    return report(&im, n);
}
