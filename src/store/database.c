/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses and opens the database, and makes the printable form of its URL: scheme, user, host,
 * database name, and only the parameters that say where the database is.  All other parameters are
 * left out, so a secret in a new parameter is not shown. */
#include "store/database.h"

#include "base/buf.h"

static const char *const schemes[] = {"postgresql://", "postgres://"};
static const char *const harmless[] = {"host", "hostaddr", "port", "dbname", "user", "sslmode"};

static struct str without_scheme(struct str url)
{
    for (size_t i = 0; i < countof(schemes); i++) {
        struct str scheme = str_of(schemes[i]);
        if (str_starts(url, scheme))
            return str_n(url.p + scheme.n, url.n - scheme.n);
    }
    return STR_NONE;
}

static bool is_harmless(struct str name)
{
    for (size_t i = 0; i < countof(harmless); i++)
        if (str_eq(name, str_of(harmless[i])))
            return true;
    return false;
}

static void add_parameters(struct buf *out, struct str rest)
{
    char before = '?';
    while (rest.p) {
        struct str one = str_split(&rest, '&');
        struct str name = str_n(one.p, str_find(one, '='));
        if (!is_harmless(name))
            continue;
        buf_addc(out, before);
        buf_addstr(out, one);
        before = '&';
    }
}

/* The user name ends at the first ':', the user part at the last '@' before the parameters.  So a
 * password with an unescaped '@' is not shown either. */
static struct str shown_url(struct str rest, struct arena *mem)
{
    struct buf out;
    struct str place = str_split(&rest, '?');
    size_t end = place.n;
    while (end > 0 && place.p[end - 1] != '@')
        end--;
    buf_init(&out, 64 * 1024);
    buf_addz(&out, "postgresql://");
    if (end > 0) {
        struct str user = str_n(place.p, end - 1);
        buf_add(&out, user.p, str_find(user, ':'));
        buf_addc(&out, '@');
    }
    buf_add(&out, place.p + end, place.n - end);
    add_parameters(&out, rest);
    struct str shown = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return shown;
}

bool database_choose(struct str url, struct str data_dir, struct arena *mem, struct database *ret,
                     struct error *err)
{
    struct database d = {0};
    if (url.n == 0) {
        d.path = d.shown = arena_printf(mem, "%.*s/holdfast.db", STR_ARG(data_dir));
    } else {
        struct str rest = without_scheme(url);
        if (!rest.p)
            return error_set(err, ERR_CONFIG,
                             "DATABASE_URL does not begin with postgresql://; correct it, or unset "
                             "it to keep everything in the data directory");
        if (url.n > 4096)
            return error_set(err, ERR_CONFIG, "DATABASE_URL is longer than 4096 bytes; shorten it");
        d.is_postgres = true;
        d.path = arena_dup(mem, url);
        d.shown = shown_url(rest, mem);
    }
    *ret = d;
    return true;
}

bool database_open(const struct database *d, struct store_config how, struct store **ret,
                   struct error *err)
{
    how.path = d->path;
    return d->is_postgres ? store_open_postgres(&how, ret, err) : store_open_sqlite(&how, ret, err);
}
