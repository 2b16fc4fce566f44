/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a configuration: what is accepted, what is refused and in which words, and what is noted.
 */
#include "test.h"

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>

static struct config *config;
static struct error err;

static bool parse(const char *text)
{
    config_unref(config);
    config = NULL;
    memset(&err, 0, sizeof(err));
    return config_parse(str_of(text), STR("h.json"), NULL, &config, &err);
}

static void accepted(const char *text)
{
    bool ok = parse(text);
    if (!ok)
        print_error("%s\n", err.text);
    assert_true(ok);
}

static void refused(const char *text, const char *message)
{
    assert_false(parse(text));
    assert_string_equal(err.text, message);
    assert_int_equal(err.code, ERR_CONFIG);
    assert_int_equal(error_info(err.code)->exit_status, 7);
    assert_null(config);
}

static bool has_note(const char *text)
{
    for (size_t i = 0; i < config->n_notes; i++)
        if (str_eq(config->notes[i], str_of(text)))
            return true;
    for (size_t i = 0; i < config->n_notes; i++)
        print_error("note: %.*s\n", STR_ARG(config->notes[i]));
    return false;
}

static void done(void)
{
    config_unref(config);
    config = NULL;
}

TEST(test_config__an_empty_object_gives_the_documented_defaults)
{
    accepted("{}");
    assert_str(config->listen, "127.0.0.1:4653");
    assert_str(config->file, "h.json");
    assert_false(config->auth_required);
    assert_false(config->client_id_required);
    assert_true(config->metrics);
    assert_null(config->tls_cert.p);
    assert_null(config->public_url.p);
    assert_int_equal(config->n_origins, 0);
    assert_int_equal(config->n_trusted_proxies, 0);
    assert_int_equal(config->session_max_per_tenant, 100);
    assert_int_equal(config->session_default_ttl_ms, 24 * 3600000);
    assert_int_equal(config->session_idle_ms, 30 * 60000);
    assert_int_equal(config->cleanup_interval_ms, 5 * 60000);
    assert_int_equal(config->cleanup_batch, 100);
    assert_true(config->cache_enabled);
    assert_int_equal(config->cache_ttl_ms, 5 * 60000);
    assert_str(config->cache_prefix, "session:");
    assert_int_equal(config->limit_body, 4 << 20);
    assert_int_equal(config->limit_audit_body, 16 << 10);
    assert_int_equal(config->n_header_carriers, 0);
    assert_int_equal(config->n_notes, 0);
    done();
}

TEST(test_config__default_carriers_are_those_of_known_clients)
{
    static const char *const labels[] = {
        "meta:session_id",
        "meta:openai/session",
        "meta:vscode.conversationId",
        "meta:x-codex-turn-metadata.session_id",
        "meta:threadId",
        "meta:sessionID",
    };

    accepted("{}");
    assert_int_equal(config->n_meta_carriers, countof(labels));
    for (size_t i = 0; i < countof(labels); i++) {
        assert_str(config->meta_carriers[i].label, labels[i]);
        assert_int_equal(config->meta_carriers[i].n, i == 3 ? 2 : 1);
    }
    assert_str(config->meta_carriers[2].path[0], "vscode.conversationId");
    assert_str(config->meta_carriers[3].path[1], "session_id");
    done();
}

TEST(test_config__without_servers_there_is_the_sample)
{
    static const char *const texts[] = {"{}", "{\"mcpServers\": {}}",
                                        "{\"mcpServers\": {\"x\": {\"disabled\": true}}}"};

    for (size_t i = 0; i < countof(texts); i++) {
        accepted(texts[i]);
        assert_int_equal(config->n_servers, 1);
        assert_str(config->servers[0].name, "sample");
        assert_int_equal(config->servers[0].kind, SERVER_BUILTIN);
        assert_int_equal(config->servers[0].era, ERA_LEGACY);
        assert_int_equal(config->servers[0].share, SHARE_SESSION);
        assert_int_equal(config->servers[0].handles, HANDLES_AUTO);
        assert_int_equal(config->servers[0].audit, AUDIT_REDACTED);
        assert_int_equal(config->servers[0].timeout_ms, 60000);
    }
    done();
}

TEST(test_config__absent_text_is_the_defaults_without_a_file)
{
    assert_true(config_parse(STR_NONE, STR_NONE, NULL, &config, &err));
    assert_null(config->file.p);
    assert_str(config->servers[0].name, "sample");
    done();
}

TEST(test_config__every_key_of_the_reference_is_read)
{
    accepted(
        "{ // comments\n"
        "\"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \"f\",],\n"
        "   \"env\": {\"B\": \"2\", \"A\": \"1\"}, \"cwd\": \"/srv\" },\n"
        " \"x\": { \"url\": \"https://h/mcp\", \"headers\": {\"Authorization\": \"Bearer t\"},\n"
        "   \"share\": \"all\", \"handles\": \"never\", \"pin\": true, \"audit\": \"digest\",\n"
        "   \"era\": \"modern\", \"timeout\": 5,\n"
        "   \"credential\": {\"service\": \"github\", \"as\": \"header:Authorization\"} } },\n"
        "/* ours */ \"holdfast\": { \"listen\": \"[::1]:0\", \"auth\": \"none\",\n"
        " \"tls\": {\"cert\": \"c.pem\", \"key\": \"k.pem\"},\n"
        " \"trusted_proxies\": [\"10.0.0.0/8\", \"::1\"], \"public_url\": "
        "\"https://mcp.example\",\n"
        " \"origins\": [\"https://a.example\"], \"client_id\": \"required\", \"metrics\": false,\n"
        " \"carriers\": {\"meta\": [\"a\", [\"b\", \"c\"]], \"headers\": [\"X-Conv\"]},\n"
        " \"session\": {\"cache\": {\"enabled\": false, \"ttl\": \"1m\", \"prefix\": \"s:\"},\n"
        "  \"limits\": {\"max_per_tenant\": 7, \"default_ttl\": \"1h\", \"idle_timeout\": "
        "\"1m\"},\n"
        "  \"cleanup\": {\"interval\": \"10s\", \"batch_size\": 5}},\n"
        " \"tenants\": {\"globex\": {\"sessions\": false, \"default_ttl\": \"2h\", "
        "\"idle_timeout\": \"3m\"}, \"acme\": {\"max_sessions\": 1000, \"sessions\": true}},\n"
        " \"profiles\": {\"p1\": {\"servers\": [\"x\"], \"toolsets\": [], \"mode\": \"search\",\n"
        "   \"client_id\": \"optional\"}},\n"
        " \"toolsets\": {\"t\": {\"name\": \"T\", \"description\": \"d\", \"tools\": "
        "[\"files__r*\"]}},\n"
        " \"docs\": {\"Lens\": {\"path\": \"/v\", \"agent\": \"suggest\"}},\n"
        " \"limits\": {\"body\": \"1MiB\", \"audit_body\": \"8KiB\"} }, }");
    const struct server_config *files = config_server(config, STR("files"));
    const struct server_config *x = config_server(config, STR("x"));
    assert_int_equal(config->n_servers, 2);
    assert_int_equal(files->kind, SERVER_STDIO);
    assert_str(files->command, "npx");
    assert_int_equal(files->n_args, 2);
    assert_str(files->args[1], "f");
    assert_int_equal(files->n_env, 2);
    assert_str(files->env[0].name, "A");
    assert_str(files->env[1].value, "2");
    assert_str(files->cwd, "/srv");
    assert_int_equal(x->kind, SERVER_HTTP);
    assert_str(x->url, "https://h/mcp");
    assert_str(x->headers[0].value, "Bearer t");
    assert_str(x->credential_service, "github");
    assert_str(x->credential_as, "header:Authorization");
    assert_int_equal(x->share, SHARE_ALL);
    assert_int_equal(x->handles, HANDLES_NEVER);
    assert_int_equal(x->audit, AUDIT_DIGEST);
    assert_int_equal(x->era, ERA_MODERN);
    assert_true(x->pin);
    assert_int_equal(x->timeout_ms, 5000);
    assert_null(config_server(config, STR("sample")));
    assert_str(config->listen, "[::1]:0");
    assert_str(config->tls_key, "k.pem");
    assert_str(config->trusted_proxies[1], "::1");
    assert_str(config->public_url, "https://mcp.example");
    assert_str(config->origins[0], "https://a.example");
    assert_true(config->client_id_required);
    assert_false(config->metrics);
    assert_int_equal(config->n_meta_carriers, 2);
    assert_str(config->meta_carriers[1].label, "meta:b.c");
    assert_str(config->header_carriers[0], "X-Conv");
    assert_false(config->cache_enabled);
    assert_int_equal(config->session_max_per_tenant, 7);
    assert_int_equal(config->session_default_ttl_ms, 3600000);
    assert_int_equal(config->session_idle_ms, 60000);
    assert_int_equal(config->cleanup_interval_ms, 10000);
    assert_int_equal(config->cleanup_batch, 5);
    assert_int_equal(config->n_tenants, 2);
    assert_int_equal(config->limit_body, 1 << 20);
    assert_int_equal(config->limit_audit_body, 8 << 10);
    done();
}

