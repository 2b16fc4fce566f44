/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which names denote secrets.  Names are compared without case and separators, so that
 * "api_key", "X-Api-Key" and "apiKey" are equal, and after unescaping, so that "pass\u0077ord"
 * equals "password". */
#include "audit/redact.h"
#include "audit/redact_impl.h"

#define WORDS_MAX 64

/* A name without case and separators, and the positions of its words. */
struct folded {
    char text[REDACT_KEY_MAX];
    size_t n;
    uint16_t words[WORDS_MAX];
    size_t n_words;
};

static unsigned hex_value(char c)
{
    return c >= '0' && c <= '9'                 ? (unsigned)(c - '0')
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (unsigned)((c | 32) - 'a') + 10
                                                : 16;
}

/* Reads one character of the inside of a JSON string; any non-ASCII character becomes '?'. */
static char next_char(struct str key, size_t *at)
{
    char c = key.p[(*at)++];
    if (c != '\\' || *at >= key.n)
        return (unsigned char)c < 0x80 ? c : '?';
    while (*at < key.n && key.p[*at] == '\\') /* quoted more than once */
        (*at)++;
    if (*at >= key.n)
        return '?';
    c = key.p[(*at)++];
    if (c != 'u' || key.n - *at < 4)
        return c;
    unsigned code = 0;
    for (unsigned i = 0; i < 4; i++)
        code = code << 4 | (hex_value(key.p[(*at)++]) & 15);
    return code < 0x80 ? (char)code : '?';
}

static bool is_separator(char c)
{
    return c == '_' || c == '-' || c == ' ' || c == '.' || c == '/' || c == ':';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* "dbPwd" has two words; so have "API_KEY" and "APIKey". */
static void fold(struct str key, struct folded *ret)
{
    char before = '_', earlier = '_';

    ret->n = ret->n_words = 0;
    for (size_t at = 0; at < key.n && ret->n < sizeof(ret->text);) {
        char c = next_char(key, &at);
        bool ends_capitals = is_lower(c) && is_upper(before) && is_upper(earlier) && ret->n > 0;
        if (is_separator(c)) {
            earlier = before;
            before = c;
            continue;
        }
        if (ends_capitals && ret->n_words < WORDS_MAX)
            ret->words[ret->n_words++] = (uint16_t)(ret->n - 1);
        else if ((is_separator(before) || (is_upper(c) && !is_upper(before)) ||
                  (!is_upper(c) && !is_lower(c)) != (!is_upper(before) && !is_lower(before))) &&
                 ret->n_words < WORDS_MAX)
            ret->words[ret->n_words++] = (uint16_t)ret->n;
        ret->text[ret->n++] = is_upper(c) ? (char)(c + 32) : c;
        earlier = before;
        before = c;
    }
}

static bool has_word(const struct folded *f, struct str word)
{
    for (size_t i = 0; i < f->n_words; i++) {
        size_t end = i + 1 < f->n_words ? f->words[i + 1] : f->n;
        if (end - f->words[i] == word.n && memcmp(f->text + f->words[i], word.p, word.n) == 0)
            return true;
    }
    return f->n == word.n && memcmp(f->text, word.p, word.n) == 0;
}

/* "token" denotes a secret, "tokens" may be a count, and a "tokenizer" is neither. */
static enum key_class classify_token(const struct folded *f)
{
    enum key_class found = KEY_PLAIN;
    const char *end = f->text + f->n;

    for (const char *p = f->text; (p = memmem(p, (size_t)(end - p), "token", 5)) != NULL;) {
        p += 5;
        if (end - p >= 2 && memcmp(p, "iz", 2) == 0)
            continue;
        if (p == end || *p != 's')
            return KEY_SECRET;
        found = KEY_COUNT;
    }
    return found;
}

static bool is_part(const struct folded *f, struct str word)
{
    const char *p = memmem(f->text, f->n, word.p, word.n);
    static const struct str secretary = {"secretar", 8};

    if (p && str_eq(word, STR("secret")) && memmem(f->text, f->n, secretary.p, secretary.n))
        return false;
    return p != NULL;
}

static enum key_class class_of(const struct folded *f)
{
    enum key_class found = KEY_PLAIN;

    if (f->n == 13 && memcmp(f->text, "progresstoken", 13) == 0)
        return KEY_PLAIN;
    for (size_t i = 0; i < redact_n_names; i++) {
        const struct redact_name *name = &redact_names[i];
        enum key_class class = name->class;
        if (str_eq(name->word, STR("token")))
            class = classify_token(f);
        else if (!(name->how == NAME_PART ? is_part(f, name->word) : has_word(f, name->word)))
            continue;
        if (class == KEY_SECRET)
            return KEY_SECRET;
        if (class == KEY_COUNT)
            found = KEY_COUNT;
    }
    return found;
}

enum key_class redact_key_class(struct str key)
{
    struct folded f;

    fold(key, &f);
    return class_of(&f);
}

bool redact_key_may_be_directory(struct str key)
{
    struct folded f;

    fold(key, &f);
    return (f.n == 3 && memcmp(f.text, "pwd", 3) == 0) ||
           (f.n == 6 && memcmp(f.text, "oldpwd", 6) == 0);
}
