/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of options that need more checks than kind and bounds: addresses, URLs, origins,
 * networks, and the shapes of options that are not used yet.  Errors name the position of the bad
 * value. */
#include "config/config_impl.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#define LIST_MAX 1000

bool value_string(const struct js_binding *b, const struct js_node *v, const char *what,
                  struct str *ret, struct error *err)
{
    struct str text = js_text(b->doc, v, b->mem);

    if (!text.p)
        return js_bind_fault(b, v, err, "%s must be a string, not %s", what,
                             js_type_name((enum js_type)v->type));
    if (b->text && !b->text(b, v, &text, err))
        return false;
    if (str_find(text, '\0') != text.n)
        return js_bind_fault(b, v, err, "%s must not contain a NUL byte", what);
    *ret = arena_dup(b->mem, text);
    return true;
}

struct str value_place(const struct js_binding *b, const struct js_node *v)
{
    unsigned line, column;

    if (!b->file.p)
        return STR_NONE;
    js_position(b->doc->text, v->start, &line, &column);
    return arena_printf(b->mem, "%.*s:%u:%u", STR_ARG(b->file), line, column);
}

static bool field_string(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, struct str *ret, struct error *err)
{
    char what[80];

    snprintf(what, sizeof(what), "\"%s\"", f->name);
    return value_string(b, v, what, ret, err);
}

bool value_list(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                void *place, value_check check, struct error *err)
{
    size_t most = f->max_items ? f->max_items : LIST_MAX, n = 0;
    struct str *list;

    if (v->type != JS_ARRAY)
        return js_bind_fault(b, v, err, "\"%s\" must be an array of strings", f->name);
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e))
        n++;
    if (n > most)
        return js_bind_fault(b, v, err, "\"%s\" has %zu entries; at most %zu are taken", f->name, n,
                             most);
    list = arena_zalloc(b->mem, n * sizeof(*list));
    n = 0;
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e)) {
        if (!field_string(b, f, e, &list[n], err) || !check(b, f, e, list[n], err))
            return false;
        n++;
    }
    *(struct str **)place = list;
    *(size_t *)(void *)((char *)place - f->offset + f->count_offset) = n;
    return true;
}

bool value_is_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
            return false;
    }
    return name.n > 0 && name.n <= CONFIG_NAME_MAX;
}

bool value_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Splits "127.0.0.1:80" and "[::1]:80" into host and port; removes the brackets. */
static bool split_address(struct str text, char *ret_host, size_t room, uint64_t *ret_port)
{
    bool v6 = text.n > 0 && text.p[0] == '[';
    size_t start = v6, end = v6 ? str_find(text, ']') : str_find(text, ':');
    size_t colon = end + v6;
    struct in6_addr ignored;

    if (colon >= text.n || text.p[colon] != ':' || end - start >= room || end == start)
        return false;
    if (!str_to_u64(str_n(text.p + colon + 1, text.n - colon - 1), 65535, ret_port))
        return false;
    memcpy(ret_host, text.p + start, end - start);
    ret_host[end - start] = '\0';
    return !v6 || inet_pton(AF_INET6, ret_host, &ignored) == 1;
}

bool value_check_listen(struct str text, bool *ret_is_loopback, struct error *err)
{
    char host[64];
    uint64_t port;
    struct in_addr v4;

    if (!split_address(text, host, sizeof(host), &port))
        return error_set(err, ERR_CONFIG,
                         "the address to listen on must be written HOST:PORT, such as "
                         "127.0.0.1:4653 or [::1]:4653");
    *ret_is_loopback = value_is_loopback(host);
    if (!*ret_is_loopback && !strchr(host, ':') && inet_pton(AF_INET, host, &v4) != 1)
        return error_set(err, ERR_CONFIG,
                         "the address to listen on must be a number such as 127.0.0.1, or "
                         "localhost, not another name");
    return true;
}

bool option_read_listen(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err)
{
    struct config *c = reading_of(b)->config;
    struct error why;

    if (!field_string(b, f, v, place, err))
        return false;
    c->listen_at = value_place(b, v);
    return value_check_listen(*(struct str *)place, &c->listens_on_loopback, &why) ||
           js_bind_fault(b, v, err, "\"%s\": %s", f->name, why.text);
}

/* The value is one of two names; the second name means true. */
bool option_read_switch(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err)
{
    struct str text;

    if (!field_string(b, f, v, &text, err))
        return false;
    for (int i = 0; i < 2; i++) {
        if (!str_eq(text, str_of(f->names[i])))
            continue;
        *(bool *)place = i == 1;
        return true;
    }
    return js_bind_fault(b, v, err, "\"%s\" must be \"%s\" or \"%s\"", f->name, f->names[0],
                         f->names[1]);
}

