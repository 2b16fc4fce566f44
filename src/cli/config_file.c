/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config_file.h"

#include "base/clock.h"
#include "cli/control.h"
#include "cli/daemon.h"
#include "cli/source.h"
#include "config/config.h"
#include "config/datadir.h"
#include "config/edit.h"
#include "json/read.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#define ANSWER_MS 5000 /* a Holdfast that starts is ready within this time */
#define PAUSE_MS 20
#define ATTEMPTS 50 /* of a change; each fails only because another program changed the file */

static struct config_source source_of(const struct cli *cli)
{
    return (struct config_source){.file = str_of(cli_flag(cli, "--config"))};
}

bool config_file_parse(const struct config_file *f, struct config **ret, struct error *err)
{
    return config_parse(f->text, f->path, &(struct config_source){.is_for_edit = true}, ret, err);
}

/* Whether `holdfast up` could use the text, as far as its own environment does not matter. */
static bool is_usable(struct str text, struct str path, struct error *err)
{
    struct config_file f = {path, text};
    struct config *parsed;

    if (!config_file_parse(&f, &parsed, err))
        return false;
    config_unref(parsed);
    return true;
}

/* Without --data a command that changes the file of the system service means the data of that service,
 * not those of the administrator who runs it. */
static void use_service_data(struct cli *cli, struct str path)
{
    struct str data = config_service_data_dir(path);

    if (!data.p || cli_flag(cli, "--data") || cli->n_given == CLI_MAX_FLAGS)
        return;
    cli->given[cli->n_given].name = "--data";
    cli->given[cli->n_given++].value = arena_dup(cli->mem, data).p;
}

bool config_file_open(struct cli *cli, struct config_file *ret, struct error *err)
{
    struct config_source source = source_of(cli);

    if (!config_find_file(&source, cli->mem, &ret->path, &ret->text, err))
        return false;
    use_service_data(cli, ret->path);
    return !ret->text.p || is_usable(ret->text, ret->path, err) ||
           error_wrap(err, "the configuration has a mistake; correct it first");
}

/* The file may begin with a byte order mark, as some editors write it. */
static bool parse_json(struct cli *cli, struct str text, struct js_doc *ret)
{
    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = str_n(text.p + 3, text.n - 3);
    return text.p && js_parse(text, &js_limits_config, cli->mem, ret, NULL);
}

struct str config_file_servers(struct cli *cli, const struct config_file *f)
{
    struct js_doc doc;

    if (parse_json(cli, f->text, &doc) && js_get(&doc, js_root(&doc), STR("servers")) &&
        !js_get(&doc, js_root(&doc), STR("mcpServers")))
        return STR("servers");
    return STR("mcpServers");
}

/* The bytes of the member; absent: there is no such member. */
static struct str member_of(struct cli *cli, struct str text, const struct str *path, size_t n)
{
    struct js_doc doc;

    if (!parse_json(cli, text, &doc))
        return STR_NONE;
    const struct js_node *v = js_root(&doc);
    for (size_t i = 0; v && i < n; i++)
        v = js_get(&doc, v, path[i]);
    return v ? js_raw(&doc, v) : STR_NONE;
}

struct str config_file_member(struct cli *cli, const struct config_file *f, const struct str *path,
                              size_t n)
{
    return member_of(cli, f->text, path, n);
}

bool config_file_has(struct cli *cli, const struct config_file *f, const struct str *path, size_t n)
{
    return member_of(cli, f->text, path, n).p != NULL;
}

static bool change_once(struct cli *cli, struct config_file *f, const struct str *path, size_t n,
                        struct str value, struct error *err)
{
    struct str before = f->text.p ? f->text : STR("{}\n");
    struct buf out;
    bool found;

    buf_init_secret(&out, SIZE_MAX / 4);
    bool ok = value.p ? config_edit_set(before, path, n, value, &out, err)
                      : config_edit_remove(before, path, n, &out, &found, err);
    if (ok && !is_usable(buf_str(&out), f->path, err))
        ok = error_wrap(err, "nothing was written");
    if (ok)
        ok = config_edit_write(f->path.p, f->text, buf_str(&out), err);
    if (ok)
        f->text = arena_dup(cli->mem, buf_str(&out));
    buf_release(&out);
    return ok;
}

