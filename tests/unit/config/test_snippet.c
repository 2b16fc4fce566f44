/* SPDX-License-Identifier: Apache-2.0 */
/* Servers from pasted text: every form, what is rewritten, and what is left out. */
#include "test.h"

#include "config/config.h"
#include "config/snippet.h"

#include <stdlib.h>

static struct error err;
static struct arena *mem;
static struct snippet_server *servers;
static size_t n;

static bool take(const char *text)
{
    arena_free(mem);
    mem = arena_new(SIZE_MAX);
    n = 0;
    return snippet_read(str_of(text), mem, &servers, &n, &err);
}

static void expect_one(const char *text, const char *name, const char *json)
{
    struct config *c;
    struct str whole;

    if (!take(text))
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(n, 1);
    if (name)
        assert_str(servers[0].name, name);
    else
        assert_null(servers[0].name.p);
    assert_str(servers[0].json, json);
    /* Holdfast reads what it wrote. */
    whole = arena_printf(mem, "{\"mcpServers\":{\"x\":%.*s}}", STR_ARG(servers[0].json));
    if (!config_parse(whole, STR("h.json"), NULL, &c, &err))
        fail_msg("%s: %s", whole.p, err.text);
    config_unref(c);
}

static void done(void)
{
    arena_free(mem);
    mem = NULL;
}

TEST(test_snippet__every_form_is_understood)
{
    const char *json = "{\"command\":\"npx\",\"args\":[\"-y\",\"s\"]}";

    expect_one("{\"mcpServers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"s\"]}}}", "a", json);
    expect_one("// c\n{\"servers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"s\"],},}}", "a",
               json);
    expect_one("{\"mcp\":{\"servers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"s\"]}}}}", "a",
               json);
    expect_one("{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"s\"]}}", "a", json);
    expect_one("\"a\": {\"command\":\"npx\",\"args\":[\"-y\",\"s\"]}\n", "a", json);
    expect_one("\"mcpServers\": {\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"s\"]}}", "a", json);
    expect_one("{\"command\":\"npx\",\"args\":[\"-y\",\"s\"]}", NULL, json);
    expect_one("# codex\n[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"s\"]\n", "a", json);
    expect_one("\xef\xbb\xbf{\"mcpServers\":{\"a\":{\"url\":\"https://e.org/mcp\"}}}", "a",
               "{\"url\":\"https://e.org/mcp\"}");
    done();
}

TEST(test_snippet__members_of_clients_are_rewritten_or_left_out)
{
    setenv("TOK", "t", 1);
    setenv("VAR", "v", 1);
    expect_one("[mcp_servers.a]\nurl = \"https://e.org/mcp\"\nbearer_token_env_var = \"TOK\"\n"
               "http_headers = { X = \"1\" }\nenv_http_headers = { Y = \"VAR\" }\n",
               "a",
               "{\"url\":\"https://e.org/mcp\",\"headers\":{\"X\":\"1\",\"Y\":\"${VAR}\","
               "\"Authorization\":\"Bearer ${TOK}\"}}");
    expect_one(
        "[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"HOME\"]\nstartup_timeout_sec = 20\n", "a",
        "{\"command\":\"x\",\"inherit_env\":[\"HOME\"]}");
    assert_str(servers[0].note, "left out: startup_timeout_sec");
    expect_one("{\"mcpServers\":{\"a\":{\"httpUrl\":\"https://e.org/\",\"trust\":true}}}", "a",
               "{\"url\":\"https://e.org/\"}");
    assert_str(servers[0].note, "left out: trust");
    expect_one("{\"mcpServers\":{\"my server\":{\"command\":\"x\"}}}", "my-server",
               "{\"command\":\"x\"}");
    assert_str(servers[0].note, "was named \"my server\"");
    done();
}

TEST(test_snippet__a_document_without_servers_gives_none)
{
    assert_true(take("{\"theme\":\"dark\"}"));
    assert_int_equal(n, 0);
    assert_true(take("{}"));
    assert_int_equal(n, 0);
    assert_true(take("model = \"o3\"\n"));
    assert_int_equal(n, 0);
    done();
}

TEST(test_snippet__mistakes_are_named)
{
    assert_false(take("  \n"));
    assert_non_null(strstr(err.text, "the text is empty"));
    assert_false(take("{\"mcpServers\": {"));
    assert_non_null(strstr(err.text, "line 1, column 17: the text ends too early"));
    assert_false(take("mcpServers:\n  a:\n"));
    assert_non_null(strstr(err.text, "line 1, column 11"));
    assert_int_equal(err.code, ERR_CONFIG);
    done();
}

TEST(test_snippet__a_note_cannot_steer_the_terminal)
{
    assert_true(take("{\"mcpServers\":{\"a\\u001b]0;pwned\\u0007\":{\"command\":\"x\","
                     "\"\\u009bk\":1}}}"));
    for (size_t i = 0; i < servers[0].note.n; i++)
        assert_true(servers[0].note.p[i] >= ' ' && servers[0].note.p[i] < 0x7f);
    assert_null(memchr(servers[0].name.p, '\033', servers[0].name.n));
    assert_non_null(memmem(servers[0].note.p, servers[0].note.n, "pwned", 5));
    done();
}
