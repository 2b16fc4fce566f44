/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes go to their end as they come, so a long session needs no memory.  A file gets its name
 * when it is whole. */
#include "cli/sessions_export.h"

#include "base/clock.h"
#include "cli/sessions_list.h"
#include "cli/source.h"
#include "cli/when.h"
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SESSIONS_MAX 1000000
#define IDLE_MS 120000

struct exporting {
    const struct sessions_export *e;
    const struct export_format *format;
    FILE *out;
    const char *file; /* NULL: standard output */
    char *part;       /* the file under its first name */
    int64_t since_ms, until_ms;
    struct buf ids;  /* of the sessions, UUIDs of equal length, newest first */
    bool skips_head; /* of a table that goes on */
    uint64_t bytes;  /* of this session */
};

/* Where it goes. */

static const struct export_format *format_of_file(const char *file)
{
    struct str name = str_of(file);

    for (size_t i = 0; name.p && export_formats[i]; i++) {
        struct str end = str_of(export_formats[i]->name);
        if (name.n > end.n + 1 && str_ends(name, end) && name.p[name.n - end.n - 1] == '.')
            return export_formats[i];
    }
    return export_formats[0];
}

static bool choose_format(struct exporting *x, struct error *err)
{
    struct str name = str_of(cli_flag(x->e->cli, "--format"));

    x->format = name.p ? export_format_named(name) : format_of_file(x->file);
    return x->format ||
           error_set(err, ERR_USAGE, "there is no format \"%.*s\"; --format takes jsonl, md or csv",
                     (int)(name.n < 100 ? name.n : 100), name.p);
}

static bool open_out(struct exporting *x, struct error *err)
{
    x->out = stdout;
    if (!x->file)
        return true;
    struct str part = arena_printf(x->e->cli->mem, "%s.part", x->file);
    x->part = (char *)part.p;
    x->out = fopen(x->part, "wxe");
    if (x->out)
        return true;
    bool is_there = errno == EEXIST;
    error_sys(err, ERR_CONFIG, errno, "cannot write %s", x->part);
    return is_there ? error_set(err, ERR_CONFLICT,
                                "%s exists: another export writes it, or was killed; remove it "
                                "and try again",
                                x->part)
                    : false;
}

/* Flushes, and gives the file its name. */
static bool close_out(struct exporting *x, bool ok, struct error *err)
{
    if (!x->out)
        return ok;
    bool is_written = fflush(x->out) == 0 && (!x->file || !ok || fsync(fileno(x->out)) == 0);
    int why = errno;
    if (x->file && fclose(x->out) != 0 && is_written) {
        is_written = false;
        why = errno;
    }
    if (ok && is_written && x->file && rename(x->part, x->file) != 0) {
        is_written = false;
        why = errno;
    }
    if (x->file && !(ok && is_written))
        unlink(x->part);
    if (ok && !is_written)
        return error_sys(err, ERR_INTERNAL, why, "cannot write %s",
                         x->file ? x->file : "to standard output");
    return ok;
}

static bool take(void *arg, struct str bytes, struct error *err)
{
    struct exporting *x = arg;

    if (x->skips_head) {
        size_t end = str_find(bytes, '\n');
        x->skips_head = end == bytes.n;
        bytes = x->skips_head ? str_n(bytes.p, 0) : str_n(bytes.p + end + 1, bytes.n - end - 1);
    }
    x->bytes += bytes.n;
    return fwrite(bytes.p, 1, bytes.n, x->out) == bytes.n ||
           error_sys(err, ERR_INTERNAL, errno, "cannot write %s",
                     x->file ? x->part : "to standard output");
}

/* One session. */

static bool export_one(struct exporting *x, struct str name, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    const struct sessions_export *e = x->e;
    struct str path = arena_printf(
        mem, "/api/v1/sessions/%.*s/export?format=%s%s%.*s", STR_ARG(source_encoded(name, mem)),
        x->format->name, e->tenant.p ? "&tenant=" : "", STR_ARG(source_encoded(e->tenant, mem)));

    x->bytes = 0;
    bool ok = control_download(e->control, path, mem, take, x, err);
    arena_free(mem);
    return ok;
}

