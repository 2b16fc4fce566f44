/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle: what a person who helps needs to see.  The archive is made by the tar of the machine,
 * from a folder in TMPDIR that only its owner can read and that is removed afterwards.  Every text
 * passes the redaction of the audit; the configuration is the one that `config show` prints. */
#include "cli/doctor.h"

#include "audit/redact.h"
#include "cli/program.h"
#include "crypto/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PACK_MS 60000

static const char *const names[] = {"doctor.json", "config.json", "version.txt", "servers.json",
                                    "logs.txt"};

static bool put(const struct doctor *d, const char *dir, const char *name, struct str text,
                struct error *err)
{
    struct own_secrets own = {.known = d->config ? known_of_config(d->config, NULL) : NULL};
    struct redactor *r = redactor_new();
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    bool ok = key_file_put(path, redact_text(r, &own, text), false);
    redactor_free(r);
    own_secrets_unref(&own);
    return ok || error_set(err, ERR_INTERNAL, "%s cannot be written: %s; free space in TMPDIR",
                           path, strerror(errno));
}

static bool put_config(const struct doctor *d, const char *dir, struct error *err)
{
    struct buf text;

    buf_init(&text, 64u * 1024 * 1024);
    if (d->config)
        config_write(d->config, &text);
    else
        buf_addf(&text, "%s\n", d->config_err.text);
    bool ok = put(d, dir, "config.json", buf_str(&text), err);
    buf_release(&text);
    return ok;
}

static struct str version_text(struct arena *mem)
{
    struct utsname u;

    if (uname(&u) != 0)
        memset(&u, 0, sizeof(u));
    return arena_printf(mem, "holdfast %s\n%s %s %s\n", HOLDFAST_VERSION, u.sysname, u.release,
                        u.machine);
}

/* The newest stderr lines of each configured server, from the daemon. */
static struct str log_text(const struct doctor *d)
{
    struct str text = STR("");
    struct error ignored;
    struct str json;

    for (size_t i = 0; d->config && d->source.control && i < d->config->n_servers; i++) {
        struct str path = arena_printf(d->mem, "/api/v1/servers/%.*s/logs?limit=200",
                                       STR_ARG(source_encoded(d->config->servers[i].name, d->mem)));
        if (control_get(d->source.control, path, d->mem, &json, &ignored))
            text = arena_printf(d->mem, "%.*s%.*s\n", STR_ARG(text), STR_ARG(json));
    }
    return text;
}

static struct str servers_text(const struct doctor *d)
{
    struct error ignored;
    struct str json = STR("");

    if (d->source.control &&
        !control_get(d->source.control, STR("/api/v1/servers?limit=100"), d->mem, &json, &ignored))
        json = STR("");
    return json;
}

/* Creates the file for the archive: it never overwrites one, and only its owner can read it. */
static bool create(const char *file, int *ret, struct error *err)
{
    if (file[0] == '-' || !*file)
        return error_set(err, ERR_USAGE, "--bundle takes a file name, not \"%s\"", file);
    *ret = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return *ret >= 0 ||
           (errno == EEXIST
                ? error_set(err, ERR_CONFLICT, "%s is there already; name a new file", file)
                : error_sys(err, ERR_CONFIG, errno,
                            "%s cannot be written; name a file in a writable folder", file));
}

static bool pack(const char *dir, const char *file, struct error *err)
{
    const char *argv[6 + countof(names)] = {"tar", "-czf", "-", "-C", dir};
    struct program tar = {.argv = argv, .timeout_ms = PACK_MS};

    memcpy(argv + 5, names, sizeof(names));
    if (!create(file, &tar.out_fd, err))
        return false;
    enum program_end end = program_run(&tar);
    bool ok = close(tar.out_fd) == 0 && end == PROGRAM_EXITED && tar.status == 0;
    if (!ok)
        unlink(file);
    if (!ok && end == PROGRAM_MISSING)
        return error_set(err, ERR_CONFIG, "tar cannot be started; install the package tar");
    return ok ||
           error_set(err, ERR_CONFIG, "tar could not write %s; see whether the disk is full", file);
}

static void clear(const char *dir)
{
    char path[300];

    for (size_t i = 0; i < countof(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

bool doctor_bundle(struct doctor *d, struct str findings_json, const char *file, struct error *err)
{
    const char *top = getenv("TMPDIR");
    char dir[256];

    snprintf(dir, sizeof(dir), "%.200s/holdfast-doctor-XXXXXX", top && *top ? top : "/tmp");
    if (!mkdtemp(dir))
        return error_set(err, ERR_CONFIG, "%s cannot be made: %s; set TMPDIR to another folder",
                         dir, strerror(errno));
    bool ok = put(d, dir, "doctor.json", findings_json, err) && put_config(d, dir, err) &&
              put(d, dir, "version.txt", version_text(d->mem), err) &&
              put(d, dir, "servers.json", servers_text(d), err) &&
              put(d, dir, "logs.txt", log_text(d), err) && pack(dir, file, err);
    clear(dir);
    return ok;
}
