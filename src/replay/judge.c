/* SPDX-License-Identifier: Apache-2.0 */
/* Which recorded calls can be sent again, and the request that sends one. */
#include "replay/impl.h"

#include "json/read.h"
#include "json/write.h"
#include "mcp/version.h"

/* Outcomes without an answer of the server: nothing to compare with. */
static const struct {
    struct str outcome;
    const char *why;
} unanswered[] = {
    {{"open", 4}, "it had no outcome yet when the recording was read"},
    {{"indeterminate", 13}, "whether it ran is not known (its Holdfast ended during the call)"},
    {{"timeout", 7}, "the server did not answer in time, so there is no result to compare with"},
    {{"cancelled", 9}, "its client cancelled it, so there is no result to compare with"},
    {{"refused", 7}, "it was refused and never reached a server"},
    {{"upstream_lost", 13}, "the server was lost during the call, so there is no result"},
    {{"redelivered", 11}, "nothing ran: the client got the result of an earlier call again"},
};

/* Members of the params that only the old session can answer. */
static const char *const bound[] = {"requestState", "inputResponses", "task"};

static const char *bound_member(const struct recorded_call *c)
{
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    const char *found = NULL;
    struct js_doc doc;

    if (js_parse(c->params.bytes, &js_limits_upstream, scratch, &doc, NULL))
        for (size_t i = 0; i < countof(bound) && !found; i++)
            if (js_get(&doc, js_root(&doc), str_of(bound[i])))
                found = bound[i];
    arena_free(scratch);
    return found;
}

bool replay_lacks_body(const struct recorded_call *c)
{
    return c->kind == RECORDED_CALL && c->params.state != RECORDED_COMPLETE;
}

const char *replay_lack(const struct recorded_call *c, struct arena *mem)
{
    if (c->kind == RECORDED_REPORTED)
        return "the client ran it elsewhere and reported it, so no server here has it";
    for (size_t i = 0; i < countof(unanswered); i++)
        if (str_eq(c->outcome, unanswered[i].outcome))
            return unanswered[i].why;
    if (c->kind == RECORDED_NOTE || !str_eq(c->method, STR("tools/call")))
        return "results of this method are not recorded";
    if (replay_lacks_body(c))
        return arena_printf(mem, "its arguments %s", recorded_body_lack(&c->params, mem)).p;
    const char *member = bound_member(c);
    return member ? arena_printf(mem, "its %s belongs to the recorded session alone", member).p
                  : NULL;
}

/* A client of 2026-07-28 sends its version with every request. */
static bool is_modern(const struct recorded_call *c)
{
    struct str rest = c->era, client = str_split(&rest, '>');
    const struct mcp_version *v = client.n ? mcp_version_find(client) : NULL;

    return v && mcp_era(v->era)->has_envelope;
}

void replay_write_request(const struct recorded_call *c, struct buf *out)
{
    buf_addf(out,
             "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"tools/call\",\"params\":{\"name\":",
             (long long)c->number);
    js_quote(out, c->tool);
    if (c->arguments.p) {
        buf_addz(out, ",\"arguments\":");
        buf_addstr(out, c->arguments);
    }
    if (is_modern(c))
        buf_addf(out,
                 ",\"_meta\":{\"" MCP_KEY_VERSION "\":\"%.*s\",\"" MCP_KEY_CAPABILITIES
                 "\":{},\"" MCP_KEY_CLIENT_INFO
                 "\":{\"name\":\"holdfast replay\",\"version\":\"%s\"}}",
                 STR_ARG(mcp_version_latest(mcp_era_by_envelope(true))->name), HOLDFAST_VERSION);
    buf_addz(out, "}}");
}
