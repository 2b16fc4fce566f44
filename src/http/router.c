/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the row for a request.  The path is split at its slashes first, then each segment is
 * decoded once.  So an encoded slash can never split a segment, and handlers get the text that was
 * matched.
 *
 * The path selects the pattern, fixed words before captures from left to right; then the method
 * selects among the rows of that pattern.  So "DELETE /things/search" is 405 when only GET is
 * listed for it, and never reaches the handler of "/things/{id}" with the id "search".  A capture
 * is never empty: "/things/" does not match "/things/{id}". */
#include "http/router.h"

/* More than any served path has; a longer path is checked and matches nothing. */
#define MAX_SEGMENTS 48

struct segments {
    struct str at[MAX_SEGMENTS];
    unsigned n; /* may be larger than MAX_SEGMENTS */
};

/* Splits and decodes; false when a segment cannot be decoded.  Decoded segments are contiguous,
 * with slashes between them, so several segments are one text too. */
static bool split_path(struct str path, struct arena *mem, struct segments *ret)
{
    if (path.n == 0 || path.p[0] != '/')
        return false;
    char *out = arena_alloc(mem, path.n);
    struct str rest = str_n(path.p + 1, path.n - 1);
    while (rest.p) {
        int n = http_percent_decode(str_split(&rest, '/'), out, true);
        if (n < 0)
            return false;
        if (ret->n < MAX_SEGMENTS)
            ret->at[ret->n] = str_n(out, (size_t)n);
        ret->n++;
        out += n;
        if (rest.p)
            *out++ = '/';
    }
    return true;
}

/* Advances the pattern past `word` if the pattern has this whole word here. */
static bool take_word(const char **pattern, struct str word)
{
    const char *past = *pattern + word.n;

    if (strncmp(*pattern, word.p, word.n) != 0 || (*past && *past != '/'))
        return false;
    *pattern = past;
    return true;
}

static bool ends_as(struct str text, struct str end)
{
    return text.n > end.n && str_ieq(str_n(text.p + text.n - end.n, end.n), end);
}

static bool is_number(struct str text)
{
    uint64_t number;
    return str_to_u64(text, INT64_MAX, &number);
}

/* Takes the segments that the capture at *pattern ("{…}") matches, from path->at[*i] on. */
static bool take_capture(const char **pattern, const struct segments *path, unsigned *i,
                         struct str *ret)
{
    const char *end = strchrnul(*pattern, '}');
    const char *colon = memchr(*pattern, ':', (size_t)(end - *pattern));
    struct str rule = colon ? str_n(colon + 1, (size_t)(end - colon - 1)) : STR("");
    unsigned behind = 0, n = 1;

    for (const char *p = end; *p; p++)
        behind += *p == '/';
    if ((*pattern)[1] == '+')
        n = path->n > *i + behind ? path->n - *i - behind : 0;
    if (n == 0)
        return false;
    for (unsigned k = *i; k < *i + n; k++)
        if (path->at[k].n == 0)
            return false;
    struct str last = path->at[*i + n - 1];
    if (rule.n && !(rule.p[0] == '#' ? is_number(last) : ends_as(last, rule)))
        return false;
    *ret = str_n(path->at[*i].p, (size_t)(last.p + last.n - path->at[*i].p));
    *pattern = *end ? end + 1 : end;
    *i += n - 1;
    return true;
}

/* Matches one pattern.  *ret_rank orders patterns that match the same path.  It has a bit for each
 * fixed word, the leftmost the most significant, so patterns of equal rank are the same pattern. */
static bool match_pattern(const char *pattern, const struct segments *path, struct route_match *ret,
                          uint64_t *ret_rank)
{
    const char *at = pattern + 1;
    struct route_match match;
    uint64_t rank = 0;
    unsigned i = 0;

    /* Most rows differ in their first letter. */
    if (at[0] && at[0] != '{' && path->n && path->at[0].n && at[0] != path->at[0].p[0])
        return false;
    match.n = 0;
    if (path->n > MAX_SEGMENTS)
        return false;
    for (; i < path->n; i++) {
        if (i > 0 && *at++ != '/')
            return false;
        if (*at == '{') {
            if (match.n == ROUTE_MAX_PARAMS || !take_capture(&at, path, &i, &match.params[match.n]))
                return false;
            match.n++;
        } else if (take_word(&at, path->at[i])) {
            rank |= UINT64_C(1) << (MAX_SEGMENTS - i);
        } else {
            return false;
        }
    }
    if (*at || i != path->n)
        return false;
    *ret = match;
    *ret_rank = rank;
    return true;
}

void router_prepare(struct http_route *routes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        routes[i].segments = 0;
        if (strstr(routes[i].pattern, "{+"))
            continue;
        for (const char *p = routes[i].pattern; *p; p++)
            routes[i].segments += *p == '/';
    }
}

static bool method_fits(const struct http_route *route, struct str method)
{
    return str_eq(str_of(route->method), STR("*")) || str_eq(str_of(route->method), method) ||
           (route->has_head && str_eq(method, STR("HEAD")));
}

/* Lists the methods of all rows with a pattern that matches with this rank. */
static struct str list_methods(const struct http_route *routes, size_t n,
                               const struct segments *path, uint64_t rank, struct arena *mem)
{
    struct str list = STR("");
    for (size_t i = 0; i < n; i++) {
        struct route_match match;
        uint64_t this_rank;
        if (!match_pattern(routes[i].pattern, path, &match, &this_rank) || this_rank != rank)
            continue;
        list = arena_printf(mem, "%.*s%s%s%s", STR_ARG(list), list.n ? ", " : "", routes[i].method,
                            routes[i].has_head ? ", HEAD" : "");
    }
    return list;
}

const struct http_route *router_find(const struct http_route *routes, size_t n,
                                     struct http_request *r, struct route_match *ret,
                                     int *ret_status, struct str *ret_allow)
{
    struct segments path;
    path.n = 0;
    if (!split_path(r->head->path, r->mem, &path)) {
        *ret_status = 400;
        return NULL;
    }
    const struct http_route *best = NULL;
    uint64_t best_rank = 0, rank = 0;
    bool is_known = false, fits = false;
    struct route_match match;
    for (size_t i = 0; i < n; i++) {
        /* Rows of one pattern are adjacent, and mostly share its text. */
        if (i == 0 || routes[i].pattern != routes[i - 1].pattern)
            fits = (!routes[i].segments || routes[i].segments == path.n) &&
                   match_pattern(routes[i].pattern, &path, &match, &rank);
        if (!fits || (is_known && rank < best_rank))
            continue;
        bool is_better = !is_known || rank > best_rank;
        is_known = true;
        best_rank = rank;
        if (is_better)
            best = NULL;
        if (!best && method_fits(&routes[i], r->head->method)) {
            best = &routes[i];
            *ret = match;
        }
    }
    if (best)
        return best;
    *ret_status = is_known ? 405 : 404;
    if (is_known)
        *ret_allow = list_methods(routes, n, &path, best_rank, r->mem);
    return NULL;
}
