/* SPDX-License-Identifier: Apache-2.0 */
/* 1,000 mistakes in realistic configurations, the same ones in each run.  A configuration is either
 * accepted, or refused with the file, a line and a column inside the text, and a sentence that says
 * what is allowed or what to do. */
#include "test.h"

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>

#define MUTANTS 1000
#define TOKENS_MAX 512

static const char *const originals[] = {
    /* one server as its page shows it */
    "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"npx\",\n      \"args\": "
    "[\"-y\", "
    "\"@modelcontextprotocol/server-filesystem\", \"/srv/notes\"]\n    }\n  }\n}\n",
    /* several, with secrets, limits and comments */
    "{\n  // our servers\n  \"mcpServers\": {\n    \"github\": {\n      \"command\": \"docker\",\n"
    "      \"args\": [\"run\", \"-i\", \"--rm\", \"ghcr.io/x/y\"],\n      \"env\": {\"LOG\": "
    "\"info\", "
    "\"TOKEN\": \"${secret:github.TOKEN}\"},\n      \"cwd\": \"/srv\",\n      \"timeout\": "
    "\"30s\",\n"
    "      \"disabledTools\": [\"delete_*\"],\n      \"pin\": true\n    },\n    \"search\": {\n"
    "      \"url\": \"https://mcp.example.com/mcp?region=eu\",\n      \"headers\": {\"X-Team\": "
    "\"a\"},\n      \"share\": \"all\",\n      \"era\": \"modern\",\n      \"audit\": \"digest\"\n"
    "    },\n  },\n}\n",
    /* a team's */
    "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"},\n    \"y\": {\"url\": \"http://"
    "127.0.0.1:9/mcp\", \"handles\": \"never\"}\n  },\n  \"holdfast\": {\n    \"listen\": "
    "\"127.0.0.1:"
    "4653\",\n    \"auth\": \"required\",\n    \"public_url\": \"https://mcp.example.com\",\n    "
    "\"trusted_proxies\": [\"10.0.0.0/8\", \"::1\"],\n    \"origins\": [\"https://a.example\"],\n  "
    "  "
    "\"client_id\": \"optional\",\n    \"metrics\": true,\n    \"carriers\": {\"meta\": [\"a\", "
    "[\"b\", "
    "\"c\"]], \"headers\": [\"X-Conversation-Id\"]},\n    \"session\": {\"limits\": "
    "{\"max_per_tenant\": "
    "100, \"default_ttl\": \"24h\", \"idle_timeout\": \"30m\"}, \"cleanup\": {\"interval\": "
    "\"10s\", "
    "\"batch_size\": 50}},\n    \"tenants\": {\"acme\": {\"max_sessions\": 1000}},\n    "
    "\"profiles\": "
    "{\"dev\": {\"servers\": [\"x\"], \"mode\": \"search\"}},\n    \"toolsets\": {\"look\": "
    "{\"name\": "
    "\"Look\", \"description\": \"Reads.\", \"tools\": [\"y__get_*\"]}},\n    \"limits\": "
    "{\"body\": "
    "\"4MiB\", \"audit_body\": \"16KiB\"}\n  }\n}\n",
    /* an editor's */
    "{\n\t\"inputs\": [{\"type\": \"promptString\", \"id\": \"key\", \"description\": \"A key\", "
    "\"password\": true}],\n\t\"servers\": {\n\t\t\"db\": {\"type\": \"stdio\", \"command\": "
    "\"uvx\", \"args\": [\"mcp-db\"], \"env\": {\"KEY\": \"${input:key}\"}},\n\t\t\"web\": "
    "{\"type\": "
    "\"http\", \"url\": \"https://h.example/mcp\"},\n\t\t\"off\": {\"command\": \"z\", "
    "\"disabled\": true}\n\t}\n}\n",
};

/* Numbers. */

static uint64_t seed;

static size_t any(size_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % n);
}

/* Tokens: strings with their quotes, numbers and words, and punctuation. */

struct token {
    size_t at, n;
    bool is_key;
};
static struct token tokens[TOKENS_MAX];
static size_t n_tokens;

static size_t token_end(const char *t, size_t at)
{
    size_t end = at + 1;

    if (t[at] == '"') {
        while (t[end] != '"')
            end += t[end] == '\\' ? 2 : 1;
        return end + 1;
    }
    while (!strchr("{}[],:\" \t\r\n", t[at]) && t[end] && !strchr("{}[],:\" \t\r\n", t[end]))
        end++;
    return end;
}

