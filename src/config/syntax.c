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

/* What to do about a mistake, by the beginning of the reader's words. */
static const struct {
    const char *reason, *advice;
} advices[] = {
    {"the text ends too early", "close what is open: a quote, ] or }"},
    {"a value is expected here", "text needs double quotes; remove a comma too many"},
    {"a key in double quotes", "write \"NAME\": VALUE; remove a comma too many"},
    {"a comma or", "look for a missing comma, quote or bracket before this place"},
    {"a colon must follow", "write \"NAME\": VALUE"},
    {"this key occurs twice", "keep one of the two"},
    {"nothing may follow", "remove the rest, or a } too many before it"},
    {"this is nested too deeply", "remove brackets"},
    {"these bytes are not UTF-8", "save the file as UTF-8"},
    {"control bytes in strings", "write a tab as \\t and a line end as \\n"},
    {"this escape sequence", "write \\\\ for a backslash"},
    {"\\u takes four", "write \\\\ for a backslash"},
    {"one half of a surrogate", "write the character itself, or both halves"},
    {"a digit", "write a decimal number such as 10, or put the text in double quotes"},
    {"numbers have no leading", "remove the zeros, or put the text in double quotes"},
    {"there are too many", "shorten the file"},
    {"this message needs", "shorten the file"},
};

static const char *advice_for(const char *reason)
{
    for (size_t i = 0; i < countof(advices); i++)
        if (str_starts(str_of(reason), str_of(advices[i].reason)))
            return advices[i].advice;
    return NULL;
}

/* As Windows writes text; the second byte of each plain letter is 0. */
static bool is_utf16(struct str text)
{
    return str_starts(text, STR("\xff\xfe")) || str_starts(text, STR("\xfe\xff")) ||
           (text.n > 1 && (text.p[0] == '\0' || text.p[1] == '\0'));
}

/* Words for text in another form than JSON; NULL: it is JSON with a mistake. */
static const char *other_form(struct str text, const struct js_fault *fault)
{
    struct str line = first_line(text);

    if (is_utf16(text))
        return "the file is UTF-16; save it as UTF-8";
    if (is_toml(line))
        return "this is TOML, and Holdfast reads JSON; write the servers as {\"mcpServers\": "
               "{\"NAME\": {\"command\": …}}}";
    if (is_yaml(line))
        return "this is YAML, and Holdfast reads JSON; write the servers as {\"mcpServers\": "
               "{\"NAME\": {\"command\": …}}}";
    if (is_curly_quote(text, fault->offset))
        return "this is a typographic quote; write the plain \" instead, here and at every other "
               "place";
    if (fault->offset < text.n && text.p[fault->offset] == '\'')
        return "JSON has no single quotes; write the plain \" instead";
    return NULL;
}

bool syntax_fault(struct str text, struct str file, const struct js_fault *fault, struct error *err)
{
    const char *words = other_form(text, fault), *advice = words ? NULL : advice_for(fault->reason);

    if (!words)
        words = fault->reason;
    error_set(err, ERR_CONFIG, "%s%s%s", words, advice ? "; " : "", advice ? advice : "");
    return !file.p ? error_wrap(err, "line %u, column %u", fault->line, fault->column)
                   : error_wrap(err, "%.*s:%u:%u", STR_ARG(file), fault->line, fault->column);
}
