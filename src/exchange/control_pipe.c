/* SPDX-License-Identifier: Apache-2.0 */
/* `holdfast stdio` opens a pipe to a running Holdfast with one request on the control socket.
 * After the answer 101, both sides send lines (exchange/pipe.c). */
#include "exchange/routes.h"

#include "exchange/pipe.h"
#include "front/plain.h"
#include "identity/scopes.h"
#include "json/write.h"

#define GREETING                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: holdfast-lines\r\n"

/* The configuration file that the client of a pipe has found. */
struct own_config {
    struct str path; /* absent: the client has no file and accepts ours */
    struct str digest;
};

/* The decoded value of ?name=; absent when the query does not have it.  false: the value is empty,
 * malformed or repeated. */
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

static bool is_uuid(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f') && s.p[i] != '-')
            return false;
    return s.n == 36;
}

static bool read_target(struct http_request *r, struct pipe_target *ret)
{
    return read_query(r, STR("server"), &ret->server) &&
           read_query(r, STR("profile"), &ret->profile) && read_query(r, STR("pipe"), &ret->name) &&
           !(ret->server.p && ret->profile.p) && (!ret->name.p || is_uuid(ret->name));
}

static bool read_config(struct http_request *r, struct own_config *ret)
{
    return read_query(r, STR("config"), &ret->path) && read_query(r, STR("digest"), &ret->digest);
}

static bool is_other_config(const struct config *c, const struct own_config *own)
{
    return own->path.p && !str_eq(own->path, c->identity.path);
}

static bool is_edited(const struct config *c, const struct own_config *own)
{
    return own->path.p && !str_eq(own->digest, str_of(c->identity.digest));
}

static bool serves_sample_only(const struct config *c)
{
    return c->n_servers == 1 && c->servers[0].kind == SERVER_BUILTIN && c->n_folders == 0;
}

/* A pipe never serves another project's servers: a client with a configuration file is refused if
 * this process runs with another file or with none. */
static void refuse_config(struct services *sv, struct http_request *r, const struct own_config *own)
{
    struct str ours = sv->front->config->identity.path;
    struct str text =
        ours.p ? arena_printf(r->mem,
                              "the Holdfast of this data directory serves %.*s, not %.*s; use a "
                              "data directory of its own (--data DIR), or the same --config",
                              STR_ARG(ours), STR_ARG(own->path))
               : arena_printf(r->mem,
                              "the Holdfast of this data directory runs without a configuration, "
                              "not with %.*s; use a data directory of its own (--data DIR), or "
                              "restart that one with --config",
                              STR_ARG(own->path));
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "code", str_of(error_info(ERR_CONFIG)->name));
    js_kv_string(&w, "detail", text);
    js_object_end(&w);
    http_reply(r, 409, "application/json", STR_NONE, buf_str(&out));
    buf_release(&out);
}

/* The head of the answer.  Holdfast-Config is `sample`, `edited` or `same`; the client tells its
 * user about the first two. */
static struct str greeting(const struct services *sv, const struct own_config *own,
                           struct arena *mem)
{
    const char *state = serves_sample_only(sv->front->config) ? "sample"
                        : is_edited(sv->front->config, own)   ? "edited"
                                                              : "same";

    return arena_printf(mem, "%sHoldfast-Config: %s\r\n\r\n", GREETING, state);
}

/* Detaching the connection frees the request, so its values are copied first. */
static void open_pipe(struct services *sv, struct http_request *r, const struct caller *caller,
                      const struct pipe_target *to, const struct own_config *own)
{
    struct arena *mem = arena_new(64 * 1024);
    struct pipe_target copy = {arena_dup(mem, to->server), arena_dup(mem, to->profile),
                               arena_dup(mem, to->name)};
    struct principal who = principal_dup(&caller->who, mem);
    struct str hello = greeting(sv, own, mem);
    int fd = http_request_detach(r);

    if (fd >= 0)
        pipe_open(sv->pipes, fd, &who, &copy, hello);
    else
        plain_refuse(r, 400, STR_NONE, "wait for the answer before sending lines");
    arena_free(mem);
}

void control_pipe(void *arg, struct http_request *r, struct caller *caller)
{
    struct services *sv = arg;
    struct pipe_target to;
    struct own_config own;

    if (!read_target(r, &to) || !read_config(r, &own))
        plain_refuse(r, 400, STR_NONE, "name one server or one profile, or none for all servers");
    else if (is_other_config(sv->front->config, &own))
        refuse_config(sv, r, &own);
    else if (to.server.p && !upstreams_find(sv->upstreams, to.server))
        plain_refuse(
            r, 404, STR_NONE,
            "no server of this name is configured; see \"mcpServers\" in the configuration "
            "of the Holdfast that runs");
    else if (to.profile.p && !config_profile(sv->front->config, to.profile))
        plain_refuse(r, 404, STR_NONE,
                     "no profile of this name is configured; see \"profiles\" in the "
                     "configuration of the Holdfast that runs");
    else if (sv->front->draining || pipes_count(sv->pipes) >= PIPES_MAX)
        plain_refuse(r, 503, STR("Retry-After: 1\r\n"),
                     sv->front->draining ? "Holdfast is stopping; try again in a moment"
                                         : "too many pipes are open; close one that is not used");
    else
        open_pipe(sv, r, caller, &to, &own);
}
