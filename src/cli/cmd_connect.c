/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast connect CLIENT and holdfast disconnect CLIENT: write Holdfast into the configuration of
 * an MCP client, and put the file back.
 *
 * connect keeps two copies for each entry (client_record()): "before", the file without our entry
 * (missing: there was no file), and "after", the file as connect left it.  disconnect writes the
 * first back if the file still equals the second.  If the file has changed since, disconnect takes
 * out our entry only.  A file that cannot be parsed is never written. */
#include "cli/cli.h"

#include "cli/clients.h"
#include "cli/confirm.h"
#include "cli/connect_check.h"
#include "cli/connect_entry.h"
#include "cli/our_entry.h"
#include "cli/program.h"
#include "config/config.h"
#include "config/edit.h"
#include "config/toml.h"
#include "config/toml_edit.h"
#include "json/read.h"
#include "json/write.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OWN_COMMAND_MS 60000 /* for the client's own command */

struct connect {
    struct cli *cli;
    struct arena *mem;
    const struct client *client;
    struct str file, before_at, after_at; /* paths */
    struct str before, after;             /* contents; absent: no file */
    struct connect_entry own;
    struct str entry; /* `own` as JSON */
    struct connect_check check;
    bool is_checked;
};

static bool read_text(struct connect *c, struct str path, struct str *ret, struct error *err)
{
    struct buf text;
    bool exists = false, ok;

    buf_init_secret(&text, SIZE_MAX);
    ok = config_edit_read(path.p, &text, &exists, err);
    if (ok)
        *ret = exists ? arena_dup(c->mem, buf_str(&text)) : STR_NONE;
    buf_release(&text);
    return ok;
}

/* Replaces the content of a record; absent: removes it. */
static bool put_record(struct connect *c, struct str path, struct str text, struct error *err)
{
    struct str now = STR_NONE;

    return read_text(c, path, &now, err) && config_edit_write(path.p, now, text, err);
}

static int take_client(struct connect *c)
{
    struct cli_nearest near;
    struct str word = str_of(c->cli->n_args ? c->cli->args[0] : NULL);

    if (c->cli->n_args > 1)
        return cli_usage(c->cli, "one client at a time; there is %s after %s", c->cli->args[1],
                         c->cli->args[0]);
    c->client = word.p ? client_find(word.p) : NULL;
    if (c->client)
        return 0;
    near = cli_nearest_to(word.p ? word : STR(""));
    for (const struct client *k = clients; word.p && k->name; k++)
        cli_nearest_offer(&near, k->name);
    if (near.name)
        return cli_usage(c->cli, "there is no client %.60s; did you mean %s?", word.p, near.name);
    return cli_usage(c->cli, "name a client: %s", client_names(c->mem).p);
}

static bool open_client(struct connect *c, struct error *err)
{
    const char *name = cli_flag(c->cli, "--name");

    c->own.name = name && *name ? str_of(name) : STR("holdfast");
    return client_file(c->client, c->mem, &c->file, err) &&
           client_record(c->client, c->own.name, "before", c->mem, &c->before_at, err) &&
           client_record(c->client, c->own.name, "after", c->mem, &c->after_at, err) &&
           read_text(c, c->file, &c->before, err);
}

/* Whether the file has an entry of our name; an error if the file cannot be parsed. */
static bool find_entry(struct connect *c, struct str text, bool *ret, struct error *err)
{
    struct str path[] = {str_of(c->client->key), c->own.name};
    struct buf out;
    struct js_doc doc;
    bool ok;

    buf_init_secret(&out, SIZE_MAX);
    if (c->client->is_toml) {
        ok = toml_to_json(text, c->mem, &out, err);
        if (ok && !js_parse(buf_str(&out), &js_limits_upstream, c->mem, &doc, NULL))
            ok = error_set(err, ERR_INTERNAL, "the file cannot be read");
        if (ok)
            *ret = js_get(&doc, js_get(&doc, js_root(&doc), path[0]), path[1]) != NULL;
    } else {
        ok = config_edit_remove(text, path, 2, &out, ret, err);
    }
    buf_release(&out);
    return ok || error_wrap(err, "%s was left as it is", c->file.p);
}