static void tokenize(const char *t)
{
    n_tokens = 0;
    for (size_t at = 0; t[at];) {
        if (strchr(" \t\r\n", t[at])) {
            at++;
        } else if (t[at] == '/') {
            at += strcspn(t + at, "\n");
        } else {
            assert_true(n_tokens < TOKENS_MAX);
            tokens[n_tokens] = (struct token){at, token_end(t, at) - at, false};
            at += tokens[n_tokens++].n;
        }
    }
    for (size_t i = 0; i + 1 < n_tokens; i++)
        tokens[i].is_key = t[tokens[i].at] == '"' && t[tokens[i + 1].at] == ':';
}

static const struct token *some_token(const char *t, const char *first_bytes, bool is_key)
{
    for (size_t i = any(n_tokens), tries = 0; tries < n_tokens; i = (i + 1) % n_tokens, tries++)
        if (tokens[i].is_key == is_key && strchr(first_bytes, t[tokens[i].at]))
            return &tokens[i];
    return &tokens[0];
}

/* The end of the value that begins at token i. */
static size_t value_end(const char *t, size_t i)
{
    int depth = 0;

    for (; i < n_tokens; i++) {
        depth += strchr("{[", t[tokens[i].at]) != NULL;
        depth -= strchr("}]", t[tokens[i].at]) != NULL;
        if (depth <= 0)
            return tokens[i].at + tokens[i].n;
    }
    return strlen(t);
}

/* Mutations.  Each adds the changed text to `out`. */

static void splice(struct buf *out, const char *t, size_t at, size_t n, struct str with)
{
    buf_add(out, t, at);
    buf_addstr(out, with);
    buf_addz(out, t + at + n);
}

static void replace_token(struct buf *out, const char *t, const struct token *k, const char *with)
{
    splice(out, t, k->at, k->n, str_of(with));
}

static const char *pick(const char *const *list, size_t n)
{
    return list[any(n)];
}

static void wrong_type(struct buf *out, const char *t)
{
    static const char *const values[] = {"null", "true",       "0",     "-1",    "1.5",
                                         "\"\"", "[]",         "{}",    "[1]",   "1e9",
                                         "[[]]", "{\"a\": 1}", "\"x\"", "[null]"};
    size_t i = any(n_tokens);

    while (!tokens[i].is_key)
        i = (i + 1) % n_tokens;
    size_t at = tokens[i + 2].at;
    splice(out, t, at, value_end(t, i + 2) - at, str_of(pick(values, countof(values))));
}

static void delete_member(struct buf *out, const char *t)
{
    size_t i = any(n_tokens);

    while (!tokens[i].is_key)
        i = (i + 1) % n_tokens;
    size_t end = value_end(t, i + 2);
    splice(out, t, tokens[i].at, end + (t[end] == ',') - tokens[i].at, STR(""));
}

static void duplicate_member(struct buf *out, const char *t)
{
    size_t i = any(n_tokens);

    while (!tokens[i].is_key)
        i = (i + 1) % n_tokens;
    size_t at = tokens[i].at, end = value_end(t, i + 2);
    buf_add(out, t, end);
    buf_addz(out, ", ");
    buf_add(out, t + at, end - at);
    buf_addz(out, t + end);
}

static void mistype_key(struct buf *out, const char *t)
{
    const struct token *k = some_token(t, "\"", true);
    size_t at = k->at + 1 + any(k->n - 2);

    switch (any(3)) {
    case 0:
        splice(out, t, at, 1, STR("x"));
        break;
    case 1:
        splice(out, t, at, 1, STR(""));
        break;
    default:
        splice(out, t, at, 0, STR("e"));
    }
}

static void cut_off(struct buf *out, const char *t)
{
    buf_add(out, t, any(strlen(t)));
}

static void byte_order_mark(struct buf *out, const char *t)
{
    static const char *const marks[] = {"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff",
                                        "\xef\xbb\xbf\xef\xbb\xbf"};

    buf_addz(out, pick(marks, countof(marks)));
    buf_addz(out, t);
}

static void smart_quotes(struct buf *out, const char *t)
{
    const struct token *k = some_token(t, "\"", any(2));

    buf_add(out, t, k->at);
    buf_addz(out, "\xe2\x80\x9c");
    buf_add(out, t + k->at + 1, k->n - 2);
    buf_addz(out, "\xe2\x80\x9d");
    buf_addz(out, t + k->at + k->n);
}

static void tabs(struct buf *out, const char *t)
{
    const struct token *k = some_token(t, "\"", any(2));

    splice(out, t, k->at + 1, 0, STR("\t"));
}

