/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a link its log level.  The request has an entry in the ledger like any other, so its answer
 * does not count as odd; the content of the answer does not matter. */
#include "call/level.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

struct level_request {
    struct pending pending;
    void (*go)(void *arg, struct link *l, const struct error *err); /* NULL: no call waits */
    void *arg;
};

static void over(struct level_request *request, const struct error *err)
{
    void (*go)(void *, struct link *, const struct error *) = request->go;
    void *arg = request->arg;
    struct link *l = request->pending.link;

    free(request);
    if (go)
        go(arg, l, err);
}

static void on_reply(struct pending *p, struct mcp_message *m unused_arg, struct arena *mem)
{
    arena_free(mem);
    over(container_of(p, struct level_request, pending), NULL);
}

/* A server that is too slow for this may still be quick enough for the call. */
static void on_fail(struct pending *p, const struct error *err, bool left unused_arg)
{
    bool is_gone = err->code == ERR_UNREACHABLE || err->code == ERR_SESSION_NOT_FOUND;

    log_debug("a log level was not taken", LZ("why", err->text));
    over(container_of(p, struct level_request, pending), is_gone ? err : NULL);
}

struct level_request *level_send(struct link *l, const char *level,
                                 void (*go)(void *arg, struct link *l, const struct error *err),
                                 void *arg)
{
    struct exec token = exec_housekeeping(EXEC_LIST);
    struct level_request *request;
    struct error ignored;
    char text[160];

    if (!link_takes_level(l, level))
        return NULL;
    request = xcalloc(1, sizeof(*request));
    request->pending.id = upstream_next_id_for(link_upstream(l));
    request->pending.on_reply = on_reply;
    request->pending.on_fail = on_fail;
    int n = snprintf(text, sizeof(text),
                     "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"logging/setLevel\",\"params\":"
                     "{\"level\":\"%s\"}}",
                     (unsigned long long)request->pending.id, level);
    struct outgoing m = {.method = STR("logging/setLevel"), .text = str_n(text, (size_t)n)};
    if (!upstream_send(l, &token, &request->pending, &m, &ignored)) {
        free(request); /* the call itself will fail with the reason */
        return NULL;
    }
    if (upstream_config(link_upstream(l))->kind != SERVER_HTTP)
        return NULL;
    request->go = go;
    request->arg = arg;
    return request;
}

void level_drop(struct level_request *request)
{
    request->go = NULL;
}