/* The entry of our name as JSON; absent: there is none.  The text can be parsed. */
static struct str entry_of(struct connect *c, struct str text)
{
    struct str entry = STR_NONE;
    struct error ignored;
    struct js_doc doc;
    struct buf json;

    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = str_n(text.p + 3, text.n - 3);
    buf_init_secret(&json, SIZE_MAX);
    if (!c->client->is_toml)
        buf_addstr(&json, text);
    if ((!c->client->is_toml || toml_to_json(text, c->mem, &json, &ignored)) &&
        js_parse(buf_str(&json), &js_limits_config, c->mem, &doc, NULL)) {
        const struct js_node *servers = js_get(&doc, js_root(&doc), str_of(c->client->key));
        const struct js_node *v = js_get(&doc, servers, c->own.name);
        entry = v ? arena_dup(c->mem, js_raw(&doc, v)) : STR_NONE;
    }
    buf_release(&json);
    return entry;
}

static bool leads_to_us(struct connect *c, struct str entry)
{
    struct our_addresses ours;
    struct js_doc doc;

    if (!entry.p || !js_parse(entry, &js_limits_config, c->mem, &doc, NULL))
        return false;
    ours = our_addresses_find(c->cli);
    return our_entry_is(&doc, &ours, c->mem);
}

/* The text without the entry of our name, which it has. */
static bool without_entry(struct connect *c, struct str text, struct str *ret, struct error *err)
{
    struct str path[] = {str_of(c->client->key), c->own.name};
    struct buf out;
    bool found, ok;

    buf_init_secret(&out, SIZE_MAX);
    ok = c->client->is_toml ? toml_edit_remove(text, path[0], path[1], c->mem, &out, &found, err)
                            : config_edit_remove(text, path, 2, &out, &found, err);
    if (ok)
        *ret = arena_dup(c->mem, buf_str(&out));
    buf_release(&out);
    return ok || error_wrap(err, "%s was left as it is", c->file.p);
}

static bool toml_after(struct connect *c, struct error *err)
{
    struct str block = connect_entry_toml(c->client, &c->own, c->mem),
               before = c->before.p ? c->before : STR("");
    bool ended = !before.n || before.p[before.n - 1] == '\n', found = false;

    if (!find_entry(c, before, &found, err))
        return false;
    if (memmem(before.p, before.n, block.p, block.n)) {
        c->after = before; /* nothing to change */
        return true;
    }
    if (found)
        return error_set(err, ERR_CONFLICT,
                         "%s has a server \"%.*s\" already; run holdfast disconnect %s --name "
                         "%.*s, or choose another name with --name",
                         c->file.p, STR_ARG(c->own.name), c->client->name, STR_ARG(c->own.name));
    c->after = arena_printf(c->mem, "%.*s%s%s%.*s", STR_ARG(before), ended ? "" : "\n",
                            before.n ? "\n" : "", STR_ARG(block));
    return find_entry(c, c->after, &found, err);
}

/* Computes the file as it will be. */
static bool make_after(struct connect *c, struct error *err)
{
    struct str path[] = {str_of(c->client->key), c->own.name};
    struct buf out;
    bool ok;

    if (c->client->is_toml)
        return toml_after(c, err);
    buf_init_secret(&out, SIZE_MAX);
    ok = config_edit_set(c->before.p ? c->before : STR(""), path, 2, c->entry, &out, err);
    if (ok)
        c->after = arena_dup(c->mem, buf_str(&out));
    buf_release(&out);
    return ok || error_wrap(err, "%s was left as it is", c->file.p);
}

