/* SPDX-License-Identifier: Apache-2.0 */
/* Which member names speak of secrets.  Names are compared without case and separators, so that
 * "api_key", "X-Api-Key" and "apiKey" are one word, and after unescaping, so that "pass\u0077ord"
 * is read as what it says. */
#include "audit/redact_impl.h"

#include "audit/redact.h"

static const char *const secret_words[] = {
    "password", "passwd",     "secret",     "authorization", "apikey",
    "cookie",   "credential", "privatekey", "passthrough",
};

static unsigned hex_value(char c)
{
    return c >= '0' && c <= '9'                 ? (unsigned)(c - '0')
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (unsigned)((c | 32) - 'a') + 10
                                                : 16;
}

/* One character of a JSON string's inside; anything outside ASCII reads as '?'. */
static char next_char(struct str key, size_t *at)
{
    char c = key.p[(*at)++];
    if (c != '\\' || *at >= key.n)
        return (unsigned char)c < 0x80 ? c : '?';
    c = key.p[(*at)++];
    if (c != 'u' || key.n - *at < 4)
        return c;
    unsigned code = 0;
    for (unsigned i = 0; i < 4; i++)
        code = code << 4 | (hex_value(key.p[(*at)++]) & 15);
    return code < 0x80 ? (char)code : '?';
}

/* Lower case without separators; returns the length, or REDACT_KEY_MAX + 1 when it does not fit. */
static size_t normalise(struct str key, char ret[REDACT_KEY_MAX])
{
    size_t n = 0;
    for (size_t at = 0; at < key.n;) {
        char c = next_char(key, &at);
        if (c == '_' || c == '-' || c == ' ' || c == '.')
            continue;
        if (n == REDACT_KEY_MAX)
            return REDACT_KEY_MAX + 1;
        ret[n++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return n;
}

/* "token" alone is a secret, "tokens" may be how many there were. */
static enum key_class classify_token(const char *name, size_t n)
{
    enum key_class found = KEY_PLAIN;
    const char *end = name + n;
    for (const char *p = name; (p = memmem(p, (size_t)(end - p), "token", 5)) != NULL;) {
        p += 5;
        if (p == end || *p != 's')
            return KEY_SECRET;
        found = KEY_COUNT;
    }
    return found;
}

enum key_class redact_key_class(struct str key)
{
    char name[REDACT_KEY_MAX];
    size_t n = normalise(key, name);
    if (n > REDACT_KEY_MAX)
        return KEY_SECRET;
    if (n == 13 && memcmp(name, "progresstoken", 13) == 0)
        return KEY_PLAIN;
    for (size_t i = 0; i < countof(secret_words); i++)
        if (memmem(name, n, secret_words[i], strlen(secret_words[i])))
            return KEY_SECRET;
    return classify_token(name, n);
}
