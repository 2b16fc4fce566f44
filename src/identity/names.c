/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the headers Host and Origin, before the client is identified. */
#include "identity/identity.h"

#include "http/client.h"

#include <arpa/inet.h>

/* Splits "host:port", "[v6]:port" or "host"; returns false when the port is invalid. */
static bool split_host(struct str authority, struct str *ret_host)
{
    struct str host, port = STR_NONE;
    uint64_t number;

    if (authority.n && authority.p[0] == '[') {
        size_t close = str_find(authority, ']');
        if (close == authority.n)
            return false;
        host = str_n(authority.p, close + 1);
        if (close + 1 < authority.n) {
            if (authority.p[close + 1] != ':')
                return false;
            port = str_n(authority.p + close + 2, authority.n - close - 2);
        }
    } else {
        size_t colon = str_find(authority, ':');
        host = str_n(authority.p, colon);
        if (colon < authority.n)
            port = str_n(authority.p + colon + 1, authority.n - colon - 1);
    }
    if (port.p && (!str_to_u64(port, 65535, &number) || number == 0))
        return false;
    *ret_host = host;
    return true;
}

/* Accepts localhost, [::1], or a dotted address in 127/8; other names that resolve there do not
 * count. */
static bool is_loopback_name(struct str host)
{
    struct in_addr a;
    char text[INET_ADDRSTRLEN];

    if (str_eq(host, STR("127.0.0.1")) || str_ieq(host, STR("localhost")) ||
        str_eq(host, STR("[::1]")))
        return true;
    if (host.n >= sizeof(text) || !str_starts(host, STR("127.")))
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return inet_pton(AF_INET, text, &a) == 1;
}

bool host_is_loopback(struct str authority)
{
    struct str host;
    return split_host(authority, &host) && is_loopback_name(host);
}

bool host_is_allowed(const struct config *c, struct str authority)
{
    struct str host, own;
    struct http_url url;
    struct error ignored;

    if (!split_host(authority, &host))
        return false;
    if (is_loopback_name(host))
        return true;
    if (!c->listens_on_loopback && split_host(c->listen, &own) && own.n && str_ieq(own, host))
        return true;
    return c->public_url.p && http_url_parse(c->public_url, &url, &ignored) &&
           str_ieq(url.host, host);
}

bool origin_is_allowed(const struct config *c, struct str origin)
{
    struct str host, rest = origin;

    for (size_t i = 0; i < c->n_origins; i++)
        if (str_ieq(c->origins[i], origin))
            return true;
    if (str_starts(rest, STR("http://")))
        rest = str_n(rest.p + 7, rest.n - 7);
    else if (str_starts(rest, STR("https://")))
        rest = str_n(rest.p + 8, rest.n - 8);
    else
        return false;
    return split_host(rest, &host) && is_loopback_name(host);
}
