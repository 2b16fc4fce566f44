/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a link its log level.  The request has an entry in the ledger like any other, so its answer
 * does not count as odd; the content of the answer does not matter. */
#include "call/level.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

struct level_news {
    struct pending pending;
    void (*go)(void *arg, struct link *l, const struct error *err); /* NULL: no call waits */
    void *arg;
};

static void over(struct level_news *news, const struct error *err)
{
    void (*go)(void *, struct link *, const struct error *) = news->go;
    void *arg = news->arg;
    struct link *l = news->pending.link;

    free(news);
    if (go)
        go(arg, l, err);
}

static void on_reply(struct pending *p, struct mcp_message *m unused_arg, struct arena *mem)
{
    arena_free(mem);
    over(container_of(p, struct level_news, pending), NULL);
}

/* A server that is too slow for this may still be quick enough for the call. */
static void on_fail(struct pending *p, const struct error *err, bool left unused_arg)
{
    bool is_gone = err->code == ERR_UNREACHABLE || err->code == ERR_SESSION_NOT_FOUND;

    log_debug("a log level was not taken", LZ("why", err->text));
    over(container_of(p, struct level_news, pending), is_gone ? err : NULL);
}

struct level_news *level_tell(struct link *l, const char *level,
                              void (*go)(void *arg, struct link *l, const struct error *err),
                              void *arg)
{
    struct exec token = exec_housekeeping(EXEC_LIST);
    struct level_news *news;
    struct error ignored;
    char text[160];

    if (!link_takes_level(l, level))
        return NULL;
    news = xcalloc(1, sizeof(*news));
    news->pending.id = upstream_next_id_for(link_upstream(l));
    news->pending.on_reply = on_reply;
    news->pending.on_fail = on_fail;
    int n = snprintf(text, sizeof(text),
                     "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"logging/setLevel\",\"params\":"
                     "{\"level\":\"%s\"}}",
                     (unsigned long long)news->pending.id, level);
    struct outgoing m = {.method = STR("logging/setLevel"), .text = str_n(text, (size_t)n)};
    if (!upstream_send(l, &token, &news->pending, &m, &ignored)) {
        free(news); /* the call itself will fail with the reason */
        return NULL;
    }
    if (upstream_config(link_upstream(l))->kind != SERVER_HTTP)
        return NULL;
    news->go = go;
    news->arg = arg;
    return news;
}

void level_forget(struct level_news *news)
{
    news->go = NULL;
}