static void as_yaml(struct buf *out, const char *t)
{
    static const char *const texts[] = {
        "mcpServers:\n  files:\n    command: npx\n    args: [-y, x]\n",
        "---\nholdfast:\n  listen: 127.0.0.1:1\n", "# servers\nservers: {}\n",
        "[mcp_servers.files]\ncommand = \"npx\"\n", "holdfast.listen = \"127.0.0.1:1\"\n"};

    if (any(2))
        buf_addz(out, pick(texts, countof(texts)));
    else
        replace_token(out, t, some_token(t, "\"", true), "key");
}

static void wrong_unit(struct buf *out, const char *t)
{
    static const char *const values[] = {
        "\"60 parsecs\"", "\"5 minutes\"", "\"-1s\"", "\"1.5h\"", "\"s\"",    "\"10MB\"", "\"0\"",
        "60000000",       "\"1e3s\"",      "\"∞\"",   "-5",       "\"4 GB\"", "\"1d1h\""};

    size_t i = any(n_tokens);
    static const char *const names[] = {
        "\"timeout\"",    "\"default_ttl\"",    "\"idle_timeout\"", "\"interval\"",    "\"body\"",
        "\"audit_body\"", "\"max_per_tenant\"", "\"batch_size\"",   "\"max_sessions\""};
    for (size_t tries = 0; tries < n_tokens; tries++, i = (i + 1) % n_tokens)
        for (size_t k = 0; k < countof(names); k++)
            if (tokens[i].is_key &&
                str_eq(str_n(t + tokens[i].at, tokens[i].n), str_of(names[k]))) {
                replace_token(out, t, &tokens[i + 2], pick(values, countof(values)));
                return;
            }
    replace_token(out, t, some_token(t, "\"", false), pick(values, countof(values)));
}

static void huge_number(struct buf *out, const char *t)
{
    static const char *const values[] = {"99999999999999999999999", "1e400", "-9223372036854775809",
                                         "9223372036854775807", "\"99999999999999999999d\""};

    size_t i = any(n_tokens);
    while (!tokens[i].is_key)
        i = (i + 1) % n_tokens;
    size_t at = tokens[i + 2].at;
    splice(out, t, at, value_end(t, i + 2) - at, str_of(pick(values, countof(values))));
}