TEST(test_config_tenant__has_what_it_names_and_for_the_rest_what_all_have)
{
    accepted("{\"holdfast\": {\"session\": {\"limits\": {\"max_per_tenant\": 7, \"default_ttl\": "
             "\"1h\", \"idle_timeout\": \"1m\"}}, \"tenants\": {\"small\": {\"max_sessions\": 0}, "
             "\"off\": {\"sessions\": false}, \"brief\": {\"default_ttl\": \"5m\", "
             "\"idle_timeout\": \"5s\"}, \"plain\": {}}}}");
    static const struct {
        const char *name;
        int64_t most, ttl_ms, idle_ms;
        bool named, sessions;
    } rows[] = {
        {"small", 0, 3600000, 60000, true, true},    {"off", 7, 3600000, 60000, true, false},
        {"brief", 7, 300000, 5000, true, true},      {"plain", 7, 3600000, 60000, true, true},
        {"default", 7, 3600000, 60000, false, true}, {"smal", 7, 3600000, 60000, false, true},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        assert_int_equal(config_tenant(config, str_of(rows[i].name)) != NULL, rows[i].named);
        assert_int_equal(config_max_sessions(config, str_of(rows[i].name)), rows[i].most);
        assert_int_equal(config_default_ttl_ms(config, str_of(rows[i].name)), rows[i].ttl_ms);
        assert_int_equal(config_idle_ms(config, str_of(rows[i].name)), rows[i].idle_ms);
        assert_int_equal(config_has_sessions(config, str_of(rows[i].name)), rows[i].sessions);
    }
    done();
}

