/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of servers. */
#include "test.h"

#include "http/client.h"

TEST(test_url_parse__takes_what_servers_are_called)
{
    static const struct {
        const char *url, *host, *target;
        bool is_tls;
        unsigned port;
    } rows[] = {
        {"http://a", "a", "/", false, 80},
        {"https://example.org/mcp?x=1", "example.org", "/mcp?x=1", true, 443},
        {"HTTP://127.0.0.1:8080/", "127.0.0.1", "/", false, 8080},
        {"http://[::1]:9/x", "[::1]", "/x", false, 9},
        {"https://[fe80::1]", "[fe80::1]", "/", true, 443},
        {"http://a:65535", "a", "/", false, 65535},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct http_url u;
        struct error err;
        assert_true(http_url_parse(str_of(rows[i].url), &u, &err));
        assert_str(u.host, rows[i].host);
        assert_str(u.target, rows[i].target);
        assert_int_equal(u.is_tls, rows[i].is_tls);
        assert_int_equal(u.port, rows[i].port);
    }
}

TEST(test_url_parse__refuses_what_misleads)
{
    static const char *const rows[] = {
        "",
        "http://",
        "ftp://a/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:/",
        "http://a b",
        "http://u@h/",
        "http://u:p@h/",
        "http://a/#frag",
        "http://a?x=1",
        "http://[::1/",
        "http://[]/",
        "http://a/\r\nX:",
        "http://a\x7f/",
        "http://[::1]x/y",
        "http://a:1:2/",
        "http:///path",
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct http_url u = {.port = 7};
        struct error err;
        assert_false(http_url_parse(str_of(rows[i]), &u, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
        assert_int_equal(u.port, 7);
    }
}
