/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in `sample` server, for a first try with curl.  echo is stateless; counter has a state
 * per session, so two commands show that sessions are isolated. */
#include "servers/sample.h"

#include "base/base.h"

#include <stdlib.h>

#define SESSION_PROPERTY                                                                           \
    "\"session_id\":{\"type\":\"string\",\"description\":\"A session handle (ses_...), to count "  \
    "in "                                                                                          \
    "that session. A session that is not used again ends after an hour, another after 24 hours "   \
    "without use.\"}"

static void run_echo(struct builtin_call *call)
{
    const struct js_node *message = js_get(call->doc, call->arguments, STR("message"));
    if (js_type_is(message, JS_STRING))
        builtin_text(call, js_text(call->doc, message, call->mem), false);
    else
        builtin_text(call, STR("echo needs a string argument \"message\"."), true);
}

static void run_counter(struct builtin_call *call)
{
    int64_t *count = *call->state;
    if (!count)
        *call->state = count = xcalloc(1, sizeof(*count));
    ++*count;
    buf_addf(call->result,
             "{\"content\":[{\"type\":\"text\",\"text\":\"%lld\"}],\"structuredContent\":{"
             "\"count\":%lld},"
             "\"isError\":false}",
             (long long)*count, (long long)*count);
}

static const struct builtin_tool tools[] = {
    {
        .name = "echo",
        .definition = "{\"name\":\"echo\",\"description\":\"Returns the message it is given.\","
                      "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"message\":{\"type\":"
                      "\"string\"}},"
                      "\"required\":[\"message\"]},\"annotations\":{\"readOnlyHint\":true}}",
        .run = run_echo,
    },
    {
        .name = "counter",
        .definition = "{\"name\":\"counter\",\"description\":\"Counts the calls of this session.\","
                      "\"inputSchema\":{\"type\":\"object\",\"properties\":{" SESSION_PROPERTY "}},"
                      "\"outputSchema\":{\"type\":\"object\",\"properties\":{\"count\":{\"type\":"
                      "\"integer\"}},"
                      "\"required\":[\"count\"]}}",
        .run = run_counter,
    },
    {.name = NULL},
};

const struct builtin server_sample = {
    .name = "sample",
    .instructions = "A sample server: echo returns its message, counter counts per session.",
    .tools = tools,
    .free_state = free,
};
