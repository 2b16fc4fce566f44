/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of servers in the configuration: http or https, a host, a port, a path.  Parts that would be
 * ignored or could mislead (user names, fragments, blanks) are errors. */
#include "http/client.h"

static bool bad(struct error *err, const char *why)
{
    return error_set(err, ERR_BAD_INPUT, "not a usable URL: %s", why);
}

static size_t find_any(struct str s, const char *set)
{
    size_t i = 0;

    while (i < s.n && !strchr(set, s.p[i]))
        i++;
    return i;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

static bool is_v6_byte(char c)
{
    return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' ||
           c == '.';
}

/* Splits "host:port" or "[v6]:port"; the brackets stay part of the host. */
static bool parse_authority(struct str a, struct http_url *u, struct error *err)
{
    bool is_v6 = a.n && a.p[0] == '[';
    size_t end = is_v6 ? str_find(a, ']') + 1 : str_find(a, ':');
    uint64_t port;

    if (end > a.n || end == 0)
        return bad(err, is_v6 ? "close the bracket of the IPv6 address" : "name a host after ://");
    u->host = str_n(a.p, end);
    for (size_t i = is_v6; i < end - is_v6; i++)
        if (is_v6 ? !is_v6_byte(a.p[i]) : !is_name_byte(a.p[i]))
            return bad(err, "a host has letters, digits, dots and dashes only");
    if (end - 2u * is_v6 == 0 || end > 255)
        return bad(err, "a host has 1 to 253 bytes");
    if (end == a.n)
        return true;
    if (a.p[end] != ':' || !str_to_u64(str_n(a.p + end + 1, a.n - end - 1), 65535, &port) ||
        port == 0)
        return bad(err, "a port is a number from 1 to 65535");
    u->port = (uint16_t)port;
    return true;
}

bool http_url_parse(struct str url, struct http_url *ret, struct error *err)
{
    struct http_url u = {.is_tls = false, .port = 80, .target = STR("/")};
    struct str rest, authority;

    if (url.n > 7 && str_ieq(str_n(url.p, 7), STR("http://"))) {
        rest = str_n(url.p + 7, url.n - 7);
    } else if (url.n > 8 && str_ieq(str_n(url.p, 8), STR("https://"))) {
        rest = str_n(url.p + 8, url.n - 8);
        u.is_tls = true;
        u.port = 443;
    } else {
        return bad(err, "begin it with http:// or https:// and a host");
    }
    for (size_t i = 0; i < rest.n; i++)
        if ((unsigned char)rest.p[i] <= 0x20 || (unsigned char)rest.p[i] >= 0x7f)
            return bad(err, "percent-encode blanks and bytes beyond ASCII");
    if (str_find(rest, '#') != rest.n)
        return bad(err, "leave out the part from # on, servers never see it");
    authority = str_n(rest.p, find_any(rest, "/?"));
    if (str_find(authority, '@') != authority.n)
        return bad(err, "put credentials into headers, not before the host");
    if (!parse_authority(authority, &u, err))
        return false;
    if (authority.n < rest.n && rest.p[authority.n] == '?')
        return bad(err, "write a / between the host and the ?");
    if (authority.n < rest.n)
        u.target = str_n(rest.p + authority.n, rest.n - authority.n);
    *ret = u;
    return true;
}
