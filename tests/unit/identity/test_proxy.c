/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "identity/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static void peer(struct http_request *r, const char *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&r->peer.sa;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&r->peer.sa;

    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1)
        v4->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1)
        v6->sin6_family = AF_INET6;
}

static void header(struct http_head *h, const char *name, const char *value)
{
    h->headers[h->n_headers++] = (struct http_header){.name = str_of(name), .value = str_of(value)};
}

TEST(test_proxy__only_listed_networks_are_trusted)
{
    struct str list[] = {STR("10.0.0.0/8"), STR("192.168.7.9"), STR("2001:db8::/33"),
                         STR("172.16.0.0/12")};
    struct config c = {.trusted_proxies = list, .n_trusted_proxies = 4};
    static const char *const good[] = {"10.0.0.1",       "10.255.1.2",       "192.168.7.9",
                                       "2001:db8::1",    "2001:db8:7fff::1", "172.31.255.255",
                                       "::ffff:10.1.1.1"};
    static const char *const bad[] = {"11.0.0.1",   "192.168.7.8", "2001:db8:8000::1",
                                      "172.32.0.0", "::1",         "127.0.0.1"};
    struct http_head head = {0};

    for (size_t i = 0; i < countof(good) + countof(bad); i++) {
        const char *text = i < countof(good) ? good[i] : bad[i - countof(good)];
        struct http_request r = {.head = &head};
        peer(&r, text);
        if (peer_is_trusted_proxy(&c, &r) != (i < countof(good)))
            fail_msg("%s", text);
    }
}

static struct str address_for(const char *from, const char *forwarded, struct arena *mem)
{
    static struct str list[] = {STR("10.0.0.0/8")};
    struct config c = {.trusted_proxies = list, .n_trusted_proxies = 1};
    struct http_head head = {0};
    struct http_request r = {.head = &head, .mem = mem};

    peer(&r, from);
    if (forwarded)
        header(&head, "x-forwarded-for", forwarded);
    return client_address(&c, &r, mem);
}

