/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the daemon or the store for a command.  Only the owner of the data directory writes a
 * SQLite file; PostgreSQL has locks of its own. */
#include "cli/source.h"

#include "config/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

static void say_place(const struct cli *cli, const struct place *p)
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
    say_place(cli, ret);
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

static bool open_store(const struct place *p, bool writes, struct source *s, struct error *err)
{
    if (!writes && !place_has_database(p, err))
        return false;
    if (writes && !p->database.is_postgres && !datadir_own(p->data_dir, &s->owned, err))
        return false;
    return database_open(&p->database, (struct store_config){.read_only = !writes}, &s->store, err);
}

bool source_open(const struct cli *cli, bool writes, struct source *ret, struct error *err)
{
    struct place place;

    if (!place_find(cli, &place, err))
        return false;
    return place.owner == 0 ? open_store(&place, writes, ret, err)
                            : control_open_socket(place.data_dir, &ret->control, err);
}

void source_close(struct source *s)
{
    if (s->store)
        store_close(s->store);
    datadir_release(s->owned);
    control_close(s->control);
}