/* Only our own entry is shown: lines beside it may hold secrets. */
static void show_change(struct connect *c, bool replaces)
{
    struct buf out;
    struct str rest;

    buf_init(&out, SIZE_MAX);
    if (c->client->is_toml) {
        buf_addstr(&out, connect_entry_toml(c->client, &c->own, c->mem));
    } else {
        struct str path[] = {str_of(c->client->key), c->own.name};
        struct error err;
        if (!config_edit_set(STR("{}\n"), path, 2, c->entry, &out, &err))
            buf_addstr(&out, c->entry);
    }
    fprintf(stderr, "%s%s\n", c->file.p, c->before.p ? "" : " (new file)");
    if (replaces)
        fprintf(stderr, "- the entry \"%.*s\" that is there\n", STR_ARG(c->own.name));
    for (rest = buf_str(&out); rest.p && rest.n;) {
        struct str line = str_split(&rest, '\n');
        fprintf(stderr, "+ %.*s\n", STR_ARG(line));
    }
    buf_release(&out);
}

static bool confirm_write(struct connect *c, bool *ret_yes, struct error *err)
{
    return confirm(c->cli, "Write this?", "to write the file", true, ret_yes, err);
}

/* Runs the client's own command; its output goes to standard error.  *ret_ran is false if the
 * program is not installed. */
static bool run_client(struct connect *c, bool *ret_ran, struct error *err)
{
    const char *argv[CONNECT_ARGS_MAX + 16] = {c->client->program};
    struct program program = {.argv = argv, .timeout_ms = OWN_COMMAND_MS, .status = -1};
    size_t n = 1;

    for (size_t i = 0; i < countof(c->client->add) && c->client->add[i]; i++)
        argv[n++] = c->client->add[i];
    argv[n++] = arena_dup(c->mem, c->own.name).p;
    for (size_t i = 0; i < countof(c->client->add_then) && c->client->add_then[i]; i++)
        argv[n++] = c->client->add_then[i];
    for (size_t i = 0; i < c->own.n_args; i++)
        argv[n++] = c->own.args[i];
    enum program_end end = program_run(&program);
    *ret_ran = end != PROGRAM_MISSING;
    if (end == PROGRAM_LATE)
        return error_set(err, ERR_TIMEOUT,
                         "%s mcp add did not end within %d s; run the command with --file to write "
                         "%s without it",
                         c->client->program, OWN_COMMAND_MS / 1000, c->file.p);
    return !*ret_ran || (end == PROGRAM_EXITED && program.status == 0) ||
           error_set(err, ERR_CONFIG,
                     "%s mcp add failed (status %d); run the command with --file to write %s "
                     "without it",
                     c->client->program, program.status, c->file.p);
}

/* By the client's own command where there is one; *ret_done: the file has our entry. */
static bool write_by_program(struct connect *c, bool *ret_done, struct error *err)
{
    struct str now = STR_NONE;
    bool ran = false, found = false;

    *ret_done = false;
    if (!c->client->program || c->own.address.url.p || cli_flag(c->cli, "--file"))
        return true;
    if (!run_client(c, &ran, err))
        return false;
    if (!ran)
        return true;
    if (!read_text(c, c->file, &now, err) || !find_entry(c, now.p ? now : STR(""), &found, err))
        return false;
    if (!found)
        return error_set(err, ERR_CONFIG,
                         "%s mcp add succeeded, but %s has no server \"%.*s\"; run the command "
                         "with --file",
                         c->client->program, c->file.p, STR_ARG(c->own.name));
    c->after = now;
    *ret_done = true;
    return true;
}

/* What disconnect restores.  Connected before and unchanged since: the file before that first time.
 * If the file has changed since, it is taken without the entry that an earlier connect left in
 * it. */
static bool file_without_us(struct connect *c, bool replaces, struct str *ret, struct error *err)
{
    struct str earlier = STR_NONE, left = STR_NONE;

    if (!read_text(c, c->after_at, &left, err) || !read_text(c, c->before_at, &earlier, err))
        return false;
    if (left.p && c->before.p && str_eq(left, c->before)) {
        *ret = earlier;
        return true;
    }
    *ret = c->before;
    if (!replaces)
        return true;
    struct str now = entry_of(c, c->before);
    bool is_ours = (left.p && now.p && str_eq(entry_of(c, left), now)) || leads_to_us(c, now);
    return !is_ours || without_entry(c, c->before, ret, err);
}

/* The record is written before the file: a crash between the two leaves a record that
 * disconnect does not need. */