static void bad_utf8(struct buf *out, const char *t)
{
    static const char *const bytes[] = {"\xff",     "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                        "\xe2\x28", "\x80"};
    const struct token *k = some_token(t, "\"", any(2));

    splice(out, t, k->at + 1 + any(k->n - 1), 0, str_of(pick(bytes, countof(bytes))));
}

static void drop_byte(struct buf *out, const char *t)
{
    splice(out, t, any(strlen(t)), 1, STR(""));
}

static void add_byte(struct buf *out, const char *t)
{
    static const char *const bytes[] = {",",  "{", "}",  "[", "]", ":",
                                        "\"", "'", "\\", "#", "=", "\x01"};

    splice(out, t, any(strlen(t)), 0, str_of(pick(bytes, countof(bytes))));
}

static void drop_punctuation(struct buf *out, const char *t)
{
    replace_token(out, t, some_token(t, "{}[],:", false), "");
}

static void other_language(struct buf *out, const char *t)
{
    static const char *const words[] = {"True", "None",   "'text'", "undefined", "NaN", "0x10",
                                        "yes",  "`text`", "+1",     ".5",        "01"};

    replace_token(out, t, some_token(t, "\"tf0123456789", false), pick(words, countof(words)));
}

static void bad_variable(struct buf *out, const char *t)
{
    static const char *const values[] = {"\"${NOT_SET_ANYWHERE}\"",
                                         "\"${unclosed\"",
                                         "\"${}\"",
                                         "\"${a b}\"",
                                         "\"${command:x}\"",
                                         "\"${config:x}\"",
                                         "\"${secret:}\"",
                                         "\"${secret:../x}\"",
                                         "\"${credential:nope}\"",
                                         "\"${context:}\"",
                                         "\"${NAME:default}\"",
                                         "\"${workspaceFolder:x}\""};

    replace_token(out, t, some_token(t, "\"", false), pick(values, countof(values)));
}

static void swapped_values(struct buf *out, const char *t)
{
    const struct token *a = some_token(t, "\"", false), *b = some_token(t, "\"", false);

    if (a->at > b->at) {
        const struct token *c = a;
        a = b;
        b = c;
    }
    if (a == b) {
        buf_addz(out, t);
        return;
    }
    buf_add(out, t, a->at);
    buf_add(out, t + b->at, b->n);
    buf_add(out, t + a->at + a->n, b->at - a->at - a->n);
    buf_add(out, t + a->at, a->n);
    buf_addz(out, t + b->at + b->n);
}

static void odd_value(struct buf *out, const char *t)
{
    static const char *const values[] = {"\"\"",
                                         "\" \"",
                                         "\"https://\"",
                                         "\"ftp://a.example/\"",
                                         "\"127.0.0.1:99999\"",
                                         "\"0.0.0.0:4653\"",
                                         "\"a b\"",
                                         "\"\\u0000\"",
                                         "\"\\ud800\"",
                                         "\"a\\nb\"",
                                         "\"*\"",
                                         "\"a__b\"",
                                         "\"/\"",
                                         "\"10.0.0.0/99\"",
                                         "\"https://u:p@h/\"",
                                         "\"X:Y\"",
                                         "\"none\"",
                                         "\"\\u202e\""};

    replace_token(out, t, some_token(t, "\"", any(2)), pick(values, countof(values)));
}

static void nested(struct buf *out, const char *t)
{
    const struct token *k = some_token(t, "\"", false);
    size_t depth = 1 + any(2000);

    buf_add(out, t, k->at);
    for (size_t i = 0; i < depth; i++)
        buf_addc(out, '[');
    buf_addz(out, t + k->at);
}

static void trailing(struct buf *out, const char *t)
{
    static const char *const texts[] = {"}", "{}", "x", "]", "\"", "/*", "null"};

    buf_addz(out, t);
    buf_addz(out, pick(texts, countof(texts)));
}

typedef void mutate_fn(struct buf *out, const char *t);
static mutate_fn *const mutations[] = {
    wrong_type,   delete_member, duplicate_member, mistype_key,    cut_off,      byte_order_mark,
    smart_quotes, tabs,          as_yaml,          wrong_unit,     huge_number,  bad_utf8,
    drop_byte,    add_byte,      drop_punctuation, other_language, bad_variable, swapped_values,
    odd_value,    nested,        trailing,
};

/* What an error says. */

static size_t lines_of(struct str text)
{
    size_t n = 1;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

/* Words of a rule ("must be …") or of advice ("…; write …"). */
static bool says_what_to_do(const char *text)
{
    static const char *const words[] = {
        "must", "; ", "takes ", "did you mean", "needs", "allowed", "at most", "cannot", "keep one",
    };

    for (size_t i = 0; i < countof(words); i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

static const char *mistake_of(const struct error *err, struct str text)
{
    unsigned line = 0, column = 0;
    int end = 0;

    if (err->code != ERR_CONFIG)
        return "another code";
    if (sscanf(err->text, "h.json:%u:%u: %n", &line, &column, &end) < 2 || !end)
        return "no file, line and column";
    if (!line || line > lines_of(text) || !column || column > text.n + 1)
        return "a place outside of the text";
    return says_what_to_do(err->text + end) ? NULL : "nothing to do";
}

TEST(test_config__each_of_1000_mistakes_is_accepted_or_refused_with_place_and_advice)
{
    size_t refused = 0, wrong = 0;

    unsetenv("NOT_SET_ANYWHERE");
    for (size_t i = 0; i < MUTANTS; i++) {
        const char *original = originals[i % countof(originals)];
        struct config *config = NULL;
        struct error err = {0};
        struct buf text;

        seed = 0x9e3779b97f4a7c15u * (i + 1);
        tokenize(original);
        buf_init(&text, SIZE_MAX / 4);
        mutations[(i / countof(originals)) % countof(mutations)](&text, original);
        if (config_parse(buf_str(&text), STR("h.json"), NULL, &config, &err)) {
            config_unref(config);
        } else {
            const char *mistake = mistake_of(&err, buf_str(&text));
            refused++;
            wrong += mistake != NULL;
            if (mistake)
                print_error("mutant %zu: %s: %s\n", i, mistake, err.text);
        }
        buf_release(&text);
    }
    assert_int_equal(wrong, 0);
    assert_in_range(refused, MUTANTS / 2, MUTANTS - 1);
}

TEST(test_config__the_originals_of_the_mutants_are_accepted)
{
    for (size_t i = 0; i < countof(originals); i++) {
        struct config *config = NULL;
        struct error err = {0};

        if (!config_parse(str_of(originals[i]), STR("h.json"), NULL, &config, &err))
            print_error("%zu: %s\n", i, err.text);
        assert_non_null(config);
        config_unref(config);
    }
}
