/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the context values of a client, and their stored forms. */
#include "session/profile_context.h"

#include "base/log.h"
#include "crypto/base64.h"
#include "json/read.h"
#include "json/write.h"
#include "session/sealed.h"

#include <stdlib.h>

#define KEY_SHOWN 64

bool profile_context_in_query(const struct http_head *head, struct arena *mem, struct str *ret_text,
                              struct error *err)
{
    unsigned n = 0;
    struct str value = head->query.p ? http_query_get(head->query, STR("config"), &n) : STR_NONE;

    if (n > 1)
        return error_set(err, ERR_BAD_INPUT, "?config= is given more than once; send one");
    if (!value.n) {
        *ret_text = STR_NONE;
        return true;
    }
    char *text = arena_alloc(mem, value.n);
    int length = http_percent_decode(value, text, false);
    if (length < 0)
        return error_set(
            err, ERR_BAD_INPUT,
            "?config= has a broken escape; percent-encode the JSON, or send base64url");
    *ret_text = str_n(text, (size_t)length);
    return true;
}

bool profile_context_in_header(const struct http_head *head, struct str *ret_text,
                               struct error *err)
{
    struct str value = http_header_get(head, STR("mcp-config"));

    if (http_header_count(head, STR("mcp-config")) > 1)
        return error_set(err, ERR_BAD_INPUT, "mcp-config is given more than once; send one");
    *ret_text = value.n ? value : STR_NONE;
    return true;
}

/* Decodes both base64 alphabets, with or without padding.  A "+" in a query was decoded as a
 * blank. */
static struct str decode(struct str text, struct arena *mem)
{
    char *url = arena_alloc(mem, text.n + 1);

    for (unsigned i = 0; i < 2 && text.n && text.p[text.n - 1] == '='; i++)
        text.n--;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        url[i] = (char)(c == '+' || c == ' ' ? '-' : c == '/' ? '_' : c);
    }
    return base64url_decode(str_n(url, text.n), mem);
}

static bool is_listed(const struct profile_config *p, struct str key)
{
    for (size_t i = 0; i < p->n_context_keys; i++)
        if (str_eq(p->context_keys[i], key))
            return true;
    return false;
}

static bool refuse_key(struct str key, const char *what, struct error *err)
{
    struct buf shown;

    buf_init(&shown, SIZE_MAX);
    log_escape(&shown, key, KEY_SHOWN);
    error_set(err, ERR_BAD_INPUT, "the key \"%.*s\" of the config %s", STR_ARG(buf_str(&shown)),
              what);
    buf_release(&shown);
    return false;
}

static bool take_value(const struct js_doc *doc, struct str key, const struct js_node *v,
                       struct arena *mem, struct str *ret, struct error *err)
{
    switch (v->type) {
    case JS_STRING:
        *ret = js_text(doc, v, mem);
        break;
    case JS_NUMBER:
    case JS_TRUE:
    case JS_FALSE:
        *ret = js_raw(doc, v);
        break;
    default:
        return refuse_key(key, "must be a string, a number, true or false; send it as one", err);
    }
    return str_find(*ret, '\0') == ret->n ||
           refuse_key(key, "has a NUL byte, which no server can be given; take it out", err);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct config_pair *)a)->name, ((const struct config_pair *)b)->name);
}

static bool take_pairs(const struct js_doc *doc, const struct profile_config *p, struct arena *mem,
                       struct config_pair *pairs, size_t *ret_n, struct error *err)
{
    const struct js_node *root = js_root(doc), *v;
    size_t n = 0;

    for (const struct js_node *k = js_first(doc, root); k; k = js_next(doc, root, v)) {
        struct str key = js_text(doc, k, mem);
        v = js_value_of(k);
        if (!is_listed(p, key) || n == CONTEXT_KEYS_MAX)
            return refuse_key(key,
                              p->n_context_keys
                                  ? "is not among those that this profile takes; leave it out, or "
                                    "add it to \"context\" of the profile"
                                  : "is not taken here: this profile has no \"context\"; leave "
                                    "the config out, or list its keys there",
                              err);
        pairs[n].name = key;
        if (!take_value(doc, key, v, mem, &pairs[n].value, err))
            return false;
        n++;
    }
    qsort(pairs, n, sizeof(*pairs), by_name);
    *ret_n = n;
    return true;
}

static void write_forms(const struct config_pair *pairs, size_t n, struct arena *mem,
                        struct profile_context *ret)
{
    struct js_writer plain, keys;
    struct buf plain_text, keys_text;

