/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves references against a base by RFC 3986 section 5.2, so that $id and $ref inside one
 * document match.  Nothing here is ever fetched. */
#include "schema/schema_impl.h"

struct uri {
    struct str scheme, authority, path, query, fragment; /* absent when not given; path may be "" */
};

static size_t scheme_length(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (c == ':')
            return i;
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')))
            return 0;
    }
    return 0;
}

static struct str cut(struct str *rest, const char *stops)
{
    size_t n = 0;
    struct str part;

    while (n < rest->n && !strchr(stops, rest->p[n]))
        n++;
    part = str_n(rest->p, n);
    *rest = str_n(rest->p + n, rest->n - n);
    return part;
}

static struct uri uri_split(struct str s)
{
    struct uri u = {.path = STR("")};
    size_t n = scheme_length(s);
    struct str rest = s;

    if (n) {
        u.scheme = str_n(s.p, n);
        rest = str_n(s.p + n + 1, s.n - n - 1);
    }
    if (str_starts(rest, STR("//"))) {
        rest = str_n(rest.p + 2, rest.n - 2);
        u.authority = cut(&rest, "/?#");
    }
    u.path = cut(&rest, "?#");
    if (rest.n && rest.p[0] == '?') {
        rest = str_n(rest.p + 1, rest.n - 1);
        u.query = cut(&rest, "#");
    }
    if (rest.n)
        u.fragment = str_n(rest.p + 1, rest.n - 1);
    return u;
}

/* Appends `path` without its "." and ".." segments. */
static void add_path(struct buf *out, struct str path)
{
    size_t from = out->n;

    while (path.p) {
        struct str segment = str_split(&path, '/');
        bool last = path.p == NULL;

        if (str_eq(segment, STR("..")) || str_eq(segment, STR("."))) {
            if (segment.n == 2 && out->n > from) {
                out->n--; /* the slash after the previous segment */
                while (out->n > from && out->p[out->n - 1] != '/')
                    out->n--;
                if (out->n == from && out->p && out->p[from] == '/')
                    out->n++;
            }
            continue;
        }
        buf_addstr(out, segment);
        if (!last)
            buf_addc(out, '/');
    }
}

static void merge_path(struct buf *out, const struct uri *base, const struct uri *r)
{
    struct buf joined;
    size_t slash = base->path.n;

    if (r->path.n && r->path.p[0] == '/') {
        add_path(out, r->path);
        return;
    }
    while (slash && base->path.p[slash - 1] != '/')
        slash--;
    buf_init(&joined, 2 * SCHEMA_URI_MAX + 2);
    if (base->authority.p && base->path.n == 0)
        buf_addc(&joined, '/');
    buf_add(&joined, base->path.p, slash);
    buf_addstr(&joined, r->path);
    add_path(out, buf_str(&joined));
    buf_release(&joined);
}

static void add_parts(struct buf *out, struct str scheme, struct str authority)
{
    if (scheme.p) {
        buf_addstr(out, scheme);
        buf_addc(out, ':');
    }
    if (authority.p) {
        buf_addz(out, "//");
        buf_addstr(out, authority);
    }
}

static void resolve(struct buf *out, const struct uri *base, const struct uri *r)
{
    struct str query = r->query;

    if (r->scheme.p) {
        add_parts(out, r->scheme, r->authority);
        if (r->authority.p)
            add_path(out, r->path);
        else
            buf_addstr(out, r->path);
    } else if (r->authority.p) {
        add_parts(out, base->scheme, r->authority);
        add_path(out, r->path);
    } else {
        add_parts(out, base->scheme, base->authority);
        if (r->path.n == 0) {
            buf_addstr(out, base->path);
            query = r->query.p ? r->query : base->query;
        } else {
            merge_path(out, base, r);
        }
    }
    if (query.p) {
        buf_addc(out, '?');
        buf_addstr(out, query);
    }
    if (r->fragment.p) {
        buf_addc(out, '#');
        buf_addstr(out, r->fragment);
    }
}

bool uri_resolve(struct str base, struct str reference, struct arena *mem, struct str *ret)
{
    struct uri b = uri_split(base), r = uri_split(reference);
    struct buf out;
    bool fits;

    if (base.n > SCHEMA_URI_MAX || reference.n > SCHEMA_URI_MAX)
        return false;
    buf_init(&out, 4 * SCHEMA_URI_MAX);
    resolve(&out, &b, &r);
    fits = out.n <= SCHEMA_URI_MAX;
    if (fits)
        *ret = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return fits;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool uri_decode(struct str text, struct arena *mem, struct str *ret)
{
    char *out = arena_alloc(mem, text.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '%') {
            out[n++] = text.p[i];
            continue;
        }
        if (i + 2 >= text.n || hex(text.p[i + 1]) < 0 || hex(text.p[i + 2]) < 0)
            return false;
        out[n++] = (char)(hex(text.p[i + 1]) * 16 + hex(text.p[i + 2]));
        i += 2;
    }
    out[n] = '\0';
    *ret = str_n(out, n);
    return true;
}