TEST(test_config__faults_name_their_place_and_the_way_out)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\n  \"holdfast\": { \"lisen\": \"x\" }\n}",
         "h.json:2:17: unknown key \"lisen\"; did you mean \"listen\"?"},
        {"{\"holdfast\": {\n\"session\": {\"limits\": {\"max_per_tenants\": 1}}}}",
         "h.json:2:24: unknown key \"max_per_tenants\"; did you mean \"max_per_tenant\"?"},
        {"{\"mcpServers\": {\"x\": {\"comand\": \"a\"}}}",
         "h.json:1:23: unknown key \"comand\"; did you mean \"command\"?"},
        {"{\"mcpserver\": {}}", "h.json:1:2: unknown key \"mcpserver\"; did you mean "
                                "\"mcpServers\"?"},
        {"{\"listen\": \"127.0.0.1:1\"}",
         "h.json:1:2: \"listen\" belongs inside \"holdfast\"; move it there"},
        {"[]", "h.json:1:1: a configuration is an object, not an array; put it in { }"},
        {"{\"holdfast\": 3}",
         "h.json:1:14: an object is expected here, not a number; put its members in { }"},
        {"{\"mcpServers\": []}",
         "h.json:1:16: the servers must be an object: { \"NAME\": { \"command\": … } }"},
        {"{\"mcpServers\": {}, \"servers\": {}}",
         "h.json:1:20: \"mcpServers\" and \"servers\" mean the same; keep one of them"},
        {"{\"mcpServers\": {\"x\": {}}}", "h.json:1:17: server \"x\" needs \"command\" or \"url\""},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"url\": \"http://h\"}}}",
         "h.json:1:17: server \"x\" needs \"command\" or \"url\", not both"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"ftp://h\"}}}",
         "h.json:1:30: \"url\" must begin with http:// or https://"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"http://u:p@h\"}}}",
         "h.json:1:30: \"url\" must not contain a user or password; send them as a header"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"http:///a\"}}}",
         "h.json:1:30: \"url\" names no host"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"http://a\", \"httpUrl\": \"http://b\"}}}",
         "h.json:1:53: \"httpUrl\" gives a second URL; keep one of them"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"http://h\", \"headers\": {\"A b\": \"c\"}}}}",
         "h.json:1:54: names in \"headers\" have 1 to 128 token characters, no blanks or colons; "
         "correct this one"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"http://h\", \"headers\": {\"A\": \"c\\r\\nB: "
         "d\"}}}}",
         "h.json:1:59: the value of the header A must not contain control characters or begin or "
         "end with a blank"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"http://h\", \"headers\": {\"A\": \"1\", \"a\": "
         "\"2\"}}}}",
         "h.json:1:64: this header is given twice; keep one of them"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"http://h\", \"headers\": {\"Host\": \"c\"}}}}",
         "h.json:1:54: the header Host is set by Holdfast itself; remove it"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"env\": {\"A=B\": \"c\"}}}}",
         "h.json:1:47: names in \"env\" must not be empty or contain = or NUL; choose another"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"env\": {\"A\": 1}}}}",
         "h.json:1:52: an entry of \"env\" must be a string, not a number"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"\"}}}",
         "h.json:1:34: \"command\" is empty; give it a value or leave it out"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\\u0000b\"}}}",
         "h.json:1:34: \"command\" must not contain a NUL byte"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"share\": \"each\"}}}",
         "h.json:1:48: \"share\" must be \"session\" or \"all\""},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"timeout\": \"5 apples\"}}}",
         "h.json:1:50: \"timeout\" must be a duration such as \"30s\", or a whole number: of "
         "seconds up to 3600, else of milliseconds; from 1 ms to 1 d"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"disabled\": 1}}}",
         "h.json:1:51: \"disabled\" must be true or false"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"credential\": {\"service\": \"g\"}}}}",
         "h.json:1:53: \"as\" is missing; add it"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"credential\": {\"service\": \"g\", "
         "\"as\": "
         "\"cookie:a\"}}}}",
         "h.json:1:76: \"as\" must be header:NAME, env:NAME or meta:KEY, such as "
         "\"header:Authorization\""},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\", \"share\": \"all\", \"credential\": "
         "{\"service\": \"g\", \"as\": \"env:G\"}}}}",
         "h.json:1:17: with \"share\": \"all\" every session would use the credential of the first "
         "one; use \"share\": \"session\", or meta:KEY"},
        {"{\"mcpServers\": {\"x\": {\"command\": \"a\"}, \"x\": {\"command\": \"b\"}}}",
         "h.json:1:40: this key occurs twice in one object; keep one of the two"},
        {"{\"holdfast\": {\"auth\": \"some\"}}",
         "h.json:1:23: \"auth\" must be \"none\" or \"required\""},
        {"{\"holdfast\": {\"tls\": {\"cert\": \"c\"}}}",
         "h.json:1:22: \"tls\" needs both \"cert\" and \"key\"; add the other"},
        {"{\"holdfast\": {\"tls\": {\"cert\": \"c\", \"key\": \"\"}}}",
         "h.json:1:43: \"key\" is empty; name a file"},
        {"{\"mcpServers\": {\"x\": {\"url\": \"https://h\", \"tls\": {\"verify\": false}}}}",
         "h.json:1:51: unknown key \"verify\"; the keys here are ca"},
        {"{\"holdfast\": {\"origins\": [\"https://a/b\"]}}",
         "h.json:1:27: \"origins\" takes origins such as \"https://example.com\" or "
         "\"http://localhost:3000\", with no path and no *"},
        {"{\"holdfast\": {\"trusted_proxies\": [\"10.0.0.0/33\"]}}",
         "h.json:1:35: \"trusted_proxies\" takes addresses such as \"10.0.0.1\" and networks such "
         "as \"10.0.0.0/8\""},
        {"{\"holdfast\": {\"carriers\": {\"meta\": [\"a.b\", [\"a\", \"b\"]]}}}",
         "h.json:1:44: this key is given twice; keep one of them"},
        {"{\"holdfast\": {\"carriers\": {\"meta\": [[]]}}}",
         "h.json:1:37: a path into _meta needs at least one key"},
        {"{\"holdfast\": {\"carriers\": {\"meta\": [\"\"]}}}",
         "h.json:1:37: a key of _meta has 1 to 128 bytes; correct this one"},
        {"{\"holdfast\": {\"carriers\": {\"headers\": [\"authorization\"]}}}",
         "h.json:1:40: the header authorization has a meaning of its own and cannot name a "
         "session; "
         "remove it"},
        {"{\"holdfast\": {\"docs\": {\"Lens\": {\"agent\": \"read\"}}}}",
         "h.json:1:32: \"path\" is missing; add it"},
        {"{\"holdfast\": {\"tenants\": {\"a b\": {}}}}",
         "h.json:1:27: names in \"tenants\" have 1 to 64 letters, digits and . _ -; choose "
         "another"},
        {"{\"holdfast\": {\"limits\": {\"body\": \"4 MiB\"}}}",
         "h.json:1:34: \"body\" must be a size such as \"4MiB\", or a number of bytes, from 1 KiB "
         "to 64 MiB"},
    };

    for (size_t i = 0; i < countof(cases); i++)
        refused(cases[i].text, cases[i].message);
    done();
}

/* A server with a url whose credential has this place, and beside it `more`. */
static const char *with_credential(const char *kind, const char *as, const char *more)
{
    static char text[1024];

    snprintf(
        text, sizeof(text),
        "{\"mcpServers\": {\"x\": {%s, \"credential\": {\"service\": \"g\", \"as\": \"%s\"%s}}}}",
        kind, as, more);
    return text;
}

static void is_refused_place(const char *kind, const char *as, const char *more, const char *words)
{
    assert_false(parse(with_credential(kind, as, more)));
    if (!strstr(err.text, words))
        fail_msg("%s%s: %s", as, more, err.text);
}

TEST(test_config_credential__never_goes_where_it_would_change_what_the_request_means)
{
    static const char *const headers[] = {
        "Transfer-Encoding",
        "content-length",
        "Host",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Proxy-Connection",
        "Cookie",
        "Set-Cookie",
        "Accept",
        "Content-Type",
        "Last-Event-ID",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
        "mcp-anything",
        "Proxy-Authorization",
        "Content-Encoding",
    };
    static const char *const variables[] = {
        "PATH",     "LD_PRELOAD", "ld_library_path",      "NODE_OPTIONS", "PYTHONPATH",
        "BASH_ENV", "HOME",       "DYLD_INSERT_LIBRARIES"};
    static const char *const members[] = {"progressToken", "io.modelcontextprotocol/related-task",
                                          "holdfast/session"};
    char as[128], list[128];

    for (size_t i = 0; i < countof(headers); i++) {
        snprintf(as, sizeof(as), "header:%s", headers[i]);
        snprintf(list, sizeof(list), ", \"key_names\": [\"X-Fine\", \"%s\"]", headers[i]);
        is_refused_place("\"url\": \"http://h/\"", as, "", headers[i]);
        is_refused_place("\"url\": \"http://h/\"", "header:X-Key", list, headers[i]);
    }
    for (size_t i = 0; i < countof(variables); i++) {
        snprintf(as, sizeof(as), "env:%s", variables[i]);
        is_refused_place("\"command\": \"a\"", as, "", "loads or runs");
    }
    for (size_t i = 0; i < countof(members); i++) {
        snprintf(as, sizeof(as), "meta:%s", members[i]);
        is_refused_place("\"command\": \"a\"", as, "", "belongs to MCP or Holdfast");
    }
}

TEST(test_config_credential__key_names_are_headers_the_operator_did_not_set)
{
    is_refused_place("\"url\": \"http://h/\", \"headers\": {\"X-Tenant\": \"t\"}", "header:X-Key",
                     ", \"key_names\": [\"x-tenant\"]", "remove it from one of them");
    is_refused_place("\"command\": \"a\"", "env:KEY", ", \"key_names\": [\"X-Key\"]",
                     "only beside");
    is_refused_place("\"url\": \"http://h/\"", "header:X-Key", ", \"key_names\": [\"a b\"]",
                     "names of headers");
    accepted(with_credential("\"url\": \"http://h/\", \"headers\": {\"Authorization\": \"t\"}",
                             "header:Authorization", ", \"key_names\": [\"X-Api-Key\", \"X-B\"]"));
    const struct server_config *x = config_server(config, STR("x"));
    assert_int_equal(x->n_key_names, 2);
    assert_str(x->key_names[0], "X-Api-Key");
    done();
}