    buf_init_secret(&plain_text, SIZE_MAX);
    buf_init(&keys_text, SIZE_MAX);
    js_begin(&plain, &plain_text);
    js_begin(&keys, &keys_text);
    js_object(&plain);
    js_array(&keys);
    for (size_t i = 0; i < n; i++) {
        js_key(&plain, pairs[i].name);
        js_string(&plain, pairs[i].value);
        js_string(&keys, pairs[i].name);
    }
    js_object_end(&plain);
    js_array_end(&keys);
    ret->plain = arena_dup(mem, buf_str(&plain_text));
    ret->keys = arena_dup(mem, buf_str(&keys_text));
    buf_release(&plain_text);
    buf_release(&keys_text);
}

static bool is_json(struct str text)
{
    return text.n && (text.p[0] == '{' || text.p[0] == '[' || text.p[0] == '"');
}

bool profile_context_parse(struct str text, const struct profile_context_rules *rules,
                           struct arena *mem, struct profile_context *ret, struct error *err)
{
    struct config_pair pairs[CONTEXT_KEYS_MAX];
    struct profile_context c = {0};
    struct str json = str_trim(text);
    struct js_doc doc;
    size_t n = 0;

    memset(pairs, 0, sizeof(pairs));
    if (!is_json(json))
        json = decode(json, mem);
    if (!json.p)
        return error_set(err, ERR_BAD_INPUT,
                         "the config is neither JSON nor base64; send a JSON object, or base64url "
                         "of one");
    if (json.n > PROFILE_CONTEXT_BYTES_MAX)
        return error_set(err, ERR_BAD_INPUT, "the config has at most %d bytes; send less",
                         PROFILE_CONTEXT_BYTES_MAX);
    if (!js_parse(json, &js_limits_request, mem, &doc, NULL) || js_root(&doc)->type != JS_OBJECT)
        return error_set(err, ERR_BAD_INPUT,
                         "the config is no JSON object with each key once; send "
                         "{\"KEY\": \"value\"}, or base64url of it");
    if (!take_pairs(&doc, rules->profile, mem, pairs, &n, err))
        return false;
    if (n > 0) {
        write_forms(pairs, n, mem, &c);
        struct str parts[] = {rules->tenant, STR("\0"), c.plain};
        hmac_sha256(rules->key, parts, countof(parts), c.mac);
    }
    *ret = c;
    return true;
}

struct str profile_context_label(const struct profile_context *c, struct arena *mem)
{
    char mac[2 * SHA256_BYTES + 1];

    hex_encode(c->mac, sizeof(c->mac), mac);
    return arena_printf(mem, "{\"keys\":%.*s,\"mac\":\"%s\"}", STR_ARG(c->keys), mac);
}

bool profile_context_read_label(struct str sealed, struct arena *mem, struct str *ret_keys,
                                uint8_t ret_mac[SHA256_BYTES])
{
    struct sealed parts;
    struct js_doc doc;

    if (!sealed_read(sealed, mem, &parts) ||
        !js_parse(parts.services, &js_limits_request, mem, &doc, NULL))
        return false;
    const struct js_node *keys = js_get(&doc, js_root(&doc), STR("keys"));
    const struct js_node *mac = js_get(&doc, js_root(&doc), STR("mac"));
    if (!js_type_is(keys, JS_ARRAY) || !hex_decode(js_text(&doc, mac, mem), ret_mac, SHA256_BYTES))
        return false;
    *ret_keys = js_raw(&doc, keys);
    return true;
}

bool profile_context_has_key(struct str keys, struct str key)
{
    char quoted[CONTEXT_KEY_MAX + 2];

    if (!keys.p || key.n > CONTEXT_KEY_MAX) /* keys contain no characters that JSON escapes */
        return false;
    quoted[0] = quoted[key.n + 1] = '"';
    memcpy(quoted + 1, key.p, key.n);
    return memmem(keys.p, keys.n, quoted, key.n + 2) != NULL;
}

bool profile_context_read(struct str plain, struct arena *mem, struct config_pair **ret,
                          size_t *ret_n)
{
    struct config_pair *pairs = arena_zalloc(mem, CONTEXT_KEYS_MAX * sizeof(*pairs));
    const struct js_node *root, *v;
    struct js_doc doc;
    size_t n = 0;

    if (!js_parse(plain, &js_limits_request, mem, &doc, NULL))
        return false;
    root = js_root(&doc);
    for (const struct js_node *k = js_first(&doc, root); k && n < CONTEXT_KEYS_MAX;
         k = js_next(&doc, root, v)) {
        v = js_value_of(k);
        pairs[n].name = js_text(&doc, k, mem);
        pairs[n++].value = js_text(&doc, v, mem);
    }
    *ret = pairs;
    *ret_n = n;
    return true;
}
