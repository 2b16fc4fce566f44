/* SPDX-License-Identifier: Apache-2.0 */
/* How `holdfast stdio` gets its lines to a running Holdfast: one request on the control socket,
 * answered 101, after which both sides speak lines (exchange/pipe.c). */
#include "rest/front.h"

#include "exchange/pipe.h"
#include "identity/scopes.h"

#define GREETING                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: holdfast-lines\r\n\r\n"

/* The value of NAME in the query; absent without one.  false when it cannot be read. */
static bool read_query(struct http_request *r, struct str name, struct str *ret)
{
    unsigned count = 0;
    struct str query = r->head->query.p ? r->head->query : STR("");
    struct str value = http_query_get(query, name, &count);

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

static bool read_target(struct http_request *r, struct pipe_target *ret)
{
    return read_query(r, STR("server"), &ret->server) &&
           read_query(r, STR("profile"), &ret->profile) && !(ret->server.p && ret->profile.p);
}

/* The request is gone with its connection: what is needed of it is copied first. */
static void open_pipe(struct services *sv, struct http_request *r, const struct pipe_target *to)
{
    struct arena *mem = arena_new(64 * 1024);
    struct pipe_target kept = {arena_dup(mem, to->server), arena_dup(mem, to->profile)};
    struct principal who = principal_dup(r->who, mem);
    int fd = http_request_detach(r);

    if (fd >= 0)
        pipe_open(sv->pipes, fd, &who, &kept, STR(GREETING));
    else
        front_refuse(r, 400, STR_NONE, "wait for the answer before sending lines");
    arena_free(mem);
}

void front_control_pipe(void *arg, struct http_request *r, const struct route_match *m unused_arg)
{
    struct services *sv = arg;
    struct pipe_target to;

    if (!read_target(r, &to))
        front_refuse(r, 400, STR_NONE, "name one server or one profile, or none for all servers");
    else if (to.server.p && !upstreams_find(sv->upstreams, to.server))
        front_refuse(
            r, 404, STR_NONE,
            "no server of this name is configured; see \"mcpServers\" in the configuration "
            "of the Holdfast that runs");
    else if (to.profile.p && !config_profile(sv->config, to.profile))
        front_refuse(r, 404, STR_NONE,
                     "no profile of this name is configured; see \"profiles\" in the "
                     "configuration of the Holdfast that runs");
    else if (sv->draining || pipes_count(sv->pipes) >= PIPES_MAX)
        front_refuse(r, 503, STR("Retry-After: 1\r\n"),
                     sv->draining ? "Holdfast is stopping; try again in a moment"
                                  : "too many pipes are open; close one that is not used");
    else
        open_pipe(sv, r, &to);
}
