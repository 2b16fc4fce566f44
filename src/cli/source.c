/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the side that answers a command. */
#include "cli/source.h"

#include "gateway_local.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLE_MAX (1u << 20) /* bytes of /proc/net/unix; the rest is not read */

/* Without --data, the user may mean a service that has another data directory. */
static void warn_of_another(const struct place *p)
{
    struct str other;
    struct buf table;
    int fd = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;

    buf_init(&table, TABLE_MAX + 65536);
    while (fd >= 0 && n > 0 && table.n < TABLE_MAX) {
        n = read(fd, buf_room(&table, 65536), 65536);
        if (n > 0)
            buf_grown(&table, (size_t)n);
    }
    if (fd >= 0)
        close(fd);
    other = datadir_of_another(buf_str(&table), p->data_dir);
    if (other.p)
        fprintf(stderr,
                "holdfast: warning: no Holdfast runs there, but one runs on %.*s; for that one say "
                "--data %.*s\n",
                STR_ARG(other), STR_ARG(other));
    buf_release(&table);
}

static void print_place(const struct cli *cli, const struct place *p)
{
    struct str runs = STR(" (no Holdfast runs there)");

    if (cli_flag(cli, "--json") || cli_flag(cli, "--quiet"))
        return;
    if (p->owner)
        runs = arena_printf(cli->mem, " (Holdfast runs there, pid %d)", p->owner);
    else if (p->database.is_postgres)
        runs = arena_printf(cli->mem, ", database %.*s", STR_ARG(p->database.shown));
    else if (!p->exists)
        runs = STR(" (there is none yet)");
    fprintf(stderr, "holdfast: data directory %.*s%.*s\n", STR_ARG(p->data_dir), STR_ARG(runs));
    if (!p->owner && !p->database.is_postgres && !cli_flag(cli, "--data"))
        warn_of_another(p);
}

bool place_find(const struct cli *cli, struct place *ret, struct error *err)
{
    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &ret->data_dir, err) ||
        !datadir_check_readable(ret->data_dir, &ret->exists, err) ||
        !database_choose(str_of(getenv("DATABASE_URL")), ret->data_dir, cli->mem, &ret->database,
                         err))
        return false;
    ret->owner = datadir_owner(ret->data_dir);
    print_place(cli, ret);
    return true;
}

bool place_has_database(const struct place *p, struct error *err)
{
    return p->database.is_postgres || access(p->database.path.p, F_OK) == 0 ||
           error_set(err, ERR_NOT_FOUND,
                     "there is no database in %.*s; name the right directory with --data, or start "
                     "`holdfast up`",
                     STR_ARG(p->data_dir));
}

/* The operations run with the configuration that a daemon would have.  A command about something
 * else works with a broken one too. */
static bool load_config(const struct cli *cli, struct source *s, struct error *err)
{
    const char *file = cli_flag(cli, "--config");
    struct config_source source = {.file = str_of(file), .must_exist = file != NULL};

    s->config_err.code = ERR_NONE;
    return config_load(&source, &s->config, &s->config_err) ||
           config_parse(STR("{}"), STR("{}"), &(struct config_source){0}, &s->config, err);
}

/* Files that root makes there could not be read by the owner's Holdfast. */
static bool check_not_root(const struct place *p, struct error *err)
{
    struct stat st;

    return geteuid() != 0 || stat(p->data_dir.p, &st) != 0 || st.st_uid == 0 ||
           error_set(
               err, ERR_CONFIG,
               "%.*s belongs to another user (uid %u), and no Holdfast runs there; start that "
               "Holdfast first, or run this as its user",
               STR_ARG(p->data_dir), (unsigned)st.st_uid);
}

static bool open_local(const struct cli *cli, enum source_use use, struct source *s,
                       struct error *err)
{
    struct error none;
    struct gateway_local_options options = {.data_dir = s->place.data_dir,
                                            .database = s->place.database,
                                            .writes = use == SOURCE_CHANGES,
                                            .has_database = place_has_database(&s->place, &none)};

    if (use == SOURCE_READS && !options.has_database) {
        *err = none;
        return false;
    }
    if (!load_config(cli, s, err))
        return false;
    options.config = s->config;
    if (use == SOURCE_CHANGES && !check_not_root(&s->place, err))
        return false;
    if (!gateway_local_open(&options, &s->local, err))
        return false;
    s->control = control_open_local(s->local);
    return true;
}

bool source_open_url(const struct cli *cli, struct control **ret, struct error *err)
{
    const char *key = getenv("HOLDFAST_KEY"), *url = cli_flag(cli, "--url");

    if (key && (!*key || strpbrk(key, " \r\n\t")))
        return error_set(
            err, ERR_USAGE,
            "HOLDFAST_KEY does not contain a key; make one with `holdfast key create`");
    if (!control_open_url(str_of(url), cli_flag(cli, "--ca"), ret, err))
        return false;
    control_set_key(*ret, key);
    if (key && control_is_clear(*ret) && !cli_flag(cli, "--quiet"))
        fprintf(stderr, "holdfast: warning: HOLDFAST_KEY crosses the network in clear; use "
                        "https:// where you can\n");
    return true;
}

bool source_open(const struct cli *cli, enum source_use use, struct source *ret, struct error *err)
{
    if (cli_flag(cli, "--url"))
        return source_open_url(cli, &ret->control, err);
    if (cli_flag(cli, "--ca"))
        return error_set(err, ERR_USAGE, "--ca belongs to --url");
    if (!place_find(cli, &ret->place, err))
        return false;
    return ret->place.owner == 0 ? open_local(cli, use, ret, err)
                                 : control_open_socket(ret->place.data_dir, &ret->control, err);
}

void source_close(struct source *s)
{
    control_close(s->control);
    gateway_local_close(s->local);
    config_unref(s->config);
}

struct str source_encoded(struct str text, struct arena *mem)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = arena_alloc(mem, text.n * 3 + 1), *at = out;

    for (size_t i = 0; i < text.n; i++) {
        unsigned char b = (unsigned char)text.p[i];
        if (isalnum(b) || (b && strchr("-._~", b))) {
            *at++ = (char)b;
            continue;
        }
        *at++ = '%';
        *at++ = hex[b >> 4];
        *at++ = hex[b & 15];
    }
    return str_n(out, (size_t)(at - out));
}

bool source_parse(struct str json, struct arena *mem, struct js_doc *ret, struct error *err)
{
    return js_parse(json, &js_limits_upstream, mem, ret, NULL) ||
           error_set(err, ERR_INTERNAL,
                     "the answer of Holdfast is not JSON; is it another version?");
}

struct str source_text(const struct js_doc *doc, const struct js_node *object, const char *name,
                       struct arena *mem)
{
    struct str text = js_text(doc, js_get(doc, object, str_of(name)), mem);
    return text.p ? text : STR("");
}

struct str source_state_word(struct str state)
{
    return str_eq(state, STR("unknown")) ? STR("starting") : state;
}
