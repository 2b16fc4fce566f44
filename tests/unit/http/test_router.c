/* SPDX-License-Identifier: Apache-2.0 */
/* Which row a method and path lead to, what is captured, and how a miss is answered. */
#include "test.h"

#include "http/router.h"

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/"},
    {.method = "*", .pattern = "/mcp"},
    {.method = "*", .pattern = "/mcp/{server}"},
    {.method = "GET", .pattern = "/things/{id}"},
    {.method = "DELETE", .pattern = "/things/{id}"},
    {.method = "POST", .pattern = "/things/search"},
    {.method = "PUT", .pattern = "/things/{thing}"},
    {.method = "GET", .pattern = "/things/{id}/parts/{part}"},
    {.method = "GET", .pattern = "/things/{id}/{verb}"},
    {.method = "GET", .pattern = "/things/all/{verb}"},
    {.method = "GET", .pattern = "/deep/{a}/{b}/{c}/{d}"},
    {.method = "GET", .pattern = "/heads", .has_head = true},
    {.method = "POST", .pattern = "/heads"},
    {.method = "GET", .pattern = "/files/{folder}/{+path}"},
    {.method = "PUT", .pattern = "/files/{folder}/{+path}"},
    {.method = "GET", .pattern = "/files/{folder}/{+path:.md}/history"},
    {.method = "GET", .pattern = "/files/{folder}/{+path:.md}/history/{revision:#}"},
    {.method = "POST", .pattern = "/files/{folder}/{+path:.md}/restore"},
};

struct found {
    struct arena *mem;
    const struct http_route *route;
    struct route_match match;
    int status;
    struct str allow;
};

/* A table that was prepared finds the same. */
static void check_prepared(struct http_request *r, const struct found *plain)
{
    struct http_route copy[countof(routes)];
    struct found f = {.mem = r->mem};

    memcpy(copy, routes, sizeof(copy));
    router_prepare(copy, countof(copy));
    assert_int_equal(copy[2].segments, 2);
    assert_int_equal(copy[13].segments, 0);
    f.route = router_find(copy, countof(copy), r, &f.match, &f.status, &f.allow);
    assert_int_equal(f.status, plain->status);
    assert_true((f.route == NULL) == (plain->route == NULL));
    if (f.route)
        assert_int_equal(f.route - copy, plain->route - routes);
    assert_true(str_eq(f.allow, plain->allow) || (!f.allow.p && !plain->allow.p));
}

static struct found find(const char *method, const char *path)
{
    struct found f = {.mem = arena_new(1 << 16)};
    struct http_head head = {.method = str_of(method), .path = str_of(path)};
    struct http_request r = {.mem = f.mem, .head = &head};
    f.route = router_find(routes, countof(routes), &r, &f.match, &f.status, &f.allow);
    check_prepared(&r, &f);
    return f;
}

