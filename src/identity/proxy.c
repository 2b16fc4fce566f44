/* SPDX-License-Identifier: Apache-2.0 */
/* Matches addresses against the networks of trusted proxies. */
#include "identity/proxy.h"

#include "identity/identity.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define HOPS_MAX 32

/* An address as 16 bytes; IPv4 addresses are mapped. */
struct address {
    uint8_t bytes[16];
};

static void map_v4(const void *v4, struct address *ret)
{
    memset(ret->bytes, 0, 10);
    memset(ret->bytes + 10, 0xff, 2);
    memcpy(ret->bytes + 12, v4, 4);
}

static bool parse_address(struct str text, struct address *ret, bool *ret_is_v4)
{
    char z[INET6_ADDRSTRLEN];
    struct in_addr v4;

    if (!text.n || text.n >= sizeof(z))
        return false;
    memcpy(z, text.p, text.n);
    z[text.n] = '\0';
    *ret_is_v4 = inet_pton(AF_INET, z, &v4) == 1;
    if (*ret_is_v4)
        map_v4(&v4, ret);
    return *ret_is_v4 || inet_pton(AF_INET6, z, ret->bytes) == 1;
}

static bool peer_address(const struct http_request *r, struct address *ret)
{
    const struct sockaddr *sa = (const struct sockaddr *)&r->peer.sa;

    if (r->is_unix)
        return false;
    if (sa->sa_family == AF_INET)
        map_v4(&((const struct sockaddr_in *)(const void *)sa)->sin_addr, ret);
    else if (sa->sa_family == AF_INET6)
        memcpy(ret->bytes, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
    else
        return false;
    return true;
}

static bool is_in(const struct address *a, struct str network)
{
    struct str bits = network, host = str_split(&bits, '/');
    struct address base;
    uint64_t n = 128;
    bool is_v4;

    if (!parse_address(host, &base, &is_v4))
        return false;
    if (bits.p) {
        if (!str_to_u64(bits, is_v4 ? 32 : 128, &n))
            return false;
        n += is_v4 ? 96 : 0;
    }
    size_t whole = (size_t)n / 8;
    uint8_t mask = (uint8_t)(0xff00 >> (n % 8));
    return memcmp(a->bytes, base.bytes, whole) == 0 &&
           (n % 8 == 0 || ((a->bytes[whole] ^ base.bytes[whole]) & mask) == 0);
}

static bool is_trusted(const struct config *c, const struct address *a)
{
    for (size_t i = 0; i < c->n_trusted_proxies; i++)
        if (is_in(a, c->trusted_proxies[i]))
            return true;
    return false;
}

bool peer_is_trusted_proxy(const struct config *c, const struct http_request *r)
{
    struct address a;
    return c->n_trusted_proxies && peer_address(r, &a) && is_trusted(c, &a);
}

static struct str format(const struct address *a, struct arena *mem)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    char text[INET6_ADDRSTRLEN];
    bool is_v4 = memcmp(a->bytes, mapped, sizeof(mapped)) == 0;

    inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? a->bytes + 12 : a->bytes, text, sizeof(text));
    return arena_dup(mem, str_of(text));
}

struct str address_network(struct str address, struct arena *mem)
{
    struct address a;
    bool is_v4;

    if (!parse_address(address, &a, &is_v4))
        return address;
    memset(a.bytes + (is_v4 ? 15 : 8), 0, is_v4 ? 1 : 8);
    return arena_printf(mem, "%.*s/%d", STR_ARG(format(&a, mem)), is_v4 ? 24 : 64);
}

/* Parses one hop of X-Forwarded-For: an address, possibly with a port or brackets. */
static bool parse_hop(struct str hop, struct address *ret)
{
    bool is_v4;

    hop = str_trim(hop);
    if (parse_address(hop, ret, &is_v4))
        return true;
    if (hop.n && hop.p[0] == '[') {
        size_t close = str_find(hop, ']');
        return close < hop.n && parse_address(str_n(hop.p + 1, close - 1), ret, &is_v4);
    }
    return parse_address(str_n(hop.p, str_find(hop, ':')), ret, &is_v4);
}

/* Reads X-Forwarded-For from its end: the last header first, and its last hop first.  Headers of
 * the same name are one list (RFC 9110, 5.2).  Only the end is read, so the length does not
 * matter. */
struct hops {
    const struct http_head *head;
    size_t line;     /* index after the next header to read */
    struct str rest; /* unread part of the current header */
};

/* Reads the previous hop and skips empty elements.  Returns false when there are no more hops. */
static bool hop_before(struct hops *h, struct str *ret)
{
    for (;;) {
        while (!h->rest.n) {
            if (!h->line)
                return false;
            const struct http_header *header = &h->head->headers[--h->line];
            if (str_ieq(header->name, STR("x-forwarded-for")))
                h->rest = header->value;
        }
        size_t at = h->rest.n;
        while (at && h->rest.p[at - 1] != ',')
            at--;
        *ret = str_trim(str_n(h->rest.p + at, h->rest.n - at));
        h->rest.n = at ? at - 1 : 0;
        if (ret->n)
            return true;
    }
}

/* A hop is believed if the hop after it is a trusted proxy.  All clients with an invalid hop share
 * the address "unknown", not that of the proxy. */
struct str client_address(const struct config *c, const struct http_request *r, struct arena *mem)
{
    struct hops hops = {.head = r->head, .line = r->head->n_headers};
    struct address a;
    struct str hop;

    if (!peer_address(r, &a))
        return STR("unix");
    for (unsigned i = 0; is_trusted(c, &a) && hop_before(&hops, &hop); i++)
        if (i >= HOPS_MAX || !parse_hop(hop, &a))
            return STR("unknown");
    return format(&a, mem);
}

static struct str forwarded_header(const struct config *c, const struct http_request *r,
                                   struct str header)
{
    struct str value = http_header_get(r->head, header);

    if (!value.n || http_header_count(r->head, header) != 1 || !peer_is_trusted_proxy(c, r))
        return STR_NONE;
    return str_trim(str_split(&value, ',')); /* the value of the first proxy, next to the client */
}

bool client_is_tls(const struct config *c, const struct http_request *r)
{
    struct str proto = forwarded_header(c, r, STR("x-forwarded-proto"));
    return proto.p ? str_ieq(proto, STR("https")) : r->is_tls;
}

struct str client_host(const struct config *c, const struct http_request *r)
{
    struct str host = forwarded_header(c, r, STR("x-forwarded-host"));
    return host.n ? host : r->head->host;
}

static bool is_loopback(const struct address *a)
{
    static const struct address v6 = {{[15] = 1}};
    return memcmp(a->bytes, v6.bytes, sizeof(v6.bytes)) == 0 || is_in(a, STR("127.0.0.0/8"));
}

static bool are_loopback(struct str hops)
{
    struct address a;

    while (hops.p)
        if (!parse_hop(str_split(&hops, ','), &a) || !is_loopback(&a))
            return false;
    return true;
}

bool client_is_elsewhere(const struct config *c, const struct http_request *r)
{
    static const struct str for_name = {"x-forwarded-for", 15};
    struct str host = client_host(c, r), hops = http_header_get(r->head, for_name);

    if (r->is_unix)
        return false;
    if ((host.n && !host_is_loopback(host)) || http_header_get(r->head, STR("forwarded")).p)
        return true;
    return hops.p && (http_header_count(r->head, for_name) > 1 || !are_loopback(hops));
}