static bool write_file(struct connect *c, bool replaces, struct error *err)
{
    struct str first = STR_NONE;
    bool done = false;

    if (!file_without_us(c, replaces, &first, err) || !put_record(c, c->before_at, first, err))
        return false;
    /* The clients' commands refuse a name that exists. */
    if (!replaces && !write_by_program(c, &done, err))
        return false;
    if (!done && !config_edit_write(c->file.p, c->before, c->after, err))
        return false;
    return put_record(c, c->after_at, c->after, err);
}

static int report(struct connect *c, const char *state, bool changed)
{
    struct js_writer w;
    struct buf out;
    int status;

    buf_init(&out, SIZE_MAX);
    if (cli_flag(c->cli, "--json")) {
        js_begin(&w, &out);
        js_object(&w);
        js_kv_string(&w, "client", str_of(c->client->name));
        js_kv_string(&w, "file", c->file);
        js_kv_string(&w, "name", c->own.name);
        js_kv_string(&w, "state", str_of(state));
        js_kv_bool(&w, "changed", changed);
        if (c->is_checked)
            js_kv_string(&w, "check", str_of(connect_states[c->check.state]));
        if (c->is_checked && c->check.words.p)
            js_kv_string(&w, "client_says", c->check.words);
        js_object_end(&w);
    } else {
        buf_addf(&out, "%s: %s (%s)", c->client->title, state, c->file.p);
        if (c->is_checked)
            connect_check_show(c->client, &c->check, &out);
    }
    status = cli_print(c->cli, &out);
    buf_release(&out);
    return status || c->check.state != CONNECT_FAILED ? status
                                                      : error_info(ERR_UNREACHABLE)->exit_status;
}

static int print_entry(struct connect *c)
{
    struct str path[] = {str_of(c->client->key), c->own.name};
    struct error err;
    struct buf out;
    bool ok = true;

    buf_init(&out, SIZE_MAX);
    if (c->client->is_toml)
        buf_addstr(&out, connect_entry_toml(c->client, &c->own, c->mem));
    else
        ok = config_edit_set(STR("{}\n"), path, 2, c->entry, &out, &err);
    int status = ok ? cli_print(c->cli, &out) : cli_fail(c->cli, &err);
    buf_release(&out);
    return status;
}

/* The client may write its file when it starts.  That is our doing, so the record has the file as
 * it is then, and disconnect still restores every byte. */
static bool check_with_client(struct connect *c, struct error *err)
{
    struct str now = STR_NONE;
    bool found = false;

    if (cli_flag(c->cli, "--no-check"))
        return true;
    c->check = connect_check(c->client, c->own.name, c->mem);
    c->is_checked = true;
    if (c->check.state == CONNECT_UNCHECKED)
        return true;
    if (!read_text(c, c->file, &now, err) || !now.p || str_eq(now, c->after) ||
        !find_entry(c, now, &found, err) || !found)
        return true; /* whatever it is, disconnect looks at it again */
    return put_record(c, c->after_at, now, err);
}

static void say_key(const struct connect *c)
{
    if (c->own.address.has_key)
        fprintf(stderr,
                "holdfast: the file does not hold the key: %s reads it from HOLDFAST_KEY, so start "
                "it where that is set\n",
                c->client->title);
    else if (c->own.address.needs_key)
        fprintf(stderr,
                "holdfast: this Holdfast requires a key, and the entry names none: make one with "
                "`holdfast key create`, set HOLDFAST_KEY to it, and run this command again\n");
}

static void say_undo(const struct connect *c)
{
    bool is_named = !str_eq(c->own.name, STR("holdfast"));

    fprintf(stderr, "holdfast: undo this with holdfast disconnect %s%s%.*s%s%s\n", c->client->name,
            is_named ? " --name " : "", is_named ? (int)c->own.name.n : 0, c->own.name.p,
            c->before.p ? "; the file as it was is in " : "", c->before.p ? c->before_at.p : "");
}

