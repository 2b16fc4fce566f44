/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the operation: parameters, body, answers. */
#include "replay/api/table.h"

#include "api/bodies.h"
#include "replay/replay.h"

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
    .examples = examples,
};
