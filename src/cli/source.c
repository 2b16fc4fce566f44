/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what a command reads or changes.  A SQLite file is written only by whoever owns its data
 * directory; PostgreSQL has locks of its own. */
#include "cli/source.h"

#include "config/config.h"
#include "store/database.h"

#include <stdlib.h>
#include <unistd.h>

static bool open_store(struct str data_dir, bool writes, struct arena *mem, struct source *s,
                       struct error *err)
{
    struct database db;

    if (!database_choose(str_of(getenv("DATABASE_URL")), data_dir, mem, &db, err))
        return false;
    if (!writes && !db.is_postgres && access(db.path.p, F_OK) != 0)
        return true; /* there is none, and so nothing in it */
    if (writes && !db.is_postgres && !datadir_own(data_dir, &s->owned, err))
        return false;
    return database_open(&db, (struct store_config){.read_only = !writes}, &s->store, err);
}

bool source_open(const struct cli *cli, bool writes, struct source *ret, struct error *err)
{
    struct str data_dir;

    if (!config_data_dir(str_of(cli_flag(cli, "--data")), cli->mem, &data_dir, err))
        return false;
    return datadir_owner(data_dir) == 0 ? open_store(data_dir, writes, cli->mem, ret, err)
                                        : control_open_socket(data_dir, &ret->control, err);
}

void source_close(struct source *s)
{
    if (s->store)
        store_close(s->store);
    datadir_release(s->owned);
    control_close(s->control);
}
