/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the store, its schema, the key files and Redis. */
#include "cli/doctor.h"

#include "base/clock.h"
#include "crypto/key_file.h"
#include "crypto/master.h"
#include "store/redis_conn.h"
#include "store/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MIB (1024ll * 1024)
#define SLOW_MS 250
#define WAL_LARGE (256 * MIB)
#define CLOCK_SLACK_MS 5000

/* The store. */

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

static void say_size(struct doctor *d, const struct database *db)
{
    int64_t size = size_of(db->path.p);
    int64_t wal = size_of(arena_printf(d->mem, "%.*s-wal", STR_ARG(db->path)).p);

    if (size < 0)
        return;
    doctor_say(d, DOCTOR_OK, NULL, "%.*s has %lld MiB", STR_ARG(db->shown),
               (long long)((size + MIB - 1) / MIB));
    if (wal > WAL_LARGE)
        doctor_say(d, DOCTOR_WARNING,
                   "a reader keeps it from being written back: end long-running `sqlite3` or "
                   "backup programs, or restart Holdfast",
                   "the WAL of the database has %lld MiB", (long long)(wal / MIB));
}

void doctor_store(struct doctor *d)
{
    int64_t begun = clock_mono_ms();
    struct error err;
    struct str json;

    if (!d->source.control) {
        doctor_say(d, DOCTOR_FAILURE, "see `holdfast db status`, and the log of Holdfast", "%s",
                   d->source_err.text);
        return;
    }
    if (d->source.local && !place_has_database(&d->source.place, &err)) {
        doctor_say(d, DOCTOR_OK, NULL, "there is no database yet; `holdfast up` makes it");
        return;
    }
    if (!control_get(d->source.control, STR("/api/v1/audit/events?limit=1&order=newest"), d->mem,
                     &json, &err)) {
        doctor_say(d, DOCTOR_FAILURE, "see `holdfast db status`, and the log of Holdfast",
                   "the store could not be read: %s", err.text);
        return;
    }
    int64_t took = clock_mono_ms() - begun;
    doctor_say(d, took > SLOW_MS ? DOCTOR_WARNING : DOCTOR_OK,
               took > SLOW_MS ? "check the load of the disk or of the database server" : NULL,
               "a read of the store took %lld ms", (long long)took);
    if (d->source.place.database.path.p && !d->source.place.database.is_postgres)
        say_size(d, &d->source.place.database);
}

/* The events of a store are in the order of their times, so the newest one must not be ahead of the
 * clock. */
void doctor_clock(struct doctor *d)
{
    struct error err;
    struct js_doc doc;
    struct str json;
    int64_t at = 0;

    if (!d->source.control || (d->source.local && !place_has_database(&d->source.place, &err)))
        return;
    if (!control_get(d->source.control, STR("/api/v1/audit/events?limit=1&order=newest"), d->mem,
                     &json, &err) ||
        !source_parse(json, d->mem, &doc, &err))
        return; /* doctor_store() says so */
    const struct js_node *events = js_get(&doc, js_root(&doc), STR("events"));
    const struct js_node *newest = js_type_is(events, JS_ARRAY) ? js_first(&doc, events) : NULL;
    if (!newest || !js_to_i64(&doc, js_get(&doc, newest, STR("at_ms")), &at)) {
        doctor_say(d, DOCTOR_OK, NULL, "nothing is on record yet to compare the clock with");
        return;
    }
    int64_t ahead = at - clock_wall_ms();
    if (ahead > CLOCK_SLACK_MS)
        doctor_say(d, DOCTOR_FAILURE, "set the clock: check `timedatectl` and the time server",
                   "the newest event on record is %lld s ahead of the clock of this machine",
                   (long long)(ahead / 1000));
    else
        doctor_say(d, DOCTOR_OK, NULL, "the clock is not behind the newest event on record");
}

void doctor_schema(struct doctor *d)
{
    const struct database *db = &d->source.place.database;
    struct schema *schema = NULL;
    struct schema_status status;
    struct error err;

    if (!db->path.p)
        return;
    if (!schema_open(db, true, NULL, &schema, &err)) {
        if (err.code == ERR_NOT_FOUND)
            return; /* doctor_store() says so */
        doctor_say(d, DOCTOR_FAILURE, "check DATABASE_URL, and that the server runs", "%s",
                   err.text);
        return;
    }
    if (!schema_status(schema, d->mem, &status, &err) || !schema_status_check(&status, &err))
        doctor_say(d, DOCTOR_FAILURE, "run the version of Holdfast that made the schema", "%s",
                   err.text);
    else if (status.number < (int)status.known.n)
        doctor_say(d, DOCTOR_WARNING, "run `holdfast db migrate`, or start `holdfast up`",
                   "the schema is %d, this program has %zu", status.number, status.known.n);
    else
        doctor_say(d, DOCTOR_OK, NULL, "the schema is up to date (%d)", status.number);
    schema_close(schema);
}

