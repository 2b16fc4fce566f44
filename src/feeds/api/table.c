/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of this folder in the table of REST. */
#include "feeds/api/table.h"

#include "feeds/api/impl.h"

static void watch_events(struct api_call *c)
{
    if (!c->sv->watchers)
        api_refuse(c, ERR_UNAVAILABLE,
                   "live events come from a running Holdfast; start one with `holdfast up`");
    else if (websocket_is_asked(c->http->head))
        events_socket_open(c);
    else
        events_sse_open(c);
}

#define FILTER(NAME, HELP)                                                                         \
    {                                                                                              \
        .name = (NAME), .in = "query", .type = "string", .min = 1, .max = 8192, .help = (HELP)     \
    }

static const struct api_param watch_params[] = {
    FILTER("types", "Only events of these kinds: intent, outcome, note and so on, separated by "
                    "commas. Every filter may be given several times."),
    FILTER("session", "Only events of these sessions, by their ids."),
    FILTER("server", "Only events of these servers."),
    FILTER("tool", "Only events of these tools: the name alone, or SERVER__TOOL."),
    FILTER("outcome", "Only outcomes of these kinds: ok, tool_error, error and so on."),
    {.name = "after",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 2048,
     .help = "Begins with the events after this position, which came as an id. 0: with the first. "
             "Without a position the stream begins with new events."},
    {.name = "Last-Event-ID",
     .in = "header",
     .type = "string",
     .max = 2048,
     .help = "As after, sent by a client that connects again. It takes precedence."},
    {.name = "tenant",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "The caller's tenant. On the unix socket: any tenant (default: all)."},
    {0},
};

static const char *const watch_types[] = {"text/event-stream", NULL};
static const struct api_answer watch_answers[] = {
    {101, NULL,
     "The connection goes on as a WebSocket, for a request with `Upgrade: websocket`. The client "
     "sends "
     "`subscribe` and gets events as JSON."},
    {200, NULL,
     "Server-sent events without an end. The data of each is an Event; its id is a position. The "
     "event `resync` says that the stream ends or that events are missing.",
     watch_types},
    {429, "Problem",
     "This key, tenant or node has as many streams as it may, or another limit of the tenant or of "
     "the key is used up."},
    {0},
};

static const struct api_operation operations[] = {
    {.method = "GET",
     .pattern = "/api/v1/events",
     .id = "watchEvents",
     .access = API_READ,
     .run = watch_events,
     .summary = "Streams the events of the audit as they are recorded.",
     .params = watch_params,
     .answers = watch_answers},
    {0},
};

static const struct api_schema schemas[] = {{0}};
static const struct api_tag tag = {
    "/api/v1/events", "Events",
    "Events of the audit as they are recorded: each once, and resumable at every position."};
static const struct api_example examples[] = {{0}};

const struct api_part events_api = {
    .operations = operations,
    .after = "verifyAudit",
    .schemas = schemas,
    .after_schema = "AuditProof",
    .tag = &tag,
    .after_tag = "Administration",
    .examples = examples,
};