TEST(test_proxy__the_client_is_the_last_hop_that_no_trusted_proxy_made_up)
{
    static const struct {
        const char *from, *forwarded, *client;
    } cases[] = {
        {"203.0.113.5", NULL, "203.0.113.5"},
        {"203.0.113.5", "1.2.3.4", "203.0.113.5"},
        {"10.0.0.1", NULL, "10.0.0.1"},
        {"10.0.0.1", "1.2.3.4", "1.2.3.4"},
        {"10.0.0.1", "9.9.9.9, 1.2.3.4", "1.2.3.4"},
        {"10.0.0.1", "1.2.3.4, 10.0.0.2", "1.2.3.4"},
        {"10.0.0.1", "9.9.9.9, 1.2.3.4, 10.0.0.2 ", "1.2.3.4"},
        {"10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
        {"10.0.0.1", "1.2.3.4:5678", "1.2.3.4"},
        {"10.0.0.1", "[2001:db8::1]:80", "2001:db8::1"},
        {"10.0.0.1", "2001:db8::1", "2001:db8::1"},
        {"10.0.0.1", "unknown", "unknown"},
        {"10.0.0.1", "1.2.3.4, garbage", "unknown"},
        {"10.0.0.1", "garbage, 1.2.3.4", "1.2.3.4"},
        {"203.0.113.5", "garbage", "203.0.113.5"},
        {"10.0.0.1", "", "10.0.0.1"},
        {"10.0.0.1", ",", "10.0.0.1"},
        {"10.0.0.1", "1.2.3.4, ,", "1.2.3.4"},
    };
    struct arena *mem = arena_new(65536);

    for (size_t i = 0; i < countof(cases); i++) {
        struct str got = address_for(cases[i].from, cases[i].forwarded, mem);
        if (!str_eq(got, str_of(cases[i].client)))
            fail_msg("%s, %s: %.*s", cases[i].from, cases[i].forwarded, STR_ARG(got));
    }
    arena_free(mem);
}

TEST(test_proxy__several_lines_are_one_list)
{
    struct str list[] = {STR("10.0.0.0/8")};
    struct config c = {.trusted_proxies = list, .n_trusted_proxies = 1};
    struct http_head head = {0};
    struct http_request r = {.head = &head};
    struct arena *mem = arena_new(65536);

    peer(&r, "10.0.0.1");
    header(&head, "X-Forwarded-For", "9.9.9.9, 8.8.8.8");
    header(&head, "x-other", "7.7.7.7");
    header(&head, "x-forwarded-for", "1.2.3.4");
    assert_str(client_address(&c, &r, mem), "1.2.3.4");
    header(&head, "x-forwarded-for", "10.0.0.2,10.0.0.3");
    header(&head, "x-forwarded-for", "");
    assert_str(client_address(&c, &r, mem), "1.2.3.4");
    arena_free(mem);
}

TEST(test_proxy__a_long_list_is_read_from_its_end)
{
    struct arena *mem = arena_new(1024u * 1024);
    struct buf b;

    buf_init(&b, 65536);
    while (b.n < 32768)
        buf_addz(&b, "9.9.9.9, ");
    buf_addz(&b, "1.2.3.4, 10.0.0.2");
    assert_str(address_for("10.0.0.1", arena_dup(mem, str_n(b.p, b.n)).p, mem), "1.2.3.4");
    buf_release(&b);
    arena_free(mem);
}

TEST(test_proxy__32_trusted_hops_are_passed_and_one_more_is_unknown)
{
    struct arena *mem = arena_new(1024u * 1024);

    for (int hops = 31; hops <= 32; hops++) { /* and the client's own */
        struct buf b;
        buf_init(&b, 65536);
        buf_addz(&b, "1.2.3.4");
        for (int i = 0; i < hops; i++)
            buf_addz(&b, ", 10.0.0.2");
        assert_str(address_for("10.0.0.1", arena_dup(mem, str_n(b.p, b.n)).p, mem),
                   hops == 31 ? "1.2.3.4" : "unknown");
        buf_release(&b);
    }
    arena_free(mem);
}

TEST(test_proxy__networks_are_24_bits_or_64)
{
    struct arena *mem = arena_new(65536);

    assert_str(address_network(STR("192.0.2.77"), mem), "192.0.2.0/24");
    assert_str(address_network(STR("2001:db8:0:1:2:3:4:5"), mem), "2001:db8:0:1::/64");
    assert_str(address_network(STR("unknown"), mem), "unknown");
    arena_free(mem);
}

TEST(test_proxy__scheme_and_host_are_believed_from_trusted_ones_alone)
{
    struct str list[] = {STR("10.0.0.0/8")};
    struct config c = {.trusted_proxies = list, .n_trusted_proxies = 1};
    struct http_head head = {.host = STR("inner:1")};
    struct http_request r = {.head = &head};

    header(&head, "x-forwarded-proto", "https");
    header(&head, "x-forwarded-host", "outer.example, other");
    peer(&r, "203.0.113.5");
    assert_false(client_is_tls(&c, &r));
    assert_str(client_host(&c, &r), "inner:1");
    peer(&r, "10.1.2.3");
    assert_true(client_is_tls(&c, &r));
    assert_str(client_host(&c, &r), "outer.example");
}

static bool is_elsewhere(const char *host, const char *name, const char *value)
{
    struct config c = {0};
    struct http_head head = {.host = str_of(host)};
    struct http_request r = {.head = &head};

    peer(&r, "127.0.0.1");
    if (name)
        header(&head, name, value);
    return client_is_elsewhere(&c, &r);
}

TEST(test_proxy__who_is_elsewhere_is_believed_from_anybody)
{
    assert_false(is_elsewhere("localhost:4653", NULL, NULL));
    assert_false(is_elsewhere("127.0.0.1", "x-forwarded-for", "127.0.0.1, ::1,127.9.9.9:80"));
    assert_true(is_elsewhere("mcp.example", NULL, NULL));
    assert_true(is_elsewhere("127.0.0.1", "x-forwarded-for", "127.0.0.1, 10.0.0.1"));
    assert_true(is_elsewhere("127.0.0.1", "x-forwarded-for", "10.0.0.1, 127.0.0.1"));
    assert_true(is_elsewhere("127.0.0.1", "x-forwarded-for", "unknown"));
    assert_true(is_elsewhere("127.0.0.1", "x-forwarded-for", ""));
    assert_true(is_elsewhere("127.0.0.1", "forwarded", "for=127.0.0.1"));
}
