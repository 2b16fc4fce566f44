/* SPDX-License-Identifier: Apache-2.0 */
/* How `holdfast stdio` gets its lines to a running Holdfast: one request on the control socket,
 * answered 101, after which both sides speak lines (exchange/pipe.c). */
#include "rest/front.h"

#include "exchange/pipe.h"
#include "identity/scopes.h"

#define GREETING                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: holdfast-lines\r\n\r\n"

/* ?server=NAME; absent without one.  false when it cannot be read. */
static bool server_of(struct http_request *r, struct str *ret)
{
    unsigned count = 0;
    struct str query = r->head->query.p ? r->head->query : STR("");
    struct str value = http_query_get(query, STR("server"), &count);

    *ret = STR_NONE;
    if (count == 0)
        return true;
    char *text = arena_alloc(r->mem, value.n + 1);
    int n = count == 1 ? http_percent_decode(value, text, false) : -1;
    if (n <= 0)
        return false;
    *ret = str_n(text, (size_t)n);
    return true;
}

void front_control_pipe(void *arg, struct http_request *r, const struct route_match *m unused_arg)
{
    struct services *sv = arg;
    struct principal who;
    struct str server;
    int fd;

    if (!server_of(r, &server)) {
        front_refuse(r, 400, STR_NONE, "name one server, or none for all of them");
    } else if (server.p && !upstreams_find(sv->upstreams, server)) {
        front_refuse(
            r, 404, STR_NONE,
            "no server of this name is configured; see \"mcpServers\" in the configuration "
            "of the Holdfast that runs");
    } else if (sv->draining || pipes_count(sv->pipes) >= PIPES_MAX) {
        front_refuse(r, 503, STR("Retry-After: 1\r\n"),
                     sv->draining ? "Holdfast is stopping; try again in a moment"
                                  : "too many pipes are open; close one that is not used");
    } else {
        /* The request is gone with its connection: what is needed of it is copied first. */
        struct arena *mem = arena_new(64 * 1024);
        server = arena_dup(mem, server);
        who = principal_dup(r->who, mem);
        fd = http_request_detach(r);
        if (fd >= 0)
            pipe_open(sv->pipes, fd, &who, server, STR(GREETING));
        else
            front_refuse(r, 400, STR_NONE, "wait for the answer before sending lines");
        arena_free(mem);
    }
}
