/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a server about a running call, on their way to that call's client: questions
 * (sampling, elicitation, roots), log lines, other notifications. */
#include "exchange/exchange.h"

#define MAX_MESSAGE (64u * 1024 * 1024)
#define MAX_LEVEL                                                                                  \
    64 /* bytes: a longer value is not a level, and is not copied into the call's memory */

/* Only a legacy client with a transport can answer, and only to a legacy server. */
bool exchange_ask(struct services *sv, struct call *c, const struct mcp_message *m,
                  bool (*say)(void *arg, struct str json), void *arg)
{
    struct buf text;
    bool sent = true; /* also at the limit: the hub has then answered the server */

    if (!mcp_era(c->client_era)->asks_by_requests || !c->transport)
        return false;
    buf_init(&text, MAX_MESSAGE);
    struct ask *a = hub_ask(sv->hub, c->pending.link, &c->pending, m, c->transport, &text);
    if (a) {
        sent = say(arg, buf_str(&text));
        if (!sent)
            hub_ask_drop(a);
    }
    buf_release(&text);
    return sent;
}

static bool say_question(void *exchange, struct str json)
{
    return exchange_send_message(exchange, json, OUTLET_MUST);
}

/* A modern client gets log lines only for a request that asked for them, and from that level up. */
static bool wants_log(struct exchange *x, const struct mcp_message *m)
{
    const struct js_node *wanted = js_get(&x->msg.doc, x->msg.meta, STR(MCP_KEY_LOG_LEVEL));
    const struct js_node *said = mcp_param(m, STR("level"));

    if (!mcp_era(x->era)->has_envelope)
        return true;
    if (!wanted || !said || js_raw(&m->doc, said).n > MAX_LEVEL)
        return false;
    const char *level = mcp_level(js_text(&m->doc, said, x->mem));
    return level && mcp_level_reaches(level, mcp_level(js_text(&x->msg.doc, wanted, x->mem)));
}

/* A client of 2026-07-28 gets changes only on its subscriptions/listen, never on the stream of a
 * request.  A legacy client gets changes of the lists that it is shown. */
static bool wants_change(const struct exchange *x, const struct mcp_message *m)
{
    enum catalog_kind kind = catalog_kind_changed(m->method);
    bool is_update = str_eq(m->method, STR("notifications/resources/updated"));
    struct listener_scope a;

    if (mcp_era(x->era)->has_listen && (kind != CATALOG_KINDS || is_update))
        return false;
    if (kind == CATALOG_KINDS)
        return true;
    a = exchange_listener_scope(x);
    return listener_may_see(x->sv, &a, x->session, x->up, kind);
}

bool exchange_pass_message(struct exchange *x, const struct mcp_message *m)
{
    bool is_log = str_eq(m->method, STR("notifications/message"));

    if (m->kind == MCP_REQUEST)
        return exchange_ask(x->sv, x->call, m, say_question, x);
    if ((is_log && !wants_log(x, m)) || !wants_change(x, m))
        return true; /* dropped */
    return exchange_send_message(x, m->doc.text, mcp_is_droppable(m) ? OUTLET_MAY : OUTLET_MUST);
}