TEST(test_config_credential__takes_sixteen_key_names_and_not_one_more)
{
    struct buf list;

    buf_init(&list, 1000);
    buf_addz(&list, ", \"key_names\": [\"X-0\"");
    for (int i = 1; i < 16; i++)
        buf_addf(&list, ", \"X-%d\"", i);
    buf_addz(&list, "]");
    accepted(with_credential("\"url\": \"http://h/\"", "header:X-Key", list.p));
    assert_int_equal(config_server(config, STR("x"))->n_key_names, 16);
    done();
    list.n--;
    buf_addz(&list, ", \"X-16\"]");
    is_refused_place("\"url\": \"http://h/\"", "header:X-Key", list.p, "at most 16");
    buf_release(&list);
}

TEST(test_config__what_others_can_reach_needs_credentials_and_a_private_line)
{
    static const char *const good[] = {"127.0.0.1:0", "127.9.9.9:65535", "localhost:4653",
                                       "[::1]:4653"};
    static const char *const foreign[] = {"0.0.0.0:4653", "192.168.1.2:80", "[::]:80",
                                          "[2001:db8::1]:80"};
    static const char *const malformed[] = {
        "4653",    ":4653",      "127.0.0.1",      "127.0.0.1:65536", "::1:80", "[::1]",
        "[::1]80", "127.0.0.1:", "[127.0.0.1]:80", "[::1:80",         ""};
    char text[192], message[256];

    for (size_t i = 0; i < countof(good); i++) {
        snprintf(text, sizeof(text), "{\"holdfast\": {\"listen\": \"%s\"}}", good[i]);
        accepted(text);
        assert_str(config->listen, good[i]);
    }
    for (size_t i = 0; i < countof(foreign); i++) {
        snprintf(text, sizeof(text), "{\"holdfast\": {\"listen\": \"%s\"}}", foreign[i]);
        snprintf(message, sizeof(message),
                 "h.json:1:25: \"listen\" is %s, which others can reach: that needs \"auth\": "
                 "\"required\" and a key from `holdfast key create`; or listen on 127.0.0.1",
                 foreign[i]);
        refused(text, message);
        snprintf(text, sizeof(text), "{\"holdfast\": {\"listen\": \"%s\", \"auth\": \"required\"}}",
                 foreign[i]);
        snprintf(message, sizeof(message),
                 "h.json:1:25: \"listen\" is %s, which others can reach: that needs \"tls\" with a "
                 "certificate, or \"trusted_proxies\" with the proxy that has one",
                 foreign[i]);
        refused(text, message);
        snprintf(text, sizeof(text),
                 "{\"holdfast\": {\"listen\": \"%s\", \"auth\": \"required\", "
                 "\"trusted_proxies\": [\"10.0.0.1\"]}}",
                 foreign[i]);
        accepted(text);
        assert_false(config->listens_on_loopback);
        snprintf(text, sizeof(text),
                 "{\"holdfast\": {\"listen\": \"%s\", \"auth\": \"required\", "
                 "\"tls\": {\"cert\": \"c\", \"key\": \"k\"}}}",
                 foreign[i]);
        accepted(text);
    }
    snprintf(message, sizeof(message), "%s",
             "h.json:1:25: \"listen\": the address to listen on must be written HOST:PORT, such as "
             "127.0.0.1:4653 or [::1]:4653");
    for (size_t i = 0; i < countof(malformed); i++) {
        snprintf(text, sizeof(text), "{\"holdfast\": {\"listen\": \"%s\"}}", malformed[i]);
        refused(text, message);
    }
    refused("{\"holdfast\": {\"listen\": \"example.com:80\"}}",
            "h.json:1:25: \"listen\": the address to listen on must be a number such as 127.0.0.1, "
            "or localhost, not another name");
    done();
}

TEST(test_config__the_flag_wins_over_the_file_and_is_checked_too)
{
    struct config_source source = {.listen = STR("127.0.0.1:9")};
    struct str text = STR("{\"holdfast\": {\"listen\": \"127.0.0.1:8\"}}");

    assert_true(config_parse(text, STR("h.json"), &source, &config, &err));
    assert_str(config->listen, "127.0.0.1:9");
    done();
    source.listen = STR("0.0.0.0:9");
    assert_false(config_parse(text, STR("h.json"), &source, &config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "\"listen\" is 0.0.0.0:9, which others can reach"));
}

TEST(test_config__server_names_differ_by_more_than_case)
{
    struct str text = STR("{\"mcpServers\":{\"files\":{\"command\":\"a\"},"
                          "\"Files\":{\"command\":\"b\"}}}");
    struct config_source source = {.file = STR_NONE};

    assert_false(config_parse(text, STR("h.json"), &source, &config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "differs from \"files\" by case alone"));
}

TEST(test_config__server_names_become_path_segments_and_prefixes)
{
    static const char *const good[] = {"a", "A-b.c_d", "_x", "docs2", "9"};
    static const struct {
        const char *name, *complaint;
    } bad[] = {
        {"a__b", "must not contain __ or end with _, because __ separates it from the tool's name"},
        {"a_", "must not contain __ or end with _, because __ separates it from the tool's name"},
        {"", "must have 1 to 64 letters, digits and . _ -"},
        {"a b", "must have 1 to 64 letters, digits and . _ -"},
        {"a/b", "must have 1 to 64 letters, digits and . _ -"},
        {"..", "has a special meaning in a URL"},
        {"p", "is reserved"},
        {"k", "is reserved"},
        {"messages", "is reserved"},
        {"docs", "is reserved"},
        {"session", "is reserved"},
        {"sample", "is reserved"},
        {"server-card", "is reserved"},
    };
    char text[256], message[256];

    for (size_t i = 0; i < countof(good); i++) {
        snprintf(text, sizeof(text), "{\"mcpServers\": {\"%s\": {\"command\": \"c\"}}}", good[i]);
        accepted(text);
        assert_str(config->servers[0].name, good[i]);
    }
    for (size_t i = 0; i < countof(bad); i++) {
        snprintf(text, sizeof(text), "{\"mcpServers\": {\"%s\": {\"command\": \"c\"}}}",
                 bad[i].name);
        snprintf(message, sizeof(message), "h.json:1:17: the server name \"%s\" %s; choose another",
                 bad[i].name, bad[i].complaint);
        refused(text, message);
    }
    snprintf(text, sizeof(text), "{\"mcpServers\": {\"%064d\": {\"command\": \"c\"}}}", 0);
    accepted(text);
    snprintf(text, sizeof(text), "{\"mcpServers\": {\"%065d\": {\"command\": \"c\"}}}", 0);
    assert_false(parse(text));
    done();
}

