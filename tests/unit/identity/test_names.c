/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "identity/identity.h"

TEST(test_host__only_names_of_ours_are_allowed)
{
    struct config c = {.public_url = STR("https://mcp.example/base")};
    static const char *const good[] = {"localhost",    "LocalHost:4653", "127.0.0.1",
                                       "127.0.0.1:80", "127.9.8.7:1",    "[::1]",
                                       "[::1]:65535",  "mcp.example",    "MCP.example:443"};
    static const char *const bad[] = {"",
                                      "localhost.",
                                      "localhost.evil.com",
                                      "127.0.0.1.nip.io",
                                      "127.1",
                                      "0x7f.0.0.1",
                                      "[::1]:0",
                                      "127.0.0.1:0",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "evil.example",
                                      "[::1",
                                      "[::2]",
                                      "128.0.0.1",
                                      "2130706433",
                                      "127.0.0.01x"};
    for (size_t i = 0; i < countof(good); i++)
        if (!host_is_allowed(&c, str_of(good[i])))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < countof(bad); i++)
        if (host_is_allowed(&c, str_of(bad[i])))
            fail_msg("allowed: %s", bad[i]);
}

TEST(test_origin__loopback_and_listed_ones_are_allowed)
{
    struct str listed[] = {STR("https://app.example")};
    struct config c = {.origins = listed, .n_origins = 1};
    static const char *const good[] = {"http://localhost:3000", "https://127.0.0.1",
                                       "http://[::1]:8080", "https://app.example"};
    static const char *const bad[] = {
        "null",    "",        "https://evil.example",     "http://localhost.evil.com",
        "file://", "http://", "https://app.example.evil", "ftp://localhost"};
    for (size_t i = 0; i < countof(good); i++)
        assert_true(origin_is_allowed(&c, str_of(good[i])));
    for (size_t i = 0; i < countof(bad); i++)
        if (origin_is_allowed(&c, str_of(bad[i])))
            fail_msg("allowed: %s", bad[i]);
}