bool option_read_file(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err)
{
    struct str file;

    if (!field_string(b, f, v, &file, err))
        return false;
    if (file.n == 0)
        return js_bind_fault(b, v, err, "\"%s\" is empty; name a file", f->name);
    *(struct str *)place = file;
    return true;
}

bool option_read_tls(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;

    if (!js_bind(b, v, f->fields, c, err))
        return false;
    c->tls_at = value_place(b, v);
    if (!c->tls_cert.n || !c->tls_key.n)
        return js_bind_fault(b, v, err, "\"tls\" needs both \"cert\" and \"key\"; add the other");
    return true;
}

const char *value_url_complaint(struct str url)
{
    size_t scheme = str_starts(url, STR("http://")) ? 7 : str_starts(url, STR("https://")) ? 8 : 0;
    size_t host_end = scheme;

    if (scheme == 0)
        return "must begin with http:// or https://";
    for (size_t i = 0; i < url.n; i++)
        if ((unsigned char)url.p[i] <= ' ' || (unsigned char)url.p[i] >= 0x7f)
            return "must not contain blanks, control characters or letters outside ASCII; write "
                   "them as %XX";
    while (host_end < url.n && !strchr("/?#", url.p[host_end]))
        host_end++;
    if (host_end == scheme || url.p[scheme] == ':')
        return "names no host";
    if (memchr(url.p + scheme, '@', host_end - scheme))
        return "must not contain a user or password; send them as a header";
    if (str_find(url, '#') != url.n)
        return "must not contain a #fragment";
    return NULL;
}

bool option_read_url(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err)
{
    const char *complaint;
    struct str url = STR_NONE;

    if (!field_string(b, f, v, &url, err))
        return false;
    /* With a secret in it, it is checked when the secret is known. */
    bool is_known = !secret_has_reference(url) && reading_of(b)->unexpanded != v;
    complaint = is_known ? value_url_complaint(url) : NULL;
    if (complaint)
        return js_bind_fault(b, v, err, "\"%s\" %s", f->name, complaint);
    if (((struct str *)place)->p)
        return js_bind_fault(b, v, err, "\"%s\" gives a second URL; keep one of them", f->name);
    *(struct str *)place = url;
    return true;
}

/* A separate function, so that the effective configuration writes only "url". */
bool option_read_url_alias(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err)
{
    return option_read_url(b, f, v, place, err);
}

static bool check_origin(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, struct str text, struct error *err)
{
    const char *mark = memmem(text.p, text.n, "://", 3);
    struct str host = mark ? str_n(mark + 3, (size_t)(text.p + text.n - mark) - 3) : STR_NONE;
    bool ok = mark && mark != text.p && host.n > 0;

    for (size_t i = 0; ok && i < text.n; i++)
        ok = (unsigned char)text.p[i] > ' ' && (unsigned char)text.p[i] < 0x7f && text.p[i] != '*';
    for (size_t i = 0; ok && i < host.n; i++)
        ok = !strchr("/?#@", host.p[i]);
    return ok || js_bind_fault(b, v, err,
                               "\"%s\" takes origins such as \"https://example.com\" or "
                               "\"http://localhost:3000\", with no path and no *",
                               f->name);
}

bool option_read_origins(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err)
{
    return value_list(b, f, v, place, check_origin, err);
}

static bool is_network(struct str text)
{
    size_t slash = str_find(text, '/');
    char host[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    uint64_t bits;
    bool v6;

    if (slash >= sizeof(host))
        return false;
    memcpy(host, text.p, slash);
    host[slash] = '\0';
    v6 = strchr(host, ':') != NULL;
    if (inet_pton(v6 ? AF_INET6 : AF_INET, host, bytes) != 1)
        return false;
    return slash == text.n ||
           str_to_u64(str_n(text.p + slash + 1, text.n - slash - 1), v6 ? 128 : 32, &bits);
}

static bool check_network(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, struct str text, struct error *err)
{
    return is_network(text) ||
           js_bind_fault(b, v, err,
                         "\"%s\" takes addresses such as \"10.0.0.1\" and networks such as "
                         "\"10.0.0.0/8\"",
                         f->name);
}

bool option_read_proxies(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err)
{
    return value_list(b, f, v, place, check_network, err);
}

bool value_name(const struct js_binding *b, const struct js_field *f, const struct js_node *key,
                struct str *ret, struct error *err)
{
    struct str name = js_text(b->doc, key, b->mem);

    if (!value_is_name(name))
        return js_bind_fault(b, key, err,
                             "names in \"%s\" have 1 to %d letters, digits and . _ -; choose "
                             "another",
                             f->name, CONFIG_NAME_MAX);
    *ret = name;
    return true;
}