TEST(test_config__keys_of_other_clients_are_accepted_and_named_once)
{
    accepted("{\"$schema\": \"x\", \"inputs\": [], \"servers\": {"
             "\"a\": {\"type\": \"stdio\", \"command\": \"c\", \"autoApprove\": [], \"trust\": 1},"
             "\"b\": {\"transport\": \"sse\", \"httpUrl\": \"http://h\", \"autoApprove\": true},"
             "\"c\": {\"type\": \"http\", \"command\": \"c\", \"env\": null},"
             "\"d\": {\"url\": \"http://h\", \"env\": {\"A\": \"b\"}, \"enabled\": true},"
             "\"e\": {\"enabled\": false, \"command\": \"${NOT_SET_AT_ALL}\"}}}");
    assert_int_equal(config->n_servers, 4);
    assert_true(has_note("the top-level key \"$schema\" has no effect here"));
    assert_false(has_note("the top-level key \"inputs\" has no effect here"));
    assert_true(has_note("\"autoApprove\" of servers a, b is a key of other clients and has no "
                         "effect here"));
    assert_true(has_note("\"trust\" of server a is a key of other clients and has no effect "
                         "here"));
    assert_true(has_note("the type of server c is not what its \"command\" says; the type has no "
                         "effect"));
    assert_true(has_note("\"env\" of server d has no effect beside \"url\""));
    assert_true(has_note("server e is disabled and is left out"));
    assert_int_equal(config->n_notes, 6);
    done();
}

TEST(test_config__many_servers_with_one_key_make_one_short_note)
{
    accepted(
        "{\"mcpServers\": {\"a\": {\"command\": \"c\", \"icon\": 1},"
        "\"b\": {\"command\": \"c\", \"icon\": 1}, \"c\": {\"command\": \"c\", \"icon\": 1},"
        "\"d\": {\"command\": \"c\", \"icon\": 1}, \"e\": {\"command\": \"c\", \"icon\": 1},"
        "\"f\": {\"command\": \"c\", \"icon\": 1}, \"g\": {\"command\": \"c\", \"icon\": 1}}}");
    assert_int_equal(config->n_notes, 1);
    assert_true(has_note("\"icon\" of servers a, b, c, d, e and 2 more is a key of other clients "
                         "and has no effect here"));
    done();
}

TEST(test_config__tls_of_a_server_is_kept_and_noted_where_it_does_nothing)
{
    accepted("{\"mcpServers\": {\"a\": {\"url\": \"https://h\", \"tls\": {\"ca\": \"/ca.pem\"}},"
             "\"b\": {\"url\": \"http://h\", \"tls\": {\"ca\": \"/ca.pem\"}},"
             "\"c\": {\"command\": \"c\", \"tls\": {\"ca\": \"/ca.pem\"}},"
             "\"d\": {\"url\": \"https://h\", \"tls\": {}}}}");
    assert_str(config_server(config, STR("a"))->tls_ca, "/ca.pem");
    assert_null(config_server(config, STR("d"))->tls_ca.p);
    assert_true(has_note("\"tls\" of server b has no effect: its \"url\" is not https://"));
    assert_true(has_note("\"tls\" of server c has no effect beside \"command\""));
    assert_int_equal(config->n_notes, 2);
    done();
}

TEST(test_config__features_to_come_are_noted_never_silent)
{
    accepted("{\"holdfast\": {\"session\": {\"cache\": {}}}}");
    assert_true(has_note("\"holdfast.session.cache\" is accepted but not used yet"));
    assert_int_equal(config->n_notes, 1);
    done();
}

TEST(test_config__folders_are_sorted_and_bring_the_docs_server)
{
    accepted("{\"holdfast\": {\"docs\": {\"b\": {\"path\": \"/b\", \"agent\": \"write\"},"
             "\"A\": {\"path\": \"/a\", \"tenants\": [\"t\"]}}}}");
    assert_int_equal(config->n_folders, 2);
    assert_str(config->folders[0].name, "A");
    assert_int_equal(config->folders[0].agent, AGENT_SUGGEST);
    assert_str(config->folders[0].tenants[0], "t");
    assert_int_equal(config->folders[1].agent, AGENT_WRITE);
    assert_non_null(config_server(config, STR("docs")));
    done();
    accepted("{\"holdfast\": {\"docs\": {}}}");
    assert_null(config_server(config, STR("docs")));
    done();
}

static void refused_folder(const char *docs, const char *words)
{
    char text[256];

    snprintf(text, sizeof(text), "{\"holdfast\": {\"docs\": {%s}}}", docs);
    assert_false(parse(text));
    if (!strstr(err.text, words))
        fail_msg("%s: %s", docs, err.text);
}

TEST(test_config__a_folder_needs_a_path_and_a_name_that_stands_in_paths)
{
    refused_folder("\"A\": {}", "path");
    refused_folder("\"A\": {\"path\": \"\"}", "empty");
    refused_folder("\"a/b\": {\"path\": \"/a\"}", "names in");
    refused_folder("\".a\": {\"path\": \"/a\"}", "a dot");
    refused_folder("\"A\": {\"path\": \"/a\", \"agent\": \"x\"}", "agent");
}

TEST(test_config__profiles_are_sorted_and_find_their_toolsets)
{
    accepted("{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"holdfast\": {"
             "\"profiles\": {\"z\": {}, \"b\": {\"servers\": [\"a\", \"session\"], \"toolsets\": "
             "[\"w\", \"r\"], \"client_id\": \"required\"}},"
             "\"toolsets\": {\"w\": {\"tools\": [\"a__w*\"]}, \"r\": {\"name\": \"R\", \"tools\": "
             "[\"a__r\"]}}}}");
    const struct profile_config *b = config_profile(config, STR("b"));
    assert_ptr_equal(b, &config->profiles[0]);
    assert_ptr_equal(config_profile(config, STR("z")), &config->profiles[1]);
    assert_null(config_profile(config, STR("c")));
    assert_int_equal(b->mode, PROFILE_ALL);
    assert_true(b->client_id_required);
    assert_int_equal(b->n_servers, 2);
    assert_str(b->toolsets[0]->key, "w");
    assert_str(b->toolsets[0]->tools[0], "a__w*");
    assert_str(b->toolsets[1]->name, "R");
    assert_int_equal(config->n_notes, 0);
    done();
}

TEST(test_config__a_profile_with_a_server_that_is_not_there_is_noted_a_toolset_refused)
{
    accepted("{\"holdfast\": {\"profiles\": {\"p\": {\"servers\": [\"gone\"]}}}}");
    assert_true(has_note("h.json:1:46: profile \"p\" names the server \"gone\", which is not "
                         "configured"));
    done();
    assert_false(parse("{\"holdfast\": {\"profiles\": {\"p\": {\"toolsets\": [\"t\"]}}}}"));
    assert_non_null(strstr(err.text, "profile \"p\" names the toolset \"t\""));
    assert_false(parse("{\"holdfast\": {\"profiles\": {\"a/b\": {}}}}"));
    assert_non_null(strstr(err.text, "names in \"profiles\""));
    assert_false(parse("{\"holdfast\": {\"profiles\": []}}"));
    assert_non_null(strstr(err.text, "an object of named objects"));
}

