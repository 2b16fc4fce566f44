/* SPDX-License-Identifier: Apache-2.0 */
/* "jwt": issuers of tokens as they are written, and what is refused of them, where. */
#include "test.h"

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>

static struct config *config;
static struct error err;

static bool parse(const char *jwt)
{
    char text[8192];

    config_unref(config);
    config = NULL;
    snprintf(text, sizeof(text), "{\"holdfast\":{\"jwt\":%s}}", jwt);
    return config_parse(str_of(text), STR("h.json"), NULL, &config, &err);
}

static void done(void)
{
    config_unref(config);
    config = NULL;
}

TEST(test_issuer__one_or_several_are_read_whole)
{
    const struct issuer_config *c;

    assert_true(parse(
        "[{\"issuer\":\"https://id.example\",\"audience\":\"a\",\"jwks\":\"k.json\","
        "\"tenants\":[\"default\",\"umbrella\"],\"roles\":[\"member\"]},"
        "{\"issuer\":\"two\",\"tenants\":[\"acme\"],\"audience\":[\"b\",\"c\"],\"tenant\":\"acme\","
        "\"tenant_claim\":\"t\",\"role_claim\":\"\",\"keys\":["
        "{\"kid\":\"1\",\"alg\":\"RS256\",\"pem\":\"k.pem\"},"
        "{\"alg\":\"HS256\",\"secret\":\"s\"}]}]"));
    assert_int_equal(config->n_issuers, 2);
    c = &config->issuers[0];
    assert_str(c->issuer, "https://id.example");
    assert_int_equal(c->n_audiences, 1);
    assert_str(c->audiences[0], "a");
    assert_str(c->jwks, "k.json");
    assert_false(c->jwks_is_url);
    assert_str(c->tenant_claim, "tenant");
    assert_str(c->role_claim, "role");
    assert_str(c->tenant, "default");
    assert_str(c->jwks_at, "h.json:1:74");
    assert_int_equal(c->n_tenants, 2);
    assert_str(c->tenants[1], "umbrella");
    assert_int_equal(c->n_roles, 1);
    assert_str(c->roles[0], "member");
    c = &config->issuers[1];
    assert_int_equal(c->n_audiences, 2);
    assert_str(c->tenant, "acme");
    assert_int_equal(c->role_claim.n, 0);
    assert_int_equal(c->n_keys, 2);
    assert_str(c->keys[0].pem, "k.pem");
    assert_str(c->keys[1].secret, "s");
    assert_true(parse("{\"issuer\":\"x\",\"audience\":\"a\",\"jwks\":\"http://[::1]:80/k\"}"));
    assert_int_equal(config->n_issuers, 1);
    assert_true(config->issuers[0].jwks_is_url);
    done();
}

TEST(test_issuer__audience_follows_from_public_url_wherever_it_stands)
{
    assert_true(config_parse(STR("{\"holdfast\":{\"jwt\":{\"issuer\":\"i\",\"jwks\":\"k\"},"
                                 "\"public_url\":\"https://mcp.example/\"}}"),
                             STR("h.json"), NULL, &config, &err));
    assert_int_equal(config->issuers[0].n_audiences, 2);
    assert_str(config->issuers[0].audiences[0], "https://mcp.example/");
    assert_str(config->issuers[0].audiences[1], "https://mcp.example/mcp");
    done();
}

#define ISSUER(name, more) "{\"issuer\":\"" name "\",\"audience\":\"a\",\"jwks\":\"k\"" more "}"

TEST(test_issuer__several_are_each_bound_to_tenants)
{
    assert_true(parse(ISSUER("i", "")));
    assert_int_equal(config->issuers[0].n_tenants, 0);
    assert_false(
        parse("[" ISSUER("https://a", ",\"tenants\":[\"acme\"]") "," ISSUER("https://b", "") "]"));
    assert_non_null(strstr(err.text, "h.json:1:"));
    assert_non_null(strstr(err.text, "https://b could name any tenant"));
    assert_non_null(strstr(err.text, "\"tenants\": [\"default\"]"));
    assert_true(parse("[" ISSUER("a", ",\"tenants\":[\"acme\"]") "," ISSUER(
        "b",
        ",\"tenant_claim\":\"\"") "," ISSUER("c",
                                             ",\"tenants\":[\"x\",\"y\"]") "," ISSUER("d",
                                                                                      ",\"tenants\""
                                                                                      ":[\"x\","
                                                                                      "\"default\""
                                                                                      "]") "]"));
    assert_str(config->issuers[0].tenant, "acme");
    assert_str(config->issuers[1].tenant, "default");
    assert_null(config->issuers[2].tenant.p); /* its tokens must say */
    assert_str(config->issuers[3].tenant, "default");
    done();
}

