/* SPDX-License-Identifier: Apache-2.0 */
/* Parses REDIS_URL.  Errors name the broken rule and never quote the URL. */
#include "store/redis_conn.h"

static bool bad(struct error *err, const char *what)
{
    return error_set(err, ERR_CONFIG, "REDIS_URL is not usable: %s", what);
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode(struct str s, struct arena *mem, struct str *ret, struct error *err)
{
    char *to = arena_alloc(mem, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '%') {
            to[n++] = s.p[i];
            continue;
        }
        if (i + 2 >= s.n || hex_of(s.p[i + 1]) < 0 || hex_of(s.p[i + 2]) < 0)
            return bad(err, "a % is followed by two hexadecimal digits; write a bare one as %25");
        to[n++] = (char)(hex_of(s.p[i + 1]) << 4 | hex_of(s.p[i + 2]));
        i += 2;
    }
    to[n] = '\0';
    if (memchr(to, '\0', n))
        return bad(err, "leave out %00");
    *ret = str_n(to, n);
    return true;
}

/* Parses USER:PASSWORD.  Refuses "redis://secret@host", because some programs read `secret` as a
 * user and some as a password. */
static bool parse_user(struct str part, struct arena *mem, struct redis_target *t,
                       struct error *err)
{
    struct str user = str_split(&part, ':');
    if (!part.p)
        return bad(err, "write a password as :PASSWORD@ or USER:PASSWORD@");
    return (user.n == 0 || decode(user, mem, &t->user, err)) &&
           decode(part, mem, &t->password, err);
}

static bool parse_place(struct str place, struct arena *mem, struct redis_target *t,
                        struct error *err)
{
    bool is_v6 = place.n > 0 && place.p[0] == '[';
    size_t end = is_v6 ? str_find(place, ']') : str_find(place, ':');
    uint64_t port = 6379;
    if (is_v6 && end == place.n)
        return bad(err, "close the bracket of the IPv6 address");
    t->host = arena_dup(mem, str_n(place.p + is_v6, end - is_v6));
    struct str rest = str_n(place.p + end + is_v6, place.n - end - is_v6);
    if (t->host.n == 0 || t->host.n > 253)
        return bad(err, "name a host of 1 to 253 bytes after ://");
    if (rest.n > 0 &&
        (rest.p[0] != ':' || !str_to_u64(str_n(rest.p + 1, rest.n - 1), 65535, &port) || port == 0))
        return bad(err, "a port is a number from 1 to 65535");
    t->port = (uint16_t)port;
    return true;
}

static bool parse_db(struct str db, struct redis_target *t, struct error *err)
{
    return db.n == 0 || str_to_u64(db, 65535, &t->db) ||
           bad(err, "a database is a number from 0 to 65535");
}

static bool parse_unix(struct str rest, struct arena *mem, struct redis_target *t,
                       struct error *err)
{
    struct str path = str_split(&rest, '?');
    if (path.n == 0 || path.p[0] != '/' || path.n > 107)
        return bad(err, "a unix socket has an absolute path of at most 107 bytes");
    t->path = arena_dup(mem, path);
    if (rest.p && !str_starts(rest, STR("db=")))
        return bad(err, "after a socket only ?db=NUMBER may follow");
    if (!parse_db(rest.p ? str_n(rest.p + 3, rest.n - 3) : STR_NONE, t, err))
        return false;
    t->shown = arena_printf(mem, "unix://%.*s", STR_ARG(path));
    return true;
}

static bool parse_network(struct str rest, struct arena *mem, struct redis_target *t,
                          struct error *err)
{
    struct str place = str_split(&rest, '/');
    if (!parse_place(place, mem, t, err) || !parse_db(rest, t, err))
        return false;
    t->shown = arena_printf(mem, "%s://%.*s/%u", t->is_tls ? "rediss" : "redis", STR_ARG(place),
                            (unsigned)t->db);
    return true;
}

/* The user part ends at the last '@', so that no part of an unencoded password is taken for a host
 * and shown. */
static struct str cut_user(struct str *rest)
{
    size_t at = rest->n;
    while (at > 0 && rest->p[at - 1] != '@')
        at--;
    if (at == 0)
        return STR_NONE;
    struct str user = str_n(rest->p, at - 1);
    *rest = str_n(rest->p + at, rest->n - at);
    return user;
}

bool redis_target_parse(struct str url, struct arena *mem, struct redis_target *ret,
                        struct error *err)
{
    static const struct {
        struct str scheme;
        bool is_tls, is_unix;
    } schemes[] = {{STR("redis://"), false, false},
                   {STR("rediss://"), true, false},
                   {STR("unix://"), false, true}};
    if (url.n > REDIS_URL_MAX)
        return bad(err, "it is longer than 4096 bytes; shorten it");
    for (size_t i = 0; i < url.n; i++)
        if ((unsigned char)url.p[i] <= 0x20 || (unsigned char)url.p[i] >= 0x7f)
            return bad(err, "percent-encode blanks and bytes beyond ASCII");
    for (size_t i = 0; i < countof(schemes); i++) {
        if (!str_starts(url, schemes[i].scheme))
            continue;
        struct redis_target t = {.is_tls = schemes[i].is_tls};
        struct str rest = str_n(url.p + schemes[i].scheme.n, url.n - schemes[i].scheme.n);
        struct str user = cut_user(&rest);
        if ((user.p && !parse_user(user, mem, &t, err)) ||
            !(schemes[i].is_unix ? parse_unix : parse_network)(rest, mem, &t, err))
            return false;
        *ret = t;
        return true;
    }
    return bad(err, "begin it with redis://, rediss:// or unix://");
}

bool redis_choose(struct str url, struct arena *mem, struct redis_target *ret, struct error *err)
{
    if (url.n > 0)
        return redis_target_parse(url, mem, ret, err);
    *ret = (struct redis_target){0};
    return true;
}