TEST(test_router__paths_lead_to_their_rows)
{
    static const struct {
        const char *method, *path, *pattern; /* pattern NULL: none */
        int status;
    } rows[] = {
        {"GET", "/", "/", 0},
        {"BREW", "/mcp", "/mcp", 0},
        {"POST", "/mcp/docs", "/mcp/{server}", 0},
        {"GET", "/things/7", "/things/{id}", 0},
        {"PUT", "/things/7", "/things/{thing}", 0},
        {"POST", "/things/search", "/things/search", 0},
        {"POST", "/things/se%61rch", "/things/search", 0},
        {"GET", "/things/search", NULL, 405},
        {"GET", "/things/7/parts/8", "/things/{id}/parts/{part}", 0},
        {"GET", "/things/7/open", "/things/{id}/{verb}", 0},
        {"GET", "/things/all/parts", "/things/all/{verb}", 0},
        {"GET", "/deep/1/2/3/4", "/deep/{a}/{b}/{c}/{d}", 0},
        {"GET", "/heads", "/heads", 0},
        {"HEAD", "/heads", "/heads", 0},
        {"head", "/heads", NULL, 405},
        {"HEAD", "/things/7", NULL, 405},
        {"GET", "/deep/1/2/3/4/5", NULL, 404},
        {"GET", "/deep/1/2/3", NULL, 404},
        {"GET", "", NULL, 400},
        {"GET", "/mcp/", NULL, 404},
        {"GET", "//", NULL, 404},
        {"GET", "//mcp", NULL, 404},
        {"GET", "/MCP", NULL, 404},
        {"GET", "/mcpx", NULL, 404},
        {"GET", "/mc", NULL, 404},
        {"POST", "/", NULL, 405},
        {"get", "/", NULL, 405},
        {"GET", "/mcp/a%2fb", NULL, 400},
        {"GET", "/mcp%2fa", NULL, 400},
        {"GET", "/mcp/..", NULL, 400},
        {"GET", "/mcp/%2e%2e/x", NULL, 400},
        {"GET", "/mcp/./x", NULL, 400},
        {"GET", "/mcp/%00", NULL, 400},
        {"GET", "/mcp/%zz", NULL, 400},
        {"GET", "/mcp/a\\b", NULL, 400},
        {"GET", "/mcp/a/b/c/d/e/%zz", NULL, 400},
        {"GET", "/files/F/a.md", "/files/{folder}/{+path}", 0},
        {"PUT", "/files/F/a/b/c.md", "/files/{folder}/{+path}", 0},
        {"GET", "/files/F/a/b/c.md/history", "/files/{folder}/{+path:.md}/history", 0},
        {"GET", "/files/F/C.MD/history", "/files/{folder}/{+path:.md}/history", 0},
        {"GET", "/files/F/a/c.md/history/12", "/files/{folder}/{+path:.md}/history/{revision:#}",
         0},
        {"POST", "/files/F/a.md/restore", "/files/{folder}/{+path:.md}/restore", 0},
        {"GET", "/files/F/a.md/restore", NULL, 405},
        {"PUT", "/files/F/a.md/history", NULL, 405},
        /* Directories may be called so too. */
        {"GET", "/files/F/a/history", "/files/{folder}/{+path}", 0},
        {"GET", "/files/F/a/history/7", "/files/{folder}/{+path}", 0},
        {"GET", "/files/F/history/7.md", "/files/{folder}/{+path}", 0},
        {"GET", "/files/F/x.md/history/y.md", "/files/{folder}/{+path}", 0},
        {"GET", "/files/F/.md/history", "/files/{folder}/{+path}", 0},
        {"GET", "/files/F", NULL, 404},
        {"GET", "/files/F/", NULL, 404},
        {"GET", "/files/F/a//b.md", NULL, 404},
        {"GET", "/files/F/a/", NULL, 404},
        {"GET", "/files/F/a%2fb.md", NULL, 400},
        {"GET", "/files/F/../a.md", NULL, 400},
        {"GET", "/files/F/a/%2e%2e/b.md", NULL, 400},
        {"GET",
         "/files/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/25/26/27/28/29/"
         "30/31/32/33/34/35/36/37/38/39/40/41/42/43/44/45/46/47/48.md",
         "/files/{folder}/{+path}", 0},
        {"GET",
         "/files/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/25/26/27/28/29/"
         "30/31/32/33/34/35/36/37/38/39/40/41/42/43/44/45/46/47/48/49/50.md",
         NULL, 404},
        {"GET", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", NULL, 404},
        {"GET", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18", NULL, 404},
        {"GET", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/%", NULL, 400},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct found f = find(rows[i].method, rows[i].path);
        const char *pattern = f.route ? f.route->pattern : "none";
        if (strcmp(pattern, rows[i].pattern ? rows[i].pattern : "none") != 0 ||
            f.status != rows[i].status)
            fail_msg("%s %s: %s, %d", rows[i].method, rows[i].path, pattern, f.status);
        arena_free(f.mem);
    }
}

TEST(test_router__captures_are_decoded_once)
{
    struct found f = find("GET", "/things/a%20%2525+b/parts/caf%c3%a9");
    assert_int_equal(f.match.n, 2);
    assert_str(f.match.params[0], "a %25+b");
    assert_str(f.match.params[1], "caf\xc3\xa9");
    arena_free(f.mem);
}

TEST(test_router__several_segments_are_one_text)
{
    struct found f = find("GET", "/files/My%20F/a%20b/caf%c3%a9/c.md/history/12");
    assert_int_equal(f.match.n, 3);
    assert_str(f.match.params[0], "My F");
    assert_str(f.match.params[1], "a b/caf\xc3\xa9/c.md");
    assert_str(f.match.params[2], "12");
    arena_free(f.mem);
    f = find("DELETE", "/files/F/a/b.md");
    assert_str(f.allow, "GET, PUT");
    arena_free(f.mem);
}

TEST(test_router__rows_without_captures_have_none)
{
    struct found f = find("POST", "/things/search");
    assert_int_equal(f.match.n, 0);
    arena_free(f.mem);
}

TEST(test_router__allow_lists_the_methods_of_the_path)
{
    struct found f = find("PATCH", "/things/7");
    assert_int_equal(f.status, 405);
    assert_str(f.allow, "GET, DELETE, PUT");
    arena_free(f.mem);
    f = find("GET", "/things/search");
    assert_str(f.allow, "POST");
    arena_free(f.mem);
}
