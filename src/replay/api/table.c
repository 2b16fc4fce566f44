/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the operation: parameters, body, answers. */
#include "replay/api/table.h"

#include "api/bodies.h"
#include "replay/serve.h"

#include <stddef.h>

static const struct api_kind kind_text = {.type = "string"};

static const struct js_field fields[] = {
    {.name = "against",
     .kind = JS_BIND_CUSTOM,
     .read = body_read_text,
     .data = &kind_text,
     .min = 1,
     .max = 256,
     .offset = offsetof(struct replay_options, against),
     .help = "The server that gets every call (default: each call its own server)."},
    {.name = "writes",
     .kind = JS_BIND_BOOL,
     .offset = offsetof(struct replay_options, writes),
     .help = "Also sends calls of tools that their server does not annotate as read-only now."},
    {.name = "stop_on",
     .kind = JS_BIND_ENUM,
     .names = replay_stop_names,
     .offset = offsetof(struct replay_options, stop_on),
     .default_text = "never",
     .help = "difference: ends after the first call that is neither same nor skipped."},
    {.name = "ignore",
     .kind = JS_BIND_STRINGS,
     .max_items = DIFF_IGNORE_MAX,
     .offset = offsetof(struct replay_options, ignore.patterns),
     .count_offset = offsetof(struct replay_options, ignore.n),
     .help = "Places in results that do not count, as JSON pointers with * for any one key: "
             "/content/0/text/time."},
    {.name = "only",
     .kind = JS_BIND_STRINGS,
     .max_items = REPLAY_ONLY_MAX,
     .offset = offsetof(struct replay_options, only),
     .count_offset = offsetof(struct replay_options, n_only),
     .help = "Patterns of server__tool, as recorded; other calls are left out (default: every "
             "call)."},
    {0},
};
const struct api_body body_replay = {
    .name = "ReplayOptions", .fields = fields, .is_optional = true};

static const struct js_field serve_fields[] = {
    {.name = "ttl",
     .kind = JS_BIND_DURATION,
     .offset = offsetof(struct serve_options, ttl_ms),
     .min = 1000,
     .max = SERVED_TTL_MAX_MS,
     .default_text = "1h",
     .help = "How long it is served; at most a day."},
    {.name = "only",
     .kind = JS_BIND_STRINGS,
     .max_items = REPLAY_ONLY_MAX,
     .offset = offsetof(struct serve_options, only),
     .count_offset = offsetof(struct serve_options, n_only),
     .help = "Patterns of server__tool, as recorded; other calls are left out (default: every "
             "call)."},
    {0},
};
const struct api_body body_serve = {
    .name = "ReplayServeOptions", .fields = serve_fields, .is_optional = true};

static const struct api_param params[] = {
    {.name = "id",
     .in = "path",
     .type = "string",
     .is_required = true,
     .min = 1,
     .max = 255,
     .help = "The session_id of the recorded session.",
     .example = "\"session-1\""},
    {.name = "tenant",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "The caller's tenant. On the unix socket: any tenant (default: `default`)."},
    {0},
};

static const char *const lines[] = {"application/x-ndjson", NULL};
static const struct api_answer answers[] = {
    {200, NULL,
     "One JSON object a line, as it happens (docs/replay.md): the head, a line for each call, the "
     "summary. An empty line is a sign of life.",
     .types = lines},
    {404, "Problem", "The caller has no such session, or there is no server to replay against."},
    {413, "Problem", "The body is too large."},
    {415, "Problem", "The body is not JSON."},
    {429, "Problem", "Enough replays run at once, or another limit is reached."},
    {503, "Problem", "Holdfast is stopping, or does not run."},
    {0},
};

static const struct api_answer serve_answers[] = {
    {201, "ServedReplay", "The recording is served."},
    {404, "Problem", "The caller has no such session."},
    {409, "Problem", "The session is served for the caller already, or it has no call of a tool."},
    {413, "Problem", "The body is too large, or the recording is."},
    {415, "Problem", "The body is not JSON."},
    {429, "Problem", "Enough recordings are served at once."},
    {503, "Problem", "Holdfast does not run, or too much waits for the store."},
    {0},
};
static const struct api_answer served_answers[] = {
    {200, "ServedReplay", "What is served."},
    {404, "Problem", "The caller has no such session, or it is not served for the caller here."},
    {503, "Problem", "Holdfast does not run."},
    {0},
};
static const struct api_answer end_answers[] = {
    {204, NULL, "It is not served any more."},
    {404, "Problem", "The caller has no such session, or it is not served for the caller here."},
    {503, "Problem", "Holdfast does not run."},
    {0},
};

