/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages for text that is not JSON: names TOML, YAML, and the typographic quotes that word
 * processors and web pages write instead of ". */
#include "config/config_impl.h"

/* The first non-empty line, without comments of TOML and YAML. */
static struct str first_line(struct str text)
{
    while (text.n) {
        struct str line = str_trim(str_split(&text, '\n'));
        if (line.n && line.p[0] != '#')
            return line;
    }
    return STR("");
}

/* Length of the bare or quoted key at the start of the line; 0 when there is no key. */
static size_t key_length(struct str line)
{
    size_t n = 0;

    while (n < line.n) {
        char c = line.p[n];
        bool plain = ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9');
        if (!plain && !strchr("_-.\"", c))
            break;
        n++;
    }
    return n;
}

static bool is_toml(struct str line)
{
    size_t n = line.n && line.p[0] == '[' ? 0 : key_length(line);
    struct str behind = str_trim(str_n(line.p + n, line.n - n));

    if (n)
        return behind.n && behind.p[0] == '=';
    /* "[mcp_servers.files]", but not the array ["a"] */
    while (behind.n && behind.p[0] == '[')
        behind = str_n(behind.p + 1, behind.n - 1);
    n = key_length(behind);
    return n && behind.p[0] != '"' && n < behind.n && behind.p[n] == ']';
}

static bool is_yaml(struct str line)
{
    size_t n = key_length(line);

    return str_starts(line, STR("---")) ||
           (n && line.p[0] != '"' && n < line.n && line.p[n] == ':');
}

/* U+2018, U+2019, U+201C to U+201F */
static bool is_curly_quote(struct str text, size_t at)
{
    return at + 2 < text.n && (unsigned char)text.p[at] == 0xe2 &&
           (unsigned char)text.p[at + 1] == 0x80 && (unsigned char)text.p[at + 2] >= 0x98 &&
           (unsigned char)text.p[at + 2] <= 0x9f;
}

bool syntax_fault(struct str text, struct str file, const struct js_fault *fault, struct error *err)
{
    struct str line = first_line(text);
    const char *words = NULL;

    if (is_toml(line))
        words = "this is TOML, and Holdfast reads JSON; write the servers as {\"mcpServers\": "
                "{\"NAME\": {\"command\": …}}}";
    else if (is_yaml(line))
        words = "this is YAML, and Holdfast reads JSON; write the servers as {\"mcpServers\": "
                "{\"NAME\": {\"command\": …}}}";
    else if (is_curly_quote(text, fault->offset))
        words = "this is a typographic quote; write the plain \" instead, here and at every other "
                "place";
    if (!words)
        return js_bind_parse_fault(file, fault, ERR_CONFIG, err);
    return file.p ? error_set(err, ERR_CONFIG, "%.*s:%u:%u: %s", STR_ARG(file), fault->line,
                              fault->column, words)
                  : error_set(err, ERR_CONFIG, "%s", words);
}