/* The name may be the beginning of one. */
static bool export_named(struct exporting *x, struct error *err)
{
    const struct sessions_export *e = x->e;
    struct str json = STR_NONE;
    struct js_doc doc;
    struct error none;

    if (export_one(x, e->name, err))
        return true;
    if (err->code != ERR_SESSION_NOT_FOUND || x->bytes)
        return false;
    if (!sessions_get(e->control, e->name, e->tenant, e->cli->mem, &json, &none)) {
        if (none.code == ERR_NOT_FOUND || none.code == ERR_BAD_INPUT)
            *err = none;
        return false;
    }
    return source_parse(json, e->cli->mem, &doc, err) &&
           export_one(x, source_text(&doc, js_root(&doc), "id", e->cli->mem), err);
}

/* Several. */

static int64_t time_of(const struct js_doc *doc, const struct js_node *session, const char *name,
                       int64_t if_absent)
{
    char text[CLOCK_TEXT];
    struct arena *mem = arena_new(4096);
    struct str value = js_text(doc, js_get(doc, session, str_of(name)), mem);
    int64_t ms = if_absent;

    snprintf(text, sizeof(text), "%.*s", STR_ARG(value));
    arena_free(mem);
    if (!clock_parse(str_of(text), &ms))
        ms = if_absent;
    return ms;
}

static bool note_session(void *arg, const struct js_doc *doc, const struct js_node *session)
{
    struct exporting *x = arg;
    struct arena *mem = arena_new(4096);
    struct str id = js_text(doc, js_get(doc, session, STR("id")), mem);

    if (id.n && time_of(doc, session, "last_activity_at", INT64_MAX) >= x->since_ms &&
        time_of(doc, session, "created_at", 0) < x->until_ms)
        buf_addf(&x->ids, "%.*s\n", STR_ARG(id));
    arena_free(mem);
    return true;
}

static bool read_time(struct exporting *x, const char *flag, int64_t otherwise, int64_t *ret,
                      struct error *err)
{
    const char *text = cli_flag(x->e->cli, flag);
    const struct audit_when *when = &x->e->when;

    *ret = otherwise;
    return !text || when_parse(str_of(text), when->now_ms, when->utc, ret) ||
           error_set(err, ERR_USAGE,
                     "%s takes a duration such as 30m or 2d, a date such as 2026-11-17, or "
                     "\"2026-11-17 14:00\"",
                     flag);
}

/* Oldest first. */
static bool export_listed(struct exporting *x, struct error *err)
{
    const struct sessions_ask ask = {
        .status = STR("all"), .tenant = x->e->tenant, .limit = SESSIONS_MAX};
    bool more = false, ok = true;
    size_t n = 0;

    buf_init(&x->ids, SIZE_MAX / 4);
    ok = sessions_list(x->e->control, &ask, note_session, x, &more, err);
    for (size_t end = x->ids.n; ok && end; n++) {
        size_t from = end - 1;
        while (from && x->ids.p[from - 1] != '\n')
            from--;
        x->skips_head = n && x->format->has_head;
        if (n && x->format->between)
            ok = take(x, str_of(x->format->between), err);
        ok = ok && export_one(x, str_n(x->ids.p + from, end - from - 1), err);
        end = from;
    }
    buf_release(&x->ids);
    if (ok && !n)
        fprintf(stderr, "no session was used in that time\n");
    else if (ok && x->file)
        fprintf(stderr, "%zu session%s exported\n", n, n == 1 ? "" : "s");
    return ok;
}

bool sessions_export(const struct sessions_export *e, struct error *err)
{
    struct exporting x = {.e = e, .file = cli_flag(e->cli, "-o")};
    bool is_time = cli_flag(e->cli, "--since") != NULL;

    if (is_time == (e->name.p != NULL))
        return error_set(err, ERR_USAGE, "sessions export takes one session, or --since TIME");
    if (!is_time && cli_flag(e->cli, "--until"))
        return error_set(err, ERR_USAGE, "--until goes with --since");
    if (!read_time(&x, "--since", 0, &x.since_ms, err) ||
        !read_time(&x, "--until", INT64_MAX, &x.until_ms, err) || !choose_format(&x, err) ||
        !open_out(&x, err))
        return false;
    control_set_deadline(e->control, IDLE_MS);
    bool ok = is_time ? export_listed(&x, err) : export_named(&x, err);
    return close_out(&x, ok, err);
}