/* Keys.  A backup is made outside of Holdfast, so the operator records it: the marker has the time
 * of the backup, and a key file that is younger than the marker is in no backup. */

#define MARKER "keys-backed-up"

bool doctor_keys_backed_up(struct str data_dir, struct arena *mem, struct error *err)
{
    struct str path = datadir_path(data_dir, MARKER, mem);
    char text[CLOCK_TEXT];

    clock_format(clock_wall_ms(), text);
    return key_file_put(path.p, arena_printf(mem, "%s\n", text), false) ||
           error_set(err, ERR_CONFIG, "%.*s cannot be written: %s; check the directory with --data",
                     STR_ARG(path), strerror(errno));
}

static void look_at_key(struct doctor *d, const char *name, struct str path, time_t backed_up,
                        unsigned *n_present, unsigned *n_unsaved)
{
    struct stat st;

    if (stat(path.p, &st) != 0) {
        if (errno != ENOENT)
            doctor_say(d, DOCTOR_FAILURE, "make it readable for the user that runs Holdfast",
                       "%s %.*s cannot be read: %s", name, STR_ARG(path), strerror(errno));
        return;
    }
    ++*n_present;
    *n_unsaved += st.st_mtime > backed_up;
    if ((st.st_mode & 077) && !key_is_handed_over(path.p))
        doctor_say(d, DOCTOR_FAILURE,
                   arena_printf(d->mem, "chmod 600 %.*s, and rotate it if others could read it",
                                STR_ARG(path))
                       .p,
                   "%s %.*s has mode %03o: other users have rights to it", name, STR_ARG(path),
                   st.st_mode & 0777u);
    else
        doctor_say(d, DOCTOR_OK, NULL, "%s %.*s is for its owner alone", name, STR_ARG(path));
}

void doctor_keys(struct doctor *d)
{
    struct str dir = d->source.place.data_dir;
    unsigned present = 0, unsaved = 0;
    bool is_ours;
    struct stat marker;

    if (!dir.p || !d->source.place.exists)
        return;
    time_t backed_up =
        stat(datadir_path(dir, MARKER, d->mem).p, &marker) == 0 ? marker.st_mtime : 0;
    look_at_key(d, "the master key", master_path(dir, d->mem, &is_ours), backed_up, &present,
                &unsaved);
    look_at_key(d, "the audit key", datadir_audit_key(dir, d->mem, &is_ours), backed_up, &present,
                &unsaved);
    look_at_key(d, "the token key", datadir_token_key(dir, d->mem, &is_ours), backed_up, &present,
                &unsaved);
    if (unsaved)
        doctor_say(d, DOCTOR_WARNING,
                   "copy them to a safe place (a database backup does not have them), then run "
                   "`holdfast doctor --keys-backed-up`",
                   backed_up ? "%u of the key files changed since the recorded backup"
                             : "no backup of the %u key files is recorded",
                   unsaved);
    else if (present)
        doctor_say(d, DOCTOR_OK, NULL, "the key files are as recorded at their last backup");
}

/* Redis. */

void doctor_redis(struct doctor *d)
{
    const char *fix = "check REDIS_URL and the server; until then sessions are read from the "
                      "database, and other nodes learn of revocations later";
    struct redis_target target = {0};
    struct redis *redis = NULL;
    struct error err;
    int64_t begun = clock_mono_ms();

    if (!redis_choose(str_of(getenv("REDIS_URL")), d->mem, &target, &err)) {
        doctor_say(d, DOCTOR_FAILURE, "correct REDIS_URL", "%s", err.text);
        return;
    }
    if (!target.shown.p)
        return;
    if (!redis_new(&(struct redis_config){.target = &target}, &redis, &err) ||
        !redis_ready(redis, &err))
        doctor_say(d, DOCTOR_WARNING, fix, "%.*s: %s", STR_ARG(target.shown), err.text);
    else
        doctor_say(d, DOCTOR_OK, NULL, "%.*s answers after %lld ms", STR_ARG(target.shown),
                   (long long)(clock_mono_ms() - begun));
    redis_free(redis);
}