TEST(test_issuer__what_cannot_hold_is_refused_where_it_stands)
{
    static const struct {
        const char *jwt, *message;
    } rows[] = {
        {"{\"audience\":\"a\",\"jwks\":\"k\"}", "\"issuer\""},
        {"{\"issuer\":\"\",\"audience\":\"a\",\"jwks\":\"k\"}", "\"issuer\" is empty"},
        {"{\"issuer\":\"i\",\"jwks\":\"k\"}", "set \"audience\""},
        {"{\"issuer\":\"i\",\"audience\":\"\",\"jwks\":\"k\"}", "\"audience\" is empty"},
        {"{\"issuer\":\"i\",\"audience\":[\"\"],\"jwks\":\"k\"}", "an entry of \"audience\""},
        {"{\"issuer\":\"i\",\"audience\":[],\"jwks\":\"k\"}", "set \"audience\""},
        {"{\"issuer\":\"i\",\"audience\":\"a\"}", "\"jwks\" or \"keys\""},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":[]}", "\"jwks\" or \"keys\""},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"http://id.example/k\"}", "https://"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"http://127.0.0.1.evil.example/k\"}",
         "https://"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"http://[::2]/k\"}", "https://"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"http://localhost@evil.example/k\"}",
         "user or password"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"ftp://h/k\"}", "http:// or https://"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"file:///k\"}", "http:// or https://"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":{}}", "must be an array"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":[{\"pem\":\"k\"}]}", "\"alg\""},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":[{\"alg\":\"none\",\"pem\":\"k\"}]}",
         "must be one of RS256"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":[{\"alg\":\"rs256\",\"pem\":\"k\"}]}",
         "must be one of RS256"},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":[{\"alg\":\"RS256\",\"secret\":\"k\"}]}",
         "needs \"pem\""},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":[{\"alg\":\"HS256\",\"pem\":\"k\"}]}",
         "needs \"secret\""},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":[{\"alg\":\"HS256\",\"pem\":\"k\","
         "\"secret\":\"s\"}]}",
         "needs \"secret\""},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"k\",\"tenant\":\"a b\"}", "\"tenant\""},
        {"{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"k\",\"kid\":\"x\"}", "unknown key"},
        {"[{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"k\"},"
         "{\"issuer\":\"i\",\"audience\":\"b\",\"jwks\":\"l\"}]",
         "given twice"},
        {"\"https://id.example\"", "object"},
        {ISSUER("i", ",\"tenants\":[]"), "\"tenants\" is empty"},
        {ISSUER("i", ",\"tenants\":[\"a b\"]"), "an entry of \"tenants\""},
        {ISSUER("i", ",\"tenants\":[\"a\"],\"tenant\":\"b\""), "not among \"tenants\""},
        {ISSUER("i", ",\"roles\":[]"), "\"roles\" is empty"},
        {ISSUER("i", ",\"roles\":[\"root\"]"), "admin, member, auditor and service"},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        assert_false(parse(rows[i].jwt));
        assert_int_equal(err.code, ERR_CONFIG);
        if (strncmp(err.text, "h.json:1:", 9) != 0 || !strstr(err.text, rows[i].message))
            fail_msg("%s: %s", rows[i].jwt, err.text);
    }
    done();
}

/* The text stands until the next call. */
static char *repeat(const char *before, const char *one, unsigned n, const char *after)
{
    static char text[65536];
    char *at = text;

    at += sprintf(at, "%s", before);
    for (unsigned i = 0; i < n; i++) {
        at += sprintf(at, "%s", i ? "," : "");
        at += sprintf(at, one, i);
    }
    sprintf(at, "%s", after);
    return text;
}

static void has_limit(const char *before, const char *one, unsigned limit, const char *after)
{
    for (unsigned over = 0; over < 2; over++) {
        char *text = repeat(before, one, limit + over, after);
        bool ok = config_parse(str_of(text), STR("h.json"), NULL, &config, &err);
        assert_int_equal(ok, !over);
        if (over)
            assert_non_null(strstr(err.text, "at most"));
        done();
        config = NULL;
    }
}

TEST(test_issuer__numbers_of_issuers_keys_and_audiences_are_limited)
{
    has_limit("{\"holdfast\":{\"jwt\":[",
              "{\"issuer\":\"%u\",\"audience\":\"a\",\"jwks\":\"k\",\"tenants\":[\"t\"]}", 16,
              "]}}");
    has_limit(
        "{\"holdfast\":{\"jwt\":{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"k\",\"tenants\":[",
        "\"t%u\"", 256, "]}}}");
    has_limit("{\"holdfast\":{\"jwt\":{\"issuer\":\"i\",\"audience\":\"a\",\"keys\":[",
              "{\"kid\":\"%u\",\"alg\":\"RS256\",\"pem\":\"k\"}", 64, "]}}}");
    has_limit("{\"holdfast\":{\"jwt\":{\"issuer\":\"i\",\"jwks\":\"k\",\"audience\":[", "\"%u\"",
              16, "]}}}");
}

TEST(test_issuer__the_effective_configuration_hides_secrets)
{
    struct buf out;

    assert_true(parse("{\"issuer\":\"i\",\"audience\":\"a\",\"jwks\":\"https://h/k?key=hidden\","
                      "\"keys\":[{\"alg\":\"HS256\",\"secret\":\"hidden\"}]}"));
    buf_init(&out, SIZE_MAX);
    config_write(config, &out);
    assert_null(strstr(out.p, "hidden"));
    assert_non_null(strstr(out.p, "\"secret\": \"***\""));
    assert_non_null(strstr(out.p, "https://h/k?***"));
    buf_release(&out);
    done();
}
