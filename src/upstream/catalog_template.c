/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a URI template could have produced a URI.  Used to find the server of a resource that no
 * list names.  A wrong yes costs one refused read; a wrong no makes a resource unreachable.  So
 * expressions match generously and literals exactly. */
#include "upstream/catalog.h"

#define MAX_TEMPLATE 4096
#define MAX_URI 8192
#define MAX_STEPS 200000 /* both sides come from peers: beyond this, no match */
#define MAX_EXPRESSION 256

/* The shape of one expression. */
enum placeholder { PLACEHOLDER_NONE, PLACEHOLDER_SEGMENT, PLACEHOLDER_ANY };

/* The expression at template[at], '{' included; *ret_end is just past its '}'. */
static enum placeholder placeholder_at(struct str t, size_t at, size_t *ret_end)
{
    size_t end = at + 1;

    if (at >= t.n || t.p[at] != '{')
        return PLACEHOLDER_NONE;
    while (end < t.n && t.p[end] != '}' && t.p[end] != '{' && end - at < MAX_EXPRESSION)
        end++;
    if (end == t.n || t.p[end] != '}' || end == at + 1)
        return PLACEHOLDER_NONE; /* an unclosed or empty brace is literal */
    *ret_end = end + 1;
    return memchr("+#./;?&", t.p[at + 1], 7) ? PLACEHOLDER_ANY : PLACEHOLDER_SEGMENT;
}

/* Wildcard matching that remembers the last {+x} and the last {x}.  After a failure the newest
 * placeholder that can still grow is extended. */
struct retry {
    size_t after; /* just past the expression in the template */
    size_t tried; /* end of its value in the uri */
    bool possible;
};

static bool grow(struct retry *r, struct str uri, bool segment)
{
    if (!r->possible || r->tried >= uri.n || (segment && uri.p[r->tried] == '/'))
        return r->possible = false;
    r->tried++;
    return true;
}

bool catalog_template_matches(struct str t, struct str uri)
{
    struct retry segment = {0}, any = {0};
    size_t at = 0, u = 0, end;

    if (t.n > MAX_TEMPLATE || uri.n > MAX_URI)
        return false;
    for (unsigned step = 0; step < MAX_STEPS; step++) {
        enum placeholder placeholder = placeholder_at(t, at, &end);
        if (placeholder == PLACEHOLDER_ANY) {
            any = (struct retry){.after = end, .tried = u, .possible = true};
            segment.possible = false;
            at = end;
        } else if (placeholder == PLACEHOLDER_SEGMENT && u < uri.n && uri.p[u] != '/') {
            segment = (struct retry){.after = end, .tried = ++u, .possible = true};
            at = end;
        } else if (placeholder == PLACEHOLDER_NONE && at < t.n && u < uri.n &&
                   t.p[at] == uri.p[u]) {
            at++;
            u++;
        } else if (at == t.n && u == uri.n) {
            return true;
        } else if (grow(&segment, uri, true)) {
            at = segment.after;
            u = segment.tried;
        } else if (grow(&any, uri, false)) {
            at = any.after;
            u = any.tried;
            segment.possible = false;
        } else {
            return false;
        }
    }
    return false;
}
