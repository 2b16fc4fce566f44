/* SPDX-License-Identifier: Apache-2.0 */
/* Reads "sinks".  The address of a sink is read like the entry of a server with a url (outward.c). */
#include "config/sinks.h"

#include "config/config_impl.h"

#include <stdlib.h>

_Static_assert(offsetof(struct sink_config, target) == 0 &&
                   offsetof(struct server_draft, server) == 0,
               "readers of server entries fill the target of a sink");

static bool is_name(struct str name)
{
    bool ok = name.n > 0 && name.n <= CONFIG_SINK_NAME_MAX;

    for (size_t i = 0; ok && i < name.n; i++) {
        char c = name.p[i];
        ok = ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') ||
             (i > 0 && (c == '_' || c == '-'));
    }
    return ok;
}

bool option_read_sink_name(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err)
{
    struct str text;

    if (!value_string(b, v, "\"name\"", &text, err))
        return false;
    if (!is_name(text))
        return js_bind_fault(b, v, err,
                             "\"%s\" of a sink has 1 to %d letters, digits, _ and -, the first a "
                             "letter or digit; choose another name",
                             f->name, CONFIG_SINK_NAME_MAX);
    *(struct str *)place = text;
    return true;
}

/* http:// and https:// for a webhook; tcp:// and tls:// for syslog.  check_syslog_url() looks at the
 * rest of the latter. */
bool option_read_sink_url(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err)
{
    struct str text;

    if (js_type_is(v, JS_STRING) && (str_starts(js_text(b->doc, v, b->mem), STR("tcp://")) ||
                                     str_starts(js_text(b->doc, v, b->mem), STR("tls://")))) {
        if (!value_string(b, v, "\"url\"", &text, err))
            return false;
        *(struct str *)place = text;
        return true;
    }
    return option_read_url(b, f, v, place, err);
}

bool option_read_sink_path(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err)
{
    const char *home = getenv("HOME");
    struct str path;

    if (!option_read_file(b, f, v, &path, err))
        return false;
    if (home && str_starts(path, STR("~/")))
        path = arena_printf(b->mem, "%s%.*s", home, (int)path.n - 1, path.p + 1);
    if (path.p[0] != '/' || path.p[path.n - 1] == '/' || path.n > 1000)
        return js_bind_fault(b, v, err,
                             "\"%s\" of a sink is the full path of a file, such as "
                             "/var/log/holdfast/events.jsonl, of at most 1000 bytes",
                             f->name);
    *(struct str *)place = path;
    return true;
}

bool option_read_sink_secret(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, void *place, struct error *err)
{
    struct str text;

    if (!value_string(b, v, "\"secret\"", &text, err))
        return false;
    credential_note_literal(b, STR("secret"), v);
    if (!secret_has_reference(text) && reading_of(b)->unexpanded != v &&
        text.n < CONFIG_SINK_SECRET_MIN)
        return js_bind_fault(b, v, err, "\"%s\" of a sink has at least %d bytes; use a longer one",
                             f->name, CONFIG_SINK_SECRET_MIN);
    *(struct str *)place = text;
    return true;
}

/* tcp://HOST:PORT or tls://HOST:PORT, without anything behind it. */
static bool is_syslog_url(struct str url)
{
    struct str rest = str_n(url.p + 6, url.n - 6);
    size_t colon = rest.n;
    uint64_t port;

    while (colon > 0 && rest.p[colon - 1] != ':')
        colon--;
    if (colon < 2 || colon - 1 > 255 ||
        !str_to_u64(str_n(rest.p + colon, rest.n - colon), 65535, &port) || port == 0)
        return false;
    bool is_v6 = rest.p[0] == '[' && rest.p[colon - 2] == ']';
    for (size_t i = 0; i + 1 < colon; i++)
        if ((unsigned char)rest.p[i] <= ' ' || (unsigned char)rest.p[i] > 0x7e ||
            strchr(is_v6 ? "/@?#" : "/@?#[]:", rest.p[i]))
            return false;
    return true;
}