static int connect_client(struct connect *c, struct error *err)
{
    bool replaces = false, yes = false;

    if (cli_flag(c->cli, "--server") && cli_flag(c->cli, "--profile"))
        return cli_usage(c->cli, "--server and --profile exclude each other; use one of them");
    if (!open_client(c, err) || !connect_entry_command(c->cli, &c->own, err) ||
        ((cli_flag(c->cli, "--http") || cli_flag(c->cli, "--url")) &&
         !connect_address(c->cli, c->client, &c->own.address, err)))
        return cli_refuse(c->cli, err);
    c->entry = connect_entry_json(c->client, &c->own, c->mem);
    if (cli_flag(c->cli, "--print"))
        return print_entry(c);
    if (!make_after(c, err) || !find_entry(c, c->before.p ? c->before : STR(""), &replaces, err))
        return cli_refuse(c->cli, err);
    if (c->before.p && str_eq(c->before, c->after))
        return report(c, "connected", false);
    if (!cli_flag(c->cli, "--json"))
        show_change(c, replaces);
    if (cli_flag(c->cli, "--dry-run"))
        return report(c, "not changed", false);
    if (!confirm_write(c, &yes, err))
        return cli_refuse(c->cli, err);
    if (!yes)
        return report(c, "not changed", false);
    if (!write_file(c, replaces, err))
        return cli_refuse(c->cli, err);
    if (!cli_flag(c->cli, "--json"))
        say_key(c);
    if (!cli_flag(c->cli, "--json"))
        say_undo(c);
    if (!check_with_client(c, err))
        return cli_refuse(c->cli, err);
    return report(c, "connected", true);
}

int cmd_connect(struct cli *cli)
{
    struct connect c = {.cli = cli, .mem = cli->mem};
    struct error err;
    int status = take_client(&c);

    return c.client ? connect_client(&c, &err) : status;
}

/* disconnect */

/* Takes out our entry only.  Without a record the entry has to lead to Holdfast: a server of the
 * user's own may have the name. */
static bool make_without(struct connect *c, bool has_record, bool *ret_found, struct error *err)
{
    struct str text = c->before.p ? c->before : STR("");

    if (!find_entry(c, text, ret_found, err))
        return false;
    if (!*ret_found)
        return true;
    if (!has_record && !leads_to_us(c, entry_of(c, text)))
        return error_set(
            err, ERR_CONFLICT,
            "the entry \"%.*s\" of %s does not lead to Holdfast, so it was left; if it "
            "is not needed, remove it by hand",
            STR_ARG(c->own.name), c->file.p);
    return without_entry(c, text, &c->after, err);
}

static bool disconnect_client(struct connect *c, bool *ret_changed, bool *ret_yes,
                              struct error *err)
{
    struct str first = STR_NONE, left = STR_NONE;

    if (!open_client(c, err) || !read_text(c, c->before_at, &first, err) ||
        !read_text(c, c->after_at, &left, err))
        return false;
    *ret_changed = *ret_yes = true;
    if (left.p && c->before.p && str_eq(left, c->before))
        c->after = first; /* byte by byte; absent: there was no file */
    else if (!make_without(c, left.p != NULL, ret_changed, err))
        return false;
    if (!*ret_changed || cli_flag(c->cli, "--dry-run"))
        return true;
    if (!cli_flag(c->cli, "--json"))
        fprintf(stderr, "%s\n- the entry \"%.*s\"\n", c->file.p, STR_ARG(c->own.name));
    if (!confirm_write(c, ret_yes, err))
        return false;
    if (!*ret_yes)
        return true;
    return config_edit_write(c->file.p, c->before, c->after, err) &&
           put_record(c, c->after_at, STR_NONE, err) && put_record(c, c->before_at, STR_NONE, err);
}

int cmd_disconnect(struct cli *cli)
{
    struct connect c = {.cli = cli, .mem = cli->mem};
    bool changed = false, yes = false;
    struct error err;
    int status = take_client(&c);

    if (!c.client)
        return status;
    if (!disconnect_client(&c, &changed, &yes, &err))
        return cli_refuse(cli, &err);
    if (cli_flag(cli, "--dry-run"))
        return report(&c, changed ? "would be disconnected" : "not connected", false);
    return report(&c,
                  !changed ? "not connected"
                  : yes    ? "disconnected"
                           : "not changed",
                  changed && yes);
}