TEST(test_config__a_dynamic_profile_needs_toolsets_and_a_policy_names_its_own)
{
    static const struct {
        const char *profile, *words;
    } rows[] = {
        {"\"mode\": \"dynamic\"", "has no \"toolsets\" to enable"},
        {"\"permissions\": \"proxy\"", "takes permissions from a proxy"},
        {"\"toolsets\": [\"t\"], \"policy\": {\"allow\": [\"u\"]}", "\"policy.allow\" of profile"},
        {"\"toolsets\": [\"t\"], \"policy\": {\"deny\": [\"u\"]}", "\"policy.deny\" of profile"},
        {"\"toolsets\": [\"t\"], \"clients\": {\"c\": {\"toolsets\": [\"u\"]}}", "\"clients\" of"},
        {"\"clients\": {\"\": {\"toolsets\": []}}", "1 to 255 bytes"},
        {"\"clients\": {\"c\": {}}", "toolsets"},
        {"\"policy\": {\"max_active\": 65}", "max_active"},
        {"\"policy\": {\"max_active\": -1}", "max_active"},
        {"\"audit\": \"none\"", "\"audit\" must be"},
        {"\"audit_body\": 2048", "needs \"audit\": \"full\""},
        {"\"audit\": \"full\", \"audit_body\": 1023", "1024 bytes at least"},
        {"\"audit\": \"full\", \"audit_body\": 1048577", "audit_body"},
    };
    char text[512];

    for (size_t i = 0; i < countof(rows); i++) {
        snprintf(text, sizeof(text),
                 "{\"holdfast\": {\"toolsets\": {\"t\": {\"tools\": []}, \"u\": {\"tools\": []}}, "
                 "\"profiles\": {\"p\": {%s}}}}",
                 rows[i].profile);
        assert_false(parse(text));
        if (!strstr(err.text, rows[i].words))
            fail_msg("%s: %s", rows[i].profile, err.text);
    }
    accepted(
        "{\"holdfast\": {\"toolsets\": {\"t\": {\"tools\": []}}, \"profiles\": {\"p\": {\"mode\": "
        "\"dynamic\", \"toolsets\": [\"t\"], \"policy\": {\"max_active\": 64, \"allow\": [\"t\"]}, "
        "\"clients\": {\"Ann's IDE\": {\"toolsets\": [\"t\"]}}}}}}");
    assert_int_equal(config->profiles[0].max_active, 64);
    assert_str(config->profiles[0].clients[0].id, "Ann's IDE");
    assert_false(config->profiles[0].audit_full);
    done();
    accepted(
        "{\"holdfast\": {\"profiles\": {\"p\": {\"audit\": \"full\", \"audit_body\": \"1MiB\"}, "
        "\"q\": {\"audit\": \"full\", \"audit_body\": 1024}}}}");
    assert_true(config->profiles[0].audit_full);
    assert_int_equal(config->profiles[0].audit_body, 1 << 20);
    done();
}

/* Two servers, and on the third line what is tested; ' stands for ". */
static const char *profile_text(const char *tested, bool with_look)
{
    static char text[512];

    snprintf(text, sizeof(text),
             "{'mcpServers': {'files': {'command': 'x'}, 'mail': {'command': 'x'}},\n"
             "'holdfast': {\n%s%s}}",
             tested, with_look ? ", 'toolsets': {'look': {'tools': ['files__a']}}" : "");
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    return text;
}

static const char *quoted(const char *sentence)
{
    static char text[512];

    snprintf(text, sizeof(text), "h.json:3:%s", sentence);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    return text;
}

TEST(test_config__what_a_profile_names_in_vain_is_refused_with_its_place)
{
    static const char *const rows[][2] = {
        {"'profiles': {'p': {'toolsets': ['look', 'lok']}}",
         "41: profile 'p' names the toolset 'lok', which 'holdfast.toolsets' does not have; did "
         "you "
         "mean 'look'?"},
        {"'profiles': {'p': {'toolsets': ['look', 'look']}}",
         "41: profile 'p' names the toolset 'look' twice; take one out"},
        {"'profiles': {'p': {'mode': 'dynamic'}}",
         "19: profile 'p' is dynamic and has no 'toolsets' to enable; name some"},
        {"'profiles': {'p': {'toolsets': ['look'], 'policy': {'deny': ['lock']}}}",
         "62: 'policy.deny' of profile 'p' names the toolset 'lock', which is not among its "
         "'toolsets'; did you mean 'look'?"},
        {"'profiles': {'p': {'toolsets': ['look'], 'clients': {'a b': {'toolsets': ['x']}}}}",
         "75: 'clients' of profile 'p' names the toolset 'x', which is not among its 'toolsets'; "
         "add "
         "it there"},
    };

    for (size_t i = 0; i < countof(rows); i++)
        refused(profile_text(rows[i][0], true), quoted(rows[i][1]));
}

TEST(test_config__what_has_no_effect_in_a_profile_or_another_than_it_seems_is_noted)
{
    static const char *const rows[][2] = {
        {"'profiles': {'p': {'servers': ['flies']}}",
         "32: profile 'p' names the server 'flies', which is not configured; did you mean "
         "'files'?"},
        {"'profiles': {'p': {'servers': []}}",
         "31: 'servers' of profile 'p' is empty, which means all servers; name some, or leave it "
         "out"},
        {"'profiles': {'p': {'toolsets': []}}",
         "32: 'toolsets' of profile 'p' is empty, which means every tool; name some, or leave it "
         "out"},
        {"'profiles': {'p': {'toolsets': ['look'], 'policy': {'allow': []}}}",
         "62: 'policy.allow' of profile 'p' is empty, which means all toolsets; name some, or "
         "leave "
         "it out"},
        {"'profiles': {'p': {'servers': ['mail'], 'toolsets': ['look']}}",
         "54: no tool of toolset 'look' belongs to a server of profile 'p'"},
        {"'profiles': {'p': {'toolsets': ['look'], 'permissions': 'proxy'}}",
         "57: profile 'p' takes permissions from a proxy, but 'trusted_proxies' is empty, so no "
         "client gets its tools; name the proxy there"},
        {"'toolsets': {'t': {'tools': ['files__a', 'flies__*']}}",
         "42: 'flies__*' of toolset 't' matches no configured server; did you mean 'files__*'?"},
        {"'toolsets': {'t': {'tools': ['files:read']}}",
         "30: 'files:read' of toolset 't' matches no configured server; tools are named "
         "server__tool"},
        {"'toolsets': {'t': {'tools': []}}", "29: toolset 't' has no tools"},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        accepted(profile_text(rows[i][0], rows[i][0][1] == 'p'));
        assert_true(has_note(quoted(rows[i][1])));
        assert_int_equal(config->n_notes, 1);
        done();
    }
    accepted(
        profile_text("'toolsets': {'t': {'tools': ['*', 'ses*', 'session__x', '*__a']}}", false));
    assert_int_equal(config->n_notes, 0);
    done();
}