/* What each type takes. */
static const char *complaint_about(const struct sink_config *s)
{
    struct str url = s->target.url;
    bool is_syslog = s->type == SINK_SYSLOG;
    bool is_stream = str_starts(url, STR("tcp://")) || str_starts(url, STR("tls://"));

    if ((s->type == SINK_FILE) != (s->path.p != NULL))
        return s->path.p ? "\"path\" belongs to sinks of the type file; remove it"
                         : "a sink of the type file needs \"path\"; add it";
    if ((s->type == SINK_FILE) == (url.p != NULL))
        return url.p ? "a sink of the type file has no \"url\"; remove it"
                     : "this sink needs \"url\"; add it";
    if (s->type != SINK_WEBHOOK && (s->target.n_headers || s->target.secret.p))
        return "\"headers\" and \"secret\" belong to sinks of the type webhook; remove them";
    if (url.p && is_syslog != is_stream)
        return is_syslog ? "\"url\" of a syslog sink is tls://HOST:PORT or tcp://HOST:PORT"
                         : "\"url\" of a webhook begins with https:// or http://";
    if (is_syslog && !is_syslog_url(url))
        return "\"url\" of a syslog sink is tls://HOST:PORT or tcp://HOST:PORT, with nothing after "
               "the port";
    if (s->target.tls_ca.p && !str_starts(url, STR("https://")) && !str_starts(url, STR("tls://")))
        return "\"tls\" has no effect without https:// or tls:// in \"url\"; correct one of them";
    return NULL;
}

static bool is_first_of_name(const struct sink_config *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_ieq(list[i].name, list[n].name))
            return false;
    return true;
}

/* Begins the target like outward_begin(), so that errors and secrets name the sink. */
static struct str name_of(const struct js_binding *b, const struct js_node *v)
{
    struct str name = js_type_is(v, JS_OBJECT)
                          ? js_text(b->doc, js_get(b->doc, v, STR("name")), b->mem)
                          : STR_NONE;

    return arena_printf(b->mem, "sinks.%.*s", is_name(name) ? (int)name.n : 1,
                        is_name(name) ? name.p : "?");
}

static bool read_sink(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      struct sink_config *s, struct error *err)
{
    const char *complaint;

    s->at = value_place(b, v);
    if (!outward_read(b, f, v, name_of(b, v), &s->target, err))
        return false;
    complaint = complaint_about(s);
    if (complaint)
        return js_bind_fault(b, v, err, "the sink \"%.*s\": %s", STR_ARG(s->name), complaint);
    return true;
}

bool option_read_sinks(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    size_t n = 0;

    if (!js_type_is(v, JS_ARRAY))
        return js_bind_fault(b, v, err, "\"%s\" must be an array of objects", f->name);
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e))
        n++;
    if (n > CONFIG_SINKS_MAX)
        return js_bind_fault(b, v, err, "\"%s\" has at most %d sinks", f->name, CONFIG_SINKS_MAX);
    c->sinks = arena_zalloc(b->mem, (n + 1) * sizeof(*c->sinks));
    c->n_sinks = 0;
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e)) {
        if (!read_sink(b, f, e, &c->sinks[c->n_sinks], err))
            return false;
        if (!is_first_of_name(c->sinks, c->n_sinks))
            return js_bind_fault(b, e, err, "two sinks have the name \"%.*s\"; rename one of them",
                                 STR_ARG(c->sinks[c->n_sinks].name));
        c->n_sinks++;
    }
    return true;
}

static bool words_equal(const struct str *a, size_t n_a, const struct str *b, size_t n_b)
{
    bool same = n_a == n_b;

    for (size_t i = 0; same && i < n_a; i++)
        same = str_eq(a[i], b[i]);
    return same;
}

bool sink_config_equal(const struct sink_config *a, const struct sink_config *b)
{
    const struct sink_words *x[] = {&a->types, &a->session, &a->server, &a->tool, &a->outcome};
    const struct sink_words *y[] = {&b->types, &b->session, &b->server, &b->tool, &b->outcome};
    bool same = str_eq(a->name, b->name) && a->type == b->type && str_eq(a->path, b->path) &&
                memcmp(a->target.definition, b->target.definition, 32) == 0 &&
                a->bodies == b->bodies && a->max_size == b->max_size && a->keep == b->keep &&
                words_equal(a->tenants, a->n_tenants, b->tenants, b->n_tenants);

    for (size_t i = 0; same && i < countof(x); i++)
        same = words_equal(x[i]->items, x[i]->n, y[i]->items, y[i]->n);
    return same;
}
