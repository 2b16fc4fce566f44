/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a syslog server. */
#include "test.h"

#include "sinks/syslog.h"

TEST(test_syslog_url__is_a_host_and_a_port)
{
    static const struct {
        const char *url, *host;
        uint16_t port;
    } rows[] = {
        {"tls://siem.example:6514", "siem.example", 6514},
        {"tcp://127.0.0.1:1", "127.0.0.1", 1},
        {"tls://[::1]:65535", "[::1]", 65535},
    };
    struct str host;
    uint16_t port;

    for (size_t i = 0; i < countof(rows); i++) {
        assert_true(syslog_url_parse(str_of(rows[i].url), &host, &port));
        assert_str(host, rows[i].host);
        assert_int_equal(port, rows[i].port);
    }
    assert_false(syslog_url_parse(STR("tls://host"), &host, &port));
    assert_false(syslog_url_parse(STR("tls://host:65536"), &host, &port));
    assert_false(syslog_url_parse(STR("tls://:1"), &host, &port));
}

TEST(test_syslog_url__without_tls_is_this_machine)
{
    static const char *const here[] = {"tcp://127.0.0.1:514",     "tcp://127.9.9.9:514",
                                       "tcp://[::1]:514",         "tcp://localhost:514",
                                       "tls://siem.example:6514", "tls://10.0.0.1:6514"};
    static const char *const away[] = {"tcp://10.0.0.1:514", "tcp://siem.example:514",
                                       "tcp://[2001:db8::1]:514", "tcp://0.0.0.0:514"};
    struct error err;

    for (size_t i = 0; i < countof(here); i++)
        assert_true(syslog_url_check(str_of(here[i]), &err));
    for (size_t i = 0; i < countof(away); i++)
        assert_false(syslog_url_check(str_of(away[i]), &err));
}