static bool parse_profile_with_toolsets(unsigned n)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_addz(&text, "{\"holdfast\": {\"toolsets\": {");
    for (unsigned i = 0; i < n; i++)
        buf_addf(&text, "%s\"t%u\": {\"tools\": []}", i ? "," : "", i);
    buf_addz(&text, "}, \"profiles\": {\"p\": {\"toolsets\": [");
    for (unsigned i = 0; i < n; i++)
        buf_addf(&text, "%s\"t%u\"", i ? "," : "", i);
    buf_addz(&text, "]}}}}");
    bool ok = parse(text.p);
    buf_release(&text);
    return ok;
}

TEST(test_config__a_profile_has_at_most_64_toolsets)
{
    assert_true(parse_profile_with_toolsets(64));
    done();
    assert_false(parse_profile_with_toolsets(65));
}

TEST(test_config__bounds_hold_at_the_limit_and_not_past_it)
{
    static const struct {
        const char *path;
        const char *good[2], *bad[2];
    } cases[] = {
        {"{\"holdfast\":{\"session\":{\"limits\":{\"max_per_tenant\":%s}}}}",
         {"1", "10000000"},
         {"0", "10000001"}},
        {"{\"holdfast\":{\"session\":{\"limits\":{\"default_ttl\":%s}}}}",
         {"1", "\"30d\""},
         {"\"999ms\"", "\"30d1ms\""}},
        {"{\"holdfast\":{\"session\":{\"limits\":{\"idle_timeout\":%s}}}}",
         {"1", "\"30d\""},
         {"\"999ms\"", "\"30d1ms\""}},
        {"{\"holdfast\":{\"session\":{\"cleanup\":{\"interval\":%s}}}}",
         {"\"100ms\"", "\"24h\""},
         {"\"99ms\"", "\"24h1ms\""}},
        {"{\"holdfast\":{\"session\":{\"cleanup\":{\"batch_size\":%s}}}}",
         {"1", "10000"},
         {"0", "10001"}},
        {"{\"holdfast\":{\"session\":{\"cache\":{\"ttl\":%s}}}}",
         {"1", "\"1d\""},
         {"0", "\"1d1ms\""}},
        {"{\"holdfast\":{\"tenants\":{\"t\":{\"max_sessions\":%s}}}}",
         {"0", "10000000"},
         {"-1", "10000001"}},
        {"{\"holdfast\":{\"tenants\":{\"t\":{\"default_ttl\":%s}}}}",
         {"1", "\"30d\""},
         {"0", "\"30d1ms\""}},
        {"{\"holdfast\":{\"tenants\":{\"t\":{\"idle_timeout\":%s}}}}",
         {"1", "\"30d\""},
         {"0", "\"30d1ms\""}},
        {"{\"holdfast\":{\"limits\":{\"body\":%s}}}", {"1024", "\"64MiB\""}, {"1023", "67108865"}},
        {"{\"holdfast\":{\"limits\":{\"audit_body\":%s}}}",
         {"\"1KiB\"", "\"1MiB\""},
         {"1023", "1048577"}},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"timeout\":%s}}}",
         {"\"1ms\"", "86400000"},
         {"0", "86400001"}},
    };
    char text[256];

    for (size_t i = 0; i < countof(cases); i++)
        for (size_t j = 0; j < 2; j++) {
            snprintf(text, sizeof(text), cases[i].path, cases[i].good[j]);
            accepted(text);
            snprintf(text, sizeof(text), cases[i].path, cases[i].bad[j]);
            assert_false(parse(text));
            assert_non_null(strstr(err.text, "must be"));
        }
    done();
}

/* prefix, then n times item with commas between, then suffix; item may hold one %zu. */
static char *repeated(const char *prefix, const char *item, size_t n, const char *suffix)
{
    size_t room = strlen(prefix) + strlen(suffix) + n * (strlen(item) + 24) + 1, at;
    char *text = malloc(room);

    at = (size_t)snprintf(text, room, "%s", prefix);
    for (size_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, room - at, "%s", i ? "," : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        at += (size_t)snprintf(text + at, room - at, item, i);
#pragma GCC diagnostic pop
    }
    snprintf(text + at, room - at, "%s", suffix);
    return text;
}

TEST(test_config__lists_have_a_most)
{
    static const struct {
        const char *prefix, *item, *suffix;
        size_t most;
    } cases[] = {
        {"{\"mcpServers\":{", "\"s%zu\":{\"command\":\"c\"}", "}}", 1000},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"args\":[", "\"a%zu\"", "]}}}", 1000},
        {"{\"mcpServers\":{\"x\":{\"command\":\"c\",\"env\":{", "\"a%zu\":\"\"", "}}}}", 256},
        {"{\"mcpServers\":{\"x\":{\"url\":\"http://h\",\"headers\":{", "\"a%zu\":\"\"", "}}}}",
         256},
        {"{\"holdfast\":{\"origins\":[", "\"https://h%zu\"", "]}}", 1000},
        {"{\"holdfast\":{\"tenants\":{", "\"t%zu\":{}", "}}}", 5000},
        {"{\"holdfast\":{\"carriers\":{\"meta\":[", "\"k%zu\"", "]}}}", 16},
        {"{\"holdfast\":{\"carriers\":{\"headers\":[", "\"k%zu\"", "]}}}", 16},
        {"{\"holdfast\":{\"carriers\":{\"meta\":[[", "\"k%zu\"", "]]}}}", 4},
    };

    for (size_t i = 0; i < countof(cases); i++) {
        char *text = repeated(cases[i].prefix, cases[i].item, cases[i].most, cases[i].suffix);
        accepted(text);
        free(text);
        text = repeated(cases[i].prefix, cases[i].item, cases[i].most + 1, cases[i].suffix);
        assert_false(parse(text));
        assert_non_null(strstr(err.text, "at most"));
        free(text);
    }
    done();
}

TEST(test_config__a_text_has_a_most)
{
    size_t most = 1 << 20;
    char *text = malloc(most + 1);

    memset(text, ' ', most + 1);
    memcpy(text, "{}", 2);
    assert_true(config_parse(str_n(text, most), STR("h.json"), NULL, &config, &err));
    done();
    assert_false(config_parse(str_n(text, most + 1), STR("h.json"), NULL, &config, &err));
    assert_string_equal(err.text, "h.json is larger than 1 MiB; shorten it");
    free(text);
}