static const struct api_member server_members[] = {
    {"name", "string", NULL, true, NULL, NULL, "Name of the recorded server."},
    {"path", "string", NULL, true, NULL, NULL, "Path of its MCP endpoint at this Holdfast."},
    {"url", "string", NULL, false, NULL, NULL, "The same as a URL, if this Holdfast listens."},
    {"tools", "integer", NULL, true, NULL, NULL, "Number of its recorded tools."},
    {"calls", "integer", NULL, true, NULL, NULL, "Number of its recorded calls."},
    {0},
};
static const struct api_member count_members[] = {
    {"exact", "integer", NULL, true, NULL, NULL, "Calls answered by a call with equal arguments."},
    {"again", "integer", NULL, true, NULL, NULL,
     "The same, when all such calls had been used already."},
    {"in_order", "integer", NULL, true, NULL, NULL,
     "Calls answered by the next call of the tool, with other arguments."},
    {"unknown", "integer", NULL, true, NULL, NULL, "Calls that got an error."},
    {0},
};
static const struct api_member served_members[] = {
    {"session_id", "string", NULL, true, NULL, NULL, "The session_id of the recorded session."},
    {"servers", "array", "ServedServer", true, NULL, NULL, "The recorded servers."},
    {"recorded", "integer", NULL, true, NULL, NULL, "Number of answers on record."},
    {"lacking", "integer", NULL, true, NULL, NULL,
     "Number of recorded calls whose answer is not known whole."},
    {"expires_at", "string", NULL, true, "date-time", NULL, "When it ends by itself."},
    {"calls", "object", "ServedCalls", true, NULL, NULL, "The calls that came, by rule."},
    {0},
};
static const struct api_schema schemas[] = {
    {"ServedServer", server_members, "A server that a recording stands in for."},
    {"ServedCalls", count_members, "Number of calls that came."},
    {"ServedReplay", served_members, "A recording that is served in the place of its servers."},
    {0},
};

#define SERVE "/api/v1/sessions/{id}/replay/serve"
static const struct api_operation operations[] = {
    {.method = "POST",
     .pattern = "/api/v1/sessions/{id}/replay",
     .id = "replaySession",
     .access = API_WRITE,
     .is_sessions = true,
     .run = api_replay_session,
     .summary = "Sends the recorded calls of a session again, in a session of its own, and streams "
                "how the results differ.",
     .params = params,
     .body = &body_replay,
     .answers = answers},
    {.method = "POST",
     .pattern = SERVE,
     .id = "serveReplay",
     .access = API_WRITE,
     .is_sessions = true,
     .run = api_serve_replay,
     .summary = "Serves the recording of a session to the caller in the place of its servers.",
     .params = params,
     .body = &body_serve,
     .answers = serve_answers},
    {.method = "GET",
     .pattern = SERVE,
     .id = "getServedReplay",
     .access = API_READ,
     .is_sessions = true,
     .run = api_get_served_replay,
     .summary = "Shows the recording that is served to the caller, and which calls came.",
     .params = params,
     .answers = served_answers},
    {.method = "DELETE",
     .pattern = SERVE,
     .id = "endServedReplay",
     .access = API_WRITE,
     .is_sessions = true,
     .run = api_end_served_replay,
     .summary = "Ends what serveReplay began.",
     .params = params,
     .answers = end_answers},
    {0},
};

static const struct api_example examples[] = {
    {"against", "\"files\""},
    {"ignore", "[\"/content/0/text/time\"]"},
    {"only", "[\"files__*\"]"},
    {0},
};

const struct api_part replay_api = {
    .operations = operations,
    .after = "refreshSession",
    .schemas = schemas,
    .after_schema = "Tool",
    .examples = examples,
};