/* After a conflict.  Fails if the other program changed the same member. */
static bool read_again(struct cli *cli, struct config_file *f, const struct str *path, size_t n,
                       struct error *err)
{
    struct str before = member_of(cli, f->text, path, n), now;
    struct buf text;
    bool exists = false;

    buf_init_secret(&text, SIZE_MAX / 4);
    bool ok = config_edit_read(f->path.p, &text, &exists, err);
    if (ok)
        f->text = exists ? arena_dup(cli->mem, buf_str(&text)) : STR_NONE;
    buf_release(&text);
    if (!ok)
        return false;
    now = member_of(cli, f->text, path, n);
    return ((now.p != NULL) == (before.p != NULL) && str_eq(now, before)) ||
           error_set(err, ERR_CONFLICT,
                     "another program changed \"%.*s\" in %.*s in the meantime; run the command "
                     "again",
                     STR_ARG(str_cut(path[n - 1], 64)), STR_ARG(f->path));
}

bool config_file_change(struct cli *cli, struct config_file *f, const struct str *path, size_t n,
                        struct str value, struct error *err)
{
    for (int attempt = 1; !change_once(cli, f, path, n, value, err); attempt++)
        if (err->code != ERR_CONFLICT || attempt == ATTEMPTS || !read_again(cli, f, path, n, err))
            return false;
    return true;
}

/* *ret: the file that the running Holdfast reads; absent: it has the built-in defaults.  false: it
 * does not answer. */
static bool file_of_daemon(struct cli *cli, struct str data_dir, struct str *ret)
{
    struct control *control;
    struct js_doc doc;
    struct error err;
    struct str json;

    if (!control_open_socket(data_dir, &control, &err))
        return false;
    control_set_deadline(control, ANSWER_MS);
    bool ok = control_get(control, STR("/api/v1/system"), cli->mem, &json, &err) &&
              source_parse(json, cli->mem, &doc, &err);
    control_close(control);
    if (ok)
        *ret = js_text(&doc, js_get(&doc, js_root(&doc), STR("config")), cli->mem);
    return ok;
}

/* A Holdfast that is starting holds the lock before it answers.  A command that works without a
 * Holdfast holds the lock and never answers.  false: no answer; *ret_owner is the process that has
 * the lock, or 0 if no process has it. */
static bool await_daemon(struct cli *cli, struct str data_dir, struct str *ret_file, int *ret_owner)
{
    int64_t until = clock_mono_ms() + ANSWER_MS;

    while ((*ret_owner = datadir_owner(data_dir)) != 0) {
        if (file_of_daemon(cli, data_dir, ret_file))
            return true;
        if (clock_mono_ms() >= until)
            return false;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return false;
}

static struct str advice_without_answer(struct cli *cli, struct str data_dir, int owner)
{
    struct str who =
        owner > 0 ? arena_printf(cli->mem, "the process %d", owner) : STR("another process");

    return arena_printf(cli->mem,
                        "%.*s uses %.*s and does not answer, so it was not asked to read the file "
                        "again; if `holdfast status` says later that a Holdfast runs, restart it "
                        "or send it SIGHUP",
                        STR_ARG(who), STR_ARG(data_dir));
}

struct str config_file_reload(struct cli *cli, const struct config_file *f)
{
    struct str data_dir, theirs = STR_NONE;
    char *own = realpath(f->path.p, NULL);
    struct error err;
    int owner, pid;

    struct str mine = arena_dup(cli->mem, own ? str_of(own) : f->path);
    free(own);
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &data_dir, &err))
        return STR_NONE;
    if (!await_daemon(cli, data_dir, &theirs, &owner))
        return owner ? advice_without_answer(cli, data_dir, owner) : STR_NONE;
    if (theirs.p && !str_eq(theirs, mine))
        return arena_printf(cli->mem,
                            "the running Holdfast (pid %d) reads %.*s, so it does not see this "
                            "change; name that file with --config",
                            owner, STR_ARG(theirs));
    if (!daemon_signal(data_dir, SIGHUP, &pid, &err))
        return arena_printf(cli->mem,
                            "the running Holdfast was not asked to read the file again: %s; make "
                            "it with `kill -HUP %d`",
                            err.text, owner);
    if (pid == 0)
        return STR_NONE;
    return arena_printf(cli->mem, "the running Holdfast (pid %d) reads the file again", pid);
}