TEST(test_config__an_exchange_keeps_the_configuration_it_began_with)
{
    struct config *kept;

    accepted("{}");
    kept = config_ref(config);
    config_unref(config);
    config = NULL;
    assert_str(kept->listen, "127.0.0.1:4653");
    config_unref(kept);
    config_unref(NULL);
}

static void check_timeout(const char *written, int64_t ms, const char *note)
{
    char text[160];

    snprintf(text, sizeof(text), "{\"servers\":{\"x\":{\"command\":\"c\",%s}}}", written);
    accepted(text);
    assert_int_equal(config->servers[0].timeout_ms, ms);
    assert_int_equal(config->n_notes, note ? 1 : 0);
    if (note)
        assert_true(has_note(note));
}

TEST(test_config__timeouts_are_read_as_each_client_means_them)
{
    check_timeout("\"icon\":null", 60000, NULL);
    check_timeout("\"timeout\":30", 30000, NULL);
    check_timeout("\"timeout\":\"30\"", 30000, NULL);
    check_timeout("\"timeout\":999", 999000, NULL);
    check_timeout("\"timeout\":1000", 1000000,
                  "h.json:1:42: \"timeout\" of server x is 1000 seconds, 1000s; write \"1000s\" to "
                  "have it exact");
    check_timeout("\"timeout\":3600", 3600000,
                  "h.json:1:42: \"timeout\" of server x is 3600 seconds, 1h; write \"1h\" to have "
                  "it exact");
    check_timeout("\"timeout\":3601", 3601,
                  "h.json:1:42: \"timeout\" of server x is 3601 milliseconds, 3601ms; write "
                  "\"3601ms\" to have it exact");
    check_timeout("\"timeout\":60000", 60000,
                  "h.json:1:42: \"timeout\" of server x is 60000 milliseconds, 1m; write \"1m\" to "
                  "have it exact");
    check_timeout("\"timeout\":\"60000s\"", 60000000, NULL);
    check_timeout("\"timeout\":\"1500ms\"", 1500, NULL);
    check_timeout("\"tool_timeout_sec\":4000", 4000000, NULL);
    check_timeout("\"tool_timeout_sec\":0.5", 500, NULL);
    refused("{\"servers\":{\"x\":{\"command\":\"c\",\"timeout\":1,\"tool_timeout_sec\":1}}}",
            "h.json:1:63: \"tool_timeout_sec\" gives a second timeout; keep one of them");
    refused("{\"servers\":{\"x\":{\"command\":\"c\",\"tool_timeout_sec\":-1}}}",
            "h.json:1:51: \"tool_timeout_sec\" must be from 1 ms to 1 d");
    done();
}

TEST(test_config__other_formats_are_named)
{
    static const char toml[] = ":1:2: this is TOML, and Holdfast reads JSON";
    static const char yaml[] = ": this is YAML, and Holdfast reads JSON";
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"[mcp_servers.files]\ncommand = \"npx\"\n", toml},
        {"# mine\nmodel = \"x\"\n", ": this is TOML"},
        {"[[servers]]\n", ": this is TOML"},
        {"mcpServers:\n  files:\n    command: npx\n", yaml},
        {"---\nmcpServers: {}\n", yaml},
        {"{\xe2\x80\x9cmcpServers\xe2\x80\x9d: {}}", "h.json:1:2: this is a typographic quote"},
        {"{\"mcpServers\": {\"a\": {\"command\": \xe2\x80\x98"
         "c\xe2\x80\x99}}}",
         "h.json:1:34: this is a typographic quote"},
    };
    static const char *const others[] = {"{\"a\" 1}", "[\"a\", }", "nonsense", "", "\"a\": 1"};

    for (size_t i = 0; i < countof(cases); i++) {
        assert_false(parse(cases[i].text));
        if (!strstr(err.text, cases[i].words))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    for (size_t i = 0; i < countof(others); i++)
        if (parse(others[i]) || strstr(err.text, "TOML") || strstr(err.text, "YAML"))
            fail_msg("%s: %s", others[i], err.text);
    accepted("\xef\xbb\xbf{\"servers\":{\"x\":{\"command\":\"c\"}}}");
    assert_int_equal(config->n_servers, 1);
    done();
}

TEST(test_config__lists_of_tools_have_many_names)
{
    static const char *const only[] = {"enabledTools", "enabled_tools", "includeTools", "tools"};
    static const char *const without[] = {"disabledTools", "disabled_tools", "excludeTools"};
    char text[200];

    for (size_t i = 0; i < countof(only); i++) {
        snprintf(text, sizeof(text),
                 "{\"servers\":{\"x\":{\"command\":\"c\",\"%s\":[\"read*\",\"a\"]}}}", only[i]);
        accepted(text);
        assert_true(config_shows_tool(&config->servers[0], STR("read_file")));
        assert_true(config_shows_tool(&config->servers[0], STR("a")));
        assert_false(config_shows_tool(&config->servers[0], STR("ab")));
        snprintf(text, sizeof(text), "{\"servers\":{\"x\":{\"command\":\"c\",\"%s\":[]}}}",
                 only[i]);
        assert_false(parse(text));
        assert_non_null(strstr(err.text, "is empty and would leave no tool"));
    }
    for (size_t i = 0; i < countof(without); i++) {
        snprintf(text, sizeof(text),
                 "{\"servers\":{\"x\":{\"command\":\"c\",\"%s\":[\"write*\"],"
                 "\"includeTools\":[\"*_file\"]}}}",
                 without[i]);
        accepted(text);
        assert_true(config_limits_tools(&config->servers[0]));
        assert_true(config_shows_tool(&config->servers[0], STR("read_file")));
        assert_false(config_shows_tool(&config->servers[0], STR("write_file")));
        assert_false(config_shows_tool(&config->servers[0], STR("read")));
    }
    assert_false(parse("{\"servers\":{\"x\":{\"command\":\"c\",\"excludeTools\":[\"a\"],"
                       "\"disabledTools\":[\"b\"]}}}"));
    assert_non_null(strstr(err.text, "keep one of them"));
    assert_false(parse("{\"servers\":{\"x\":{\"command\":\"c\",\"tools\":{\"a\":true}}}}"));
    assert_non_null(strstr(err.text, "must be an array of strings"));
    accepted("{\"servers\":{\"x\":{\"command\":\"c\"}}}");
    assert_false(config_limits_tools(&config->servers[0]));
    done();
}

TEST(test_config__a_variable_without_braces_is_noted)
{
    setenv("HF_BARE", "$LOOKS", 1);
    accepted("{\"servers\":{\"x\":{\"command\":\"c\",\"env\":{\"A\":\"$MY_TOKEN\",\"B\":\"$\","
             "\"C\":\"$5 off\",\"D\":\"${HF_BARE}\",\"E\":\"\"}}}}");
    assert_int_equal(config->n_notes, 1);
    assert_true(has_note("h.json:1:43: \"A\" of server x is the text $MY_TOKEN; write ${MY_TOKEN} "
                         "for the variable"));
    assert_str(config->servers[0].env[0].value, "$MY_TOKEN");
    done();
}
